"""The numbers of the pages that were held to committed tables, and how many were not.

  python tests/docs/page_numbers.py
  python tests/docs/page_numbers.py --write    after a committed table changed: its numbers in the pages and in the list

`numbers.yaml` lists sentences of pages with their numbers in braces, and for each number where a table has it. Tables
are committed ones, or are made from committed runs by the commands that the pages name. What a sentence says about its
numbers is for its author to read again: `--write` prints each sentence that it changed.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("numbers.yaml")
RUNS = ROOT / "docs" / "results"
MADE = {  # folder of tables: the command that makes it, but for --out FOLDER
    "laptop_depth_width": ["fit_transitions.py", "--runs", RUNS / "laptop_depth_width.parquet"],
    "h200_llama": ["fit_transitions.py", "--runs", RUNS / "h200_llama.csv"],
    "laptop_surface": ["fit_surface.py", "--runs", RUNS / "laptop_depth_width.parquet"],
    **{
        f"laptop_{study}": ["analyse.py", study, "--input", RUNS / f"laptop_{study}.csv"]
        for study in (
            "undertraining",
            "vocabulary",
            "positional_rank",
            "attention_ratio",
            "embedding_rank",
            "todays_decoder",
        )
    },
    "demo_grid": [
        *("analyse.py", "mine", "--axes", "vocab_size", "embedding_rank", "heads"),
        *("--input", RUNS / "demo_grid.parquet"),
    ],
    "published_depth_width": [
        "fit_transitions.py",
        "--transitions",
        ROOT / "workflow" / "reference" / "levine2020_transitions.csv",
    ],
    **{
        f"laptop_{study}": ["analyse.py", study, "--input", RUNS / f"laptop_{study}.parquet"]
        for study in ("block_degree", "attention_degree", "memorization_heads")
    },
}
IN_BRACES = re.compile(r"\{([^{}]*)\}")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
_AGGREGATES: dict[str, Callable[[pd.Series], float]] = {
    "min": pd.Series.min,
    "max": pd.Series.max,
    "sum": pd.Series.sum,
    "mean": pd.Series.mean,
}


@dataclass(frozen=True)
class Sentence:
    """A sentence of a page and where its numbers are.

    Attributes:
        page: from the project's folder.
        text: as the page has it, the numbers in braces.
        table: a committed file from the project's folder, or `FOLDER/NAME` of a table that a command of `MADE` makes.
        where: a pandas query for the rows.
        numbers: for each brace an expression of columns, `rows`, or `min`, `max`, `sum` or `mean` of an expression;
            behind an `@` a further query.
    """

    page: str
    text: str
    table: str
    where: str
    numbers: tuple[str, ...]

    @property
    def plain(self) -> str:
        """Without the braces, all white space one blank."""
        return one_line(IN_BRACES.sub(r"\1", self.text))

    @property
    def printed(self) -> list[str]:
        """What stands in the braces."""
        return IN_BRACES.findall(self.text)


def sentences() -> list[Sentence]:
    """The list."""
    found = []
    for group in yaml.safe_load(LIST.read_text(encoding="utf-8")):
        for one in group["sentences"]:
            where = " and ".join(part for part in (group.get("where"), one.get("where")) if part)
            table = one.get("table", group.get("table"))
            found.append(Sentence(group["page"], one["text"], table, where, tuple(map(str, one["numbers"]))))
    return found


def make_tables(folder: Path, names: set[str], python: str = sys.executable) -> None:
    """Make the folders of tables that are named, and beside each a file `<name>.txt` of what its command said."""
    for name in names & MADE.keys():
        script, *arguments = map(str, MADE[name])
        command = [python, str(ROOT / "scripts" / script), *arguments, "--out", str(folder / name)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (folder / f"{name}.txt").write_text(done.stdout, encoding="utf-8")


def read_table(name: str, made: Path) -> pd.DataFrame:
    """A committed table, or one of a folder that was made."""
    path = made / f"{name}.csv" if name.split("/")[0] in MADE else ROOT / name
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".json":
        return pd.json_normalize(json.loads(path.read_text(encoding="utf-8")))
    return pd.read_csv(path)


def value_of(table: pd.DataFrame, where: str, number: str) -> float:
    """The number that a table has.

    Raises:
        ValueError: the rows have several values, or none.
    """
    expression, _, further = (part.strip() for part in number.partition("@"))
    for query in (where, further):
        table = table.query(query) if query else table
    if expression == "rows":
        return float(len(table))
    aggregate, _, inner = expression.partition(" ")
    if aggregate in _AGGREGATES:
        return float(_AGGREGATES[aggregate](table.eval(inner)))
    values = set(table.eval(expression))
    if len(values) != 1:
        raise ValueError(f"{number!r} where {where!r} has {len(values)} values: it must have one.")
    return float(values.pop())


def half_a_digit(printed: str) -> float:
    """Half a unit of the last digit that is printed, and rounding of binary numbers."""
    mantissa, _, exponent = printed.replace(",", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits) * (1 + 1e-9)


def is_printed(value: float, printed: str) -> bool:
    """Whether a value rounds to what is printed."""
    return math.isclose(value, float(printed.replace(",", "")), rel_tol=0, abs_tol=half_a_digit(printed))


def reprinted(value: float, printed: str) -> str:
    """A value in the way of a number that is printed: digits behind the point, thousands, exponent."""
    mantissa, _, exponent = printed.partition("e")
    digits = len(mantissa.partition(".")[2])
    if exponent:
        mantissa, _, power = f"{value:.{digits}e}".partition("e")
        return f"{mantissa}e{int(power)}"
    return f"{value:{',' if ',' in printed or abs(value) >= 10_000 else ''}.{digits}f}"


def corrected(one: Sentence, made: Path) -> str:
    """The sentence's text with the numbers of its table in the braces."""
    table = read_table(one.table, made)
    found = iter([value_of(table, one.where, number) for number in one.numbers])

    def in_braces(match: re.Match[str]) -> str:
        value = next(found)
        return match[0] if is_printed(value, match[1]) else f"{{{reprinted(value, match[1])}}}"

    return IN_BRACES.sub(in_braces, one.text)


