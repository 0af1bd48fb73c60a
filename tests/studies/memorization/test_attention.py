"""Attention weights: read, refused where wrong, and drawn as in figure 3."""

import numpy as np
import pytest
from attention_weights import save, weights
from matplotlib.collections import QuadMesh

from shapelaw.errors import UserError
from shapelaw.studies.memorization.attention import read_attention, saturation_figure


def test_the_threshold_is_above_099(tmp_path):
    save(
        tmp_path / "a",
        "edge",
        np.array([[0.99, np.nextafter(np.float32(0.99), np.float32(1))]], dtype=np.float32),
    )
    (one,) = read_attention(tmp_path / "a")
    # 0.99 as a float32 is just below 0.99
    assert one.saturated.tolist() == [[False, True]]


def test_the_figure_shows_the_first_examples_and_all_runs_of_the_largest_size(tmp_path):
    folder = tmp_path / "a"
    for name, examples, heads in (("s0", 40, 4), ("s1", 40, 4), ("small", 30, 4), ("big", 50, 8)):
        save(folder, name, weights(examples, heads))
    figure = saturation_figure(read_attention(folder))
    assert len(figure.axes) == 6
    top, counts, largest = figure.axes[3:]
    assert top.get_title(loc="left") == "H = 4, T = 40"
    (mesh,) = [artist for artist in top.collections if isinstance(artist, QuadMesh)]
    drawn = mesh.get_array().reshape(4, 20)
    assert (drawn == (weights(40)[:20].T > 0.99)).all()
    assert counts.get_title(loc="left").startswith("2 runs, mean 2.00")
    assert [bar.get_height() for bar in counts.patches] == pytest.approx([0.2] * 5)
    assert sum(bar.get_height() for bar in largest.patches) == pytest.approx(1.0)


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
    save(tmp_path / "a", "one", weights(), **changes)
    with pytest.raises(UserError, match=said):
        read_attention(tmp_path / "a")


def test_files_that_are_no_archives_and_empty_folders(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match=r"has no \.npz files"):
        read_attention(tmp_path / "a")
    save(tmp_path / "a", "whole", weights())
    cut = (tmp_path / "a" / "whole.npz").read_bytes()
    for content in (b"no archive", b"", cut[: len(cut) // 2]):
        (tmp_path / "a" / "whole.npz").write_bytes(content)
        with pytest.raises(UserError, match=r"can't be read as \.npz"):
            read_attention(tmp_path / "a")
