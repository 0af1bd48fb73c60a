"""Redundancies out of the results that the study of the embedding's rank writes."""

import math
from pathlib import Path

import pandas as pd
import pytest
from rank_runs import TRUE, rank_runs
from ratio_runs import TRUE as RATIO_TRUE
from ratio_runs import ratio_runs
from redundancy_results import write_redundancies

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.known_redundancy import AS_GPT, AS_T5, RANK, RATIO, TOKENS, Basis, estimate, fitted_series


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of width 128 whose true redundancies are `TRUE`, analysed and written."""
    folder = tmp_path_factory.mktemp("results") / "embedding_rank"
    return write_redundancies("embedding_rank", rank_runs(noise=0.0005), folder)


def test_the_true_redundancies_are_found_at_the_measured_ranks(results: Path) -> None:
    (series,) = fitted_series(results, SizeAxis.BLOCK)
    assert (series.kind, series.setting, series.basis) == (RANK, TOKENS, Basis.FIT)
    for rank, truth in TRUE.items():
        point = series.at(128 / rank)
        assert point is not None
        assert point.value == pytest.approx(truth, abs=0.02)
        assert point.low <= point.value <= point.high
    assert "parameters of the blocks, measured at 4.6e+05 to 1.3e+06" in series.source


def test_between_the_ranks_it_is_interpolated_and_beyond_them_not_covered(results: Path) -> None:
    (series,) = fitted_series(results, SizeAxis.BLOCK)
    middle = estimate(RANK, 128 / 4 / 2**0.5, TOKENS, [series], 1e6)  # between ranks 4 and 8
    assert middle is not None
    assert middle.basis is Basis.FIT
    assert middle.value == pytest.approx((TRUE[4] + TRUE[8]) / 2, abs=0.02)
    beyond = estimate(RANK, 64, TOKENS, [series])
    assert beyond is not None
    assert beyond.basis is Basis.EXTRAPOLATED
    weak, weakest = series.at(1.01), min(TRUE[rank] for rank in TRUE)
    assert weak is not None
    # of full rank nothing is wasted, by definition
    assert 0 <= weak.low <= weak.value <= weak.high < weakest + 0.01


def test_each_size_axis_has_its_own(results: Path) -> None:
    (blocks,), (total,) = (fitted_series(results, axis) for axis in (SizeAxis.BLOCK, SizeAxis.TOTAL))
    assert blocks.points != total.points
    assert "all parameters" in total.source


def test_ranks_above_the_width_and_positions_of_full_rank_are_left_out(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "redundancy.csv")
    more = table.iloc[[0, 0]].assign(
        rank_over_width=[1.5, 0.25], positions=["of that rank too", "of full rank"]
    )
    pd.concat([table, more]).to_csv(tmp_path / "redundancy.csv", index=False)
    (with_more,), (without,) = fitted_series(tmp_path, SizeAxis.BLOCK), fitted_series(results, SizeAxis.BLOCK)
    assert with_more.points == without.points


def test_results_that_cannot_be_used_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no redundancy\.csv; --fit needs the results of"):
        fitted_series(tmp_path, SizeAxis.TOTAL)
    write_redundancies("embedding_rank", rank_runs(seeds=1), tmp_path / "out")
    with pytest.raises(UserError, match="with an interval; the study needs seeds that repeat"):
        fitted_series(tmp_path / "out", SizeAxis.TOTAL)


@pytest.mark.parametrize(
    ("table", "change", "sentence"),
    [
        ("redundancy", {"redundancy": "most"}, "redundancy.csv, row 1, .*redundancy must be a number, or"),
        ("redundancy", {"low": "none"}, "low must be a number, or empty"),
        ("redundancy", {"rank_over_width": "a half"}, "rank_over_width must be a finite number"),
        ("redundancy", {"rank_over_width": 0}, "rank_over_width must be above zero"),
        ("losses", {"total_params": "many"}, "losses.csv, row 1, .*: total_params must be a finite number"),
    ],
)
def test_wrong_numbers_in_results_get_one_sentence(
    results: Path, tmp_path: Path, table: str, change: dict[str, object], sentence: str
) -> None:
    for name in ("redundancy", "losses"):
        rows = pd.read_csv(results / f"{name}.csv")
        (rows.assign(**change) if name == table else rows).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(UserError, match=sentence):
        fitted_series(tmp_path, SizeAxis.BLOCK)


def test_of_attention_ratios_the_largest_size_counts_that_all_depths_reach(tmp_path: Path) -> None:
    """Ratios 2 to 16 with d_ff = 4 H d_a, and 4 and 16 also with 4 d, where they waste half as much."""
    runs = ratio_runs(noise=0.0003, variant=True)
    found = fitted_series(write_redundancies("attention_ratio", runs, tmp_path / "out"), SizeAxis.BLOCK)
    by_setting = {series.setting: series for series in found}
    assert by_setting.keys() == {AS_T5, AS_GPT}
    assert {series.kind for series in found} == {RATIO}
    table = pd.read_csv(tmp_path / "out" / "redundancy.csv").query("size_axis == 'block'")
    for setting, feed_forward, ratios, share in (
        (AS_T5, "4 H d_a", [2, 4, 8, 16], 1),
        (AS_GPT, "4 d", [4, 16], 0.5),
    ):
        series = by_setting[setting]
        assert [point.weakest for point in series.points] == [1, *ratios]
        for point in series.points[1:]:
            same = table[(table["feed_forward"] == feed_forward) & (table["ratio"] == point.weakest)]
            largest = same.loc[same["size"].idxmax()]
            assert (point.value, point.low, point.high) == tuple(largest[["redundancy", "low", "high"]])
            assert point.value == pytest.approx(share * RATIO_TRUE[int(point.weakest)], abs=0.04)


def test_a_size_that_a_ratio_reaches_with_few_depths_does_not_count(tmp_path: Path) -> None:
    """Without the best depth's largest network of ratio 2, its best depth there would be another, and worse."""
    runs = ratio_runs(noise=0.0003)
    of_ratio = runs["heads"] * runs["attention_dim"] == 2 * runs["width"]
    largest = runs["block_params"] > runs["block_params"][of_ratio].max() / 1.2
    fewer = runs[~(of_ratio & largest & (runs["depth"] == 18))]
    (of_all,), (of_fewer,) = (
        fitted_series(write_redundancies("attention_ratio", some, tmp_path / name), SizeAxis.BLOCK)
        for name, some in (("all", runs), ("fewer", fewer))
    )
    table = pd.read_csv(tmp_path / "fewer" / "redundancy.csv").query("size_axis == 'block' and ratio == 2")
    assert table.set_index("size")["compared"].sort_index().tolist()[-2:] == ["yes", "no"]
    assert of_fewer.points[1].value == pytest.approx(of_all.points[1].value, abs=0.04)


def test_a_bound_stays_one(tmp_path: Path) -> None:
    (tmp_path / "redundancy.csv").write_text(
        "feed_forward,ratio,size_axis,size,redundancy,low,high,status,compared\n"
        "4 d,4,block,2e6,0.12,0.02,1.0,at least,yes\n"
    )
    (series,) = fitted_series(tmp_path, SizeAxis.BLOCK)
    _, bound = series.points
    assert math.isnan(bound.value)
    assert (bound.low, bound.high) == (0.02, 1.0)
