"""What an intruder sees of the evidence: the table, who is alike in it, and whose records belong together.

Where rows map the original says whose record each is, whatever a release did to its column of persons. What
the released columns of persons and households say is which records an intruder can put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.data.classes.classes import Classes, Missing
from sfumato.data.classes.packing import firsts_of
from sfumato.data.codings import codes_of_both
from sfumato.data.persons import persons_of, with_own_numbers
from sfumato.data.relations.joining import group_links, person_links
from sfumato.data.relations.regrouping import Regrouping, regroupings, released_units
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints, count_distinct


def seen_table(evidence: Evidence) -> Table:
    """The table an intruder sees: the release, or the original when that itself is assessed.

    Persons are counted, and no release makes new ones: where rows map, the original's column tells whose
    record each is, be it gone from the release, emptied or exchanged. People of the population are counted by
    exact weights, which owner and survey know, where the released ones are means.
    """
    released, rows = evidence.protected, evidence.source_rows
    if released is None:
        return evidence.original

    def seen() -> Table:
        person, table = (
            evidence.original.schema.only_role(Role.PERSON),
            _with_exact_weights(evidence, released),
        )
        return (
            table if rows is None or person is None else _with_persons(table, evidence.original, person, rows)
        )

    named = evidence.original.schema.resolve(evidence.scenario.columns)
    weight = released.schema.only_role(Role.WEIGHT)
    return evidence.remember_for_all(("seen", weight in named), seen)


def _with_exact_weights(evidence: Evidence, released: Table) -> Table:
    """The release with exact weights in place of averaged ones, unless the intruder is said to know these.

    A mean hides who was drawn as one of few, and would say that they are like many. Of a release that was
    read from a file, whose fewer weights are means, they are the original's, with the same sum.
    """
    name, original, rows = released.schema.only_role(Role.WEIGHT), evidence.original, evidence.source_rows
    release = evidence.release
    if release is None or name is None or name in original.schema.resolve(evidence.scenario.columns):
        return released
    if release.exact_weights is not None:
        return released.with_values(name, pl.Series(release.exact_weights.values, nan_to_null=True))
    is_read = not release.steps and name == original.schema.only_role(Role.WEIGHT)
    if not is_read or rows is None or not len(rows) or (rows < 0).any() or released.is_generalised(name):
        return released
    exact, means = original.numbers(name)[rows], released.numbers(name)
    if len(np.unique(means)) >= len(np.unique(exact)) or not np.nansum(exact) > 0:
        return released
    return released.with_values(
        name, pl.Series(exact * (np.nansum(means) / np.nansum(exact)), nan_to_null=True)
    )


def _with_persons(released: Table, original: Table, person: str, rows: Ints) -> Table:
    """Put the original's column of persons beside the released ones; what has no source is nobody's."""
    sources = pl.Series(np.where(rows < 0, 0, rows)).set(pl.Series(rows < 0), None)
    persons = original.frame[person].gather(sources)
    column, others = original.schema[person], released.schema.with_role(Role.PERSON)
    if person in released.schema:  # what the release says is a column like others then
        column = replace(column, name=f"{person} of the original")
    schema = released.schema.replace(*(replace(released.schema[each], role=Role.OTHER) for each in others))
    frame = released.frame.with_columns(persons.alias(column.name))
    return replace(released, frame=frame, schema=schema.replace(column))


def classes_of(
    evidence: Evidence, keys: Sequence[str], *, missing: Missing = "category", joined: bool = False
) -> Classes:
    """The classes of the table that an intruder sees, found once for all measures of the same evidence.

    They are ``joined`` by what the table tells of persons and households, if that is wanted and it does.
    """
    table, names = seen_table(evidence), tuple(sorted(keys))
    links = tuple(joining(evidence).values()) if joined else ()
    if links:
        return evidence.remember(
            ("joined", names, missing),
            lambda: classes_of(evidence, names, missing=missing).join(links, joined_persons(evidence, table)),
        )
    what = ("classes", table, names, missing)
    return evidence.remember_for_all(what, lambda: Classes.of(table, names, missing=missing))


def joining(evidence: Evidence) -> dict[str, Ints]:
    """The columns by which an intruder puts records together: the person's, the household's, what else does.

    Each with a number for each record of the table seen: those of one number are of one person or household.
    A column that says of no two records that they belong together joins nothing.
    """
    released = evidence.protected
    if evidence.sampling.ignore_person_links or released is None:  # of the raw table nothing leaves
        return {}
    links = evidence.remember_for_all("joining", lambda: person_links(released, evidence.original))
    return links if evidence.joined is None else {**links, evidence.joined.by: evidence.joined.numbers}


def regroupings_of(evidence: Evidence) -> tuple[Regrouping, ...]:
    """What puts units (persons, households, groups) together again that no released column is said to join.

    Nothing, where nobody can tell whose the released records are, or whether these columns will leave.
    """
    released, rows = evidence.protected, evidence.source_rows
    if released is None or rows is None or evidence.sampling.ignore_person_links:
        return ()

    def find() -> tuple[Regrouping, ...]:
        declared = {*person_links(released, evidence.original), *group_links(released, evidence.original)}
        units = released_units(evidence.original, rows)
        return regroupings(released, {name: each for name, each in units.items() if name not in declared})

    return evidence.remember_for_all("regroupings", find)


def joined_persons(evidence: Evidence, table: Table) -> Ints:
    """Who is counted where records are joined: the persons, or the households or groups that are joined."""
    if evidence.joined is not None:
        return evidence.joined.numbers
    persons, original = persons_of(table), evidence.original
    name = list(joining(evidence))[-1]
    if name not in original.schema or original.schema[name].role is not Role.HOUSEHOLD:
        return persons
    rows, released = evidence.source_rows, evidence.protected or original
    codes = released.codes(name).codes if rows is None else np.append(original.codes(name).codes, -1)[rows]
    return np.where(codes < 0, codes.max(initial=-1) + 1 + persons, codes)  # alone without a household


def why_persons_unknown(evidence: Evidence) -> str | None:
    """Why nobody can tell whose the released records are, though persons have several; None if one can."""
    released, original = evidence.protected, evidence.original
    person = original.schema.only_role(Role.PERSON)
    if released is None or person is None or evidence.source_rows is not None:
        return None
    if released.schema.with_role(Role.PERSON) or count_distinct(persons_of(original)) == len(original):
        return None
    return (
        f"whose the released records are must be known, since persons have several (`{person}` of the "
        "original tells), got: records that do not map"
    )


def why_pairs_unknown(measure: str, evidence: Evidence) -> str | None:
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
    if sources is None or why_pairs_unknown("", evidence):
        return persons_of(known), None, None
    shared = _shared_identifier(evidence) if evidence.scenario.external else None
    if shared is None:
        persons = originals = persons_of(known)
        owners = np.append(originals, -1)[sources]  # a source of −1 is nobody
        same = firsts_of(np.where(sources < 0, len(known), sources), len(known) + 1)[:-1]
        return persons, owners, same
    codes = codes_of_both(known, evidence.original, shared)
    everyone = with_own_numbers(np.concatenate(codes))
    persons, originals = everyone[: len(known)], everyone[len(known) :]
    owners = np.append(originals, -1)[sources]
    return persons, owners, _first_of(owners, persons)


def _first_of(names: Ints, wanted: Ints) -> Ints:
    """The place of the first of ``names`` that is the one wanted; −1 where there is none."""
    if not len(names):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(names, kind="stable")
    found = order[np.minimum(np.searchsorted(names[order], wanted), len(names) - 1)]
    return np.where(names[found] == wanted, found, -1)


def owners_of(evidence: Evidence) -> Ints:
    """Whose each released record is, as numbers; a record of nobody, or of nobody knows whom, is its own.

    Where records do not map, the release's own column of persons says which belong together.
    """
    assert evidence.protected is not None  # measures see to it
    if evidence.source_rows is None:
        return persons_of(evidence.protected)
    return with_own_numbers(np.append(persons_of(evidence.original), -1)[evidence.source_rows])
