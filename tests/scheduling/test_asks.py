"""What the training rules ask for: the lines of `snakemake plan` below the studies'."""

from __future__ import annotations

import pytest
from made_runs import RATE, a_memorization_run, a_run

from shapelaw.scheduling.asks import Ask, ask_line, asks_of, total_line, train_cpus
from shapelaw.scheduling.jobs import JobResources
from shapelaw.scheduling.plan import cost_of
from shapelaw.scheduling.workload import Workload
from shapelaw.settings.sections import Execution
from shapelaw.specs.kinds import AnyRun, is_packed

DECODERS = [a_run(2, 64, seed=seed) for seed in range(5)]
LARGE = a_run(48, 1600, steps=10**6)
MEMORIZERS = [a_memorization_run(4, 550, seed) for seed in range(5)]


def workload_of(some: list[AnyRun], **execution: object) -> Workload:
    by_study: dict[str, dict[str, AnyRun]] = {"depth_width": {}, "memorization_heads": {}}
    for run in some:
        by_study["memorization_heads" if is_packed(run) else "depth_width"][run.key] = run
    return Workload(by_study, Execution(flops_per_second=RATE, **execution), RATE)  # type: ignore[arg-type]


def test_each_rule_that_trains_has_its_jobs() -> None:
    some = workload_of([*DECODERS, LARGE, *MEMORIZERS], runs_per_job=3, models_per_pack=2)
    asks = {ask.rule: ask for ask in asks_of(some)}
    assert {rule: (ask.runs, ask.jobs) for rule, ask in asks.items()} == {
        "train_in_turn": (5, 2),
        "train_large": (1, 1),
        "train_together": (5, 3),
    }
    assert asks["train_large"].resources == some.level_resources("large", 1)
    assert asks["train_large"].files == 7
    assert asks["train_in_turn"].files == 5 * 6 + 2 * 4
    alone = {ask.rule: ask.jobs for ask in asks_of(workload_of([*DECODERS], runs_per_job=1))}
    assert alone == {"train_small": 5}


@pytest.mark.parametrize(("threads", "gpus", "cpus"), [(1, 0, 1), (1, 4, 4), (8, 4, 8)])
def test_a_job_has_a_cpu_for_each_gpu(threads: int, gpus: int, cpus: int) -> None:
    assert train_cpus(Execution(threads=threads, gpus=gpus)) == cpus
    (ask,) = asks_of(workload_of([LARGE], threads=threads, gpus=gpus))
    assert (ask.cpus, ask.gpus) == (cpus, gpus)
    (packed,) = asks_of(workload_of([*MEMORIZERS], threads=threads, gpus=gpus))
    assert (packed.cpus, packed.gpus) == (threads, min(gpus, 1))


def test_a_line_tells_what_a_job_asks_for() -> None:
    ask = Ask("train_large", 1, 1, 4, 2, JobResources(64_000, 90))
    assert ask_line(ask) == (
        "train_large: 1 run in 1 job, each at most 90 minutes, 64,000 MB, 4 CPUs, 2 GPUs; about 7 files"
    )


def test_the_last_line_is_the_sum() -> None:
    some = workload_of([*DECODERS, *MEMORIZERS])
    execution, asks = some.execution, asks_of(some)
    line = total_line([DECODERS, MEMORIZERS, []], asks, execution, RATE)
    disk = cost_of(DECODERS, RATE).disk_bytes + cost_of(MEMORIZERS, RATE).disk_bytes
    assert line.startswith(f"Together: 10 runs in {sum(ask.jobs for ask in asks)} jobs, about ")
    assert f"at most {disk / 2**30:.3g} GiB on disk in about {sum(ask.files for ask in asks)} files" in line
    hours = [
        float(one.split("about ")[1].split()[0])
        for one in (line, total_line([DECODERS], asks, execution, RATE))
    ]
    assert hours[0] > hours[1] > 0


def test_ten_thousand_runs_of_seconds_are_not_ten_thousand_jobs() -> None:
    """By default, jobs train for about a minute: ten thousand runs of half a second are some ninety jobs."""
    runs = [a_run(2, 8, steps=100, seed=seed) for seed in range(10_000)]
    (ask,) = asks_of(workload_of([*runs]))
    assert ask.rule == "train_in_turn"
    assert ask.runs == 10_000
    seconds = 100 * 0.005  # no step is taken for shorter
    assert ask.jobs == pytest.approx(10_000 * seconds / 60, rel=0.3)
    assert ask.resources.minutes <= 10
