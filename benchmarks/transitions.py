"""Calibration of the transition estimators on 22 hostile surfaces that cross, 7 that don't, and grids like scale gpu's.

And on surfaces whose noise falls, rises and stays by a factor of six over the sizes, with one number of noise and with
noise by width; on tables of five depths, whose gaps are drawn, with scatter, outliers and batches; and on the shapes
of docs/results/h200_llama.csv, with transitions on a line, a root or a power of the depth, and with offsets of depths.

  PYTHONPATH=scripts:tests python benchmarks/transitions.py --draws 200 --out DIR
  PYTHONPATH=scripts:tests python benchmarks/transitions.py --draws 100 --first-seed 4000 --only tables --out DIR

Writes a table for each name of --only to DIR and prints it. The same seeds, the same numbers. `held`: the share of
reported intervals that hold the truth (68% wanted of the bootstrap; the rule's bracket promises nothing); `bias`, `rms`
and `err` (the median error that is reported) are of the log width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from draws import parser_of_draws, write_tables
from loss_surfaces import BY_SIZE, CROSSING, NOISE, WITHOUT, Surface, draw_runs, simulate

from shapelaw.fits.crossing import BOOTSTRAP, bootstrap_crossing
from shapelaw.fits.curves import (
    TransitionStatus,
    adjacent_pairs,
    loss_curves,
    paper_rule,
)
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.noise import SIGNIFICANT, pooled_noise
from shapelaw.studies.transitions.analysis import Options, analyse_runs, fit_transitions

GPU = Path(__file__).resolve().parents[1] / "workflow" / "scales" / "gpu.yaml"
FORM_DRAWS = 2000
BOOTSTRAP_DRAWS = 5000  # a quarter of what the workflow takes, so that more stays undecided here
PUBLISHED = (5.0397, 0.0555)
# scale gpu as it was: without these widths
ADDED = {8: 512, 16: 352}

# no status of two curves that cross once; of equal ones neither is a crossing
WRONG = {
    TransitionStatus.SEVERAL,
    TransitionStatus.REVERSED,
    TransitionStatus.DEEPER_BETTER,
    TransitionStatus.SHALLOWER_BETTER,
}


@dataclass(frozen=True)
class Tables:
    """Tables of five depths, in units of `NOISE`.

    Attributes:
        count: sizes of each depth.
        scatter: standard deviation of what a shape adds that no seed shows.
        outlier: what the run nearest to the crossing with depth 2, and with depth 8, is off by; these alone count.
        drift: amplitude of a smooth wave of each depth.
        second: whether a depth's size (by its place) was trained in a second batch, which is 3 off.
    """

    name: str
    count: int = 10
    scatter: float = 0.0
    outlier: float = 0.0
    drift: float = 0.0
    second: Callable[[int, int], bool] | None = None


OF_TABLES = (
    Tables("smooth, 6 sizes", count=6),
    Tables("smooth, 10 sizes"),
    Tables("smooth, 15 sizes", count=15),
    Tables("one run 7 sigma off", outlier=7.0),
    Tables("scatter as large as the noise", scatter=1.0),
    Tables("scatter twice the noise", scatter=2.0),
    Tables("smooth drift", drift=2.0),
    Tables(
        "every other size of two depths in another batch", second=lambda d, at: d in (2, 8) and at % 2 == 1
    ),
    Tables("large sizes of two depths in another batch", second=lambda d, at: d in (2, 8) and at > 5),
    Tables("two whole depths in another batch", second=lambda d, at: d in (2, 8)),
)
OF_FIVE, SIZES = (1, 2, 4, 8, 16), (2e4, 1e6)
OFF = (1, 4)  # depths whose successor has a run that is off, of tables with such runs


def table_of(kind: Tables, number: int) -> tuple[pd.DataFrame, dict[int, float]]:
    """The runs of a table, and by depth the width of its transition to the next one.

    Each depth is the one before plus a gap that crosses zero once: straight, saturating, or one of powers.
    """
    rng = np.random.default_rng([number, sum(map(ord, kind.name))])
    low, high = np.log(SIZES)
    widths = {
        depth: [
            max(4, 2 * round(float(np.sqrt(size / (12 * depth))) / 2))
            for size in np.geomspace(*SIZES, kind.count)
        ]
        for depth in OF_FIVE
    }
    power, curved = rng.uniform(0.08, 0.3), rng.uniform(-0.004, 0.004)
    at = {depth: rng.uniform(0.7 * low + 0.3 * high, 0.3 * low + 0.7 * high) for depth in OF_FIVE[:-1]}
    gaps = []
    for depth in at:
        slope, rate = NOISE * rng.uniform(5.0, 14.0), rng.uniform(0.4, 1.2)
        shape = (
            np.asarray,
            lambda v, r=rate: np.tanh(r * v) / r,
            lambda v, r=rate: -np.expm1(-r * v / 2) * 2 / r,
        )
        gaps.append((at[depth], slope, shape[rng.integers(3)]))
    frames = []
    for order, (depth, row) in enumerate(widths.items()):
        x = np.log(12.0 * depth * np.array(row, dtype=float) ** 2)
        mean = 1.8 + 1.2 * np.exp(-power * (x - low)) + curved * (x - low) ** 2
        mean -= sum(
            (slope * shape(x - middle) for middle, slope, shape in gaps[:order]), start=np.zeros_like(x)
        )
        mean += NOISE * kind.scatter * rng.standard_normal(len(x))
        mean += NOISE * kind.drift * np.sin(2 * np.pi * ((x - low) / 3 + rng.uniform()))
        second = np.array(
            [kind.second is not None and kind.second(depth, place) for place in range(len(row))]
        )
        for seed in range(3):
            there = np.isin(np.arange(len(row)), (1, len(row) - 2)) | (seed == 0)
            loss = mean + NOISE * (rng.standard_normal(len(x)) + 3.0 * second)
            batch = np.where(second, "second", "first")
            frames.append(
                pd.DataFrame({"depth": depth, "width": row, "seed": seed, "loss": loss, "batch": batch})[
                    there
                ]
            )
    runs = pd.concat(frames, ignore_index=True)
    for depth in OFF if kind.outlier else ():
        row = np.array(widths[2 * depth])
        width = row[np.abs(np.log(24.0 * depth * row**2.0) - at[depth]).argmin()]
        off = (runs["depth"] == 2 * depth) & (runs["width"] == width) & (runs["seed"] == 0)
        runs.loc[off, "loss"] += NOISE * kind.outlier * rng.choice([-1.0, 1.0])
    true = {depth: float(np.exp((x - np.log(12.0 * depth)) / 2)) for depth, x in at.items()}
    return runs.drop_duplicates(["depth", "width", "seed"], ignore_index=True), true


def crossings(found: pd.DataFrame) -> pd.DataFrame:
    """The crossings among transitions whose width is `true`: whether and how well each tells it."""
    found = found[found["status"] == TransitionStatus.CROSSING]
    return found.assign(
        held=found["true"].between(found["width_low"], found["width_high"]),
        off=np.log(found["width"] / found["true"]),
        err=found["width_err"] / found["width"],
        doubted=found["caution"] != "",
    )


def quality(crossed: pd.DataFrame) -> dict[str, float]:
    """How good some `crossings` are."""
    return {
        "held": crossed["held"].mean(),
        "bias": crossed["off"].mean(),
        "rms": np.sqrt((crossed["off"] ** 2).mean()),
        "err": crossed["err"].median(),
        "doubted": crossed["doubted"].mean(),
    }


def of_tables(kind: Tables, numbers: range) -> dict[str, object]:
    """A row: how good the reported crossings of these tables are, and how many have a caution."""
    rows = []
    for number in numbers:
        runs, true = table_of(kind, number)
        for row in analyse_runs(runs, Options(draws=BOOTSTRAP_DRAWS, seed=number)).bootstrap_rows:
            if row["depth"] in OFF or not kind.outlier:
                rows.append({**row, "true": true[row["depth"]]})
    crossed = crossings(pd.DataFrame(rows))
    reported = {"crossings": len(crossed), "reported": len(crossed) / len(rows)}
    return {"tables": kind.name, **reported, **quality(crossed)}


CARD = Path(__file__).resolve().parents[1] / "docs" / "results" / "h200_llama.csv"
CARD_NOISE = 0.005
# gains of each depth over the one before, whose gaps cross zero as steeply as the card's
GAINS = {1: 0.09, 2: 0.063, 4: 0.047, 8: 0.052, 16: 0.06}
# log widths of the transitions by the fits to the card's
TRUTHS: dict[str, Callable[[float], float]] = {
    "line": lambda depth: 3.301 + 0.1024 * depth,
    "root": lambda depth: 2.990 + 0.394 * math.sqrt(depth),
    "power law": lambda depth: 3.365 + 0.337 * math.log(depth),
}
OURS = 0.0065  # the chance of the card's transitions on a line


def of_forms(truth: str, offset: float, numbers: range) -> dict[str, object]:
    """A row: how often forms are rejected and preferred on the card's shapes, each depth off by a normal `offset`."""
    runs = check_runs(pd.read_csv(CARD), str(CARD))[["depth", "width", "seed", "block_params"]]
    size = runs["block_params"].to_numpy(dtype=float)
    expected = 1.8 + 1.5 * (size / 1e6) ** -0.12
    blocks = {
        depth: runs[runs["depth"] == depth].drop_duplicates("width").sort_values("width") for depth in GAINS
    }
    for depth, gain in GAINS.items():
        there, width = blocks[depth], math.exp(TRUTHS[truth](depth))
        tie = width**2 * float((there["block_params"] / there["width"] ** 2).mean())
        expected -= np.where(runs["depth"] > depth, gain * (1.0 - np.sqrt(tie / size)), 0.0)
    found = []
    for number in numbers:
        rng = np.random.default_rng([number, sum(map(ord, truth))])
        off = {depth: offset * rng.standard_normal() for depth in (*GAINS, 32)}
        loss = expected + runs["depth"].map(off) + CARD_NOISE * rng.standard_normal(len(runs))
        analysis = analyse_runs(runs.assign(loss=loss), Options(draws=FORM_DRAWS, seed=number))
        if analysis.forms:
            chance = {form.name: form.p_value for form in analysis.forms}
            weight = {form.name: form.weight for form in analysis.forms}
            crossed = analysis.transitions.query("status == 'crossing' and method == @BOOTSTRAP")
            found.append((chance["line"], chance["power law"], weight["power law"], len(crossed)))
    line, power, preferred, crossed = np.array(found).T
    return {
        "truth": truth,
        "offset, nats": offset,
        "tables": len(found),
        "crossings": crossed.mean(),
        "line rejected at 5%": np.mean(line < SIGNIFICANT),
        "line as unlikely as ours": np.mean(line <= OURS),
        "power rejected at 5%": np.mean(power < SIGNIFICANT),
        "power preferred": np.mean(preferred > 0.5),
    }


