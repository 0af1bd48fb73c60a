"""Grids in a config: what they make, and what is wrong with them as sentences, all at once."""

import re
from typing import Any

import pytest
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.settings.loading import merge
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run, Training
from shapelaw.studies.config import Config, load_config, runs_of, studies_of
from shapelaw.studies.grid.expansion import Defaults
from shapelaw.studies.grid.language import listed_problems, make_block
from shapelaw.studies.grid.study import RESERVED
from shapelaw.studies.registry import STUDIES

SCALES = REPOSITORY / "workflow" / "scales"
SMALL: dict[str, Any] = {"depth": [1, 2], "width": [16, 32]}


def config_of(grids: Any, **changes: Any) -> Settings:
    return load_config({"scale": "demo", "studies": ["separation_rank"], "grids": grids, **changes}, SCALES)


def refused(grids: Any, **changes: Any) -> str:
    with pytest.raises(UserError) as error:
        config_of(grids, **changes)
    return str(error.value)


def runs_at(grids: Any, **changes: Any) -> dict[str, Run]:
    found = runs_of(config_of(grids, **changes), "mine", REPOSITORY)
    return {key: run for key, run in found.items() if isinstance(run, Run)}


def test_a_grid_is_every_combination_of_its_axes() -> None:
    axes = {**SMALL, "heads": [1, 2, 4], "embedding_rank": [8, None], "vocab_size": [257, 500]}
    found = runs_at({"mine": {"axes": axes, "context_length": 64}})
    assert len(found) == 2 * 2 * 3 * 2 * 2
    assert "wiki-V257-L2-d32-r8-H4-lr0.003-t400-s0" in {run.label for run in found.values()}
    assert {run.shape.context_length for run in found.values()} == {64}
    assert {run.training for run in found.values()} == {config_of({}).training.spec()}


def test_values_can_be_spelled_as_the_command_line_passes_them_on() -> None:
    axes = {"depth": "1", "width": ["16"], "embedding_rank": ["8", "null"], "learning_rate": ["1e-3"]}
    found = runs_at({"mine": {"axes": axes, "steps": {"1": "70"}, "tied": "false", "seeds": "2"}})
    assert len(found) == 2 * 2
    assert {(run.training.learning_rate, run.steps) for run in found.values()} == {(1e-3, 70)}


def test_a_list_of_blocks_is_their_union() -> None:
    one = {"widths": {1: [16, 32], 2: [12]}, "vocab_size": 257, "repeated": {1: [16]}, "repeated_seeds": 2}
    other = {"axes": {"depth": 1, "width": [16]}, "vocab_size": 257, "seeds": 3}
    found = runs_at({"mine": [one, other]}).values()
    assert sorted((run.shape.depth, run.shape.width, run.seed) for run in found) == [
        *((1, 16, seed) for seed in range(3)),
        (1, 32, 0),
        (2, 12, 0),
    ]


