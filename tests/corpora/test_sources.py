"""Documents of folders and data sets: streamed, in order, and a sentence for what can't be read."""

import base64
import dataclasses
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora import sources
from shapelaw.corpora.documents import Document, write_documents
from shapelaw.corpora.packages import PACKAGED
from shapelaw.corpora.sources import read_source
from shapelaw.errors import UserError
from shapelaw.settings.sections import PACKAGED_MB, PACKAGED_NAMES, Folder, HuggingFace, Source


def read(source: Source) -> list[tuple[str, str]]:
    return [(document.source, document.text) for document in read_source(source, Path("nowhere"))]


def test_the_config_knows_every_packaged_text() -> None:
    assert tuple(PACKAGED) == PACKAGED_NAMES
    for name, text in PACKAGED.items():
        assert f"{PACKAGED_MB[name]:g} MB" in text.package.what


def test_a_folder_of_all_three_kinds(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.TXT").write_bytes(b"\xef\xbb\xbfOne\r\nna\xc3\xafve")
    lines = ['{"text": "two", "id": 1}', "", '{"text": "na\\u00efve"}', '{"text": null}', '{"text": NaN}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    pq.write_table(pa.table({"n": [1, 2, 3], "text": ["four", None, "six"]}), tmp_path / "c.parquet")
    (tmp_path / "notes.md").write_text("not read")
    (tmp_path / "empty.txt").write_text("")
    assert read(Folder(tmp_path)) == [
        ("a.jsonl:1", "two"),
        ("a.jsonl:3", "naïve"),
        ("a.jsonl:4", ""),  # nulls: counted among the documents without text
        ("a.jsonl:5", ""),
        ("c.parquet:0", "four"),
        ("c.parquet:1", ""),
        ("c.parquet:2", "six"),
        ("deep/b.TXT:3", "One\r\nnaïve"),
    ]


def test_files_that_are_not_read_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "a.txt").write_text("A text.")
    assert len(read(Folder(tmp_path))) == 1
    assert capsys.readouterr().err == ""
    for name in ("b.pdf", "c.PDF", "d.md", "LICENSE", "more/e.docx"):
        (tmp_path / name).touch()
    assert len(read(Folder(tmp_path))) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"The folder {tmp_path} has 5 files that are not read (2 .pdf, ")
    assert "1 .docx" in said
    assert "1 without an ending" in said


def test_hidden_copies_are_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of notebooks, editors and other systems' archives, whose copies would stand in the test set too."""
    names = "a.txt .a.txt.swp .ipynb_checkpoints/a-checkpoint.txt __MACOSX/a.txt a.txt~ a.txt.bak"
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"A text of {name}.")
    assert read(Folder(tmp_path)) == [("a.txt:0", "A text of a.txt.")]
    said = capsys.readouterr().err
    assert "3 hidden" in said
    assert "1 .txt~" in said


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    for name in ("a/b.txt", "a-b.txt", "a.txt", "a/b/c.txt", "B.txt", "folder.txt/é.txt", "a/b-c/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    texts = [path for path in sorted(tmp_path.rglob("*.txt")) if path.is_file()]
    assert [text for _, text in read(Folder(tmp_path))] == [
        path.relative_to(tmp_path).as_posix() for path in texts
    ]


@given(text=st.text(st.sampled_from("ab \n\né中🦊")), size=st.integers(8, 40))
def test_a_long_text_is_cut_into_documents_that_make_it_up_at_the_same_places_whatever_its_line_ends(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    found = []
    for line_end in ("\n", "\r\n", "\r"):
        folder = tmp_path_factory.mktemp("text")
        content = text.replace("\n", line_end)
        (folder / "a.txt").write_bytes(content.encode())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "TEXT_DOCUMENT_BYTES", size)
            documents = read(Folder(folder))
        assert "".join(part for _, part in documents) == content
        offset = 0
        for source, part in documents:
            assert source == f"a.txt:{offset}"
            assert len(part.replace("\r\n", "\n").encode()) <= size
            offset += len(part.encode())
        found.append([part.replace(line_end, "\n") for _, part in documents])
    assert found[0] == found[1] == found[2]


def test_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    for name in (b"t\xe9xt.txt", b"d\xff/a.jsonl"):
        path = tmp_path / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"text": "A text."}')
    (tmp_path / os.fsdecode(b"a.p\xe9f")).touch()  # is told as one that is not read
    documents = list(read_source(Folder(tmp_path), tmp_path))
    assert [document.source for document in documents] == [r"d\xff/a.jsonl:1", r"t\xe9xt.txt:0"]
    write_documents(
        [[*documents, Document("Another.", "b")]], tmp_path / "documents.parquet", test_fraction=0.5
    )
    found = pq.read_table(tmp_path / "documents.parquet").column("source").to_pylist()
    assert found == [*(document.source for document in documents), "b"]


