"""A grid as a study: its name, its question, what it can't give; and the axes of a study's own section."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from grids_asked import SMALL, config_of, refused, runs_at
from pydantic import Field, create_model
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import Config, load_config, runs_of, studies_of
from shapelaw.errors import UserError
from shapelaw.settings.loading import load_settings
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.study import RESERVED, declared_study
from shapelaw.studies.registry import STUDIES


def submitted(config: Config, name: str) -> Config:
    """The config that jobs read, of which a study has the same runs."""
    again = Config.model_validate(config.model_dump(mode="json"))
    assert runs_of(again, name, REPOSITORY) == runs_of(config, name, REPOSITORY)
    return again


def demo(name: str, own: dict[str, Any]) -> Config:
    return load_config({"scale": "demo", "studies": [name], name: own}, SCALES)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("depth_width", "grids.depth_width is named like a study; give the grid another name, or set"),
        ("runs", "grids.runs is named like a folder of results/ or a rule"),
        ("plan", "grids.plan is named like a folder of results/ or a rule"),
        ("Mine", "grids.Mine is 'Mine': a grid's name has lower-case letters"),
        ("../x", "a grid's name has lower-case letters"),
    ],
)
def test_a_name_that_a_grid_cannot_have_is_a_sentence(name: str, sentence: str) -> None:
    assert sentence in refused({name: {"axes": SMALL}})


def test_all_mistakes_are_told_at_once() -> None:
    grids = {"mine": {"axes": {"depth": [1]}}, "other": {"axes": SMALL, "warmup_steps": 400}}
    said = refused({**grids, "depth_width": {"axes": SMALL}}, studies=["mien"])
    assert said.startswith("The config has 4 problems:")
    assert "studies.1st is 'mien': it must be 'depth_width', " in said
    assert "(did you mean mine?)" in said


def test_a_corpus_axis_takes_further_corpora() -> None:
    grid = {"axes": {**SMALL, "corpus": ["wiki", "prose"]}}
    corpora = {"prose": {"sources": ["gensim", "gcide"]}}
    assert {run.corpus for run in runs_at({"mine": grid}, corpora=corpora).values()} == {"wiki", "prose"}
    wrong = {"wiki": {"sources": ["gcide"]}, "x": {"sources": ["folder:/no"]}}
    said = refused({"mine": grid}, corpora={**corpora, **wrong})
    assert "corpora.wiki has the name of corpus, whose sources are wiki; give one of them another" in said
    assert "corpora.x.sources has 'folder:/no', but there is no folder" in said
    assert "corpora.A b is 'A b': a corpus's name has lower-case letters" in refused({}, corpora={"A b": {}})


def test_a_grid_is_a_study_with_its_question_and_options() -> None:
    axes = {**SMALL, "heads": [1, 2], "head_dim": [8, 16], "tokens_per_param": [10, 20]}
    grids = {"mine": {"axes": axes, "size_axis": "total"}, "plain": {"axes": SMALL}}
    config = config_of(grids, studies=["mine"])
    studies = studies_of(config)
    study = studies["mine"]
    assert study.options(config) == ["--size", "total", "--axes", "heads", "attention_dim", "budget"]
    assert study.question.startswith("What do heads, attention dim and budget change")
    assert studies["plain"].options(config) == ["--size", "block", "--axes"]
    assert list(studies)[-2:] == ["mine", "plain"]
    again = submitted(config, "mine")
    assert studies_of(again)["mine"].options(again) == study.options(config)
    for caption in (study.table_caption, *map(study.figure_caption, study.figures)):
        assert len(caption.read_text(encoding="utf-8")) > 20


def test_single_values_that_differ_between_blocks_are_axes_and_the_block_that_says_it_has_the_size() -> None:
    blocks = [{"axes": SMALL, "vocab_size": 257}, {"axes": SMALL, "embedding_rank": 8, "dropout": 0.1}]
    config = config_of({"mine": [*blocks, {"axes": SMALL, "vocab_size": 300, "size_axis": "total"}]})
    options = studies_of(config)["mine"].options(config)
    assert options == ["--size", "total", "--axes", "vocab_size", "embedding_rank", "dropout"]


def test_a_size_at_which_depths_do_not_pair_is_told_and_planned() -> None:
    grid = {"axes": {"depth": [1, 2, 4], "block_params": [1e4, 1e6], "heads": [1, 8]}, "vocab_size": 257}
    config = config_of({"mine": grid})
    study = studies_of(config)["mine"]
    told, *_ = study.warnings(config, REPOSITORY)
    assert told.startswith(
        "grids.mine: no widths bring the depths within 2% of each other at some block_params"
    )
    assert (
        "; they differ near 10,000 by 12.5%, depth 1 width 32, depth 2 width 24, depth 4 width 16 (heads 8)"
        in told
    )
    grid["axes"] |= {"vocab_size": [257, 500], "embedding_rank": [8, None]}
    config = config_of({"mine": {**grid, "vocab_size": None}})
    assert studies_of(config)["mine"].warnings(config, REPOSITORY)[0] == told
    (line,) = study.costs(config)
    assert line.startswith("mine: widths from block_params: depth 1: ")
    assert line.endswith("%")


def test_transitions_that_cannot_be_told_are_told_of_their_cells() -> None:
    widths = {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]}
    wide = {"widths": widths, "axes": {"heads": [1, 2]}, "vocab_size": 257, "repeated": {1: [16]}}
    few = {"widths": {1: [16], 2: [12]}, "axes": {"heads": 4}, "vocab_size": 257}
    config = config_of({"mine": [wide, few]})
    (told,) = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert told.endswith("they have 0 and 0 networks; a transition needs 4 of each (heads 4)")
    config = config_of(
        {"mine": {"axes": {"depth": [1, 2], "width": [16, 32, 48], "heads": [1, 4]}, "seeds": 2}}
    )
    (told,) = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert told.endswith("a transition needs 4 of each: add depth 1 widths 24, 40; depth 2 widths 20, 24")
    pairs = {"axes": {"depth": [1, 2], "block_params": [1e4, 1e5]}, "seeds": 2}
    config = config_of({"mine": pairs})
    assert (
        studies_of(config)["mine"]
        .warnings(config, REPOSITORY)[-1]
        .endswith("4 of each: give block_params 4 or more sizes")
    )
    config = config_of({"mine": {"axes": {"depth": 1, "width": [16, 32]}}})
    assert studies_of(config)["mine"].warnings(config, REPOSITORY) == []


def test_a_study_s_own_section_takes_axes() -> None:
    """They replace the grid of the scale, whose other keys stay."""
    config = demo("depth_width", {"axes": {"depth": [1, 2], "block_params": [2e4, 4e4]}, "seeds": 2})
    runs = [run for run in runs_of(config, "depth_width", REPOSITORY).values() if isinstance(run, Run)]
    assert len(runs) == 2 * 2 * 2
    assert {(run.shape.vocab_size, run.shape.context_length) for run in runs} == {(257, 64)}
    (line,) = studies_of(config)["depth_width"].costs(config)
    assert line.startswith("depth_width: widths from block_params: depth 1: ")
    submitted(config, "depth_width")


def test_a_study_s_own_axes_are_any_fields_and_its_analysis_is_told_them() -> None:
    axes = {**SMALL, "heads": [1, 2], "embedding_rank": [4, None], "learning_rate": [1e-3, 2e-3]}
    config = demo("depth_width", {"axes": axes})
    runs = runs_of(config, "depth_width", REPOSITORY).values()
    assert len(runs) == len(set(runs)) == math.prod(map(len, axes.values()))  # the demo's one seed
    studies = studies_of(config)
    told = ["--axes", "embedding_rank", "heads", "learning_rate"]
    assert list(studies["depth_width"].options(config)) == ["--size", "block", *told]
    assert list(studies["committed_runs"].options(config)) == ["--size", "block"]


OWN = {  # axes of a study's own, and grids of its old spelling that are the same networks
    "undertraining": (
        {"steps": [100, 200], "learning_rate": [1e-3, 2e-3]},
        [{"steps": steps, "learning_rates": [1e-3, 2e-3]} for steps in (100, 200)],
    ),
    "todays_decoder": (
        {"block": ["gpt2", "llama"], "tokens_per_param": [50, 90], "learning_rate": [1.5e-3, 3e-3]},
        [{"budget": {"tokens_per_param": amount}} for amount in (50, 90)],
    ),
    "vocabulary": (
        {"vocab_size": [257, 300], "embedding_rank": [4, None]},
        [{"vocab_size": size, "embedding_rank": rank} for size in (257, 300) for rank in (4, None)],
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_axes_take_the_place_of_a_study_s_grids(name: str) -> None:
    """With the runs of the same grids in the old spelling, which goes on, and through the config that jobs read."""
    axes, grids = OWN[name]
    widths = {"widths": {1: [8, 16], 2: [8, 16]}}

    def runs(section: dict[str, Any]) -> set[Any]:
        config = demo(name, section)
        assert "--axes" not in studies_of(config)[name].options(config)
        return set(runs_of(submitted(config, name), name, REPOSITORY).values())

    new = runs({"axes": {"depth": [1, 2], "width": [8, 16], **axes}})
    assert new == runs({"grids": [{**widths, **one} for one in grids]})
    assert len(new) == 4 * math.prod(map(len, axes.values()))


BY_WIDTH = {"rates": {"by_width": {8: 1e-3, 16: 1e-3}}}


@pytest.mark.parametrize(
    ("name", "own", "sentence"),
    [
        (
            *("depth_width", {"axes": {**SMALL, "learning_rate": [1e-3]}, **BY_WIDTH}),
            "depth_width.rates.by_width and depth_width.axes.learning_rate are both set",
        ),
        ("depth_width", {"axes": {**SMALL, "corpus": ["wiki", "moon"]}}, "has moon, of which the config has"),
        ("depth_width", {"axes": {"depth": [1]}}, "depth_width has no width (or block_params)"),
        ("depth_width", {"axes": SMALL, "grid_file": "x.csv"}, "depth_width needs exactly one of widths"),
        (
            "depth_width",
            {"axes": SMALL, "widths": {1: [8]}},
            "axes.depth and depth_width.widths are both set",
        ),
        (
            "depth_width",
            {"axes": {**SMALL, "width": [9]}},
            "depth_width: 2 of 2 combinations make no network",
        ),
        ("depth_width", {"axes": {**SMALL, "dpeth": [9]}}, "axes.dpeth is not a key (did you mean depth?)"),
        ("undertraining", {"axes": {**SMALL, "heads": [1, 2]}}, "undertraining.axes has heads, and this"),
        ("vocabulary", {"axes": {"depth": [1]}}, "vocabulary has no width (or block_params)"),
        ("vocabulary", {"axes": SMALL, "grids": []}, "vocabulary.grids and vocabulary.axes are both set"),
        (
            *("todays_decoder", {"axes": SMALL, "learning_rates": [1e-3]}),
            "todays_decoder.learning_rates and todays_decoder.axes are both set; put its values into axes",
        ),
        ("todays_decoder", {"axes": {**SMALL, "width": [7]}}, "2 of 2 combinations make no network"),
        ("undertraining", {"repeated": {1: [16]}}, "repeated goes with axes, and there are none"),
    ],
)
def test_a_mistake_in_a_study_s_own_axes_is_a_sentence(name: str, own: Any, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        demo(name, own)
    assert sentence in str(error.value)


def test_what_they_can_not_give_is_told_and_widths_of_a_size_are_listed() -> None:
    axes = {"depth": [1, 2], "block_params": [2e4, 4e4], "vocab_size": [257, 300]}
    config = demo("vocabulary", {"axes": axes})
    study = studies_of(config)["vocabulary"]
    assert any("every network has one seed" in told for told in study.warnings(config, REPOSITORY))
    assert study.costs(config)[0].startswith("vocabulary: widths from block_params: depth 1: ")


def test_no_grid_has_the_name_of_a_rule_or_of_a_folder_of_results() -> None:
    files = [REPOSITORY / "Snakefile", *(REPOSITORY / "workflow" / "rules").glob("*.smk")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    rules = {
        *re.findall(r"^\s*rule (\w+):", text, re.M),
        *re.findall(r"^\s*use rule \w+ as (\w+)", text, re.M),
    }
    assert {"train_large", "train_medium", "plan"} <= rules
    assert rules <= RESERVED
    assert set(re.findall(r'"results/(\w+)/', text)) - set(STUDIES) <= RESERVED


def test_a_study_may_be_a_grid_and_a_question_alone() -> None:
    """`declared_study`, in a config made of its own section, which may set another grid."""
    grid = {"axes": {**SMALL, "heads": [1, 2]}, "vocab_size": 257}
    study = declared_study("head_count", Path("room"), grid, question="Do heads matter?", published="hardly")
    key = study.sections["head_count"]
    field = Field(key.default, validate_default=True, description=key.description)
    model: type[Settings] = create_model("Whole", __base__=Config, head_count=(key.kind, field))

    def config_with(**section: Any) -> Settings:
        values = {**shipped(), **({"head_count": section} if section else {})}
        return load_settings(model, values, SCALES, lambda config: study.problems(config, REPOSITORY))

    config = config_with()
    assert len(list(study.runs(config, REPOSITORY))) == 8
    assert study.options(config) == ["--size", "block", "--axes", "heads"]
    assert (study.question, study.published) == ("Do heads matter?", "hardly")
    other = config_with(axes={**SMALL, "tied": [False, True]}, vocab_size=500)
    shapes = {run.shape for run in study.runs(other, REPOSITORY) if isinstance(run, Run)}
    assert {shape.vocab_size for shape in shapes} == {500}
    assert study.options(other)[2:] == ["--axes", "tied"]
    with pytest.raises(UserError) as error:
        config_with(axes={**SMALL, "heads": [3]})
    assert "head_count: 4 of 4 combinations make no network" in str(error.value)
