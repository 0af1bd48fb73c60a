"""Write the tables of docs/reproduce.md anew, between their markers, and the commands that make its rows.

  PYTHONPATH=scripts python docs/generators/reproduce_page.py

Figures, tables and theorems come from docs/reproduce.csv, the studies from scripts/shapelaw/studies/registry.py, the
cost from the grids of workflow/scales/ as `snakemake plan` reckons it. Exit codes: 0 done, 2 the file can't be written,
or the page has no such marker.
"""

from __future__ import annotations

from pathlib import Path, PurePath

import pandas as pd

from page_parts import pipe_table, with_parts
from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.jobs.plan import cost_of, speed_of
from shapelaw.storage.files import replacing
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

ROOT = Path(__file__).resolve().parents[2]
PAGE, ROWS = Path("docs/reproduce.md"), Path("docs/reproduce.csv")
SCALES = {"laptop": "core-hours", "gpu": "GPU-hours", "paper": "GPU-hours"}  # and the unit of their cost
STATUSES = ("reproduced", "smaller", "gap", "refuted", "prepared", "open", "none")  # told on the page
PRINTED = ("figure", "table", "theorem")  # what an item of a document begins with that the page shows


def page_of(text: str) -> str:
    """The page with its generated parts made anew: the papers' figures and tables, commands, and the studies' cost.

    Raises:
        UserError: a part has no markers.
    """
    parts = {"counts": _counts, "published": _published, "commands": _commands, "hours": _costs}
    return with_parts(text, parts, str(PAGE))


def documents() -> pd.DataFrame:
    """Every figure, table, equation, statement and experiment of the five documents, from docs/reproduce.csv.

    Columns: document, item, the command that makes ours, its size, the files that show it (paths from the project's
    folder, with a blank between two), and its status, as the page explains them.
    """
    return pd.read_csv(ROOT / ROWS, keep_default_na=False)


def _counts() -> str:
    """How many rows of each document have each status."""
    rows = documents()
    counts = pd.crosstab(rows["document"], rows["status"])
    counts = counts.reindex(rows["document"].unique(), fill_value=0).reindex(columns=STATUSES, fill_value=0)
    return pipe_table(
        [["document", *STATUSES], *([name, *map(str, row)] for name, *row in counts.itertuples())]
    )


def _published() -> str:
    """A row for each figure, table and theorem, with ours and the number of the command that makes it."""
    rows = [("published", "ours", "size", "files", "command")]
    numbers = {command: f"[{number}]" for number, command in enumerate(_printed_commands(), 1)}
    for document, item, command, size, result, status in _printed().itertuples(index=False, name=None):
        shown = [path for path in result.split() if not path.startswith("results/")]
        ours = [path for path in shown if not path.startswith("workflow/")]
        files = ", ".join(map(_link, shown if ours else result.split()))
        rows.append((f"{document}, {item}", status, size, files, numbers.get(command, "")))
    return pipe_table([[cell or "–" for cell in row] for row in rows])


def _printed() -> pd.DataFrame:
    """The rows that the page shows."""
    rows = documents()
    return rows[rows["item"].str.startswith(PRINTED)]


def _printed_commands() -> list[str]:
    """Their commands, each once."""
    return [command for command in _printed()["command"].unique() if command]


def _link(path: str) -> str:
    """A file as the page shows it; what the workflow makes is no link."""
    if path.startswith("results/"):
        return f"`{path}`"
    place = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
    kind = {".svg": "picture", ".md": "page", ".csv": "table"}[PurePath(path.partition("#")[0]).suffix]
    return f"[{'published' if path.startswith('workflow/') else kind}]({place})"


def _commands() -> str:
    """The commands of the rows, each with its number."""
    numbered = [f"{command}  # [{number}]" for number, command in enumerate(_printed_commands(), 1)]
    return "\n".join(["```sh", *numbered, "```"])


def _costs() -> str:
    """A row for each study with what it costs at each scale."""
    rows = [["study", *(f"{scale}, {unit}" for scale, unit in SCALES.items())]]
    for study in STUDIES.values():
        hours = [_hours(study, scale) for scale in SCALES]
        rows.append([f"[{study.name}]({study.verdict})", *hours])
    return pipe_table(rows)


def _hours(study: Study, scale: str) -> str:
    """The cost of a study at a scale; a dash where the scale has no grid of it."""
    if study.extra:
        return "–" if study.kind is None and study.input.endswith((".parquet", ".csv")) else "by network"
    try:
        config = load_config({"scale": scale, "studies": [study.name]}, ROOT / "workflow" / "scales", ROOT)
    except UserError:
        return "–"
    runs = list(runs_of(config, study.name, ROOT).values())
    if not runs:
        return "; ".join(line.rpartition(", ")[2] for line in study.costs(config)) or "–"
    hours = cost_of(runs, config.execution, speed_of(config, ROOT)).hours
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def main() -> None:
    """Write the page and report it."""
    command_line(__doc__).parse_args()
    with replacing(ROOT / PAGE) as temporary:
        temporary.write_text(page_of((ROOT / PAGE).read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    end_with(main)
