"""Keys as YAML and command lines spell them, and the sections that every config has."""

from pathlib import Path

import pytest
from shipped import SCALES, shipped

from shapelaw.campaign.config import load_config
from shapelaw.settings.sections import Folder, HuggingFace, Packaged, Source, parse_source
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


def test_a_study_gets_its_section_of_the_model_that_it_declares() -> None:
    config = load_config(shipped(), SCALES)
    assert isinstance(config.section("memorization", Memorization), Memorization)
    with pytest.raises(TypeError, match="memorization is of Memorization, not of MemorizationGrid"):
        config.section("memorization", MemorizationGrid)
    assert {type(grid) for grid in config.section("memorization_heads", list)} == {MemorizationGrid}


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
