"""Attacks: their letters by known numbers, their place in runs."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import aggregation, robust
from tacita.robust.false_letters import usual_deviations
from tacita.robust.rows import flipped
from tacita.runtime import engine
from tacita.trees import double_precision
from tests.cases import case_of

KNOWN = json.loads(
    (Path(__file__).parent.parent / "aggregation/vectors.json").read_text()
)["attacks"]
HONEST = np.array(KNOWN["honest"])


def told(attack: robust.Attack, centre=None, before=None) -> np.ndarray:
    """What the first liar says to honest agents and two liars behind them."""
    with double_precision():
        rows = jnp.asarray(np.vstack([HONEST, HONEST[:1], HONEST[1:2]]))
        points = [None if p is None else jnp.asarray(p) for p in (centre, before)]
        honest = jnp.arange(10) < 8
        said = attack.lie(jax.random.key(0), rows, honest, points[0], 1, points[1])
        np.testing.assert_array_equal(said[:8], HONEST)
        return np.asarray(said[8])


LIARS = (8, 9)


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        (robust.SignFlip(agents=LIARS, strength=2.0), "sign_flip_x2_of_first"),
        (robust.InnerProduct(agents=LIARS, strength=0.5), "inner_product_0.5"),
        (robust.ALIE(agents=LIARS, deviations=1.5), "alie_z1.5"),
    ],
)
def test_letters(attack, name):
    np.testing.assert_allclose(told(attack), KNOWN[name], rtol=1e-9)


def test_mimic_copies_the_letter_farthest_along_a_direction():
    copied = HONEST[KNOWN["mimic_target"]]
    for options in (
        {"target": KNOWN["mimic_target"]},
        {"direction": KNOWN["mimic_direction"]},
        {"direction": [-2 * one for one in KNOWN["mimic_direction"]]},
    ):
        found = told(robust.Mimic(agents=LIARS, **options))
        np.testing.assert_array_equal(found, copied)
    # Where none is named: along the first eigenvector of the covariance.
    away = HONEST - HONEST.mean(axis=0)
    direction = np.linalg.svd(away)[2][0]
    farthest = HONEST[np.argmax(np.abs(away @ direction))]
    np.testing.assert_array_equal(told(robust.Mimic(agents=LIARS)), farthest)


def test_replacement_and_free_rider():
    known = KNOWN["model_replacement"]
    attack = robust.Replacement(agents=LIARS, target=known["target"])
    start = np.array(known["start"])
    # Two liars share the pull that one would need.
    found = start + 2 * (told(attack, start) - start)
    np.testing.assert_allclose(found, known["letter"], rtol=1e-9)
    known = KNOWN["free_rider"]
    found = told(robust.FreeRider(agents=LIARS), known["last"], known["before"])
    np.testing.assert_allclose(found, known["letter"], rtol=1e-9)


LETTER_ATTACKS = [
    robust.SignFlip(agents=(2, 5), strength=2.0),
    robust.InnerProduct(agents=(2, 5)),
    robust.ALIE(agents=(2, 5)),
    robust.Replacement(agents=(2, 5), target=3.0),
    robust.Mimic(agents=(2, 5), target=4),
    robust.Mimic(agents=(2, 5)),
    robust.FreeRider(agents=(2, 5), noise=0.1),
    robust.Noise(agents=(2, 5)),
]


@pytest.mark.parametrize("attack", LETTER_ATTACKS, ids=lambda a: type(a).__name__)
def test_a_cohort_is_lied_to_as_if_the_others_were_silent(attack):
    """Whether letters are gathered or masked: of two liars one is asked."""
    with double_precision():
        numbers = jnp.asarray([1, 4, 5, 6, 7])
        heard = jnp.zeros(8, bool).at[numbers].set(True)
        rows, centre = jnp.asarray(HONEST), jnp.ones(HONEST.shape[1])
        honest = jnp.asarray(attack.honest(8))
        about = (centre, 1, 2 * centre)
        key = jax.random.key(0)
        masked = attack.lie(key, rows, honest & heard, *about, heard=heard)
        few = attack.lie(key, rows[numbers], honest[numbers], *about, numbers=numbers)
        np.testing.assert_allclose(masked[numbers], few, rtol=1e-12)
        if isinstance(attack, robust.Replacement):
            np.testing.assert_allclose(_by_mean(few, rows, numbers), 3.0, rtol=1e-9)
        if isinstance(attack, robust.Mimic):
            np.testing.assert_array_equal(few[2], HONEST[4])


def _by_mean(few, rows, numbers):
    """What a mean says, had all honest agents sent the centre."""
    sent = jnp.where((numbers == 5)[:, None], few, 1.0)
    return sent.mean(axis=0)


def test_usual_deviations():
    with double_precision():
        for name, value in KNOWN["alie_z"].items():
            n, f = (int(part[1:]) for part in name.split("_"))
            assert float(usual_deviations(n, f)) == pytest.approx(value, abs=1e-9)


def test_dissensus():
    known = KNOWN["dissensus"]
    attack = robust.Dissensus(agents=(3,), strength=known["strength"])
    with double_precision():
        own = jnp.asarray(known["own"])
        near = jnp.asarray([*known["neighbours"], [9.0, 9.0, 9.0]])
        weights = jnp.asarray([*known["weights"], known["attacker_weight"]])
        honest = jnp.asarray([True, True, True, False])
        said = attack.tell(own, near, weights, honest, 1)
        np.testing.assert_allclose(said[3], known["letter"], rtol=1e-9)
        np.testing.assert_array_equal(said[:3], near[:3])
        # At strength 1 the node's gossip stands still.
        np.testing.assert_allclose(weights @ (said - own), 0, atol=1e-12)


def test_labels():
    known = KNOWN["flip_labels"]
    found = flipped(np.array(known["y"]), known["classes"])
    assert found.tolist() == known["flipped"]
    assert flipped(np.array([-1.0, 1.0]), 2).tolist() == [1.0, -1.0]


ATTACKS = [
    robust.SignFlip(agents=(1, 4), strength=3.0),
    robust.InnerProduct(agents=(1,)),
    robust.ALIE(agents=(1,), deviations=1.0),
    robust.Replacement(agents=(1,), target=2.0),
    robust.Mimic(agents=(1,)),
    robust.FreeRider(agents=(1,), noise=0.1),
    robust.Noise(agents=(1,), since=2.0),
    robust.NotFinite(agents=(1,)),
    robust.LabelFlip(agents=(1,)),
    robust.CleanLabel(agents=(1,)),
]


@pytest.mark.long
@pytest.mark.few(3)
@pytest.mark.parametrize("k", range(len(ATTACKS)))
def test_debug_is_simulate(k):
    """Attacks rotate over rules, schedules and algorithms."""
    attack = ATTACKS[k]
    case = case_of(["FedAvg", "FedPLT", "ServerGD"][k % 3])
    rule = [aggregation.TrimmedMean(trim=1), None, aggregation.Buckets(size=1)][k % 3]
    chosen = {
        "participation": [1.0, 4, 0.7][(k // 2) % 3],
        "seed": 2,
        "attack": attack,
        "aggregation": rule,
        "record": (),
    }
    fast = tacita.simulate(case.problem(), case.algorithm, 4, **chosen)
    slow = tacita.debug(case.problem(), case.algorithm, 4, **chosen)
    np.testing.assert_allclose(fast.params, slow.params, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=1e-12, atol=1e-12)
    for run in (fast, slow):
        assert run.config["run"]["attack"]["name"] == type(attack).__name__


@pytest.mark.long
@pytest.mark.parametrize(
    ("attack", "rule"),
    [
        (robust.Dissensus(agents=(0,), strength=1.5), None),
        (robust.SignFlip(agents=(0,), strength=5.0), aggregation.Bridge(trim=0)),
        (robust.NotFinite(agents=(0,)), aggregation.ClippedGossip(drop=1)),
    ],
)
def test_debug_is_simulate_on_a_graph(attack, rule):
    case = case_of("FedGD")
    chosen = {"seed": 2, "attack": attack, "aggregation": rule, "record": ()}
    fast = tacita.simulate(case.problem(), case.algorithm, 4, **chosen)
    slow = tacita.debug(case.problem(), case.algorithm, 4, **chosen)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=1e-12, atol=1e-12)
    assert np.all(np.isfinite(fast.agents))


def test_a_mean_by_rule_on_a_graph_is_the_plain_sum():
    case = case_of("FedGD")
    plain = tacita.simulate(case.problem(), case.algorithm, 4, record=())
    rule = aggregation.TrimmedMean(trim=0)
    same = tacita.simulate(
        case.problem(), case.algorithm, 4, record=(), aggregation=rule
    )
    np.testing.assert_allclose(same.agents, plain.agents, rtol=1e-10)


def test_poison_spreads_one_edge_a_round():
    """Figure 10.3: at distance k it is felt after k rounds, and not before."""
    problem = tacita.problem.synthetic.linear(
        agents=6, features=2, samples=8, graph=tacita.problem.graph.ring(6)
    )
    algorithm = tacita.FedGD(alpha=1.0)
    attack = robust.SignFlip(agents=(0,), strength=5.0)
    for rounds in (1, 2, 4):
        chosen = {"record": (), "start": np.ones(2)}
        plain = tacita.simulate(problem, algorithm, rounds, **chosen)
        lied = tacita.simulate(problem, algorithm, rounds, attack=attack, **chosen)
        felt = np.any(plain.agents != lied.agents, axis=1)
        # Its own state stays honest until its neighbours answer what it said.
        assert felt[1:].tolist() == [min(k, 6 - k) < rounds for k in range(1, 6)]


def test_letters_that_are_not_finite_are_silence():
    case = case_of("FedAvg")
    problem = case.problem()
    attack = robust.NotFinite(agents=(1,))
    run = tacita.simulate(problem, case.algorithm, 3, attack=attack)
    assert np.all(np.isfinite(run.params))


@pytest.mark.parametrize(
    "attack",
    [
        robust.LabelFlip(agents=(1,), since=2.0),
        robust.CleanLabel(agents=(1,), until=5.0),
        robust.DenialOfService(agents=(1,), since=3.0),
    ],
)
def test_rows_have_no_rounds(attack):
    case = case_of("FedAvg")
    with pytest.raises(tacita.TacitaError, match="replaces rows, of which letters of"):
        tacita.simulate(case.problem(), case.algorithm, 1, attack=attack)


def test_numbers_of_an_attack_or_a_rule_compile_nothing():
    case = case_of("FedAvg")

    def run(radius, strength):
        tacita.simulate(
            case.problem(),
            case.algorithm,
            2,
            aggregation=aggregation.NormBound(radius=radius),
            attack=robust.SignFlip(agents=(1,), strength=strength),
        )

    run(1.0, 1.0)
    before = engine.advance.programs
    run(2.0, 5.0)
    assert engine.advance.programs == before


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("SignFlip", "expected attack such as"),
        (robust.SignFlip(agents=(99,)), "expected agents below"),
        (robust.Mimic(agents=(0,), target=0), "an honest agent"),
        (robust.Mimic(agents=(0,), target=1, direction=(1.0,)), "leave out one"),
        (robust.Mimic(agents=(0,), direction=(1.0,)), "expected direction"),
        (robust.Mimic(agents=(0,), direction=2.0), "expected direction"),
        (robust.Dissensus(agents=(0,)), "tells each neighbour something else"),
        (robust.Backdoor(agents=(0,)), "target one of the labels -1, 1, got target=0"),
        (robust.Backdoor(agents=(0,), target=1.0, features=(99,)), "feature 99"),
    ],
)
def test_refusals(attack, words):
    case = case_of("FedAvg")
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.simulate(case.problem(), case.algorithm, 1, attack=attack)


def test_a_feature_that_rows_do_not_have():
    problem = tacita.problem.synthetic.linear(agents=3, features=2, samples=4)
    attack = robust.DenialOfService(agents=(0,), feature=2)
    with pytest.raises(tacita.TacitaError, match="rows have the features 0..1"):
        attack.poison(problem)


def test_rows_are_replaced_in_the_precision_they_have():
    """Also where nobody asked JAX for double precision."""
    problem = tacita.problem.synthetic.linear(agents=3, features=2, samples=4)
    _, y, _ = problem.stacked()
    made = robust.DenialOfService(agents=(1,), shift=0.1).poison(problem)
    np.testing.assert_allclose(made.stacked()[1][1], y[1] + 0.1, rtol=1e-15)


def test_agents_are_numbers():
    for agents in ((), (1, 1), "x", (0.5,)):
        with pytest.raises(tacita.TacitaError, match="agents"):
            robust.SignFlip(agents=agents)  # pyright: ignore


def test_watching_shows_a_liar():
    problem = case_of("FedAvg").problem()
    attack = robust.SignFlip(agents=(1,), strength=30.0)
    for participation in (1.0, 5, 0.9):
        run = tacita.simulate(
            problem,
            tacita.FedAvg(step_size=0.1),
            4,
            participation=participation,
            aggregation=aggregation.Krum(liars=1),
            attack=attack,
            watch=True,
        )
        told = run.info["letters"]
        assert told["distance"].shape == (problem.n_agents, 4)
        heard = np.isfinite(told["distance"][1])
        others = np.delete(told["distance"], 1, axis=0)
        assert np.all(told["distance"][1] > np.nanmax(others, axis=0), where=heard)
        assert np.all(told["cosine"][1] < 0, where=heard)
        assert not np.any(told["used"][1] > 0)
        assert np.all(np.nansum(told["used"], axis=0) == 1)
        turns = np.sum(np.isfinite(told["rank"]), axis=1)
        np.testing.assert_array_equal(turns, run.info["turns"])


def test_watching_changes_nothing_and_is_refused_in_private_runs():
    problem, algorithm = case_of("FedPLT").problem(), tacita.FedPLT()
    plain = tacita.simulate(problem, algorithm, 3)
    seen = tacita.simulate(problem, algorithm, 3, watch=True)
    np.testing.assert_array_equal(seen.params, plain.params)
    assert seen.metrics.keys() == plain.metrics.keys()
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    with pytest.raises(tacita.TacitaError, match="private run"):
        tacita.simulate(problem, tacita.FedAvg(oracle=noisy), 1, watch=True)


@pytest.mark.long
def test_a_report_shows_every_letter(tmp_path):
    problem = case_of("FedAvg").problem()
    run = tacita.simulate(
        problem,
        tacita.FedAvg(step_size=0.1),
        3,
        participation=0.7,
        attack=robust.NotFinite(agents=(1,)),
        watch=True,
    )
    run.save(tmp_path / "run")
    loaded = tacita.load_run(tmp_path / "run")
    page = tacita.report.write_report({"run": loaded}, tmp_path / "page")
    words = page.read_text()
    assert "Every agent&#x27;s letters" in words or "Every agent's letters" in words
    assert "nobody was left out" in words
