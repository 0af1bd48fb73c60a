"""Which job trains which run: a later start asks for the same jobs, and new runs alone make new ones."""

import json
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import RATE, a_memorization_run, a_run

from shapelaw.errors import UserError
from shapelaw.jobs import ledger as ledgers
from shapelaw.jobs.resources import formed_jobs
from shapelaw.settings.sections import Execution
from shapelaw.specs.kinds import AnyRun, spec_from_dict

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
