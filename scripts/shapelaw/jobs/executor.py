"""Our executor on Slurm: the plugin's, with the methods that Snakemake's executor plugins override.

An attempt that advanced its run is free, jobs of a killed workflow are taken over, jobs that Slurm refuses for the
moment wait, and a Slurm that doesn't answer is waited for.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

from shapelaw.jobs import slurm
from shapelaw.jobs.ledger import note_ending
from shapelaw.jobs.resources import OUT_OF_MEMORY, TIMEOUT, Attempts, verdict
from shapelaw.jobs.snakemake_door import Door, PluginExecutor, count, last_attempt, wildcards_of
from shapelaw.storage.files import written
from shapelaw.storage.pool import snakemake_reason

_QUEUE_SECONDS = 30.0  # for which a look at the queue holds, while jobs are submitted
_ASKED = {TIMEOUT: ("runtime", "minutes"), OUT_OF_MEMORY: ("mem_mb", "MB")}  # what a job had too little of
_KILLED_FOR_MEMORY = re.compile(r"slurmstepd.*(exceeded (job )?memory limit|oom.kill)", re.I)
# of a limit on jobs in the queue, a closed partition, or a controller that is busy, restarting or out of reach
_PASSES = re.compile(
    r"Submit\w*(Limit|Account|User)|temporar|try again|timed out|unable to contact|connect|communicat|socket|zero bytes"
    r"|not responding|queue is full|too many|inactive or drain",
    re.I,
)
_SAID = re.compile(r"The error message was '(.*?)'\.\n", re.S)
_ERROR = re.compile(r"sbatch: error: (?:Batch job submission failed: )?(.+)")


class SlurmExecutor(PluginExecutor):
    """What is ours in the plugin's executor, which submits and cancels.

    Attributes:
        attempts: what the attempts at each job achieved.
    """

    attempts: ClassVar[Attempts]

    def __init__(self, workflow: Any, logger: Any) -> None:
        # before the plugin starts its thread, which uses them
        self._mine: set[str] = set()  # numbers of the jobs that this workflow submitted or took over
        self._states: dict[str, str] = {}  # of each job, when it was last asked for
        self._queue: tuple[float, dict[str, slurm.Job]] = (-math.inf, {})  # as it was, and when
        self._counted: dict[Any, float] = {}  # the attempts at a job that count
        self._tried: set[Any] = set()  # jobs that were submitted once
        self._silent = False  # Slurm doesn't answer
        self._held: deque[Any] = deque()  # jobs that Slurm did not take for the moment, and those behind them
        self._is_full = False  # Slurm takes no more jobs now
        self._reasons: set[str] = set()  # of that, which were told
        self._own = Door(workflow).own_resources
        self.attempts.watched = True
        super().__init__(workflow, logger)

    # --- submission ---

    def run_job(self, job: Any) -> None:
        """Submit a job, or take over an earlier workflow's job that does the same."""
        self.attempts.begin(wildcards_of(job))
        if (number := self._orphan(job)) is not None:
            self._take_over(job, number)
        elif self._is_full:
            self._held.append(job)
        else:
            super().run_job(job)

    def _orphan(self, job: Any) -> str | None:
        """The number of an earlier workflow's job that trains the same; None for jobs that don't train.

        A key or a pack's name says to the last option what is trained, so the plugin's comment tells whether it is the
        same job. What began before its data was made anew is another one.
        """
        if not self.attempts.folders(wildcards_of(job)):
            return None
        if time.monotonic() > self._queue[0] + _QUEUE_SECONDS:
            self._queue = time.monotonic(), slurm.my_jobs() or {}
        left = slurm.left_over(self._queue[1], str(self.workflow.workdir_init), self._mine)
        newest = max(map(written, job.input), default=0.0)
        return slurm.find_orphan(left, slurm.comment_of(job.name, wildcards_of(job)), newest)

    def _take_over(self, job: Any, number: str) -> None:
        from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

        self.logger.info(f"{_name(job)} is job {number} of an earlier workflow; taking it over.")
        aux = {"slurm_logfile": self.log_of(job, number)}
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=number, aux=aux))

    def report_job_submission(self, job_info: Any, register_job: bool = True) -> None:
        """Note the number of a submitted job."""
        self._is_full = False
        self._mine.add(str(job_info.external_jobid))
        super().report_job_submission(job_info, register_job)

    def report_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        """Keep a job that Slurm did not take: it is submitted again where that may help, and has not failed.

        Of jobs that it took, `_report_failure` tells.
        """
        job: Any = job_info.job
        refusal, passes = refusal_of(msg or "")
        if not passes:
            self.logger.error(f"{_name(job)}: Slurm does not take it ({refusal}).")
            self._tell(job, f"Slurm did not take it ({refusal}); it has not run.")
            note_ending(job.log, f"Slurm did not take it ({refusal})")
            count(job, math.inf)  # another attempt would be refused likewise
            super().report_job_error(job_info)
            return
        self._is_full = True
        self._held.append(job)
        if refusal not in self._reasons:
            self._reasons.add(refusal)
            self.logger.warning(
                f"Slurm takes no more jobs now ({refusal}); the others wait here and are submitted as jobs end. "
                "They have not failed; this workflow can also be stopped, and the same command goes on later."
            )

    def printjob(self, job: Any) -> None:
        """Tell what a job is at its first attempt."""
        if job not in self._tried:
            self._tried.add(job)
            super().printjob(job)

    def print_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        """Nothing: of each failure a line is printed already, in place of the job's whole command."""

    def _tell(self, job: Any, reason: str) -> None:
        self.attempts.told[job.name, *wildcards_of(job)] = reason

    # --- states ---

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Report the jobs that have ended, and yield the others: all of them where Slurm doesn't answer.

        The plugin's own gives up after a few questions, and drops all jobs then.
        """
        settings = self.workflow.executor_settings
        self.next_seconds_between_status_checks = settings.init_seconds_before_status_checks
        found = None
        if active_jobs:
            async with self.status_rate_limiter:
                numbers = [str(info.external_jobid) for info in active_jobs]
                found = await asyncio.to_thread(slurm.states_of, numbers)
            self._say_silence(found is None)
        ended = len(active_jobs)
        for info in active_jobs:
            if found is None or not self._has_ended(info, found[str(info.external_jobid)]):
                ended -= 1
                yield info
        room = max(1, ended)
        while self._held and (room > 0 or not self._is_full):
            room -= 1
            await asyncio.to_thread(super().run_job, self._held.popleft())

    def _say_silence(self, silent: bool) -> None:
        if silent != self._silent:
            self.logger.warning(
                "squeue doesn't answer; waiting for it." if silent else "squeue answers again."
            )
        self._silent = silent

    def _has_ended(self, info: Any, state: str) -> bool:
        """Report a job that has ended; False where it goes on."""
        number = str(info.external_jobid)
        if state == slurm.WAITING and self._states.get(number, state) != state:
            cause = slurm.requeue_of(number)
            ended = f"ended {cause}" if cause else "was stopped"
            self.logger.warning(f"{_name(info.job)}: job {number} {ended}; Slurm put it back into the queue.")
        self._states[number] = state
        ending = slurm.ending(state)
        if ending == "done":
            if info.aux and not self.workflow.executor_settings.keep_successful_logs:
                Path(info.aux["slurm_logfile"]).unlink(missing_ok=True)
            self.report_job_success(info)
        elif ending == "failed":
            self._report_failure(info, state)
        return ending != "active"

    def _report_failure(self, info: Any, state: str) -> None:
        """Say in a line what became of an attempt, and let Snakemake try again where that may help."""
        job: Any = info.job
        said = _said_in((info.aux or {}).get("slurm_logfile"))
        state = reason(state, said)
        known = snakemake_reason(said) if state == "FAILED" else f"Slurm ended it: {state}."
        self._tell(job, known)
        ended = self.attempts.end(wildcards_of(job), state)
        last, number = last_attempt(job), 1 + self._counted.get(job, 0)
        found = verdict(ended, number, last, state, known, self._fixed(job, state))
        self._counted[job] = found.counted
        # one that doesn't count is one of `attempt` too, which the user's resources may depend on
        count(job, min(job.attempt, last - 1) if found.again else math.inf)
        log = "" if found.again or not job.log else f" Its log: {job.log[0]}"
        self.logger.error(f"{_name(job)}: job {info.external_jobid} ended {found.sentence}.{log}")
        note_ending(job.log, f"job {info.external_jobid} ended {found.sentence}")
        super().report_job_error(info)

    def _fixed(self, job: Any, state: str) -> str:
        """What the next attempt asks for too little of again, since --set-resources sets it for all attempts."""
        name, unit = _ASKED.get(state, ("", ""))
        if not (fixed := slurm.number_in(self._own.get(job.name, {}), name, 0)):
            return ""
        asks = f"{job.name}:{name}='{fixed}*attempt' asks for more each time"
        return f"the same {fixed:,} {unit}, which --set-resources fixed; {asks}"


def _name(job: Any) -> str:
    """What a job is called in messages: its rule and run, as in `train_large.wiki-V2000-...-s0-3f2a9c01`."""
    return ".".join((job.name, *wildcards_of(job)))


def _said_in(log: str | Path | None) -> str:
    """What Slurm's log of a job says; empty where there is none, or none yet."""
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace") if log else ""
    except OSError:
        return ""


def reason(state: str, said: str) -> str:
    """Why a job failed: its state, or OUT_OF_MEMORY where Slurm says so only in the job's log."""
    return OUT_OF_MEMORY if state == "FAILED" and _KILLED_FOR_MEMORY.search(said) else state


def refusal_of(message: str) -> tuple[str, bool]:
    """What sbatch said, in the plugin's message on a submission that failed; whether the job may be taken later."""
    found = _SAID.search(message)
    text = found[1] if found else message
    lines = list(dict.fromkeys(line.strip().rstrip(".") for line in _ERROR.findall(text)))
    reason = "; ".join(lines) or " ".join(text.split())
    return reason, _PASSES.search(reason) is not None
