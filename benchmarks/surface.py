"""Calibration of the surface's best depths on surfaces unlike its forms, and how well it predicts what it hasn't seen.

  PYTHONPATH=scripts:tests python benchmarks/surface.py --draws 40 --first-seed 0 --out DIR [--runs FILE]

Writes held.csv (the share of 68% intervals that hold the truth, by size, surface and design), nulls.csv (the share of
tables of which it says that depth matters, where it doesn't and where it does), penalties.csv (the share of 68%
intervals that hold what a shape costs and the loss of one more run) and unseen.csv (the error of left-out shapes, of
the committed laptop runs and of FILE) to DIR and prints them. The same seeds, the same numbers. The answers that
held.csv counts are kept in answers.csv draw by draw, those of penalties.csv in costs.csv, so that a call that was
stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from draws import parser_of_draws, write_tables
from scattered_shapes import (
    NOISE,
    UNLIKE,
    Design,
    Surface,
    cornered_wall,
    draw_shapes,
    flat_valley,
    middle_depth,
    permuted,
    power_law,
    sharp_valley,
    symmetric,
    three_powers,
    true_depth,
)

from shapelaw.advice.own_runs.budgets import budgets_of
from shapelaw.advice.own_runs.rows import own_runs
from shapelaw.advice.surface.answers import ANSWERED, best_depth, new_run, penalties
from shapelaw.advice.surface.average import TOLD, chance_without_depth, fit_surface
from shapelaw.advice.surface.forms import LEAST_SHAPES, SurfaceStatus, shapes_of
from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import Noise
from shapelaw.specs.sizes import SizeAxis

LAPTOP = Path(__file__).resolve().parents[1] / "docs" / "results" / "laptop_depth_width.parquet"
BOOTSTRAP_DRAWS = 400
COUNTS = (12, 22, 40)  # of shapes
PARTS = ("depth", "width", "size", "loss", "seeds")  # of `Shapes`, for each
ASKED = (0.3, 0.5, 0.7)  # quantiles of the shapes' sizes
INSIDE = "among the shapes"
BEYOND = {"2.5 times the largest": 2.5, "4 times the largest": 4.0}
DESIGNS = {
    "12 shapes": Design(12),
    "22 shapes": Design(22),
    "40 shapes": Design(40),
    "22 at four sizes": Design(22, four_sizes=True),
    "22, 3 seeds at 4": Design(22, repeated=4),
    "22, and scatter": Design(22, repeated=4, scatter=2 * NOISE),
    "22 in two batches": Design(22, batch=2 * NOISE),
    "22, small ones noisy": Design(22, uneven=3.0),
}
FORMS: Mapping[str, Surface] = {"symmetric (a form)": symmetric, "one wall, cornered (a form)": cornered_wall}
SURFACES: Mapping[str, Surface] = {**UNLIKE, **FORMS}
VALLEY = "flat valley"
PRICED: Mapping[str, Surface] = {**SURFACES, "sharp valley": sharp_valley, VALLEY: flat_valley}


def no_depth(x, z):
    """A loss that depth doesn't change."""
    return power_law(x)


def noise_of(design: Design, losses: np.ndarray) -> Noise | None:
    """The seed noise that the repeated shapes of a draw measure."""
    if not design.repeated:
        return None
    variance = np.var(losses[: design.repeated], axis=1, ddof=1).mean()
    return Noise(float(np.sqrt(variance)), 2.0 * design.repeated)


def _drawn(seeds: range, kept: Path, rows_of: Callable[[int], list[dict[str, object]]]) -> pd.DataFrame:
    """The rows of each draw, each written into the file `kept` when done; draws that are there are taken from it."""
    told = pd.read_csv(kept) if kept.exists() else pd.DataFrame({"draw": np.array([], dtype=np.int64)})
    for seed in seeds:
        if seed not in set(told["draw"]):
            told = pd.concat([told, pd.DataFrame(rows_of(seed))], ignore_index=True)
            told.to_csv(kept, index=False)
    return told[told["draw"].isin(seeds)]


