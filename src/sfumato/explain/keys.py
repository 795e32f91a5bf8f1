"""Which keys single a record out, and what would hide it.

A record is unique in some of the keys if no other person agrees with it in all of them. In which keys it
agrees with another record is a row of yes and no; the distinct rows (patterns) suffice, and there are few. A
set of keys singles the record out if every pattern says no to one of them, so the smallest such sets are
found exactly by going through the sets of keys, small ones first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, reduce
from itertools import combinations
from math import comb
from operator import and_
from typing import Any

import numpy as np
import polars as pl

from sfumato.data.classes.classes import Missing, column_codes
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import persons_of
from sfumato.data.schema import ORDERED, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct

#: So many sets of keys are gone through at most.
MOST_SETS = 20_000

#: What a cell is shown as: JSON can hold it.
Cell = str | int | float | bool | None


def cell(table: Table, name: str, row: int) -> Cell:
    """One value as it is shown: numbers as they are, ranges and groups in their text form, None if null."""
    series = table.frame[name][row : row + 1]
    value = series[0]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(series.dtype, pl.List | pl.Array):
        members = series.explode().cast(pl.String).drop_nulls().sort()
        return "{" + "|".join(members.to_list()) + "}"
    text = to_text(series)[0] if not series.dtype.is_nested() or table.is_generalised(name) else None
    return str(value) if text is None else str(text)


@dataclass(frozen=True)
class Rarity:
    """How many persons, this one among them, share the value of a key."""

    key: str
    value: Cell = field(repr=False)
    shared_by: int


@dataclass(frozen=True)
class KeyRemedy:
    """What would bring the record's class to ``size``: keys suppressed, or one key made coarser."""

    keys: tuple[str, ...]
    how: str = field(repr=False)  # a range is made of cells
    size: int


@dataclass(frozen=True)
class KeyExplanation:
    """The equivalence class of a record, and the keys that single it out.

    ``class_size`` counts the persons who agree with it in all keys, itself among them. ``unique_in`` are the
    smallest sets of keys in which it is alone, all of those with up to ``looked_up_to`` keys. ``remedies``
    bring its class to ``k``; there are none if it has ``k`` already, or if nothing that was tried does.
    """

    keys: tuple[str, ...]
    persons: int
    class_size: int
    k: int
    missing: Missing
    rarities: tuple[Rarity, ...]
    unique_in: tuple[tuple[str, ...], ...]
    looked_up_to: int
    remedies: tuple[KeyRemedy, ...]

    @property
    def complete(self) -> bool:
        """Whether all sets of keys were gone through."""
        return self.looked_up_to == len(self.keys)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private."""
        return {**asdict(self), "complete": self.complete}


def explain_keys(
    table: Table,
    row: int,
    keys: Sequence[str],
    *,
    k: int = 5,
    missing: Missing = "category",
    most_sets: int = MOST_SETS,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> KeyExplanation:
    """Find the equivalence class of a record, and the keys that single it out.

    Parameters
    ----------
    k
        The class size that remedies are looked for.
    missing
        What a missing key counts for, as in the measures of classes: a value of its own, any value, or in
        each record whatever makes it rarest.
    most_sets
        So many sets of keys are gone through at most: larger sets are left out if there are more.
    hierarchies
        The hierarchies of some keys, by column, for remedies by climbing them.
    """
    names = tuple(sorted(keys))
    crowd = _KeyAgreement.of(table, row, names, missing)
    size = crowd.count_agreeing(range(len(names)))
    depth = _depth(len(names), most_sets)
    return KeyExplanation(
        keys=names,
        persons=crowd.n_others + 1,
        class_size=size,
        k=k,
        missing=missing,
        rarities=tuple(
            Rarity(name, cell(table, name, row), crowd.count_agreeing([place]))
            for place, name in enumerate(names)
        ),
        unique_in=tuple(_names_at(names, found) for found in crowd.pointing(depth)) if size == 1 else (),
        looked_up_to=depth,
        remedies=() if size >= k else tuple(_remedies(crowd, k, depth, hierarchies or {})),
    )


def _depth(n_keys: int, most_sets: int) -> int:
    """The largest number of keys such that not too many sets have up to so many."""
    total, depth = 0, 0
    while depth < n_keys and total + comb(n_keys, depth + 1) <= most_sets:
        depth += 1
        total += comb(n_keys, depth)
    return depth


def _names_at(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(names[place] for place in places)


@dataclass(frozen=True, eq=False)
class _KeyAgreement:
    """The others around one record: in which keys each agrees with it."""

    table: Table
    row: int
    names: tuple[str, ...]
    agree: Flags  # [records, keys]
    others: Flags  # [records] of other persons

    @classmethod
    def of(cls, table: Table, row: int, names: tuple[str, ...], missing: Missing) -> _KeyAgreement:
        agree = np.ones((len(table), len(names)), dtype=np.bool_)
        for place, name in enumerate(names):
            codes = column_codes(table, name, apart=missing == "category").codes
            holes = (codes == 0) | (codes[row] == 0)
            agree[:, place] = codes == codes[row]
            if missing == "any":
                agree[:, place] |= holes
            elif missing == "worst":
                agree[:, place] &= ~holes
        persons = persons_of(table)
        return cls(table, row, names, agree, persons != persons[row])

    @cached_property
    def n_others(self) -> int:
        """The number of other persons."""
        return self.count(self.others)

    def count(self, chosen: Flags) -> int:
        """The number of persons with a chosen record."""
        if self.table.schema.only_role(Role.PERSON) is None:
            return int(chosen.sum())
        return count_distinct(persons_of(self.table)[chosen])

    def agreeing(self, places: Sequence[int]) -> Flags:
        """Which records of others agree with the record in these keys."""
        flags: Flags = self.others & self.agree[:, list(places)].all(axis=1)
        return flags

    def count_agreeing(self, places: Sequence[int]) -> int:
        """The number of persons who agree in these keys, the record's own among them."""
        patterns, weights, persons = self._patterns
        chosen = np.flatnonzero(self._agreements >= len(places))
        chosen = chosen[patterns[chosen][:, list(places)].all(axis=1)]
        return 1 + (int(weights[chosen].sum()) if persons is None else count_distinct(persons[chosen]))

    @cached_property
    def _agreements(self) -> Ints:
        """In how many keys each of the patterns agrees: none agrees in more."""
        counts: Ints = self._patterns[0].sum(axis=1, dtype=np.int64)
        return counts

    def pointing(self, depth: int) -> Iterator[tuple[int, ...]]:
        """Yield the smallest sets of up to so many keys in which nobody else agrees."""
        agree = self._bits()
        found: list[set[int]] = []
        for size in range(1, depth + 1):
            for places in combinations(range(len(self.names)), size):
                if not reduce(and_, (agree[place] for place in places)) and not any(
                    smaller <= set(places) for smaller in found
                ):
                    found.append(set(places))
                    yield places

    @cached_property
    def _patterns(self) -> tuple[Flags, Ints, Ints | None]:
        """The distinct patterns of agreement of the others, how many records have each, and whose they are.

        Where a column tells whose record it is, a pattern stands once for each person who has it.
        """
        keys = [str(place) for place in range(len(self.names))]
        frame = pl.DataFrame(self.agree[self.others], schema=keys)
        if self.table.schema.only_role(Role.PERSON) is not None:
            frame = frame.with_columns(person=persons_of(self.table)[self.others])
        counted = frame.group_by(pl.all()).agg(records=pl.len())
        persons = counted["person"].to_numpy() if "person" in counted.columns else None
        return counted.select(keys).to_numpy(), counted["records"].to_numpy().astype(np.int64), persons

    def _bits(self) -> list[int]:
        """For each key, which of the patterns say yes, as the bits of one number."""
        packed = (np.packbits(each, bitorder="little") for each in self._patterns[0].T)
        return [int.from_bytes(bits.tobytes(), "little") for bits in packed]


