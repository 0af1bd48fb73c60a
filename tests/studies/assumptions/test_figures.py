"""The figure of pass rates: a panel for each layer behind a first attention layer."""

import pytest

from shapelaw.studies.assumptions.figures import pass_rate_figure


def test_layers_behind_attention_have_a_panel_each(rows):
    panels = [axis for axis in pass_rate_figure(rows).axes if axis.get_title(loc="left")]
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
