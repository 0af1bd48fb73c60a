"""`mlflow server` with its uvicorn in the same process: as a fork of the warm Python, two starts of Python less."""

import os
import sys

import mlflow.server
import uvicorn
from mlflow.cli import cli


def here(command: list[str], extra_env: dict[str, str], **_: object) -> None:
    """What MLflow would start beside itself."""
    os.environ.update(extra_env)
    sys.argv = command[command.index("uvicorn") :]
    uvicorn.main()


mlflow.server._exec_cmd = here
cli()
