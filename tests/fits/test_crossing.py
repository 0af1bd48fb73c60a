"""Transitions by our estimator and the paper's rule, calibrated on curves and surfaces whose crossings are known."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import BY_SIZE, CROSSING, NOISE, WITHOUT, curve_of, draw_runs, grid_of, simulate

from shapelaw.fits.crossing import (
    DRAWS,
    GRID,
    CrossingDraws,
    bootstrap_crossing,
    decided,
    draw_crossings,
    reaches,
    smooth_loss,
)
from shapelaw.fits.curves import Side, TransitionStatus, gaps_of, loss_curves, paper_rule
from shapelaw.fits.noise import Noise, WidthNoise, pooled_noise
from shapelaw.studies.study import REFERENCE
from shapelaw.studies.transitions.analysis import published_transitions


@pytest.mark.parametrize("slope", [0.01, 0.03])
def test_the_paper_s_rule_lags_by_about_what_it_says(slope):
    """Gaps that are linear in log width and zero at 150."""
    width = np.geomspace(60, 400, 16)
    off, told = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shallow = curve_of(4, width, 0.002 * rng.standard_normal(16), 0.002)
        better = slope * np.log(width / 150)
        deep = curve_of(6, width * np.sqrt(4 / 6), 0.002 * rng.standard_normal(16) - better, 0.002)
        found = paper_rule(shallow, deep, Noise(0.002, math.inf))
        if found.status is TransitionStatus.CROSSING:
            off.append(math.log(found.width / 150))
            told.append(found.lag)
    assert len(off) > 150
    assert np.median(told) == pytest.approx(np.mean(off), rel=0.3)


SURFACES = {surface.name: surface for surface in (*CROSSING, *WITHOUT, *BY_SIZE)}


def compare(runs, noise=None, draws=DRAWS, seed=0):
    runs = runs.rename(columns={"test_loss": "loss"})
    noise = pooled_noise(runs) if noise is None else noise
    curves = loss_curves(runs, noise)
    return bootstrap_crossing(*curves.values(), noise, draws=draws, seed=seed)


@cache
def found_at(name, number):
    """The transition, its draws, and the true width of a draw of a surface."""
    runs, width = draw_runs(SURFACES[name], number)
    return *compare(runs, draws=2000, seed=number), width


def found_on(name, draws):
    """The transition and the true width of that many draws of a surface."""
    return [(found_at(name, number)[0], found_at(name, number)[2]) for number in range(draws)]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("power laws", 0.68, 0.95),
        ("6 sizes a depth", 0.68, 0.99),
        ("noise grows, repeats at small sizes", 0.68, 0.95),
        ("one run 7 sigma off near the crossing", 0.60, 0.90),
        ("scatter twice the noise", 0.55, 0.90),
        ("noise falls, 20 degrees of freedom", 0.68, 0.95),
    ],
)
def test_calibration(name, least, most):
    """40 experiments: the share of 68% intervals that hold the truth, and hardly a bias of the log width."""
    found = [(one, width) for one, width in found_on(name, 40) if one.status is TransitionStatus.CROSSING]
    assert len(found) >= 34
    assert least <= np.mean([one.width_low <= width <= one.width_high for one, width in found]) <= most
    errors = np.array([np.log(one.width / width) for one, width in found])
    sigmas = np.array([one.width_err / one.width for one, _ in found])
    assert abs(errors.mean()) < sigmas.mean() / 3
    assert 0.8 < np.median(sigmas) / np.sqrt((errors**2).mean()) < 2


@pytest.mark.parametrize(
    ("name", "status", "least"),
    [
        ("equal", TransitionStatus.TOO_NOISY, 0.8),
        ("deeper worse, then equal", TransitionStatus.AT_EDGE, 0.9),
        ("gap that decays to zero", TransitionStatus.AT_EDGE, 0.9),
        ("two crossings, deeper better between", TransitionStatus.SEVERAL, 0.9),
        ("two crossings, deeper worse between", TransitionStatus.SEVERAL, 0.9),
        ("deeper better, then worse", TransitionStatus.REVERSED, 0.9),
    ],
)
def test_nothing_is_invented(name, status, least):
    """15 experiments without a crossing, or with more than one: at most one is reported as a crossing."""
    statuses = [one.status for one, _ in found_on(name, 15)]
    assert statuses.count(TransitionStatus.CROSSING) <= 1
    assert statuses.count(status) >= 15 * least
    assert TransitionStatus.DEEPER_BETTER not in statuses


def test_a_run_far_off_its_curve_is_named():
    found = [one for one, _ in found_on("one run 7 sigma off near the crossing", 12)]
    named = [one.caution for one in found if "L12-d" in one.caution and "sigma off" in one.caution]
    assert len(named) >= 9
    clean = [one.caution for one, _ in found_on("power laws", 12)]
    assert sum("sigma off" in caution for caution in clean) <= 1


def second_batch(runs, there, offset=5 * NOISE):
    """The runs with those in a second batch off by an offset."""
    batch = np.where(there, "second", "first")
    return runs.assign(test_loss=runs["test_loss"] + offset * there, batch=batch)


def test_the_offset_of_two_batches_inside_of_a_depth_is_fitted():
    """Every other size of the deeper networks is 5 sigma off: by the losses alone nothing crosses near 360."""
    for number in range(5):
        runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 9), {6: 360.0}, seed=number)
        places = runs.groupby("depth")["width"].rank(method="dense")
        apart = second_batch(runs, (runs["depth"] == 12) & (places % 2 == 0))
        found, _ = compare(apart, draws=500)
        assert found.status is TransitionStatus.CROSSING
        assert abs(found.width - 360.0) < 3 * found.width_err
        assert found.caution == ""
        without, _ = compare(apart.drop(columns="batch"), draws=500)
        assert without.status is not TransitionStatus.CROSSING or without.width_err > 1.5 * found.width_err


@pytest.mark.parametrize("column", ["batch", "date"])
def test_a_batch_that_coincides_with_a_depth_is_a_caution(column):
    runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 9), {6: 360.0})
    whole = second_batch(runs, runs["depth"] == 12).rename(columns={"batch": column})
    assert f"{column} coincides with the depths" in compare(whole, draws=500)[0].caution
    spread = runs.assign(**{column: np.where(runs["width"].rank(method="dense") % 2, "a", "b")})
    assert "coincides" not in compare(spread, draws=500)[0].caution


def test_the_only_shape_of_a_batch_leaves_the_jackknife_finite():
    runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 9), {6: 360.0})
    one = runs["depth"].eq(12) & runs["width"].eq(runs.loc[runs["depth"] == 12, "width"].iloc[8])
    found, draws = compare(second_batch(runs, one), draws=500)
    assert np.isfinite(draws.without).all()
    assert found.status is TransitionStatus.CROSSING


def test_doubtful_designs_are_marked():
    assert "repeated at small sizes only" in found_on("noise grows, repeats at small sizes", 1)[0][0].caution
    assert "only 4 sizes" in found_on("4 sizes a depth", 1)[0][0].caution
    assert found_on("power laws", 1)[0][0].caution == ""


@pytest.mark.parametrize(
    ("true_width", "status"),
    [
        (40.0, TransitionStatus.DEEPER_BETTER),
        (4000.0, TransitionStatus.SHALLOWER_BETTER),
        (165.0, TransitionStatus.AT_EDGE),
        (980.0, TransitionStatus.AT_EDGE),
        (360.0, TransitionStatus.CROSSING),
    ],
)
def test_status(true_width, status):
    """Sizes from 1.5M (width 144 at depth 6) to 80M (width 1054)."""
    found, draws = compare(simulate(grid_of((6, 12), 1.5e6, 8e7, 9), {6: true_width}, noise=0.0005))
    assert found.status is status
    assert draws is not None
    assert np.isnan(found.width) == (status is not TransitionStatus.CROSSING)
    assert np.isfinite(found.bound) == (found.side is not None) == (status is not TransitionStatus.CROSSING)
    if found.side is Side.ABOVE:
        assert found.bound - 2 * found.bound_err < true_width
    if found.side is Side.BELOW:
        assert found.bound + 2 * found.bound_err > true_width
    if found.side is Side.AT:
        assert abs(found.bound - true_width) < 3 * found.bound_err


def test_no_noise_and_too_few_sizes():
    runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 8), {6: 360.0}, seeds=1)
    assert compare(runs)[0].status is TransitionStatus.NO_NOISE
    few = simulate(grid_of((6, 12), 1.5e6, 8e7, 3), {6: 360.0})
    found, draws = compare(few)
    assert found.status is TransitionStatus.TOO_FEW_SIZES
    assert draws is None
    apart = simulate({6: [40, 60, 80, 100, 120], 12: [400, 500, 600, 700, 800]}, {6: 360.0})
    assert compare(apart)[0].status is TransitionStatus.TOO_FEW_SIZES
    _, of_four = compare(simulate(grid_of((6, 12), 1.5e6, 8e7, 4), {6: 360.0}), draws=2000)
    assert (of_four.without.size, of_four.err_of_shapes) == (0, 0.0)  # none can be left out


def made(worse=(1, 1, 1, 0.6, 0.3, 0, 0, 0), none=0.0, spread=0.05, draws=20_000, without=(0.0,) * 16):
    """Draws of a crossing at log size 0 between -1 and 1, a share of which don't cross."""
    crossings = spread * np.random.default_rng(0).standard_normal(draws)
    crossings[: round(none * draws)] = 1.0
    grid, few = np.linspace(-1, 1, GRID), np.empty((0, 0))
    sizes, shares = np.linspace(-1, 1, len(worse)), np.array(worse, dtype=float)
    return CrossingDraws(
        grid, -grid, few, few, sizes, shares, 0.0, np.sort(crossings), np.array(without), 1.0, (), few
    )


