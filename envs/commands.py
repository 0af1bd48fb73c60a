"""Make the commands of .venv those of the clone that they lie in: they start the Python beside them.

`make env` runs it with that Python, and again once a clone was moved or copied. pip writes the whole path of the Python
into each command, so that those of a copy would start the Python of the original. Of pip's commands nothing but that is
changed; `shapelaw` is written whole, with this clone's code.
"""

import re
import sys
from pathlib import Path

START = """#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
# as pip writes it: in one line, or where a path is too long or has blanks for that, in three
_OF_PIP = re.compile(
    r"#!(?:[^\n]*/bin/python[\d.]*|/bin/sh\n'''exec' [^\n]*/bin/python[\d.]*\"? \"\$0\" \"\$@\"\n' ''')\n"
)
SHAPELAW = """import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from shapelaw.cli import main

sys.exit(main())
"""


def main(folder: Path) -> None:
    """Write the commands of a `bin` folder."""
    for path in folder.iterdir():
        if not path.is_file() or path.is_symlink() or path.read_bytes()[:2] != b"#!":
            continue
        text = path.read_text(encoding="utf-8")
        if of_pip := _OF_PIP.match(text):
            _write(path, START + text[of_pip.end() :])
    _write(folder / "shapelaw", START + SHAPELAW)


def _write(path: Path, text: str) -> None:
    """A new file in the place of the old one, which a copied environment may share with the original."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(path)


if __name__ == "__main__":
    main(Path(sys.executable).parent)
