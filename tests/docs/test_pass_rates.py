"""The figure of the assumptions' pass rates is drawn from the numbers committed beside it."""

from pathlib import Path

import pandas as pd
import pytest
from pass_rates import TABLE, panels
from small import REPOSITORY

from shapelaw.report.plots import save_figure
from shapelaw.studies.assumptions.results import EXPONENTS, pass_rate_chart

TABLE_OF_RATES = pd.read_csv(TABLE)


def test_each_panel_has_all_tolerances_at_the_same_sizes() -> None:
    found = panels(TABLE_OF_RATES)
    assert len(found) == 10
    for panel in found:
        assert panel.sizes == sorted(panel.sizes)
        assert {len(rates) for rates in (panel.float32, *panel.rates.values())} == {len(panel.sizes)}
        assert set(panel.rates) == set(EXPONENTS)
        # a looser tolerance counts fewer subsets as independent
        for strict, loose in zip(panel.rates[min(EXPONENTS)], panel.rates[max(EXPONENTS)], strict=True):
            assert strict >= loose


@pytest.mark.slow
def test_the_committed_figure_is_of_these_numbers(tmp_path: Path) -> None:
    drawn, _ = save_figure(pass_rate_chart(panels(TABLE_OF_RATES)).figure(), tmp_path / "drawn")
    assert drawn.read_bytes() == (REPOSITORY / "docs/figures/assumptions_pass_rate.svg").read_bytes()
