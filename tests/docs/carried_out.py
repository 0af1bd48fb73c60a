"""How the commands of the pages are carried out: as they are shown, with smaller sizes, or elsewhere.

`SMALLER` and `ELSEWHERE` hold what costs minutes, a card, a cluster or a network. A test fails where one of their
entries stands for no command of a page any longer.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

Words = tuple[str, ...]


@dataclass(frozen=True)
class Elsewhere:
    """Commands that are not run where the others are.

    Attributes:
        start: how they begin.
        reason: why not.
        shown_by: the test that runs the same program, or the page with what such a run gave.
    """

    start: str
    reason: str
    shown_by: str


STORES = (
    "--train-store results/corpora/prose/V2000/train.json --test-store results/corpora/prose/V2000/test.json"
)
MEMORIZE = (
    "--context 4 --head-dim 4 --width 8 --classes 5 --seeds 1 --steps 20 --batch-size 8 "
    "--evaluate-every 10 --no-compile"
)
LARGEST = (
    "python scripts/train_memorization.py --heads 4,8 --largest 200,2000 --within 50 --steps 300000 --value-dim 1 "
    "--logit-scale width"
)
TRIALS = "--trials 20 --sensitivity-trials 10 --curve-trials 3"
SAME = "--shapes 1,16 --batch 2 --steps 4 --test-sequences 2 --seeds 2 --no-compile --device cpu"
SMALL_GRIDS = """'{"separation_rank": [{"depth": [2], "width": [2], "tokens": [4]}],
"degree_budget": [{"blocks": "attention", "width": [2], "budget": [4], "tokens": [2]}],
"fractional_degree": [{"blocks": "attention", "width": [1, 2], "degrees": [2, 3], "budget": [8], "tokens": [2]}]}'"""
# how a command begins, and further options that make it small: of two the last one wins
SMALLER = {
    "python benchmarks/language_training.py": "--device cpu --ways ours --shapes 1,16 2,16 4,16 1,32 2,32 4,32 "
    "--vocab-sizes 257 --batch 1 --repeats 2 --least-seconds 0.01",
    "python benchmarks/memorization_curvature.py": "--heads 2 --steps 2 --seeds 1",
    "python benchmarks/same_losses.py --compiled-part": f"--out gpu/graphs {STORES} {SAME}",
    "python benchmarks/same_losses.py --out": SAME,
    "python benchmarks/surface.py": "--draws 1 --only statuses",
    "python benchmarks/transitions.py": "--draws 1",
    "python scripts/check_assumptions.py --models decoder": f"--examples 64 {TRIALS}",
    "python scripts/check_assumptions.py --out": f"--models decoder --decoder CHECKPOINTS "
    f"--tokens train.json --examples 64 {TRIALS}",
    "shapelaw fit": "--draws 100",
    "python scripts/measure_separation_ranks.py": f"--grids {SMALL_GRIDS}",
    "python scripts/perplexity.py --run": "--most 2 --gpt2-files gpt2",
    "python scripts/separation_rank.py --depth 3 --width 3 --tokens 6": "--templates 100",
    "python scripts/train.py --keep-weights": f"--spec @gpu/one.json {STORES} --out gpu/kept --checkpoints gpu/all",
    "python scripts/train_memorization.py --heads 4 --examples": f"--heads 2 --examples 20 {MEMORIZE}",
    "python scripts/train_memorization.py --heads 4,8 --examples 300,550": f"--heads 2,3 --examples 13,25 {MEMORIZE}",
    "python scripts/train_memorization.py --heads 4,8 --examples 300,600": f"--heads 2,3 --examples 12,24 {MEMORIZE}",
    f"{LARGEST} --last-batch": f"--heads 3 --largest 4,8 --within 4 {MEMORIZE}",
    LARGEST: f"--heads 2 --largest 4,8 --within 4 {MEMORIZE}",
    # beside the small ones that lie there for the commands that train them; the cost is a CPU's
    "python scripts/write_specs.py --scale gpu --study depth_width --cost-model": "--out written --hours 1e6",
    "python scripts/write_specs.py": "--out written",
}
ELSEWHERE = (
    Elsewhere("python benchmarks/slurm_scale.py", "a Slurm and 10,000 jobs", "docs/cluster.md"),
    Elsewhere("python benchmarks/packed_memorization.py", "a card", "docs/gpu.md"),
    Elsewhere("shapelaw speed", "a card", "tests/scripts/test_speed.py"),
    Elsewhere("python benchmarks/chaos.py", "hundreds of kills", "tests/test_chaos.py"),
    Elsewhere(
        "python scripts/perplexity.py --model",
        "a model of transformers; a small one there",
        "tests/scripts/test_perplexity.py",
    ),
    Elsewhere(
        "python scripts/check_assumptions.py --models gpt2", "a model of a hub", "docs/results/assumptions.md"
    ),
    Elsewhere(
        "python scripts/check_assumptions.py --models vit,bert",
        "16 minutes, and wheels of networks and photographs",
        "tests/scripts/test_check_assumptions.py",
    ),
    Elsewhere(
        "python scripts/check_assumptions.py --models vit_base",
        "a model of a hub",
        "docs/results/assumptions.md",
    ),
    Elsewhere("shapelaw evidence", "losses that are not committed", "tests/scripts/test_evidence.py"),
    Elsewhere(
        "python tests/finished.py",
        "trains every kind of run: minutes",
        "tests/workflow/test_finished_results.py",
    ),
    Elsewhere(
        "python scripts/page_tables.py", "makes every table of the pages", "tests/docs/test_page_tables.py"
    ),
    Elsewhere("python tests/promises.py", "plans whole scales", "tests/workflow/test_planned_jobs.py"),
)
# a file of the reader's that a command shown before makes
MIXED = (
    "import pandas as pd; a = pd.read_parquet('docs/results/laptop_depth_width.parquet'); "
    "b = a.assign(heads=4, test_loss=a.test_loss + 0.05); pd.concat([a, b]).to_csv('mixed.csv')"
)
MADE_BY = {
    "gpu/language_training.csv": "python benchmarks/language_training.py --out gpu --peer nanoGPT --vocab-sizes 2000",
    "mixed.csv": f'python -c "{MIXED}"',
    "measured.json": "python scripts/measure_separation_ranks.py",
    "DIR/runs.csv": "python scripts/train_memorization.py --heads 4,8 --examples 300,600",
    "DIR/relu.csv": "python scripts/train_memorization.py --heads 4,8 --examples 300,600",
}

