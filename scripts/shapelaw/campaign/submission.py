"""A submission: the config that a workflow was started with, and the runs and the speed that follow from that.

Jobs wait in a queue for hours, and `config.yaml` is edited meanwhile. So the workflow writes what it was started with
to `results/submitted/<digest>.json`, once, and every job reads that file in place of `config.yaml`. Its runs stand in
`results/submitted/runs/<digest>.json`: a job reads its own specs from a file of its own (`jobs/ledger.py`). The keys of
each study are a list of their own, `results/submitted/runs/<digest>.txt`, which the rule `list_runs` copies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shapelaw.campaign.config import Config, Runs, runs_of, studies_of
from shapelaw.campaign.outlook import hopeless
from shapelaw.errors import UserError
from shapelaw.jobs.plan import speed_of
from shapelaw.settings.problems import listed
from shapelaw.settings.sections import Settings
from shapelaw.specs.cost import CostModel, Speed
from shapelaw.specs.kinds import AnyRun, spec_from_dict
from shapelaw.specs.runs import digest_of
from shapelaw.storage.files import write_text
from shapelaw.storage.pool import RESULTS, add_asked, experiment_of
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import Study

FOLDER = Path("results/submitted")
VARIABLE = "SUBMITTED"  # of the environment: the file that a job reads
REPEATED = "submitted"  # key of `--config`: the file of a start that is repeated
_AGAIN = "stop the workflow (Ctrl-C) and start it again"


@dataclass(frozen=True)
class Submission:
    """A config, with its grid file and cost model resolved.

    Attributes:
        config: the checked config.
        speed: of language models, the rate or the cost model.
        runs: the runs of each study that trains, by key.
    """

    config: Settings
    speed: Speed
    runs: Runs

    @cached_property
    def content(self) -> str:
        """The file's content: strict JSON; the same submission gives the same bytes.

        It names the file of the runs, which a job doesn't read: there may be 100,000.
        """
        speed = asdict(self.speed) if isinstance(self.speed, CostModel) else self.speed
        config = self.config.model_dump(mode="json")
        values = {"config": config, "speed": speed, "studies": list(self.runs), "runs": self.runs_digest}
        return json.dumps(values, allow_nan=False) + "\n"

    @cached_property
    def runs_digest(self) -> str:
        """A hash of all runs, by study and in their order."""
        found = hashlib.sha256()
        for study, of in self.runs.items():
            found.update(f"{study}\n{''.join(f'{key} {run.digest} ' for key, run in of.items())}\n".encode())
        return found.hexdigest()[:16]

    def keys_digest(self, study: str) -> str:
        """A hash of the runs of a study, which names the list of their keys."""
        return digest_of({key: run.digest for key, run in self.runs[study].items()})

    @cached_property
    def digest(self) -> str:
        """A hash of the content."""
        return hashlib.sha256(self.content.encode()).hexdigest()[:16]

    @cached_property
    def results_digest(self) -> str:
        """A hash of what the results follow from: the runs, and the config but for where and how they are made.

        A key of the config that is left at its default, as one that an older version lacks, changes nothing.
        """
        config = self.config.model_dump(mode="json", exclude={"execution", "tracking"}, exclude_defaults=True)
        return digest_of({"config": config, "runs": self.runs_digest})

    @property
    def path(self) -> Path:
        """The file, from the folder that the workflow was started in."""
        return FOLDER / f"{self.digest}.json"


def submission_of(config: Settings, root: Path, folder: Path) -> Submission:
    """The submission of a checked config.

    Args:
        config: a checked config.
        root: folder that a relative `grid_file` starts from.
        folder: folder that a relative `execution.cost_model` starts from.

    Raises:
        UserError: a grid file or the cost model can't be used, or a text is too small for its vocabularies.
    """
    studies = studies_of(config)
    runs = {study: runs_of(config, study, root) for study in config.studies if studies[study].kind}
    if problems := hopeless(config, runs, folder):
        raise UserError(listed(problems))
    return Submission(config, speed_of(config, folder), runs)


def write_submission(submission: Submission, folder: Path) -> None:
    """Write a submission below the folder that the workflow was started in.

    Also where its file is there: the newest file is what was started last, of which `make status` tells.

    Raises:
        UserError: the list of the studies' runs is damaged.
        WriteFailed: the disk is full, read-only or broken.
    """
    path = folder / submission.path
    runs = runs_file(path, submission.runs_digest)
    if not runs.exists():
        specs = {
            study: {key: run.to_dict() for key, run in of.items()} for study, of in submission.runs.items()
        }
        write_text(runs, json.dumps(specs, allow_nan=False) + "\n")
    for study, of in submission.runs.items():
        keys = runs.with_name(f"{submission.keys_digest(study)}.txt")
        if not keys.exists():
            write_text(keys, "".join(f"{key}\n" for key in of))
    results = submission.config.results
    add_asked(folder / RESULTS, {experiment_of(study, results): of for study, of in submission.runs.items()})
    write_text(path, submission.content)


def runs_file(path: Path, digest: str) -> Path:
    """The file with the runs of what was submitted, beside the file that has their digest."""
    return path.parent / "runs" / f"{digest}.json"


def submitted_path(environment: Mapping[str, str]) -> Path:
    """The file of what a job's workflow was started with.

    Raises:
        UserError: the environment names no file.
    """
    if VARIABLE not in environment:
        raise UserError(
            f"Another version of shapelaw submitted this job, or its scheduler passes no {VARIABLE} on; {_AGAIN}."
        )
    return Path(environment[VARIABLE])


def read_config(path: Path) -> tuple[Settings, Speed]:
    """The config and the speed of a submission, which is all that a job reads of it.

    Raises:
        UserError: the file is missing or damaged, or of another version.
    """
    values = _read(path)
    with _of_this_version(path):
        speed = values["speed"]
        found: Speed = CostModel(**speed) if isinstance(speed, dict) else speed
        return Config.model_validate(values["config"]), found


def read_submission(path: Path) -> Submission:
    """The inverse of `write_submission`.

    Raises:
        UserError: a file is missing or damaged, or this code makes other runs of it than those that were submitted.
    """
    config, speed = read_config(path)
    with _of_this_version(path):
        runs = runs_file(path, _read(path)["runs"])
        found = {
            study: {key: _run(key, spec) for key, spec in of.items()}
            for study, of in json.loads(_text(runs)).items()
        }
    return Submission(config, speed, found)


def _read(path: Path) -> dict[str, Any]:
    """The values of a submission's file, whose name is their hash.

    Raises:
        UserError: it is missing, or was changed.
    """
    content = _text(path)
    if hashlib.sha256(content.encode()).hexdigest()[:16] != path.stem:
        raise UserError(
            f"{path}, the config that this job was submitted with, was changed since: rm {path}, then {_AGAIN}."
        )
    return dict(json.loads(content))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}, the config that this job was submitted with, can't be read ({error}); {_AGAIN}."
        ) from error


@contextmanager
def _of_this_version(path: Path) -> Iterator[None]:
    """Turn what another version has written into a sentence."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:  # pydantic's errors are among the last
        raise UserError(
            f"{path}, the config that this job was submitted with, is of another version of shapelaw ({error}); "
            f"{_AGAIN}."
        ) from error


