"""The tables of redundancies that two studies write, without their figures."""

from pathlib import Path

import pandas as pd

from shapelaw.studies.attention_ratio import results as attention_ratio
from shapelaw.studies.attention_ratio import tables as attention_ratio_tables
from shapelaw.studies.embedding_rank import results as embedding_rank
from shapelaw.studies.embedding_rank import tables as embedding_rank_tables


def write_redundancies(study: str, runs: pd.DataFrame, folder: Path) -> Path:
    """Analyse the runs and write the study's redundancy.csv and losses.csv into a folder, which is made."""
    folder.mkdir()
    runs.to_csv(folder / "runs.csv", index=False)
    made = {
        "embedding_rank": lambda: _tables(embedding_rank, embedding_rank_tables, folder),
        "attention_ratio": lambda: _tables(attention_ratio, attention_ratio_tables, folder),
    }[study]()
    for name, table in made.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


def _tables(results, tables, folder: Path) -> dict[str, pd.DataFrame]:  # type: ignore[no-untyped-def]
    analysis = results.analyse(folder / "runs.csv")
    return {"redundancy": tables.redundancy_table(analysis), "losses": tables.losses_table(analysis)}
