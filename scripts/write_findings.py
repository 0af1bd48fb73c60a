"""Write the report's first page: each study's question, its answer beside the published one, figure and command.

  python scripts/write_findings.py --results results --studies STUDY [STUDY ...] --out results/findings.html

The answers come from results/STUDY/fit.json, the links into MLflow from results/STUDY/logged, where there is one. Exit
codes: 0 done, 2 a study has no results, or the page can't be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.report.findings import findings_page
from shapelaw.report.tables import writing_to
from shapelaw.studies.findings import read_finding
from shapelaw.studies.registry import STUDIES


def main() -> None:
    """Parse the command line and write the page, studies in the order of the registry."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--results", required=True, type=Path, metavar="DIR", help="results folder")
    add("--studies", required=True, nargs="+", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
    add("--out", required=True, type=Path, metavar="FILE", help="findings.html")
    arguments = parser.parse_args()
    asked = set(arguments.studies)
    page = findings_page(
        [read_finding(study, arguments.results) for name, study in STUDIES.items() if name in asked]
    )
    with writing_to(arguments.out.parent):
        arguments.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(main))
