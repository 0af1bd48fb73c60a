"""What a user's table is refused for, and in what words."""

import re

import numpy as np
import pandas as pd
import pytest
from small import listed

from shapelaw.errors import UserError
from shapelaw.fits.inputs import (
    RECIPE,
    check_runs,
    numbers_or_empty,
    read_table,
    refuse_mixed,
    whole_or_empty,
)

RUNS = pd.DataFrame(
    {"depth": [12, 6, 6], "width": [64, 96, 96], "seed": [0, 1, 0], "test_loss": [3.0, 3.2, 3.1]}
)


def test_runs_come_sorted_and_renamed():
    runs = check_runs(RUNS.assign(key="ignored"), "runs.csv")
    assert list(runs.columns) == ["depth", "width", "seed", "loss"]
    assert runs["loss"].tolist() == [3.1, 3.2, 3.0]
    assert (runs.dtypes[["depth", "width", "seed"]] == "int64").all()
    other = check_runs(RUNS.rename(columns={"test_loss": "bits_per_byte"}), "runs.csv", loss="bits_per_byte")
    assert other["loss"].tolist() == runs["loss"].tolist()


@pytest.mark.parametrize(("change", "words"), listed("fits/mistakes.yaml", "runs"))
def test_wrong_values_are_named_by_row(change, words):
    with pytest.raises(UserError, match=words):
        check_runs(RUNS.assign(**change), "runs.csv")


def test_a_number_may_be_left_out_but_not_be_a_word():
    table = pd.DataFrame({"rank": [8, None], "half": [2.5, 4], "word": ["8", "full"], "bound": [-np.inf, 1]})
    assert whole_or_empty(table, "rank", "runs.csv").tolist() == [8, pd.NA]
    for name, row in (("half", 1), ("word", 2), ("bound", 1)):
        with pytest.raises(UserError, match=f"row {row}: {name} must be a whole number of 1 or more"):
            whole_or_empty(table, name, "runs.csv")
    numbers = numbers_or_empty(table, ["rank", "bound"], "runs.csv")
    assert numbers.fillna(0).to_dict("list") == {"rank": [8, 0], "bound": [-np.inf, 1]}
    with pytest.raises(UserError, match="row 2: word must be a number, or empty"):
        numbers_or_empty(table, ["rank", "word"], "runs.csv")


@pytest.mark.parametrize(("change", "words"), listed("fits/mistakes.yaml", "recipes"))
def test_recipes_must_be_one(change, words):
    refuse_mixed(RUNS.assign(corpus="wiki", steps=4000), RECIPE, "runs.csv")
    with pytest.raises(UserError, match=re.escape(words)):
        refuse_mixed(RUNS.assign(**change), RECIPE, "runs.csv")
    with pytest.raises(UserError, match=r"runs\.csv has runs of V = 500 with different values of "):
        refuse_mixed(RUNS.assign(**change), RECIPE, "runs.csv", of="V = 500")


def test_missing_columns_are_named_all_at_once_with_the_nearest():
    with pytest.raises(UserError) as caught:
        check_runs(RUNS.rename(columns={"test_loss": "testloss", "depth": "layers"}), "runs.csv")
    assert "lacks depth, test_loss (is it called testloss?)" in str(caught.value)
    assert "it has the columns layers, width, seed, testloss" in str(caught.value)

    # a column of another meaning is not offered
    with pytest.raises(UserError, match="lacks width, test_loss; it has"):
        check_runs(RUNS.rename(columns={"width": "ff_width", "test_loss": "train_loss"}), "runs.csv")


def test_sizes_must_grow_with_width_and_many_wrong_rows_are_counted():
    table = pd.DataFrame({"depth": 6, "width": [64, 96], "seed": 0, "test_loss": 3.0, "params": [20.0, 10.0]})
    with pytest.raises(UserError, match="params must grow with width"):
        check_runs(table, "runs.csv")
    many = pd.DataFrame({"depth": 6, "width": range(1, 10), "seed": 0, "test_loss": np.nan})
    with pytest.raises(UserError, match="row 5 and 4 more: test_loss"):
        check_runs(many, "runs.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("commas.csv", "depth,test_loss\n6,3.25\n12,3.5\n"),
        ("semicolons.csv", "depth;test_loss\n6;3.25\n12;3.5\n"),
        ("decimal_commas.csv", "depth;test_loss\n6;3,25\n12;3,5\n"),
        ("tabs.tsv", "depth\ttest_loss\n6\t3.25\n12\t3.5\n"),
        ("mark.txt", "\ufeffdepth,test_loss\n6,3.25\n12,3.5\n"),
        ("lines.jsonl", '{"depth": 6, "test_loss": 3.25}\n\n{"depth": 12, "test_loss": 3.5}\n'),
    ],
)
def test_text_tables_of_every_kind(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    table = read_table(tmp_path / name)
    assert table.to_dict("list") == {"depth": [6, 12], "test_loss": [3.25, 3.5]}

    (tmp_path / "runs.jsonl").write_text('{"config": {"n_layer": 2}, "summary": {"val": {"loss": 3.5}}}\n')
    assert list(read_table(tmp_path / "runs.jsonl")) == ["config.n_layer", "summary.val.loss"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("broken.jsonl", b'{"depth": 6}\n{"depth": \n', "can't be read as jsonl .line 2: "),
        ("list.jsonl", b"[1, 2]\n", "line 1 is no object"),
        ("nothing.jsonl", b"\n", "is empty"),
        ("absent.csv", None, "There is no file"),
        ("runs.xlsx", b"x", "give a .csv or a .parquet file"),
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"depth,width,seed,test_loss\n", "has a header but no rows"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "can't be read as csv"),
        ("binary.csv", b"\xff\xfe\x00a,b\n\x80", "can't be read as csv"),
        ("text.parquet", b"depth,width\n", "can't be read as parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_table(tmp_path / name)


def test_comments_come_before_a_header_that_may_begin_with_a_number_sign(tmp_path):
    (tmp_path / "runs.csv").write_text("# source: a page\n# licence: MIT\n#,depth,width\n0,2,64\n")
    assert read_table(tmp_path / "runs.csv").to_dict("list") == {"#": [0], "depth": [2], "width": [64]}


def test_an_index_is_numbers_or_columns_and_names_are_texts(tmp_path):
    """As `concat` and `groupby` of pandas leave them."""
    table = pd.DataFrame({"depth": [1, 2], "test_loss": [3.0, 2.5]})
    pd.concat([table, table]).to_parquet(tmp_path / "twice.parquet")
    assert list(read_table(tmp_path / "twice.parquet").index) == [0, 1, 2, 3]
    table.set_axis([7, 0], axis=1).to_parquet(tmp_path / "numbers.parquet")
    assert list(read_table(tmp_path / "numbers.parquet")) == ["7", "0"]
    table.set_index("depth").to_parquet(tmp_path / "named.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "named.parquet"), table)
    of_levels = table.set_axis(pd.MultiIndex.from_tuples([("config", "depth"), ("test_loss", "")]), axis=1)
    of_levels.to_parquet(tmp_path / "levels.parquet")
    assert list(read_table(tmp_path / "levels.parquet")) == ["config.depth", "test_loss"]
