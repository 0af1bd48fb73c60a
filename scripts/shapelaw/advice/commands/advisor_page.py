"""Write what `shapelaw shape` answers for every size as one page with sliders, opened in any browser.

  shapelaw advisor --out advisor.html
  shapelaw advisor --fit DIR --speed speed.csv --out advisor.html
  shapelaw advisor --out workflow/reference/advisor.json

The page needs no server and no network. It shows what depths cost by the fits of public losses, the best depth, the
published law and, of DIR, a folder of `shapelaw transitions`, your own as witnesses, shipped models, and times: public
ones, or those of --speed, a file of `shapelaw speed`.
Its numbers are at hand; with --fit or --speed they take half a minute. The last command renews those at hand, after new
fits, models or a change of the code.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from shapelaw.advice.answer.template import page_of
from shapelaw.errors import UserError, command_line, exit_code, say
from shapelaw.storage.files import replacing
from shapelaw.studies.published import published_of
from shapelaw.studies.study import REFERENCE

READY = REFERENCE / "advisor.json"  # the numbers at hand
RENEW = "shapelaw advisor --out workflow/reference/advisor.json"
INPUTS = ("evidence.json", "models.csv")  # beside the published redundancies


def main() -> None:
    """Parse the command line and write the page, or its numbers."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--fit", metavar="DIR", help="a folder of transitions of yours, as a witness")
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
        help="the page, or with .json its numbers alone (default: advisor.html)",
    )
    given = parser.parse_args()
    numbers_alone, own = given.out.suffix == ".json", given.fit or given.speed
    if numbers_alone and own:
        raise UserError(
            "--out FILE.json has the public numbers; leave out --fit and --speed, or write a .html."
        )
    content = (None if numbers_alone or own else ready()) or computed(given.fit, given.speed)
    text = (
        json.dumps(content, separators=(",", ":"), ensure_ascii=False) if numbers_alone else page_of(content)
    )
    with replacing(given.out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def made_of() -> str:
    """The digest of the files that the page without options is computed from."""
    texts = [(REFERENCE / name).read_text("utf-8") for name in INPUTS]
    known = [published_of(study, "redundancy") for study in ("embedding_rank", "attention_ratio")]
    return hashlib.sha256("".join([*texts, repr(known)]).encode()).hexdigest()


def ready() -> dict[str, Any] | None:
    """The committed numbers; None, said once, where they are not of today's fits, models and redundancies.

    That today's code computes the same is held by a test.
    """
    content: dict[str, Any] = json.loads(READY.read_text("utf-8")) if READY.is_file() else {"made_of": ""}
    if content["made_of"] == made_of():
        return content
    say(f"The numbers at hand are of other fits or models: computing them anew; keep them by {RENEW}")
    return None


def computed(fit: str | None, speed: Path | None) -> dict[str, Any]:
    """The numbers by thousands of answers, with laws of `fit` as witnesses and times of `speed`."""
    from dataclasses import replace

    from shapelaw.advice.answer.answer import transitions_of
    from shapelaw.advice.answer.costs import Question
    from shapelaw.advice.answer.laws import PUBLISHED, own_law
    from shapelaw.advice.answer.page import content_of
    from shapelaw.advice.evidence.clocks import read_clock
    from shapelaw.advice.evidence.public import public_evidence, published_law, shipped_models
    from shapelaw.specs.sizes import Counting, SizeAxis
    from shapelaw.studies.redundancies import published_redundancies
    from shapelaw.training.launch import keep_freed_memory

    keep_freed_memory()  # of thousands of answers
    own = [] if fit in (None, PUBLISHED) else [transitions_of(own_law(fit), own=True)]
    evidence = public_evidence()
    any_size = Question(1e9, Counting(), 1e10, evidence.clock)
    if speed is not None:
        usual = any_size.counting.vocab_size, any_size.context
        any_size = replace(any_size, clock=read_clock(speed, *usual, evidence.clock))
    models = {axis: shipped_models(axis) for axis in (SizeAxis.TOTAL, SizeAxis.BLOCK, SizeAxis.FLOPS)}
    series = published_redundancies()
    return {"made_of": made_of(), **content_of(any_size, evidence, [*own, published_law()], models, series)}


if __name__ == "__main__":
    sys.exit(exit_code(main))
