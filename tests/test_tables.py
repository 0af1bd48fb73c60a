"""Analyses write the tables that they wrote, and runs keep their names; tests/promises.py rewrites them on purpose."""

from pathlib import Path

import pytest
from golden_tables import COMMANDS, FIT, INPUTS, differences, golden, kept, made, same, unpack_inputs
from promises import SCALES, different_jobs, different_runs, named_runs, read_runs, runs_file

from shapelaw.studies.registry import STUDIES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    return unpack_inputs(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_analysis_writes_the_tables_that_it_wrote(name: str, folder: Path) -> None:
    changes = differences(name, golden(name), made(name, folder))
    assert not changes, "\n".join(["", *changes])


def test_every_table_of_every_study_is_kept() -> None:
    analysed = {(words[1], name) for name, words in COMMANDS.items() if words[0] == "analyse.py"}
    for study in STUDIES.values():
        tables = {table for one, name in analysed if one == study.name for table in golden(name)}
        assert tables == {*study.tables, FIT}, f"{study.name}: it needs a command in tests/golden/tables.yaml"
    assert {name.split("/")[0] for name in kept()} == {*COMMANDS, INPUTS}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.1234567890123", "0.1234567890124", True),
        ("1.5", "1.50001", False),
        ("-2.2e-17", "3.1e-17", True),
        ("3", "3.0", False),
        ("3", "4", False),
        ("", "0.0", False),
        ("inf", "inf", True),
        ("nan", "1.0", False),
        ("converged", "at the edge", False),
    ],
)
def test_last_digits_are_no_difference(old: str, new: str, expected: bool) -> None:
    assert same(old, new) is expected


def test_a_difference_is_one() -> None:
    old = {"losses": "depth,width,loss\n1,8,2.5\n2,8,2.25\n", "gaps": "depth\n1\n"}
    assert differences("study", old, old) == []
    almost = {**old, "losses": old["losses"].replace("2.25", "2.25000000001")}
    assert differences("study", old, almost) == []
    assert differences("study", old, {"losses": "depth,width,loss\n1,8,2.5\n2,8,2.75\n", "fit": "a\n"}) == [
        *(
            "study: gaps went",
            "study: fit came",
            "study, losses (depth,width,loss):",
            "  -2,8,2.25",
            "  +2,8,2.75",
        )
    ]
    longer = {**old, "gaps": "depth\n" + "2\n" * 30}
    assert differences("study", old, longer)[-1] == "  and 11 more"


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_of_a_scale_keeps_its_names(scale: str) -> None:
    golden = read_runs(runs_file(scale))
    assert {line.split("\t")[0] for line in golden} == {
        name for name, study in STUDIES.items() if not study.extra
    }
    changes = different_runs(golden, named_runs(scale))
    assert not changes, "\n".join([f"{scale}:", *changes])


def test_a_difference_of_names_is_one() -> None:
    first, second, third = (f"depth_width\t{key}\t{key * 2}" for key in "abc")
    assert different_runs([first, second], [second, first]) == []
    changed = different_runs([first, second], ["depth_width\tb\tx", third])
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