def test_impossible_combinations_are_refused_or_left_out_and_told() -> None:
    axes = {"depth": [1, 2], "width": [18, 32], "heads": [1, 2, 4], "vocab_size": [257, 500]}
    said = refused({"mine": {"axes": axes}})
    assert (
        "grids.mine: 4 of 24 combinations make no network: depth 1, width 18, vocab_size 257, heads 4 ("
        in said
    )
    assert "width 18 is not divisible by 4 heads" in said
    assert "and 1 more; correct them, leave them out, or set impossible: leave_out" in said
    block = {"axes": axes, "impossible": "leave_out"}
    config = config_of({"mine": block})
    assert len(runs_of(config, "mine", REPOSITORY)) == 20
    told = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert told[0].startswith("grids.mine: 4 of 24 combinations make no network: ")
    assert told[0].endswith("and 1 more; they are left out")
    block["leave_out"] = [{"width": 18, "heads": 4}]
    assert len(runs_at({"mine": block})) == 20
    assert len(runs_at({"mine": {**block, "impossible": "refuse"}})) == 20


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ({"axes": {"dpeth": [1], "width": [8]}}, "grids.mine.axes.dpeth is not a key (did you mean depth?)"),
        ({"axes": SMALL, "hedas": 2}, "grids.mine.hedas is not a key (did you mean heads?)"),
        ({"axes": {**SMALL, "heads": []}}, "grids.mine.axes.heads is []: give it at least 1 value"),
        (
            {"axes": {**SMALL, "heads": [2, 2]}},
            "grids.mine.axes.heads is [2, 2]: 2 stands there twice; leave one",
        ),
        ({"axes": {**SMALL, "embedding_rank": [None, 8, None]}}, "null stands there twice"),
        (
            {"axes": {**SMALL, "heads": ["two"]}},
            "grids.mine.axes.heads.1st is 'two': it must be a whole number",
        ),
        (
            {"axes": {**SMALL, "block": ["lama"]}},
            "grids.mine.axes.block.1st is 'lama': it must be 'gpt2', 'llama' or 'printed'",
        ),
        ({"axes": {**SMALL, "dropout": [0.1, 1]}}, "grids.mine.axes.dropout.2nd is 1: it must be below 1"),
        ({"axes": SMALL, "heads": [1, 2]}, "grids.mine.heads is [1, 2]: several values go into axes"),
        ({"axes": SMALL, "steps": {1: "x"}}, "grids.mine.steps.1 is 'x': it must be a whole number"),
        (
            {"axes": SMALL, "steps": {1: 90}},
            "grids.mine.steps has no value for depth 2; give every depth one",
        ),
        (
            {"axes": {**SMALL, "heads": [1]}, "heads": 2},
            "grids.mine.heads and grids.mine.axes.heads are both set",
        ),
        ({"axes": SMALL, "widths": {1: [8]}}, "grids.mine.axes.depth and grids.mine.widths are both set"),
        (
            {"axes": {"width": [8]}, "widths": {1: [8]}},
            "grids.mine.axes.width and grids.mine.widths are both set",
        ),
        ({"depth": 1, "widths": {1: [8]}}, "grids.mine.depth and grids.mine.widths are both set"),
        ({"widths": {}}, "grids.mine.widths is {}"),
        (
            {"axes": {**SMALL, "block_params": [1e5]}},
            "grids.mine.axes.width and grids.mine.axes.block_params are both set, and the width follows",
        ),
        ({"axes": {"heads": [1]}}, "grids.mine has no depth and no width (or block_params); give axes:"),
        ({"axes": {"depth": [1]}}, "grids.mine has no width (or block_params); give axes:"),
        ({}, "grids.mine has no depth and no width"),
        ([], "grids.mine is []: give it at least 1 value"),
        (5, "grids.mine is 5: it must be keys with values, such as {axes: ...}"),
        ([{"axes": SMALL}, {"axes": {"depth": 1}}], "grids.mine.2nd has no width"),
        ({"axes": {**SMALL, "head_dim": [4]}, "attention_dim": 8}, "are both set, and one decides"),
        ({"axes": SMALL, "steps": 100, "flops": 1e9}, "grids.mine.steps and grids.mine.flops are both set"),
        (
            {"axes": {**SMALL, "corpus": ["wiki", "prse"]}},
            "grids.mine.axes.corpus has prse, of which the config has no",
        ),
        (
            {"axes": SMALL, "repeated": {1: [64]}},
            "grids.mine.repeated names shapes that the grid does not have",
        ),
        (
            {"axes": {"depth": [1], "block_params": [1e4]}, "repeated": {1: [1]}},
            "grids.mine.repeated names shapes that the grid does not have: depth 1 width 1",
        ),
        (
            {"axes": SMALL, "leave_out": [{}]},
            "grids.mine.leave_out.1st is empty and would leave out everything",
        ),
        (
            {"axes": SMALL, "leave_out": [{"dept": 1}]},
            "grids.mine.leave_out.1st.dept is not a key (did you mean depth",
        ),
        (
            {"axes": SMALL, "leave_out": [{"depth": 3}]},
            "leave_out.1st.depth is 3, which the grid does not have; it has 1",
        ),
        (
            {"axes": SMALL, "leave_out": [{"dropout": 0.1}]},
            "leave_out.1st.dropout: the grid does not set dropout",
        ),
        ({"axes": SMALL, "leave_out": [{"depth": [1, 2]}]}, "grids.mine has no network left; leave out less"),
        (
            {"axes": SMALL, "impossible": "skip"},
            "grids.mine.impossible is 'skip': it must be 'refuse' or 'leave_out'",
        ),
        (
            {"axes": SMALL, "warmup_steps": 400},
            "grids.mine.warmup_steps is 400, not below training.steps (400)",
        ),
        ({"axes": {**SMALL, "flops": [1e30]}}, "grids.mine.flops gives a network"),
        ({"axes": SMALL, "steps": 20}, "training.warmup_steps is 50, not below grids.mine.steps (20)"),
        (
            {"axes": SMALL, "precision": "bfloat16"},
            "grids.mine.precision is bfloat16 and execution.gpus is 0",
        ),
        (
            [{"axes": SMALL, "size_axis": "total"}, {"axes": SMALL, "size_axis": "flops"}],
            "size_axis total and flops",
        ),
        (
            {"axes": {"depth": list(range(1, 101)), "width": list(range(2, 2002, 2))}, "seeds": 2},
            "grids.mine has 200,000 runs (depth 100 x width 1000 x seeds 2), and 100,000 are the most; take shorter",
        ),
    ],
)
def test_each_mistake_is_a_sentence(block: Any, sentence: str) -> None:
    assert sentence in refused({"mine": block})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "depth_width",
            "grids.depth_width is named like a study; give the grid another name, or set the study's own",
        ),
        ("runs", "grids.runs is named like a folder of results/ or a rule"),
        ("plan", "grids.plan is named like a folder of results/ or a rule"),
        ("Mine", "grids.Mine is 'Mine': a grid's name has lower-case letters"),
        ("../x", "a grid's name has lower-case letters"),
    ],
)
def test_a_name_that_a_grid_cannot_have_is_a_sentence(name: str, sentence: str) -> None:
    assert sentence in refused({name: {"axes": SMALL}})


