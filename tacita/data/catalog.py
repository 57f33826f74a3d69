"""What is known about a data set before it is read: files, sources, licence, citation.

A checksum is pinned for the *content* of every file. A file whose name ends in `.gz`
is checked after decompression, so that copies whose gzip headers differ (the name and
time of whoever compressed them) are all accepted, and a changed byte is not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from tacita.data.unpack import Step, step_of

Task = Literal["classification", "regression"]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One place a file is published at, and the steps from there to its content.

    Attributes:
        url: Address of what is published: the file, or an archive that holds it.
        unpack: Steps applied in order to the payload; their result is the content.
    """

    url: str
    unpack: tuple[Step, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file of a data set.

    Attributes:
        path: Where it lies in the data folder, with forward slashes.
        size: Bytes of its content (decompressed if the path ends in `.gz`).
        sha256: Checksum of that content.
        sources: Where it can be downloaded from, tried in order.
    """

    path: str
    size: int
    sha256: str
    sources: tuple[Source, ...]

    @property
    def compressed(self) -> bool:
        """Whether the file is kept compressed."""
        return self.path.endswith(".gz")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set of the catalogue.

    Attributes:
        name: The name `load` knows it by.
        summary: What it holds and what is predicted, in one line.
        task: The kind of target.
        agents: What one agent is, or how to split it where nothing is natural.
        licence: Terms under which the data may be used.
        citation: What to cite.
        home: The page that describes it.
        classes: Names of its classes; empty where its files name them.
        parties: Where several own its columns: the columns of each.
        files: Its files; empty if scikit-learn brings it.
    """

    name: str
    summary: str
    task: Task
    agents: str
    licence: str
    citation: str
    home: str
    classes: tuple[str, ...] = ()
    parties: Mapping[str, list[str]] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()

    @property
    def megabytes(self) -> float:
        """Size of all files, decompressed, in millions of bytes."""
        return sum(file.size for file in self.files) / 1e6

    def __str__(self) -> str:
        kept = f"{len(self.files)} files, {self.megabytes:.1f} MB decompressed"
        return "\n".join(
            [
                f"{self.name}: {self.summary}",
                f"  task      {self.task}",
                f"  agents    {self.agents}",
                f"  licence   {self.licence}",
                f"  cite      {self.citation}",
                f"  home      {self.home}",
                f"  files     {kept if self.files else 'bundled with scikit-learn'}",
            ]
        )


def _file(path: str, urls: list[str], unpack: Any = (), **pin: Any) -> DataFile:
    steps = tuple(map(step_of, unpack))
    sources = tuple(Source(url=url, unpack=steps) for url in urls)
    return DataFile(path=path, sources=sources, **pin)


def _entries() -> dict[str, Entry]:
    text = resources.files("tacita.data").joinpath("catalogue.toml").read_text("utf-8")
    return {
        name: Entry(
            name=name,
            classes=tuple(told.pop("classes", ())),
            files=tuple(_file(**file) for file in told.pop("files", ())),
            **told,
        )
        for name, told in tomllib.loads(text).items()
    }


#: Every data set by its name.
ENTRIES = _entries()
