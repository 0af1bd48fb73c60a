"""Write the tables of README and docs from committed results, and the captions of their figures.

  PYTHONPATH=scripts python docs/generators/page_tables.py [--check]

It writes every table of every page, and the figure of docs/advice/answer.md; with --check it exits with 1 and names the
pages whose tables differ, for CI.

A table of a page stands between two comments. The first says where its numbers come from, as YAML:

    <!-- table
    from: laptop_todays_decoder/transitions
    where: method == 'bootstrap'
    columns: {steps: "{steps:,}", "crossing, width": transition}
    -->
    <!-- end -->

`from` is a committed file, such as docs/results/perplexity.csv, or FOLDER/TABLE of a folder that a command of `MADE`
makes from committed runs. `where` is a query of pandas, `sort` one column or several, `mean_over` the columns whose
rows are averaged. `columns` has for each heading a format of the row's columns, or the name of one of `CELLS`, which
may stand in a format too. With `rows`, `across` and `cell` in place of `columns` each value of `across` is a column of
its own, and `rows` the first one, under the heading `corner`.

The caption of a study's figure stands below it on a page too, from the file that the report has it from,
scripts/shapelaw/studies/STUDY/captions/FIGURE.rst, between two comments: <!-- caption: STUDY/FIGURE -->, <!-- end -->.

Exit codes: 0 done, 1 a page is out of date (--check), 2 a table can't be made.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import answer_page
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.fits.curves import status_sentence
from shapelaw.fits.noise import LEAST_CHANCE, LESS
from shapelaw.specs.shapes import BLOCKS
from shapelaw.storage.files import replacing

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
REFERENCE = ROOT / "workflow" / "reference"
STUDIES = ROOT / "scripts" / "shapelaw" / "studies"


def _analysed(study: str, runs: str) -> list[str | Path]:
    return ["analyse.py", study, "--input", RESULTS / runs]


def _grid(table: str, *axes: str) -> list[str | Path]:
    return ["analyse.py", table, "--axes", *axes, "--input", RESULTS / f"{table}.csv"]


MADE: dict[str, list[str | Path]] = {  # folder of tables: the command that makes it, but for --out FOLDER
    "laptop_depth_width": ["fit_transitions.py", "--runs", RESULTS / "laptop_depth_width.parquet"],
    "h200_llama": ["fit_transitions.py", "--runs", RESULTS / "h200_llama.csv"],
    "laptop_equal_tokens": ["fit_transitions.py", "--runs", RESULTS / "laptop_equal_tokens.csv"],
    "laptop_more_tokens": _grid("laptop_more_tokens", "vocab_size"),
    "h200_axes": _grid("h200_axes", "vocab_size", "embedding_rank", "heads"),
    "h200_heads": _grid("h200_heads", "heads"),
    "h200_heads_gpt2": _grid("h200_heads_gpt2", "heads"),
    "h200_parametrization": _grid("h200_parametrization", "parametrization", "learning_rate"),
    "published": ["fit_transitions.py", "--transitions", "published"],
    "laptop_images": _analysed("vocabulary", "laptop_images_8000.csv"),
    "laptop_undertraining": _analysed("undertraining", "laptop_undertraining.csv"),
    "laptop_todays_decoder": _analysed("todays_decoder", "laptop_todays_decoder.csv"),
    "laptop_printed_block": _grid("laptop_printed_block", "learning_rate"),
    "laptop_vocabulary": _analysed("vocabulary", "laptop_vocabulary.csv"),
    "laptop_embedding_rank": _analysed("embedding_rank", "laptop_embedding_rank.csv"),
    "laptop_positional_rank": _analysed("positional_rank", "laptop_positional_rank.csv"),
    "laptop_attention_ratio": _analysed("attention_ratio", "laptop_attention_ratio.csv"),
    "laptop_attention_degree": _analysed("attention_degree", "laptop_attention_degree.parquet"),
    "laptop_block_degree": _analysed("block_degree", "laptop_block_degree.parquet"),
    "laptop_mixer": _analysed("block_degree", "laptop_mixer.csv"),
    "laptop_note_block": _analysed("block_degree", "laptop_note_block.csv"),
    "laptop_memorization_heads": _analysed("memorization_heads", "laptop_memorization_heads.parquet"),
    "h200_memorization_heads": _analysed("memorization_heads", "h200_memorization_heads.parquet"),
}
TABLE = re.compile(r"(<!-- table\n(.*?)-->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
CAPTION = re.compile(r"(<!-- caption: (\w+)/(\w+) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)
NOTHING = "–"
WORDS = {  # column: how a page says its values
    "block": BLOCKS,
    "surface": {
        "penalty in nats": "excess loss in nats",
        "cells off by the noise": "groups off by the noise",
        "cells off by twice the noise": "groups off by twice the noise",
    },
    "needed": {"found": "about", "at least": "more than"},  # the heads that memorize T
    "size_axis": {"block": "parameters of the blocks", "total": "parameters in all", "flops": "FLOPs"},
}
Row = Mapping[str, Any]


def pages() -> list[Path]:
    """README and the pages of docs/ that have tables or captions."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in found}
    return [page for page, text in texts.items() if TABLE.search(text) or CAPTION.search(text)]


