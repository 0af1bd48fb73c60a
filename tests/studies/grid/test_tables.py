"""The tables of a grid."""

import math

import numpy as np
import pandas as pd
import pytest
from grid_runs import AXES, HEADS_COST, analysed, grid_runs
from loss_surfaces import grid_of, simulate

from shapelaw.fits.curves import TransitionStatus
from shapelaw.studies.grid import tables
from shapelaw.studies.grid.analysis import GridAnalysis, analyse_grid
from shapelaw.studies.grid.results import effect_words
from shapelaw.studies.grid.tables import NO_RATIO, ratio_of
from shapelaw.studies.transitions.analysis import Options


def noise_of(analysis: GridAnalysis) -> pd.DataFrame:
    return tables.seed_noise_table(analysis.analyses)


def moving(widths: dict[int, float]) -> GridAnalysis:
    """Cells whose transitions lie at these widths, by heads."""
    grid = grid_of((4, 8), 2e5, 8e6, 9)
    runs = [simulate(grid, {4: width}, noise=0.0005).assign(heads=heads) for heads, width in widths.items()]
    return analyse_grid(pd.concat(runs), "x", Options(draws=300), ("heads",))


def test_values_stand_in_columns_of_their_own_with_their_types() -> None:
    losses = tables.losses_table(analysed().analyses)
    names = "vocab_size embedding_rank heads depth width test_loss"
    assert losses.columns[:6].tolist() == names.split()
    assert losses.dtypes.iloc[:3].astype(str).tolist() == ["Int64"] * 3
    assert losses["embedding_rank"].isna().sum() == len(losses) / 2
    assert "bits_per_byte" in losses
    assert len(losses) == 72


def test_every_effect_has_a_row_and_holm_counts_them_all() -> None:
    effects = tables.effects_table(analysed(seeds=2, noise=0.01))
    differences = effects[effects["quantity"] == tables.DIFFERENCE]
    counts = {"heads": 12 + 3, "embedding_rank": 6 + 1, "vocab_size": 7}
    assert differences["axis"].value_counts().to_dict() == counts
    assert (effects["status"][effects["quantity"] == tables.RATIO] == "not both are crossings").all()
    measured = effects[effects["p"].notna()]
    assert len(measured) == 29
    least = measured.loc[measured["p"].idxmin()]
    assert least["p_holm"] == pytest.approx(29 * least["p"])
    assert (measured["p_holm"] >= measured["p"]).all()
    heads = measured[(measured["axis"] == "heads") & (measured["settings"] == 4)]
    assert heads["value"].tolist() == pytest.approx([HEADS_COST, 2 * HEADS_COST, HEADS_COST], abs=0.006)
    assert (heads["low"] < heads["value"]).all()
    single = measured[(measured["axis"] == "heads") & (measured["settings"] == 1)]
    assert heads["err"].max() < single["err"].min()
    assert heads["vocab_size"].isna().all()


def test_a_mean_over_settings_has_the_error_that_its_settings_show() -> None:
    """Cells that are off by 0.1 nats each, at a noise of 0.001: single pairs claim much, and means nothing."""
    runs = grid_runs(vocab_sizes=(257,), seeds=2, noise=0.001)
    cells = runs.groupby(["heads", "embedding_rank"], dropna=False).ngroup()
    off = 0.1 * np.random.default_rng(1).standard_normal(6)[cells]
    runs = runs.assign(test_loss=runs["test_loss"] + off, bits_per_byte=runs["bits_per_byte"] + off)
    effects = tables.effects_table(analyse_grid(runs, "x", Options(draws=200), AXES))
    found = effects[(effects["axis"] == "embedding_rank") & (effects["quantity"] == tables.DIFFERENCE)]
    single, (mean,) = found[found["settings"] == 1], found[found["settings"] == 3].to_dict("records")
    assert mean["err"] == pytest.approx(single["value"].std() / math.sqrt(3))
    assert mean["high"] - mean["value"] == pytest.approx(
        4.302653 * mean["err"]
    )  # t with two degrees of freedom
    assert (single["p"] < 1e-6).all()
    assert mean["p"] > 0.01


