"""The live page in a real browser: it shows, it changes, a person decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacita.federation.audit_log import AuditLog
from tacita.federation.offers import OfferBook
from tacita.federation.seal import PrivateKeys
from tacita.watch import LivePage, federation_source, run_source
from tests.browser.chromium import LOOKS, Browser
from tests.browser.looks import cut_or_crossed, pale_words
from tests.watch import folders

pytestmark = pytest.mark.long

STATE = "document.getElementById('state').textContent"


def test_a_run_is_shown_while_it_goes_on(browser: Browser, tmp_path: Path):
    folder = folders.going_run(tmp_path / "r", done=10, lanes=3)
    browser.requests()
    with LivePage(run_source(folder), every=0.05) as page:
        browser.look(**LOOKS["desktop"])
        browser.open(page.address)
        browser.until("document.title === '10/100 digits'")
        browser.until("document.querySelectorAll('svg.chart .line').length === 6")
        assert browser.run("return document.getElementById('progress').value") == 10
        # Lines are told apart without colour: dashes and marks differ.
        dashes = browser.run(
            "return [...document.querySelector('svg.chart').querySelectorAll('.line')]"
            ".map((line) => getComputedStyle(line).strokeDasharray)"
        )
        assert len(set(dashes)) == 3
        browser.run("window.scrollTo(0, 400)")
        folders.going_run(folder, done=25, lanes=3)
        browser.until("document.title === '25/100 digits'")
        assert browser.run("return window.scrollY") == 400  # nothing jumps
        assert (
            browser.run("return document.querySelector('tbody th').textContent") == "25"
        )
        folders.finished_run(folder)
        browser.until(f"{STATE} === 'finished'")
        browser.until("document.body.textContent.includes('Theorems and assumptions')")
        asked = browser.requests()
        assert asked and all(a.startswith(page.address) for a in asked)
        assert browser.complaints() == []
    browser.until(
        "document.getElementById('connection').textContent.includes('no conn')"
    )


def test_a_person_decides_with_the_keyboard_alone(browser: Browser, tmp_path: Path):
    home = folders.agent(tmp_path / "oslo", offers=1)
    name = "<img src=x onerror=window.evil=1> \u202e study"
    run = folders.describe(name)
    OfferBook(home, AuditLog(home)).keep(run, run.signed(PrivateKeys.fresh()))
    browser.complaints()
    with LivePage(federation_source(home), every=0.05) as page:
        browser.look(**LOOKS["phone"])
        browser.open(page.address)
        browser.until("document.querySelectorAll('.offer button').length === 4")
        shown = browser.run(
            "return [...document.querySelectorAll('h3')].map((h) => h.textContent)"
        )
        assert any(
            "<img src=x onerror=window.evil=1> ? study" in words for words in shown
        )
        assert browser.run("return document.images.length + (window.evil || 0)") == 0
        focused = "document.activeElement.textContent"
        browser.press("TAB")
        assert browser.run(f"return {focused}") == "Accept"
        which = browser.run(
            "const offer = document.activeElement.closest('.offer');"
            "return JSON.parse(offer.dataset.words).run"
        )
        browser.press("ENTER")
        browser.until("document.getElementById('ask').open")
        browser.press("ESCAPE")  # thought better of it
        browser.until("!document.getElementById('ask').open")
        assert OfferBook(home, AuditLog(home)).decision(which) is None
        assert browser.run(f"return {focused}") == "Accept"
        browser.press("ENTER", "ENTER")
        browser.until(
            "document.getElementById('said').textContent.includes('is accepted')"
        )
        browser.until("document.querySelectorAll('.offer button').length === 2")
        assert OfferBook(home, AuditLog(home)).decision(which) is True
        assert AuditLog(home).events()[-1]["word"] == "accept"
        assert browser.complaints() == []


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_cut_pale_or_crossed(browser: Browser, tmp_path: Path, look: str):
    browser.look(**LOOKS[look])
    for source in (
        run_source(folders.finished_run(tmp_path / "r")),
        federation_source(folders.agent(tmp_path / "oslo")),
        federation_source(folders.coordinator(tmp_path / "c")),
    ):
        with LivePage(source, every=0.05) as page:
            browser.open(page.address)
            browser.until("document.querySelectorAll('section').length > 1")
            assert cut_or_crossed(browser) == []
            assert pale_words(browser) == []


def test_on_a_phone_every_number_has_its_name(browser: Browser, tmp_path: Path):
    browser.look(**LOOKS["phone"])
    with LivePage(federation_source(folders.coordinator(tmp_path, parties=2))) as page:
        browser.open(page.address)
        browser.until("document.querySelectorAll('tbody td').length > 0")
        shown = browser.run(
            "return [...document.querySelectorAll('tbody td')].map(cell => "
            "getComputedStyle(cell, '::before').content)"
        )
    assert '"last letter"' in shown and '""' not in shown and "none" not in shown


def test_many_parties_are_one_table_that_keeps_its_place(
    browser: Browser, tmp_path: Path
):
    home = folders.coordinator(tmp_path / "c", round=12)
    with LivePage(federation_source(home), every=0.05) as page:
        browser.look(**LOOKS["desktop"])
        browser.open(page.address)
        browser.until("document.querySelectorAll('tbody tr').length > 100")
        browser.run("window.row = document.querySelector('tbody tr')")
        folders.coordinator(home, round=13)
        browser.until("document.title.startsWith('13/')")
        # Rows are changed where they are: a reader's selection and place stay.
        assert browser.run("return window.row === document.querySelector('tbody tr')")


def test_tables_far_below_change_once_they_come_near(browser: Browser, tmp_path: Path):
    home = folders.coordinator(tmp_path / "c", round=1, parties=50)
    cells = "[...document.querySelectorAll('section')].map((s) => s.querySelector("
    cells += "'tbody td:nth-child({})')?.textContent)"
    with LivePage(federation_source(home), every=0.05) as page:
        browser.look(**LOOKS["desktop"])
        browser.open(page.address)
        browser.until("document.querySelectorAll('section').length === 3")
        browser.until("far.size > 0")
        before = browser.run(f"return {cells.format(2)}")[-1]
        folders.coordinator(home, round=2, parties=50)
        browser.until(f"{cells.format(4)}[0] === '2'")
        assert browser.run(f"return {cells.format(2)}")[-1] == before
        browser.run("window.scrollTo(0, document.body.scrollHeight)")
        browser.until(f"{cells.format(2)}.at(-1) !== '{before}'")
