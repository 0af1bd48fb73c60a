"""A config's runs as jobs: each has one, with its name, files and enough of the machine; how the corpus job starts."""

import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import RATE, a_memorization_run, a_run, decoder_runs, memorization_runs

from shapelaw.errors import UserError
from shapelaw.jobs import workload
from shapelaw.jobs.packs import level_of
from shapelaw.jobs.resources import LEVELS
from shapelaw.jobs.workload import (
    Workload,
    gpt2_options,
    measured_paths,
    perplexity_options,
    source_options,
    stores_of,
    texts_digest,
    tokenizer_path,
)
from shapelaw.settings.sections import Corpus, Execution, Perplexity
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE

RULES = (*LEVELS, "packed")
EXECUTION = Execution(flops_per_second=RATE, runs_per_job=3, models_per_pack=2, packs_per_job=2)


def workload_of(some: list[AnyRun], execution: Execution = EXECUTION) -> Workload:
    """The runs by study and key, as a config has them: a study of decoders and one of memorizers."""
    by_study: dict[str, dict[str, AnyRun]] = {"depth_width": {}, "memorization_heads": {}}
    for run in some:
        by_study["memorization_heads" if is_packed(run) else "depth_width"][run.key] = run
    return Workload(by_study, execution, RATE)


LARGE = a_run(48, 1600, steps=10**6)
DECODERS = [a_run(2, 64, seed=seed) for seed in range(5)]
MEMORIZERS = [a_memorization_run(4, 550, seed) for seed in range(5)]
SOME = workload_of([*DECODERS, LARGE, *MEMORIZERS])


@given(st.lists(decoder_runs, max_size=12), st.lists(memorization_runs, max_size=12))
def test_every_run_is_in_one_job_whose_name_leads_back_to_it(
    some: list[Run], packed: list[PackedRun]
) -> None:
    workload = workload_of([*some, *packed])
    for run in {run.key: run for run in [*some, *packed]}.values():
        small = isinstance(run, Run) and level_of(run, RATE) == "small"
        if isinstance(run, Run) and not small:
            assert not any(run in pack for pack in workload.jobs_in_turn.values())
            continue
        found = re.fullmatch(r"results/packs/([0-9a-f]{16})\.json", workload.job_path(run.key))
        assert found
        if small:
            assert run in workload.runs_in_turn(found[1])
        else:
            assert sum(pack.count(run) for pack in workload.packs_together(found[1])) == 1
        names = (workload.in_turn_names, workload.pack_names)
        assert [bool(re.fullmatch(pattern, found[1])) for pattern in names] == [small, not small]


@given(st.lists(decoder_runs, max_size=12), st.lists(memorization_runs, max_size=4))
def test_the_path_of_a_record_is_of_the_rule_of_its_level(some: list[Run], packed: list[PackedRun]) -> None:
    workload = workload_of([*some, *packed])

    def rules(key: str) -> list[str]:
        path = f"{key}/summary.json"
        return [of for of in RULES if re.fullmatch(f"({workload.keys(of)})/summary.json", path)]

    for run in some:
        assert rules(run.key) == [level_of(run, RATE)]
    for run in packed:
        assert rules(run.key) == ["packed"]
    assert rules("no-such-run") == ["large"]  # which tells that there is none


