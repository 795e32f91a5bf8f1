"""Columns past the memory: a large one lies in a file of a scratch folder that is mapped into memory.

Tables stay what they are, polars frames, and so does every answer: the same code reads a mapped column as it
reads one in memory, and the system takes its pages back when others need them. What takes memory is then the
work on a column, never the table. A file is removed from its folder as soon as it is mapped: the disk is free
again once no table holds the column, and no end of the process, however sudden, leaves anything behind.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import secrets
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato import kernels
from sfumato.data.column_pieces import PIECEWISE, ColumnPieces
from sfumato.errors import MissingDependencyError, WriteError

#: Columns of fewer records stay in memory, unless a test wants many small files.
_MIN_RECORDS = 2**18
#: Bytes of a record in an array of numbers, and of the smallest array that is ever put into a file.
_BYTES, _MIN_BYTES = 8, 2**14
#: Of a limit of memory, the part that one array may take: about a hundred are held at a time.
_PART_OF_LIMIT = 2**8
#: Records of a column that are written at a time.
_PIECE = 2**20
#: Decimals are copied when they are mapped, and flags are small: nothing is gained.
_IN_MEMORY = (pl.Decimal, pl.Object, pl.Null, pl.Boolean)


class ColumnStore:
    """A scratch folder for large columns; ``with store.active():`` tables keep theirs there.

    Arrays that are small beside a limit of ``memory`` stay in it: a page of a file costs far more to make.
    """

    def __init__(self, folder: Path, *, min_records: int = _MIN_RECORDS, memory: int | None = None) -> None:
        self._arrow = _pyarrow()
        self._folder, self._min_records = folder, min_records
        self._min_bytes = max(_BYTES * min_records, _MIN_BYTES, (memory or 0) // _PART_OF_LIMIT)
        self._starts: list[int] = []  # of what is mapped, in ascending order
        self._ends: dict[int, int] = {}

    @contextmanager
    def active(self) -> Iterator[ColumnStore]:
        """Let the tables that are made here keep their large columns in files, and so large arrays."""
        token = _ACTIVE.set(self)
        try:
            with self._arrays_in_file():
                yield self
        except MemoryError:
            raise _full() from None
        finally:
            _ACTIVE.reset(token)

    def _arrays_in_file(self) -> AbstractContextManager[None]:
        """Large arrays of numpy lie in a file too, where the system can do it."""
        if sys.platform != "linux":
            return nullcontext()
        with tempfile.TemporaryFile(dir=self._folder) as file:
            kept_open = os.dup(file.fileno())
        made: AbstractContextManager[None]
        made = kernels.allocation.arrays_in_file(kept_open, min_bytes=self._min_bytes)
        return made

    def is_large(self, n: int) -> bool:
        """Whether columns of so many records lie in files."""
        return n >= self._min_records

    def may_keep(self, series: pl.Series) -> bool:
        """Whether a column is large, and of a type that a file can be mapped as."""
        return self.is_large(len(series)) and series.dtype not in _IN_MEMORY

    def keep(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same frame with its large columns in files; those that are there already stay as they are."""
        if not self.is_large(frame.height):
            return frame
        return pl.DataFrame([self.keep_column(frame[name]) for name in frame.columns])

    def keep_column(self, series: pl.Series) -> pl.Series:
        """The same column, in a file; of categories their codes."""
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            codes = series.to_physical()
            kept = self.keep_column(codes)
            return series if kept is codes else kept.cat.to(series.dtype)
        if not self.may_keep(series) or self._has(series):
            return series
        if series.dtype in PIECEWISE:
            starts = range(0, max(len(series), 1), _PIECE)
            return self.join_pieces(series.slice(start, _PIECE) for start in starts).alias(series.name)
        path = self.write_column(series)
        kept = self.open_column(path).alias(series.name)
        path.unlink()
        return kept

    def write_column(self, series: pl.Series) -> Path:
        """Write a column into a file of the folder, as one batch: it is one piece when it is opened."""
        path = self._new_path()
        try:
            with _create(path) as file:
                series.alias("").to_frame().write_ipc(file, record_batch_size=max(len(series), 1))
        except (OSError, pl.exceptions.PolarsError):
            path.unlink(missing_ok=True)
            raise _full() from None
        return path

    def open_column(self, path: Path) -> pl.Series:
        """The column that somebody wrote into a file, which stays there; it is mapped into memory."""
        rows = self._arrow.ipc.open_file(self._arrow.BufferReader(self._map(path))).read_all()
        frame = pl.from_arrow(rows)
        assert isinstance(frame, pl.DataFrame)  # as a table of Arrow becomes
        return frame.to_series()

    def collect_rows(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        """The records of a file, read block by block, each column then put together in a file of its own."""
        path = self._folder / f"{secrets.token_hex(16)}.rows"
        try:
            lazy.sink_ipc(path, compression="uncompressed", maintain_order=True)
            path.chmod(0o600)
            with path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError:
            raise _full() from None
        finally:
            path.unlink(missing_ok=True)
        rows = self._arrow.ipc.open_file(self._arrow.BufferReader(self._arrow.py_buffer(content))).read_all()
        return pl.DataFrame([
            self.keep_column(pl.Series(name, rows.column(name)).rechunk()) for name in rows.column_names
        ])  # fmt: skip

    def collect_column(self, lazy: pl.LazyFrame) -> pl.Series:
        """The only column of a query, of many records: numbers and texts are never in memory as a whole."""
        [(name, dtype)] = lazy.collect_schema().items()
        if dtype not in PIECEWISE:
            return self.keep_column(lazy.collect().to_series())
        pieces = lazy.collect_batches(chunk_size=self._min_records, engine="streaming")
        return self.join_pieces(piece.to_series() for piece in pieces).alias(name)

    def map_pieces(self, column: pl.Series, make: Callable[[pl.Series], pl.Series]) -> pl.Series:
        """What is made of a column record by record, in a file; of numbers and texts a piece at a time."""
        like = make(column.slice(0, 0))
        if like.dtype not in PIECEWISE:
            return make(column)
        starts = range(0, len(column), _PIECE)
        return self.join_pieces(make(column.slice(start, _PIECE)) for start in starts).alias(like.name)

    def join_pieces(self, pieces: Iterable[pl.Series]) -> pl.Series:
        """The pieces of a column of numbers or texts, one after the other, in files."""
        paths = self._new_path(), self._new_path()
        try:
            with _create(paths[0]) as values, _create(paths[1]) as texts:
                column = ColumnPieces(values, texts)
                for piece in pieces:
                    column.append(piece)
            return column.join(self._arrow, *map(self._map, paths[: 1 + column.has_texts]))
        except OSError as error:
            if error.errno is None:  # of polars, which could not read
                raise
            raise _full() from None
        finally:
            for path in paths:
                path.unlink(missing_ok=True)

    def _new_path(self) -> Path:
        return self._folder / f"{secrets.token_hex(16)}.column"

    def _map(self, path: Path) -> Any:
        """The content of a file as a buffer of Arrow."""
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        buffer = self._arrow.py_buffer(content)
        bisect.insort(self._starts, buffer.address)
        self._ends[buffer.address] = buffer.address + buffer.size
        weakref.finalize(content, self._forget, buffer.address)
        return buffer

    def _forget(self, start: int) -> None:
        self._starts.remove(start)
        del self._ends[start]

    def _has(self, series: pl.Series) -> bool:
        """Whether a column lies in one of the files: that all its values do."""
        if series.n_chunks() != 1:
            return False
        buffers = series.to_arrow(compat_level=pl.CompatLevel.newest()).buffers()
        values = [each.address for each in buffers if each is not None and each.size >= len(series)]
        return bool(values) and all(map(self._is_mapped, values))

    def _is_mapped(self, address: int) -> bool:
        place = bisect.bisect_right(self._starts, address) - 1
        return place >= 0 and address < self._ends[self._starts[place]]


_ACTIVE: ContextVar[ColumnStore | None] = ContextVar("column store", default=None)


def active_store() -> ColumnStore | None:
    """The store in which tables keep their columns here; None where they stay in memory."""
    return _ACTIVE.get()


def store_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as tables hold it: with large columns in files, where a store is active."""
    store = _ACTIVE.get()
    return frame if store is None else store.keep(frame)


def store_column(series: pl.Series) -> pl.Series:
    """A column as tables hold it: in a file, if it is large and a store is active."""
    store = _ACTIVE.get()
    return series if store is None else store.keep_column(series)


def map_pieces(column: pl.Series, make: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """What is made of a column record by record; where large columns lie in files, a piece at a time."""
    store = _ACTIVE.get()
    if store is None or not store.is_large(len(column)):
        return make(column)
    return store.map_pieces(column, make)


def distinct_values(column: pl.Series) -> pl.Series:
    """The distinct values of a column, in no order; of a large one that lies in a file piece by piece."""
    store = _ACTIVE.get()
    if store is None or not store.is_large(len(column)):
        return column.unique()
    found, waiting = column.clear(), list[pl.Series]()
    for start in range(0, len(column), _PIECE):
        waiting.append(column.slice(start, _PIECE).unique())
        if sum(map(len, waiting)) > len(found) + _PIECE:
            found, waiting = pl.concat([found, *waiting]).unique(), []
    return pl.concat([found, *waiting]).unique()


def count_values(column: pl.Series) -> pl.DataFrame:
    """Each ``value`` of a column and how often it occurs, ``n``, in no order; piece by piece as above."""
    store = _ACTIVE.get()
    step = _PIECE if store is not None and store.is_large(len(column)) else max(len(column), 1)
    pieces = (column.slice(start, step).alias("value") for start in range(0, max(len(column), 1), step))
    counts = pl.concat([each.value_counts(name="n") for each in pieces])
    return counts.group_by("value").agg(pl.col("n").sum())


def gather(column: pl.Series, places: npt.NDArray[np.integer]) -> pl.Series:
    """The records of a column at some places; a large result is put together in a file, texts in pieces."""
    store = _ACTIVE.get()
    if store is None or not store.is_large(len(places)):
        return column.gather(places)
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        return gather(column.to_physical(), places).cat.to(column.dtype)
    if isinstance(column.dtype, pl.Struct) and not column.null_count():  # an interval: one end at a time
        return pl.DataFrame([gather(each, places) for each in column.struct.unnest()]).to_struct(column.name)
    if column.dtype not in PIECEWISE:
        return store.keep_column(column.gather(places))
    parts = (places[start : start + _PIECE] for start in range(0, len(places), _PIECE))
    return store.join_pieces(column.gather(part) for part in parts).alias(column.name)


def join_pieces(pieces: Iterable[pl.Series]) -> pl.Series:
    """The pieces of a column of numbers or texts as one; several lie in a file where a store is active."""
    store, rest = _ACTIVE.get(), iter(pieces)
    first = list(itertools.islice(rest, 2))
    if store is None or len(first) == 1:
        return pl.concat([*first, *rest])
    return store.join_pieces(itertools.chain(first, rest))


def series_of(values: npt.NDArray[Any]) -> pl.Series:
    """An array as a column; where large ones lie in files it is not copied, so nobody may change it after."""
    store = _ACTIVE.get()
    if store is None or not store.is_large(len(values)):
        return pl.Series(values)
    series = pl.from_arrow(_pyarrow().array(values))
    assert isinstance(series, pl.Series)  # as an array of Arrow becomes
    return series


def collect(lazy: pl.LazyFrame, *, by_rows: bool = False) -> pl.DataFrame:
    """The frame that a file holds; where a store is active, one column after the other lies in memory.

    A file whose records are written ``by_rows`` is gone through once, into a file of columns.
    """
    store = _ACTIVE.get()
    if store is None:
        return lazy.collect()
    if by_rows:
        return store.collect_rows(lazy)
    if not store.is_large(lazy.select(pl.len()).collect().item()):
        return lazy.collect()
    return pl.DataFrame([
        store.collect_column(lazy.select(pl.nth(i))) for i in range(len(lazy.collect_schema().names()))
    ])  # fmt: skip


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


def _full() -> WriteError:
    return WriteError(
        "The scratch folder is full or cannot be written to.", hint="name one with more room, `--scratch DIR`"
    )


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ModuleNotFoundError:
        raise MissingDependencyError.of(
            "pyarrow", extra="frames", purpose="keeping columns in files"
        ) from None
    return pa
