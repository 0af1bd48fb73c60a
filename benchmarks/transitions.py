"""Calibration of the transition estimators on 22 hostile surfaces that cross, 7 that don't, and grids like scale gpu's.

And on surfaces whose noise falls, rises and stays by a factor of six over the sizes, with one number of noise and with
noise by width.

  PYTHONPATH=scripts:tests python benchmarks/transitions.py --draws 200 --out DIR

Writes noise.csv, rankings.csv, surfaces.csv, without.csv and lines.csv to DIR and prints them. The same seeds, the same
numbers. `held`: the share of reported intervals that hold the truth (68% wanted of the bootstrap; the rule's bracket
promises nothing); `bias`, `rms` and `err` (the median error that is reported) are of the log width.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from hostile_surfaces import BY_SIZE, CROSSING, WITHOUT, Surface, draw_runs
from loss_surfaces import NOISE, grid_of, ladder, loss, simulate
from machine import machine

from shapelaw.errors import command_line
from shapelaw.fits.crossing import BOOTSTRAP, PAPER_RULE, bootstrap_crossing, paper_rule
from shapelaw.fits.curves import Transition, TransitionStatus, adjacent_pairs, loss_curves
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.studies.transitions.analysis import fit_transitions
from shapelaw.studies.transitions.tables import rank_depths

GPU = Path(__file__).resolve().parents[1] / "workflow" / "scales" / "gpu.yaml"
BOOTSTRAP_DRAWS = 5000  # a quarter of what the workflow takes, so that more stays undecided here
PUBLISHED = (5.0397, 0.0555)
RANKED = {6: 214.0, 12: 308.0, 18: 436.0}  # transition widths between depths 6, 12, 18 and 24
# scale gpu as it was: without these widths
ADDED = {8: 512, 16: 352}

# no status of two curves that cross once; of equal ones neither is a crossing
WRONG = {
    TransitionStatus.SEVERAL,
    TransitionStatus.REVERSED,
    TransitionStatus.DEEPER_BETTER,
    TransitionStatus.SHALLOWER_BETTER,
}

Found = dict[str, list[tuple[Transition, float]]]


def experiments(surface: Surface, draws: int, *, by_width: bool = True) -> Found:
    """Each method's transitions on that many draws of a surface, with the true width."""
    found: Found = {BOOTSTRAP: [], PAPER_RULE: []}
    for number in range(draws):
        runs, true_width = draw_runs(surface, number)
        noise = pooled_noise(runs, by_width=by_width)
        shallow, deep = loss_curves(runs, noise).values()
        ours, _ = bootstrap_crossing(shallow, deep, noise, draws=BOOTSTRAP_DRAWS, seed=number)
        found[BOOTSTRAP].append((ours, true_width))
        found[PAPER_RULE].append((paper_rule(shallow, deep, noise), true_width))
    return found


def calibration(surface: Surface, draws: int) -> list[dict[str, object]]:
    """A row per method: how often a crossing is reported, and how good those are."""
    rows = []
    for method, found in experiments(surface, draws).items():
        crossed = [(one, width) for one, width in found if one.status is TransitionStatus.CROSSING]
        off = np.array([np.log(one.width / width) for one, width in crossed])
        rows.append(
            {
                "surface": surface.name,
                "method": method,
                "reported": len(crossed) / draws,
                "undecided": np.mean([one.status is TransitionStatus.UNDECIDED for one, _ in found]),
                "held": np.mean([one.width_low <= width <= one.width_high for one, width in crossed]),
                "bias": off.mean(),
                "rms": np.sqrt((off**2).mean()),
                "err": np.median([one.width_err / one.width for one, _ in crossed]),
                "doubted": np.mean([bool(one.caution) for one, _ in crossed]),
            }
        )
    return rows


def statuses(surface: Surface, draws: int) -> list[dict[str, object]]:
    """A row per method: the share of each status where there is no crossing, or not one."""
    return [
        {"surface": surface.name, "method": method}
        | {str(status): count / draws for status, count in Counter(one.status for one, _ in found).items()}
        for method, found in experiments(surface, draws).items()
    ]


def noise_rows(surface: Surface, draws: int) -> list[dict[str, object]]:
    """A row for one number of noise and one for noise by width: the bootstrap's intervals, and wrong statuses of both.

    `held small` and `held large` are of the crossings below and above the middle of the true widths.
    """
    rows = []
    middle = math.sqrt(math.prod(surface.between))
    for by_width in (False, True):
        found = experiments(surface, draws, by_width=by_width)
        crossed = [(one, w) for one, w in found[BOOTSTRAP] if one.status is TransitionStatus.CROSSING]
        true = np.array([width for _, width in crossed])
        held = pd.Series([one.width_low <= width <= one.width_high for one, width in crossed], dtype=float)
        off = pd.Series([np.log(one.width / width) for one, width in crossed], dtype=float)
        bad = WRONG if surface.crosses else WRONG | {TransitionStatus.CROSSING}
        row = {"surface": surface.name, "noise": "by width" if by_width else "one number"}
        row |= {f"{method}: wrong": np.mean([t.status in bad for t, _ in found[method]]) for method in found}
        if surface.crosses:
            row |= {
                "reported": len(crossed) / draws,
                "held": held.mean(),
                "held small": held[true < middle].mean(),
                "held large": held[true >= middle].mean(),
                "rms": np.sqrt((off**2).mean()),
                "err": pd.Series([one.width_err / one.width for one, _ in crossed], dtype=float).median(),
            }
        rows.append(row)
    return rows


