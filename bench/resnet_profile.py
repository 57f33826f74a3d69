"""ResNet-10: which of its layers a step spends its time in.

    python -m bench.resnet_profile

Every convolution by itself, as the compiled loop of a step has it: forward, its
derivative by the input and by the kernel; normalisations and the rest of the layers
likewise; and a whole step of `bench.networks`. Milliseconds of processor time for a
batch of 20, in turns. A product of matrices says what the processor can do. Raw results
are kept in bench/results/resnet_profile.json, shown by `python -m bench.page`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bench import turns
from bench.networks import BATCH, COLOURS, rounds_of
from tacita.problem import resnet10
from tacita.problem.model.convolutions import with_fast_derivatives
from tacita.problem.model.networks import convolve, normalise

REPEATS, TIMES, SIDE = 7, 2, 1024
GROUPS = 4
KINDS = ("forward", "by input", "by kernel")


class Convolution(NamedTuple):
    """One convolution of the network."""

    name: str
    side: int  # of the input
    channels: int  # of the input
    filters: int
    kernel: int
    stride: int

    @property
    def gigaflops(self) -> float:
        """Of one direction, for a batch; a multiplication and an addition are two."""
        places = BATCH * (self.side // self.stride) ** 2
        return 2e-9 * places * self.kernel**2 * self.channels * self.filters


def convolutions() -> list[Convolution]:
    """Of ResNet-10 with width 64 on 32 x 32 x 3."""
    found = [Convolution("first", 32, 3, 64, 3, 1)]
    side, channels = 32, 64
    for stage, filters in enumerate((64, 128, 256, 512), start=1):
        stride = 1 if stage == 1 else 2
        after = side // stride
        found += [
            Convolution(f"stage {stage}, a", side, channels, filters, 3, stride),
            Convolution(f"stage {stage}, b", after, filters, filters, 3, 1),
        ]
        if stride > 1:
            past = Convolution(f"stage {stage}, past", side, channels, filters, 1, 2)
            found.append(past)
        side, channels = after, filters
    return found


def convolution_turns(one: Convolution) -> dict[str, turns.Turn]:
    """Forward and both derivatives."""
    x = _normal(BATCH, one.side, one.side, one.channels)
    kernel = _normal(one.kernel, one.kernel, one.channels, one.filters)
    side = one.side // one.stride
    out = _normal(BATCH, side, side, one.filters)

    def forward(x: Array, kernel: Array) -> Array:
        return with_fast_derivatives(lambda a, b: convolve(a, b, one.stride))(x, kernel)

    def by(place: int) -> Any:
        return lambda x, kernel, out: jax.vjp(forward, x, kernel)[1](out)[place]

    functions = (lambda x, kernel, out: forward(x, kernel)), by(0), by(1)
    return {
        kind: _in_a_loop(function, x, kernel, out)
        for kind, function in zip(KINDS, functions, strict=True)
    }


def normalisation_turns() -> dict[str, turns.Turn]:
    """All nine, each with the ReLU behind it, forward and back."""
    sizes = [(32, 64)] * 3 + [(16, 128)] * 2 + [(8, 256)] * 2 + [(4, 512)] * 2
    x = [_normal(BATCH, side, side, c) for side, c in sizes]
    scales = [_normal(c) for _, c in sizes]

    def forward(x: Any, scales: Any) -> Any:
        pairs = zip(x, scales, strict=True)
        return [jax.nn.relu(normalise(a, s, s, GROUPS)) for a, s in pairs]

    def both(x: Any, scales: Any, out: Any) -> Any:
        return jax.vjp(forward, x, scales)[1](out)

    return {"normalisations and ReLU": _in_a_loop(both, x, scales, x)}


def _in_a_loop(function: Any, *first: Any) -> turns.Turn:
    """A turn of a compiled loop of which every run needs the one before."""

    def touched(held: Any, found: Any) -> Any:
        # One number changes, so that the loop has to compute everything again.
        leaves, kind = jax.tree.flatten(held)
        number = jax.tree.leaves(found)[0].ravel()[0]
        leaves = [a.at[(0,) * a.ndim].add(1e-9 * number) for a in leaves]
        return jax.tree.unflatten(kind, leaves)

    @jax.jit
    def looped(held: Any) -> Any:
        return jax.lax.fori_loop(0, TIMES, lambda _, h: touched(h, function(*h)), held)

    return turns.own_turn(lambda: jax.block_until_ready(looped(first)), TIMES)


def _normal(*shape: int) -> Array:
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(0, 0.1, shape), jnp.float32)


def main() -> None:
    turns.on_one_core()
    kept: dict[str, Any] = {"machine": turns.machine(), "versions": turns.versions()}
    kept |= {"command": "python -m bench.resnet_profile", "layers": []}
    for one in convolutions():
        found = turns.in_turns(convolution_turns(one), REPEATS)
        print(turns.table(f"{one}", found, "forward"), flush=True)
        told = {"gigaflops": one.gigaflops, "milliseconds": found}
        kept["layers"].append(one._asdict() | told)
        jax.clear_caches()
    square = _normal(SIDE, SIDE)
    others = {
        "step": rounds_of(resnet10((32, 32, 3), 10), COLOURS, agents=1, steps=2),
        **normalisation_turns(),
        "product of matrices": _in_a_loop(jnp.matmul, square, square),
    }
    kept |= {"others": turns.in_turns(others, REPEATS)}
    kept["gigaflops of the product"] = 2e-9 * SIDE**3
    print(turns.table("others", kept["others"], "step"))
    turns.save("resnet_profile", kept)


if __name__ == "__main__":
    main()
