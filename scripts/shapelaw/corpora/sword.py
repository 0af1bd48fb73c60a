"""Commentaries of the SWORD project in its format zCom4, read from the bytes of a module's three files.

A module has, for each testament, three files. `.czz`: blocks, each compressed by zlib. `.czs`: for each block its place
and size in `.czz`, and its size unpacked. `.czv`: for each verse (and each heading of a chapter, a book and the
testament) the number of its block, and its place and size in the unpacked block. Numbers are unsigned, of 32 bits,
little-endian; sizes are bytes, and a verse without a comment has size 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

_RECORD = struct.Struct("<III")


def read_entries(verses: bytes, index: bytes, blocks: bytes) -> Iterator[tuple[int, bytes]]:
    """The entries of a testament that have a text, each with its number among all; one unpacked block is in memory.

    Neighbouring verses that share a comment point to the same text, which is returned once.

    Args:
        verses: content of the .czv file.
        index: content of the .czs file.
        blocks: content of the .czz file.

    Raises:
        ValueError: the files aren't a module, or contradict one another.
    """
    if len(verses) % _RECORD.size or len(index) % _RECORD.size:
        raise ValueError("its indices are not lists of three numbers")
    open_number, text = -1, b""
    last = None
    for number, (block, start, size) in enumerate(_RECORD.iter_unpack(verses)):
        if not size or (block, start, size) == last:
            continue
        if block != open_number:
            open_number, text = block, _unpack(block, index, blocks)
        if start + size > len(text):
            raise ValueError(f"entry {number:,} lies beyond its block of {len(text):,} bytes")
        last = (block, start, size)
        yield number, text[start : start + size]


def _unpack(block: int, index: bytes, blocks: bytes) -> bytes:
    if (block + 1) * _RECORD.size > len(index):
        raise ValueError(f"there is no block {block:,}")
    start, packed, size = _RECORD.unpack_from(index, block * _RECORD.size)
    try:
        text = zlib.decompress(blocks[start : start + packed])
    except zlib.error as error:
        raise ValueError(f"block {block:,} can't be unpacked ({error})") from error
    if len(text) != size:
        raise ValueError(f"block {block:,} has {len(text):,} bytes, but its index says {size:,}")
    return text
