"""A sample of `python -m bench.fuzz`: nothing but reading and refusing happens."""

from __future__ import annotations

from bench.fuzz import TARGETS, fuzz


def test_a_few_thousand_spoilt_inputs_do_no_harm():
    tally = fuzz(inputs=3_000, seed=7)
    assert {name: tally[f"{name} failed"] for name in TARGETS} == dict.fromkeys(
        TARGETS, 0
    )
    # Of every kind some were good enough to be read, and some were refused.
    for name in TARGETS:
        assert tally[f"{name} read"] > 0 and tally[f"{name} refused"] > 0, name
