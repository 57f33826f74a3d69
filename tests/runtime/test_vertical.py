"""Vertical learning: the joined table's answer, and exactly what leaves whom."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita import data
from tacita.problem import features

M = 120
SIZES = {"bank": 3, "register": 4, "shop": 5}


@pytest.fixture(scope="module")
def tables():
    """Three parties; the shop's columns lean on the others'."""
    rng = np.random.default_rng(5)
    parts = {name: rng.normal(size=(M, width)) for name, width in SIZES.items()}
    parts["shop"][:, :3] += 0.8 * parts["bank"]
    level = rng.integers(0, 4, M)
    parts["register"] = np.eye(4)[level]  # all levels of a category, so dependent
    parts["bank"] = np.column_stack([parts["bank"], np.ones(M)])
    return parts


@pytest.fixture(scope="module")
def labels(tables):
    rng = np.random.default_rng(6)
    s = sum(part @ rng.normal(size=part.shape[1]) for part in tables.values())
    return {
        "linear": s + rng.normal(size=M),
        "logistic": (s + rng.logistic(size=M) > 0).astype(int),
    }


def joined(tables, y, model, l2):
    x = np.concatenate(list(tables.values()), axis=1)
    problem = tacita.from_arrays(x, y, np.zeros(len(y)), model=model, l2=l2)
    ends = np.cumsum([part.shape[1] for part in tables.values()])[:-1]
    return dict(zip(tables, np.split(problem.solve(), ends), strict=True)), problem


@pytest.mark.few(1)
@pytest.mark.parametrize("model", ["linear", "logistic"])
@pytest.mark.parametrize("l2", [1e-4, 0.3])
def test_equals_training_on_the_joined_table(tables, labels, model, l2):
    algorithm = tacita.VerticalNewton(l2=l2)
    run = tacita.train_vertical(
        tables, labels[model], "bank", model=model, algorithm=algorithm
    )
    central, problem = joined(tables, labels[model], model, l2)
    assert run.converged and run.gradient_norm[-1] <= 1e-10
    for name, w in run.params.items():
        np.testing.assert_allclose(w, central[name], atol=1e-8)
    whole = np.concatenate(list(central.values()))
    assert run.objective[-1] == pytest.approx(problem.loss(whole), rel=1e-12)
    assert np.all(np.diff(run.objective) <= 1e-14)
    expected = sum(tables[k] @ central[k] for k in tables)
    np.testing.assert_allclose(run.scores(tables), expected, atol=1e-7)


def test_columns_of_further_tables_are_found_by_their_names(tables, labels):
    named = {
        name: pd.DataFrame(x, columns=[f"{name} {i}" for i in range(x.shape[1])])
        for name, x in tables.items()
    }
    algorithm = tacita.VerticalNewton(l2=0.3)
    run = tacita.train_vertical(
        named, labels["linear"], "bank", model="linear", algorithm=algorithm
    )
    turned = {name: table[table.columns[::-1]] for name, table in named.items()}
    np.testing.assert_array_equal(run.scores(turned), run.scores(tables))
    for other, told in (
        (named["shop"].drop(columns="shop 1"), "of 'shop' has no column 'shop 1'"),
        (tables["shop"][:, :2], r"expected columns of 'shop' of shape \(120, 5\)"),
        (tables["shop"][:3], r"expected columns of 'shop' of shape \(120, 5\)"),
    ):
        with pytest.raises(tacita.TacitaError, match=told):
            run.scores({**tables, "shop": other})


def test_rows_of_pandas_tables_are_the_same_by_their_index(tables, labels):
    """Joined by position, a table in another order would be other people's columns."""
    algorithm = tacita.VerticalNewton(l2=0.3)
    numbers = np.arange(M) + 1000
    named = {name: pd.DataFrame(x, index=numbers) for name, x in tables.items()}
    y = pd.Series(labels["logistic"], index=numbers)
    run = tacita.train_vertical(named, y, "bank", algorithm=algorithm)
    bare = tacita.train_vertical(tables, y, "bank", algorithm=algorithm)
    np.testing.assert_allclose(run.params["shop"], bare.params["shop"])
    turned = {**named, "shop": named["shop"][::-1]}
    told = "rows of 'shop' are not those of 'bank': row 0 is 1119, and there 1000"
    with pytest.raises(tacita.TacitaError, match=told):
        tacita.train_vertical(turned, y, "bank", algorithm=algorithm)
    with pytest.raises(tacita.TacitaError, match=told):
        run.scores(turned)
    with pytest.raises(tacita.TacitaError, match="rows of y are not those of 'bank'"):
        tacita.train_vertical(named, y[::-1], "bank", algorithm=algorithm)
    # Words and numbers are not the same, empty names are, whatever kind of index.
    words = {**named, "shop": named["shop"].set_index(numbers.astype(str))}
    with pytest.raises(tacita.TacitaError, match="row 0 is '1000', and there 1000"):
        tacita.train_vertical(words, y, "bank", algorithm=algorithm)
    kinds = {**named, "shop": named["shop"].set_index(pd.CategoricalIndex(numbers))}
    tacita.train_vertical(kinds, y, "bank", algorithm=algorithm)
    gaps = np.where(np.arange(M) == 1, np.nan, numbers)
    named |= {name: named[name].set_index(gaps) for name in ("bank", "shop")}
    features.same_rows({name: named[name] for name in ("bank", "shop")})
    with pytest.raises(tacita.TacitaError, match="row 0 is 1119.0, and there 1000.0"):
        features.same_rows({"bank": named["bank"], "shop": named["shop"][::-1]})


