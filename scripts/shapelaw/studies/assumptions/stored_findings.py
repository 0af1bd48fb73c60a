"""Files of findings, one for each layer, so that a later call with other networks adds to the same tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from shapelaw.errors import UserError
from shapelaw.storage.files import replacing
from shapelaw.studies.assumptions.findings import LayerFindings, Subsets
from shapelaw.theory.kruskal import PassRate
from shapelaw.theory.memorization import NumericalRank

FORMAT = 1
_SUBSETS = ("query", "mixed", "position")
_WORDS = ("model", "weights", "layer", "note", "inputs")
_NUMBERS = ("examples", "context", "width", "kruskal", "kruskal_float32")


@dataclass(frozen=True)
class Row:
    """One layer of one network, its inputs, and the findings."""

    model: str
    weights: str
    layer: str
    note: str
    inputs: str
    findings: LayerFindings


def write_row(folder: Path, row: Row) -> Path:
    """Write `<model>-<weights>-<layer>.npz`; the folder is made."""
    found = row.findings
    numbers = {name: getattr(found, name) for name in _NUMBERS}
    words = {name: getattr(row, name) for name in _WORDS}
    rates = {name: asdict(getattr(found, name).rate) for name in _SUBSETS}
    header = {"format": FORMAT, **words, **numbers, "rates": rates, "rank": asdict(found.rank)}
    path = folder / f"{row.model}-{row.weights}-{row.layer.replace(' ', '_')}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            header=np.array(json.dumps(header)),
            context_values=found.context_values,
            sizes=found.sizes,
            curve=found.curve,
            **{name: getattr(found, name).values for name in _SUBSETS},
        )
    return path


def read_rows(folder: Path) -> list[Row]:
    """All layers of a folder, in the order of their names.

    Raises:
        UserError: a file is not one of these, or has another format.
    """
    return [_read_row(path) for path in sorted(folder.glob("*.npz"))]


def _read_row(path: Path) -> Row:
    try:
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] != FORMAT:
                raise ValueError(f"format {header['format']}")
            query, mixed, position = (
                Subsets(PassRate(**header["rates"][name]), file[name]) for name in _SUBSETS
            )
            found = LayerFindings(
                header["examples"],
                header["context"],
                header["width"],
                query,
                mixed,
                position,
                file["context_values"],
                NumericalRank(**header["rank"]),
                header["kruskal"],
                header["kruskal_float32"],
                file["sizes"],
                file["curve"],
            )
            words = {name: str(header[name]) for name in _WORDS}
    except Exception as error:
        raise UserError(f"{path} can't be read ({error}); delete it and check its network again.") from error
    return Row(**words, findings=found)
