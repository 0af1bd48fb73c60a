"""The command line of `shapelaw shape`."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import json_of, output_of, sentence_of
from model_configs import folder_of
from scattered_shapes import Design, draw_shapes, symmetric
from small import LAPTOP, PYTHON, SCRIPTS, command_path


def numbers(folder: Path, *arguments: object) -> dict[str, Any]:
    return dict(json_of("shape", *arguments, cwd=folder))


def test_defaults_are_20_tokens_a_parameter_and_gpt_2_s_vocabulary(tmp_path: Path) -> None:
    found = numbers(tmp_path, "1.3B")
    defaults = [found[name] for name in ("tokens", "vocab_size", "tied", "block")]
    assert defaults == [2.6e10, 50257, False, "llama"]
    assert numbers(tmp_path, "30M", "--vocab", 257)["tokens"] == 1e9  # the least that is told


def write_speed(folder: Path, rows: list[str]) -> None:
    (folder / "speed.csv").write_text(
        "\n".join(["depth,block_params,seconds_per_token", *rows]), encoding="utf-8"
    )


def test_times_of_too_few_depths_are_a_sentence(tmp_path: Path) -> None:
    """Of a busy machine, on which more layers were quicker."""
    write_speed(tmp_path, ["4,2.8e6,0.012", "8,2.9e6,0.019", "16,2.9e6,0.003"])
    asked = ("30M", "--vocab", 257, "--speed", "speed.csv")
    said = sentence_of("shape", *asked, "--size", "time", cwd=tmp_path)
    assert "of 4 to 16 layers, the best depth at equal time lies beyond them" in said
    assert numbers(tmp_path, *asked)["equal_times"] == {}


def test_transitions_of_one_s_own_are_a_witness(tmp_path: Path) -> None:
    depth = np.array([1, 2, 4])
    table = pd.DataFrame({"depth": depth, "width": np.exp(4.8 + 0.1 * depth), "width_err": 3.0})
    table.to_csv(tmp_path / "transitions.csv", index=False)
    said = output_of("shape", "350M", "--fit", ".", cwd=tmp_path)
    assert "your own" in said
    assert "It rests on 3 transitions" in said
    found = numbers(tmp_path, "2M", "--vocab", 257, "--fit", ".")
    assert found["best"]["by"] == "transitions.csv"
    assert found["best"]["low"] < found["best"]["depth"] < found["best"]["high"]


def fit_runs(runs: pd.DataFrame, folder: Path) -> None:
    """Fit a surface to runs, in the folder `mine`."""
    runs.to_csv(folder / "runs.csv", index=False)
    output_of("fit_surface", "--runs", "runs.csv", "--out", "mine", "--draws", 200, cwd=folder)


def test_where_the_evidence_does_not_reach_a_surface_of_one_s_own_is_the_answer(tmp_path: Path) -> None:
    fit_runs(pd.read_parquet(LAPTOP), tmp_path)
    asked = ("393k", "--size", "block", "--vocab", 257, "--tokens", "8.19M")
    public = numbers(tmp_path, *asked)
    assert (public["best"]["by"], public["costs"]) == (None, [])
    own = numbers(tmp_path, *asked, "--fit", "mine", "--depth", 4, "--width", 90)
    assert (own["best"]["by"], own["best"]["depth"], own["shape"]["depth"]) == ("mine", 2, 2)
    assert own["best"]["low"] <= 2 <= own["best"]["high"]
    by_depth = {row["depth"]: row["cost"] for row in own["costs"]}
    assert by_depth[2] == 0.0
    assert 0.02 < by_depth[1] < 0.045
    assert own["given"]["cost"] > 0.01
    longer = numbers(tmp_path, *asked[:-1], "1B", "--fit", "mine")
    one, same = ({row["depth"]: row for row in found["costs"]}[1] for found in (longer, own))
    assert one["high"] - one["low"] > 1.5 * (same["high"] - same["low"])
    said = " ".join(output_of("shape", *asked, "--fit", "mine", cwd=tmp_path).split())
    assert "costs, best depth and interval are those of your own" in said
    assert "Excess losses are by your own fit, mine." in said
    assert "Take 2 layers of width 128" in said
    inside = numbers(tmp_path, "1.3B", "--fit", "mine")  # there the evidence answers, and the fit can't tell
    assert inside["best"]["by"].startswith("Gemstones")


def test_a_bound_by_runs_of_this_size_is_the_answer_and_no_far_model_is_near(tmp_path: Path) -> None:
    """Before, it stood in a row of the table, below a headline of 1 to 113 layers and models 230 times as large."""
    depth, width = (np.ravel(one) for one in np.meshgrid([1, 2, 4], [16, 24, 32, 40]))
    size = 12.0 * depth * width**2
    fit_runs(pd.DataFrame({"depth": depth, "width": width, "loss": 9.0 * size**-0.1 * depth**0.2}), tmp_path)
    asked = ("60k", "--vocab", 400, "--tokens", "205k", "--fit", "mine")
    said = " ".join(output_of("shape", *asked, cwd=tmp_path).split())
    assert "Best depth: below 2 layers, by your own runs, mine. Public runs don't reach" in said
    assert "can't tell." not in said
    assert "shipped" not in said
    assert "take that end, or train shapes beyond it" in said
    found = numbers(tmp_path, *asked)
    assert found["best"]["depth"] is None
    assert found["best"]["bound"] == "below 2 layers, by mine"
    assert found["shipped"] == []


def test_a_surface_of_one_s_own_is_a_witness(tmp_path: Path) -> None:
    shapes, _ = draw_shapes(symmetric, Design(24), 0)
    fit_runs(pd.DataFrame({"depth": shapes.depth, "width": shapes.width, "test_loss": shapes.loss}), tmp_path)
    found = numbers(tmp_path, "3e8", "--size", "block", "--fit", "mine")
    (own,) = (one for one in found["witnesses"] if one["name"] == "mine")
    assert 13 <= own["low"] <= own["depth"] <= own["high"] <= 20
    assert own["times_outside"] == 1.0
    (tmp_path / "mine" / "fit.json").write_text(json.dumps({"cells": [{"cell": {"heads": 2}}]}))
    assert "networks of several kinds (heads)" in sentence_of("shape", "3e8", "--fit", "mine", cwd=tmp_path)


def test_a_model_s_config_is_priced(tmp_path: Path) -> None:
    """TinyLlama's."""
    asked = ("1.1B", "--model", folder_of("llama", tmp_path))
    said = output_of("shape", *asked, cwd=tmp_path)
    assert "llama is a dense decoder (llama): 1,100,048,384 parameters" in said
    assert "Your shape, 22 layers of width 2,048. It costs" in said
    found = numbers(tmp_path, *asked)
    assert (found["vocab_size"], found["tied"]) == (32000, False)
    assert found["given"]["size"] == found["model"]["params"] == 1_100_048_384
    assert 0.0 < found["given"]["cost"] < 0.02
    for other in (("--vocab", 8000), ("--tied",)):  # which would price it as another network
        assert "has 32,000 words, untied; leave out --vocab and --tied" in sentence_of(
            "shape", *asked, *other, cwd=tmp_path
        )


