"""Files appear together and whole or not at all, and an original is never overwritten.

What is written goes to temporary files beside their places. When all are there, a journal says which of them
becomes what; then they take their names. A process that is killed before its journal is complete leaves the
old files; one that is killed later leaves a journal that the next one to write into the folder carries out.
A whole folder is staged likewise, and takes its name by one rename, or by exchanging names with the old one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from sfumato.errors import WriteError, trouble_with
from sfumato.io.folder_exchange import exchange
from sfumato.io.journal import (
    JOURNAL,
    OWN,
    PREFIX,
    alone_in,
    end_journal,
    hold,
    path_in_journal,
    settle,
    sync_names,
    write_through,
)

_PROBE_BYTES = 2**16


class _Staged(NamedTuple):
    """A file that waits for its name."""

    asked: Path
    temporary: Path
    private: bool
    replaces: bool


class _StagedFolder(NamedTuple):
    """A folder that waits for its name, and who may look into it then."""

    temporary: Path
    mode: int

    def takes(self, place: Path, *, overwrite: bool) -> bool:
        """Take the name in one instant; False where that needs two, and nothing was done."""
        try:
            self.temporary.chmod(self.mode)
            vacant = not place.exists() or (place.is_dir() and not any(place.iterdir()))
            if not vacant and not overwrite:
                raise WriteError(f"the folder `{place}` exists already")
            if vacant and os.name == "nt" and place.is_dir():  # there a folder takes no name that is in use
                place.rmdir()
            done = bool(self.temporary.rename(place)) if vacant else exchange(self.temporary, place)
            sync_names(place.parent)
        except OSError as error:
            raise _cannot_write(place, error) from None
        return done

    def moves(self, place: Path, journal: Path) -> list[str]:
        """What a journal says of a name that takes two instants: what goes where, and what was there."""
        aside = self.temporary.with_name(f"{self.temporary.stem}-old.tmp")
        return [path_in_journal(path, journal) for path in (self.temporary, place, aside)]


class Staging:
    """Files that take their names together when the block ends well, and vanish when it does not.

    Parameters
    ----------
    originals
        Files that must not be written, under whatever name they are met.
    overwrite
        Whether files that are there already may be replaced.
    """

    def __init__(self, *, originals: Sequence[str | Path] = (), overwrite: bool = False) -> None:
        self.originals, self.overwrite = tuple(originals), overwrite
        # One in each folder, open and locked while this process lives; the first decides.
        self._journals: dict[Path, BinaryIO] = {}
        self._staged: dict[Path, _Staged] = {}
        self._grown: dict[Path, Callable[[], str]] = {}
        self._removed: list[Path] = []
        self._tables: list[Callable[[], None]] = []
        self._folders: dict[Path, _StagedFolder] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            self.discard()

    @contextmanager
    def open(
        self, path: str | Path, *, private: bool = False, replaces: bool | None = None
    ) -> Iterator[BinaryIO]:
        """Open a file that is to stand at ``path``, where a symbolic link is followed.

        One that is ``private`` only its owner can read, from the first byte on. Whether it ``replaces`` a
        file that is there already is said for all of them, or for this one.
        """
        asked, place = Path(path), Path(os.path.realpath(path))
        replaces = self.overwrite if replaces is None else replaces
        try:
            settle(place.parent)
            self._require_free(asked, place, replaces=replaces)
            if place in self._staged:
                raise WriteError(f"two files would be written to `{asked}`", hint="give each its own name")
            journal = self._journal_in(place.parent, asked)
            temporary = journal.with_name(f"{journal.stem}-{secrets.token_hex(4)}.tmp")
            with _open_new(temporary, asked, private=private or place.exists()) as file:
                try:
                    yield file
                except (OSError, WriteError):
                    _require_space(temporary)
                    raise
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _cannot_write(asked, error) from None
        self._staged[place] = _Staged(asked, temporary, private, replaces)

    def write_text(
        self, path: str | Path, text: str, *, private: bool = False, replaces: bool | None = None
    ) -> None:
        """Stage a whole text file, in UTF-8."""
        with self.open(path, private=private, replaces=replaces) as file:
            file.write(text.encode())

    def grow(self, path: str | Path, text: Callable[[], str]) -> None:
        """Stage a private file that has all that is there already, and more.

        ``text`` reads the one and adds the other. It is asked again when no other process can write there:
        what another added meanwhile is kept.
        """
        self.write_text(path, text(), private=True, replaces=True)
        self._grown[Path(os.path.realpath(path))] = text

    def remove(self, path: Path) -> None:
        """Let a file go when the others take their names."""
        self._removed.append(Path(os.path.realpath(path)))

    def folder(self, place: Path) -> Path:
        """Make a folder beside ``place`` that is to stand there, with all that will be in it by then.

        Only its owner can look into it as long as it waits. What is at the place goes when it takes its name.
        """
        try:
            settle(place.parent)
            journal = self._journal_in(place.parent, place)
            temporary = journal.with_name(f"{journal.stem}-{secrets.token_hex(4)}.tmp")
            temporary.mkdir()
            mode = (place if place.is_dir() else temporary).stat().st_mode & 0o777
            temporary.chmod(0o700)
        except OSError as error:
            raise _cannot_write(place, error) from None
        self._folders[place] = _StagedFolder(temporary, mode)
        return temporary

    def finally_store(self, store: Callable[[], None]) -> None:
        """Store a table in a database, once all files are staged and before they take their names.

        A table has no name that could be taken later: a process killed at that very moment leaves it without
        its files.
        """
        self._tables.append(store)

    def staged_files(self) -> dict[Path, Path]:
        """Where each staged file goes, as it was asked for, and where it waits."""
        return {staged.asked: staged.temporary for staged in self._staged.values()}

    def discard(self) -> None:
        """Remove what is still staged."""
        for path, file in self._journals.items():
            with suppress(OSError), file:
                file.truncate(0)  # nothing is decided any more
            with suppress(WriteError):
                end_journal(path, {})
        self._release()

    def _commit(self) -> None:
        self._require_all_free()
        for store in self._tables:
            store()
        with alone_in(sorted(path.parent for path in self._journals)):
            self._grow_again()
            self._require_all_free()  # another process may have written by now
            self._take_names()

    def _require_all_free(self) -> None:
        for place, staged in self._staged.items():
            try:
                self._require_free(staged.asked, place, replaces=staged.replaces)
                if not staged.private and place.exists():
                    staged.temporary.chmod(place.stat().st_mode & 0o777)
            except OSError as error:
                raise _cannot_write(staged.asked, error) from None

    def _grow_again(self) -> None:
        for place, text in self._grown.items():
            staged, content = self._staged[place], text().encode()
            try:
                if content != staged.temporary.read_bytes():
                    with staged.temporary.open("wb") as file:
                        file.write(content)
                        file.flush()
                        os.fsync(file.fileno())
            except OSError as error:
                raise _cannot_write(staged.asked, error) from None

    def _take_names(self) -> None:
        if not self._journals:
            return
        home, *others = self._journals
        folders = [
            new.moves(place, home)
            for place, new in self._folders.items()
            if not new.takes(place, overwrite=self.overwrite)
        ]
        if not (folders or self._staged or self._removed):
            return  # all is done; what a folder took the place of is discarded
        decided = {
            "folders": folders,
            "moves": [
                [path_in_journal(staged.temporary, home), path_in_journal(place, home)]
                for place, staged in self._staged.items()
            ],
            "removals": [path_in_journal(place, home) for place in self._removed],
            "journals": [path_in_journal(path, home) for path in others],
        }
        try:
            for path in others:
                sync_names(path.parent)
            write_through(self._journals[home], decided)
        except OSError as error:
            raise _cannot_write(next(iter(self._staged.values())).asked, error) from None
        self._release()  # from here on nothing is taken back
        end_journal(home, decided)

    def _release(self) -> None:
        for file in self._journals.values():
            file.close()
        OWN.difference_update(self._journals)
        self._journals = {}

    def _journal_in(self, folder: Path, asked: Path) -> Path:
        """The journal by which others see that a process is at work in a folder."""
        for path in self._journals:
            if path.parent == folder:
                return path
        if not is_text(folder / asked.name):
            raise WriteError(
                f"cannot write `{asked.name}`: its name or that of its folder is not text in UTF-8",
                hint="rename the folder, or choose another",
            )
        while True:
            path = folder / f"{PREFIX}{secrets.token_hex(8)}{JOURNAL}"
            file = _open_new(path, asked, private=True, buffering=0)
            if hold(file, path):
                break
            file.close()  # another process took it for a leftover
        self._journals[path] = file
        OWN.add(path)
        home = next(iter(self._journals))
        if path != home:
            write_through(file, {"home": str(home)})
        return path

    def original_at(self, place: Path) -> str | Path | None:
        """The original that a file is, under whatever name."""
        return next((each for each in self.originals if Path(each).exists() and place.samefile(each)), None)

    def _require_free(self, asked: Path, place: Path, *, replaces: bool) -> None:
        if not place.exists():
            return
        if place.is_dir():
            raise WriteError(f"`{asked}` is a folder, not a file", hint="add a file name")
        original = self.original_at(place)
        if original is not None:
            raise WriteError(
                f"`{asked}` is the same file as the original `{original}`",
                hint="an original is never overwritten: choose another name",
            )
        if not replaces:
            raise WriteError(
                f"`{asked}` exists already",
                hint="choose another name, or replace it: --overwrite (in Python overwrite=True)",
            )


def is_text(path: Path) -> bool:
    """Whether a path can be said as text: the system takes any bytes, polars and a plan do not."""
    try:
        return bool(str(path).encode())
    except UnicodeEncodeError:
        return False


def check_writable(
    path: str | Path, *, originals: Sequence[str | Path] = (), overwrite: bool = False
) -> None:
    """Raise now what writing would raise later: a long run should not end in front of a locked door."""
    staging = Staging(originals=originals, overwrite=overwrite)
    try:
        with staging.open(path):
            pass
    finally:
        staging.discard()


def write_text(
    path: str | Path,
    text: str,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
    private: bool = False,
) -> None:
    """Write a whole text file at once, in UTF-8 (see `Staging`)."""
    with Staging(originals=originals, overwrite=overwrite) as staging:
        staging.write_text(path, text, private=private)


def _open_new(path: Path, asked: Path, *, private: bool, buffering: int = -1) -> BinaryIO:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if private else 0o666)

    try:
        return open(path, "x+b", buffering, opener=opener)
    except FileNotFoundError:
        if path.parent.is_dir():  # a folder that takes no files, such as /proc
            raise WriteError(
                f"cannot write `{asked}`: its folder accepts no files",
                hint="choose a folder in which you may write",
            ) from None
        raise WriteError(
            f"cannot write `{asked}`: there is no folder `{path.parent}`",
            hint=f"create it first: mkdir -p '{path.parent}'",
        ) from None
    except NotADirectoryError:
        raise WriteError(f"cannot write `{asked}`: `{path.parent}` is a file, not a folder") from None


def _require_space(temporary: Path) -> None:
    """Raise what the system says of a file that cannot grow: who writes a format blames the records."""
    with temporary.open("ab", buffering=0) as file:
        for _ in range(2):  # the first may write less than it was given, without a word
            file.write(bytes(_PROBE_BYTES))


def _cannot_write(asked: Path, error: OSError) -> WriteError:
    asked = Path(asked.name) if PREFIX in str(asked) else asked  # in a folder that waits for its name
    hint = "is there space, and may you write there?"
    if isinstance(error, PermissionError):
        hint = "choose a folder in which you may write"
    return WriteError(f"cannot write `{asked}`: {trouble_with(error)}", hint=hint)