# words that a page quotes of what a command prints
SAID = {
    "shapelaw shape 1.3B --vocab": "Best depth: 35 layers",
    "python scripts/bottlenecks.py ESM-1b": "ESM-1b",
    "python scripts/bottlenecks.py --fit": "our fit",
    "python scripts/fit_cost.py": "hours",
    "python scripts/write_specs.py --scale gpu --study depth_width --out": "90 runs",
    "python scripts/separation_rank.py --depth 2 --width 3 --tokens 4": "49",
    "python scripts/memorization_capacity.py": "621",
}
# words that name a program and run nothing
ITSELF = {("shapelaw",), ("shapelaw", "transitions")}
# what writes files of the project
WRITERS = (
    "python benchmarks/pass_rates.py",
    "python scripts/answer_page.py",
    "python scripts/bottlenecks.py --out",
    "python scripts/config_reference.py",
    "python scripts/reproduce_page.py",
)


def starts(command: Words, start: str) -> bool:
    """Whether a command begins with these words."""
    first = tuple(shlex.split(start))
    return command[: len(first)] == first


def smaller(command: Words) -> Words:
    """The command with the options that make it small, if it needs any."""
    further = next((options for start, options in SMALLER.items() if starts(command, start)), "")
    return command if "--help" in command else (*command, *shlex.split(further))


def elsewhere(command: Words) -> Elsewhere | None:
    """What is said of a command that is not run here."""
    return next((one for one in ELSEWHERE if starts(command, one.start)), None)
