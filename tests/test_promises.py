"""Every run keeps its key and digest. `python tests/promises.py SCALE` rewrites the golden files on purpose."""

from dataclasses import replace

import pytest
from promises import SCALES, STUDIES, Named, different_jobs, different_runs, named_runs, read_runs, runs_file


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_of_a_scale_keeps_its_names(scale: str) -> None:
    golden = read_runs(runs_file(scale))
    assert {one.study for one in golden} == set(STUDIES)
    changes = different_runs(golden, named_runs(scale))
    assert not changes, "\n".join([f"{scale}:", *changes])


def test_a_difference_is_one() -> None:
    first, second, third = (Named("depth_width", key, key * 2) for key in "abc")
    assert different_runs([first, second], [second, first]) == []
    changed = different_runs([first, second], [replace(second, digest="x"), third])
    assert changed == [
        "  -depth_width a aa",
        "  -depth_width b bb",
        "  +depth_width b x",
        "  +depth_width c cc",
    ]
    old = {"encode": {"files": 2, "names": ["a", "b"]}, "plan": {"files": 70, "hash_of_names": "1"}}
    new = {"encode": {"files": 2, "names": ["b", "c"]}, "plan": {"files": 70, "hash_of_names": "2"}}
    assert different_jobs(old, old) == []
    assert different_jobs(old, new) == [
        *("  -encode a", "  +encode c", "  -plan hash_of_names: 1", "  +plan hash_of_names: 2")
    ]