def test_the_unit_of_labels_does_not_end_the_steps(tables, labels):
    algorithm = tacita.VerticalNewton(l2=0.3)
    usual, tiny = (
        tacita.train_vertical(
            tables, unit * labels["linear"], "bank", model="linear", algorithm=algorithm
        )
        for unit in (1.0, 1e-12)
    )
    assert tiny.converged and len(tiny.objective) == len(usual.objective)
    for name, w in usual.params.items():
        np.testing.assert_allclose(tiny.params[name], 1e-12 * w, rtol=1e-9)


def test_linear_regression_without_a_penalty_and_who_holds_the_labels(tables, labels):
    free = {k: v for k, v in tables.items() if k != "register"}
    x = np.concatenate(list(free.values()), axis=1)
    exact = np.linalg.lstsq(x, labels["linear"], rcond=None)[0]
    for holder in free:
        run = tacita.train_vertical(
            free,
            labels["linear"],
            holder,
            model="linear",
            algorithm=tacita.VerticalNewton(l2=0.0),
        )
        found = np.concatenate(list(run.params.values()))
        np.testing.assert_allclose(found, exact, atol=1e-9)
        assert len(run.objective) == 2  # one Newton step


def test_yes_and_no_are_one_and_zero(tables, labels):
    algorithm = tacita.VerticalNewton(l2=1e-2)
    zero_one = labels["logistic"]
    runs = [
        tacita.train_vertical(tables, y, "bank", algorithm=algorithm)
        for y in (zero_one, zero_one == 1, (zero_one == 1).tolist())
    ]
    for name, w in runs[0].params.items():
        for other in runs[1:]:
            np.testing.assert_array_equal(other.params[name], w)


def letters_of(tables, y, **options):
    seen = []
    run = tacita.train_vertical(
        tables,
        y,
        "bank",
        algorithm=tacita.VerticalNewton(l2=1e-3),
        watch=seen.append,
        **options,
    )
    return seen, run


def test_only_the_named_numbers_leave_a_party(tables, labels):
    seen, run = letters_of(tables, labels["logistic"])
    up, down = {"scores", "inner products"}, {
        "residuals",
        "curvatures",
        "weighted scores",
        "step length",
    }  # fmt: skip
    for letter in seen:
        assert "bank" in (letter.sender, letter.receiver)  # never among the others
        assert letter.content in (down if letter.sender == "bank" else up)
        rows = letter.content not in ("inner products", "step length")
        assert letter.value.size == M if rows else letter.value.size <= 3
    counted = sum(letter.value.size for letter in seen)
    assert counted == sum(run.sent.values())
    scores = [one for one in seen if one.content == "scores"]
    assert len(scores) == run.exchanges * (len(tables) - 1)


