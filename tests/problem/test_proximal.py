"""One agent's exact step: no slope is left, however far away the answer is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import Graph, newton, proximal
from tacita.problem.solve import in_float64
from tacita.trees import double_precision

AGENTS, ROWS = 60, 6


def agents(model, n_agents=AGENTS, rows=ROWS):
    """Rows of all sizes, labels that no line fits, some of them far away."""
    rng = np.random.default_rng(0)
    agent = np.repeat(np.arange(n_agents), rows)
    size, noise = 10 ** rng.uniform([-1, -1], 2, size=(n_agents, 2)).T
    x = rng.normal(size=(len(agent), 3)) * size[agent, None]
    y = np.sum(x * rng.normal(size=(n_agents, 3))[agent], axis=1)
    y = y + rng.normal(size=len(y)) * noise[agent]
    y = np.sign(y) if model == "logistic" else y
    return tacita.from_arrays(x, y, agent, model=model, l2=1e-4)


@pytest.mark.parametrize("model", ["huber", "logistic"])
def test_an_exact_step_leaves_no_slope(model):
    with double_precision():
        population = in_float64(agents(model).population)
        w, v = jnp.zeros(3), jnp.asarray([3.0, -1.0, 0.5])

        @jax.jit
        def slopes(pull):
            def one(rows):
                local = population.local(rows)
                ends = (
                    proximal.toward(local, w, v, pull),
                    newton.exact_prox(local, w, v, 1 / jnp.maximum(pull, 1e-9)),
                )
                pulls = (pull, jnp.maximum(pull, 1e-9))
                return jnp.stack(
                    [
                        jnp.max(jnp.abs(local.grad(u) + p * (u - v)))
                        for u, p in zip([w, *ends], [pull, *pulls], strict=True)
                    ]
                )

            return jax.vmap(one)(population.rows)

        for pull in (0.0, 1e-6, 1e-3, 0.1):
            before, *after = np.asarray(slopes(pull)).T
            for left in after:
                assert np.all(left <= 1e-10 * before), (pull, np.max(left / before))


@pytest.mark.long
def test_a_huber_node_without_neighbours_is_solved_by_itself():
    """Under norms it is asked for the minimiser of its own loss, and nothing else."""
    problem = agents("huber")
    alone = Graph.from_edges(list(range(AGENTS)), np.zeros((0, 2), int))
    problem = tacita.trees.replace(problem, graph=alone)
    models = tacita.GTVMin(problem, alpha=0.1, penalty="l2").solve()
    smooth = tacita.GTVMin(problem, alpha=0.1, penalty="squared").solve()
    np.testing.assert_allclose(models, smooth, rtol=1e-8, atol=1e-8)


def test_steps_end_once_only_rounding_is_left():
    """Residuals of many points at once round otherwise than those of one."""
    looks = []

    def residual_at(local):
        def residual(u):
            jax.debug.callback(lambda _: looks.append(1), u[0])
            return local.grad(u) + 0.1 * (u - 1.0)

        return residual

    with double_precision():
        population = in_float64(agents("logistic", n_agents=2, rows=20).population)
        solve = jax.vmap(
            lambda rows: newton.root(
                residual_at(population.local(rows)), jnp.zeros(3), patient=True
            )
        )
        jax.block_until_ready(jax.jit(solve)(population.rows))
        jax.effects_barrier()
    # Some fifteen steps of a few looks each, where two thousand would be made.
    assert len(looks) < 2 * 200
