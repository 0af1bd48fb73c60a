"""Bring the runs of before the pool into it: finished records, runs under way, and archives of records.

  python scripts/carry_over.py OLD [OLD ...] --into results
  python scripts/carry_over.py old.tar.xz --archive new.tar.xz

Before the pool a run belonged to a study, in results/runs/<study>/<key>/ and results/checkpoints/<study>/<key>/. OLD is
such a results folder, or a .tar.xz with its `runs` or `checkpoints`. Losses and histories stay as they are, byte for
byte; keys and digests are those of today. OLD is not changed, and can be deleted afterwards. A run that the pool has
is left as it is; where its losses differ from those of OLD, that is told. With --archive the carried records are put
into one .tar.xz, to be unpacked in `results/`.

Exit codes: 0 all are carried over, 1 some are not (a sentence for each says why), 2 wrong input.
"""

from __future__ import annotations

import io
import json
import lzma
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError, command_line, exit_code, say
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed, kind_of
from shapelaw.specs.runs import digest_of
from shapelaw.storage import records
from shapelaw.storage.files import FILES, content, fold, has
from shapelaw.storage.pool import add_asked
from shapelaw.storage.records import CHECKPOINTS, RUNS, Record, read_record
from shapelaw.training import checkpoint
from shapelaw.training.memorizer_pack import ATTENTION
from shapelaw.training.pack_runs import mark_of
from shapelaw.training.packs import MEMBERS, pack_folder, packs_in, write_members

OF_A_RUN = ("study", "varied")  # of a spec of before
OF_A_FILE = ("schema_version", "key")  # of a spec.json, and not of the spec
ONE_TIME = 1_767_225_600  # 2026-01-01: of every file in an archive, so that equal records give equal archives


@dataclass(frozen=True)
class Old:
    """A run of before, in one of its folders."""

    study: str
    folder: Path
    record: Record
    digest: str  # of its spec as it was

    @property
    def run(self) -> AnyRun:
        """The run as it is now."""
        return self.record.run

    @property
    def state(self) -> Mapping[str, Any]:
        """Its summary, or how far it is."""
        return self.record.summary or self.record.live


def main() -> int:
    """Parse the command line and carry over."""
    parser = command_line(__doc__)
    parser.add_argument("old", nargs="+", type=Path, metavar="OLD", help="a results folder, or a .tar.xz")
    into = parser.add_mutually_exclusive_group(required=True)
    into.add_argument("--into", type=Path, metavar="DIR", help="the results folder with the pool")
    into.add_argument("--archive", type=Path, metavar="FILE", help="a .tar.xz of the carried records")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        results = arguments.into or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        problems = []
        for old in arguments.old:
            folder = _unpacked(old, stack) if old.is_file() else old
            problems += carry_over(folder, results, str(old))
        if arguments.archive:
            write_archive(results, arguments.archive)
    for problem in problems:
        say(problem)
    return 1 if problems else 0


def carry_over(old: Path, results: Path, name: str) -> list[str]:
    """Carry all runs of an old results folder over, and return a sentence for each that could not be.

    Args:
        name: the folder's name for people, such as that of the archive it was in.

    Raises:
        UserError: the folder has no runs of before the pool.
    """
    found, problems = list[Old](), list[str]()
    for folder in _folders(old):
        try:
            found.append(_read(folder))
        except UserError as error:
            problems.append(str(error))
    if not found and not problems:
        raise UserError(
            f"{name} has no runs of before the pool: no {RUNS}/<study>/<key> and no {CHECKPOINTS}/<study>/<key>."
        )
    carried = [one for one in found if _carry(one, results, problems)]
    packs = _carry_packs(old, {one.folder: one for one in found}, results)
    asked: dict[str, set[str]] = {}
    for one in found:
        asked.setdefault(one.study, set()).add(one.run.key)
    add_asked(results, asked)
    done = {one.run.key for one in carried if one.record.summary}
    under_way = {one.run.key for one in carried} - done
    say(
        f"{name}: {len({one.run.key for one in found})} runs; carried over {len(done)} finished ones, {len(under_way)} "
        f"under way and {packs} packs."
    )
    return problems


