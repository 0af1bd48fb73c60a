"""Files of a run in MLflow: figures, tables, and the figures again as images beside its charts."""

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
    """Make files artifacts of a run: each in `figures/`, `tables/` or, of another kind, on top; figures as images too.

    The image of an .svg is the .png of its name beside it.

    A store that is a database keeps only their place below what `mlflow server` serves, so the results folder can be
    moved; its files are written there directly.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in files:
            there = folder / FOLDERS.get(file.suffix, "") / file.name
            there.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, there)
        for image in sorted({file.with_suffix(".png") for file in files if file.suffix in (".svg", ".png")}):
            if image.is_file():
                _write_image(image, folder / IMAGES)
        uri = str(run.info.artifact_uri)
        if store.artifacts is not None and uri.startswith(SERVED):
            shutil.copytree(folder, store.artifacts / uri.removeprefix(SERVED), dirs_exist_ok=True)
        else:
            store.client.log_artifacts(run.info.run_id, name)
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
