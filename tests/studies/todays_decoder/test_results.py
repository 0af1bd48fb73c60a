"""What the study of today's decoder writes."""

import argparse
from pathlib import Path

from todays_runs import todays_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.todays_decoder.results import UNDECAYED, add_options, results


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    todays_runs().to_csv(tmp_path / "runs.csv", index=False)
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    add_options(parser)
    made = results(parser.parse_args([str(tmp_path / "runs.csv"), "--draws", "100"]))
    study = STUDIES["todays_decoder"]
    check_declared(made, study.tables, study.figures)
    write_results(made, tmp_path / "out", study.name)
    assert "llama, 4,000 steps, rate 0.001: depth 4 against 8: width 1" in made.summary
    assert "From gpt2 to llama (one for all widths, 1,000 steps, best rates) the transition" in made.summary
    assert "best rates are at the edge of the rates that were tried" in made.summary
    assert (
        "with one seed and picked by the loss that is compared; the others are picked on other seeds"
        in made.summary
    )
    assert "Seed noise: " in made.summary
    assert UNDECAYED not in made.summary
