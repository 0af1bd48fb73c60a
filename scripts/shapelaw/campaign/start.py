"""What is wrong with the start of a workflow, beside its config, and the lines with which a workflow ends.

The lines say what was trained, the questions with their answers, and the command that opens the page. Light: the
Snakefile reads this module.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shapelaw.campaign.config import Runs, studies_of
from shapelaw.campaign.submission import REPEATED, Submission
from shapelaw.errors import UserError, did_you_mean
from shapelaw.settings.problems import uri_problems
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import AnyRun, in_words, kind_of
from shapelaw.storage.pool import read_keys
from shapelaw.studies.study import OTHER_FOLDERS, TABLE_COPIES, TABLES, Study

URI_VARIABLE = "MLFLOW_TRACKING_URI"
_PATIENCE = 3.0  # seconds
_RECORD = re.compile(r"results/runs/([^/]+)/[^/]+")
_RESULT = r"/([^/]+)/(.+)"  # behind the folder of results
PAGE_OF = 'data-of="{}"'  # in the page of findings: whose they are, by `Submission.results_digest`
CONFIG_OPTIONS = ("--config", "-C", "--configfile", "--configfiles")
_OPTIONS = (
    "--report",
    *CONFIG_OPTIONS[2:],
    "--directory",
    "-d",
)  # that a path of another kind follows


@dataclass(frozen=True)
class Start:
    """The start of a workflow.

    Attributes:
        targets: the files of results/ that were asked for.
        folder: the folder in which it runs.
        checkout: the folder of the Snakefile.
        environment: the environment's variables.
        cores: cores on this machine, or None.
        jobs: jobs in a queue at once, or None.
    """

    targets: Collection[str]
    folder: Path
    checkout: Path
    environment: Mapping[str, str]
    cores: int | None
    jobs: int | None


def targets_of(arguments: Sequence[str]) -> set[str]:
    """The files of results/ that Snakemake's command line asks for: it knows its targets only after the Snakefile."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return {one for before, one in pairs if one.startswith("results/") and before not in _OPTIONS}


def report_of(arguments: Sequence[str]) -> str | None:
    """The file of Snakemake's option --report; None where the command line has none."""
    for argument, following in pairwise([*arguments, "-"]):
        name, equals, value = argument.partition("=")
        if name == "--report":
            return value if equals else "report.html" if following.startswith("-") else following
    return None


def reports_alone(arguments: Sequence[str]) -> bool:
    """True for a command line that asks for a report of what there is, and names no config."""
    names = {argument.partition("=")[0] for argument in arguments}
    return "--report" in names and not names & {"--report-after-run", *CONFIG_OPTIONS}


def report_problems(submission: Submission, studies: Collection[Study], page: Path | None) -> Iterator[str]:
    """A sentence for each part of a report that is of another config: Snakemake takes what lies in its place.

    What is in the files counts: `--touch` lets any file pass for new.

    Args:
        studies: those whose tables and figures it has.
        page: its page of findings; None where it has none.
    """
    with_it = f"--config {REPEATED}={submission.path}" if submission.path.exists() else "with this config"
    for study in studies:
        keys = Path(study.folder) / "keys.txt"
        runs = submission.runs.get(study.name)
        if runs is not None and keys.exists() and set(read_keys(keys)) != runs.keys():
            yield (
                f"{study.folder} is of other runs than this config's; make it anew, then the report: "
                f"snakemake --forcerun list_runs {with_it}"
            )
    if page is not None and PAGE_OF.format(submission.results_digest) not in page.read_text("utf-8"):
        yield (
            f"{page} tells what another config found; make it anew, then the report: "
            f"snakemake --forcerun findings {with_it}"
        )


def check_start(start: Start, config: Settings, runs: Runs) -> None:
    """Check what can be known before the first job.

    Raises:
        UserError: there are problems; the message has a line for each.
    """
    problems = [
        problem for target in sorted(start.targets) for problem in target_problems(target, config, runs)
    ]
    for option, number in (("--cores", start.cores), ("--jobs", start.jobs)):
        if number is not None and number < 1:
            problems.append(f"{option} is {number}, with which nothing can run; give 1 or more, or `all`.")
    problems += _name_problems(start.checkout, start.folder)
    problems += _folder_problems(start.folder / "results")
    if config.tracking.uri is None:
        problems += [
            f"{problem}." for problem in uri_problems(URI_VARIABLE, start.environment.get(URI_VARIABLE))
        ]
    if problems:
        raise UserError("\n".join(problems))


