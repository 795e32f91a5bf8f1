"""Columns that give back what a release changed: a weight its region, a hospital its county.

A released column *tells* a key if the key's original values follow from it, exactly or nearly, and for those
of whom the release hides the key: it was swapped, made coarse or left out, and the column was not. And it is
*implied* by a key if it follows from the key's original values, better than from the released ones: who knows
the key knows it too, and looks for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.relations.associations import (
    NEARLY,
    TOGETHER,
    ColumnSample,
    determination,
    rank_correlation,
    sample_column,
)
from sfumato.data.schema import STRUCTURAL_ROLES, Kind, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct, distinct_numbers

#: Records that are looked at to see what tells what, and that must share their value to tell anything.
_RECORDS, _LEAST_SHARING = 10_000, 30

#: By how much more a column must tell, or be implied, than by what is released of the key.
_MORE = 0.02

#: Records among which most columns that do not determine another show it.
_FIRST_LOOK = 500

#: What is less likely than this is no chance.
_CHANCE = 1e-3


class _Strength(NamedTuple):
    """How far a column determines another, and what of it does: its values, bands of them, or its order."""

    value: float = 0.0
    way: Literal["values", "bands", "order"] = "values"
    is_exact: bool = False


@dataclass(frozen=True, eq=False)
class RevealingColumn:
    """A released column that tells a key, and the original record whose key it tells of each released one."""

    key: str
    by: str
    rows: Ints  # [released records], −1 where nothing is told

    def reveals_key(
        self, original: Table, source_rows: Ints, hidden: Flags, strength: _Strength, own: _Strength
    ) -> bool:
        """Whether it is right for half of those whose key is hidden; or tells more of the order."""
        if strength.way == "order":
            return strength.value >= own.value + _MORE
        texts = canonical_text(original.frame[self.key]).fill_null("")
        asked = np.flatnonzero(hidden & (self.rows >= 0))
        right = texts.gather(self.rows[asked]) == texts.gather(source_rows[asked])
        return 2 * int(right.sum()) >= int(hidden.sum())


@dataclass(frozen=True)
class TellingColumns:
    """The best column that tells each key, and columns that are implied by what the intruder knows."""

    tellings: tuple[RevealingColumn, ...] = ()
    implied: tuple[str, ...] = ()


def telling_columns(
    original: Table, released: Table, source_rows: Ints, known: Sequence[str]
) -> TellingColumns:
    """Find what gives back columns that the intruder knows, and what else they know by these."""
    beside = [name for name in released.names if name not in known and _may_tell(released, name)]
    rows = _some_records(original, source_rows) if beside else np.empty(0, dtype=np.int64)
    if len(rows) < _LEAST_SHARING:
        return TellingColumns()
    keys = _samples(original, known, source_rows[rows])
    others = _samples(released, beside, rows)
    tellings, implied = list[RevealingColumn](), dict[str, None]()
    for name, key in keys.items():
        ways = {by: (_strength(each, key), _strength(key, each)) for by, each in others.items()}
        strong = {by: both for by, both in ways.items() if max(each.value for each in both) >= NEARLY}
        hidden = _is_key_hidden(original, released, source_rows, name) if strong else None
        if hidden is None or not hidden.any():
            continue
        shown = _samples(released, [name], rows).get(name)
        best = max((forth, by) for by, (forth, _) in strong.items())
        telling = _telling(original, released, source_rows, name, best)
        own = _Strength() if shown is None else _strength(shown, key)
        if best[0].value >= NEARLY and telling.reveals_key(original, source_rows, hidden, best[0], own):
            tellings.append(telling)
        for by, (_, back) in strong.items():
            before = 0.0 if shown is None else _strength(shown, others[by]).value
            is_implied = back.value >= NEARLY and (back.is_exact or back.value >= before + _MORE)
            if is_implied and not (telling in tellings and by == telling.by):
                implied[by] = None
    return TellingColumns(tuple(tellings), tuple(implied))


def tellers_of(table: Table, known: Sequence[str]) -> tuple[str, ...]:
    """Columns that would give back known ones if those alone were changed: to be changed along with them.

    Weights are none: they leave as means of released classes.
    """
    beside = [name for name in table.names if name not in known and _may_tell(table, name)]
    beside = [name for name in beside if table.schema[name].role is not Role.WEIGHT]
    rows = _some_records(table, np.arange(len(table))) if beside else np.empty(0, dtype=np.int64)
    keys, others = (_samples(table, names, rows) for names in (known, beside))
    return tuple(
        name
        for name, each in others.items()
        if any(max(_strength(each, key), _strength(key, each)).value >= NEARLY for key in keys.values())
    )


def _may_tell(released: Table, name: str) -> bool:
    """Whether a column speaks by its values; numbers of units and pseudonyms join records instead."""
    column = released.schema[name]
    is_number = column.role in STRUCTURAL_ROLES and column.role is not Role.WEIGHT
    return not is_number and not column.pseudonym and column.kind is not Kind.SET


def _some_records(original: Table, source_rows: Ints) -> Ints:
    """Released records to look at: of people, and one of each person or household, if these are enough.

    What all records of a person share is told by nobody else's.
    """
    everyone = rows = np.flatnonzero(source_rows >= 0)
    for name in original.schema.with_role(Role.PERSON, Role.HOUSEHOLD):
        units = original.codes(name).codes[source_rows[rows]]
        first = np.unique(units, return_index=True)[1]
        rows = rows[np.union1d(first[units[first] >= 0], np.flatnonzero(units < 0))]
    rows = rows if len(rows) >= _LEAST_SHARING else everyone
    return rows[:: max(1, len(rows) // _RECORDS)]


def _samples(table: Table, names: Sequence[str], rows: Ints) -> Mapping[str, ColumnSample]:
    """Those of the columns that the table has, and that vary in these records."""
    wanted = [name for name in names if name in table.schema and table.schema[name].kind is not Kind.SET]
    if not wanted:
        return {}
    some = table.select(wanted).take(rows)
    found = {name: sample_column(some, some.schema[name]) for name in wanted}
    return {name: each for name, each in found.items() if each.codes.max(initial=-1) > 0}


def _strength(one: ColumnSample, other: ColumnSample) -> _Strength:
    """How far the one determines the other; exactly, if chance would hardly make it so."""
    if _is_functional_dependency(one.codes, other.codes):
        return _Strength(1.0, is_exact=True)
    ways = [_Strength(determination(one.codes, other.codes, least=_LEAST_SHARING)[0])]
    if one.bands is not one.codes:
        ways.append(_Strength(determination(one.bands, other.codes, least=_LEAST_SHARING)[0], "bands"))
    if one.ranks is not None and other.ranks is not None:
        alike = rank_correlation(one.ranks, other.ranks)
        ways.append(_Strength(alike if alike >= TOGETHER else 0.0, "order"))
    return max(ways)


def _is_functional_dependency(one: Ints, other: Ints) -> bool:
    r"""Whether each value of the one has one of the other, and no chance made it so.

    Of :math:`n` records with :math:`n_b` of each value of the other, :math:`L^m` ways at most to give the
    :math:`m` values of the one one of :math:`L` each are right, out of :math:`n! / \prod_b n_b!`.
    """
    both = (one >= 0) & (other >= 0)
    one, other = one[both], other[both]
    if len(one) < _LEAST_SHARING:
        return False
    n_other = int(other.max()) + 1
    first = one[:_FIRST_LOOK] * n_other + other[:_FIRST_LOOK]
    if count_distinct(first) > count_distinct(one[:_FIRST_LOOK]):  # some have several already
        return False
    cells = distinct_numbers(one * n_other + other)
    counts = np.bincount(other)
    values = count_distinct(cells // n_other)
    if len(cells) > values or np.count_nonzero(counts) < 2:  # noqa: PLR2004
        return False
    ways = math.lgamma(len(one) + 1) - sum(math.lgamma(count + 1) for count in counts.tolist())
    return values * math.log(np.count_nonzero(counts)) - ways < math.log(_CHANCE)


def _is_key_hidden(original: Table, released: Table, source_rows: Ints, name: str) -> Flags:
    """Of which released records the key is not what it was: it is another, coarser, or not there."""
    there = source_rows >= 0
    if name not in released.schema or isinstance(released.frame[name].dtype, pl.Struct):
        return there
    rows = np.where(there, source_rows, 0)
    before = canonical_text(original.frame[name]).fill_null("").gather(rows)
    after = canonical_text(released.frame[name]).fill_null("")
    flags: Flags = there & (before != after).to_numpy()
    return flags


def _telling(
    original: Table, released: Table, source_rows: Ints, key: str, best: tuple[_Strength, str]
) -> RevealingColumn:
    """Say of each released record which original record has the key that its column tells."""
    (_, way, _), by = best
    there = np.flatnonzero(source_rows >= 0)
    if way == "order":
        rows = _rows_in_order(released.numbers(by), original.numbers(key), source_rows, there)
        return RevealingColumn(key, by, rows)
    sample = sample_column(released.select([by]), released.schema[by])
    codes = sample.bands if way == "bands" else sample.codes
    keys = sample_column(original.select([key]), original.schema[key]).codes[source_rows[there]]
    commonest = _commonest(codes[there], keys)
    rows = np.append(np.where(commonest < 0, -1, source_rows[there][commonest]), -1)
    return RevealingColumn(key, by, rows[codes])  # code −1 is the last


def _rows_in_order(values: Floats, keys: Floats, source_rows: Ints, there: Ints) -> Ints:
    """The original record of the same place in the order of the keys as a value has in that of the values."""
    there = there[~np.isnan(values[there]) & ~np.isnan(keys[source_rows[there]])]
    by_value, by_key = (np.argsort(each, kind="stable") for each in (values[there], keys[source_rows[there]]))
    ranked, places = source_rows[there][by_key], np.empty(len(there))
    places[by_value] = np.arange(len(there))
    if places[by_key] @ np.arange(len(there)) < len(there) * (places.mean() ** 2):
        ranked = ranked[::-1]  # the one falls where the other rises
    nearest = np.minimum(np.searchsorted(values[there][by_value], values), len(ranked) - 1)
    return np.where(np.isnan(values), -1, ranked[nearest])


def _commonest(codes: Ints, keys: Ints) -> Ints:
    """The place of a record that has the commonest key of each code; −1 for a code without any."""
    both = np.flatnonzero((codes >= 0) & (keys >= 0))
    cells, first, counts = np.unique(
        codes[both] * (int(keys.max(initial=0)) + 1) + keys[both], return_index=True, return_counts=True
    )
    of_code = cells // (int(keys.max(initial=0)) + 1)
    order = np.lexsort((counts, of_code))
    last = np.append(np.flatnonzero(np.diff(of_code[order])), len(order) - 1) if len(order) else order
    found = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    found[of_code[order[last]]] = both[first[order[last]]]
    return found
