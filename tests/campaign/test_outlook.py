"""What can't be trained is refused, and what a config's runs won't give is told, before anything is trained."""

from pathlib import Path
from typing import Any

import pytest
from project import write_gpt2_files
from shipped import SCALE_NAMES, SCALES, cases_of, check_told, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.campaign.outlook import missing_tokenizers, warnings
from shapelaw.campaign.submission import submission_of
from shapelaw.errors import UserError
from shapelaw.studies.registry import STUDIES


def refused(**changes: Any) -> str:
    """The sentences about runs that no machine can train; empty where it can."""
    config = load_config(shipped(extras=[], **changes), SCALES)
    try:
        submission_of(config, REPOSITORY, REPOSITORY)
    except UserError as error:
        return str(error)
    return ""


def warned(cores: int | None = 8, **changes: Any) -> list[str]:
    """The sentences about a config that can be run, with results of its own: the checkout's may have the demo's."""
    config = load_config(shipped(extras=[], results="results-of-nobody", **changes), SCALES)
    runs = submission_of(config, REPOSITORY, REPOSITORY).runs
    return warnings(config, runs, REPOSITORY, REPOSITORY, cores, changes)


def grid(widths: dict[int, list[int]], **keys: Any) -> dict[str, Any]:
    """A config of these widths alone."""
    section = {"widths": widths, "repeated": {depth: row[:1] for depth, row in widths.items()}, **keys}
    return {"studies": ["depth_width"], "depth_width": {"vocab_size": 500, **section}}


FOUR = {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48], 4: [8, 12, 16, 24, 32], 8: [6, 8, 12, 16, 24]}


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_the_scales_can_be_trained_and_give_their_transitions(scale: str) -> None:
    said = warned(scale=scale)
    assert not [sentence for sentence in said if not sentence.startswith("grids.depth_width can give")]
    said = warned(scale=scale, studies=["undertraining", "todays_decoder"])
    assert not [sentence for sentence in said if "without seed noise" in sentence]


@pytest.mark.parametrize(
    ("config", "says"), cases_of("campaign/warnings.yaml"), ids=lambda value: str(value)[:60]
)
def test_what_a_config_will_not_give_is_told(config: dict[str, Any], says: list[str]) -> None:
    check_told(warned(**config), says)
    if "execution" in config:  # threads of a cluster are not those of this machine
        assert warned(cores=None, **config) == []


def test_a_folder_says_itself_how_much_text_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 1000)
    corpus = {"name": "own", "sources": [f"folder:{tmp_path}"]}
    said = refused(**grid({1: [16]}), corpus=corpus)
    assert "corpus.sources: there is only one document, and training and tests take one each at least" in said
    assert (
        "have (5.0 KB): a vocabulary takes about 105 bytes for each token; take one of 257, which is" in said
    )
    assert "test_sequences 500 of context_length 64 want more text than corpus.sources have (5.0 KB, " in said
    assert "of which 5% is for tests): they take at least 650.0 KB; take" in said
    (tmp_path / "b.jsonl").write_text("{}")
    few = {"corpus": corpus, "training": {"test_sequences": 5}}
    assert refused(**grid({1: [16]}, vocab_size=257), **few) == ""
    assert "vocab_size 258 wants more text" in refused(**grid({1: [16]}, vocab_size=258), **few)
    own = {"corpus": {**corpus, "tokenizer_50257": "trained"}, "training": {"test_sequences": 5}}
    assert "vocab_size 50,257 wants more text" in refused(**grid({1: [16]}, vocab_size=50257), **own)
    assert refused(**grid({1: [16]}, vocab_size=50257), **few) == ""
    assert refused(**grid({1: [16]}), corpus={**corpus, "sources": ["huggingface:some/name"]}) == ""


def test_files_of_gpt2s_tokenizer_that_are_missing_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapelaw.corpora.tokenizer.cached_gpt2_folder", lambda: None)

    def missing(corpus: dict[str, Any], vocab_size: int = 50257, is_made: bool = True) -> list[str]:
        config = load_config(
            shipped(**grid({1: [16]}, vocab_size=vocab_size), corpus=corpus), SCALES, tmp_path
        )
        runs = submission_of(config, tmp_path, tmp_path).runs
        return list(missing_tokenizers(config, runs, tmp_path, lambda path: is_made and "V50257" in path))

    (told,) = missing({})
    assert told == (
        "depth_width has a vocabulary of 50,257, which is GPT-2's own, and its files are not here; fetch them: python "
        "scripts/train_tokenizer.py --fetch-gpt2, or name a folder with its vocab.json and merges.txt: corpus: "
        "{gpt2_files: FOLDER}, or train one of that size on your text: corpus: {tokenizer_50257: trained}"
    )
    assert missing({"tokenizer_50257": "trained"}) == missing({}, 2000) == missing({}, is_made=False) == []
    folder = tmp_path / "results" / "corpora" / "downloads" / "gpt2"
    folder.mkdir(parents=True)
    assert "gpt2 has neither tokenizer.json nor vocab.json" in missing({"gpt2_files": str(folder)})[0]
    write_gpt2_files(folder)
    assert missing({}) == missing({"gpt2_files": str(folder)}) == []


def test_files_of_a_folder_that_are_not_read_are_told_before_work(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    for name in ("a.txt", "more/b.JSONL"):
        (tmp_path / name).write_text("word " * 20_000)
    corpus = {"name": "own", "sources": [f"folder:{tmp_path}", "wiki"]}
    assert warned(**grid(FOUR), corpus=corpus) == []
    for name in ("more/c.pdf", "d.PDF", "LICENSE"):
        (tmp_path / name).write_text("A text.")
    assert warned(**grid(FOUR), corpus=corpus) == [
        f"the folder {tmp_path} has 3 files that are not read (2 .pdf, 1 without an ending): text is read from .txt, "
        ".jsonl, .parquet"
    ]


def test_a_study_of_too_many_runs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listed grid by its lengths, before anything is expanded, and one of a file where its runs are listed."""
    with pytest.raises(UserError, match=r"depth_width has 199,000 runs .* and 100,000 are the most"):
        load_config(shipped(**grid({1: list(range(2, 400, 2))}, seeds=1000)), SCALES)
    file = tmp_path / "grid.csv"
    file.write_text("depth,width\n1,16\n1,32\n")
    keys = {"widths": None, "repeated": {}, "grid_file": str(file), "seeds": 6}
    config = load_config(shipped(depth_width=keys), SCALES)
    monkeypatch.setattr("shapelaw.campaign.config.MOST_RUNS", 11)
    with pytest.raises(
        UserError, match="depth_width has more than 11 runs; take smaller grids or fewer seeds"
    ):
        runs_of(config, "depth_width", REPOSITORY)


def test_every_study_has_warnings_that_can_be_asked_for() -> None:
    config = load_config(shipped(scale="laptop"), SCALES)
    for study in STUDIES.values():
        assert isinstance(study.warnings(config, REPOSITORY), list)


def test_a_grid_file_of_a_scale_is_the_project_s_in_any_working_folder(tmp_path: Path) -> None:
    config = load_config(shipped(scale="paper"), SCALES, tmp_path)
    runs = submission_of(config, REPOSITORY, tmp_path).runs
    assert warnings(config, runs, tmp_path, REPOSITORY, 8, {}) == []
