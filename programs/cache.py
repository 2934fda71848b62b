"""Where files that are made once per machine lie: weights, converted encoders, the demo's index."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the cache folder: ``$MAPS_RAG_CACHE``, else ``maps-rag`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    if given := os.environ.get("MAPS_RAG_CACHE"):
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "maps-rag"
