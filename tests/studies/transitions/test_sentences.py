"""What transitions say in words."""

import pandas as pd
from loss_surfaces import grid_of, simulate

from shapelaw.fits.inputs import check_runs
from shapelaw.studies.transitions.analysis import Options, analyse_runs
from shapelaw.studies.transitions.sentences import NO_COMMON_SIZES, summary, transition_sentences


def test_a_crossing_has_its_interval_and_its_size(analysis):
    rows = analysis.bootstrap_rows
    sentences = list(transition_sentences("V = 500", analysis))
    assert len(sentences) == len(rows) == 4
    row = rows[0]
    assert sentences[0] == (
        f"V = 500: depth 4 against 6: width {row['width']:.1f} ({row['width_low']:.1f} to {row['width_high']:.1f}) "
        "at equal parameters of the blocks"
    )


def test_a_depth_that_never_overtakes_has_its_bound():
    runs = check_runs(simulate(grid_of((4, 6), 6e4, 6e6, 12), {4: 1e4}, noise=0.0008), "made")
    found = analyse_runs(runs, Options(draws=300))
    (row,) = found.bootstrap_rows
    (sentence,) = transition_sentences("rate 0.001", found)
    assert sentence.startswith(
        f"rate 0.001: depth 4 against 6: {row['status']}, above {row['bound']:.0f} at equal"
    )


def test_the_papers_rule_stands_beside_a_bootstrap_that_finds_no_crossing():
    """Losses of one layer and of two as measured at V = 500, r = 32: they stray far from smooth curves."""
    one = {32: 3.158, 48: 2.901, 64: 2.795, 96: 2.662, 128: 2.573}
    two = {22: 3.342, 34: 3.013, 46: 2.850, 68: 2.605, 90: 2.511}
    rows = [(depth, width, loss) for depth, losses in ((1, one), (2, two)) for width, loss in losses.items()]
    runs = pd.DataFrame(rows, columns=["depth", "width", "test_loss"]).assign(seed=0)
    found = analyse_runs(check_runs(runs, "made"), Options(draws=200, noise=0.006))
    (sentence,) = transition_sentences("rank 32", found)
    assert sentence == (
        "rank 32: depth 1 against 2: at the edge, above 71 (the paper's rule: 80 ± 16) at equal "
        "parameters of the blocks"
    )


def test_depths_without_common_sizes_are_sent_to_the_surface():
    shapes = {4: [64, 80, 96, 112, 128], 6: [512, 640, 768, 896, 1024]}
    runs = check_runs(simulate(shapes, {4: 100.0}), "made")
    assert summary(analyse_runs(runs)).endswith(NO_COMMON_SIZES)
