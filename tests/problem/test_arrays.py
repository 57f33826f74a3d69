"""From rows to a problem: order, padding, labels, and every refusal."""

from __future__ import annotations

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tacita
from tacita.problem import Custom, graph, mlp, prox, synthetic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 3))
Y = np.array([1, -1] * 5)
AGENT = np.array(["b"] * 4 + ["a"] * 3 + ["c"] * 3)


class Plain:
    """A penalty as one writes it at first, without telling JAX."""

    def __call__(self, w):
        return jnp.sum(w**2)

    def prox(self, v, t):
        return v / (1 + 2 * t)


def test_agents_are_sorted_and_rows_keep_their_order():
    problem = tacita.from_arrays(X, Y, AGENT)
    assert problem.ids == ("a", "b", "c")
    assert problem.counts.tolist() == [3, 4, 3]
    x, y, _ = problem.stacked()
    np.testing.assert_array_equal(x[1], X[:4])
    np.testing.assert_array_equal(x[0, :3], X[4:7])
    np.testing.assert_array_equal(x[0, 3], 0)
    assert problem.dtype == np.float64


def test_loss_and_gradient_are_sums_of_means():
    problem = tacita.from_arrays(X, Y, AGENT, l2=0.4, h=prox.L1(weight=0.2))
    w = RNG.normal(size=3)
    expected, gradient = 0.2 * np.abs(w).sum(), np.zeros(3)
    for name in "abc":
        x, y = X[name == AGENT], Y[name == AGENT]
        expected += np.mean(np.log1p(np.exp(-y * (x @ w)))) + 0.2 * w @ w
        residual = -y / (1 + np.exp(y * (x @ w)))
        gradient += residual @ x / len(x) + 0.4 * w
    assert problem.loss(w) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(problem.grad(w), gradient, atol=1e-13)


def test_everyone_at_its_own_model():
    problem = tacita.from_arrays(X, Y, AGENT, l2=0.4)
    models = RNG.normal(size=(3, 3))
    own = problem.grad(models)
    assert own.shape == (3, 3)
    x, y = X[AGENT == "b"], Y[AGENT == "b"]
    residual = -y / (1 + np.exp(y * (x @ models[1])))
    np.testing.assert_allclose(own[1], residual @ x / 4 + 0.4 * models[1], atol=1e-13)


def test_pandas_zero_one_labels_and_intercept():
    table = pd.DataFrame(X, columns=list("pqr"))
    problem = tacita.from_arrays(
        table, pd.Series((Y > 0).astype(int)), pd.Series(AGENT), intercept=True
    )
    reference = tacita.from_arrays(np.c_[X, np.ones(10)], Y, AGENT)
    w = RNG.normal(size=4)
    assert problem.loss(w) == reference.loss(w)


def test_named_classes():
    words = np.array(["cat", "dog", "eel", "cat", "dog"] * 2)
    problem = tacita.from_arrays(X, words, AGENT, model="softmax")
    assert problem.class_names == ("cat", "dog", "eel")
    assert problem.dim == 9
    table = problem.holdings()
    assert table["cat"].sum() == 4
    yes_no = tacita.from_arrays(
        X, np.array(["no", "yes"] * 5), AGENT, classes=("no", "yes")
    )
    np.testing.assert_array_equal(yes_no.stacked()[1][1], [-1, 1, -1, 1])


def test_twins_splitting_an_agent_and_repeating_its_rows():
    """An agent with its rows twice is the same agent; permuted agents the same sum."""
    w = RNG.normal(size=3)
    once = tacita.from_arrays(X, Y, AGENT, l2=0.1)
    twice = tacita.from_arrays(np.r_[X, X], np.r_[Y, Y], np.r_[AGENT, AGENT], l2=0.1)
    assert twice.loss(w) == pytest.approx(once.loss(w), rel=1e-13)
    renamed = np.array([{"a": "z", "b": "y", "c": "x"}[a] for a in AGENT])
    assert tacita.from_arrays(X, Y, renamed, l2=0.1).loss(w) == pytest.approx(
        once.loss(w), rel=1e-13
    )


