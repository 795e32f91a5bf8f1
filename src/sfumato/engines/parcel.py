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

import polars as pl

from sfumato.data.column_store import active_store
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
    def pack(
        cls, what: Any, folder: Path, tables: Tables | None = None, columns: list[Path] | None = None
    ) -> Parcel:
        """Write something to a new file of the folder, its secrets apart.

        So are ``tables``, if wanted, and large ``columns``, whose files are then listed.
        """
        content = io.BytesIO()
        pickler = _Pickler(content, folder, tables, columns)
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
    def __init__(
        self, file: io.BytesIO, folder: Path, tables: Tables | None, columns: list[Path] | None
    ) -> None:
        super().__init__(file, protocol=5)
        self.secrets: list[bytes] = []
        self._folder, self._tables, self._columns = folder, tables, columns

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
            columns = list[Path]()
            parcel = Parcel.pack(table, self._folder, columns=columns)
            tables[table] = parcel.path
            weakref.finalize(table, _remove, [Path(parcel.path), *columns])
        return tables[table]

    def reducer_override(self, obj: Any) -> Any:
        """Let a large column be mapped where it arrives: it is never in memory as a whole."""
        store = active_store()
        if self._columns is None or store is None:
            return NotImplemented
        if isinstance(obj, pl.DataFrame) and store.is_large(obj.height):
            return pl.DataFrame, (obj.get_columns(),)
        if not isinstance(obj, pl.Series):
            return NotImplemented
        if isinstance(obj.dtype, pl.Enum):
            return _with_categories, (obj.to_physical(), obj.dtype)
        if not store.may_keep(obj):
            return NotImplemented
        self._columns.append(store.write_column(obj))
        return _column_at, (str(self._columns[-1]), obj.name)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _with_categories(codes: pl.Series, dtype: pl.Enum) -> pl.Series:
    return codes.cat.to(dtype)


def _column_at(path: str, name: str) -> pl.Series:
    store = active_store()
    column = pl.read_ipc(path).to_series() if store is None else store.open_column(Path(path))
    return column.alias(name)


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
