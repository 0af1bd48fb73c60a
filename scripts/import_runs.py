"""Import the runs of a study into MLflow, then read them back from MLflow into one runs.parquet.

Importing twice changes nothing. An import that was killed is completed by the next one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shapelaw.errors import UserError, say
from shapelaw.tracking import command


def main() -> int:
    """Parse the command line, import, and write the table."""
    parser = command.tracking_parser(__doc__)
    parser.add_argument(
        "--keys",
        type=Path,
        help="file with the keys of its runs, one a line (default: those that it asked for, by runs/studies.json; "
        "without that file all records of the folder)",
    )
    parser.add_argument("--out", required=True, type=Path, help="runs.parquet, one row a run, sorted by key")
    arguments = parser.parse_args()

    def work() -> None:
        results = command.check_results(arguments.results)
        with command.loading():
            from shapelaw.campaign.submission import submitted_study
            from shapelaw.storage.pool import read_asked, read_keys
            from shapelaw.storage.progress import find_records
            from shapelaw.storage.records import table_bytes, write_bytes
            from shapelaw.tracking.entities import read_runs
            from shapelaw.tracking.importer import Importer
            from shapelaw.tracking.summary import write_note

        experiment, study = submitted_study(arguments.submitted, arguments.study)
        keys = read_keys(arguments.keys) if arguments.keys else None
        found, asked = find_records(results), read_asked(results)
        chosen = keys or (asked.get(experiment, []) if asked else list(found))
        if keys is None and not found.keys() & set(chosen):
            known = [study for study, of in asked.items() if found.keys() & set(of)]
            raise UserError(
                f"--study is {arguments.study}, of which {results} has no records; "
                + (f"there are records of {', '.join(known)}." if known else "train first.")
            )
        uri, progress = command.tracking_uri(arguments, results), command.ImportProgress(say)
        importer = Importer(results, uri, progress, arguments.patience, artifacts=arguments.artifact_root)
        store, outcome = importer.import_study(experiment, chosen)
        if outcome.problems:
            raise UserError("\n".join(outcome.problems.values()))
        table = read_runs(store, experiment, keys, outcome.listed)
        if outcome.written and study is not None:  # the answer follows, with the summary run
            write_note(store, experiment, study.question)
        write_bytes(arguments.out, table_bytes(table))
        say(
            f"{experiment}: {len(outcome.written)} runs written to MLflow, {outcome.unchanged} were up to "
            f"date; {len(table)} rows in {arguments.out}."
        )

    return command.exit_code(work, arguments.uri)


if __name__ == "__main__":
    sys.exit(main())
