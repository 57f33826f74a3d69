"""docs/benchmarks.md, made of raw results: every work beside its peers.

    python -m bench.page

Results are those that `bench.networks`, `bench.clipping` and `bench.mesh` left in
bench/results.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.turns import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
#: By file of results: title, what it is about, whom others are compared with.
PARTS = {
    "networks": (
        "Networks",
        "One step of batch 20. Tacita takes its steps inside rounds of FedAvg, with "
        "all that the engine does; bare JAX calls one compiled step after the other, "
        "with parameters in a tree and gradients as JAX makes them, as one writes it "
        "by hand. PyTorch is a loop of steps on one thread. pfl and FedJAX run rounds "
        "of their own FedAvg. Private steps clip every record to norm 1 and add "
        "Gaussian noise.",
        "bare JAX",
    ),
    "clipping": (
        "What privacy costs small models",
        "One round of FedAvg, plain, with every record clipped, and with noise in "
        "every local gradient besides.",
        "plain",
    ),
}
MESH = """\
## Beyond one core

A round by the wall clock, and what it takes of all processors together. One core: a
process that may use no other. One device: XLA uses threads on all cores inside large
operations, but not for everything. Several devices and several processes share the
agents, or the seeds, as [many cores and many machines](how-to-run-on-many-machines.md)
says. The engine's choice is what runs that say nothing of it get.
"""
HEAD = """\
# Benchmarks

<!-- made by python -m bench.page: change that, not this -->

Milliseconds of processor time unless a table says otherwise, medians and quartiles.
Contestants take turns, so that whatever slows the machine slows all of them alike:
compare within a table. The raw figures are in `bench/results`.

To repeat it, make virtual environments for the peers, which Tacita never installs
beside itself, and name them:

<!-- not run: takes minutes, and needs the network -->
```sh
python -m venv peers && peers/bin/pip install '.[bench]'
python -m venv pfl && pfl/bin/pip install torch pfl
python -m bench.networks --peers peers/bin/python --peers pfl/bin/python
python -m bench.clipping
python -m bench.mesh
python -m bench.page
```

pfl may need an environment of its own: it asks for an older `dp-accounting`.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, *(part(name) for name in PARTS)]
    if (RESULTS / "mesh.json").exists():  # wants a machine that is quiet
        parts.append(mesh_part())
    return "\n".join(parts)


def part(name: str) -> str:
    """One file of results."""
    title, about, against = PARTS[name]
    kept = json.loads((RESULTS / f"{name}.json").read_text())
    lines = [f"## {title}", "", about, "", f"{_machine(kept)}", ""]
    for work, found in kept["works"].items():
        told = found["about"]
        lines += [f"### {work}", "", f"{told[0].upper()}{told[1:]}.", ""]
        lines += [*_table(found["milliseconds"], against), ""]
    return "\n".join(lines)


def mesh_part() -> str:
    """What `bench.mesh` left."""
    kept = json.loads((RESULTS / "mesh.json").read_text())
    lines = [MESH, _machine(kept), ""]
    for work, found in kept["works"].items():
        told = found["about"]
        lines += [f"### {work}", "", f"{told[0].upper()}{told[1:]}.", ""]
        lines += [*_mesh_table(found), ""]
    return "\n".join(lines)


def _mesh_table(found: dict[str, Any]) -> list[str]:
    """By contestant, how much faster it is than one core and than one device."""
    clock, processor = found["milliseconds"], found["processor milliseconds"]
    one_core, one_device = (np.median(clock[n]) for n in ("one core", "one device"))
    lines = [
        "| | ms by the clock | quartiles | ms of processors | faster than one core | "
        "faster than one device | bits |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, times in clock.items():
        low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
        lines.append(
            f"| {name} | {middle:.3g} | {low:.3g} to {high:.3g} | "
            f"{np.median(processor[name]):.3g} | {one_core / middle:.2f} x | "
            f"{one_device / middle:.2f} x | "
            f"{'the same' if found['same bits'][name] else 'others'} |"
        )
    return lines


def _machine(kept: dict[str, Any]) -> str:
    machine = kept["machine"]
    versions = ", ".join(f"{n} {v}" for n, v in sorted(kept["versions"].items()))
    return (
        f"By `{kept['command']}` on {machine['cores']} cores of "
        f"{machine['processor']}, {machine['system']}, Python {machine['python']}, at "
        f"a load of {machine['load before']} before. Versions: {versions}."
    )


def _table(times: dict[str, list[float]], against: str) -> list[str]:
    lines = [f"| | ms | quartiles | x {against} |", "| --- | --- | --- | --- |"]
    base = float(np.median(times[against]))
    for name, found in times.items():
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        spread = f"{low:.3g} to {high:.3g}"
        lines.append(f"| {name} | {middle:.3g} | {spread} | {middle / base:.2f} |")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page())
