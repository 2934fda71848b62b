"""A real browser, where there is one: what a page looks like after its script has run."""

import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def dump_dom(page, folder, fragment=""):
    """Open a file in headless Chromium and return its document as HTML; skip where there is no Chromium."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: install one of {', '.join(NAMES)}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--dump-dom"]
    command = [program, *options, f"--user-data-dir={folder / 'profile'}", f"{page.as_uri()}{fragment}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout
