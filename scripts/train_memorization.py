"""Train memorizers: one attention layer that learns the labels of random examples by heart, in packs.

  python scripts/train_memorization.py --heads 4,8 --examples 300,550 --context 32 --head-dim 64 --seeds 3 \\
      --steps 20000 --out DIR
  python scripts/train_memorization.py --heads 4,8 --largest 200,2000 --within 50 --steps 300000 --out DIR

Every combination of the lists is a run. With --largest, each shape of network searches by bisection for the largest T
that one of its seeds memorizes perfectly (figure 3), by runs like any others. Records go to
DIR/runs/<key>, checkpoints to DIR/checkpoints; started again, it goes on where it was. DIR/runs.csv has
one row a run, for scripts/analyse.py.
The defaults are the model of the paper's equations (Mahdavi et al. 2024, eqs. 1-6); its published numbers come from
--value-dim 1 --logit-scale width, which are the conventions of the authors' code.

Exit codes: 0 all runs are trained, 1 some can't go on (a sentence says why; the others are done), 2 wrong input,
128 + n stopped by signal n.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import pandas as pd

from shapelaw.errors import UserError, command_line, refuse_below_one, say
from shapelaw.fits.memorized import bracket, next_sizes
from shapelaw.jobs.resources import in_packs
from shapelaw.settings.problems import add_keys, checked
from shapelaw.specs.memorizers import LogitScale, MemorizationRun, beyond_theorem
from shapelaw.storage.files import write_text
from shapelaw.storage.pool import add_asked
from shapelaw.storage.records import RUNS, finished_runs
from shapelaw.studies.memorization.study import Memorization, MemorizationGrid, grid_runs, size_problems
from shapelaw.training.driver import exit_code_of, stores_in, train_job
from shapelaw.training.trainer import Runtime, TrainingFailed

STUDY = "memorization"
COLUMNS = (  # of runs.csv
    *("key", "task", "context_type", "last_batch", "heads", "context", "head_dim", "value_dim", "width"),
    *("classes", "examples", "seed", "steps", "steps_done", "accuracy", "loss", "saturated_share"),
)


def main() -> int:
    """Parse the command line and train."""
    arguments = _parser().parse_args()

    def work() -> None:
        if (arguments.examples is None) == (arguments.largest is None):
            raise UserError("Give either --examples, all T to train, or --largest, two T to search between.")
        if arguments.largest is not None:
            _check_search(arguments)
        refuse_below_one(arguments, "pack", "padding", "within")
        runtime = Runtime(
            arguments.device,
            arguments.threads,
            compile=arguments.compile,
            checkpoint_seconds=60 * arguments.checkpoint_minutes,
        )
        records = arguments.out / RUNS

        def train(runs: list[MemorizationRun]) -> None:
            _refuse_other_recipes(runs, records)
            add_asked(arguments.out, {STUDY: [run.key for run in runs]})
            packs = in_packs(runs, arguments.pack, arguments.padding)
            try:
                train_job(packs, arguments.out, stores_in(arguments.out), runtime)
            except TrainingFailed:  # of some, and the others have their records
                write_runs(arguments.out / "runs.csv", records)
                raise
            write_runs(arguments.out / "runs.csv", records)

        if arguments.largest is None:
            train(_runs(arguments, itertools.product(*_shapes(arguments), arguments.examples)))
        else:
            _search(arguments, records, train)

    return exit_code_of(work, 0.0)


def _shapes(arguments: argparse.Namespace) -> tuple[list[int], list[int], list[int]]:
    return arguments.heads, arguments.context, arguments.head_dim


def _check_search(arguments: argparse.Namespace) -> None:
    """Check the options of a search.

    Raises:
        UserError: they don't make one.
    """
    sizes = arguments.largest
    if len(sizes) != 2 or not 1 <= sizes[0] < sizes[1]:
        raise UserError(f"--largest is {','.join(map(str, sizes))}; give two T, the smaller first.")
    if arguments.task != "classification":
        raise UserError("--largest asks for perfect memorization, which only a classification can reach.")


def _search(
    arguments: argparse.Namespace, records: Path, train: Callable[[list[MemorizationRun]], None]
) -> None:
    """Bisect for the largest T of every shape, all shapes' next T at once; started again, it goes the same way."""
    low, high = arguments.largest
    found: dict[tuple[int, ...], dict[int, bool]] = {
        shape: {} for shape in itertools.product(*_shapes(arguments))
    }
    while True:
        trying = {
            shape: next_sizes(memorized, low, high, arguments.within) for shape, memorized in found.items()
        }
        runs = _runs(arguments, [(*shape, size) for shape, sizes in trying.items() for size in sizes])
        if not runs:
            break
        train(runs)
        for run, summary in finished_runs(records, MemorizationRun, [run.key for run in runs]):
            m = run.memorizer
            memorized = found[m.heads, m.context, m.head_dim]
            perfect = summary.get("final_accuracy") == 1.0
            memorized[run.examples] = memorized.get(run.examples, False) or perfect
    for (heads, context, head_dim), memorized in found.items():
        below, above = bracket(memorized)
        say(
            f"H = {heads}, n = {context}, d_h = {head_dim}: "
            + (f"T = {below} is memorized perfectly" if below else "nothing tried is memorized perfectly")
            + (f", T = {above} is not" if above else ", and no larger T was tried")
        )