def test_narrow_and_wide_problems_agree():
    """More than 32 features are stored the other way round; the numbers agree."""
    w = RNG.normal(size=3)
    wide_x = np.c_[X, np.zeros((10, 40))]
    narrow = tacita.from_arrays(X, Y, AGENT, l2=0.1)
    wide = tacita.from_arrays(wide_x, Y, AGENT, l2=0.1)
    assert narrow.population.by_feature and not wide.population.by_feature
    padded = np.r_[w, np.zeros(40)]
    assert wide.loss(padded) == pytest.approx(narrow.loss(w), rel=1e-13)
    np.testing.assert_allclose(wide.grad(padded)[:3], narrow.grad(w), atol=1e-13)


BAD = {
    "NaN in X": (dict(X=np.where(X > 1, np.nan, X)), "X has .* NaN"),
    "label outside": (dict(y=np.arange(10)), "label .* outside"),
    "mixed labels": (dict(y=np.array([-1, 0, 1, 1, 1, 1, 1, 1, 1, 1])), "label"),
    "word labels": (dict(y=np.array(["a", "b"] * 5)), "labels -1/.1 or 0/1"),
    "short y": (dict(y=Y[:9]), "expected y of shape"),
    "short agent": (dict(agent=AGENT[:9]), "expected agent of shape"),
    "flat X": (dict(X=X[:, 0]), "rows and columns"),
    "no rows": (dict(X=X[:0], y=Y[:0], agent=AGENT[:0]), "no rows"),
    "unknown model": (dict(model="logistics"), "did you mean 'logistic'"),
    "ridge without l2": (dict(model="ridge"), "expected l2 > 0"),
    "negative l2": (dict(l2=-1.0), "expected l2 >= 0"),
    "empty agent": (dict(agents=["a", "b", "c", "d"]), "agent 'd' has no rows"),
    "one class": (dict(model="softmax", y=np.ones(10)), "at least two classes"),
    "half precision": (dict(dtype=np.float16), "float32 or float64"),
    "test shape": (dict(test=(X[:, :2], Y)), "expected test X of shape"),
    "test label": (dict(test=(X, Y * 3)), "label .* test y"),
    "test length": (dict(test=(X, Y[:4])), "expected test y of shape"),
    "missing node": (dict(graph=nx.path_graph(["a", "b"])), "c"),
    "extra node": (dict(graph=nx.path_graph(["a", "b", "c", "q"])), "q"),
    "class given twice": (
        dict(model="softmax", y=np.array(["u", "v"] * 5), classes=["u", "w"]),
        "outside the model's classes",
    ),
    "NaN label": (
        dict(model="softmax", y=np.where(Y > 0, 1, np.nan)),
        "y has no value",
    ),
    "None label": (dict(model="softmax", y=[*"ababababa", None]), "first is row 9"),
    "None among numbers": (dict(y=[*Y[:9], None]), "y has no value in 1 rows"),
    "mixed label kinds": (
        dict(model="softmax", y=[*"ababababa", 3]),
        "y mixes numbers",
    ),
    "NaN agent": (dict(agent=np.where(Y > 0, 1, np.nan)), "agent has no value in 5"),
    "None agent": (dict(agent=pd.Series([*AGENT[:9], None])), "first is row 9"),
    "NaN among ids": (dict(agent=[np.nan, *AGENT[1:]]), "agent has no value in 1"),
    "mixed ids": (dict(agent=[1, *AGENT[1:]]), "agent mixes numbers and str"),
    "unheld rows": (dict(agent=np.arange(10) % 3 - 1), "rows that nobody holds"),
    "stranger's kind": (dict(unlabelled=[7]), "unlabelled ids of the kind of agent"),
    "h word": (dict(h="l1"), r"such as tacita.problem.prox.L1\(0.1\), got h='l1'"),
    "h number": (dict(h=0.1), "expected h a proximable function"),
    "h class": (dict(h=prox.L1), "expected h a proximable function"),
    "h of another size": (dict(h=prox.L1(np.ones(5))), "L1 does not fit 3 parameters"),
    "h of a matrix": (dict(h=prox.L1(np.ones((3, 1)))), "does not fit 3 parameters"),
    "h of a plain class": (dict(h=Plain()), "put @tacita.trees.frozen above the class"),
    "network of another width": (
        dict(model=mlp(5, [2], 2), y=Y > 0),
        r"model=mlp\[5, 2, 2\] does not fit rows of shape \(3,\): .*dot",
    ),
    "one loss for all": (
        dict(model=Custom(3, lambda w, x, y: jnp.mean(x @ w - y), lambda: np.zeros(3))),
        r"losses of 4 rows have shape \(\); make one number of every row",
    ),
    "start of another size": (
        dict(model=Custom(3, lambda w, x, y: x @ w - y, lambda: np.zeros(4))),
        r"starting point of model=custom of shape \(3,\), got shape \(4,\)",
    ),
    "regulariser": (dict(regulariser=0.1), "for a plain number use l2="),
    "l2 of each agent": (dict(l2=np.full(3, 0.1)), "expected l2 one number, common"),
    "bound of each agent": (dict(bound=[1.0, 2.0, 3.0]), "expected bound one number"),
    "l2 None": (dict(l2=None), "expected l2 a number"),
    "graph word": (dict(graph="ring"), "networkx graph, got a str; make one with"),
    "graph matrix": (dict(graph=np.eye(3)), "got a ndarray; make one with"),
    "no model": (dict(model=None), "expected model one of linear, ridge"),
    "model class": (dict(model=tacita.problem.Logistic), "expected model one of"),
    "no dtype": (dict(dtype="float99"), "float32 or float64, got dtype=float99"),
    "three classes": (dict(classes=(1, 2, 3)), "use model='softmax' for more"),
    "classes word": (dict(classes="ab"), "expected classes a list of labels"),
    "class twice": (
        dict(model="softmax", y=np.array(["u", "v"] * 5), classes=["u", "v", "u"]),
        "classes has 'u' twice",
    ),
    "unknown label": (
        dict(y=np.array(["no", "yes"] * 5), classes=("no", "ja")),
        r"label y\[1\]='yes' is outside",
    ),
    "complex X": (dict(X=X * 1j), "expected X real, got dtype complex128"),
    "too large": (dict(X=X * 1e300, dtype="float32"), "too large for dtype float32"),
    "number for a class": (dict(y=Y * 0.3), "0.3, a number and no class; predict it"),
    "numbers for classes": (
        dict(y=Y * 0.3, model="softmax"),
        "a number and no class; predict it with model='linear'",
    ),
    "infinite label": (
        dict(y=np.where(Y > 0, np.inf, 1.0), model="softmax"),
        "y has inf, a number and no class",
    ),
    "infinite class": (dict(classes=(0.0, np.inf)), "classes has inf"),
    "complex y": (dict(y=Y * 1j, model="linear"), "expected y real, got dtype complex"),
    "masked X": (dict(X=np.ma.masked_greater(X, 0)), r"X has \d+ masked entries; fill"),
    "masked y": (dict(y=np.ma.masked_equal(Y, 1)), "y has 5 masked entries"),
    "masked agent": (dict(agent=np.ma.masked_equal(AGENT, "a")), "agent has . masked"),
    "rows in another order": (
        dict(X=pd.DataFrame(X), y=pd.Series(Y)[::-1]),
        r"y has the rows of X in another order, .* or pass y.to_numpy\(\)",
    ),
    "no columns": (dict(X=X[:, :0]), "X has no columns"),
    "sparse X": (dict(X=sparse.csr_matrix(X)), r"pass X.toarray\(\)"),
    "text column": (
        dict(X=pd.DataFrame({"p": X[:, 0], "q": [*"ababababab"]})),
        "column 'q' of X is not of numbers .*get_dummies",
    ),
    "empty cell": (
        dict(X=pd.DataFrame({"p": pd.array([1, None] * 5, dtype="Int64")})),
        "column 'p' of X has 5 NaN or empty cells",
    ),
    "object X": (
        dict(X=np.array([[1, "a"]] * 10, dtype=object)),
        "column 1 of X holds 'a', which is no number",
    ),
    "ragged X": (dict(X=[[1.0], [1.0, 2.0]]), "rows of different lengths"),
    "no test pair": (dict(test=X), r"expected test=\(X, y\)"),
}


