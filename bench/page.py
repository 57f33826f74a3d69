"""docs/benchmarks.md, made of raw results: every work beside its peers.

    python -m bench.page

Results are those that the programs named on the page left in bench/results.
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
    "simulator": (
        "Small models",
        "One round of FedAvg. Bare JAX is one compiled loop of the same arithmetic; "
        "NumPy and PyTorch take all agents in batched products, as one writes it by "
        "hand, on one thread.",
        "bare JAX",
    ),
    "million": (
        "Agents that are not active",
        "A round costs what its active agents cost. What a million others add is that "
        "rows come from memory instead of caches.",
        "1,000 agents",
    ),
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
    "batches": (
        "Large batches",
        "One step by the gradient of a large batch. Tacita cuts the batch into pieces "
        "of which every array fits the processor's cache, if it built the network "
        "itself, and so knows that no row's loss depends on other rows.",
        "all rows at once",
    ),
    "clipping": (
        "What privacy costs",
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
says. The engine's choice is what runs that say nothing of it get. Bits are compared
with those of one core: inside convolutions XLA adds up by the number of its threads.
"""
HEAD = """\
# Benchmarks

<!-- made by python -m bench.page: change that, not this -->

Milliseconds of processor time on one core unless a table says otherwise, medians and
quartiles. Contestants take turns, so that whatever slows the machine slows all of them
alike: compare within a table. The raw figures are in `bench/results`.

To repeat it, make virtual environments for the peers, which Tacita never installs
beside itself, and name them:

<!-- not run: takes minutes, and needs the network -->
```sh
python -m venv peers && peers/bin/pip install '.[bench]'
python -m venv pfl && pfl/bin/pip install torch pfl
python -m bench.simulator --peers peers/bin/python
python -m bench.million
python -m bench.recording
python -m bench.first_result
python -m bench.networks --peers peers/bin/python --peers pfl/bin/python
python -m bench.resnet_profile
python -m bench.batches
python -m bench.clipping
python -m bench.mesh
python -m bench.page
```

pfl may need an environment of its own: it asks for an older `dp-accounting`.
"""


RECORDS = """\
## What records cost

Rounds that are recorded as often as is chosen where nobody says, against rounds that
are not recorded, by `python -m bench.recording`.

| | rounds between records | ms without | ms by default | x without |
| --- | --- | --- | --- | --- |"""
FIRST = """\
## The first result

Processor seconds of a new process with the run of the README, by
`python -m bench.first_result`: cold, with nothing compiled yet; warm, with the programs
that an earlier process kept; and with that cache off (`TACITA_CACHE=off`).

| | `import tacita` | the problem | `simulate` |
| --- | --- | --- | --- |"""
PROFILE = """\
## Where ResNet-10 spends its time

Its convolutions one by one, in a compiled loop as in a step, for a batch of 20:
forward, the derivative by the input, and by the kernel, which take as many
multiplications each. Nobody needs the first one's derivative by the input. "Past" are
the 1 x 1 convolutions past a block.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, part("simulator"), part("million"), records(), first_result()]
    parts += [part("networks"), profile(), part("batches"), part("clipping")]
    if (RESULTS / "mesh.json").exists():  # wants a machine that is quiet
        parts.append(mesh_part())
    return "\n".join(parts)


def records() -> str:
    """What `bench.recording` left."""
    kept = json.loads((RESULTS / "recording.json").read_text())
    rows = [
        f"| {work} | {found['record_every']:,} | {found['ms_without']:.3g} | "
        f"{found['ms_by_default']:.3g} | {found['ratio']:.2f} |"
        for work, found in kept.items()
    ]
    return "\n".join([RECORDS, *rows, ""])


def first_result() -> str:
    """What `bench.first_result` left."""
    kept = json.loads((RESULTS / "first_result.json").read_text())
    rows = [
        f"| {state} | {times['import']:.3f} | {times['problem']:.2f} | "
        f"{times['simulate']:.2f} |"
        for state, times in kept["seconds"].items()
    ]
    return "\n".join([FIRST, *rows, ""])


def profile() -> str:
    """ResNet-10, layer by layer."""
    kept = json.loads((RESULTS / "resnet_profile.json").read_text())
    layers = [_layer(one) for one in kept["layers"]]
    kinds = list(kept["layers"][0]["milliseconds"])
    lines = [f"| | input | Gflop | {' | '.join(kinds)} | Gflop/s |"]
    lines += ["| --- " * (len(kinds) + 4) + "|", *(line for line, *_ in layers)]
    every = sum(time for *_, time in layers)
    speed = sum(flops for _, flops, _ in layers) / every * 1e3
    others = {name: float(np.median(t)) for name, t in kept["others"].items()}
    product = kept["gigaflops of the product"] / others["product of matrices"] * 1e3
    told = f"""
A step takes {others["step"]:.3g} ms. Its convolutions take {every:.3g} ms of it, at
{speed:.0f} Gflop/s, and its normalisations with the ReLU behind them
{others["normalisations and ReLU"]:.3g} ms. Large matrices are multiplied at
{product:.0f} Gflop/s here: what holds it is the speed of XLA's products.
"""
    return "\n".join([PROFILE, _machine(kept), "", *lines, told])


def _layer(one: dict[str, Any]) -> tuple[str, float, float]:
    """A line of the table, how many Gflop it is of, and in how many milliseconds."""
    times = {kind: float(np.median(t)) for kind, t in one["milliseconds"].items()}
    needed = [k for k in times if (one["name"], k) != ("first", "by input")]
    total, flops = sum(times[k] for k in needed), one["gigaflops"] * len(needed)
    cells = [one["name"], f"{one['side']} x {one['side']} x {one['channels']}"]
    cells += [f"{one['gigaflops']:.3g}"]
    cells += [f"{times[k]:.3g}" if k in needed else "" for k in times]
    return f"| {' | '.join(cells)} | {flops / total * 1e3:.0f} |", flops, total


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
        f"By `{kept['command']}` on a machine with {machine['cores']} cores of "
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
