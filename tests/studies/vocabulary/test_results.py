"""What the vocabulary study writes."""

from typing import Any

import pandas as pd
import pytest
from vocabulary_runs import analysed, vocabulary_runs

from shapelaw.report.write import Answer, Table
from shapelaw.studies.decoders.vocabulary import answer, present


@pytest.mark.parametrize("unknown", ["tokens_trained", "bits_per_byte"])
def test_bits_per_byte_and_the_text_seen_may_be_unknown(unknown: str) -> None:
    analysis = analysed(vocabulary_runs({(257, None): 257.0}, sizes=True).drop(columns=unknown))
    assert "text_bytes" not in present(analysis).tables["losses"].frame


FITS = {"p_fit": 0.5, "chi2": 1.0, "status": "converged"}
POWER = {"b": 0.9, "b_err": 0.1, "p_none": 1e-9, "p_proportional": 0.3, "message": "", **FITS}
LEVEL = {"ratio": 1.1, "ratio_err": 0.1, "flat_width": 700.0, "flat_width_err": 30.0, **FITS}
CURVED = {"b": 0.15, "b_err": 0.01, "p_fit": 3e-32, "chi2": 145.0, "status": "curved"}


def told(of: str = "all", level: dict[str, Any] | None = None, **power: Any) -> Answer:
    rows = [{"model": "power", **POWER, **power}, {"model": "level", **LEVEL, **(level or {})}]
    table = pd.DataFrame([{"of": of, **row} for row in rows])
    return answer({"relation": Table(table, "")})


def test_an_exponent_with_its_error_decides_where_it_excludes_something():
    assert told().decided
    open_ = told(b=0.5, b_err=0.4, p_none=0.2, p_proportional=0.2)
    assert not open_.decided
    assert open_.sentence.endswith("b = 0.50 ± 0.40; neither b = 0 nor b = 1 is excluded.")
    found = told(b=None, message="0 points, and a line needs 3")
    assert not found.decided
    assert "0 points, and a line needs 3." in found.sentence


def test_an_exponent_that_does_not_fit_decides_nothing():
    level = told(**CURVED)
    assert level.decided
    assert level.sentence == (
        "The width where depth pays is 1.10 ± 0.10 of min(V, r) up to width 700 ± 30, and the same beyond; no power of "
        "min(V, r) fits (p < 0.001)."
    )
    for change in ({"status": "curved"}, {"status": "not identifiable"}, {"chi2": 140.0}):
        neither = told(level=change, **CURVED)
        assert not neither.decided
        assert neither.sentence == (
            "The width where depth pays follows no power of min(V, r) (p < 0.001); a level beyond some width does not "
            "explain it either."
        )


def test_embeddings_of_one_matrix_answer_where_they_can():
    def both(**of_one_matrix: Any) -> Answer:
        rows = [{"of": "all", "model": name, **row} for name, row in (("power", POWER), ("level", LEVEL))]
        rows += [{**row, "of": "one matrix", **of_one_matrix} for row in rows]
        return answer({"relation": Table(pd.DataFrame(rows), "")})

    assert "b = 0.40 ± 0.10." in both(b=0.4).sentence
    assert both(b=None).sentence.endswith("two factors, which train differently, are taken together.")
