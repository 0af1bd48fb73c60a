import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.corpora import hash_table
from shapelaw.corpora.hash_table import HashTable

NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**56 + 1, 2**63, 2**64 - 1])


@given(
    entries=st.lists(st.tuples(NUMBERS, st.integers(0, 255))),
    recent=st.integers(1, 9),
    others=st.lists(NUMBERS),
)
def test_it_does_what_a_dict_does(entries: list[tuple[int, int]], recent: int, others: list[int]) -> None:
    table, known = HashTable(), dict[int, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_table, "RECENT", recent)
        for number, value in entries:
            assert table.get(number) == known.get(number)
            assert table.setdefault(number, value) == known.setdefault(number, value)
            assert len(table) == len(known)
    for number in [*known, *others]:
        assert table.get(number) == known.get(number)


def test_a_hash_takes_eight_bytes_once_it_is_sorted_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_table, "RECENT", 1000)
    table = HashTable()
    for number in range(20_000):
        text_hash = hashlib.blake2b(b"%d" % number, digest_size=8).digest()
        table.setdefault(int.from_bytes(text_hash, "big"), number % 2)
    assert len(table) == 20_000
    assert not table._recent
    assert sum(run.nbytes for run in table._runs) == 8 * 20_000
    assert max(map(len, table._runs)) < 2 * 20_000 / len(table._runs)
