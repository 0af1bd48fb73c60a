"""The command that times steps of the shapes of a size."""

import csv
from pathlib import Path

import pytest
from commands import script, sentence_of

from shapelaw.advice.answer import speed
from shapelaw.advice.answer.serving import Serving

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
        *("depth", "width", "heads", "parameters", "in", "blocks", "s", "per", "step", "tokens/s", "time")
    ]
    assert done.stdout.endswith("shapelaw shape 100k --vocab 100 --block llama --speed speed.csv\n")


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


def test_decoding_is_measured_and_told_as_a_roofline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = speed.step_times

    def by_a_roofline(shape, setting):  # type: ignore[no-untyped-def]
        assert measure(shape, setting).seconds  # such small shapes have times of no roofline
        return speed.StepTimes((Serving(3, 32, 18e9, 95e-6, 4).of(shape)[2],))

    monkeypatch.setattr(speed, "step_times", by_a_roofline)
    asked = ("100k", "--vocab", 100, "--depths", "2,8", "--seconds", 0.2, "--decode")
    done = script("speed", *asked, "--batch", 3, "--context", 32, cwd=tmp_path)
    assert done.returncode == 0
    with (tmp_path / "decode.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert {(row["tokens_per_step"], row["context_length"]) for row in found} == {("3", "32")}
    cache = [2 * 3 * 32 * int(row["depth"]) * int(row["width"]) for row in found]
    weights = [int(row["block_params"]) + 100 * int(row["width"]) for row in found]
    assert [float(row["read_bytes"]) for row in found] == pytest.approx(
        [4 * (read + kept) for read, kept in zip(weights, cache, strict=True)], rel=1e-5
    )
    serve = done.stdout.split()[-1]
    assert serve == "batch=3,context=32,bandwidth=18GB/s,layer=95us,bytes=4"
    assert "shapelaw shape 100k --vocab 100 --block llama --size latency --serve" in done.stdout
    assert script("shape", "1.3B", "--size", "latency", "--serve", serve, cwd=tmp_path).returncode == 0
    for asked in (("shape", "1.3B"), ("advisor_page",)):  # times of decoding are none of training
        assert "--speed decode.csv has times of decoding" in sentence_of(
            *asked, "--speed", "decode.csv", cwd=tmp_path
        )
    assert "--speed no can't be read" in sentence_of("advisor_page", "--speed", "no", cwd=tmp_path)
