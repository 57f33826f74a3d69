"""Graphs from private letters, from codes, and with k and alpha chosen by rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.privacy import BudgetExceeded, Ledger
from tacita.problem import graph, synthetic
from tacita.problem.held_out import hold_out, node_losses
from tacita.trees import replace
from tacita.variants import encoded, private_graph

KIND = np.repeat([0, 1], 4)


def two_kinds(rows: int = 40, noise: float = 0.5, seed: int = 0) -> tacita.Problem:
    """Eight nodes; those of a kind have one linear model."""
    rng = np.random.default_rng(seed)
    truth = np.array([[1.0, 0.0], [-1.0, 0.5]])[KIND]
    x = rng.normal(size=(8, rows, 2))
    y = np.einsum("nmd,nd->nm", x, truth) + noise * rng.normal(size=(8, rows))
    owner = np.repeat(np.arange(8), rows)
    parts = x.reshape(-1, 2), y.ravel(), owner
    return tacita.from_arrays(*parts, model="ridge", l2=0.01)


@pytest.fixture(scope="module")
def nodes() -> tacita.Problem:
    return two_kinds()


def inside(made: graph.Graph) -> float:
    i, j, _ = made.pairs()
    return float(np.mean(KIND[i] == KIND[j]))


def test_private_letters_find_the_kinds_and_say_what_they_cost(nodes):
    made = private_graph(nodes, k=2, epsilon=8.0, delta=1e-5, seed=1)
    row = made.privacy
    assert row.epsilon == pytest.approx(8.0, rel=1e-4)
    assert (row.observer, row.unit) == ("coordinator", "record")
    assert row.theorem and row.assumptions
    assert inside(made.graph) == 1.0 and not made.graph.from_rows
    # The noise is there, and as large as the guarantee says: the gradient of 40 rows
    # clipped to 1 changes by at most 2/40, mu = change / std.
    again = private_graph(nodes, k=2, epsilon=8.0, delta=1e-5, seed=2)
    spread = (made.letters - again.letters).std() / np.sqrt(2)
    assert spread == pytest.approx(2 / 40 / row.mu, rel=0.5)
    strict = private_graph(nodes, k=2, epsilon=0.01, delta=1e-5, seed=1)
    assert np.abs(strict.letters).max() > 10 * np.abs(made.letters).max()


def test_letters_stand_in_the_ledger_before_the_graph_is_made(nodes, tmp_path: Path):
    budget = {"epsilon": 2.0, "delta": 1e-5}
    with Ledger(tmp_path / "ledger.db") as ledger:
        with pytest.raises(tacita.TacitaError, match="no budget"):
            private_graph(nodes, k=2, **budget, ledger=ledger)
        assert not [row for row in ledger.rows() if row.kind == "release"]
        apart = [["coordinator"], ["neighbour"]]  # the graph is told to both
        for name in nodes.ids:
            about = {"agent": str(name), "separate": apart}
            ledger.allow(epsilon=2.5, delta=1e-5, **about)
        private_graph(nodes, k=2, **budget, ledger=ledger)
        spent = ledger.spent(1e-5)
        assert len(spent) == 16
        assert all(one == pytest.approx(2.0, rel=1e-3) for one in spent.values())
        # Another draw of the same release, and a second release beyond the budget.
        with pytest.raises(tacita.TacitaError, match="already charges another letter"):
            private_graph(nodes, k=2, **budget, ledger=ledger)
        with pytest.raises(BudgetExceeded):
            private_graph(nodes, k=2, **budget, ledger=ledger, run="second")


def test_a_private_run_on_a_graph_that_saw_rows_says_so(nodes):
    told = {}
    for name, made in (
        ("learnt", graph.learned(nodes, k=2)),
        ("private", private_graph(nodes, k=2, epsilon=8.0, delta=1e-5).graph),
    ):
        algorithm = tacita.private(
            replace(nodes, graph=made),
            tacita.FedGD(alpha=0.1, step_size=0.1, need_connected=False),
            epsilon=1.0,
            delta=1e-5,
            observer="neighbour",
            rounds=2,
        )
        plan = tacita.privacy.forecast(
            replace(nodes, graph=made), algorithm, rounds=2
        ).row("neighbour")
        told[name] = [a for a in plan.assumptions if a["status"] == "violated"]
        told[f"{name} besides"] = [
            a for a in plan.assumptions if "are counted besides" in a["statement"]
        ]
    assert not told["private"] and not told["learnt besides"]
    # The letters of the graph have a price that this run knows nothing of.
    assert [one["status"] for one in told["private besides"]] == ["believed"]
    assert "learnt from them without noise" in told["learnt"][0]["statement"]
    # Renaming its nodes does not make it forget.
    looked = graph.learned(nodes, k=2).named(list("abcdefgh"))
    assert looked.from_rows
    assert graph.Graph.from_networkx(looked.to_networkx()).from_rows


def test_bad_choices_are_refused(nodes):
    budget = {"epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(tacita.TacitaError, match="need step_size"):
        private_graph(nodes, k=2, **budget, local_steps=3)
    with pytest.raises(tacita.TacitaError, match="expected at of shape"):
        private_graph(nodes, k=2, **budget, at=[0.0])
    with pytest.raises(tacita.TacitaError, match="unknown option"):
        private_graph(nodes, k=2, **budget, neighbours=3)


@pytest.mark.long
def test_an_encoder_trained_together_tells_kinds_of_rows_apart():
    """Rows near two points, in six columns of which one number tells all."""
    rng = np.random.default_rng(0)
    centre = np.where(KIND == 0, -1.0, 1.0)[:, None, None]
    x = centre * np.ones(5) + rng.normal(size=(8, 30, 5))
    owner = np.repeat(np.arange(8), 30)
    parts = x.reshape(-1, 5), x.sum(axis=2).ravel(), owner
    problem = tacita.from_arrays(*parts, model="linear")
    codes = encoded(problem, code=1, rounds=40)
    assert codes.shape == (8, 1)
    np.testing.assert_array_equal(codes, encoded(problem, code=1, rounds=40))
    assert inside(graph.learned(problem, codes, k=2)) == 1.0
    gap = abs(codes[:4].mean() - codes[4:].mean())
    assert gap > 3 * max(codes[:4].std(), codes[4:].std())


def test_k_and_alpha_are_chosen_together_by_held_out_rows():
    problem = two_kinds(rows=8, noise=1.0, seed=3)
    alphas = [1e-3, 1.0]
    found = tacita.tune(problem, discrepancy="parameters", ks=(1, 3), alphas=alphas)
    assert {(t.k, t.alpha) for t in found.trials} == {
        (k, a) for k in (1, 3) for a in alphas
    }
    best = min(found.trials, key=lambda t: t.validation)
    assert (found.k, found.alpha) == (best.k, best.alpha)
    wanted = graph.learned(problem, "parameters", k=found.k)
    np.testing.assert_array_equal(found.graph.senders, wanted.senders)
    assert found.gtv.alpha == found.alpha and "chosen by looking" in str(found)
    # By hand: the graph of a split is learnt from its training rows alone.
    losses = []
    for seed in range(3):
        train, held = hold_out(problem, 0.25, seed)
        on = replace(train, graph=graph.learned(train, "parameters", k=1))
        losses.append(node_losses(held, tacita.GTVMin(on, 1.0).solve()).mean())
    (trial,) = [t for t in found.trials if (t.k, t.alpha) == (1, 1.0)]
    assert trial.validation == pytest.approx(np.mean(losses), rel=1e-9)


def test_what_cannot_be_tuned_is_refused(nodes):
    for choices, words in (
        ({"discrepancy": "chow", "method": "test", "ks": (2,)}, "has no k"),
        ({"discrepancy": "wald", "ks": ()}, "one number to try"),
        ({"discrepancy": "wald", "ks": (0,)}, "expected ks"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            tacita.tune(nodes, **choices)
    single = synthetic.linear(agents=3, features=1, samples=1)
    with pytest.raises(tacita.TacitaError, match="two rows"):
        tacita.tune(single, discrepancy="moments")


def test_a_graph_of_unknown_origin_is_taken_for_known_before():
    """One of vectors that somebody made of rows does not show where it is from."""
    nodes = synthetic.logistic(6, features=2, samples=20)
    vectors = tacita.problem.representations(nodes)
    problem = replace(nodes, graph=graph.from_vectors(vectors, k=2).named(nodes.ids))
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.GossipSGD(step_size=0.1, oracle=noisy)
    told = tacita.privacy.forecast(problem, algorithm, rounds=2).row("neighbour")
    words = "who is joined with whom was known before these rows"
    (found,) = (a for a in told.assumptions if a["statement"] == words)
    assert found["status"] == "believed"
