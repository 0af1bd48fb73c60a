"""How long the importer takes for finished runs, into SQLite and through a tracking server, and its peak memory.

Prints a Markdown table.
`python benchmarks/mlflow_import.py --help` explains the options.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from machine import machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from shapelaw.errors import command_line  # noqa: E402
from shapelaw.specs.runs import Run, Training  # noqa: E402
from shapelaw.specs.shapes import make_shape  # noqa: E402
from shapelaw.storage import records  # noqa: E402

STUDY = "benchmark"


def write_runs(results: Path, runs: int, rows: int) -> None:
    """Finished records whose histories have `rows` rows, a test loss in every tenth."""
    for seed in range(runs):
        training = Training(steps=10 * rows, batch_size=64, log_every=10, evaluate_every=100)
        run = Run("wiki", make_shape(6, 128, 2, 2000, 128), training, seed)
        folder = results / "runs" / run.key
        losses = [7.6 * row**-0.2 + seed / 1000 for row in range(1, rows + 1)]
        history = [
            (10 * row, loss, 1e-3, 1 / row, loss if row % 10 == 0 else math.nan)
            for row, loss in enumerate(losses, 1)
        ]
        records.write_spec(folder, run)
        records.write_history(folder, history)
        store = {"path": "data/wiki", "tokens": 10**6, "vocab_size": 2000, "corpus": "wiki"}
        numbers = dict.fromkeys(
            ("wall_seconds", "tokens_per_second", "peak_memory_bytes", "bits_per_byte"), 1.5
        )
        summary = {
            "status": records.FINISHED,
            "test_loss": losses[-1],
            "train_loss": losses[-1],
            **numbers,
            "host": "node1",
            "git_commit": "0" * 40,
            "started_at": "2026-03-01T12:00:00+00:00",
            "finished_at": "2026-03-01T12:30:00+00:00",
            "train_store": {**store, "sha256": "a" * 64},
            "test_store": {**store, "sha256": "b" * 64},
            "tags": {"config_hash": "c0ffee", "slurm_job": str(seed)},
        }
        records.write_summary(folder, summary)


def measure(results: Path, uri: str) -> tuple[float, float, float]:
    """Seconds of the first import, of one that finds nothing new, and of reading the table back."""
    from shapelaw.tracking.command import ImportProgress
    from shapelaw.tracking.importer import Importer
    from shapelaw.tracking.table import read_runs

    importer = Importer(results, uri, ImportProgress(print), patience=60)
    times = [time.perf_counter()]
    for _ in range(2):
        store, outcome = importer.import_study(STUDY)
        times.append(time.perf_counter())
    assert not outcome.written, "the second import wrote something"
    read_runs(store, STUDY)
    times.append(time.perf_counter())
    first, again, table = (after - before for before, after in pairwise(times))
    return first, again, table


def main() -> int:
    """Parse the command line, measure, print."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=200, help="finished runs (default 200)")
    parser.add_argument("--rows", type=int, default=200, help="rows of a run's history (default 200)")
    parser.add_argument(
        "--uri", help="measure this tracking server too; its store gets an experiment 'benchmark'"
    )
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        write_runs(results, arguments.runs, arguments.rows)
        from shapelaw.tracking.store import default_uri

        places = {"SQLite": default_uri(results)} | ({"server": arguments.uri} if arguments.uri else {})
        for name, uri in places.items():
            seconds = measure(results, uri)
            lines.append(f"| {name} | " + " | ".join(f"{value:.1f} s" for value in seconds) + " |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{arguments.runs} runs, {arguments.rows} rows each; peak {peak:.0f} MiB", end="; ")
    print(f"{machine()}\n")
    print("| store | first import | import again | read back |\n|---|---|---|---|")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