def experiments(surface: Surface, numbers: range, *, by_width: bool = True) -> pd.DataFrame:
    """Each method's transitions on draws of a surface, with the `true` width."""
    rows = []
    for number in numbers:
        runs, true_width = draw_runs(surface, number)
        noise = pooled_noise(runs, by_width=by_width)
        shallow, deep = loss_curves(runs, noise).values()
        ours, _ = bootstrap_crossing(shallow, deep, noise, draws=BOOTSTRAP_DRAWS, seed=number)
        rows += [{**asdict(one), "true": true_width} for one in (ours, paper_rule(shallow, deep, noise))]
    return pd.DataFrame(rows)


def calibration(surface: Surface, numbers: range) -> list[dict[str, object]]:
    """A row per method: how often a crossing is reported, and how good those are."""
    rows = []
    for method, found in experiments(surface, numbers).groupby("method"):
        crossed = crossings(found)
        undecided = (found["status"] == TransitionStatus.UNDECIDED).mean()
        shares = {"reported": len(crossed) / len(numbers), "undecided": undecided}
        rows.append({"surface": surface.name, "method": method, **shares, **quality(crossed)})
    return rows


def statuses(surface: Surface, numbers: range) -> list[dict[str, object]]:
    """A row per method: the share of each status where there is no crossing, or not one."""
    return [
        {"surface": surface.name, "method": method, **(found.value_counts(sort=False) / len(numbers))}
        for method, found in experiments(surface, numbers).astype({"status": str}).groupby("method")["status"]
    ]


