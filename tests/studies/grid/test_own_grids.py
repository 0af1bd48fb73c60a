"""The grids of the studies whose sections list them: what they train, and what is wrong with them as sentences."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from shipped import SCALES
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of, studies_of
from shapelaw.errors import UserError
from shapelaw.settings.loading import layered
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import spec_from_dict, spec_to_dict
from shapelaw.specs.runs import Run
from shapelaw.studies.published import published_of
from shapelaw.studies.vocabulary.analysis import name_of

UNDERTRAINING, TODAYS, VOCABULARY = "undertraining", "todays_decoder", "vocabulary"
SMALL: dict[str, dict[str, Any]] = {
    name: {**own, "widths": {1: [8, 16], 2: [8]}, "repeated": {1: [8]}}
    for name, own in (
        (UNDERTRAINING, {"steps": 100, "learning_rates": [1e-3, 2e-3]}),
        (TODAYS, {"budget": {"steps": 100}}),
        (VOCABULARY, {"vocab_size": 300}),
    )
}
WIDE = {"widths": {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]}, "repeated": {1: [24]}}
SECTIONS: dict[str, dict[str, Any]] = {
    UNDERTRAINING: {"vocab_size": 300},
    TODAYS: {"vocab_size": 300, "learning_rates": [1e-3, 2e-3], "base_widths": [None], "recipe": {}},
    VOCABULARY: {},
}
IMAGES = {"name": "fashion", "sources": ["fashion"]}
CONSTANT = {"schedule": "constant", "evaluate_every": 50, "warmup_steps": 10}


def config_of(name: str, *grids: object, corpus: object = None, **changes: object) -> Settings:
    section = {"context_length": 16, **SECTIONS[name], "grids": list(grids), **changes}
    given = {"scale": "demo", "studies": [name], name: section}
    return load_config(given if corpus is None else {**given, "corpus": corpus}, SCALES)


def runs_at(name: str, *grids: object, **changes: object) -> dict[str, Run]:
    found = runs_of(config_of(name, *grids, **changes), name, REPOSITORY)
    assert all(spec_from_dict(spec_to_dict(run)) == run for run in found.values())
    return {key: run for key, run in found.items() if isinstance(run, Run)}


def labels_at(name: str, *grids: object, **changes: object) -> set[str]:
    return {run.label for run in runs_at(name, *grids, **changes).values()}


def warned(name: str, *grids: object, **changes: object) -> list[str]:
    config = config_of(name, *grids, **changes)
    return list(studies_of(config)[name].warnings(config, REPOSITORY))


def test_rates_are_scaled_from_a_base_with_heads_by_the_same_rule() -> None:
    llama = {"blocks": ["llama"], "learning_rates": [1e-3]}
    grid = {**SMALL[TODAYS], "repeated": {}}
    scaled = labels_at(TODAYS, grid, base_widths=[None, 8], **llama)
    ends = {"2-llama-lr0.001-t100-s0", "2-llama-mu8a4-lr0.001-t100-s0"}
    assert {label.split("-H")[1] for label in scaled} == ends
    of_dimension = runs_at(TODAYS, grid, base_widths=[16], heads={"dim": 4}, **llama).values()
    assert {(run.shape.heads, run.shape.base_attention_dim) for run in of_dimension} == {(2, None), (4, None)}


def test_the_analysis_is_told_the_steps_to_observe() -> None:
    config = config_of(TODAYS, {**SMALL[TODAYS], "observed_steps": [50, 100]}, recipe=CONSTANT)
    told = studies_of(config)[TODAYS].options(config)
    assert told == ["--size", "block", "--observed-steps", "50", "100"]
    assert all("-constant-t100-" in key for key in runs_of(config, TODAYS, REPOSITORY))


def test_the_steps_that_count_are_the_budgets_and_not_those_of_training() -> None:
    """Scale demo's training has 400 steps: too few for this warm-up, and 1,000,000 too many to test every 1,000."""
    grid = {**SMALL[TODAYS], "budget": {"steps": 16000}}
    assert runs_at(TODAYS, grid, recipe={"warmup_steps": 500})
    assert runs_at(TODAYS, grid, recipe={"schedule": "constant", "evaluate_every": 1000})


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
    """Of images with the example's steps, not those of scale laptop's texts."""
    config = load_config(layered([REPOSITORY / "workflow" / "examples" / f"{example}.yaml"], {}), SCALES)
    runs = runs_of(config, VOCABULARY, REPOSITORY).values()
    assert {label.format(part) for part in parts} <= {run.label for run in runs if isinstance(run, Run)}


