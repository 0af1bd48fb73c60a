"""The numbers that a patch embedding sees (their ids and letters: tests/corpora/test_images.py)."""

from shapelaw.specs.patches import INPUTS, PATCHES, numbers_of_ids


def test_every_patch_has_numbers_of_its_own() -> None:
    rows = numbers_of_ids()
    assert len(rows) == len({tuple(row) for row in rows}) == PATCHES + 1
    assert {len(row) for row in rows} == {INPUTS}
    assert {number for row in rows[1:] for number in row[:-1]} == {-1.0, 0.0, 1.0}
