"""Time of an exact separation rank against the rank, and against what was estimated before.

    PYTHONPATH=scripts python benchmarks/separation_rank.py [--most 4500]

One process, one thread; seconds of CPU time of all grids and ranks (two primes, two seeds, and smaller grids before).
The last columns split one grid of the last size: filling it, and its rank by FLINT.
"""

from __future__ import annotations

import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from machine import machine

from shapelaw.errors import command_line
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import ProductNetwork
from shapelaw.theory.polynomials import PRIMES, rank
from shapelaw.theory.separation_rank import SPARE, Polynomial, estimate, separation_rank

CASES: list[tuple[str, Polynomial]] = [
    ("attention L 2, d 4, N 8", LinearAttention(2, 4, 8)),
    ("attention L 3, d 2, N 4", LinearAttention(3, 2, 4)),
    ("attention L 2, d 6, N 12", LinearAttention(2, 6, 12)),
    ("attention L 3, d 3, N 2", LinearAttention(3, 3, 2)),
    ("attention L 2, d 8, N 16", LinearAttention(2, 8, 16)),
    ("product k 3, L 3, w 3", ProductNetwork(3, 3, 3)),
    ("attention L 2, d 10, N 20", LinearAttention(2, 10, 20)),
    ("attention L 4, d 2, N 4", LinearAttention(4, 2, 4)),
    ("attention L 3, d 3, N 6", LinearAttention(3, 3, 6)),
    ("attention L 2, d 12, N 24", LinearAttention(2, 12, 24)),
]


def main() -> None:
    """Measure and print the table."""
    parser = command_line(__doc__)
    parser.add_argument("--most", type=int, default=4600, help="skip networks of a larger rank bound")
    arguments = parser.parse_args()
    print(f"{machine()}, 1 thread\n")
    print(
        "| network | rank | exact | CPU s | estimated s | peak GiB | estimated GiB | one grid s | its rank s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, network in CASES:
        bound = network.rank_bound()
        if bound > arguments.most:
            continue
        start = time.process_time()
        found = separation_rank(network, limit_seconds=3600, limit_bytes=2**36)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        start = time.process_time()
        matrix = network.grid(found.templates[0], PRIMES[0], 7)
        filled = time.process_time() - start
        start = time.process_time()
        assert rank(matrix, PRIMES[0]) == found.rank
        eliminated = time.process_time() - start
        before = estimate(network, bound + SPARE)
        print(
            f"| {name} | {found.rank:,} | {found.exact} | {seconds:.2f} | {before.seconds:.2f} | {peak:.2f} "
            f"| {before.bytes / 2**30:.2f} | {filled:.2f} | {eliminated:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
