"""Cross-validation node by node, and tests of whether rows are i.i.d."""

import numpy as np
import pytest

import tacita
from tacita.problem import folds, node_losses, synthetic
from tacita.tuning import cross_validate, same_kind, without_order

DICE = np.random.default_rng(0)


def test_errors_are_means_over_the_folds():
    problem = synthetic.linear(agents=3, features=2, samples=9)
    counts = lambda p: p.counts[:, None] * [0.1, -0.1]  # noqa: E731
    told = cross_validate(problem, counts, folds=3, seed=2)
    parts = folds(problem, 3, seed=2)
    training = [node_losses(train, counts(train)) for train, _ in parts]
    by_hand = [node_losses(held, counts(train)) for train, held in parts]
    assert np.allclose(told.validation, np.mean(by_hand, axis=0))
    assert np.allclose(told.train, np.mean(training, axis=0))
    # Two parameters on nine rows.
    assert np.allclose(told.parameters_per_row, 2 / 9)
    assert "0.222 parameters per row" in str(told)
    with pytest.raises(tacita.TacitaError, match="train"):
        cross_validate(problem, "fedavg")  # pyright: ignore
    with pytest.raises(tacita.TacitaError, match="models a run, or .* got NoneType"):
        cross_validate(problem, lambda p: None)


def test_a_node_with_one_row_has_no_validation_error():
    problem = tacita.from_arrays(
        np.ones((4, 1)), np.arange(4.0), [0, 1, 1, 1], "linear"
    )
    told = cross_validate(problem, lambda p: np.ones(1), folds=2)
    assert np.isnan(told.validation[0]) and not np.isnan(told.train[0])
    assert told.verdicts[0].word == "no rows to tell"


def test_p_values_of_like_sets_are_uniform():
    found = [
        same_kind(*DICE.normal(size=(2, 12, 2)), draws=39, seed=k) for k in range(200)
    ]
    # Of a uniform p-value one in ten is at most 0.1; three deviations are 0.064.
    assert abs(np.mean(np.array(found) <= 0.1) - 0.1) < 0.064
    ordered = [
        without_order(DICE.normal(size=(15, 1)), draws=39, seed=k) for k in range(200)
    ]
    assert abs(np.mean(np.array(ordered) <= 0.1) - 0.1) < 0.064


def test_p_values_of_an_order_are_exact_for_few_draws():
    dice = np.random.default_rng(1)
    found = [
        without_order(dice.normal(size=(12, 1)), draws=9, seed=k) for k in range(2000)
    ]
    # The order that came is one of ten alike; four deviations are 0.027.
    assert np.mean(np.array(found) <= 0.1) < 0.127


def test_what_makes_no_sense_is_refused_by_its_name():
    problem = synthetic.linear(agents=3, features=2, samples=9)
    for wrong, words in (({"folds": 1}, "expected folds a"), ({"factor": 0.5}, ">= 1")):
        with pytest.raises(tacita.TacitaError, match=words):
            cross_validate(problem, lambda p: np.ones(2), **wrong)


def test_unlike_sets_are_found():
    rows = DICE.normal(size=(60, 2))
    assert same_kind(rows[:30], 3 * rows[30:]) < 0.01  # another spread
    assert same_kind(rows[:30], rows[30:] + 1.0) < 0.01  # another place
    # The rows as they came count as one of the draws: a p-value is never zero.
    assert same_kind(rows[:30], rows[30:] + 9.0) == 1 / 1000
    mixed = rows[30:].copy()
    mixed[:, 1] = mixed[:, 0]  # the same columns, another bond between them
    assert same_kind(rows[:30], mixed) < 0.05
    # The unit of a column says nothing.
    unit = np.array([1.0, 1e6])
    assert same_kind(rows[:30] * unit, rows[30:] * unit) == same_kind(
        rows[:30], rows[30:]
    )


def test_order_is_found():
    noise = DICE.normal(size=(80, 1))
    assert without_order(np.cumsum(noise, axis=0)) < 0.01  # a drift
    swinging = noise + 2 * (-1.0) ** np.arange(80)[:, None]
    assert without_order(swinging) < 0.01
    with pytest.raises(tacita.TacitaError, match="two rows"):
        without_order([[1.0]])