@pytest.mark.parametrize(
    ("name", "twice", "steps"),
    [
        (UNDERTRAINING, "steps", "steps"),
        (TODAYS, "budget", "budget.steps"),
        (VOCABULARY, "vocabulary, rank and embedding", "steps"),
    ],
)
def test_a_mistake_that_every_list_of_grids_can_have_is_a_sentence(name: str, twice: str, steps: str) -> None:
    small = SMALL[name]
    few = {"budget": {"steps": 20}} if name == TODAYS else {"steps": 20}
    for grids, sentence in (
        ([], f"{name}.grids is empty; give it a list of grids"),
        ([small, small], f"{name}.grids.2nd has the {twice} of a grid before it"),
        ([{**small, "widths": {1: [8]}}], f"{name}.grids.1st.widths has 1 depth; a transition needs"),
        ([{**small, "widths": {1: [7], 2: [8]}, "repeated": {}}], "width 7 is not divisible by 2 heads"),
        ([{**small, "repeated": {2: [16]}}], "does not have: depth 2 width 16"),
        ([{**small, **few}], f"training.warmup_steps is 50, not below {name}.grids.1st.{steps} (20)"),
    ):
        with pytest.raises(UserError) as error:
            config_of(name, *grids)
        assert sentence in str(error.value)


BUDGET, RECIPE = "todays_decoder.grids.1st.budget", "todays_decoder.recipe"
REDECAYED = {"schedule": "redecayed", "evaluate_every": 10, "warmup_steps": 20}
OFTEN = {"schedule": "constant", "evaluate_every": 10}
PER_PARAM = {"budget": {"tokens_per_param": 20}}
MISTAKES: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = {
    UNDERTRAINING: [
        ({"learning_rates": [1e-3] * 2}, {}, "grids.1st.learning_rates names a rate twice"),
        ({"learning_rates": [0.0]}, {}, "undertraining.grids.1st.learning_rates"),
        ({"learning_rates": []}, {}, "undertraining.grids.1st.learning_rates"),
    ],
    VOCABULARY: [
        ({"patch_embedding": True}, {}, "set corpus.sources to [fashion]"),
        ({"patch_embedding": True}, {}, "only in the vocabulary of bytes is a patch one token, so set"),
        ({"vocab_size": 256}, {}, "vocabulary.grids.1st.vocab_size is 256"),
    ],
    TODAYS: [
        (
            {"budget": {}},
            {},
            "budget is empty; give it one of steps, tokens_per_param, tokens_per_block_param and flops",
        ),
        (
            *({"budget": {"tokens_per_param": 20, "steps": 100}}, {}),
            f"{BUDGET}.steps, {BUDGET}.tokens_per_param are set together",
        ),
        (
            *(PER_PARAM, {"recipe": {"steps": 100}}),
            f"{RECIPE}.steps is 100, and the budgets of todays_decoder.grids decide the steps; leave",
        ),
        (
            *({"widths": {1: [10], 2: [8]}, "repeated": {}}, {}),
            "depth 1, width 10, block llama, learning_rate 0.001 (the dimension of a head is 5, and rotary",
        ),
        ({}, {"kv_heads": 3}, "block llama, learning_rate 0.001 (kv_heads 3 does not divide 2"),
        ({"budget": {"tokens_per_param": 1e-3}}, {}, f"the steps by {BUDGET}.tokens_per_param"),
        ({}, {"base_widths": [7]}, "base_width 7 is not divisible by 2 heads"),
        ({}, {"learning_rates": [0.0]}, "todays_decoder.learning_rates"),
        ({"observed_steps": [50]}, {}, "observed_steps is set and the schedule is cosine"),
        (
            *({"observed_steps": [30]}, {"recipe": CONSTANT}),
            "has 30, at which there is no test loss; use multiples of training.evaluate_every (50)",
        ),
        ({**PER_PARAM, "observed_steps": [50]}, {"recipe": CONSTANT}, "observed_steps needs budget.steps"),
        ({"observed_steps": [10]}, {"recipe": REDECAYED}, "has 10, within the warm-up (20 steps), in which"),
        (
            *({}, {"recipe": {**REDECAYED, "evaluate_every": 4}}),
            f"evaluate_every is 4 and {RECIPE}.schedule is redecayed: the rate falls to zero in the",
        ),
        (
            *({"budget": {"steps": 16000}}, {"recipe": OFTEN}),
            f"{RECIPE}.schedule is constant: that is 1600 observations of a run, and 150 are kept",
        ),
        ({"budget": {"flops": 1e30}}, {}, "grids.1st.budget.flops gives a network "),
        ({"budget": {"tokens_per_param": 1e9}}, {}, "1st.budget.tokens_per_param gives a network "),
        ({}, {"blocks": ["gpt2"], "kv_heads": 2}, "kv_heads is 2 and no block is llama, which has them"),
        ({}, {"blocks": ["llama"], "gelu": "erf"}, "gelu is erf and no block is gpt2, which alone has GELU"),
        (
            *({}, {"recipe": {"learning_rate": 0.01}}),
            "recipe.learning_rate is 0.01, and todays_decoder.learning_rates has the rates of all networks",
        ),
    ],
}


