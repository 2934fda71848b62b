"""Where the process begins and ends. Imports nothing that takes time, so that Ctrl-C is heard from the start."""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main() -> None:
    """Run the command line of this process and exit."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        from maps_rag.cli.app import app

        app()
    except SystemExit as stop:
        if stop.code != INTERRUPTED:
            raise
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
    sys.stdout.flush()
    sys.stderr.flush()
    # A model call under way in another thread cannot be interrupted, and a normal exit would wait for it.
    os._exit(INTERRUPTED)
