"""The memorization studies from runs to files: the fits, what is said of them, and what is drawn."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from memorizing_networks import CHANCE, simulate
from small import PYTHON, REPOSITORY, SCRIPTS

from shapelaw.errors import UserError
from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.inputs import read_table
from shapelaw.fits.line import FitStatus
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.fits.plateau import KneeStatus
from shapelaw.report.write import write_results
from shapelaw.studies.memorization import figures, tables
from shapelaw.studies.memorization.analysis import (
    ALONG_CONTEXT,
    ALONG_HEAD_DIM,
    ALONG_HEADS,
    analyse_runs,
    published,
)
from shapelaw.studies.memorization.comparison import comparison_table
from shapelaw.studies.memorization.results import STUDIES, analyse, present, summary, warnings

HEAD_COUNTS = (1, 5, 10, 20, 30, 40, 50, 60)
CONTEXTS = (1, 5, 10, 20, 30, 40, 50, 60)
BEND = "chance of such a bend in H, were it a line"
HEAD_DIMS = (10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 64)


def study_of(runs, study):
    return analyse_runs(check_memorization_runs(runs, "runs.csv"), study)


@pytest.fixture(scope="module")
def heads():
    classification = simulate(HEAD_COUNTS, examples=(10000, 20000, 30000))
    regression = simulate(HEAD_COUNTS, examples=(20000,), per_head=12, task="regression")
    return study_of(pd.concat([classification, regression], ignore_index=True), ALONG_HEADS)


@pytest.fixture(scope="module")
def head_dims():
    return study_of(simulate((30,), head_dim=HEAD_DIMS, examples=(10000, 15000, 20000)), ALONG_HEAD_DIM)


def words(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def labelled(axes, label):
    return next(line for line in axes.get_lines() if line.get_label() == label)


def test_the_papers_findings_are_recovered_along_heads(heads):
    lines = tables.linear_table(heads).set_index(["task", "examples"])
    assert (lines["status"] == "converged").all()
    assert (lines["curvature_p"] > 0.05).all()
    for (task, examples), row in lines.iterrows():
        true = (12 if task == "regression" else 15) * 31
        assert abs(row["examples_per_head"] - true) < 3 * row["examples_per_head_err"], (task, examples)
        assert abs(row["intercept"] - CHANCE) < 3 * row["intercept_err"]
    regression = lines.loc[("regression", 20000)]
    assert regression["mse_slope"] == pytest.approx(-regression["slope"] / 12)
    comparison = comparison_table(heads)
    assert set(comparison.loc[comparison["quantity"] != "exponent of the share in H", "agrees"]) <= {
        "yes",
        "open",
    }
    bends = comparison[comparison["quantity"] == BEND]
    assert bends["agrees"].tolist() == ["yes"] * 4
    assert bends["note"].str.endswith("points shows no line").all()


def test_our_runs_of_figure_2a_grow_faster_than_a_line():
    """One seed: R² of 0.97 to 0.98, and a parabola is better by more than chance for every T."""
    analysis = study_of(
        read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet"), ALONG_HEADS
    )
    lines = tables.linear_table(analysis).set_index("examples")
    assert lines["curvature_p"].tolist() == pytest.approx([0.028, 7.9e-4, 7.5e-4, 1.1e-4], rel=0.05)
    assert set(lines["status"]) == {"curved"}
    assert lines["slope"].isna().all()
    assert lines["examples_per_head"].isna().all()
    assert set(lines["errors_from"]) == {"misfit (one seed)"}
    assert "over_theory" not in lines
    comparison = comparison_table(analysis)
    assert set(comparison.loc[comparison["quantity"] == BEND, "agrees"]) == {"no"}
    assert summary(analysis).count("grows faster than a line") >= 4
    assert "errors of fits are their misfit" in summary(analysis)
    assert not [
        line for line in figures.share_figure(analysis).axes[0].get_lines() if len(line.get_xdata()) == 60
    ]


def test_examples_a_head_are_read_off_where_all_is_memorized():
    analysis = study_of(
        read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet"), ALONG_HEADS
    )
    growth = tables.growth_table(analysis).set_index("examples")
    assert growth.loc[:30000, "examples_per_head"].tolist() == pytest.approx([336, 412, 502], abs=1)
    assert growth.loc[:30000, "per_head_low"].tolist() == pytest.approx([10000 / 30, 400, 500])
    assert growth.loc[:30000, "per_head_high"].tolist() == pytest.approx([500, 500, 600])
    assert growth.loc[40000, "needed"] == CapacityStatus.AT_LEAST
    assert np.isnan(growth.loc[40000, "examples_per_head"])
    assert growth["exponent"].between(1.3, 1.6).all()
    assert (
        (growth["exponent_low"] < growth["exponent"]) & (growth["exponent"] < growth["exponent_high"])
    ).all()
    assert (growth["exponent_low"] > 1.2).all()
    notes = (
        comparison_table(analysis)
        .set_index("quantity")
        .loc["examples a head where 99% are memorized", "note"]
    )
    assert notes.str.contains("this is no ratio to the theorem's").sum() == 3
    figure = figures.per_head_figure(analysis)
    assert any("real labels" in text for text in words(figure))


def test_what_is_learned_of_the_labels_is_nearly_a_line_where_accuracy_is_not():
    """Figure 2a: log(100) less the cross-entropy grows as H^1.01 to H^1.10, accuracy as H^1.4 to H^1.5."""
    runs = read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet")
    growth = tables.growth_table(study_of(runs, ALONG_HEADS)).set_index("examples")
    assert growth["information_curvature_p"].tolist() == pytest.approx([0.888, 0.027, 0.168, 0.141], abs=2e-3)
    assert growth["information_exponent"].between(1.0, 1.11).all()
    assert (growth["information_exponent"] < growth["exponent"] - 0.3).all()
    by_hand = (
        (np.log(100) - runs.query("heads == 20 and examples == 10000")["loss"].item())
        / np.log(2)
        * 10000
        / 20
    )
    assert growth.loc[10000, "bits_per_head"] == pytest.approx(by_hand)
    silent = tables.growth_table(study_of(runs.drop(columns="loss"), ALONG_HEADS))
    assert silent["bits_per_head"].isna().all()
    assert (silent["exponent"].to_numpy() == growth["exponent"].to_numpy()).all()


def test_saturated_heads_are_reported():
    analysis = study_of(
        read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet"), ALONG_HEADS
    )
    table = analysis.saturated.set_index(["examples", "heads"])
    assert len(table) == 32
    row = table.loc[(10000, 1)]
    assert row["saturated_share"] == pytest.approx(0.849, abs=1e-3)
    assert row["examples_with_free_head"] == pytest.approx(0.151, abs=1e-3)
    assert row["mean_saturated_heads"] == pytest.approx(0.849, abs=1e-3)
    left, right = figures.saturated_figure(analysis).axes
    drawn = [line for line in left.get_lines() if len(line.get_xdata()) == 8]
    assert len(drawn) == 4
    assert len(right.get_lines()) == 4
    silent = study_of(simulate(HEAD_COUNTS), ALONG_HEADS)
    assert silent.saturated["saturated_share"].isna().all()
    assert any("No run says" in text for text in words(figures.saturated_figure(silent)))


def test_the_points_say_which_of_them_the_line_has(heads):
    points = tables.points_table(heads)
    rows = points[(points["task"] == "classification") & (points["examples"] == 20000)]
    assert rows["in_line"].tolist() == [True] * 5 + [False] * 3
    assert rows["guaranteed_share"].tolist() == pytest.approx([(h * 31 + 1) / 20000 for h in HEAD_COUNTS])
    rules = tables.rules_table(heads).set_index(["task", "examples", "saturated", "floor"])
    assert rules.loc[("classification", 20000, 0.9, 0.0), "n_points"] == 5
    assert rules.loc[("classification", 20000, 0.8, 0.0), "n_points"] == 5
    assert rules.loc[("classification", 10000, 0.95, 0.0), "n_points"] >= 3
    shares = rows["share"].to_numpy()[:5]
    assert rules.loc[("classification", 20000, 0.9, 0.03), "n_points"] == (shares >= 0.03).sum()
    regression = points[points["task"] == "regression"]
    assert regression["mse"].to_numpy() == pytest.approx((1 - regression["share"].to_numpy()) / 12)


def test_a_curve_that_bends_does_not_agree():
    runs = simulate(HEAD_COUNTS, examples=(40000,), noise=0.002)
    runs["accuracy"] = 0.85 * (1 - np.exp(-runs["heads"] / 8)) + 0.001 * runs["seed"]
    comparison = comparison_table(study_of(runs, ALONG_HEADS)).set_index("quantity")
    assert comparison.loc[BEND, "agrees"] == "no"
    assert "more slowly than a line" in comparison.loc[BEND, "note"]


def test_no_line_is_open_and_never_drawn():
    analysis = study_of(simulate(HEAD_COUNTS, examples=(2000,)), ALONG_HEADS)
    (one,) = analysis.curves
    assert one.linear.line.status is FitStatus.TOO_FEW_POINTS
    rows = comparison_table(analysis).set_index("quantity")
    assert rows.loc[BEND, "agrees"] == "open"
    assert rows.loc[BEND, "note"] == "1 point, and a line with a check of it needs 3"
    assert "not measured" in summary(analysis)
    axes = figures.share_figure(analysis).axes[0]
    assert not [line for line in axes.get_lines() if len(line.get_xdata()) == 60]


def test_monotone_in_the_context():
    runs = simulate(context=CONTEXTS, examples=(6000, 18000))
    analysis = study_of(runs, ALONG_CONTEXT)
    assert set(tables.monotony_table(analysis)["verdict"]) == {"rising, no significant fall"}
    assert set(comparison_table(analysis)["agrees"]) == {"yes"}
    fallen = runs.copy()
    fallen.loc[(runs["context"] == 50) & (runs["examples"] == 18000), "accuracy"] -= 0.3
    rows = comparison_table(study_of(fallen, ALONG_CONTEXT))
    falls = rows[rows["quantity"] == "largest fall of the share in n"]
    assert falls["agrees"].tolist() == ["yes", "no"]
    assert "most from n = 40 to 50" in falls["note"].tolist()[1]


def test_the_knee_is_at_the_context(head_dims):
    by_examples = {one.curve.examples: one for one in head_dims.curves}
    assert by_examples[10000].knee.status is KneeStatus.SATURATED
    assert np.isnan(by_examples[10000].gain.gain)
    for examples in (15000, 20000):
        one = by_examples[examples]
        assert one.knee.allows(32)
        assert abs(one.gain.gain) < 3 * one.gain.err
        assert one.gain.p_value > 0.01
    table = tables.knee_table(head_dims)
    assert table["knee_holds_context"].tolist() == ["open", "yes", "yes"]
    agrees = comparison_table(head_dims).set_index("quantity").loc["knee in d_h", "agrees"]
    assert agrees.tolist() == ["open", "yes", "yes"]


def test_a_gain_beyond_the_context_is_found():
    runs = simulate((30,), head_dim=HEAD_DIMS, examples=(20000,), noise=0.005)
    runs["accuracy"] += 0.002 * (runs["head_dim"] - 32).clip(lower=0)
    (one,) = study_of(runs, ALONG_HEAD_DIM).curves
    assert one.gain.p_value < 1e-3
    assert one.gain.gain == pytest.approx(0.002 * (64 - 35), abs=3 * one.gain.err)
    two = runs[runs["head_dim"].isin([10, 15, 20, 25, 30, 40, 64])]
    (short,) = study_of(two, ALONG_HEAD_DIM).curves
    assert short.gain.n_points == 2
    assert short.gain.gain == pytest.approx(0.002 * 24, abs=3 * short.gain.err)


def test_capacities_stand_beside_the_theory(heads):
    table = tables.capacity_table(heads).set_index("heads")
    assert set(table["task"]) == {"classification"}
    assert table["theory"].tolist() == [31 * h + 1 for h in HEAD_COUNTS]
    assert table.loc[1, "status"] == CapacityStatus.BELOW
    assert table.loc[60, "status"] == CapacityStatus.FOUND
    true = 60 * 31 * 15 / (0.99 - CHANCE)
    assert 20000 <= table.loc[60, "capacity"] <= true
    assert table.loc[60, "memorized"] == 20000


def test_beyond_the_theorem_nothing_is_promised():
    runs = simulate((20,), context=(16, 32, 64, 96), examples=(20000,))
    analysis = study_of(runs, ALONG_CONTEXT)
    assert np.isfinite(analysis.curves[0].guaranteed).tolist() == [True, True, False, False]
    (sentence,) = warnings(analysis)
    assert "(n < d), and here n = 64, 96 at d = 64" in sentence
    assert summary(analysis).count("n < d") == 1


def test_the_test_along_the_context_has_the_status_of_a_fit(tmp_path):
    rising = study_of(simulate(context=CONTEXTS), ALONG_CONTEXT)
    write_results(present(rising), tmp_path / "rising", "study")
    fit = json.loads((tmp_path / "rising" / "fit.json").read_text())
    assert fit["status"] == fit["curves"][0]["status"] == "converged"
    assert fit["curves"][0]["verdict"] == "rising, no significant fall"
    assert 0.9 < fit["curves"][0]["r_squared"] <= 1
    assert fit["curves"][0]["chi2"] >= 0
    write_results(
        present(study_of(simulate(context=CONTEXTS, seeds=1), ALONG_CONTEXT)), tmp_path / "one", "study"
    )
    fit = json.loads((tmp_path / "one" / "fit.json").read_text())
    assert fit["status"] == "not identifiable"
    assert fit["curves"][0]["verdict"] == "no noise estimate"
    assert fit["curves"][0]["chi2"] is None


def test_one_seed_claims_nothing():
    analysis = study_of(simulate(context=CONTEXTS, seeds=1), ALONG_CONTEXT)
    rows = comparison_table(analysis).set_index("quantity")
    assert rows.loc["largest fall of the share in n", "agrees"] == "open"
    assert "no repeated seeds" in summary(analysis)


def test_no_curve_is_a_sentence():
    with pytest.raises(UserError, match="differ in head_dim at the same H, n, T"):
        study_of(simulate(HEAD_COUNTS), ALONG_HEAD_DIM)


def test_a_regression_alone_has_no_capacity_and_says_so():
    analysis = study_of(simulate(HEAD_COUNTS, task="regression"), ALONG_HEADS)
    assert analysis.capacities == ()
    assert words(figures.capacity_figure(analysis)) == ["No runs of a classification task."]
    assert tables.capacity_table(analysis).empty


def test_figures_draw_the_points_the_line_and_the_theory(heads, head_dims):
    drawn = figures.share_figure(heads)
    assert [axes.get_ylabel() for axes in drawn.axes] == ["accuracy", "mean squared error"]
    assert labelled(drawn.axes[0], "T = 20,000").get_xdata().tolist() == [1, 5, 10, 20, 30]
    fitted = [line for line in drawn.axes[0].get_lines() if len(line.get_xdata()) == 60]
    assert len(fitted) == 3
    dotted = [line for line in drawn.axes[0].get_lines() if line.get_linestyle() == ":"]
    assert dotted[0].get_ydata()[-1] == pytest.approx(1861 / 10000)
    knees = figures.share_figure(head_dims).axes[0]
    assert any(set(line.get_xdata()) == {32.0} for line in knees.get_lines())
    assert [axes.get_yscale() for axes in drawn.axes] == ["linear", "log"]


def test_everything_is_written(heads, head_dims, tmp_path):
    for analysis, name, figure in ((heads, "linear_part", "per_head"), (head_dims, "knee", "share")):
        out = tmp_path / analysis.study
        files = {path.name for path in write_results(present(analysis), out, "study")}
        assert files == {path.name for path in out.iterdir()}
        tabled = {f"{name}{end}" for end in (".csv", ".md", ".tex")}
        assert tabled | {"fit.json", "comparison.csv", "points.tex", f"{figure}.svg", "capacity.png"} <= files
        fit = json.loads((out / "fit.json").read_text())
        assert fit["status"] == "converged"
        assert len(fit["curves"]) == len(analysis.curves)
    assert fit["curves"][0]["status"] == KneeStatus.SATURATED
    written = pd.read_csv(tmp_path / ALONG_HEADS / "linear_part.csv")
    assert written["slope"].tolist() == [one.linear.line.b for one in heads.curves]


SCRIPT = SCRIPTS / "analyse.py"


def test_the_command_reads_the_least_table(tmp_path):
    """In a process of its own."""
    least = ["heads", "context", "head_dim", "examples", "seed", "accuracy"]
    runs = simulate(HEAD_COUNTS, examples=(20000,))[least]
    runs.sample(frac=1, random_state=0).to_parquet(tmp_path / "runs.parquet")
    command = [PYTHON, SCRIPT, ALONG_HEADS, "--input", "runs.parquet", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert BEND in done.stdout
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["study"] == ALONG_HEADS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([ALONG_HEADS, "--input", "absent.csv"], "There is no file absent.csv."),
        ([ALONG_HEADS, "--input", "bad.csv"], "bad.csv lacks seed"),
        ([ALONG_HEADS], "memorization_heads takes a table of runs"),
        (
            ["memorization_saturation"],
            "needs a table of runs, a folder of attention weights, or both",
        ),
        (["memorization_saturation", "--attention", "none"], "There is no folder none."),
        ([ALONG_HEADS, "--input", "good.csv", "--out", "bad.csv/out"], "can't be written"),
    ],
)
def test_unusable_input_is_one_sentence_and_exit_code_2(tmp_path, arguments, said):
    good = simulate((4, 8, 12))
    good.to_csv(tmp_path / "good.csv", index=False)
    good.drop(columns="seed").to_csv(tmp_path / "bad.csv", index=False)
    done = run_here(SCRIPT, arguments[0], "--out", "out", *arguments[1:], cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_unknown_studies_and_the_reference(tmp_path):
    with pytest.raises(UserError, match="The study 'heads' is unknown; give one of memorization_heads"):
        analyse(tmp_path, "heads")
    assert len(STUDIES) == 4
    assert published()["saturation"]["max_T"] == {"H=4": 550, "H=8": 1300}
    assert published()["source"].startswith("Mahdavi")
    assert (REPOSITORY / "workflow" / "reference" / "memorization_findings.json").is_file()