@pytest.mark.parametrize(
    ("name", "grid", "changes", "sentence"),
    [(name, *case) for name, cases in MISTAKES.items() for case in cases],
)
def test_each_mistake_is_a_sentence(
    name: str, grid: dict[str, object], changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError) as error:
        config_of(name, {**SMALL[name], **grid}, **changes)
    assert sentence in str(error.value)


def test_what_a_grid_can_give_is_told_of_the_networks_that_it_trains() -> None:
    """With a tied classifier the depths' sizes, of all parameters, overlap in other networks than without."""
    widths = {"widths": {1: [80, 84, 88, 104, 140], 2: [36, 56, 80, 96, 104]}, "repeated": {1: [80]}}
    grid = {**SMALL[UNDERTRAINING], **widths}
    sizes = {"context_length": 64, "size_axis": "total", "repeated_seeds": 2}
    (told,) = warned(UNDERTRAINING, grid, **sizes)
    assert "they have 5 and 3 networks" in told
    assert warned(UNDERTRAINING, grid, **sizes, tied=True) == []


@pytest.mark.parametrize(
    ("name", "other"), [(UNDERTRAINING, {"steps": 400}), (TODAYS, {"budget": {"tokens_per_param": 4}})]
)
def test_the_noise_is_pooled_over_all_grids_and_told_once_where_none_repeats(
    name: str, other: dict[str, object]
) -> None:
    wide = {**SMALL[name], **WIDE}
    once = {**wide, "repeated": {}}
    assert warned(name, wide, {**once, **other}) == []
    assert warned(name, once, seeds=2) == []
    (told,) = warned(name, once, {**once, **other})
    assert told.startswith(f"{name}.grids.1st: every network has one seed")
    (told,) = warned(name, wide, repeated_seeds=1)
    assert "without seed noise no transition is told" in told


def test_depths_of_other_sizes_are_told_with_their_place() -> None:
    far = {"budget": {"steps": 300}, "widths": {1: [8, 12, 16, 20], 2: [48, 64, 80, 96]}}
    (told,) = warned(TODAYS, {**SMALL[TODAYS], **WIDE}, far)
    assert told.startswith(
        "todays_decoder.grids.2nd.widths: at the sizes that depths 1 and 2 both cover, they "
    )


