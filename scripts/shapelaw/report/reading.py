"""A table as a reader sees it, in HTML, Markdown and LaTeX: headers in words, at most eight columns, one format each.

A value stands with its error, `1.4412 ± 0.0037`, or with its interval, `1.44 (1.40 to 1.48)`: columns `x_err`, `x_low`
and `x_high` (or `x_low95` and `x_high95`) go into that of `x`. The CSV file keeps every column and digit.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from shapelaw.fits.noise import LEAST_CHANCE, LESS
from shapelaw.specs.runs import AXES

MISSING = "–"
MOST_COLUMNS = 8
FIRST_ROWS = 10  # of a table on the report's first page and in a terminal
LONG = 40  # rows; a table in LaTeX that has more goes over several pages
PREAMBLE = r"% needs \usepackage{booktabs, longtable, siunitx}" + "\n"
LINE = 14  # characters of a header's line, or as many as the widest cell has
WIDE = 18  # characters of a cell's text that LaTeX wraps
WRAPPED = r">{\raggedright\arraybackslash}p{2.8cm}"
DIGITS = 4  # of a number without an error
LARGE = 1e7  # from which on a number with an error has an exponent
HEADERS = {  # column but an axis: its words, with symbol and unit, where these are more than its name
    "deeper_depth": "deeper L",
    "deeper_width": "deeper d",
    "block_params": "block parameters",
    "total_params": "total parameters",
    "step_flops": "FLOPs per step",
    "test_loss": "test loss (nats/token)",
    "bits_per_byte": "test loss (bits/byte)",
    "loss_mean": "mean test loss (nats/token)",
    "loss_std": "std over seeds (nats/token)",
    "text_bytes": "text (bytes)",
    "size_axis": "equal in",
    "reportable": "reportable widths",
    "forms": "68% over several forms",
    "above": "above the best",
    "p_value": "p",
    "p_holm": "p after Holm",
    "p_value_holm": "p after Holm",
    "p_equal": "p if equal",
    "n_points": "points",
    "chi2": "χ²",
    "chi2_reduced": "χ² per degree of freedom",
    "dof": "degrees of freedom",
    "r_squared": "R²",
}
_CHANCE = re.compile(r"(^|_)p(_|$)")  # of a column of p values
_COMPANION = re.compile(r"(?:(.+)_)?(err|low|high)(?:95)?")
_SIGNIFICANT = re.compile(r"\.(\d)g")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_ALIGNED = re.compile(r"([-+]?)([\d,]+)(?:\.(\d+))?(?: ± ([\d,.]+))?")  # what a column of siunitx aligns
_IN_LATEX = {"±": r"$\pm$", "∞": r"$\infty$", "→": r"$\to$", "χ": r"$\chi$", "²": r"$^2$", "≥": r"$\ge$"}
_IN_LATEX |= {
    "<": "$<$",
    ">": "$>$",
    "≤": r"$\le$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "−": "$-$",
    "α": r"$\alpha$",
    "√": r"$\surd$",
    "⁴": "$^4$",
}
Columns = dict[
    str, dict[str, str]
]  # for each column of the reader those that stand in it too, by `_COMPANION`


@dataclass(frozen=True)
class Reading:
    """A table as texts.

    Attributes:
        texts: its cells, below headers in words.
        numbers: for each column, whether it holds numbers, which stand on the right.
        note: what ± and intervals are, and what the table leaves out, in sentences.
    """

    texts: pd.DataFrame
    numbers: Sequence[bool]
    note: str


def reading_of(
    table: pd.DataFrame, formats: Mapping[str, str], counted: bool = False, caption: str = ""
) -> Reading:
    """A table as a reader sees it.

    Args:
        formats: column -> format specification, such as `,.0f`; `.3g` is as many decimals for the whole column as give
            its largest number three digits, and `.4g` is that of other fractions. Other numbers have their thousands
            separated. In a table of quantities each row has its own.
        counted: rows with a `status` that have no value in the first column with an error or an interval are not
            listed; the note counts them by their status.
        caption: the note leaves out what intervals are where it says so.
    """
    columns, notes = _columns_of(table), list[str]()
    if counted:
        table, notes = _without_silent(table, next(name for name, of in columns.items() if of))
        columns = _columns_of(table)
    if table.empty:
        return Reading(pd.DataFrame(), [], " ".join([*notes, "No rows."]))
    columns, same = _narrowed(table, columns, formats)
    alike = [table.iloc[[row]] for row in range(len(table))] if "quantity" in table else [table]
    shown = {
        name: [text for rows in alike for text in _texts(rows, name, of, formats)]
        for name, of in columns.items()
    }
    texts = pd.DataFrame(shown, columns=[*columns], dtype=str).rename(columns=header)
    numbers = [bool(of) or pd.api.types.is_numeric_dtype(table[name].dtype) for name, of in columns.items()]
    return Reading(
        texts, numbers, " ".join([*_meaning(shown, columns, [*table.columns], caption), *notes, *same])
    )


def header(name: str) -> str:
    """A column's name in words."""
    return AXES[name].header if name in AXES else HEADERS.get(name, name.replace("_", " "))


