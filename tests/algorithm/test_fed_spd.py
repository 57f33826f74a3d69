"""FedSPD and the private baselines: exact without noise, and by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.fed_spd import State, Told
from tacita.problem import prox, synthetic
from tacita.problem.oracles import AgentOracle
from tacita.schedule import Polynomial


@pytest.fixture(scope="module")
def sparse():
    """Clients that disagree, an optimum with two of ten weights."""
    return synthetic.logistic(
        agents=8, features=10, samples=40, h=prox.L1(weight=0.6), l2=0.0, seed=2
    )


def objective(problem: tacita.Problem, w) -> float:
    with jax.enable_x64(True):
        return float(problem.population.loss(jnp.asarray(w)))


@pytest.mark.few(2)
@pytest.mark.parametrize("state", ("public", "hidden"))
@pytest.mark.parametrize(("participation", "rounds"), ((1.0, 800), (3, 1500)))
def test_reaches_the_l1_optimum(sparse, state, participation, rounds):
    best = sparse.solve()
    assert 0 < np.count_nonzero(best) < 5
    run = tacita.simulate(
        sparse,
        tacita.FedSPD(state=state, local_steps=3),
        rounds,
        participation=participation,
        record_every=rounds,
    )
    assert objective(sparse, run.params) - objective(sparse, best) < 1e-6
    np.testing.assert_allclose(run.params, best, atol=1e-5)
    # Clients' models are exactly sparse, the shared one is their mean with the duals.
    if participation == 1.0:
        for own in run.agents:
            np.testing.assert_array_equal(np.nonzero(own)[0], np.nonzero(best)[0])


@pytest.mark.parametrize(
    "algorithm", (tacita.DPADMM(), tacita.DPSGD(momentum=0.8)), ids=("DPADMM", "DPSGD")
)
def test_baselines_reach_the_l1_optimum_without_noise(sparse, algorithm):
    best = sparse.solve()
    run = tacita.simulate(sparse, algorithm, 600, record_every=600)
    np.testing.assert_allclose(run.params, best, atol=1e-6)
    # The coordinator takes the proximal step, so the shared model is exactly sparse.
    np.testing.assert_array_equal(np.nonzero(run.params)[0], np.nonzero(best)[0])


def test_any_prox():
    h = prox.Box(-0.2, 0.3)
    problem = synthetic.logistic(agents=4, features=4, samples=30, h=h, l2=0.1)
    run = tacita.simulate(problem, tacita.FedSPD(), 300, record_every=300)
    np.testing.assert_allclose(run.params, problem.solve(), atol=1e-7)


@pytest.mark.parametrize("state", ("public", "hidden"))
def test_one_round_by_hand(state):
    """The equations written out once more, in NumPy."""
    problem = synthetic.logistic(
        agents=3, features=2, samples=9, h=prox.L1(weight=0.3), l2=0.1
    )
    rho, gamma, noise = 0.7, 1.5, 0.4
    algorithm = tacita.FedSPD(
        rho=rho,
        gamma=Polynomial(start=gamma, power=-0.5),
        local_steps=3,
        state=state,
        noise_std=noise,
        paper_noise=state == "hidden",
    )
    u, lam, x0, t = np.array([0.3, -0.2]), np.array([0.1, 0.2]), np.ones(2), 4
    with jax.enable_x64(True):
        key = jax.random.key(5)
        one = jax.tree.map(lambda leaf: leaf[0], problem.population.rows)
        local = problem.population.local(one)
        told = Told(jnp.asarray(x0))
        before = State(jnp.asarray(u), jnp.asarray(lam))
        after, letter = algorithm.in_round(t).local(
            key, AgentOracle(tacita.Full(), local), before, told
        )
        draw = jax.random.normal(jax.random.split(key)[1], (2,), jnp.float64)
        here, total, g_t = u, np.zeros(2), gamma * t**0.5
        for _ in range(3):
            gradient = np.asarray(local.grad(jnp.asarray(here)))
            v = (g_t * here + rho * x0 + lam - gradient) / (g_t + rho)
            threshold = 0.3 / 3 / (g_t + rho)
            here = np.sign(v) * np.maximum(np.abs(v) - threshold, 0)
            total += here
    x = total / 3
    y = 2 * x - x0 - lam / rho + 2 * noise / (rho + g_t) * np.asarray(draw)
    np.testing.assert_allclose(letter, y, rtol=1e-12)
    if state == "public":
        x = here = (y + x0 + lam / rho) / 2
    np.testing.assert_allclose(after.u, here, rtol=1e-12)
    np.testing.assert_allclose(after.lam, lam - rho * (x - x0), rtol=1e-12)


def test_public_state_is_a_function_of_letters_and_broadcasts():
    """Replay the state from what the coordinator saw: nothing else is in it."""
    problem = synthetic.logistic(agents=4, features=3, samples=20)
    algorithm = tacita.FedSPD(rho=0.5, gamma=1.0, noise_std=0.3)
    from tacita.audits.transcript import watch

    with jax.enable_x64(True):
        seen, _ = watch(problem, algorithm, 6, np.array([3, 9], np.uint64), 2, 2)
    for run in range(2):
        u, lam = np.zeros(3), np.zeros(3)
        for t in range(6):
            np.testing.assert_allclose(seen.state.u[run, t], u, atol=1e-12)
            np.testing.assert_allclose(seen.state.lam[run, t], lam, atol=1e-12)
            if seen.active[run, t]:
                x0 = seen.broadcast.x0[run, t]
                u = (seen.letter[run, t] + x0 + lam / 0.5) / 2
                lam = lam - 0.5 * (u - x0)


def test_hidden_state_with_noise_needs_to_be_asked_for():
    with pytest.raises(tacita.TacitaError, match="paper_noise=True"):
        tacita.FedSPD(state="hidden", noise_std=0.1)
    with pytest.raises(tacita.TacitaError, match="common to all"):
        tacita.simulate(
            synthetic.logistic(agents=3, features=2, samples=9),
            tacita.FedSPD(rho=np.ones(3)),
            2,
        )


@pytest.mark.long
def test_client_updates_are_clipped_and_summed_with_a_fixed_denominator():
    problem = synthetic.logistic(agents=5, features=3, samples=20, seed=1)
    plain = {"step_size": 0.5, "local_steps": 2}
    free = tacita.ClientDPFedAvg(clip=1e6, **plain)
    run = tacita.simulate(problem, free, 4, seed=2)
    average = tacita.simulate(problem, tacita.FedAvg(**plain), 4, seed=2)
    np.testing.assert_allclose(run.params, average.params, atol=1e-12)
    # Two of five, as if five were expected: two fifths of the way.
    part = tacita.simulate(problem, free, 1, seed=2, participation=2)
    whole = tacita.simulate(problem, tacita.FedAvg(**plain), 1, seed=2, participation=2)
    np.testing.assert_allclose(part.params, 0.4 * whole.params, atol=1e-12)
    tight = tacita.ClientDPFedAvg(clip=1e-3, **plain)
    short = tacita.simulate(problem, tight, 1, seed=2)
    assert np.linalg.norm(short.params) <= 1e-3 * (1 + 1e-9)


def test_dp_admm_steps_by_its_own_rule():
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=2.0))
    algorithm = tacita.DPADMM(rho=1.0, radius=3.0, oracle=noisy)
    ready = algorithm.resolve(synthetic.logistic(agents=3, features=4, samples=9))
    # 1/eta_t = sqrt(2 t (G^2 + d s^2)) / radius
    assert float(ready.inverse_step(9.0, 4)) == pytest.approx(
        np.sqrt(2 * 9 * (4 + 4 * 0.25)) / 3
    )


def test_average_of_dp_sgd_is_a_fading_mean():
    problem = synthetic.logistic(agents=3, features=2, samples=9, seed=3)
    runs = [
        tacita.simulate(problem, tacita.DPSGD(step_size=0.3, average=a), k).params
        for a, k in ((0.0, 1), (0.0, 2), (0.5, 2))
    ]
    np.testing.assert_allclose(runs[2], 0.25 * runs[0] + 0.5 * runs[1], atol=1e-12)
