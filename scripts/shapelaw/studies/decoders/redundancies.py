"""What the studies of bottlenecks share: their runs, and costs and redundancies as tables, sentences and figures.

A redundancy is ours with an interval (`fits/redundancy.py`) and stands beside a published number. `agrees` says whether
our interval overlaps that number's, or our bound lies on its side; open where ours can't tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits.inputs import RECIPE, refuse_mixed, require_columns, run_numbers, whole_or_empty
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.redundancy import Baseline, Needed, Redundancy, needed_rank
from shapelaw.report.tables import Columns, plain_rows, yes_or_no
from shapelaw.report.write import Table
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis
from shapelaw.studies.study import Published

SIZES = tuple(SIZE_COLUMNS.values())
REDUNDANCY: Columns = {
    "redundancy": "redundancy.value",
    **{name: f"redundancy.{name}" for name in ("low", "high", "p_value", "status", "significant")},
}
REDUNDANT = "redundancy"  # of workflow/reference/published.csv
COMPARED = ("quantity", "setting", "ours", "low", "high", "status", "published", "agrees")
NO_NOISE = "no noise estimate"
PANELS = (SizeAxis.BLOCK, SizeAxis.TOTAL)


def bottleneck_runs(
    table: pd.DataFrame,
    source: str,
    whole: Sequence[str],
    optional: Mapping[str, str],
    equal: Sequence[str] = (),
) -> pd.DataFrame:
    """The runs of a table with their sizes and `loss`.

    Args:
        table: one row a run.
        source: the table's name in messages.
        whole: columns of whole numbers, beside the seed.
        optional: columns of whole numbers that may be empty, and what that means: `for full rank`.
        equal: columns of which all runs have one value, beside those of text and recipe.

    Raises:
        UserError: a column is missing, a value is wrong, or runs differ where all must be equal.
    """
    require_columns(table, [*whole, "seed", *optional, "test_loss", *SIZES], source)
    runs = run_numbers(table, whole, ["test_loss", *SIZES], source)
    refuse_mixed(table, [*equal, *RECIPE], source)
    given = {name: whole_or_empty(table, name, source, empty) for name, empty in optional.items()}
    return runs.assign(loss=runs["test_loss"], **given)


def networks_table(
    networks: pd.DataFrame, names: Sequence[str], whole: Sequence[str] = (), also: Sequence[str] = SIZES
) -> pd.DataFrame:
    """One row for each network: its names, what else is asked for, and mean test loss in nats per token.

    Args:
        whole: columns of whole numbers, some of which are missing.
    """
    table = networks[[*names, *also, "loss", "loss_std", "seeds"]]
    return table.astype(dict.fromkeys(whole, "Int64")).rename(columns={"loss": "test_loss"})


def baseline_of(networks: pd.DataFrame, column: str) -> Baseline:
    """Networks without the bottleneck, by what a column has: a size or a rank."""
    return Baseline(*networks.sort_values(column)[[column, "loss", "seeds"]].to_numpy(np.float64).T)


def needed_of(networks: pd.DataFrame, rank: str, full: pd.Series, noise: Noise) -> Needed:
    """The rank that is enough, of networks that a column names the ranks of, against one of full rank."""
    rows = networks.sort_values(rank)
    reference = float(full["loss"]), float(full["seeds"])
    return needed_rank([int(one) for one in rows[rank]], rows["loss"], rows["seeds"], reference, noise)


def needed_table(needed: Mapping[Any, Needed], names: Sequence[str]) -> pd.DataFrame:
    """The least rank whose cost can't be told apart from noise, and the largest whose cost can.

    `unseen` is the least cost, in nats, that would have been significant at the rank that is enough.

    Args:
        needed: the ranks by what names them, a tuple.
        names: the columns of that name.
    """
    rows = [(*key, one.enough, one.too_small, one.unseen) for key, one in needed.items()]
    table = pd.DataFrame(rows, columns=[*names, "enough", "too_small", "unseen"])
    return table.astype({"enough": "Int64", "too_small": "Int64"})


def compared(
    theirs: Published, setting: str, numbers: Sequence[float], status: str, agrees: str, quantity: str = ""
) -> dict[str, object]:
    """A row of a comparison: ours with its interval beside what was published.

    Args:
        setting: of ours.
        numbers: ours, and the two ends of its interval.
        agrees: whether the two agree (`yes_or_no`).
        quantity: ours, where it isn't the published one.
    """
    said = (quantity or theirs.quantity, setting, *numbers, status, theirs.value, agrees)
    return dict(zip(COMPARED, said, strict=True))


def compared_redundancy(
    theirs: Published, quantity: str, setting: str, found: Redundancy
) -> dict[str, object]:
    """A row of a comparison for a redundancy."""
    numbers, agrees = (found.value, found.low, found.high), found.agrees(theirs.low, theirs.high)
    return compared(theirs, setting, numbers, found.status.value, yes_or_no(agrees), quantity)


def wasted_words(row: pd.Series) -> str:
    """`33% (29% to 36%)` of a row of a table of redundancies."""
    interval = "" if pd.isna(row["low"]) else f" ({_interval_words(row['low'], row['high'])})"
    return f"{row['redundancy']:.0%}{interval}"


def _interval_words(low: float, high: float) -> str:
    """`12% to 30%`, or `up to 25%` and `40% and more` where an end is open."""
    if math.isinf(low):
        return f"up to {high:.0%}" if high < 1 else "open on both sides"
    return f"{low:.0%} to {high:.0%}" if high < 1 else f"{low:.0%} and more"


def of_blocks(tables: Mapping[str, Table]) -> pd.DataFrame:
    """The redundancies in the blocks' parameters, of a study's tables."""
    found = tables["redundancy"].frame
    return found[(found["size_axis"] == SizeAxis.BLOCK) & found["redundancy"].notna()]


def fit_of(
    study: str, model: str, noise: Noise | None, tables: Mapping[str, Table], names: Iterable[str]
) -> dict[str, Any]:
    """The content of fit.json: how redundancies were measured, the noise, and the rows of some tables."""
    return {
        "study": study,
        "model": model,
        "status": NO_NOISE if noise is None else "measured",
        "noise": None if noise is None else noise.std,
        **{name: plain_rows(tables[name].frame) for name in names},
    }


def standard_errors(noise: Noise | None, seeds: npt.ArrayLike) -> Floats:
    """(n,) standard errors of means over numbers of runs; NaN without noise."""
    std = math.nan if noise is None else noise.std
    return np.asarray(std / np.sqrt(np.asarray(seeds, dtype=np.float64)))
