"""A headless Chromium for tests, where Debian's chromium and chromium-driver are installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
OPTIONS = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync"]
OPTIONS += ["disable-background-networking", "disable-component-update", "window-size=1600,1400"]

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed"),
    pytest.mark.skipif(not DRIVER, reason="chromedriver (Debian: chromium-driver) is not installed"),
]


@contextmanager
def started(profile: Path) -> Iterator[Any]:
    """A browser with an empty profile; without the Python package selenium the test is skipped."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="the Python package selenium is not installed"
    )
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in [*OPTIONS, f"user-data-dir={profile}"]:
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
