"""Which job trains which run, which runs share one, what jobs ask for, and what an attempt achieved."""

import json
import math
import os
import time
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import RATE, a_memorization_run, a_run, decoder_runs, memorization_grids, memorization_runs

from shapelaw.errors import UserError
from shapelaw.jobs import ledger as ledgers
from shapelaw.jobs import resources
from shapelaw.jobs.resources import Attempts, formed_jobs
from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import run_seconds
from shapelaw.specs.kinds import AnyRun, spec_from_dict
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run

RUNS = [a_run(2, 64, seed=seed) for seed in range(8)] + [
    a_memorization_run(4, 550, seed) for seed in range(4)
]
KEYS = [run.key for run in RUNS]
# three decoders take the time of a job
FORM = partial(formed_jobs, execution=Execution(models_per_pack=2), speed=RATE, job_minutes=0.25)


def state(
    recorded: Collection[str] = (),
    done: Collection[str] = (),
    queued: Collection[str] = (),
    begun: Collection[str] = (),
) -> ledgers.State:
    return ledgers.State(recorded, done, lambda name, job: name in queued, begun.__contains__)


def start(
    ledger: ledgers.Ledger, asked: list[AnyRun], pool: ledgers.State, alone: Collection[str] = ()
) -> tuple[ledgers.Ledger, dict[str, str]]:
    return ledgers.assigned({"mine": asked}, ledger, pool, FORM, alone)


def test_the_name_of_a_job_says_what_it_trains_and_ends_in_digits_of_its_keys() -> None:
    ledger, holder = start({}, RUNS[:3], state())
    (name,) = ledger
    assert name.startswith("mine-V2000-L2-d64-H2-t1000-001-")
    assert len(name.rpartition("-")[2]) == 8
    assert set(holder) == set(KEYS[:3])
    _, again = start({}, RUNS[:3], state())
    assert again == holder
    other, _ = start({}, RUNS[1:4], state())
    assert other.keys().isdisjoint(ledger)


def test_a_second_start_asks_for_the_same_jobs_and_new_runs_make_new_ones() -> None:
    first, holder = start({}, RUNS[:6], state())
    assert start(first, RUNS[:6], state()) == (first, holder)
    half = list(first)[:1]
    recorded = first[half[0]].keys
    resumed = state(recorded, half, begun=KEYS[:6])
    assert start(first, RUNS[:6], resumed) == (first, holder)
    second, wider = start(first, RUNS, state(KEYS[:6], first))
    assert list(second)[: len(first)] == list(first)
    assert {key: wider[key] for key in KEYS[:6]} == holder
    assert {key for name in second.keys() - first.keys() for key in second[name].keys} == set(KEYS[6:])


def test_a_job_that_was_not_begun_drops_the_runs_that_left() -> None:
    first, holder = start({}, RUNS[:3], state())
    (name,) = first
    smaller, now = start(first, RUNS[:2], state())
    assert name not in smaller
    assert sorted(now) == sorted(KEYS[:2])
    for under_way in (state(queued=[name]), state(begun=KEYS[2:3])):
        kept, as_before = start(first, RUNS[:2], under_way)
        assert kept == first
        assert as_before == {key: holder[key] for key in KEYS[:2]}


def test_records_that_no_job_names_are_looked_at_by_one_job() -> None:
    ledger, holder = start({}, RUNS, state(KEYS[:5]))
    (kept,) = {holder[key] for key in KEYS[:5]}
    assert kept.startswith("mine-kept-")
    assert sorted(ledger[kept].keys) == sorted(KEYS[:5])


def test_a_run_that_is_a_target_by_itself_is_a_job_by_itself() -> None:
    first, holder = start({}, RUNS[:3], state())
    ledger, now = start(first, RUNS[:3], state(), alone=KEYS[:1])
    assert ledger[now[KEYS[0]]].keys == KEYS[:1]
    assert start(ledger, RUNS[:3], state(), alone=KEYS[:1]) == (ledger, now)
    queued = state(queued=list(first))
    assert start(first, RUNS[:3], queued, alone=KEYS[:1]) == (first, holder)


STARTS = st.lists(
    st.tuples(st.sets(st.sampled_from(range(len(RUNS))), min_size=1), st.randoms(use_true_random=False)),
    max_size=5,
)


