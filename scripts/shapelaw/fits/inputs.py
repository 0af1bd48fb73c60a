"""Read a user's tables, check them row by row, and refuse wrong ones in one sentence each."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import SIZE_COLUMNS, Side, SizeAxis

RUN_COLUMNS = ("depth", "width", "seed")
TRANSITION_COLUMNS = ("depth", "width", "width_err")
OPTIONAL_COLUMNS = (
    *("deeper_depth", "width_low", "width_high", "method", "status", "bound", "bound_err", "side"),
    *("reportable_low", "reportable_high", "noise_scale", "caution"),
)
# columns of which compared networks have one value each; of TEXT_AND_BLOCK also where steps and rates may differ
TEXT_AND_BLOCK = (
    *("corpus", "vocab_size", "context_length", "test_sequences", "schedule"),
    *("gelu", "block", "tied", "attention_degree", "parametrization"),
)
RECIPE = (*TEXT_AND_BLOCK, "steps", "batch_size", "learning_rate", "base_width")
SHOWN_ROWS = 5
DECIMAL_COMMA = r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?"


def read_table(path: Path) -> pd.DataFrame:
    """A table with at least one row: CSV (.csv, .tsv, .txt; by commas, semicolons or tabs), Parquet or JSON lines.

    Nested values of JSON lines become columns with dots, `config.n_layer`.

    Raises:
        UserError: the file is missing, has another ending, can't be read, or has no rows.
    """
    if path.suffix not in READERS:
        raise UserError(
            f"{path} ends in {path.suffix or 'nothing'!r}; give a .csv or a .parquet file (or .tsv, .txt, .jsonl)."
        )
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        table = READERS[path.suffix](path)
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; it must have a header line and rows.") from None
    except (
        OSError,
        ValueError,
        pd.errors.ParserError,
    ) as error:  # Arrow's, JSON's and Unicode's errors are ValueErrors
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} can't be read as {path.suffix[1:]} ({reason}).") from error
    if table.empty:
        raise UserError(f"{path} has no rows.")
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    """Delimited text; the delimiter is the one of comma, semicolon and tab that the header has most of."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    delimiter = max(",;\t", key=header.count)
    table = pd.read_csv(path, sep=delimiter, encoding="utf-8-sig")
    if delimiter == "," or not len(table):
        return table
    for name, column in table.items():  # where commas don't separate columns, they may separate decimals
        text = column.dropna().astype(str)
        if not pd.api.types.is_numeric_dtype(column) and text.str.fullmatch(DECIMAL_COMMA).all():
            table[name] = pd.to_numeric(column.astype(str).str.replace(",", "."), errors="coerce")
    return table


def _read_json_lines(path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error.msg}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is no object {{...}}")
        rows.append(row)
    if not rows:
        raise pd.errors.EmptyDataError
    return pd.json_normalize(rows)


READERS: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_csv),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json_lines),
    ".parquet": pd.read_parquet,
}


def check_runs(
    table: pd.DataFrame, source: str, *, loss: str = "test_loss", size: SizeAxis = SizeAxis.BLOCK
) -> pd.DataFrame:
    """The runs of a study, one row each, in order: `depth, width, seed, loss` and the columns of sizes that it has.

    Args:
        table: one row per trained network: `depth` (layers), `width`, `seed`, and the column `loss` (test_loss in
            nats per token, or bits_per_byte). Sizes are `block_params` (or `params`; replaces `12 L d^2`),
            `total_params` and `step_flops`; other columns are ignored.
        source: the table's name in messages, e.g. its path.
        size: the size to compare; its column is required.

    Raises:
        UserError: a column is missing; a value is not a number, not finite or not positive; a depth, width or seed is
            not whole; a run has two rows; or a size differs between seeds of a shape, or does not grow with width.
    """
    if "block_params" not in table:
        table = table.rename(columns={"params": "block_params"})
    needed = [] if size is SizeAxis.BLOCK else [SIZE_COLUMNS[size]]
    sized = [name for name in SIZE_COLUMNS.values() if name in table]
    require_columns(table, [*RUN_COLUMNS, loss, *needed], source)
    runs = run_numbers(table, ["depth", "width"], [loss, *sized], source).rename(columns={loss: "loss"})
    refuse(
        runs,
        runs.duplicated(list(RUN_COLUMNS), keep=False),
        source,
        "a run (depth, width, seed) must have one row; keep one vocabulary, one budget and one row per seed",
    )
    for name in sized:
        _check_size(runs, name, source)
    return runs.sort_values(list(RUN_COLUMNS), ignore_index=True)


