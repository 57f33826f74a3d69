"""Asynchronous runs: what a delay is, what the bounds promise, where runs lead."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.base import GraphAlgorithm
from tacita.participation import schedule_for
from tacita.problem import graph, synthetic
from tacita.problem.oracles import Full
from tacita.runtime.transit import Asynchronous, event, first
from tacita.theory import gtv
from tacita.trees import frozen

ALPHA = 0.05


class Clock(NamedTuple):
    t: Any
    oldest: Any
    seen: Any


@frozen
class Clocks(GraphAlgorithm):
    """Letters carry the event in which they were written: delays can be read off."""

    oracle: Any = Full()
    delivery: ClassVar[str] = "slots"
    source: ClassVar[str] = "for tests only"

    def init(self, w, edges):
        zero = jnp.zeros((), w.dtype)
        return Clock(zero, zero, zero), jnp.zeros((edges.mask.shape[0], 1), w.dtype)

    def local(self, key, oracle, edges, state, inbox):
        # Letters written at event t are read from event t + 1 on: delay 0 there.
        late = jnp.where(edges.mask, state.t - inbox[:, 0], 0)
        after = Clock(state.t + 1, jnp.maximum(state.oldest, late.max()), late.sum())
        return after, jnp.where(edges.mask[:, None], after.t, 0)

    def model(self, state):
        return jnp.stack([state.t, state.oldest, state.seen])


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    """Enough rows at every node that FedRelax contracts visibly."""
    network = graph.erdos_renyi(10, p=0.4, seed=3)
    return synthetic.linear(
        agents=10, features=3, samples=20, noise=0.5, spread=1.0, graph=network
    )


@pytest.fixture(scope="module")
def optimum(problem) -> np.ndarray:
    return tacita.GTVMin(problem, ALPHA).solve()


@pytest.mark.long
@pytest.mark.parametrize("lost", [0.0, 0.4])
def test_no_letter_is_older_than_the_bound(problem, lost):
    rule = Asynchronous(most_delay=4, lost=lost)
    run = tacita.simulate(problem, Clocks(), 400, asynchronous=rule, record=())
    assert np.all(run.agents[:, 0] == 400)
    assert run.agents[:, 1].max() == 4  # reached, and never passed


def test_without_a_bound_letters_grow_old(problem):
    rule = Asynchronous(law="geometric", mean_delay=3.0, lost=0.3)
    run = tacita.simulate(problem, Clocks(), 400, asynchronous=rule, record=())
    assert run.agents[:, 1].min() > 10
    # A law of one's own: every letter takes two events, so its age runs 2, 3, 4.
    two = Asynchronous(law=lambda key, shape: jnp.full(shape, 2))
    run = tacita.simulate(problem, Clocks(), 60, asynchronous=two, record=())
    assert np.all(run.agents[:, 1] == 4)


def test_mean_of_the_geometric_law():
    with jax.enable_x64(True):
        rule = Asynchronous(law="geometric", mean_delay=3.0)
        room = jnp.full((20_000,), 2**30, jnp.int32)
        draws = np.asarray(rule.travel(jax.random.key(0), room))
        none = Asynchronous(law="geometric", mean_delay=0.0)
        assert np.all(np.asarray(none.travel(jax.random.key(0), room)) == 0)
    assert draws.mean() == pytest.approx(3.0, abs=0.1)
    assert np.mean(draws == 0) == pytest.approx(0.25, abs=0.01)


def test_everybody_is_active_once_in_every_window(problem):
    """At the first event, and then in any B events, however rare its own draws are."""
    rule, chances = Asynchronous(most_delay=5), schedule_for(0.01, 10)
    slots = jax.tree.map(jnp.asarray, problem.graph.slots)
    letters = jnp.zeros((10, 1))

    def step(under_way, key):
        active, _, after = event(rule, slots, chances, "sum", key, under_way, letters)
        return after, active

    keys = jax.random.split(jax.random.key(0), 40)
    history = np.asarray(jax.lax.scan(step, first(slots, letters), keys)[1])
    assert np.all(history[0])
    windows = np.lib.stride_tricks.sliding_window_view(history, 5, axis=0)
    assert np.all(windows.any(axis=-1))
    assert history.mean() < 0.3


@pytest.mark.long
def test_without_delays_it_is_a_run_in_step(problem):
    for algorithm in (tacita.FedGD(alpha=ALPHA), tacita.PrimalDual(alpha=ALPHA)):
        step = tacita.simulate(problem, algorithm, 9, record=())
        rule = Asynchronous(most_delay=0)
        free = tacita.simulate(problem, algorithm, 9, asynchronous=rule, record=())
        np.testing.assert_allclose(free.agents, step.agents, atol=1e-14)


@pytest.mark.long
def test_relaxation_stays_below_its_bound_at_every_event(problem, optimum):
    """(134) with B = 10, random active sets, 20 seeds, every event."""
    most, events = 10, 500

    def worst(shared, agents):
        return jnp.max(jnp.linalg.norm(agents - optimum, axis=1))

    run = tacita.simulate(
        problem,
        tacita.FedRelax(alpha=ALPHA),
        events,
        seeds=20,
        participation=0.2,
        asynchronous=Asynchronous(most_delay=most),
        record=(worst,),
    )
    kappa = gtv.relax_contraction(problem, ALPHA)
    assert kappa < 0.5
    at_first = np.linalg.norm(optimum, axis=1).max()
    t = np.arange(1, events + 1)
    bound = at_first * gtv.asynchronous_bound(kappa, t, most)
    errors = run.metrics["worst"]
    assert errors.shape == (20, events)
    assert np.all(errors <= bound + 1e-13)
    # It converges to the solution of a run in step, and no faster than one event each.
    assert errors[:, -1].max() < 1e-8
    assert np.any(errors > at_first * kappa**t)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "algorithm",
    [tacita.FedGD(alpha=ALPHA), tacita.PrimalDual(alpha=ALPHA, penalty="squared")],
    ids=["FedGD", "PrimalDual"],
)
def test_every_graph_algorithm_gets_there(problem, optimum, algorithm):
    for rule in (
        Asynchronous(most_delay=6, lost=0.3),
        Asynchronous(law="geometric", mean_delay=3.0, lost=0.2),
    ):
        run = tacita.simulate(
            problem, algorithm, 2500, participation=0.4, asynchronous=rule, record=()
        )
        assert np.abs(run.agents - optimum).max() < 1e-8


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "algorithm",
    [tacita.GossipSGD(local_steps=2), tacita.DPNorm(local_steps=2)],
    ids=["GossipSGD", "DPNorm"],
)
def test_being_out_of_step_moves_no_fixed_point(problem, algorithm):
    """For GossipSGD it is not the optimum; it is that of a run in step all the same."""
    expected = tacita.simulate(problem, algorithm, 1500, record=()).agents
    for rule in (
        None,
        Asynchronous(most_delay=6, lost=0.3),
        Asynchronous(law="geometric", mean_delay=3.0, lost=0.2),
    ):
        run = tacita.simulate(
            problem, algorithm, 3000, participation=0.4, asynchronous=rule, record=()
        )
        assert np.abs(run.agents - expected).max() < 1e-10


def test_gossip_contracts_in_the_largest_error(problem):
    """Why it may be out of step: 1 - mu sigma a round, whoever the farthest node is."""
    algorithm = tacita.GossipSGD().resolve(problem)
    rest = tacita.simulate(problem, algorithm, 1500, record=()).agents
    factor = 1 - algorithm.step_size * problem.moduli.smallest
    for seed in range(5):
        start = rest + np.random.default_rng(seed).normal(size=rest.shape)
        after = tacita.simulate(problem, algorithm, 1, start=start, record=()).agents
        errors = [np.linalg.norm(w - rest, axis=1).max() for w in (start, after)]
        assert errors[1] <= factor * errors[0] + 1e-12


@pytest.mark.long
@pytest.mark.parametrize(
    "algorithm, reason",
    [
        (tacita.GraphADMM(rho=0.2, local_steps=2), "multipliers add up to zero"),
        (tacita.GradientTracking(), "estimates add up to the gradients"),
    ],
    ids=["GraphADMM", "GradientTracking"],
)
def test_sums_of_letters_must_stay_in_step(problem, algorithm, reason, monkeypatch):
    """Refused with the reason; let through, it rests far from where it should."""
    late: Any = dict(asynchronous=Asynchronous(most_delay=6), record=())
    with pytest.raises(tacita.TacitaError, match=reason) as error:
        tacita.simulate(problem, algorithm, 2, **late)
    assert "asynchronous" in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(tacita.TacitaError, match=reason):
        tacita.simulate(problem, algorithm, 2, participation=0.5)
    monkeypatch.setattr(type(algorithm), "partial", True)
    ends = [
        tacita.simulate(problem, algorithm, n, participation=0.4, **late).agents
        for n in (3000, 3001)
    ]
    assert np.ptp(ends, axis=0).max() < 1e-8
    assert np.abs(ends[0] - problem.solve()).max() > 0.01


@pytest.mark.long
def test_debugging_gives_the_same_numbers(problem):
    choices: Any = dict(
        seed=2,
        participation=4,
        record=(),
        asynchronous=Asynchronous(most_delay=3, lost=0.3),
    )
    algorithm = tacita.FedGD(alpha=ALPHA)
    fast = tacita.simulate(problem, algorithm, 4, **choices)
    slow = tacita.debug(problem, algorithm, 4, **choices)
    np.testing.assert_allclose(fast.agents, slow.agents, atol=1e-12)


def test_a_run_can_be_resumed_and_tells_what_it_was(problem, tmp_path):
    choices: Any = dict(
        participation=0.5, asynchronous=Asynchronous(most_delay=3), record=("loss",)
    )
    algorithm = tacita.FedRelax(alpha=ALPHA)
    whole = tacita.simulate(problem, algorithm, 8, **choices)
    tacita.simulate(problem, algorithm, 5, checkpoint=tmp_path, **choices)
    rest = tacita.simulate(
        problem, algorithm, 8, checkpoint=tmp_path, resume=True, **choices
    )
    assert rest.agents.tobytes() == whole.agents.tobytes()
    assert whole.config["run"]["asynchronous"]["most_delay"] == 3
    choices["asynchronous"] = Asynchronous(most_delay=4)
    with pytest.raises(tacita.TacitaError, match="another run"):
        tacita.simulate(
            problem, algorithm, 9, checkpoint=tmp_path, resume=True, **choices
        )


def test_refusals(problem):
    for wrong, match in [
        (lambda: Asynchronous(), "needs a bound"),
        (lambda: Asynchronous(most_delay=-1), "most_delay"),
        (lambda: Asynchronous(most_delay=2.5), "whole number, got most_delay=2.5"),
        (lambda: Asynchronous(most_delay=3, lost=1.0), "lost"),
        (lambda: Asynchronous(law="normal"), "law"),
        (
            lambda: tacita.simulate(
                problem, tacita.FedAvg(), 2, asynchronous=Asynchronous(most_delay=2)
            ),
            "coordinator",
        ),
        (
            lambda: tacita.simulate(
                problem,
                tacita.FedGD(alpha=0.1),
                2,
                asynchronous=3,  # pyright: ignore
            ),
            "Asynchronous",
        ),
    ]:
        with pytest.raises(tacita.TacitaError, match=match):
            wrong()
