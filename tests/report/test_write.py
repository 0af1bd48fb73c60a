"""Results become files, those that were declared."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from shapelaw.report.write import Results, Table, UndeclaredResults, check_declared, show_results


def test_other_results_than_declared_are_refused() -> None:
    table, figure = Table(pd.DataFrame(), ""), Figure()
    check_declared(Results({"a": table}, {"f": figure}, {}, ""), ["a"], ["f"])
    check_declared(Results({}, {"f": figure}, {}, "", {"a": "no runs"}), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="table b is not declared; table a is declared and was not"):
        check_declared(Results({"b": table}, {"f": figure}, {}, ""), ["a"], ["f"])
    with pytest.raises(UndeclaredResults, match="figure f is declared and was not made"):
        check_declared(Results({"a": table}, {}, {}, ""), ["a"], ["f"])


def test_a_figure_with_nothing_to_draw_is_a_sentence_in_its_files_and_in_the_output(tmp_path, capsys) -> None:
    results = Results({}, {"speed": "no threshold is reached"}, {}, "Found.")
    check_declared(results, [], ["speed"])
    show_results(results, tmp_path, "study")
    assert "No figure speed: no threshold is reached.\n" in capsys.readouterr().out
    drawn = (tmp_path / "speed.svg").read_text(encoding="utf-8")
    assert "<!-- No figure: no threshold is reached -->" in drawn
    assert 'id="axes_' not in drawn
    assert (tmp_path / "speed.png").is_file()
