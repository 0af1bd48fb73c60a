"""The numbers of a summary run: few, and each found by a filter as it is typed."""

import re
from pathlib import Path

import pandas as pd
import pytest
from golden_tables import COMMANDS, golden
from mlflow.tracking import MlflowClient
from small import REPOSITORY

from shapelaw.campaign.findings import MOST, headline
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import present

AXES = ("vocab_size", "embedding_rank", "heads")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Those of the committed grid of the demo."""
    folder = tmp_path_factory.mktemp("tables")
    runs = pd.read_parquet(REPOSITORY / "docs" / "results" / "demo_grid.parquet")
    made = present(analyse_grid(runs, "the demo's grid", axes=AXES)).tables
    for name, table in made.items():
        table.frame.to_csv(folder / f"{name}.csv", index=False)
    transitions = pd.read_csv(folder / "transitions.csv")
    transitions.loc[transitions["method"] == "bootstrap", "width"] = 37.5
    transitions.to_csv(folder / "transitions.csv", index=False)
    return {path.stem: path for path in folder.iterdir()}


def test_effects_best_depths_and_transitions_have_names_that_one_would_guess(tables: dict[str, Path]) -> None:
    numbers = headline(tables)
    effects = pd.read_csv(tables["effects"])
    means = effects[
        (effects["axis"] == "heads")
        & (effects["settings"] > 1)
        & (effects["one"] == 1)
        & (effects["other"] == 2)
    ]
    assert numbers["effect.heads_1_to_2"] == means["value"].iloc[0]
    assert list(numbers)[:2] == ["effect.vocab_size_257_to_500", "effect.embedding_rank_8_to_full"]
    assert numbers["best_depth.at_55_3K"] == 2
    assert numbers["transition_width.depth1_2.V500_r8_H2"] == 37.5
    assert len(numbers) <= MOST


def test_a_study_of_one_cell_names_its_sizes_and_no_cell(tmp_path: Path) -> None:
    rows = [{"depth": 1, "deeper_depth": 2, "width": 137.0, "method": "bootstrap", "vocab_size": 2000}]
    pd.DataFrame(rows)[["vocab_size", "depth", "deeper_depth", "width", "method"]].to_csv(
        tmp_path / "transitions.csv", index=False
    )
    pd.DataFrame([{"size_low": 52e3, "size_high": 1.5e6, "best_depth": 3}]).to_csv(
        tmp_path / "best_depth.csv", index=False
    )
    assert headline({path.stem: path for path in sorted(tmp_path.iterdir())}) == {
        "best_depth.at_52K_to_1_5M": 3.0,
        "transition_width.depth1_2": 137.0,
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_of_every_study_have_a_headline(command: str, tmp_path: Path) -> None:
    for name, text in golden(command).items():
        path = tmp_path / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = headline({path.stem: path for path in tmp_path.rglob("*.csv")})
    assert len(found) <= MOST
    assert all(re.fullmatch(r"[a-z_]+(\.\w+)+", name) for name in found), found


def test_of_many_numbers_the_first_forty_stay(tmp_path: Path) -> None:
    names = ("axis", "one", "other", "settings", "quantity", "value")
    rows = [("learning_rate", 1e-5, 0.001 * k, 1, "loss at equal size", 0.5) for k in range(1, 60)]
    pd.DataFrame(rows, columns=names).to_csv(tmp_path / "effects.csv", index=False)
    numbers = headline({"effects": tmp_path / "effects.csv"})
    assert len(numbers) == MOST
    assert next(iter(numbers)) == "effect.learning_rate_1e_05_to_0_001"


def test_a_filter_finds_each_as_it_stands(tables: dict[str, Path], empty_store: Path, tmp_path: Path) -> None:
    """Without backticks."""
    store = tmp_path / "mlflow.db"
    store.write_bytes(empty_store.read_bytes())
    client = MlflowClient(f"sqlite:///{store}")
    experiment = client.create_experiment("mine")
    run = client.create_run(experiment).info.run_id
    names = {**headline(tables), "effect.learning_rate_1e_05_to_0_001": 1.0, "best_depth.at_52K_to_1_5M": 3.0}
    for name, value in names.items():
        client.log_metric(run, name, value)
    for name in names:
        for rest in ("", " and metrics.best_depth.at_55_3K = 2"):
            found = client.search_runs([experiment], f"metrics.{name} < 1000{rest}")
            assert [each.info.run_id for each in found] == [run], name
