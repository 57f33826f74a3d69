"""The run file: its tables and keys, and how it is read and refused.

Keys are checked here by name and by kind; what a value means for a problem or an
algorithm is checked where those are built.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tacita.check import LARGEST_SEED, TacitaError, nearest, refuse
from tacita.mesh.devices import BLOCKS


class _Table(BaseModel):
    """A table of the run file: kinds are exact, unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _OpenTable(_Table):
    """A table that may also have the options of what it names."""

    model_config = ConfigDict(extra="allow", strict=True)

    @property
    def options(self) -> dict[str, Any]:
        """The keys that belong to what the table names."""
        return dict(self.model_extra or {})


Named = str | dict[str, Any] | None
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Number = int | float


class ProblemTable(_OpenTable):
    """[problem]: what is solved. Further keys are options of the data set."""

    data: str = Field(
        description='a data set (see "tacita data list"), "synthetic-logistic", '
        '"synthetic-linear", or the path of a .csv or .parquet file'
    )
    model: Named = Field(
        None,
        description='"linear", "ridge", "huber", "absolute", "logistic", "hinge", '
        '"softmax", "moments", or a table such as { name = "mlp", hidden = [32] } or '
        '{ name = "by_agent", linear = ["a"], huber = ["b"] }',
    )
    l2: float = Field(0.0, description="a number >= 0", ge=0)
    h: Named = Field(None, description='a table such as { kind = "l1", weight = 0.01 }')
    regulariser: Named = Field(
        None, description='a table such as { kind = "non_convex", weight = 0.01 }'
    )
    split: Named = Field(
        None,
        description='a table such as { kind = "dirichlet", agents = 10, alpha = 0.3 }',
    )
    graph: Named = Field(None, description='a table such as { kind = "ring" }')
    intercept: bool = Field(False, description="true or false")
    dtype: Literal["float32", "float64"] | None = Field(
        None, description='"float32" or "float64"'
    )
    bound: float | None = Field(None, description="a number > 0", gt=0)
    weights: Literal["samples"] | list[float] | None = Field(
        None, description='"samples", or a list with one number >= 0 per agent'
    )
    seed: Seed = Field(0, description="a whole number >= 0, below 2^63")


class AlgorithmTable(_OpenTable):
    """[algorithm]: how. Further keys are the fields of the algorithm."""

    name: str = Field(description='an algorithm (see "tacita algorithms")')


class RunTable(_Table):
    """[run]: how long, with whom, what is recorded."""

    rounds: int = Field(description="a whole number >= 1, such as 200", ge=1)
    seed: Seed | None = Field(None, description="a whole number >= 0, below 2^63")
    seeds: (
        Annotated[Seed, Field(ge=1)] | Annotated[list[Seed], Field(min_length=1)] | None
    ) = Field(
        None, description="a whole number of seeds >= 1, or a list such as [1, 2, 3]"
    )
    participation: Number | list[Number] = Field(
        1.0,
        description="a probability in (0, 1] such as 0.5, a whole number of agents, "
        "or a list with one probability per agent",
    )
    record: list[str] | None = Field(
        None, description='a list of metrics such as ["loss", "accuracy"]'
    )
    record_every: Annotated[int, Field(ge=1)] | None = Field(
        None, description="a whole number >= 1"
    )
    stop: Annotated[dict[str, Number], Field(min_length=1, max_length=1)] | None = (
        Field(
            None, description="a table with one metric, such as { grad_norm_sq = 1e-8 }"
        )
    )
    asynchronous: dict[str, Any] | None = Field(
        None,
        description="a table such as { mean = [1.0, 1.0, 9.0] }, how long letters of "
        "FedBuff and FedAsync take, or on a graph { most_delay = 10, lost = 0.1 }",
    )
    aggregation: Named = Field(
        None,
        description='a rule that joins letters, such as "Mean", or "secure"; a secure '
        "sum with numbers is a table [secure] of its own",
    )
    attack: dict[str, Any] | None = Field(
        None,
        description='a table such as { name = "SignFlip", agents = [8, 9] }',
    )
    watch: bool = Field(False, description="true or false")
    mapping: Literal["auto", "together", "one_by_one"] = Field(
        "auto", description='"auto", "together" or "one_by_one"'
    )


