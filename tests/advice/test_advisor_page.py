"""The page of answers: in a real browser it computes, counts and says what the command does."""

import json
import math
import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from browsers import needs_browser, started
from commands import json_of, output_of
from model_configs import CONFIGS, NOT_COUNTED, config_of, folder_of
from small import REPOSITORY

from shapelaw.advice.answer.costs import Costs, Question, ask
from shapelaw.advice.answer.page import page_of
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.evidence.clocks import Serving
from shapelaw.advice.evidence.public import machine_clock, public_evidence
from shapelaw.advice.models.config_json import PLAIN, plain_model
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis

LARGEST_FILE = 300_000  # bytes
SAME = 1e-5  # relative, and nats: the page's normal scores have six digits
EQUAL = ("total", "block", "flops", "time", "latency")
SERVING = Serving(2, 8192, 3.3e12, 40e-6)
REFUSED = yaml.safe_load(Path(__file__).with_name("page.yaml").read_text(encoding="utf-8"))


def as_text(config: object) -> str:
    return config if isinstance(config, str) else json.dumps(config)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    output_of("advisor_page", "--out", "advisor.html", cwd=folder)
    return folder / "advisor.html"


def test_the_page_is_whole_small_and_ends_no_script_early(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST_FILE
    assert not re.search(r'(src|href)="|url\(|https?://(?!www\.w3\.org/2000/svg)', text)  # nothing is fetched
    assert page_of({"name": "</script><b>"}).count("</script>") == 1


@pytest.mark.slow
def test_a_workflow_writes_the_same_page(page: Path, with_store: Path) -> None:
    assert (with_store / "results" / "advisor.html").read_text("utf-8") == page.read_text("utf-8")


def in_browser(test: Any) -> Any:
    for mark in [*needs_browser, pytest.mark.slow]:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    with started(page.parent / "profile") as driver:
        driver.get(page.as_uri())
        yield driver
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def give(browser: Any, **values: str) -> None:
    """Write into the page's fields as a person does; those that are not named are as the page begins."""
    browser.execute_script(
        "set('config', ''); say('config-problem', ''); take(null);"
        "for (const [id, value] of Object.entries(beginning)) set(id, value);"
        "if (Object.keys(arguments[0]).length === 0) update();"
        "for (const [id, value] of Object.entries(arguments[0])) { set(id, value);"
        " const field = id === 'equal' ? radios().find((one) => one.checked) : byId(id);"
        " for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, {bubbles: true})); }",
        values,
    )


def text_of(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


def rows_of(browser: Any, table: str) -> list[list[str]]:
    """The cells of a table's rows without its head."""
    cells = "return [...byId(arguments[0]).rows].slice(1).map((row) => [...row.cells].map((one) => one.textContent))"
    return list(browser.execute_script(cells, table))


# --- what it computes, against the package ----------------------------------------------------------------------


def questions(count: int) -> Iterator[tuple[dict[str, Any], Question]]:
    """Random questions of every comparison in turn, as the page and as the package have them."""
    rng = np.random.default_rng(0)
    while count:
        size, vocab, tokens = np.exp(rng.uniform(np.log([1e7, 257, 1e9]), np.log([5e9, 262_144, 1e13])))
        equal, machine = EQUAL[count % 5], ("mi250x", "h200")[count // 5 % 2]
        timed = equal in ("time", "latency")
        tied, positions = bool(rng.integers(2)), int(rng.choice([0, 1024]))
        rank = None if tied or rng.integers(2) else 64
        axis = SizeAxis.TOTAL if timed else SizeAxis(equal)
        counting = Counting(axis, int(vocab), tied, "gpt2" if positions else "llama", positions, rank)
        if size < 2 * counting.fixed or counting.width_at(size, 1.0) < 64:
            continue
        count -= 1
        serving = Serving(**{**asdict(SERVING), "kv_heads": None if positions else 8})
        clock = serving if equal == "latency" else machine_clock(machine, 50257, 2048)
        asked = {"size": size, "tokens": tokens, "counting": asdict(counting), "machine": machine}
        asked |= {"kv": serving.kv_heads}
        asked |= {"equal": equal, "equalTime": timed, "askedDepth": None, "context": 2048}
        yield asked, Question(size, counting, tokens, clock, equal_time=timed)


def python_s(question: Question) -> Costs | None:
    try:
        return ask(public_evidence(), question)
    except UserError:
        return None


ASK = """
const [question, roof] = arguments, machine = clockOf(question.machine);
question.clock = question.equal === "latency" ? serving({ ...roof, kvHeads: question.kv }) : machine;
try {
  const found = ask(question), logs = found.rows().map(Math.log);
  return { ...found.best, told: found.told, rows: found.rows(), flat: found.flat(C.WITHIN), costs: found.band(logs),
    sizes: found.rows().map(found.sizeAt), seconds: [4, 40].map(found.seconds) };
} catch (error) {
  return null;
}"""


@in_browser
def test_it_computes_what_the_command_computes(browser: Any) -> None:
    roof = {"batch": SERVING.batch, "context": SERVING.context, "bandwidth": SERVING.bandwidth}
    answered = 0
    for asked, question in questions(30):
        here = browser.execute_script(ASK, asked, roof | {"layerSeconds": SERVING.layer_seconds})
        there = python_s(question)
        assert (here is None) == (there is None)
        if there is None:
            continue
        best, logs = there.best, np.log(there.rows())
        assert [here[name] for name in ("depth", "told", "rows", "flat")] == [
            best.depth,
            there.told,
            there.rows(),
            list(there.flat()),
        ]
        intervals = [here[name] for name in ("low", "high", "ownLow", "ownHigh")]
        assert intervals == pytest.approx([best.low, best.high, best.own_low, best.own_high], rel=SAME)
        band = there.band(logs, np.interp(logs, there.grid, there.log_blocks))
        assert pytest.approx(band, abs=SAME) == np.array(here["costs"]).T
        assert here["sizes"] == pytest.approx([there.size_at(depth) for depth in there.rows()], rel=SAME)
        ratio = there.relative_time(40) / there.relative_time(4)
        assert here["seconds"][1] / here["seconds"][0] == pytest.approx(ratio, rel=SAME)
        answered += 1
    assert answered > 25


@in_browser
def test_released_models_cost_what_the_command_says(browser: Any, tmp_path: Path) -> None:
    give(browser, vocab="32k", tokens="30B")
    here = {row[0]: row[-1] for row in rows_of(browser, "shipped")}
    there = json_of("shape", "1.3B", "--vocab", "32k", "--tokens", "30B", cwd=tmp_path)
    for one in there["shipped"]:
        said = here[f"{one['name']} ({one['year']})"]
        if one["origin"]:
            assert said == one["origin"]
        else:
            assert float(said) == pytest.approx(one["cost"], abs=0.00051)
    law, *_ = (one for one in there["witnesses"] if one["name"].startswith("Levine"))
    sources = rows_of(browser, "sources")
    assert sources[0][0] == public_evidence().name
    assert sources[1][1].startswith(f"{law['depth']:.0f} (")
    assert sources[1][3] == f"{law['times_outside']:.2g} times outside"


def numbers_of(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", text)]


@in_browser
@pytest.mark.parametrize(
    "fields",
    [
        {"depth": "20"},
        {"equal": "block", "tokens": "200B", "tied": "1", "vocab": "128k"},
        {"equal": "flops", "size": "350M", "rank": "128", "vocab": "30k"},
        {"equal": "time", "machine": "h200", "positions": "1024"},
        {"equal": "latency", "kv": "8", "batch": "16", "layer": "0.1ms"},
        {"config": json.dumps(config_of("llama"))},
        {"config": json.dumps(config_of("llama")), "equal": "time", "machine": "h200", "tokens": "3T"},
        {"config": json.dumps(config_of("llama")), "equal": "latency"},
        {"config": json.dumps(config_of("gpt2")), "tokens": "10B", "size": "124M"},
    ],
    ids=str,
)
def test_it_says_what_its_command_says(browser: Any, tmp_path: Path, fields: dict[str, str]) -> None:
    give(browser, **fields)
    command = text_of(browser, "command")
    if "config" in fields:
        family = json.loads(fields["config"])["model_type"]
        command = command.replace("FOLDER", str(folder_of(family, tmp_path)))
    program, name, *options = shlex.split(command)
    assert (program, name) == ("shapelaw", "shape")
    there = json_of("shape", *options, cwd=tmp_path)
    best = there["best"]
    said = re.search(r"Best depth: (\d+) layers? \(68%: (\d+) to (\d+)\)", text_of(browser, "answer"))
    assert said is not None
    assert [*map(int, said.groups())] == [best["depth"], best["low"], best["high"]]
    flat, beside = text_of(browser, "flat").split(". At ")
    depths = numbers_of(flat.partition("nats: ")[2])
    assert [depths[0], depths[-1]] == [there["within"]["low"], there["within"]["high"]]
    costs = {int(row[0]): numbers_of(row[2]) for row in rows_of(browser, "costs")}
    for row in there["costs"]:
        assert costs[row["depth"]] == pytest.approx([row["cost"], row["low"], row["high"]], abs=0.00051)
    if fields.get("equal") not in ("time", "latency"):  # by a rounded shape where sizes aren't all parameters
        timed = [*there["equal_times"]["MI250X"].values()]
        near = 1 if there["size_means"] != "total" else 0
        assert numbers_of(beside.partition("MI250X")[2]) == pytest.approx(timed, abs=near)
    if "config" in fields:
        verdict, timed = there["verdict"], fields.get("equal") in ("time", "latency")
        cost = verdict["cost_at_equal_time" if timed else "cost"]
        judged = re.search(r": ([\d.]+) \(([\d.]+) to ([\d.]+)\) nats above", text_of(browser, "given"))
        assert judged is not None
        assert [*map(float, judged.groups())] == pytest.approx(cost, abs=0.00051)
        assert len(browser.find_elements("css selector", "#figure circle.you")) == 1


# --- the model in a config.json ---------------------------------------------------------------------------------

COUNT = """
return arguments[0].map((text) => {
  try { return modelOf(text); } catch (error) { return error.message; }
});"""


NONE: list[dict[str, Any]] = [{"num_attention_heads": 7}, {"hidden_size": "2048"}]  # of no model


def counted(config: dict[str, Any]) -> dict[str, Any] | None:
    """What the package counts by formulas; None where it does not or refuses."""
    try:
        model = plain_model(config, "x", "config.json")
    except UserError:
        return None
    if model is None:
        return None
    return {
        **{name: getattr(model, name) for name in ("depth", "width", "heads", "vocab_size", "tied")},
        "kv_heads": None if model.kv_heads == model.heads else model.kv_heads,
        "positions": model.context,
        "block_params": model.block_params,
        "total_params": model.params,
    }


@in_browser
def test_parameters_of_a_config_are_counted_as_the_package_counts_them(browser: Any) -> None:
    shape = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "intermediate_size": 96}
    gpt2 = {"n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": 32, "n_inner": 80}
    values = product((None, 1, 2, 3), (None, 24), (None, True, False), (True, False))
    configs = [config_of(family) for family in CONFIGS]
    for family, (kv_heads, head_dim, tied, own) in product(PLAIN, values):
        options = {"num_key_value_heads": kv_heads, "head_dim": head_dim, "tie_word_embeddings": tied}
        given = {name: value for name, value in options.items() if value is not None}
        configs.append({"model_type": family, "vocab_size": 99, **(gpt2 if own else shape), **given})
    configs += [{**config_of("llama"), **more} for more in [*NOT_COUNTED, *NONE]]
    there = [counted(config) for config in configs]
    here = browser.execute_script(COUNT, [json.dumps(config) for config in configs])
    for config, mine, theirs in zip(configs, here, there, strict=True):
        assert (None if isinstance(mine, str) else mine) == theirs, (config, mine)
    assert there[0] is not None
    assert there[0]["total_params"] == 124_439_808
    assert sum(one is not None for one in there) > 150


@in_browser
@pytest.mark.parametrize(
    ("text", "sentence"), [(as_text(row["config"]), row["says"]) for row in REFUSED["configs"]]
)
def test_what_is_no_decoder_gets_a_sentence_and_the_answer_stays(
    browser: Any, text: str, sentence: str
) -> None:
    give(browser, vocab="32k")
    answer = text_of(browser, "answer")
    give(browser, vocab="32k", config=text)
    problem = text_of(browser, "config-problem")
    assert problem.startswith(sentence)
    assert problem.endswith(".")
    assert "\n" not in problem
    assert text_of(browser, "answer") == answer
    assert text_of(browser, "model-text") == ""


@in_browser
def test_a_pasted_model_is_the_question_until_it_is_left_out(browser: Any) -> None:
    give(browser, config=json.dumps(config_of("llama")))
    assert text_of(browser, "model-text").startswith(
        "22 layers of width 2,048, 32 heads, 4 of keys, untied: 1,100,048,384 parameters, 968,974,336 in blocks."
    )
    fields = {name: browser.find_element("id", name) for name in ("size", "vocab", "tied", "kv", "config")}
    assert [fields[name].get_property("value") for name in ("size", "vocab", "kv")] == ["", "32000", "4"]
    assert [one.is_enabled() for one in fields.values()] == [True, False, False, False, True]
    assert "Your model, 22 x 2,048: " in text_of(browser, "given")
    assert "your model" in text_of(browser, "figure")
    browser.find_element("id", "leave-out").click()
    assert (
        fields["config"].get_property("value")
        == text_of(browser, "given")
        == text_of(browser, "model-text")
        == ""
    )
    assert fields["size"].get_property("value") == "1.1B"
    assert all(one.is_enabled() for one in fields.values())


# --- the address ------------------------------------------------------------------------------------------------

SHOWN = ("answer", "flat", "given", "costs", "sources", "shipped", "model-text", "command", "problem")


def state_of(browser: Any) -> dict[str, Any]:
    fields = browser.execute_script(
        "return Object.fromEntries(Object.keys(beginning).map((id) => [id, get(id)]))"
    )
    return {**fields, **{name: text_of(browser, name) for name in (*SHOWN, "config-problem")}}


def address_of(browser: Any) -> str:
    time.sleep(0.3)  # what the page waits
    return str(browser.current_url)


@in_browser
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"size": "2e9", "tokens": "3T", "rank": "64", "depth": "40", "machine": "h200", "equal": "time"},
        {"equal": "latency", "bandwidth": "900 GB/s", "batch": "8", "context": "1k", "layer": "0.2ms"},
        {"config": json.dumps(config_of("llama")), "equal": "latency", "tokens": "10B"},
        {"size": "plenty & more", "equal": "flops"},
    ],
    ids=str,
)
def test_who_opens_the_address_sees_the_same(browser: Any, page: Path, fields: dict[str, str]) -> None:
    give(browser, **fields)
    sent, address = state_of(browser), address_of(browser)
    assert address.startswith(page.as_uri())
    assert (address == page.as_uri()) == (not fields)
    browser.get("about:blank")
    browser.get(address)
    assert state_of(browser) == sent
    assert address_of(browser) == address


