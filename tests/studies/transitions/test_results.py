"""All tables, figures and fit.json of depth against width, written."""

import argparse
import math
from pathlib import Path

import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate

from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import PAPER_RULE
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.line import FitStatus
from shapelaw.report.write import Table, check_declared
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders.study import FIGURES, TABLES
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.results import (
    NO_COMMON_SIZES,
    add_options,
    add_size_options,
    analyse,
    answer,
    options_of,
    present,
    summary,
)


def test_one_depth_alone_is_no_comparison():
    study = analyse_runs(check_runs(simulate(grid_of((6,), 3e6, 5e7, 5), {}), "made"))
    assert study.transitions.empty
    assert study.fit.status is FitStatus.TOO_FEW_POINTS
    drawn = present(study).figures
    assert drawn["loss_adjacent"] == "there are no two depths to compare"
    assert drawn["best_depth"] == "no two depths share a size, so none is the best"
    check_declared(present(study), TABLES, FIGURES)


def test_every_method_has_its_fit(analysis):
    found = present(analysis)
    check_declared(found, TABLES, FIGURES)
    assert found.fit["a"] == analysis.fit.a
    assert found.fit["method"] == BOOTSTRAP
    assert found.fit["other_methods"][PAPER_RULE]["status"] in {"converged", "too few points"}
    assert found.tables["fit"].frame["method"].tolist() == [BOOTSTRAP, PAPER_RULE, "published"]


def test_points_off_their_line_have_a_widened_error_and_no_projection():
    found = analyse(transitions=Path(__file__).parents[2] / "faults" / "curvefit" / "scattered.csv")
    made = present(found)
    assert "b = 0.02319 ± 0.01746" in made.summary
    assert "no projection: the slope b = 0.0232 ± 0.017 is not significantly above zero" in made.summary
    assert made.tables["projection"].frame["depth"].isna().all()


@pytest.mark.parametrize(
    ("known", "said"),
    [  # our own of Llama's block, docs/results/depth_width.md; and some that bend up, beyond any number at 80 layers
        (
            "1,29.0,1.1\n2,36.5,2.5\n4,48.7,4.8\n8,57.3,4.7\n",
            "log L 1.55e+07, to a factor of 1.4 (b = 0.34 ± 0.04,",
        ),
        ("1,29,1\n2,36,2\n3,60,4\n4,130,9\n", "log d = a + b L + c L² can't be told (b = "),
    ],
)
def test_a_projection_that_no_form_holds_within_a_factor_of_ten_is_no_number(tmp_path, known, said):
    path = tmp_path / "transitions.csv"
    path.write_text(f"depth,width,width_err\n{known}")
    told = present(analyse(transitions=path)).summary.splitlines()[-1]
    assert said in told
    assert "log d = a + b L + c L² can't be told" in told


