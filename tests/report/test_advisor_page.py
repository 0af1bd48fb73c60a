"""The page of advice: in a real browser it says what the command says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsers import needs_browser, started
from commands import run_here
from small import SCRIPTS

from shapelaw.fits.advice import Budget, advise, rounded_shape
from shapelaw.fits.projection import fit_forms
from shapelaw.report.advisor_page import DEPTHS, content_of, page_of, quantiles_of
from shapelaw.specs.architectures import Architecture
from shapelaw.studies.study import REFERENCE

TABLE = pd.read_csv(REFERENCE / "levine2020_transitions.csv")
FORMS = fit_forms(TABLE["depth"], np.log(TABLE["width"]), TABLE["width_err"] / TABLE["width"])
BUDGETS = [
    Budget(1.3e9, 50257),
    Budget(1.25e8, 50257, 2048, tied=True),
    Budget(1.75e11, 50257, 2048, tied=True),
    Budget(6.52e8, 33),
    Budget(2e7, 257, 128),
    Budget(2.35e8, 30000, 512, rank=128),
    Budget(3e6, 2000),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: f"{budget.params:.3g}-V{budget.vocab_size}")
def test_where_a_quantile_first_exceeds_the_blocks_is_the_advice(budget: Budget) -> None:
    found, quantiles, blocks = advise(FORMS, budget), quantiles_of(FORMS), np.log(budget.block_params(DEPTHS))
    for name, depth in (("low", found.depth_low), ("middle", found.depth), ("high", found.depth_high)):
        first = DEPTHS[(np.array(quantiles[name]) >= blocks).argmax()]
        assert first == pytest.approx(depth, rel=0.025)


def test_the_page_is_whole_and_ends_no_script_early() -> None:
    model = Architecture("</script><b>", 8, depth=2, params=1000)
    page = page_of(
        content_of(FORMS, source="here", depths=(6, 30), sizes=(1e6, 1e8), series=[], models=[model])
    )
    assert page.count("</script>") == 1
    assert not re.search(r'(src|href)="|https?://(?!www\.w3\.org/2000/svg)', page)  # nothing is fetched


def test_the_command_writes_it_and_refuses_a_folder_without_a_law(tmp_path: Path) -> None:
    done = run_here(SCRIPTS / "advisor_page.py", "--out", "advisor.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Levine et al. 2020" in (tmp_path / "advisor.html").read_text(encoding="utf-8")
    refused = run_here(SCRIPTS / "advisor_page.py", "--fit", "nowhere", "--out", "other.html", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--fit nowhere has no transitions.csv" in refused.stderr


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("page")
    run_here(SCRIPTS / "advisor_page.py", "--out", "advisor.html", cwd=folder)
    with started(folder / "profile") as driver:
        driver.get((folder / "advisor.html").as_uri())
        yield driver
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def give(browser: Any, **values: object) -> None:
    """Write into the page's fields as a person does."""
    browser.execute_script(
        "for (const [id, value] of Object.entries(arguments[0])) { const field = document.getElementById(id);"
        " if (field.type === 'checkbox') { field.checked = value; field.dispatchEvent(new Event('change')); }"
        " else { field.value = value; field.dispatchEvent(new Event('input', {bubbles: true})); } }",
        values,
    )


def text_of(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


def in_browser(test: Any) -> Any:
    for mark in [*needs_browser, pytest.mark.slow]:
        test = mark(test)
    return test


@in_browser
def test_it_says_what_the_command_says(browser: Any) -> None:
    for budget in BUDGETS:
        give(browser, params=budget.params, vocab=budget.vocab_size, context=budget.context_length)
        give(browser, rank=budget.rank or "", tied=budget.tied)
        found = advise(FORMS, budget)
        said = re.match(
            r"Best depth: ([\d.,]+) layers? \(68%: ([\d.,]+) to ([\d.,]+)\), width ([\d,]+)",
            text_of(browser, "answer"),
        )
        assert said is not None, text_of(browser, "problem")
        numbers = [float(number.replace(",", "")) for number in said.groups()]
        expected = [found.depth, found.depth_low, found.depth_high, found.width]
        assert numbers == pytest.approx(expected, rel=0.02, abs=0.5)
        shape = rounded_shape(budget, found.depth)
        assert f"width {shape.width:,}, {shape.heads} heads of {shape.attention_dim}" in text_of(
            browser, "shape"
        )


@in_browser
def test_wrong_input_is_a_sentence_and_a_small_vocabulary_binds(browser: Any) -> None:
    give(browser, params="plenty", vocab=50257, rank="", tied=False, context=0)
    assert "The number of parameters is plenty; give one such as 1.3B" in text_of(browser, "problem")
    assert text_of(browser, "answer") == ""  # hidden
    give(browser, params="650M", vocab=33, depth=33)
    assert text_of(browser, "problem") == ""
    assert "The vocabulary binds" in text_of(browser, "bottleneck")
    assert "shallower than advised" in text_of(browser, "verdict")
    assert text_of(browser, "command").startswith("shapelaw shape 650M --vocab 33 --depth 33 --width")


@in_browser
def test_the_keyboard_moves_a_slider_and_nothing_is_cut_off_at_two_widths(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    give(browser, params="1B", vocab=50257, rank="", tied=False, depth="")
    slider = browser.find_element("id", "params-slider")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element("id", "params").get_attribute("value") == "1.02B"
    slider.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("id") == "params"
    drawn = []
    for width in (1280, 500):  # the least width of a window
        browser.set_window_size(width, 900)
        shown = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert shown[0] <= shown[1]
        drawn.append(browser.find_element("id", "figure").get_dom_attribute("viewBox"))
        assert len(browser.find_elements("css selector", "#figure circle.model")) > 10
    assert drawn[0] != drawn[1]  # drawn for the width, so that its letters can be read
