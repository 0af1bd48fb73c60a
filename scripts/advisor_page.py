"""Write what `shapelaw shape` answers for every size as one page with sliders, opened in any browser.

  shapelaw advisor --out advisor.html
  shapelaw advisor --fit DIR --speed speed.csv --out advisor.html

The page needs no server and no network. It shows what depths cost by the fits of public losses, the best depth, the
published law and, of DIR, a folder of `shapelaw transitions`, your own as witnesses, shipped models, and times: public
ones, or those of --speed, a file of `shapelaw speed`.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from shapelaw.errors import command_line, exit_code
from shapelaw.fits.clocks import read_clock
from shapelaw.fits.redundancy import published_series
from shapelaw.fits.shape_answer import transitions_of
from shapelaw.fits.shape_costs import Question
from shapelaw.report.advisor_page import content_of, page_of
from shapelaw.specs.sizes import Counting, SizeAxis
from shapelaw.storage.files import replacing
from shapelaw.studies.laws import PUBLISHED, own_law
from shapelaw.studies.public_evidence import public_evidence, published_law, shipped_models
from shapelaw.studies.study import published_json
from shapelaw.training.launch import keep_freed_memory


def main() -> None:
    """Parse the command line and write the page."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--fit", default=PUBLISHED, metavar="DIR", help="a folder of transitions of yours, as a witness")
    add(
        "--speed",
        type=Path,
        metavar="FILE",
        help="times of your machine, of `shapelaw speed` (default: public ones)",
    )
    add(
        "--out",
        default=Path("advisor.html"),
        type=Path,
        metavar="FILE",
        help="the page (default: advisor.html)",
    )
    arguments = parser.parse_args()
    keep_freed_memory()  # of thousands of answers
    own = [] if arguments.fit == PUBLISHED else [transitions_of(own_law(arguments.fit), own=True)]
    evidence = public_evidence()
    any_size = Question(1e9, Counting(), 1e10, evidence.clock)
    if arguments.speed is not None:
        usual = any_size.counting.vocab_size, any_size.context
        any_size = replace(any_size, clock=read_clock(arguments.speed, *usual, evidence.clock))
    models = {axis: shipped_models(axis) for axis in (SizeAxis.TOTAL, SizeAxis.BLOCK, SizeAxis.FLOPS)}
    series = published_series(published_json("vocabulary_findings"))
    content = content_of(any_size, evidence, [*own, published_law()], models, series)
    with replacing(arguments.out) as temporary:
        temporary.write_text(page_of(content), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(main))