def noise_rows(surface: Surface, numbers: range) -> list[dict[str, object]]:
    """A row for one number of noise and one for noise by width: the bootstrap's intervals, and wrong statuses of both.

    `held small` and `held large` are of the crossings below and above the middle of the true widths.
    """
    rows = []
    middle = math.sqrt(math.prod(surface.between))
    bad = WRONG if surface.crosses else WRONG | {TransitionStatus.CROSSING}
    for by_width in (False, True):
        found = experiments(surface, numbers, by_width=by_width)
        wrong = found["status"].isin(bad).groupby(found["method"]).mean()
        row = {"surface": surface.name, "noise": "by width" if by_width else "one number"}
        row |= {f"{method}: wrong": share for method, share in wrong.items()}
        if surface.crosses:
            crossed = crossings(found[found["method"] == BOOTSTRAP])
            small, of_all = crossed["true"] < middle, quality(crossed)
            row |= {
                "reported": len(crossed) / len(numbers),
                "held": of_all["held"],
                "held small": crossed.loc[small, "held"].mean(),
                "held large": crossed.loc[~small, "held"].mean(),
                "rms": of_all["rms"],
                "err": of_all["err"],
            }
        rows.append(row)
    return rows


def _gpu_grid() -> dict[str, Any]:
    return dict(yaml.safe_load(GPU.read_text())["grids"]["depth_width"])


