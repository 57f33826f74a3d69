"""Nothing of a row leaves but in an accounted letter: not a word, not a number.

Every value of the rows is a marker. Whatever an agent sends is opened and searched for
them; and with rows that cannot take part, it is the same, letter by letter, as with
rows that can, up to the answer that is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacita
from tacita.federation import Coordinator, Invitation, Post, PostRoom, wire
from tacita.federation.seal import Sealed
from tacita.federation.wire import Letter
from tacita.job import table_of
from tests.cases import CASES
from tests.federation.by_hand import MOST, ByHand
from tests.federation.towns import COLUMNS, LENIENT, NAMES, Town, run_of, table_of_rows
from tests.patience import HANG

ROWS = 14
RUN = run_of(rounds=3, problem={**run_of()["problem"], "dtype": "float32"})


def marked() -> pd.DataFrame:
    """Rows in which every number is one of a kind."""
    dice = np.random.default_rng(7)
    table = pd.DataFrame(dice.normal(size=(ROWS, 3)), columns=pd.Index(COLUMNS))
    return table.assign(y=np.arange(ROWS) % 2)


def with_cell(value: Any, column: str = "x1") -> pd.DataFrame:
    table = marked().astype({column: object})
    table.loc[5, column] = value
    return table if isinstance(value, str | None) else table.astype({column: float})


def file(name: str, make: Callable[[], str | bytes]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        content, path = make(), folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def csv(value: Any, column: str) -> str:
    return with_cell(value, column).to_csv(index=False)


#: Rows that cannot take part, each for another reason.
BAD: dict[str, Callable[[Path], Any]] = {
    "label": lambda _: with_cell(7106.5, "y"),
    "too large for float32": lambda _: with_cell(3.7123e38),
    "no such column": lambda _: marked().rename(columns={"x1": "secret-column"}),
    "text in a file": file("text.csv", lambda: csv("secret-text", "x1")),
    "word for a label": lambda _: with_cell("secret-word", "y"),
    "no label": lambda _: with_cell(None, "y"),
    "nan": lambda _: with_cell(math.nan),
    "infinite": lambda _: with_cell(math.inf),
    "text": lambda _: with_cell("secret-text"),
    "no rows": lambda _: marked().iloc[:0],
    "unequal": lambda _: {c: marked()[c][: ROWS - i] for i, c in enumerate(marked())},
    "nothing": lambda _: {},
    "label in a file": file("label.csv", lambda: csv(7106.5, "y")),
    "nan in a file": file("nan.csv", lambda: csv(math.nan, "x1")),
    "column twice": file("twice.csv", lambda: csv(0.5, "x1").replace("x2", "x1", 1)),
    "empty file": file("empty.csv", lambda: ""),
    "head only": file("head.csv", lambda: "x0,x1,x2,y\n"),
    "bytes": file("bytes.csv", lambda: b"\xff\xfe\x00secret\n" * 4),
    "no archive": file("rows.npz", lambda: b"secret archive"),
}
QUICK = ("label", "text in a file")


def markers(tables: Any) -> set[bytes]:
    """Every number of the rows as bytes and as text, and every word."""
    found: set[bytes] = set()
    for value in tables:
        if isinstance(value, str):
            found.add(value.encode())
            continue
        number = float(value)
        if number in (0.0, 1.0) or not math.isfinite(number):
            continue  # labels that the description names, or no number at all
        found |= {np.float64(number).tobytes(), number.hex().encode()}
        found |= {repr(number).encode(), f"{number:.5g}".encode()}
        with np.errstate(over="ignore"):
            short = np.float32(number)
        found |= {short.tobytes()} if np.isfinite(short) else set()
    return found


def leaks(letters: list[Letter], wanted: set[bytes]) -> list[tuple[str, bytes]]:
    """Kinds of letters in which a marker is found, and which."""
    texts = [(x.identity.kind, wire.encode(x)) for x in letters]
    return [(kind, one) for kind, content in texts for one in wanted if one in content]


def play(folder: Path, rows: Any, patient: bool = False) -> tuple[list[Letter], str]:
    """What an agent sends up to its first answer, or for ever; and its own error."""
    town = ByHand(folder)
    run = town.describe(RUN)
    agent = town.join("ada", rows, LENIENT)
    assert town.answer_of(run)["kind"] == "accept"
    town.consents(run)
    town.hear("done")
    if patient:
        town.hear("ask")  # alive, whatever its rows are like
        assert not agent.done()
    town.ask(run, np.zeros(3, np.float32))
    while not agent.done():
        if any(x.identity.kind == "answer" for x in town.sent):
            town.say("withdraw", "ada", run.digest)
            return town.sent, ""
        town.drain(0.05)
    town.drain(0.1)
    return town.sent, str(agent.exception())


def readable(letters: list[Letter]) -> set[tuple[str, str]]:
    """What a coordinator reads before the first release, but for how often."""
    return {(x.identity.kind, x.text) for x in letters if x.identity.kind != "answer"}


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in BAD],
)
def test_rows_that_cannot_take_part_tell_nothing(tmp_path: Path, name: str):
    sent, error = play(tmp_path, BAD[name](tmp_path))
    # Its own people are told, and only they.
    assert "these rows cannot take part, which nobody else is told" in error
    secret = markers([7106.5, 3.7123e38, "secret", *marked().to_numpy().ravel()])
    assert leaks(sent, secret) == []
    assert {x.identity.kind for x in sent} <= {"ask", "accept", "done"}
    assert not any(x.arrays for x in sent)
    log = (tmp_path / "ada-home" / "log.jsonl").read_text()
    assert '"unfit"' in log and "7106.5" not in log and "secret" not in log


def test_a_machine_that_starts_an_agent_again_does_not_try_the_same_rows(
    tmp_path: Path,
):
    """Else every new run that is offered would tell one more bit of them."""
    town = ByHand(tmp_path)
    run = town.describe(RUN)
    agent = town.join("ada", BAD["label"](tmp_path), LENIENT)
    assert town.answer_of(run)["kind"] == "accept"
    town.consents(run)
    town.ask(run, np.zeros(3, np.float32))
    assert "cannot take part" in str(agent.exception(HANG))
    town.drain(0.1)
    town.sent.clear()
    again = town.join("ada", BAD["label"](tmp_path), LENIENT)
    other = town.describe({**RUN, "run": {"rounds": 4, "shared_seed": 1}})
    town.offer(other)
    assert "they are still the same" in str(again.exception(HANG))
    town.drain(0.1)
    assert town.sent == []
    # With other rows it goes on, and turns to what is offered now.
    town.join("ada", marked(), LENIENT)
    # It may have read the offer to the one before it, and given up its run by that.
    while (heard := town.hear("ask", "accept", "refuse").identity.kind) == "ask":
        town.offer(other)
    assert heard == "accept"


@pytest.mark.few(1)
def test_good_and_bad_rows_look_the_same_until_a_letter_is_charged(tmp_path: Path):
    words = {}
    bad = BAD["too large for float32"](tmp_path)
    for name, rows in (("good", marked()), ("bad", bad)):
        sent, error = play(tmp_path / name, rows, patient=True)
        assert bool(error) == (name == "bad")
        # Keys differ between the two towns, and so do signatures.
        words[name] = {(k, t.split('"consent"')[0]) for k, t in readable(sent)}
    # Only who goes on to answer says in which round it is.
    assert words["good"] - words["bad"] == {("ask", '{"round": 0}')}
    assert words["bad"] < words["good"]


class Recorder(PostRoom):
    """Opens and keeps every letter that is posted: it has everybody's keys."""

    def __init__(self) -> None:
        super().__init__()
        self.letters: list[Letter] = []
        self.readers: dict[str, Sealed] = {}

    def __call__(self, invitation: Invitation) -> Post:
        post = super().__call__(invitation)
        deliver = post.deliver

        def kept(to: str, content: bytes) -> None:
            self.letters.append(self.readers[to].open(content, MOST))
            deliver(to, content)

        post.deliver = kept
        return post


