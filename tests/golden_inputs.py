"""Inputs of the golden tables beside committed runs: finished tiny runs, and made ones whose truth is known."""

import json
import sys
from pathlib import Path

import pandas as pd
from archives import read_archive
from attention_weights import save, weights
from commands import run_here
from finished import ARCHIVE as FINISHED
from layers_of_tokens import made_rows
from loss_surfaces import grid_of, simulate
from measured_grids import GRIDS
from memorization_analyses import CONTEXTS, HEAD_COUNTS, HEAD_DIMS
from memorizing_networks import simulate as memorize
from transition_runs import TRUE_WIDTHS

from shapelaw.studies.assumptions.results import write_row

ROOT = Path(__file__).resolve().parent.parent
UNSTEADY = ["run_id", "wall_seconds", "model_steps_per_second", "tokens_per_second", "peak_memory_bytes"]


def make_inputs(folder: Path) -> None:
    """Write all of them: finished/STUDY.csv and the files of each kind of made runs."""
    _finished(folder / "finished")
    _memorized(folder)
    _decoders(folder)
    _layers(folder / "layers")
    command = ("--grids", json.dumps(GRIDS), "--kept", "../kept", "--out", "separation_rank.json")
    done = run_here(ROOT / "scripts" / "measure_separation_ranks.py", *command, cwd=folder)
    if done.returncode:
        sys.exit(done.stderr)


def _finished(folder: Path) -> None:
    """The tables of runs of the archive of finished results, without what differs from one training to the next."""
    folder.mkdir(parents=True)
    unpacked = folder / "runs.parquet"
    for name, content in read_archive(FINISHED).items():
        study, file = Path(name).parent.name, Path(name).name
        if study == "memorization_heads":
            continue  # the errors of its exponents are rounding, amplified: they depend on the CPU
        if file == "runs.parquet":
            unpacked.write_bytes(content)
            runs = pd.read_parquet(unpacked)
            if (
                study == "memorization_heads"
            ):  # of equal shares: the error of their exponent is rounding, amplified
                runs = runs[(runs["examples"] != 40) | (runs["task"] == "regression")]
            runs.drop(columns=UNSTEADY, errors="ignore").to_csv(folder / f"{study}.csv", index=False)
        elif file in ("measured.csv", "measured.json"):
            (folder / f"{study}{Path(file).suffix}").write_bytes(content)
    unpacked.unlink()


def _memorized(folder: Path) -> None:
    """Memorizers along H, n and d_h, the heads of some saturated."""
    heads = memorize(HEAD_COUNTS, examples=(10000, 20000, 30000))
    regression = memorize(HEAD_COUNTS, examples=(20000,), per_head=12, task="regression")
    pd.concat([heads, regression]).to_csv(folder / "memorization_heads.csv", index=False)
    contexts = memorize((20,), CONTEXTS, examples=(6000, 10000))
    regression = memorize((20,), CONTEXTS, examples=(8000,), task="regression")
    pd.concat([contexts, regression]).to_csv(folder / "memorization_context.csv", index=False)
    dims = memorize((30,), head_dim=HEAD_DIMS, examples=(10000, 15000, 20000))
    dims.to_csv(folder / "memorization_head_dim.csv", index=False)
    rows = [("h4-t40", 4, 40, 1.0), ("h4-t60", 4, 60, 0.9), ("h8-t40", 8, 40, 1.0), ("h8-t550", 8, 550, 1.0)]
    saturation = pd.DataFrame(rows, columns=["key", "heads", "examples", "accuracy"])
    saturation.assign(seed=0, context=32, head_dim=64).to_csv(
        folder / "memorization_saturation.csv", index=False
    )
    for key, count, examples, _ in rows[:3]:
        save(folder / "attention", key, weights(examples, count))


def _decoders(folder: Path) -> None:
    """Decoders of two token budgets."""
    runs = simulate(grid_of((4, 6, 8), 6e4, 6e6, 12), TRUE_WIDTHS, noise=0.0008)
    several = [
        runs.assign(tokens=tokens, test_loss=runs["test_loss"] - 0.1 * place)
        for place, tokens in enumerate((1e9, 1e10))
    ]
    pd.concat(several).to_csv(folder / "token_budgets.csv", index=False)


def _layers(folder: Path) -> None:
    """Layers of three networks, random and trained, before and after attention."""
    for row in made_rows():
        write_row(folder, row)