class PrivacyTable(_Table):
    """[privacy]: the budget that the run has to keep."""

    epsilon: float = Field(description="a number > 0, such as 1.0", gt=0)
    delta: float = Field(description="a number in (0, 1), such as 1e-5", gt=0, lt=1)
    observer: Literal[
        "final_model", "coordinator", "colluders", "neighbour", "eavesdropper"
    ] = Field(description='who looks, such as "coordinator" or "final_model"')
    unit: Literal["record", "client"] = Field(
        "record", description='"record" or "client"'
    )


class MeshTable(_Table):
    """[mesh]: the devices that share the work."""

    devices: int | None = Field(
        None, description="1, 2, 4, 8 or another power of two", ge=1
    )
    blocks: int = Field(
        BLOCKS, description="a power of two such as 64, at least the devices", ge=1
    )


class RunFile(_Table):
    """A whole run file."""

    name: str | None = Field(
        None,
        description=(
            'letters, digits, ".", "_" and "-", at most 100, not starting with a sign'
        ),
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?$",
    )
    problem: ProblemTable = Field(description="a table [problem]")
    algorithm: AlgorithmTable = Field(description="a table [algorithm]")
    run: RunTable = Field(description="a table [run]")
    secure: dict[str, Any] | None = Field(
        None, description="a table [secure] such as least = 16 and colluding = 2"
    )
    privacy: PrivacyTable | None = Field(
        None, description="a table [privacy] with epsilon, delta and observer"
    )
    mesh: MeshTable | None = Field(
        None, description="a table [mesh] such as devices = 4"
    )


def read(path: Path) -> dict[str, Any]:
    """Read a run file as plain tables; what a finished run added is left out."""
    table = read_toml(path)
    table.pop("resolved", None)
    return table


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of TOML, or refuse it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror or error}; check the path")
    except UnicodeDecodeError:
        refuse(f"cannot read {path}: it is not text in UTF-8; name a .toml file")
    except tomllib.TOMLDecodeError as error:
        refuse(f"{path} is not valid TOML: {error}; correct that line")
    except (RecursionError, ValueError):  # nested without end, numbers without end
        refuse(f"{path} holds more than a file of settings may; write a plain one")


def validate(table: dict[str, Any]) -> RunFile:
    """Check names and kinds of all keys; all that is wrong is told at once."""
    if "federation" in table:
        refuse(
            "this run took place in a federation, whose rows are with its parties: it "
            "cannot be built again here"
        )
    try:
        return RunFile.model_validate(table)
    except ValidationError as error:
        found = [_line(dict(one), table) for one in error.errors(include_url=False)]
        # An entry of a list and the list itself tell the same.
        raise TacitaError("\n".join(dict.fromkeys(found))) from None


def _line(one: dict[str, Any], given: Any) -> str:
    """What is wrong: the key, its value, the remedy."""
    names, table, field = _place(one["loc"])
    key = ".".join(names)
    wanted = "something else" if field is None else field.description
    if one["type"] == "missing":
        return f"missing key {key}; add {wanted}"
    for name in names:
        given = given[name]
    words = repr(given)
    shown = words if len(words) <= 60 else words[:57] + "..."
    if one["type"] == "extra_forbidden":
        return f"unknown key {key} = {shown}; {nearest(names[-1], table.model_fields)}"
    return f"{key} = {shown}: expected {wanted}"


def _place(location: tuple[Any, ...]) -> tuple[list[str], type[BaseModel], Any]:
    """The key, the table that it is in, and its field if it has one."""
    names: list[str] = []
    table: type[BaseModel] = RunFile
    field = None
    for part in location:
        names.append(str(part))
        field = table.model_fields.get(str(part))
        inner = None if field is None else _table_in(field.annotation)
        if inner is None:
            break  # what follows is a place within a list
        if len(names) < len(location):
            table = inner
    return names, table, field


def _table_in(kind: Any) -> type[BaseModel] | None:
    """The table that a field holds, needed or not."""
    for one in (kind, *get_args(kind)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
    return None
