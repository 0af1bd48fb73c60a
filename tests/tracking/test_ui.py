"""The MLflow UI in a real browser: a user finds the study, its runs, a loss curve, and the columns that answer."""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_records import make_rows, make_run, write_finished, write_live
from places import Place, serve

pytest.importorskip("selenium.webdriver", reason="the Python package selenium is not installed")
from browsers import needs_browser, started
from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from shapelaw.tracking.summary import RUNS, pages

pytestmark = needs_browser


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with started(tmp_path / "profile") as driver:
        yield driver


@pytest.mark.slow
def test_a_user_finds_the_study_its_runs_and_a_loss_curve(place: Place, browser: Any, tmp_path: Path) -> None:
    runs = [make_run(seed) for seed in range(5)]
    for run in runs[:3]:
        write_finished(place.results, run)
    write_live(place.results, runs[3], "FAILED", message="The GPU fell off the bus.")
    write_live(place.results, runs[4], host="elsewhere")
    place.import_all()

    def wait(look: Callable[[], Any], what: str) -> None:
        # the page draws itself bit by bit, so what was found may be replaced or covered a moment later
        changing = (StaleElementReferenceException, ElementClickInterceptedException)
        WebDriverWait(browser, 300, 0.1, changing).until(lambda _: look(), f"{what} is not on the page")

    def find(xpath: str, use: Callable[[Any], Any] = lambda element: element) -> None:
        def look() -> bool:
            shown = [each for each in browser.find_elements(By.XPATH, xpath) if each.is_displayed()]
            for element in shown[:1]:
                use(element)
            return bool(shown)

        wait(look, xpath)

    def click(xpath: str) -> None:
        find(xpath, lambda element: element.click())

    def drawn() -> bool:
        lines = browser.find_elements(By.CSS_SELECTOR, ".js-plotly-plot .js-line")
        losses = [row[1] for row in make_rows(runs[0])]
        return any(falls_like(line.get_attribute("d") or "", losses) for line in lines)

    with serve(place.uri, tmp_path) as uri:
        browser.get(f"{uri}/#/experiments")
        click("//*[text()='Model training']")  # remembered by the browser; MLflow opens on "GenAI"
        wait(lambda: not browser.find_elements(By.XPATH, "//a[normalize-space()='Default']"), "no Default")
        click(f"//a[normalize-space()='{place.study}']")
        for run in runs:
            find(f"//a[contains(., 'L2 d16 s{run.seed}')]")
        find("//*[text()='train.py']")  # the column Source

        click("//a[contains(., 'L2 d16 s0')]")
        find("//*[text()='Finished']")
        click("//*[@role='tab'][contains(., 'Model metrics')]")
        find("//input[@placeholder='Search metric charts']", lambda box: box.send_keys("train_loss"))
        find("//*[text()='train_loss']")
        wait(drawn, "the loss curve")

        browser.get(pages(place.store(), place.study, uri)[RUNS])
        find("//*[contains(., 'viewing a shared view')]")
        heads = "//*[@role='columnheader']//span[text()='{}']"
        for column in ("test_loss", "bits_per_byte", "block_params", "seed"):
            find(heads.format(column))


def falls_like(path: str, losses: list[float]) -> bool:
    """Whether a drawn SVG line has these heights, up to scale and shift (heights count from the top)."""
    heights = [float(y) for y in re.findall(r",(-?[\d.]+)", path)]
    if len(heights) != len(losses):
        return False
    scale = (heights[-1] - heights[0]) / (losses[0] - losses[-1])
    expected = [heights[0] + scale * (losses[0] - loss) for loss in losses]
    return all(math.isclose(y, e, abs_tol=1) for y, e in zip(heights, expected, strict=True))
