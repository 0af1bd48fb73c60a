"""The three commands of a corpus, as the workflow calls them."""

from pathlib import Path
from pydoc_data.topics import topics

import pyarrow.parquet as pq
import pytest
from commands import script

from shapelaw.corpora.token_store import open_token_store
from shapelaw.corpora.tokenizer import load_tokenizer


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """documents.parquet of Python's language reference, one .txt file a topic."""
    folder = tmp_path_factory.mktemp("text")
    for name, text in topics.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
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
