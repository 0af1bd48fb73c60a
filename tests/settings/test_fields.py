"""Keys as YAML and command lines spell them, and sections of a spec's fields; the sections that every config has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import ValidationError
from shipped import SCALES, shipped

from shapelaw.campaign.config import load_config
from shapelaw.settings.sections import (
    Folder,
    HuggingFace,
    Packaged,
    Section,
    Source,
    parse_source,
    section_of,
)
from shapelaw.specs.axes import Axis
from shapelaw.studies.grid.study import grids_of
from shapelaw.studies.memorization.study import Memorization, MemorizationGrid


def test_numbers_inside_a_command_lines_mapping_are_numbers() -> None:
    """Snakemake hands on `--config training='{steps: 60}'` as texts."""
    changes = {
        "training": {"steps": "60", "warmup_steps": "5", "learning_rate": "1e-3", "gradient_clip": "null"}
    }
    widths = {"widths": {"1": ["16", "24"]}, "repeated": {}}
    config = load_config(shipped(**changes, depth_width=widths), SCALES)
    assert (config.training.spec().steps, config.training.spec().learning_rate) == (60, 1e-3)
    assert config.training.spec().gradient_clip is None
    assert grids_of(config)["depth_width"].widths == {1: [16, 24]}


@pytest.mark.parametrize("name", ["2024", "007", "inf", "nan", "1_000", "1e3", "true", "null"])
def test_a_text_that_spells_a_number_stays_a_text_where_one_is_asked_for(name: str) -> None:
    assert load_config(shipped(corpus={"name": name}), SCALES).corpus.name == name


def test_null_inside_a_command_lines_mapping_is_null() -> None:
    changes = {"tracking": {"uri": "null"}, "corpus": {"gpt2_files": "null", "limit_bytes": "null"}}
    config = load_config(shipped(**changes), SCALES)
    assert (config.tracking.uri, config.corpus.gpt2_files, config.corpus.limit_bytes) == (None, None, None)


@dataclass(frozen=True)
class Oven:
    """How bread is baked."""

    minutes: Annotated[int, Axis("Time in the oven.", "minutes", ge=1)]
    heat: Annotated[float, Axis("Of the air.", "kelvin", gt=273, lt=600)] = 500.0
    steam: Annotated[float | None, Axis("Water in a minute; null keeps it dry.", "grams", gt=0)] = None
    crust: Annotated[str, Axis("Of the loaf.")] = "brown"


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


def test_a_study_gets_its_section_of_the_model_that_it_declares() -> None:
    config = load_config(shipped(), SCALES)
    assert isinstance(config.section("memorization", Memorization), Memorization)
    with pytest.raises(TypeError, match="memorization is of Memorization, not of MemorizationGrid"):
        config.section("memorization", MemorizationGrid)
    assert {type(grid) for grid in config.section_list("memorization_heads", MemorizationGrid)} == {
        MemorizationGrid
    }
    with pytest.raises(TypeError, match="memorization_heads has grids that are not of Memorization"):
        config.section_list("memorization_heads", Memorization)


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("wiki", Packaged("wiki")),
        ("treasury", Packaged("treasury")),
        ("folder:my/books", Folder(Path("my/books"))),
        ("folder:C:/books,text_column=body", Folder(Path("C:/books"), "body")),
        (
            "huggingface:wikimedia/wikipedia,config=20231101.en",
            HuggingFace("wikimedia/wikipedia", "20231101.en"),
        ),
        (
            "huggingface:bookcorpus/bookcorpus,revision=refs/convert/parquet,rows_per_document=1000",
            HuggingFace("bookcorpus/bookcorpus", revision="refs/convert/parquet", rows_per_document=1000),
        ),
        ("huggingface:json,data_files=a=b.jsonl", HuggingFace("json", data_files="a=b.jsonl")),
        (
            "huggingface:json,data_files=a.jsonl,b.jsonl,split=test",
            HuggingFace("json", split="test", data_files="a.jsonl,b.jsonl"),
        ),
        ("folder:poems, letters", Folder(Path("poems, letters"))),
        ("folder:a,b,,c,text_column=d,e", Folder(Path("a,b,,c"), "d,e")),
        ('folder:"a,b=c"', Folder(Path("a,b=c"))),
        ('folder:"a,text_column=b",text_column=c', Folder(Path("a,text_column=b"), "c")),
        ('folder:it\'s {a} "text" ü', Folder(Path('it\'s {a} "text" ü'))),
    ],
)
def test_a_source_on_one_line(line: str, source: Source) -> None:
    assert parse_source(line) == source