CLEAR = (TransitionStatus.CROSSING, Side.AT)
BEYOND_ALL = (TransitionStatus.AT_EDGE, Side.AT)


@pytest.mark.parametrize(
    ("changed", "expected", "undecided"),
    [
        ({}, CLEAR, ""),
        ({"none": 0.06}, BEYOND_ALL, ""),
        ({"none": 0.052}, Side.AT, '5% don\'t cross, so "at the edge" or "crossing"'),
        ({"none": 0.052, "draws": 200_000}, BEYOND_ALL, ""),
        ({"worse": (0.97, 0.9, 0.9, 0.6, 0.3, 0.1, 0.02, 0)}, (TransitionStatus.AT_EDGE, Side.BELOW), ""),
        (
            {"worse": (0.975, 0.9, 0.9, 0.6, 0.3, 0.1, 0.02, 0)},
            Side.BELOW,
            '2.5% contradict a sign, so "at the edge" or "crossing"',
        ),
        (
            {"worse": (1, 1, 1, 1, 1, 1, 1, 0.974)},
            Side.ABOVE,
            '2.5% contradict a sign, so "at the edge" or "none in range, shallower better everywhere"',
        ),
        (
            {"worse": (0.9, 0.9, 0.6, 0.6, 0.3, 0.1, 0.1, 0.0255)},
            None,
            '2.5% contradict a sign, so "at the edge" or "too noisy"',
        ),
        ({"spread": 0.503}, None, '68% lie within half of the sizes, so "crossing" or "too noisy"'),
        ({"spread": 0.6}, (TransitionStatus.TOO_NOISY, None), ""),
        ({"without": (-0.6, 0.6) * 8}, (TransitionStatus.TOO_NOISY, None), ""),
    ],
)
def test_a_share_of_draws_at_its_limit_decides_nothing(changed, expected, undecided):
    status, side, doubts = decided(made(**changed), (-0.9, 0.9))
    if not undecided:
        assert (status, side, doubts) == (*expected, [])
        return
    assert (status, side) == (TransitionStatus.UNDECIDED, expected)
    assert doubts == [f"20,000 draws don't tell whether {undecided}"]


