"""The command that fits public losses anew."""

import json
from pathlib import Path

import pandas as pd
import pytest
from commands import output_of
from public_losses import made_table


def with_times(table: pd.DataFrame) -> pd.DataFrame:
    """Times of a machine whose FLOP/s go as work^0.25 and depth^-0.4."""
    work = table["block_params"] + (50304 + 2 * 2048 * table["depth"]) * table["width"]
    seconds = work * 4e6 / (8 * work**0.25 * table["depth"] ** -0.4)
    return table.assign(vocab_size=50304, batch_tokens=4e6, nodes=8, seconds_per_step=seconds)


@pytest.mark.slow
def test_a_table_of_losses_becomes_draws_that_shape_reads(tmp_path: Path) -> None:
    losses = made_table(0.004, budgets=(1e10, 3e10, 5e10, 1e11, 2e11, 3e11))
    losses = losses[losses.groupby(["depth", "width"]).ngroup() % 2 == 0].reset_index(
        drop=True
    )  # fewer to leave out
    with_times(losses).to_csv(tmp_path / "losses.csv", index=False)
    given = ("--table", "losses.csv", "--out", "made", "--checks", "checks.csv", "--draws", 20)
    output_of("evidence", *given, cwd=tmp_path)
    content = json.loads((tmp_path / "made" / "evidence.json").read_text(encoding="utf-8"))
    assert sum(len(group["draws"]) for group in content["groups"]) == 5 * 20
    assert content["time"]["work"] == pytest.approx(0.25, abs=1e-3)
    assert content["time"]["depth"] == pytest.approx(-0.4, abs=1e-3)
    assert content["command"] == "shapelaw evidence --table losses.csv"
    checks = pd.read_csv(tmp_path / "checks.csv")
    assert set(checks["left_out"]) >= {
        "all runs of the half rate",
        "Levine et al. 2020, table 4a",
        "all runs of Bian et al. 2025, 20N",
        "each shape of Bian et al. 2025, 20N",
    }
    assert checks["held"].dropna().between(0, 1).all()
    assert content["range"]["tokens"][0] == 1610612736 < content["range"]["level_tokens"][0] == 10**10
    text = json.dumps(content)
    assert "loss" not in content["groups"][0]
    assert str(losses["loss"][0])[:8] not in text  # fits, not losses
