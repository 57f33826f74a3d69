"""Debian's chromium without a window, for tests and screenshots."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import HANG

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
#: Widths in CSS pixels, and what else a look asks for. Paper is A4 within its margins
#: of 14 mm.
LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"width": 1200},
    "phone": {"width": 390},
    "dark": {"width": 1200, "dark": True},
    "phone-dark": {"width": 390, "dark": True},
    "print": {"width": 688, "media": "print"},
}


def missing() -> str | None:
    """Why there is no browser here; None if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} here; apt install chromium chromium-driver"
    try:
        import selenium  # noqa: F401 - only whether it is there
    except ImportError:
        return "no selenium here; pip install selenium"
    return None


class Browser:
    """One browser.

    Attributes:
        driver: Selenium's.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def look(
        self, width: int, dark: bool = False, media: str = "screen", height: int = 900
    ) -> None:
        """Be a window of this width, on light or dark paper, or a printer."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self._command("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, address: str) -> None:
        """Go to a page."""
        self.driver.get(address)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: str) -> None:
        """Wait until an expression holds in the page."""
        from selenium.webdriver.support.ui import WebDriverWait

        def holds(driver: Any) -> Any:
            return driver.execute_script(f"return Boolean({condition})")

        WebDriverWait(self.driver, HANG, 0.05).until(holds, condition)

    def press(self, *keys: str) -> None:
        """Press keys of the keyboard, one after the other."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(getattr(Keys, key))
        chain.perform()

    def picture(self, path: Path) -> None:
        """The whole page, however long, as a PNG."""
        size = "[document.documentElement.scrollWidth, document.body.scrollHeight]"
        width, height = self.run(f"return {size}")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        told = self._command(
            "Page.captureScreenshot", captureBeyondViewport=True, clip=clip
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(told["data"]))

    def requests(self) -> list[str]:
        """Addresses that pages have asked for since the last time."""
        found = []
        for entry in self.driver.get_log("performance"):
            told = json.loads(entry["message"])["message"]
            if told["method"] == "Network.requestWillBeSent":
                found.append(told["params"]["request"]["url"])
        # Not those of the browser's own first page.
        return [one for one in found if not one.startswith(("chrome", "data:"))]

    def complaints(self) -> list[str]:
        """Errors in the browser's own log since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def _command(self, name: str, **arguments: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, arguments)


@contextmanager
def chromium(profile: Path, logs: bool = True) -> Iterator[Browser]:
    """A browser with a profile of its own, closed at the end.

    Without `logs` it keeps no note of requests and complaints, which costs it time.
    """
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    wanted = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", wanted if logs else {})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
