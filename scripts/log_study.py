"""Log a study's figures and tables as artifacts of its one summary run in MLflow, its main numbers as metrics.

Logging equal files again changes nothing; other files replace the summary run. The study's question and answer become
the description of its experiment, with its tables that of the summary run, and --out gets the addresses of its pages in
MLflow.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shapelaw.errors import say
from shapelaw.tracking import command


def main() -> int:
    """Parse the command line and log."""
    parser = command.tracking_parser(__doc__)
    parser.add_argument(
        "--artifacts", nargs="*", type=Path, default=[], help="figures and tables, stored by their file names"
    )
    parser.add_argument("--fit", type=Path, help="the study's fit.json, with its answer and findings")
    parser.add_argument("--out", type=Path, help="JSON file for the addresses of the study's pages in MLflow")
    arguments = parser.parse_args()

    def work() -> None:
        results = command.check_results(arguments.results)
        with command.loading():
            from shapelaw.campaign.findings import described, headline
            from shapelaw.campaign.submission import submitted_study
            from shapelaw.tracking.store import open_store
            from shapelaw.tracking.summary import log_summary, pages, write_note

        uri = command.tracking_uri(arguments, results)
        experiment, study = submitted_study(arguments.submitted, arguments.study)
        artifacts, fit = [*arguments.artifacts, *([arguments.fit] if arguments.fit else [])], arguments.fit
        note = "" if study is None or fit is None else described(study, fit)
        numbers = headline({file.stem: file for file in artifacts if file.suffix == ".csv"})

        def once() -> tuple[str, dict[str, str]]:
            with command.one_writer(results, say):
                store = open_store(uri, results, arguments.artifact_root)
                run_id = log_summary(store, experiment, artifacts, numbers, note)
                if note:
                    write_note(store, experiment, note)
                return run_id, pages(store, experiment, command.address(uri))

        run_id, links = command.patiently(once, arguments.patience, command.ImportProgress(say))
        say(f"{experiment}: the summary run in MLflow is {run_id}.")
        if arguments.out is not None:
            arguments.out.write_text(json.dumps({"pages": links}, indent=1) + "\n", encoding="utf-8")

    return command.exit_code(work, arguments.uri)


if __name__ == "__main__":
    sys.exit(main())