@pytest.mark.parametrize("case", BAD, ids=BAD.keys())
def test_bad_input_is_refused_in_one_line(case):
    changes, message = BAD[case]
    arguments = {"X": X, "y": Y, "agent": AGENT, **changes}
    with pytest.raises(tacita.TacitaError, match=message) as error:
        tacita.from_arrays(**arguments)
    assert "\n" not in str(error.value)


def test_true_and_false_and_pandas_own_numbers_are_numbers():
    whole, flags = np.arange(10), Y > 0
    table = pd.DataFrame({"p": whole, "q": flags})
    table["p"] = table["p"].astype("Int64")
    wanted = np.c_[whole, flags].astype(float)
    for x in (table, wanted.astype(object), table.astype("Float64")):
        made = tacita.from_arrays(x, pd.Series(flags, dtype="boolean"), AGENT)
        np.testing.assert_array_equal(made.stacked()[0][1], wanted[:4])
        np.testing.assert_array_equal(made.stacked()[1][1], Y[:4])
    made = tacita.from_arrays(np.c_[flags, ~flags], Y, AGENT)
    np.testing.assert_array_equal(made.stacked()[0][1, :, 0], flags[:4])


def test_columns_of_further_tables_are_found_by_their_names():
    """They were taken in their order: a test accuracy of 0.33 in place of 0.90."""
    x = np.random.default_rng(0).normal(size=(10, 3))
    table = pd.DataFrame(x, columns=["p", "q", "r"])
    mixed = table[["r", "p", "q"]].assign(other=1.0)
    made = tacita.from_arrays(table, Y, AGENT, test=(mixed, Y), bound=2.0)
    wanted = tacita.from_arrays(x, Y, AGENT, test=(x, Y), bound=2.0).population.test
    np.testing.assert_array_equal(made.population.test.x, wanted.x)
    np.testing.assert_array_equal(
        tacita.from_arrays(table, Y, AGENT, test=(x, Y), bound=2.0).population.test.x,
        wanted.x,
    )
    with pytest.raises(tacita.TacitaError, match="test X has no column 'q'"):
        tacita.from_arrays(table, Y, AGENT, test=(table[["p", "r"]], Y))
    errors = [
        tacita.validate(made, np.array([1.0, -2.0, 3.0]), (rows, Y, AGENT)).validation
        for rows in (x, table, mixed)
    ]
    np.testing.assert_array_equal(errors[1:], errors[:1] * 2)


