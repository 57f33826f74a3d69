"""Ledgers that were changed, cut, torn by a crash, or put back from a backup."""

import errno
import json
import os
import shutil

import pytest
from typer.testing import CliRunner

from tacita.check import TacitaError
from tacita.cli.app import app
from tacita.privacy import BrokenLedger, BudgetExceeded, Ledger
from tacita.privacy.ledger import back_up, end, restore, store
from tacita.privacy.ledger.end import End
from tacita.privacy.ledger.rows import HEADER
from tacita.privacy.scope import Observer
from tests.privacy.test_privacy_ledger import charge, filled, opened, releases

DELTA = 1e-5
WHO = ("clinic", "everybody")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def edit(path, number, **fields):
    """Change a row, and give it a digest that fits."""
    lines = lines_of(path)
    row = store.read_line(lines[number])
    assert row is not None
    _, lines[number] = store.Row(**{**vars(row), **fields}).sealed()
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("column", ("mu_squared", "round", "kind", "digest", "time"))
def test_an_edited_row_is_named(path, column):
    filled(path)
    lines = lines_of(path)
    text = json.loads(lines[5][65:])
    digest = b"0" * 64 if column == "digest" else lines[5][:64]
    told = json.dumps({**text, column: "9"} if column in text else text, sort_keys=True)
    lines[5] = digest + b" " + told.encode() + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(BrokenLedger, match="row 5 was changed.*tacita ledger restore"):
        Ledger(path)
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.rows()) == 4  # those before it may be looked at
        for ask in (
            ledger.verify,
            ledger.head,
            lambda: ledger.spent(DELTA),
            lambda: ledger.curve("clinic"),
            lambda: ledger.rounds("clinic", "coordinator", "run"),
        ):
            with pytest.raises(BrokenLedger, match="row 5"):
                ask()


def test_a_row_with_a_digest_of_its_own_does_not_fit_the_next(path):
    filled(path)
    edit(path, 5, mu_squared=1e-9)
    with pytest.raises(BrokenLedger, match="row 6 does not follow"):
        Ledger(path)
    filled(other := path.with_name("other.db"))
    edit(other, 8, mu_squared=1e-9)  # the last row
    with pytest.raises(BrokenLedger, match="row 8 is not the one"):
        Ledger(other)


@pytest.mark.parametrize(
    ("keep", "named"),
    (
        ([0, 1, 2, 3, 5, 6, 7, 8], "row 4 is missing"),
        ([0, 1, 2, 3, 4, 5, 6], r"row 7 is missing \(8 rows were written"),
        ([0], "row 1 is missing"),
        ([0, 1, 2, 4, 3, 5, 6, 7, 8], "row 3 is missing"),
        ([1, 2, 3, 4, 5, 6, 7, 8], "first line"),
        ([], "row 1 is missing"),
    ),
)
def test_removed_and_reordered_rows_are_named(path, keep, named):
    filled(path)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[k] for k in keep))
    with Ledger(path, read_only=True) as ledger:
        with pytest.raises(BrokenLedger, match=named):
            ledger.verify()
    with pytest.raises(BrokenLedger, match=named):
        Ledger(path)


def test_a_kept_head_shows_a_careful_cut(path):
    """Cut the tail and write another end: only the head tells."""
    head = filled(path)
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:7]))
    end.path_of(path).write_bytes(End(6, lines[6][:64].decode()).line())
    with Ledger(path, read_only=True) as ledger:
        assert ledger.verify() == 6
        with pytest.raises(BrokenLedger, match=f"no row has the digest {head}"):
            ledger.verify(head)


def test_one_of_the_two_files_alone_is_refused(path):
    filled(path)
    for gone, named in ((end.path_of(path), "end, .* is missing"), (path, "row 1")):
        kept = gone.read_bytes()
        gone.unlink()
        with pytest.raises(BrokenLedger, match=named):
            Ledger(path)
        gone.write_bytes(kept)
    Ledger(path).close()


def spent_or_refused(path):
    """The epsilon that a ledger tells, or None if it is refused in one line."""
    told = set()
    for read_only in (True, False):
        try:
            with Ledger(path, read_only=read_only) as ledger:
                told.add(ledger.spent(DELTA).get(WHO, 0.0))
        except TacitaError as error:
            assert "\n" not in str(error)
            told.add(None)
    assert len(told) == 1, "who looks is told something else than who charges"
    return told.pop()


