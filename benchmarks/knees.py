"""How often a knee is reported: on curves that have one (wanted: 92% and more) and on smooth ones (wanted: 6% at most).

  PYTHONPATH=scripts:tests python benchmarks/knees.py --draws 300 --out FILE.csv

Before a knee had to beat smooth curves, one that beat a straight line was reported: the column `before`. The same
seeds, the same numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from machine import machine
from saturating_curves import KNEES, LISTS, SMOOTH, draw_fit

from shapelaw.errors import command_line
from shapelaw.fits.plateau import KneeStatus

# of a run, with its seeds
NOISES = ((0.005, 3), (0.01, 3), (0.02, 3), (0.005, 1))


def rows(draws: int) -> list[dict[str, object]]:
    """A row per curve, list of x and noise."""
    found: list[dict[str, object]] = []
    for name, curve in (KNEES | SMOOTH).items():
        for listed, x in LISTS.items():
            for noise, seeds in NOISES:
                rng = np.random.default_rng([draws, len(x), seeds])
                fits = [draw_fit(curve, x, rng, noise=noise, seeds=seeds) for _ in range(draws)]
                status = [fit.status for fit in fits]
                reported = status.count(KneeStatus.CONVERGED) / draws
                found.append(
                    {
                        "curve": name,
                        "has_knee": name in KNEES,
                        "points": listed,
                        "noise": noise,
                        "seeds": seeds,
                    }
                    | {"before": reported + status.count(KneeStatus.SMOOTH) / draws, "reported": reported}
                    | {"n_32_allowed": np.mean([fit.allows(32.0) for fit in fits])}
                )
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--out", type=Path, metavar="FILE.csv")
    arguments = parser.parse_args()
    print(machine())
    table = pd.DataFrame(rows(arguments.draws))
    print(table.to_string(index=False, float_format="%.3f"))
    kinds = table.groupby(["has_knee", "points", "noise", "seeds"])
    for column in ("before", "reported", "n_32_allowed"):
        print(f"\n{column}, over curves\n{kinds[column].agg(['min', 'mean', 'max']).round(2).to_string()}")
    if arguments.out:
        table.to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