@settings(deadline=None)
@given(STARTS)
def test_whatever_happens_every_run_has_one_job_and_none_is_trained_twice(starts: list) -> None:
    """Of each start some jobs end, some runs finish, and some records go; the same start again changes nothing."""
    ledger: ledgers.Ledger = {}
    recorded: set[str] = set()
    done: set[str] = set()
    for places, chance in starts:
        asked = [RUNS[place] for place in sorted(places)]
        before = dict(ledger)
        ledger, holder = start(ledger, asked, state(recorded, done))
        assert set(holder) == {run.key for run in asked}
        assert all(key in ledger[name].keys for key, name in holder.items())
        assert all(key in recorded for key, name in holder.items() if name in done)
        assert start(ledger, asked, state(recorded, done)) == (ledger, holder)
        assert all(ledger[name] == before[name] for name in done)
        new = [
            key for name in ledger.keys() - before.keys() for key in ledger[name].keys if "kept" not in name
        ]
        assert len(new) == len(set(new))
        assert recorded.isdisjoint(new)
        for name in {name for name in holder.values() if name not in done}:
            finished = [key for key in ledger[name].keys if chance.random() < 0.7]
            recorded |= set(finished)
            if set(ledger[name].keys) <= recorded:
                done.add(name)
        recorded -= {key for key in sorted(recorded) if chance.random() < 0.1}


def test_the_ledger_and_the_specs_of_jobs_are_files(tmp_path: Path) -> None:
    ledger, _ = start({}, RUNS, state())
    ledgers.write_ledger(ledger, tmp_path)
    assert ledgers.read_ledger(tmp_path) == ledger
    written = (tmp_path / "ledger.json").stat().st_mtime_ns
    ledgers.write_ledger(ledger, tmp_path)
    assert (tmp_path / "ledger.json").stat().st_mtime_ns == written
    name, job = next(iter(ledger.items()))
    (tmp_path / f"{name}.json").write_text(ledgers.job_content([[RUNS[0]], RUNS[8:10]], cpus=2))
    found = json.loads((tmp_path / f"{name}.json").read_text())
    assert found["cpus"] == 2
    assert [[spec_from_dict(spec) for spec in task] for task in found["tasks"]] == [RUNS[:1], RUNS[8:10]]
    ledgers.write_ledger({}, tmp_path)
    assert not (tmp_path / f"{name}.json").exists()
    assert ledgers.done_path(name, job) == f"results/jobs/small/{name}.done"
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / f"{name}.done").touch()
    assert ledgers.finished_jobs(tmp_path) == {name}
    (tmp_path / "ledger.json").write_text(json.dumps([1]))
    with pytest.raises(UserError, match=r"nothing is trained twice: rm .*ledger\.json"):
        ledgers.read_ledger(tmp_path)
    assert ledgers.read_ledger(tmp_path / "none") == {}
    assert ledgers.Job("small", (("a", "b"), ("c",))).keys == ["a", "b", "c"]


def test_what_slurm_ended_for_good_is_read_from_the_logs_of_this_start(tmp_path: Path) -> None:
    ledger, holder = start({}, RUNS[:6], state())
    ledgers.write_ledger(ledger, tmp_path / "jobs")
    first, second = ledger
    logs = {name: tmp_path / "logs/train" / f"{name}.log" for name in ledger}
    logs[first].parent.mkdir(parents=True)
    for name, endings in {
        first: ("FAILED; attempt 1 of 2; trying again", "FAILED; attempt 2 of 2"),
        second: ("FAILED; attempt 1 of 2; trying again",),
    }.items():
        for ending in endings:
            logs[name].open("a").write("of the job\n")
            ledgers.note_ending([str(logs[name])], f"job 7 ended {ending}")
    sentence = f"{first}: job 7 ended FAILED; attempt 2 of 2 ({logs[first]})"
    given_up = dict.fromkeys((key for key, name in holder.items() if name == first), sentence)
    assert ledgers.given_up(tmp_path, since=0) == given_up
    assert ledgers.given_up(tmp_path, since=logs[first].stat().st_mtime + 1) == {}
    logs[first].write_text("of the attempt after the next start\n")
    assert ledgers.given_up(tmp_path, since=0) == {}


def asked(some: list[Run], gpus: int) -> resources.JobResources:
    """What jobs of one run each ask for."""
    return resources.job_resources([[(run,)] for run in some], Execution(gpus=gpus), RATE)


