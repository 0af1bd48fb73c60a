"""The runs of a config as the jobs of a workflow: the job that trains a run, its inputs and its resources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

from shapelaw.errors import UserError
from shapelaw.scheduling.cost import Speed
from shapelaw.scheduling.jobs import (
    LEVELS,
    JobResources,
    Level,
    job_resources,
    jobs_in_turn,
    jobs_of_packs,
    keys_pattern,
    level_of,
    packed_resources,
)
from shapelaw.settings.sections import Execution
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.runs import Run

Named = TypeVar("Named")
NO_KEY = "(?!)"  # matches nothing
CHECKPOINTS = Path("results/checkpoints")


@dataclass(frozen=True, eq=False)  # one workload is itself alone, so its results can be cached by it
class Workload:
    """All runs of a config by study and key, with the settings of their execution."""

    runs: Mapping[str, Mapping[str, AnyRun]]
    execution: Execution
    speed: Speed

    @cached_property
    def decoders(self) -> dict[str, list[Run]]:
        """The runs of the studies that train decoders."""
        found = {
            study: [run for run in runs.values() if isinstance(run, Run)] for study, runs in self.runs.items()
        }
        return {study: runs for study, runs in found.items() if runs}

    @cached_property
    def packed(self) -> dict[str, list[PackedRun]]:
        """The runs of the studies that train many models as one computation."""
        found = {study: [run for run in runs.values() if is_packed(run)] for study, runs in self.runs.items()}
        return {study: runs for study, runs in found.items() if runs}

    @cached_property
    def vocab_sizes(self) -> set[int]:
        """The vocabulary sizes of all decoders."""
        return {run.shape.vocab_size for runs in self.decoders.values() for run in runs}

    @cached_property
    def of_level(self) -> dict[Level, list[Run]]:
        """The decoders of each level."""
        levels: dict[Level, list[Run]] = {level: [] for level in LEVELS}
        for runs in self.decoders.values():
            for run in runs:
                levels[level_of(run, self.speed)].append(run)
        return levels

    @property
    def runs_per_job(self) -> int | None:
        """Number of small decoders in a job; None where it is chosen by their times."""
        return 1 if self.execution.gpus > 1 else self.execution.runs_per_job

    @cached_property
    def jobs_in_turn(self) -> dict[str, dict[str, list[Run]]]:
        """The small decoders of each study, by the name of the job that trains them."""
        return {
            study: jobs_in_turn(runs, self.runs_per_job, self.speed) for study, runs in self.decoders.items()
        }

    @cached_property
    def jobs_of_packs(self) -> dict[str, dict[str, list[list[PackedRun]]]]:
        """The packs of each study that are one computation each, by the name of the job that trains them."""
        return {study: jobs_of_packs(runs, self.execution) for study, runs in self.packed.items()}

    @cached_property
    def _job_names(self) -> dict[tuple[str, str], str]:
        names = {
            (study, run.key): name
            for study, jobs in self.jobs_in_turn.items()
            for name, job in jobs.items()
            for run in job
        }
        return names | {
            (study, run.key): name
            for study, jobs in self.jobs_of_packs.items()
            for name, job in jobs.items()
            for pack in job
            for run in pack
        }

    @property
    def job_minutes(self) -> int:
        """The longest time that a job may take, in minutes."""
        return round(60 * self.execution.job_hours)

    @cached_property
    def _patterns(self) -> dict[Level, str]:
        small, medium = (keys_pattern(self.of_level[level]) for level in ("small", "medium"))
        # large: also a wrong key, so that its sentence is printed
        return {"small": small, "medium": medium, "large": rf"(?!(?:{small}|{medium})/)[^/]+"}

    def keys(self, level: Level) -> str:
        """A regular expression for the keys of a level's runs; for large ones, all keys of no other level."""
        return self._patterns[level]

    @property
    def decoder_studies(self) -> str:
        """A regular expression for their names."""
        return "|".join(self.decoders) or NO_KEY

    @property
    def packed_studies(self) -> str:
        """A regular expression for their names."""
        return "|".join(self.packed) or NO_KEY

    def run(self, study: str, key: str) -> AnyRun:
        """The run of a record's path.

        Raises:
            UserError: the config has no such run.
        """
        return _named(self.runs.get(study, {}), study, key, "run")

    def runs_in_turn(self, study: str, name: str) -> Sequence[Run]:
        """The decoders that a job trains, one after the other.

        Raises:
            UserError: the config has no such job.
        """
        return _named(self.jobs_in_turn.get(study, {}), study, name, "job")

    def packs_together(self, study: str, name: str) -> Sequence[Sequence[PackedRun]]:
        """The packs, each one computation, that a job trains.

        Raises:
            UserError: the config has no such job.
        """
        return _named(self.jobs_of_packs.get(study, {}), study, name, "job")

    def job_path(self, study: str, key: str) -> str:
        """The file that the job of a run writes, where a job trains several.

        Raises:
            UserError: the config has no such run.
        """
        return f"results/packs/{study}/{self._job_names[study, self.run(study, key).key]}.json"

    def checkpoint_folders(self, name: tuple[str, ...]) -> list[Path]:
        """The folders of the checkpoints of a job that trains, given its study and its run or pack; else none."""
        study, key = name if len(name) == 2 else ("", "")
        folder = CHECKPOINTS / study
        if key in self.runs.get(study, {}):
            return [folder / key]
        if key in self.jobs_in_turn.get(study, {}):
            return [folder / run.key for run in self.jobs_in_turn[study][key]]
        runs = [run.key for pack in self.jobs_of_packs.get(study, {}).get(key, []) for run in pack]
        return [folder / one for one in runs] + _pack_folders(folder, set(runs))

    def records(self, study: str) -> list[str]:
        """The records of all runs of a study; empty where the config doesn't have that study."""
        return [f"results/runs/{study}/{key}/summary.json" for key in self.runs.get(study, {})]

    @lru_cache(maxsize=64)  # noqa: B019 - there is one workload a process
    def level_resources(self, level: Level, attempt: int, in_a_row: int = 1) -> JobResources:
        """Resources that are enough for the largest run of a level."""
        return job_resources(
            self.of_level[level], self.speed, self.execution.gpus, self.job_minutes, attempt, in_a_row
        )

    def resources(self, study: str, key: str, attempt: int) -> JobResources:
        """Resources for the job of a run."""
        run = self.run(study, key)
        if not isinstance(run, Run):
            raise TypeError(f"{run.key} is trained in a pack")
        return self.level_resources(level_of(run, self.speed), attempt)

    def in_turn_resources(self, attempt: int) -> JobResources:
        """Resources that are enough for the longest job of small decoders."""
        return self.level_resources("small", attempt, self._most_in_turn)

    @cached_property
    def _most_in_turn(self) -> int:
        """Runs of the longest job of small decoders; asked for by every job."""
        return max((len(job) for jobs in self.jobs_in_turn.values() for job in jobs.values()), default=1)

    @lru_cache(maxsize=16)  # noqa: B019 - there is one workload a process
    def together_resources(self, attempt: int) -> JobResources:
        """Resources that are enough for the longest job of packs that are one computation each."""
        jobs = [job for jobs in self.jobs_of_packs.values() for job in jobs.values()]
        return packed_resources(jobs, self.execution, self.job_minutes, attempt)


def _pack_folders(folder: Path, keys: set[str]) -> list[Path]:
    """The folders of packs that have one of these runs as a member."""
    found = []
    for members in folder.glob("pack-*/members.json") if keys else ():
        try:
            mine = not keys.isdisjoint(json.loads(members.read_text()))
        except (OSError, ValueError):  # finished and deleted, or in the writing: the next look sees it
            continue
        if mine:
            found.append(members.parent)
    return found


def _named(found: Mapping[str, Named], study: str, name: str, what: str) -> Named:
    if name not in found:
        some = f", such as {next(iter(found))}." if found else "."
        raise UserError(
            f"The config has no {what} {name} in study {study}; it has {len(found)} {what}s{some}"
        )
    return found[name]


def stores_of(run: Run) -> dict[str, str | list[str]]:
    """The files of a run's training and test sets, at its vocabulary size: headers and tokens."""
    folder = f"results/corpora/{run.corpus}/V{run.shape.vocab_size}"
    return {
        "train_store": f"{folder}/train.json",
        "test_store": f"{folder}/test.json",
        "tokens": [f"{folder}/train.bin", f"{folder}/test.bin"],
    }
