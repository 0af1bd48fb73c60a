"""The study of attention's degree on tables whose truth is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bottleneck_runs import with_another, with_recipe

from shapelaw.errors import UserError
from shapelaw.fits.inputs import RECIPE
from shapelaw.studies.decoders.attention_degree import analyse, present, read_decoders
from shapelaw.studies.study_runs import StudyRuns, study_runs

TRUE_LOSS = {None: 2.0, 2: 2.3, 3: 2.1, 4: 2.1}


def table(seeds: int = 5, noise: float = 0.01) -> pd.DataFrame:
    """Softmax is best, degrees 3 and 4 are equal, 2 is worst; what seeds share is ten times their own noise."""
    random, rows = np.random.default_rng(1), []  # one table in twenty has a false alarm
    for width, gain in ((64, 0.0), (128, 0.2)):
        shared = random.standard_normal(seeds) * 10 * noise
        for degree, loss in TRUE_LOSS.items():
            losses = loss - gain + shared + noise * random.standard_normal(seeds)
            network = {"depth": 2, "width": width, "attention_degree": degree or np.nan}
            sizes = {"attention_dim": width // 2, "total_params": 24 * width**2}
            rows.append(pd.DataFrame(network | sizes | {"seed": range(seeds), "test_loss": losses}))
    return pd.concat(rows, ignore_index=True)


def test_the_truth_is_found_through_what_seeds_share(tmp_path: Path) -> None:
    runs = table().astype({"attention_degree": "Int64"})
    runs.to_csv(tmp_path / "runs.csv", index=False)
    runs.to_parquet(tmp_path / "runs.parquet")
    found, same = (analyse(study_runs(tmp_path / f"runs.{ending}")) for ending in ("csv", "parquet"))
    assert found == same
    verdicts = {
        (one.decoders.width, one.decoders.attention, one.against): one.nats.verdict
        for one in found.differences
    }
    for width in (64, 128):
        assert verdicts[width, "softmax", "degree 3"] == "better"
        assert verdicts[width, "degree 2", "degree 3"] == "worse"
        assert verdicts[width, "degree 4", "degree 3"] == "no significant difference"
        assert verdicts[width, "degree 3", "softmax"] == "worse"
    assert len(verdicts) == 2 * (3 + 3)


def test_one_seed_or_no_reference_is_no_comparison() -> None:
    found = analyse(StudyRuns(table(seeds=1), "runs.csv", ()))
    assert {one.nats.verdict for one in found.differences} == {"one seed: no comparison"}
    assert present(found).fit["status"] == "too few points"
    assert not present(found).answer.decided
    runs = table()
    alone = analyse(StudyRuns(runs[runs["attention_degree"] == 4], "runs.csv", ()))
    assert alone.differences == []
    assert present(alone).answer.sentence.startswith("No degree can be compared with degree 3")


@pytest.mark.parametrize("name", RECIPE)
def test_decoders_that_differ_in_more_than_degree_are_a_sentence(name: str) -> None:
    runs = with_recipe(table())
    read_decoders(runs, "runs.csv")
    if name != "attention_degree":
        with pytest.raises(UserError, match=f"with different values of {name} "):
            read_decoders(with_another(runs, name, runs["attention_degree"].isna()), "runs.csv")


def test_wrong_tables_are_told() -> None:
    with pytest.raises(UserError, match="lacks attention_degree"):
        read_decoders(table().drop(columns="attention_degree"), "runs.csv")
    with pytest.raises(UserError, match=r"a run .* must have one row"):
        read_decoders(pd.concat([table(), table()], ignore_index=True), "runs.csv")
    for wrong in (1, -2, 2.5):
        runs = table()
        runs.loc[6, "attention_degree"] = wrong
        with pytest.raises(
            UserError, match="row 7: attention_degree must be 2 or more, or empty for softmax"
        ):
            read_decoders(runs, "runs.csv")
    runs = table()
    runs.loc[2, "test_loss"] = None
    with pytest.raises(UserError, match="row 3: test_loss must be a finite number"):
        read_decoders(runs, "runs.csv")