def _gpu_grid() -> dict[str, Any]:
    return dict(yaml.safe_load(GPU.read_text())["grids"]["depth_width"])


def line(
    name: str, widths: dict[int, list[int]], truth: tuple[float, float], draws: int
) -> list[dict[str, object]]:
    """Rows of the fitted slope with and without limits, for runs on a grid whose transitions follow `truth` (a, b)."""
    a, b = truth
    repeated = _gpu_grid()["repeated"]
    slopes: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    last: Counter[str] = Counter()
    for number in range(draws):
        runs = simulate(widths, {d: float(np.exp(a + b * d)) for d in widths}, seed=number, repeated=range(9))
        often = [
            width in repeated.get(depth, [])
            for depth, width in zip(runs["depth"], runs["width"], strict=True)
        ]
        runs = runs[(runs["seed"] == 0) | np.array(often)].rename(columns={"test_loss": "loss"})
        noise = pooled_noise(runs)
        pairs = adjacent_pairs(loss_curves(runs, noise))
        found = [bootstrap_crossing(*pair, noise, draws=BOOTSTRAP_DRAWS, seed=number)[0] for pair in pairs]
        last[str(found[-1].status)] += 1
        for limits, kept in slopes.items():
            fit = fit_transitions(pd.DataFrame([asdict(one) for one in found]), BOOTSTRAP, limits=limits)
            if fit.usable:
                kept.append((fit.b - b, fit.b_err))
    rows = []
    for limits, kept in slopes.items():
        off, err = np.array(kept).T
        rows.append(
            {
                "grid": name,
                "truth": f"{a:.2f} + {b:.4f} L",
                "limits": limits,
                "fits": len(kept) / draws,
                "last pair crosses": last["crossing"] / draws,
                "bias of b": off.mean(),
                "rms of b": np.sqrt((off**2).mean()),
                "err of b": err.mean(),
                "held": np.mean(np.abs(off) < err),
            }
        )
    return rows


def rankings(draws: int) -> list[dict[str, object]]:
    """How often the best depth of a size is called certain, and how often it is then another one.

    On aligned sizes with scatter of 0, 2 and 5 times the noise, and on 2 to 6 shapes a depth anywhere.
    """
    terms, low, high = ladder(RANKED, (*RANKED, 24)), 1e6, 2e8
    rows: list[dict[str, object]] = []
    for name, scatter in (("aligned", 0), ("aligned", 2), ("aligned", 5), ("anywhere", 1)):
        sizes = certain = wrong = 0
        for number in range(draws):
            rng = np.random.default_rng(number)
            widths = grid_of(tuple(terms), low, high, 9)
            if name == "anywhere":
                widths = {
                    depth: sorted(
                        {
                            4 * round(float(np.sqrt(size / (12 * depth))) / 4)
                            for size in _anywhere(rng, low, high)
                        }
                    )
                    for depth in terms
                }
            runs = [
                (depth, width, 0, loss(terms[depth], 12.0 * depth * width**2) + NOISE * noise)
                for depth, row in widths.items()
                for width in row
                for noise in [rng.standard_normal() + scatter * rng.standard_normal()]
            ]
            noise = Noise(NOISE, 16.0)
            curves = loss_curves(pd.DataFrame(runs, columns=["depth", "width", "seed", "loss"]), noise)
            ranking = rank_depths(curves, noise)
            if not ranking.size.size:
                continue
            truth = np.argmin(
                [[loss(terms[d], size) for size in ranking.size] for d in ranking.depths], axis=0
            )
            sizes += ranking.size.size
            certain += int(ranking.certain.sum())
            wrong += int((ranking.certain & (ranking.best != truth)).sum())
        shares = {"certain": certain / sizes, "wrong of those": wrong / max(certain, 1)}
        rows.append({"sizes": name, "scatter": scatter} | shares)
    return rows


def _anywhere(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), rng.integers(2, 7)))


def main() -> None:
    """Run everything, write the tables and print them."""
    parser = command_line(__doc__)
    parser.add_argument("--draws", type=int, default=200, help="of each surface (default: 200)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(machine())
    now = {depth: list(row) for depth, row in _gpu_grid()["widths"].items()}
    before = {depth: [w for w in row if w != ADDED.get(depth)] for depth, row in now.items()}
    truths = (PUBLISHED, (PUBLISHED[0] + 0.16, PUBLISHED[1]))
    tables = {
        "noise": [row for surface in BY_SIZE for row in noise_rows(surface, arguments.draws)],
        "rankings": rankings(arguments.draws),
        "surfaces": [row for surface in CROSSING for row in calibration(surface, arguments.draws)],
        "without": [row for surface in WITHOUT for row in statuses(surface, arguments.draws)],
        "lines": [
            row
            for truth in truths
            for name, grid in (("gpu before", before), ("gpu", now))
            for row in line(name, grid, truth, arguments.draws)
        ],
    }
    for name, rows in tables.items():
        table = pd.DataFrame(rows)
        table.to_csv(arguments.out / f"{name}.csv", index=False)
        print(table.to_markdown(index=False, floatfmt=".4f" if name == "lines" else ".2f"))


if __name__ == "__main__":
    main()
