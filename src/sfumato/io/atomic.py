"""Files appear whole or not at all, and an original is never overwritten.

What is written goes to a temporary file in the same folder, which then takes the place of the old one in a
single step: a run that fails or is stopped leaves either the old file or the new one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sfumato.errors import WriteError


def check_writable(
    path: str | Path, *, originals: Sequence[str | Path] = (), overwrite: bool = False
) -> None:
    """Raise now what writing would raise later: a long run should not end in front of a locked door."""
    asked = Path(path)
    place = Path(os.path.realpath(asked))
    temporary = place.with_name(f".sfumato-{secrets.token_hex(8)}.tmp")
    try:
        _require_free(asked, place, originals, overwrite=overwrite)
        _open_new(temporary, asked).close()
    except OSError as error:
        raise _cannot_write(asked, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def replacing(
    path: str | Path,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
    private: bool = False,
) -> Iterator[BinaryIO]:
    """Open a file that takes its name when the block ends well, and vanishes when it does not.

    Parameters
    ----------
    path
        Where the file shall stand. A symbolic link is followed.
    originals
        Files that must not be written, under whatever name they are met.
    overwrite
        Whether a file that is there already may be replaced.
    private
        Whether only its owner may read it.
    """
    asked = Path(path)
    place = Path(os.path.realpath(asked))
    temporary = place.with_name(f".sfumato-{secrets.token_hex(8)}.tmp")
    try:
        _require_free(asked, place, originals, overwrite=overwrite)
        with _open_new(temporary, asked) as file:
            if private:
                os.fchmod(file.fileno(), 0o600)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:
            _keep_mode(temporary, place)
        _require_free(asked, place, originals, overwrite=overwrite)  # it may have come to be meanwhile
        temporary.replace(place)
    except OSError as error:
        raise _cannot_write(asked, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_bytes(
    path: str | Path, content: bytes, *, originals: Sequence[str | Path] = (), overwrite: bool = False
) -> None:
    """Write a whole file at once (see `replacing`)."""
    with replacing(path, originals=originals, overwrite=overwrite) as file:
        file.write(content)


def write_text(
    path: str | Path,
    text: str,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
    private: bool = False,
) -> None:
    """Write a whole text file at once, in UTF-8 (see `replacing`)."""
    with replacing(path, originals=originals, overwrite=overwrite, private=private) as file:
        file.write(text.encode())


def _require_free(asked: Path, place: Path, originals: Sequence[str | Path], *, overwrite: bool) -> None:
    if not place.exists():
        return
    if place.is_dir():
        raise WriteError(f"`{asked}` must be the name of a file, got: a folder", hint="add a file name")
    for original in originals:
        if Path(original).exists() and place.samefile(original):
            raise WriteError(
                f"`{asked}` must not be an original, got: the same file as `{original}`",
                hint="an original is never overwritten: choose another name",
            )
    if not overwrite:
        raise WriteError(
            f"`{asked}` must not exist yet, got: a file that does",
            hint="choose another name, or allow it to be overwritten",
        )


def _open_new(temporary: Path, asked: Path) -> BinaryIO:
    try:
        return temporary.open("xb")
    except FileNotFoundError:
        if temporary.parent.is_dir():  # a folder that takes no files, such as /proc
            raise WriteError(
                f"`{asked}` must be a file that can be written, got: a folder that takes no files",
                hint="choose a folder in which you may write",
            ) from None
        raise WriteError(
            f"the folder of `{asked}` must exist, got: `{temporary.parent}`, which does not",
            hint=f"create it first: mkdir -p '{temporary.parent}'",
        ) from None
    except NotADirectoryError:
        raise WriteError(f"the folder of `{asked}` must be a folder, got: a file") from None


def _keep_mode(temporary: Path, place: Path) -> None:
    """Give the new file the permissions of the one it replaces."""
    try:
        temporary.chmod(place.stat().st_mode & 0o777)
    except FileNotFoundError:
        return


def _cannot_write(asked: Path, error: OSError) -> WriteError:
    reason = error.strerror or type(error).__name__
    hint = "is there space, and may you write there?"
    if isinstance(error, PermissionError):
        hint = "choose a folder in which you may write"
    return WriteError(f"`{asked}` must be a file that can be written, got: {reason.lower()}", hint=hint)
