"""The redundancies that ship with the project are those of the committed runs."""

from pathlib import Path

import pandas as pd
import pytest
from commands import run_here
from small import REPOSITORY, SCRIPTS

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.known_redundancy import AS_T5, RANK, RATIO, TOKENS, Basis
from shapelaw.studies.measured import MEASURED, known_redundancies


@pytest.mark.parametrize("study", ["embedding_rank", "attention_ratio"])
def test_they_are_made_from_the_committed_runs(study: str, tmp_path: Path) -> None:
    runs = REPOSITORY / "docs" / "results" / f"laptop_{study}.csv"
    done = run_here(SCRIPTS / "analyse.py", study, "--input", runs, "--out", tmp_path, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    for name in ("redundancy.csv", "losses.csv"):
        made, ours = (pd.read_csv(folder / name) for folder in (tmp_path, MEASURED / study))
        pd.testing.assert_frame_equal(made, ours, rtol=1e-6)


@pytest.mark.parametrize("axis", list(SizeAxis))
def test_ours_come_before_the_published(axis: SizeAxis) -> None:
    known = known_redundancies(axis)
    for kind, setting in ((RANK, TOKENS), (RATIO, AS_T5)):
        of_kind = [one.basis for one in known if (one.kind, one.setting) == (kind, setting)]
        assert of_kind == [Basis.FIT, Basis.PUBLISHED]
