"""jax-privacy and FedJAX at the works of `bench.networks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peers_works import (
    BATCH,
    MLP,
    NOISE,
    NORM,
    PLAIN,
    PRIVATE,
    SOFTMAX,
    STEP,
    STEPS,
    Made,
)


def jax_network(work: str) -> tuple[Any, Callable[[Any, Any], Any]]:
    """The networks in JAX: parameters, and scores of rows."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(0, 0.05, shape), jnp.float32)

    if work == SOFTMAX:
        return normal(784, 10), lambda p, x: x @ p
    if work == MLP:
        sizes = (784, 200), (200, 200), (200, 10)

        def perceive(p: Any, x: Any) -> Any:
            for matrix, bias in p[:-1]:
                x = jax.nn.relu(x @ matrix + bias)
            return x @ p[-1][0] + p[-1][1]

        return [(normal(*size), jnp.zeros(size[1])) for size in sizes], perceive

    def look(p: Any, x: Any) -> Any:
        x = x.reshape(-1, 28, 28, 1)
        for kernel, bias in p[:-1]:
            told = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=told
            )
            x, (b, h, w, c) = jax.nn.relu(x + bias), x.shape
            x = x.reshape(b, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
        return x.reshape(len(x), -1) @ p[-1][0] + p[-1][1]

    kernels = [(normal(3, 3, a, b), jnp.zeros(b)) for a, b in ((1, 32), (32, 64))]
    return [*kernels, (normal(3136, 10), jnp.zeros(10))], look


def jax_privacy_loop(work: str) -> Made:
    """Its clipped gradients and its noise, in one compiled step."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax_privacy import clipping, noise_addition

    start, scores = jax_network(PRIVATE[work])
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((BATCH, 784)), jnp.float32)
    y = jnp.asarray(rng.integers(0, 10, BATCH))

    def loss(p: Any, x: Any, y: Any) -> Any:
        return _cross_entropy(scores(p, x), y)

    gradient = clipping.clipped_grad(
        loss, l2_clip_norm=NORM, batch_argnums=(1, 2), normalize_by=BATCH
    )
    noise = noise_addition.gaussian_privatizer(stddev=NOISE, prng_key=0)

    @jax.jit
    def step(p: Any, state: Any) -> tuple[Any, Any]:
        noisy, state = noise.update(gradient(p, x, y), state)
        return jax.tree.map(lambda a, g: a - STEP * g, p, noisy), state

    def turn() -> None:
        held = start, noise.init(start)
        for _ in range(STEPS):
            held = step(*held)
        jax.block_until_ready(held)

    return turn, STEPS


def fedjax_round(work: str) -> Made:
    """A round of its FedAvg."""
    import jax
    import numpy as np

    jax.tree_map = jax.tree.map  # pyright: ignore  # which its last release looks for
    import fedjax
    from fedjax.algorithms import fed_avg

    start, scores = jax_network(work)
    agents, rng = PLAIN[work], np.random.default_rng(0)

    def loss(p: Any, batch: Any, key: Any) -> Any:
        return _cross_entropy(scores(p, batch["x"]), batch["y"])

    clients = []
    for k in range(agents):
        x = rng.random((STEPS * BATCH, 784), np.float32)
        rows = {"x": x, "y": rng.integers(0, 10, len(x))}
        clients.append((b"%d" % k, fedjax.ClientDataset(rows), jax.random.PRNGKey(k)))
    rounds = fed_avg.federated_averaging(
        jax.grad(loss),
        fedjax.optimizers.sgd(STEP),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=BATCH),
    )

    def turn() -> None:
        state, _ = rounds.apply(rounds.init(start), clients)
        jax.block_until_ready(state.params)

    return turn, agents * STEPS


def _cross_entropy(scores: Any, y: Any) -> Any:
    import jax
    import jax.numpy as jnp

    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], axis=1)
    return -jnp.mean(chosen)
