"""The command line: ``maps-rag``."""

from maps_rag.cli.app import app, main

__all__ = ["app", "main"]
