"""Keys that contradict each other, files that are missing, and secrets that would be shown."""

from typing import Any

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config

SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        f"http://ada:{SECRET}@example.org",
        f"https://{SECRET}@example.org",
        f"postgresql://ada:{SECRET}@example.org/mlflow",
        f"postgresql://ada:x@{SECRET}@example.org/mlflow",
        f"mysql+pymysql://ada:'{SECRET}@example.org/mlflow",
        f"postgresql://example.org/mlflow?user=ada&password={SECRET}",
        f"postgresql://example.org/mlflow?sslpassword={SECRET}",
        f"https://example.org/?token={SECRET}",
    ],
)
def test_a_secret_in_the_tracking_uri_is_refused_and_not_shown(uri: str) -> None:
    said = problems_of(tracking={"uri": uri})
    assert "tracking.uri holds a password or a token" in said
    assert "MLFLOW_TRACKING_PASSWORD" in said
    assert "in the environment" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    "uri",
    [None, "sqlite:///results/mlflow.db", "http://example.org:5000", "postgresql://ada@example.org/mlflow"],
)
def test_a_tracking_uri_without_a_secret_is_taken(uri: str | None) -> None:
    assert load_config(shipped(tracking={"uri": uri}), SCALES).tracking.uri == uri


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"corpus": {"sources": ["wikki"]}}, ["corpus.sources: the source 'wikki'", "did you mean 'wiki'?"]),
        ({"corpus": {"sources": ["folder:/nowhere"]}}, ["there is no folder /nowhere"]),
        (
            {"corpus": {"sources": ["folder:"]}},
            ["corpus.sources: the source 'folder:' must begin with folder:NAME"],
        ),
        ({"corpus": {"sources": ["wiki,config=en"]}}, ["has an unknown option 'config=en'; known are: none"]),
        ({"corpus": {"sources": ["folder:.ci"]}}, [".ci has no .txt, .jsonl, .parquet file, at any depth"]),
        ({"corpus": {"gpt2_files": "/nowhere"}}, ["corpus.gpt2_files is /nowhere, which is not a folder"]),
        (
            {"corpus": {"gpt2_files": "/", "tokenizer_50257": "trained"}},
            ["corpus.gpt2_files is set and corpus.tokenizer_50257 is trained; leave one of them out"],
        ),
        (
            {"training": {"steps": 1000, "warmup_steps": 5000}},
            ["training.warmup_steps is 5000, not below training.steps (1000)"],
        ),
        (
            {"training": {"parametrization": "completep", "optimizer": "adam"}},
            [
                "training.parametrization is completep and training.optimizer is adam with a weight decay of 0.01, "
                "which adam adds to gradients that get smaller with the depth; set optimizer to adamw, or weight_decay"
            ],
        ),
        (
            {"training": {"parametrization": "complete"}},
            ["training.parametrization is 'complete'", "'standard' or 'completep'"],
        ),
        ({"training": {"precision": "bfloat16"}}, ["bfloat16 is several times slower than float32 on a CPU"]),
    ],
)
def test_each_contradiction_and_missing_file_is_a_sentence(
    changes: dict[str, Any], sentences: list[str]
) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said
