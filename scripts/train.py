"""Train one run and write its record; started again after a kill, it resumes by itself.

Exit codes: 0 finished, 1 the run can't go on (a sentence says why), 2 wrong input, 128 + n stopped by signal n.
On several GPUs: `torchrun --nproc-per-node 4 scripts/train.py ...`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from shapelaw.corpora.token_store import open_token_store
from shapelaw.errors import UserError
from shapelaw.runs import Run, run_from_dict
from shapelaw.training.loop import Stopped, train
from shapelaw.training.trainer import Execution, TrainingFailed


def _run(text: str) -> Run:
    try:
        values = json.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
        return run_from_dict({k: v for k, v in values.items() if k not in ("schema_version", "key")})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"--spec {text[:80]} is not the spec of a run ({error!r}); give JSON, or @ and the path of a spec.json."
        ) from error


def _tag(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def main() -> int:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spec", required=True, help="the run as JSON, or @FILE (a spec.json)")
    parser.add_argument(
        "--train-store", required=True, type=Path, help="header (.json) of the training tokens"
    )
    parser.add_argument("--test-store", required=True, type=Path, help="header (.json) of the test tokens")
    parser.add_argument("--out", required=True, type=Path, help="folder for the finished record")
    parser.add_argument(
        "--checkpoints", required=True, type=Path, help="folder for checkpoints and the live state"
    )
    parser.add_argument(
        "--checkpoint-minutes", type=float, default=10.0, help="between two checkpoints (default 10)"
    )
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda or cuda:N")
    parser.add_argument("--threads", type=int, help="CPU threads (default: PyTorch's)")
    parser.add_argument(
        "--micro-batch", type=int, help="sequences at once on a device (default: from its memory)"
    )
    parser.add_argument(
        "--compile", action=argparse.BooleanOptionalAction, help="torch.compile (default: on a GPU only)"
    )
    parser.add_argument("--tag", action="append", type=_tag, default=[], help="NAME=VALUE kept in the record")
    arguments = parser.parse_args()
    execution = Execution(
        arguments.device,
        arguments.threads,
        arguments.micro_batch,
        arguments.compile,
        60 * arguments.checkpoint_minutes,
        tags=dict(arguments.tag),
    )
    try:
        run = _run(arguments.spec)
        train_store, test_store = (
            open_token_store(arguments.train_store),
            open_token_store(arguments.test_store),
        )
        train(run, train_store, test_store, arguments.out, arguments.checkpoints, execution)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except TrainingFailed as error:
        print(error, file=sys.stderr)
        return 1
    except Stopped as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
