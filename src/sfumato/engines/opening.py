"""Opens an engine by the words that name it: ``memory``, ``stream``, ``local:2``, ``tls://host:8786``."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sfumato.data.column_store import ColumnStore
from sfumato.engines.interface import Engine, active
from sfumato.engines.memory import MemoryEngine
from sfumato.engines.stream import StreamEngine
from sfumato.errors import ParameterError

ENGINES = "memory, stream, local, local:N or tls://HOST:PORT"
_UNITS = {
    "": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
#: How a scratch folder of ours is called, with the number of the process that made it.
_PREFIX = "sfumato-scratch-"


def bytes_of(text: str) -> int:
    """The bytes that a text such as ``4GB`` means."""
    found = _AMOUNT.fullmatch(text)
    if found is None or found[2].lower() not in _UNITS or not float(found[1]):
        raise ParameterError(f"`memory` must be an amount such as 4GB or 500MB, got: `{text}`")
    return int(float(found[1]) * _UNITS[found[2].lower()])


@contextmanager
def engine(
    name: str = "stream", *, memory: str | int | None = None, scratch: str | Path | None = None
) -> Iterator[Engine]:
    """Let everything within work on an engine; each gives the same bytes and the same scores.

    Parameters
    ----------
    name
        ``memory``: in this process. ``stream``: large columns lie in files of the scratch folder, for tables
        beyond the memory. ``local:2``: besides, work on two processes of this machine. ``tls://host:8786``:
        on the workers of a dask scheduler, which see the same scratch folder.
    memory
        What the process may hold beside files, such as ``"4GB"``; work that needs more ends with a sentence.
    scratch
        A folder with room for the table and what becomes of it; by default the system's for such files. All
        that is written there is removed.

    Examples
    --------
    >>> import sfumato
    >>> with sfumato.engine("stream", memory="4GB"):
    ...     score = sfumato.assess("builtin:fair", None, ["uniqueness"])
    """
    limit = bytes_of(memory) if isinstance(memory, str) else memory
    if name == "memory":
        if limit is not None or scratch is not None:
            raise ParameterError(
                "The engine `memory` takes neither a limit nor a scratch folder.", hint="use `stream`"
            )
        with active(MemoryEngine()) as chosen:
            yield chosen
        return
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(scratch))
        if name == "stream":
            made: Engine = StreamEngine(memory=limit)
        elif name.startswith(("local", "tls://")):
            from sfumato.engines.cluster import connect

            made = stack.enter_context(connect(name, folder, limit))
        else:
            raise ParameterError(f"There is no engine `{name}`.", hint=f"use {ENGINES}")
        stack.enter_context(ColumnStore(folder, memory=limit).active())
        yield stack.enter_context(active(made))


@contextmanager
def scratch_folder(parent: str | Path | None) -> Iterator[Path]:
    """A folder that nobody else can read, removed at the end; what a kill left there goes first."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    if not place.is_dir():
        raise ParameterError(f"The scratch folder does not exist: {place}", hint="make it, or name another")
    _remove_remains(place)
    made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _remove_remains(place: Path) -> None:
    """Remove scratch folders of processes of ours that have ended without doing so."""
    for each in place.glob(f"{_PREFIX}*-*"):
        number = each.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdecimal() and not Path(f"/proc/{number}").exists() and each.stat().st_uid == os.getuid():
            shutil.rmtree(each, ignore_errors=True)