def asked(add, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(words)


def test_every_word_has_its_place_and_without_words_they_are_the_analysis_own() -> None:
    words = "--method paper --loss bits_per_byte --size flops --noise 0.01 --draws 7 --seed 3"
    found = options_of(asked(add_options, *words.split()))
    assert found == Options("bits_per_byte", 0.01, "paper rule", 7, 3, SizeAxis.FLOPS)
    assert options_of(asked(add_options)) == Options()
    assert vars(asked(add_size_options, "--size", "total")) == {"size": "total", "draws": Options.draws}


def read(found, method=BOOTSTRAP):
    """The rows of a method as they are read."""
    texts = present(found).tables["transitions"].reading.texts
    return texts[texts["method"] == method].to_dict("records")


def test_a_crossing_has_its_interval(analysis):
    rows = analysis.bootstrap_rows
    shown = [row["width d"] for row in read(analysis)]
    assert len(shown) == len(rows) == 4
    assert shown[0] == f"{rows[0]['width']:.1f} ({rows[0]['width_low']:.1f} to {rows[0]['width_high']:.1f})"


def test_a_depth_that_never_overtakes_has_its_bound():
    runs = check_runs(simulate(grid_of((4, 6), 6e4, 6e6, 12), {4: 1e4}, noise=0.0008), "made")
    found = analyse_runs(runs, Options(draws=300))
    (row,), (shown,) = found.bootstrap_rows, read(found)
    bound = f"no transition up to width {row['bound']:.0f}: the shallower network is better everywhere"
    assert shown["result"] == bound


def test_the_papers_rule_stands_beside_a_bootstrap_that_finds_no_crossing():
    """Losses of one layer and of two as measured at V = 500, r = 32: they stray far from smooth curves."""
    one = {32: 3.158, 48: 2.901, 64: 2.795, 96: 2.662, 128: 2.573}
    two = {22: 3.342, 34: 3.013, 46: 2.850, 68: 2.605, 90: 2.511}
    rows = [(depth, width, loss) for depth, losses in ((1, one), (2, two)) for width, loss in losses.items()]
    runs = pd.DataFrame(rows, columns=["depth", "width", "test_loss"]).assign(seed=0)
    found = analyse_runs(check_runs(runs, "made"), Options(noise=0.006))
    ((bootstrap,), (rule,)) = (read(found, method) for method in (BOOTSTRAP, PAPER_RULE))
    assert bootstrap["result"] == "at the edge of the sizes, above width 71"
    assert rule["width d"] == "80.0 (64.0 to 96.0)"


def test_depths_without_common_sizes_are_sent_to_the_surface():
    shapes = {4: [64, 80, 96, 112, 128], 6: [512, 640, 768, 896, 1024]}
    runs = check_runs(simulate(shapes, {4: 100.0}), "made")
    assert summary(analyse_runs(runs)).endswith(NO_COMMON_SIZES)


NAN = math.nan


def tables(rows, **fit):
    columns = ["depth", "deeper_depth", "width", "width_low", "width_high", "status", "side", "bound"]
    frames = {
        "transitions": pd.DataFrame(rows, columns=columns).assign(method="bootstrap"),
        "fit": pd.DataFrame([{"method": "bootstrap", "status": "too few points", **fit}]),
    }
    return {name: Table(frame, "") for name, frame in frames.items()}


def test_a_crossing_stands_beside_the_published_width():
    found = answer(tables([(1, 2, 137.2, 133.0, 141.4, "crossing", None, NAN)]))
    assert found.decided
    assert found.sentence == "Depth 2 overtakes depth 1 at width 137 (68%: 133 to 141)."
    line = "log d = 5.039 + 0.0555 L (Levine et al. 2020)."
    assert found.published == f"width 163 at depth 1; {line}"
    deeper = answer(tables([(depth, 24, 300.0, NAN, NAN, "crossing", None, NAN) for depth in (6, 12)]))
    assert deeper.published == f"width 214 at depth 6, width 308 at depth 12; {line}"


def test_the_law_follows_where_the_line_converged():
    rows = [(depth, depth + 1, 100.0 + depth, NAN, NAN, "crossing", None, NAN) for depth in (1, 2, 3, 4)]
    line = {"status": "converged", "a": 5.0, "a_err": 0.03, "b": 0.05, "b_err": 0.002}
    found = answer(tables(rows, **line, p_value=0.4))
    assert found.sentence.endswith("; and 1 more.")
    assert found.more == "Law: log d = a + b L, a = 5 ± 0.03, b = 0.05 ± 0.002."
    rejected = answer(tables(rows, **line, p_value=0.035))
    assert rejected.more == "Law: a line log d = a + b L fits badly (p = 0.035); other forms: table forms."


@pytest.mark.parametrize(
    ("row", "decided", "said"),
    [
        (
            (1, 2, NAN, NAN, NAN, "none in range, shallower better everywhere", "above", 180.0),
            True,
            "Depth 1 against 2: no transition up to width 180: the shallower network is better everywhere.",
        ),
        (
            (1, 2, NAN, NAN, NAN, "too few sizes", None, NAN),
            False,
            "Depth 1 against 2: too few sizes in common.",
        ),
    ],
)
def test_without_a_crossing_one_better_depth_is_an_answer_and_all_else_undecided(row, decided, said):
    found = answer(tables([row]))
    assert found.decided is decided
    beside = answer(tables([(2, 4, NAN, NAN, NAN, "at the edge", "above", 45.0), row]))
    assert beside.decided is decided
    assert not decided or beside.sentence == found.sentence
    assert found.sentence == said
    assert not answer(tables([])).decided
