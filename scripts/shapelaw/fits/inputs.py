"""Read a user's tables, check them row by row, and refuse wrong ones in one sentence each."""

from __future__ import annotations

import csv
import difflib
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from shapelaw.errors import UserError, reason_of, refuse_stand_in
from shapelaw.fits.batches import batch_columns
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis, number_of

RUN_COLUMNS = ("depth", "width", "seed")
TOKENS = "tokens_trained"
# columns of which compared networks have one value each; of TEXT_AND_BLOCK also where steps and rates may differ
TEXT_AND_BLOCK = (
    *("corpus", "vocab_size", "context_length", "test_sequences", "schedule"),
    *("gelu", "block", "tied", "attention_degree", "parametrization"),
)
RECIPE = (*TEXT_AND_BLOCK, "steps", "batch_size", "learning_rate", "base_width")
SHOWN_ROWS = 5
SPACES = re.compile("(?<=\\d)[ '_\u00a0\u202f](?=\\d{3})")  # which some write between groups of three digits
NUMBER = re.compile(r"[+-]?(\d[\d.,]*|[.,]\d+)([eE][+-]?\d+)?")
MISSING = ("", "-", "--", "N/A", "n/a", "NA", "#N/A", "null", "None", "nan", "NaN")  # no value
LINE = re.compile(r"line \d+")
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(\1\d{3})*")


def read_table(path: Path) -> pd.DataFrame:
    """A table with at least one row: CSV (.csv, .tsv, .txt; by commas, semicolons or tabs), Parquet or JSON lines.

    Nested values of JSON lines become columns with dots, `config.n_layer`. Numbers may have thousands separators and,
    where commas don't separate columns, decimal commas.

    Raises:
        UserError: the file is missing, has another ending, can't be read, or has no rows.
    """
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise UserError(
            f"{path} ends in {path.suffix or 'nothing'!r}; give a .csv or a .parquet file (or .tsv, .txt, .jsonl)."
        )
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    try:
        refuse_stand_in(path)
        table = _with_plain_names(READERS[suffix](path))
    except pd.errors.EmptyDataError:
        raise UserError(f"{path} is empty; it must have a header line and rows.") from None
    except (OSError, ValueError, csv.Error) as error:
        # Arrow's, JSON's, Unicode's and pandas' are ValueErrors
        raise UserError(f"{path} can't be read as {suffix[1:]} ({reason_of(error)}).") from error
    if table.empty:
        raise UserError(f"{path} has a header but no rows; add one row per run.")
    return table


def _with_plain_names(table: pd.DataFrame) -> pd.DataFrame:
    """The table with numbered rows and columns that have texts as names; an index that has a name is a column.

    Raises:
        ValueError: two columns have one name.
    """
    named = [name for name in table.index.names if name is not None]
    table = table.reset_index(named).reset_index(drop=True)
    parts = [name if isinstance(name, tuple) else (name,) for name in table.columns]
    names = [".".join(str(part) for part in name if part != "") for name in parts]
    for name in _twice(names):
        raise _no_unique_names(names, name)
    return table.set_axis(names, axis=1)


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _no_unique_names(names: Sequence[str], name: str) -> ValueError:
    return ValueError(f"its columns have no unique names: {names.count(name)} are called {name!r}")


