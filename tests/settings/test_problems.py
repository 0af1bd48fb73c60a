"""Wrong, contradicting and missing values, each told by its key with what would be right; secrets are never shown."""

from typing import Any

import pytest
from shipped import SCALES, problems_of, shipped

from shapelaw.campaign.config import load_config
from shapelaw.settings.problems import ordinal

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


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"traning": {}}, ["traning is not a key (did you mean training?)"]),
        ({"steps": 61}, ["steps is not a key (did you mean training.steps?)"]),
        ({"training": {"step": 3}}, ["training.step is not a key (did you mean steps?)"]),
        ({"training": {"steps": 0}}, ["training.steps is 0", "it must be at least 1"]),
        ({"tracking": {"uri": "foo"}}, ["tracking.uri is 'foo'"]),
        ({"extras": ["rellu"]}, ["extras.1st is 'rellu'", "'committed_runs', 'relu' or 'assumptions'"]),
        ({"training": {"steps": "many"}}, ["training.steps is 'many': it must be a whole number"]),
        (
            {"training": {"optimizer": "sgd"}},
            ["training.optimizer is 'sgd': it must be 'adam', 'adamw' or 'muon'"],
        ),
        ({"corpus": {"test_fraction": 1.5}}, ["corpus.test_fraction is 1.5", "it must be below 1"]),
        ({"corpus": {"name": "x" * 65}}, ["corpus.name is 'xxx", "at most 64 characters"]),
        ({"studies": []}, ["studies is []: give it at least 1 value"]),
        ({"training": 5}, ["training is 5: it must be keys with values, such as {steps: ...}"]),
        (
            {"depth_width": {"widths": [16]}},
            ["grids.depth_width.widths is [16]: it must be keys with values in braces"],
        ),
        ({"corpus": {"sources": "wiki"}}, ["corpus.sources is 'wiki': it must be a list, such as [a, b]"]),
        (
            {"training.steps": 2000},
            ["training.steps is not a key; write it inside of the section: training: {steps"],
        ),
        (
            {"grids": {"vocabulary": [{"vocab_size": 300, "widths": {1: [8, 0]}}]}},
            ["grids.vocabulary.1st.widths.1.2nd is 0"],
        ),
        ({"studies": ["depth"]}, ["studies.1st is 'depth'"]),
        ({"studies": ["depth_widht"]}, ["studies.1st is 'depth_widht'", "(did you mean depth_width?)"]),
        (
            {"training": {"steps": 10**15}},
            ["training.steps is 1000000000000000", "it must be at most 1,000,000,000"],
        ),
        (
            {"training": {"batch_size": 10**9}},
            ["training.batch_size is 1000000000", "it must be at most 1,048,576"],
        ),
        ({"depth_width": {"context_length": 10**9}}, ["grids.depth_width.context_length is 1000000000"]),
        (
            {"depth_width": {"seeds": 10**6}},
            ["grids.depth_width.seeds is 1000000", "it must be at most 1,000"],
        ),
        ({"execution": {"threads": 9999}}, ["execution.threads is 9999", "it must be at most 1,024"]),
        ({"execution": {"gpus": -1}}, ["execution.gpus is -1"]),
        ({"execution": {"threads": 1.5}}, ["execution.threads is 1.5: it must be a whole number"]),
        ({"training": {"learning_rate": "fast"}}, ["training.learning_rate is 'fast': it must be a number"]),
        (
            {"execution": {"submit_analysis": "later"}},
            ["submit_analysis is 'later': it must be true or false"],
        ),
        ({"corpus": {"name": 5}}, ["corpus.name is 5: it must be a text"]),
        ({"execution": {"models_per_pack": 0}}, ["execution.models_per_pack is 0"]),
    ],
)
def test_each_mistake_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said


EMPTY = {1: [], 2: [12, 16]}


def test_a_depth_without_widths_is_a_sentence() -> None:
    for grid, where in (({"widths": EMPTY}, "vocabulary"), ([{"widths": EMPTY}], "vocabulary.1st")):
        said = problems_of(studies=["vocabulary"], grids={"vocabulary": grid})
        assert f"grids.{where}.widths.1 is []: give it at least 1 value" in said
        assert said.startswith("The config has 1 problem")


def test_places_are_counted_as_people_do() -> None:
    assert [ordinal(place) for place in (0, 1, 2, 3, 10, 11, 12, 20, 110)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th")
    ]


@pytest.mark.parametrize(
    "tracking",
    [
        {"uri": f"HTTP://ada:{SECRET}@example.org"},
        {"uri": f"ada:{SECRET}@example.org"},
        {"uri": f"http://ada:{SECRET}@[::1"},
        {"uri": f"http://ada:{SECRET}℀@example.org"},  # a letter that Python refuses with the whole address
        {"uri": [f"http://ada:{SECRET}@example.org"]},
        {"uri": {"http": f"//ada:{SECRET}@example.org"}},
        f"http://ada:{SECRET}@example.org",
        f"http://example.org?token={SECRET}",
        {"password": SECRET},
    ],
)
def test_no_other_mistake_shows_a_secret(tracking: object) -> None:
    said = problems_of(tracking=tracking)
    assert said.startswith("The config has 1 problem:\n  - tracking")
    assert SECRET not in said


def test_what_is_wrong_with_grids_of_studies_is_told_at_once() -> None:
    said = problems_of(
        studies=["block_degree", "separation_rank", "memorization_heads", "memorization_saturation"],
        block_degree=[
            {
                "target_ranks": [2],
                "degrees": [4],
                "patterns": [[2, 3]],
                "matrices": 6,
                "width": 8,
                "inputs": 5,
            }
        ],
        separation_rank=[{"depth": [1, 2], "width": [2], "heads": [3], "tokens": [3]}],
        degree_budget=[],
        memorization={"width": 8},
        memorization_heads=[{"heads": [2], "context": [4], "head_dim": [9], "examples": [20]}],
        memorization_saturation=[],
    )
    assert said.startswith("The config has 8 problems:")
    for sentence in (
        "block_degree.1st.patterns has networks of 5 matrices, and block_degree.1st.matrices is 6",
        "block_degree.1st.inputs is 5; a separable target has two halves, so take an even number",
        "block_degree.1st: 6 matrices can't be layers of degree 4 each",
        "separation_rank.1st: width 2 is not divisible by 3 heads",
        "separation_rank.1st: tokens is 3; a balanced partition needs an even number",
        "degree_budget is empty",
        "memorization_heads.1st: head_dim is 9, above the width 8",
        "memorization_saturation is empty",
    ):
        assert sentence in said