def written(text: str, made: Path) -> str:
    """A page with its tables and captions made again.

    Args:
        text: the page.
        made: folder of the tables that commands make; what is missing is made there.

    Raises:
        UserError: a table's comment can't be read, its query fails, no row is left, or a caption is missing.
    """
    text = CAPTION.sub(lambda match: f"{match[1]}*{caption_of(match[2], match[3])}*\n", text)
    return TABLE.sub(lambda match: match[1] + table_of(yaml.safe_load(match[2]), made), text)


def caption_of(study: str, figure: str) -> str:
    """The caption of a study's figure on one line, without emphasis inside of it, since all of it is emphasised.

    Raises:
        UserError: the study has no such figure.
    """
    own, of_room = f"{study}/captions/{figure}.rst", f"*/captions/{study}/{figure}.rst"
    path = next((path for place in (own, of_room) for path in STUDIES.glob(place)), None)
    if path is None:
        raise UserError(f"There is no caption of {study}'s figure {figure}.")
    text = " ".join(path.read_text(encoding="utf-8").split())
    return re.sub(r"(?<!`)\*(\S.*?)\*", r"\1", text).replace("``", "`")


def table_of(asked: Row, made: Path) -> str:
    """One table in Markdown, from what its comment asks for.

    Raises:
        UserError: a column is missing, or no row is left.
    """
    rows = read_table(asked["from"], made)
    try:
        rows = _selected(rows, asked)
        head, *body = _across(rows, asked) if "across" in asked else _down(rows, asked["columns"])
    except (KeyError, ValueError, pd.errors.UndefinedVariableError) as error:
        raise UserError(f"The table of {asked['from']} can't be made: {error}") from error
    if not body:
        raise UserError(f"The table of {asked['from']} has no row where {asked.get('where')}.")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)) + "\n"


def read_table(name: str, made: Path) -> pd.DataFrame:
    """A committed table by its path from the project's folder, or FOLDER/TABLE that a command makes.

    Raises:
        UserError: there is no such file, or the command that makes it fails.
    """
    folder = name.split("/")[0]
    if folder in MADE:
        make(folder, made)
    path = made / f"{name}.csv" if folder in MADE else ROOT / name
    if not path.is_file():
        raise UserError(f"There is no table {path}.")
    return pd.read_csv(path, comment="#")


