"""The paper's rule."""

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import curve_of, simulate

from shapelaw.fits.curves import TransitionStatus, loss_curves
from shapelaw.fits.noise import Noise
from shapelaw.fits.transitions import paper_rule
from shapelaw.studies.reference import REFERENCE
from shapelaw.studies.transitions.analysis import published

NOISE = Noise(0.001, np.inf)
ERR = 0.001

# rows 3 to 10 of table 2 of Levine et al. 2020: (6, d) and (12, d) of nearly the same size
SIX, TWELVE = [192, 200, 208, 220, 224, 236, 248], [136, 142, 148, 156, 158, 168, 176]


def compare(differences, noise=NOISE):
    """Deeper minus shallower at seven sizes, in units of the difference's standard error, on a common power law."""
    losses = {
        d: 30.0 * (12 * d * np.array(w, dtype=float) ** 2) ** -0.15 for d, w in ((6, SIX), (12, TWELVE))
    }
    shallow = curve_of(6, SIX, losses[6])
    deep = curve_of(12, TWELVE, losses[12] + np.array(differences) * ERR * np.sqrt(2))
    return paper_rule(shallow, deep, noise)


def test_the_papers_first_transition():
    found = compare([0, 0.5, -1, -3, -4, -4, -5])
    assert found.status is TransitionStatus.CROSSING
    assert (found.width, found.width_err) == (214, 6)
    assert (found.width_low, found.width_high) == (208, 220)
    assert (found.depth, found.deeper_depth, found.method) == (6, 12, "paper rule")


def test_the_bracket_spans_the_sizes_that_are_neither():
    """Between the last size that can't be told apart and the first significantly worse one lie any number of others."""
    found = compare([2, 0, 0.5, -1.4, -1.6, -4, -5])
    assert (found.width_low, found.width_high) == (208, 236)
    assert (
        compare([5, 4, 3, 0.9, -3, -4, -5]).width_low == 220
    )  # the deeper one is worse there: not told apart


@pytest.mark.parametrize(("depth", "seed"), [(6, 19), (12, 21), (18, 90), (24, 153), (30, 5)])
def test_published_brackets_come_back_over_the_published_grid(depth, seed):
    """Simulated losses of table 2's shapes with the published seed noise can give each bracket of table 4a.

    Four of the five enclose trained widths, so a rule of two neighbours can't (Levine et al. 2020, tables 2, 3, 4a).
    """
    grid = pd.read_csv(REFERENCE / "depth_width_grid.csv")
    grid = grid[grid["source"].str.endswith("table 2")]  # not the earlier version's
    table = published("transitions").set_index("depth")
    widths = {d: sorted(set(rows["width"])) for d, rows in grid.groupby("depth") if d in (*table.index, 36)}
    true = (0.95 * table["width"]).to_dict()  # significance lags behind the crossing
    runs = simulate(widths, true, noise=0.001446, seed=seed, seeds=1, gain=0.05)
    noise = Noise(0.001446, 22.0)
    curves = loss_curves(runs.rename(columns={"test_loss": "loss"}), noise)
    found = paper_rule(curves[depth], curves[depth + 6], noise)
    assert (found.width, found.width_err) == tuple(table.loc[depth, ["width", "width_err"]])


@pytest.mark.parametrize(
    ("differences", "status"),
    [
        ([-5, -5, -5, -5, -5, -5, -5], TransitionStatus.DEEPER_BETTER),
        ([5, 5, 5, 5, 5, 5, 5], TransitionStatus.SHALLOWER_BETTER),
        ([0, 0, 0, 0, 0, 0, -5], TransitionStatus.AT_EDGE),
        ([0, -5, -5, -5, -5, -5, -5], TransitionStatus.AT_EDGE),
        ([5, 5, 5, 5, 0, 0, 0], TransitionStatus.AT_EDGE),
        ([0, 0.5, -0.5, 0, 0.5, -0.5, 0], TransitionStatus.TOO_NOISY),
        ([5, 5, -5, 5, -5, -5, -5], TransitionStatus.TOO_NOISY),
    ],
)
def test_what_is_no_transition_has_a_status_and_no_width(differences, status):
    found = compare(differences)
    assert found.status is status
    assert np.isnan([found.width, found.width_err, found.width_low, found.width_high]).all()


def test_significance_follows_the_degrees_of_freedom():
    """Three standard errors are significant with a known noise, not with one measured from three runs."""
    differences = [0, 0, 0, -3, -3, -3, -3]
    assert compare(differences).status is TransitionStatus.CROSSING
    assert compare(differences, Noise(0.001, 2.0)).status is TransitionStatus.TOO_NOISY


def test_no_noise_and_too_few_common_sizes():
    assert compare([0, 0, 0, -9, -9, -9, -9], None).status is TransitionStatus.NO_NOISE
    far = curve_of(12, [w * 4 for w in TWELVE], np.linspace(2, 1, 7))
    near = curve_of(6, SIX, np.linspace(3, 2, 7))
    assert paper_rule(near, far, NOISE).status is TransitionStatus.TOO_FEW_SIZES
