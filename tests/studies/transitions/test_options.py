"""The options of how transitions are compared, from a command line."""

import argparse

import pytest

from shapelaw.fits.curves import SizeAxis
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_options, add_size_options, options_of


def asked(add, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add(parser)
    return parser.parse_args(words)


def test_without_words_they_are_the_analysis_own() -> None:
    assert options_of(asked(add_options)) == Options()


def test_every_word_has_its_place() -> None:
    words = "--method paper --loss bits_per_byte --size flops --noise 0.01 --draws 7 --seed 3"
    assert options_of(asked(add_options, *words.split())) == Options(
        "bits_per_byte", 0.01, "paper rule", 7, 3, SizeAxis.FLOPS
    )


def test_a_study_of_several_settings_has_the_size_and_the_draws() -> None:
    assert vars(asked(add_size_options, "--size", "total")) == {"size": "total", "draws": Options.draws}


def test_a_size_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked(add_options, "--size", "height")
    assert "choose from 'block', 'total', 'flops'" in capsys.readouterr().err
