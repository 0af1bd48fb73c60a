"""The study's results are those of its table of runs, with the options of a command line."""

import argparse

import pandas as pd
import pytest
from transition_runs import runs_of

from shapelaw.errors import UserError
from shapelaw.report.write import check_declared
from shapelaw.studies.decoders.depth_width import add_options, results
from shapelaw.studies.decoders.study import FIGURES, TABLES
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.results import present


@pytest.fixture
def mixed(tmp_path):
    """Runs of two vocabularies, those of 500 words with losses 0.05 higher."""
    runs = runs_of().rename(columns={"loss": "test_loss"}).assign(vocab_size=257)
    both = pd.concat([runs, runs.assign(vocab_size=500, test_loss=runs["test_loss"] + 0.05)])
    both.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def made_from(table, *options):
    parser = argparse.ArgumentParser()
    add_options(parser)
    return results(
        argparse.Namespace(input=table, keep=False, **vars(parser.parse_args(["--draws", "100", *options])))
    )


def test_cells_have_rows_under_a_column_of_what_tells_them_apart(mixed):
    """And each has what it would have alone: the others' losses are no noise of its own."""
    found = made_from(mixed, "--axes", "vocab_size")
    check_declared(found, TABLES, FIGURES)
    alone = present(analyse_runs(runs_of(), Options(draws=100)))
    for name in TABLES:
        table, expected = found.tables[name].frame, alone.tables[name].frame
        assert list(table) == ["vocab_size", *expected], name
        for _, own in table.groupby("vocab_size"):
            rows = own.reset_index(drop=True)[[column for column in expected if column != "loss_mean"]]
            pd.testing.assert_frame_equal(rows, expected[list(rows)], check_dtype=False)
    assert [cell["cell"] for cell in found.fit["cells"]] == [{"vocab_size": 257}, {"vocab_size": 500}]
    assert found.answer.sentence.startswith("V = 257: Depth 6 overtakes depth 4 at width ")
    assert " V = 500: Depth 6 overtakes depth 4 at width " in found.answer.sentence
    assert "V = 500: Seed noise: " in found.summary


def test_a_table_from_elsewhere_is_split_too_and_rates_that_nobody_listed_are_a_sentence(mixed):
    runs = pd.read_csv(mixed).query("depth < 8")
    runs.to_csv(mixed, index=False)
    assert set(made_from(mixed).tables["transitions"].frame["vocab_size"]) == {257, 500}
    rates = runs.rename(columns={"vocab_size": "learning_rate"})
    rates.to_csv(mixed, index=False)
    with pytest.raises(
        UserError, match=r"has several values of learning_rate \(257, 500\) at one depth and width"
    ):
        made_from(mixed)
