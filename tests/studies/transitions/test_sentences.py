"""What transitions say in words."""

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


def test_depths_without_common_sizes_are_sent_to_the_surface():
    shapes = {4: [64, 80, 96, 112, 128], 6: [512, 640, 768, 896, 1024]}
    runs = check_runs(simulate(shapes, {4: 100.0}), "made")
    assert summary(analyse_runs(runs)).endswith(NO_COMMON_SIZES)
