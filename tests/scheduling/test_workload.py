"""A config's runs as jobs: each run has one, each job its name, its files and enough of the machine."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import RATE, a_memorization_run, a_run, decoder_runs, memorization_runs

from shapelaw.errors import UserError
from shapelaw.scheduling.jobs import LEVELS, level_of
from shapelaw.scheduling.workload import NO_KEY, Workload, stores_of
from shapelaw.settings.sections import Execution
from shapelaw.specs.kinds import AnyRun, PackedRun
from shapelaw.specs.runs import Run

EXECUTION = Execution(flops_per_second=RATE, runs_per_job=3, models_per_pack=2, packs_per_job=2)


def workload_of(some: list[AnyRun], execution: Execution = EXECUTION) -> Workload:
    """The runs by study and key, as a config has them."""
    by_study: dict[str, dict[str, AnyRun]] = {}
    for run in some:
        by_study.setdefault(run.study, {})[run.key] = run
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
            assert not any(run in pack for pack in workload.jobs_in_turn[run.study].values())
            continue
        path = workload.job_path(run.study, run.key)
        found = re.fullmatch(rf"results/packs/{run.study}/([0-9a-f]{{16}})\.json", path)
        assert found
        if small:
            assert run in workload.runs_in_turn(run.study, found[1])
        else:
            assert sum(pack.count(run) for pack in workload.packs_together(run.study, found[1])) == 1


@given(st.lists(decoder_runs, max_size=12))
def test_the_path_of_a_record_is_of_the_rule_of_its_level(some: list[Run]) -> None:
    workload = workload_of(list(some))
    for run in some:
        path = f"{run.key}/summary.json"
        matching = [level for level in LEVELS if re.fullmatch(f"({workload.keys(level)})/summary.json", path)]
        assert matching == [level_of(run, RATE)]
    wrong = "no-such-run/summary.json"  # it is told by the rule of large runs
    assert [level for level in LEVELS if re.fullmatch(f"({workload.keys(level)})/summary.json", wrong)] == [
        "large"
    ]


def test_studies_are_told_apart_by_what_they_train() -> None:
    assert (SOME.decoder_studies, SOME.packed_studies) == ("depth_width", "memorization_heads")
    assert SOME.vocab_sizes == {2000}
    assert [len(SOME.of_level[level]) for level in LEVELS] == [5, 0, 1]
    nothing = workload_of([])
    assert (nothing.decoder_studies, nothing.packed_studies, nothing.keys("small")) == (NO_KEY,) * 3


def test_records_are_where_the_runs_are() -> None:
    assert SOME.records("memorization_heads")[:2] == [
        f"results/runs/memorization_heads/{run.key}/summary.json" for run in MEMORIZERS[:2]
    ]
    assert SOME.records("vocabulary") == []


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: SOME.run("depth_width", "wiki"),
            rf"The config has no run wiki in study depth_width; it has 6 runs, such as {DECODERS[0].key}\.$",
        ),
        (lambda: SOME.run("width", "x"), r"The config has no run x in study width; it has 0 runs\.$"),
        (
            lambda: SOME.runs_in_turn("depth_width", "f00"),
            r"no job f00 in study depth_width; it has 2 jobs, such",
        ),
        (
            lambda: SOME.packs_together("memorization_heads", "f00"),
            r"no job f00 in study memorization_heads; it has 2 jobs",
        ),
        (lambda: SOME.job_path("memorization_heads", "x"), r"The config has no run x in study memorization"),
    ],
)
def test_what_the_config_has_not_is_a_sentence(ask: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask()  # type: ignore[operator]


def test_jobs_ask_for_enough_and_for_more_the_second_time() -> None:
    small, large = (SOME.resources("depth_width", run.key, 1) for run in (DECODERS[0], LARGE))
    assert large.memory_mb > small.memory_mb
    assert large.minutes == SOME.job_minutes == 24 * 60
    pack, again = SOME.in_turn_resources(1), SOME.in_turn_resources(2)
    assert pack.minutes >= small.minutes
    assert again.minutes > pack.minutes
    assert again.memory_mb > pack.memory_mb
    assert SOME.together_resources(2).minutes > SOME.together_resources(1).minutes > 0
    with pytest.raises(TypeError, match="is trained in a pack"):
        SOME.resources("memorization_heads", MEMORIZERS[0].key, 1)


def test_a_run_on_several_gpus_shares_no_job() -> None:
    assert SOME.runs_per_job == 3
    several = workload_of([*DECODERS], EXECUTION.model_copy(update={"gpus": 4}))
    assert (several.runs_per_job, several.jobs_in_turn) == (1, {"depth_width": {}})


def test_the_checkpoints_of_a_job_are_those_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("results/checkpoints/depth_width")
    assert SOME.checkpoint_folders(("depth_width", LARGE.key)) == [folder / LARGE.key]
    name, pack = next(iter(SOME.jobs_in_turn["depth_width"].items()))
    assert SOME.checkpoint_folders(("depth_width", name)) == [folder / run.key for run in pack]
    assert SOME.checkpoint_folders(("prose", "300", "train")) == []
    assert SOME.checkpoint_folders(()) == []
    # a pack that is one computation has its checkpoints in a folder of its own, which names its members
    name, job = next(iter(SOME.jobs_of_packs["memorization_heads"].items()))
    mine, other = (Path("results/checkpoints/memorization_heads", one) for one in ("pack-1", "pack-2"))
    for place, key in ((mine, job[0][0].key), (other, "another")):
        place.mkdir(parents=True)
        (place / "members.json").write_text(json.dumps({key: "digest"}))
    keys = [run.key for pack in job for run in pack]
    found = SOME.checkpoint_folders(("memorization_heads", name))
    assert found == [*(mine.parent / key for key in keys), mine]


def test_a_run_reads_the_stores_of_its_corpus_and_vocabulary() -> None:
    run = replace(DECODERS[0], corpus="prose")
    assert stores_of(run) == {
        "train_store": "results/corpora/prose/V2000/train.json",
        "test_store": "results/corpora/prose/V2000/test.json",
        "tokens": ["results/corpora/prose/V2000/train.bin", "results/corpora/prose/V2000/test.bin"],
    }
