"""Which columns moved from one wave of the data to the next, and a wave as if one of them had not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import persons_of
from sfumato.data.schema import STRUCTURAL_ROLES, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import count_noun
from sfumato.kernels.arrays import Floats, Ints, count_distinct
from sfumato.utility.distributions import total_variation

#: How likely it may be that any column is said to have moved where none has; and the fewest of a category
#: that are expected in both waves, below which it is counted with the others that are rare.
LEVEL, _FEWEST_EXPECTED = 0.01, 5.0

_ORDERED = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})


@dataclass(frozen=True)
class ColumnDrift:
    """How far a column is from what it was in the last wave; no cell is in it.

    ``distance`` is the largest difference of the distribution functions of an ordered column, a missing value
    counting as the least (Kolmogorov and Smirnov), of any other the total variation; ``p`` is how likely one
    as large would be if nothing had changed. It has ``moved`` if that is at most `LEVEL`, divided by the
    number of columns. ``categories`` are how many are new; what follows counts records of the new wave, and
    ``missing`` are the shares of missing values then and now.
    """

    column: str
    distance: float
    p: float
    moved: bool
    categories: int = 0
    in_new: int = 0
    beyond_range: int = 0
    outside_hierarchy: int = 0
    missing: tuple[float, float] = (0.0, 0.0)

    @property
    def sentence(self) -> str:
        """What became of the column."""
        records = partial(count_noun, noun="record")
        before, now = (f"{100 * share:.3g} %" for share in self.missing)
        parts = [
            (self.moved, f"differs by {self.distance:.3g} (p = {self.p:.2g})"),
            (self.categories, f"{records(self.in_new)} in {count_noun(self.categories, 'new category')}"),
            (self.beyond_range, f"{records(self.beyond_range)} beyond the range of the last wave"),
            (self.outside_hierarchy, f"{records(self.outside_hierarchy)} outside of the hierarchy"),
            (before != now, f"missing {before} → {now}"),
        ]
        words = ", ".join(text for is_so, text in parts if is_so)
        return f"`{self.column}` {'moved' if self.moved else 'stayed'}: {words}"

    @property
    def is_told(self) -> bool:
        """Whether there is anything to say of it: a share of missing values alone moves by chance."""
        return self.moved or bool(self.categories or self.beyond_range or self.outside_hierarchy)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {**asdict(self), "missing": list(self.missing), "words": self.sentence}


def find_drift(before: Table, now: Table, hierarchies: Mapping[str, Hierarchy]) -> tuple[ColumnDrift, ...]:
    """Compare each column of two waves, whoever is in them.

    The test takes as many independent values as there are persons: several records of one tell less. That the
    same people are in both waves makes it more careful, not less.
    """
    names = [
        each.name
        for each in now.schema.columns
        if each.role not in STRUCTURAL_ROLES and each.name in before.schema
    ]
    persons = [count_distinct(persons_of(table)) for table in (before, now)]
    level = LEVEL / max(len(names), 1)
    return tuple(_compare(before, now, name, persons, level, hierarchies.get(name)) for name in names)


def _compare(  # noqa: PLR0917  — two waves of one column
    before: Table, now: Table, name: str, persons: Sequence[int], level: float, hierarchy: Hierarchy | None
) -> ColumnDrift:
    ordered, (first, second) = _codes(before, now, name)
    space = int(max(first.max(initial=0), second.max(initial=0))) + 1
    counts = [np.bincount(codes, minlength=space) for codes in (first, second)]
    shares = [each / max(each.sum(), 1) for each in counts]
    test = _test_order if ordered else _test_shares
    distance, p = test(shares[0], shares[1], persons)
    new = (counts[0] == 0) & (counts[1] > 0)
    new[0] = False  # missing
    beyond, known = 0, np.flatnonzero(counts[0][1:]) + 1
    if ordered and now.schema[name].kind is not Kind.ORDINAL:
        new[:] = False
        beyond = int(((second > 0) & ((second < known[0]) | (second > known[-1]))).sum()) if len(known) else 0
    outside = 0
    if hierarchy is not None:
        texts = canonical_text(now.frame[name]).cast(pl.String)
        there = texts.is_in(hierarchy.levels.to_series(0).implode()).fill_null(value=True).to_numpy()
        outside = int((~there & (second > 0)).sum())
    return ColumnDrift(
        name,
        distance,
        p,
        p <= level,
        int(new.sum()),
        int(counts[1][new].sum()),
        beyond,
        outside,
        (float(shares[0][0]), float(shares[1][0])),
    )


def _codes(before: Table, now: Table, name: str) -> tuple[bool, tuple[Ints, Ints]]:
    """Whether a column has an order, and both waves of it in codes of the same values; 0 is missing."""
    column, tables = now.schema[name], (before, now)
    ordered = column.kind in _ORDERED and not any(table.is_generalised(name) for table in tables)
    parts = [table.frame[name] if ordered else canonical_text(table.frame[name]) for table in tables]
    both = pl.concat([part.to_frame(name) for part in parts], how="vertical_relaxed")
    if ordered:
        codes = Table(both, Schema((column,))).codes(name).codes + 1
    else:
        codes = both[name].cast(pl.String).rank("dense").fill_null(0).cast(pl.Int64).to_numpy().copy()
    codes[np.concatenate([table.missing(name) for table in tables])] = 0
    return ordered, (codes[: len(before)], codes[len(before) :])


def _test_order(first: Floats, second: Floats, persons: Sequence[int]) -> tuple[float, float]:
    """The largest difference of two distribution functions, and how likely one as large is."""
    from scipy.special import kolmogorov  # slow to import

    gap = float(np.abs(np.cumsum(first - second)).max(initial=0.0))
    return gap, float(kolmogorov(gap * np.sqrt(persons[0] * persons[1] / sum(persons))))


def _test_shares(first: Floats, second: Floats, persons: Sequence[int]) -> tuple[float, float]:
    """The total variation of two distributions, and by chi-squared how likely one as large is."""
    from scipy.special import chdtrc  # slow to import

    own, others = persons[0] / sum(persons), persons[1] / sum(persons)
    pooled = own * first + others * second
    rare = pooled * min(persons) < _FEWEST_EXPECTED
    one, other, expected = (np.append(each[~rare], each[rare].sum()) for each in (first, second, pooled))
    there = expected > 0
    squared = persons[0] * others * float(((one - other)[there] ** 2 / expected[there]).sum())
    free = int(there.sum()) - 1
    return total_variation(first, second), float(chdtrc(free, squared)) if free > 0 else 1.0


def with_distribution_of(before: Table, now: Table, name: str, rng: np.random.Generator) -> Table:
    """The new wave with a column distributed as it was, in its order or with as few values changed as can be.

    Of an ordered column each record takes the value of its rank in the last wave; of any other the records
    of a category that has become too frequent take, by lot, those that have become too rare.
    """
    ordered, (first, second) = _codes(before, now, name)
    lot = rng.permutation(len(second))
    if ordered:
        ranked = lot[np.argsort(second[lot], kind="stable")]
        rows = np.empty(len(second), dtype=np.int64)
        places = ((np.arange(len(second)) + 0.5) / len(second) * len(first)).astype(np.int64)
        rows[ranked] = np.argsort(first, kind="stable")[places]
    else:
        rows = _rows_of(_move_to_shares(first, second, lot), first)
    return now.with_values(name, before.frame[name].gather(pl.Series(rows)))


def _move_to_shares(first: Ints, second: Ints, lot: Ints) -> Ints:
    """The codes of the new wave, as few of them changed as give each the share that it had."""
    space = int(max(first.max(), second.max())) + 1
    exact = np.bincount(first, minlength=space) / len(first) * len(second)
    wanted = np.floor(exact).astype(np.int64)
    wanted[np.argsort(wanted - exact, kind="stable")[: len(second) - wanted.sum()]] += 1
    codes, order = second.copy(), lot[np.argsort(second[lot], kind="stable")]
    sizes = np.bincount(second, minlength=space)
    within = np.arange(len(second)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    surplus = order[within >= wanted[second[order]]]
    lacking = np.repeat(np.arange(space), np.maximum(wanted - sizes, 0))
    codes[surplus[np.argsort(lot[surplus], kind="stable")]] = lacking
    return codes


def _rows_of(codes: Ints, among: Ints) -> Ints:
    """A row with each of the codes."""
    found, first = np.unique(among, return_index=True)
    return first[np.searchsorted(found, codes)]
