"""documents.parquet: what is kept, in which split, and what is said of texts that can't be."""

import hashlib
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
    HashTable,
    count_row_groups,
    document_hash,
    read_row_group,
    read_texts,
    split_of,
    title_hash,
    write_documents,
)
from shapelaw.errors import UserError

TEXTS = [f"document number {number}" for number in range(200)]


def source(texts: list[str], name: str = "s") -> Iterator[Document]:
    return (Document(text, f"{name}:{number}") for number, text in enumerate(texts))


def rows(path: Path) -> list[tuple[str, str, str]]:
    return [tuple(row.values()) for row in pq.read_table(path).to_pylist()]


def by_text(text: str, test_fraction: float = 0.5) -> str:
    return split_of(document_hash(text.encode()), test_fraction)


def text_in(split: str, tail: str = "") -> str:
    """A text whose own hash puts it into a split, half of all texts being in each; it is none of TEXTS."""
    return next(text for i in range(99) if by_text(text := f"text {i}{tail}") == split)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "corpus" / "documents.parquet"


def test_documents_keep_text_source_and_order(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_PROGRESS_BYTES", 2000)
    told: list[str] = []
    sources = [source(TEXTS[:150], "a"), source(TEXTS[150:], "b")]
    counts = write_documents(sources, out, test_fraction=0.2, progress=told.append)
    assert len(told) == sum(map(len, TEXTS)) // 2000
    assert told[0].startswith("Read ")
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
    path = tmp_path_factory.mktemp("split") / "documents.parquet"
    write_documents([source(order[:smaller])], path, test_fraction=0.5)
    assert {text: split for text, _, split in rows(path)} == {text: by_text(text) for text in order[:smaller]}


def test_titles_in_other_letters_and_other_titles() -> None:
    same = ["alan turing", "Alan_Turing", " Alan\u00a0 Turing\n", "ＡＬＡＮ Turing", "_alan__turing_"]
    assert {title_hash(title) for title in same} == {title_hash("Alan Turing")}
    titles = ["Alan Turing", "AlanTuring", "Alan Turing (film)", "Ålan Turing", "Straße", "²", "3"]
    assert len({title_hash(title) for title in titles}) == len(titles)
    assert title_hash("STRASSE") == title_hash("Straße")
    assert title_hash("A\u030aland") == title_hash("åland")
    assert title_hash("") is title_hash(" _\n") is None
    assert title_hash("fox") != document_hash(b"fox")


@given(
    documents=st.lists(
        st.tuples(st.sampled_from(TEXTS[:12]), st.sampled_from(["Fox", "fox_", "Hen", " hen", "_", ""])),
        min_size=2,
    )
)
def test_documents_of_one_title_are_in_one_split(
    tmp_path_factory: pytest.TempPathFactory, documents: list[tuple[str, str]]
) -> None:
    out = tmp_path_factory.mktemp("titles") / "documents.parquet"
    titled = [Document(text, title, title) for text, title in documents]
    write_documents([titled, source(TEXTS[12:40])], out, test_fraction=0.5)
    of_title: dict[int, str] = {}
    for text, name, split in rows(out):
        group = title_hash(name) if not name.startswith("s:") else None
        if group is None:
            assert split == by_text(text)
        else:
            assert of_title.setdefault(group, split) == split
    assert len(rows(out)) == len({text for text, _, _ in rows(out)}) == len({t for t, _ in documents}) + 28


def test_the_first_document_of_a_title_decides(out: Path) -> None:
    train, test = text_in("train"), text_in("test")
    for first, second in ((train, test), (test, train)):
        write_documents(
            [[Document(first, "a", "The Fox")], source(TEXTS[:9]), [Document(second, "b", "the_fox")]],
            out,
            test_fraction=0.5,
        )
        found = {name: split for _, name, split in rows(out)}
        assert found["a"] == found["b"] == by_text(first) != by_text(second)


def test_a_text_under_two_titles_joins_them(out: Path) -> None:
    """The second title's other text goes where the repeated one is, whatever its own hash says."""
    train, test = text_in("train"), text_in("test")
    for first, second in ((train, test), (test, train)):
        documents = [Document(first, "a", "A"), Document(first, "b", "B"), Document(second, "c", "b")]
        counts = write_documents([documents, source(TEXTS[:9])], out, test_fraction=0.5)
        assert counts.duplicates == 1
        assert rows(out)[:2] == [(first, "a", by_text(first)), (second, "c", by_text(first))]


def test_a_document_beyond_the_limit_decides_nothing(out: Path) -> None:
    train, test = text_in("train"), text_in("test")
    long = text_in("test", tail="!" * 500)
    sources = [[Document(test, "a"), Document(long, "b", "A")], [Document(train, "c", "A")]]
    write_documents(sources, out, test_fraction=0.5, limit_bytes=200)
    assert rows(out) == [(test, "a", "test"), (train, "c", "train")]


def test_texts_that_differ_in_line_ends_or_outer_white_space_are_one(out: Path) -> None:
    """The first is kept as it is, in the split of its own hash, whatever the copies' hashes say; inner blanks count."""
    for split in ("train", "test"):
        first = text_in(split, "\nof  two lines\n\nand more")
        copies = [
            first + "\n",
            first.replace("\n", "\r\n"),
            first.replace("\n", "\r"),
            first.replace("\n", "\u2028"),
            first.replace("\n", " \t\n"),
            f"\ufeff \n{first}\u3000\x0c",
        ]
        assert {by_text(copy) for copy in copies} == {"train", "test"}
        other = first.replace("  ", " ")
        counts = write_documents(
            [source([first, *copies, other, "\ufeff"]), source(TEXTS[:9])], out, test_fraction=0.5
        )
        assert (counts.duplicates, counts.empty) == (len(copies), 1)
        assert [row[::2] for row in rows(out)[:2]] == [(first, split), (other, by_text(other))]


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


def test_documents_of_one_source_are_read(out: Path) -> None:
    write_documents(
        [source(TEXTS, "first"), source([f"more: {text}" for text in TEXTS], "other")], out, test_fraction=0.5
    )
    texts = [text for text, name, split in rows(out) if name.startswith("other:") and split == "test"]
    assert list(read_texts(out, "test", "other")) == texts != []
    assert list(read_texts(out, "test", "none")) == []


def test_a_footer_is_read_once_for_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "ROW_GROUP_BYTES", 100)
    reads: list[Path] = []
    read_metadata = pq.read_metadata

    def noted(path: Path) -> pq.FileMetaData:
        reads.append(path)
        return read_metadata(path)

    monkeypatch.setattr(pq, "read_metadata", noted)
    path = tmp_path / "documents.parquet"
    for texts in (TEXTS, TEXTS[50:]):
        write_documents([source(texts)], path, test_fraction=0.5)
        assert sorted([*read_texts(path, "train"), *read_texts(path, "test")]) == sorted(texts)
    assert reads == [path, path]


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


