"""`documents.parquet`: the documents of a corpus, each with its source and its split.

A hash of the text decides the split, so a document is in the same split in every corpus, whatever else is in it
and in whatever order. The one exception: a document goes where an earlier one with the same title went, so that an
article and its lead are in the same split. Duplicates are dropped, so no text is in both splits: texts that differ in
line ends or outer white space alone are one, and the first of them is kept as it is.
"""

from __future__ import annotations

import hashlib
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shapelaw.errors import UserError
from shapelaw.settings.sections import ONE_DOCUMENT
from shapelaw.storage.files import replacing

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("text", "source", "split")])
ROW_GROUP_BYTES = 4 * 2**20  # of text; one process encodes a row group at a time
_PROGRESS_BYTES = 200_000_000
_HASH_BYTES = 8
# all white space, and the byte order mark
_OUTER = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\ufeff"


@dataclass(frozen=True)
class Document:
    """One text and its origin: the source's name, a colon, the place in it.

    Documents with the same title go into the same split; case, white space and underscores don't matter.
    """

    text: str
    source: str
    title: str | None = None


@dataclass(frozen=True)
class CorpusCounts:
    """Counts of what `write_documents` kept and dropped; bytes are UTF-8 bytes of kept text."""

    train_documents: int
    test_documents: int
    text_bytes: int
    duplicates: int
    empty: int


def document_hash(text_bytes: bytes) -> int:
    """The stable 64-bit hash of a document's UTF-8 bytes."""
    return int.from_bytes(hashlib.blake2b(text_bytes, digest_size=_HASH_BYTES).digest(), "big")


def text_hash(text: str) -> int:
    """The stable 64-bit hash of a text without what editors and archives change: line ends and outer white space.

    Line ends count with the white space before them, and so do Unicode's; a byte order mark counts as white space.
    """
    return document_hash("\n".join(map(str.rstrip, text.strip(_OUTER).splitlines())).encode())


def title_hash(title: str) -> int | None:
    """The stable 64-bit hash of a normalised title; None for a title of white space and underscores only.

    Case, underscores, white space and Unicode's compatible forms don't matter.
    """
    words = unicodedata.normalize("NFKC", title).casefold().replace("_", " ").split()
    if not words:
        return None
    digest = hashlib.blake2b(" ".join(words).encode(), digest_size=_HASH_BYTES, person=b"title")
    return int.from_bytes(digest.digest(), "big")


def split_of(text_hash: int, test_fraction: float) -> Split:
    """The split of a document: "test" where the hash is in the lowest `test_fraction` of all hashes."""
    return "test" if text_hash < test_fraction * 2 ** (8 * _HASH_BYTES) else "train"


def write_documents(
    sources: Sequence[Iterable[Document]],
    out: Path,
    *,
    test_fraction: float = 0.05,
    limit_bytes: int | None = None,
    progress: Callable[[str], None] = lambda sentence: None,
) -> CorpusCounts:
    """Stream the sources, one after the other, into `out`; blank and repeated texts are dropped.

    A document goes into the split of the first one with its title, else into that of the hash of its text as it is.

    Memory: one row group, 8 bytes for each text and each title, and about 0.2 GB: 1 GB for 10^8 documents.
    The probability that one of so many is dropped because its 64-bit hash equals another's is 0.03%.

    Args:
        limit_bytes: bytes of text to keep, an equal part from each source; a source ends before the document that would
            exceed its part.
        progress: called with a sentence now and then.

    Raises:
        UserError: `test_fraction` is not between 0 and 1, a text is not Unicode, or a split is left empty.
    """
    if not 0 < test_fraction < 1:
        raise UserError(f"test_fraction is {test_fraction}; it must be above 0 and below 1.")
    share = limit_bytes // len(sources) if limit_bytes is not None else None
    known = HashTable()  # the split of each text and of each title
    documents = dict.fromkeys(SPLITS, 0)
    text_bytes = duplicates = empty = 0
    rows: list[tuple[str, str, Split]] = []  # of the next row group
    row_bytes = 0
    with (
        replacing(out) as temporary,
        pq.ParquetWriter(temporary, SCHEMA, compression="zstd", use_dictionary=["split"]) as writer,
    ):
        for source in sources:
            source_bytes = 0
            for document in source:
                content = _utf8(document)
                if not document.text.strip(_OUTER):
                    empty += 1
                    continue
                own_hash = text_hash(document.text)
                group_hash = title_hash(document.title or "") or own_hash
                if (place := known.get(own_hash)) is not None:
                    known.setdefault(group_hash, place)
                    duplicates += 1
                    continue
                if share is not None and source_bytes + len(content) > share:
                    break
                own_split = split_of(document_hash(content), test_fraction)
                place = known.setdefault(group_hash, SPLITS.index(own_split))
                known.setdefault(own_hash, place)
                split = SPLITS[place]
                if row_bytes + len(content) > ROW_GROUP_BYTES:
                    _write_row_group(writer, rows)
                    row_bytes = 0
                rows.append((document.text, document.source, split))
                row_bytes += len(content)
                documents[split] += 1
                source_bytes += len(content)
                before, text_bytes = text_bytes, text_bytes + len(content)
                if before // _PROGRESS_BYTES < text_bytes // _PROGRESS_BYTES:
                    progress(f"Read {sum(documents.values()):,} documents, {text_bytes / 1e6:,.0f} MB.")
        _write_row_group(writer, rows)
        _check_splits(documents, test_fraction)
    return CorpusCounts(documents["train"], documents["test"], text_bytes, duplicates, empty)


