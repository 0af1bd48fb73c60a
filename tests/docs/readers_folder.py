"""A checkout with what a reader has: files of their own, under the names that the pages give them."""

import json
import shutil
import sys
from pathlib import Path

import pandas as pd
from bottleneck_runs import rank_runs, ratio_runs, write_redundancies
from project import copy_code, write_gpt2_files, write_texts
from small import REPOSITORY, small_run

from shapelaw.corpora.documents import Document, write_documents
from shapelaw.corpora.token_store import TokenStore
from shapelaw.corpora.tokenizer import save_tokenizer, train_tokenizer
from shapelaw.specs.cost import CostModel, model_to_dict
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.training.driver import train_job
from shapelaw.training.trainer import Runtime

LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"
RUN = small_run(steps=4, batch_size=2, warmup_steps=0, log_every=2, evaluate_every=4, test_sequences=2)
MODEL = {"model_type": "gpt2", "vocab_size": 257, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}


def make_clone(folder: Path) -> None:
    """Fill a folder with the project's files and an environment, as of `make env`, and a reader's texts."""
    copy_code(folder)
    for name in ("slurm", "benchmarks", "docs", "tests/golden"):
        shutil.copytree(REPOSITORY / name, folder / name)
    for path in (REPOSITORY / "config.yaml", REPOSITORY / "Makefile", *(REPOSITORY / "tests").glob("*.py")):
        shutil.copy(path, folder / path.relative_to(REPOSITORY))
    write_texts(folder / "texts")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)


def make_checkout(folder: Path, stores: tuple[TokenStore, TokenStore]) -> None:
    """Fill a folder with such a clone and with files of the reader's, of every kind that a page names."""
    make_clone(folder)
    _write_tables(folder)
    _write_corpus(folder, stores)
    _write_specs(folder)
    runtime = Runtime("cpu", threads=1, keep_weights_of=frozenset({RUN.key}))
    train_job([[RUN]], folder / "kept", lambda _: stores, runtime)
    for checkpoints in ("CHECKPOINTS", "results/checkpoints/KEY"):
        shutil.copytree(folder / "kept" / "checkpoints" / RUN.key, folder / checkpoints)
        shutil.copy(folder / "kept" / "runs" / RUN.key / "spec.json", folder / checkpoints)
    shutil.rmtree(folder / "kept")


def _write_tables(folder: Path) -> None:
    """Runs with the columns that people have, and results of studies that take hours."""
    runs = pd.read_parquet(LAPTOP).rename(
        columns={"depth": "n_layer", "width": "d_model", "test_loss": "val_loss"}
    )
    runs[["n_layer", "d_model", "val_loss", "seed"]].to_csv(folder / "runs.csv", index=False)
    (folder / "mine.csv").write_text("name,width,vocab_size,embedding_rank,why\nours,1024,9000,32,x\n")
    (folder / "FOLDER").mkdir()
    (folder / "FOLDER" / "config.json").write_text(json.dumps(MODEL))
    (folder / "results").mkdir()
    write_redundancies("embedding_rank", rank_runs(noise=0.0005), folder / "results" / "embedding_rank")
    write_redundancies("attention_ratio", ratio_runs(noise=0.0005), folder / "results" / "attention_ratio")
    (folder / "results" / "depth_width").mkdir()
    shutil.copy(LAPTOP, folder / "results" / "depth_width" / "runs.parquet")
    (folder / "cost.json").write_text(json.dumps(model_to_dict(CostModel(1.0, 1e-14, 0.0, 0.0, 0.0, 1.25))))


def _write_corpus(folder: Path, stores: tuple[TokenStore, TokenStore]) -> None:
    """Texts, documents, a tokenizer of bytes, and token stores, under the names of larger ones."""
    corpora = folder / "results" / "corpora"
    (corpora / "wiki" / "V257").mkdir(parents=True)
    documents = [
        Document(path.read_text(encoding="utf-8"), path.stem)
        for path in sorted((folder / "texts").glob("*.txt"))
    ]
    write_documents([documents], corpora / "wiki" / "documents.parquet", test_fraction=0.1)
    save_tokenizer(train_tokenizer([], 257), corpora / "wiki" / "V257" / "tokenizer.json")
    write_gpt2_files(folder / "gpt2")
    for store in stores:
        for part in store.path.parent.glob(f"{store.path.stem}.*"):
            for place in (corpora / "prose" / "V257", corpora / "prose" / "V2000", folder):
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(part, place)


def _write_specs(folder: Path) -> None:
    """Jobs of a run and of a pack that take no time, in place of those that `write_specs.py` writes."""
    (folder / "jobs").mkdir()
    (folder / "gpu").mkdir()
    spec = RUN.to_dict()
    memorizer = Memorizer(heads=2, context=4, head_dim=4, width=8, value_dim=1, outputs=5)
    one = MemorizationRun(memorizer, "classification", "shared", 12, 20, 0, batch_size=8, evaluate_every=10)
    jobs = {"depth_width": spec, "vocabulary": spec, "memorization_heads-pack": one.to_dict()}
    for name, only in jobs.items():
        (folder / "jobs" / f"{name}.json").write_text(json.dumps({"tasks": [[only]]}))
