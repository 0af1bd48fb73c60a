"""Files of a run in MLflow: sorted into folders, figures as images, in a folder that can be moved."""

from __future__ import annotations

import shutil
from pathlib import Path

import matplotlib.pyplot as plt
from mlflow.tracking import MlflowClient
from places import Place, serve

from shapelaw.tracking.store import default_uri
from shapelaw.tracking.summary import log_summary


def listed(client: MlflowClient, run_id: str, folder: str = "") -> set[str]:
    return {item.path for item in client.list_artifacts(run_id, folder)}


def written_files(folder: Path) -> list[Path]:
    """Artifacts; the image of one figure lies beside them, of that named as a table is."""
    figure = plt.figure()
    figure.savefig(folder / "sizes.png")
    plt.close(figure)
    for name in ("sizes.svg", "drawn.svg", "sizes.html", "sizes.csv", "raw.csv", "notes.json"):
        (folder / name).write_text("x")
    return sorted(file for file in folder.glob("*.*") if file.suffix != ".png")


def test_files_are_found_where_users_look_also_after_the_folder_was_moved(
    place: Place, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    run_id = log_summary(place.store(), place.study, written_files(files), None)
    moved = tmp_path / "elsewhere" / "results"
    moved.parent.mkdir()
    shutil.move(place.results, moved)
    (tmp_path / "served").symlink_to(moved / "mlartifacts")  # what tests/tracking/places.py serves
    with serve(default_uri(moved), tmp_path) as uri:
        client = MlflowClient(uri)
        assert listed(client, run_id) == {"figures", "tables", "images", "notes.json"}
        assert listed(client, run_id, "figures") == {"figures/drawn.svg"}  # the other one is an image
        assert listed(client, run_id, "tables") == {"tables/raw.csv", "tables/sizes.html"}
        images = sorted(listed(client, run_id, "images"))
        assert [name.split("+step+0+")[0] for name in images] == [
            "images/figures~sizes",
            "images/figures~sizes",
        ]
        assert {Path(name).suffix for name in images} == {".png", ".webp"}
        assert client.get_run(run_id).data.tags["mlflow.loggedImages"] == "True"
        copy = client.download_artifacts(run_id, "figures/drawn.svg", str(tmp_path))
        assert Path(copy).read_text() == "x"