def link_scratch(scratch: str | None, folder: Path) -> None:
    """Make results/checkpoints a link into `execution.scratch`, to a folder of this project's own there.

    Args:
        folder: the folder in which the workflow runs; a relative `scratch` starts from it.

    Raises:
        UserError: there are checkpoints elsewhere already, or the folder can't be made.
    """
    if scratch is None:
        return
    link = folder / "results" / "checkpoints"
    mark = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:8]
    place = (folder / scratch / f"{folder.absolute().name}-{mark}").absolute()
    if link.is_symlink() and Path(os.readlink(link)) == place and place.is_dir():
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        if link.is_dir() and not link.is_symlink() and not any(link.iterdir()):
            link.rmdir()
        if link.is_symlink() and not link.exists():
            link.unlink()  # the place is gone, as scratch disks are swept
        if link.is_symlink() or link.exists():
            raise UserError(
                f"execution.scratch is {scratch}, and there are checkpoints in {link.resolve()} already; move them: "
                f"cp -a {link}/. {place} && rm -rf {link} && ln -s {place} {link}"
            )
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(place)
    except OSError as error:
        raise UserError(
            f"execution.scratch is {scratch}, where {place} can't be made ({error.strerror}); name a folder that you "
            "may write to."
        ) from error


def tracker_warnings(config: Settings, environment: Mapping[str, str]) -> list[str]:
    """A sentence where the tracking server does not answer now; training needs it only for the import at the end."""
    parts = urlsplit(config.tracking.uri or environment.get(URI_VARIABLE) or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return []
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        return [
            f"the tracker {parts.scheme}://{parts.hostname} does not answer ({error}); training goes on without "
            "it, and the import at its end waits 10 minutes for it"
        ]
    return []


def target_problems(target: str, config: Settings, runs: Runs) -> Iterator[str]:
    """A sentence for a target that this config can't make: a run or a study that it does not have, a wrong name."""
    if record := _RECORD.fullmatch(target):
        key, known = record[1], list(dict.fromkeys(key for of in runs.values() for key in of))
        if not known:
            yield f"The config trains nothing, so it has no run {key}."
        elif key not in known:
            begun = [one for one in known if one.startswith(f"{key}-")]  # without its last digits
            near = did_you_mean(key, begun or known) or f", such as {known[0]}"
            yield f"The config has no run {key}; it has {len(known)} runs{near}."
        elif not target.endswith("/summary.json"):
            yield f"{target} comes with its summary.json; ask for that: snakemake {Path(target).parent}/summary.json"
    elif result := re.fullmatch(re.escape(config.results) + _RESULT, target):
        name, file = result.groups()
        studies = studies_of(config)
        if name in OTHER_FOLDERS:
            return
        if name not in studies:
            if near := did_you_mean(name, list(studies)):
                yield f"There is no study {name}{near}; there are {', '.join(studies)}."
        elif not studies[name].extra and name not in config.studies:
            yield (
                f"The config does not run the study {name}; add it to studies in config.yaml, or run it alone: "
                f"snakemake {target} --config studies='[{name}]'"
            )
        else:
            yield from _file_problems(studies[name], file)


def _file_problems(study: Study, file: str) -> Iterator[str]:
    name, _, ending = file.rpartition(".")
    if ending in TABLE_COPIES and name in (TABLES, *study.tables):
        yield (
            f"All tables of {study.name} are in {study.folder}/{TABLES}.{ending}, which comes with fit.json; ask for "
            f"that: snakemake {study.folder}/fit.json"
        )
        return
    if f"{study.folder}/{file}" in study.copies:
        yield f"{study.folder}/{file} comes with {name}.svg; ask for that: snakemake {study.folder}/{name}.svg"
        return
    known = ["fit.json", "logged", "keys.txt", "runs.parquet", Path(study.input).name]
    known += [Path(one).name for one in study.artifacts]
    if file not in known and (near := did_you_mean(file, known)):
        yield f"The study {study.name} makes no file {file}{near}."


def _name_problems(checkout: Path, folder: Path) -> Iterator[str]:
    """What Snakemake and MLflow can't have in a path, whoever quotes it; all else can be in one."""
    odd = (
        ("braces", "Snakemake takes them for wildcards", checkout, "{}"),
        ("a question mark", "the URI of MLflow's store ends there", folder, "?"),
        ("a line end", "it would end a command", folder, "\n\r"),
        ("a line end", "it would end a command", checkout, "\n\r"),
    )
    found = [(what, why, place) for what, why, place, letters in odd if set(letters) & set(str(place))]
    found += [
        ("letters that are not UTF-8", "configs and records could not name it", place)
        for place in (checkout, folder)
        if not str(place).isascii() and str(place).encode(errors="replace").decode() != str(place)
    ]
    for what, why, place in dict.fromkeys(found):
        yield f"{str(place)!r} has {what} in its name, and {why}; rename the folder, or work in another one."


def _folder_problems(results: Path) -> Iterator[str]:
    if results.exists() and not results.is_dir():
        yield f"{results} is a file, and the results go into a folder of that name; move it away."
        return
    nearest = results if results.exists() else results.parent
    if not os.access(nearest, os.W_OK | os.X_OK):
        yield f"{nearest} can't be written to; make it writable, or clone shapelaw to where you may write."


SHOWN = 3  # questions, so that all stays within eight lines where nothing failed
OPEN = "open" if sys.platform == "darwin" else "xdg-open"


class _Told(NamedTuple):
    """A study with its fit.json, which has an answer."""

    study: Study
    fit: Mapping[str, Any]

    @property
    def decided(self) -> bool:
        """Whether the runs answer the question."""
        return bool(self.fit["answer"]["decided"])


def heading_of(study: Study, runs: Collection[AnyRun]) -> str:
    """A study's heading with what it is about: `Depth and width (wiki, Llama's block, 1,000 steps, 25 runs)`.

    Args:
        runs: its runs; none where it trains nothing, whose heading says itself what it is about.
    """
    if not runs:
        return study.heading
    return f"{study.heading} ({in_words(runs)}, {len(runs)} run{'s' if len(runs) > 1 else ''})"


def ending(
    studies: Sequence[Study], runs: Runs, page: str, minutes: float | None = None, new: int | None = None
) -> list[str]:
    """The last lines of a workflow: what was trained, three questions with answers, which parts failed, where to look.

    One question of each title comes before a second one, decided ones first, and those of runs trained elsewhere last:
    their answers are not about what was trained here.

    Args:
        studies: those whose results there are, in the order of the config.
        runs: the runs of each study that trains, by key.
        page: the file that shows all of it.
        minutes: CPU-minutes that it took on this machine; None where others did the work.
        new: number of the runs that had no record before; None says nothing of it.
    """
    read = [_Told(study, read_json(Path(study.folder) / "fit.json") or {}) for study in studies]
    known = sorted((one for one in read if "answer" in one.fit), key=lambda one: not one.decided)
    first = {one.study.title: one for one in reversed(known)}
    told = sorted(
        known,
        key=lambda one: (bool(one.study.made_elsewhere), one is not first[one.study.title], not one.decided),
    )
    lines = [_trained(runs, new)]
    for one in told[:SHOWN]:
        whose = (
            f"{one.study.subtitle[:1].upper()}{one.study.subtitle[1:]}: " if one.study.made_elsewhere else ""
        )
        said = f"{'' if one.decided else 'Undecided: '}{one.fit['answer']['sentence']}"
        lines += [one.study.question, f"  {whose}{said}"]
        lines += [f"  {note}" for note in one.fit.get("notes", [])]
    lines += [f"In {one.study.folder} {failed}" for one in told if (failed := _failed(one.fit))]
    more = f" (questions left: {len(told) - SHOWN})" if len(told) > SHOWN else ""
    took = "" if minutes is None else f" It took {minutes:.1f} CPU-minutes."
    return [*lines, f"Look: {OPEN} {page}{more}; the runs: make ui.{took}"]


def _trained(runs: Runs, new: int | None) -> str:
    """`25 decoders (wiki, Llama's block, 1,000 steps) and 60 memorizers (...)`, a run that two studies share once."""
    pool = {key: run for of in runs.values() for key, run in of.items()}
    by_kind: dict[str, list[AnyRun]] = {}
    for run in pool.values():
        by_kind.setdefault(kind_of(run).plural, []).append(run)
    said = [f"{len(of)} {plural} ({in_words(of)})" for plural, of in by_kind.items()]
    if not said:
        return "Nothing was trained."
    now = "" if new in (None, len(pool)) else f"; {new:,} of them now" if new else "; none of them now"
    return f"Trained: {' and '.join(said)}{now}."


def _failed(fit: Mapping[str, Any]) -> str:
    """The parts that failed, by the first one's name and reason; empty where none did."""
    parts = fit.get("failed")
    if not parts:
        return ""
    more = f", and {len(parts) - 1} more that fit.json names" if len(parts) > 1 else ""
    return f"a part failed: {parts[0]['part']} ({parts[0]['reason'].rstrip('.')}){more}."


def cpu_minutes() -> float:
    """CPU time (user and system) of this process and of all that it waited for, in minutes."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) / 60


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object; None where the file is missing or has none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
