"""Training steps timed: what is measured, what doesn't fit, how many tokens a step gets, and the command."""

import csv
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import script, sentence_of

from shapelaw.advice.answer import speed
from shapelaw.advice.answer.speed import DoesNotFit, Setting, median_and_ends, step_times, tokens_for
from shapelaw.advice.evidence.clocks import Serving, roofline_of, serving_of
from shapelaw.errors import UserError
from shapelaw.specs.making import make_shape

CPU = torch.device("cpu")
SHAPE = make_shape(2, 32, 2, 50, 1, block="llama")
SETTING = Setting(CPU, "float32", batch_size=2, context=16, seconds=0.2, compiled=None)


@pytest.mark.parametrize("block", ["llama", "gpt2"])
def test_steps_are_training_steps_of_the_whole_batch(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    forward = speed.Decoder.forward
    weights: list[torch.Tensor] = []

    def watched(model: speed.Decoder, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(ids.shape))
        weights.append(model.classifier.weight.detach().clone())
        return forward(model, ids, targets)

    monkeypatch.setattr(speed.Decoder, "forward", watched)
    found = step_times(replace(SHAPE, block=block), SETTING)
    assert set(seen) == {(2, 16)}
    assert len(seen) >= len(found) + speed.WARM_UP[0]
    assert not torch.equal(weights[0], weights[-1])  # the optimizer steps too


@pytest.mark.parametrize("options", [{"block": "gpt2"}, {"block": "llama", "kv_heads": 1}])
def test_a_decoding_step_is_the_decoder_s_and_attends_to_its_cache(options: dict[str, Any]) -> None:
    shape, alone = make_shape(2, 32, 2, 50, 1, **options), replace(SETTING, decodes=True, context=1)
    torch.manual_seed(0)
    step = speed.decoding_step(shape, alone)
    torch.manual_seed(0)
    model, ids = speed.Decoder(shape), torch.randint(0, shape.vocab_size, (2, 1))
    torch.testing.assert_close(step(), model.logits(ids).detach())
    torch.manual_seed(0)
    longer = speed.decoding_step(shape, replace(alone, context=9))  # eight empty keys and values
    assert not torch.allclose(longer(), step())


def test_a_roofline_is_found_again() -> None:
    rows = [
        {
            "depth": depth,
            "read_bytes": f"{read:.6g}",
            "seconds_per_step": f"{read / 18e9 + depth * 95e-6:.6g}",
            "tokens_per_step": 2,
            "context_length": 512,
            "number_bytes": 4,
        }
        for depth, read in ((2, 4.1e8), (8, 4.2e8), (32, 4.7e8))
    ]
    for none in (rows[:1], [row | {"seconds_per_step": row["depth"]} for row in rows]):
        with pytest.raises(UserError, match="No roofline fits these times; give more --depths"):
            roofline_of(none)
    found = serving_of(roofline_of(rows), None)
    assert (found.batch, found.context, found.number_bytes) == (2, 512, 4)
    assert found.bandwidth == pytest.approx(18e9, rel=1e-3)
    assert found.layer_seconds == pytest.approx(95e-6, rel=1e-2)


def test_a_shape_takes_no_longer_than_it_may() -> None:
    def slow() -> None:
        time.sleep(0.02)

    begun = time.perf_counter()
    seconds = speed._timed(slow, 0.1, 1, 200)
    assert time.perf_counter() - begun < 1.0
    assert 1 <= len(seconds) <= 5
    assert len(speed._timed(slow, 0.0, 2, 200)) == 2
    assert len(speed._timed(lambda: None, 10.0, 1, 7)) == 7


def test_median_and_spread_of_steps() -> None:
    seconds = (1.0, 1.0, 1.2, 1.0, 9.0)
    median, low, high = median_and_ends(seconds)
    assert median == statistics.median(seconds) == 1.0
    assert low == 1.0
    assert 1.2 < high < 9.0


def test_what_needs_more_memory_than_there_is_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_free_memory", lambda device: 2**20)
    large = replace(SHAPE, width=1024, attention_dim=512, vocab_size=50257)
    with pytest.raises(DoesNotFit, match=r"^it takes at least 1\.\d GiB, and 0\.0 are free$"):
        step_times(large, SETTING)


def test_a_step_that_runs_out_of_memory_does_not_fit_and_other_errors_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(error: Exception) -> None:
        def step(*_: object) -> None:
            raise error

        monkeypatch.setattr(speed, "_step", step)

    fails(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"))
    with pytest.raises(DoesNotFit, match="ran out of memory"):
        step_times(SHAPE, SETTING)
    fails(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1"):
        step_times(SHAPE, SETTING)


def test_tokens_are_fewer_for_costly_shapes_on_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "peak_flops", lambda device, precision: 1e11)
    small = tokens_for(make_shape(2, 64, 1, 257, 1, block="llama"), CPU, "float32", 256)
    large = tokens_for(make_shape(24, 1024, 8, 257, 1, block="llama"), CPU, "float32", 256)
    assert small == speed.MOST_TOKENS
    assert large == 128  # the least; a second is worth 22 of its tokens
    monkeypatch.setattr(speed, "peak_flops", lambda device, precision: 4e14)
    assert tokens_for(make_shape(24, 1024, 8, 257, 1, block="llama"), CPU, "bfloat16", 1024) == 16_384


SMALL = ("100k", "--vocab", 100, "--depths", "4,2,2", "--seconds", 0.2, "--tokens-per-step", 128)


def rows(folder: Path, name: str = "speed.csv") -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8") as file:
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

    def refuse(shape, setting):
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

    def by_a_roofline(shape, setting):
        assert measure(shape, setting)  # such small shapes have times of no roofline
        return [Serving(3, 32, 18e9, 95e-6, 4).of(shape)[2]]

    monkeypatch.setattr(speed, "step_times", by_a_roofline)
    asked = ("100k", "--vocab", 100, "--depths", "2,8", "--seconds", 0.2, "--decode")
    done = script("speed", *asked, "--batch", 3, "--context", 32, cwd=tmp_path)
    assert done.returncode == 0
    found = rows(tmp_path, "decode.csv")
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
