"""Files that people damage, delete or mix up: one line says so, and what to do."""

from __future__ import annotations

import errno
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app, tell
from tacita.disk import Unwritable, alone_in, write_private
from tacita.federation import Hub
from tacita.federation.audit_log import AuditLog
from tacita.federation.diary import Diary
from tacita.federation.hub_numbers import HubNumbers
from tacita.federation.metrics import MetricsServer
from tacita.federation.offers import OfferBook


def lines_of(*words: object) -> list[str]:
    """What a command says that must be refused."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 2, result.output
    return result.output.strip().split("\n")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("messy") / "hub"
    Hub.create(folder, "town", ["ada", "bob"], port=0)
    return folder


@pytest.fixture
def hub(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "hub"))


@pytest.mark.parametrize("name", ["authority.pem", "authority.key", "broker.pem"])
@pytest.mark.parametrize("content", [b"", b"\xffrubbish", None])
def test_a_damaged_hub_is_one_line(hub: Path, name: str, content: bytes | None):
    path = hub / ("brokers/1/broker.pem" if name == "broker.pem" else name)
    path.unlink()
    if content is not None:
        write_private(path, content)
    command = ("hub", "add", hub, "cyd")
    if name == "broker.pem":
        command = ("hub", "status", hub)
    (line,) = lines_of(*command)[-1:]
    assert str(path) in line and "Error" not in line


def test_an_invitation_that_was_handed_over_and_deleted_can_be_revoked(hub: Path):
    (hub / "invitations" / "ada.json").unlink()
    Hub(hub).remove("ada")
    assert "ada" not in Hub(hub).roster.names
    write_private(hub / "invitations" / "bob.json", '{"certificate": "rubbish"}')
    (line,) = lines_of("hub", "renew", hub, "bob")
    assert "bob.json is damaged" in line


def test_metrics_of_a_damaged_hub_say_so(hub: Path):
    with MetricsServer(0, HubNumbers(Hub(hub))) as server:
        write_private(hub / "authority.pem", "rubbish")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics")
        assert refused.value.code == 503
        assert b"authority.pem is damaged" in refused.value.read()
        refused.value.close()


@pytest.mark.parametrize(
    "content", ["{}", "[]", '{"party": "ada"}', "\xff", "[" * 9999]
)
def test_a_status_that_is_none_is_refused(tmp_path: Path, content: str):
    (tmp_path / "status.json").write_bytes(content.encode("latin-1"))
    (line,) = lines_of("federation", "status", tmp_path)[-1:]
    assert "no status in" in line


def test_metrics_are_not_told_to_a_web_page(hub: Path):
    with MetricsServer(0, HubNumbers(Hub(hub))) as server:
        for host, answer in (("evil.example", 403), ("localhost", 503)):
            asked = urllib.request.Request(f"http://127.0.0.1:{server.port}/healthz")
            asked.add_header("Host", f"{host}:{server.port}")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked)
            assert refused.value.code == answer
            refused.value.close()


def test_offers_that_are_damaged_are_refused(tmp_path: Path):
    book, folder = OfferBook(tmp_path, AuditLog(tmp_path)), tmp_path / "offers"
    folder.mkdir()
    for name, content in (("x.json", b"\xff\xfe"), ("lately", b"[" * 9999)):
        (folder / name).write_bytes(content)
    (folder / "x.decision").write_bytes(b"\xff")
    with pytest.raises(tacita.TacitaError, match=r"x\.json is damaged"):
        book.all()
    with pytest.raises(tacita.TacitaError, match="lately is damaged"):
        book.admit("coordinator", "x", 20)
    assert book.decision("x") is None


def full(*arguments: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_one_line_wherever_it_shows(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(tacita.TacitaError, match="cannot write .*No space left"):
        write_private(tmp_path / "accepted.json", "{}")
    with pytest.raises(tacita.TacitaError, match=r"cannot write .*log\.jsonl"):
        AuditLog(tmp_path).note("offer")


def test_what_is_written_in_part_only_is_a_full_disk(tmp_path: Path, monkeypatch):
    """A short write raises nothing by itself: an event of the log was lost."""
    log, write = AuditLog(tmp_path), os.write
    with monkeypatch.context() as now:
        now.setattr(os, "write", lambda file, told: write(file, told[: len(told) // 2]))
        with pytest.raises(
            Unwritable, match=r"cannot write .*log\.jsonl: No space left"
        ):
            log.note("offer")
        with pytest.raises(Unwritable, match=r"cannot write .*rounds\.jsonl"):
            Diary(tmp_path, ["ada"], rounds=2).ended(1, ["ada"])
    log.note("offer")
    assert [told["event"] for told in log.events()] == ["torn", "offer"]
    # What follows a line that was torn is not lost with it.
    diary = Diary(tmp_path, ["ada"], rounds=2)
    diary.ended(1, ["ada"])
    diary.ended(2, ["ada"])
    assert Diary(tmp_path, ["ada"], rounds=2).arrivals() == [[0], [0]]
    with monkeypatch.context() as now, pytest.raises(Unwritable, match="in-use.lock"):
        now.setattr(os, "pwrite", full)
        alone_in(tmp_path).__enter__()


def test_any_other_file_that_is_missing_is_told_as_one(capsys):
    try:
        Path("there/is/none").read_text()
    except OSError as error:
        assert tell(error) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "there/is/none: No such file" in said
    assert tell(OSError("of no file")) == 1
