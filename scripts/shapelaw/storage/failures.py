"""The reasons why runs could not go on, for the end of a workflow."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path


def failures(checkpoints: Path, digests: Collection[str]) -> Iterator[str]:
    """A sentence for every run that could not go on, from its live record.

    Args:
        checkpoints: folder of `<study>/<key>/live.json`; other jobs may write and delete files there meanwhile.
        digests: digests of the runs that are asked for; other runs are ignored.
    """
    for path in sorted(checkpoints.glob("*/*/live.json")):
        try:
            live = json.loads(path.read_text())
        except FileNotFoundError:  # the run has finished since
            continue
        except ValueError as error:
            yield f"{path} can't be read ({error}); start the run again to see why it ended."
            continue
        if live.get("status") == "FAILED" and live.get("spec_digest") in digests:
            yield live["message"]