def check_transitions(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """Transition widths as `depth, width, width_err`, with any other columns of `transitions.csv` that the table has.

    A row whose `status` is not "crossing" has no width. Without a `method` column each depth may have one row.

    Raises:
        UserError: a column is missing; a crossing's width or error is not a positive number; or a depth has two rows
            for one method.
    """
    require_columns(table, list(TRANSITION_COLUMNS), source)
    optional = [name for name in OPTIONAL_COLUMNS if name in table]
    crossing = table["status"] == "crossing" if "status" in optional else pd.Series(True, index=table.index)
    numbers = numbers_of(table, ["depth"], source)
    checked = table[[*TRANSITION_COLUMNS, *optional]].assign(depth=numbers["depth"])
    measured = numbers_of(table[crossing], list(TRANSITION_COLUMNS), source)
    for name in TRANSITION_COLUMNS:
        refuse(measured, measured[name] <= 0, source, f"{name} must be above zero")
    if {"bound", "bound_err", "side"} <= set(optional):
        bounded = numbers_of(table[table["side"].notna()], ["bound", "bound_err"], source)
        for name in ("bound", "bound_err"):
            refuse(bounded, bounded[name] <= 0, source, f"{name} must be above zero")
        known = table["side"].isna() | table["side"].isin([side.value for side in Side])
        refuse(checked, ~known, source, f"side must be one of {', '.join(Side)}, or empty")
    refuse(checked, checked["depth"] % 1 != 0, source, "depth must be a whole number")
    key = ["depth", "method"] if "method" in optional else ["depth"]
    refuse(checked, checked.duplicated(key, keep=False), source, "a depth must have one row (of each method)")
    return checked.astype({"depth": "int64"}).sort_values(key, ignore_index=True)


def _check_size(runs: pd.DataFrame, name: str, source: str) -> None:
    sizes = runs.groupby(["depth", "width"])[name].transform("nunique")
    refuse(runs, sizes > 1, source, f"{name} must be the same for all seeds of a shape")
    shapes = runs.drop_duplicates(["depth", "width"]).sort_values(["depth", "width"])
    shrinking = shapes.groupby("depth")[name].diff() <= 0
    refuse(shapes, shrinking, source, f"{name} must grow with width at one depth")


def require_columns(table: pd.DataFrame, columns: Sequence[str], source: str) -> None:
    there = [str(name) for name in table.columns]
    missing = []
    for name in columns:
        if name not in there:
            others = [other for other in there if other not in columns]
            near = difflib.get_close_matches(name, others, n=1, cutoff=0.8)  # not ff_width for width
            missing.append(name + (f" (is it called {near[0]}?)" if near else ""))
    if missing:
        raise UserError(f"{source} lacks {', '.join(missing)}; it has the columns {', '.join(there)}.")


def numbers_of(table: pd.DataFrame, columns: Sequence[str], source: str) -> pd.DataFrame:
    numbers = pd.DataFrame({name: pd.to_numeric(table[name], errors="coerce") for name in columns})
    for name in columns:
        values = numbers[name].to_numpy(dtype=np.float64, na_value=np.nan)
        refuse(
            table,
            pd.Series(~np.isfinite(values), index=table.index),
            source,
            f"{name} must be a finite number",
        )
    return numbers.astype("float64")


def run_numbers(
    table: pd.DataFrame, whole: Sequence[str], measured: Sequence[str], source: str
) -> pd.DataFrame:
    """The columns `whole`, `seed` and `measured`, all but the seed above zero.

    Raises:
        UserError: a value is not a number, not finite or not positive, or not whole where it must be.
    """
    runs = numbers_of(table, [*whole, "seed", *measured], source)
    for name in (*whole, *measured):
        refuse(runs, runs[name] <= 0, source, f"{name} must be above zero")
    for name in (*whole, "seed"):
        refuse(runs, runs[name] % 1 != 0, source, f"{name} must be a whole number")
    return runs.astype(dict.fromkeys((*whole, "seed"), "int64"))


def whole_or_empty(table: pd.DataFrame, name: str, source: str, empty: str = "") -> pd.Series:
    """A column of whole numbers of 1 or more, such as ranks, and where it is empty of missing values.

    Args:
        empty: the meaning of an empty value, in messages: `for full rank`.

    Raises:
        UserError: a value is neither.
    """
    numbers = pd.to_numeric(table[name], errors="coerce").astype("Float64")
    wrong = table[name].notna() & ~((numbers >= 1) & (numbers % 1 == 0)).fillna(False).astype(bool)
    rule = f"{name} must be a whole number of 1 or more, or empty {empty}"
    refuse(table, wrong, source, rule.rstrip())
    return numbers


def numbers_or_empty(table: pd.DataFrame, columns: Sequence[str], source: str) -> pd.DataFrame:
    """Columns of numbers, which may be infinite, and where they are empty of NaN.

    Raises:
        UserError: a value is neither.
    """
    numbers = pd.DataFrame({name: pd.to_numeric(table[name], errors="coerce") for name in columns})
    for name in columns:
        wrong = table[name].notna() & numbers[name].isna()
        refuse(table, wrong, source, f"{name} must be a number, or empty")
    return numbers.astype("float64")


def refuse(table: pd.DataFrame, wrong: pd.Series[bool], source: str, rule: str) -> None:
    """Raise an error that names the rows (counted from 1, without the header) where `wrong` holds."""
    if not wrong.any():
        return
    rows = [f"row {index + 1}" for index in table.index[wrong.to_numpy()][:SHOWN_ROWS]]
    more = f" and {int(wrong.sum()) - SHOWN_ROWS} more" if wrong.sum() > SHOWN_ROWS else ""
    raise UserError(f"{source}, {', '.join(rows)}{more}: {rule}.")


def refuse_mixed(table: pd.DataFrame, columns: Sequence[str], source: str, *, of: str = "") -> None:
    """Refuse runs that differ in a column where all must be equal; columns that the table lacks are passed over.

    Args:
        of: the name of these runs, where they are some of the table.

    Raises:
        UserError: there is such a column; the message names its values.
    """
    for name in columns:
        if name in table and table[name].nunique(dropna=False) > 1:
            values = ["empty" if pd.isna(value) else str(value) for value in table[name].unique()]
            raise UserError(
                f"{source} has runs{of and f' of {of}'} with different values of {name} "
                f"({', '.join(values[:SHOWN_ROWS])}); networks compare at one of them, so keep its rows."
            )


def check_bootstrap(noise: float | None, draws: int) -> None:
    """Refuse a noise or a number of bootstrap draws that nothing can be done with.

    Raises:
        UserError: the noise is not above zero, or there are too few draws.
    """
    if noise is not None and not 0 < noise < math.inf:
        raise UserError(f"The noise is {noise}; it is a standard deviation of the loss, above zero.")
    if draws < 100:
        raise UserError(f"{draws} bootstrap draws are too few for a 68% interval; give 100 or more.")
