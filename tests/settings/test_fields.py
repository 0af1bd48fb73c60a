"""Keys as YAML and command lines spell them, sections of a spec's fields, budgets and rates of widths."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import ValidationError
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.settings.fields import Section, section_of
from shapelaw.specs.runs import KeyDoc, Run


def test_numbers_inside_a_command_lines_mapping_are_numbers() -> None:
    """Snakemake hands on `--config training='{steps: 60}'` as texts."""
    changes = {
        "training": {"steps": "60", "warmup_steps": "5", "learning_rate": "1e-3", "gradient_clip": "null"}
    }
    widths = {"widths": {"1": ["16", "24"]}, "repeated": {}}
    config = load_config(shipped(**changes, depth_width=widths), SCALES)
    assert (config.training.spec().steps, config.training.spec().learning_rate) == (60, 1e-3)
    assert config.training.spec().gradient_clip is None
    assert config.depth_width.widths == {1: [16, 24]}


@pytest.mark.parametrize("name", ["2024", "007", "inf", "nan", "1_000", "1e3", "true", "null"])
def test_a_text_that_spells_a_number_stays_a_text_where_one_is_asked_for(name: str) -> None:
    assert load_config(shipped(corpus={"name": name}), SCALES).corpus.name == name


def test_null_inside_a_command_lines_mapping_is_null() -> None:
    changes = {"tracking": {"uri": "null"}, "corpus": {"gpt2_files": "null", "limit_bytes": "null"}}
    config = load_config(shipped(**changes), SCALES)
    assert (config.tracking.uri, config.corpus.gpt2_files, config.corpus.limit_bytes) == (None, None, None)


@pytest.mark.parametrize("rate", ["inf", "nan", float("inf")])
def test_a_number_is_a_finite_one(rate: object) -> None:
    assert "training.learning_rate is " in problems_of(training={"learning_rate": rate})


@dataclass(frozen=True)
class Oven:
    """How bread is baked."""

    minutes: Annotated[int, KeyDoc("Time in the oven.", "minutes", ge=1)]
    heat: Annotated[float, KeyDoc("Of the air.", "kelvin", gt=273, lt=600)] = 500.0
    steam: Annotated[float | None, KeyDoc("Water in a minute; null keeps it dry.", "grams", gt=0)] = None
    crust: Annotated[str, KeyDoc("Of the loaf.")] = "brown"


OVEN = section_of(Oven, Section, "Oven")


def test_a_section_has_the_fields_of_its_spec_with_their_sentences_and_units() -> None:
    assert OVEN.__doc__ == "How bread is baked."
    schema = OVEN.model_json_schema()
    assert schema["required"] == ["minutes"]
    assert {name: key.get("unit") for name, key in schema["properties"].items()} == {
        "minutes": "minutes",
        "heat": "kelvin",
        "steam": "grams",
        "crust": None,
    }
    assert schema["properties"]["steam"]["description"] == "Water in a minute; null keeps it dry."
    assert Oven(**OVEN(minutes=30).model_dump()) == Oven(30)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({}, "minutes"),
        ({"minutes": 0}, "minutes"),
        ({"minutes": 1.5}, "minutes"),
        ({"minutes": 30, "heat": 273}, "heat"),
        ({"minutes": 30, "heat": 600.0}, "heat"),
        ({"minutes": 30, "steam": 0}, "steam"),
        ({"minutes": 30, "crust": None}, "crust"),
        ({"minutes": 30, "fan": True}, "fan"),
    ],
)
def test_a_section_keeps_the_bounds_of_its_spec(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError) as refused:
        OVEN(**values)
    assert {error["loc"][0] for error in refused.value.errors()} == {key}


@pytest.mark.parametrize("steam", [None, "null", 0.5, "0.5"])
def test_a_section_takes_null_where_its_spec_does(steam: object) -> None:
    assert OVEN(minutes="30", steam=steam).steam in (None, 0.5)


GRID: dict[str, Any] = {"widths": {1: [64, 128], 2: [64]}, "repeated": {}}


def runs_with(rates: dict[str, Any], **changes: Any) -> list[Run]:
    config = load_config(shipped(depth_width={**GRID, "rates": rates, **changes}), SCALES)
    return [run for run in runs_of(config, "depth_width", SCALES).values() if isinstance(run, Run)]


def test_a_table_gives_each_width_its_rate_and_the_key_says_it() -> None:
    runs = runs_with({"by_width": {64: 4e-3, 128: 2e-3}})
    assert {(run.shape.width, run.training.learning_rate) for run in runs} == {(64, 4e-3), (128, 2e-3)}
    assert {run.key.split("-H2-")[1].split("-")[0] for run in runs} == {"lr0.004", "lr0.002"}


def test_the_rule_of_the_width_scales_every_shape_from_its_base() -> None:
    runs = runs_with({"rule": "width", "base_width": 64})
    assert {(run.shape.base_width, run.shape.base_attention_dim) for run in runs} == {(64, 32)}
    assert {run.shape.width_ratio for run in runs} == {1.0, 0.5}
    assert len({run.training.learning_rate for run in runs}) == 1
    (of_dimension,) = {
        run.shape.base_attention_dim
        for run in runs_with({"rule": "width", "base_width": 64}, heads={"dim": 32})
    }
    assert of_dimension is None


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ({"rule": "width"}, "depth_width.rates.rule is width without base_width; give the width whose rate"),
        ({"base_width": 64}, "depth_width.rates.base_width is 64 without a rule; add rule: width"),
        ({"rule": "width", "base_width": 63}, "depth_width.rates.base_width 63 is not divisible by 2 heads"),
        ({"by_width": {64: 1e-3}}, "depth_width.rates.by_width has no rate for width 128; give every width"),
        (
            {"by_width": {64: 1e-3, 128: 1e-3}, "rule": "width", "base_width": 64},
            "depth_width.rates.by_width and depth_width.rates.rule are both set",
        ),
        ({"by_width": {64: -1.0}}, "depth_width.rates.by_width"),
    ],
)
def test_each_mistake_is_a_sentence(rates: dict[str, Any], sentence: str) -> None:
    assert sentence in problems_of(depth_width={**GRID, "rates": rates})


def test_a_run_has_no_more_observations_than_are_kept() -> None:
    said = problems_of(
        training={"schedule": "constant", "steps": 1000, "evaluate_every": 2, "warmup_steps": 1}
    )
    assert "training.evaluate_every is 2 and training.schedule is constant: that is 500 observations" in said
    assert "test at most every 7 steps" in said
