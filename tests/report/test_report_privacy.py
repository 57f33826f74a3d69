"""The section on privacy: the sentence first, the banner, and a page for others."""

import dataclasses
import hashlib
import re

import pytest

from tacita.check import TacitaError
from tacita.report import guarantees, write_report
from tests.report.test_report_page import EVIL, Page
from tests.trace.test_verdict import told

NOTED = {"data_notes": ["label 'yse' occurs once"], "finished": "2026-01-31T12:00:00"}


@pytest.fixture
def private(make_run):
    """A run with a report, of a table somewhere on the disk."""

    def make(report=None, **info):
        run = make_run("mine", **NOTED, **info)
        asked = {"data": "/home/ann/rows.csv", "target": "ill", "scale": "standard"}
        asked = run.config["problem"] | asked
        config = run.config | {"problem": asked, "resolved": dict(run.config)}
        return dataclasses.replace(run, config=config, privacy=report or told())

    return make


@pytest.fixture
def read(tmp_path):
    """The section on privacy alone, as a reader sees it."""

    def read(run):
        path = tmp_path / "section.html"
        path.write_text(guarantees.section({"mine": run}, lambda *_: "", False))
        return Page(path)

    return read


def test_the_section_begins_with_the_sentence(private, read, tmp_path):
    run = private(told(epsilon=1.5, audited=AUDITED), ledger_head="f00d" * 16)
    page = read(run)
    section = page.text.strip()
    assert section.startswith(
        "Privacy within the budget Epsilon 1.5 at delta 1e-5 for one record against "
        "the coordinator: within the budget of 2."
    )
    for words in ("Place and date", "2026-01-31 12:00 UTC", "f00d" * 16, "a theorem"):
        assert words in section
    # The codes are explained where they stand, in no fold.
    assert "T1 a theorem" in section and "details" not in page.tags
    run.save(tmp_path)
    digest = hashlib.sha256((tmp_path / "privacy.json").read_bytes()).hexdigest()
    assert digest in section


AUDITED = {"lower_bound": 0.77, "confidence": 0.99, "refuted": False}


def test_what_is_not_protected_stands_in_a_banner(private, read):
    text = read(private(told(audited=AUDITED))).text
    banner = text[text.index("Not protected") : text.index("Each line bounds")]
    for words in (
        "recorded metrics: accuracy on test rows; loss, summed over agents",
        "scaling (standard)",
        "rows of each class",
        "notes on the data",
        "names of classes",
        "results of audits",
    ):
        assert words in banner


def test_a_page_for_others_leaves_it_out(private, tmp_path):
    run = private(told(audited=AUDITED))
    path = write_report(run, tmp_path, publishable=True)
    assert path.name == "publishable.html" and [*tmp_path.iterdir()] == [path]
    page = Page(path)
    assert page.ids == ["settings", "privacy", "origin"]
    shown = (page.text + " ".join(page.code)).replace("\N{NO-BREAK SPACE}", " ")
    last = f"{run.metrics['loss'][-1]:.4g}"
    for words in (last, "90.0 %", "0.77", "site 2", "yse", "/home/ann", "12 s"):
        assert words not in shown, words
    assert "rows.csv" in shown and "within the budget of 2" in shown
    assert "img" not in page.tags and "Signature" not in page.text


@pytest.mark.parametrize(
    ("participation", "shown"),
    [(1.0, True), (3, True), (0.5, False), ([0.1, 1.0, 1.0], False)],
)
def test_nor_does_it_tell_how_many_letters_chance_has_made(
    private, tmp_path, participation, shown
):
    """A bound over a secret draw holds as long as nobody knows who took part."""
    run = private()
    asked = {"run": {**run.config["run"], "participation": participation}}
    told = run.config | asked | {"resolved": run.config["resolved"] | asked}
    run = dataclasses.replace(run, config=told)
    page = Page(write_report(run, tmp_path, publishable=True))
    assert ("communication" in page.ids) == shown
    assert ("letters" in page.text) == shown
    # Whoever ran it knows.
    assert "communication" in Page(write_report(run, tmp_path)).ids


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"privacy": None}, "train it privately first"),
        (
            {"privacy": told(assumptions=({"statement": "s", "status": "violated"},))},
            "is not proved, so no page",
        ),
        ({"privacy": told(audited=AUDITED | {"refuted": True})}, "refuted by an audit"),
        ({"info": {"stopped_early": True}}, "run it without run.stop"),
    ],
)
def test_what_may_not_be_published_is_refused(private, tmp_path, changes, why):
    run = dataclasses.replace(private(), **changes)
    with pytest.raises(TacitaError, match=why):
        write_report(run, tmp_path, publishable=True)
    assert not [*tmp_path.iterdir()]


def test_an_epsilon_above_twenty_is_fine_print(private, read, tmp_path):
    page = read(private(told(epsilon=35.25)))
    assert "No useful bound at delta 1e-5 for one record" in page.text
    assert re.search(r"no useful bound 35\.25 ", page.text)
    assert "verdict bad" in (tmp_path / "section.html").read_text()


def test_a_signers_name_is_shown_as_it_is(private, read):
    signed = {"signer": EVIL, "time": "now", "fingerprint": "12-34"}
    page = read(private(signed=signed))
    assert f"{EVIL}, now, key 12-34" in page.text and "script" not in page.tags
