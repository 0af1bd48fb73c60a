"""Grids in a config: what they make, and what is wrong with them as sentences, all at once."""

from pathlib import Path
from typing import Any

from shipped import SMALL, config_of, refused, runs_at
from small import REPOSITORY

from shapelaw.campaign.config import runs_of, studies_of
from shapelaw.studies.grid.settings import OF_ATTENTION
from shapelaw.studies.grid.study import Grid


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