def test_labels_are_matched_by_what_they_are():
    """1.0 is the class 1, and true the second of two classes."""
    halves = np.where(Y > 0, 2.0, 1.0)
    network = tacita.problem.mlp(3, (2,), 2)
    for model, y, classes, names in (
        ("softmax", halves, (1, 2), ("1", "2")),
        ("softmax", halves.astype(int), (1.0, 2.0), ("1", "2")),
        ("softmax", halves, None, ("1", "2")),
        ("softmax", halves, ("1.0", "2.0"), ("1.0", "2.0")),
        (network, Y > 0, None, ("0", "1")),
        (network, Y > 0, (False, True), ("False", "True")),
        ("logistic", halves, (1, 2), ("1", "2")),
    ):
        problem = tacita.from_arrays(X, y, AGENT, model=model, classes=classes)
        assert problem.class_names == names
        np.testing.assert_array_equal(problem.stacked()[1][1] > 0, Y[:4] > 0)


def test_graph_nodes_are_matched_by_id():
    network = nx.Graph([("c", "a"), ("a", "b")])
    problem = tacita.from_arrays(X, Y, AGENT, graph=network)
    assert problem.graph is not None
    assert list(problem.graph.nodes) == ["a", "b", "c"]
    np.testing.assert_array_equal(problem.graph.degrees, [2, 1, 1])
    with pytest.raises(tacita.TacitaError):
        tacita.from_arrays(X, Y, AGENT, graph=graph.ring(3))


def test_evaluating_at_a_wrong_shape_is_refused():
    problem = tacita.from_arrays(X, Y, AGENT)
    with pytest.raises(tacita.TacitaError, match="expected w of shape"):
        problem.loss(np.zeros(4))
    for wrong in ("best", {"w": 1.0}, [[1.0], [2.0, 3.0]]):
        with pytest.raises(tacita.TacitaError, match="expected w an array of numbers"):
            problem.loss(wrong)
    regression = tacita.from_arrays(X, Y, AGENT, model="linear")
    with pytest.raises(tacita.TacitaError, match="classification"):
        regression.accuracy(np.zeros(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synthetic.logistic(seed=-1), "seed a whole number >= 0"),
        (lambda: synthetic.logistic(seed=2**32), "expected seed <= 4294967295"),
        (lambda: synthetic.linear(features=0), "features a whole number >= 1"),
        (lambda: synthetic.linear(seed=None), "expected seed a number"),  # pyright: ignore
    ],
)
def test_synthetic_problems_check_their_numbers(make, message):
    with pytest.raises(tacita.TacitaError, match=message):
        make()