# What would hide the record ------------------------------------------------------------------------------


def _remedies(
    crowd: _KeyAgreement, k: int, depth: int, hierarchies: Mapping[str, Hierarchy]
) -> Iterator[KeyRemedy]:
    """Yield what brings the class to k: the fewest keys to suppress, and each single key to make coarser."""
    if crowd.n_others + 1 < k:
        return
    everything = range(len(crowd.names))
    for size in range(1, max(depth, 1) + 1):
        found = [
            KeyRemedy(_names_at(crowd.names, gone), "suppressed", after)
            for gone in combinations(everything, size)
            if (after := crowd.count_agreeing([place for place in everything if place not in gone])) >= k
        ]
        yield from sorted(found, key=lambda remedy: -remedy.size)
        if found:
            break
    for place, name in enumerate(crowd.names):
        rest = crowd.agreeing([other for other in everything if other != place])
        if crowd.count(rest) + 1 < k or crowd.table.is_generalised(name):
            continue
        if name in hierarchies:
            yield from _remedies_by_level(crowd, name, rest, k, hierarchies[name])
        elif crowd.table.schema[name].kind in ORDERED:
            yield from _remedies_by_range(crowd, place, rest, k)


def _remedies_by_level(
    crowd: _KeyAgreement, name: str, rest: Flags, k: int, hierarchy: Hierarchy
) -> Iterator[KeyRemedy]:
    for level in range(1, hierarchy.height):
        codes = hierarchy.codes(crowd.table.frame[name], level, unseen="root")
        after = crowd.count(rest & (codes == codes[crowd.row])) + 1
        if after >= k:
            yield KeyRemedy((name,), f"at level {level} of its hierarchy", after)
            return


def _remedies_by_range(crowd: _KeyAgreement, place: int, rest: Flags, k: int) -> Iterator[KeyRemedy]:
    """The narrowest range around the value, as far to one side as to the other, that holds k persons."""
    name = crowd.names[place]
    values = crowd.table.numbers(name)
    if np.isnan(values[crowd.row]):
        return
    away: Floats = np.abs(values - values[crowd.row])
    away[np.isnan(away)] = np.inf
    away[crowd.agree[:, place]] = 0
    reach = _kth_smallest(crowd, away, rest, k - 1)
    if not np.isfinite(reach):
        return
    inside = rest & (away <= reach)
    inside[crowd.row] = True
    rows = np.flatnonzero(inside & ~np.isnan(values))
    ends = [int(rows[values[rows].argmin()]), int(rows[values[rows].argmax()])]
    low, high = (cell(crowd.table, name, row) for row in ends)
    yield KeyRemedy((name,), f"as the range from {low} to {high}", crowd.count(inside & crowd.others) + 1)


def _kth_smallest(crowd: _KeyAgreement, away: Floats, rest: Flags, k: int) -> float:
    """How far one must go to meet k persons among the rest, each at their nearest record."""
    _, person = np.unique(persons_of(crowd.table)[rest], return_inverse=True)
    nearest = np.full(int(person.max(initial=-1)) + 1, np.inf)
    np.minimum.at(nearest, person, away[rest])
    return float(np.partition(nearest, k - 1)[k - 1])