def test_no_column_leaves_its_party(tables, labels):
    for model in ("linear", "logistic"):
        seen, _ = letters_of(tables, labels[model], model=model)
        for letter in seen:
            if letter.value.size != M:
                continue
            for column in tables[letter.sender].T:
                if np.ptp(column) == 0:  # the column of ones is no secret
                    continue
                size = np.linalg.norm(column) * np.linalg.norm(letter.value)
                assert abs(column @ letter.value) < 0.999 * size


def test_what_the_letters_do_reveal_is_what_the_docs_say(tables, labels):
    # Honesty, not a wish: these are the leaks that docs/explanation-variants.md names.
    seen, _ = letters_of(tables, labels["logistic"])
    first = next(one for one in seen if one.content == "residuals")
    np.testing.assert_array_equal(first.value < 0, labels["logistic"] == 1)
    told = [x.value for x in seen if x.sender == "shop" and x.content == "scores"]
    span = np.linalg.qr(np.stack(told, axis=1)[:, : SIZES["shop"]])[0]
    left = tables["shop"] - span @ (span.T @ tables["shop"])
    assert np.abs(left).max() < 1e-9  # the columns' span, though not the columns


def test_bad_input_is_refused_in_one_line(tables, labels):
    def train(parties, y, holder="bank", model="logistic", l2=1e-3):
        algorithm = tacita.VerticalNewton(l2=l2)
        return tacita.train_vertical(
            parties, y, holder, model=model, algorithm=algorithm
        )

    y = labels["logistic"]
    words = np.where(y == y[0], "good", "bad")
    narrow = tables | {"shop": tables["shop"][:, :1]}
    twice = tables | {"shop": tables["shop"][:, [0, 1, 0]]}
    cases = [
        (([tables["bank"]], y), "a dictionary from names to columns.*got a list"),
        ((narrow, y), "party 'shop' has one column"),
        ((tables | {"shop": tables["shop"][:-1]}, y), "columns of 'shop'"),
        ((tables, y, "shops"), "did you mean 'shop'"),
        ((tables, y + 2), "labels -1/.1 or 0/1"),
        ((tables, labels["linear"]), "y has .*take model='linear' for numbers"),
        ((tables, np.arange(len(y)) % 3 - 1), "y has -1, 0, 1; code the classes so"),
        (
            (tables, words),
            r"'good' is text; give .* 0/1 or booleans, as in y == 'good'",
        ),
        ((tables, words.tolist()), "'good' is text"),
        ((tables, words, "bank", "linear"), "'good' is text; model='linear' takes num"),
        ((tables, y, "bank", "logistic", 0.0), "needs l2 > 0"),
        ((twice, y, "bank", "linear", 0.0), "linearly dependent"),
        ((tables, y, "bank", "softmax"), "unknown model"),
    ]
    for arguments, words in cases:
        with pytest.raises(tacita.TacitaError, match=words):
            train(*arguments)
    # The label holder sends no scores, so that one column is enough there, or none.
    run = train(tables | {"bank": tables["bank"][:, :1]}, y)
    assert run.converged
    assert train(tables | {"bank": tables["bank"][:, :0]}, y).converged
    with pytest.raises(tacita.TacitaError, match="party 'bank' are missing"):
        run.scores({"shop": tables["shop"]})


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_three_owners_of_bank_marketing(model):
    import os

    if not os.environ.get("TACITA_DATA"):
        pytest.skip("TACITA_DATA names no folder with the data sets")
    bank = data.load("bank-marketing")
    tables = {name: bank.party(name) for name in bank.parties}
    y = bank.y.astype(float)
    run = tacita.train_vertical(
        tables,
        y,
        "call centre",
        model=model,
        algorithm=tacita.VerticalNewton(l2=1e-3),
    )
    central, _ = joined(tables, y, model, 1e-3)
    for name, w in run.params.items():
        np.testing.assert_allclose(w, central[name], atol=1e-11)
    page = (Path(__file__).parents[2] / "docs/explanation-variants.md").read_text()
    told = {"linear": "linear regression", "logistic": "logistic regression takes"}
    assert f"{told[model]} {run.exchanges}" in page
