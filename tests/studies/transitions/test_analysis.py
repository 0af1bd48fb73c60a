"""From runs to transitions and the law, where the truth is known."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from small import listed
from transition_runs import DEPTHS, TRUE_WIDTHS, A, B, analysed, runs_of

from shapelaw.errors import UserError
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import PAPER_RULE
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.line import FitStatus
from shapelaw.studies.transitions.analysis import (
    WITHOUT_LIMITS,
    Options,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    covariance_of,
    usable,
)
from shapelaw.studies.transitions.results import present, summary


def test_the_law_is_recovered_from_runs():
    analysis = analysed()
    fit = analysis.fit
    assert fit.status is FitStatus.CONVERGED
    assert abs(fit.b - B) < 3 * fit.b_err
    assert abs(fit.a - A) < 3 * fit.a_err
    assert fit.b_err < 0.25 * B
    assert fit.n_points == 4
    assert set(analysis.fits) == {BOOTSTRAP, PAPER_RULE}


def test_transitions_that_share_a_depth_have_the_correlation_that_their_errors_have():
    """Three depths drawn 100 times: a loss of the middle one moves both transitions."""
    widths = grid_of((4, 6, 9), 6e4, 6e6, 10)  # none is twice another, which would be compared too
    found, told = [], []
    for seed in range(100):
        runs = check_runs(simulate(widths, {4: 70.0, 6: 75.0}, noise=0.0012, seed=seed), "made")
        rows = analyse_runs(runs, Options(noise=0.0012, draws=100)).transitions.query("method == 'bootstrap'")
        if (rows["status"] == "crossing").all():
            found.append(np.log(rows["width"]).tolist())
            told.append(rows["correlation"].iloc[0])
    correlation = np.corrcoef(np.array(found).T)[0, 1]
    assert len(found) > 66
    assert correlation == pytest.approx(np.mean(told), abs=0.16)
    assert np.mean(told) < -0.2


def test_the_line_s_covariance_has_that_of_neighbours():
    table = pd.DataFrame(
        {
            "depth": [1, 2, 8],
            "deeper_depth": [2, 4, 16],
            "width": [10.0, 20.0, 40.0],
            "width_err": [1.0, 1.0, 4.0],
        }
    ).assign(correlation=[-0.3, -0.2, np.nan])
    rows = analyse_transitions(check_transitions(table, "made")).transitions
    covariance = covariance_of(usable(rows, "as given"))
    assert np.diag(covariance) == pytest.approx([0.01, 0.0025, 0.01])
    assert covariance[0, 1] == covariance[1, 0] == pytest.approx(-0.3 * 0.1 * 0.05)
    assert covariance[1, 2] == covariance[0, 2] == 0  # 2 against 4 and 8 against 16 share no depth


def test_params_replace_the_size():
    analysis = analysed()
    runs = runs_of()
    doubled = runs.assign(block_params=2 * 12.0 * runs["depth"] * runs["width"] ** 2)
    other = analyse_runs(doubled, Options(draws=600))
    pd.testing.assert_frame_equal(other.transitions, analysis.transitions, rtol=1e-6)
    assert other.runs.curves[4].size == pytest.approx(2 * analysis.runs.curves[4].size)


def test_the_main_method_is_a_choice():
    both = analyse_runs(runs_of(), Options(method=PAPER_RULE, draws=100))
    assert both.fit is both.fits[PAPER_RULE]
    again = analyse_transitions(check_transitions(both.transitions, "t"), PAPER_RULE)
    assert again.fit.to_dict() == both.fit.to_dict()


@pytest.mark.slow
def test_limits_enter_the_line_and_stand_beside_it():
    """The last pair's crossing lies above the grid: its limit pulls the line, and the line without it is kept."""
    widths = grid_of(DEPTHS, 6e4, 6e6, 12) | {12: grid_of((12,), 6e4, 2.3e6, 10)[12]}
    study = analyse_runs(check_runs(simulate(widths, TRUE_WIDTHS, noise=0.0008), "made"), Options(draws=300))
    last = study.transitions.set_index(["method", "depth"]).loc[(BOOTSTRAP, 10)]
    assert last["status"] != "crossing"
    assert last["side"] == "above"
    assert last["bound"] - 2 * last["bound_err"] < TRUE_WIDTHS[10]
    assert set(study.fits) == {BOOTSTRAP, BOOTSTRAP + WITHOUT_LIMITS, PAPER_RULE}
    assert study.fit.b_err < study.fits[BOOTSTRAP + WITHOUT_LIMITS].b_err
    assert "1 limit used" in summary(study)
    figure = present(study).figures["transition_width"].figure()
    legends = [one for one in (figure.axes[0].get_legend(), *figure.legends) if one is not None]
    assert any("above" in text.get_text() for legend in legends for text in legend.get_texts())
    written = StringIO(study.transitions.to_csv(index=False))
    again = analyse_transitions(check_transitions(pd.read_csv(written), "t"))
    assert (again.fit.a, again.fit.b, again.fit.b_err) == pytest.approx(
        (study.fit.a, study.fit.b, study.fit.b_err), rel=1e-9
    )


def test_transitions_without_a_crossing_need_no_width():
    table = pd.DataFrame(
        {
            "depth": [12, 6],
            "width": [np.nan, 214],
            "width_err": [np.nan, 6],
            "status": ["too noisy", "crossing"],
        }
    )
    assert check_transitions(table, "t.csv")["depth"].tolist() == [6, 12]
    with pytest.raises(UserError, match="row 1: width must be a finite number"):
        check_transitions(table.drop(columns="status"), "t.csv")


@pytest.mark.parametrize(("change", "words"), listed("fits/mistakes.yaml", "transitions"))
def test_wrong_transitions(change, words):
    table = pd.DataFrame({"depth": [6, 12], "width": [214, 308], "width_err": [6, 12]})
    with pytest.raises(UserError, match=words):
        check_transitions(table.assign(**change), "t.csv")