WIDTHS = grid_of((6, 12), 1.5e6, 8e7, 10)


def drawn(runs, noise, draws=300):
    shallow, deep = loss_curves(runs.rename(columns={"test_loss": "loss"}), noise).values()
    return draw_crossings(shallow, deep, noise, draws, np.random.default_rng(0))


def test_smoothed_losses_are_closer_to_the_truth_and_know_their_error():
    widths = grid_of((6,), 1.5e6, 8e7, 12)
    truth = simulate(widths, {}, noise=0.0, seeds=1)["test_loss"].to_numpy()
    pulls, raw = [], []
    for number in range(50):
        runs = simulate(widths, {}, seed=number, seeds=1).rename(columns={"test_loss": "loss"})
        curve = loss_curves(runs, Noise(NOISE, np.inf))[6]
        loss, err = smooth_loss(curve, curve.size, Noise(NOISE, np.inf))
        pulls.append((loss - truth) / err)
        raw.append(np.std(loss - truth) / NOISE)
    assert np.mean(raw) < 0.7
    assert np.std(pulls) == pytest.approx(1.0, abs=0.15)
    without = loss_curves(runs, None)[6]
    assert smooth_loss(without, without.size, None)[0] == pytest.approx(without.loss, abs=1e-12)


def sizes(*widths):
    """Log sizes of networks of depth 6."""
    return np.log(12 * 6 * np.array(widths, dtype=float) ** 2)


