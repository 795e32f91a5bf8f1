"""Columns that are declared to say which records belong together: numbers of persons, households, groups.

A pseudonym joins whatever its role: who sees the same name twice knows that it is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.data.persons import with_own_numbers
from sfumato.data.schema import UNIT_ROLES, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints, count_distinct


def person_links(released: Table, original: Table) -> dict[str, Ints]:
    """The columns by which the records of a person or household are put together, with their numbers.

    A column that says of no two records that they belong together joins nothing.
    """
    roles = (Role.PERSON, Role.HOUSEHOLD)
    named = (
        name for role in roles for table in (original, released) for name in table.schema.with_role(role)
    )
    return _joining(released, named)


def group_links(released: Table, original: Table) -> dict[str, Ints]:
    """The columns by which other groups are put together: of that role, or any other with a pseudonym."""
    own = person_links(released, original)
    schemas = (original.schema, released.schema)
    named = (
        column.name
        for schema in schemas
        for column in schema.columns
        if column.role is Role.GROUP or (column.pseudonym and column.name not in own)
    )
    return _joining(released, named)


def joining_columns(table: Table) -> tuple[str, ...]:
    """The columns by which an intruder would put records together if a table left as it is."""
    return (*person_links(table, table), *group_links(table, table))


def units_of(original: Table) -> dict[str, Ints]:
    """Which unit each record of the original is of, by the columns that tell; −1 where they do not.

    An identifier that several records share says as much as a person's number.
    """
    found = {}
    for name in original.schema.with_role(*UNIT_ROLES, Role.IDENTIFIER):
        if original.frame[name].n_unique() == len(original):  # as most identifiers; coding them takes longer
            continue
        codes = original.codes(name).codes
        if _repeats(codes[codes >= 0]):
            found[name] = codes
    return found


def _joining(released: Table, names: Iterable[str]) -> dict[str, Ints]:
    found = {}
    for name in dict.fromkeys(names):
        if name in released.schema:
            numbers = with_own_numbers(released.codes(name).codes)
            if _repeats(numbers):
                found[name] = numbers
    return found


def _repeats(numbers: Ints) -> bool:
    return count_distinct(numbers) < len(numbers)