def crashed(path, monkeypatch):
    """A ledger whose last row is on the disk, and whose end does not know of it."""
    filled(path)

    class Killed(BaseException):
        pass

    def killed(*words):
        raise Killed

    with monkeypatch.context() as dead, Ledger(path) as ledger:
        dead.setattr(store, "write_end", killed)
        with pytest.raises(Killed):
            charge(ledger, 77)
    assert len(lines_of(path)) == 10


def sweep(path, steps, floor):
    """Change every so many bytes of both files, cut both there; what was told."""
    kept = {file: file.read_bytes() for file in (path, end.path_of(path))}
    told = []
    for file, whole in kept.items():
        for at in range(0, len(whole), steps):
            changed = bytearray(whole)
            # One bit, the highest bit, or a line where there was none.
            changed[at] ^= (0x01, 0x80, whole[at] ^ 0x0A)[at % 3] or 0x01
            for version in (whole[:at], bytes(changed)):
                file.write_bytes(version)
                epsilon = spent_or_refused(path)
                assert epsilon is None or epsilon >= floor, (file.name, at)
                told.append(epsilon)
                for other, content in kept.items():
                    other.write_bytes(content)
    return told


@pytest.mark.parametrize(
    "steps", (211, pytest.param(1, marks=pytest.mark.long)), ids=("some", "all")
)
@pytest.mark.parametrize("state", ("closed", "crashed"))
def test_no_changed_byte_counts_too_little(path, steps, state, monkeypatch):
    for module in (store, end):  # no power is cut here
        monkeypatch.setattr(module, "sync_file", lambda file: None)
    filled(path)
    with Ledger(path) as ledger:
        floor = ledger.spent(DELTA)[WHO]
    if state == "crashed":
        # The letter of the last row never left: its row may go, and nothing else.
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        crashed(path, monkeypatch)
    told = sweep(path, steps, floor)
    assert told.count(None) > len(told) / 3


class Killed(BaseException):
    """The program is gone."""