def test_a_long_text_is_cut_at_a_blank_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(("word " * 1000 + "\nend.\n\n") * 30)
    documents = [text for _, text in read(Folder(tmp_path))]
    assert len(documents) == 3
    assert all(text.endswith("end.\n\n") for text in documents)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 70_000 + "é".encode("latin-1") + b" more")
    with pytest.raises(UserError, match=r"a\.txt, byte 70,000: this is not UTF-8 \(.*\); convert the file"):
        read(Folder(tmp_path))
    path.write_bytes(b"cut short \xe4\xb8")
    with pytest.raises(UserError, match="byte 10: this is not UTF-8"):
        read(Folder(tmp_path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b'{"text": ',
            r"line 2: this is not JSON \(.*\); each line must be one object with a text in 'text'",
        ),
        *(
            (line, f"line 2: there is no text in 'text' of {shown}; name the column with text_column")
            for line, shown in (
                (b'{"body": "x"}', '{"body": "x"}'),
                (b'{"text": 3}', '{"text": 3}'),
                (b'{"text": %s}' % (b"true, " * 30)[:-2].join((b"[", b"]")), r'{"text": \[true, .*\[...\]'),
                (b'{"text": "%s"}' % base64.b64encode(b"It was the best of times. " * 3), '{"text": .*'),
                (b'["x"]', r'\["x"\]'),
            )
        ),
        (b"[" * 100_000, "line 2: this is not JSON"),
        (b'{"text": "\xff"}', "line 2, byte 10: this is not UTF-8"),
    ],
)
def test_a_wrong_line_of_json(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "fine"}\n' + line + b"\n")
    with pytest.raises(UserError, match=r"a\.jsonl, " + message):
        read(Folder(tmp_path))


def test_wrong_parquet_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [1], "body": ["x"]}), path)
    with pytest.raises(
        UserError, match=r"no column 'text' of text \(it has text \(int64\), body \(string\)\)"
    ):
        read(Folder(tmp_path))
    assert read(Folder(tmp_path, "body")) == [("a.parquet:0", "x")]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"a\.parquet can't be read \(.*\); repair it"):
        read(Folder(tmp_path))


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no folder .*nothing"):
        read(Folder(tmp_path / "nothing"))
    (tmp_path / "a.pdf").touch()
    with pytest.raises(UserError, match=r"has no \.txt, \.jsonl or \.parquet file, at any depth"):
        read(Folder(tmp_path))
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match=r"has no \.txt"):
        read(Folder(tmp_path))


def test_a_large_file_is_streamed(tmp_path: Path) -> None:
    """Documents of each kind of file come before a fault that is far behind them is met."""
    texts, line = pa.table({"text": ["word " * 200] * 300}), json.dumps({"text": "word " * 200}) + "\n"
    for name in ("txt", "jsonl", "parquet"):
        (tmp_path / name).mkdir()
    (tmp_path / "txt" / "a.txt").write_bytes(b"word " * 60_000 + b"\xff")
    (tmp_path / "jsonl" / "a.jsonl").write_text(line * 300 + "no JSON")
    path = tmp_path / "parquet" / "a.parquet"
    with pq.ParquetWriter(path, texts.schema, use_dictionary=False) as writer:
        for _ in range(2):
            writer.write_table(texts)
    with path.open("r+b") as file:
        file.seek(pq.read_metadata(path).row_group(1).column(0).data_page_offset)
        file.write(b"\xff" * 100)
    for name in ("txt", "jsonl", "parquet"):
        documents = read_source(Folder(tmp_path / name), tmp_path)
        assert next(documents).text.startswith("word word")
        with pytest.raises(UserError):
            list(documents)


def test_a_large_parquet_file_is_read_in_little_memory(tmp_path: Path) -> None:
    texts = [f"{number:07} " * 1000 for number in range(5000)]  # 40 MB
    path = tmp_path / "a.parquet"
    table = pa.table({"text": texts})
    pq.write_table(table, path, row_group_size=5000, compression="none", use_dictionary=False)
    assert path.stat().st_size > 40_000_000
    del table
    before, most = pa.total_allocated_bytes(), 0
    for number, document in enumerate(read_source(Folder(tmp_path), tmp_path)):
        assert document.text == texts[number]
        most = max(most, pa.total_allocated_bytes() - before)
    assert number == 4999
    assert most < 16_000_000


@pytest.fixture
def sentences(tmp_path: Path) -> HuggingFace:
    """A data set of five rows, through the code that streams one from the hub."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": f"row {i}", "id": i}) + "\n" for i in range(5)))
    return HuggingFace("json", data_files=str(path))


def test_a_streamed_data_set(sentences: HuggingFace) -> None:
    assert read(sentences) == [(f"json:{i}", f"row {i}") for i in range(5)]
    joined = dataclasses.replace(sentences, rows_per_document=2)
    assert read(joined) == [("json:0", "row 0\nrow 1"), ("json:2", "row 2\nrow 3"), ("json:4", "row 4")]


def test_a_data_set_that_is_a_folder_and_wrong_ones(sentences: HuggingFace, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"body": ["a", None, "b"]}), tmp_path / "folder" / "train.parquet")
    rows = read(HuggingFace(str(tmp_path / "folder"), text_column="body"))
    assert [text for _, text in rows] == ["a", "", "b"]
    with pytest.raises(UserError, match=r"no text in 'body' \(its columns are text, id\)"):
        read(dataclasses.replace(sentences, text_column="body"))
    with pytest.raises(UserError, match=r"'json' can't be read \(Bad split: test.* the source folder:DIR"):
        read(dataclasses.replace(sentences, split="test"))
    with pytest.raises(UserError, match=r"'json' can't be read .*nothing"):
        read(HuggingFace("json", data_files=str(tmp_path / "nothing.jsonl")))