@pytest.mark.parametrize(
    ("texts", "fraction", "sentence"),
    [
        (TEXTS, 0.0, "must be above 0 and below 1"),
        (TEXTS, float("nan"), "must be above 0 and below 1"),
        (["fine", "abc\ud83e"], 0.05, "s:1 has half of a surrogate pair at character 3"),
        (["", "\n"], 0.05, "no document with any text"),
        (
            TEXTS[:1],
            0.001,
            r"can't be split: there is only one document, and training and tests take one each",
        ),
        (TEXTS[:2], 0.001, r"test split is empty: .* only 2 documents, .* is 0\.001"),
    ],
)
def test_what_is_no_corpus_is_a_sentence(texts: list[str], fraction: float, sentence: str, out: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        write_documents([source(texts)], out, test_fraction=fraction)
    assert not out.exists()


def test_files_that_are_no_documents(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with pytest.raises(UserError, match=r"There is no .*x\.parquet; make it: snakemake"):
        count_row_groups(path)
    path.write_bytes(b"PAR1 and so on")
    with pytest.raises(UserError, match="can't be read as parquet"):
        count_row_groups(path)
    pq.write_table(pa.table({"text": ["a"]}), path)
    with pytest.raises(UserError, match="its columns are text, but it must have text, source, split"):
        list(read_texts(path, "train"))


def test_the_default_corpus(default_documents: Path) -> None:
    table = pq.read_table(default_documents)
    assert table.num_rows == 10_033
    assert sum(len(text.encode()) for text in table.column("text").to_pylist()) == 4_885_535
    assert table.column("source")[0].as_py() == "wiki:20th-century classical music"
    assert table.column("split").to_pylist().count("test") == 495
    by_hash = [by_text(text, 0.05) for text in table.column("text").to_pylist()]
    assert table.column("split").to_pylist() == by_hash


NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**56 + 1, 2**63, 2**64 - 1])


@given(
    entries=st.lists(st.tuples(NUMBERS, st.integers(0, 255))),
    recent=st.integers(1, 9),
    others=st.lists(NUMBERS),
)
def test_it_does_what_a_dict_does(entries: list[tuple[int, int]], recent: int, others: list[int]) -> None:
    table, known = HashTable(), dict[int, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "RECENT", recent)
        for number, value in entries:
            assert table.get(number) == known.get(number)
            assert table.setdefault(number, value) == known.setdefault(number, value)
    for number in [*known, *others]:
        assert table.get(number) == known.get(number)


def test_a_hash_takes_eight_bytes_once_it_is_sorted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "RECENT", 1000)
    table = HashTable()
    for number in range(20_000):
        text_hash = hashlib.blake2b(b"%d" % number, digest_size=8).digest()
        table.setdefault(int.from_bytes(text_hash, "big"), number % 2)
    assert not table._recent
    assert sum(run.nbytes for run in table._runs) == 8 * 20_000
    assert max(map(len, table._runs)) < 2 * 20_000 / len(table._runs)
