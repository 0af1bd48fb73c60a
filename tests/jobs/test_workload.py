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
from made_runs import (
    BEGINNING,
    DECODERS,
    LARGE,
    MEMORIZERS,
    RATE,
    decoder_runs,
    memorization_runs,
    workload_of,
)

from shapelaw.errors import UserError
from shapelaw.jobs import workload
from shapelaw.jobs.ledger import specs_path
from shapelaw.jobs.resources import level_of, task_minutes
from shapelaw.jobs.workload import (
    Workload,
    collected_from,
    gpt2_options,
    measured_paths,
    perplexity_options,
    read_ask,
    replaced_corpora,
    source_options,
    stores_of,
    texts_digest,
    tokenizer_path,
)
from shapelaw.settings.sections import Corpus, Execution, Perplexity
from shapelaw.specs.kinds import PackedRun, spec_from_dict
from shapelaw.specs.runs import Run
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE

THREE_A_JOB = {"models_per_pack": 2, "job_minutes": 0.25}  # of small decoders
EXECUTION = Execution(flops_per_second=RATE, **THREE_A_JOB)
SOME = workload_of([*DECODERS, LARGE, *MEMORIZERS], **THREE_A_JOB)


@given(st.lists(decoder_runs, max_size=12), st.lists(memorization_runs, max_size=12))
def test_every_run_has_a_job_that_ends_in_a_file(some: list[Run], packed: list[PackedRun]) -> None:
    workload = workload_of([*some, *packed], **THREE_A_JOB)
    for run in [*some, *packed]:
        found = re.fullmatch(r"results/jobs/(small|medium|large)/(.+)\.done", workload.done_path(run.key))
        assert found
        assert workload.job(found[2]).level == found[1]
        assert run.key in workload.job(found[2]).keys
        if isinstance(run, Run):
            assert found[1] == level_of(task_minutes((run,), EXECUTION, RATE))


