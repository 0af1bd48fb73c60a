"""Analyses of the memorization studies."""

import pandas as pd
from small import REPOSITORY

from shapelaw.fits.inputs import read_table
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.studies.memorization.analysis import MemorizationAnalysis, analyse_runs

HEAD_COUNTS = (1, 5, 10, 20, 30, 40, 50, 60)
CONTEXTS = (1, 5, 10, 20, 30, 40, 50, 60)
HEAD_DIMS = (10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 64)
BEND = "p-value of a line in H"


def study_of(runs: pd.DataFrame, study: str) -> MemorizationAnalysis:
    """The analysis of a table of runs, checked first."""
    return analyse_runs(check_memorization_runs(runs, "runs.csv"), study)


def our_runs() -> pd.DataFrame:
    """The committed runs of figure 2a: one seed."""
    return read_table(REPOSITORY / "docs" / "results" / "laptop_memorization_heads.parquet")