@in_browser
@pytest.mark.parametrize(("address", "place", "sentence"), REFUSED["addresses"])
def test_a_broken_address_gets_a_sentence(
    browser: Any, page: Path, address: str, place: str, sentence: str
) -> None:
    browser.get("about:blank")
    browser.get(f"{page.as_uri()}#{address}")
    assert text_of(browser, place).startswith(sentence)
    browser.execute_script("location.hash = 'size=700M'")
    give_up = time.monotonic() + 5
    while "size" in browser.execute_script("return get('size')") and time.monotonic() < give_up:
        time.sleep(0.05)
    assert browser.execute_script("return get('size')") == "700M"


# --- words and hands --------------------------------------------------------------------------------------------


@in_browser
def test_the_valley_slides_with_the_switch(browser: Any) -> None:
    depths = []
    for equal in EQUAL:
        give(browser, equal=equal, vocab="32k", tokens="30B")
        depths.append(int(re.findall(r"Best depth: (\d+)", text_of(browser, "answer"))[0]))
        assert browser.find_element("id", "for-latency").is_displayed() == (equal == "latency")
        curves = browser.find_elements("css selector", "#figure path.curve, #figure path.time")
        assert len(curves) == 2
    total, block, flops, timed, latency = depths
    assert latency < timed < block < flops <= total
    give(browser, equal="latency", layer="1us")  # hardly any launches: nearly equal sizes
    assert int(re.findall(r"Best depth: (\d+)", text_of(browser, "answer"))[0]) > timed


