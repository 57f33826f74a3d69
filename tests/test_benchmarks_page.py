"""docs/benchmarks.md is what the command makes of the raw results."""

from __future__ import annotations

import json
import sys

import numpy as np

from bench import page
from bench.mesh_works import WORKS
from bench.peers_works import PLAIN, PRIVATE
from bench.turns import RESULTS, Peers, in_turns, table

OPACUS = {"Opacus", "Opacus, ghost"}


def test_the_page_is_made_of_raw_results():
    assert page.page() == page.PAGE.read_text()


def test_medians_and_ratios_are_those_of_the_raw_results():
    times = {"bare": [4.0, 2.0, 3.0], "ours": [1.0, 9.0, 1.5]}
    lines = page._table(times, "bare")  # pyright: ignore
    assert lines[2:] == [
        "| bare | 3 | 2.5 to 3.5 | 1.00 |",
        "| ours | 1.5 | 1.25 to 5.25 | 0.50 |",
    ]
    assert "0.50 x bare" in table("title", times, "bare")


def test_speed_beyond_one_core_is_against_one_core_and_one_device():
    found = {
        "milliseconds": {"one core": [4.0], "one device": [3.0], "2 devices": [2.0]},
        "processor milliseconds": {
            name: [4.0] for name in ("one core", "one device", "2 devices")
        },
        "same bits": {"one core": True, "one device": True, "2 devices": False},
    }
    lines = page._mesh_table(found)  # pyright: ignore
    assert lines[-1] == "| 2 devices | 2 | 2 to 2 | 4 | 2.00 x | 1.50 x | others |"
    kept = RESULTS / "mesh.json"
    assert not kept.exists() or set(json.loads(kept.read_text())["works"]) == set(WORKS)


def test_every_work_has_its_peers_and_as_many_turns_of_each():
    works = json.loads((RESULTS / "networks.json").read_text())["works"]
    assert {*PLAIN, *PRIVATE} < set(works)
    for title, found in works.items():
        times = found["milliseconds"]
        assert {"tacita", "bare JAX"} < set(times)
        assert len({len(turns) for turns in times.values()}) == 1
        assert np.min([*times.values()]) > 0
        assert ("PyTorch" in times) == (title in PLAIN)
        assert ("Opacus" in times) == (title in PRIVATE)


def test_contestants_take_turns():
    order = []

    def turn(name: str) -> float:
        order.append(name)
        return 1.0

    found = in_turns({n: lambda n=n: turn(n) for n in "ab"}, repeats=2)
    assert "".join(order) == "ab" + "ab" * 2 and found["a"] == [1.0, 1.0]


def test_an_interpreter_tells_what_it_can_do():
    """Nothing, where no peer is installed; this one has at most some of them."""
    peers = Peers(sys.executable)
    peers.close()
    assert set(peers.works) <= {"PyTorch", "pfl", "FedJAX", "jax-privacy"} | OPACUS
    assert peers.turns("no such work") == {}
