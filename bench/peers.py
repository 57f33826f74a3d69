"""Other libraries, in an interpreter of their own.

`--peers INTERPRETER` of `bench.networks` and `bench.simulator` starts it. A line on its
input, such as `["C: CNN", "PyTorch"]`, asks for one turn; the answer is the processor
time of a step, or of a round, in milliseconds. Its first line tells what it can do.
Nothing of Tacita is imported here, nor this folder as a package: any interpreter will
do.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import peers_jax
import peers_torch
from peers_works import CNN, MLP, PLAIN, PRIVATE, ROUNDS, Made

MAKERS: dict[str, tuple[str, Callable[[str], Made], Any]] = {
    "PyTorch": ("torch", peers_torch.torch_work, (*PLAIN, *ROUNDS)),
    "pfl": ("pfl", peers_torch.pfl_round, (CNN, MLP)),
    "FedJAX": ("fedjax", peers_jax.fedjax_round, (CNN, MLP)),
    "Opacus": ("opacus", partial(peers_torch.opacus_loop, ghost=False), PRIVATE),
    "Opacus, ghost": ("opacus", partial(peers_torch.opacus_loop, ghost=True), PRIVATE),
    "jax-privacy": ("jax_privacy", peers_jax.jax_privacy_loop, PRIVATE),
}


@cache
def made(work: str, name: str) -> Made:
    turn, steps = MAKERS[name][1](work)
    turn()
    return turn, steps


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # one core, as by hand; time is of processors
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever libraries print
    there = {n: m for n, m in MAKERS.items() if importlib.util.find_spec(m[0])}
    modules = {module for module, _, _ in there.values()}
    versions = {m: importlib.metadata.version(m.replace("_", "-")) for m in modules}
    if importlib.util.find_spec("jax"):
        versions["jax of peers"] = importlib.metadata.version("jax")
    works = {name: list(works) for name, (_, _, works) in there.items()}
    told: Any = {"versions": versions, "works": works}
    print(json.dumps(told), file=answers, flush=True)
    for line in sys.stdin:
        turn, steps = made(*json.loads(line))
        began = time.process_time()
        turn()
        told = (time.process_time() - began) / steps * 1e3
        print(json.dumps(told), file=answers, flush=True)
