"""Files of a run in MLflow: tables, and figures as images beside its charts."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow.entities import Run
from mlflow.utils.mlflow_tags import MLFLOW_LOGGED_IMAGES
from PIL import Image

from shapelaw.tracking.entities import milliseconds
from shapelaw.tracking.store import SERVED, Store

FOLDERS = {".svg": "figures", ".png": "figures"} | dict.fromkeys((".html", ".csv", ".md", ".tex"), "tables")
IMAGES, PREVIEW = (
    "images",
    1000,
)  # MLflow's folder for images that its charts show; pixels of a preview's longer side


def keep_files(store: Store, run: Run, files: Sequence[Path]) -> None:
    """Make files artifacts of a run: figures as images, tables in `tables/`, what is neither on top.

    Nothing is kept twice. An .svg is its image where the .png of its name lies beside it, and in `figures/` where none
    does; a .csv is left to the .html of its name, which has the CSV to download.

    A store that is a database keeps only their place below what `mlflow server` serves, so the results folder can be
    moved; its files are written there directly.
    """
    with TemporaryDirectory() as name:
        folder = Path(name) / "artifacts"  # its own folder is this user's alone, and its mode would be copied
        folder.mkdir()
        figures = {file: file.with_suffix(".png") for file in files if file.suffix in (".svg", ".png")}
        shown = {file: image for file, image in figures.items() if image.is_file()}
        for file in files:
            if file in shown or (file.suffix == ".csv" and file.with_suffix(".html") in files):
                continue
            there = folder / FOLDERS.get(file.suffix, "") / file.name
            there.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, there)
        for image in sorted(set(shown.values())):
            _write_image(image, folder / IMAGES)
        uri = str(run.info.artifact_uri)
        if store.artifacts is not None and uri.startswith(SERVED):
            shutil.copytree(folder, store.artifacts / uri.removeprefix(SERVED), dirs_exist_ok=True)
        else:
            store.client.log_artifacts(run.info.run_id, str(folder))
        if (folder / IMAGES).exists():
            store.client.set_tag(run.info.run_id, MLFLOW_LOGGED_IMAGES, "True")


def _write_image(file: Path, folder: Path) -> None:
    """A figure under the names by which MLflow's charts find an image, in the group "figures", and its preview."""
    folder.mkdir(exist_ok=True)
    name = f"figures~{file.stem}+step+0+timestamp+{milliseconds(datetime.now(UTC))}+{uuid.uuid4()}"
    shutil.copyfile(file, folder / f"{name}.png")
    with Image.open(file) as image:
        image.thumbnail((PREVIEW, PREVIEW))
        image.save(folder / f"{name}+compressed.webp")
