"""No traceback for what people give: random odd tables, model configs and command lines end in results or sentences."""

import argparse
import json
import random
import shlex
from contextlib import suppress
from dataclasses import asdict

import pandas as pd
import pytest
from commands import script
from transformers import CONFIG_MAPPING

from shapelaw.advice.models.described import architecture_of, model_text
from shapelaw.advice.models.pretrained import read_model
from shapelaw.advice.own_runs.given import add_run_options, add_runs, given_budgets
from shapelaw.errors import UserError
from shapelaw.specs.sizes import SizeAxis

CASES = 120
NAMES = {
    "depth": ("depth", "n_layer", "Layers", "L", "config.n_layer", " depth "),
    "width": ("width", "d_model", "Hidden Size", "D", "params.d_model"),
    "loss": ("test_loss", "val/loss", "loss", "final_loss", "metrics.eval_loss"),
    "seed": ("seed", "Seed", "rng_seed", "trial"),
    "tokens": ("tokens", "train_tokens", "tokens_seen"),
    "size": ("block_params", "params", "total_params", "N", "step_flops"),
    "recipe": ("lr", "batch_size", "warmup", "optimizer", "steps", "weight_decay"),
    "kind": ("n_head", "head_dim", "vocab_size", "tied", "d_ff", "n_kv_heads", "embedding_rank", "block"),
    "helper": ("State", "Step", "_step", "trainer/global_step", "Name", "", "Unnamed: 0", "epoch", "depth"),
}
_ODD = "nan NaN inf -inf N/A None 1e400 -1 0 0.5 1e-300 12% 1.2M two True finished crashed １２ =1+1 1e18 3. .5 ∞"
ODD = ("", "1,234", "1.234,5", "49 152", "\u00a07", "'", '"', *_ODD.split())
_OPTIONS = (
    "|--keep|--best-of learning_rate|--best-of lr|--only seed=0|--only lr=x|--tokens 1e9|--column depth=L"
)
OPTIONS = f"{_OPTIONS}|--column width=D|--column heads=seed".split("|")


