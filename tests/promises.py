"""The names that finished results go by, of every study at every scale, and the golden files that keep them.

    python tests/promises.py              rewrite the golden files of all scales, on purpose
    python tests/promises.py demo         of one scale, such as after a change of its grids
    python tests/promises.py tables       the tables of all analyses (tests/golden_tables.py)

There are two files a scale in tests/golden/. `runs-<scale>.tsv` has the key and the digest of every run, and the digest
of every separation rank. `jobs-<scale>.json` has the jobs of the real Snakemake, by rule, with their files.
"""

import argparse
import csv
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from golden_tables import ROOT, changed_lines, rewrite
from job_server import run_snakemake

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.settings.sections import Settings
from shapelaw.studies.registry import STUDIES as REGISTRY
from shapelaw.studies.separation_rank.study import Asked, asked_of, digest, rank_grids

GOLDEN = ROOT / "tests" / "golden"
SCALES = sorted(path.stem for path in (ROOT / "workflow" / "scales").glob("*.yaml"))
STUDIES = tuple(name for name, study in REGISTRY.items() if not study.extra)
EXTRAS = tuple(name for name, study in REGISTRY.items() if study.extra)
COLUMNS = "study\tkey\tdigest"
LISTED = 60  # files: a rule that makes more has a hash of their names instead
TABLES = "tables"  # the word for them on the command line


def named_runs(scale: str) -> list[str]:
    """Every run and every separation rank of a scale, in the order of its grids: its study, key and digest."""
    sections = {"scale": scale, "studies": list(STUDIES), "extras": list(EXTRAS)}
    config = load_config(sections, ROOT / "workflow" / "scales", ROOT)
    return ["\t".join((study, *names)) for study in STUDIES for names in _named(config, study)]


def _named(config: Settings, study: str) -> list[tuple[str, str]]:
    if REGISTRY[study].kind is None:
        return [(_rank_key(one), digest(one.sizes)) for one in asked_of(rank_grids(config))]
    return [(run.key, run.digest) for run in runs_of(config, study, ROOT).values()]


def _rank_key(one: Asked) -> str:
    """The table, the budget and the sizes of a network whose rank is measured, to tell it from others."""
    sizes = ", ".join(f"{name} {value}" for name, value in asdict(one.sizes).items())
    return f"{one.table}: {sizes}" + ("" if one.budget is None else f", budget {one.budget}")


def planned_jobs(scale: str) -> dict[str, Any]:
    """For each rule of the real Snakemake how many files its jobs make in an empty folder, and their names."""
    sections = {"scale": scale, "studies": _inline(STUDIES), "extras": _inline(EXTRAS)}
    with tempfile.TemporaryDirectory() as folder:
        options = ["--cores", "1", "--summary", "--config", *(f"{key}={sections[key]}" for key in sections)]
        snakefile = ("--snakefile", str(ROOT / "Snakefile"))
        done = run_snakemake((*snakefile, *options), Path(folder), os.environ)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    made: dict[str, list[str]] = {}
    for row in csv.DictReader(done.stdout.splitlines(), delimiter="\t"):
        made.setdefault(row["rule"], []).append(row["output_file"])
    return {rule: _listing(files) for rule, files in sorted(made.items())}


def _inline(words: Sequence[str]) -> str:
    return f"[{','.join(words)}]"


def _listing(files: Iterable[str]) -> dict[str, Any]:
    names = sorted(files)
    hashed = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return {"files": len(names)} | ({"names": names} if len(names) <= LISTED else {"hash_of_names": hashed})


def different_runs(golden: Iterable[str], now: Iterable[str]) -> list[str]:
    """The runs that came, went or have another digest; empty where they are the same."""
    return changed_lines(*(sorted(line.replace("\t", " ") for line in some) for some in (golden, now)))


def different_jobs(golden: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The rules and the files that came, went or are others."""
    return changed_lines(
        *([f"{rule} {row}" for rule in jobs for row in _lines(jobs[rule])] for jobs in (golden, now))
    )


def _lines(listing: Mapping[str, Any]) -> list[str]:
    return [f"{what}: {value}" for what, value in listing.items() if what != "names"] + listing.get(
        "names", []
    )


def runs_file(scale: str) -> Path:
    """Where the names of a scale's runs are kept."""
    return GOLDEN / f"runs-{scale}.tsv"


def jobs_file(scale: str) -> Path:
    """Where the jobs of a scale are kept."""
    return GOLDEN / f"jobs-{scale}.json"


def read_runs(path: Path) -> list[str]:
    """A line for each run."""
    return path.read_text(encoding="utf-8").splitlines()[1:]


def main() -> None:
    """Rewrite the golden files and say what changed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "scales", nargs="*", metavar="SCALE", help=f"of {', '.join(SCALES)} (default: all), or {TABLES} alone"
    )
    chosen = parser.parse_args().scales or SCALES
    if chosen == [TABLES]:
        rewrite()
        return
    if unknown := set(chosen) - set(SCALES):
        parser.error(f"no scale {', '.join(sorted(unknown))}; there are {', '.join(SCALES)}")
    GOLDEN.mkdir(exist_ok=True)
    for scale in chosen:
        runs, jobs = named_runs(scale), planned_jobs(scale)
        runs_path, jobs_path = runs_file(scale), jobs_file(scale)
        changes = ["the first golden files of this scale"]
        if runs_path.exists() and jobs_path.exists():
            changes = different_runs(read_runs(runs_path), runs)
            changes += different_jobs(json.loads(jobs_path.read_text(encoding="utf-8")), jobs)
        print(f"{scale}: {len(runs)} runs", *(changes or ["nothing changed"]), sep="\n  ")
        runs_path.write_text("\n".join([COLUMNS, *runs, ""]), encoding="utf-8")
        jobs_path.write_text(json.dumps(jobs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
