from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora import documents
from shapelaw.corpora.documents import (
    SCHEMA,
    Document,
    count_row_groups,
    document_hash,
    read_row_group,
    read_texts,
    split_of,
    write_documents,
)
from shapelaw.errors import UserError

pytest_plugins = ["corpus_fixtures"]

TEXTS = [f"document number {number}" for number in range(200)]


def source(texts: list[str], name: str = "s") -> Iterator[Document]:
    return (Document(text, f"{name}:{number}") for number, text in enumerate(texts))


def rows(path: Path) -> list[tuple[str, str, str]]:
    return [tuple(row.values()) for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "corpus" / "documents.parquet"


def test_documents_keep_text_source_and_order(out: Path) -> None:
    counts = write_documents([source(TEXTS[:150], "a"), source(TEXTS[150:], "b")], out, test_fraction=0.2)
    assert pq.read_schema(out).equals(SCHEMA)
    assert [row[0] for row in rows(out)] == TEXTS
    assert [rows(out)[i][1] for i in (0, 149, 150)] == ["a:0", "a:149", "b:0"]
    assert counts.train_documents + counts.test_documents == 200
    assert 20 <= counts.test_documents <= 60
    assert counts.text_bytes == sum(map(len, TEXTS))
    assert list(read_texts(out, "test")) == [text for text, _, split in rows(out) if split == "test"]
    assert len(list(read_texts(out, "train"))) == counts.train_documents


def test_the_hash_is_the_same_for_ever() -> None:
    assert document_hash(b"") == 0xE4A6A0577479B2B4
    assert document_hash("naïve".encode()) == 0xBEF26892EEEB4CDC


@given(fraction=st.floats(0.01, 0.99))
def test_a_split_is_a_share_of_all_hashes(fraction: float) -> None:
    assert split_of(0, fraction) == "test"
    assert split_of(2**64 - 1, fraction) == "train"
    edge = int(fraction * 2**64)
    assert split_of(edge + 2**12, fraction) == "train"
    assert split_of(edge - 2**12, fraction) == "test"


@given(order=st.permutations(TEXTS[:40]), smaller=st.integers(20, 40))
def test_a_split_depends_on_the_text_alone(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], smaller: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    write_documents([source(TEXTS[:40])], folder / "a.parquet", test_fraction=0.5)
    write_documents([source(order[:smaller])], folder / "b.parquet", test_fraction=0.5)
    whole, part = (
        {text: split for text, _, split in rows(folder / name)} for name in ("a.parquet", "b.parquet")
    )
    assert part.items() <= whole.items()


def test_repeated_and_empty_documents_are_dropped_and_counted(out: Path) -> None:
    counts = write_documents(
        [source([*TEXTS, TEXTS[3], "", " \n\t"]), source([TEXTS[5], TEXTS[5] + " "])], out
    )
    assert (counts.duplicates, counts.empty) == (2, 2)
    assert [row[0] for row in rows(out)] == [*TEXTS, TEXTS[5] + " "]


def test_the_limit_is_shared_among_the_sources(out: Path) -> None:
    long, short = ["x" * 99 + chr(65 + i) for i in range(20)], TEXTS[:3]
    write_documents([source(long), source(short, "b")], out, test_fraction=0.5, limit_bytes=1050)
    assert [row[0] for row in rows(out)] == long[:5] + short


def test_a_row_group_is_bounded(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "ROW_GROUP_BYTES", 100)
    texts = [*TEXTS, "é" * 300, *(text + "!" for text in TEXTS)]
    write_documents([source(texts)], out, test_fraction=0.5)
    found: list[str] = []
    for index in range(count_row_groups(out)):
        group = pq.ParquetFile(out).read_row_group(index).to_pylist()
        size = sum(len(row["text"].encode()) for row in group)
        assert size <= 100 or len(group) == 1
        train, train_bytes = read_row_group(out, index, "train")
        test, test_bytes = read_row_group(out, index, "test")
        assert train_bytes + test_bytes == size
        assert sorted(train + test) == sorted(row["text"] for row in group)
        found += [row["text"] for row in group]
    assert found == texts


def test_progress_is_told(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_PROGRESS_BYTES", 2000)
    sentences: list[str] = []
    write_documents([source(TEXTS)], out, progress=sentences.append)
    assert len(sentences) == sum(map(len, TEXTS)) // 2000
    assert sentences[0].startswith("Read ")


def test_a_failed_source_leaves_the_old_file(out: Path) -> None:
    write_documents([source(TEXTS)], out)
    before = out.read_bytes()

    def broken() -> Iterator[Document]:
        yield Document("new", "s:0")
        raise UserError("the disk is gone")

    with pytest.raises(UserError, match="the disk is gone"):
        write_documents([broken()], out)
    assert out.read_bytes() == before
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_wrong_test_fraction(out: Path, fraction: float) -> None:
    with pytest.raises(UserError, match="must be above 0 and below 1"):
        write_documents([source(TEXTS)], out, test_fraction=fraction)


def test_half_of_a_surrogate_pair(out: Path) -> None:
    with pytest.raises(UserError, match="s:1 has half of a surrogate pair at character 3"):
        write_documents([source(["fine", "abc\ud83e"])], out)


@pytest.mark.parametrize("texts", [[], ["", "\n"]])
def test_an_empty_corpus(out: Path, texts: list[str]) -> None:
    with pytest.raises(UserError, match="no document with any text"):
        write_documents([source(texts)], out)
    assert not out.exists()


def test_an_empty_split(out: Path) -> None:
    with pytest.raises(UserError, match=r"test split is empty: .* only 1 documents, .* is 0\.001"):
        write_documents([source(TEXTS[:1])], out, test_fraction=0.001)


def test_files_that_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(UserError, match=r"There is no .*x\.parquet; make it with"):
        count_row_groups(path)
    path.write_bytes(b"PAR1 and so on")
    with pytest.raises(UserError, match="can't be read as parquet"):
        count_row_groups(path)
    pq.write_table(pa.table({"text": ["a"]}), path)
    with pytest.raises(UserError, match="its columns are text, and it must have text, source, split"):
        list(read_texts(path, "train"))


def test_the_default_corpus(default_documents: Path) -> None:
    table = pq.read_table(default_documents)
    assert table.num_rows == 10_033
    assert sum(len(text.encode()) for text in table.column("text").to_pylist()) == 4_885_535
    assert table.column("source")[0].as_py() == "wiki:20th-century classical music"
    assert table.column("split").to_pylist().count("test") == 495