def make(folder: str, made: Path) -> None:
    """Make a folder of tables from committed runs, unless it is there.

    Raises:
        UserError: the command fails.
    """
    if (made / folder).is_dir():
        return
    script, *arguments = map(str, MADE[folder])
    command = [sys.executable, str(ROOT / "scripts" / script), *arguments, "--out", str(made / folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(command)} fails: {done.stderr.strip().splitlines()[-1:]}")


def _records(rows: pd.DataFrame) -> list[Row]:
    """The rows by the names of their columns."""
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def _selected(rows: pd.DataFrame, asked: Row) -> pd.DataFrame:
    """The rows that are asked for, averaged and sorted, in the words of a page."""
    rows = rows.query(asked["where"]) if "where" in asked else rows
    if "mean_over" in asked:
        rows = rows.groupby(asked["mean_over"]).mean(numeric_only=True).reset_index()
    return (rows.sort_values(asked["sort"]) if "sort" in asked else rows).replace(WORDS)


def _down(rows: pd.DataFrame, columns: Mapping[str, str]) -> Iterator[list[str]]:
    """A line for each row."""
    yield list(columns)
    for row in _records(rows):
        yield [cell_of(form, row) for form in columns.values()]


def _across(rows: pd.DataFrame, asked: Row) -> Iterator[list[str]]:
    """A line for each value of `rows`, and a column for each of `across`."""
    found: dict[str, dict[str, str]] = {}
    for row in _records(rows):
        line = found.setdefault(cell_of(asked["rows"], row), {})
        line[cell_of(asked["across"], row)] = cell_of(asked["cell"], row)
    headings = list(dict.fromkeys(heading for line in found.values() for heading in line))
    yield [asked.get("corner", ""), *headings]
    for first, line in found.items():
        yield [first, *(line.get(heading, NOTHING) for heading in headings)]


def cell_of(form: str, row: Row) -> str:
    """A cell: a format of the row's columns, or one of `CELLS`; a dash where a value is missing."""
    if form in CELLS:
        return _without_signed_zeros(CELLS[form](row))
    used = [name for name in row if re.search(rf"\{{{name}\W", form)]
    if any(pd.isna(row[name]) for name in used):
        return NOTHING
    values = {name: _Chance(row[name]) if name.startswith("p_") else row[name] for name in row}
    cells = {name: cell(row) for name, cell in CELLS.items() if f"{{{name}}}" in form and name not in row}
    return _without_signed_zeros(form.format_map(values | cells))


def _without_signed_zeros(text: str) -> str:
    """Per cents without the sign of a 0."""
    return re.sub(r"(?<![\w.])[-+](?=0%)", "", text)


class _Chance(float):
    """A p value: `0.03`, or `< 0.001`."""

    def __format__(self, form: str) -> str:
        return LESS if self < LEAST_CHANCE else super().__format__(form)


def _transition(row: Row) -> str:
    """The width of a crossing with its error, else the status with the bound, without its caution."""
    if row["status"] == "crossing":
        return f"{row['width']:.0f} ± {row['width_err']:.0f}"
    return status_sentence({**row, "caution": ""})


def _gap(row: Row) -> str:
    """The loss of the deeper network minus that of the shallower one; bold where it is significant."""
    text = f"{-row['deeper_by']:+.3f} ± {row['deeper_by_err']:.3f}"
    return text if pd.isna(row["better"]) or row["better"] == "neither" else f"**{text}**"


def _embedding(row: Row) -> str:
    """The vocabulary and the rank of its embedding."""
    rank = row["embedding_rank"]
    return f"V = {row['vocab_size']:,.0f}, " + ("one matrix" if pd.isna(rank) else f"rank {rank:.0f}")


def _values(row: Row) -> str:
    """The two values of an axis that are compared."""
    ends = (row[end] for end in ("one", "other"))
    return " to ".join(
        "full" if pd.isna(end) else f"{end:g}" if isinstance(end, float) else f"{end}" for end in ends
    )


def _redundancy(row: Row) -> str:
    """A redundancy in per cent with its interval, or the bound that it lies above or below."""
    low, high = f"{row['low']:.0%}", f"{row['high']:.0%}"
    if row["status"] in ("at least", "at most"):
        return f"{row['status']} {low if row['status'] == 'at least' else high}"
    if math.isinf(row["low"]):
        return f"{row['redundancy']:.0%} (at most {high})"
    return f"{row['redundancy']:.0%} ({low} {'and more' if row['high'] == 1 else f'to {high}'})"


CELLS: dict[str, Callable[[Row], str]] = {
    "transition": _transition,
    "gap": _gap,
    "embedding": _embedding,
    "values": _values,
    "redundancy": _redundancy,
}


def main() -> None:
    """Write the tables, or check them."""
    parser = command_line(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, name the pages that differ")
    check = parser.parse_args().check
    # what `shapelaw shape` says, asked and not read from a table
    answers = [ROOT / answer_page.PAGE, ROOT / answer_page.EVIDENCE]
    late = []
    with tempfile.TemporaryDirectory() as made:
        for page in [*answers, *pages()]:
            text = page.read_text(encoding="utf-8")
            asked = page in answers
            new = answer_page.page_of(text, page.relative_to(ROOT)) if asked else written(text, Path(made))
            if new != text:
                late.append(str(page.relative_to(ROOT)))
                if not check:
                    with replacing(page) as path:
                        path.write_text(new, encoding="utf-8")
    if not check:
        answer_page.write_figure()
    print(f"{'Out of date' if check else 'Changed'}: {', '.join(late) or 'no page'}")
    if check and late:
        sys.exit(1)


if __name__ == "__main__":
    end_with(main)
