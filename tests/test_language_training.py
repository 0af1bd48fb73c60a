"""benchmarks/language_training.py: what one contestant breaks costs the others a call, not their numbers."""

import json
import sys
from pathlib import Path

import language_training
import pytest


def test_a_contestant_that_breaks_the_device_is_left_out_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As transformers' GPT-2 did, compiled at width 376: every further call of CUDA failed, also those of ours."""
    make = language_training.make_contestant
    made: list[str] = []

    def making(setting: object, way: str, *others: object) -> object:
        made.append(way)
        if way == "GPT2":
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nSearch for ...")
        return make(setting, way, *others)

    monkeypatch.setattr(language_training, "make_contestant", making)
    monkeypatch.setattr(language_training, "available", lambda ways, *_: (list(ways), []))
    options = [
        "--device",
        "cpu",
        "--shapes",
        "1,16",
        "--vocab-sizes",
        "257",
        "--batch",
        "1",
        "--repeats",
        "1",
    ]
    options += ["--least-seconds", "0.001", "--ways", "GPT2", "ours", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["language_training.py", *options])
    monkeypatch.chdir(tmp_path)
    assert language_training.main() == 3
    assert made == ["GPT2"]
    assert "call it again" in capsys.readouterr().out
    assert language_training.main() == 0
    assert made == ["GPT2", "ours"]
    (case,) = json.loads((tmp_path / "language_training.json").read_text())["cases"]
    assert list(case["ways"]) == ["ours"]
    assert case["failed"] == {"GPT2": "CUDA error: an illegal memory access was encountered"}
