"""Readings: released records beside their originals, and what their cells stand for.

Every column becomes numbers: continuous values and dates themselves, ordinal values by their position,
nominal ones as codes that differ or do not. A released cell is then a *span* of numbers or a set of them
(`sfumato.data.generalised.cover`), and the measures of loss take it in one of three ways
(`GeneralisedReading`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.data.generalised.cover import CATEGORIES, Cover, cover_of, extent
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints

#: How a generalised value is read: in its middle, at the member farthest from the truth, or as any member.
GeneralisedReading: TypeAlias = Literal["midpoint", "worst", "expected"]

#: Records of a table: numbers of them, or all in their order, which costs no copy.
Rows: TypeAlias = Ints | slice


# Which records belong together -------------------------------------------------------------------------


def pairs_of(evidence: Evidence) -> tuple[Rows, Rows]:
    """Released records and the original of each; an original that was left out stands beside none (−1).

    Slices where all are in the order of the original, which is the usual case.
    """
    sources = evidence.source_rows
    assert sources is not None  # `unmapped` saw to it
    n = len(evidence.original)
    if len(sources) == n and bool((sources == np.arange(n)).all()):
        return slice(None), slice(None)
    released = np.flatnonzero(sources >= 0)
    sources = sources[released]
    seen = np.zeros(n, dtype=np.bool_)
    seen[sources] = True
    left_out = np.flatnonzero(~seen)
    nothing = np.full(len(left_out), -1, dtype=np.int64)
    return np.concatenate([released, nothing]), np.concatenate([sources, left_out])


def n_left_out(released: Rows) -> int:
    """The number of originals that stand beside no released record."""
    return 0 if isinstance(released, slice) else int((released < 0).sum())


def by_original(values: Floats, sources: Rows, n: int) -> Floats:
    """What is known of released records, by their original: the mean of its copies, NaN where it has none."""
    if isinstance(sources, slice):
        return values
    known = ~np.isnan(values)
    counts = np.bincount(sources[known], minlength=n)
    sums = np.bincount(sources[known], weights=values[known], minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def weights_of(evidence: Evidence) -> Floats | None:
    """The weights of the released records: their own, or else those of their originals."""
    assert evidence.protected is not None
    own = evidence.protected.weights
    if own is not None or evidence.source_rows is None or evidence.original.weights is None:
        return own
    return np.append(evidence.original.weights, 0.0)[evidence.source_rows]


# What a released cell stands for -----------------------------------------------------------------------


def spans_of(original: Table, protected: Table, name: str) -> tuple[Floats, Cover]:
    """A column of both tables: the original's values as numbers, and what the released cells stand for.

    Open ends reach as far as the column does, declared or else seen; a wildcard says nothing.
    """
    numbers, cover = cover_of(original, protected, name)
    column, leaves = original.schema[name], [] if cover.sets is None else [cover.sets.places]
    if column.kind in CATEGORIES and is_interval(protected.frame.schema[name]):
        numbers, cover = _at_positions(original, name, cover)
    domain = extent(numbers, *leaves, column=column)
    # Beside instants days are counted in microseconds, one by one.
    cover = replace(cover, domain=domain, step=float(cover.step > 0 or column.integer))
    return numbers, cover.close_ends(wildcards="silent")


def middles_of(original: Table, protected: Table, name: str) -> tuple[Floats, Floats]:
    """A column of both tables as numbers, generalised values at their middle; NaN where nothing is said."""
    numbers, spans = spans_of(original, protected, name)
    return numbers, spans.middles


def _at_positions(original: Table, name: str, cover: Cover) -> tuple[Floats, Cover]:
    """Turn ranges of values into ranges of positions among the original's values."""
    coded = original.codes(name)
    places = coded.categories.cast(pl.Float64).to_numpy()
    if (np.diff(places) <= 0).any():
        raise DataError(
            f"the ranges of `{name}` do not follow the order declared for it",
            hint="generalise it along a hierarchy instead",
        )
    first = np.searchsorted(places, cover.lows).astype(np.float64)
    last = np.searchsorted(places, cover.highs, side="right") - 1.0
    # A range in which no original value lies is between two of them.
    middle, between, silent = (first + last) / 2, last < first, cover.uninformative
    lows, highs = (np.where(silent, np.nan, np.where(between, middle, end)) for end in (first, last))
    numbers = np.where(coded.codes < 0, np.nan, coded.codes.astype(np.float64))
    return numbers, Cover(lows, highs, cover.domain, step=1.0)
