"""What jobs ask for: enough for every run of a level, more on a second attempt, and a level for every run."""

import math
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from made_runs import RATE, a_memorization_run, a_run, decoder_runs, memorization_grids, memorization_runs

from shapelaw.jobs.packs import (
    in_packs,
    jobs_in_turn,
    jobs_of_packs,
    level_of,
    pack_flops,
    train_minutes,
)
from shapelaw.jobs.resources import filled_up, job_resources, packed_resources
from shapelaw.settings.sections import Execution
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run


@given(st.lists(decoder_runs, min_size=1, max_size=5), st.sampled_from([0, 1]))
def test_a_level_asks_enough_for_each_of_its_runs(some: list[Run], gpus: int) -> None:
    together = job_resources(some, RATE, gpus, 10**9, 1)
    for run in some:
        alone = job_resources([run], RATE, gpus, 10**9, 1)
        assert together.memory_mb >= alone.memory_mb
        assert together.minutes >= alone.minutes
        assert alone.minutes > train_minutes(run, RATE)
        if gpus:
            assert alone.memory_mb * 1e6 > 12 * run.shape.total_params  # a checkpoint fits


@given(decoder_runs, st.integers(1, 5), st.sampled_from([0, 1, 4]))
def test_a_further_attempt_asks_for_more_but_never_beyond_the_limit(
    run: Run, attempt: int, gpus: int
) -> None:
    """Six attempts of a run of 40 GB must not end in asking for 240."""
    estimate, before, now = (job_resources([run], RATE, gpus, 1440, n) for n in (1, attempt, attempt + 1))
    assert 1.99 * estimate.memory_mb < now.memory_mb <= 2 * estimate.memory_mb
    assert before.minutes <= now.minutes <= 1440
    assert now.minutes > before.minutes or now.minutes == 1440


@given(decoder_runs)
def test_every_gpu_has_a_process_that_needs_its_memory(run: Run) -> None:
    one, four = (job_resources([run], RATE, gpus, 1440, 1) for gpus in (1, 4))
    assert four.memory_mb - one.memory_mb == 3 * 8000


@given(st.lists(decoder_runs, max_size=20, unique_by=lambda run: run.key), st.integers(2, 5))
def test_a_pack_is_known_by_its_members(some: list[Run], size: int) -> None:
    packs = jobs_in_turn(some, size, RATE)
    small = [run for run in some if level_of(run, RATE) == "small"]
    assert [run for pack in packs.values() for run in pack] == small
    assert all(1 <= len(pack) <= size for pack in packs.values())
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in packs)
    others = jobs_in_turn(small[size:], size, RATE)  # the first pack's runs are gone
    assert list(packs.items())[1:] == list(others.items())


@given(st.lists(decoder_runs, max_size=40, unique_by=lambda run: run.key), st.sampled_from([1e9, 4e10, 1e13]))
def test_chosen_packs_train_for_about_a_minute(some: list[Run], speed: float) -> None:
    packs = list(jobs_in_turn(some, None, speed).values())
    small = [run for run in some if level_of(run, speed) == "small"]
    assert sorted(run.key for pack in packs for run in pack) == sorted(run.key for run in small)
    minutes = [[train_minutes(run, speed) for run in pack] for pack in packs]
    shared = [sum(times) for times in minutes if max(times) < 1]
    assert all(time <= 2 for time in shared)
    assert len(shared) <= sum(shared) + 1  # jobs, for a minute each


@given(memorization_grids, st.integers(1, 5), st.integers(1, 4), st.sampled_from([1.0, 1.5, 10.0]))
def test_each_memorizer_is_in_one_pack_and_each_pack_in_one_job(
    some: list[MemorizationRun], size: int, packs_per_job: int, padding: float
) -> None:
    execution = Execution(models_per_pack=size, packs_per_job=packs_per_job, padding=padding)
    jobs = jobs_of_packs(some, execution)
    packs = [pack for job in jobs.values() for pack in job]
    assert sorted(run.key for pack in packs for run in pack) == sorted(run.key for run in some)
    assert packs == in_packs(some, size, padding)
    assert len(jobs) == math.ceil(len(packs) / packs_per_job)
    assert all(1 <= len(pack) <= size for pack in packs)
    assert all(len({run.group if padding == 1 else run.family for run in pack}) == 1 for pack in packs)
    assert all(pack == sorted(pack, key=lambda run: -run.steps) for pack in packs)
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in jobs)


@given(st.lists(memorization_runs, min_size=1, max_size=8), st.integers(1, 5), st.sampled_from([0, 1]))
def test_packs_of_memorizers_ask_enough_for_the_longest(
    some: list[MemorizationRun], attempt: int, gpus: int
) -> None:
    execution = Execution(flops_per_second=RATE, gpus=gpus)
    together = packed_resources([[some], [some[:1]]], execution, 1440, attempt)
    alone = packed_resources([[some[:1]]], execution, 1440, attempt)
    assert together.memory_mb >= alone.memory_mb
    assert 1440 >= together.minutes >= alone.minutes
    assert together.minutes * 60 * RATE > sum(run.steps * run.step_flops for run in some) or (
        together.minutes == 1440
    )
    later = packed_resources([[some]], execution, 1440, attempt + 1)
    assert later.memory_mb >= together.memory_mb
    assert later.minutes >= together.minutes


def test_levels_follow_time() -> None:
    assert level_of(a_run(2, 64, steps=1000), 1e13) == "small"
    assert level_of(a_run(48, 1600, steps=1000), 1e13) == "medium"
    assert level_of(a_run(48, 1600, steps=10**6), 1e13) == "large"


@given(memorization_grids, st.integers(1, 20), st.floats(1, 12))
def test_what_is_filled_up_stays_within_its_budget_and_saves_packs(
    some: list[MemorizationRun], size: int, padding: float
) -> None:
    packs, apart = in_packs(some, size, padding), in_packs(some, size)
    alone = sum(run.steps * run.step_flops for run in some)
    assert sum(map(pack_flops, apart)) == alone
    assert alone <= sum(map(pack_flops, packs)) <= padding * alone
    assert len(packs) <= len(apart)
    assert all(run.memorizer == pack[0].memorizer for pack in map(filled_up, packs) for run in pack)


def test_with_a_large_budget_a_family_is_one_pack_and_families_stay_apart() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 20, 60)]
    others = [replace(run, context_type="per_example") for run in runs]
    assert sorted(map(len, in_packs([*runs, *others], 64, 100.0))) == [4, 4]
    assert sorted(map(len, in_packs([*runs, *others], 3, 100.0))) == [1, 1, 3, 3]
    by_head_dim = [
        replace(run, memorizer=replace(run.memorizer, logit_scale="head_dim", head_dim=head_dim))
        for run, head_dim in zip(runs, (8, 8, 64, 64), strict=True)
    ]
    assert sorted(map(len, in_packs(by_head_dim, 64, 100.0))) == [2, 2]  # their logits have other scales


def test_packs_are_joined_where_that_adds_least() -> None:
    runs = [a_memorization_run(heads, 550, 0) for heads in (1, 5, 50, 60)]
    joined = in_packs(runs, 64, 1.2)
    assert [{run.memorizer.heads for run in pack} for pack in joined] == [{1, 5}, {50, 60}]
