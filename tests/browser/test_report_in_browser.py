"""The report in a real browser: nothing is cut, nothing is pale, print shows all."""

import pytest

from tests.browser.chromium import LOOKS, Browser
from tests.browser.looks import cut_or_crossed, pale_words
from tests.browser.report_pages import REPORTS

pytestmark = pytest.mark.long

FOLDS = """
return [...document.querySelectorAll("details")].map(
  e => e.lastElementChild.checkVisibility({contentVisibilityAuto: true})
    && e.getBoundingClientRect().height > 40);
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of every report, by name."""
    made = tmp_path_factory.mktemp("reports")
    return {n: f"file://{write(made / n)}" for n, write in REPORTS.items()}


@pytest.mark.parametrize("look", LOOKS)
def test_pages_are_whole_and_legible(browser: Browser, pages, look):
    browser.look(**LOOKS[look])
    for name, address in pages.items():
        browser.open(address)
        assert len(browser.run("return document.body.innerText")) > 1000, name
        assert cut_or_crossed(browser) + pale_words(browser) == [], name
        folds = browser.run(FOLDS)
        assert folds and set(folds) == {look == "print"}, name