def line(
    name: str, widths: dict[int, list[int]], truth: tuple[float, float], numbers: range
) -> list[dict[str, object]]:
    """Rows of the fitted slope with and without limits, for runs on a grid whose transitions follow `truth` (a, b)."""
    a, b = truth
    repeated = _gpu_grid()["repeated"]
    slopes: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    last_crosses = 0
    for number in numbers:
        runs = simulate(widths, {d: float(np.exp(a + b * d)) for d in widths}, seed=number, repeated=range(9))
        shapes = runs[["depth", "width"]].itertuples(index=False)
        often = np.array([width in repeated.get(depth, []) for depth, width in shapes])
        runs = runs[(runs["seed"] == 0) | often].rename(columns={"test_loss": "loss"})
        noise = pooled_noise(runs)
        pairs = adjacent_pairs(loss_curves(runs, noise))
        found = [bootstrap_crossing(*pair, noise, draws=BOOTSTRAP_DRAWS, seed=number)[0] for pair in pairs]
        last_crosses += found[-1].status is TransitionStatus.CROSSING
        table = pd.DataFrame([asdict(one) for one in found])
        for limits, kept in slopes.items():
            fit = fit_transitions(table, BOOTSTRAP, limits=limits)
            if fit.usable:
                kept.append((fit.b - b, fit.b_err, fit.p_value))
    rows = []
    for limits, kept in slopes.items():
        off, err, chance = np.array(kept).T
        rows.append(
            {
                "grid": name,
                "truth": f"{a:.2f} + {b:.4f} L",
                "limits": limits,
                "fits": len(kept) / len(numbers),
                "last pair crosses": last_crosses / len(numbers),
                "bias of b": off.mean(),
                "rms of b": np.sqrt((off**2).mean()),
                "err of b": err.mean(),
                "held": np.mean(np.abs(off) < err),
                "rejected at 5%": np.mean(chance < SIGNIFICANT),
            }
        )
    return rows


def lines(numbers: range) -> list[dict[str, object]]:
    """The rows of both grids on two truths: the published law, and one 17% above it."""
    now = {depth: list(row) for depth, row in _gpu_grid()["widths"].items()}
    before = {depth: [w for w in row if w != ADDED.get(depth)] for depth, row in now.items()}
    return [
        row
        for truth in (PUBLISHED, (PUBLISHED[0] + 0.16, PUBLISHED[1]))
        for name, grid in (("gpu before", before), ("gpu", now))
        for row in line(name, grid, truth, numbers)
    ]


def tables(numbers: range) -> list[dict[str, object]]:
    """A row for each kind of tables, with twice as many where half of the transitions count."""
    more = range(numbers.start, numbers.stop + len(numbers))
    return [of_tables(kind, more if kind.outlier else numbers) for kind in OF_TABLES]


TABLES: dict[str, Callable[[range], list[dict[str, object]]]] = {
    "noise": lambda numbers: [row for surface in BY_SIZE for row in noise_rows(surface, numbers)],
    "surfaces": lambda numbers: [row for surface in CROSSING for row in calibration(surface, numbers)],
    "without": lambda numbers: [row for surface in WITHOUT for row in statuses(surface, numbers)],
    "lines": lines,
    "tables": tables,
    "forms": lambda numbers: [
        of_forms(truth, offset, numbers) for truth in TRUTHS for offset in (0.0, 0.0025)
    ],
}


def main() -> None:
    """Run everything, write the tables and print them."""
    write_tables(TABLES, parser_of_draws(__doc__, 200, TABLES).parse_args())


if __name__ == "__main__":
    main()