def test_all_mistakes_are_told_at_once() -> None:
    said = refused(
        {
            "mine": {"axes": {"depth": [1]}},
            "other": {"axes": SMALL, "warmup_steps": 400},
            "depth_width": {"axes": SMALL},
        },
        studies=["mien"],
    )
    assert said.startswith("The config has 4 problems:")
    assert "studies.1st is 'mien': it must be 'depth_width', " in said
    assert "(did you mean mine?)" in said


def test_a_corpus_axis_takes_further_corpora() -> None:
    grid = {"axes": {**SMALL, "corpus": ["wiki", "prose"]}}
    corpora = {"prose": {"sources": ["gensim", "gcide"]}}
    assert {run.corpus for run in runs_at({"mine": grid}, corpora=corpora).values()} == {"wiki", "prose"}
    said = refused(
        {"mine": grid}, corpora={**corpora, "wiki": {"sources": ["gcide"]}, "x": {"sources": ["folder:/no"]}}
    )
    assert (
        "corpora.wiki has the name of corpus, whose sources are wiki; give one of them another name" in said
    )
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
    again = Config.model_validate(config.model_dump(mode="json"))
    assert studies_of(again)["mine"].options(again) == study.options(config)
    assert runs_of(again, "mine", REPOSITORY) == runs_of(config, "mine", REPOSITORY)
    for caption in (study.table_caption, *map(study.figure_caption, study.figures)):
        assert len(caption.read_text(encoding="utf-8")) > 20


def test_single_values_that_differ_between_blocks_are_axes() -> None:
    blocks = [{"axes": SMALL, "vocab_size": 257}, {"axes": SMALL, "embedding_rank": 8, "dropout": 0.1}]
    config = config_of({"mine": blocks})
    options = studies_of(config)["mine"].options(config)
    assert options == ["--size", "block", "--axes", "vocab_size", "embedding_rank", "dropout"]


def test_a_size_at_which_depths_do_not_pair_is_told_and_planned() -> None:
    grid = {"axes": {"depth": [1, 2, 4], "block_params": [1e4, 1e6], "heads": [1, 8]}, "vocab_size": 257}
    config = config_of({"mine": grid})
    study = studies_of(config)["mine"]
    told = [one for one in study.warnings(config, REPOSITORY) if "block_params" in one]
    assert any(
        one.startswith("grids.mine: near 10,000 block_params, heads 8, the sizes of the") for one in told
    )
    (line,) = study.costs(config)
    assert line.startswith("mine: widths from block_params: depth 1: ")
    assert line.endswith("%")


