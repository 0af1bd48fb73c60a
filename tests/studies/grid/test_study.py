"""Grids in a config: what they make and what is wrong with them; as a study, and those of the papers' studies."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped import SCALES, SMALL, config_of, refused, runs_at
from small import REPOSITORY, listed

from shapelaw.campaign.config import Config, load_config, runs_of, studies_of
from shapelaw.settings.loading import layered
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.settings import OF_ATTENTION
from shapelaw.studies.grid.study import FIGURES, RESERVED, Grid, declared_study
from shapelaw.studies.registry import STUDIES


def axes(**more: Any) -> dict[str, Any]:
    return {"axes": {**SMALL, **more}}


def test_a_grid_is_every_combination_of_its_axes() -> None:
    block = axes(heads=[1, 2, 4], embedding_rank=[8, None], vocab_size=[257, 500])
    found = runs_at({"mine": {**block, "context_length": 64}})
    assert len(found) == 2 * 2 * 3 * 2 * 2
    assert "wiki-V257-L2-d32-r8-H4-lr0.003-t400-s0" in {run.label for run in found.values()}
    assert {run.shape.context_length for run in found.values()} == {64}
    assert {run.training for run in found.values()} == {config_of({}).training.spec()}


def test_values_can_be_spelled_as_the_command_line_passes_them_on() -> None:
    spelled = {"depth": "1", "width": ["16"], "embedding_rank": ["8", "null"], "learning_rate": ["1e-3"]}
    found = runs_at({"mine": {"axes": spelled, "steps": {"1": "70"}, "tied": "false", "seeds": "2"}})
    assert len(found) == 2 * 2
    assert {(run.training.learning_rate, run.steps) for run in found.values()} == {(1e-3, 70)}


def test_rules_can_be_spelled_as_the_command_line_passes_them_on() -> None:
    rules = {"attention_dim": {"ratio": "2"}, "ff_width": OF_ATTENTION}
    (run,) = runs_at({"mine": {"depth": "1", "width": "16", **rules}}).values()
    assert (run.shape.attention_dim, run.shape.ff_width) == (16, 128)
    (run,) = runs_at({"mine": {"depth": 1, "width": 16, "heads": 2, "attention_dim": "6"}}).values()
    assert run.shape.attention_dim == 6


def test_a_warm_up_is_compared_where_it_is_an_axis_and_not_where_blocks_of_sizes_have_their_own() -> None:
    blocks = [{"widths": {1: [width], 2: [width]}, "warmup_steps": width} for width in (16, 32)]
    for grid, compared in (
        (blocks, []),
        (axes(warmup_steps=[5, 20]), ["warmup_steps"]),
        ([*blocks, {"widths": {1: [16]}, "warmup_steps": 9}], ["warmup_steps"]),
        ([*blocks, {"widths": {1: [16]}, "warmup_steps": 9, "vocab_size": 257}], ["vocab_size"]),
    ):
        assert Grid("mine").axes(config_of({"mine": grid})) == compared


def test_the_shapes_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    grid = {"grid_file": str(file), "repeated": {1: [16]}, "repeated_seeds": 2, "steps": {1: 60, 2: 70}}
    file.write_text("depth,width,printed\n1,16,a\n2,12,b\n1,32,\n")
    asked = {
        (run.shape.depth, run.shape.width, run.seed, run.steps) for run in runs_at({"mine": grid}).values()
    }
    assert asked == {(1, 16, 0, 60), (1, 16, 1, 60), (2, 12, 0, 70), (1, 32, 0, 60)}
    assert "not have: depth 1 width 18" in refused({"mine": {**grid, "repeated": {1: [18]}}})
    assert "steps has no value for depth 2" in refused({"mine": {**grid, "steps": {1: 60}}})
    for text, sentence in (
        ("depth\n1\n", "must be a CSV with columns depth and width, and rows"),
        ("depth,width\n1,x\n2,12\n,3\n", "depth and width must be whole numbers (line 2, line 4)"),
        ("depth,width\n1,15\n", "1 of 1 combinations make no network: depth 1, width 15 (width 15 is not"),
    ):
        file.write_text(text)
        assert sentence in refused({"mine": grid})
    file.unlink()
    assert f"grids.mine.grid_file {file} can't be read" in refused({"mine": grid})


def test_a_rank_above_what_it_maps_is_trained_and_told() -> None:
    block = axes(embedding_rank=[300, 8], vocab_size=[257, 500], positional_rank=[8, 200])
    config = config_of({"mine": {**block, "seeds": 2}})
    assert len(runs_of(config, "mine", REPOSITORY)) == 64
    told = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert [one.split(":")[1] for one in told[:2]] == [
        " embedding_rank 300 is above the 257 inputs of the embedding",
        " positional_rank 200 is above the 128 positions of a window",
    ]


def test_impossible_combinations_are_refused_or_left_out_and_told() -> None:
    block = {"axes": {"depth": [1, 2], "width": [18, 32], "heads": [1, 2, 4], "vocab_size": [257, 500]}}
    said = refused({"mine": block})
    wrong = "grids.mine: 4 of 24 combinations make no network: depth 1, width 18, vocab_size 257, heads 4 ("
    assert f"{wrong}width 18 is not divisible by 4 heads" in said
    assert "and 1 more; correct them, leave them out, or set impossible: leave_out" in said
    block["impossible"] = "leave_out"
    config = config_of({"mine": block})
    assert len(runs_of(config, "mine", REPOSITORY)) == 20
    told = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert told[0].startswith(wrong)
    assert told[0].endswith("and 1 more; they are left out")
    unwanted = {**block, "leave_out": [{"width": 18, "heads": 4}]}
    for impossible in ("leave_out", "refuse"):
        assert len(runs_at({"mine": {**unwanted, "impossible": impossible}})) == 20


def submitted(config: Config, name: str) -> Config:
    """The config that jobs read, of which a study has the same runs."""
    again = Config.model_validate(config.model_dump(mode="json"))
    assert runs_of(again, name, REPOSITORY) == runs_of(config, name, REPOSITORY)
    return again


def demo(name: str, grid: Any, **changes: Any) -> Config:
    return load_config({"scale": "demo", "studies": [name], "grids": {name: grid}, **changes}, SCALES)


def test_a_corpus_axis_takes_further_corpora() -> None:
    grid = {"axes": {**SMALL, "corpus": ["wiki", "prose"]}}
    corpora = {"prose": {"sources": ["gensim", "gcide"]}}
    assert {run.corpus for run in runs_at({"mine": grid}, corpora=corpora).values()} == {"wiki", "prose"}


def test_a_grid_is_a_study_with_its_question_and_options() -> None:
    axes = {**SMALL, "heads": [1, 2], "head_dim": [8, 16], "tokens_per_param": [10, 20]}
    grids = {"mine": {"axes": axes, "size_axis": "total"}, "plain": {"axes": SMALL}}
    config = config_of(grids, studies=["mine"])
    studies = studies_of(config)
    study = studies["mine"]
    assert study.options(config) == ["--size", "total", "--axes", "heads", "attention_dim", "budget"]
    assert study.question.endswith("depend on heads, head dimension or budget?")
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


def test_a_size_at_which_depths_do_not_pair_is_planned() -> None:
    axes = {"depth": [1, 2, 4], "block_params": [1e4, 1e6], "heads": [1, 8]}
    config = config_of({"mine": {"axes": axes, "vocab_size": 257}})
    (line,) = studies_of(config)["mine"].costs(config)
    assert line.startswith("mine: widths from block_params: depth 1: ")
    assert line.endswith("sizes of the depths differ by at most 12.5%")


def told_of(*blocks: dict[str, Any]) -> list[str]:
    """What the grid of these blocks does not give."""
    config = config_of({"mine": [*blocks]})
    return [*studies_of(config)["mine"].warnings(config, REPOSITORY)]


def test_transitions_that_cannot_be_told_are_told_of_their_cells() -> None:
    widths = {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]}
    wide = {"widths": widths, "axes": {"heads": [1, 2]}, "vocab_size": 257, "repeated": {1: [16]}}
    (told,) = told_of(wide, {"widths": {1: [16], 2: [12]}, "axes": {"heads": 4}, "vocab_size": 257})
    assert told.endswith("they have 0 and 0 networks; a transition needs 4 of each (heads 4)")
    few = {"axes": {"depth": [1, 2], "width": [16, 32, 48], "heads": [1, 4]}, "seeds": 2}
    (told,) = told_of(few)
    said, block = told.split(", as one more block: ")
    assert (
        "a transition needs 4 of each: add depth 1 widths 24, 40; depth 2 widths 20, 24 (16 runs, about "
        in said
    )
    assert told_of(few, yaml.safe_load(block)) == []
    of_depths = [{"widths": {depth: [16, 32, 48]}, "vocab_size": 257, "seeds": 2} for depth in (1, 2)]
    (told,) = told_of(*of_depths)
    said, blocks = told.split(", as more blocks: ")
    assert told_of(*of_depths, *map(yaml.safe_load, blocks.split(" and "))) == []
    pairs = told_of({"axes": {"depth": [1, 2], "block_params": [1e4, 1e5]}, "seeds": 2})
    assert pairs[-1].endswith("4 of each: give block_params 4 or more sizes")
    assert told_of({"axes": {"depth": 1, "width": [16, 32]}}) == []


def test_a_grid_named_like_a_study_replaces_the_study_s_whole() -> None:
    config = demo("depth_width", {"axes": {"depth": [1, 2], "block_params": [2e4, 4e4]}, "seeds": 2})
    runs = [run for run in runs_of(config, "depth_width", REPOSITORY).values() if isinstance(run, Run)]
    assert len(runs) == 2 * 2 * 2
    assert {(run.shape.vocab_size, run.shape.block) for run in runs} == {(2000, "gpt2")}
    study = studies_of(config)["depth_width"]
    (line,) = study.costs(config)
    assert line.startswith("depth_width: widths from block_params: depth 1: ")
    assert study.question == STUDIES["depth_width"].question
    submitted(config, "depth_width")


def test_depth_width_varies_any_fields_and_its_analysis_is_told_them() -> None:
    axes = {**SMALL, "heads": [1, 2], "embedding_rank": [4, None], "learning_rate": [1e-3, 2e-3]}
    config = demo("depth_width", {"axes": axes})
    runs = runs_of(config, "depth_width", REPOSITORY).values()
    assert len(runs) == len(set(runs)) == math.prod(map(len, axes.values()))
    studies = studies_of(config)
    told = ["--axes", "embedding_rank", "heads", "learning_rate"]
    assert list(studies["depth_width"].options(config)) == ["--size", "block", *told]
    assert list(studies["committed_runs"].options(config)) == ["--size", "block"]
    plain = demo("depth_width", {"axes": SMALL, "size_axis": "total"})
    assert list(studies["depth_width"].options(plain)) == ["--size", "total"]


@pytest.mark.parametrize(("grids", "says"), listed("studies/grid/warnings.yaml", "warnings"))
def test_what_the_grid_of_a_study_does_not_give_is_told(grids: dict[str, Any], says: str) -> None:
    ((name, blocks),) = grids.items()
    patches = any("patch_embedding" in block for block in blocks)
    images = {"corpus": {"name": "fashion", "sources": ["fashion"]}} if patches else {}
    config = demo(name, blocks, **images)
    told = [*studies_of(config)[name].warnings(config, REPOSITORY), ""]
    assert all(words in told[0] for words in says.split(" … "))
    assert bool(told[0]) == bool(says)


@pytest.mark.parametrize(
    ("example", "label", "parts"),
    [
        (
            "images",
            "fashion-V257-{}-lr0.004-t8000-s0",
            ("L1-d64-H2", "L1-d64-H2-patch", "L1-d64-r2-H2-patch"),
        ),
        (
            *("rank_crossing", "prose-V2000-{}-H2-lr0.004-t16000-s0"),
            [
                *("L1-d64", "L1-d64-r64"),  # one matrix, and two factors of the same rank
                *(
                    f"{shape}-r{rank}"
                    for rank in (32, 64, 128)
                    for shape in ("L1-d32", "L2-d22", "L1-d192", "L2-d136")
                ),
            ],
        ),
    ],
)
def test_examples_have_widths_and_ranks_on_both_sides(example: str, label: str, parts: Sequence[str]) -> None:
    config = load_config(layered([REPOSITORY / "workflow" / "examples" / f"{example}.yaml"], {}), SCALES)
    runs = runs_of(config, "vocabulary", REPOSITORY).values()
    assert {label.format(part) for part in parts} <= {run.label for run in runs if isinstance(run, Run)}


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
    """`declared_study`, whose grid a config may replace."""
    blocks = {"axes": {**SMALL, "heads": [1, 2]}, "vocab_size": 257}
    study = declared_study(
        *(Grid("head_count"), Path("room"), blocks),
        question="Do heads matter?",
        published="hardly",
        figures={"effects": "figure 5"},
    )
    assert study.grid == blocks
    assert study.figures == {**FIGURES, "effects": "figure 5"}
    assert (study.question, study.published) == ("Do heads matter?", "hardly")
    config = config_of({"head_count": blocks})
    assert len(list(study.runs(config, REPOSITORY))) == 8
    assert study.options(config) == ["--size", "block", "--axes", "heads"]
    assert "head_count: 4 of 4 combinations make no network" in refused(
        {"head_count": {"axes": {**SMALL, "heads": [3]}}}
    )