def test_a_batch_that_coincides_with_a_cell_is_told_beside_its_effect() -> None:
    runs = grid_runs(heads=(1, 2), ranks=(None,), vocab_sizes=(257,), seeds=2, noise=0.01)
    whole = runs.assign(date=np.where(runs["heads"] == 2, "2026-11-27 10:00", "2026-11-26"))
    told = tables.effects_table(analyse_grid(whole, "x", Options(draws=200), ("heads",)))
    effect, ratio = told.to_dict("records")
    assert ratio["caution"] == ""
    assert effect["caution"] == "date coincides with the difference"
    assert "; date coincides with the difference)" in effect_words(effect)
    spread = runs.assign(date=np.where(runs["seed"] == 1, "2026-11-27", "2026-11-26"))
    silent = tables.effects_table(analyse_grid(spread, "x", Options(draws=200), ("heads",)))
    assert set(silent["caution"]) == {""}


def test_without_noise_differences_stand_without_intervals() -> None:
    effects = tables.effects_table(analysed())
    differences = effects[effects["quantity"] == tables.DIFFERENCE]
    assert set(differences["status"]) == {"no noise estimate"}
    assert differences[["err", "low", "high", "p", "p_holm"]].isna().all(axis=None)
    best = tables.best_shapes_table(analysed())
    assert set(best["standing"]) == {"best"}
    assert set(noise_of(analysed())["depth"]) == {"pooled"}


def test_effects_are_a_row_an_effect_and_the_rest_in_tables_of_their_own() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    split, whole = tables.effects_tables(analysis), tables.effects_table(analysis)
    assert list(split) == list(tables.EFFECTS)
    effects, by_setting, moved = split.values()
    assert not effects.duplicated([*tables.PAIR]).any()
    assert (effects["settings"] > 1).all()
    assert (by_setting["settings"] == 1).all()
    assert set(moved["quantity"]) <= {tables.RATIO}
    every = tables.stacked(split.values())
    assert sorted(every["p_holm"].dropna()) == sorted(whole["p_holm"].dropna())
    assert len(every) == len(whole)
    read = tables.read_effects(effects)
    assert read["axis"].unique().tolist() == ["vocabulary V", "embedding rank r", "heads H"]
    assert read.loc[read["axis"] == "embedding rank r", ["from", "to", "setting"]].values.tolist() == [
        ["8", "full rank", "mean over 6"]
    ]
    assert "r = 8, H = 1" in tables.read_effects(by_setting)["setting"].tolist()
    assert "loss difference (bits per byte)_low95" in read


def test_of_one_setting_each_the_differences_are_the_effects() -> None:
    split = tables.effects_tables(analysed(seeds=2, noise=0.01, heads=(1,), ranks=(None,)))
    assert len(split["effects"]) == 1
    assert split["effects_by_setting"].empty
    assert "setting" not in tables.read_effects(split["effects"])


def test_more_than_two_columns_that_name_a_cell_are_read_as_one() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    read = tables.of_cells(lambda frame: frame)
    noise = read(noise_of(analysis))
    assert noise["cell"].iloc[0] == "V = 257, r = 8, H = 1"
    assert noise.loc[noise["depth"] == "pooled", "cell"].tolist() == ["V = 257", "V = 500"]
    one_axis = tables.losses_table(analysed(heads=(1, 2), ranks=(None,), vocab_sizes=(257,)).analyses)
    assert next(iter(read(one_axis))) == "heads"


def test_the_losses_of_several_vocabularies_are_read_in_bits_alone() -> None:
    several = tables.read_losses(tables.losses_table(analysed().analyses))
    one_text = tables.read_losses(tables.losses_table(analysed(vocab_sizes=(257,)).analyses))
    assert {"bits_per_byte", "test_loss"} & {*several} == {"bits_per_byte"}
    assert {"bits_per_byte", "test_loss"} & {*one_text} == {"test_loss"}


def test_the_best_shapes_are_read_as_a_row_a_size() -> None:
    best = tables.best_shapes_table(analysed(seeds=2, noise=0.01))
    read = tables.read_best_shapes(best)
    assert read["size"].is_unique
    near = read["others as good within the noise"].str.split(" of ").str[0].astype(int)
    assert near.sum() == (best["standing"] != "best").sum()