def test_no_two_rules_make_one_record_where_digests_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100,000 runs, two probably do."""
    monkeypatch.setattr("shapelaw.specs.runs.key_of", lambda label, _: f"{label}-0a1b2c3d")
    small, large = a_run(2, 64), a_run(48, 1600, steps=10**6)
    work = workload_of([small, large])
    for run, wanted in ((small, "small"), (large, "large")):
        assert [of for of in RULES if re.fullmatch(work.keys(of), run.key)] == [wanted]


def test_runs_are_told_apart_by_how_they_are_trained() -> None:
    assert (SOME.decoders, SOME.packed) == ([*DECODERS, LARGE], MEMORIZERS)
    assert SOME.vocab_sizes == {2000}
    several = workload_of([*DECODERS], EXECUTION.model_copy(update={"gpus": 4}))  # a run shares no job then
    assert (SOME.runs_per_job, several.runs_per_job, several.jobs_in_turn) == (3, 1, {})
    assert [len(SOME.of_level[level]) for level in LEVELS] == [5, 0, 1]
    nothing = workload_of([])
    for pattern in (nothing.in_turn_names, nothing.pack_names, nothing.keys("small"), nothing.keys("packed")):
        assert not re.fullmatch(pattern, "")
        assert not re.fullmatch(pattern, DECODERS[0].key)


def test_a_run_that_two_studies_ask_for_is_trained_once_by_a_job_of_the_first() -> None:
    first, second = DECODERS[:4], DECODERS[1:]
    studies = {
        "depth_width": {run.key: run for run in first},
        "vocabulary": {run.key: run for run in second},
        "memorization_heads": {run.key: run for run in MEMORIZERS},
        "memorization_head_dim": {run.key: run for run in MEMORIZERS},
    }
    work = Workload(studies, EXECUTION, RATE)
    assert (work.decoders, work.packed) == (DECODERS, MEMORIZERS)
    assert work.trained == [first, DECODERS[4:], MEMORIZERS, []]
    assert list(work.jobs_in_turn.values()) == [DECODERS[:3], DECODERS[3:4], DECODERS[4:]]
    assert [run for job in work.jobs_of_packs.values() for pack in job for run in pack] == MEMORIZERS
    alone = Workload({"depth_width": studies["depth_width"]}, EXECUTION, RATE)
    assert [work.job_path(run.key) for run in first] == [alone.job_path(run.key) for run in first]
    assert work.records("vocabulary") == [f"results/runs/{run.key}/summary.json" for run in second]
    assert work.records("ranks") == []


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: SOME.run("wiki"),
            rf"The config has no run wiki; it has 11 runs, such as {DECODERS[0].key}\.$",
        ),
        (lambda: workload_of([]).run("x"), r"The config has no run x; it has 0 runs\.$"),
        (
            lambda: SOME.runs_in_turn("f00"),
            r"The config has no job f00; it has 2 jobs, such as [0-9a-f]{16}\.$",
        ),
        (lambda: SOME.packs_together("f00"), r"The config has no job f00; it has 4 jobs, such as"),
        (lambda: SOME.job_path("x"), r"The config has no run x; it has 11 runs"),
    ],
)
def test_what_the_config_has_not_is_a_sentence(ask: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask()  # type: ignore[operator]


def test_jobs_ask_for_enough_and_for_more_the_second_time() -> None:
    small, large = (SOME.resources(run.key, 1) for run in (DECODERS[0], LARGE))
    assert large.memory_mb > small.memory_mb
    assert large.minutes == SOME.job_minutes == 24 * 60
    pack, again = SOME.in_turn_resources(1), SOME.in_turn_resources(2)
    assert pack.minutes >= small.minutes
    assert again.minutes > pack.minutes
    assert again.memory_mb > pack.memory_mb
    assert SOME.together_resources(2).minutes > SOME.together_resources(1).minutes > 0
    with pytest.raises(TypeError, match="is trained in a pack"):
        SOME.resources(MEMORIZERS[0].key, 1)


def test_the_checkpoints_of_a_job_are_those_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/checkpoints")
    assert SOME.checkpoint_folders((LARGE.key,)) == [folder / LARGE.key]
    name, pack = next(iter(SOME.jobs_in_turn.items()))
    assert SOME.checkpoint_folders((name,)) == [folder / run.key for run in pack]
    assert SOME.checkpoint_folders(("prose", "300", "train")) == []
    assert SOME.checkpoint_folders(("prose",)) == []
    assert SOME.checkpoint_folders(()) == []
    # a pack that is one computation has its checkpoints in a folder of its own, which names its members
    name, job = next(iter(SOME.jobs_of_packs.items()))
    mine, other = folder / "pack-1", folder / "pack-2"
    for place, key in ((mine, job[0][0].key), (other, "another")):
        place.mkdir(parents=True)
        (place / "members.json").write_text(json.dumps({key: "digest"}))
    keys = [run.key for pack in job for run in pack]
    assert SOME.checkpoint_folders((name,)) == [*(folder / key for key in keys), mine]


def test_the_decoders_of_what_is_measured_keep_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {run.key: run for run in [*DECODERS, LARGE]}
    assert SOME.measured(Perplexity(of=["depth_width", "memorization_heads", "of another list"])) == every
    assert SOME.measured(Perplexity()) == {}
    monkeypatch.setattr(workload, "MOST_MEASURED", 5)
    with pytest.raises(
        UserError, match=r"perplexity\.of has 6 decoders, and the weights of 5 are kept at most"
    ):
        SOME.measured(Perplexity(of=["depth_width"]))


@pytest.mark.parametrize(
    ("sources", "vocab_sizes", "collected"),
    [
        (["wiki"], {2000}, ["wiki"]),
        (["wiki"], {2000, GPT2_VOCAB_SIZE}, ["wiki", "gensim"]),
        (["bible"], {GPT2_VOCAB_SIZE}, ["bible"]),
    ],
)
def test_the_leads_of_wikipedia_are_joined_by_articles_where_they_cannot_fill_the_vocabulary(
    sources: list[str], vocab_sizes: set[int], collected: list[str]
) -> None:
    options = source_options(Corpus(sources=sources, tokenizer_50257="trained"), vocab_sizes)
    assert [after for before, after in pairwise(options) if before == "--source"] == (collected)


def test_the_corpus_section_as_options_and_where_its_files_are() -> None:
    """Where the vocabulary is GPT-2's, it is not trained."""
    own = Corpus(sources=["wiki", "folder:books,text_column=body"], test_fraction=0.1, limit_bytes=5000)
    assert source_options(own, {2000}) == [
        *("--source", "wiki", "--source", "folder:books,text_column=body"),
        *("--test-fraction", "0.1", "--limit-bytes", "5000"),
    ]
    corpus, named = Corpus(), Corpus(gpt2_files="my files")
    assert "gensim" not in source_options(corpus, {GPT2_VOCAB_SIZE})
    assert gpt2_options(corpus, GPT2_VOCAB_SIZE) == ["--gpt2"]
    assert gpt2_options(corpus, 2000) == []
    assert gpt2_options(named, GPT2_VOCAB_SIZE) == ["--gpt2-files", "my files"]
    assert gpt2_options(Corpus(tokenizer_50257="trained"), GPT2_VOCAB_SIZE) == []
    folder = "results/corpora/prose/V2000"
    assert tokenizer_path("prose", 2000) == f"{folder}/tokenizer.json"
    assert stores_of(replace(DECODERS[0], corpus="prose")) == {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }


