"""Write the advice for every budget as one page: sliders for parameters, vocabulary and rank; opened in any browser.

  python scripts/advisor_page.py --out advisor.html
  python scripts/advisor_page.py --fit DIR --out advisor.html

The page needs no server and no network. The law is the published one (Levine et al. 2020), or that of DIR, a folder of
fit_transitions.py. Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shapelaw.errors import command_line, exit_code
from shapelaw.fits.inputs import read_table
from shapelaw.fits.known_redundancy import published_series
from shapelaw.report.advisor_page import content_of, page_of
from shapelaw.report.tables import plain_rows
from shapelaw.specs.architectures import architecture_of_row
from shapelaw.storage.files import replacing
from shapelaw.studies.public_evidence import PUBLISHED, read_law
from shapelaw.studies.study import REFERENCE, published_json

DECODERS = ("GPT", "Llama", "Gemma", "Qwen", "gpt-oss")  # of text; what the law speaks of


def main() -> None:
    """Parse the command line and write the page."""
    parser = command_line(__doc__)
    parser.add_argument(
        "--fit",
        default=PUBLISHED,
        metavar="DIR",
        help=f"the law: `{PUBLISHED}` (default), or a folder of results",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the page to write")
    arguments = parser.parse_args()
    law = read_law(arguments.fit)
    table = read_table(REFERENCE / "architectures.csv")
    decoders = table[table["name"].str.startswith(DECODERS)]
    models = [architecture_of_row(row) for row in plain_rows(decoders)]
    content = content_of(
        law.forms,
        source=law.source,
        depths=law.depths,
        sizes=law.sizes,
        series=published_series(published_json("vocabulary_findings")),
        models=models,
    )
    with replacing(arguments.out) as temporary:
        temporary.write_text(page_of(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(main))
