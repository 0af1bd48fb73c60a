"""What commands refuse they refuse in one sentence, before anything is begun (mistakes.yaml)."""

import shlex
from pathlib import Path

import pytest
import yaml
from commands import sentence_of
from small import REPOSITORY

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
FILES = MISTAKES.pop("files")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("command", "asked", "says"),
    [(command, asked, says) for command, cases in MISTAKES.items() for asked, says in cases.items()],
)
def test_a_mistake_is_one_sentence_and_nothing_is_begun(
    command: str, asked: str, says: str, folder: Path
) -> None:
    words = shlex.split(asked.replace("FAULTS", str(REPOSITORY / "tests" / "faults")))
    assert says in sentence_of(command, *words, cwd=folder)
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(FILES)