def test_a_moved_transition_is_a_ratio_with_an_interval() -> None:
    effects = tables.effects_table(moving({2: 100.0, 4: 150.0}))
    (row,) = effects[effects["quantity"] == tables.RATIO].to_dict("records")
    assert (row["depth"], row["deeper_depth"], row["status"]) == (4, 8, tables.MEASURED)
    assert row["low"] < 1.5 < row["high"]
    assert row["p_holm"] < 0.01


def test_missing_bits_and_sizes_are_said() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,)).drop(columns="bits_per_byte")
    effects = tables.effects_table(analyse_grid(runs, "x", Options(draws=200), ("vocab_size",)))
    assert effects["status"].tolist()[0] == tables.NO_BITS
    far = grid_runs(heads=(1,), vocab_sizes=(257,))
    far = far[(far["embedding_rank"].notna()) == (far["width"] == 16)]
    effects = tables.effects_table(analyse_grid(far, "x", Options(draws=200), ("embedding_rank",)))
    assert effects["status"].tolist()[0] == tables.NO_SIZES


def test_size_by_size_the_differences_average_to_the_effect() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    effects, by_size = tables.effects_table(analysis), tables.effects_by_size_table(analysis)
    key = ["axis", "one", "other", *analysis.cells.axes]
    means = by_size.groupby(key, dropna=False)["value"].mean()
    single = effects[(effects["quantity"] == tables.DIFFERENCE) & (effects["settings"] == 1)]
    assert sorted(means.tolist()) == pytest.approx(sorted(single["value"]))
    assert by_size["width"].isin([16, 32, 48]).all()


def test_best_shapes_and_those_within_the_noise_of_each_pool() -> None:
    analysis = analysed(seeds=2, noise=0.01)
    best = tables.best_shapes_table(analysis)
    firsts = best[best["standing"] == "best"]
    assert firsts["size"].is_unique
    assert (firsts["above"] == 0).all()
    near = best[best["standing"] != "best"]
    assert (near["above"] < 2.1 * near["above_err"]).all()
    noise = noise_of(analysis)
    pooled = noise[noise["depth"] == "pooled"]
    assert pooled["vocab_size"].tolist() == [257, 500]
    assert pooled["seeds"].tolist() == [72, 72]
    assert pooled[["heads", "embedding_rank"]].isna().all(axis=None)


def test_lines_and_projections_of_cells_that_have_them() -> None:
    flat = analysed()
    assert set(tables.fit_table(flat.analyses)["status"]) == {"too few points"}
    assert tables.projection_of_cells(flat.analyses).empty
    depths = (4, 6, 8, 10, 12)
    true = {depth: math.exp(4 + 0.1 * depth) for depth in depths}
    runs = simulate(grid_of(depths, 6e4, 6e6, 12), true, noise=0.0008).assign(heads=2)
    found = analyse_grid(runs, "x", Options(draws=200), ("heads",))
    assert len(tables.projection_of_cells(found.analyses)) > 3


def test_cells_say_their_rules_for_fit_json() -> None:
    first = {"vocab_size": 257, "embedding_rank": 8, "heads": 1, "rules": ["attention_dim = width"]}
    assert tables.cells_table(analysed())[0] == {**first, "runs": 6, "shapes": 6}


def transition(width: float, err: float, status: str = TransitionStatus.CROSSING.value) -> dict[str, object]:
    return {"status": status, "width": width, "width_err": err}


def test_a_ratio_has_the_errors_of_both_and_a_bound_has_none() -> None:
    found = ratio_of(transition(100, 3), transition(200, 8))
    assert found["ratio"] == pytest.approx(2.0)
    assert math.log(found["ratio_high"] / found["ratio"]) == pytest.approx(0.05)  # 3% and 4%
    assert found["p_equal"] < 1e-10
    assert ratio_of(transition(100, 3), transition(105, 4.2))["p_equal"] == pytest.approx(0.33, abs=0.01)
    bound = ratio_of(transition(100, 3), transition(math.nan, math.nan, "no crossing"))
    assert bound["status"] == NO_RATIO
    assert math.isnan(bound["ratio"])
