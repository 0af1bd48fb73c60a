"""Fit the cost model of `snakemake plan` to the times of finished runs, and print its errors.

  python scripts/fit_cost.py --runs results/STUDY/runs.parquet --out results/cost.json

Then set execution.cost_model in config.yaml to that file. The runs must be of one kind of device, trained in one way
(precision, batch, compiled or not); several tables are taken together. Of each run its shape, batch_size and
tokens_per_second are used, and wall_seconds where given. It writes the model as JSON, and beside it a .csv with
each run's measured and predicted seconds. The errors printed are those of models that were fitted without the shape in
question. Exit codes: 0 done, 2 unusable input.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from shapelaw.errors import UserError, command_line, end_with
from shapelaw.fits.cost import CostFit, fit_cost
from shapelaw.fits.inputs import read_table
from shapelaw.specs.cost import model_to_dict
from shapelaw.storage.files import write_text


def summary(fit: CostFit) -> str:
    """The findings in sentences."""
    model, errors = fit.model, fit.errors
    hours, ratio = errors["measured_hours"], errors["total_ratio"]
    return "\n".join(
        [
            f"A step takes {model.overhead:.3g} s, {model.per_layer:.3g} s a layer, {model.per_number:.3g} s a number "
            f"in memory and {model.per_flop:.3g} s a FLOP; a run {model.extra_seconds:.3g} s beside its steps.",
            f"{len(fit.runs)} runs took {hours:.3g} hours; models fitted without a run's shape predict "
            f"{ratio * hours:.3g} hours ({ratio:.0%}).",
            f"A run is off by {errors['typical_error']:.0%} (median) and {errors['worst_error']:.0%} at most; the "
            f"typical factor is {model.factor:.2f}.",
        ]
    )


def main() -> None:
    """Parse the command line, fit, write."""
    parser = command_line(__doc__)
    parser.add_argument(
        "--runs", type=Path, nargs="+", required=True, metavar="FILE", help=".csv or .parquet"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model, as .json")
    arguments = parser.parse_args()
    if arguments.out.suffix != ".json":
        raise UserError(f"--out is {arguments.out}; its name must end in .json.")
    tables = [read_table(path) for path in arguments.runs]
    fit = fit_cost(pd.concat(tables, ignore_index=True), " and ".join(map(str, arguments.runs)))
    write_text(arguments.out, json.dumps({**model_to_dict(fit.model), "errors": fit.errors}, indent=1) + "\n")
    write_text(arguments.out.with_suffix(".csv"), fit.runs.to_csv(index=False))
    print(summary(fit))


if __name__ == "__main__":
    end_with(main)
