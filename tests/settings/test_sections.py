"""The sections that every config has, and a source of text on one line."""

from pathlib import Path

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Folder, HuggingFace, Packaged, Source, parse_source
from shapelaw.studies.depth_width.study import DepthWidth
from shapelaw.studies.memorization.study import MemorizationGrid


@pytest.mark.parametrize(
    "name", ["../../x", "/etc", "a/b", "..", ".", "", "wiki\n", "A", "a b", "$(touch x)", "*", "ｗiki"]
)
def test_no_name_of_a_corpus_leads_out_of_the_results(name: str) -> None:
    """It is the one value of a config that becomes a path that something is written to."""
    said = problems_of(corpus={"name": name})
    assert (
        f"corpus.name is {name!r}: use lower-case letters, digits and underscores; it names a folder" in said
    )


def test_a_study_gets_its_section_of_the_model_that_it_declares() -> None:
    config = load_config(shipped(), SCALES)
    assert isinstance(config.section("depth_width", DepthWidth), DepthWidth)
    with pytest.raises(TypeError, match="depth_width is of DepthWidth, not of MemorizationGrid"):
        config.section("depth_width", MemorizationGrid)
    assert {type(grid) for grid in config.section_list("memorization_heads", MemorizationGrid)} == {
        MemorizationGrid
    }
    with pytest.raises(TypeError, match="memorization_heads has grids that are not of DepthWidth"):
        config.section_list("memorization_heads", DepthWidth)


def test_heads_are_a_number_or_have_a_dimension() -> None:
    depth_width = {"widths": {1: [64, 128], 2: [64]}, "repeated": {}, "block": "llama"}
    config = load_config(shipped(depth_width={**depth_width, "heads": {"dim": "32"}}), SCALES)
    shapes = [run.shape for run in runs_of(config, "depth_width", SCALES).values()]
    assert {(shape.width, shape.heads, shape.block) for shape in shapes} == {
        (64, 2, "llama"),
        (128, 4, "llama"),
    }
    for heads in ("two", 0, {"dims": 64}, {"dim": 0}, True):
        said = problems_of(depth_width={**depth_width, "heads": heads})
        assert f"depth_width.heads is {heads!r}: " in said
        assert "give a number of heads such as 2, or their dimension as {dim: 64}" in said
    said = problems_of(depth_width={**depth_width, "widths": {1: [60], 2: [64]}, "heads": {"dim": 32}})
    assert "depth 1, width 60 (width 60 is not divisible by heads of dimension 32; use width 32 or 64" in said
    said = problems_of(depth_width={**depth_width, "widths": {1: [62], 2: [64]}})
    assert "depth 1, width 62 (the dimension of a head is 31, and rotary positions" in said
    assert "kv_heads 3 does not divide 2 heads" in problems_of(depth_width={**depth_width, "kv_heads": 3})


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


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("wikki", "unknown kind 'wikki'; did you mean 'wiki'"),
        ("", "unknown kind ''; known are: wiki, gensim, .*, folder, huggingface"),
        ("folder", "must begin with folder:NAME"),
        ("wiki:en", "must begin with wiki"),
        ("folder:a,txt_column=b", r"unknown option 'txt_column=b'; did you mean 'text_column'"),
        ("huggingface:a,split", "unknown option 'split'; .* as OPTION=VALUE"),
        ("huggingface:a,rows_per_document=0", "rows_per_document=0; it must be at least 1"),
        ("wiki,config=en", "unknown option 'config=en'; known are: none"),
    ],
)
def test_a_wrong_line(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_source(line)