def repeated_submission(values: Mapping[str, Any]) -> Path | None:
    """The file of `--config submitted=FILE`, which runs again what was started then; None where it isn't given.

    Args:
        values: of `--config` and `--configfile`.

    Raises:
        UserError: something else is set beside it, or there is no such file.
    """
    if REPEATED not in values:
        return None
    path = Path(str(values[REPEATED]))
    if others := sorted(map(str, values.keys() - {REPEATED})):
        raise UserError(
            f"--config {REPEATED}={path} runs again what was started then, so nothing can be set beside it; "
            f"leave out {', '.join(others)}."
        )
    if not path.is_file():
        raise UserError(f"--config {REPEATED}={path} names no file; {FOLDER}/ has one of each start.")
    return path


def latest_submission(results: Path) -> Path | None:
    """The file of what was started last; None where nothing was."""
    files = (results / FOLDER.name).glob("*.json")
    return max(files, key=lambda path: path.stat().st_mtime, default=None)


def latest_experiments(results: Path) -> list[str]:
    """The experiments of what was started last; none where nothing was, or another version wrote it."""
    path = latest_submission(results)
    try:
        values = {"studies": []} if path is None else json.loads(path.read_text(encoding="utf-8"))
        return [experiment_of(study, values["config"]["results"]) for study in values["studies"]]
    except (OSError, KeyError, TypeError, ValueError):
        return []


def submitted_study(path: Path | None, name: str) -> tuple[str, Study | None]:
    """The name of a study's experiment in MLflow, and the study: of the list, or a grid of the submission's config.

    Args:
        path: the submission; None where there is none.

    Returns:
        None for the study where there is neither.

    Raises:
        UserError: the submission is missing, damaged, or of another version.
    """
    if path is None:
        return name, STUDIES.get(name)
    experiment = experiment_of(name, _read(path)["config"]["results"])
    return experiment, STUDIES.get(name) or studies_of(read_config(path)[0]).get(name)


def _run(key: str, spec: Mapping[str, Any]) -> AnyRun:
    run = spec_from_dict(spec)
    if run.key != key or run.digest != digest_of(spec):
        raise ValueError(f"{key} would be trained in another way now")
    return run
