"""Importers as processes of their own, which begin at the same moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from shapelaw.tracking.importer import import_study
from shapelaw.tracking.store import open_store
from shapelaw.tracking.summary import log_summary


def race(
    results: Sequence[Path], uri: str, studies: Sequence[str], files: Sequence[Path] = ()
) -> list[list[str]]:
    """Import the studies one after the other from each of these results folders, each study in all processes at once.

    Args:
        files: logged as the artifacts of each study's summary run, after the import.

    Returns:
        What each process said.
    """
    context = multiprocessing.get_context("spawn")
    barrier, sentences = context.Barrier(len(results)), context.Queue()
    processes = [
        context.Process(target=_import, args=(each, uri, studies, files, barrier, sentences))
        for each in results
    ]
    for process in processes:
        process.start()
    said = [sentences.get(timeout=1800) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
    return said


def _import(
    results: Path,
    uri: str,
    studies: Sequence[str],
    files: Sequence[Path],
    barrier: Barrier,
    sentences: multiprocessing.Queue[list[str]],
) -> None:
    said: list[str] = []
    for study in studies:
        barrier.wait(900)
        import_study(results, study, uri, patience=600, say=said.append)
        if files:
            barrier.wait(900)
            log_summary(open_store(uri, results), study, files, None)
    sentences.put(said)
