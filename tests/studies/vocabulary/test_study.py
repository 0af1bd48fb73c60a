"""The grid of the vocabulary study."""

from collections.abc import Mapping

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of, studies_of
from shapelaw.errors import UserError
from shapelaw.settings.loading import layered
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.runs import Run
from shapelaw.studies.vocabulary.study import warnings

SCALES = REPOSITORY / "workflow" / "scales"
SMALL = {"vocab_size": 300, "widths": {1: [8, 16], 2: [8]}, "repeated": {1: [8]}}


def config_of(*grids: object, corpus: object = None, **changes: object) -> Settings:
    section = {"context_length": 16, "grids": list(grids), **changes}
    given = {"scale": "demo", "studies": ["vocabulary"], "vocabulary": section}
    return load_config(given if corpus is None else {**given, "corpus": corpus}, SCALES)


def labels_of(runs: Mapping[str, AnyRun]) -> set[str]:
    return {run.label for run in runs.values() if isinstance(run, Run)}


def test_the_grid_is_every_shape_at_every_vocabulary() -> None:
    config = config_of(
        SMALL, {**SMALL, "vocab_size": 400, "embedding_rank": 9, "steps": 500}, repeated_seeds=3
    )
    runs = runs_of(config, "vocabulary", REPOSITORY)
    assert labels_of(runs) == {
        *(f"wiki-V300-L1-d8-H2-lr0.003-t400-s{seed}" for seed in range(3)),
        *("wiki-V300-L1-d16-H2-lr0.003-t400-s0", "wiki-V300-L2-d8-H2-lr0.003-t400-s0"),
        *(f"wiki-V400-L1-d8-r9-H2-lr0.003-t500-s{seed}" for seed in range(3)),
        *("wiki-V400-L1-d16-r9-H2-lr0.003-t500-s0", "wiki-V400-L2-d8-r9-H2-lr0.003-t500-s0"),
    }


def test_the_example_of_images_compares_tokens_with_patches_of_two_ranks() -> None:
    config = load_config(layered([REPOSITORY / "workflow" / "examples" / "images.yaml"], {}), SCALES)
    labels = labels_of(runs_of(config, "vocabulary", REPOSITORY))
    for part in ("L1-d64-H2", "L1-d64-H2-patch", "L1-d64-r2-H2-patch"):
        assert f"fashion-V257-{part}-lr0.004-t8000-s0" in labels  # and not the steps of scale laptop's texts


def test_the_example_of_rank_crossings_has_widths_on_both_sides_of_each_rank() -> None:
    config = load_config(layered([REPOSITORY / "workflow" / "examples" / "rank_crossing.yaml"], {}), SCALES)
    labels = labels_of(runs_of(config, "vocabulary", REPOSITORY))
    for rank in (32, 64, 128):
        for part in ("L1-d32-r{}", "L2-d22-r{}", "L1-d192-r{}", "L2-d136-r{}"):
            assert f"prose-V2000-{part.format(rank)}-H2-lr0.004-t16000-s0" in labels
    assert "prose-V2000-L1-d64-H2-lr0.004-t16000-s0" in labels  # one matrix
    assert "prose-V2000-L1-d64-r64-H2-lr0.004-t16000-s0" in labels  # two factors of the same rank