@given(st.lists(decoder_runs, min_size=1, max_size=5), st.sampled_from([0, 1]))
def test_a_level_asks_enough_for_each_of_its_runs(some: list[Run], gpus: int) -> None:
    together = asked(some, gpus)
    for run in some:
        alone = asked([run], gpus)
        assert together.memory_mb >= alone.memory_mb
        assert together.minutes >= alone.minutes
        assert alone.minutes > run_seconds(run, RATE) / 60
        if gpus:
            assert alone.memory_mb * 1e6 > 12 * run.shape.total_params  # a checkpoint fits


@given(decoder_runs, st.integers(1, 5), st.sampled_from([0, 1, 4]))
def test_a_further_attempt_asks_for_more_but_never_beyond_the_limit(
    run: Run, attempt: int, gpus: int
) -> None:
    """Six attempts of a run of 40 GB must not end in asking for 240."""
    first = asked([run], gpus)
    estimate, before, now = (first.at(n, n, 1440) for n in (1, attempt, attempt + 1))
    assert 1.99 * estimate.memory_mb < now.memory_mb <= 2 * estimate.memory_mb
    assert before.minutes <= now.minutes <= 1440
    assert now.minutes > before.minutes or now.minutes == 1440


@given(decoder_runs)
def test_every_gpu_has_a_process_that_needs_its_memory(run: Run) -> None:
    assert asked([run], 4).memory_mb - asked([run], 1).memory_mb == 3 * 8000


@given(
    st.lists(st.one_of(decoder_runs, memorization_runs), max_size=40, unique_by=lambda run: run.key),
    st.sampled_from([1e9, 4e10, 1e13]),
    st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_every_run_is_in_one_job_and_jobs_take_about_the_time_that_they_should(
    some: list[Run], speed: float, minutes: float
) -> None:
    execution = Execution(models_per_pack=3, flops_per_second=speed)
    jobs = resources.formed_jobs(some, execution, speed, minutes)
    assert sorted(run.key for _, job in jobs for task in job for run in task) == sorted(
        run.key for run in some
    )
    for level, job in jobs:
        times = [resources.task_minutes(task, execution, speed) for task in job]
        assert {resources.level_of(time) for time in times} == {level}
        assert len(job) == 1 or max(times) < minutes
        assert len(job) == 1 or sum(times) <= 2 * minutes
    for level in {level for level, _ in jobs}:
        short = [
            sum(resources.task_minutes(task, execution, speed) for task in job)
            for own, job in jobs
            if own == level
        ]
        shared = [time for time in short if time < minutes]
        assert (
            len(shared) <= sum(shared) / minutes * 2 + 2
        )  # one of decoders and one of memorizers may be left


def test_a_run_on_several_gpus_shares_no_job() -> None:
    some = [a_run(2, 64, seed=seed) for seed in range(3)]
    several = resources.formed_jobs(some, Execution(gpus=4), RATE, 30.0)
    assert [len(job) for _, job in several] == [1, 1, 1]
    assert [len(job) for _, job in resources.formed_jobs(some, Execution(gpus=1), RATE, 30.0)] == [3]


@given(st.lists(memorization_runs, min_size=1, max_size=8), st.sampled_from([0, 1]))
def test_packs_of_memorizers_ask_enough_for_the_longest(some: list[MemorizationRun], gpus: int) -> None:
    execution = Execution(flops_per_second=RATE, gpus=gpus)
    pack = tuple(some)
    together = resources.job_resources([[pack], [pack[:1]]], execution, RATE)
    alone = resources.job_resources([[pack[:1]]], execution, RATE)
    assert together.memory_mb >= alone.memory_mb
    assert together.minutes >= alone.minutes
    assert together.minutes * 60 * RATE > sum(run.steps * run.step_flops for run in some)


def test_levels_follow_time() -> None:
    runs = [a_run(*of) for of in ((2, 64, 1000), (48, 1600, 1000), (48, 1600, 10**6))]
    assert [resources.level_of(run_seconds(run, 1e13) / 60) for run in runs] == ["small", "medium", "large"]
    assert resources.level_of(math.inf) == "large"


@given(memorization_grids, st.integers(1, 20), st.just(1.0) | st.floats(1, 12))
def test_each_memorizer_is_in_one_pack_and_what_is_filled_up_stays_within_its_budget(
    some: list[MemorizationRun], size: int, padding: float
) -> None:
    packs, apart = resources.in_packs(some, size, padding), resources.in_packs(some, size)
    tasks = resources.tasks_of(some, Execution(models_per_pack=size, padding=padding))
    assert tasks == [tuple(pack) for pack in packs]
    assert sorted(run.key for pack in packs for run in pack) == sorted(run.key for run in some)
    for pack in packs:
        assert 1 <= len(pack) <= size
        assert len({run.group if padding == 1 else run.family for run in pack}) == 1
        assert list(pack) == sorted(pack, key=lambda run: -run.steps)
        assert len({run.memorizer for run in resources.filled_up(pack)}) == 1
    alone = sum(run.steps * run.step_flops for run in some)
    assert sum(map(resources.pack_flops, apart)) == alone
    assert alone <= sum(map(resources.pack_flops, packs)) <= padding * alone
    assert len(packs) <= len(apart)


def test_with_a_large_budget_a_family_is_one_pack_and_families_stay_apart() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 20, 60)]
    others = [replace(run, context_type="per_example") for run in runs]
    assert sorted(map(len, resources.in_packs([*runs, *others], 64, 100.0))) == [4, 4]
    assert sorted(map(len, resources.in_packs([*runs, *others], 3, 100.0))) == [1, 1, 3, 3]
    by_head_dim = [
        replace(run, memorizer=replace(run.memorizer, logit_scale="head_dim", head_dim=head_dim))
        for run, head_dim in zip(runs, (8, 8, 64, 64), strict=True)
    ]
    assert sorted(map(len, resources.in_packs(by_head_dim, 64, 100.0))) == [
        2,
        2,
    ]  # their logits have other scales


