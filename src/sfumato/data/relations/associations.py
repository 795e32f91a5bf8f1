"""Finds columns that tell the same story: hospital and county, postcode and town, age and age group.

Of two columns a and b, let *p* be the share of pairs of records alike in a that are alike in b too, and *q*
that of all pairs. Then a determines b to the extent

    (p − q) / (1 − q),

which is 1 where each value of a has one of b, and 0 in the mean where they have nothing to do with each
other, however many values they have: a column of distinct values has no pairs and so determines nothing. (It
is Goodman and Kruskal's τ without the bias that τ and Cramér's V have for many categories.) The pairs are
weighed so that each record counts alike. Numbers and dates that hardly repeat are cut into bands first, and
two of them are related also where they rise and fall together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from sfumato.data.schema import STRUCTURAL_ROLES, UNIT_ROLES, Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints

_RECORDS = 20_000  # looked at
_FEWEST_RECORDS = 2_000
_WORK = 30_000_000  # records times pairs of columns: of a wide table fewer records are looked at
_MOST_COLUMNS = 300
_MIN_RECORDS_TO_SAY = 50  # records below which nothing is said
_REPEATED = 0.2  # the share of records that must share their value with another
_OTHERS = 10  # records that must differ from the commonest value, lest a rare one decide
_BANDS = 50
_FEW_VALUES = 10  # of fewer values than this, much is told by chance or by habit
_LARGELY, NEARLY, _FULLY = 0.6, 0.9, 0.9999
TOGETHER, _ROUGHLY = 0.98, 0.5
_DENSE_CELLS_PER_RECORD = (
    4  # joint cells for each record up to which counting them all is quicker than sorting
)
_SAID = 5


@dataclass(frozen=True)
class RelatedColumns:
    """Columns that tell the same story, why, and how sure that is."""

    columns: tuple[str, ...]
    reason: str
    confidence: float


class Link(NamedTuple):
    """Two columns of a look by their places, how strongly they are related, and in which words."""

    first: int
    second: int
    strength: float
    words: str


@dataclass(frozen=True)
class ColumnSample:
    """A column of some records: its values as codes (−1: missing), the same in bands, and its ranks."""

    name: str
    codes: Ints
    bands: Ints
    ranks: Floats | None

    @cached_property
    def few(self) -> bool:
        """Whether it has few values."""
        return int(self.codes.max(initial=-1)) + 1 < _FEW_VALUES

    @cached_property
    def tells(self) -> bool:
        """Whether it could determine another: enough records share a value of it."""
        return _share_of_repeats(self.bands) >= _REPEATED

    @cached_property
    def can_be_determined(self) -> bool:
        """Whether another could determine it."""
        return _share_of_repeats(self.codes) >= _REPEATED / 2


def find_related(frame: pl.DataFrame, columns: Sequence[Column]) -> tuple[RelatedColumns, ...]:
    """Find groups of columns that tell the same story, each with its reason.

    Identifiers, weights and the numbers of persons and households are passed over: they determine all else
    or stay behind. Of each person or household one record is looked at, and of many records a sample.
    """
    looks = _looks(frame, columns)
    pairs = combinations(range(len(looks)), 2)
    links = [*_determining(looks, pairs), *_rising(looks)]
    return tuple(_relation(looks, group, links) for group in _groups(len(looks), links))


# Which columns, in which records --------------------------------------------------------------------------


def _looks(frame: pl.DataFrame, columns: Sequence[Column]) -> list[ColumnSample]:
    chosen = [
        column
        for column in columns
        if column.role not in STRUCTURAL_ROLES
        and not isinstance(frame[column.name].dtype, pl.List | pl.Object)
    ][:_MOST_COLUMNS]
    if frame.height < _MIN_RECORDS_TO_SAY or len(chosen) < 2:  # noqa: PLR2004
        return []
    pairs = len(chosen) * (len(chosen) - 1) // 2
    some = _some(frame, columns, min(_RECORDS, max(_FEWEST_RECORDS, _WORK // pairs)))
    table = Table(pl.DataFrame([some[column.name] for column in chosen]), Schema(tuple(chosen)))
    looks = [sample_column(table, column) for column in chosen]
    return [look for look in looks if look.codes.max(initial=-1) > 0]  # what does not vary tells nothing


def _some(frame: pl.DataFrame, columns: Sequence[Column], records: int) -> pl.DataFrame:
    """Some records from all parts of the table, and of each person or household only one."""
    shared = [column.name for column in columns if column.role in UNIT_ROLES]
    if not shared:
        return frame.gather_every(max(1, frame.height // records)).head(records)
    some = frame.gather_every(max(1, frame.height // (4 * records)))
    for name in shared:
        some = some.filter(some[name].is_first_distinct())
    return some.head(records)


def sample_column(table: Table, column: Column) -> ColumnSample:
    """The values of a column as codes, in bands and as ranks."""
    missing = table.missing(column.name)
    series = table.frame[column.name]
    # Hashing takes any type of value, and of so few values no two meet.
    _, codes = np.unique(series.hash().to_numpy(), return_inverse=True)
    codes = _dense(np.where(missing, -1, codes))
    numbers = _numbers(series, missing) if column.kind in {Kind.CONTINUOUS, Kind.DATE} else None
    if numbers is None or codes.max(initial=-1) < _BANDS:
        return ColumnSample(column.name, codes, codes, None)
    ranks = _ranks(numbers)
    bands = np.nan_to_num(ranks / (np.nanmax(ranks) + 1) * _BANDS, nan=-1).astype(np.int64)
    return ColumnSample(column.name, codes, _dense(bands), ranks)


def _dense(codes: Ints) -> Ints:
    """Number the codes from 0 without gaps, −1 staying −1."""
    _, dense = np.unique(codes, return_inverse=True)
    return dense.astype(np.int64) - int((codes == -1).any())


def _numbers(series: pl.Series, missing: Flags) -> Floats | None:
    if series.dtype.is_temporal():
        series = series.to_physical()
    elif not series.dtype.is_numeric():
        series = series.cast(pl.String).str.strip_chars() if series.dtype == pl.String else series.clear()
    numbers = series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    if len(numbers) != len(missing) or np.isnan(numbers[~missing]).any():
        return None
    return np.where(missing, np.nan, numbers)


def _ranks(numbers: Floats) -> Floats:
    """The mean rank of each number among those that are equal, NaN where missing.

    Neither by polars nor by a kernel: the one would load `numpy.ma` for it, the other numba.
    """
    present, ranks = ~np.isnan(numbers), np.full(len(numbers), np.nan)
    _, places, counts = np.unique(numbers[present], return_inverse=True, return_counts=True)
    ranks[present] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks


def _share_of_repeats(codes: Ints) -> float:
    """The share of the records whose value another one shares."""
    counts = np.bincount(codes[codes >= 0])
    return float(counts[counts > 1].sum() / max(1, counts.sum()))


# How strongly two columns are related ---------------------------------------------------------------------


def _determining(looks: Sequence[ColumnSample], pairs: Iterable[tuple[int, int]]) -> Iterator[Link]:
    for first, second in pairs:
        one, other = looks[first], looks[second]
        forward, backward = _both_ways(one, other)
        least = NEARLY if one.few or other.few else _LARGELY
        if min(forward, backward) >= NEARLY:
            words = f"`{one.name}` and `{other.name}` determine each other"
            yield Link(first, second, min(forward, backward), words)
        elif forward >= max(least, backward):
            yield Link(first, second, forward, f"`{one.name}` {_degree(forward)} `{other.name}`")
        elif backward >= least:
            yield Link(first, second, backward, f"`{other.name}` {_degree(backward)} `{one.name}`")


def _both_ways(one: ColumnSample, other: ColumnSample) -> tuple[float, float]:
    """How far the one determines the other, and the other the one."""
    forward, backward = one.tells and other.can_be_determined, other.tells and one.can_be_determined
    if not (forward or backward):
        return 0.0, 0.0
    if one.bands is one.codes and other.bands is other.codes:
        return determination(one.codes, other.codes)
    return (
        determination(one.bands, other.codes)[0] if forward else 0.0,
        determination(other.bands, one.codes)[0] if backward else 0.0,
    )


def _rising(looks: Sequence[ColumnSample]) -> Iterator[Link]:
    """Find numbers and dates that rise and fall together."""
    places = [place for place, look in enumerate(looks) if look.ranks is not None]
    if len(places) < 2:  # noqa: PLR2004
        return
    ranks = np.array([looks[place].ranks for place in places])
    gaps = np.isnan(ranks)
    # With the mean in place of what is missing a correlation is near enough to tell whether to look closer.
    rough = np.abs(np.corrcoef(np.where(gaps, np.nanmean(ranks, axis=1, keepdims=True), ranks)))
    near = np.argwhere(np.triu(rough >= (_ROUGHLY if gaps.any() else TOGETHER), k=1))
    for i, j in near.tolist():
        alike = rank_correlation(ranks[i], ranks[j])
        if alike >= TOGETHER:
            names = f"`{looks[places[i]].name}` and `{looks[places[j]].name}`"
            yield Link(places[i], places[j], alike, f"{names} rise and fall together")


def _degree(strength: float) -> str:
    if strength >= _FULLY:
        return "determines"
    return "nearly determines" if strength >= NEARLY else "largely determines"


def determination(a: Ints, b: Ints, *, least: int = _MIN_RECORDS_TO_SAY) -> tuple[float, float]:
    """How far a determines b, and b determines a: at most 1, around 0 for unrelated columns.

    It is 0 also where fewer than the ``least`` records share a value, or too few differ, to tell.
    """
    both = (a >= 0) & (b >= 0)
    a, b = a[both], b[both]
    if len(a) < least:
        return 0.0, 0.0
    width = int(b.max()) + 1
    joint = a * width + b
    if (int(a.max()) + 1) * width <= _DENSE_CELLS_PER_RECORD * len(a):
        counts = np.bincount(joint)
        cells = np.flatnonzero(counts)
        counts = counts[cells]
    else:
        cells, counts = np.unique(joint, return_counts=True)
    ones, others = cells // width, cells % width
    return _tau(ones, others, counts, least), _tau(others, ones, counts, least)


def _tau(a: Ints, b: Ints, counts: Ints, least: int) -> float:
    """How far a determines b, from the cells of their joint table."""
    of_a, of_b = np.bincount(a, counts), np.bincount(b, counts)
    n, repeated = counts.sum(), of_a > 1
    supported = of_a[repeated].sum()
    if supported < max(least, _REPEATED * n):
        return 0.0
    within = repeated[a]
    if supported - np.bincount(b[within], counts[within]).max() < _OTHERS:
        return 0.0
    pairs = np.bincount(a, counts * (counts - 1.0))
    alike = (pairs[repeated] / (of_a[repeated] - 1)).sum() / supported
    by_chance = (of_b * (of_b - 1)).sum() / (n * (n - 1))
    return float((alike - by_chance) / (1 - by_chance))


def rank_correlation(ranks: Floats, others: Floats) -> float:
    """The rank correlation, without its sign, where both are there."""
    both = ~(np.isnan(ranks) | np.isnan(others))
    if both.sum() < _MIN_RECORDS_TO_SAY or np.ptp(ranks[both]) == 0 or np.ptp(others[both]) == 0:
        return 0.0
    return float(abs(np.corrcoef(ranks[both], others[both])[0, 1]))


# Groups ---------------------------------------------------------------------------------------------------


def _groups(count: int, links: Sequence[Link]) -> list[list[int]]:
    """The columns that hang together by links, in their order."""
    home = list(range(count))
    for link in links:
        low, high = sorted((home[link.first], home[link.second]))
        home = [low if place == high else place for place in home]
    members: dict[int, list[int]] = {}
    for place, group in enumerate(home):
        members.setdefault(group, []).append(place)
    return [group for group in members.values() if len(group) > 1]


def _relation(looks: Sequence[ColumnSample], group: Sequence[int], links: Sequence[Link]) -> RelatedColumns:
    inside = sorted((link for link in links if link.first in group), key=lambda link: -link.strength)
    reasons = [link.words for link in inside[:_SAID]]
    if len(inside) > _SAID:
        reasons.append(f"and {len(inside) - _SAID} more such pairs")
    confidence = round(min(0.95, inside[-1].strength), 2)
    return RelatedColumns(tuple(looks[place].name for place in group), "; ".join(reasons), confidence)
