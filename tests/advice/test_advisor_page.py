"""The page of answers: its tables and, in a real browser, its words are what the command says."""

import base64
import importlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import needs_browser, started
from commands import output_of, sentence_of
from scipy.interpolate import RegularGridInterpolator
from small import REPOSITORY, SCRIPTS

from shapelaw.advice.answer import page as advisor_page
from shapelaw.advice.answer.answer import price
from shapelaw.advice.answer.costs import DEPTHS, Costs, Question, ask
from shapelaw.advice.answer.page import packed
from shapelaw.advice.answer.template import PLACE, TEMPLATE, page_of
from shapelaw.advice.answer.text import ends
from shapelaw.advice.evidence.public import public_evidence, published_law, shipped_models
from shapelaw.specs.sizes import Counting, SizeAxis

EVIDENCE = public_evidence()
LARGEST_FILE = 280_000  # bytes
# how far the page may lie from the command
DEPTH, INTERVAL, WIDTH, TIME, TIMED = 0.05, 0.13, 0.02, 0.03, 0.12  # as shares
COST, HIGH_COST, MODEL = (
    0.0035,
    0.008,
    0.006,
)  # nats, of depths that cost less than CHEAP, and of shipped models
CHEAP = 0.03
AXES = [{SizeAxis.BLOCK: 0.2, SizeAxis.TOTAL: 0.6, SizeAxis.FLOPS: 0.2}[axis] for axis in SizeAxis]


@pytest.fixture(scope="module")
def page(with_store: Path) -> Path:
    """That which a workflow wrote."""
    return with_store / "results" / "advisor.html"


@pytest.fixture(scope="module")
def content(page: Path) -> dict[str, Any]:
    before, _, after = TEMPLATE.read_text(encoding="utf-8").partition(PLACE)
    text = page.read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix(before).removesuffix(after))
    return found


def interpolated(table: dict[str, Any]) -> Any:
    """A table of the page as scipy interpolates it."""
    values = np.frombuffer(base64.b64decode(table["data"]), "<u2").reshape(*map(len, table["axes"]), -1)
    return RegularGridInterpolator(table["axes"], values * np.array(table["step"]) + np.array(table["least"]))


def questions(count: int, seed: int = 0) -> Iterator[Costs]:
    """Comparisons that the evidence can price, at random sizes, vocabularies and tokens."""
    rng = np.random.default_rng(seed)
    while count:
        size, vocab, tokens = np.exp(rng.uniform(np.log([1e7, 257, 1e9]), np.log([5e9, 262_144, 1e13])))
        axis = list(SizeAxis)[rng.choice(3, p=AXES)]
        counting = Counting(axis, int(vocab), bool(rng.integers(2)))
        if counting.width_at(size, 1.0) > 64:
            found = ask(EVIDENCE, Question(float(size), counting, float(tokens), EVIDENCE.clock))
            if found.told:
                count -= 1
                yield found


def place_of(found: Costs) -> list[float]:
    counting, size = found.question.counting, found.question.size
    tables = {SizeAxis.BLOCK: 0, SizeAxis.FLOPS: 1, SizeAxis.TOTAL: 1 if counting.tied else 2}[counting.axis]
    rows = counting.vocab_size * tables
    return [math.log(size), math.log1p(rows / math.sqrt(size))]


