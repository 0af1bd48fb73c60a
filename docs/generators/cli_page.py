"""Write the reference of the command line, docs/cli.md, from the commands' own `--help`.

  PYTHONPATH=scripts python docs/generators/cli_page.py

Exit codes: 0 done, 2 the file can't be written.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from page_parts import pipe_table
from shapelaw.cli import COMMANDS
from shapelaw.cli import main as shapelaw
from shapelaw.errors import command_line, end_with
from shapelaw.storage.files import replacing

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/cli.md")
TOGETHER = (("fit", "transitions"), ("plan", "run", "report"))  # commands that share most of their options
OF_RESEARCH = ("rank", "capacity", "perplexity", "evidence", "predict")  # whose help has their options
BEGIN = """\
# The commands of shapelaw

**`shapelaw COMMAND --help` prints what is below, with examples, and the options of the other commands.**
Numbers are read as people write them: `1.3B`, `350M`, `32k`, `1,300,000,000`.
Wrong input gets one sentence that names the place and what would be right, and exit code 2.

"""
END = """\
## From a program

Call the commands with `--json` where they have it, or read the CSV and JSON files that they write: names of columns and
keys stay, and what changes is in the [changelog](../CHANGELOG.md).
There is no Python interface: modules of the package may change at any time.

`PYTHONPATH=scripts python docs/generators/cli_page.py` writes this page.
"""
_FIELDS = re.compile(r"what networks may differ in: [a-z0-9_, ]+")  # the help lists them
_OPTION = re.compile(r"  (-\S.*?|[A-Z]+)(?:  +(\S.*))?")


def reference() -> str:
    """The content of docs/cli.md: a table of the commands, then one of options for each, or for some together."""
    rows = [("command", "what it does"), *((f"`{name}`", one.about) for name, one in COMMANDS.items())]
    lines = [BEGIN + pipe_table(rows), ""]
    alone = {name: (name,) for name in COMMANDS if name not in OF_RESEARCH} | {
        name: group for group in TOGETHER for name in group
    }
    for names in dict.fromkeys(alone.values()):
        lines += [f"## {', '.join(f'`{name}`' for name in names)}", "", _options(names), ""]
    return "\n".join([*lines, END])


def _options(names: tuple[str, ...]) -> str:
    """A table of the options of commands, each once; one that not all of them have says whose it is."""
    found: dict[tuple[str, str], list[str]] = {}
    for command in names:
        for option in options_of(command):
            found.setdefault(option, []).append(command)
    rows = [("option", "meaning")]
    for (name, meaning), users in found.items():
        whose = "" if len(users) == len(names) else f"{', '.join(users)}: "
        rows.append((f"`{name}`", whose + _FIELDS.sub("any [field of a grid](config.md#grids)", meaning)))
    return pipe_table([[cell.replace("|", "\\|") for cell in row] for row in rows])


def options_of(name: str) -> Iterator[tuple[str, str]]:
    """The options and arguments in a command's help, each with its meaning, but for --help."""
    option = ""
    for line in help_of(name).splitlines():
        if option and line.startswith(" " * 8):  # a long option has its meaning on the next line
            yield option, line.strip()
        found = _OPTION.fullmatch(line)
        option = "" if found is None or found[2] or found[1].startswith("-h,") else found[1]
        if found is not None and found[2] and not found[1].startswith("-h,"):
            yield found[1], found[2]


def help_of(name: str) -> str:
    """What `shapelaw NAME --help` prints on a line as wide as it needs."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "4000"
    try:
        with redirect_stdout(io.StringIO()) as printed:
            shapelaw([name, "--help"])
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return printed.getvalue()


def main() -> None:
    """Write the page and report it."""
    command_line(__doc__).parse_args()
    with replacing(ROOT / PAGE) as temporary:
        temporary.write_text(reference(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    end_with(main)