def test_a_curve_of_four_sizes_reaches_its_range_and_a_tenth_beyond_but_not_into_a_gap():
    # between 150 and 500 sizes grow by a factor of 11
    curve = curve_of(6, [100, 120, 150, 500, 600], [5, 4, 3, 2, 1])
    (first,), (last,) = sizes(100), sizes(600)
    at = np.array([first - 0.11, first - 0.09, *sizes(110, 155, 200, 490, 550), last + 0.09, last + 0.11])
    assert reaches(curve, at).tolist() == [False, True, True, True, False, True, True, True, False]
    loss, err = smooth_loss(curve, np.exp(at), Noise(0.001, np.inf))
    assert (np.isfinite(loss) == reaches(curve, at)).all()
    assert (np.isfinite(err) == reaches(curve, at)).all()
    three = curve_of(6, [100, 120, 150], [3, 2, 1])
    assert not reaches(three, three.log_size).any()
    assert np.isnan(smooth_loss(three, three.size, Noise(0.001, np.inf))).all()


ERR = 0.001  # of every loss of curve_of
OF_CURVES = Noise(ERR, math.inf)


def test_networks_of_equal_size_are_compared_as_they_stand() -> None:
    """100 x 2 layers of width 100 / sqrt 2 and so on: every size of one depth is a size of the other."""
    widths = np.array([100.0, 200.0, 400.0])
    gaps = gaps_of(curve_of(6, widths, [4.0, 3.0, 2.0]), curve_of(12, widths / math.sqrt(2), [4.1, 3.0, 1.9]))
    assert gaps.width.tolist() == [100, 200, 400]
    assert gaps.deeper_width == pytest.approx(widths / math.sqrt(2))
    assert gaps.deeper_by == pytest.approx([-0.1, 0.0, 0.1])
    assert gaps.err == pytest.approx([ERR * math.sqrt(2)] * 3)
    assert gaps.better(OF_CURVES).tolist() == [-1, 0, 1]
    assert gaps.better(None).tolist() == [0, 0, 0]


def test_sizes_that_the_deeper_depth_does_not_reach_are_left_out() -> None:
    gaps = gaps_of(curve_of(1, [16, 64, 90, 128], [4.0, 3.0, 2.5, 2.0]), curve_of(2, [46, 90], [3.0, 2.0]))
    assert gaps.width.tolist() == [64, 90, 128]
    assert gaps.deeper_width.tolist() == [46, 46, 90]
    between = math.log(2 * 46**2), math.log(2 * 90**2)  # two points of two layers, and the line through them
    at = np.array([math.log(width**2) for width in (64, 90, 128)])
    assert gaps.deeper_loss == pytest.approx(3.0 - (at - between[0]) / (between[1] - between[0]))
    assert gaps.deeper_loss[-1] < 2.0  # 128 of one layer is 1% larger than 90 of two


