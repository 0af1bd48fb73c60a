"""The study of attention's degree on tables whose truth is known."""

from pathlib import Path

import numpy as np
import pandas as pd

from shapelaw.studies.decoders.attention_degree import analyse, present
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