def replaced(text: str, old: str, new: str) -> str:
    """A text with words in place of others, wherever its lines end; each stays on the line of the one before it.

    Raises:
        ValueError: the old words are not there, or the new ones are not as many.
    """
    words = old.split()
    match = re.search(r"(\s+)".join(map(re.escape, words)), text)
    if match is None or len(new.split()) != len(words):
        raise ValueError(f"Not found, or of another number of words: {old}")
    spaced = zip(new.split(), [*match.groups(), ""], strict=True)
    return text[: match.start()] + "".join(word + space for word, space in spaced) + text[match.end() :]


def write_numbers() -> None:
    """Write the numbers of the tables into the pages and the list, and print each sentence that changed."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        make_tables(made, set(MADE))
        for one in sentences():
            new = corrected(one, made)
            if new == one.text:
                continue
            print(f"{one.page}: {one_line(new)}")
            plain = replace(one, text=new).plain
            for path, old, instead in ((ROOT / one.page, one.plain, plain), (LIST, one.text, new)):
                text = path.read_text(encoding="utf-8")
                path.write_text(replaced(text, old, instead), encoding="utf-8")


def page_text(page: str) -> str:
    """A page in one line."""
    return one_line((ROOT / page).read_text(encoding="utf-8"))


def one_line(text: str) -> str:
    """All white space one blank."""
    return " ".join(text.split())


def counted(text: str) -> int:
    """Numbers of a page that a reader sees: not in code, addresses, file names and words such as `d64`."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)
    return len(NUMBER.findall(text))


def main() -> None:
    """Print for each page with a listed sentence how many of its numbers are listed."""
    if sys.argv[1:] == ["--write"]:
        write_numbers()
    listed: dict[str, int] = {}
    for one in sentences():
        listed[one.page] = listed.get(one.page, 0) + len(one.numbers)
    for page, count in listed.items():
        every = counted((ROOT / page).read_text(encoding="utf-8"))
        print(f"{page}: {count} of {every} numbers are held to a table, {every - count} are not.")


if __name__ == "__main__":
    main()
