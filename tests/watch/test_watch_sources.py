"""What the live page says of a folder, and that looking costs and disturbs little."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tacita
from tacita.federation.audit_log import AuditLog
from tacita.federation.diary import Diary
from tacita.federation.offers import OfferBook
from tacita.privacy import Ledger
from tacita.runtime import checkpoint
from tacita.watch import federation_source, kept, recorded, run_source
from tacita.watch.feed import Feed, changes
from tacita.watch.kept import Kept, tail
from tacita.watch.view import plain
from tests.watch import folders


@pytest.fixture
def at_once(monkeypatch):
    """Every look reads what changed, however long that takes."""
    monkeypatch.setattr(kept, "_SHARE", float("inf"))


def assert_whole(words: str) -> None:
    """Beside an epsilon stands all that it is about and rests on."""
    for part in (
        "at delta 1e-5 for one record (replace one) against the coordinator",
        "by: ",
        "it holds if: ",
        "(enforced)",
        "(believed)",
    ):
        assert part in words


def test_a_run_in_progress(tmp_path: Path, at_once):
    source = run_source(folders.going_run(tmp_path / "r", done=30, rounds=100))
    view = source.look()
    head = view["head"]
    assert (head.done, head.of, head.state, head.tone) == (30, 100, "running", "good")
    assert head.title == "digits" and head.lede == "FedAvg on digits"
    accuracy, loss = view["curves"].curves
    assert accuracy.name == "accuracy on test rows"
    assert loss.rounds[0] == 1 and loss.rounds[-1] == 30
    assert loss.lines[0].values[-1] == pytest.approx(folders.curve(30)[1, -1], rel=1e-4)
    assert view["numbers"].rows[0][0] == "30" and len(view["numbers"].rows) == 12
    # The time left follows from the time so far: 0.2 s a round.
    assert dict(view["figures"].pairs)["time left, about"].startswith("14")
    folders.going_run(tmp_path / "r", done=60, rounds=100)
    assert source.look()["head"].done == 60


def test_several_seeds_are_one_curve_with_its_ends(tmp_path: Path):
    view = run_source(folders.going_run(tmp_path / "r", lanes=3)).look()
    lines = {line.label: line.values for line in view["curves"].curves[1].lines}
    assert set(lines) == {"median of seeds", "lowest", "highest"}
    assert lines["lowest"][5] < lines["median of seeds"][5] < lines["highest"][5]
    assert "to" in view["numbers"].rows[0][1]


def test_a_seed_that_diverged_leaves_the_others_curve():
    loss = np.array([[4.0, 3.0, 2.0], [5.0, np.nan, np.nan], [6.0, 4.0, 3.0]])
    made = recorded.parts({"loss": loss, "round": np.arange(1, 4)})
    middle, low, high = made["curves"].curves[0].lines
    assert middle.label == "median of the others, 1 of 3 seeds diverged"
    assert middle.values == [5.0, 3.5, 2.5]
    assert (low.values[1], high.values[1]) == (3.0, 4.0)
    assert made["numbers"].rows[0][1] == "2.5 (2 to 3; 1 of 3 seeds diverged)"


def test_a_run_that_writes_nothing_any_more_is_called_quiet(tmp_path: Path):
    folder = folders.going_run(tmp_path / "r")
    old = time.time() - 95
    os.utime(folder / checkpoint.NAME, (old, old))
    head = run_source(folder).look()["head"]
    assert head.tone == "bad" and head.state.startswith("no sign of life for ")
    assert any("tacita resume" in words for words in head.warnings)


def test_a_run_from_its_first_moment_to_its_end(tmp_path: Path, at_once):
    folder = tmp_path / "r"
    folder.mkdir()
    with pytest.raises(tacita.TacitaError, match="no run in"):
        run_source(folder)
    (folder / "config.toml").write_text(folders.CONFIG.format(name="x", rounds=9))
    source = run_source(folder)
    assert source.look()["head"].state == "no round is over yet"
    folders.going_run(folder, done=3, rounds=9, private=True)
    view = source.look()
    assert any("private" in words for words in view["head"].warnings)
    assert dict(view["figures"].pairs)["epsilon so far"] == "0.3"
    assert view["epsilon"].curves[0].lines[0].values == [0.1, 0.2, 0.3]
    assert view["epsilon"].curves[0].from_zero
    assert_whole(view["epsilon"].note)
    folders.finished_run(folder, rounds=9)
    view = source.look()
    assert view["head"].state == "finished" and view["head"].tone == "done"
    privacy = view["privacy"]
    # Never an epsilon without observer, unit, delta, theorem and assumptions.
    assert privacy.columns[:5] == ("observer", "unit", "epsilon", "delta", "theorem")
    assert privacy.rows[0][:4] == (
        "coordinator",
        "record (replace one)",
        "0.9",
        "1e-5",
    )
    reasons = dict(view["reasons"].pairs)
    assert any("Dong" in words for words in reasons.values())
    assert any("clipped to 1" in words for words in reasons.values())
    assert [line.label for line in view["epsilon"].curves[0].lines][-1] == "budget"
    assert "without noise" in view["curves"].note


def test_a_damaged_checkpoint_is_told_in_one_line(tmp_path: Path):
    folder = folders.going_run(tmp_path / "r")
    (folder / checkpoint.NAME).write_bytes(b'{"rounds": 3}\nnonsense')
    parts = Feed(run_source(folder)).parts()
    head = json.loads(parts["head"])
    assert (
        head["tone"] == "bad" and "damaged or of another version" in head["warnings"][0]
    )


def test_a_coordinator_with_its_agents(tmp_path: Path):
    source = federation_source(folders.coordinator(tmp_path / "c", round=12))
    view = source.look()
    assert view["head"].role == "coordinator" and view["head"].state == "running"
    parties = view["parties"]
    assert len(parties.rows) == 50
    assert parties.rows[0] == ("hospital-00", "no", "never", "12", "3.58")
    assert parties.rows[1][1] == "yes"
    assert_whole(parties.note)
    assert view["refused"].rows == [("the signature does not fit", "3")]
    assert len(view["letters"].rows) == 50
    assert "offers" not in view and "log" not in view


def test_who_is_there_is_not_claimed_of_a_program_that_ended(tmp_path: Path, at_once):
    source = federation_source(folders.coordinator(tmp_path / "c"))
    told = json.loads((tmp_path / "c" / "status.json").read_text())
    folders.write_status(tmp_path / "c", {**told, "finished": True})
    view = source.look()
    assert view["head"].state == "finished"
    assert {row[1:3] for row in view["parties"].rows} == {("-", "-")}
    for age, tone in ((20, "wait"), (300, "bad")):
        old = {**told, "written": time.time() - age}
        folders.write_status(tmp_path / "c", old)
        view = source.look()
        assert view["head"].state.startswith("no sign of life for ")
        assert view["head"].tone == tone
        assert {row[1] for row in view["parties"].rows} == {"-"}
    heard = float(view["parties"].rows[1][2].split()[0])
    assert heard >= 300  # it goes on counting


def test_an_agent_with_budget_offers_and_log(tmp_path: Path):
    home = folders.agent(tmp_path / "oslo", offers=2)
    view = federation_source(home).look()
    assert view["head"].role == "agent" and view["head"].title == "oslo"
    told = dict(zip(view["budget"].columns, view["budget"].rows[0], strict=True))
    with Ledger(home / "ledger.db", read_only=True) as ledger:
        spent = ledger.spent(1e-5)["oslo", "everybody"]
    assert told["epsilon spent"] == f"{spent:.4g}"
    assert told["left"] == f"{4.0 - spent:.4g}" and told["delta"] == "1e-5"
    assert told["unit"] == "record (replace one)" and "Balle" in told["theorem"]
    assert "(believed)" in told["it holds if"]
    assert_whole(view["epsilon"].note)
    first = view["offers"].offers[0]
    assert first.decision == "waits"
    assert first.facts[0][1].startswith("epsilon 1 at delta 1e-5 for one record")
    assert [name for name, _ in first.facts][:3] == [
        "would release",
        "by",
        "it holds if",
    ]
    assert_whole(first.terms)
    log = view["log"]
    assert log.rows[0][1] == "release (4 letters)"
    assert [row[1] for row in log.rows[1:]] == ["waiting", "offer"] * 2


def test_the_budget_of_a_shared_ledger_is_what_the_program_tells(tmp_path: Path):
    home = folders.agent(tmp_path / "oslo")
    (home / "ledger.db").unlink()
    (home / "ledger.db.end").unlink()
    view = federation_source(home).look()
    assert view["budget"].rows == [
        ("coordinator", "record (replace one)", "0.8", "4", "3.2", "1e-5")
    ]
    assert "by: composition" in view["budget"].note
    assert "(believed)" in view["budget"].note
    assert "head" in view and not view["head"].warnings


def test_a_person_decides_as_on_the_command_line(tmp_path: Path, at_once):
    home = folders.agent(tmp_path / "oslo", offers=2)
    source = federation_source(home)
    first, second = (offer.run for offer in source.look()["offers"].offers)
    assert "is accepted" in source.decide(first, True)
    assert "is declined" in source.decide(second, False)
    book = OfferBook(home, AuditLog(home))
    assert book.decision(first) is True and book.decision(second) is False
    decided = [e for e in AuditLog(home).events() if e["event"] == "decision"]
    assert [e["word"] for e in decided] == ["accept", "decline"] and decided[0]["who"]
    assert {o.decision for o in source.look()["offers"].offers} == {
        "accepted",
        "declined",
    }
    # The beginning of a digest is enough for a person, not for a page.
    for other in (first[:8], "", "../offers", "zz"):
        with pytest.raises(tacita.TacitaError, match="not here any more"):
            source.decide(other, True)


def test_damage_is_told_and_hides_nothing_else(tmp_path: Path):
    home = folders.agent(tmp_path / "oslo")
    (home / "offers" / "abc.json").write_text("{}")
    content = bytearray((home / "ledger.db").read_bytes())
    content[-100] ^= 1
    (home / "ledger.db").write_bytes(content)
    view = federation_source(home).look()
    words = " ".join(view["head"].warnings)
    assert "abc.json is damaged" in words and "no usable ledger" in words
    assert view["budget"].rows[0][2] == "0.8"  # as its program tells
    (home / "status.json").write_text("[1")
    view = federation_source(home).look()
    assert any(w.startswith("Status: ") for w in view["head"].warnings)
    (home / "status.json").write_text('{"party": "oslo", "round": 3}')
    view = federation_source(home).look()
    assert "Status: status.json lacks or mistakes 'rounds'" in view["head"].warnings
    assert "log" in view


def test_a_ledger_that_is_written_to_raises_no_alarm(tmp_path: Path):
    home = folders.agent(tmp_path / "oslo")
    whole = (home / "ledger.db").read_bytes()
    lines = whole.splitlines(keepends=True)
    # A row that is being written, its end not yet told: half of it is there.
    (home / "ledger.db").write_bytes(whole + lines[-1][:60])
    view = federation_source(home).look()
    assert not view["head"].warnings and view["budget"].rows[0][7] == "4"


def test_a_party_that_waits_and_folders_of_nobody(tmp_path: Path):
    with pytest.raises(tacita.TacitaError, match="no party or hub in"):
        federation_source(tmp_path)
    (tmp_path / "in-use.lock").touch()
    assert federation_source(tmp_path).look()["head"].state == "waits for a run"
    note = {"party": "oslo", "run": "ab", "note": "accepted; waits"}
    folders.write_status(tmp_path, note)
    assert federation_source(tmp_path).look()["head"].state == "accepted; waits"


def test_curves_of_what_a_party_knows(tmp_path: Path, at_once):
    home = folders.agent(tmp_path / "oslo")
    told = json.loads((home / "status.json").read_text())
    source, folder = federation_source(home), home / told["run"]
    assert "curves" not in source.look()
    folder.mkdir()
    notes = Diary(folder, ["oslo", "turku"], 100)
    notes.ended(1, ["oslo"])
    curve = source.look()["curves"].curves[0]
    assert curve.name == "agents that took part" and curve.lines[0].values == [1.0]
    for number in (2, 3):
        notes.measured(number, {"loss_own": 1.0 / number})
    view = source.look()
    assert view["curves"].curves[0].rounds == [2, 3]
    assert "for this house only" in view["curves"].note
    folders.finished_run(folder, rounds=9)
    view = source.look()
    assert view["curves"].curves[0].rounds[-1] == 9 and "privacy" in view


def test_a_hub_whose_brokers_are_silent(tmp_path: Path):
    tacita.federation.Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0)
    (tmp_path / "hub" / "brokers" / "1" / "broker.log").write_text("one\ntwo\nha")
    view = federation_source(tmp_path / "hub").look()
    assert view["head"].state == "0 of 1 brokers answer" and view["head"].tone == "bad"
    assert [row[:3] for row in view["parties"].rows][0][2] == "-"
    assert {row[0] for row in view["parties"].rows} >= {"oslo", "coordinator"}
    assert view["log"].rows == [("1", "two"), ("1", "one")]


def test_files_are_read_again_only_after_they_changed(tmp_path: Path, at_once):
    reads = []
    path = tmp_path / "file"
    told = Kept([path], lambda: reads.append(1) or path.read_text())
    assert told() is None and told() is None and told.fault and len(reads) == 1
    path.write_text("a")
    assert [told(), told(), told()] == ["a"] * 3 and len(reads) == 2
    path.write_text("bb")
    assert told() == "bb" and told.fault is None


def test_what_takes_long_to_read_is_read_seldom(tmp_path: Path, monkeypatch):
    path, clock = tmp_path / "file", SimpleNamespace(now=100.0, spent=0.0)
    path.write_text("a")
    fake = SimpleNamespace(monotonic=lambda: clock.now, thread_time=lambda: clock.spent)
    monkeypatch.setattr(kept, "time", fake)

    def slow() -> str:
        clock.spent += 0.02
        return path.read_text()

    told = Kept([path], slow)
    told()
    path.write_text("bb")
    assert told() == "bb"  # the first pause is none: it paid for what is loaded once
    path.write_text("ccc")
    clock.now += 1.9  # of a core, a hundredth at most
    assert told() == "bb"
    clock.now += 0.2
    assert told() == "ccc"


def test_the_end_of_a_file_is_whole_lines(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("one\ntwo\nthree\nfo")
    assert tail(path) == ["one", "two", "three"]
    assert tail(path, 11) == ["three"]


def test_only_changes_are_sent(tmp_path: Path, at_once):
    source = federation_source(folders.coordinator(tmp_path / "c"))
    feed = Feed(source, every=0.0)
    first = feed.parts()
    assert changes(first, feed.parts()) is None
    told = json.loads((tmp_path / "c" / "status.json").read_text())
    folders.write_status(tmp_path / "c", {**told, "sent": 999})
    found = changes(first, feed.parts())
    assert found is not None and set(json.loads(found)) == {"figures"}


def test_a_source_is_not_asked_more_often_than_shown():
    class Counted:
        asked = 0

        def look(self):
            self.asked += 1
            return {}

    source = Counted()
    feed = Feed(source, every=60.0)
    for _ in range(5):
        feed.parts()
    assert source.asked == 1
    feed.forget()
    feed.parts()
    assert source.asked == 2


def test_others_words_and_numbers_are_made_harmless(tmp_path: Path):
    folders.coordinator(tmp_path / "c")
    told = json.loads((tmp_path / "c" / "status.json").read_text())
    told["refused"] = {"<script>alert(1)</script>\u202e\x1b[2J": 1}
    told["told"]["hospital-01"] = {"round": 1, "spent": float("nan"), "allowed": 4.0}
    folders.write_status(tmp_path / "c", told)
    parts = Feed(federation_source(tmp_path / "c")).parts()
    words = json.loads(parts["refused"])["rows"][0][0]
    assert words == "<script>alert(1)</script>??[2J"  # markup is text on the page
    assert "NaN" not in "".join(parts.values())
    assert plain([float("inf"), 1, True, None, 0.5]) == [None, 1, True, None, 0.5]