def _without_silent(table: pd.DataFrame, value: str) -> tuple[pd.DataFrame, list[str]]:
    """The rows that have a value or no status, and a sentence that counts the others by their status."""
    silent = table[value].isna() & table["status"].notna()
    loud = table[~silent]
    if loud["status"].nunique() < 2:
        loud = loud.drop(columns="status")
    reasons = Counter(table.loc[silent, "status"]).most_common()
    why = ", ".join(f"{status} ({rows})" for status, rows in reasons)
    left_out = f"{silent.sum()} of {len(table)} rows have no value and are not listed: {why}."
    return loud, [left_out] if reasons else []


def _meaning(
    shown: Mapping[str, Sequence[str]], columns: Columns, values: Collection[str], caption: str
) -> Iterator[str]:
    """What ± and the intervals of values are; no word of intervals where the caption has some."""
    if any(" ± " in text for texts in shown.values() for text in texts):
        yield "± is one standard error."
    ends = [of["low"] for name, of in columns.items() if "low" in of and name in values]
    if ends and "interval" not in caption.lower():
        yield f"Intervals are {'95' if all(name.endswith('95') for name in ends) else '68'}%."


def _columns_of(table: pd.DataFrame) -> Columns:
    """The columns of the reader, each with its error and the ends of its interval."""
    columns: Columns = {}
    for name in map(str, table.columns):
        match = _COMPANION.fullmatch(name)
        owner = None if match is None else _owner(match[1], match[2], columns, table)
        if match is None or owner is None:
            columns[name] = {}
        else:
            columns.setdefault(owner, {})[match[2]] = name
    return columns


def _owner(stem: str | None, end: str, columns: Columns, table: pd.DataFrame) -> str | None:
    """The column in which `stem_end` stands; of ends without a value the stem, None where it stands for itself."""
    if stem is None:
        numeric = [
            name for name in columns if name not in table or pd.api.types.is_numeric_dtype(table[name])
        ]
        return numeric[-1] if numeric else None
    known = [name for name in columns if name == stem] + [
        name for name in columns if name.endswith(f"_{stem}")
    ]
    pair = {f"{stem}_low", f"{stem}_high"} <= {*table.columns} and end != "err"
    return known[0] if known else stem if pair else None


def _narrowed(table: pd.DataFrame, columns: Columns, formats: Mapping[str, str]) -> tuple[Columns, list[str]]:
    """At most eight columns: without empty ones, then without those that say the same in all rows, then the first."""
    notes = list[str]()
    if len(columns) > MOST_COLUMNS:
        columns = {name: of for name, of in columns.items() if name not in table or table[name].notna().any()}
    if len(columns) > MOST_COLUMNS and len(table) > 1:
        same = [
            name
            for name, of in columns.items()
            if name in table and not of and table[name].nunique(dropna=False) == 1
        ]
        if same:
            said = (f"{header(name)} {_texts(table, name, {}, formats)[0]}" for name in same)
            notes.append(f"In all rows: {', '.join(said)}.")
        columns = {name: of for name, of in columns.items() if name not in same}
    if len(columns) > MOST_COLUMNS:
        notes.append(f"The CSV file has {len(columns) - MOST_COLUMNS} more columns.")
    return dict(list(columns.items())[:MOST_COLUMNS]), notes


