"""The memorization studies from a table of runs to files, and what is said of them."""

import json
from pathlib import Path

import pandas as pd
import pytest
from commands import run_here
from memorizing_networks import BEND, HEAD_COUNTS, simulate
from small import SCRIPTS

from shapelaw.errors import UserError
from shapelaw.report.write import Table
from shapelaw.studies.memorization.analysis import ALONG_CONTEXT
from shapelaw.studies.memorization.results import (
    FITS,
    NUMBERS,
    QUANTITIES,
    answer,
)
from shapelaw.studies.memorization.saturation import RELU_COLUMNS, relu_results
from shapelaw.studies.memorization.study import ALONG_HEAD_DIM, ALONG_HEADS, SATURATION

NAN = float("nan")


SCRIPT = SCRIPTS / "analyse.py"


def test_the_command_reads_the_least_table(tmp_path):
    least = ["heads", "context", "head_dim", "examples", "seed", "accuracy"]
    runs = simulate(HEAD_COUNTS, examples=(20000,))[least]
    runs.sample(frac=1, random_state=0).to_parquet(tmp_path / "runs.parquet")
    done = run_here(SCRIPT, ALONG_HEADS, "--input", "runs.parquet", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert BEND in done.stdout
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["study"] == ALONG_HEADS


POINTS = pd.DataFrame({"examples": [300, 300, 150], "context": [16, 2, 2], "share": [0.9, 0.4, 0.5]})
ONE_NUMBER = {
    ALONG_HEADS: ": 35 examples per head where 99% are memorized (T = 9)",
    ALONG_CONTEXT: ": from 40% of T = 300 at n = 2 to 90% at n = 16",
    ALONG_HEAD_DIM: ": beyond d_h = n the share changes by +35.100 (T = 9)",
    SATURATION: ": 3510% of them (T = 9)",
}


def told(study, *agrees):
    rows = [(QUANTITIES[study], f"T = {number}", says, "no noise") for number, says in enumerate(agrees)]
    compared = pd.DataFrame(rows, columns=["quantity", "setting", "agrees", "note"]).assign(
        ours=NAN, published=""
    )
    if study in NUMBERS and len(rows) > 1:
        number = (NUMBERS[study][0], "H = 4, T = 9", "", "", 35.1, "n = 32")
        compared.loc[len(compared)] = number
    frames = {"comparison": compared, "points": POINTS}
    if study in FITS:
        frames[FITS[study]] = pd.DataFrame([{"status": "too few points"}])
    return answer(study, {name: Table(frame, "") for name, frame in frames.items()})


@pytest.mark.parametrize("study", QUANTITIES)
def test_settings_are_counted_and_yes_or_no_has_one_number(study):
    found = told(study, "yes", "no", "open")
    assert found.decided
    assert found.sentence == f"In 1 of 2 settings{ONE_NUMBER[study]}."
    assert found.more.endswith("in 1 of 2 settings that can tell; 1 are open.")
    assert told(study, "yes", "open").sentence == f"Yes{ONE_NUMBER[study]}."
    assert told(study, "no", "open").sentence == f"No{ONE_NUMBER[study]}."
    unclear = told(study, "open")
    assert (unclear.decided, unclear.sentence) == (False, "Not at these sizes: T = 0: no noise.")
    assert not told(study).decided


def test_another_table_is_refused(tmp_path: Path) -> None:
    columns = [name for name in RELU_COLUMNS if name not in ("relu_units", "relu")]
    pd.DataFrame([dict.fromkeys(columns, 0)]).to_csv(tmp_path / "relu.csv", index=False)
    with pytest.raises(UserError, match=r"has no relu_units, relu; make it again: rm "):
        relu_results(tmp_path / "relu.csv")
