"""The importer of run records into MLflow: the one writer of the tracking store.

Only the modules of this package import mlflow, and the settings below hold for every one of them: MLflow
must not phone home, and it must not retry for minutes in silence, because `waiting.patiently` waits aloud.
"""

import os

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")  # seconds; a slow server may take 30 an answer
