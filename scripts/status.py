"""Tell how far a workflow's runs are: done, running, stopped, failed, waiting, and the time left.

It reads records alone, so it works while the workflow runs, after it died, and on another machine of a cluster. Exit
codes: 0 told, 1 a run failed, 2 nothing was started, or a record is damaged.
"""

from __future__ import annotations

from pathlib import Path

from shapelaw.campaign.submission import latest_submission, read_submission
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.jobs.ledger import given_up
from shapelaw.storage.files import written
from shapelaw.storage.pool import counts_of, outdated_of
from shapelaw.storage.progress import find_records, lines_of, progress_of


def main() -> int:
    """Parse the command line and tell."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--results", type=Path, default=Path("results"), help="folder of results (default: results)")
    add(
        "--submitted",
        type=Path,
        metavar="FILE",
        help="what a workflow was started with (default: the latest of results/submitted)",
    )
    arguments = parser.parse_args()
    submitted = arguments.submitted or latest_submission(arguments.results)
    if submitted is None:
        raise UserError(
            f"No workflow was started here: {arguments.results / 'submitted'} has no file; start one with snakemake, "
            "or name the folder of results with --results."
        )
    runs, found = read_submission(submitted).runs, find_records(arguments.results)
    pool = {key: run for of in runs.values() for key, run in of.items()}
    for key in outdated_of(arguments.results, [pool[key] for key in pool.keys() & found.keys()]):
        del found[key]  # a record of another text
    ended = given_up(arguments.results, since=written(submitted))
    told = [progress_of(study, of, found, ended) for study, of in runs.items()]
    print(f"{counts_of(arguments.results, pool, ()).words}." if told else "The workflow trains nothing.")
    for progress in told:
        print("\n".join(lines_of(progress)))
    return 1 if any(progress.failed for progress in told) else 0


if __name__ == "__main__":
    end_with(main)
