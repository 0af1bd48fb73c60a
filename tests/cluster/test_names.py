"""Names of jobs, and which job of an earlier workflow is the one that a new workflow wants."""

import re

from hypothesis import given
from hypothesis import strategies as st

from shapelaw.cluster.names import Orphan, find_orphan, job_name, mark_in, mark_of, mark_of_tasks
from shapelaw.cluster.states import Job

NAME, MARK = "train_large.k-s0", mark_of(["spec"])


def test_a_job_is_named_by_its_rule_and_run() -> None:
    assert job_name("train_large", ["wiki-V2000-L6-s0-3f2a9c01"]) == "train_large.wiki-V2000-L6-s0-3f2a9c01"
    assert job_name("measure_relu", []) == "measure_relu"


@given(st.text(), st.lists(st.text()))
def test_a_name_needs_no_quotes_in_a_shell(rule: str, wildcards: list[str]) -> None:
    assert re.fullmatch(r"[\w.+-]*", job_name(rule, wildcards))


def test_other_parameters_make_another_mark() -> None:
    assert mark_of(["spec"]) == MARK != mark_of(["other spec"])


def test_only_a_living_job_of_that_name_and_folder_is_an_orphan() -> None:
    def jobs(**changed: str) -> dict[str, Job]:
        fields = {
            "number": "5",
            "state": "RUNNING",
            "folder": "/work",
            "name": NAME,
            "comment": MARK,
            **changed,
        }
        return {fields["number"]: Job(**fields)}

    def found(mine: set[str] | None = None, **changed: str) -> Orphan | None:
        return find_orphan(jobs(**changed), NAME, MARK, "/work", mine or set())

    assert found() == Orphan("5", True)
    assert found(state="PENDING") == Orphan("5", True)
    assert found(comment="shapelaw:another") == Orphan("5", False)  # the same name, trained otherwise
    assert found(comment="") is None  # somebody else's
    assert found(state="COMPLETED") is found(state="CANCELLED") is found(folder="/other") is None
    assert found(name="train_large.k-s1") is None
    assert found(mine={"5"}) is None
    both = jobs(comment="shapelaw:one") | jobs(number="12", comment="shapelaw:another")
    assert find_orphan(both, NAME, MARK, "/work", set()) == Orphan("12", False)
    # groups of one rule have one name
    assert find_orphan(both | jobs(number="7"), NAME, MARK, "/work", set()) == Orphan("7", True)


def test_a_task_of_an_array_is_found_by_its_own_mark() -> None:
    other = mark_of(["other"])
    comment = mark_of_tasks([other, MARK])
    assert re.fullmatch(r"[\w:,]+", comment)  # no quotes in a shell
    tasks = {number: Job(number, "RUNNING", "/work", "train_large", comment) for number in ("9_1", "9_2")}
    assert [mark_in(task) for task in tasks.values()] == [other, MARK]
    assert find_orphan(tasks, NAME, MARK, "/work", set()) == Orphan("9_2", True)
    assert find_orphan(tasks, NAME, MARK, "/elsewhere", set()) is None
    assert find_orphan(tasks, NAME, MARK, "/work", {"9_2"}) is None  # mine
    assert find_orphan(tasks, NAME, mark_of(["a third"]), "/work", set()) is None
    # the whole array, where Slurm does not list its tasks, or a task that it should not have
    for number in ("9", "9_[1-2]", "9_3"):
        assert mark_in(Job(number, "PENDING", "/work", "train_large", comment)) == ""