def _asked_of_one(surface_name: str, design_name: str, seed: int) -> list[dict[str, object]]:
    truth, design = SURFACES[surface_name], DESIGNS[design_name]
    shapes, losses = draw_shapes(truth, design, seed)
    surface = fit_surface(shapes, noise_of(design, losses), draws=BOOTSTRAP_DRAWS, seed=seed)
    rows = []
    case = {"surface": surface_name, "design": design_name, "shapes": design.count, "draw": seed}
    asked = [(INSIDE, x) for x in np.quantile(shapes.x, ASKED)]
    asked += [(size, float(shapes.x.max()) + np.log(factor)) for size, factor in BEYOND.items()]
    for size, x in asked:
        found = best_depth(surface, float(np.exp(x)))
        told = {"depth": found.depth, "low": found.low, "high": found.high, "status": found.status.value}
        rows.append({"size": size, **case, "true": true_depth(truth, x), **told})
    return rows


def held(seeds: range, kept: Path) -> list[dict[str, object]]:
    """A row a size, surface and design, and one over all surfaces unlike the forms: how often they hold the truth.

    `held` is the share of converged or extrapolated intervals with the truth inside, `error` its standard error (the
    sizes of one draw share their noise), `bias` and `half_width` are in log depth; `bounds_held` is the share of bounds
    that the truth keeps to, of which 84% are promised.
    """
    cases = [(surface, design) for design in DESIGNS for surface in SURFACES]
    told = _drawn(seeds, kept, lambda seed: [row for case in cases for row in _asked_of_one(*case, seed)])
    told = told.assign(drawn=told["surface"] + " " + told["draw"].astype(str))  # what shares its noise
    unlike = told[~told["surface"].isin(list(FORMS))].assign(surface="all unlike the forms")
    keys = ["size", "design", "surface"]
    return [
        dict(zip(keys, key, strict=True)) | {"shapes": some["shapes"].iloc[0]} | _shares(some)
        for key, some in pd.concat([told, unlike]).groupby(keys, sort=False)
    ]


def _shares(some: pd.DataFrame) -> dict[str, float]:
    converged = some["status"].isin([status.value for status in ANSWERED])
    bound = some["status"].isin([SurfaceStatus.DEEPER.value, SurfaceStatus.SHALLOWER.value])
    kept = ~(some["true"] < some["low"]) & ~(some["true"] > some["high"])  # a bound has one side only
    told = some[converged]
    share = kept[converged].mean()
    off = (kept[converged] - share).groupby(told["drawn"]).sum()
    return {
        "draws": some["draw"].nunique(),
        "asked": len(some),
        "converged": converged.mean(),
        "held": share,
        "error": float(np.sqrt((off**2).sum())) / max(len(told), 1),
        "bias": np.log(told["depth"] / told["true"]).mean(),
        "half_width": (np.log(told["high"] / told["low"]) / 2).median(),
        "bounds": int(bound.sum()),
        "bounds_held": kept[bound].mean(),
    }


def costs_held(seeds: range, kept: Path) -> pd.DataFrame:
    """A row a surface and number of shapes: how often 68% intervals hold costs and new runs; one over all but the last.

    Only shapes of sizes whose best depth is told count.
    """
    cases = [(count, name) for count in COUNTS for name in PRICED]
    told = _drawn(seeds, kept, lambda seed: [row for case in cases for row in _costs_of_one(*case, seed)])
    others = told[told["surface"] != VALLEY].assign(surface=f"all but the {VALLEY}")
    shares = pd.concat([told, others]).groupby(["shapes", "surface"], sort=False)
    parts = {name: shares[name].mean() for name in ("told", "penalty held", "new run held")}
    return pd.DataFrame({"draws": shares["draw"].nunique(), **parts}).reset_index()


