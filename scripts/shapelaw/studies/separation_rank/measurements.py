"""Separation ranks of the networks that a config asks for, measured once each and kept."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError, say
from shapelaw.storage.files import disk_errors, replacing
from shapelaw.studies.separation_rank.grids import Asked, AttentionSizes, DegreeSizes, NetworkSizes, digest
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import DegreeAttention, ProductNetwork
from shapelaw.theory.separation_rank import SPARE, separation_rank, templates_within

KEPT = "ranks.jsonl"  # one file: those of clusters are counted
EXACT, AT_LEAST = "exact", "at least"
Network = LinearAttention | ProductNetwork | DegreeAttention


@dataclass(frozen=True)
class Measured:
    """A network's separation rank, or a lower bound of it.

    Attributes:
        rank: the exact rank, or that of the largest grid within the time limit.
        exact: True for the exact rank.
        upper_bound: a bound that no weights exceed.
        templates: rows and columns of the last grid, at most.
        failure_probability: see `shapelaw.theory.separation_rank.SeparationRank`.
        seconds: wall time of the measurement.
    """

    rank: int
    exact: bool
    upper_bound: int
    templates: int
    failure_probability: float
    seconds: float

    @property
    def status(self) -> str:
        return EXACT if self.exact else AT_LEAST

    @property
    def bound(self) -> float:
        """The upper bound as a float."""
        return float(self.upper_bound) if math.log10(self.upper_bound) < 300 else math.inf

    @property
    def most(self) -> int:
        """The largest value that the rank can have."""
        return self.rank if self.exact else self.upper_bound


def network_of(sizes: NetworkSizes) -> Network:
    """The network with these sizes."""
    if isinstance(sizes, AttentionSizes):
        return LinearAttention(**asdict(sizes))
    if sizes.blocks == "product":
        half = sizes.width // 2
        return ProductNetwork(sizes.degrees, len(sizes.degrees), sizes.width, 2, token_dim=half)
    return DegreeAttention(sizes.degrees, sizes.width, sizes.tokens, sizes.heads)


class Kept:
    """The ranks that are kept in a folder: a line of one file for each, the last one of a network counts.

    Folders of before 2026-11-23 have a file for each network, which is read too.

    Raises:
        UserError: the file can't be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / KEPT
        self._known: dict[str, Measured] = {}
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:  # a process was killed while it wrote
            os.truncate(self._path, len(whole))
        for line in whole.decode().splitlines():
            name, measured = _kept(line, self._path)
            self._known[name] = measured

    def get(self, name: str) -> Measured | None:
        """The rank of a network, by its digest."""
        if name not in self._known and (path := self._folder / f"{name}.json").exists():
            _, self._known[name] = _kept(path.read_text(encoding="utf-8"), path)
        return self._known.get(name)

    def add(self, name: str, measured: Measured) -> None:
        """Keep a rank, also where the process is killed next.

        Raises:
            WriteFailed: the disk is full, read-only or broken.
        """
        self._known[name] = measured
        row = json.dumps({"network": name, **asdict(measured)})
        with disk_errors(self._path):
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(row.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())


def measure_all(asked: Sequence[Asked], kept: Path) -> Iterator[tuple[Asked, Measured]]:
    """Measure the networks that are not kept yet, in the order given, and keep each rank at once.

    A lower bound is measured again where the time limit now allows more templates.

    Args:
        asked: networks, with their tables and limits.
        kept: folder of the ranks.

    Raises:
        UserError: a kept rank can't be read.
    """
    ranks = Kept(kept)
    for place, one in enumerate(asked, start=1):
        network, name = network_of(one.sizes), digest(one.sizes)
        known = ranks.get(name)
        if known is None or not known.exact:
            templates = templates_within(network, one.seconds)
            if known is None or templates > known.templates:
                say(f"{place} of {len(asked)}: {one.sizes}")
                known = _measure(network, templates)
                ranks.add(name, known)
        yield one, known


def _measure(network: Network, templates: int) -> Measured:
    bound = network.rank_bound()
    limit = None if templates >= bound + SPARE else templates
    found = separation_rank(network, limit, limit_seconds=float("inf"), limit_bytes=float("inf"))
    return Measured(
        found.rank, found.exact, bound, templates, found.failure_probability, round(found.seconds, 3)
    )


def _kept(text: str, path: Path) -> tuple[str, Measured]:
    """The digest of a network, empty in a file of its own, and its kept rank.

    Raises:
        UserError: the text is none.
    """
    try:
        row = dict(json.loads(text))
        return str(row.pop("network", "")), Measured(**row)
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{path} is not a kept separation rank ({error}); measure it again: rm {path} && snakemake"
        ) from error


def write_measurements(found: Sequence[tuple[Asked, Measured]], out: Path) -> None:
    """All measurements as one JSON file."""
    rows = [
        {"table": one.table, "budget": one.budget, "sizes": asdict(one.sizes), **asdict(result)}
        for one, result in found
    ]
    with replacing(out) as temporary:
        temporary.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


def read_measurements(path: Path) -> list[tuple[Asked, Measured]]:
    """The measurements that `write_measurements` wrote.

    Raises:
        UserError: the file is missing, or isn't one of `write_measurements`.
    """
    try:
        return [_row(dict(row)) for row in json.loads(path.read_text(encoding="utf-8"))]
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}).") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path} holds no separation ranks of scripts/measure_separation_ranks.py ({error})."
        ) from error


def _row(row: dict[str, Any]) -> tuple[Asked, Measured]:
    table, budget, sizes = row.pop("table"), row.pop("budget"), row.pop("sizes")
    if "degrees" in sizes:
        network: NetworkSizes = DegreeSizes(**{**sizes, "degrees": tuple(sizes["degrees"])})
    else:
        network = AttentionSizes(**sizes)
    return Asked(table, network, budget, 0.0), Measured(**row)