@pytest.mark.parametrize(
    ("grids", "sentence"),
    [
        ([], "vocabulary.grids is empty; give it a list of grids"),
        ([SMALL, SMALL], "vocabulary.grids.2nd has the vocabulary, rank and embedding of a grid before it"),
        ([{**SMALL, "widths": {1: [8]}}], "vocabulary.grids.1st.widths has 1 depth; a transition needs"),
        ([{**SMALL, "widths": {1: [7], 2: [8]}, "repeated": {}}], "width 7 is not divisible by 2 heads"),
        ([{**SMALL, "repeated": {2: [16]}}], "does not have: depth 2 width 16"),
        ([{**SMALL, "steps": 20}], "training.warmup_steps is 50, not below vocabulary.grids.1st.steps (20)"),
        ([{**SMALL, "patch_embedding": True}], "set corpus.sources to [fashion]"),
        (
            [{**SMALL, "patch_embedding": True}],
            "only in the vocabulary of bytes is a patch one token, so set it to 257",
        ),
        ([{**SMALL, "vocab_size": 256}], "vocabulary.grids.1st.vocab_size is 256"),
    ],
)
def test_each_mistake_is_a_sentence(grids: list[object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(*grids)
    assert sentence in str(error.value)


def test_scale_paper_is_the_paper_s_grid() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "vocabulary_grid.csv")
    repeated = pd.read_csv(REPOSITORY / "workflow" / "reference" / "vocabulary_seed_std.csv")
    config = load_config({"scale": "paper", "studies": ["vocabulary"]}, SCALES, REPOSITORY)
    seeds: dict[tuple[int, int, int, int | None], int] = {}
    for run in runs_of(config, "vocabulary", REPOSITORY).values():
        shape = run.shape  # type: ignore[union-attr]
        key = (shape.vocab_size, shape.depth, shape.width, shape.embedding_rank)
        seeds[key] = seeds.get(key, 0) + 1

    def keys(table: pd.DataFrame) -> set[tuple[int, int, int, int | None]]:
        ranks = table["embedding_rank"].astype("object").where(table["embedding_rank"].notna(), None)
        return set(zip(table["vocab_size"], table["depth"], table["width"], ranks, strict=True))

    assert set(seeds) == keys(grid)
    assert {key for key, count in seeds.items() if count == 5} == keys(repeated)
    assert set(seeds.values()) == {1, 5}


def test_a_grid_that_repeats_no_shape_takes_the_noise_of_the_others() -> None:
    letters = {**SMALL, "vocab_size": 257}
    once = {**letters, "embedding_rank": 6, "repeated": {}}
    assert not [told for told in warnings(config_of(once, letters), REPOSITORY) if "seed noise" in told]
    for change in ({"vocab_size": 400}, {"embedding_rank": None, "patch_embedding": True}):
        other = {**letters, **change, "repeated": {}}
        corpus = {"name": "fashion", "sources": ["fashion"]} if "patch_embedding" in change else None
        config = config_of(other, letters, corpus=corpus)
        (told,) = [told for told in warnings(config, REPOSITORY) if "seed noise" in told]
        assert told.startswith("vocabulary.grids.1st: every network has one seed")
    patches = {**letters, "patch_embedding": True}
    config = config_of(
        {**patches, "embedding_rank": 2, "repeated": {}},
        patches,
        corpus={"name": "fashion", "sources": ["fashion"]},
    )
    assert len([told for told in warnings(config, REPOSITORY) if "seed noise" in told]) == 1


def test_a_rank_above_the_vocabulary_is_told() -> None:
    told = warnings(config_of({**SMALL, "embedding_rank": 100_000}), REPOSITORY)
    assert told[-1] == (
        "vocabulary.grids.1st.embedding_rank: a rank of 100,000 is above the 300 tokens: the two "
        "factors bound nothing and "
        "have more parameters than one matrix"
    )
    images = {"name": "fashion", "sources": ["fashion"]}
    patched = {**SMALL, "vocab_size": 257, "patch_embedding": True, "embedding_rank": 50}
    told = warnings(config_of(patched, corpus=images), REPOSITORY)
    assert told[-1].startswith(
        "vocabulary.grids.1st.embedding_rank: a rank of 50 is above the 5 inputs of a patch embedding: "
    )


@pytest.mark.parametrize(("scale", "shared"), [("gpu", 22), ("paper", 49)])
def test_figure_5_compares_all_parameters_of_networks_that_the_study_trains_too(
    scale: str, shared: int
) -> None:
    """At scale paper all of them, with table 3's widths; at scale gpu those of V = 2,000."""
    config = load_config({"scale": scale, "studies": ["figure5", "vocabulary"]}, SCALES)
    own, theirs = (runs_of(config, name, REPOSITORY) for name in ("figure5", "vocabulary"))
    assert {run.shape.vocab_size for run in own.values()} == {2000, 50257}
    assert len(own.keys() & theirs.keys()) == shared
    grid = studies_of(config)["figure5"]
    assert list(grid.options(config)) == ["--size", "total", "--axes", "vocab_size"]
    assert grid.warnings(config, REPOSITORY) == []
