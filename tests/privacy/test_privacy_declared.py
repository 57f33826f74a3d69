"""What algorithms declare of themselves, which accounts rest on, is what they do.

`Algorithm.gradients` promises how often an agent asks its oracle in a round, by call of
`draws` (shuffled batches are disjoint within one call only), that no draw is used twice
(the noise would cancel), and that rows are looked at in no other way. `tacita.debug`
runs plain Python, so all of it can be watched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.algorithm import solvers
from tacita.algorithm.base import Algorithm
from tacita.privacy.clipped import without_noise
from tacita.problem.oracles import AgentOracle
from tacita.trees import frozen
from tests.cases import CASES, Case

#: What an agent may know of its place without looking at a row.
PUBLIC = ("n_agents", "h")


class Place:
    """An agent's data, of which only what is public may be asked for."""

    def __init__(self, local: Any) -> None:
        self._local = local

    def __getattr__(self, name: str) -> Any:
        assert name in PUBLIC, f"looked at {name} of the rows themselves"
        return getattr(self._local, name)


class Watch:
    """Counts the gradients of every agent by call of `draws`, knowing their noise."""

    def __init__(self) -> None:
        #: For every agent, how many gradients used each of its calls, in order.
        self.asked: dict[bytes, list[int]] = {}
        #: Of all noise that was drawn: whose, and by which call.
        self.drawn: dict[bytes, tuple[list[int], int]] = {}
        self.used: set[bytes] = set()

    def put_on(self, patch: pytest.MonkeyPatch) -> None:
        watch = self

        def init(oracle: Any, inner: Any, local: Any) -> None:
            oracle._oracle, oracle._rows = inner, local

        def draws(oracle: Any, key: Any, steps: int) -> Any:
            drawn = oracle._oracle.draws(oracle._rows, key, steps)
            calls = watch.asked.setdefault(oracle._rows.rows.x.tobytes(), [])
            calls.append(0)
            for noise in np.asarray(drawn[1]):
                watch.drawn[noise.tobytes()] = calls, len(calls) - 1
            return drawn

        def note(draw: Any) -> None:
            noise = np.asarray(draw[1]).tobytes()
            assert noise not in watch.used, "noise was used twice"
            watch.used.add(noise)
            calls, number = watch.drawn[noise]
            calls[number] += 1

        def call(oracle: Any, draw: Any, w: Any) -> Any:
            note(draw)
            return oracle._oracle.grad(oracle._rows, draw, w)

        def loss(oracle: Any, draw: Any, w: Any, bound: Any) -> Any:
            note(draw)
            return oracle._oracle.loss(oracle._rows, draw, w, bound)

        patch.setattr(AgentOracle, "__init__", init)
        patch.setattr(AgentOracle, "draws", draws)
        patch.setattr(AgentOracle, "__call__", call)
        patch.setattr(AgentOracle, "loss", loss)
        place = property(lambda oracle: Place(oracle._rows))
        patch.setattr(AgentOracle, "local", place, raising=False)


def gradients_seen(algorithm: Any, problem: tacita.Problem) -> list[tuple[int, ...]]:
    """What each agent asked for in the first round, then in the second."""
    quiet = tacita.Noisy(std=0.01, oracle=without_noise(algorithm.oracle))
    asked = []
    for rounds in (1, 2):
        watch = Watch()
        with pytest.MonkeyPatch.context() as patch:
            watch.put_on(patch)
            tacita.debug(problem, replace(algorithm, oracle=quiet), rounds, record=())
        asked.append(watch.asked)
    first, both = asked
    second = (calls[len(first[agent]) :] for agent, calls in both.items())
    return [tuple(calls) for calls in (*first.values(), *second)]


DESCENT = solvers.GradientDescent(step_size=0.2, local_steps=2)
MORE: list[Algorithm] = [
    tacita.TAMUNA(step_size=0.3, eta=0.3, local_steps=2.6, fixed=True),
    tacita.TAMUNA(step_size=0.3, eta=0.3, local_steps=18, fixed=True, sparsity=2),
    tacita.ServerGD(step_size=0.3, local_steps=3),
    tacita.FedRelax(alpha=0.4, solver=DESCENT),
    tacita.FedPLT(),
    tacita.FedSplit(
        rho=0.8,
        solver=solvers.Mixed(
            solvers=(DESCENT, solvers.Accelerated(local_steps=4)),
            group=np.array([0, 1, 0, 0, 1, 0]),
        ),
    ),
]
DECLARED = [
    case
    for case in [*CASES, *(Case(algorithm, {}) for algorithm in MORE)]
    if not isinstance(case.algorithm.gradients(), str)
]


@pytest.mark.few(3)
@pytest.mark.parametrize("case", DECLARED, ids=lambda c: c.name)
def test_no_more_gradients_than_declared_and_no_other_look(case: Case):
    problem = case.problem()
    ready: Any = case.algorithm.resolve(problem)
    asked, declared = gradients_seen(ready, problem), ready.gradients()
    assert len(asked) == 2 * problem.n_agents
    for calls in asked:
        assert len(calls) == len(declared)
        assert all(n <= most for n, most in zip(calls, declared, strict=True))
    assert max(asked, key=sum) == declared


def test_who_declares_nothing():
    """Noise in the letter has a theorem of its own; the others say why not."""
    silent = {c.name for c in CASES if isinstance(c.algorithm.gradients(), str)}
    own = {"FedSPD", "DPFedAvg", "ClientDPFedAvg", "DPNorm"}
    # FedPLT with Newton among its solvers, FedRelax without a solver, FedPD that skips.
    assert silent - own == {"FedPD", "FedPLT", "TAMUNA", "ProxSkip", "FedRelax"}
    assert tacita.FedPD(local_steps=3).gradients() == (3,)


@frozen
class AsksTwice(tacita.ServerGD):
    """Says that it asks once."""

    def local(self, key, oracle, state, inbox):
        draws = oracle.draws(key, 2)
        first, second = ((draws[0], draws[1][k]) for k in range(2))
        return state, oracle(first, inbox) + oracle(second, 2 * inbox)


@frozen
class ReusesNoise(tacita.ServerGD):
    """The difference of two gradients with the same noise carries none."""

    def local(self, key, oracle, state, inbox):
        return state, oracle.once(key, inbox) - oracle.once(key, inbox + 1)


@frozen
class Peeks(tacita.ServerGD):
    """Looks at rows behind the oracle's back."""

    def local(self, key, oracle, state, inbox):
        return state, oracle.once(key, inbox) + oracle.local.grad(inbox)


@frozen
class LossForNothing(tacita.ServerGD):
    """Asks for a loss with the noise of its gradient."""

    def local(self, key, oracle, state, inbox):
        draws = oracle.draws(key, 1)
        draw = draws[0], draws[1][0]
        return state, oracle(draw, inbox) * oracle.loss(draw, inbox, 1.0)


def test_a_false_declaration_is_noticed():
    problem = CASES[0].problem()
    asked = gradients_seen(AsksTwice(step_size=0.1), problem)
    assert set(asked) == {(2,)} and AsksTwice(step_size=0.1).gradients() == (1,)
    with pytest.raises(Exception, match="noise was used twice"):
        gradients_seen(ReusesNoise(step_size=0.1), problem)
    with pytest.raises(Exception, match="noise was used twice"):
        gradients_seen(LossForNothing(step_size=0.1), problem)
    with pytest.raises(Exception, match="looked at grad"):
        gradients_seen(Peeks(step_size=0.1), problem)
