"""A folder for files that are dropped on the page: it goes with the server, or with the next one."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks: what a kill leaves there is for its owner to remove
    fcntl = None  # type: ignore[assignment]

#: What the names of such folders begin with; hidden, and below the folder that is served.
WORKING_PREFIX = ".sfumato-web-"


class WorkingFolder:
    """A folder that only its owner can look into: made when first needed, and locked while it is used."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, -1
        self._place = folder

    def open(self) -> Path:
        """The folder."""
        while self._lock < 0 or not self._place.is_dir():
            self._place = self._folder / f"{WORKING_PREFIX}{secrets.token_hex(4)}"
            self._place.mkdir(mode=0o700)
            self._lock = os.open(self._place, os.O_RDONLY)
            _is_locked_by_us(self._lock)
        return self._place

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        if self._lock >= 0:
            shutil.rmtree(self._place, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_leftovers(folder: Path) -> None:
    """Remove the working folders whose server was killed; one that is alive has locked its own."""
    for place in folder.glob(f"{WORKING_PREFIX}*"):
        if place.is_symlink() or not place.is_dir():
            continue
        with suppress(OSError):  # gone meanwhile, or another person's
            lock = os.open(place, os.O_RDONLY)
            try:
                if _is_locked_by_us(lock):
                    shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(lock)


def _is_locked_by_us(lock: int) -> bool:
    """Lock an open folder, unless another process has."""
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return fcntl is not None
