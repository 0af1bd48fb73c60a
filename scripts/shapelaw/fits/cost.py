"""The constants of the cost model from the times of finished runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares, nnls  # type: ignore[import-untyped]

from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, require_columns
from shapelaw.specs.cost import TERMS, CostModel, step_counts
from shapelaw.specs.making import make_shape

Array = npt.NDArray[np.float64]
COLUMNS = (
    *("depth", "width", "heads", "vocab_size", "context_length"),
    *("batch_size", "steps", "tokens_per_second"),
)
OPTIONAL = ("attention_dim", "embedding_rank", "positional_rank", "attention_degree", "ff_width")
SOFT = 0.3  # relative error beyond which a run weighs less: another user of the machine makes runs slower, never faster


@dataclass(frozen=True)
class CostFit:
    """A cost model and how well it predicts times.

    Attributes:
        model: fitted to all runs.
        runs: the runs that it was fitted to, one row each: `depth, width, ..., seconds` measured, `predicted` by the
            model, and `left_out`, predicted by a model fitted without the runs of that shape.
        errors: `runs`, their number; `measured_hours`, of all; `total_ratio`, the `left_out` predictions of all over
            these; `typical_error` and `worst_error`, the median and the largest |left_out / measured - 1|.
    """

    model: CostModel
    runs: pd.DataFrame
    errors: dict[str, float]


def fit_cost(table: pd.DataFrame, source: str) -> CostFit:
    """Fit the four constants, all at least zero, to the seconds of steps.

    Minimises the sum of soft_l1 losses of log(predicted / measured), starting from the exact least squares of predicted
    / measured: every run counts by its relative error, and a run that another user slowed down counts less.

    Args:
        table: one row per finished run, as in `runs.parquet`; unfinished runs (no tokens_per_second) are skipped.
        source: the table's name in messages.

    Raises:
        UserError: a column is missing, a number is wrong, or there are too few shapes.
    """
    runs = _checked(table, source)
    counts = np.array(
        [step_counts(*each) for each in zip(runs["shape"], runs["batch_size"].astype(int), strict=True)]
    )
    seconds = runs["step_seconds"].to_numpy()
    shapes = runs.groupby(["shape", "batch_size"], sort=False).ngroup().to_numpy()
    if len(np.unique(shapes)) <= len(TERMS):
        raise UserError(
            f"{source} has runs of {len(np.unique(shapes))} shapes; the fit of {len(TERMS)} constants needs at least "
            f"{len(TERMS) + 1}: give it more of the grid."
        )
    constants = _constants(counts, seconds)
    left_out = np.empty_like(seconds)
    for shape in np.unique(shapes):
        out = shapes == shape
        left_out[out] = counts[out] @ _constants(counts[~out], seconds[~out])
    extra = max(0.0, float(np.nanmedian(runs["extra_seconds"]))) if "extra_seconds" in runs else 0.0
    log_errors = np.log(seconds / left_out)
    overhead, per_layer, per_number, per_flop = constants.tolist()
    factor = float(np.exp(np.sqrt(np.mean(log_errors**2))))
    model = CostModel(overhead, per_layer, per_number, per_flop, extra, factor)
    steps = runs["steps"].to_numpy()
    runs = runs.drop(columns=["shape", "step_seconds"]).assign(
        seconds=steps * seconds, predicted=steps * (counts @ constants), left_out=steps * left_out
    )
    relative, measured = np.abs(left_out / seconds - 1), float(runs["seconds"].sum())
    errors = {
        "runs": len(runs),
        "measured_hours": measured / 3600,
        "total_ratio": float(runs["left_out"].sum()) / measured,
        "typical_error": float(np.median(relative)),
        "worst_error": float(relative.max()),
    }
    return CostFit(model, runs, errors)


def _constants(counts: Array, seconds: Array) -> Array:
    """The four constants, [4], from counts [n, 4] and seconds [n]."""
    unit = counts.mean(0) / seconds.mean()
    relative = counts / unit / seconds[:, None]
    start, _ = nnls(relative, np.ones(len(seconds)))
    found = least_squares(
        lambda x: np.log(np.maximum(relative @ x, 1e-12)),
        np.maximum(start, 1e-6),
        bounds=(0, np.inf),
        loss="soft_l1",
        f_scale=SOFT,
        x_scale=np.maximum(start, 1e-3),
        xtol=1e-12,
        ftol=1e-12,
    )
    return np.asarray(np.where(found.x < 1e-9, 0.0, found.x) / unit)


def _checked(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The numbers, the shape and the seconds of a step of each run.

    Raises:
        UserError: as in `fit_cost`.
    """
    require_columns(table, COLUMNS, source)
    table = table[table["tokens_per_second"].notna()].reset_index(drop=True)
    if table.empty:
        raise UserError(f"{source} has no finished run: tokens_per_second is empty in every row.")
    runs = numbers_of(table, COLUMNS, source, positive=COLUMNS, whole=COLUMNS[:-1]).astype("float64")
    options = [name for name in OPTIONAL if name in table]
    shapes = []
    for row in range(len(runs)):
        values: dict[str, Any] = {name: int(runs[name][row]) for name in COLUMNS[:5]}
        values |= {name: int(table[name][row]) for name in options if pd.notna(table[name][row])}
        try:
            shapes.append(make_shape(**values, redundant_rank=True))
        except ValueError as error:
            raise UserError(f"{source}, row {row + 1}: {error}.") from error
    tokens = runs["batch_size"] * runs["context_length"]
    runs = runs.assign(shape=pd.Series(shapes, dtype=object), step_seconds=tokens / runs["tokens_per_second"])
    if "wall_seconds" in table:
        wall = pd.to_numeric(table["wall_seconds"], errors="coerce")
        runs["extra_seconds"] = wall - runs["steps"] * runs["step_seconds"]
    return runs
