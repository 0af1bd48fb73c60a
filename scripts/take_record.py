"""Copy the finished record of a run that a pack trained, from its checkpoint folder to the record's own folder.

Exit codes: 0 copied, 1 the run has no finished record, or it can't be written (a sentence says why).
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError, command_line, say
from shapelaw.storage.files import FILES, content, fold, replacing

EXTRA = ("attention.npz",)  # only of a memorizer that keeps its attention


def problem_of(folder: Path, pack: Path, out: Path) -> str | None:
    """A sentence and a command where `folder` has no finished record; else None.

    Args:
        folder: the run's checkpoint folder; its name is the run's key.
        pack: file with the outcome of each run of its pack.
        out: folder of the record.
    """
    if _read(folder, "summary.json"):
        return None
    live = _read(folder, "live.json")
    if live.get("status") == "FAILED":
        return str(live["message"])
    outcome = _read(pack.parent, pack.name).get(folder.name, "FINISHED")
    why = outcome if outcome != "FINISHED" else f"{folder} has no finished record of this run."
    pack_again, record = shlex.quote(str(pack)), shlex.quote(str(out / FILES[-1]))
    return (
        f"{why}\nTo train it (and nothing else of its pack again): rm -f {pack_again} && snakemake {record}"
    )


def _read(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file's values; empty where the file is missing or not whole."""
    try:
        return dict(json.loads(content(folder, name)))
    except (FileNotFoundError, ValueError):
        return {}


def main() -> int:
    """Parse the command line and copy."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--checkpoints", required=True, type=Path, help="the run's checkpoint folder")
    add("--pack", required=True, type=Path, help="the --out of train_in_turn.py or train_together.py")
    add("--out", required=True, type=Path, help="the record's folder")
    add("--log", type=Path, help="file for what is wrong; none is left where nothing is")
    arguments = parser.parse_args()
    problem = problem_of(arguments.checkpoints, arguments.pack, arguments.out)
    if problem is None:
        problem = take(arguments.checkpoints, arguments.out)
    if problem is None:
        return 0
    if arguments.log is not None:
        arguments.log.parent.mkdir(parents=True, exist_ok=True)
        arguments.log.write_text(problem + "\n", encoding="utf-8")
    say(problem)
    return 1


def take(folder: Path, out: Path) -> str | None:
    """Copy the record, and leave one file of it in `folder`; a sentence where that is not possible, else None."""
    try:
        for name in FILES:
            with replacing(out / name) as temporary:
                temporary.write_bytes(content(folder, name))
        for name in EXTRA:
            if (folder / name).exists():
                with replacing(out / name) as temporary:
                    shutil.copyfile(folder / name, temporary)
        fold(folder)
    except UserError as error:
        return str(error)
    except (OSError, ValueError) as error:
        return f"The record in {folder} can't be read ({error}); to train it again: rm -r {shlex.quote(str(folder))}"
    return None


if __name__ == "__main__":
    sys.exit(main())
