"""Fit the public evidence on shapes, and check what it predicts of what is left out.

  shapelaw evidence gemstones.csv

The table has the losses of Gemstones (McLeish et al. 2025, mcleish7/gemstone-scaling-laws at 5f42047, MIT): depth,
width, vocab_size, block_params, total_params, tokens, loss, series, batch_tokens, nodes, seconds_per_step. There
wandb_dfs/ has a file for each series (hot_100b+, fineweb_edu, fineweb_dclm, cool_end, lr_ablation_hot), and benchmarks/
nodes and seconds. They are not ours and are not committed; the fits are. The 76 runs of Bian et al. 2025 beside them
are (workflow/reference/bian_morph.csv). Written: evidence.json to --out (draws of the surface of both labs, what widens
them, the times, the published law of transitions, and the law of the best size for a budget by the second lab), and the
checks to --checks. `shapelaw shape` reads the first. It takes two or three minutes.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.advice.answer.costs import CONTEXT, Spread, evidence_of
from shapelaw.advice.answer.laws import PUBLISHED, best_depth_at, read_law, transitions_content
from shapelaw.advice.evidence.checks import check
from shapelaw.advice.evidence.fit import SETS, Fitted, Losses, fit_evidence, losses_of, losses_of_other
from shapelaw.advice.evidence.losses import COLUMNS, Floats, least_squares
from shapelaw.advice.evidence.predicted import (
    allocation_law,
    by_budget,
    predicted,
    read_public,
    without_each_shape,
)
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.fits.inputs import require_columns
from shapelaw.storage.files import write_text
from shapelaw.studies.study import REFERENCE

SOURCE = (
    "fits of the losses of Gemstones (McLeish et al. 2025, mcleish7/gemstone-scaling-laws at 5f42047, MIT licence) and "
    "of bian_morph.csv by shapelaw evidence; the losses themselves are not in here"
)
NAME = "Gemstones and Bian et al. 2025"
OTHERS = REFERENCE / "bian_morph.csv"  # runs of another lab
OTHERS_NAME = "Bian et al. 2025"
BLOCK = "Gemma-like and OpenLM's, V = 50k"
DIGITS = 5
RANGES = {
    "block_params": "log_blocks",
    "total_params": "log_total",
    "tokens": "log_tokens",
    "depth": "log_depth",
}


def main() -> None:
    """Parse the command line, fit, check, and write."""
    parser = command_line(__doc__, "TABLE [OPTIONS]")
    add = parser.add_argument
    add("table", type=Path, metavar="TABLE", help="the losses, a CSV; lines that begin with # are comments")
    add("--out", type=Path, default=REFERENCE, metavar="DIR", help=f"default: {REFERENCE.name}")
    add("--checks", type=Path, metavar="FILE", help="the checks as CSV; default: not written")
    add("--draws", type=int, default=80, help="draws of each series of losses (default: 80)")
    add("--seed", type=int, default=0, help="of the draws (default: 0)")
    arguments = parser.parse_args()
    if arguments.draws < 20:
        raise UserError(
            f"--draws is {arguments.draws}; intervals of 68% take 20 draws of each series or more."
        )
    table = read_public(arguments.table)
    series, times = losses_of(table, str(arguments.table)), times_of(table, str(arguments.table))
    runs = read_public(OTHERS)
    other = losses_of_other(runs, OTHERS_NAME)
    joined = [one.joined(other) for one in series]
    alone, others_alone, both = (
        fit_evidence(losses, arguments.draws, arguments.seed)
        for losses in (series, [replace(other, other=np.zeros_like(other.other))], joined)
    )
    law = read_law(PUBLISHED)
    spread, checks = check(
        series,
        alone,
        (law.source, lambda size: best_depth_at(law, size)),
        (OTHERS_NAME, other, others_alone, both),
        arguments.draws,
    )
    rest = {"time": times, "law": transitions_content(law)}
    content = {
        "about": SOURCE,
        "command": shlex.join(["shapelaw", "evidence", arguments.table.name]),
        "name": NAME,
        "block": BLOCK,
        **content_of(joined, both, spread),
        **rest,
    }
    unseen = evidence_of({"name": NAME, **content_of(series, alone, spread), **rest})
    told = predicted(runs, unseen, OTHERS.name)
    law_of_others = allocation_law(told, OTHERS_NAME)
    numbers = {name: _rounded(getattr(law_of_others, name)) for name in ("factor", "exponent")}
    content["allocation"] = [vars(law_of_others) | numbers]
    held_out = without_each_shape(runs, evidence_of(content), both)
    costs = [(told, f"all runs of {OTHERS_NAME}"), (held_out, f"each shape of {OTHERS_NAME}")]
    table = pd.concat([checks, *(_costs_of_other(*one) for one in costs)], ignore_index=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_text(arguments.out / "evidence.json", as_lines(content))
    if arguments.checks is not None:
        write_text(arguments.checks, table.to_csv(index=False, float_format="%.4g"))
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    print(f"Log depth differs between sources by a standard deviation of {spread.sources:.2f}.")


def _costs_of_other(told: pd.DataFrame, left_out: str) -> pd.DataFrame:
    """The checks of the costs of another lab's shapes, a row a budget."""
    budgets = by_budget(told).to_dict("records")
    half = (told["high"] - told["low"]).groupby(told["budget"]).mean() / 2.0
    return pd.DataFrame(
        {
            "predicted": "cost of a shape, nats",
            "left_out": f"{left_out}, {row['budget']}",
            "count": row["runs"],
            "error": row["with_told"],
            "predictive_interval": half[row["budget"]],
            "held_predictive": row["held"],
            "scale": row["factor"],
        }
        for row in budgets
    )