def test_packs_are_joined_where_that_adds_least() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 50, 60)]
    joined = resources.in_packs(runs, 64, 1.2)
    assert [{run.memorizer.heads for run in pack} for pack in joined] == [{1, 5}, {50, 60}]


NAME = ("k-s0",)


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    """Of a job whose checkpoints are in the test's folder."""
    return Attempts(lambda name: [tmp_path], watched=True)


def checkpoint(folder: Path, step: int, age: float = -1.0) -> None:
    path = folder / f"step-{step:010}.pt"
    path.touch()
    os.utime(path, (time.time() - age,) * 2)


def test_an_attempt_advances_by_a_checkpoint_of_its_own(attempts: Attempts, tmp_path: Path) -> None:
    checkpoint(tmp_path, 100, age=60)  # of an earlier attempt
    assert not attempts.end(NAME, "FAILED").advanced, "it was never submitted here"
    attempts.begin(NAME)
    assert not attempts.end(NAME, "FAILED").advanced
    attempts.begin(NAME)
    checkpoint(tmp_path, 200)
    (tmp_path / "step-best.pt").touch()  # of a user
    (tmp_path / "live.json").write_text(json.dumps({"step": 250, "steps": 1000}))
    ended = attempts.end(NAME, "CANCELLED")
    assert ended.advanced
    assert ended.at == "step 200 of 1000"


def test_where_a_job_of_several_runs_stands_names_the_run(tmp_path: Path) -> None:
    """Else the second run's steps would look like lost ones of the first."""
    folders = [tmp_path / folder / key for key in ("a", "b", "c") for folder in ("checkpoints", "runs")]
    for folder in folders:
        folder.mkdir(parents=True)
    (tmp_path / "runs" / "a" / "summary.json").touch()
    (tmp_path / "checkpoints" / "b" / "live.json").write_text(json.dumps({"step": 30, "steps": 90}))
    assert Attempts(lambda name: folders).end(NAME, "TIMEOUT").at == "step 0 of 90 of run 2 of 3"


def test_a_pack_advances_by_a_run_that_it_finished(attempts: Attempts, tmp_path: Path) -> None:
    attempts.begin(NAME)
    record = tmp_path / "summary.json"
    record.touch()
    os.utime(record, (time.time() + 1,) * 2)
    assert attempts.end(NAME, "TIMEOUT").advanced


def test_only_memory_asks_for_memory_and_only_the_time_limit_for_time(attempts: Attempts) -> None:
    for state in ("CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "TIMEOUT"):
        attempts.end(NAME, state)
    assert attempts.memory(NAME, 7) == 2
    assert attempts.minutes(NAME, 7) == 3
    assert attempts.memory(("other",), 7) == 1


def test_where_reasons_are_not_known_each_attempt_asks_for_more() -> None:
    """Other schedulers, and a job's own Snakemake, which is told the number of its attempt alone."""
    attempts = Attempts(lambda name: [])
    assert (attempts.memory(NAME, 1), attempts.memory(NAME, 3), attempts.minutes(NAME, 3)) == (1, 3, 3)