def test_a_model_needs_no_size_keeps_its_heads_of_keys_and_gets_a_verdict(tmp_path: Path) -> None:
    folder = folder_of("llama", tmp_path)
    served = ("--serve", "batch=1,context=4096,bandwidth=3.3TB/s")
    found = numbers(tmp_path, "--model", folder, *served)
    assert (found["size"], found["kv_heads"]) == (1_100_048_384, 4)
    assert all(row["heads"] % 4 == 0 for row in found["costs"])
    verdict = found["verdict"]
    assert verdict["cost"] == [found["given"][name] for name in ("cost", "cost_low", "cost_high")]
    assert verdict["cost_at_equal_time"][0] < verdict["cost"][0]  # its time is worth something
    assert 0.0 < verdict["slower"] < 0.3
    assert verdict["decoding_slower"] > 0.0
    last = " ".join(output_of("shape", "--model", folder, *served, cwd=tmp_path).split("\n\n")[-1].split())
    best = verdict["best"]
    assert verdict["keep"]
    assert last.startswith(
        f"Keep 22 x 2,048: the best shape of its size, {best['depth']} x {best['width']:,}, is "
        f"{verdict['cost'][0]:.3f} nats better ({verdict['cost'][1]:.3f} to {verdict['cost'][2]:.3f}) and "
        f"{verdict['slower']:.0%} slower to train on MI250X, {verdict['decoding_slower']:.0%} slower to decode; "
    )


def test_a_verdict_at_equal_latency_is_of_decoding(tmp_path: Path) -> None:
    served = ("--serve", "batch=1,context=4096,bandwidth=3.3TB/s", "--size", "latency")
    asked = ("--model", folder_of("llama", tmp_path), *served)
    last = " ".join(output_of("shape", *asked, cwd=tmp_path).split("\n\n")[-1].split())
    assert "slower to decode; the best that decodes as quickly is " in last
    assert "train" not in last


