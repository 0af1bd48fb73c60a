"""The digests of specs, for all kinds of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(spec: Mapping[str, Any]) -> str:
    """A hash of plain JSON values that doesn't depend on the order of keys."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


def key_of(label: str, digest: str) -> str:
    """A run's key, unique by itself: what a person looks for, and eight digits of its digest."""
    return f"{label}-{digest[:8]}"