def csv_cells(path: Path) -> tuple[list[str], list[list[str]], list[int], str]:
    """The header, the rows as text, the line of each and the delimiter: of comma, semicolon and tab the header's.

    Lines before the header that begin with `# ` are comments.

    Raises:
        ValueError: a line has more fields than the header, or fewer.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        comments = 0
        while (first := file.readline()).startswith("# "):
            comments += 1
        delimiter = max(",;\t", key=first.count)
        reader = csv.reader(chain([first], file), delimiter=delimiter)
        numbered = [(row, comments + reader.line_num) for row in reader if row]
    if not numbered:
        raise pd.errors.EmptyDataError
    header, size = numbered[0][0], len(numbered[0][0])
    for row, line in numbered[1:]:
        if len(row) < size or any(row[size:]):  # an empty field at the end of each line is a habit of some
            raise ValueError(f"line {line} has {len(row)} fields, and the header {size}")
    return header, [row[:size] for row, _ in numbered[1:]], [line for _, line in numbered[1:]], delimiter


def _read_csv(path: Path) -> pd.DataFrame:
    header, rows, _, delimiter = csv_cells(path)
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    text.seek(0)
    table = pd.read_csv(text)
    names = [name for name in header if name.strip()]
    for name in _twice(names):
        if len({tuple(row[at] for row in rows) for at, one in enumerate(header) if one == name}) > 1:
            raise _no_unique_names(names, name)
    raw = {name: [row[at] for row in rows] for at, name in enumerate(table.columns)}
    return table.assign(**written_numbers(raw, commas=delimiter != ","))


def written_numbers(columns: Mapping[str, Sequence[str]], commas: bool | None = None) -> dict[str, pd.Series]:
    """Those columns of texts whose numbers have thousands separators or decimal commas, as numbers.

    A number such as `4.84` or `1,234,567` tells which sign is the decimal one for the whole table; what doesn't fit
    stays a text.

    Args:
        commas: of a table whose numbers tell nothing, as `49,152`: True where they have decimal commas, as if commas
            don't separate columns. None is a table whose decimals are points.
    """
    told = {
        name: texts
        for name, cells in columns.items()
        if _mostly_numbers(texts := [SPACES.sub("", cell.strip()) for cell in cells])
    }
    signs = {_decimal(text) for texts in told.values() for text in texts if NUMBER.fullmatch(text)}
    decimal = "." if commas is None or "." in signs or not ("," in signs or commas) else ","
    found = {}
    for name, texts in told.items():
        plain = [_plain_number(text, decimal) for text in texts]
        if plain != [cell.strip() for cell in columns[name]]:
            texts_or_nothing = pd.Series([None if text in MISSING else text for text in plain], dtype=object)
            numbers: pd.Series = pd.to_numeric(texts_or_nothing, errors="coerce")
            unread = numbers.isna() & texts_or_nothing.notna()
            found[name] = numbers.astype(object).where(~unread, plain) if unread.any() else numbers
    return found


def _mostly_numbers(texts: Sequence[str]) -> bool:
    there = [text for text in texts if text not in MISSING]
    return bool(there) and 2 * sum(NUMBER.fullmatch(text) is not None for text in there) >= len(there)


def _decimal(text: str) -> str:
    """The decimal sign that a number shows, or nothing: `49,152` may be either."""
    if "." in text and "," in text:
        return max(".,", key=text.rfind)
    sign = "." if "." in text else ","
    if text.count(sign) > 1:
        return "," if sign == "." else "."
    return sign if sign in text and not GROUPED.fullmatch(text) else ""


def _plain_number(text: str, decimal: str) -> str:
    """A number as Python reads it; a text that is none by this decimal sign as it is."""
    other = "," if decimal == "." else "."
    whole, sign, rest = text.partition(decimal)
    if not NUMBER.fullmatch(text) or other in rest or (other in whole and not GROUPED.fullmatch(whole)):
        return text
    return whole.replace(other, "") + sign.replace(",", ".") + rest


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
    return with_numbers(pd.json_normalize(rows))


def with_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its texts that are numbers with thousands separators as numbers."""
    texts = {
        str(name): ["" if value is None or value is pd.NA else str(value) for value in column]
        for name, column in table.items()
        if not pd.api.types.is_numeric_dtype(column)
    }
    return table.assign(**{name: new.set_axis(table.index) for name, new in written_numbers(texts).items()})


READERS: Mapping[str, Callable[[Path], pd.DataFrame]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_csv),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _read_json_lines),
    ".parquet": pd.read_parquet,
}