@in_browser
def test_wrong_input_is_a_sentence_and_what_can_t_be_told_is_said(browser: Any, tmp_path: Path) -> None:
    for row in REFUSED["fields"]:
        give(browser, **row["given"])
        assert row["says"] in text_of(browser, "problem")
        assert text_of(browser, "answer") == text_of(browser, "costs") == ""
    give(browser, size="70B")  # 20 tokens for each parameter
    assert text_of(browser, "problem") == ""
    assert text_of(browser, "answer").startswith("Best depth: can't tell")
    near = json_of("shape", "70B", cwd=tmp_path)["nearest_told"]
    said = f"{near['size'] / 1e9:.3g}B: {near['depth']} layers ({near['low']} to {near['high']})."
    assert f"The nearest that it can tell is {said}" in text_of(browser, "flat")
    assert browser.find_elements("css selector", "#figure path.curve") == []
    give(browser, size="1.3B", tokens="10T")
    near = json_of("shape", "1.3B", "--tokens", "10T", cwd=tmp_path)["nearest_told"]
    said = f"is 3.5T tokens: {near['depth']} layers ({near['low']} to {near['high']})."
    assert "these are more than 10 times as many" in text_of(browser, "flat")
    assert said in text_of(browser, "flat")
    give(browser, size="650M", vocab="33")
    assert "The vocabulary binds" in text_of(browser, "bottleneck")
    give(browser, size="235M", vocab="30k", rank="128")
    assert "The rank binds" in text_of(browser, "bottleneck")


