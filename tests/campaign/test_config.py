"""The shipped configs, whole, and what no value of a config can do."""

from collections.abc import Iterator

import pandas as pd
import pytest
import yaml
from pydantic import BaseModel
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign import config
from shapelaw.campaign.config import Config, load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.specs.runs import Run
from shapelaw.studies.registry import STUDIES


@pytest.mark.parametrize("scale", ["laptop", "gpu"])
def test_the_test_documents_of_a_scale_make_as_many_windows_as_its_runs_ask_for(scale: str) -> None:
    """Of a V that was not counted, by the next larger one: a text has no fewer tokens than there."""
    counts = pd.read_csv(REPOSITORY / "docs/results/token_counts.csv")
    config = load_config(shipped(scale=scale), SCALES)
    asked = {
        (run.corpus, run.shape.vocab_size, run.shape.context_length, run.training.test_sequences)
        for study in STUDIES
        for run in runs_of(config, study, REPOSITORY).values()
        if isinstance(run, Run)
    }
    assert len(asked) > 1
    for corpus, vocab_size, context_length, sequences in asked:
        larger = counts[(counts["corpus"] == corpus) & (counts["vocab_size"] >= vocab_size)]
        assert sequences <= larger["test_tokens"].max() // (context_length + 1), f"{corpus}, V = {vocab_size}"


def test_a_slip_in_a_grid_that_a_study_declares_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config._DECLARED, "heads", {"axes": {"depth": [1], "width": [8]}, "tide": True})
    with pytest.raises(UserError, match=r"grids\.heads\.tide is not a key \(did you mean tied\?\)"):
        load_config(shipped(), SCALES)


def test_runs_that_differ_in_what_their_labels_do_not_show_are_two() -> None:
    both, small, large = (
        runs_of(load_config(shipped(block_degree=grids), SCALES), "block_degree", REPOSITORY)
        for grids in ([{"batch_size": 64}, {"batch_size": 256}], [{"batch_size": 64}], [{"batch_size": 256}])
    )
    assert both == small | large
    assert len(both) == len(small) + len(large)
    assert {run.label for run in small.values()} == {run.label for run in large.values()}


def test_every_text_of_a_config_is_known_to_be_no_path_that_is_written() -> None:
    """A new key that holds a text must be looked at: can it lead out of results/? Then it belongs here."""

    def texts(model: type[BaseModel], above: str = "") -> Iterator[str]:
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from texts(kind, f"{above}{name}.")
            elif "str" in str(kind):
                yield above + name

    assert (
        set(texts(Config))
        == {
            "corpus.name",  # a folder in results/; its pattern has neither dots nor slashes
            "corpus.sources",  # read, and quoted on command lines
            "corpora",  # as those of corpus, and its names as corpus.name
            "grids",  # names with a pattern, as corpus.name; a corpus in it is one of those names, a grid_file is read
            "results",  # a folder; its pattern begins with results and has no slashes
            "studies",  # names that are on the list, or of a grid
            "corpus.gpt2_files",  # read
            "perplexity.of",  # names that are studies or grids
            "perplexity.source",  # compared, and quoted on command lines
            "execution.cost_model",  # read
            "execution.scratch",  # where the user wants checkpoints: any folder
            "assumptions.images",  # read
            "assumptions.source",  # read, and quoted on command lines
            "tracking.uri",  # where the user wants the runs: any server or database
            "tracking.artifacts",  # where the user wants figures: any folder; quoted on command lines
        }
    )


def test_every_key_of_the_shipped_config_is_explained() -> None:
    """Each top-level key of config.yaml has a comment above it, each key of a section one beside it or above."""
    lines = (REPOSITORY / "config.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        if line and not line.startswith((" ", "#")):
            assert lines[number - 1].startswith("#"), line
    for key in yaml.safe_load("\n".join(lines)):
        assert key == "scale" or key in Config.model_fields


def test_what_is_measured_is_a_study_of_decoders() -> None:
    config = load_config(shipped(scale="paper", studies=["table1"]), SCALES)
    assert config.perplexity.of == ["table1"]
    shapes = [run.shape for run in runs_of(config, "table1", REPOSITORY).values()]
    assert [(shape.depth, shape.width, shape.vocab_size) for shape in shapes] == [
        (12, 768, 50257),
        (48, 768, 50257),
    ]
    assert shapes[1].total_params - 768 * 50257 == pytest.approx(378e6, rel=3e-3)
