"""Shared by all tests: a small corpus of real English prose, an empty MLflow store, a project that has both."""

import fcntl
import gc
import os
import shlex
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from job_server import SHARED, TESTS, warm_python
from project import Project
from small import COMMANDS, REPOSITORY

from shapelaw.corpora.token_store import EncodedBatch, TokenStore, write_token_store

END_OF_TEXT = 256

# the same cases every time, however busy the machine
settings.register_profile("shapelaw", derandomize=True, deadline=None)
settings.load_profile("shapelaw")


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder for reading and copying, which `make` fills once a session: the other workers wait for it.

    A `make` that failed is tried again by the next worker, in a new folder.
    """
    base = temporary.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # of all workers of a session
    done = root / f"{name}.done"
    with (root / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder = temporary.mktemp(name)
            make(folder)
            done.write_text(str(folder))
    return Path(done.read_text())


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenStore, TokenStore]:
    """Python's language reference, a topic a document, V = 257: (train, test), every tenth topic for testing."""
    folder = tmp_path_factory.mktemp("stores") / "prose" / "V257"  # where jobs look for them
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


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite store of MLflow's, to copy: creating one takes a second and a half."""

    def make(folder: Path) -> None:
        from shapelaw.tracking.command import default_uri
        from shapelaw.tracking.store import open_store

        results = folder / "results"
        results.mkdir()
        open_store(default_uri(results), results)

    return made_once(tmp_path_factory, "empty_store", make) / "results" / "mlflow.db"


@pytest.fixture(scope="session")
def with_store(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """The folder of a project that has an empty MLflow store and the page of all answers, for others to begin with."""

    def make(folder: Path) -> None:
        Project(folder, empty_store.parents[1]).snakemake("results/advisor.html", "--quiet", "rules")
        shutil.rmtree(folder / "results" / "runs")  # which every start makes

    return made_once(tmp_path_factory, "with_store", make)


@pytest.fixture(scope="session")
def with_corpus(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> Path:
    """The folder of a project that has its corpus, tokenizer and token stores too."""

    def make(folder: Path) -> None:
        project = Project(folder, with_store)
        stores = (f"results/corpora/prose/V300/{split}.json" for split in ("train", "test"))
        project.snakemake(*stores, "--quiet", "rules")

    return made_once(tmp_path_factory, "with_corpus", make)


@pytest.fixture
def compiling(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch.compile, with no function compiled yet and a folder that the workers of a session share.

    For an empty one each process tries first what the compiler can do, which takes seven CPU seconds.
    """
    import torch

    from shapelaw.training import hardware

    folder = made_once(tmp_path_factory, "compiled", lambda folder: None)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    monkeypatch.setattr(hardware, "_COMPILED_CHOSEN", True)
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def pytest_configure(config: pytest.Config) -> None:
    """Where several workers will run the tests, start the process that their jobs are forks of, one for all.

    No test asks a Slurm of this machine (tests/bin).
    """
    os.environ["PATH"] = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        os.environ[SHARED] = str(warm_python(TESTS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Begin the workers as forks of that process too: imports took each of them five CPU seconds."""
    for spec in specs:
        spec.python = shlex.join(map(str, (warm_python(), REPOSITORY / "tests" / "job_server.py", "worker")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without Python's garbage collector, which takes a sixth of it and finds nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# folders and files that take minutes
LONG = (
    *("workflow", "test_chaos", "test_commands", "test_tables", "training", "tracking"),
    *("test_surface", "test_page_tables", "test_site"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first: then no worker is left alone with one at the end."""

    def place(item: pytest.Item) -> int:
        names = (item.path.parent.name, item.path.stem)
        return min((LONG.index(name) for name in names if name in LONG), default=len(LONG))

    items.sort(key=place)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small products are slower on several threads, far slower when the tests run side by side."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
