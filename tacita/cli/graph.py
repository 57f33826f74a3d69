"""`tacita graph`: who is alike among the agents of a run file, or of a federation."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tacita
from tacita.cli.options import Changes

if TYPE_CHECKING:
    from tacita.problem.graph import Graph

EXAMPLE = "Example:  tacita graph run.toml --discrepancy wald --k 4"


def graph(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="A run file, a run folder, or a coordinator's folder of a run that "
            "kept its letters.",
        ),
    ],
    discrepancy: Annotated[
        str,
        typer.Option(
            help="parameters, gradient, labels, moments, label_overlap, cross_loss, "
            "wald or chow."
        ),
    ] = "parameters",
    method: Annotated[
        str,
        typer.Option(help="nearest, budget, regular, at_least, log_degree or test."),
    ] = "nearest",
    k: Annotated[int | None, typer.Option(help="Neighbours of a node; 4.")] = None,
    mutual: Annotated[
        bool, typer.Option("--mutual", help="Of nearest: both ends must want an edge.")
    ] = False,
    connected: Annotated[
        bool, typer.Option("--connected", help="Of budget: a spanning tree first.")
    ] = False,
    edges: Annotated[
        float | None, typer.Option(help="Of budget: how many; of at_least: at most.")
    ] = None,
    level: Annotated[
        float | None, typer.Option(help="Of test: the share of false findings; 0.05.")
    ] = None,
    weights: Annotated[str, typer.Option(help="own, gaussian or inverse.")] = "own",
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose k and alpha by held-out rows.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="Learn it from noisy letters of this budget.")
    ] = None,
    delta: Annotated[
        float, typer.Option(help="The chance of exceeding the budget.")
    ] = 1e-5,
    norm: Annotated[
        float, typer.Option(help="What records' gradients are clipped to.")
    ] = 1.0,
    ledger: Annotated[
        Path | None,
        typer.Option(help="With --epsilon: charged with every node's letter."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; runs/graph-1, -2, ... if left out."),
    ] = None,
    change: Changes = None,
) -> None:
    """Learn a graph in which agents that are alike are joined.

    Tells how well it is connected, draws it beside the map of the agents, and writes
    its edges for `problem.graph` of a run file and for `[graph]` of a federation.
    """
    how: dict[str, Any] = {
        "mutual": mutual or None,
        "connected": connected or None,
        "edges": edges,
        "level": level,
        "weights": weights,
    }
    if out is not None:
        tacita.job.folder.refuse_used(out)
    if ledger is not None and (epsilon is None or not ledger.is_file()):
        tacita.check.refuse(
            f"--ledger {ledger}: expected the file of a ledger that allows every node "
            "its letter, and --epsilon, what that costs"
        )
    positions, folder = None, out or tacita.job.folder.next_free("graph")
    if (path / "models.npz").is_file():
        made = _of_letters(path, method, k, how)
    else:
        file = path / "config.toml" if path.is_dir() else path
        problem = tacita.job.read_problem(file, change or ())
        positions = problem.positions
        if epsilon is not None:
            _refuse_both(tune, discrepancy)
            budget = {"epsilon": epsilon, "delta": delta, "norm": norm}
            made = _privately(problem, method, k, how | budget, ledger, folder.name)
        elif tune:
            if k is not None:
                tacita.check.refuse("--tune chooses k; leave out --k")
            asked = {"discrepancy": discrepancy, "method": method, **how}
            found = tacita.tune(problem, **asked)
            typer.echo(str(found))
            made = found.graph
        else:
            made = tacita.problem.graph.learned(problem, discrepancy, method, k, **how)
    _tell(made)
    _write(made, folder, positions)


def _refuse_both(tune: bool, discrepancy: str) -> None:
    if tune:
        tacita.check.refuse("--tune looks at rows without noise; leave out --epsilon")
    if discrepancy not in ("parameters", "gradient"):
        tacita.check.refuse(
            f"--epsilon compares noisy gradients, not {discrepancy}; leave it out"
        )


def _privately(
    problem: Any, method: str, k: int | None, how: dict, ledger: Path | None, name: str
) -> Graph:
    make = partial(tacita.variants.private_graph, problem, method, k, **how)
    if ledger is None:
        found = make()
    else:
        with tacita.privacy.Ledger(ledger) as book:
            found = make(ledger=book, run=name)
            head = book.head()
        typer.echo(f"charged under {name!r} in {ledger}, head {head}")
    row = found.privacy
    assert row.epsilon is not None
    typer.echo(
        f"whoever sees this graph learns at most epsilon {row.epsilon:.4g} (delta "
        f"{row.delta:g}) of one {row.unit}, {row.relation}: {row.theorem}"
    )
    for one in row.assumptions:
        typer.echo(f"  {one['status']}: {one['statement']}")
    return found.graph


def _of_letters(folder: Path, method: str, k: int | None, how: dict) -> Graph:
    """From the letters that a coordinator kept."""
    import numpy as np  # not for --help

    with np.load(folder / "models.npz") as models:
        if "letters" not in models:
            tacita.check.refuse(
                f"{folder} has no letters; propose the run with run.keep_letters = true"
            )
        letters = models["letters"]
    names = json.loads((folder / "result.json").read_text())["agents"]
    return tacita.problem.graph.from_vectors(letters, method, k, **how).named(names)


def _tell(made: Graph) -> None:
    parts = "connected" if made.connected else f"in {made.n_parts} parts"
    lonely = made.neighbour_counts.tolist().count(0)
    alone = f", {lonely} nodes alone" if lonely else ""
    typer.echo(f"{made.n_nodes} nodes, {made.n_edges} edges, {parts}{alone}")
    if not made.connected:
        typer.echo("FedGD and its like train on it with need_connected = false")
    typer.echo(str(tacita.problem.graph.resilience(made, losses=min(3, made.n_edges))))


def _write(made: Graph, folder: Path, positions: Any) -> None:
    import tomli_w

    picture = tacita.report.draw_graph(made, folder / "graph.png", positions)
    i, j, weights = made.pairs()
    ends = [[made.nodes[a], made.nodes[b]] for a, b in zip(i, j, strict=True)]
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("from", "to", "weight"))
        lines.writerows(
            (*pair, w) for pair, w in zip(ends, weights.tolist(), strict=True)
        )
    edges = [[str(a), str(b)] for a, b in ends]
    named = {"graph": {"edges": edges, "weights": weights.tolist()}}
    (folder / "graph.toml").write_text(tomli_w.dumps(named))
    typer.echo(f"picture: {picture}")
    # Run files mean paths from where they lie, which may be elsewhere.
    path = json.dumps(str((folder / "edges.csv").resolve()), ensure_ascii=False)
    typer.echo(f'run file: problem.graph = {{ kind = "file", path = {path} }}')
    typer.echo(f"federation: the table in {folder}/graph.toml")