def test_each_gap_has_the_noise_of_its_widths() -> None:
    """A loss difference of 3 sigma among wide networks, whose noise is known worse, is not significant."""
    noise = WidthNoise(0.02, 9.0, -1.0, 0.5, middle=32.0, middle_std=0.01, lowest=16.0, highest=256.0)
    runs = pd.DataFrame(
        [(depth, w, 0, 2.0 - 0.1 * depth) for depth in (1, 2) for w in (16, 32, 64, 256)],
        columns=["depth", "width", "seed", "loss"],
    )
    shallow, deep = loss_curves(runs, noise).values()
    assert shallow.loss_err == pytest.approx([0.02, 0.01, 0.005, 0.00125])
    gaps = gaps_of(shallow, deep)
    known = noise.threshold_at(gaps.width, gaps.deeper_width)
    assert (known >= noise.threshold()).all()
    assert gaps.better(noise).tolist() == (gaps.z > known).astype(int).tolist()
    assert gaps.better(noise).tolist() != gaps.better(Noise(noise.std, noise.dof)).tolist()


# rows 3 to 10 of table 2 of Levine et al. 2020: (6, d) and (12, d) of nearly the same size
SIX, TWELVE = [192, 200, 208, 220, 224, 236, 248], [136, 142, 148, 156, 158, 168, 176]


def compare_by_rule(differences, noise=OF_CURVES):
    """Deeper minus shallower at seven sizes, in units of the difference's standard error, on a common power law."""
    losses = {
        d: 30.0 * (12 * d * np.array(w, dtype=float) ** 2) ** -0.15 for d, w in ((6, SIX), (12, TWELVE))
    }
    shallow = curve_of(6, SIX, losses[6])
    deep = curve_of(12, TWELVE, losses[12] + np.array(differences) * ERR * np.sqrt(2))
    return paper_rule(shallow, deep, noise)


def test_the_papers_first_transition():
    found = compare_by_rule([0, 0.5, -1, -3, -4, -4, -5])
    assert found.status is TransitionStatus.CROSSING
    assert (found.width, found.width_err) == (214, 6)
    assert (found.width_low, found.width_high) == (208, 220)
    assert (found.depth, found.deeper_depth, found.method) == (6, 12, "paper rule")
    # between the last size that can't be told apart and the first significantly worse one lie any number of others
    wider = compare_by_rule([2, 0, 0.5, -1.4, -1.6, -4, -5])
    assert (wider.width_low, wider.width_high) == (208, 236)
    # the deeper one is worse at 220: not told apart
    assert compare_by_rule([5, 4, 3, 0.9, -3, -4, -5]).width_low == 220


@pytest.mark.parametrize(("depth", "seed"), [(6, 19), (12, 21), (18, 90), (24, 153), (30, 5)])
def test_published_brackets_come_back_over_the_published_grid(depth, seed):
    """Simulated losses of table 2's shapes with the published seed noise can give each bracket of table 4a.

    Four of the five enclose trained widths, so a rule of two neighbours can't (Levine et al. 2020, tables 2, 3, 4a).
    """
    grid = pd.read_csv(REFERENCE / "depth_width_grid.csv")
    grid = grid[grid["source"].str.endswith("table 2")]  # not the earlier version's
    table = published_transitions().set_index("depth")
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
    found = compare_by_rule(differences)
    assert found.status is status
    assert np.isnan([found.width, found.width_err, found.width_low, found.width_high]).all()


def test_significance_follows_the_degrees_of_freedom():
    """Three standard errors are significant with a known noise, not with one measured from three runs."""
    differences = [0, 0, 0, -3, -3, -3, -3]
    assert compare_by_rule(differences).status is TransitionStatus.CROSSING
    assert compare_by_rule(differences, Noise(0.001, 2.0)).status is TransitionStatus.TOO_NOISY


def test_no_noise_and_too_few_common_sizes():
    assert compare_by_rule([0, 0, 0, -9, -9, -9, -9], None).status is TransitionStatus.NO_NOISE
    far = curve_of(12, [w * 4 for w in TWELVE], np.linspace(2, 1, 7))
    near = curve_of(6, SIX, np.linspace(3, 2, 7))
    assert paper_rule(near, far, OF_CURVES).status is TransitionStatus.TOO_FEW_SIZES