def _costs_of_one(count: int, name: str, seed: int) -> list[dict[str, object]]:
    """A row a shape: whether the intervals of its penalty (NaN where none is told) and of a new run's loss held."""
    truth = PRICED[name]
    shapes, _ = draw_shapes(truth, Design(count), seed)
    surface = fit_surface(shapes, None, draws=BOOTSTRAP_DRAWS, seed=seed)
    case: dict[str, object] = {"shapes": count, "surface": name, "draw": seed}
    if not surface.told:
        return [{**case, "told": 0.0, "penalty held": np.nan, "new run held": np.nan}]
    rng, rows = np.random.default_rng([seed, 1]), []
    for x, z, cost in zip(shapes.x, shapes.z, penalties(surface), strict=True):
        own, best = truth(np.array([x]), np.array([z]))[0], np.log(true_depth(truth, x))
        true = own - truth(np.array([x]), np.array([best]))[0]
        told = cost.status is SurfaceStatus.CONVERGED
        at = middle_depth(x) + rng.uniform(-0.8, 0.8)
        loss = truth(np.array([x]), np.array([at]))[0] + NOISE * rng.standard_normal()
        _, low, high = new_run(surface, float(np.exp(x)), float(np.exp(at)))
        held = float(cost.low <= true + 1e-6 and true <= cost.high) if told else np.nan
        rows.append(
            {**case, "told": float(told), "penalty held": held, "new run held": float(low <= loss <= high)}
        )
    return rows


def _null(truth: Surface, design: Callable[[int], Design], count: int, seed: int) -> float:
    """The chance that depth does nothing to the losses of a draw, by its own noise."""
    shapes, losses = draw_shapes(truth, design(count), seed)
    return chance_without_depth(shapes, noise_of(design(count), losses))


def _permuted(truth: Surface, count: int, seed: int) -> float:
    return chance_without_depth(permuted(draw_shapes(truth, Design(count), seed)[0], seed), None)


NULL: Mapping[str, Callable[[int, int], float]] = {
    "no depth is better": partial(_null, no_depth, Design),
    "no depth is better, 3 seeds at 4": partial(_null, no_depth, partial(Design, repeated=4)),
    "no depth is better, small ones noisy": partial(_null, no_depth, partial(Design, uneven=3.0)),
    "penalty below the noise (it matters)": partial(_null, symmetric, partial(Design, noise=0.02)),
    "permuted depths, three power laws": partial(_permuted, three_powers),
    "permuted depths, symmetric": partial(_permuted, symmetric),
}


def nulls(seeds: range) -> list[dict[str, object]]:
    """A row a kind of table, with the share of those of 12, 22 and 40 shapes of which it says that depth matters."""
    rows = []
    for name, chance_of_draw in NULL.items():
        shares = {
            f"{count} shapes": np.mean([chance_of_draw(count, seed) < TOLD for seed in seeds])
            for count in COUNTS
        }
        rows.append({"tables": name, "draws": len(seeds), **shares})
    return rows


def unseen(path: Path) -> list[dict[str, object]]:
    """A row a budget of a table: the root mean square error, in nats, of a shape by a surface through the others."""
    rows: list[dict[str, object]] = []
    for budget in budgets_of(own_runs(read_table(path), str(path)).table, str(path), least=LEAST_SHAPES):
        shapes, errors = shapes_of(budget.runs, SizeAxis.BLOCK), []
        everything = np.arange(len(shapes))
        for index in everything:
            others = {name: getattr(shapes, name)[everything != index] for name in PARTS}
            surface = fit_surface(replace(shapes, **others), None, draws=100)
            errors.append(surface.fitted(shapes.x[[index]], shapes.z[[index]])[0] - shapes.loss[index])
        error = np.sqrt(np.mean(np.square(errors)))
        rows.append({"runs": path.stem, "unseen": "one shape", "shapes": len(shapes), "error": error})
    return rows


def main() -> None:
    """Run everything, write the tables and print them."""
    parser = parser_of_draws(__doc__, 40, ("unseen", "penalties", "nulls", "held"))
    parser.add_argument("--runs", type=Path, metavar="FILE", help="runs of your own, for unseen.csv")
    arguments = parser.parse_args()
    paths = [LAPTOP] + ([arguments.runs] if arguments.runs else [])
    tables: dict[str, Callable[[range], pd.DataFrame | list[dict[str, object]]]] = {
        "unseen": lambda _: [row for path in paths for row in unseen(path)],
        "penalties": lambda seeds: costs_held(seeds, arguments.out / "costs.csv"),
        "nulls": nulls,
        "held": lambda seeds: held(seeds, arguments.out / "answers.csv"),
    }
    write_tables(tables, arguments)


if __name__ == "__main__":
    main()
