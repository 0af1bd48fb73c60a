"""The importer of run records into MLflow: the one writer of the tracking store.

Only the modules of this package import mlflow, and the settings below hold for every one of them: MLflow
must not phone home, and must not retry silently for minutes, because `command.patiently` reports its waiting.
"""

import os

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # seconds; slow servers take 30 for an answer
