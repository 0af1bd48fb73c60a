"""A training run in the test's own process."""

from pathlib import Path

from shapelaw.corpora.token_store import TokenStore
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training import loop
from shapelaw.training.trainer import Runtime

Stores = tuple[TokenStore, TokenStore]
CPU = Runtime("cpu", threads=1)


def train(run: Run, stores: Stores, folder: Path, runtime: Runtime = CPU) -> records.Record:
    """The finished record, in `record` beside the folder `checkpoints`."""
    loop.train(run, *stores, folder / "record", folder / "checkpoints", runtime)
    return records.read_record(folder / "record")


def history_bytes(folder: Path) -> bytes:
    return (folder / "record" / "history.parquet").read_bytes()
