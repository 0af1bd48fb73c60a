"""A finished results folder with every kind of run, kept as an archive, and a project that has it.

    python tests/finished.py    train it afresh with the code of today and rewrite the archive, on purpose (minutes)

tests/golden/finished.tar.xz holds what Snakemake compares before it runs a job again: the files of results/, what it
noted of each (.snakemake/metadata: the shell text, params, inputs and rule that made it), and the texts. Records and
tables are whole. Figures and the measured layers of other networks are empty files, since a dry run reads none; what
Snakemake does not track, such as logs, checkpoints and the MLflow store, is left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from golden_tables import ONE_TIME, unpack_archive, write_archive
from project import Project, copy_code
from small import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden"
ARCHIVE, CONFIG = GOLDEN / "finished.tar.xz", GOLDEN / "finished.yaml"
UNTRACKED = {"checkpoints", "downloads", "logs", "mlartifacts", "mlflow.db", "separation_ranks"}
EMPTIED = (".svg", ".png", ".npz")


class FinishedProject(Project):
    """A copy of today's code with the finished results of the archive."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sections = folder, yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
        copy_code(folder)
        self.configure()
        unpack_archive(ARCHIVE, folder)

    def reasons(self) -> str:
        """What a dry run would do and why, for people."""
        said = self.snakemake("-n").stdout
        return "\n".join(
            line for line in said.splitlines() if line.startswith(("Job ", "Reason", "    reason"))
        )


def kept_files(folder: Path) -> Iterator[Path]:
    """The files of a finished folder that go into the archive."""
    for root in ("texts", "results", ".snakemake/metadata"):
        for path in (folder / root).rglob("*"):
            if path.is_file() and not UNTRACKED & set(path.relative_to(folder).parts):
                yield path


def archived(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names of these files and what the archive keeps of them."""
    for path in sorted(kept_files(folder)):
        yield str(path.relative_to(folder)), b"" if path.suffix in EMPTIED else path.read_bytes()


def made_texts() -> dict[str, str]:
    """The project's own pages, a file a section: real prose that is ours to keep."""
    sections = {}
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        for place, section in enumerate(page.read_text(encoding="utf-8").split("\n## ")):
            sections[f"{page.stem}-{place}.txt"] = section
    return sections


def main() -> None:
    """Train and archive."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_code(folder)
        (folder / "config.yaml").write_bytes(CONFIG.read_bytes())
        (folder / "texts").mkdir()
        for file, text in made_texts().items():
            path = folder / "texts" / file
            path.write_text(text, encoding="utf-8")
            os.utime(path, (ONE_TIME, ONE_TIME))
        subprocess.run([sys.executable, "-m", "snakemake", "--quiet", "rules"], cwd=folder, check=True)
        write_archive(ARCHIVE, archived(folder))
    print(f"{ARCHIVE.relative_to(REPOSITORY)}: {ARCHIVE.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
