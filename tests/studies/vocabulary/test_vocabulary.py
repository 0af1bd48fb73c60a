"""The vocabulary study: its grid, and its analysis on losses whose transitions are known."""

from pathlib import Path

import loss_surfaces
import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.fits.line import FitStatus
from shapelaw.report.write import check_declared, write_results
from shapelaw.specs.shapes import make_shape
from shapelaw.studies.config import load_config, runs_of
from shapelaw.studies.depth_width.analysis import Options
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.vocabulary.analysis import VocabularyAnalysis, analyse_series
from shapelaw.studies.vocabulary.results import analyse, present, summary
from shapelaw.studies.vocabulary.tables import comparison_table, losses_table, relation_table

SCALES = REPOSITORY / "workflow" / "scales"
SMALL = {"vocab_size": 300, "widths": {1: [8, 16], 2: [8]}, "repeated": {1: [8]}}
DEPTHS = (24, 48)
SERIES = {(257, None): 257.0, (500, None): 500.0, (2000, 350): 350.0, (2000, None): 1200.0}


def config_of(*grids: object, **changes: object):  # type: ignore[no-untyped-def]
    section = {"context_length": 16, "grids": list(grids), **changes}
    return load_config({"scale": "demo", "studies": ["vocabulary"], "vocabulary": section}, SCALES)


def simulated(true: dict[tuple[int, int | None], float], seed: int = 0) -> pd.DataFrame:
    """Runs at depths 24 and 48 whose transition is at a width of its own for each vocabulary and rank."""
    tables = []
    for (vocab_size, rank), width in true.items():
        middle = loss_surfaces.size(24, width)
        widths = loss_surfaces.grid_of(DEPTHS, middle / 4, middle * 4, 9)
        runs = loss_surfaces.simulate(widths, {24: width}, seed=seed)
        shapes = [
            make_shape(int(d), int(w), 2, vocab_size, 128, embedding_rank=rank, redundant_rank=True)
            for d, w in zip(runs["depth"], runs["width"], strict=True)
        ]
        tables.append(
            runs.rename(columns={"loss": "test_loss"}).assign(
                vocab_size=vocab_size,
                embedding_rank=rank,
                total_params=[shape.total_params for shape in shapes],
                step_flops=[shape.step_flops(8) for shape in shapes],
                tokens_trained=1_000_000,
            )
        )
    table = pd.concat(tables, ignore_index=True)
    return table.assign(bits_per_byte=table["test_loss"] / 3.0)


@pytest.fixture(scope="module")
def analysis() -> VocabularyAnalysis:
    return analyse_series(simulated(SERIES), "runs.csv", Options(draws=400))


def test_the_grid_is_every_shape_at_every_vocabulary() -> None:
    config = config_of(
        SMALL, {**SMALL, "vocab_size": 400, "embedding_rank": 9, "steps": 500}, repeated_seeds=3
    )
    runs = runs_of(config, "vocabulary", REPOSITORY)
    assert set(runs) == {
        *(f"wiki-V300-L1-d8-r8-H2-t400-s{seed}" for seed in range(3)),
        *("wiki-V300-L1-d16-r16-H2-t400-s0", "wiki-V300-L2-d8-r8-H2-t400-s0"),
        *(f"wiki-V400-L1-d8-r9f-H2-t500-s{seed}" for seed in range(3)),
        *("wiki-V400-L1-d16-r9-H2-t500-s0", "wiki-V400-L2-d8-r9f-H2-t500-s0"),
    }


@pytest.mark.parametrize(
    ("grids", "sentence"),
    [
        ([], "vocabulary.grids is empty; give it a list of grids"),
        ([SMALL, SMALL], "vocabulary.grids.1 has the vocabulary and the rank of a grid before it"),
        ([{**SMALL, "widths": {1: [8]}}], "vocabulary.grids.0.widths has 1 depths; a transition needs"),
        ([{**SMALL, "widths": {1: [7], 2: [8]}, "repeated": {}}], "width 7 is not divisible by 2 heads"),
        ([{**SMALL, "repeated": {2: [16]}}], "does not have: depth 2 width 16"),
        ([{**SMALL, "steps": 20}], "vocabulary.grids.0.recipe.warmup_steps is 50, not below"),
        ([{**SMALL, "vocab_size": 256}], "vocabulary.grids.0.vocab_size is 256"),
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


def test_each_transition_is_found(analysis: VocabularyAnalysis) -> None:
    assert [one.name for one in analysis.series] == ["V = 257", "V = 2,000, r = 350", "V = 500", "V = 2,000"]
    table = comparison_table(analysis)
    assert table["ours"].tolist() == pytest.approx([257, 350, 500, 1200], rel=0.06)
    assert table["bottleneck"].tolist() == [257, 350, 500, 2000]
    assert table["agrees_with_bottleneck"].tolist()[3] == "no"  # the width is the bottleneck there, not V
    assert table["published"].notna().tolist() == [False, False, True, False]


def test_a_transition_in_proportion_to_the_bottleneck_is_told_from_none() -> None:
    follows = {key: 0.9 * width for key, width in SERIES.items() if key != (2000, None)}
    row = relation_table(analyse_series(simulated(follows), "runs.csv", Options(draws=300))).iloc[0]
    assert row["status"] == FitStatus.CONVERGED
    assert row["b"] == pytest.approx(1.0, abs=3 * row["b_err"])
    assert row["p_proportional"] > 0.003
    assert row["p_none"] < 1e-4
    same = dict.fromkeys(follows, 400.0)
    row = relation_table(analyse_series(simulated(same), "runs.csv", Options(draws=300))).iloc[0]
    assert row["b"] == pytest.approx(0.0, abs=3 * row["b_err"])
    assert row["p_proportional"] < 1e-4


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    two = {key: SERIES[key] for key in ((257, None), (500, None))}
    simulated(two).to_csv(tmp_path / "runs.csv", index=False)
    found = analyse(tmp_path / "runs.csv", Options(draws=200))
    results, study = present(found), STUDIES["vocabulary"]
    check_declared(results, study.tables, study.figures)
    write_results(results, tmp_path / "out", study.name)
    assert "V = 257: depth 24 against 48: width 2" in summary(found)
    assert set(results.tables["size_axes"].frame["size_axis"]) == {"block", "total", "flops"}
    losses = losses_table(found)
    assert (losses["text_bytes"] / 1e6).tolist() == pytest.approx([3.0 / 0.6931471805599453] * len(losses))


def test_unusable_runs_are_a_sentence(tmp_path: Path) -> None:
    runs = simulated({(257, None): 257.0})
    for change, sentence in (
        (runs.drop(columns="vocab_size"), "lacks vocab_size"),
        (runs[runs["depth"] == 24], "no vocabulary with two depths"),
        (runs.assign(embedding_rank="full"), "embedding_rank must be a number"),
    ):
        change.to_csv(tmp_path / "runs.csv", index=False)
        with pytest.raises(UserError, match=sentence):
            analyse(tmp_path / "runs.csv")
