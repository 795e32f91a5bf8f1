"""Work that travels to another process: its data in a file of the scratch folder, its secrets in the message.

A file may be read by whoever administers the disk, and may outlive a machine that fails. So keys of chance
are no part of it: they are numbered where they stand, and go with the task, over an encrypted connection.
"""

from __future__ import annotations

import io
import os
import pickle
import secrets
import weakref
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from sfumato.data.table import Table
from sfumato.errors import WriteError

#: Tables that lie in files of their own, so that many parcels about one do not each hold it.
Tables: TypeAlias = MutableMapping[Table, str]
#: So many of them a worker keeps open.
_TABLES_OPEN = 4


class StaysHereError(Exception):
    """Work needs what never travels, such as the seed."""


class Secret(bytes):
    """Bytes that travel in messages and never lie in a file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True)
class Parcel:
    """Something in a file, and the secrets that belong into it."""

    path: str
    secrets: tuple[bytes, ...] = field(default=(), repr=False)

    @classmethod
    def pack(cls, what: Any, folder: Path, tables: Tables | None = None) -> Parcel:
        """Write something to a new file of the folder, its secrets apart; so are ``tables`` if wanted."""
        content = io.BytesIO()
        pickler = _Pickler(content, folder, tables)
        pickler.dump(what)
        path = folder / f"{secrets.token_hex(16)}.parcel"
        beside = path.with_suffix(".part")
        try:
            with os.fdopen(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(content.getbuffer())
            beside.replace(path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise WriteError(
                "The scratch folder is full or cannot be written to.",
                hint="name one with more room, `--scratch DIR`",
            ) from None
        return cls(str(path), tuple(pickler.secrets))

    def open(self) -> Any:
        """What was packed."""
        with Path(self.path).open("rb") as file:
            return _Unpickler(file, self.secrets).load()

    def remove(self) -> None:
        """Remove its file."""
        Path(self.path).unlink(missing_ok=True)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, folder: Path, tables: Tables | None) -> None:
        super().__init__(file, protocol=5)
        self.secrets: list[bytes] = []
        self._folder, self._tables = folder, tables

    def persistent_id(self, obj: Any) -> int | str | None:
        if isinstance(obj, Table) and self._tables is not None:
            return self._path_of(obj, self._tables)
        if not isinstance(obj, Secret):
            return None
        self.secrets.append(bytes(obj))
        return len(self.secrets) - 1

    def _path_of(self, table: Table, tables: Tables) -> str:
        """Where a table lies for all parcels, as long as somebody holds it."""
        if table not in tables:
            parcel = Parcel.pack(table, self._folder)
            tables[table] = parcel.path
            weakref.finalize(table, parcel.remove)
        return tables[table]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, in_message: Sequence[bytes]) -> None:
        super().__init__(file)
        self._in_message = in_message

    def persistent_load(self, pid: int | str) -> Any:
        return _table_at(pid) if isinstance(pid, str) else Secret(self._in_message[pid])


@lru_cache(maxsize=_TABLES_OPEN)
def _table_at(path: str) -> Table:
    """A table that several parcels are about: what is found out about it serves them all."""
    table: Table = Parcel(path).open()
    return replace(table)  # so that its large columns lie in files here too
