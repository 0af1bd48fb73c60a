"""A copy of the project on a small real corpus (Python's help texts), the real Snakemake in it, and GPT-2's files."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import yaml
from job_server import run_snakemake, warm_python
from small import REPOSITORY
from tokenizers.pre_tokenizers import ByteLevel

from shapelaw.campaign.config import load_config, runs_of

CONFIG: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("project.yaml").read_text(encoding="utf-8"))
GRID: dict[str, Any] = CONFIG["grids"]["depth_width"]


def key_of(depth: int, width: int, seed: int = 0, **sections: Any) -> str:
    """The key of a network of depth_width, whose config has these sections in place of `CONFIG`'s."""
    own = {"widths": {depth: [width]}, "repeated": {}, "seeds": seed + 1}
    values = {**CONFIG, "grids": {"depth_width": {**GRID, **own}}, **sections}
    values["corpus"] = {"name": "prose", "sources": ["wiki"]}  # read by nobody: keys have the name alone
    runs = runs_of(load_config(values, REPOSITORY / "workflow/scales"), "depth_width", REPOSITORY)
    (key,) = [key for key, run in runs.items() if run.seed == seed]
    return key


TWO_A_JOB, ALL_IN_ONE = (
    {"job_minutes": 0.0051},
    {"job_minutes": 1.0},
)  # 30 steps are estimated at 0.0025 minutes
KEYS = {key_of(depth, width) for depth, width in ((1, 4), (1, 8), (1, 12), (2, 4), (2, 8))} | {
    key_of(1, 8, 1)
}


def records_of(keys: Iterable[str]) -> list[str]:
    """The targets that train these runs."""
    return [f"results/runs/{key}/summary.json" for key in sorted(keys)]


def copy_code(folder: Path) -> None:
    """What Snakemake and its jobs read of the project."""
    for name in ("Snakefile", "scripts", "workflow", "envs", "profiles"):
        source = REPOSITORY / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)


def write_texts(folder: Path) -> None:
    """A small corpus: a file for each of Python's help texts."""
    folder.mkdir()
    for name, text in topics.items():
        (folder / f"{name.replace('/', '_')}.txt").write_text(text, encoding="utf-8")


PAIRS = b"#version: 0.2\nt h\n"  # all that merges.txt has of a tokenizer with GPT-2's number of ids


def vocabulary_json() -> bytes:
    """Its vocab.json: 256 bytes, "th", words that no merge makes, and end-of-text: 50,257."""
    words = [
        *sorted(ByteLevel.alphabet()),
        "th",
        *(f"<{number}>" for number in range(49_999)),
        "<|endoftext|>",
    ]
    return json.dumps({word: number for number, word in enumerate(words)}).encode()


def write_gpt2_files(folder: Path) -> None:
    """Write that tokenizer, of which only the bytes and one pair occur in text, into a folder, which may be there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_bytes(vocabulary_json())
    (folder / "merges.txt").write_bytes(PAIRS)


class Project:
    """A copy of the project with its own config and corpus, and Snakemake in it.

    Args:
        begun: another project's folder: its results, with what Snakemake notes of them, need not be made again.

    Attributes:
        values: of its config.yaml.
        cold: jobs start Python as a user's do, and are no forks of a process that has imported it all.
    """

    cold = False

    def __init__(self, folder: Path, begun: Path | None = None, **sections: Any) -> None:
        self.folder, self.sections = folder, {**CONFIG, **sections}
        copy_code(folder)
        self.configure()
        for name in ("texts", "results", ".snakemake/metadata"):  # texts of another time make another corpus
            if begun is not None and (begun / name).exists():
                shutil.copytree(begun / name, folder / name)
        if not (folder / "texts").exists():
            write_texts(folder / "texts")

    def configure(self, **changes: Any) -> None:
        """Write config.yaml with some sections changed."""
        config = {**self.sections, **changes}
        config["execution"] = {**CONFIG["execution"], **config["execution"]}
        self.values = config
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config))

    def snakemake(self, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it; its output is in `stderr` and `stdout`."""
        python = None if self.cold else warm_python()
        done = run_snakemake(arguments, self.folder, {**os.environ, "COLUMNS": "200"}, python)
        assert (done.returncode == 0) == ok, done.stderr + done.stdout
        return done

    def planned(self, *targets: str) -> list[str]:
        """The rules that a dry run (of some targets) would run, one entry a job."""
        text = self.snakemake(*targets, "-n", "--quiet", "rules").stdout
        table = text[text.index("-------  --") :].splitlines()[1:] if "-------  --" in text else []
        jobs = [line.split() for line in table[: table.index("")] if line.strip()] if table else []
        return [name for name, count in jobs if name not in ("total", "all") for _ in range(int(count))]

    def trained(self) -> dict[str, int]:
        """When each run's record was written, in nanoseconds, by key."""
        return {p.parent.name: p.stat().st_mtime_ns for p in self.folder.glob("results/runs/*/summary.json")}


class ColdProject(Project):
    """One whose jobs start as a user's do."""

    cold = True
