"""Which runs the studies ask for: a study's keys.txt, and the pool's studies.json. Light: the Snakefile reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.storage.files import replacing

RUNS = "runs"  # the pool's folder in results/
ASKED = "studies.json"  # in runs/: the keys that each study ever asked for


def read_keys(path: Path) -> list[str]:
    """The runs of a file with one key a line; blank lines don't count.

    Raises:
        UserError: the file can't be read or names no key.
    """
    try:
        keys = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The file of keys {path} can't be read ({error}).") from error
    if not keys:
        raise UserError(f"The file of keys {path} names no run; write one key a line.")
    return keys


def read_asked(results: Path) -> dict[str, list[str]]:
    """The keys of the runs that each study ever asked for, from `runs/studies.json`; empty where there is none.

    Raises:
        UserError: the file is damaged.
    """
    path = results / RUNS / ASKED
    try:
        return {str(study): list(keys) for study, keys in json.loads(path.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise UserError(
            f"{path}, the studies of the runs, can't be read ({error}); the next start writes it anew: rm {path}"
        ) from error


def add_asked(results: Path, asked: Mapping[str, Iterable[str]]) -> None:
    """Note which studies ask for which runs, beside what was noted before.

    Raises:
        UserError: the file is damaged.
        WriteFailed: the disk is full, read-only or broken.
    """
    before = read_asked(results)
    now = {study: sorted({*before.get(study, ()), *keys}) for study, keys in asked.items()}
    if (after := before | now) != before:
        path = results / RUNS / ASKED
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")


def studies_by_key(asked: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """The studies that ask for each run."""
    found: dict[str, list[str]] = {}
    for study, keys in asked.items():
        for key in keys:
            found.setdefault(key, []).append(study)
    return found
