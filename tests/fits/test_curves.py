"""Loss curves: seeds averaged, sizes given or computed, losses and widths between the points."""

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import curve_of
from small import listed

from shapelaw.fits.crossing import shared_sizes
from shapelaw.fits.curves import TransitionStatus, adjacent_pairs, loss_curves, status_sentence
from shapelaw.fits.noise import Noise
from shapelaw.specs.sizes import SizeAxis

ERR = 0.001


def test_the_deeper_loss_is_interpolated_in_log_size():
    shallow = curve_of(6, [100, 200, 400], [4.0, 3.0, 2.0])
    loss, err = shallow.loss_at(12 * 6 * np.array([100.0, 141.421356, 200.0, 1000.0, 402.0]) ** 2)
    assert loss[:3] == pytest.approx([4.0, 3.5, 3.0], abs=1e-6)
    assert err[:3] == pytest.approx([ERR, ERR / np.sqrt(2), ERR], rel=1e-6)
    assert np.isnan(loss[3])
    assert loss[4] == pytest.approx(2.0, abs=0.01)
    assert np.isnan(curve_of(6, [100], [4.0]).loss_at([7.2e5])[0]).all()


def test_curves_average_seeds_and_take_given_sizes():
    runs = pd.DataFrame(
        [(12, 80, 0, 3.0, 9.0), (6, 64, 1, 2.0, 5.0), (6, 64, 0, 4.0, 5.0), (6, 32, 0, 5.0, 2.0)],
        columns=["depth", "width", "seed", "loss", "block_params"],
    )
    curves = loss_curves(runs, Noise(0.2, 1.0))
    assert list(curves) == [6, 12]
    assert curves[6].width.tolist() == [32, 64]
    assert curves[6].size.tolist() == [2, 5]
    assert curves[6].loss.tolist() == [5, 3]
    assert curves[6].loss_err == pytest.approx([0.2, 0.2 / np.sqrt(2)])
    assert loss_curves(runs.drop(columns="block_params"), None)[12].size.tolist() == [12 * 12 * 80**2]
    assert [(s.depth, d.depth) for s, d in adjacent_pairs(curves)] == [(6, 12)]


def test_curves_take_the_size_that_is_asked_for():
    runs = pd.DataFrame(
        {"depth": 6, "width": [64, 32], "seed": 0, "loss": [2.0, 3.0]}
        | {"block_params": [90.0, 20.0], "total_params": [95.0, 22.0], "step_flops": [7.0, 8.0]}
    )
    assert loss_curves(runs, None, SizeAxis.TOTAL)[6].size.tolist() == [22, 95]
    by_flops = loss_curves(runs, None, SizeAxis.FLOPS)[6]
    assert by_flops.width.tolist() == [64, 32]  # by growing size, whatever the widths
    assert np.isnan(by_flops.loss_err).all()


def test_the_width_at_a_size_is_exact_where_parameters_are_12_l_d_squared():
    curve = curve_of(6, [100, 300, 900], [4.0, 3.0, 2.0])
    assert curve.width_at(np.log(12 * 6 * np.array([100.0, 170.0, 500.0]) ** 2)) == pytest.approx(
        [100, 170, 500]
    )


def test_two_curves_share_the_sizes_that_both_cover():
    shallow, deep = curve_of(6, [100, 200, 400, 800], [4, 3, 2, 1]), curve_of(12, [100, 200, 400], [4, 3, 2])
    span, (of_shallow, of_deep) = shared_sizes(shallow, deep)
    assert np.exp(span) == pytest.approx([12 * 12 * 100**2, 12 * 12 * 400**2])
    assert np.exp(of_shallow) == pytest.approx([12 * 6 * 200**2, 12 * 6 * 400**2])
    assert len(of_deep) == 3
    for above, count in ((0.09, 3), (0.11, 2)):  # up to 10% below counts
        begins_above = curve_of(6, [100 * np.sqrt(2) * np.exp(above / 2), 800], [4, 1])
        assert len(shared_sizes(begins_above, deep)[1][1]) == count
    low, high = shared_sizes(shallow, curve_of(12, [2000, 4000], [2, 1]))[0]
    assert low > high


@pytest.mark.parametrize(("row", "sentence"), listed("fits/labels.yaml", "statuses"))
def test_a_status_is_a_sentence_with_its_bound(row, sentence) -> None:
    assert status_sentence(row) == sentence


def test_every_status_has_its_sentence() -> None:
    values = {"width": 1.0, "width_err": 0.1}
    assert len({status_sentence({"status": status, **values}) for status in TransitionStatus}) == len(
        TransitionStatus
    )