def test_between_the_nodes_the_tables_are_the_command_s_answers(content: dict[str, Any]) -> None:
    best, cost, width, time = (interpolated(content[name]) for name in ("best", "cost", "width", "time"))
    for found in questions(60):
        place, tokens = place_of(found), math.log(found.question.tokens)
        log_best, low, high, own_low, own_high, *beyond = best([*place, tokens])[0]
        assert log_best == pytest.approx(found.log_best, abs=DEPTH)
        of_costs = (found.best.low, found.best.high, found.best.own_low, found.best.own_high)
        assert [low, high, own_low, own_high] == pytest.approx(np.log(of_costs), abs=INTERVAL)
        total = found.question.counting.axis is SizeAxis.TOTAL
        assert beyond[0 if total else 1] == pytest.approx(found.beyond, abs=0.2)

        log_depth = np.log([4, 8, 12, 16, 24, 32, 48, 64, 96])
        true = found.band(log_depth, np.interp(log_depth, DEPTHS, found.log_blocks))
        roots = cost([*place, tokens])[0].reshape(3, -1)
        read = np.array([np.interp(log_depth - log_best, content["offsets"], one) ** 2 for one in roots])
        cheap = true[0] < CHEAP
        assert np.abs(read - true)[:2, cheap].max() < COST
        assert np.abs(read - true)[2, cheap].max() < HIGH_COST

        widths = [float(width([*place, one])[0, 0]) for one in log_depth]
        counting = found.question.counting
        real = [math.log(counting.width_at(found.question.size, math.exp(one))) for one in log_depth]
        assert widths == pytest.approx(real, abs=WIDTH)
        vocab = math.log(counting.vocab_size)
        logs = [float(time([vocab, widths[i], log_depth[i]])[0, 0]) for i in (3, 6)]
        assert math.exp(logs[1] - logs[0]) == pytest.approx(
            found.relative_time(48) / found.relative_time(16), rel=TIME
        )


def test_best_depths_at_equal_time_are_the_command_s(content: dict[str, Any]) -> None:
    timed, checked = interpolated(content["timed"]), 0
    for found in questions(60, seed=3):
        if found.question.counting.axis is not SizeAxis.TOTAL or found.question.tokens > 2e12:
            continue
        tied = float(found.question.counting.tied)
        *logs, told = timed([*place_of(found), tied, math.log(found.question.tokens)])[0]
        if told > 0.999:
            best = ask(EVIDENCE, replace(found.question, equal_time=True)).best
            assert logs[0] == pytest.approx(math.log(best.depth), abs=max(TIMED, 0.6 / best.depth))
            assert logs[1:] == pytest.approx(np.log([best.low, best.high]), abs=TIMED + 0.6 / best.depth)
            checked += 1
    assert checked > 15


@pytest.mark.slow
def test_the_numbers_at_hand_are_those_of_today_s_answers(tmp_path: Path, content: dict[str, Any]) -> None:
    output_of("advisor_page", "--out", "advisor.json", cwd=tmp_path)
    computed = json.loads((tmp_path / "advisor.json").read_text(encoding="utf-8"))
    assert computed.keys() == content.keys()
    for name, here in computed.items():
        there = content[name]
        if isinstance(here, dict) and "data" in here:  # another CPU's last digits can turn a step
            of_both = (
                np.frombuffer(base64.b64decode(one["data"]), "<u2").astype(int) for one in (here, there)
            )
            assert np.abs(np.subtract(*of_both)).max() <= 1
            assert here["axes"] == there["axes"]
            assert [*here["least"], *here["step"]] == pytest.approx(
                [*there["least"], *there["step"]], rel=1e-6
            )
        else:
            assert here == there