def _refuse_other_recipes(runs: list[MemorizationRun], records: Path) -> None:
    """Refuse a folder whose table would mix recipes: it has all records, and no analysis takes recipes apart.

    Raises:
        UserError: there are records of other steps, or of another recipe at one of these sizes.
    """
    steps, asked = {run.steps for run in runs}, {run.label: run for run in runs}
    for there, _ in finished_runs(records, MemorizationRun):
        name, before, now = "steps", there.steps, min(steps)
        if there.steps in steps:
            if there.label not in asked or there == asked[there.label]:
                continue
            one, other = (asdict(run) | asdict(run.memorizer) for run in (there, asked[there.label]))
            name = next(field for field in one if field != "memorizer" and one[field] != other[field])
            before, now = one[name], other[name]
        raise UserError(
            f"{records} has runs whose {name} is {before}, and this call asks for {now}; one table with both would "
            "mix them: give another --out."
        )


def write_runs(path: Path, records: Path) -> None:
    """Write a table with one row for each memorizer that has a record, also from earlier calls."""
    rows = [
        {**run.flat(), **summary, "key": run.key}
        | {"accuracy": summary.get("final_accuracy"), "loss": summary.get("final_loss")}
        for run, summary in finished_runs(records, MemorizationRun)
    ]
    write_text(path, pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False))
    say(f"{len(rows)} runs in {path}")


def _runs(arguments: argparse.Namespace, grid: Iterable[tuple[int, ...]]) -> list[MemorizationRun]:
    """The runs of a grid of H, n, d_h and T, with all seeds; all their problems are reported at once.

    Raises:
        UserError: a run can't be trained.
    """
    shared, given = (
        {name: value for name, value in vars(arguments).items() if name in model.model_fields}
        for model in (Memorization, MemorizationGrid)
    )
    common = checked(Memorization, shared)
    runs, problems = list[MemorizationRun](), list[str]()
    for heads, context, head_dim, examples in grid:
        sizes = {"heads": [heads], "context": [context], "head_dim": [head_dim], "examples": [examples]}
        one = checked(MemorizationGrid, given | sizes)
        problems += size_problems(common, one)
        runs += grid_runs(common, STUDY, one)
    if problems:
        raise UserError("\n".join(f"{problem}." for problem in dict.fromkeys(problems)))
    more = {"keep_attention": arguments.attention, "precision": arguments.precision}
    runs = [replace(run, **more) for run in runs]
    for warning in beyond_theorem((run.memorizer.context, run.memorizer.width) for run in runs):
        say(warning)
    return runs


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 4,8") from None
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} has a number twice")
    return numbers


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--heads", type=_numbers, required=True, metavar="H,...", help="heads")
    add("--examples", type=_numbers, metavar="T,...", help="examples to memorize")
    add("--largest", type=_numbers, metavar="LOW,HIGH", help="two T, to search between for the largest one")
    add("--within", type=int, default=50, metavar="T", help="the search ends at this distance (default 50)")
    add("--context", type=_numbers, default=[32], metavar="n,...", help="context tokens (default 32)")
    add("--head-dim", type=_numbers, default=[64], metavar="d_h,...", help="of keys and queries (default 64)")
    add("--value-dim", type=int, help="d_v of a head (default: the width; the authors' code: 1)")
    add("--logit-scale", choices=get_args(LogitScale), default="none", help="its root divides logits")
    of_all = ("width", "classes", "batch_size", "last_batch", "learning_rate", "evaluate_every")
    add_keys(parser, Memorization, of_all)
    add_keys(parser, MemorizationGrid, ("task", "context_type", "seeds", "steps"))
    add("--to-the-end", action="store_true", help="don't stop when everything is memorized")
    add("--attention", action="store_true", help="keep each head's largest attention weights (figure 3)")
    add("--precision", choices=("float32", "float64"), default="float32")
    add("--out", type=Path, required=True, metavar="DIR")
    add("--pack", type=int, default=4, help="models trained together (default 4; on a GPU 64 and more)")
    add(
        "--padding",
        type=float,
        default=1.0,
        help="times the operations that may go into filling models of a pack up to one shape, for fewer packs "
        "(default 1: packs of one shape; on a GPU 1.5)",
    )
    add("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    add("--threads", type=int, default=1, help="CPU threads (default 1)")
    add("--compile", action=argparse.BooleanOptionalAction, help="torch.compile (default: where it pays)")
    add("--checkpoint-minutes", type=float, default=10.0, help="minutes between two checkpoints (default 10)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