def test_transitions_that_cannot_be_told_are_told_of_their_cells() -> None:
    widths = {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]}
    wide = {"widths": widths, "axes": {"heads": [1, 2]}, "vocab_size": 257}
    config = config_of(
        {
            "mine": [
                {**wide, "repeated": {1: [16]}},
                {**wide, "axes": {"heads": 4}, "widths": {1: [16], 2: [12]}},
            ]
        }
    )
    (told,) = studies_of(config)["mine"].warnings(config, REPOSITORY)
    assert told.endswith("they have 0 and 0 networks; a transition needs 4 of each (heads 4)")
    config = config_of({"mine": {"axes": {"depth": 1, "width": [16, 32]}}})
    assert studies_of(config)["mine"].warnings(config, REPOSITORY) == []


def test_a_grid_replaces_one_of_the_same_name_whole() -> None:
    below = {"grids": {"mine": {"axes": {"depth": [1], "width": [8]}}, "other": {"widths": {1: [8]}}}}
    top = {"grids": {"mine": {"widths": {2: [16]}}}}
    assert merge(below, top)["grids"] == {"mine": {"widths": {2: [16]}}, "other": {"widths": {1: [8]}}}


def test_networks_that_do_not_exist_are_named_by_their_depth_and_their_block() -> None:
    defaults = Defaults("wiki", Training(steps=100, batch_size=8))

    def said(widths: dict[int, list[int]], *blocks: str) -> list[str]:
        some = [make_block("study.grids.1st", {"block": [block]}, widths) for block in blocks]
        return list(listed_problems(some, defaults))

    assert said({1: [8], 2: [4, 8]}, "gpt2", "llama") == []
    (told,) = said({1: [8], 2: [4, 7]}, "gpt2")
    assert told.startswith("study.grids.1st.widths.2: width 7 ")
    (told,) = said({1: [8], 2: [6]}, "gpt2", "llama")
    assert told.startswith("study.grids.1st.widths.2, block llama: the dimension of a head is 3")


def test_a_study_s_own_section_takes_axes() -> None:
    """They replace the grid of the scale, whose other keys stay."""
    own = {"axes": {"depth": [1, 2], "block_params": [2e4, 4e4]}, "seeds": 2}
    config = load_config({"scale": "demo", "studies": ["depth_width"], "depth_width": own}, SCALES)
    runs = [run for run in runs_of(config, "depth_width", REPOSITORY).values() if isinstance(run, Run)]
    assert len(runs) == 2 * 2 * 2
    assert {(run.shape.vocab_size, run.shape.context_length) for run in runs} == {(500, 64)}
    (line,) = studies_of(config)["depth_width"].costs(config)
    assert line.startswith("depth_width: widths from block_params: depth 1: ")
    again = Config.model_validate(config.model_dump(mode="json"))
    assert runs_of(again, "depth_width", REPOSITORY) == runs_of(config, "depth_width", REPOSITORY)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (
            {"axes": {**SMALL, "heads": [1, 2]}},
            "depth_width.axes has heads, and this study compares depth and width",
        ),
        ({"axes": {"depth": [1]}}, "depth_width has no width (or block_params)"),
        ({"axes": SMALL, "grid_file": "x.csv"}, "depth_width needs exactly one of widths"),
        ({"axes": SMALL, "widths": {1: [8]}}, "depth_width.axes.depth and depth_width.widths are both set"),
        (
            {"axes": {**SMALL, "width": [9]}},
            "depth_width: 2 of 2 combinations make no network: depth 1, width 9 (",
        ),
        ({"axes": {**SMALL, "dpeth": [9]}}, "depth_width.axes.dpeth is not a key (did you mean depth?)"),
    ],
)
def test_a_mistake_in_a_study_s_own_axes_is_a_sentence(own: Any, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        load_config({"scale": "demo", "studies": ["depth_width"], "depth_width": own}, SCALES)
    assert sentence in str(error.value)


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
