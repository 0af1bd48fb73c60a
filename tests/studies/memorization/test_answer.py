"""Memorization, each study in one line."""

import pandas as pd
import pytest

from shapelaw.report.write import Table
from shapelaw.studies.memorization.answer import FITS, QUANTITIES, answer
from shapelaw.studies.memorization.study import ALONG_HEAD_DIM, ALONG_HEADS


def told(study, *agrees, fit=None):
    rows = [(QUANTITIES[study], f"T = {number}", says, "no noise") for number, says in enumerate(agrees)]
    frames = {"comparison": pd.DataFrame(rows, columns=["quantity", "setting", "agrees", "note"])}
    if study in FITS:
        frames[FITS[study]] = pd.DataFrame([fit or {"status": "too few points"}])
    return answer(study, {name: Table(frame, "") for name, frame in frames.items()})


@pytest.mark.parametrize("study", QUANTITIES)
def test_settings_are_counted(study):
    found = told(study, "yes", "no", "open")
    assert found.decided
    assert found.sentence.endswith("in 1 of 2 settings that can tell; 1 are open.")
    assert found.published
    unclear = told(study, "open")
    assert (unclear.decided, unclear.sentence) == (False, "No setting decides it: T = 0: no noise.")
    assert not told(study).decided


def test_the_clearest_fit_follows_with_its_interval():
    line = {"status": "converged", "n_points": 5, "examples": 2000, "slope": 0.05, "slope_err": 0.002}
    assert told(ALONG_HEADS, "yes", fit=line).sentence.endswith("Share of T = 2,000 per head: 0.050 ± 0.002.")
    knee = {"status": "converged", "n_points": 5, "knee": 31.0, "low68": 29.0, "high68": 33.0, "context": 32}
    assert told(ALONG_HEAD_DIM, "yes", fit=knee).sentence.endswith(
        "Knee at d_h = 31.0 (29.0 to 33.0), n = 32."
    )
