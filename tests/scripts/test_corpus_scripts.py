"""The three commands of a corpus, as the workflow calls them."""

import subprocess
from pathlib import Path
from pydoc_data.topics import topics

import pyarrow.parquet as pq
import pytest
from job_server import warm_python

from shapelaw.corpora.token_store import open_token_store
from shapelaw.corpora.tokenizer import load_tokenizer

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run(script: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(warm_python()), str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """documents.parquet of Python's language reference, one .txt file a topic."""
    folder = tmp_path_factory.mktemp("text")
    for name, text in topics.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    (folder / "again.txt").write_text(topics["if"], encoding="utf-8")
    out = folder.parent / "corpus" / "documents.parquet"
    result = run(
        "prepare_corpus.py", "--kind", "folder", "--path", folder, "--test-fraction", 0.1, "--out", out
    )
    assert result.returncode == 0, result.stderr
    duplicates = len(topics) + 1 - len(set(topics.values()))
    assert f"dropped {duplicates} duplicates and 0 without text" in result.stderr
    return out


def test_from_text_to_token_stores(documents: Path, tmp_path: Path) -> None:
    tokenizer = tmp_path / "V400" / "tokenizer.json"
    trained = run("train_tokenizer.py", "--documents", documents, "--vocab-size", 400, "--out", tokenizer)
    assert trained.returncode == 0, trained.stderr
    assert load_tokenizer(tokenizer).get_vocab_size() == 400
    bytes_of_text = 0
    for split in ("train", "test"):
        out = tmp_path / "V400" / f"{split}.json"
        encoded = run(
            "encode_corpus.py",
            "--documents",
            documents,
            "--tokenizer",
            tokenizer,
            "--split",
            split,
            "--out",
            out,
        )
        assert encoded.returncode == 0, encoded.stderr
        store = open_token_store(out, verify=True)
        assert store.vocab_size == 400
        bytes_of_text += store.text_bytes
    assert bytes_of_text == sum(len(text.encode()) for text in set(topics.values()))


def test_several_sources(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        lines = "".join(f'{{"body": "{name} {i}"}}\n' for i in range(50))
        (tmp_path / name / "rows.jsonl").write_text(lines)
    result = run(
        "prepare_corpus.py",
        *("--source", "folder:a,text_column=body"),
        *("--source", "huggingface:json,data_files=b/rows.jsonl,text_column=body"),
        *("--test-fraction", 0.3, "--out", "x.parquet"),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    found = pq.read_table(tmp_path / "x.parquet").column("source").to_pylist()
    assert found == [f"rows.jsonl:{i + 1}" for i in range(50)] + [f"json:{i}" for i in range(50)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kind", "folder"], "--kind folder needs --path DIR"),
        (["--kind", "huggingface"], "--kind huggingface needs --dataset NAME"),
        ([], "There is nothing to read"),
        (["--kind", "folder", "--path", "nowhere"], "There is no folder nowhere"),
        (["--source", "folder:."], "has no .txt, .jsonl or .parquet file"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = run("prepare_corpus.py", *arguments, "--out", "x.parquet", cwd=tmp_path)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_vocabulary_too_large_is_one_sentence(documents: Path, tmp_path: Path) -> None:
    result = run(
        "train_tokenizer.py", "--documents", documents, "--vocab-size", 100_000, "--out", tmp_path / "x.json"
    )
    assert result.returncode == 2
    assert "can't fill a vocabulary of 100,000" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_tokenizer_is_one_sentence(documents: Path, tmp_path: Path) -> None:
    options = ["--documents", documents, "--tokenizer", "gone.json", "--split", "test"]
    result = run("encode_corpus.py", *options, "--out", tmp_path / "x.json")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "There is no tokenizer gone.json" in result.stderr
    result = run("encode_corpus.py", *options, "--out", tmp_path / "x.json", "--workers", 0)
    assert "--workers is 0; it must be at least 1" in result.stderr


@pytest.mark.parametrize("script", ["prepare_corpus.py", "train_tokenizer.py", "encode_corpus.py"])
def test_help_explains(script: str) -> None:
    result = run(script, "--help")
    assert result.returncode == 0
    assert "Exit codes" in result.stdout
