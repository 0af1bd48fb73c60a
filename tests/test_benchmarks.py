"""Benchmarks begin; language_training.py goes on where a contestant breaks, and one_law.py fits a law that is known."""

import json
import sys
from importlib import import_module
from pathlib import Path

import language_training
import numpy as np
import one_law
import pandas as pd
import pytest
from small import REPOSITORY


@pytest.mark.parametrize("path", sorted((REPOSITORY / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_finds_all_that_it_imports(path: Path) -> None:
    """Some of them are carried out nowhere: they take a card, a cluster or hours."""
    import_module(path.stem)


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
    options = "--device cpu --shapes 1,16 --vocab-sizes 257 --batch 1 --repeats 1 --ways GPT2 ours"
    options += f" --least-seconds 0.001 --out {tmp_path}"
    monkeypatch.setattr(sys, "argv", ["language_training.py", *options.split()])
    monkeypatch.chdir(tmp_path)
    assert language_training.main() == 3
    assert made == ["GPT2"]
    assert "call it again" in capsys.readouterr().out
    assert language_training.main() == 0
    assert made == ["GPT2", "ours"]
    (case,) = json.loads((tmp_path / "language_training.json").read_text())["cases"]
    assert list(case["ways"]) == ["ours"]
    assert case["failed"] == {"GPT2": "CUDA error: an illegal memory access was encountered"}


TRUTH = np.array([-4.0, -0.1, 1.4, 0.6, 0.15, -0.7])


def shapes() -> pd.DataFrame:
    """Mean log losses of networks of two vocabularies on the law, with levels and slopes of their own."""
    rows = [
        {"group": words, "level": words, "vocab_size": words, "depth": depth, "width": width, "error": 1e-3}
        for words in (257, 2000)
        for depth in (1, 2, 4, 8)
        for width in (16, 24, 32, 48, 64)
    ]
    found = pd.DataFrame(rows)
    found["block_params"] = 12 * found["depth"] * found["width"] ** 2
    found["tokens"] = np.where(found["vocab_size"] == 257, 5e7, 30 * found["block_params"])
    terms = one_law.ridge_terms(found, "V")
    off = np.log(found["depth"]) - TRUTH[2:] @ terms
    level = found["vocab_size"].map({257: 0.6, 2000: 1.0}) - 0.05 * terms[1] + 0.002 * terms[1] ** 2
    return found.assign(mean=level + np.exp(TRUTH[:2] @ terms[:2]) * off**2)


def test_losses_on_a_law_give_it_back() -> None:
    values, covariance = one_law.Surface(shapes(), "V").fitted()
    assert values == pytest.approx(TRUTH, abs=0.02)
    assert np.sqrt(np.diag(covariance)).max() < 0.2
    at = {"size": 4.4e8, "per_param": 200.0, "words": 50304.0}
    assert one_law.best_depth(values, at, "V") == pytest.approx(one_law.best_depth(TRUTH, at, "V"), rel=0.1)
    assert one_law.Surface(shapes(), "V").nats(TRUTH) == pytest.approx(0, abs=1e-9)
    assert one_law.Surface(shapes(), "V").nats(one_law.FLAT) > 0.01


def test_a_transition_lies_above_the_widest_shape_that_leads() -> None:
    rows = [
        {"depth": depth, "width": width, "block_params": 12 * depth * width**2, "loss": loss}
        for depth, width, loss in (
            (1, 32, 3.0), (1, 48, 2.8), (1, 64, 2.7), (1, 96, 2.5),  # the widest is beyond the two of two layers
            (2, 22, 3.2), (2, 48, 2.6),
        )
    ]  # fmt: skip
    found = one_law.lower_bounds(pd.DataFrame(rows))
    assert found["width"].tolist() == [48]
    assert found["at_middle"].tolist() == pytest.approx([48 / 2**0.25])
