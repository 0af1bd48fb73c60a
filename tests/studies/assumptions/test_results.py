"""Tables and the figure: published verdicts beside ours, a panel for each layer behind a first attention layer."""

import pandas as pd
import pytest

from shapelaw.report.write import Table
from shapelaw.studies.assumptions.results import answer, pass_rate_figure, present, verdict_table


def test_published_tables_are_beside_ours(rows):
    table = verdict_table(rows)
    assert table["model"].tolist() == ["vit"] * 8 + ["bert"] * 4 + ["decoder"] * 4
    first = table.iloc[:4].set_index("assumption")
    assert first["published"].tolist() == ["fails", "fails", "holds", "holds"]
    assert first["ours"].tolist() == first["ours_float32"].tolist() == first["published"].tolist()
    assert first.loc["assumption 1", "holds_below"] == 0.0
    assert first["trials"].tolist() == [200, 200, 40, 200]
    assert table["published"].iloc[-4:].isna().all()


def test_layers_behind_attention_have_a_panel_each(rows):
    panels = [axis for axis in pass_rate_figure(rows).figure().axes if axis.get_title(loc="left")]
    assert [axis.get_title(loc="left") for axis in panels] == [
        "trained ViT, DINOv2-small\nn = 6, d = 12",
        "BERT, random, layer 1\nn = 6, d = 12",
    ]
    for axis in panels:
        dashed, dotted = (line for line in axis.get_lines() if len(set(line.get_xdata())) == 1)
        assert (dashed.get_xdata()[0], dotted.get_xdata()[0]) == (6, 12)


def test_embeddings_alone_have_no_figure(rows):
    with pytest.raises(ValueError, match="no layer after an attention layer"):
        pass_rate_figure([row for row in rows if row.layer in ("embedding", "layer 0")])


def test_rates_fall_where_the_tolerance_grows(rows):
    tables = present(rows).tables
    assert (tables["sensitivity"].frame.filter(like="1e-").diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    assert tables["pass_rate"].frame["rate"].between(0, 1).all()


def test_layers_on_which_each_holds_and_agreement_with_the_paper():
    rows = [
        ("assumption 1", "holds", "holds"),
        ("assumption 1", "fails", "holds"),
        ("general position", "fails", None),
    ]
    verdicts = pd.DataFrame(rows, columns=["assumption", "ours", "published"])
    found = answer({"verdicts": Table(verdicts, "")})
    assert found.decided
    assert found.sentence == "Layers on which it holds: assumption 1 on 1 of 2, general position on 0 of 1."
    assert found.published == "1 of 2 published verdicts agree with ours."