def test_another_file_another_size_or_another_time_is_another_corpus(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.txt"
    file.parent.mkdir()
    file.write_text("one")
    corpus = Corpus(sources=["wiki", f"folder:{tmp_path},text_column=body"])
    seen = [texts_digest(corpus)]
    assert texts_digest(corpus) == seen[0]
    file.write_text("longer")
    seen.append(texts_digest(corpus))
    os.utime(file, (0, 0))
    seen.append(texts_digest(corpus))
    (tmp_path / "b.txt").write_text("one")
    seen.append(texts_digest(corpus))
    assert len(set(seen)) == 4
    assert texts_digest(Corpus(sources=["wiki"])) == texts_digest(Corpus(sources=["bible"]))  # no folder
    gone = r"gone, a text of the corpus, went away; put it back, or correct corpus\.sources"
    with pytest.raises(UserError, match=gone):
        texts_digest(Corpus(sources=[f"folder:{tmp_path}/gone"]))


def test_perplexity_is_measured_where_studies_names_what_is_to_be_measured() -> None:
    asked = Perplexity(of=["mine", "other"], documents=7, source="json")
    assert perplexity_options(asked, Corpus()) == ["--most", "7", "--of-source", "json"]
    assert perplexity_options(Perplexity(), Corpus(gpt2_files="f")) == ["--most", "100", "--gpt2-files", "f"]
    assert measured_paths(asked, ["a", "b"]) == ["results/perplexity/a.json", "results/perplexity/b.json"]
    with pytest.raises(UserError, match=r"has mine, other, and studies has none .* studies='\[mine\]'"):
        measured_paths(asked, [])
    with pytest.raises(UserError, match="No perplexity is asked for; name a study or grid of decoders"):
        measured_paths(Perplexity(), [])
