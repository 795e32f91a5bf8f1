"""Who is who: whose the records are that an intruder holds, and whose the released ones are.

Where rows map the original says whose record each is, whatever a release did to its column of persons. What
the released columns of persons and households say is which records an intruder can put together.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.data.codings import codes_of_both
from sfumato.data.evidence import Evidence
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
    return _everyone(table.codes(person).codes)


def households_of(table: Table) -> Ints:
    """Which household each record is of, as numbers; without a household number everyone is their own."""
    household = table.schema.only_role(Role.HOUSEHOLD)
    if household is None:
        return np.arange(len(table), dtype=np.int64)
    return _everyone(table.codes(household).codes)


def _everyone(codes: Ints) -> Ints:
    """Give a number of its own to each record that has none."""
    alone = codes < 0
    if not alone.any():
        return codes
    return np.where(alone, codes.max(initial=-1) + np.cumsum(alone), codes)


def drawn_together(table: Table, records: int, rng: np.random.Generator) -> Ints:
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


def joining(evidence: Evidence) -> dict[str, Ints]:
    """The columns by which an intruder puts records together, the person's before the household's.

    Each with a number for each record of the table seen: those of one number are of one person or household.
    A column that says of no two records that they belong together joins nothing.
    """
    released = evidence.protected
    if evidence.one_by_one or released is None:  # of the raw table nothing leaves
        return {}
    return evidence.remember("joining", lambda: _joining(released, evidence.original))


def _joining(released: Table, original: Table) -> dict[str, Ints]:
    found = {}
    for role in (Role.PERSON, Role.HOUSEHOLD):
        names = dict.fromkeys((*original.schema.with_role(role), *released.schema.with_role(role)))
        for name in names:
            if name in released.schema:
                numbers = _everyone(released.codes(name).codes)
                if len(np.unique(numbers)) < len(numbers):
                    found[name] = numbers
    return found


def joining_columns(table: Table) -> tuple[str, ...]:
    """The columns by which an intruder would put records together if a table left as it is."""
    return tuple(_joining(table, table))


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


def joined_persons(evidence: Evidence, table: Table) -> Ints:
    """Who is counted where records are joined: the persons, or the households if these are joined."""
    persons, original = persons_of(table), evidence.original
    name = list(joining(evidence))[-1]
    if name not in original.schema or original.schema[name].role is not Role.HOUSEHOLD:
        return persons
    rows, released = evidence.source_rows, evidence.protected or original
    codes = released.codes(name).codes if rows is None else np.append(original.codes(name).codes, -1)[rows]
    return np.where(codes < 0, codes.max(initial=-1) + 1 + persons, codes)  # alone without a household


def untraced(evidence: Evidence) -> str | None:
    """Why nobody can tell whose the released records are, though persons have several; None if one can."""
    released, original = evidence.protected, evidence.original
    person = original.schema.only_role(Role.PERSON)
    if released is None or person is None or evidence.source_rows is not None:
        return None
    if released.schema.with_role(Role.PERSON) or len(np.unique(persons_of(original))) == len(original):
        return None
    return (
        f"whose the released records are must be known, since persons have several (`{person}` of the "
        "original tells), got: records that do not map"
    )


def best_by_person(persons: Ints, values: Floats) -> Floats:
    """The greatest value of each person: who reaches one of a person's records reaches the person."""
    distinct, person = np.unique(persons, return_inverse=True)
    best = np.full(len(distinct), -np.inf)
    np.maximum.at(best, person, values)
    return best


def untrue(measure: str, evidence: Evidence) -> str | None:
    """Why nobody can tell which links are right; None if one can."""
    if evidence.source_rows is None:
        return f"{measure} must know which record each released one comes from, got: records that do not map"
    if evidence.scenario.external and _shared_identifier(evidence) is None:
        return (
            f"{measure} must find a person or identifier both in the original and in "
            f"`{evidence.scenario.external}` to know who is who, got: none"
        )
    return None


def _shared_identifier(evidence: Evidence) -> str | None:
    """The column that tells whose record it is in the original and in the intruder's own file."""
    schema = evidence.original.schema
    names = (*schema.with_role(Role.PERSON), *sorted(schema.with_role(Role.IDENTIFIER)))
    return next((name for name in names if name in evidence.known_table.schema), None)


def belonging(evidence: Evidence) -> tuple[Ints, Ints | None, Ints | None]:
    """Whose records the intruder's and the released ones are, and which released one is the same as each."""
    known, sources = evidence.known_table, evidence.source_rows
    if sources is None or untrue("", evidence):
        return persons_of(known), None, None
    shared = _shared_identifier(evidence) if evidence.scenario.external else None
    if shared is None:
        persons = originals = persons_of(known)
        owners = np.append(originals, -1)[sources]  # a source of −1 is nobody
        return persons, owners, _first_of(sources, np.arange(len(known)))
    codes = codes_of_both(known, evidence.original, shared)
    everyone = _everyone(np.concatenate(codes))
    persons, originals = everyone[: len(known)], everyone[len(known) :]
    owners = np.append(originals, -1)[sources]
    return persons, owners, _first_of(owners, persons)


def owners_of(evidence: Evidence) -> Ints:
    """Whose each released record is, as numbers; a record of nobody, or of nobody knows whom, is its own.

    Where records do not map, the release's own column of persons says which belong together.
    """
    assert evidence.protected is not None  # measures see to it
    if evidence.source_rows is None:
        return persons_of(evidence.protected)
    return _everyone(np.append(persons_of(evidence.original), -1)[evidence.source_rows])


def _first_of(names: Ints, wanted: Ints) -> Ints:
    """The place of the first of ``names`` that is the one wanted; −1 where there is none."""
    if not len(names):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(names, kind="stable")
    found = order[np.minimum(np.searchsorted(names[order], wanted), len(names) - 1)]
    return np.where(names[found] == wanted, found, -1)
