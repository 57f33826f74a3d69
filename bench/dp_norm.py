"""What a DP-Norm round costs: against its bare gradients, and with a thousand nodes.

    python -m bench.dp_norm

The convex benchmark of `papers/dp_norm` in shape (ring of 6, 4,000 rows of 784 features
a node, 10 classes, K = 10 steps on batches of 2,000, float32), on random rows: a whole
round with letters and noise against the gradients of the same batches alone. Then
1,000 nodes on a random regular graph of degree 4. Medians after compilation, in turns
in one process; ratios are printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from bench.simulator import tacita_rounds
from bench.timing import in_turns, table
from tacita.problem import graph
from tacita.problem.oracles import AgentOracle, Minibatch
from tacita.trees import double_precision

NODES, ROWS, FEATURES, CLASSES, STEPS, BATCH = 6, 4000, 784, 10, 10, 2000
ROUNDS = 2


def benchmark() -> tacita.Problem:
    rng = np.random.default_rng(0)
    x = rng.random((NODES * ROWS, FEATURES), np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return tacita.from_arrays(
        x,
        rng.integers(0, CLASSES, len(x)),
        np.repeat(np.arange(NODES), ROWS),
        model="softmax",
        graph=graph.ring(NODES),
        dtype=np.float32,
    )


def bare_gradients(problem: tacita.Problem, oracle: Minibatch) -> Callable[[], None]:
    """The gradients of a round's batches at fixed points, added up; nothing else."""
    population = problem.population

    @jax.jit
    def rounds(rows, w, key):
        def node(each):
            mine, point, secret = each
            local = AgentOracle(oracle, population.local(mine))

            def step(total, draw):
                # The point depends on the last gradient, lest steps be merged.
                return total - 1e-6 * local(draw, point + 1e-6 * total), None

            draws = local.draws(secret, STEPS)
            return jax.lax.scan(step, jnp.zeros_like(point), draws)[0]

        def one(k, w):
            keys = jax.random.split(jax.random.fold_in(key, k), NODES)
            return w + jax.lax.map(node, (rows, w, keys))

        return jax.lax.fori_loop(0, ROUNDS, one, w)

    w = np.zeros((NODES, problem.dim), np.float32)
    key = jax.random.key(0)

    def work() -> None:
        with double_precision():
            jax.block_until_ready(rounds(population.rows, w, key))

    return work


def against_gradients() -> str:
    problem = benchmark()
    oracle = Minibatch(size=BATCH, sampling="permutation")
    numbers = {"step_size": 0.03, "local_steps": STEPS, "oracle": oracle}
    private = tacita.DPNorm(alpha=0.2, noise_std=0.03, **numbers)
    late = tacita.DPNorm(alpha=0.2, noise_std=0.03, exchange="asynchronous", **numbers)
    work = {
        "gradients alone": bare_gradients(problem, oracle),
        "DP-Norm": tacita_rounds(problem, private, 1.0, ROUNDS),
        "DP-Norm, asynchronous": tacita_rounds(problem, late, 1.0, ROUNDS),
    }
    seconds = in_turns(work, repeats=7, per_call=ROUNDS)
    title = "a round of the convex benchmark (target: at most 1.5 x)"
    return table(title, seconds, "gradients alone")


def thousand_nodes() -> str:
    problem = tacita.problem.synthetic.logistic(
        agents=1000,
        features=20,
        samples=50,
        l2=0.1,
        graph=graph.random_regular(1000, 4, seed=0),
    )
    algorithm = tacita.DPNorm(step_size=0.3, local_steps=5, alpha=0.1)
    safe = tacita.private(
        problem,
        algorithm,
        epsilon=4.0,
        delta=1e-5,
        observer="neighbour",
        rounds=100,
    )
    tacita.simulate(problem, safe, 2, seed=0, record=(), progress=False)
    began = time.perf_counter()
    run = tacita.simulate(problem, safe, 100, seed=0, record=(), progress=False)
    took = time.perf_counter() - began
    assert run.privacy is not None
    row = run.privacy.row("neighbour")
    return (
        "1,000 nodes, random regular graph of degree 4, 50 rows of 20 features each\n"
        f"  100 rounds, report included     {took:8.2f} s; epsilon "
        f"{row.epsilon:.2f} at delta {row.delta:g} per record against a neighbour"
    )


def main() -> None:
    print(against_gradients())
    print(thousand_nodes())


if __name__ == "__main__":
    main()
