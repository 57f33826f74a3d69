"""The notebooks, run again: `python -m tests.notebooks` keeps what they show."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
_SECONDS = 300


def execute(path: Path) -> Any:
    """The notebook with what its cells show, run in an empty folder."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    with tempfile.TemporaryDirectory() as place:
        # Where a kernel keeps its own files is no part of the notebook.
        os.environ["IPYTHONDIR"] = f"{place}/ipython"
        work = Path(place, "work")
        work.mkdir()
        nbclient.NotebookClient(
            notebook,
            timeout=_SECONDS,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": str(work)}},
        ).execute()
    return tidied(notebook)


def tidied(notebook: Any) -> Any:
    """The notebook without what depends on the machine: its Python, and bars."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [o for o in cell.outputs if "<progress" not in str(o)]
    return notebook


def words_of(notebook: Any) -> list[str]:
    """Everything in words that the cells show."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            shown = {
                k: v for k, v in output.get("data", {}).items() if "image" not in k
            }
            found += [*shown.values(), output.get("text", "")]
    return [words for words in found if words]


def faults(notebook: Any) -> list[str]:
    """What no notebook may show: errors, warnings, paths of a machine."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"{output.output_type} in {cell.source[:60]!r}")
    for words in words_of(notebook):
        found += re.findall(r"(?:/home|/root|/tmp|/work|/Users)/\S+", words)
    return found


def main() -> None:
    """Run all, and keep what they show."""
    import nbformat

    for path in NOTEBOOKS:
        done = execute(path)
        assert not faults(done), faults(done)
        nbformat.write(done, path)
        print(path.name)


if __name__ == "__main__":
    main()