def _unpacked(archive: Path, stack: ExitStack) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    try:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    except (OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
        why = str(error).splitlines()[0].rstrip(":")
        raise UserError(f"{archive} can't be read as an archive ({why}).") from error
    return folder


def _folders(old: Path) -> Iterator[Path]:
    """The folders of runs below an old results folder, finished records first."""
    for place in (RUNS, CHECKPOINTS):
        for spec in sorted((old / place).glob("*/*")):
            if has(spec, "spec.json"):
                yield spec


def _read(folder: Path) -> Old:
    """One run of before.

    Raises:
        UserError: it is damaged, was trained by an older version of the training, or its files are of two runs.
    """
    record = read_record(folder)
    values: Mapping[str, Any] = json.loads(content(folder, "spec.json"))
    now = kind_of(record.run).to_dict(record.run)
    if values["training_version"] != now["training_version"]:
        raise UserError(
            f"{folder} was trained by version {values['training_version']} of the training, and today's is "
            f"{now['training_version']}: its losses are another run's."
        )
    digest = digest_of({name: value for name, value in values.items() if name not in OF_A_FILE})
    old = Old(str(values.get("study", folder.parent.name)), folder, record, digest)
    if old.state.get("spec_digest") != digest:  # it ended between two writes, after its recipe had changed
        raise UserError(
            f"{folder} says in its spec.json another run than in its other files; train it again."
        )
    return old


def _carry(old: Old, results: Path, problems: list[str]) -> bool:
    """Carry one run over; False where the pool has it already."""
    place = RUNS if old.folder.parent.parent.name == RUNS else CHECKPOINTS
    target = results / place / old.run.key
    if has(target, "summary.json") or (target / "live.json").exists():
        finished = old.record.summary and has(target, "summary.json")
        if finished and not read_record(target).history.equals(old.record.history):
            problems.append(f"{old.folder} has other losses than {target}, which stays.")
        return False
    target.mkdir(parents=True, exist_ok=True)
    records.write_spec(target, old.run)
    if has(old.folder, "history.parquet"):
        records.write_bytes(target / "history.parquet", content(old.folder, "history.parquet"))
    for name in (ATTENTION, "relu.json"):
        if (old.folder / name).exists():
            shutil.copyfile(old.folder / name, target / name)
    if (target / "relu.json").exists():
        kept = json.loads((target / "relu.json").read_text())
        records.write_json(target / "relu.json", kept | {"spec_digest": old.run.digest})
    for step, state in _checkpoints(old.folder, old.state["identity"]):
        identity = _identity(state["identity"], old.run)
        checkpoint.save_checkpoint(target, step, state | {"identity": identity})
    if old.record.summary:
        records.write_summary(target, _values(old.record.summary, old.run))
        if place == CHECKPOINTS:
            fold(target)
    else:
        records.write_live(target, _values(old.record.live, old.run))
    return True


def _checkpoints(folder: Path, identity: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The checkpoints of this run in a folder by step, oldest first; without damaged ones and those of another spec."""
    for path in reversed(checkpoint.checkpoint_paths(folder)):
        try:
            state = checkpoint.read_checkpoint(path)
        except checkpoint.Damaged as error:
            say(f"{error}; it stays where it is")
            continue
        if state["identity"] == identity:
            yield int(path.stem[5:]), state


def _values(before: Mapping[str, Any], run: AnyRun) -> dict[str, Any]:
    """A summary or live state with the key and the digests of today."""
    values = {name: value for name, value in before.items() if name not in OF_A_RUN}
    changed = {"key": run.key, "spec_digest": run.digest, "identity": _identity(before["identity"], run)}
    return values | {name: value for name, value in changed.items() if name in values}


def _identity(before: str, run: AnyRun) -> str:
    """What tells a run on its data: the digest of the run, then those of its token stores."""
    return "-".join([run.digest, *before.split("-")[1:]])


def _carry_packs(old: Path, runs: Mapping[Path, Old], results: Path) -> int:
    """Carry over the checkpoints of packs that were left unfinished, and return their number."""
    number = 0
    packs = [pack for study in sorted((old / CHECKPOINTS).glob("*/")) for pack in packs_in(study)]
    for before, members in packs:
        renamed = {
            key: one.run
            for key, digest in members.items()
            if (one := runs.get(before.parent / key)) is not None and one.digest == digest
        }
        of_pack: list[PackedRun] = [run for run in renamed.values() if is_packed(run)]
        mark = mark_of(of_pack)
        folder = pack_folder(results / CHECKPOINTS, mark)
        done = all(has(results / CHECKPOINTS / run.key, "summary.json") for run in of_pack)
        if done or has(folder, MEMBERS):  # also where there is none of its runs
            continue
        saved = list(_checkpoints(before, before.name.removeprefix("pack-")))
        for step, state in saved:
            keys = [renamed[key].key if key in renamed else key for key in state["keys"]]
            checkpoint.save_checkpoint(folder, step, state | {"identity": mark, "keys": keys})
        if saved:
            write_members(folder, of_pack)
            number += 1
    return number


def write_archive(results: Path, path: Path) -> None:
    """Put the finished records of a folder into an archive of `checkpoints/<key>/record.zip`, a copy of each record."""
    folders = sorted(
        {
            folder.name: folder for place in (RUNS, CHECKPOINTS) for folder in (results / place).glob("*/")
        }.items()
    )
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for key, folder in folders:
            if not has(folder, "summary.json"):
                continue
            with tempfile.TemporaryDirectory() as name:
                copy = Path(name)
                for file in FILES:
                    (copy / file).write_bytes(content(folder, file))
                fold(copy)
                packed = (copy / "record.zip").read_bytes()
            member = tarfile.TarInfo(f"{CHECKPOINTS}/{key}/record.zip")
            member.size, member.mtime = len(packed), ONE_TIME
            archive.addfile(member, io.BytesIO(packed))


if __name__ == "__main__":
    sys.exit(exit_code(main))
