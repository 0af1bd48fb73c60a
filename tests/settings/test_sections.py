"""The sections that every config has, and a source of text on one line."""

from pathlib import Path

import pytest
from shipped import SCALES, shipped

from shapelaw.campaign.config import load_config
from shapelaw.settings.sections import Folder, HuggingFace, Packaged, Source, parse_source
from shapelaw.studies.memorization.study import Memorization, MemorizationGrid


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