def test_a_run_that_two_studies_ask_for_is_trained_once_by_a_job_of_the_first() -> None:
    first, second = DECODERS[:4], DECODERS[1:]
    studies = {
        "depth_width": {run.key: run for run in first},
        "vocabulary": {run.key: run for run in second},
        "memorization_heads": {run.key: run for run in MEMORIZERS},
        "memorization_head_dim": {run.key: run for run in MEMORIZERS},
    }
    work = Workload(studies, EXECUTION, RATE, {}, BEGINNING)
    assert list(work.left.values()) == [first, DECODERS[4:], MEMORIZERS, []]
    assert sorted(key for job in work.jobs.values() for key in job.keys) == sorted(work.pool)
    assert {work.done_path(run.key) for run in second} == set(work.done_paths("vocabulary"))
    assert work.done_paths("memorization_heads") == work.done_paths("memorization_head_dim")
    assert work.done_paths("ranks") == []
    recorded = replace(BEGINNING, recorded={run.key for run in first})
    assert list(replace(work, state=recorded).left.values()) == [[], DECODERS[4:], MEMORIZERS, []]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: SOME.run("wiki"),
            rf"The config has no run wiki; it has 11 runs, such as {DECODERS[0].key}\.$",
        ),
        (lambda: workload_of([]).run("x"), r"The config has no run x; it has 0 runs\.$"),
        (lambda: SOME.ask("f00"), r"The config has no job f00; it has \d jobs, such as depth_width-V2000-"),
        (lambda: SOME.done_path("x"), r"The config has no run x; it has 11 runs"),
    ],
)
def test_what_the_config_has_not_is_a_sentence(ask: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask()


def test_a_job_reads_from_its_file_what_the_start_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gpus = workload_of([*DECODERS, LARGE, *MEMORIZERS], **THREE_A_JOB, gpus=2, threads=1)
    for work in (SOME, gpus):
        work.write_jobs(work.jobs)
        for name, job in work.jobs.items():
            assert read_ask(name) == work.ask(name)
            specs = [
                tuple(map(spec_from_dict, task)) for task in json.loads(specs_path(name).read_text())["tasks"]
            ]
            assert specs == work.tasks(job)
    specs_path(name).unlink()
    with pytest.raises(UserError, match=f"{name}.json, the specs of the job {name}, can't be read"):
        read_ask(name)
    by_kind = {
        type(work.pool[job.keys[0]]): work.ask(name) for work in (gpus,) for name, job in gpus.jobs.items()
    }
    assert [(ask.cpus, ask.gpus, len(ask.stores)) for ask in by_kind.values()] == [(2, 2, 4), (1, 1, 0)]
    assert SOME.resources["large"].at(1, 1, EXECUTION.most_minutes).minutes == 24 * 60
    done = replace(BEGINNING, done=set(SOME.jobs))
    assert workload_of([*DECODERS, LARGE, *MEMORIZERS], done, **THREE_A_JOB).jobs.keys() == SOME.jobs.keys()


def test_a_queued_job_trains_what_was_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of its runs is asked for no longer: its file stays as it was."""
    monkeypatch.chdir(tmp_path)
    before = workload_of(DECODERS[:3], **THREE_A_JOB)
    (name,) = before.jobs
    before.write_jobs([name])
    assert before.ledger_with([]) == {}
    file = tmp_path / f"results/jobs/{name}.json"
    content = file.read_bytes()
    queued = replace(BEGINNING, is_queued=lambda one, job: one == name)
    by_study = {"depth_width": {run.key: run for run in DECODERS[:2]}}
    after = Workload(by_study, EXECUTION, RATE, before.ledger_with([name]), queued)
    after.write_jobs([name])
    assert list(after.jobs) == [name]
    assert file.read_bytes() == content
    assert after.ask(name) == before.ask(name)


def test_the_folders_of_a_job_are_those_of_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoints, runs = Path("results/checkpoints"), Path("results/runs")
    (large,) = (name for name, job in SOME.jobs.items() if LARGE.key in job.keys)
    assert SOME.folders((large,)) == [checkpoints / LARGE.key, runs / LARGE.key]
    for other in (("prose", "300", "train"), ("prose",), ()):
        assert SOME.folders(other) == []
    # a pack has its checkpoints in a folder of its own, which names its members
    name, job = next((name, job) for name, job in SOME.jobs.items() if MEMORIZERS[0].key in job.keys)
    mine, other = checkpoints / "pack-1", checkpoints / "pack-2"
    for place, key in ((mine, job.keys[0]), (other, "another")):
        place.mkdir(parents=True)
        (place / "members.json").write_text(json.dumps({key: "digest"}))
    assert SOME.folders((name,)) == [
        *(folder / key for key in job.keys for folder in (checkpoints, runs)),
        mine,
    ]


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
    names = ("train.json", "train.bin", "test.json", "test.bin")
    assert stores_of(replace(DECODERS[0], corpus="prose")) == [f"{folder}/{name}" for name in names]


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


def test_a_corpus_of_other_sources_or_files_than_noted_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    run, corpus = replace(DECODERS[0], corpus="prose"), Corpus(sources=["folder:texts"])

    def collected(*sources: str) -> dict[str, str]:
        return collected_from(
            [run], {"prose": Corpus(sources=list(sources) or corpus.sources), "unused": corpus}
        )

    before = collected()
    assert before == {"prose": f"--source folder:texts --test-fraction 0.05 {texts_digest(corpus)}\n"}
    assert replaced_corpora(before) == set()  # nothing is noted
    note = tmp_path / "results/corpora/prose/collected.txt"
    note.parent.mkdir(parents=True)
    note.write_text(before["prose"])
    assert replaced_corpora(collected()) == set()
    assert replaced_corpora(collected("folder:texts", "wiki")) == {"prose"}
    (tmp_path / "texts" / "new.txt").write_text("A text.")
    assert replaced_corpora(collected()) == {"prose"}


def test_perplexity_is_measured_where_studies_names_what_is_to_be_measured() -> None:
    asked = Perplexity(of=["mine", "other"], documents=7, source="json")
    assert perplexity_options(asked, Corpus()) == ["--most", "7", "--of-source", "json"]
    assert perplexity_options(Perplexity(), Corpus(gpt2_files="f")) == ["--most", "100", "--gpt2-files", "f"]
    assert measured_paths(asked, ["a", "b"]) == ["results/perplexity/a.json", "results/perplexity/b.json"]
    with pytest.raises(UserError, match=r"has mine, other, and studies has none .* studies='\[mine\]'"):
        measured_paths(asked, [])
    with pytest.raises(UserError, match="No perplexity is asked for; name a study or grid of decoders"):
        measured_paths(Perplexity(), [])
