"""Cut the secrets of a tracking server out of everything that is printed. Light: no mlflow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

URI_VARIABLE = "MLFLOW_TRACKING_URI"
SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")  # environment variables


def redact(text: str, uri: str = "") -> str:
    """The text without user information and queries of URIs, and without MLflow's credentials.

    Args:
        uri: tracking URI in use; its password is cut out wherever it stands.
    """
    secrets = [os.environ.get(name, "") for name in SECRETS]
    secrets += [*_secrets_of(uri), *_secrets_of(os.environ.get(URI_VARIABLE, ""))]
    for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
        if secret:
            text = text.replace(secret, "***")
    text = re.sub(r"(\w://)\S*@", r"\1***@", text)
    return re.sub(r"(\w://[^\s'\"?]*)\?[^\s'\"]*", r"\1?***", text)


def _secrets_of(uri: str) -> Iterator[str]:
    """The user information of a URI and its password, as written and decoded, also where the scheme is missing."""
    if uri.startswith("sqlite"):
        return  # a path may have an @ in it
    user_information = uri.rpartition("://")[2].lstrip("/").rpartition("@")[0]
    password = user_information.partition(":")[2]
    yield from (user_information, password, unquote(password))
