"""What the vocabulary study writes."""

from pathlib import Path

from vocabulary_runs import SERIES, vocabulary_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.vocabulary.analysis import analyse_series
from shapelaw.studies.vocabulary.results import analyse, present


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    two = {key: SERIES[key] for key in ((257, None), (500, None))}
    vocabulary_runs(two).to_csv(tmp_path / "runs.csv", index=False)
    results, study = present(analyse(tmp_path / "runs.csv", Options(draws=200))), STUDIES["vocabulary"]
    check_declared(results, study.tables, study.figures)
    write_results(results, tmp_path / "out", study.name)
    assert "V = 257: depth 24 against 48: width 2" in results.summary
    assert set(results.tables["size_axes"].frame["size_axis"]) == {"block", "total", "flops"}
    gaps = results.tables["gaps"].frame.query("vocab_size == 257")
    assert (gaps.query("width < 230")["better"] == "shallower").any()
    assert (gaps.query("width > 300")["better"] == "deeper").all()
    noise = results.tables["seed_noise"].frame
    pooled = noise[noise["depth"] == "pooled"].set_index("vocab_size")
    for size, count in noise[noise["depth"] != "pooled"].groupby("vocab_size")["seeds"].sum().items():
        assert pooled.loc[size, "seeds"] == count


def test_bits_per_byte_and_the_text_seen_may_be_unknown(tmp_path: Path) -> None:
    runs = vocabulary_runs({(257, None): 257.0})
    for unknown in ("tokens_trained", "bits_per_byte"):
        results = present(analyse_series(runs.drop(columns=unknown), "runs.csv", Options(draws=100)))
        write_results(results, tmp_path / unknown, "vocabulary")