def dying(step):
    """Replaces what writes to the disk: the program dies at this step of it."""
    steps = [0]

    def mortal(real):
        def act(*words):
            steps[0] += 1
            if steps[0] == step and real is os.pwrite:
                real(words[0], words[1][: len(words[1]) // 2], *words[2:])  # torn
            if steps[0] >= step:
                raise Killed
            return real(*words)

        return act

    return mortal


@pytest.mark.parametrize("step", range(1, 12))
def test_killed_at_any_step_it_opens_again_and_counts_all(path, step, monkeypatch):
    left = 0
    for _ in range(2):
        with monkeypatch.context() as dead:
            mortal = dying(step)
            dead.setattr(store.os, "pwrite", mortal(os.pwrite))
            dead.setattr(store.os, "ftruncate", mortal(os.ftruncate))
            for module in (store, end):
                dead.setattr(module, "sync_file", mortal(module.sync_file))
            try:
                with opened(path, epsilon=10.0) as ledger:
                    for number in range(left, left + 3):
                        charge(ledger, number)
                        left += 1
            except Killed:
                pass
        with opened(path, epsilon=10.0) as ledger:
            assert len(releases(ledger)) in (left, left + 1)
            ledger.verify()


def test_a_row_that_a_crash_left_gets_its_end_before_its_letter_leaves(
    path, monkeypatch
):
    crashed(path, monkeypatch)
    with Ledger(path) as ledger:
        assert not charge(ledger, 77)[0].new  # it is charged: the letter leaves now
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(BrokenLedger, match="row 9 is missing"):
        Ledger(path)


@pytest.mark.parametrize("short", (False, True))
def test_a_full_disk_keeps_the_letter_back(path, short, monkeypatch):
    real = os.pwrite

    def full(file, content, at):
        real(file, content[: len(content) // 2], at)
        if short:
            return len(content) // 2
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    filled(path)
    with Ledger(path) as ledger:
        spent = ledger.spent(DELTA)
        with monkeypatch.context() as now:
            now.setattr(store.os, "pwrite", full)
            with pytest.raises(BrokenLedger, match="No space left.*|nothing may leave"):
                charge(ledger, 50)
        assert ledger.spent(DELTA) == spent
        assert charge(ledger, 50)[0].new  # there is room again
        assert ledger.verify() == 9
    with Ledger(path) as ledger:
        assert ledger.verify() == 9


def test_an_end_that_finds_no_room_keeps_the_letter_back(path, monkeypatch):
    """A short write raises nothing by itself: a letter would leave without its end."""
    real = os.pwrite
    filled(path)
    with Ledger(path) as ledger:
        place = ledger._store._end_file

        def full(file, content, at):
            return real(file, content[:-1] if file == place else content, at)

        with monkeypatch.context() as now:
            now.setattr(end.os, "pwrite", full)
            with pytest.raises(BrokenLedger, match="No space left"):
                charge(ledger, 50)
        charge(ledger, 50)
        assert ledger.verify() == 9
    with open(end.path_of(path), "rb") as file:
        assert end.read_end(file.fileno()) == (9, Ledger(path, read_only=True).head())


def test_others_may_not_read_it(path):
    path.parent.chmod(0o755)
    filled(path)
    for file in (path, end.path_of(path)):
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)
    Ledger(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_backup_holds_everything_and_goes_back(path, tmp_path):
    filled(path)
    copy = tmp_path / "copy"
    with Ledger(path) as ledger:
        charge(ledger, 9)
        assert back_up(path, copy) == 9  # while the ledger is open
        spent = ledger.spent(DELTA)
    with pytest.raises(TacitaError, match="exists"):
        back_up(path, copy)
    with pytest.raises(TacitaError, match="whole, with 9 rows .* nothing to put back"):
        restore(copy, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    done = restore(copy, path)
    assert done.rows == 9 and done.spent == []  # its end says that nothing is missing
    with Ledger(path) as ledger:
        assert ledger.spent(DELTA) == spent
        assert charge(ledger, 10)[0].new
    assert [p for p in tmp_path.iterdir() if ".replaced-" in p.name]


@pytest.mark.parametrize("gone", ("damaged", "end too", "everything"))
@pytest.mark.parametrize("plain", (False, True))
def test_an_old_backup_counts_all_that_was_allowed(path, tmp_path, gone, plain):
    copy = tmp_path / "copy"
    with opened(path, epsilon=3.0) as ledger:
        for number in range(4):
            charge(ledger, number)
        if plain:
            shutil.copy(path, copy)  # the file alone, as people do
        else:
            back_up(path, copy)
        for number in range(4, 8):
            charge(ledger, number)
        spent = ledger.spent(DELTA)[WHO]
    if gone == "everything":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    if gone != "damaged":
        end.path_of(path).unlink()
    done = restore(copy, path)
    assert done.rows == 6 and done.spent == ["clinic"]
    with Ledger(path) as ledger:
        assert ledger.spent(DELTA)[WHO] >= 3.0 > spent
        with pytest.raises(BudgetExceeded):
            charge(ledger, 8)
        rows = [row for row in releases(ledger) if row.theorem.startswith("a backup")]
        assert {row.observer for row in rows} >= {"coordinator", "neighbour"}


def test_damaged_and_foreign_backups_are_refused(path, tmp_path):
    filled(path)
    copy = tmp_path / "copy"
    back_up(path, copy)
    whole = copy.read_bytes()
    path.write_bytes(HEADER)
    for at in range(0, len(whole), 97):
        changed = bytearray(whole)
        changed[at] ^= 1
        copy.write_bytes(bytes(changed))
        with pytest.raises(TacitaError, match="is damaged|of another ledger"):
            restore(copy, path)
    copy.write_bytes(whole)
    filled(other := tmp_path / "other.db")
    with pytest.raises(TacitaError, match="of another ledger"):
        restore(copy, other)


def test_the_commands(path, tmp_path):
    filled(path)

    def invoke(code, *words):
        answer = CliRunner().invoke(app, ["ledger", *(str(w) for w in words)])
        assert answer.exit_code == code, answer.output
        return answer.output

    assert "8 rows are in" in invoke(0, "backup", path, tmp_path / "copy")
    assert "nothing to put back" in invoke(2, "restore", tmp_path / "copy", path)
    end.path_of(path).unlink()
    assert "tacita ledger restore" in invoke(2, "show", path)
    said = invoke(0, "restore", tmp_path / "copy", path)
    assert "8 rows are back" in said and "clinic: letters may have left" in said
    rows = 8 + len(Observer)  # a row against every observer
    assert f"whole: {rows} rows" in invoke(0, "verify", path)
    assert "no ledger at" in invoke(2, "backup", tmp_path / "none", tmp_path / "b")