def _rounded(value: float) -> float:
    """A number as the file has it."""
    return float(f"{value:.{DIGITS}g}")


def content_of(series: list[Losses], fitted: Fitted, spread: Spread) -> dict[str, Any]:
    """The ranges of the evidence, what widens its draws, and the draws, group by group."""

    def span(of: str) -> list[float]:
        logs: Floats = np.concatenate([getattr(one, of) for one in series])
        return [round(float(np.exp(end))) for end in (logs.min(), logs.max())]

    levels = [end for one in series for end in one.tokens]
    set_of = {name: runs for runs, names in SETS.items() for name in names}
    return {
        "range": {name: span(of) for name, of in RANGES.items()}
        | {"level_tokens": [round(min(levels)), round(max(levels))]},
        "spread": {name: round(value, 3) for name, value in vars(spread).items()},
        "columns": list(COLUMNS),
        "groups": [
            {
                "series": group.losses.series,
                "set": set_of[group.losses.series],
                "form": group.form,
                "size": group.size,
                "weight": round(weight, 3),
                "left_out_error": round(group.error, 4),
                "draws": [[_rounded(value) for value in row] for row in draws],
            }
            for group, weight, draws in fitted.groups
        ],
    }


def times_of(table: pd.DataFrame, source: str) -> dict[str, Any]:
    """The exponents of FLOP/s a node along the work per token and depth, with standard errors.

    `per_log_work`: by how much the exponent of depth may change for each e-fold of work (root mean square).

    Raises:
        UserError: the table has no times.
    """
    columns = ["depth", "width", "block_params", "vocab_size", "batch_tokens", "nodes", "seconds_per_step"]
    require_columns(table, columns, source)
    timed = table[columns].apply(pd.to_numeric, errors="coerce").dropna().drop_duplicates(["depth", "width"])
    per_layer = timed["vocab_size"] + 2.0 * CONTEXT * timed["depth"]
    work = np.log(timed["block_params"] + per_layer * timed["width"])
    speed = work + np.log(timed["batch_tokens"] / (timed["seconds_per_step"] * timed["nodes"]))
    design = np.column_stack([np.ones(len(timed)), work, np.log(timed["depth"])])
    if np.linalg.matrix_rank(design) < design.shape[1] or len(timed) <= design.shape[1]:
        raise UserError(f"{source} has times of {len(timed)} shapes, too few for two exponents.")
    fit = least_squares(design, speed.to_numpy())
    centred = design[:, 1:] - design[:, 1:].mean(axis=0)
    both = least_squares(np.column_stack([design, centred.prod(axis=1)]), speed.to_numpy())
    times = {
        "work": fit.values[1],
        "work_err": fit.errors[1],
        "depth": fit.values[2],
        "depth_err": fit.errors[2],
    }
    times["per_log_work"] = math.hypot(both.values[3], both.errors[3])
    rounded = {name: round(float(number), 3) for name, number in times.items()}
    return {**rounded, "source": "Gemstones on MI250X, 8 to 64 nodes"}


def as_lines(content: dict[str, Any]) -> str:
    """JSON with a line for each list of numbers."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[^\[\]{}\"]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


if __name__ == "__main__":
    end_with(main)
