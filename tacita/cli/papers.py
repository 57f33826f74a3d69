"""`tacita papers`: run the tables and figures of papers again.

A paper is a folder of `papers/`, next to the package or in the current directory; a
table or figure is a script of it with a function `main`. Both are named with dashes:
`papers/fed_plt/table_2.py` is `fed-plt/table-2`.
"""

from __future__ import annotations

import ast
import inspect
import runpy
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import tacita
from tacita.cli.show import show

app = typer.Typer(
    no_args_is_help=True,
    help="List and run the tables and figures of papers.",
    epilog="Example:  tacita papers run fed-plt/table-9 --repetitions 5",
)


class Script(NamedTuple):
    """A table or figure that can be run."""

    words: str
    path: Path


@app.command("list", epilog="Example:  tacita papers list")
def list_all() -> None:
    """List the tables and figures that can be run."""
    rows = [(name, script.words) for name, script in find().items()]
    show(("name", "what it shows"), rows)


@app.command(
    "run",
    epilog="Example:  tacita papers run dp-norm/figure-7 --rounds 2000 --splits 2 "
    "--seeds 3 --resume",
)
def run(
    name: Annotated[
        str, typer.Argument(help='A name that "tacita papers list" shows.')
    ],
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Repetitions to average; the paper's if left out."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds, where a script lets one choose.")
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(min=1, help="Splits of the data, where a script lets one choose."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds, where a script lets one choose.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(help="small or paper, where a script lets one choose."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Keep raw results that are there, go on with the others."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to; the paper's own if left out."),
    ] = None,
) -> None:
    """Run a table or figure and write its page, with the paper's numbers beside ours.

    On a terminal, bars show how far it is. Long scripts keep raw results in parts and
    use all cores: stopped ones go on with --resume, and where all parts are there it
    only draws the page again.
    """
    from tacita.report import numbers

    scripts = find()
    if name not in scripts:
        tacita.check.refuse(
            f"unknown paper script {name!r}; {tacita.check.nearest(name, scripts)}"
        )
    if out is not None and out.is_file():
        tacita.check.refuse(f"--out {out} is a file; name a folder")
    main = _main_of(scripts[name])
    given: dict[str, Any] = {
        "repetitions": repetitions,
        "rounds": rounds,
        "splits": splits,
        "seeds": seeds,
        "size": size,
        "resume": resume or None,
        "out": out,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    for key in chosen.keys() - inspect.signature(main).parameters.keys():
        tacita.check.refuse(f"{name} takes no --{key}; leave it out")
    began = time.perf_counter()
    written = main(**chosen)
    took = numbers.seconds(time.perf_counter() - began)
    typer.echo(f"written in {took}: {written}")


def folders() -> list[Path]:
    """Where papers are looked for."""
    beside = Path(__file__).resolve().parents[2] / "papers"
    return list(dict.fromkeys((beside, Path.cwd() / "papers")))


def find() -> dict[str, Script]:
    """All scripts by name; those next to the package come first."""
    found: dict[str, Script] = {}
    for folder in folders():
        for path in folder.glob("*/*.py"):
            words = _told_by(path)
            if words is not None:
                paper = path.relative_to(folder).parts[0]
                name = f"{paper}/{path.stem}".replace("_", "-")
                found.setdefault(name, Script(words, path))
    if not found:
        looked = " or ".join(map(str, folders()))
        tacita.check.refuse(
            f"no scripts of papers in {looked}; go to a checkout of Tacita, which has "
            "them, and run again"
        )
    return dict(sorted(found.items()))


def _told_by(path: Path) -> str | None:
    """The first line of a script's docstring; None for a file without a `main`."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "main" not in defined:
        return None
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def _main_of(script: Script) -> Any:
    """The script's `main`; what it imports of `papers` is found from its own folder."""
    papers = next(p for p in script.path.parents if p.name == "papers")
    root = str(papers.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return runpy.run_path(str(script.path))["main"]
