"""Write the tables of docs/reproduce.md anew, between their markers, and the commands that need no training.

  PYTHONPATH=scripts python docs/generators/reproduce_page.py

Studies, figures and pages come from scripts/shapelaw/studies/registry.py, the cost from the grids of workflow/scales/
as `snakemake plan` reckons it. Exit codes: 0 done, 2 the file can't be written, or the page has no such marker.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pandas as pd

from page_tables import MADE, REFERENCE
from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.jobs.plan import device_hours, speed_of
from shapelaw.report.tables import pipe_table, with_parts
from shapelaw.storage.files import replacing
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import OURS, Study

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/reproduce.md")
SCALES = {"laptop": "core-hours", "gpu": "GPU-hours", "paper": "GPU-hours"}  # and the unit of their cost
PICTURES = {  # figure of a study: ours in docs/figures/, drawn from committed runs
    "depth_width/loss_adjacent": "laptop_loss_adjacent",
    "depth_width/transition_width": "h200_transition_width",
    "depth_width/best_depth": "laptop_best_depth",
    "depth_width/extrapolation": "published_extrapolation",
    "vocabulary/losses": "laptop_vocabulary_losses",
    "embedding_rank/losses": "laptop_embedding_rank_losses",
    "attention_ratio/depths": "laptop_attention_ratio_depths",
    "positional_rank/losses": "laptop_positional_rank_losses",
    "memorization_heads/share": "laptop_memorization_heads",
    "memorization_saturation/saturation": "memorization_saturation",
    "separation_rank/rank_depth": "separation_rank_depth",
    "separation_rank/rank_width": "separation_rank_width",
    "separation_rank/rank_embedding": "separation_rank_embedding",
    "separation_rank/degree": "separation_degree",
    "assumptions/pass_rate": "assumptions_pass_rate",
}

DRAWN = {  # figure of a study: published numbers that our figure shows
    "depth_width/transition_width": "drawn: [5 transitions](../workflow/reference/published.csv)",
    "depth_width/extrapolation": "drawn: [its projection](../workflow/reference/levine2020_projection.csv)",
}
TABLES = {  # of the papers: ours, and the studies
    "table 1 of the depth-width paper: trained and projected shapes": (
        "`results/depth_width/projection.csv`, [theirs](../workflow/reference/levine2020_projection.csv)",
        "depth_width",
    ),
    "table 2 of the depth-width paper: shapes": ("[scale paper](#scale-paper)", "depth_width"),
    "table 3 of the depth-width paper: seed noise": ("`results/depth_width/seed_noise.csv`", "depth_width"),
    "table 4a of the depth-width paper: transitions": (
        "[beside theirs](results/depth_width.md), `results/depth_width/transitions.csv`",
        "depth_width",
    ),
    "table 1 of the vocabulary paper: perplexity": (
        "[ours](results/perplexity.csv), [how](results/depth_width.md)",
        "perplexity",
    ),
    "tables 3 and 5 of the vocabulary paper: shapes": (
        "[scale paper](#scale-paper)",
        "vocabulary, attention_ratio",
    ),
    "table 2 of the vocabulary paper: seed noise": (
        "`results/embedding_rank/seed_noise.csv`",
        "embedding_rank",
    ),
    "table 4 of the vocabulary paper: seed noise": ("`results/vocabulary/seed_noise.csv`", "vocabulary"),
    "tables 1 and 3 of the memorization paper: assumptions": (
        "[beside theirs](results/assumptions.md)",
        "assumptions",
    ),
}


def page_of(text: str) -> str:
    """The page with its generated parts made anew: the papers' figures and tables, commands, and the studies' cost.

    Raises:
        UserError: a part has no markers.
    """
    return with_parts(text, {"published": _published, "commands": _commands, "hours": _costs}, str(PAGE))


def _links(studies: str) -> str:
    """Links to the published numbers and shapes of some studies; a dash where there are none."""
    names = studies.split(", ")
    numbered = set(pd.read_csv(REFERENCE / "published.csv")["study"]) & {*names}
    links = ["[numbers](../workflow/reference/published.csv)"] if numbered else []
    for path in sorted(REFERENCE.glob("*_grid.csv")):
        if any(name.startswith(path.name.removesuffix("_grid.csv")) for name in names):
            links.append(f"[shapes](../workflow/reference/{path.name})")
    return ", ".join(links) or "–"


def _published() -> str:
    """A row for each figure and table that a paper has, with ours and what is known of theirs."""
    rows = [("published", "ours", "published numbers", "study")]
    for study in STUDIES.values():
        for figure, source in study.figures.items():
            name = f"{study.name}/{figure}"
            if source.startswith(OURS) or (study.extra and study.name != "assumptions"):
                continue
            picture = f"[picture](figures/{PICTURES[name]}.svg), " if name in PICTURES else ""
            theirs = DRAWN.get(name) or _links(study.name)
            rows.append((source, f"{picture}`results/{name}.svg`", theirs, study.name))
    rows += [(table, ours, _links(studies), studies) for table, (ours, studies) in TABLES.items()]
    return pipe_table(rows)


def _commands() -> str:
    """The commands that make a study's results from files of this repository."""
    named = (*STUDIES, "published")
    commands = {name: words for name, words in MADE.items() if name.removeprefix("laptop_") in named}
    lines = ["```sh"]
    for command in [commands.pop("published"), *commands.values()]:
        words = [str(word.relative_to(ROOT)) if isinstance(word, Path) else word for word in command]
        lines.append(f"python scripts/{shlex.join(words)} --out DIR")
    committed = [study for study in STUDIES.values() if study.extra and (ROOT / study.input).is_file()]
    return "\n".join([*lines, *(f"snakemake {study.target}" for study in committed), "```"])


def _costs() -> str:
    """A row for each study with what it costs at each scale."""
    rows = [["study", "verdict", *(f"{scale}, {unit}" for scale, unit in SCALES.items())]]
    for study in STUDIES.values():
        title = f"{study.title}: {study.subtitle}" if study.subtitle else study.title
        hours = [_hours(study, scale) for scale in SCALES]
        rows.append([study.name, f"[{title}]({study.verdict})", *hours])
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
    hours = device_hours(runs, config.execution, speed_of(config, ROOT))
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def main() -> None:
    """Write the page and report it."""
    command_line(__doc__).parse_args()
    with replacing(ROOT / PAGE) as temporary:
        temporary.write_text(page_of((ROOT / PAGE).read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    sys.exit(exit_code(main))
