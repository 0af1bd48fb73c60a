"""Which heads are saturated, and the largest T memorized perfectly."""

import numpy as np
import pandas as pd
import pytest
from attention_weights import save, weights
from matplotlib.collections import QuadMesh

from shapelaw.errors import UserError
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.studies.memorization.results import analyse, present
from shapelaw.studies.memorization.saturation import (
    analyse_saturation,
    comparison_table,
    perfect_table,
    read_attention,
    saturation_figure,
    shares_table,
)
from shapelaw.studies.study_runs import StudyRuns


def runs_of(*rows):
    """(heads, T, seed, accuracy)."""
    table = pd.DataFrame(rows, columns=["heads", "examples", "seed", "accuracy"])
    return check_memorization_runs(table.assign(context=32, head_dim=64), "runs.csv")


def test_shares_are_counted(tmp_path):
    save(tmp_path / "a", "one", weights(10))
    (row,) = shares_table(analyse_saturation(None, tmp_path / "a")).to_dict("records")
    # twice 0, 1, 2, 3 and 4 of 4 heads
    assert row["saturated"] == 0.5
    assert row["mean_saturated_heads"] == 2.0
    assert row["majority_saturated"] == 0.4
    assert row["some_head_not_saturated"] == 0.8
    assert (row["heads"], row["examples"], row["run"]) == (4, 10, "one")


def test_the_largest_size_memorized():
    runs = runs_of(
        (4, 450, 0, 1.0), (4, 450, 1, 1.0), (4, 500, 0, 1.0), (4, 500, 1, 0.99), (4, 550, 0, 1.0), (4, 550, 1, 1.0),
        (4, 600, 0, 0.98), (8, 1200, 0, 1.0), (8, 1300, 0, 1.0), (2, 200, 0, 0.5),
    )  # fmt: skip
    table = perfect_table(runs).set_index("heads")
    assert table["bound"].to_dict() == {2: "below", 4: "found", 8: "at least"}
    assert table["status"].to_dict() == {2: "too few points", 4: "converged", 8: "at the edge"}
    assert table.loc[8, "message"] == "T = 1300 is memorized, and no larger T was tried"
    assert table["largest_any"].tolist() == [pd.NA, 550, 1300]
    assert table["largest_all"].tolist() == [pd.NA, 450, 1300]
    assert table["not_memorized"].tolist() == [200, 600, pd.NA]
    assert table["published"].tolist() == [pd.NA, 550, 1300]
    assert table["theory"].tolist() == [63, 125, 249]


def test_agreement_with_the_published_sizes():
    def verdicts(*rows):
        found = analyse_saturation(runs_of(*rows), None)
        return comparison_table(found)["agrees"].tolist()

    assert verdicts((4, 550, 0, 1.0), (4, 600, 0, 0.9)) == ["yes"]
    assert verdicts((4, 300, 0, 1.0), (4, 350, 0, 0.9)) == ["no"]
    assert verdicts((4, 300, 0, 1.0)) == ["open"]
    assert verdicts((4, 300, 0, 0.9)) == ["no"]
    assert verdicts((5, 300, 0, 0.9)) == ["open"]


def test_all_is_said_and_attention_of_another_grid_in_the_same_folder_is_left_out(tmp_path):
    for name in ("mine", "of_another_grid"):
        save(tmp_path / "a", name, weights(40, 8))
    runs = pd.DataFrame({"key": ["mine", "without"], "examples": [550, 600], "accuracy": [1.0, 0.9]})
    given = StudyRuns(runs.assign(heads=4, seed=0, context=32, head_dim=64), "runs.csv", ())
    found = analyse(given, "memorization_saturation", attention=tmp_path / "a")
    assert [one.name for one in found.attention] == ["mine"]
    results = present(found)
    assert set(results.tables) == {"saturation", "perfect", "comparison"}
    assert results.fit["perfect"][0]["largest_any"] == 550
    assert results.answer.sentence == "No: 47% of them (T = 40 (1 run))."
    assert "in 0 of 1 settings that can tell" in results.answer.more
    assert results.fit["status"] == results.fit["perfect"][0]["status"] == "converged"
    assert results.fit["saturation"][0]["heads"] == 8
    alone = present(analyse_saturation(None, tmp_path / "a"))
    assert alone.fit["status"] == "too few points"
    assert set(alone.left_out) == {"perfect"}


def test_the_threshold_is_above_099(tmp_path):
    above = np.nextafter(np.float32(0.99), np.float32(1))
    save(tmp_path / "a", "edge", np.array([[0.99, above]], dtype=np.float32))
    (one,) = read_attention(tmp_path / "a")
    # 0.99 as a float32 is just below 0.99
    assert one.saturated.tolist() == [[False, True]]


def test_the_figure_shows_the_first_examples_and_all_runs_of_the_largest_size(tmp_path):
    folder = tmp_path / "a"
    for name, examples, heads in (("s0", 40, 4), ("s1", 40, 4), ("small", 30, 4), ("big", 50, 8)):
        save(folder, name, weights(examples, heads))
    figure = saturation_figure(read_attention(folder)).figure()
    assert len(figure.axes) == 6
    top, counts, largest = figure.axes[3:]
    assert top.get_title(loc="left") == "H = 4, T = 40 (2 runs)"
    (mesh,) = [artist for artist in top.collections if isinstance(artist, QuadMesh)]
    drawn = mesh.get_array().reshape(4, 20)
    assert (drawn == (weights(40)[:20].T > 0.99)).all()
    assert counts.get_title(loc="left") == "2.0 of 4 heads saturated"
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
