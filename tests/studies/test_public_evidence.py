"""The committed evidence and the answers that it gives."""

import pytest

from shapelaw.fits.shape_costs import Question
from shapelaw.specs.shapes_of_size import Counting
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.public_evidence import MODELS, public_answer, public_evidence, shipped_models


def test_what_was_shipped_says_where_each_row_comes_from() -> None:
    assert len(shipped_models(SizeAxis.TOTAL)) == 140
    head, *rows = MODELS.read_text(encoding="utf-8").splitlines()
    assert head.split(",")[-2] == "source"
    assert all(
        ".json" in row
        or "config" in row
        or "README" in row
        or "metadata" in row
        or "table" in row
        or ".py" in row
        for row in rows
    )


def test_the_evidence_reaches_as_far_as_its_networks() -> None:
    evidence = public_evidence()
    assert evidence.blocks == pytest.approx((22.6e6, 1.77e9), rel=0.01)
    assert evidence.totals == pytest.approx((48.4e6, 2.01e9), rel=0.01)
    assert evidence.tokens == pytest.approx((1e10, 3.5e11), rel=0.01)
    assert 0.15 < evidence.spread.sources < 0.4


@pytest.mark.parametrize("size", [125e6, 350e6, 1.3e9, 2.7e9])
def test_an_interval_is_that_of_another_lab_s_network(size: float) -> None:
    clock = public_evidence().clock
    found = public_answer(Question(size, Counting(vocab_size=32000), 3e10, clock))
    assert found.best.low < found.best.own_low <= found.best.depth <= found.best.own_high < found.best.high
    assert found.best.high / found.best.low > 1.4