def ordinary(role: str, row: int, rng: random.Random) -> str:
    depth, width = (1, 2, 4)[row % 3], (32, 48, 64, 96)[row // 3 % 4]
    size = 12 * depth * width**2
    values = {
        "depth": str(depth),
        "width": str(width),
        "loss": f"{2 + 20 * size**-0.2 + 0.01 * rng.random():.4f}",
        "seed": str(row // 12),
        "tokens": rng.choice(("8192000", str(20 * size))),
        "size": str(size),
    }
    constant = {"recipe": "0.001", "kind": "16", "helper": "finished"}
    odd = rng.random() < 0.02
    return values.get(role) or (rng.choice(("2", "adam", "100", str(row))) if odd else constant[role])


def odd_table(rng: random.Random) -> str:
    """A table as text: some columns of people's tables, some rows, and a share of odd cells."""
    roles = [role for role in NAMES if rng.random() < (0.97 if role in ("depth", "width", "loss") else 0.25)]
    usual = rng.random()
    names = [NAMES[role][0] if rng.random() < usual else rng.choice(NAMES[role]) for role in roles]
    share = rng.choice((0.0, 0.0, 0.01, 0.05, 0.5, 1.0))
    odd = rng.sample(ODD, 4)
    sign = rng.choice((",", ";", "\t"))
    rows = [
        [
            (rng.choice(odd) if rng.random() < share else ordinary(role, row, rng)).replace(sign, "")
            for role in roles
        ]
        for row in range(rng.choice((0, 1, 2, 7, 12, 24, 24, 36)))
    ]
    if rng.random() < 0.1 and rows:
        rows[-1] = rows[-1][:-1]
    return "\n".join(sign.join(cells) for cells in [names, *rows]) + rng.choice(("", "\n", "\n\n"))


def odd_value(rng: random.Random, deep: int = 2) -> object:
    simple = (None, 0, -1, 1, 0.5, 64, 4096, 10**20, "x", "", True, float("nan"), [], {}, [4, 8], "12")
    if deep and rng.random() < 0.1:
        return {rng.choice(KEYS): odd_value(rng, deep - 1) for _ in range(4)}
    return rng.choice(simple)


_KEYS = """
    hidden_size d_model n_embd vocab_size num_attention_heads n_head head_dim n_layer num_hidden_layers
    intermediate_size d_ff model_type text_config vision_config patch_size num_channels image_size embedding_size
    tie_word_embeddings num_key_value_heads architectures
"""
KEYS = _KEYS.split()
_FAMILIES = "gpt2 llama opt mixtral bert t5 mamba2 vit deepseek_v3 llava whisper"
FAMILIES = _FAMILIES.split()


def odd_config(rng: random.Random) -> object:
    if rng.random() < 0.1:
        return odd_value(rng)
    if rng.random() < 0.3:  # the defaults of a family, a few of them odd or missing
        config = CONFIG_MAPPING[rng.choice(FAMILIES)](num_hidden_layers=2).to_dict()
        for key in rng.sample(sorted(config), 2):
            config[key] = odd_value(rng)
        config.pop(rng.choice(sorted(config)))
        return config
    config: dict[str, object] = {key: odd_value(rng) for key in KEYS if rng.random() < 0.4}
    if rng.random() < 0.7:
        config |= {"hidden_size": 64, "vocab_size": 500, "num_attention_heads": 4, "num_hidden_layers": 2}
    for key in rng.sample(KEYS, 2):
        config[key] = odd_value(rng)
    return config


def read_table_of(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_runs(parser)
    add_run_options(parser, "_fit")
    given_budgets(parser.parse_args(words), SizeAxis.BLOCK, least=8)


def test_odd_tables_are_read_or_refused_in_a_sentence(tmp_path):
    used = 0
    for case in range(CASES):
        rng = random.Random(case)
        path = tmp_path / ("runs.csv" if rng.random() < 0.8 else "runs.jsonl")
        text = odd_table(rng)
        if path.suffix == ".jsonl":
            header, *rows = (line.split(",") for line in text.splitlines())
            text = "\n".join(json.dumps(dict(zip(header, row, strict=False))) for row in rows)
        path.write_text(text, encoding="utf-8")
        with suppress(UserError):
            read_table_of(["--runs", str(path), *(rng.choice(OPTIONS) if rng.random() < 0.3 else "").split()])
            used += 1
    assert used > CASES // 10  # the tables aren't so odd that nothing is ever read


def test_odd_folders_of_exports_are_read_or_refused_in_a_sentence(tmp_path):
    for case in range(40):
        rng, folder = random.Random(case), tmp_path / str(case)
        folder.mkdir()
        names = [rng.choice(("a", "b", "c d", "1")) + str(row % rng.choice((3, 12))) for row in range(12)]
        table = pd.DataFrame({"Name": names, "n_layer": [1, 2, 4] * 4, "d_model": [32, 48, 64, 96] * 3})
        table.drop(columns=rng.sample([*table.columns, "x"], 1), errors="ignore").to_csv(folder / "runs.csv")
        step = rng.choice(("Step", "_step", "trainer/global_step", "Wall Time"))
        chart = [[step, *(f"{n} - val/loss" for n in names)]]
        chart += [
            [str(row), *(rng.choice(("3.1", "3.2", *ODD[:4])) for _ in names)]
            for row in range(rng.choice((0, 1, 5)))
        ]
        (folder / "chart.csv").write_text("\n".join(",".join(row) for row in chart), encoding="utf-8")
        with suppress(UserError):
            read_table_of(["--runs", str(folder)])


def test_odd_configs_are_read_or_refused_in_a_sentence(tmp_path):
    read, path = 0, tmp_path / "config.json"
    for case in range(CASES):
        path.write_text(json.dumps(odd_config(random.Random(case))), encoding="utf-8")
        with suppress(UserError):
            found = read_model(path)
            assert json.loads(json.dumps(asdict(found)))["kind"] == found.kind
            assert model_text(found)
            architecture_of(found)
            read += 1
    assert read


def command_lines(rng: random.Random) -> dict[str, str]:
    """A line of arguments for each command for people; tables and configs lie in the folder where it runs."""
    number = lambda: rng.choice(("0", "-1", "1", "2", "7", "64", "1e9", "1.3B", "x", "''", "nan"))  # noqa: E731
    whole = lambda: rng.choice(("0", "-1", "1", "2", "3", "4"))  # noqa: E731
    out = f"--out out --draws {rng.choice(('100', '100', '0', 'x'))}"
    means = rng.choice(("total", "block", "flops", "time", "x"))
    about = rng.choice(("--runs", "--transitions"))
    study = rng.choice(("depth_width", "mine", "vocabulary"))
    config = rng.choice(("runs.csv", "nowhere.yaml"))
    asked = f"{number()} --vocab {number()} --tokens {number()} --depth {whole()} --width {whole()} --size {means}"
    return {
        "fit_surface": f"--runs runs.csv {out} {rng.choice(OPTIONS)} --sizes {number()}",
        "fit_transitions": f"{about} runs.csv {out} --noise {number()}",
        "analyse": f"{study} --input runs.csv --out out",
        "shape": asked,
        "speed": f"{rng.choice(('x', '0', '-1', 'nan'))} --depths {number()}",
        "evidence": "runs.csv",
        "bottlenecks": "--model config.json",
        "separation_rank": f"--depth {whole()} --width {whole()} --tokens {whole()} --heads {whole()}",
        "memorization_capacity": f"--heads {whole()} --context {whole()} --head-dim {whole()}",
        "perplexity": "--model config.json --text runs.csv",
        "advisor_page": "--fit runs.csv --out advisor.html",
        "status": f"--results {rng.choice(('out', '.', 'runs.csv'))}",
        "browse_runs": f"--results nowhere --config {config}",
    }


@pytest.mark.parametrize("name", command_lines(random.Random(0)))
def test_odd_command_lines_end_with_a_sentence_or_results(tmp_path, name):
    for case in range(5):
        rng = random.Random(case)
        (tmp_path / "runs.csv").write_text(odd_table(rng), encoding="utf-8")
        (tmp_path / "config.json").write_text(json.dumps(odd_config(rng)), encoding="utf-8")
        words = shlex.split(command_lines(rng)[name])
        done = script(name, *words, cwd=tmp_path)
        assert done.returncode in (0, 1, 2)
        assert "Traceback" not in done.stderr
        if done.returncode:
            assert done.stderr.strip()
