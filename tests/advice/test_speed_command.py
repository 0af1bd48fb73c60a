"""The command that times steps of the shapes of a size."""

import csv
from pathlib import Path

import pytest
from commands import script, sentence_of

from shapelaw.advice.answer import speed

SMALL = ("--size", "100k", "--vocab", 100, "--depths", "4,2,2", "--seconds", 0.2, "--tokens-per-step", 128)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "speed.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_size_s_shapes_are_timed_and_written(tmp_path: Path) -> None:
    done = script("speed", *SMALL, cwd=tmp_path)
    assert done.returncode == 0
    found = rows(tmp_path)
    assert [row["depth"] for row in found] == ["2", "4"]
    assert {row["tokens_per_step"] for row in found} == {"128"}
    for row in found:
        assert float(row["total_params"]) == pytest.approx(100e3, rel=0.02)
        each = float(row["seconds_per_token"])
        assert float(row["seconds_per_step"]) == pytest.approx(128 * each, rel=1e-4)
        assert float(row["tokens_per_second"]) == pytest.approx(1 / each, rel=1e-4)
        assert float(row["low"]) <= each <= float(row["high"])
        assert (row["device"], row["block"], row["tied"]) == ("cpu", "llama", "False")
    assert "[1/2] 2 layers of width" in done.stderr
    assert done.stdout.splitlines()[0].split() == [
        *("depth", "width", "heads", "parameters", "in", "blocks", "s", "a", "step", "tokens/s", "time")
    ]
    assert done.stdout.endswith("shapelaw shape 100k --speed speed.csv\n")


def test_shapes_without_room_or_memory_are_said_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = speed._check_memory

    def refuse(shape, setting):  # type: ignore[no-untyped-def]
        if shape.depth == 4:
            raise speed.DoesNotFit("it takes at least 9.0 GiB, and 1.0 are free")
        fits(shape, setting)

    monkeypatch.setattr(speed, "_check_memory", refuse)
    done = script("speed", *SMALL, "--depths", "2,4,900", cwd=tmp_path)
    assert done.returncode == 0
    assert "Left out: 100,000 parameters have no room for 900 layers" in done.stderr
    assert "left out, it takes at least 9.0 GiB, and 1.0 are free." in done.stderr
    assert [row["depth"] for row in rows(tmp_path)] == ["2"]
    nothing = script("speed", *SMALL, "--depths", "4", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "No shape of these fits in the memory" in nothing.stderr
    assert [row["depth"] for row in rows(tmp_path)] == ["2"]  # what was there stays


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--size", "much"), "SIZE is much; give a number of parameters, such as 1.3B"),
        (("--depths", "4,x"), "--depths is x; give numbers of layers"),
        (("--depths", "0"), "--depths is 0; give numbers of layers, such as 12,24,48, of at least 1."),
        (("--depths", "5000"), "1,000 layers are the most"),
        (("--vocab", "1"), "--vocab is 1; give a number of tokens"),
        (("--vocab", "50257"), "no room"),
        (("--tokens-per-step", "0"), "--tokens-per-step is 0; give tokens of a step"),
        (("--tokens-per-step", "100", "--context", "64"), "sequences of 64 don't divide; take 64"),
        (("--seconds", "0"), "--seconds is 0; it must be above 0"),
        (("--out", "speed.txt"), "--out is speed.txt; its name must end in .csv."),
        (("--device", "tpu9"), "This machine has no device 'tpu9'"),
        (("--precision", "bfloat16", "--device", "cpu"), "several times slower than float32 on a CPU"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in sentence_of("speed", *SMALL, *arguments, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
