"""Write what `shapelaw shape` answers for every size as one page with sliders, opened in any browser.

  shapelaw advisor --out advisor.html
  shapelaw advisor --fit DIR --speed speed.csv --out advisor.html

The page needs no server and no network. It shows what depths cost at equal size, equal training time and equal latency
of decoding, the best depth by the fits of public losses, by the published law and, of DIR, a folder of
`shapelaw transitions`, by yours, and shipped models. Paste a config.json of transformers into it to see your model.
Times are public ones, and those of --speed, a file of `shapelaw speed`.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

from pathlib import Path

from shapelaw.advice.answer.costs import CONTEXT
from shapelaw.advice.answer.laws import PUBLISHED, own_law
from shapelaw.advice.answer.page import content_of, page_of
from shapelaw.advice.evidence.public import MI250X, machine_clock
from shapelaw.errors import command_line, end_with
from shapelaw.specs.sizes import GPT2_VOCAB_SIZE
from shapelaw.storage.files import write_text


def main() -> None:
    """Parse the command line and write the page."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--fit", metavar="DIR", help="a folder of transitions of yours, beside the public ones")
    add("--speed", type=Path, metavar="FILE", help="times of your machine, of `shapelaw speed`")
    add(
        "--out",
        default=Path("advisor.html"),
        type=Path,
        metavar="FILE",
        help="the page (default: advisor.html)",
    )
    arguments = parser.parse_args()
    own_laws = [] if arguments.fit in (None, PUBLISHED) else [own_law(arguments.fit)]
    machines = [*([arguments.speed] if arguments.speed else []), MI250X, "h200"]
    clocks = {str(name): machine_clock(name, GPT2_VOCAB_SIZE, CONTEXT) for name in machines}
    write_text(arguments.out, page_of(content_of(own_laws, clocks)))


if __name__ == "__main__":
    end_with(main)
