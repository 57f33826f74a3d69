"""Agents on graphs, on one, two and four devices: see test_mesh.

python -m tests.mesh.graphs_on_devices quick|every
"""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np

import tacita
from tacita import keys, robust
from tacita.aggregation import Median
from tacita.problem import graph
from tacita.problem.graph import letters_across
from tacita.runtime import engine
from tacita.runtime.devices import spread_of
from tacita.runtime.ready import make_plan, make_world, prepare
from tacita.trees import in_double_precision
from tests.mesh.on_devices import compiles_once, on, refused, resumed, unequal

FEATURES = 3


def problem_on(network: graph.Graph, dtype: Any = np.float64) -> tacita.Problem:
    return replace(unequal(network.n_nodes, dtype), graph=network)


@in_double_precision
def numbers_sent(problem: Any, algorithm: Any, devices: int) -> tuple[int, int]:
    """Numbers of letters that cross in a round, and those gathered everywhere.

    Read off the program that is compiled, in which a round stands once.
    """
    ready = prepare(problem, algorithm)
    plan = make_plan(problem, ready, (), None, None)
    world, mesh = make_world(problem, ready, 1.0), tacita.Mesh(devices=devices)
    spread = spread_of(mesh, problem, ready, world, plan, 0)
    assert spread is not None
    plan = replace(plan, spread=spread)
    laid = spread.lay(world, ready, keys.from_seed(0), False)
    carry = engine.begin(plan, *laid, problem.start)
    book = spread.lay_whole(np.zeros((0, engine.CAPACITY)), spread.spec_of_book)
    program = engine.advance.of(laid[0], ready)
    text = program.lower(plan, *laid, 0, carry, book, 1, 1, 0.0, None).as_text()
    sent = 0
    for line in text.splitlines():
        if "collective_permute" in line:
            pairs, shape = re.findall(r"tensor<([0-9x]+)x[a-z]+[0-9]+>", line)[:2]
            sent += int(pairs.split("x")[0]) * math.prod(map(int, shape.split("x")))
    gathered = sum("all_gather" in line for line in text.splitlines())
    return sent, gathered


def crossing() -> dict[str, bool]:
    """The program sends what crosses the cut, and no more."""
    found = {}
    for name, network in {"ring": graph.ring(16), "grid": graph.grid(8, 4)}.items():
        for devices in (2, 4):
            problem = problem_on(network)
            one_for_all = numbers_sent(problem, tacita.FedGD(alpha=0.1), devices)
            letters = letters_across(network, devices)
            key = f"numbers that cross a {name} on {devices}"
            found[key] = one_for_all == (letters * FEATURES, 0)
    per_edge = tacita.GossipSGD(step_size=0.1)
    letters = letters_across(graph.ring(16), 4, per_edge=True)
    sent = numbers_sent(problem_on(graph.ring(16)), per_edge, 4)
    found["numbers along edges"] = sent == (letters * FEATURES, 0)
    return found


def quick() -> dict[str, bool]:
    """What is looked at first."""
    ring, grid = problem_on(graph.ring(10)), problem_on(graph.grid(5, 4))
    regular = problem_on(graph.random_regular(20, degree=4))
    descent = tacita.FedGD(alpha=0.4, step_size=0.2)
    noisy = tacita.Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0))
    gossip = tacita.GossipSGD(step_size=0.2, local_steps=2, oracle=noisy)
    late = tacita.Asynchronous(most_delay=3)
    liars = {"attack": robust.SignFlip(agents=(1,)), "aggregation": Median()}
    apart = graph.Graph.from_edges(8, [(0, 1), (2, 3), (4, 5), (6, 7)])
    return {
        "sums, nodes that fill up": on((4,), ring, descent),
        "letters along edges, a private run of some": on(
            (4,), grid, gossip, participation=0.5
        ),
        "resumed on fewer devices": resumed(ring, descent),
        "no second compilation": compiles_once(ring, descent),
        "letters that come late": refused(
            "come late", ring, gossip, 3, mesh=2, asynchronous=late
        ),
        "liars in a cohort": refused(
            "one by one", regular, descent, 3, mesh=2, participation=3, **liars
        ),
        "several parts": refused("4 parts", problem_on(apart), descent, 3, mesh=2),
        **crossing(),
    }


def every() -> dict[str, bool]:
    """Graphs of every shape; rules, liars, seeds and single precision."""
    from tests.cases import noisy

    descent = tacita.FedGD(alpha=0.4, step_size=0.05)
    edges = tacita.GossipSGD(step_size=0.1, local_steps=2, oracle=noisy(0.05))
    apart = graph.Graph.from_edges(8, [(0, 1), (2, 3), (4, 5), (6, 7)])
    networks = {
        "ring": graph.ring(14),
        "grid": graph.grid(9, 7),
        "star": graph.star(200),
        "random": graph.erdos_renyi(60, edges=200),
    }
    found = {}
    for name, network in networks.items():
        problem = problem_on(network)
        found[f"sums, {name}"] = on((2, 4), problem, descent, True)
        if name != "star":
            found[f"edges, {name}"] = on((2, 4), problem, edges, True)
    grid = problem_on(graph.grid(6, 4))
    relax = tacita.FedRelax(alpha=0.4)
    found["K of N"] = on((2, 4), grid, relax, True, participation=5)
    found["few of many"] = on(
        (4,), problem_on(graph.ring(200)), descent, True, participation=0.02
    )
    local = replace(descent, need_connected=False)
    found["parts without a border"] = on((2, 4), problem_on(apart), local)
    found["single precision"] = on(
        (4,), problem_on(graph.grid(6, 4), np.float32), descent
    )
    found["seeds"] = on((4,), grid, descent, seeds=6)
    found["one seed"] = on((4,), grid, descent, seeds=1)
    regular, rule = problem_on(graph.random_regular(20, degree=4)), Median()
    found["a rule"] = on((2, 4), regular, descent, True, aggregation=rule)
    found["a rule, K of N"] = on(
        (4,), regular, descent, True, aggregation=rule, participation=5
    )
    for attack in (robust.SignFlip(agents=(1, 9)), robust.Dissensus(agents=(1, 9))):
        found[f"a rule, {type(attack).__name__}"] = on(
            (4,), regular, descent, True, aggregation=rule, attack=attack
        )
    starts = np.random.default_rng(0).standard_normal((24, FEATURES))
    found["own starts, a reference"] = on(
        (4,), grid, descent, start=starts, record=("error",), reference=starts
    )
    return found


if __name__ == "__main__":
    tacita.use_cores(4)
    print(json.dumps({"quick": quick, "every": every}[sys.argv[1]]()))
