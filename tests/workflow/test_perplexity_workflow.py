"""Perplexity of trained decoders in the real Snakemake: their weights stay, and the target is asked for by name."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from gpt2_files import PAIRS, vocabulary_json
from project import CONFIG, GRID, Project

pytestmark = pytest.mark.slow

TINY: dict[str, Any] = {"widths": {1: [4, 8]}, "repeated": {}}


def test_weights_are_kept_and_measured(tmp_path: Path, with_corpus: Path) -> None:
    """Of runs in turn; asked twice, nothing is done again."""
    project = Project(tmp_path, with_corpus)
    folder = project.folder / "gpt2"
    folder.mkdir()
    (folder / "vocab.json").write_bytes(vocabulary_json())
    (folder / "merges.txt").write_bytes(PAIRS)
    sections = {
        "grids": {"depth_width": {**GRID, **TINY}},
        "corpus": {**CONFIG["corpus"], "gpt2_files": "gpt2"},
        "execution": {"job_minutes": 1.0},
    }
    project.configure(**sections)
    refused = project.snakemake("perplexity", ok=False)
    assert "No perplexity is asked for; name a study or grid of decoders" in refused.stderr + refused.stdout
    project.configure(**sections, perplexity={"of": ["depth_width"], "documents": 3})
    project.snakemake("perplexity")
    results = sorted((project.folder / "results/perplexity").glob("*.json"))
    keys = [path.stem for path in results]
    assert keys == sorted(project.trained())
    assert len(keys) == 2
    for path in results:
        found = json.loads(path.read_text())
        assert found["documents"] == 3
        assert found["context"] == GRID["context_length"]
        assert 2 < found["perplexity"]["value"] < 400
        nats = found["tokens"] * math.log(found["perplexity"]["value"])
        assert found["gpt2_tokens"] * math.log(found["gpt2_perplexity"]["value"]) == pytest.approx(nats)
    kept = {path.parent.name for path in (project.folder / "results/checkpoints").glob("*/step-*.pt")}
    assert kept == set(keys)
    assert project.planned("perplexity") == []
