"""FedAvg rounds: Tacita against NumPy and against the same arithmetic as a bare loop.

    python -m bench.simulator            # workloads A and B
    python -m bench.simulator --only A --peers /path/to/venv/bin/python

Workload A: logistic regression, 100 agents x 250 samples x 5 features, 5 full local
steps, everybody active, float32 and float64. Workload B: softmax regression 784 x 10,
1,000 agents of 50 samples, 100 active, batches of 10, 5 local steps, float32.
Milliseconds of processor time for a round, all contestants in turns. Bare JAX is one
compiled loop of the same arithmetic; NumPy and PyTorch take all agents in batched
products, as one writes it by hand. Kept in bench/results/simulator.json.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

import tacita
from bench import turns
from tacita import keys
from tacita.runtime import engine
from tacita.runtime.ready import make_plan, make_world, prepare

STEP, LOCAL_STEPS = 0.1, 5
ROUNDS = 50


def tacita_rounds(problem: tacita.Problem, algorithm, participation, rounds: int):
    """A function that does `rounds` rounds of the real engine, without set-up."""
    with jax.enable_x64(True):
        ready = prepare(problem, algorithm)
        plan = make_plan(problem, ready, (), None, None)
        world = make_world(problem, ready, participation)
        base = keys.from_seed(0)
        state = {"carry": engine.begin(plan, world, ready, base, problem.start)}

    def work() -> None:
        with jax.enable_x64(True):
            book = jnp.zeros((0, engine.CAPACITY), jnp.float64)
            state["carry"], _, _ = engine.advance(
                plan, world, ready, base, 0, state["carry"], book, 1, rounds, 0.0, None
            )
            jax.block_until_ready(state["carry"])

    return work


def contestants(ours, bare, numpy, rounds: int) -> dict[str, turns.Turn]:
    works = {"tacita": ours, "bare JAX": bare, "NumPy": numpy}
    return {name: turns.own_turn(work, rounds) for name, work in works.items()}


def workload_a(dtype) -> dict[str, turns.Turn]:
    problem = tacita.problem.synthetic.logistic(
        agents=100, features=5, samples=250, l2=0.5, dtype=dtype
    )
    x, y, _ = problem.stacked()
    x = np.ascontiguousarray(x)
    l2 = dtype(0.5)

    def numpy_round(w):
        local = np.broadcast_to(w, (100, 5)).copy()
        for _ in range(LOCAL_STEPS):
            scores = (x @ local[:, :, None])[..., 0]
            residual = -y / (1 + np.exp(y * scores)) / dtype(250)
            gradient = (residual[:, None, :] @ x)[:, 0]
            local -= dtype(STEP) * (gradient + l2 * local)
        return local.mean(axis=0)

    def numpy_work() -> None:
        w = np.zeros(5, dtype)
        for _ in range(ROUNDS):
            w = numpy_round(w)

    @jax.jit
    def bare(x, y, w, rounds):
        def local(x, y, w):
            def step(_, v):
                residual = -y * jax.nn.sigmoid(-y * (v @ x)) / 250
                return v - STEP * (x @ residual + 0.5 * v)

            return jax.lax.fori_loop(0, LOCAL_STEPS, step, w)

        def one(_, w):
            return jax.vmap(local, (0, 0, None))(x, y, w).mean(axis=0)

        return jax.lax.fori_loop(0, rounds, one, w)

    with jax.enable_x64(True):
        # Feature by feature, the layout that is fastest here.
        by_feature = np.ascontiguousarray(x.swapaxes(1, 2))
        on_device = jnp.asarray(by_feature), jnp.asarray(y), jnp.zeros(5, dtype)

    def bare_work() -> None:
        with jax.enable_x64(True):
            bare(*on_device, ROUNDS).block_until_ready()

    algorithm = tacita.FedAvg(step_size=STEP, local_steps=LOCAL_STEPS)
    ours = tacita_rounds(problem, algorithm, 1.0, ROUNDS)
    return contestants(ours, bare_work, numpy_work, ROUNDS)


def workload_b() -> dict[str, turns.Turn]:
    agents, samples, features, classes = 1000, 50, 784, 10
    active, batch, rounds = 100, 10, 5
    rng = np.random.default_rng(0)
    x = rng.random((agents * samples, features), dtype=np.float32)
    y = rng.integers(0, classes, agents * samples)
    owner = np.repeat(np.arange(agents), samples)
    problem = tacita.from_arrays(x, y, owner, model="softmax", dtype=np.float32)
    x = x.reshape(agents, samples, features)
    y = y.reshape(agents, samples)
    eye = np.eye(classes, dtype=np.float32)
    step = np.float32(STEP)

    def numpy_round(w):
        cohort = rng.choice(agents, active, replace=False)[:, None]
        picks = np.argpartition(rng.random((active, LOCAL_STEPS, samples)), batch)
        local = np.broadcast_to(w, (active, features, classes)).copy()
        for k in range(LOCAL_STEPS):
            rows = picks[:, k, :batch]
            xb, yb = x[cohort, rows], y[cohort, rows]
            scores = xb @ local
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            residual = scores / scores.sum(axis=-1, keepdims=True) - eye[yb]
            local -= step / batch * (xb.transpose(0, 2, 1) @ residual)
        return local.mean(axis=0)

    def numpy_work() -> None:
        w = np.zeros((features, classes), np.float32)
        for _ in range(rounds):
            w = numpy_round(w)

    @jax.jit
    def bare(key, x, y, w, rounds):
        def one(r, w):
            first, second = jax.random.split(jax.random.fold_in(key, r))
            cohort = jax.random.permutation(first, agents)[:active]
            picks = jax.random.randint(second, (active, LOCAL_STEPS, batch), 0, samples)

            def local(pair):
                agent, rows = pair

                def descend(v, row):
                    xb, yb = x[agent][row], y[agent][row]
                    residual = jax.nn.softmax(xb @ v.T) - jax.nn.one_hot(yb, classes)
                    return v - STEP / batch * (residual.T @ xb), None

                return jax.lax.scan(descend, w, rows)[0]

            return jax.lax.map(local, (cohort, picks)).mean(axis=0)

        return jax.lax.fori_loop(0, rounds, one, w)

    on_device = jnp.asarray(x), jnp.asarray(y.astype(np.int32))

    def bare_work() -> None:
        w = jnp.zeros((classes, features), jnp.float32)
        bare(jax.random.key(0), *on_device, w, rounds).block_until_ready()

    algorithm = tacita.FedAvg(
        step_size=STEP, local_steps=LOCAL_STEPS, oracle=tacita.Minibatch(size=batch)
    )
    ours = tacita_rounds(problem, algorithm, active, rounds)
    return contestants(ours, bare_work, numpy_work, rounds)


_A = "logistic regression, 100 agents of 250 rows, 5 features, 5 full local steps"
_B = "softmax regression 784 x 10, 100 of 1,000 agents active, 5 batches of 10"
#: By title: what it is, its contestants, and repeats.
WORKS = {
    "A: float32": (_A, lambda: workload_a(np.float32), 15),
    "A: float64": (_A, lambda: workload_a(np.float64), 15),
    "B: float32": (_B, workload_b, 15),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the first letters of a work")
    parser.add_argument("--peers", action="append", default=[], help="an interpreter")
    asked = parser.parse_args()
    with threadpool_limits(1):  # NumPy's threads that wait for others count as work
        turns.compete("simulator", WORKS, "bare JAX", asked.peers, asked.only)


if __name__ == "__main__":
    main()
