"""Write docs/reproduce.md: the papers' figures and tables beside ours, the commands that make them, and the cost.

  python scripts/reproduce_page.py

Studies, figures and pages come from scripts/shapelaw/studies/registry.py, the cost from the grids of workflow/scales/
as `snakemake plan` reckons it. Exit codes: 0 done, 2 the file can't be written.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from page_tables import MADE
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

**Find the paper's figure or table, look at ours beside it, run the study's command from committed runs (seconds) or
train them (hours).** Depth and width: Levine et al. 2020. Vocabulary: Wies et al. 2021. Memorization: Mahdavi et al.
2024. Building blocks: Navon 2021. Each figure is also a `.png`. *Drawn* means that the published points stand in ours.
"""
FROM_RUNS = """\
## From committed runs, in seconds

Tables, figures and `fit.json` go to `DIR`. The first takes the published transitions alone, for figures 3 and 4 of the
depth-width paper; `committed_runs` is `depth_width` of the runs that an H200 trained.

```sh
"""
TRAINED = """\
```

## Trained anew, in hours

A command trains what is missing, resumes what was stopped, and makes tables, figures and a report's page:

```sh
snakemake plan --config scale=laptop studies='[depth_width]'    # what it costs, before anything runs
snakemake --config scale=laptop studies='[depth_width]'    # or the name of another study, and scale=gpu or scale=paper
```

Reckoned by the rate in each scale's file, not measured: hours of one core at scale `laptop`, of one GPU at `gpu` and
`paper`. Where we measured at scale `laptop`, on a busy machine, training took up to 2.4 times as long: ask a cluster
for twice. A dash: the scale has no such grid; `snakemake results/relu/fit.json` and
`snakemake results/assumptions/fit.json` are targets of their own. Scale `paper` has not been run.

"""
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

_MEMORIZED = "numbers of the text:memorization_findings.json"
POINTS = {  # figure of a study: what is known of the published one, and the file in workflow/reference/
    "depth_width/loss_adjacent": "its shapes:depth_width_grid.csv",
    "depth_width/loss_doubled": "its shapes:depth_width_grid.csv",
    "depth_width/transition_width": "drawn: 5 transitions:levine2020_transitions.csv",
    "depth_width/transition_size": "5 transitions:levine2020_transitions.csv",
    "depth_width/best_depth": "its fit:levine2020_fit.json",
    "depth_width/extrapolation": "drawn: its projection:levine2020_projection.csv",
    "vocabulary/losses": "its shapes:vocabulary_grid.csv",
    "embedding_rank/losses": "its redundancy:vocabulary_findings.json",
    "attention_ratio/losses": "its shapes:attention_ratio_grid.csv",
    "attention_ratio/depths": "its redundancy:vocabulary_findings.json",
    "positional_rank/losses": "its ranks:positional_rank_findings.json",
    "memorization_heads/share": _MEMORIZED,
    "memorization_context/share": _MEMORIZED,
    "memorization_head_dim/share": _MEMORIZED,
    "memorization_saturation/saturation": _MEMORIZED,
}
_REFERENCE = "../workflow/reference"
TABLES = (  # of the papers: published as, ours, published numbers, study
    (
        "table 1 of the depth-width paper: trained and projected shapes",
        "`results/depth_width/projection.csv`",
        f"[numbers]({_REFERENCE}/levine2020_projection.csv)",
        "depth_width",
    ),
    (
        "table 2 of the depth-width paper: shapes",
        "[scale paper](paper_scale.md)",
        f"[shapes]({_REFERENCE}/depth_width_grid.csv)",
        "depth_width",
    ),
    (
        "table 3 of the depth-width paper: seed noise",
        "`results/depth_width/seed_noise.csv`",
        f"[numbers]({_REFERENCE}/levine2020_seed_std.csv)",
        "depth_width",
    ),
    (
        "table 4a of the depth-width paper: transitions",
        "[beside theirs](results/depth_width.md), `results/depth_width/transitions.csv`",
        f"[numbers]({_REFERENCE}/levine2020_transitions.csv)",
        "depth_width",
    ),
    (
        "table 1 of the vocabulary paper: perplexity",
        "[ours](results/perplexity.csv), [how](results/depth_width.md)",
        f"[numbers]({_REFERENCE}/vocabulary_findings.json)",
        "perplexity",
    ),
    (
        "tables 3 and 5 of the vocabulary paper: shapes",
        "[scale paper](paper_scale.md)",
        f"[one]({_REFERENCE}/vocabulary_grid.csv), [other]({_REFERENCE}/attention_ratio_grid.csv)",
        "vocabulary, attention_ratio",
    ),
    (
        "table 4 of the vocabulary paper: seed noise",
        "`results/vocabulary/seed_noise.csv`",
        f"[numbers]({_REFERENCE}/vocabulary_seed_std.csv)",
        "vocabulary",
    ),
    (
        "tables 1 and 3 of the memorization paper: assumptions",
        "[beside theirs](results/assumptions.md)",
        f"[images]({_REFERENCE}/assumptions_vit.csv), [language]({_REFERENCE}/assumptions_language.csv)",
        "assumptions",
    ),
)


def reproduce_page() -> str:
    """The content of docs/reproduce.md: the papers' figures and tables beside ours, then commands and their cost."""
    lines = [BEGIN, "| published | ours | published numbers | study |", "|---|---|---|---|"]
    lines += [
        *_figures(),
        *map(_row, TABLES),
        "",
        "Figures of our own stand on the studies' pages (last table).",
        "",
    ]
    lines += [FROM_RUNS + "\n".join(_from_runs()), TRAINED + _row(["study", "verdict", *map(_unit, SCALES)])]
    lines.append("|---" * (len(SCALES) + 2) + "|")
    for study in STUDIES.values():
        page = f"[{_heading(study)}]({study.verdict})"
        lines.append(_row([study.name, page, *(_hours(study, scale) for scale in SCALES)]))
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _unit(scale: str) -> str:
    return f"{scale}, {SCALES[scale]}"


def _figures() -> Iterator[str]:
    """A row for each figure that a paper has, with ours and what is known of theirs."""
    for study in STUDIES.values():
        for figure, source in study.figures.items():
            name = f"{study.name}/{figure}"
            if source.startswith(OURS) or (study.extra and study.name != "assumptions"):
                continue
            picture = f"[picture](figures/{PICTURES[name]}.svg), " if name in PICTURES else ""
            said, _, file = POINTS.get(name, "").rpartition(":")
            points = f"[{said}]({_REFERENCE}/{file})" if said else "–"
            yield _row([source, f"{picture}`results/{name}.svg`", points, study.name])


def _from_runs() -> Iterator[str]:
    """The commands that make a study's results from files of this repository."""
    named = (*STUDIES, "published")
    commands = {name: words for name, words in MADE.items() if name.removeprefix("laptop_") in named}
    for command in [commands.pop("published"), *commands.values()]:
        words = [str(word.relative_to(ROOT)) if isinstance(word, Path) else word for word in command]
        yield f"python scripts/{shlex.join(words)} --out DIR"
    yield from (
        f"snakemake {study.target}" for study in STUDIES.values() if study.extra and _is_committed(study)
    )


def _is_committed(study: Study) -> bool:
    """Whether what an extra study analyses is in this repository."""
    return (ROOT / study.input).is_file()


def _heading(study: Study) -> str:
    return f"{study.title}: {study.subtitle or study.name}" if study.subtitle else study.title


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
