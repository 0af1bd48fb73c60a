"""Fit the public evidence on shapes, and check what it predicts of what is left out.

  shapelaw evidence gemstones.csv

The table has the losses of Gemstones (McLeish et al. 2025, mcleish7/gemstone-scaling-laws at 5f42047, MIT): depth,
width, vocab_size, block_params, total_params, tokens, loss, series, batch_tokens, nodes, seconds_per_step. There
wandb_dfs/ has a file for each series (hot_100b+, fineweb_edu, fineweb_dclm, cool_end, lr_ablation_hot), and benchmarks/
nodes and seconds. They are not ours and are not committed; the fits are. Written: evidence.json to --out (draws of the
surface, what widens them, the times, the published law of transitions, and the law of the best size for a budget by the
runs of Bian et al. 2025), and the checks to --checks. `shapelaw
shape` reads the first. It takes a minute or two.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.advice.answer.costs import evidence_of
from shapelaw.advice.answer.laws import PUBLISHED, best_depth_at, read_law, transitions_content
from shapelaw.advice.evidence.checks import Checks, check
from shapelaw.advice.evidence.fit import SETS, Fitted, Losses, fit_evidence, losses_of
from shapelaw.advice.evidence.losses import COLUMNS, Floats, least_squares
from shapelaw.advice.evidence.predicted import allocation_law, predicted
from shapelaw.errors import UserError, add_subject, command_line, exit_code, reason_of
from shapelaw.fits.inputs import require_columns
from shapelaw.storage.files import replacing
from shapelaw.studies.study import REFERENCE

SOURCE = (
    "fits of the losses of Gemstones (McLeish et al. 2025, mcleish7/gemstone-scaling-laws at 5f42047, MIT licence) by "
    "shapelaw evidence; the losses themselves are not in here"
)
NAME = "Gemstones (McLeish et al. 2025)"
OTHERS = REFERENCE / "bian_morph.csv"  # runs of another lab, for the best size of a budget
OTHERS_NAME = "Bian et al. 2025"
BLOCK = "Gemma-like, V = 50,304"
CONTEXT = 2048  # tokens a window of the evidence's networks
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
    one = parser.add_mutually_exclusive_group(required=True)
    about = "the losses, a CSV; lines that begin with # are none"
    add_subject(one, "table", "--table", "TABLE", about, Path)
    add("--out", type=Path, default=REFERENCE, metavar="DIR", help=f"default: {REFERENCE.name}")
    add("--checks", type=Path, metavar="FILE", help="the checks as CSV; default: none written")
    add("--draws", type=int, default=80, help="draws of each series of losses (default: 80)")
    add("--seed", type=int, default=0, help="of the draws (default: 0)")
    arguments = parser.parse_args()
    if arguments.draws < 20:
        raise UserError(
            f"--draws is {arguments.draws}; intervals of 68% take 20 draws of each series or more."
        )
    table = _read(arguments.table)
    series, times = losses_of(table, str(arguments.table)), times_of(table, str(arguments.table))
    fitted = fit_evidence(series, arguments.draws, arguments.seed)
    law = read_law(PUBLISHED)
    checks = check(series, fitted, lambda size: best_depth_at(law, size), law.source, arguments.draws)
    content = {
        "about": SOURCE,
        "command": shlex.join(["shapelaw", "evidence", "--table", arguments.table.name]),
        "name": NAME,
        "block": BLOCK,
        **content_of(series, fitted, checks),
        "time": times,
        "law": transitions_content(law, "GPT-2, two heads, V = 2,000"),
    }
    told = predicted(pd.read_csv(OTHERS, comment="#"), evidence_of(content), OTHERS.name)
    law_of_others = allocation_law(told, OTHERS_NAME)
    content["allocation"] = [vars(law_of_others) | {"factor": float(f"{law_of_others.factor:.{DIGITS}g}")}]
    arguments.out.mkdir(parents=True, exist_ok=True)
    with replacing(arguments.out / "evidence.json") as temporary:
        temporary.write_text(as_lines(content), encoding="utf-8")
    if arguments.checks is not None:
        with replacing(arguments.checks) as temporary:
            checks.table.to_csv(temporary, index=False, float_format="%.4g")
    print(checks.table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    print(f"Log depth differs between sources by a standard deviation of {checks.spread.sources:.2f}.")


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, comment="#")
    except (OSError, ValueError) as error:
        raise UserError(f"--table {path} can't be read as a CSV ({reason_of(error)}).") from error


def content_of(series: list[Losses], fitted: Fitted, checks: Checks) -> dict[str, Any]:
    """The ranges of the evidence, what widens its draws, and the draws, group by group."""

    def span(of: str) -> list[float]:
        logs: Floats = np.concatenate([getattr(one, of) for one in series])
        return [round(float(np.exp(end))) for end in (logs.min(), logs.max())]

    set_of = {name: runs for runs, names in SETS.items() for name in names}
    return {
        "range": {name: span(of) for name, of in RANGES.items()},
        "spread": {name: round(value, 3) for name, value in vars(checks.spread).items()},
        "columns": list(COLUMNS),
        "groups": [
            {
                "series": group.losses.series,
                "set": set_of[group.losses.series],
                "form": group.form,
                "size": group.size,
                "weight": round(weight, 3),
                "left_out_error": round(group.error, 4),
                "draws": [[float(f"{value:.{DIGITS}g}") for value in row] for row in draws],
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
    names = ("work", "work_err", "depth", "depth_err", "per_log_work")
    numbers = (
        fit.values[1],
        fit.errors[1],
        fit.values[2],
        fit.errors[2],
        math.hypot(both.values[3], both.errors[3]),
    )
    values = (round(float(number), 3) for number in numbers)
    return {**dict(zip(names, values, strict=True)), "source": "Gemstones on MI250X, 8 to 64 nodes"}


def as_lines(content: dict[str, Any]) -> str:
    """JSON with a line for each list of numbers."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[^\[\]{}\"]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


if __name__ == "__main__":
    sys.exit(exit_code(main))
