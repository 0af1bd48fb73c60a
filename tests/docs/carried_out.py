"""How the commands of the pages are carried out: as they are shown, with smaller sizes, or elsewhere.

`SMALLER` and `ELSEWHERE` hold what costs minutes, a card, a cluster or a network. A test fails where one of their
entries stands for no command of a page any longer.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from golden_tables import COMMANDS, words_of

from page_tables import MADE

Words = tuple[str, ...]


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
    "python benchmarks/built_memorizers.py": "--steps 10",
    "python benchmarks/language_training.py": "--device cpu --ways ours --shapes 1,16 2,16 4,16 1,32 2,32 4,32 "
    "--vocab-sizes 257 --batch 1 --repeats 2 --least-seconds 0.01",
    "python benchmarks/memorization_curvature.py": "--heads 2 --steps 2 --seeds 1",
    "python benchmarks/monomials.py": "--draws 10",
    "python benchmarks/same_losses.py --compiled-part": f"--out gpu/graphs {STORES} {SAME}",
    "python benchmarks/same_losses.py --out": SAME,
    "python benchmarks/surface.py": "--draws 1 --only statuses",
    "python benchmarks/effects.py": "--tables 1",
    "python benchmarks/transitions.py": "--draws 1",
    "python scripts/check_assumptions.py --models decoder": f"--examples 64 {TRIALS}",
    "shapelaw fit": "--draws 100",
    "python scripts/measure_separation_ranks.py": f"--grids {SMALL_GRIDS}",
    "python scripts/perplexity.py --run": "--most 2 --gpt2-files gpt2",
    "python scripts/separation_rank.py --depth 3 --width 3 --tokens 6": "--templates 100",
    "python scripts/train_memorization.py --heads 2,4 --examples": f"--examples 20 {MEMORIZE}",
    "python scripts/train_memorization.py --heads 4 --examples": f"--heads 2 --examples 20 {MEMORIZE}",
    "python scripts/train_memorization.py --heads 4,8 --examples 300,550": f"--heads 2,3 --examples 13,25 {MEMORIZE}",
    "python scripts/train_memorization.py --heads 4,8 --examples 300,600": f"--heads 2,3 --examples 12,24 {MEMORIZE}",
    f"{LARGEST} --last-batch": f"--heads 3 --largest 4,8 --within 4 {MEMORIZE}",
    LARGEST: f"--heads 2 --largest 4,8 --within 4 {MEMORIZE}",
    # beside the small ones that lie there for the commands that train them; the cost is a CPU's
    "python scripts/write_specs.py --scale gpu --study depth_width --cost-model": "--out written --hours 1e6",
    "python scripts/write_specs.py": "--out written",
}
# how commands begin that are not run where the others are, and why or what carries them out
ELSEWHERE = {
    "python benchmarks/growth.py": "a Slurm and 10,000 jobs, or minutes",
    "python benchmarks/packed_memorization.py": "a card: docs/gpu.md",
    "shapelaw speed": "a card; on a CPU by the command's tests",
    "python benchmarks/chaos.py": "hundreds of kills; three in tests/test_chaos.py",
    "python scripts/perplexity.py --model": "a model of transformers; a small one in the command's tests",
    "python scripts/check_assumptions.py --models bert_large": "18 minutes; the networks in the study's tests",
    "python scripts/check_assumptions.py --models gpt2_large": "hours; the networks in the study's tests",
    "python scripts/check_assumptions.py --models gpt2": "a model of a hub: docs/results/assumptions.md",
    "python scripts/check_assumptions.py --models vit,bert": "16 minutes, wheels of networks and photographs",
    "python scripts/check_assumptions.py --models vit_base": "a model of a hub: docs/results/assumptions.md",
    "shapelaw evidence": "losses that are not committed",
    "shapelaw fit results/mine/runs.parquet": "the runs of that page's grid; the command by docs/advice/own_runs.md",
    "shapelaw fit docs/results/laptop_depth_width.parquet": "whole by tests/docs/test_answer.py",
    # what these write is what is committed: held by a test of their own
    "python docs/generators/answer_page.py": "tests/docs/test_answer.py",
    "shapelaw bottlenecks --out": "the command's tests",
    "python docs/generators/config_reference.py": "the command's tests",
    "python docs/generators/page_tables.py": "tests/docs/test_page_tables.py",
    "python docs/generators/reproduce_page.py": "the command's tests",
    "python docs/generators/count_pages.py": "tests/docs/test_length.py",
    "python benchmarks/pass_rates.py": "tests/docs/test_pass_rates.py",
    "python tests/finished.py": "trains every kind of run: minutes",
    "python tests/promises.py": "plans whole scales, as tests/workflow/test_planned_jobs.py does",
}
# analyses whose tables other tests make: tests/test_tables.py those of the first, test_page_tables.py the others
OF_TABLES = {*COMMANDS.values(), *map(words_of, MADE.values())}
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
    "shapelaw shape 1.3B --vocab": "Best depth: 36 layers",
    "shapelaw bottlenecks ESM-1b": "ESM-1b",
    "shapelaw bottlenecks --fit": "our fit",
    "python scripts/fit_cost.py": "hours",
    "python scripts/write_specs.py --scale gpu --study depth_width --out": "90 runs",
    "python scripts/separation_rank.py --depth 2 --width 3 --tokens 4": "49",
    "python scripts/memorization_capacity.py": "621",
}
# words that name a program and run nothing
ITSELF = {("shapelaw",), ("shapelaw", "transitions"), ("shapelaw", "fit")}


def starts(command: Words, start: str) -> bool:
    """Whether a command begins with these words."""
    first = tuple(shlex.split(start))
    return command[: len(first)] == first


def smaller(command: Words) -> Words:
    """The command with the options that make it small, if it needs any."""
    further = next((options for start, options in SMALLER.items() if starts(command, start)), "")
    return command if "--help" in command else (*command, *shlex.split(further))


def elsewhere(command: Words) -> bool:
    """Whether a command is not run here."""
    return _analysis(command) in OF_TABLES or any(starts(command, start) for start in ELSEWHERE)


def _analysis(command: Sequence[str]) -> Words:
    """The words of `python scripts/...` as tests of tables have them: without folder, and without --out FOLDER."""
    words = list(command[1:])
    if "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    return (Path(words[0]).name, *words[1:]) if words else ()
