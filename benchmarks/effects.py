"""Calibration of the effects of axes, on grids of twelve cells whose effects are known.

  PYTHONPATH=scripts:tests python benchmarks/effects.py --draws 200 --first-seed 7000 --out DIR

Writes effects.csv to DIR and prints it. A surface says what is added to losses beside the noise between seeds, in units
of that noise: a scatter of shapes that no seed shows, an offset of each cell, three times the noise of one number of
heads, or another batch. Heads have no effect anywhere, a rank costs as much as the noise, and the vocabulary matters;
on "no effects" nothing has one. `pairs held`, `means held`: shares of the 95% intervals of one setting, and of means
over settings, that hold the truth. `false claims`: of tables in which an effect that is none has p < 5% after Holm.
`rank claimed`: of the ranks' means that are told so. The same seeds, the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from draws import parser_of_draws, write_tables
from grid_runs import BYTES

from shapelaw.fits.noise import SIGNIFICANT
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.tables import DIFFERENCE, effects_table
from shapelaw.studies.transitions.analysis import Options

NOISE = 0.004  # nats a byte
HEADS, RANKS, DEPTHS, WIDTHS = (1, 2, 4), (8, None), (1, 2, 4), (16, 32, 48)
AXES = ("vocab_size", "embedding_rank", "heads")
COSTS = {"heads": 0.0, "embedding_rank": -1.0, "vocab_size": -10.0}  # true differences, in units of the noise
REPEATED = (16, 48)  # widths of which each depth has two seeds


@dataclass(frozen=True)
class Surface:
    """What is added to the losses beside the noise, in its units.

    Attributes:
        scatter: standard deviation of a shape's own deviation.
        offsets: standard deviation of a cell's offset.
        loud: the noise of four heads.
        offset: of the second batch's runs.
        second: whether a shape with these heads, depth and place among the widths was trained in the second batch.
        effects: whether there are any.
    """

    name: str
    scatter: float = 0.0
    offsets: float = 0.0
    loud: float = 1.0
    offset: float = 0.0
    second: Callable[[int, int, int], bool] | None = None
    effects: bool = True


SURFACES = (
    Surface("noise between seeds alone"),
    Surface("no effects", effects=False),
    Surface("no effects, scatter twice the noise", scatter=2.0, effects=False),
    Surface("scatter as large as the noise", scatter=1.0),
    Surface("scatter twice the noise", scatter=2.0),
    Surface("cells off by the noise", offsets=1.0),
    Surface("cells off by twice the noise", offsets=2.0),
    Surface("four heads three times as noisy", loud=3.0),
    Surface("a width of four heads in another batch", offset=3.0, second=lambda h, _, at: h == 4 and at == 1),
    Surface("one depth of four heads in another batch", offset=3.0, second=lambda h, d, _: h == 4 and d == 4),
    Surface("four heads in another batch", offset=3.0, second=lambda h, _, __: h == 4),
)


def table_of(surface: Surface, number: int) -> pd.DataFrame:
    """The runs of a table, by its number."""
    rng = np.random.default_rng([number, sum(map(ord, surface.name))])
    rows = []
    for vocab, rank, heads in product(BYTES, RANKS, HEADS):
        cell = surface.offsets * rng.standard_normal()
        for depth, (place, width) in product(DEPTHS, enumerate(WIDTHS)):
            params = 12 * depth * width**2
            mean = 1.9 + 0.9 * (params / 1e4) ** -0.3 + 0.02 * np.log(depth)
            mean += NOISE * (cell + surface.scatter * rng.standard_normal())
            mean += surface.effects * NOISE * ((rank is not None) - 10 * (vocab == 500))
            second = surface.second is not None and surface.second(heads, depth, place)
            for seed in range(2 if width in REPEATED else 1):
                noise = (surface.loud if heads == 4 else 1.0) * rng.standard_normal()
                bits = mean + NOISE * (noise + surface.offset * second)
                row = (vocab, rank, heads, depth, width, seed, params, bits, bits * BYTES[vocab], second)
                rows.append(row)
    names = ("depth", "width", "seed", "block_params", "bits_per_byte", "test_loss", "batch")
    table = pd.DataFrame(rows, columns=[*AXES, *names]).astype({"embedding_rank": "Int64"})
    return table.assign(batch=table["batch"].map({False: "first", True: "second"}))


def calibration(surface: Surface, numbers: range) -> dict[str, object]:
    """A row of the table: how often intervals of a surface hold, and what is claimed."""
    found = []
    for number in numbers:
        analysis = analyse_grid(table_of(surface, number), "made", Options(draws=100), AXES)
        effects = effects_table(analysis)
        found.append(effects[(effects["quantity"] == DIFFERENCE) & effects["p"].notna()].assign(table=number))
    rows = pd.concat(found, ignore_index=True)
    truth = surface.effects * NOISE * rows["axis"].map(COSTS)
    inside = (rows["low"] <= truth) & (truth <= rows["high"])
    mean, significant = rows["settings"] > 1, rows["p_holm"] < SIGNIFICANT
    false = (significant & (truth == 0)).groupby(rows["table"]).any()
    claimed = significant[mean & (rows["axis"] == "embedding_rank")].mean()
    half = ((rows["high"] - rows["low"]) / 2)[~mean].groupby(rows["table"]).median()
    cautions = rows.reindex(columns=["caution"])[~mean & (rows["axis"] == "heads")].dropna()
    return {
        "surface": surface.name,
        "tables": len(numbers),
        "pairs held": inside[~mean].mean(),
        "means held": inside[mean].mean(),
        "false claims": false.mean(),
        "rank claimed": claimed if surface.effects else np.nan,
        "half a pair": half.median() / NOISE,
        "heads cautioned": (cautions["caution"] != "").mean(),
    }


def main() -> None:
    """Run everything, write the table and print it."""
    tables = {"effects": lambda numbers: [calibration(surface, numbers) for surface in SURFACES]}
    write_tables(tables, parser_of_draws(__doc__, 200, tables).parse_args())


if __name__ == "__main__":
    main()
