"""Audits of secure sums: the right one stands, each planted fault is refuted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import keys
from tacita.aggregation import Summed
from tacita.aggregation.secure.rule import ModularSum, SecureSum
from tacita.audits import transcript
from tacita.privacy import account
from tacita.trees import frozen, replace

AGENTS, ENTRIES, ROUNDS, DELTA = 5, 16, 4, 0.01


def problem(rows: np.ndarray | None = None, each: int = 4) -> tacita.Problem:
    x = np.zeros((AGENTS * each, ENTRIES)) if rows is None else np.tile(rows, (5, 1))
    y = np.full(len(x), 1e6) if rows is not None else np.zeros(len(x))
    return tacita.from_arrays(
        x, y, np.repeat(np.arange(AGENTS), each), model="linear", l2=0.1
    )


def planned(**rule: Any) -> Summed:
    return tacita.private(
        problem(),
        tacita.ServerGD(step_size=0.3),
        epsilon=1.96,
        delta=DELTA,
        observer="coordinator",
        rounds=ROUNDS,
        aggregation=SecureSum(**rule),
    )


def audited(algorithm: Any, observer: str = "coordinator", **more: Any) -> Any:
    asked = {"runs": 8000, "rounds": ROUNDS, "delta": DELTA, **more}
    data = asked.pop("data", None) or problem()
    return tacita.audit(data, algorithm, observer=observer, **asked)


@pytest.mark.long
@pytest.mark.parametrize(
    ("observer", "rule"),
    [("neighbour", {}), ("colluders", {"least": 4, "colluding": 1})],
)
def test_the_right_sum_stands(observer, rule):
    """And the audit sees most of what is claimed."""
    found = audited(planned(**rule), observer, runs=20_000)
    assert found.refuted is False
    assert found.gaussian_epsilon > 1.6


@frozen
class FewerNoises(SecureSum):
    """Brings fewer noises into a sum than it says."""

    def at_work(self, agents: int, honest: int | None = None) -> ModularSum:
        return super().at_work(agents, {5: 2, 4: 1}[self.least or 5])


@frozen
class SigmaOverN(SecureSum):
    """Everybody adds sigma/n where sigma/sqrt(n) is due: the sum has one noise."""

    def at_work(self, agents: int, honest: int | None = None) -> ModularSum:
        return super().at_work(agents, 1)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [SigmaOverN, pytest.param(FewerNoises, marks=pytest.mark.long)]
)
def test_too_little_noise_is_refuted(kind):
    """Noise of sigma/n each; sized for five and opened with two."""
    safe = planned()
    numbers = {name: getattr(safe.aggregation, name) for name in _NUMBERS}
    found = audited(replace(safe, aggregation=kind(**numbers)))
    assert found.refuted and not found.faults
    assert found.lower_bound > 1.96


_NUMBERS = ("least", "colluding", "largest", "step", "word", "multiples")


@pytest.mark.long
def test_colluders_who_are_counted_as_honest_are_refuted(monkeypatch):
    """Three of five agents tell their noise, and the plan knows of none."""
    monkeypatch.setattr(transcript, "honest_noises", lambda rule, observer: 2)
    assert audited(planned()).refuted


@pytest.mark.long
def test_noise_that_forgets_the_round_is_refuted(monkeypatch):
    def same_in_all_rounds(base: Any, number: Any, phase: int) -> Any:
        return jax.random.fold_in(base.coordinator, phase)

    monkeypatch.setattr(keys, "coordinator_key", same_in_all_rounds)
    jax.clear_caches()
    try:
        found = audited(planned())
    finally:
        jax.clear_caches()
    assert found.refuted and found.lower_bound > 3
    assert any("used again" in fault.words for fault in found.faults)


@frozen
class CoarseSum(ModularSum):
    """A coarse grid with little noise, as no plan would set it."""

    def __call__(self, heard: Any) -> Any:
        total = jnp.sum(self.integers(heard), axis=0, dtype=jnp.uint32)
        noise = jnp.rint(6.0 * jax.random.normal(heard.key, total.shape))
        noisy = total + noise.astype(jnp.int64).astype(jnp.uint32)
        value = noisy.astype(jnp.int32).astype(float) * self.step
        return value / jnp.sum(heard.weights)


@frozen
class CoarseGrid(SecureSum):
    def at_work(self, agents: int, honest: int | None = None) -> ModularSum:
        usual = super().at_work(agents, honest)
        return CoarseSum(
            step=usual.step,
            largest=usual.largest,
            draws=usual.draws,
            word=32,
            noisy=True,
        )


@pytest.mark.long
def test_rounding_that_is_left_out_on_a_coarse_grid_is_refuted():
    """A record of a quarter of a step moves every number by a whole one.

    16 of 64 rows pull by half a step in every coordinate, so that the record decides
    how they are rounded: the change is sqrt(d), not a quarter.
    """
    along = np.full(ENTRIES, 0.25)
    rows = np.zeros((64, ENTRIES))
    rows[:16] = along
    data = problem(rows, each=64)
    step = 2.0**-3
    rule = CoarseGrid(least=5, largest=2.0, step=step, multiples=[1])
    algorithm = tacita.ServerGD(step_size=0.3, oracle=tacita.Clipped(norm=1.0))
    sums = Summed(algorithm=algorithm, aggregation=rule)
    about = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}
    noise = {"noise_std": 6.0 * step, "rounds": ROUNDS}
    forgotten = account(**about, **noise, sensitivity=2 / 64)
    complete = account(**about, **noise, sensitivity=2 / 64 + step * 4)
    canary = tacita.audits.Canary(
        agent=0, row=63, record=(along, 1e6), neighbour=(along, -1e6)
    )
    assert forgotten.epsilon(DELTA) < 0.1
    few = {"data": data, "canary": canary, "runs": 2000}
    found = audited(sums, claim=forgotten, **few)
    assert found.refuted
    whole = audited(sums, claim=complete, **few)
    assert whole.found.refuted is False


def test_outsiders_and_exact_audits_are_refused():
    with pytest.raises(tacita.TacitaError, match="no more than the coordinator"):
        audited(planned(), "eavesdropper")
    with pytest.raises(tacita.TacitaError, match="without --exact"):
        tacita.audits.audit_exactly(problem(), planned(), rounds=ROUNDS)
    with pytest.raises(tacita.TacitaError, match="everybody in them"):
        audited(planned(), participation=4)
