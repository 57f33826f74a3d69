"""Every split is a partition without empty agents, and says what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacita.check import TacitaError
from tacita.data import (
    split_by_classes,
    split_by_column,
    split_dirichlet,
    split_iid,
    split_quantity,
    split_vertical,
)

LABELS = np.repeat(np.arange(10), 60)
SPLITS = {
    "iid": lambda seed: split_iid(LABELS, 7, seed=seed),
    "quantity": lambda seed: split_quantity(LABELS, 7, alpha=0.5, seed=seed),
    "dirichlet": lambda seed: split_dirichlet(LABELS, 7, alpha=0.5, seed=seed),
    "classes": lambda seed: split_by_classes(LABELS, 7, 3, seed=seed),
    "fixed": lambda seed: split_by_classes(
        LABELS, 7, 3, seed=seed, per_agent=30, balanced=True
    ),
}


def counts_of(labels, agent):
    table = np.zeros((agent.max() + 1, labels.max() + 1), int)
    np.add.at(table, (agent[agent >= 0], labels[agent >= 0]), 1)
    return table


@pytest.mark.parametrize("name", SPLITS)
def test_same_seed_same_split_and_other_seed_another(name):
    one, again, other = SPLITS[name](1), SPLITS[name](1), SPLITS[name](2)
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()
    assert one.shape == LABELS.shape
    assert set(one) - {-1} == set(range(7))


@given(n=st.integers(1, 200), agents=st.integers(1, 30), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_iid_sizes_differ_by_at_most_one(n, agents, seed):
    if agents > n:
        with pytest.raises(TacitaError, match="take fewer agents"):
            split_iid(n, agents, seed=seed)
        return
    sizes = np.bincount(split_iid(n, agents, seed=seed), minlength=agents)
    assert sizes.sum() == n and sizes.max() - sizes.min() <= 1


def test_iid_rows_are_mixed():
    # 600 rows sorted by class on 2 agents: each class splits 60 into hypergeometric
    # halves with deviation sqrt(60/4 * 540/599) = 3.7; five of them bound 10 draws.
    table = counts_of(LABELS, split_iid(LABELS, 2, seed=3))
    assert np.abs(table - 30).max() < 19


@given(
    n=st.integers(20, 300),
    agents=st.integers(1, 10),
    alpha=st.floats(0.01, 1000),
    fewest=st.integers(1, 2),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_quantity_keeps_every_row_and_a_minimum(n, agents, alpha, fewest, seed):
    agent = split_quantity(n, agents, alpha=alpha, seed=seed, min_rows=fewest)
    sizes = np.bincount(agent, minlength=agents)
    assert sizes.sum() == n and sizes.min() >= fewest and (agent >= 0).all()


def test_alpha_sets_the_skew():
    def spread(split, alpha):
        tables = [
            counts_of(LABELS, split(LABELS, 5, alpha=alpha, seed=s)) for s in range(30)
        ]
        return np.mean([t.std(axis=0).mean() for t in tables])

    # One draw per class: a share has deviation sqrt((1 - 1/5) / 5 / (5 alpha + 1)), so
    # 60 rows of a class deviate by about 60 * 0.4 / sqrt(5 alpha + 1).
    for alpha in (0.5, 5.0):
        predicted = 60 * 0.4 / np.sqrt(5 * alpha + 1)
        assert spread(split_dirichlet, alpha) == pytest.approx(predicted, rel=0.15)
    sizes = [
        np.bincount(split_quantity(600, 5, alpha=a, seed=s)).std()
        for a in (0.5, 1e6)
        for s in range(10)
    ]
    assert np.mean(sizes[:10]) > 60 and np.mean(sizes[10:]) < 2


@given(alpha=st.floats(0.05, 100), agents=st.integers(1, 8), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_dirichlet_gives_every_row_to_somebody(alpha, agents, seed):
    agent = split_dirichlet(LABELS, agents, alpha=alpha, seed=seed)
    assert (agent >= 0).all()
    assert np.bincount(agent, minlength=agents).min() >= 1


def test_dirichlet_refuses_what_no_draw_can_give():
    with pytest.raises(TacitaError, match="raise alpha, take fewer agents"):
        split_dirichlet(LABELS, 40, alpha=0.001, seed=0)


@given(
    agents=st.integers(1, 12),
    each=st.integers(1, 10),
    seed=st.integers(0, 999),
)
@settings(max_examples=60, deadline=None)
def test_balanced_class_sets(agents, each, seed):
    agent = split_by_classes(
        LABELS, agents, each, seed=seed, per_agent=2 * each, balanced=True
    )
    table = counts_of(LABELS, agent)
    assert (table.sum(axis=1) == 2 * each).all()
    assert ((table > 0).sum(axis=1) == each).all()
    assert set(table[table > 0]) == {2}
    holders = (table > 0).sum(axis=0)
    assert holders.max() - holders.min() <= 1


def test_the_benchmark_of_dp_norm():
    labels = np.repeat(np.arange(10), 6000)
    for seed in range(5):
        agent = split_by_classes(labels, 6, 6, seed=seed, per_agent=4000, balanced=True)
        table = counts_of(labels, agent)
        assert table.sum(axis=1).tolist() == [4000] * 6
        assert set((table > 0).sum(axis=0)) == {3, 4}
        assert set(table[table > 0]) == {666, 667}


def test_balanced_draws_forget_the_order_of_filling():
    """Two agents, two of four classes each: 6 pairs of complements, all as likely."""
    labels = np.repeat(np.arange(4), 4)
    seen = {}
    for seed in range(600):
        agent = split_by_classes(labels, 2, 2, seed=seed, balanced=True)
        mine = tuple(np.unique(labels[agent == 0]))
        seen[mine] = seen.get(mine, 0) + 1
    assert len(seen) == 6
    # Binomial(600, 1/6): deviation 9.1; five of them for six counts.
    assert max(abs(n - 100) for n in seen.values()) < 46
    # Four agents, two of four classes each: filled by need alone, the first two agents
    # would never share a class.
    labels = np.repeat(np.arange(4), 6)
    shared = set()
    for seed in range(200):
        table = counts_of(
            labels, split_by_classes(labels, 4, 2, seed=seed, balanced=True)
        )
        shared.add(int(((table[0] > 0) & (table[1] > 0)).sum()))
    assert shared == {0, 1, 2}


def test_all_rows_of_a_class_go_to_its_holders_in_equal_parts():
    agent = split_by_classes(LABELS, 8, 4, seed=5)
    table = counts_of(LABELS, agent)
    assert ((table > 0).sum(axis=1) == 4).all()
    for column in table.T:
        parts = column[column > 0]
        assert parts.sum() in (0, 60)
        assert not len(parts) or parts.max() - parts.min() <= 1
    nobody = table.sum(axis=0) == 0
    assert (agent == -1).sum() == 60 * nobody.sum()


def test_labels_may_be_words():
    words = np.array(["cat", "dog", "cow"])[np.arange(30) % 3]
    agent = split_by_classes(words, 3, 1, seed=0, balanced=True)
    assert sorted(set(zip(agent.tolist(), words, strict=True))) == sorted(
        (int(agent[words == w][0]), w) for w in ("cat", "dog", "cow")
    )


def test_by_column():
    agent, names = split_by_column(["b", "a", "b", "c"], min_rows=1)
    assert agent.tolist() == [1, 0, 1, 2] and names == ("a", "b", "c")
    agent, names = split_by_column([30, 4, 30, 4, 5], min_rows=2)
    assert agent.tolist() == [1, 0, 1, 0, -1] and names == ("4", "30")
    with pytest.raises(
        TacitaError, match="the most frequent one has 2; lower min_rows"
    ):
        split_by_column(["a", "a", "b"], min_rows=3)


def test_vertical_blocks_put_together_are_the_table():
    x = np.arange(12.0).reshape(2, 6)
    names = list("abcdef")
    np.testing.assert_array_equal(np.hstack(split_vertical(x, 4)), x)
    left, right = split_vertical(
        x, {"l": ["f", "a"], "r": ["b", "c", "d", "e"]}, feature_names=names
    )
    np.testing.assert_array_equal(left, x[:, [5, 0]])
    np.testing.assert_array_equal(right, x[:, 1:5])
    np.testing.assert_array_equal(split_vertical(x, [[0, 1, 2], [5, 4, 3]])[1][0, 0], 5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split_iid(10, 0, seed=0), "agents a whole number >= 1"),
        (lambda: split_iid(10, None, seed=0), "agents a number, got agents=None"),
        (lambda: split_iid(10, 2, seed=None), "got seed=None"),
        (lambda: split_iid(10, 2, seed=-1), "seed a whole number >= 0"),
        (lambda: split_iid(10, 2.5, seed=0), "agents=2.5"),
        (lambda: split_iid(3, 4, seed=0), "need 4 rows, there are 3"),
        (lambda: split_quantity(10, 2, alpha=0.0, seed=0), "alpha > 0"),
        (lambda: split_quantity(10, 2, alpha=None, seed=0), "alpha=None"),
        (lambda: split_quantity(10, 4, alpha=1, seed=0, min_rows=3), "need 12 rows"),
        (lambda: split_dirichlet(LABELS, 3, alpha=np.nan, seed=0), "alpha > 0"),
        (lambda: split_dirichlet([0.5, 1.5], 1, alpha=1, seed=0), "bins"),
        (lambda: split_dirichlet([], 1, alpha=1, seed=0), "at least one row"),
        (lambda: split_dirichlet(np.eye(2), 1, alpha=1, seed=0), "shape"),
        (lambda: split_by_classes(LABELS, 3, 11, seed=0), "classes_per_agent <= 10"),
        (lambda: split_by_classes(LABELS, 3, None, seed=0), "classes_per_agent=None"),
        (
            lambda: split_by_classes(LABELS, 6, 2, seed=0, per_agent=300),
            "take at most about per_agent=",
        ),
        (lambda: split_by_classes([0, 0, 1, 1], 4, 1, seed=1), "would hold no row"),
        (lambda: split_by_column([]), "at least one row"),
        (lambda: split_by_column(["a", None]), "column has no value in 1 rows"),
        (lambda: split_by_column(["a", 1]), "column mixes numbers and str"),
        (lambda: split_vertical(np.ones((2, 3)), 4), "parties <= 3"),
        (lambda: split_vertical(np.ones((2, 3)), [[0], [1]]), "column 2 belongs to no"),
        (lambda: split_vertical(np.ones((2, 2)), [[0, 1], [1]]), "several parties"),
        (lambda: split_vertical(np.ones((2, 2)), [[0, 1], []]), "holds no column"),
        (lambda: split_vertical(np.ones((2, 2)), [[0, 5]]), "column from 0 to 1"),
        (lambda: split_vertical(np.ones((2, 2)), [["a"]]), "pass feature_names"),
        (
            lambda: split_vertical(np.ones((2, 1)), [["ago"]], feature_names=["age"]),
            "did you mean 'age'",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, words):
    with pytest.raises(TacitaError) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_the_remedy_for_too_few_rows_works():
    with pytest.raises(TacitaError) as caught:
        split_by_classes(LABELS, 6, 2, seed=0, per_agent=300)
    most = int(str(caught.value).split("about per_agent=")[1].split(",")[0])
    split_by_classes(LABELS, 6, 2, seed=0, per_agent=most - 1)
