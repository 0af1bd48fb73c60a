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


def check_finished(folder: Path, pack: Path, out: Path) -> None:
    """Check that a run has a finished record.

    Args:
        folder: the run's checkpoint folder; its name is the run's key.
        pack: file with the outcome of each run of its pack.
        out: folder of the record.

    Raises:
        UserError: it has none; the sentence says why, and where the run itself doesn't, what trains it.
    """
    if _read(folder, "summary.json"):
        return
    live = _read(folder, "live.json")
    if live.get("status") == "FAILED":
        raise UserError(live["message"])
    outcome = _read(pack.parent, pack.name).get(folder.name, "FINISHED")
    why = outcome if outcome != "FINISHED" else f"{folder} has no finished record of this run."
    pack_again, record = shlex.quote(str(pack)), shlex.quote(str(out / FILES[-1]))
    raise UserError(
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
    try:
        check_finished(arguments.checkpoints, arguments.pack, arguments.out)
        take(arguments.checkpoints, arguments.out)
    except UserError as problem:
        if arguments.log is not None:
            arguments.log.parent.mkdir(parents=True, exist_ok=True)
            arguments.log.write_text(f"{problem}\n", encoding="utf-8")
        say(problem)
        return 1
    return 0


def take(folder: Path, out: Path) -> None:
    """Copy the record, and leave one file of it in `folder`.

    Raises:
        UserError: the record can't be read or written.
    """
    try:
        for name in FILES:
            with replacing(out / name) as temporary:
                temporary.write_bytes(content(folder, name))
        for name in EXTRA:
            if (folder / name).exists():
                with replacing(out / name) as temporary:
                    shutil.copyfile(folder / name, temporary)
        fold(folder)
    except (OSError, ValueError) as error:
        again = f"rm -r {shlex.quote(str(folder))}"
        raise UserError(
            f"The record in {folder} can't be read ({error}); to train it again: {again}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
