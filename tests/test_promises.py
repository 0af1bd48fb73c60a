"""Every run keeps its key and digest. `python tests/promises.py SCALE` rewrites the golden files on purpose."""

from dataclasses import replace

import pytest
from promises import (
    SCALES,
    STUDIES,
    Named,
    different_jobs,
    different_runs,
    named_runs,
    read_runs,
    runs_file,
)


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_of_a_scale_keeps_its_names(scale: str) -> None:
    golden = read_runs(runs_file(scale))
    assert {one.study for one in golden} == set(STUDIES)
    changes = different_runs(golden, named_runs(scale))
    assert not changes, "\n".join([f"{scale}:", *changes])


def test_a_difference_says_which_runs_came_went_or_changed() -> None:
    first, second, third = (Named("depth_width", key, key * 2) for key in "abc")
    assert different_runs([first, second], [first, second]) == []
    assert different_runs([first, second], [replace(second, digest="x"), third]) == [
        "1 went:",
        "  depth_width a",
        "1 came:",
        "  depth_width c",
        "1 changed their digest:",
        "  depth_width b: bb -> x",
    ]
    assert different_runs([first], [])[:2] == ["1 went:", "  depth_width a"]


def test_a_difference_of_jobs_names_the_rule_and_its_files() -> None:
    old = {"encode": {"files": 2, "names": ["a", "b"]}, "plan": {"files": 70, "hash_of_names": "1"}}
    new = {"encode": {"files": 2, "names": ["b", "c"]}, "plan": {"files": 71, "hash_of_names": "2"}}
    assert different_jobs(old, old) == []
    assert different_jobs(old, new) == [
        "encode made 2 files, and makes 2, some of other names",
        "1 went:",
        "  a",
        "1 came:",
        "  c",
        "plan made 70 files, and makes 71, some of other names",
    ]