def test_what_one_block_alone_does_not_give_is_told_of_that_block() -> None:
    """Llama's blocks have other sizes where they have fewer heads of keys."""
    widths = {1: [40, 72, 112, 124, 156], 2: [16, 32, 48, 56, 84]}
    grid = {**SMALL[TODAYS], "widths": widths, "repeated": {1: [40]}}
    (told,) = warned(TODAYS, grid, context_length=64, size_axis="flops", kv_heads=1)
    assert "transition needs 4 of each" in told
    assert told.endswith("(block llama)")
    assert warned(TODAYS, grid, context_length=64, size_axis="flops", blocks=["gpt2"]) == []


def without_noise(*grids: object, corpus: object = None) -> list[str]:
    return [told for told in warned(VOCABULARY, *grids, corpus=corpus) if "seed noise" in told]


def test_a_grid_that_repeats_no_shape_takes_the_noise_of_its_vocabulary() -> None:
    letters = {**SMALL[VOCABULARY], "vocab_size": 257}
    assert without_noise({**letters, "embedding_rank": 6, "repeated": {}}, letters) == []
    (told,) = without_noise({**letters, "vocab_size": 400, "repeated": {}}, letters)
    assert told.startswith("vocabulary.grids.1st: every network has one seed")
    patches = {**letters, "patch_embedding": True}
    (told,) = without_noise({**patches, "repeated": {}}, letters, corpus=IMAGES)
    assert told.startswith("vocabulary.grids.1st: every network has one seed")
    assert len(without_noise({**patches, "embedding_rank": 2, "repeated": {}}, patches, corpus=IMAGES)) == 1


def test_a_rank_above_the_vocabulary_is_told() -> None:
    where = "vocabulary.grids.1st.embedding_rank"
    told = warned(VOCABULARY, {**SMALL[VOCABULARY], "embedding_rank": 100_000})
    assert told[-1].startswith(f"{where}: a rank of 100,000 is above the 300 tokens: ")
    patched = {**SMALL[VOCABULARY], "vocab_size": 257, "patch_embedding": True, "embedding_rank": 50}
    told = warned(VOCABULARY, patched, corpus=IMAGES)
    assert told[-1].startswith(f"{where}: a rank of 50 is above the 5 inputs of a patch embedding: ")


def test_scale_paper_is_the_grid_of_the_vocabulary_paper() -> None:
    config = load_config({"scale": "paper", "studies": [VOCABULARY]}, SCALES, REPOSITORY)
    seeds: dict[tuple[int, int, int, int | None], int] = {}
    for run in runs_of(config, VOCABULARY, REPOSITORY).values():
        shape = run.shape  # type: ignore[union-attr]
        key = (shape.vocab_size, shape.depth, shape.width, shape.embedding_rank)
        seeds[key] = seeds.get(key, 0) + 1

    table = pd.read_csv(REPOSITORY / "workflow" / "reference" / "vocabulary_grid.csv")
    ranks = table["embedding_rank"].astype("object").where(table["embedding_rank"].notna(), None)
    assert set(seeds) == set(zip(table["vocab_size"], table["depth"], table["width"], ranks, strict=True))
    repeated = {
        f"{name_of(vocab_size, rank)}, L = {depth}, d = {width}"
        for (vocab_size, depth, width, rank), count in seeds.items()
        if count == 5
    }
    assert repeated == published_of(VOCABULARY, "std of the loss over 5 seeds").keys()
    assert set(seeds.values()) == {1, 5}


@pytest.mark.parametrize(("scale", "shared"), [("gpu", 22), ("paper", 49)])
def test_figure_5_compares_all_parameters_of_networks_that_the_study_trains_too(
    scale: str, shared: int
) -> None:
    """At scale paper all of them, with table 3's widths; at scale gpu those of V = 2,000."""
    config = load_config({"scale": scale, "studies": ["figure5", VOCABULARY]}, SCALES)
    own, theirs = (runs_of(config, name, REPOSITORY) for name in ("figure5", VOCABULARY))
    assert {run.shape.vocab_size for run in own.values()} == {2000, 50257}
    assert len(own.keys() & theirs.keys()) == shared
    grid = studies_of(config)["figure5"]
    assert list(grid.options(config)) == ["--size", "total", "--axes", "vocab_size"]
    assert grid.warnings(config, REPOSITORY) == []
