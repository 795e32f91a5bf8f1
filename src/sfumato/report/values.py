"""What a report may look at: columns as numbers or texts, and the rules of what it may show of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.data.column_store import count_values
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.intervals import is_interval, value_dtype
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.data.schema import Kind
from sfumato.data.table import TEXTUAL, Table
from sfumato.kernels.arrays import Floats, Ints

#: An ordinal column of numbers with more values than this is drawn as numbers, not value by value.
MOST_BARS = 20
#: What the values are called that are put together.
OTHERS = "(all others)"

_MILLISECONDS = {"ms": 1.0, "us": 1e-3, "ns": 1e-6}
_DAY = 86_400_000.0


@dataclass(frozen=True)
class ChartRules:
    """How coarse a picture must be.

    ``floor`` is the smallest number of records that may stand behind a number that is shown, ``base`` what
    counts are rounded to, ``tail`` the share of records on each side that no axis tells apart, ``quantiles``
    how many of them are drawn and ``records`` how many records that takes; correlations have ``decimals``.
    """

    floor: int
    base: int
    tail: float
    quantiles: int
    records: int
    decimals: int

    @classmethod
    def of(cls, *, public: bool) -> ChartRules:
        """The rules of the public or of the internal form."""
        return PUBLIC if public else INTERNAL

    @property
    def coarse(self) -> bool:
        """Whether single records must be hidden."""
        return self.floor > 1

    def allow(self, counts: npt.NDArray[np.integer]) -> bool:
        """Whether each of these counts is none at all, or enough to hide in."""
        return bool(((counts == 0) | (counts >= self.floor)).all())

    def share(self, count: int, total: int) -> float | None:
        """A count as a share, rounded; None when so few may not be shown."""
        if not self.allow(np.array([count])):
            return None
        return round(self.round_counts(np.array([count]))[0] / total, 4) if total else 0.0

    def round_counts(self, counts: npt.NDArray[np.integer]) -> Ints:
        """Counts rounded to the base, so that two reports cannot be subtracted from each other."""
        return (np.rint(counts / self.base) * self.base).astype(np.int64)


#: Nothing about anyone: groups of ten, counts rounded to fives, no tails, no quantiles of small tables.
PUBLIC = ChartRules(floor=MIN_PERSONS_NAMED, base=5, tail=0.01, quantiles=19, records=200, decimals=2)
#: Everything but single records.
INTERNAL = ChartRules(floor=1, base=1, tail=0.005, quantiles=99, records=2, decimals=3)


def merge_neighbours(counts: Ints, enough: Callable[[Ints], bool]) -> list[tuple[int, int]]:
    """Merge neighbouring columns of counts [tables, places] until each group, as counted, is enough.

    Groups are (start, stop); there is none when not even all columns together are enough.
    """
    found: list[tuple[int, int]] = []
    start, end = 0, counts.shape[1]
    for stop in range(1, end + 1):
        if enough(counts[:, start:stop]):
            found.append((start, stop))
            start = stop
    while start < end and found:  # what is left over joins the groups before it
        start, _ = found.pop()
        if enough(counts[:, start:]):
            found.append((start, end))
            break
    return found


def merged_shares(counts: Ints, groups: Sequence[tuple[int, int]], rules: ChartRules) -> list[list[float]]:
    """The shares of merged columns of counts [tables, places], from rounded counts."""
    merged = np.stack([counts[:, start:stop].sum(axis=1) for start, stop in groups], axis=1)
    rounded = rules.round_counts(merged)
    totals = np.maximum(rounded.sum(axis=1, keepdims=True), 1)
    return np.round(rounded / totals, 4).tolist()  # type: ignore[no-any-return]


def is_measured(table: Table, name: str) -> bool:
    """Whether a column is drawn on an axis of numbers or dates (and not value by value)."""
    kind, series = table.schema[name].kind, table.frame[name]
    if kind is Kind.ORDINAL and series.dtype.is_numeric():
        return series.n_unique() > MOST_BARS
    return kind in {Kind.CONTINUOUS, Kind.DATE}


def numbers_of(table: Table, name: str, *, like: Table) -> Floats:
    """A column as numbers, NaN where missing: dates in milliseconds since 1970, intervals as their middle.

    The texts of an ordinal column count by their place in the order of the table ``like``, so that two
    tables are on one axis.
    """
    series, kind = table.frame[name], table.schema[name].kind
    if is_interval(series.dtype):
        middles = Cover.of(table, name).middles
        middles = np.where(np.isfinite(middles), middles, np.nan)
        return np.floor(middles) * _unit(value_dtype(series.dtype)) if kind is Kind.DATE else middles
    if kind is Kind.ORDINAL and not series.dtype.is_numeric():
        return _places(table, name, like=like)
    if kind is Kind.ORDINAL:
        numbers = series.cast(pl.Float64).to_numpy().copy()
        numbers[table.missing(name)] = np.nan
        return numbers
    if kind is Kind.DATE:
        return table.numbers(name) * _unit(series.dtype)
    return table.numbers(name)


def _unit(dtype: pl.DataType) -> float:
    """Milliseconds in one tick of a date or time (a date in a text is a day)."""
    return _MILLISECONDS[dtype.time_unit] if isinstance(dtype, pl.Datetime) else _DAY


def _places(table: Table, name: str, *, like: Table) -> Floats:
    places = {text: float(place) for place, text in enumerate(order_of(like, name))}
    texts = texts_of(table, name)
    found = texts.replace_strict(places, default=None, return_dtype=pl.Float64) if places else texts
    return found.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def order_of(table: Table, name: str) -> list[str]:
    """The values of an ordinal column as texts, in their declared or natural order."""
    if is_interval(table.frame[name].dtype):
        return []
    return [str(text) for text in canonical_text(table.codes(name).categories).to_list()]


def counts_of(table: Table, name: str) -> Mapping[str, int]:
    """How many records have each value, as texts; for sets, how many have each member."""
    values = present_values(table, name)
    if isinstance(values.dtype, pl.List):
        values = values.cast(pl.List(pl.String)).list.unique().explode()
    counted, found = count_values(values.drop_nulls()), Counter[str]()
    for text, count in zip(as_texts(counted["value"]).to_list(), counted["n"].to_list(), strict=True):
        found[text] += count
    return found


def texts_of(table: Table, name: str) -> pl.Series:
    """A column as texts, null where it is missing."""
    return as_texts(present_values(table, name))


def present_values(table: Table, name: str) -> pl.Series:
    """A column with null where it is missing; of many records this is much less than their texts."""
    series = table.frame[name]
    if isinstance(series.dtype, pl.List) or is_interval(series.dtype):
        return series
    gone = table.missing(name)
    if not gone.any():
        return series
    return pl.select(pl.when(pl.Series("present", ~gone)).then(series)).to_series()


def as_texts(values: pl.Series) -> pl.Series:
    """Values as texts, equal ones alike."""
    if isinstance(values.dtype, pl.List):
        return values.cast(pl.List(pl.String))
    if is_interval(values.dtype):
        return to_text(values)
    return values.cast(pl.String) if values.dtype in TEXTUAL else canonical_text(values)
