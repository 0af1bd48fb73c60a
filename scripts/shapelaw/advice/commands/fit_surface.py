"""Fit one smooth loss surface through shapes that lie anywhere: the best depth of a size, and what each shape costs.

  shapelaw fit runs.csv
  shapelaw fit runs.csv --sizes 60M,300M,1.3B --size total --out DIR

Runs are rows of `depth, width, seed, test_loss`, or of columns by their usual names (n_layer, d_model, val_loss, ...):
CSV, Parquet, JSON lines, a folder of W&B exports, or an MLflow experiment (docs/advice/own_runs.md). Depths and widths
need form no grid; eight shapes are the least, and they must differ in depth at one size.

Written to DIR: costs (the main table: what about seven depths of each size cost), penalty (the excess loss of each
shape), best_depth, forms and overtaking as .csv and .html, all of them in tables.md and tables.tex, fit.json, and a
figure as .svg and .png; with several token budgets one folder for each. A folder is another source of `shapelaw shape
--fit DIR`. Networks that differ in more than depth, width and seed (heads, vocabulary, block, ...) are kinds of their
own: what tells them apart is a further column of each table.
Exit codes: 0 done, also where no surface is possible (fit.json's status and the output say so), 2 unusable input.
"""

from __future__ import annotations

import argparse

from shapelaw.advice.answer.costs import WITHIN
from shapelaw.advice.own_runs.columns import PER_NAT, unit_of_loss
from shapelaw.advice.own_runs.given import add_run_options, add_runs, given_budgets, given_columns, out_folder
from shapelaw.advice.surface.forms import LEAST_SHAPES
from shapelaw.advice.surface.results import Options, analyse_surface, check_options, present_surface, sizes_of
from shapelaw.errors import command_line, end_with
from shapelaw.report.write import show_results
from shapelaw.specs.sizes import SizeAxis

ENDING = "_fit"  # of the folder of results, behind the runs' name


def _arguments() -> argparse.Namespace:
    parser = command_line(__doc__, "RUNS [OPTIONS]")
    add = parser.add_argument
    add_runs(parser.add_mutually_exclusive_group(required=True))
    add_run_options(parser, ENDING)
    add(
        "--sizes",
        metavar="LIST",
        help="sizes to answer for, such as 60M,300M,1.3B (default: five of the shapes')",
    )
    add(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="the size that compared shapes share: parameters of the blocks (block_params or 12 L d^2, default), all "
        "parameters (total_params) or FLOPs of a step (step_flops); the best depth depends on it",
    )
    add(
        "--within",
        type=float,
        metavar="LOSS",
        help=f"treat excess losses up to this as zero, in the unit of the loss: bits where the column's name has bits, "
        f"bpb or the like, else nats (default: {WITHIN:g} nats)",
    )
    add("--loss", metavar="COLUMN", help="the column to compare (default: the loss, by its usual names)")
    add(
        "--noise",
        type=float,
        metavar="STD",
        help="standard deviation of one run's loss over seeds, where known",
    )
    add("--draws", type=int, default=Options.draws, help="bootstrap draws (default: 2000)")
    add("--seed", type=int, default=Options.seed, help="seed of the bootstrap (default: 0)")
    return parser.parse_args()


def main() -> None:
    """Parse the command line, fit, write the results and print the findings."""
    arguments = _arguments()
    sizes = () if arguments.sizes is None else sizes_of(arguments.sizes)
    axis = SizeAxis(arguments.size)
    unit = unit_of_loss(given_columns(arguments, arguments.loss).get("loss", ""))
    within = round(WITHIN * PER_NAT[unit], 4) if arguments.within is None else arguments.within
    options = Options(axis, sizes, arguments.noise, arguments.draws, arguments.seed, within, unit)
    check_options(options)
    budgets, notes = given_budgets(arguments, axis, least=LEAST_SHAPES, loss=arguments.loss, ladders=True)
    for note in notes:
        print(note)
    out = out_folder(arguments, ENDING)
    if len(budgets) > 1:
        print(f"{len(budgets)} token budgets, one surface each.")
    for given in budgets:
        folder = out / given.budget.folder if len(budgets) > 1 else out
        found = given.results(lambda budget: present_surface(analyse_surface(budget, options)))
        show_results(found, folder, "surface")


if __name__ == "__main__":
    end_with(main)
