"""Verdicts beside the published ones."""

from shapelaw.studies.assumptions.tables import published, verdict_table


def test_published_tables_are_beside_ours(rows):
    theirs = published()
    assert theirs["vit", "trained", "trained_vit"] == {
        "general_position": False, "assumption_1": True, "assumption_2": True
    }  # fmt: skip
    assert theirs["vit_base", "random", "embedding"]["assumption_3"]
    assert not theirs["gpt2", "trained", "layer 1"]["assumption_2"]
    table = verdict_table(rows)
    assert table["model"].tolist() == ["vit"] * 8 + ["bert"] * 4 + ["decoder"] * 4
    first = table.iloc[:4].set_index("assumption")
    assert first["published"].tolist() == ["fails", "fails", "holds", "holds"]
    assert first["ours"].tolist() == first["ours_float32"].tolist() == first["published"].tolist()
    assert first.loc["assumption 1", "holds_below"] == 0.0
    assert first["trials"].tolist() == [200, 200, 40, 200]
    assert table["published"].iloc[-4:].isna().all()
