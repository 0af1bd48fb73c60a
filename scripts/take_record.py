"""Copy the finished record of a run that a pack trained, from its checkpoint folder to the record's own folder.

Exit codes: 0 copied, 1 the run has no finished record, or it can't be written (a sentence says why).
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from shapelaw.storage.files import WriteFailed, replacing

EXTRA = ("attention.npz",)  # only of a memorizer that keeps its attention
FILES = ("spec.json", "history.parquet", "summary.json")  # the last one makes the record whole


def problem_of(folder: Path, digest: str, pack: Path, out: Path) -> str | None:
    """A sentence and a command where `folder` has no finished record of the spec with this digest; else None.

    Args:
        folder: the run's checkpoint folder; its name is the run's key.
        digest: digest of the run's spec.
        pack: file with the outcome of each run of its pack.
        out: folder of the record.
    """
    if _read(folder / "summary.json").get("spec_digest") == digest:
        return None
    live = _read(folder / "live.json")
    if live.get("spec_digest") == digest and live.get("status") == "FAILED":
        return str(live["message"])
    outcome = _read(pack).get(folder.name, "FINISHED")
    why = outcome if outcome != "FINISHED" else f"{folder} has no finished record of this run."
    pack_again, record = shlex.quote(str(pack)), shlex.quote(str(out / FILES[-1]))
    return (
        f"{why}\nTo train it (and nothing else of its pack again): rm -f {pack_again} && snakemake {record}"
    )


def _read(path: Path) -> dict[str, Any]:
    """A JSON file's values; empty where the file is missing or not whole."""
    try:
        return dict(json.loads(path.read_text()))
    except (FileNotFoundError, ValueError):
        return {}


def main() -> int:
    """Parse the command line and copy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", required=True, type=Path, help="the run's checkpoint folder")
    parser.add_argument("--digest", required=True, help="digest of the run's spec")
    parser.add_argument(
        "--pack", required=True, type=Path, help="the --out of train_in_turn.py or train_together.py"
    )
    parser.add_argument("--out", required=True, type=Path, help="the record's folder")
    arguments = parser.parse_args()
    problem = problem_of(arguments.checkpoints, arguments.digest, arguments.pack, arguments.out)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    try:
        for name in (*FILES, *EXTRA):
            if name in EXTRA and not (arguments.checkpoints / name).exists():
                continue
            with replacing(arguments.out / name) as temporary:
                shutil.copyfile(arguments.checkpoints / name, temporary)
    except WriteFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
