"""Who is who: whose the records are that an intruder holds, and whose the released ones are.

Where rows map the original says whose record each is, whatever a release did to its column of persons. Which
records an intruder can put together is told in `sfumato.data.relations`.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.column_store import series_of
from sfumato.data.generalised.cover import cover_of
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints

#: Records in which agreement can be told from chance, and by how many standard deviations.
_ENOUGH_RECORDS, _BEYOND_CHANCE = 30, 3.0


def persons_of(table: Table) -> Ints:
    """Whose record each is, as numbers: the person's, and a number of its own where there is none."""
    person = table.schema.only_role(Role.PERSON)
    if person is None:
        return np.arange(len(table), dtype=np.int64)
    return with_own_numbers(table.codes(person).codes)


def households_of(table: Table) -> Ints:
    """Which household each record is of, as numbers; without a household number everyone is their own."""
    household = table.schema.only_role(Role.HOUSEHOLD)
    if household is None:
        return np.arange(len(table), dtype=np.int64)
    return with_own_numbers(table.codes(household).codes)


def with_own_numbers(codes: Ints) -> Ints:
    """Give a number of its own to each record that has none."""
    alone = codes < 0
    if not alone.any():
        return codes
    return np.where(alone, codes.max(initial=-1) + np.cumsum(alone), codes)


def count_by_value(values: pl.Series, persons: Ints) -> pl.DataFrame:
    """Each distinct ``value`` in ascending order, with how many ``records`` and ``people`` have it."""
    if (np.diff(persons) > 0).all():  # each record is of another person, so that nobody need be told apart
        held, people = values.alias("value").to_frame(), pl.len()
    else:
        held = pl.DataFrame({"value": values, "person": series_of(persons)})
        people = pl.col("person").n_unique()
    return held.lazy().group_by("value").agg(records=pl.len(), people=people).sort("value").collect()


def sample_by_person(table: Table, records: int, rng: np.random.Generator) -> Ints:
    """So many records by lot, all of a household or person together, so that there may be a few more."""
    roles = [table.schema.only_role(role) for role in (Role.HOUSEHOLD, Role.PERSON)]
    name = next((name for name in roles if name is not None), None)
    if name is None:
        return np.sort(rng.choice(len(table), records, replace=False))
    codes = table.codes(name).codes
    alone = np.where(codes < 0, codes.max(initial=-1) + 1 + np.arange(len(codes)), codes)
    _, places, sizes = np.unique(alone, return_inverse=True, return_counts=True)
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), records)) + 1
    return np.flatnonzero(np.isin(places, order[:enough]))


def is_out_of_order(original: Table, released: Table) -> bool:
    """Whether as many records of a release stand in another order than the original's.

    In the same order some column has much to do with what it was, however it was protected. In another order
    none has, not even one whose values are all there. Of few records nobody can tell.
    """
    names = [name for name in released.names if name in original.schema and not original.is_generalised(name)]
    names = [name for name in names if original.schema[name].kind is not Kind.SET]
    if len(original) < _ENOUGH_RECORDS or not any(_same_values(original, released, name) for name in names):
        return False
    return all(_agreement(original, released, name) < _BEYOND_CHANCE for name in names)


def _same_values(original: Table, released: Table, name: str) -> bool:
    """Whether a column holds the same values, not all alike, in whatever order."""
    first, second = (table.frame[name].cast(pl.String, strict=False) for table in (original, released))
    return not released.is_generalised(name) and first.n_unique() > 1 and first.sort().equals(second.sort())


def _agreement(original: Table, released: Table, name: str) -> float:
    """How much more a column agrees record by record than in a random order, in standard deviations."""
    values, cover = cover_of(original, released, name)
    if original.schema[name].kind is not Kind.NOMINAL:
        middles = cover.middles
        there = ~np.isnan(values) & np.isfinite(middles)
        ranks = [np.unique(side[there], return_inverse=True)[1] for side in (values, middles)]
        if all(each.max(initial=0) > 0 for each in ranks):
            one, other = ((each - each.mean()) / each.std() for each in ranks)
            return float((one * other).mean() * np.sqrt(there.sum() - 1))
    shifts = np.linspace(1, len(values) - 1, 8).astype(np.int64)
    hits, by_chance = cover.holds(values).mean(), [cover.holds(np.roll(values, by)).mean() for by in shifts]
    share = float(np.mean(by_chance))
    return float((hits - share) / np.sqrt((share * (1 - share) + 1 / len(values)) / len(values)))


def best_by_person(persons: Ints, values: Floats) -> Floats:
    """The greatest value of each person: who reaches one of a person's records reaches the person."""
    if (persons[1:] > persons[:-1]).all():  # nobody has several
        return values
    distinct, person = np.unique(persons, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    np.maximum.at(best, person, values)
    return best
