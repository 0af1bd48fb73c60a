"""How long Snakemake takes to read the workflow and to build the DAG of 10,000 runs.

    python benchmarks/dag.py [--runs 10000]

A copy of config.yaml in a temporary folder asks for that many runs (100 widths, one depth, seeds for the rest).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from machine import machine

ROOT = Path(__file__).resolve().parent.parent


def seconds(arguments: list[str], folder: Path) -> float:
    """Wall time of one Snakemake call."""
    start = time.perf_counter()
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *arguments]
    subprocess.run(snakemake, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print both times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10_000)
    runs = parser.parse_args().runs
    grid = {"widths": {2: list(range(2, 202, 2))}, "repeated": {}, "seeds": runs // 100}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "grid.yaml").write_text(yaml.safe_dump({"depth_width": grid}))
        parse = statistics.median(seconds(["--list-rules"], folder) for _ in range(5))
        dag = seconds(["-n", "--quiet", "all", "--configfile", "grid.yaml"], folder)
    print(f"{machine()}\n\nReading the Snakefile: {parse:.2f} s. Dry run of {runs:,} runs: {dag:.1f} s.")


if __name__ == "__main__":
    main()
