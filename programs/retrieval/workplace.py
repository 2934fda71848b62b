"""Where a build works, how the result gets to its place, and what a full disk looks like."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import numpy as np
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.encoders import Vectors

LOCK = "lock"
# What becomes the index directory, and what a later run can go on from.
RESULT = "index"
VECTORS = "vectors"


@contextmanager
def workplace(target: Path) -> Iterator[Path]:
    """Give ``.NAME.building`` beside a place, for this process alone; its ``index`` becomes the place in the end.

    It goes away with that. After an error or an interrupt it stays only if there are encoded vectors in it.

    :raises UserError: the place is taken, another process builds it, or the disk is full or cannot be written.
    """
    scratch = target.parent / f".{target.name}.building"
    with _disk_errors(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(scratch / LOCK)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise UserError(f"another process is building {target}; wait for it or choose another directory") from None
        try:
            refuse_taken(target)
            (scratch / RESULT).mkdir(exist_ok=True)
            yield scratch
            _publish(scratch / RESULT, target)
        finally:
            # Without a result it was published, just now or by a run that was killed right after.
            if not ((scratch / RESULT).is_dir() and any((scratch / VECTORS).glob("*.npy"))):
                shutil.rmtree(scratch, ignore_errors=True)
            lock.release()


def refuse_taken(target: Path) -> None:
    """Raise if a directory cannot become an index.

    :raises UserError: it exists and is not an empty directory.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{target} exists and is not empty; remove it or give --out another directory")


def _publish(result: Path, target: Path) -> None:
    try:
        result.replace(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        refuse_taken(target)
        raise


@contextmanager
def _disk_errors(scratch: Path) -> Iterator[None]:
    """Turn a full disk and a place that cannot be written into one line."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        full = (errno.ENOSPC, errno.EDQUOT)
        # FAISS reports a failed write as a RuntimeError with the system's words.
        words = [os.strerror(number) for number in full]
        if getattr(error, "errno", None) in full or any(word in str(error) for word in words):
            raise UserError(
                f"the disk is full while building in {scratch}; free some space and give the same command again: "
                "it goes on from there"
            ) from error
        if isinstance(error, PermissionError | NotADirectoryError):
            raise UserError(
                f"cannot write to {scratch.parent}: {error.strerror}; give --out another directory"
            ) from error
        raise


def write_array(path: Path, vectors: Vectors) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, vectors)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def write_synced(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