def read_texts(path: Path, split: Split, source: str = "") -> Iterator[str]:
    """The texts of one split of `documents.parquet`, in order, streamed.

    Args:
        source: beginning of the source of each.

    Raises:
        UserError: the file is missing or is not a documents.parquet.
    """
    for index in range(count_row_groups(path)):
        yield from read_row_group(path, index, split, source)[0]


def count_row_groups(path: Path) -> int:
    """Number of row groups of `documents.parquet`.

    Raises:
        UserError: the file is missing or is not a documents.parquet.
    """
    with _open(path) as file:
        return int(file.num_row_groups)


def read_row_group(path: Path, index: int, split: Split, source: str = "") -> tuple[list[str], int]:
    """The texts of one split in one row group, and their UTF-8 bytes in all; arguments as above.

    Raises:
        UserError: the file is missing or is not a documents.parquet.
    """
    with _open(path) as file:
        try:
            table = file.read_row_group(index, columns=["text", "split", *(["source"] if source else [])])
        except (OSError, pa.ArrowException) as error:
            raise UserError(
                f"Row group {index} of {path} can't be read ({error}); prepare it again: rm {path} && snakemake"
            ) from error
    wanted = pc.equal(table.column("split"), split)
    if source:
        wanted = pc.and_(wanted, pc.starts_with(table.column("source"), source))
    texts = table.column("text").filter(wanted)
    return cast(list[str], texts.to_pylist()), pc.sum(pc.binary_length(texts)).as_py() or 0


def _utf8(document: Document) -> bytes:
    try:
        return document.text.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{document.source} has half of a surrogate pair at character {error.start:,}, which is not Unicode text; "
            "repair or remove that document."
        ) from error


def _check_splits(documents: dict[Split, int], test_fraction: float) -> None:
    total = sum(documents.values())
    if not total:
        raise UserError(
            "The corpus has no document with any text; give a source that has some, or a higher --limit-bytes."
        )
    if total == 1:
        raise UserError(f"The corpus can't be split: {ONE_DOCUMENT}.")
    for split, count in documents.items():
        if not count:
            raise UserError(
                f"The {split} split is empty: the corpus has only {total:,} documents, and corpus.test_fraction "
                f"(--test-fraction) is {test_fraction}; give more documents or a fraction nearer to 0.5, such as 0.2."
            )


def _write_row_group(writer: pq.ParquetWriter, rows: list[tuple[str, str, Split]]) -> None:
    """Write documents as a row group, and forget them."""
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        writer.write_table(pa.table(columns, schema=SCHEMA))
        rows.clear()


def _open(path: Path) -> pq.ParquetFile:
    try:
        state = path.stat()
        file = pq.ParquetFile(path, metadata=_metadata(path, state.st_ino, state.st_size, state.st_mtime_ns))
    except FileNotFoundError as error:
        raise UserError(f"There is no {path}; make it: snakemake {path}") from error
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path} can't be read as parquet ({error}); prepare it again: rm {path} && snakemake"
        ) from error
    if not set(SCHEMA.names) <= set(file.schema_arrow.names):
        file.close()
        raise UserError(
            f"{path} is not a documents.parquet: its columns are {', '.join(file.schema_arrow.names)}, but it must "
            f"have {', '.join(SCHEMA.names)}; make it again: rm {path} && snakemake"
        )
    return file


@lru_cache(maxsize=1)
def _metadata(path: Path, *state: int) -> pq.FileMetaData:
    """The footer of a file, cached for its state: with 15,000 row groups (60 GB of text) it takes 80 ms to read."""
    return pq.read_metadata(path)


RECENT = 2**20  # hashes in the dict before they are sorted into the runs
_RUNS = 256  # one for each first byte of a hash; merging copies one at a time


class HashTable:
    """64-bit hashes, each with a value from 0 to 255, in 8 bytes: sorted runs, with the latest hashes in a dict.

    A run holds the hashes with one first byte, so the value can take that byte's place. Runs have
    similar lengths, since the numbers are hashes.
    """

    def __init__(self) -> None:
        self._recent: dict[int, int] = {}
        self._runs = [np.empty(0, np.uint64).data for _ in range(_RUNS)]

    def get(self, number: int) -> int | None:
        """The value of a hash; None if the table lacks it."""
        value = self._recent.get(number)
        if value is not None:
            return value
        run = self._runs[number >> 56]
        lowest = (number << 8) & (2**64 - 1)  # as an entry with the value 0
        at = bisect_left(run, lowest)
        if at < len(run) and run[at] >> 8 == lowest >> 8:
            return run[at] & 255
        return None

    def setdefault(self, number: int, value: int) -> int:
        """The value of a hash; one that the table lacked is added with `value`."""
        known = self.get(number)
        if known is not None:
            return known
        self._recent[number] = value
        if len(self._recent) >= RECENT:
            self._sort_in()
        return value

    def _sort_in(self) -> None:
        numbers = np.fromiter(self._recent.keys(), np.uint64, len(self._recent))
        values = np.fromiter(self._recent.values(), np.uint64, len(self._recent))
        self._recent = {}
        order = numbers.argsort()
        numbers, entries = numbers[order], (numbers << np.uint64(8) | values)[order]
        edges = numbers.searchsorted(np.arange(1, _RUNS, dtype=np.uint64) << np.uint64(56))
        for index, new in enumerate(np.split(entries, edges)):
            run = np.asarray(self._runs[index])
            self._runs[index] = np.insert(run, run.searchsorted(new), new).data
