"""Findings on disk, a file a layer."""

import dataclasses

import numpy as np
import pytest

from shapelaw.errors import UserError
from shapelaw.studies.assumptions.stored_findings import read_rows, write_row


def test_a_row_comes_back_as_it_was(rows, tmp_path):
    for row in rows:
        write_row(tmp_path, row)
    back = {(row.model, row.layer): row for row in read_rows(tmp_path)}
    for row in rows:
        found = back[row.model, row.layer]
        for name, value in vars(row.findings).items():
            other = getattr(found.findings, name)
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, other)
            elif hasattr(value, "values"):
                assert vars(value.rate)["rate"] == vars(other.rate)["rate"]
                np.testing.assert_array_equal(value.values, other.values)
            else:
                assert value == other
        assert dataclasses.replace(found, findings=row.findings) == row
    (tmp_path / "vit-broken.npz").write_bytes(b"PK nothing")
    with pytest.raises(UserError, match=r"vit-broken\.npz can't be read"):
        read_rows(tmp_path)