@in_browser
def test_the_keyboard_alone_reaches_everything_and_leaves_it_again(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    give(browser, size="1B", equal="latency")
    slider = browser.find_element("id", "size-slider")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element("id", "size").get_attribute("value") == "1.02B"
    assert slider.get_attribute("aria-valuetext") == "1.02B"
    order: list[str] = []
    for _ in range(30):
        here = browser.switch_to.active_element
        order.append(here.get_attribute("id") or here.get_attribute("value") or here.tag_name)
        if here.tag_name not in ("body", "html"):
            assert here.value_of_css_property("outline-style") == "solid", order[-1]
        here.send_keys(Keys.TAB)
    wanted = ["size-slider", "size", "vocab-slider", "vocab", "tied", "tokens-slider", "tokens", "depth"]
    wanted += ["summary", "config", "latency", "batch", "context", "bandwidth", "layer", "kv"]
    assert order[: len(wanted)] == wanted
    assert order[-1] not in wanted[-1:]  # no field holds the focus
    chosen = browser.find_element("css selector", "input[value=latency]")
    chosen.send_keys(Keys.ARROW_LEFT)
    assert "at equal training time on MI250X" in text_of(browser, "answer")


@in_browser
def test_a_screen_reader_is_told_what_stands_there(browser: Any) -> None:
    give(browser, vocab="32k", equal="latency", config=json.dumps(config_of("llama")))
    fields = browser.find_elements("css selector", "input, select, textarea, button, summary")
    shown = [one for one in fields if one.is_displayed()]
    assert len(shown) > 15
    assert [one.get_attribute("outerHTML") for one in shown if not one.accessible_name] == []
    figure = browser.find_element("id", "figure")
    assert figure.aria_role in ("img", "image")
    cost = next(row for row in rows_of(browser, "costs") if row[2].startswith("0.000"))
    assert f"a valley with its floor at {cost[0]} layers" in figure.accessible_name
    assert re.search(r"Your model: 0\.\d{3} at 22 layers", figure.accessible_name)
    live = browser.find_element("id", "answer").find_element("xpath", "..")
    assert live.get_attribute("aria-live") == "polite"
    heads = browser.execute_script(
        "return [...document.querySelectorAll('th')].every((one) => one.scope !== '')"
    )
    assert heads


@in_browser
@pytest.mark.parametrize("equal", ["total", "latency"])
def test_nothing_is_cut_off_at_two_widths_by_day_and_night(browser: Any, equal: str) -> None:
    give(browser, equal=equal, config=json.dumps(config_of("llama")))
    papers, drawn = set(), set()
    for scheme, width in product(("light", "dark"), (400, 1280)):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        papers.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        shown = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert shown[0] <= shown[1] == width
        over = browser.execute_script(
            "const right = byId('figure').getBoundingClientRect().right;"
            "return [...document.querySelectorAll('#figure text')].filter((one) => {"
            " const box = one.getBoundingClientRect();"
            " return box.left < 0 || box.right > right + 1; }).map((one) => one.textContent)"
        )
        assert over == []
        drawn.add(browser.find_element("id", "figure").get_dom_attribute("viewBox"))
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(papers) == 2
    assert len(drawn) == 2  # drawn for the width, so that its letters can be read


# --- one's own times and transitions ----------------------------------------------------------------------------


def test_times_of_one_s_own_machine_come_first(tmp_path: Path) -> None:
    speed = REPOSITORY / "workflow" / "reference" / "h200_speed.csv"
    output_of("advisor_page", "--speed", speed, "--out", "mine.html", cwd=tmp_path)
    text = (tmp_path / "mine.html").read_text(encoding="utf-8")
    machines = json.loads(re.findall(r'"machines":(\{.*?\}\}),"normals"', text)[0])
    assert [*machines] == [str(speed), "mi250x", "h200"]
    assert math.dist(machines[str(speed)]["log_time"], machines["h200"]["log_time"]) == 0.0
