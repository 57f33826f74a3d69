"""Asynchronous runs with a coordinator: who is heard when, how old, what comes out."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.base import ModelState, ServerAlgorithm
from tacita.problem import synthetic
from tacita.problem.oracles import Full
from tacita.runtime import engine
from tacita.trees import frozen

AGENTS, ROUNDS, STEPS, STEP = 5, 12, 2, 0.1
LOCAL: dict[str, Any] = {"step_size": STEP, "local_steps": STEPS}
PACE = tacita.Pace(mean=[1.0, 1.0, 1.0, 1.0, 6.0], most_staleness=5)
FED_BUFF = tacita.FedBuff(server_step=0.7, **LOCAL)


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.linear(agents=AGENTS, features=2, samples=6, noise=0.3, seed=3)


@pytest.fixture(scope="module")
def run(problem) -> Any:
    return tacita.simulate(
        problem, FED_BUFF, ROUNDS, seed=4, participation=2, asynchronous=PACE
    )


def trained(problem, agent: int, x: np.ndarray, rho: float = 0.0) -> np.ndarray:
    """Local steps of one agent, from its rows."""
    rows, labels, _ = problem.stacked()
    w, features, targets = x.copy(), rows[agent], labels[agent]
    for _ in range(STEPS):
        g = 2 * features.T @ (features @ w - targets) / len(targets)
        w = w - STEP * (g + rho * (w - x))
    return w


class ByHand:
    """The coordinator in a loop: broadcasts by round, everybody's question."""

    def __init__(self, heard: Any, most_staleness: float) -> None:
        self._heard, self._most = np.asarray(heard), most_staleness
        self.staleness: list[int] = []
        self.questions = np.ones(AGENTS, int)

    def play(self, x: np.ndarray, step: Any) -> np.ndarray:
        told, asked = {1: x}, np.ones(AGENTS, int)
        for t, who in enumerate(self._heard, 1):
            late = t - asked[who]
            self.staleness += late.tolist()
            pairs = zip(who.tolist(), late.tolist(), strict=True)
            x = step(x, [(i, told[int(asked[i])], s) for i, s in pairs])
            told[t + 1] = x
            again = np.isin(np.arange(AGENTS), who) | (t + 1 - asked > self._most)
            asked[again] = t + 1
            if t < len(self._heard):
                self.questions += again
        return x


def test_fed_buff_is_that_of_a_loop(problem, run):
    arrivals, _ = PACE.arrivals(AGENTS, 2, ROUNDS, seed=4)
    hand = ByHand(arrivals.agents, 5)

    def step(x, letters):
        changes = [(trained(problem, i, w) - w) / np.sqrt(1 + s) for i, w, s in letters]
        return x + 0.7 * np.mean(changes, axis=0)

    x = hand.play(np.zeros(2), step)
    np.testing.assert_allclose(run.params, x, rtol=0, atol=1e-12)
    assert 0 < max(hand.staleness) <= 5
    # Every question counts as a letter, also one that was given up or is unanswered.
    np.testing.assert_array_equal(run.info["turns"], hand.questions)


def test_fed_async_is_that_of_a_loop(problem):
    heard = [[0], [1], [0], [2], [4], [3], [1], [0]]
    hand = ByHand(heard, 4)

    def step(x, letters):
        ((i, w, s),) = letters
        share = 0.5 * (s + 1) ** -0.8
        return (1 - share) * x + share * trained(problem, i, w, rho=0.3)

    x = hand.play(np.zeros(2), step)
    algorithm = tacita.FedAsync(mixing=0.5, slope=0.8, rho=0.3, **LOCAL)
    arrivals = tacita.Arrivals(agents=heard, most_staleness=4)
    run = tacita.simulate(problem, algorithm, len(heard), asynchronous=arrivals)
    np.testing.assert_allclose(run.params, x, rtol=0, atol=1e-12)
    assert max(hand.staleness) == 4


@pytest.mark.long
def test_the_debugger_gives_the_same(problem):
    drawing = tacita.FedBuff(oracle=tacita.Minibatch(size=2), **LOCAL)
    told = (problem, drawing, 4, 4, 2)
    fast = tacita.simulate(*told, asynchronous=PACE)
    slow = tacita.debug(*told, record=("loss",), asynchronous=PACE)
    np.testing.assert_allclose(fast.params, slow.params, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.metrics["loss"], slow.metrics["loss"], atol=1e-12)


