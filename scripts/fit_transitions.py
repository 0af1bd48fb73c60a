"""Fit the widths at which deeper networks become the better ones, from runs or from known transitions.

  shapelaw transitions runs.csv
  shapelaw transitions --transitions transitions.csv --out DIR

Runs are rows of `depth, width, seed, test_loss`, or of columns by their usual names (n_layer, d_model, val_loss, ...):
CSV, Parquet, JSON lines, a folder of W&B exports, or an MLflow experiment (docs/advice/own_runs.md). For each pair of
adjacent depths the transition is found by the paper's rule (Levine et al. 2020, section 5.2.2) and by a bootstrap of
the smooth loss curves. Transitions are rows of `depth, width, width_err`, such as a transitions.csv that this command
wrote. Then comes the weighted line log d = a + b L, N_transition(L) = 12 L exp(2a + 2bL), and the shapes that it
projects for larger sizes.

Written to DIR: transitions, fit, projection and comparison (with runs also size_axes, seed_noise and best_depth) as
.csv and .html, all of them in tables.md and tables.tex, fit.json, and the figures as .svg and .png; with several token
budgets one folder for each. Networks that differ in more than depth, width and seed (heads, vocabulary, block, ...) are
kinds of their own: what tells them apart is a further column of each table.
Exit codes: 0 done, also where no fit is possible (fit.json's status and the output say so), 2 unusable input.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from shapelaw.advice.own_runs.budgets import Budget
from shapelaw.advice.own_runs.given import GivenRuns, add_run_options, add_runs, given_budgets, out_folder
from shapelaw.errors import command_line, end_with
from shapelaw.fits.inputs import check_bootstrap
from shapelaw.report.write import Results, show_results
from shapelaw.specs.sizes import LEAST_SIZES
from shapelaw.studies.transitions.analysis import PUBLISHED, Options, analyse_runs
from shapelaw.studies.transitions.results import add_options, analyse, options_of, present

CARRYING = ("transitions", "size_axes")  # tables of which the first rows are printed
LABELS = "depth-width"  # with which the LaTeX labels of the tables begin
ENDING = "_transitions"  # of the folder of results, behind the runs' name


def main() -> None:
    """Parse the command line, analyse, write the results and print the findings."""
    parser = command_line(__doc__, "RUNS [OPTIONS]")
    table = parser.add_mutually_exclusive_group(required=True)
    add_runs(table)
    table.add_argument(
        "--transitions",
        type=Path,
        metavar="FILE",
        help=f"one row a transition: depth, width, width_err; of rows with a status only 'crossing' counts; "
        f"`{PUBLISHED}`: those of Levine et al. 2020",
    )
    add_run_options(parser, ENDING)
    add_options(parser)
    arguments = parser.parse_args()
    options, out = options_of(arguments), out_folder(arguments, ENDING)
    if arguments.transitions is not None:
        found = analyse(transitions=arguments.transitions, options=options)
        show_results(present(found), out, LABELS, CARRYING)
        return
    check_bootstrap(options.noise, options.draws)
    budgets, notes = given_budgets(arguments, options.size, least=2 * LEAST_SIZES, loss=arguments.loss)
    for note in notes:
        print(note)
    for given in budgets:
        if len(budgets) > 1:
            print(f"\n{given.budget.rule.capitalize()}:")
        folder = out / given.budget.folder if len(budgets) > 1 else out
        show_results(given.results(partial(_present, options, given)), folder, LABELS, CARRYING)


def _present(options: Options, given: GivenRuns, budget: Budget) -> Results:
    """The results of the runs of one kind of network."""
    return present(analyse_runs(budget.runs, options, given.noise_of))


if __name__ == "__main__":
    end_with(main)
