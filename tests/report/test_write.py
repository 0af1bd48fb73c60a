"""Results become files, those that were declared."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from shapelaw.report.write import Results, Table, UndeclaredResults, check_declared


def test_other_results_than_declared_are_refused() -> None:
    table, figure = Table(pd.DataFrame(), ""), Figure()
    check_declared(Results({"a": table}, {"f": figure}, {}, ""), ["a"], ["f"])
    check_declared(Results({}, {"f": figure}, {}, "", {"a": "no runs"}), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="table b is not declared; table a is declared and was not"):
        check_declared(Results({"b": table}, {"f": figure}, {}, ""), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="figure f is declared and was not made"):
        check_declared(Results({"a": table}, {}, {}, ""), ["a"], ["f"])
