"""Which heads are saturated, and the largest T memorized perfectly."""

import numpy as np
import pandas as pd
import pytest
from memorizing_networks import save_weights, weights

from shapelaw.errors import UserError
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.studies.memorization.saturation import analyse_saturation, comparison_table, read_attention


def runs_of(*rows):
    """(heads, T, seed, accuracy)."""
    table = pd.DataFrame(rows, columns=["heads", "examples", "seed", "accuracy"])
    return check_memorization_runs(table.assign(context=32, head_dim=64), "runs.csv")


def test_agreement_with_the_published_sizes():
    def verdicts(*rows):
        found = analyse_saturation(runs_of(*rows), None)
        return comparison_table(found)["agrees"].tolist()

    assert verdicts((4, 550, 0, 1.0), (4, 600, 0, 0.9)) == ["yes"]
    assert verdicts((4, 300, 0, 1.0), (4, 350, 0, 0.9)) == ["no"]
    assert verdicts((4, 300, 0, 1.0)) == ["open"]
    assert verdicts((4, 300, 0, 0.9)) == ["no"]
    assert verdicts((5, 300, 0, 0.9)) == ["open"]


def test_the_threshold_is_above_099(tmp_path):
    above = np.nextafter(np.float32(0.99), np.float32(1))
    save_weights(tmp_path / "a", "edge", np.array([[0.99, above]], dtype=np.float32))
    (one,) = read_attention(tmp_path / "a")
    # 0.99 as a float32 is just below 0.99
    assert one.saturated.tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": None}, "lacks heads"),
        ({"examples": 7}, r"largest_weight has the shape \(6, 4\); \(examples, heads\) is \(7, 4\)"),
        ({"largest_weight": np.full((6, 4), 1.5)}, r"must be in \(0, 1\]"),
        ({"largest_weight": np.full((6, 4), np.nan)}, r"must be in \(0, 1\]"),
        ({"largest_weight": np.array([["a"] * 4] * 6)}, "can't be read as .npz"),
    ],
)
def test_wrong_files_are_named(tmp_path, changes, said):
    save_weights(tmp_path / "a", "one", weights(), **changes)
    with pytest.raises(UserError, match=said):
        read_attention(tmp_path / "a")


def test_files_that_are_no_archives_and_empty_folders(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match=r"has no \.npz files"):
        read_attention(tmp_path / "a")
    save_weights(tmp_path / "a", "whole", weights())
    cut = (tmp_path / "a" / "whole.npz").read_bytes()
    for content in (b"no archive", b"", cut[: len(cut) // 2]):
        (tmp_path / "a" / "whole.npz").write_bytes(content)
        with pytest.raises(UserError, match=r"can't be read as \.npz"):
            read_attention(tmp_path / "a")
