"""How the specs of all kinds of runs are named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(spec: Mapping[str, Any]) -> str:
    """A hash of plain JSON values, whatever their order."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
