"""Write docs/reproduce.md: for each study the papers' figures, the command that makes them, our files, and the cost.

  python scripts/reproduce_page.py

Studies, figures and pages come from scripts/shapelaw/studies/registry.py, the cost from the grids of workflow/scales/
as `snakemake plan` reckons it. Exit codes: 0 done, 2 the file can't be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.jobs.plan import device_hours, speed_of
from shapelaw.settings.sections import Settings
from shapelaw.storage.files import replacing
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import OURS, Study

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/reproduce.md")
SCALES = {"laptop": "core-hours", "gpu": "GPU-hours", "paper": "GPU-hours"}  # and the unit of their cost
BEGIN = """\
# Reproduce a figure

Written by `python scripts/reproduce_page.py` from the [studies](../scripts/shapelaw/studies/registry.py): change them
there.

Find the paper's figure, run the command, open the file. A command trains what is missing, resumes what was stopped, and
writes each figure as `.svg` and `.png`. Put `scale=gpu` or `scale=paper` in the place of `scale=laptop` for a larger
grid; `snakemake plan` with the same options says what it costs before anything runs. Hours are reckoned from the grids
by the rate in each scale's file, not measured: of one core at scale `laptop`, of one GPU at `gpu` and `paper`.
Where we measured at scale `laptop`, on a busy machine, training took up to 2.4 times as long (1.6 hours for
`block_degree`, 4.7 for `memorization_heads`): ask a cluster for twice.
A dash: the scale has no such grid. A figure with nothing to draw is a sentence that says why.

Figures 3 and 4 of the depth-width paper need no training. They follow from its five published transitions in seconds:
`python scripts/fit_transitions.py --transitions workflow/reference/levine2020_transitions.csv --out DIR`.

The depth-width paper is Levine et al. 2020, the vocabulary paper Wies et al. 2021, the memorization paper Mahdavi
et al. 2024, the note on building blocks Navon 2021.
"""


def reproduce_page() -> str:
    """The content of docs/reproduce.md: a table of costs, then a section for each study."""
    lines = [BEGIN, "| study | " + " | ".join(f"{scale}, {unit}" for scale, unit in SCALES.items()) + " |"]
    lines.append("|---" * (len(SCALES) + 1) + "|")
    for study in STUDIES.values():
        cells = [_anchor(study), *(_hours(study, scale) for scale in SCALES)]
        lines.append(f"| {' | '.join(cells)} |")
    for study in STUDIES.values():
        lines += ["", *_section(study)]
    return "\n".join(lines) + "\n"


def _heading(study: Study) -> str:
    return f"{study.title}: {study.subtitle or study.name}" if study.subtitle else study.title


def _anchor(study: Study) -> str:
    """A link to the study's section, as GitHub names it."""
    kept = "".join(letter for letter in _heading(study).lower() if letter.isalnum() or letter in " _-")
    return f"[{study.name}](#{kept.replace(' ', '-')})"


def _section(study: Study) -> Iterator[str]:
    yield f"## {_heading(study)}"
    yield ""
    yield f"{study.message[0].upper()}{study.message[1:]}. The verdict: [{study.verdict}]({study.verdict})."
    yield ""
    yield "```sh"
    yield _command(study)
    yield "```"
    yield ""
    if not study.figures:
        yield f"No figure; the table is `{study.folder}/{study.tables[0]}.md`."
        return
    yield "| published as | our file |"
    yield "|---|---|"
    published = sorted(study.figures.items(), key=lambda figure: figure[1].startswith(OURS))
    yield from (f"| {source} | `{study.folder}/{figure}.svg` |" for figure, source in published)


def _command(study: Study) -> str:
    """The command that makes all figures of a study."""
    if study.extra:
        return f"snakemake {study.target}"
    return f"snakemake --config scale=laptop studies='[{study.name}]'"


def _hours(study: Study, scale: str) -> str:
    """The cost of a study at a scale; a dash where the scale has no grid of it."""
    if study.extra:
        return "–" if study.kind is None and study.input.endswith((".parquet", ".csv")) else "by network"
    try:
        config = load_config({"scale": scale, "studies": [study.name]}, ROOT / "workflow" / "scales", ROOT)
    except UserError:
        return "–"
    return _reckoned(study, config)


def _reckoned(study: Study, config: Settings) -> str:
    runs = list(runs_of(config, study.name, ROOT).values())
    if not runs:
        return "; ".join(line.rpartition(", ")[2] for line in study.costs(config)) or "–"
    hours = device_hours(runs, config.execution, speed_of(config, ROOT))
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def main() -> None:
    """Write the page and report it."""
    command_line(__doc__).parse_args()
    with replacing(ROOT / PAGE) as temporary:
        temporary.write_text(reproduce_page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    sys.exit(exit_code(main))