def test_after_new_fits_the_numbers_at_hand_are_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = importlib.import_module("shapelaw.advice.commands.advisor_page")
    assert script.ready() is not None, f"run: {script.RENEW}"
    for name in script.INPUTS:
        (tmp_path / name).write_bytes((script.REFERENCE / name).read_bytes())
    with (tmp_path / "models.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    monkeypatch.setattr(script, "REFERENCE", tmp_path)
    assert script.ready() is None


@pytest.mark.slow
def test_times_of_one_s_own_machine_are_those_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SIZES", "ROWS", "TIMED_SIZES", "TIMED_ROWS"):  # few answers
        monkeypatch.setattr(advisor_page, name, getattr(advisor_page, name)[[0, -1]])
    monkeypatch.setattr(advisor_page, "MODEL_TOKENS", [2])
    speed = REPOSITORY / "workflow" / "reference" / "h200_speed.csv"
    output_of("advisor_page", "--speed", speed, "--out", "mine.html", cwd=tmp_path)
    assert "h200_speed.csv" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    refused = sentence_of("advisor_page", "--fit", "nowhere", "--out", "other.html", cwd=tmp_path)
    assert "--fit nowhere has no transitions.csv" in refused


def test_the_law_and_shipped_models_are_the_command_s(content: dict[str, Any]) -> None:
    law = interpolated(content["law"])
    for found in questions(20, seed=1):
        assert law(place_of(found))[0] == pytest.approx(published_law().depth(found), rel=DEPTH, abs=1.0)
    tokens, checked = 3e10, 0
    by_name = {(one["name"], one["depth"]): one for one in content["models"]}
    for network in shipped_models(SizeAxis.TOTAL)[::4]:
        if (network.name, network.depth) not in by_name:
            continue
        costs = by_name[network.name, network.depth]["costs"]["total"]
        own = price(network, ask(EVIDENCE, Question(1.3e9, Counting(), tokens, EVIDENCE.clock)))
        assert own.cost is not None
        read = np.interp(math.log(tokens), content["modelTokens"], costs)
        assert read == pytest.approx(own.cost.value, abs=MODEL)
        checked += 1
    assert checked > 10


def test_the_page_is_whole_small_and_ends_no_script_early(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST_FILE
    assert not re.search(r'(src|href)="|https?://(?!www\.w3\.org/2000/svg)', text)  # nothing is fetched
    assert page_of({"name": "</script><b>"}).count("</script>") == 1


def test_a_packed_table_is_what_it_was_and_a_constant_column_stays() -> None:
    values = np.stack([np.linspace(-3, 5, 12).reshape(3, 4), np.full((3, 4), 7.0)], axis=-1)
    back = interpolated(packed([np.arange(3.0), np.arange(4.0)], values))
    assert back([1.0, 2.0])[0] == pytest.approx(values[1, 2], abs=1e-4)


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    with started(page.parent / "profile") as driver:
        driver.get(page.as_uri())
        yield driver
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def give(browser: Any, **values: object) -> None:
    """Write into the page's fields as a person does; those that are not named are as the page begins."""
    begins = {"size": "1.3B", "vocab": "50257", "means": "total", "tied": False}
    begins |= dict.fromkeys(("tokens", "depth", "rank", "positions"), "")
    browser.execute_script(
        "for (const [id, value] of Object.entries(arguments[0])) { const field = document.getElementById(id);"
        " if (field.type === 'checkbox') field.checked = value; else field.value = value;"
        " for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true})); }",
        begins | values,
    )


def text_of(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


def numbers_of(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", text)]


def in_browser(test: Any) -> Any:
    for mark in [*needs_browser, pytest.mark.slow]:
        test = mark(test)
    return test


@in_browser
def test_it_says_what_the_command_says(browser: Any) -> None:
    for found in questions(12, seed=2):
        question, counting = found.question, found.question.counting
        asked = {"size": question.size, "vocab": counting.vocab_size, "tied": counting.tied}
        give(browser, **asked, means=counting.axis.value, tokens=question.tokens, depth=24)
        depth, _, low, high, width, *_ = numbers_of(text_of(browser, "answer"))
        assert depth == pytest.approx(found.best.depth, rel=DEPTH, abs=1.0)
        assert [low, high] == pytest.approx(ends(found.best), rel=INTERVAL, abs=1.0)
        real = counting.width_at(question.size, found.best.depth)
        assert width == pytest.approx(real, rel=DEPTH, abs=9)  # the narrower the deeper
        said = re.search(r"wide: ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text_of(browser, "given"))
        assert said is not None
        cost = found.at(24.0)
        near = max(HIGH_COST, 0.05 * cost.high)
        assert [float(one) for one in said.groups()] == pytest.approx(
            [cost.value, cost.low, cost.high], abs=near
        )
        assert len(browser.find_elements("css selector", "#costs tr")) in range(5, 11)
        assert len(browser.find_elements("css selector", "#figure path.curve, #figure path.time")) == 2


@in_browser
def test_a_factored_embedding_and_learned_positions_are_counted(browser: Any) -> None:
    counting = Counting(vocab_size=30000, block="gpt2", positions=512, rank=128)
    found = ask(EVIDENCE, Question(2.35e8, counting, 3e10, EVIDENCE.clock))
    give(browser, size="235M", vocab="30k", rank="128", positions="512", tokens="30B")
    assert numbers_of(text_of(browser, "answer"))[0] == pytest.approx(found.best.depth, rel=DEPTH, abs=1.0)
    assert "The rank binds" in text_of(browser, "bottleneck")
    command = text_of(browser, "command")
    assert command == "shapelaw shape 235M --vocab 30000 --tokens 30B --rank 128 --block gpt2 --context 512"


@in_browser
def test_models_and_witnesses_have_names(browser: Any) -> None:
    give(browser, vocab="32k", tokens="30B")
    drawn = text_of(browser, "figure")
    assert all(
        name in drawn
        for name in ("Your network", "at equal time", "Gemstones", "Levine et al. 2020", "TinyLlama-1.1B")
    )
    assert re.search(r"At equal time about 1\d layers are best", text_of(browser, "flat"))
    witnesses = text_of(browser, "witnesses")
    assert re.search(r"Gemstones and Bian et al. 2025 \d+ \(\d+ to \d+\) 15.2M to 1.77B inside", witnesses)
    assert re.search(r"Levine et al. 2020, table 4a 4\d .* 4.9 times outside", witnesses)
    assert "Llama-3.2-1B (2024) 16 2,048 128k tied 1.24B" in text_of(browser, "shipped")
    assert len(browser.find_elements("css selector", "#figure circle.model")) >= 8


@in_browser
def test_wrong_input_is_a_sentence_and_what_can_t_be_told_is_said(browser: Any) -> None:
    for field, value, sentence in (
        ("size", "plenty", "The number of parameters is plenty; give a number from 5M to 20B, such as 1.3B"),
        ("size", "1,3B", "commas part groups of three digits; the decimal sign is a point"),
        ("size", "", "The number of parameters is empty"),
        ("size", "30M", "30M parameters have no room for blocks beside a vocabulary of 300,000"),
        ("tokens", "0", "The number of tokens is 0; give a number from 1B to 20T"),
        ("depth", "2.5", "The number of layers is 2.5; give a whole number from 1 to 512"),
        ("rank", "128", "A factored embedding is not the classifier's matrix"),
    ):
        give(
            browser,
            **{field: value, "tied": field == "rank"},
            **({"vocab": "300k"} if value == "30M" else {}),
        )
        assert sentence in text_of(browser, "problem")
        assert text_of(browser, "answer") == text_of(browser, "costs") == ""
    give(browser, size="7B")
    assert text_of(browser, "problem") == ""
    assert text_of(browser, "answer").startswith("Best depth: can't tell")
    assert browser.find_elements("css selector", "#figure path.curve") == []
    give(browser, size="650M", vocab="33")
    assert "The vocabulary binds" in text_of(browser, "bottleneck")


@in_browser
def test_the_keyboard_alone_asks_and_nothing_is_cut_off_at_two_widths_by_day_and_night(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    give(browser, size="1B")
    slider = browser.find_element("id", "size-slider")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element("id", "size").get_attribute("value") == "1.02B"
    slider.send_keys(Keys.TAB)
    order = []
    for _ in range(9):
        order.append(browser.switch_to.active_element.get_attribute("id"))
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert order[:4] == ["size", "means", "vocab-slider", "vocab"]
    assert {"tied", "tokens", "depth", "rank"} <= set(order)
    papers, drawn = set(), set()
    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        papers.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        for width in (400, 1280):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            shown = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
            assert shown[0] <= shown[1] == width
            over = browser.execute_script(
                "return [...document.querySelectorAll('#figure text')].filter((one) => {"
                " const box = one.getBoundingClientRect();"
                " return box.left < 0 || box.right > window.innerWidth; }).map((one) => one.textContent)"
            )
            assert over == []
            drawn.add(browser.find_element("id", "figure").get_dom_attribute("viewBox"))
    assert len(papers) == 2
    assert len(drawn) == 2  # drawn for the width, so that its letters can be read
