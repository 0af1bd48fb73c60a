"""Print which bottleneck binds in an architecture, and how many of its parameters that wastes.

  shapelaw bottlenecks                                     # the table of well-known architectures
  shapelaw bottlenecks ALBERT-xxlarge T5-11B
  shapelaw bottlenecks --vocab 257 --width 768 --heads 12 --depth 12
  shapelaw bottlenecks --patch 14 --channels 3 --image 224 --width 1280 --heads 16
  shapelaw bottlenecks --table mine.csv --fit results/embedding_rank --out bottlenecks.csv
  shapelaw bottlenecks --model FOLDER                      # with a config.json of transformers

Wies et al. 2021: the rank r of the input embedding, at most min(V, d), caps what the width d adds, and the width caps
what the attention's inner width H d_a adds. Redundancy is the share of parameters that a network without the
bottleneck saves at equal loss: by your fits (--fit) or ours, of networks of 0.07 to 1 million parameters, where they
cover r/d or H d_a/d within a factor of 10 of this size; else by the paper, which may only bound it ("between
published"); else extrapolated. A table needs the columns name, width, and vocab_size or patch;
workflow/reference/architectures.csv has all that are read. Exit codes: 0 printed, 2 impossible or unknown.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from shapelaw.advice.models import bottlenecks
from shapelaw.advice.models.architectures import NUMBERS, Architecture, architecture_of_row, make_architecture
from shapelaw.advice.models.bottlenecks import Finding
from shapelaw.advice.models.described import SAID, Kind, Model, architecture_of, model_text
from shapelaw.advice.models.pretrained import read_model
from shapelaw.errors import UserError, command_line, end_with
from shapelaw.fits.inputs import read_table, refuse, require_columns
from shapelaw.report.tables import plain_rows
from shapelaw.specs.sizes import SizeAxis
from shapelaw.storage.files import write_text
from shapelaw.studies.study import REFERENCE

FLAGS = {  # option: field of an architecture, help
    "vocab": ("vocab_size", "V, tokens of the vocabulary"),
    "rank": ("embedding_rank", "r of an embedding factored (V x r)(r x d) (default: not factored)"),
    "patch": ("patch", "side of a square patch, in pixels, in place of a vocabulary"),
    "channels": ("channels", "numbers of a pixel (default: 1)"),
    "image": ("image", "side of the image, in pixels"),
    "width": ("width", "d"),
    "heads": ("heads", "H"),
    "attention-dim": ("attention_dim", "d_a of one head (default: d / H)"),
    "depth": ("depth", "L"),
    "ff-width": ("ff_width", "d_ff (default: not known, taken as the paper's 4 H d_a)"),
    "params": (
        "params",
        "all parameters, such as 1.3B (default: reckoned from the above, where the depth is given)",
    ),
}
OTHER_NAMES = {  # of papers and configs: the name that is read here
    **dict.fromkeys(("d", "d_model", "hidden_size", "n_embd"), "width"),
    **dict.fromkeys(("H", "n_head", "n_heads", "num_attention_heads"), "heads"),
    **dict.fromkeys(("d_a", "d_head", "head_dim"), "attention_dim"),
    **dict.fromkeys(("L", "n_layer", "n_layers", "num_hidden_layers"), "depth"),
    **dict.fromkeys(("d_ff", "ffn_dim", "intermediate_size"), "ff_width"),
    **dict.fromkeys(("V", "n_vocab", "vocab", "vocabulary"), "vocab_size"),
    **dict.fromkeys(("r", "rank"), "embedding_rank"),
}
SURE = 0.93  # likeness of a name that is a mistyped one: `embeding_rank`, not `path`
FEW = 4  # architectures that get sentences too


def main() -> None:
    """Parse the command line, find the bottlenecks, and print or write them."""
    given = parser().parse_args()
    if given.out is not None and given.out.suffix not in (".csv", ".md"):
        raise UserError(f"--out is {given.out}; its name must end in .csv or .md.")
    series = bottlenecks.known_redundancies(SizeAxis(given.size), given.fit)
    model = None if given.model is None else read_model(given.model)
    asked = architectures(given, model)
    found = [one for architecture in asked for one in bottlenecks.findings_of(architecture, series)]
    if given.out is not None:
        write(found, given.out)
    if given.json:
        said = {} if model is None else {"model": asdict(model)}
        print(json.dumps([row | said for row in plain_rows(bottlenecks.full_table(found))], indent=2))
    else:
        before = "" if model is None else f"{model_text(model)}{elsewhere(model)}\n\n"
        print(before + text_of(found))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    found = command_line(__doc__, "[NAME ...] [OPTIONS]")
    add = found.add_argument
    add("names", nargs="*", metavar="NAME", help="architectures of the table (default: all)")
    add("--table", type=Path, metavar="FILE.csv", help="architectures of your own, one a row")
    add(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a folder with the config.json of a model of transformers",
    )
    single = found.add_argument_group("one architecture")
    for flag, (_, text) in FLAGS.items():
        single.add_argument(f"--{flag}", help=text)
    output = found.add_argument_group("redundancy and output")
    add = output.add_argument
    add(
        "--fit",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="results of the studies embedding_rank and attention_ratio of your own, before ours and the paper's",
    )
    add(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.TOTAL.value,
        help="size in which a fit's redundancy is meant (default: total, all parameters, as published)",
    )
    add("--json", action="store_true", help="print a JSON list instead of a table")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the table too: every number as .csv, the readable one as .md",
    )
    return found


def architectures(given: argparse.Namespace, model: Model | None) -> Sequence[Architecture]:
    """The architectures that the command line asks for.

    Args:
        model: that of --model.

    Raises:
        UserError: it asks in two ways, or for something unknown or impossible.
    """
    numbers = {field: getattr(given, flag.replace("-", "_")) for flag, (field, _) in FLAGS.items()}
    numbers = {field: value for field, value in numbers.items() if value is not None}
    ways = [bool(given.names), given.table is not None, given.model is not None, bool(numbers)]
    if sum(ways) > 1:
        raise UserError("Give names of the table, or --table, or --model, or numbers, and only one of these.")
    if model is not None:
        return [architecture_of(model)]
    if numbers:
        return [make_architecture("yours", **numbers)]
    if given.table is not None:
        return read_architectures(given.table)
    known = read_architectures(REFERENCE / "architectures.csv")
    return [named(name, known) for name in given.names] or known


def read_architectures(path: Path) -> list[Architecture]:
    """The architectures of a table, one a row.

    Raises:
        UserError: the table can't be read, or a row is not an architecture.
    """
    table = read_table(path)
    columns = [str(column) for column in table.columns]
    renamed = [
        f"{column} to {name}" for column in columns if (name := name_of(column)) and name not in columns
    ]
    if renamed:
        raise UserError(f"{path} has columns under names that are not read; rename {', '.join(renamed)}.")
    either = "patch" if "patch" in table and "vocab_size" not in table else "vocab_size"
    require_columns(table, ["name", "width", either], str(path))
    refuse(table, table["name"].isna(), str(path), "name must not be empty")
    return [
        architecture_of_row({str(key): value for key, value in row.items()})
        for row in table.to_dict("records")
    ]


def name_of(column: str) -> str | None:
    """The name under which a column of numbers is read; None for its own name, and for a column of another kind."""
    if column in NUMBERS:
        return None
    low = column.lower()
    near = difflib.get_close_matches(low, NUMBERS, n=1, cutoff=SURE)
    return OTHER_NAMES.get(column, OTHER_NAMES.get(low, near[0] if near else None))


def named(name: str, known: Sequence[Architecture]) -> Architecture:
    """The architecture of a name, in capitals or not.

    Raises:
        UserError: there is none; the sentence has the near ones.
    """
    names = {one.name.lower(): one for one in known}
    if name.lower() in names:
        return names[name.lower()]
    parts = [low for low in names if name.lower() in low]
    near = parts or difflib.get_close_matches(name.lower(), list(names), n=5, cutoff=0.5)
    said = ", ".join(names[low].name for low in near)
    hint = f"near it: {said}" if near else "without a name all are printed"
    raise UserError(f"The table has no architecture {name!r}; {hint}.")


def elsewhere(model: Model) -> str:
    """That redundancies were measured in other networks, where the model is of a kind that nobody measured."""
    if model.kind not in (Kind.MIXTURE, Kind.STATE_SPACE):
        return ""
    return (
        f" No redundancy was measured in {SAID[model.kind]}: whatever is said below is of dense Transformers."
    )


def write(found: Sequence[Finding], path: Path) -> None:
    """Write the table: every number as .csv, the readable one as .md."""
    if path.suffix == ".csv":
        write_text(path, bottlenecks.full_table(found).to_csv(index=False))
    else:
        write_text(path, bottlenecks.aligned(bottlenecks.readable_table(found), "pipe") + "\n")


def text_of(found: Sequence[Finding]) -> str:
    """The readable table, and below it sentences for a few architectures, or the sources for many."""
    lines = [bottlenecks.aligned(bottlenecks.readable_table(found), "plain"), ""]
    if len(found) <= FEW:
        lines += [bottlenecks.sentences(one) for one in found]
    else:
        known = [one.redundancy for one in found if one.redundancy is not None]
        sources = [f"  {source}" for source in dict.fromkeys(one.source for one in known)]
        notes = "V of patches: the numbers of a patch; r: min(V, r, d); intervals: 68%."
        notes += " Caveats: docs/advice/bottlenecks.md."
        lines += ["Redundancies were measured in:", *sources, notes]
    return "\n".join(lines)


if __name__ == "__main__":
    end_with(main)
