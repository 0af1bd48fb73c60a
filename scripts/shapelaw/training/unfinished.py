"""Find models that a pack left unfinished, whichever pack they are in now.

A pack is named by its members, so another grid makes other packs. Each pack's folder lists its members
(`members.json`), and its checkpoints hold each model separately.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import PackedRun
from shapelaw.storage import records
from shapelaw.training import checkpoint

MEMBERS = "members.json"
_FOLDER = "pack-"


@dataclass(frozen=True)
class Unfinished:
    """A model in a checkpoint.

    Attributes:
        mark: mark of the pack that wrote it.
        state: state of the whole pack.
        place: place of the model in the pack.
    """

    mark: str
    state: Mapping[str, Any]
    place: int

    @property
    def step(self) -> int:
        """The steps that the model has done."""
        return int(self.state["steps"][self.place])


def pack_folder(checkpoints: Path, mark: str) -> Path:
    """The folder of a pack's checkpoints."""
    return checkpoints / f"{_FOLDER}{mark}"


def write_members(folder: Path, runs: Sequence[PackedRun]) -> None:
    """Write down the members of a pack.

    Raises:
        WriteFailed: the disk is full or gone.
    """
    records.write_json(folder / MEMBERS, {run.key: run.digest for run in runs})


def find_unfinished(checkpoints: Path, runs: Sequence[PackedRun], mark: str) -> dict[str, Unfinished]:
    """The checkpoint that has each model at its latest step, by key, among the newest ones of unfinished packs.

    The caller must hold the locks of the runs, so that no other process trains a pack with one of them.

    Args:
        mark: mark of the pack that asks; it wins where others are at the same step.
    """
    digests = {run.key: run.digest for run in runs}
    found: dict[str, Unfinished] = {}
    for folder, members in sorted(packs_in(checkpoints), key=lambda pack: pack[0].name != _FOLDER + mark):
        if not members.items() & digests.items():
            continue
        its_mark = folder.name.removeprefix(_FOLDER)
        state = checkpoint.load_newest(folder, its_mark, say)
        if state is None:
            continue
        for place, key in enumerate(state["keys"]):
            one = Unfinished(its_mark, state, place)
            # a checkpoint from before a model left may have more models than the pack has members now
            wanted = key in members and members[key] == digests.get(key) and state["live"][place]
            if wanted and (key not in found or one.step > found[key].step):
                found[key] = one
    return found


def forget_finished(checkpoints: Path, runs: Sequence[PackedRun]) -> None:
    """Delete the checkpoints of every pack that has one of these runs and whose members are all done."""
    digests = {run.key: run.digest for run in runs}
    for folder, members in packs_in(checkpoints):
        shared = members.items() & digests.items()
        if shared and all(_is_done(checkpoints / key, digest) for key, digest in members.items()):
            checkpoint.delete_checkpoints(folder)
            (folder / MEMBERS).unlink(missing_ok=True)


def packs_in(checkpoints: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folders of unfinished packs, with the digests of their members by key."""
    for path in sorted(checkpoints.glob(f"{_FOLDER}*/{MEMBERS}")):
        try:
            yield path.parent, json.loads(path.read_text())
        except FileNotFoundError:  # the pack has ended since
            continue
        except ValueError as error:
            say(f"{path} can't be read ({error}); its models are not looked for")


def _is_done(folder: Path, digest: str) -> bool:
    """True if a run of this spec is finished, or has failed for good."""
    try:
        record = records.read_record(folder)
    except UserError:  # missing or damaged
        return False
    return digest in (
        record.summary.get("identity"),
        record.live.get("for_good") and record.live.get("identity"),
    )
