"""A column that comes piece by piece, laid out in files as Arrow lays it out in memory.

The values of a column of numbers follow each other; so do the views of a column of texts, while texts that
are too long for a view are in a file beside. The column is never in memory as a whole.
"""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.kernels.arrays import Ints

#: What can be laid out piece by piece.
PIECEWISE = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
    pl.Float64, pl.String,
)  # fmt: skip
#: Bytes of a view, and of a text that lies in it.
_VIEW, _IN_VIEW = 16, 12


class _WrittenTexts(NamedTuple):
    """A part of a buffer of texts that is in the file: held, so that no other buffer has its address."""

    buffer: Any
    first: int
    last: int
    number: int


class ColumnPieces:
    """The pieces of one column, in two open files: ``values``, and ``texts`` that are long."""

    def __init__(self, values: BinaryIO, texts: BinaryIO) -> None:
        self._values, self._texts = values, texts
        self._type: Any = None
        self._n, self._holes, self._lengths = 0, list[Ints](), list[int]()
        self._written: dict[int, _WrittenTexts] = {}  # by the last piece: the next may share its texts

    def append(self, piece: pl.Series) -> None:
        """Write the next records."""
        array = piece.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
        self._type, n = array.type, len(array)
        _, values, *texts = array.buffers()
        width = _VIEW if piece.dtype == pl.String else array.type.bit_width // 8
        raw = np.frombuffer(values, np.uint8, n * width, array.offset * width)
        self._values.write(raw.data if piece.dtype != pl.String else self._move_texts(raw, texts).data)
        if piece.null_count():
            self._holes.append(np.flatnonzero(piece.is_null().to_numpy()) + self._n)
        self._n += n

    def _move_texts(self, raw: npt.NDArray[np.uint8], texts: list[Any]) -> npt.NDArray[np.uint32]:
        """The views of a piece, with its long texts where they now are: of each buffer what is shown."""
        views = raw.view(np.uint32).reshape(-1, 4).copy()  # length, four letters, buffer, place in it
        lengths, sources, places = views[:, 0], views[:, 2].copy(), views[:, 3]
        is_long = lengths > _IN_VIEW
        before, self._written = self._written, {}
        for source in np.unique(sources[is_long]).tolist():
            here, buffer = is_long & (sources == source), texts[source]
            first, last = int(places[here].min()), int((places[here] + lengths[here]).max())
            place = before.get(buffer.address)
            if place is None or not place.first <= first <= last <= place.last:
                place = _WrittenTexts(buffer, first, last, len(self._lengths))
                self._texts.write(memoryview(buffer)[first:last])
                self._lengths.append(last - first)
            self._written[buffer.address] = place
            views[here, 2], views[here, 3] = place.number, places[here] - np.uint32(place.first)
        return views

    @property
    def has_texts(self) -> bool:
        """Whether any text was too long for its view."""
        return bool(self._lengths)

    def join(self, arrow: Any, values: Any, texts: Any = None) -> pl.Series:
        """All pieces as one column, of the files as they are mapped once they are closed."""
        buffers, holes, start = [values], None, 0
        for length in self._lengths:
            buffers.append(texts.slice(start, length))
            start += length
        if self._holes:
            present = np.ones(self._n, dtype=np.bool_)
            for each in self._holes:
                present[each] = False
            holes = arrow.py_buffer(np.packbits(present, bitorder="little"))
        joined = arrow.Array.from_buffers(self._type, self._n, [holes, *buffers])
        series = pl.from_arrow(joined)
        assert isinstance(series, pl.Series)  # as an array of Arrow becomes
        return series
