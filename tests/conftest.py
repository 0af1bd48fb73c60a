"""Shared by all tests: a small corpus of real English prose, as bytes."""

import sys
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest

from shapelaw.corpora.token_store import EncodedBatch, TokenStore, write_token_store
from shapelaw.runs import Run, Training
from shapelaw.shapes import make_shape

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "scripts"
PYTHON = sys.executable
END_OF_TEXT = 256


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenStore, TokenStore]:
    """Python's language reference, a topic a document, V = 257: (train, test), every tenth topic for testing."""
    folder = tmp_path_factory.mktemp("stores")
    texts = [topics[name].encode() for name in sorted(topics)]
    token_bytes = np.array([1] * 256 + [0])

    def write(name: str, documents: list[bytes]) -> TokenStore:
        batches = (
            EncodedBatch(
                np.append(np.frombuffer(text, np.uint8).astype(np.uint16), END_OF_TEXT), len(text), 1
            )
            for text in documents
        )
        return write_token_store(
            folder / f"{name}.json",
            batches,
            end_of_text=END_OF_TEXT,
            token_bytes=token_bytes,
            tokenizer_sha256="bytes",
        )

    test = texts[::10]
    return write("train", [t for i, t in enumerate(texts) if i % 10]), write("test", test)


def small_run(seed: int = 0, **training: object) -> Run:
    """A run of a second or two on one core."""
    settings = {
        "steps": 60,
        "batch_size": 8,
        "learning_rate": 5e-3,
        "warmup_steps": 5,
        "log_every": 10,
        "evaluate_every": 30,
        "test_sequences": 20,
        **training,
    }
    return Run("depth_width", "prose", make_shape(2, 16, 2, 257, 32), Training(**settings), seed)