def check_runs(
    table: pd.DataFrame,
    source: str,
    *,
    loss: str = "test_loss",
    size: SizeAxis = SizeAxis.BLOCK,
    beside: Sequence[str] = (),
) -> pd.DataFrame:
    """The runs of a study in order: `depth, width, seed, loss`, and what it has of sizes, batches and tokens.

    Args:
        table: one row per trained network: `depth` (layers), `width`, `seed`, and the column `loss` (test_loss in
            nats per token, or bits_per_byte). Sizes are `block_params` (or `params`; replaces `12 L d^2`),
            `total_params` and `step_flops`, tokens `tokens_trained`; other columns are ignored.
        source: the table's name in messages, e.g. its path.
        size: the size to compare; its column is required.
        beside: further columns to keep where the table has them, as numbers or NaN.

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
    tokens = [TOKENS] if TOKENS in table else []
    runs = runs.assign(**batch_columns(table), **table[tokens].apply(pd.to_numeric, errors="coerce"))
    runs = runs.assign(**as_numbers(table, [name for name in beside if name in table]))
    once = (
        "a run (depth, width, seed) must have one row; keep one vocabulary, one budget and one row per seed"
    )
    refuse_twice(runs, RUN_COLUMNS, source, once)
    runs = runs.sort_values(list(RUN_COLUMNS))
    _check_sizes(runs, sized, source)
    return runs.reset_index(drop=True)


def _check_sizes(runs: pd.DataFrame, names: Sequence[str], source: str) -> None:
    """Refuse sizes of sorted runs that differ between the seeds of a shape, or don't grow with width at one depth."""
    depth, width = (np.diff(runs[name]) == 0 for name in ("depth", "width"))
    for name in names:
        step = np.diff(runs[name])
        differ, shrinking = depth & width & (step != 0), depth & ~width & (step <= 0)
        of_seeds = np.append(differ, False) | np.append(False, differ)
        refuse(runs, pd.Series(of_seeds), source, f"{name} must be the same for all seeds of a shape")
        wrong = pd.Series(np.append(False, shrinking))
        refuse(runs, wrong, source, f"{name} must grow with width at one depth")


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


EXACT = 2.0**53  # whole numbers up to which float64 has all
# a rule that a column, or a table, of numbers keeps, and what breaks it
RULES: Mapping[str, Callable[[Any], Any]] = {
    (FINITE := "a finite number"): lambda column: ~np.isfinite(column),
    (POSITIVE := "above zero"): lambda column: column <= 0,
    (WHOLE := "a whole number"): lambda column: np.isfinite(column) & (column % 1 != 0),
    (COUNTED := "below 2^53"): lambda column: np.isfinite(column) & (column.abs() >= EXACT),
}


def broken_rules(
    numbers: pd.Series, name: str, rules: Iterable[str], cells: pd.Series
) -> dict[str, pd.Series[bool]]:
    """For each of some `RULES` that a column breaks its sentence, with a cell that does, and the rows that do."""
    broken = {rule: rows for rule in rules if (rows := RULES[rule](numbers)).any()}
    return {f"{name} must be {rule}{example(cells, rows)}": rows for rule, rows in broken.items()}


def example(cells: pd.Series, rows: pd.Series[bool]) -> str:
    """What stands in the first of some rows, a clause: `; it is 'two'`, or of several rows `; line 3 has 'two'`."""
    shown = cells[rows.to_numpy()]
    if shown.empty:
        return ""
    cell = shown.iloc[0]
    said = (
        "nothing" if pd.isna(cell) or cell == "" else f"{cell!r:.40}" if isinstance(cell, str) else str(cell)
    )
    return f"; it is {said}" if len(shown) == 1 else f"; {rows_named(shown.index[:1])} has {said}"


def read_numbers(column: pd.Series) -> pd.Series[float]:
    """Numbers as float64, of texts such as `1.2M` too; NaN where a value is none."""

    def read(value: object) -> float:
        try:
            return number_of(value) if isinstance(value, str) else math.nan
        except ValueError:
            return math.nan

    numbers = pd.to_numeric(column, errors="coerce").astype("float64")
    return numbers if is_numeric_dtype(column) else numbers.fillna(column.map(read).astype("float64"))


def seed_numbers(seeds: pd.Series) -> pd.Series[float]:
    """Seeds as numbers; where they are words, or too large to be told apart, the order in which they come."""
    numbers = read_numbers(seeds)
    if numbers.isna().all() or (numbers.abs() >= EXACT).any():
        return pd.Series(pd.factorize(seeds)[0].astype("float64"), index=seeds.index).where(seeds.notna())
    return numbers