def tables_of(case: Any) -> dict[str, Any]:
    """A short run of an algorithm, on a ring if it needs one."""
    graph = {"graph": {"kind": "ring"}} if case.on_graph else {}
    return run_of(3, algorithm=for_three(table_of(case.algorithm)), **graph)


def for_three(value: Any) -> Any:
    """The case's own numbers for six agents, for the three of the town."""
    if isinstance(value, dict):
        return {key: for_three(entry) for key, entry in value.items()}
    return value[:3] if isinstance(value, list) and len(value) == 6 else value


def runs_always(case: Any) -> bool:
    return case in [next(c for c in CASES if c.name == n) for n in ("FedAvg", "DPNorm")]


@pytest.mark.parametrize(
    "case",
    [
        case if runs_always(case) else pytest.param(case, marks=pytest.mark.long)
        for case in CASES
    ],
    ids=lambda case: case.name,
)
def test_no_letter_of_any_algorithm_holds_a_value_of_a_row(tmp_path: Path, case):
    room, tables = Recorder(), tables_of(case)
    with Town(tmp_path, room) as town:
        try:
            Coordinator(tables, town.hub.invitations["coordinator"])
        except tacita.TacitaError as error:
            assert "theory cannot choose numbers" in str(error)
            pytest.skip("a federation cannot run it: its numbers are set by theory")
        for name, path in town.hub.invitations.items():
            me = Invitation.load(path)
            assert me.keys is not None
            room.readers[name] = Sealed(name, me.keys, me.others)
        results = town.run(tables)
    assert set(results) == {"coordinator", *NAMES}
    sent = [x for x in room.letters if x.identity.sender != "coordinator"]
    assert sum(x.identity.kind == "answer" for x in sent) >= 6
    values = [v for n in NAMES for v in table_of_rows(n)[COLUMNS].to_numpy().ravel()]
    assert leaks(sent, markers(values)) == []
    weighted = getattr(case.algorithm, "weights", "") == "samples"
    for letter in sent:
        assert ('"rows"' in letter.text) <= weighted


def test_the_search_finds_what_is_there():
    table = marked()
    secret = markers(table.to_numpy().ravel())
    name = wire.Identity("town", "r", "answer", 1, 0, "ada", "coordinator")
    value = float(table["x1"][3])
    for letter in (
        Letter(name, (np.array([0.0, value]),)),
        Letter(name, (np.array([0.0, value], np.float32),)),
        Letter(name, (), f"X[3, 1]={value} is too large"),
        Letter(name, (), value.hex()),
    ):
        assert leaks([letter], secret)
    assert not leaks([Letter(name, (np.arange(9.0),), "refused")], secret)