def test_a_run_is_played_again_from_its_arrivals(problem, run):
    arrivals, _ = PACE.arrivals(AGENTS, 2, ROUNDS, seed=4)
    told = {"seed": 4, "asynchronous": arrivals}
    again = tacita.simulate(problem, FED_BUFF, ROUNDS, **told)
    assert again.params.tobytes() == run.params.tobytes()
    assert again.agents.tobytes() == run.agents.tobytes()


def test_cut_in_two_it_is_the_same_and_numbers_compile_nothing(problem, run, tmp_path):
    told = {"seed": 4, "participation": 2, "checkpoint": tmp_path}
    before = engine.advance.programs
    tacita.simulate(problem, FED_BUFF, 5, asynchronous=PACE, **told)
    resumed = tacita.simulate(
        problem, FED_BUFF, ROUNDS, asynchronous=PACE, resume=True, **told
    )
    assert resumed.params.tobytes() == run.params.tobytes()
    faster = tacita.Pace(mean=np.linspace(1, 2, AGENTS), most_staleness=9)
    other = tacita.simulate(
        problem, FED_BUFF, ROUNDS, seed=4, participation=2, asynchronous=faster
    )
    assert not np.array_equal(other.params, run.params)
    assert engine.advance.programs == before


@pytest.mark.long
def test_seeds_in_one_call(problem, run):
    told = {"seeds": [3, 4], "participation": 2, "asynchronous": PACE}
    many = tacita.simulate(problem, FED_BUFF, ROUNDS, **told)
    np.testing.assert_allclose(many.params[1], run.params, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(many.info["turns"][1], run.info["turns"])


def test_fed_async_with_one_agent_is_local_training():
    alone = synthetic.linear(agents=1, features=2, samples=6, noise=0.3, seed=3)
    w = np.zeros(2)
    for _ in range(6):
        w = trained(alone, 0, w)
    algorithm = tacita.FedAsync(mixing=1.0, **LOCAL)
    run = tacita.simulate(alone, algorithm, 6, asynchronous=tacita.Pace())
    np.testing.assert_allclose(run.params, w, rtol=0, atol=1e-12)


def test_fed_buff_with_everybody_is_fed_avg_with_a_step_of_the_coordinator(problem):
    told = {"participation": AGENTS, "asynchronous": tacita.Pace()}
    late = tacita.simulate(problem, FED_BUFF, 6, **told)
    in_step = tacita.simulate(
        problem, tacita.FedAvgM(momentum=0.0, server_step=0.7, **LOCAL), 6
    )
    np.testing.assert_allclose(late.params, in_step.params, rtol=0, atol=1e-12)
    assert np.all(late.info["turns"] == 6)


@pytest.mark.long
def test_a_slow_agent_keeps_nobody_from_the_common_optimum():
    """All agents agree on the best model, so no weight of theirs moves it."""
    agree = synthetic.linear(agents=AGENTS, features=2, samples=6, noise=0.0, seed=3)
    goal = agree.solve()
    for algorithm, letters in ((tacita.FedBuff(), 3), (tacita.FedAsync(), 1)):
        told = {"participation": letters, "asynchronous": tacita.Pace(mean=PACE.mean)}
        run = tacita.simulate(agree, algorithm, 600, record=(), **told)
        assert np.linalg.norm(run.params - goal) < 1e-8


@frozen
class Oldest(ServerAlgorithm):
    """Its model is the largest staleness of a letter so far, of one letter a round."""

    oracle: Any = Full()
    takes_late: ClassVar[bool] = True
    source: ClassVar[str] = "for tests only"

    def freshness(self, staleness):
        return staleness

    def init(self, w):
        return ModelState(w), w

    def init_coordinator(self, w):
        return 0 * w

    def combine(self, key, kept, mean, now):
        seen = jnp.where(now.number > 0, jnp.maximum(kept, now.fresh), kept)
        return seen, seen

    def local(self, key, oracle, state, inbox):
        return state, state.w


@pytest.mark.parametrize(("bound", "oldest"), [(7, 7), (None, 40)])
def test_no_letter_is_staler_than_the_bound(problem, bound, oldest):
    pace = tacita.Pace(mean=[1.0, 1.0, 1.0, 1.0, 60.0], most_staleness=bound)
    told = {"participation": 1, "asynchronous": pace, "record": ()}
    seen = float(tacita.simulate(problem, Oldest(), 900, **told).params[0])
    assert seen == oldest if bound else seen > oldest


def test_staleness_is_discounted_as_printed():
    tau = jnp.arange(8)
    hinge = tacita.FedAsync(staleness="hinge", slope=10.0, grace=4.0).freshness(tau)
    expected = [1, 1, 1, 1, 1, 1 / 11, 1 / 21, 1 / 31]
    np.testing.assert_allclose(hinge, expected, rtol=1e-6)
    flat = tacita.FedAsync(staleness="constant").freshness(tau)
    np.testing.assert_array_equal(flat, 1)
    root = tacita.FedBuff().freshness(tau)
    np.testing.assert_allclose(root, 1 / np.sqrt(1 + np.arange(8)), rtol=1e-6)


def test_nobody_is_waited_for():
    """One agent of five is ten times slower: rounds in step last as long as it does."""
    pace = tacita.Pace(mean=[1.0, 1.0, 1.0, 1.0, 10.0], law="constant")
    in_step, late = (pace.arrivals(AGENTS, k, 20) for k in (5, 4))
    np.testing.assert_array_equal(in_step[1], 10.0 * np.arange(1, 21))
    assert late[1][-1] <= 22.0
    assert np.isin(4, late[0].agents)


@pytest.mark.parametrize(
    ("algorithm", "told", "words"),
    [
        (tacita.FedAvg(), {"asynchronous": PACE}, "use FedBuff or FedAsync"),
        (FED_BUFF, {"asynchronous": tacita.Asynchronous(most_delay=2)}, "tacita.Pace"),
        (FED_BUFF, {"participation": 0.5, "asynchronous": PACE}, "participation=K"),
        (FED_BUFF, {"asynchronous": tacita.Pace(mean=[1.0, 2.0])}, "mean"),
        (
            FED_BUFF,
            {"participation": 1, "asynchronous": tacita.Pace(most_staleness=3)},
            "most_staleness >= 4",
        ),
        (
            FED_BUFF,
            {"asynchronous": tacita.Arrivals(agents=[[0, 5]])},
            "in 0..4, got 5",
        ),
        (FED_BUFF, {"asynchronous": tacita.Arrivals(agents=[[0, 1]])}, "have 1 rounds"),
        (FED_BUFF, {"asynchronous": tacita.Arrivals(agents=None)}, "got agents=None"),
        (
            FED_BUFF,
            {"participation": 3, "asynchronous": tacita.Arrivals(agents=[[0, 1]])},
            "participation=2",
        ),
        (
            FED_BUFF,
            {"asynchronous": PACE, "aggregation": tacita.aggregation.Median()},
            "joined by their mean",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(problem, algorithm, told, words):
    with pytest.raises(tacita.TacitaError, match=words) as error:
        tacita.simulate(problem, algorithm, 3, **told)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tacita.Pace(most_staleness=1.5), "most_staleness a whole number"),
        (lambda: tacita.Pace(law="normal"), "law"),
        (lambda: tacita.Arrivals(agents=[[0, 1], [2]]), "all equally long"),
        (lambda: tacita.Arrivals(agents=[0, 1]), "a list of agents' numbers"),
        (lambda: tacita.Arrivals(agents=[[0.5]]), "whole numbers"),
        (lambda: tacita.Arrivals(agents=[[float("inf")]]), "whole numbers"),
        (lambda: tacita.Arrivals(agents=[[2**40]]), "whole numbers"),
        (lambda: tacita.Pace().arrivals(3, 1, 2, seed=-1), "seed"),
    ],
)
def test_bad_times_are_refused(make, words):
    with pytest.raises(tacita.TacitaError, match=words):
        make()


def test_a_graph_has_no_pace():
    ring = tacita.problem.graph.ring(4)
    made = synthetic.linear(agents=4, features=2, samples=6, graph=ring)
    with pytest.raises(tacita.TacitaError, match="tacita.Asynchronous"):
        tacita.simulate(made, tacita.FedGD(alpha=1.0), 3, asynchronous=PACE)
