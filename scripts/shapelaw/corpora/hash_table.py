"""A table of many hashes in little memory: 10^8 of them take about 1 GB, where a Python dict takes 10."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

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

    def __len__(self) -> int:
        return len(self._recent) + sum(map(len, self._runs))

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
