"""The study's results are those of its table of runs, with the options of a command line."""

import argparse

from transition_runs import runs_of

from shapelaw.report.write import check_declared
from shapelaw.studies.depth_width.results import add_options, results
from shapelaw.studies.depth_width.study import FIGURES, TABLES
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.results import present


def test_a_table_of_runs_makes_all_that_is_declared(tmp_path):
    runs, table = runs_of(), tmp_path / "runs.csv"
    runs.rename(columns={"loss": "test_loss"}).to_csv(table, index=False)
    parser = argparse.ArgumentParser()
    add_options(parser)
    arguments = parser.parse_args(["--draws", "300", "--method", "paper", "--seed", "2"])
    found = results(argparse.Namespace(input=table, **vars(arguments)))
    check_declared(found, TABLES, FIGURES)
    assert found.fit == present(analyse_runs(runs, Options(draws=300, method="paper rule", seed=2))).fit
