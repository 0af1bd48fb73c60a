"""Write the report's first page: each study's question, its answer beside the published one, figure and command.

  python scripts/write_findings.py --results results --studies STUDY ... [--submitted FILE] --out results/findings.html

The answers come from results/STUDY/fit.json, the links into MLflow from results/STUDY/logged, where there is one. Exit
codes: 0 done, 2 a study has no results, or the page can't be written.
"""

from __future__ import annotations

from pathlib import Path

from shapelaw.campaign.config import studies_of
from shapelaw.campaign.findings import findings_page, read_finding
from shapelaw.campaign.submission import read_submission
from shapelaw.errors import UserError, command_line, did_you_mean, end_with
from shapelaw.storage.files import write_text
from shapelaw.studies.registry import STUDIES

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Parse the command line and write the page, studies in the order of the registry, then grids."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--results", required=True, type=Path, metavar="DIR", help="results folder")
    add("--studies", required=True, nargs="+", metavar="STUDY", help=f"{', '.join(STUDIES)}, or a grid")
    add("--submitted", type=Path, metavar="FILE", help="results/submitted/<digest>.json, which has the grids")
    add("--out", required=True, type=Path, metavar="FILE", help="findings.html")
    arguments = parser.parse_args()
    asked = list(dict.fromkeys(arguments.studies))
    ordered = [name for name in STUDIES if name in asked] + [name for name in asked if name not in STUDIES]
    submission = None if arguments.submitted is None else read_submission(arguments.submitted)
    known = STUDIES if submission is None else studies_of(submission.config)
    for name in ordered:
        if name not in known:
            near = did_you_mean(name, list(STUDIES))
            raise UserError(f"There is no study {name}{near}; a grid needs --submitted FILE.")
    runs = {} if submission is None else submission.runs
    found = [
        read_finding(
            known[name],
            arguments.results,
            runs.get(name, {}).values(),
            arguments.submitted,
            [] if submission is None else known[name].warnings(submission.config, ROOT),
        )
        for name in ordered
    ]
    others = sorted(
        str(path.parent) for path in arguments.results.glob("*/fit.json") if path.parent.name not in asked
    )
    page = findings_page(found, "" if submission is None else submission.results_digest, others)
    write_text(arguments.out, page)


if __name__ == "__main__":
    end_with(main)
