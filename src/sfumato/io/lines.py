"""Looks at the bytes of a delimited text, to find lines with too few or too many fields.

Polars fills a line that is too short with missing values and says nothing. One fast count finds out whether
there is such a line; only if there is one, or if the reader gave up, are the lines taken apart to name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Bytes, Flags, Ints

_CHUNK = 1 << 18  # fits the cache of a core
_NEWLINE, _RETURN = ord("\n"), ord("\r")


@dataclass(frozen=True)
class TextLayout:
    """The bytes of a text, and those that cut it into fields."""

    content: Bytes
    delimiter: int
    quote: int | None

    def count(self, byte: int, *, stop: int | None = None) -> int:
        """How often a byte occurs (before ``stop``)."""
        return sum(int(np.count_nonzero(chunk == byte)) for _, chunk in _chunks(self.content[:stop]))

    def line_at(self, offset: int) -> int:
        """The number of the line that holds this byte, counted from 1 as an editor does."""
        return self.count(_NEWLINE, stop=offset) + 1


@dataclass(frozen=True)
class ChunkRecords:
    """The records that end in one chunk: where each starts and ends, and how many delimiters it has."""

    starts: Ints
    ends: Ints
    delimiters: Ints
    closed: bool = True


@dataclass(frozen=True)
class UnevenLine:
    """A line that has not as many fields as the header."""

    line: int
    fields: int


def cut(layout: TextLayout, records: int) -> Bytes:
    """The bytes of the first records, the header among them."""
    seen = 0
    for part in records_of(layout):
        if seen + len(part.ends) >= records:
            return layout.content[: part.ends[records - seen - 1] + 1]
        seen += len(part.ends)
    return layout.content


def find_uneven_line(layout: TextLayout, *, fields: int) -> UnevenLine | None:
    """Find the first line that has not the right number of fields and is not blank."""
    for part in records_of(layout):
        wrong = (part.delimiters != fields - 1) & ~_blank(layout, part)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            return UnevenLine(layout.line_at(int(part.starts[first])), int(part.delimiters[first]) + 1)
    return None


def blank(layout: TextLayout) -> Ints:
    """Which records are blank lines; the header, with number 0, is the first line that is not."""
    flags = np.concatenate([_blank(layout, part) for part in records_of(layout)])
    header = int(np.flatnonzero(~flags)[0])
    return np.flatnonzero(flags[header:])


def find_unclosed_quote(layout: TextLayout) -> int | None:
    """Find the line whose last record never ends because a quote is not closed."""
    for part in records_of(layout):
        if not part.closed:
            return layout.line_at(int(part.starts[-1]))
    return None


def stray_quote(layout: TextLayout) -> int | None:
    """Find the first line with a quote that neither opens nor closes a whole field."""
    if layout.quote is None:
        return None
    content, beside = layout.content, [layout.delimiter, _NEWLINE, _RETURN, layout.quote]
    opened = 0
    for offset, chunk in _chunks(content):
        quotes = np.flatnonzero(chunk == layout.quote) + offset
        opens = (np.arange(len(quotes)) + opened) % 2 == 0
        opened += len(quotes)
        neighbour = np.where(opens, quotes - 1, quotes + 1)
        outside = (neighbour < 0) | (neighbour >= len(content))
        good = outside | np.isin(content[np.clip(neighbour, 0, len(content) - 1)], beside)
        if not good.all():
            return layout.line_at(int(quotes[~good][0]))
    return None


def records_of(layout: TextLayout) -> Iterator[ChunkRecords]:
    """Cut the text into records, chunk by chunk; a newline or delimiter between quotes cuts nothing."""
    start, pending, inside = 0, 0, np.uint8(0)
    for offset, chunk in _chunks(layout.content):
        free = np.ones(len(chunk), dtype=bool)
        if layout.quote is not None:
            parity = np.bitwise_xor.accumulate((chunk == layout.quote).view(np.uint8)) ^ inside
            free, inside = parity == 0, parity[-1]
        ends = np.flatnonzero((chunk == _NEWLINE) & free)
        delimiters = np.flatnonzero((chunk == layout.delimiter) & free)
        before = np.searchsorted(delimiters, ends)
        if len(ends):
            counts = np.diff(before, prepend=0)
            counts[0] += pending
            starts = np.concatenate([[start], ends[:-1] + offset + 1])
            yield ChunkRecords(starts, ends + offset, counts)
            start, pending = int(ends[-1]) + offset + 1, len(delimiters) - int(before[-1])
        else:
            pending += len(delimiters)
    if start < len(layout.content):  # the last line has no newline, or a quote is still open
        yield ChunkRecords(
            np.array([start]), np.array([len(layout.content)]), np.array([pending]), closed=inside == 0
        )


def _blank(layout: TextLayout, part: ChunkRecords) -> Flags:
    lengths = part.ends - part.starts
    first = layout.content[np.minimum(part.starts, len(layout.content) - 1)]
    return np.asarray((lengths == 0) | ((lengths == 1) & (first == _RETURN)), dtype=bool)


def _chunks(content: Bytes) -> Iterator[tuple[int, Bytes]]:
    for offset in range(0, len(content), _CHUNK):
        yield offset, content[offset : offset + _CHUNK]
