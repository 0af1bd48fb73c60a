"""What a grid says, in sentences and in one line."""

from grid_runs import grid_runs

from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import present
from shapelaw.studies.transitions.analysis import Options

AXES = ("heads", "embedding_rank", "vocab_size")


def presented(**options):
    return present(analyse_grid(grid_runs(**options), "x", Options(draws=200), AXES, surfaces=False))


def test_each_axis_has_its_largest_effect_or_none() -> None:
    found = presented(seeds=2, noise=0.01, ranks=(8, None), heads=(1, 2), vocab_sizes=(257,))
    assert found.answer.decided
    rank, heads = found.answer.sentence.rstrip(".").split("; ")
    assert rank.startswith(
        "embedding_rank: 3 of 3 differences are beyond the noise, most from r = 8 to full rank -0.0968 nats per token "
        "(-0.1025 to -0.0911)"
    )
    assert heads.startswith("heads: ")
    assert "P values have Holm's correction for the 6 effects of this grid." in found.summary
    assert "Within a cell (H = 2): attention_dim = width / 2." in found.summary
    assert "Seed noise: 0.0" in found.summary


def test_without_noise_nothing_is_decided_and_that_is_said() -> None:
    found = presented()
    assert not found.answer.decided
    assert "heads: H = 1 to H = 4 +0.0200 bits per byte (no noise estimate)" in found.answer.sentence
    assert "12 cells, which differ in vocab_size, embedding_rank, heads." in found.summary
    assert "All cells: depth 1 against 2: no noise estimate" in found.summary
    assert "is best; without a noise estimate" in found.summary


def test_one_cell_has_no_effects() -> None:
    found = presented(heads=(1,), ranks=(8,), vocab_sizes=(257,))
    assert found.answer.sentence.startswith("Not at these sizes; depth 1 against 2: no noise estimate")
    assert not found.answer.decided


def test_vocabularies_without_bits_per_byte_are_a_sentence() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,)).drop(columns="bits_per_byte")
    found = present(analyse_grid(runs, "x", Options(draws=200), AXES))
    assert "The table has no bits per byte, in which alone the losses of several" in found.summary
    assert found.answer.sentence == "No two cells that differ in one thing have sizes in common."
