"""The tables of redundancies that two studies write, without their figures."""

from argparse import Namespace
from pathlib import Path

import pandas as pd

from shapelaw.studies.decoders import attention_ratio, embedding_rank

ROOMS = {"embedding_rank": embedding_rank, "attention_ratio": attention_ratio}


def write_redundancies(study: str, runs: pd.DataFrame, folder: Path) -> Path:
    """Analyse the runs and write the study's redundancy.csv and losses.csv into a folder, which is made."""
    folder.mkdir()
    runs.to_csv(folder / "runs.csv", index=False)
    given = Namespace(input=folder / "runs.csv", keep=False, size="block")
    made = ROOMS[study].results(given).tables
    for name in ("redundancy", "losses"):
        made[name].frame.to_csv(folder / f"{name}.csv", index=False)
    return folder
