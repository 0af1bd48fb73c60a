"""Other people's files and accidents: of each kind that broke a command a property of its whole kind."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_surfaces import grid_of, simulate
from small import PYTHON, REPOSITORY

from shapelaw.advice.own_runs.columns import NO_LENGTH, OF_LENGTH, OF_TOKENS
from shapelaw.advice.own_runs.rows import own_runs
from shapelaw.errors import UserError
from shapelaw.fits.inputs import check_runs
from shapelaw.studies.study_runs import FINISHED, UNFINISHED

SECOND = Path(__file__).parent / "faults" / "second"
RUNS = simulate(grid_of((2, 4, 8), 1e5, 1e7, 4), {2: 60.0, 4: 120.0}, seeds=1)
FEW = settings(max_examples=25)
words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [["fit", SECOND / "38-duplicate-index" / "ok.parquet"], ["speed", "10M"]])
def test_ctrl_c_is_one_line(asked: list[str | Path], tmp_path: Path) -> None:
    line = [PYTHON, "-m", "shapelaw.cli", *map(str, asked)]
    with subprocess.Popen(
        line, cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY / "scripts")}, stderr=subprocess.PIPE, text=True
    ) as process:
        while (
            "numpy" not in Path(f"/proc/{process.pid}/maps").read_text()
        ):  # what the command is about has begun
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().splitlines()
    assert process.returncode == 130
    assert said[-1] == "Stopped."
    assert not any("Traceback" in line for line in said)


@FEW
@given(
    length=st.sampled_from(sorted(OF_LENGTH)),
    before=st.sampled_from(["", "max", "n", "config.train.", "total", "Trainer/"]),
    other=st.sampled_from(sorted(NO_LENGTH)),
)
def test_any_column_that_says_how_long_a_run_trained_is_asked_about(
    length: str, before: str, other: str
) -> None:
    lengths = 1000.0 * np.array([1, 7, 2, 9, 3, 11, 4, 5, 8, 6, 12, 10])
    name = before + ("_" if before[-1:].isalpha() else "") + length
    if set(name.split("_")) <= OF_TOKENS and "tokens" in name:
        return  # tokens, by which budgets are told
    with pytest.raises(UserError, match="can't be compared"):
        own_runs(RUNS.assign(**{name: lengths}), "runs.csv")
    asked = f"{other}_{length}"
    if other not in ("epochs", "best"):  # a column of its own
        assert len(own_runs(RUNS.assign(**{asked: lengths}), "runs.csv").table) == len(RUNS)
    for table, keep in ((RUNS.assign(**{name: lengths}), True), (RUNS.assign(**{name: 10.0}), False)):
        assert len(own_runs(table, "runs.csv", keep=keep).table) == len(RUNS)


@FEW
@given(
    done=st.sampled_from(FINISHED),
    not_done=st.sampled_from(UNFINISHED),
    how=st.sampled_from([str.upper, str.title, str.lower, lambda word: f" TrialState.{word.upper()} "]),
    unknown=st.text("abcdefghij", min_size=3, max_size=9).filter(
        lambda word: word not in (*FINISHED, *UNFINISHED)
    ),
)
def test_words_of_state_are_known_however_written_and_others_asked_about(
    done, not_done, how, unknown
) -> None:
    states = [how(done)] * 10 + [how(not_done)] * 2
    found = own_runs(RUNS.assign(state=states), "runs.csv")
    assert len(found.table) == 10
    with pytest.raises(
        UserError, match=f"a run that is '{unknown}' finished; count .*--only state={unknown}"
    ):
        own_runs(RUNS.assign(state=[*states[:-1], unknown]), "runs.csv")


@FEW
@given(seeds=st.lists(st.integers(0, 2**80), min_size=3, max_size=3, unique=True))
def test_whole_numbers_of_any_size_are_told_apart_as_seeds_and_refused_as_sizes(seeds: list[int]) -> None:
    runs = pd.concat([RUNS.assign(seed=pd.Series([seed] * len(RUNS), dtype=object)) for seed in seeds])
    runs = runs.reset_index(drop=True)
    assert own_runs(runs, "runs.csv").table["seed"].nunique() == 3
    assert check_runs(runs, "runs.csv")["seed"].nunique() == 3
    if (depth := max(seeds)) >= 2**53:
        with pytest.raises(UserError, match=r"row 1: depth must be below 2\^53; it is"):
            check_runs(runs.assign(depth=[depth, *runs["depth"][1:]]), "runs.csv")


@FEW
@given(
    cell=words.filter(lambda text: text.strip() and not any(sign in text for sign in "0123456789")),
    column=st.sampled_from(["depth", "width", "test_loss"]),
    row=st.integers(0, len(RUNS) - 1),
)
def test_a_refusal_shows_the_cell_its_row_and_its_column(cell: str, column: str, row: int) -> None:
    if cell.strip().lower().lstrip("+-") in ("inf", "infinity", "nan"):
        return
    runs = RUNS.astype({column: object})
    runs.loc[row, column] = cell
    with pytest.raises(UserError) as refused:
        check_runs(runs, "runs.csv")
    assert f"row {row + 1}: {column} must be a finite number; it is {cell!r:.40}" in str(refused.value)
