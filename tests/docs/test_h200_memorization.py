"""The tables of the memorizers from an H200 are those of their committed runs."""

import pandas as pd
import pytest
from small import REPOSITORY

RUNS = pd.read_csv(REPOSITORY / "docs/results/h200_memorization.csv")
PAGE = (REPOSITORY / "docs/results/memorization.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("task", "axis", "held", "value", "digits"),
    [
        ("classification", "context", {"heads": 20, "head_dim": 64}, "accuracy", 2),
        ("classification", "head_dim", {"heads": 30, "context": 32}, "accuracy", 2),
        ("regression", "heads", {"context": 32, "head_dim": 64}, "loss", 4),
        ("regression", "context", {"heads": 20, "head_dim": 64}, "loss", 4),
    ],
)
def test_every_row_stands_in_the_page(
    task: str, axis: str, held: dict[str, int], value: str, digits: int
) -> None:
    mine = RUNS[(RUNS["task"] == task) & (RUNS["context_type"] == "shared")]
    for name, of in held.items():
        mine = mine[mine[name] == of]
    if axis == "context":
        mine = mine[mine["context"] != 32]  # those of the figure against the heads
    for examples, row in mine.pivot_table(index="examples", columns=axis, values=value).iterrows():
        if row.notna().all():
            cells = " | ".join(f"{one:.{digits}f}" for one in row)
            assert f"| {examples:,} | {cells} |" in PAGE
