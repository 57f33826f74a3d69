"""Masks: against vectors; they cancel where they should and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacita.aggregation.secure import masks
from tacita.aggregation.secure.derive import stream
from tacita.aggregation.secure.masks import KEY, SELF
from tacita.aggregation.secure.shares import PRIME
from tacita.aggregation.secure.window_roster import LOW_ORDER

VECTORS = json.loads((Path(__file__).parent / "secagg_vectors.json").read_text())


def test_key_vectors():
    told = VECTORS["keys"]
    a, b = bytes.fromhex(told["a"]), bytes.fromhex(told["b"])
    context = bytes.fromhex(told["context"])
    assert masks.public_key(a).hex() == told["public_a"]
    assert masks.public_key(b).hex() == told["public_b"]
    for own, other in ((a, b), (b, a)):
        common = masks.shared(own, {"other": masks.public_key(other)})["other"]
        assert masks.pair_seed(common, context).hex() == told["pair_seed"]
    assert masks.self_seed(a, context).hex() == told["self_seed_a"]


@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("entries", [1, 7, 8192, 8193, 16384, 40001])
def test_masks_are_the_stream_of_their_key(kind, entries):
    total = np.arange(entries, dtype=kind)
    masks.add_words(total, bytes(range(32)), 1)
    expected = np.arange(entries, dtype=kind) + stream(
        bytes(range(32)), 0, entries, kind
    )
    np.testing.assert_array_equal(total, expected)
    masks.add_words(total, bytes(range(32)), -1)
    np.testing.assert_array_equal(total, np.arange(entries, dtype=kind))


def test_secrets_differ_in_everything_they_depend_on():
    base = (b"s" * 32, KEY, "run", 1, 2)
    changed = [
        (b"t" * 32, KEY, "run", 1, 2),
        (b"s" * 32, SELF, "run", 1, 2),
        (b"s" * 32, KEY, "other", 1, 2),
        (b"s" * 32, KEY, "run", 2, 2),
        (b"s" * 32, KEY, "run", 1, 3),
        (b"s" * 32, KEY, "run", 12, 2),
    ]
    made = {masks.round_secret(*parts) for parts in (base, *changed)}
    assert len(made) == 7 and all(len(secret) == 31 for secret in made)


def test_the_context_differs_in_everything_it_depends_on():
    base = ("run", b"roster", 1, 0, b"question")
    changed = [
        ("other", b"roster", 1, 0, b"question"),
        ("run", b"other", 1, 0, b"question"),
        ("run", b"roster", 2, 0, b"question"),
        ("run", b"roster", 1, 1, b"question"),
        ("run", b"roster", 1, 0, b"other"),
    ]
    assert len({masks.context_of(*parts) for parts in (base, *changed)}) == 6


def everybody(names: list[str], copied: dict[str, str]) -> dict[str, dict[str, bytes]]:
    """What everybody shares with everybody; some publish another's key as their own."""
    secrets = {n: n.encode().ljust(31, b".") for n in names}
    publics = {n: masks.public_key(secrets[copied.get(n, n)]) for n in names}
    return {
        n: masks.shared(secrets[n], {o: publics[o] for o in names if o != n})
        for n in names
    }


def test_a_copied_key_does_not_make_masks_cancel_in_a_letter():
    commons = everybody(["0", "1", "2", "3"], copied={"0": "2"})
    context = b"c" * 32
    assert commons["1"]["0"] == commons["1"]["2"]  # the copy
    both = np.zeros(50, np.uint32)
    two = {name: commons["1"][name] for name in ("0", "2")}
    masks.add_pair_masks(both, "1", two, context)
    assert np.count_nonzero(both) == 50


def test_masks_of_different_contexts_do_not_cancel():
    commons = everybody(["a", "b"], {})
    total = np.zeros(50, np.uint64)
    masks.add_pair_masks(total, "a", commons["a"], b"c" * 32)
    masks.add_pair_masks(total, "b", commons["b"], b"d" * 32)
    assert np.count_nonzero(total) == 50
    masks.add_pair_masks(total, "b", commons["b"], b"c" * 32)
    masks.add_pair_masks(total, "a", commons["a"], b"d" * 32)
    assert not total.any()


def test_the_low_order_keys_are_those_that_the_library_refuses():
    for value in LOW_ORDER:
        with pytest.raises(ValueError):
            masks.shared(b"s" * 31, {"liar": value.to_bytes(32, "little")})
    for value in range(2, 40):
        masks.shared(b"s" * 31, {"liar": value.to_bytes(32, "little")})
    masks.shared(b"s" * 31, {"liar": (PRIME - 2).to_bytes(32, "little")})
