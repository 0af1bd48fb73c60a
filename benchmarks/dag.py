"""How long Snakemake takes to read the workflow and to build the DAG of 10,000 runs.

    python benchmarks/dag.py [--runs 10000]

A copy of config.yaml in a temporary folder asks for that many runs (100 widths, one depth, seeds for the rest). The
time to read the workflow is that of a whole process of Snakemake; by turns with it, the same with one empty rule.
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


def seconds(arguments: list[str], folder: Path, snakefile: Path = ROOT / "Snakefile") -> float:
    """Wall time of one Snakemake call."""
    start = time.perf_counter()
    snakemake = [sys.executable, "-m", "snakemake", "--snakefile", str(snakefile), *arguments]
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
        (folder / "empty.smk").write_text("rule nothing:\n")
        both = [
            (seconds(["--list-rules"], folder), seconds(["--list-rules"], folder, folder / "empty.smk"))
            for _ in range(9)
        ]
        parse, start = (statistics.median(times) for times in zip(*both, strict=True))
        alone = statistics.median(whole - start for whole, start in both)
        dag = seconds(["-n", "--quiet", "all", "--configfile", "grid.yaml"], folder)
    print(f"{machine()}\n\nReading the Snakefile: {parse:.2f} s", end="")
    print(f" (Snakemake with an empty one {start:.2f} s; ours more by {alone:.2f} s).")
    print(f"Dry run of {runs:,} runs: {dag:.1f} s.")


if __name__ == "__main__":
    main()
