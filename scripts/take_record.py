"""Copy the finished record of a run that a pack has trained, from its checkpoint folder to where it belongs.

Exit codes: 0 copied, 1 the pack has no finished record of this run (a sentence says why).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from shapelaw.files import replacing

FILES = ("spec.json", "history.parquet", "summary.json")  # the last one makes the record whole


def problem_of(folder: Path, digest: str) -> str | None:
    """A sentence when `folder` has no finished record of the spec with this digest."""
    for name, good in (("summary.json", True), ("live.json", False)):
        path = folder / name
        found = json.loads(path.read_text()) if path.exists() else {}
        if found.get("spec_digest") == digest:
            return None if good else str(found["message"])
    return f"{folder} has no finished record of this run; delete its pack in results/packs and start again."


def main() -> int:
    """Parse the command line and copy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoints", required=True, type=Path, help="the run's checkpoint folder")
    parser.add_argument("--digest", required=True, help="of the run's spec")
    parser.add_argument("--out", required=True, type=Path, help="the record's folder")
    arguments = parser.parse_args()
    problem = problem_of(arguments.checkpoints, arguments.digest)
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        with replacing(arguments.out / name) as temporary:
            shutil.copyfile(arguments.checkpoints / name, temporary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
