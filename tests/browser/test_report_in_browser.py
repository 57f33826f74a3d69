"""The report in a real browser: nothing is cut, nothing is pale, print shows all."""

from pathlib import Path

import pytest

from tests.browser.report_screenshots import shots

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")

#: Elements that hold text themselves, with their colour and the one behind them.
CONTRAST = """
const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const bright = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1])
    + 0.0722 * channel(c[2]);
const numbers = words => words.match(/[\\d.]+/g).map(Number);
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const own = e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
return [...document.querySelectorAll("main *")].filter(own).map(e => {
  const [a, b] = [numbers(getComputedStyle(e).color), behind(e)].map(bright);
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  return [ratio, e.textContent.slice(0, 40)];
});
"""
#: What is wider than the page, or than what holds it.
CUT = """
const wide = document.documentElement.clientWidth + 1;
const hidden = e => e.scrollWidth > e.clientWidth + 1
  && !["inline", "none"].includes(getComputedStyle(e).display)
  && getComputedStyle(e).overflowX != "visible";
return [...document.querySelectorAll("main *")]
  .filter(e => e.getBoundingClientRect().right > wide || hidden(e))
  .map(e => e.tagName + " " + e.textContent.slice(0, 40));
"""
FOLDS = """
return [...document.querySelectorAll("details")].map(
  e => e.lastElementChild.checkVisibility({contentVisibilityAuto: true})
    && e.getBoundingClientRect().height > 40);
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Every picture's name, with what a browser says of contrast, cuts and folds."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER.exists() and DRIVER.exists()):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for word in ("headless=new", "no-sandbox", "disable-gpu", "no-first-run"):
        options.add_argument(f"--{word}")
    options.add_argument("--disable-background-networking")
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    try:
        yield {
            shot.name: look(driver, shot)
            for shot in shots(tmp_path_factory.mktemp("shots"))
        }
    finally:
        driver.quit()


def look(driver, shot):
    size = {"width": shot.width, "height": 800, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", size | {"mobile": shot.width < 500}
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if shot.dark else "light"}
    media = {"media": "print" if shot.printed else "screen", "features": [scheme]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(f"file://{shot.page}")
    asked = {"contrast": CONTRAST, "cut": CUT, "folds": FOLDS}
    return {name: driver.execute_script(words) for name, words in asked.items()}


@pytest.mark.long
def test_pages_are_whole_and_legible(seen):
    assert len(seen) == 7
    for name, told in seen.items():
        assert told["cut"] == [], name
        assert len(told["contrast"]) > 50, name
        pale = [one for one in told["contrast"] if one[0] < 4.5]
        assert pale == [], name
        opened = name == "report-print"
        assert told["folds"] and set(told["folds"]) == {opened}, name