def _texts(table: pd.DataFrame, name: str, of: Mapping[str, str], formats: Mapping[str, str]) -> list[str]:
    """The cells of a column of the reader."""
    values = table[name] if name in table else pd.Series(math.nan, table.index)
    nothing = (AXES[name].null if name in AXES else "") or MISSING
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return [nothing if pd.isna(value) else str(value) for value in values]
    if {"low", "high"} <= {*of}:
        low, high = (_floats(table[of[end]]) for end in ("low", "high"))
        reach = [abs(b - a) / 2 for a, b in zip(low, high, strict=True) if 0 < abs(b - a) < math.inf]
        decimals = decimals_of(sorted(reach)[len(reach) // 2]) if reach else DIGITS
        spec = _spec(formats[name], values) if name in formats else f"z,.{decimals}f"
        return [_with_interval(*row, spec, nothing) for row in zip(_floats(values), low, high, strict=True)]
    spec = formats.get(name, "")
    plain = _spec(spec, values)
    if "err" in of:
        errors = _floats(table[of["err"]])
        return [
            _with_error(value, err, plain, nothing)
            for value, err in zip(_floats(values), errors, strict=True)
        ]
    if _CHANCE.search(name):
        return [LESS if value < LEAST_CHANCE else _plain(value, ".3f", nothing) for value in _floats(values)]
    return [_plain(value, plain, nothing) for value in values]


def _plain(value: Any, spec: str, nothing: str) -> str:
    return nothing if pd.isna(value) else "∞" if value == math.inf else format(value, spec)


def _floats(values: Iterable[Any]) -> list[float]:
    return [math.nan if pd.isna(value) else float(value) for value in values]


def decimals_of(error: float) -> int:
    """Decimals that show two digits of an error."""
    return max(0, 1 - math.floor(math.log10(error)))


def _spec(spec: str, values: pd.Series) -> str:
    """The one format of a column's numbers."""
    if pd.api.types.is_integer_dtype(values.dtype):
        return spec or ",d"
    match = _SIGNIFICANT.fullmatch(spec)
    if spec and match is None:
        return spec
    digits = DIGITS if match is None else int(match[1])
    sizes = [abs(value) for value in _floats(values) if math.isfinite(value) and value]
    if all(size.is_integer() for size in sizes):
        return ",.0f"
    largest, least = (-math.floor(math.log10(size)) for size in (max(sizes), min(sizes)))
    decimals = max(0, digits - 1 + largest)
    if max(decimals, least) > max(decimals, DIGITS) or decimals > 2 * DIGITS:  # too far apart for decimals
        return f".{digits - 1}e"
    return f"z,.{max(decimals, least)}f"


def _with_error(value: float, err: float, spec: str, nothing: str) -> str:
    """`1.4412 ± 0.0037`: as many decimals as show two digits of the error."""
    if math.isnan(value):
        return nothing
    if not 0 < err < math.inf or math.isinf(value):
        return format(value, spec)
    power = math.floor(math.log10(abs(value))) if abs(value) >= LARGE else 0
    unit, exponent = 10.0**power, f"e{power}" if power else ""
    decimals = min(decimals_of(err / unit), 3 * DIGITS)
    return f"{value / unit:z,.{decimals}f}{exponent} ± {err / unit:,.{decimals}f}{exponent}"


def _with_interval(value: float, low: float, high: float, spec: str, nothing: str) -> str:
    """`1.44 (1.40 to 1.48)`; where there is no value its interval alone."""
    known = math.isfinite(low), math.isfinite(high)
    ends = {
        (True, True): f"{low:{spec}} to {high:{spec}}",
        (True, False): f"above {low:{spec}}",
        (False, True): f"below {high:{spec}}",
    }.get(known, "")
    if math.isnan(value):
        return ends or nothing
    return f"{value:{spec}}" + (f" ({ends})" if ends else "")


def markdown_of(reading: Reading, caption: str = "") -> str:
    """The table in Markdown, below its caption."""
    if reading.texts.empty:
        return f"{caption}\n"
    escaped = reading.texts.rename(columns=_escape_pipe).map(_escape_pipe)
    return (f"{caption}\n\n" if caption else "") + _tabulated(escaped, reading.numbers, "pipe") + "\n"


def text_of(reading: Reading, name: str, file: Path) -> str:
    """The first rows of the table for a terminal, below its name, with the file that has all of them."""
    rows = _tabulated(reading.texts.head(FIRST_ROWS), reading.numbers, "simple")
    rest = len(reading.texts) - FIRST_ROWS
    more = f"{rest:,} more rows: {file}. " if rest > 0 else ""
    return "\n".join(filter(None, [f"{name}:", rows, f"{more}{reading.note}".strip()])) + "\n"


def _tabulated(texts: pd.DataFrame, numbers: Sequence[bool], form: str) -> str:
    """A table in one of tabulate's forms, its numbers on the right; nothing for one without columns."""
    sides = ["right" if number else "left" for number in numbers]
    return texts.to_markdown(index=False, tablefmt=form, disable_numparse=True, colalign=sides or None)


def _escape_pipe(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def html_of(reading: Reading, name: str) -> str:
    """The table in HTML, whose header and first column stay in sight.

    Args:
        name: a name that no other table of its page has.
    """
    texts = reading.texts
    if texts.empty:
        return ""
    first, *others = texts.columns
    styler = Styler(texts.set_index(first)[others], uuid=re.sub(r"[^\w-]", "-", name), cell_ids=False)
    styler.index.name, styler.columns.name = None, escape(first)  # which puts it into the corner
    right: Any = [
        {"selector": "", "props": "text-align: right"},
        {"selector": "td", "props": "white-space: nowrap"},
    ]
    sides = zip(others, reading.numbers[1:], strict=True)
    styler.set_table_styles({name: right for name, number in sides if number})
    styler.format(escape="html").format_index(escape="html").format_index(escape="html", axis=1)
    return styler.set_sticky(axis="columns").set_sticky(axis="index").to_html()


def latex_of(reading: Reading, caption: str = "", label: str = "") -> str:
    """The table in LaTeX (booktabs, siunitx), of more than `LONG` rows over several pages, with caption and label."""
    texts = reading.texts
    if texts.empty:
        return f"% {label}: {caption}\n"
    cells, columns = dict[Any, Any](), ""
    widths = [max(LINE, *map(len, column)) for _, column in texts.items()]
    texts = texts.set_axis([*map(_filled, map(str, texts), widths)], axis=1)
    for (name, column), number, width in zip(texts.items(), reading.numbers, widths, strict=True):
        aligned = _table_format(column) if number else ""
        columns += aligned or ("r" if number else WRAPPED if width > WIDE else "l")
        cells[name] = _aligned if aligned else _numbers if number else _symbols
    styler = Styler(texts).hide(axis="index").format(cells, escape="latex")
    styler.format_index(_header, axis=1, escape="latex")
    long = len(texts) > LONG
    styler.set_table_styles([] if long else [{"selector": "footnotesize", "props": ":"}])
    made = styler.to_latex(
        hrules=True,
        siunitx=True,
        column_format=columns,
        caption=_symbols(re.sub(r"[&%$#_]", r"\\\g<0>", caption)) or None,
        label=label or None,
        environment="longtable" if long else "table",
        position_float=None if long else "centering",
    )
    return f"{{\\footnotesize\n{made}}}\n" if long else made


def _table_format(texts: Iterable[str]) -> str:
    """A column of siunitx that aligns these numbers, some with errors; empty where it can't."""
    known = [_ALIGNED.fullmatch(text) for text in texts if _NUMBER.match(text)]
    parts = [match.groups("") for match in known if match is not None]
    if not parts or len(parts) < len(known):
        return ""
    sign = "-" if any(sign == "-" for sign, *_ in parts) else ""
    whole = max(len(digits.replace(",", "")) for _, digits, *_ in parts)
    decimals = max(len(digits) for _, _, digits, _ in parts)
    error = max(len(re.sub(r"^[0.]*|[.,]", "", err)) for *_, err in parts)
    uncertain = ("separate-uncertainty, ", f"({error})") if error else ("", "")
    return f"S[{uncertain[0]}table-format={sign}{whole}.{decimals}{uncertain[1]}]"


def _aligned(text: str) -> str:
    """A cell of a column that siunitx aligns."""
    return text.replace(",", "").replace("±", "+-") if _NUMBER.match(text) else f"{{{_symbols(text)}}}"


def _numbers(text: str) -> str:
    """A cell with numbers of another form, such as an interval."""
    return _symbols(_NUMBER.sub(lambda match: rf"\num{{{match[0].replace(',', '')}}}", text))


def _symbols(text: str) -> str:
    """A text with the signs that LaTeX's fonts lack as commands."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)


def _filled(name: str, width: int) -> str:
    return textwrap.fill(name, width, break_long_words=False, break_on_hyphens=False)


def _header(name: object) -> str:
    """A header, escaped, whose lines stand below each other."""
    lines = _symbols(str(name)).split("\n")
    return rf"\shortstack{{{(chr(92) * 2).join(lines)}}}" if len(lines) > 1 else lines[0]