def as_numbers(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Columns as float64, NaN where a value is no number; `seed` by `seed_numbers`."""
    reads = {name: seed_numbers if name == "seed" else read_numbers for name in columns}
    return pd.DataFrame({name: read(table[name]) for name, read in reads.items()}, index=table.index)


def numbers_of(
    table: pd.DataFrame,
    columns: Iterable[str],
    source: str,
    *,
    positive: Iterable[str] = (),
    whole: Iterable[str] = (),
) -> pd.DataFrame:
    """Columns as finite numbers, those that are `whole` as integers.

    Raises:
        UserError: values are not numbers, not finite, or not positive or whole where they must be; the message names
            all of their rows.
    """
    numbers = as_numbers(table, columns)
    wrong: dict[str, pd.Series[bool]] = {}
    for rule, names in ((FINITE, [*columns]), (POSITIVE, positive), (WHOLE, whole), (COUNTED, whole)):
        for name in names:
            wrong |= broken_rules(numbers[name], name, [rule], table[name])
    refuse_all(table, source, wrong)
    return numbers.astype(dict.fromkeys(whole, "int64"))


def run_numbers(
    table: pd.DataFrame, whole: Sequence[str], measured: Sequence[str], source: str
) -> pd.DataFrame:
    """The columns `whole`, `seed` and `measured`, all but the seed above zero.

    Raises:
        UserError: as in `numbers_of`.
    """
    numbers = [*whole, "seed", *measured]
    return numbers_of(table, numbers, source, positive=(*whole, *measured), whole=(*whole, "seed"))


def whole_or_empty(table: pd.DataFrame, name: str, source: str, empty: str = "") -> pd.Series:
    """A column of whole numbers of 1 or more, such as ranks, and where it is empty of missing values.

    Args:
        empty: the meaning of an empty value, in messages: `for full rank`.

    Raises:
        UserError: a value is neither.
    """
    numbers = pd.to_numeric(table[name], errors="coerce").astype("Float64")
    wrong = table[name].notna() & ~((numbers >= 1) & (numbers % 1 == 0)).fillna(False).astype(bool)
    rule = f"{name} must be a whole number of 1 or more, or empty {empty}".rstrip()
    refuse(table, wrong, source, rule + example(table[name], wrong))
    return numbers


def numbers_or_empty(table: pd.DataFrame, columns: Sequence[str], source: str) -> pd.DataFrame:
    """Columns of numbers, which may be infinite, and where they are empty of NaN.

    Raises:
        UserError: a value is neither.
    """
    numbers = as_numbers(table, columns)
    for name in columns:
        wrong = table[name].notna() & numbers[name].isna()
        refuse(table, wrong, source, f"{name} must be a number, or empty{example(table[name], wrong)}")
    return numbers


def refuse(table: pd.DataFrame, wrong: pd.Series[bool], source: str, rule: str) -> None:
    """Raise an error that names the rows where `wrong` holds, by `rows_named`."""
    refuse_all(table, source, {rule: wrong})


def refuse_twice(table: pd.DataFrame, columns: Sequence[str], source: str, rule: str) -> None:
    """Raise an error that names the rows that are equal in all of some columns, by `rows_named`."""
    refuse(table, table.duplicated(list(columns), keep=False), source, rule)


def refuse_all(table: pd.DataFrame, source: str, wrong: Mapping[str, pd.Series[bool]]) -> None:
    """Raise one error with all rules that rows break, each with its rows."""
    broken = [
        f"{rows_named(table.index[rows.to_numpy()])}: {rule}" for rule, rows in wrong.items() if rows.any()
    ]
    if broken:
        raise UserError(f"{source}, {'; '.join(broken)}.")


def rows_named(index: pd.Index) -> str:
    """Rows in a few words: `row 2, row 5` where they are counted, `lines 3, 5 to 9` of a file, or their names."""
    if pd.api.types.is_numeric_dtype(index):
        shown = [f"row {at + 1}" for at in index[:SHOWN_ROWS]]
        return ", ".join(shown) + (f" and {len(index) - SHOWN_ROWS} more" if len(index) > SHOWN_ROWS else "")
    if not all(LINE.fullmatch(name) for name in index):
        return ", ".join(index)
    parts: list[list[int]] = []
    for line in (int(name.removeprefix("line ")) for name in index):
        if parts and line == parts[-1][-1] + 1:
            parts[-1][1:] = [line]
        else:
            parts.append([line])
    return f"line{'s' if len(index) > 1 else ''} " + ", ".join(" to ".join(map(str, part)) for part in parts)


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
