"""The command line: ``maps-rag``."""

from maps_rag.cli.entry import main

__all__ = ["main"]
