"""List the runs of a study that a workflow was started for, one key a line: import_runs.py takes these.

Exit codes: 0 done, 2 the file can't be read or written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.storage.files import write_text
from shapelaw.storage.pool import submitted_runs


def main() -> None:
    """Parse the command line and list."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--submitted", required=True, type=Path, metavar="FILE", help="results/submitted/<digest>.json")
    add("--study", required=True, help="a study of it that trains")
    add("--out", required=True, type=Path, metavar="FILE", help="keys.txt")
    arguments = parser.parse_args()
    try:
        submitted = json.loads(arguments.submitted.read_text(encoding="utf-8"))
        listed = submitted_runs(arguments.submitted, submitted["runs"])
        runs = json.loads(listed.read_text(encoding="utf-8"))[arguments.study]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{arguments.submitted} doesn't list the runs of {arguments.study} ({error!r}); Snakemake writes it when "
            "it starts (without --no-hooks)."
        ) from error
    write_text(arguments.out, "".join(f"{key}\n" for key in runs))


if __name__ == "__main__":
    sys.exit(exit_code(main))
