"""Follow the run records of all studies into MLflow, finished and live, until interrupted (Ctrl-C).

With --once it imports everything once and ends. It also creates the SQLite store, which a server
needs to find.
"""

from __future__ import annotations

import signal
import sys
from threading import Event

from shapelaw.errors import say
from shapelaw.tracking import command


def main() -> int:
    """Parse the command line and follow."""
    parser = command.tracking_parser(__doc__, of_study=False)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks (default 5)")
    parser.add_argument(
        "--address",
        metavar="URL",
        help="of the UI: after the first look, print a link to the runs submitted last",
    )
    parser.add_argument("--once", action="store_true", help="look once, then end")
    arguments = parser.parse_args()
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def work() -> None:
        results = command.check_results(arguments.results)
        with command.loading():
            from shapelaw.campaign.submission import latest_experiments
            from shapelaw.storage.pool import read_asked
            from shapelaw.tracking.importer import Importer
            from shapelaw.tracking.store import open_store
            from shapelaw.tracking.summary import RUNS, pages

        uri = command.tracking_uri(arguments, results)
        patience = arguments.patience
        if patience is None:
            patience = command.PATIENCE if arguments.once else float("inf")
        if not arguments.once:
            say(f"Following {results} into {command.redact(uri, uri)}; Ctrl-C ends it.")

        def link() -> None:
            store, asked = open_store(uri, results), list(read_asked(results))
            for study in [*latest_experiments(results), *asked]:
                if links := pages(store, study, arguments.address):
                    print(links[RUNS])
                    return

        progress = command.ImportProgress(say)
        importer = Importer(results, uri, progress, patience, stop=stop, artifacts=arguments.artifact_root)
        importer.follow(None if arguments.once else arguments.every, link if arguments.address else None)

    return command.exit_code(work, arguments.uri)


if __name__ == "__main__":
    sys.exit(main())