def test_a_shape_that_is_worse_and_slower_is_to_be_changed(tmp_path: Path) -> None:
    asked = ("1.3B", "--vocab", "32k", "--depth", 83)
    verdict = numbers(tmp_path, *asked)["verdict"]
    assert not verdict["keep"]
    assert verdict["slower"] < 0.0
    assert verdict["cost_at_equal_time"][0] > verdict["cost"][0]
    assert "\nChange 83 x 1,152: the best shape" in output_of("shape", *asked, cwd=tmp_path)


def test_times_are_of_a_machine_that_is_named(tmp_path: Path) -> None:
    both = numbers(tmp_path, "700M", "--tokens", "30B")["equal_times"]
    assert list(both) == ["MI250X", "H200"]
    assert both["MI250X"]["depth"] < both["H200"]["depth"] - 3
    timed = numbers(tmp_path, "700M", "--tokens", "30B", "--size", "time", "--machine", "h200")
    assert timed["best"]["depth"] == both["H200"]["depth"]
    chosen = numbers(tmp_path, "700M", "--tokens", "30B", "--machine", "H200")["equal_times"]
    assert chosen == {"H200": both["H200"]}
    said = " ".join(output_of("shape", "125M", "--machine", "h200", cwd=tmp_path).split())
    assert "times away; here their error is wider" in said


def test_decoding_reads_exact_bytes_and_takes_their_time(tmp_path: Path) -> None:
    asked = ("1.3B", "--vocab", "32k", "--kv-heads", 8)
    serve = "batch=4,context=8k,bandwidth=2TB/s,layer=50us,bytes=1"
    found = numbers(tmp_path, *asked, "--serve", serve)
    assert list(found["equal_times"]) == ["MI250X", "H200", "latency"]
    for row in found["costs"]:
        cache = 2 * row["depth"] * 8 * row["head_dim"]
        weights = (
            row["size"] - 32000 * row["width"] - (2 * row["depth"] + 1) * row["width"]
        )  # no norms, one table
        assert (row["kv_bytes_per_token"], row["weight_bytes"]) == (cache, weights)
        seconds = (weights + 4 * 8000 * cache) / 2e12 + row["depth"] * 50e-6
        assert row["decode_seconds"] == pytest.approx(seconds)
    said = output_of("shape", *asked, "--serve", serve, cwd=tmp_path)
    assert "KV per token" in said
    assert "at equal latency of decoding" in " ".join(said.split())


def test_a_model_s_ties_and_positions_are_the_question_s(tmp_path: Path) -> None:
    found = numbers(tmp_path, "124M", "--model", folder_of("gpt2", tmp_path))
    assert (found["tied"], found["block"]) == (True, "gpt2")
    assert found["witnesses"][0]["name"].startswith("Levine")
    model = found["model"]
    assert (model["kind"], model["params"], model["tied"]) == ("dense-decoder", 124_439_808, True)
    assert found["given"]["depth"] == 12


@pytest.mark.parametrize(
    ("family", "kind"), [("mixtral", "mixture-of-experts"), ("bert", "encoder"), ("vit", "image")]
)
def test_what_is_no_dense_decoder_is_named_and_not_priced(tmp_path: Path, family: str, kind: str) -> None:
    asked = ("120M", "--model", folder_of(family, tmp_path))
    found = numbers(tmp_path, *asked)
    assert (found["model"]["kind"], found["given"]) == (kind, None)
    said = output_of("shape", *asked, cwd=tmp_path)
    assert found["not_judged"] in said
    assert "Best depth" not in said


def test_a_bottleneck_is_told(tmp_path: Path) -> None:
    asked = ("100M", "--vocab", 257, "--depth", 12, "--width", 768, "--tokens", "2B")
    said = output_of("shape", *asked, cwd=tmp_path)
    assert "The shape below: the vocabulary binds" in said
    assert "Your shape: the vocabulary binds. The embedding has a rank of at most 257" in said


def test_an_answer_is_quick_since_nothing_heavy_is_imported(tmp_path: Path) -> None:
    """Its own CPU time, since others may be working on this machine."""
    asked = ["--model", str(folder_of("llama", tmp_path))]
    code = (
        "import runpy, sys, time\n"
        f"sys.argv = ['shape.py', *{asked!r}]; sys.path.insert(0, {str(SCRIPTS)!r})\n"
        f"runpy.run_path({str(command_path('shape'))!r}, run_name='shape')['main']()\n"
        "heavy = {'torch', 'mlflow', 'pandas', 'scipy', 'lmfit', 'matplotlib', 'transformers', 'pydantic', 'flint'}"
        " & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy), time.process_time() < 2.0)\n"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY [] True"
