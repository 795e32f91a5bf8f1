"""What a killed run left: completed where its journal is whole, and removed where it is not."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.errors import WriteError, trouble_with

try:
    import fcntl
except ImportError:  # Windows: whether a process is alive is not known, so what it only began is left alone
    fcntl = None  # type: ignore[assignment]

PREFIX, JOURNAL = ".sfumato-", ".journal"


#: The journals of this process; on some network drives its own locks would not keep it from them.
OWN: set[Path] = set()


def settle(folder: Path) -> None:
    """Complete what a killed process had decided to write into a folder; remove what it had only begun."""
    for path in sorted(set(folder.glob(f"{PREFIX}*{JOURNAL}")) - OWN):
        with _has_writer_ended(path) as ended:
            home = folder / _read_journal(path).get("home", path.name)
            decided = _read_journal(home)
            if "moves" in decided:  # by whomever it is carried out, and how often, it comes to the same
                end_journal(home, decided)
            elif ended:
                end_journal(path, {})


def end_journal(journal: Path, decided: Mapping[str, Any]) -> None:
    """Carry out what a journal has decided, and remove what else was staged and the journal itself."""
    folder = journal.parent
    try:
        for temporary, place in decided.get("moves", ()):
            with suppress(FileNotFoundError):  # it has its name already
                (folder / temporary).replace(folder / place)
        for place in decided.get("removals", ()):
            (folder / place).unlink(missing_ok=True)
        for new, place, old in decided.get("folders", ()):
            if (folder / new).exists():  # else it has its name already
                if not (folder / old).exists():
                    (folder / place).rename(folder / old)
                (folder / new).rename(folder / place)
        journals = [*(folder / other for other in decided.get("journals", ())), journal]
        for each in journals if decided else ():
            sync_names(each.parent)
        for each in journals:
            for leftover in each.parent.glob(f"{each.stem}-*.tmp"):
                _remove(leftover)
            each.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot rename all new files in `{folder}`: {trouble_with(error)}",
            hint="some may have their names; the next run that can write there renames the others",
        ) from None


def _remove(leftover: Path) -> None:
    """Remove a file that waited in vain, or a folder that did or that another has taken the place of."""
    if leftover.is_dir():
        with suppress(FileNotFoundError):  # another process is at it too
            shutil.rmtree(leftover)
    else:
        leftover.unlink(missing_ok=True)


def _read_journal(journal: Path) -> dict[str, Any]:
    """What a journal says; nothing if it is gone or was not finished."""
    try:
        entry: dict[str, Any] = json.loads(journal.read_bytes()) if _is_mine(journal) else {}
    except (OSError, ValueError):
        return {}
    return entry


def _is_mine(path: Path) -> bool:
    """Whether this person wrote a file: a journal that another puts into a shared folder may say anything."""
    return not hasattr(os, "geteuid") or path.lstat().st_uid == os.geteuid()


def path_in_journal(path: Path, journal: Path) -> str:
    """A path as a journal says it: in its own folder by the name alone."""
    return path.name if path.parent == journal.parent else str(path)


@contextmanager
def alone_in(folders: Sequence[Path]) -> Iterator[None]:
    """Let other processes that write into these folders wait; on a drive without locks they do not."""
    with ExitStack() as stack:
        for folder in folders if fcntl is not None else ():
            with suppress(OSError):
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _has_writer_ended(journal: Path) -> Iterator[bool]:
    """Whether the process that wrote a journal has surely ended, and no other takes it over meanwhile."""
    try:
        file = journal.open("r+b")
    except OSError:  # gone meanwhile, or another person's
        yield False
        return
    with file:
        try:
            alone = fcntl is not None and _is_mine(journal)
            if alone:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # it is alive, or the drive has no locks
            alone = False
        yield alone and _is_at(file, journal)


def hold(file: BinaryIO, path: Path) -> bool:
    """Lock a journal for as long as its writer lives; false if another process took it for a leftover."""
    if fcntl is not None:
        with suppress(OSError):  # on a drive without locks
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    return _is_at(file, path)


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def write_through(file: BinaryIO, entry: Mapping[str, Any]) -> None:
    """Write what a journal says, so that it is on the disk before anything else happens."""
    content = json.dumps(entry).encode()
    if file.write(content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(file.fileno())
    sync_names(Path(file.name).parent)


def sync_names(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
