"""The grid, the noise table and the plan against numbers that were computed apart."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import gaussian_table
from tacita.aggregation import secure
from tacita.aggregation.secure import noise_table
from tacita.aggregation.secure.derive import derive, digest, stream
from tacita.aggregation.secure.grid import WORDS
from tacita.aggregation.secure.plan import (
    change_in_steps,
    effective_noise,
    sigma_of,
    slack_of,
)
from tacita.theory.gaussian import epsilon_of_mu

VECTORS = json.loads((Path(__file__).parent / "secagg_vectors.json").read_text())
CLOSE = {"rel": 1e-12, "abs": 0}


def each(name: str):
    numbers = [str(number) for number in range(len(VECTORS[name]))]
    return pytest.mark.parametrize("case", VECTORS[name], ids=numbers)


@each("quantise")
def test_the_grid(case):
    x, grid = np.array(case["x"]), (case["step"], case["word"])
    q = secure.quantise(x, *grid, case["largest"])
    assert q.dtype == WORDS[case["word"]][0] and q.tolist() == case["q"]
    assert secure.dequantise(q, *grid).tolist() == case["back"]
    with jax.enable_x64(True):
        traced = jax.jit(lambda v: secure.quantise(v, *grid, case["largest"]))
        other = traced(jnp.asarray(x))
        assert other.dtype == q.dtype and other.tolist() == case["q"]
        assert secure.dequantise(other, *grid).tolist() == case["back"]


@each("modular")
def test_sums_wrap(case):
    unsigned, signed = WORDS[case["word"]]
    letters = np.array(case["letters"], np.int64).astype(unsigned)
    total = letters.sum(axis=0, dtype=unsigned)
    assert total.tolist() == case["total"]
    assert total.astype(signed).tolist() == case["signed"]
    back = secure.dequantise(total, 1.0, case["word"])
    np.testing.assert_array_equal(back, np.array(case["signed"], float))


def test_the_table():
    known, told = gaussian_table.table(), VECTORS["table"]
    assert (gaussian_table.BASE, gaussian_table.TAIL) == (told["base"], told["tail"])
    assert len(known.exact) == told["entries"]
    for one in told["boundaries"]:
        at = one["value"] + gaussian_table.REACH
        assert known.exact[at] == int(one["boundary"], 16)


def halves(words: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """128-bit words as two arrays."""
    low = 2**64 - 1
    return (
        np.array([w >> 64 for w in words], np.uint64),
        np.array([w & low for w in words], np.uint64),
    )


@each("draw")
def test_draws(case):
    words = [
        np.array([int(word, 16) for word in case[half]], np.uint64)
        for half in ("first_words", "second_words")
    ]
    assert gaussian_table.draw(*words).tolist() == case["values"]


def test_draws_at_below_and_above_every_boundary():
    """Against counting boundaries; where halves of words tie the second decides."""
    exact = gaussian_table.table().exact
    words = [b + k for b in exact for k in (-1, 0, 1) if 0 <= b + k < 2**128]
    words = sorted(set(words))
    counted = np.searchsorted(np.array(exact, object), np.array(words, object), "right")
    drawn = gaussian_table.draw(*halves(words))
    np.testing.assert_array_equal(drawn, counted.astype(int) - gaussian_table.REACH)


def golden(seed: int, entries: int) -> np.ndarray:
    """The words of the vectors."""
    turn = 0x9E3779B97F4A7C15
    words = [((i + 1) * seed * turn + 128 * i) % 2**64 for i in range(entries)]
    return np.array(words, np.uint64)


@each("noise")
def test_noise_is_a_sum_of_draws(case):
    assert list(secure.multiples(case["sigma"])) == case["multiples"]
    assert sigma_of(tuple(case["multiples"])) == pytest.approx(
        case["sigma_reached"], **CLOSE
    )
    total = 0
    for number, k in enumerate(case["multiples"]):
        seed = case["word_seed"] + 2 * number
        words = (golden(seed + j, case["d"]) for j in (0, 1))
        total = total + k * gaussian_table.draw(*words)
    assert np.asarray(total).tolist() == case["z"]


@each("multiples")
def test_multiples(case):
    found = secure.multiples(case["sigma"])
    assert list(found) == case["multiples"]
    assert sigma_of(found) == pytest.approx(case["reached"], **CLOSE)


@pytest.mark.parametrize("sigma", [257.0, 3e3, 4.4e4, 7.7e5, 2e8])
@pytest.mark.parametrize("agents", [2, 20, 128])
def test_the_noise_of_a_sum_has_exactly_its_variance(sigma, agents):
    one = secure.multiples(sigma)
    whole = noise_table.multiples_of_sum(one, agents)
    assert sum(k * k for k in whole) == agents * sum(k * k for k in one)
    assert sigma <= sigma_of(one)
    assert len(whole) <= 12
    for chain in (one, whole):
        assert chain[0] == 1
        for number, k in enumerate(chain[1:], 1):
            before = sum(j * j for j in chain[:number])
            assert Fraction(3 * k) ** 2 <= gaussian_table.BASE**2 * before


@each("threshold")
def test_thresholds(case):
    found = secure.threshold(case["holders"], case["colluding"])
    assert found == case["threshold"]
    assert case["holders"] - found == case["may_drop"]


def test_words_of_keys():
    told = VECTORS["expand"]
    kind = WORDS[told["word"]][0]
    words = stream(bytes.fromhex(told["key"]), told["tag"], len(told["first"]), kind)
    assert words.tolist() == told["first"]
    keys = VECTORS["keys"]
    context = digest(*(part.encode() for part in keys["context_parts"]))
    assert context.hex() == keys["context"]
    own = derive(bytes.fromhex(keys["a"]), b"self", context)
    assert own.hex() == keys["self_seed_a"]


@each("privacy")
def test_what_a_round_costs(case):
    slack = slack_of(case["rows"], emptied=False)
    assert slack == pytest.approx(case["slack"], **CLOSE)
    moved = change_in_steps(case["change"], case["step"], case["d"], slack)
    assert moved == pytest.approx(case["change_steps"], **CLOSE)
    noise = math.sqrt(case["honest"] * case["sigma_steps"] ** 2 - 4)
    assert moved / noise == pytest.approx(case["mu_round"], **CLOSE)
    mu = moved / noise * math.sqrt(case["rounds"])
    assert mu == pytest.approx(case["mu"], **CLOSE)
    assert epsilon_of_mu(mu, case["delta"]) == pytest.approx(case["epsilon"], **CLOSE)


@each("plan")
def test_plans(case):
    made = secure.plan(**case["asked"])
    assert (made.step, made.word) == (case["step"], case["word"])
    assert list(made.multiples) == case["multiples"]
    for name in ("sigma_steps", "change_steps", "mu", "epsilon", "noise_over_central"):
        assert getattr(made, name) == pytest.approx(case[name], **CLOSE), name


@each("plan")
def test_a_planned_sum_cannot_wrap(case):
    """At the largest letters and draws of all agents."""
    made, asked = secure.plan(**case["asked"]), case["asked"]
    letter = secure.quantise(np.array([1e300]), made.step, made.word, asked["largest"])
    entry = int(letter[0]) + gaussian_table.REACH * sum(made.multiples)
    assert asked["agents"] * entry < 2 ** (made.word - 1)
    honest = asked["least"] - asked["colluding"]
    noise = effective_noise(honest, made.multiples)
    mu = made.change_steps / noise * math.sqrt(asked["rounds"])
    assert mu == pytest.approx(made.mu, **CLOSE)
    assert made.epsilon <= asked["eps"]


def test_an_agents_noise_is_a_function_of_secret_and_context():
    about = (bytes(32), digest(b"round 1"), (1, 5, 19), 50)
    once = noise_table.agent_noise(*about)
    np.testing.assert_array_equal(once, noise_table.agent_noise(*about))
    other = noise_table.agent_noise(bytes(32), digest(b"round 2"), (1, 5, 19), 50)
    assert (once != other).any()
    key = derive(bytes(32), b"noise", digest(b"round 1"))
    by_hand = sum(
        k
        * gaussian_table.draw(
            stream(key, 2 * n, 50, np.uint64), stream(key, 2 * n + 1, 50, np.uint64)
        )
        for n, k in enumerate((1, 5, 19))
    )
    np.testing.assert_array_equal(once, by_hand)


def test_the_law_of_draws():
    """Chi-square over 40 cells of equal chance, of 200,000 draws."""
    noise = noise_table.agent_noise(b"a secret of the run itself", b"", (1,), 200_000)
    known = np.array([b / 2**128 for b in gaussian_table.table().exact])
    edges = np.searchsorted(known, np.linspace(0, 1, 41)[1:-1]) - gaussian_table.REACH
    cells = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=40)
    below = known[edges + gaussian_table.REACH]
    chances = np.diff(np.concatenate([[0], below, [1]]))
    expected = chances * len(noise)
    assert ((cells - expected) ** 2 / expected).sum() < 80  # 39 degrees, p < 1e-4


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"least": 21}, "expected least <= 20"),
        ({"least": 3, "colluding": 2}, "one letter is no sum"),
        ({"agents": 2, "least": 2, "colluding": 0}, "3 to 128 agents, got 2"),
        ({"agents": 129, "least": 129}, "3 to 128 agents, got 129"),
        ({"least": 11, "colluding": 2}, "take least >= 12"),
        ({"d": 0}, "expected d a whole number >= 1"),
        ({"eps": 0.0}, "expected eps > 0"),
        ({"largest": -1.0}, "expected largest > 0"),
    ],
)
def test_plans_that_are_refused(how, words):
    asked = {**VECTORS["plan"][0]["asked"], **how}
    with pytest.raises(tacita.TacitaError, match=words):
        secure.plan(**asked)


@pytest.mark.parametrize(
    ("x", "step", "word", "words"),
    [
        (np.zeros(3, np.float32), 1.0, 32, "double precision"),
        (np.array([np.nan]), 1.0, 32, "not numbers"),
        (np.zeros(3), 0.3, 32, "power of two"),
        (np.zeros(3), 1.0, 16, "word 32 or 64"),
    ],
)
def test_letters_that_are_refused(x, step, word, words):
    with pytest.raises(tacita.TacitaError, match=words):
        secure.quantise(x, step, word, 10.0)
