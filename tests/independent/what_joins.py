"""What an intruder does with a released file: reads it, puts together what joins, and looks for people.

This file is to be read by whoever answers for a release. It shares no code with sfumato, nor with anything
beyond Python itself: it opens the original and the released file as texts and goes through them in loops. The
intruder has the released file and knows the *known* columns of everybody's records (age, sex, region …). They
do not know which number, weight or date joins what, so they try every column, and every pair of columns.

The four attacks:

`regrouped`
    Records that agree in a column or two are taken for those of one person, household or group. A whole
    household is rarely like another, however ordinary its members are: its records together find it.
`read_from_another`
    A column that nobody thought of gives a changed key back (the hospital tells the county).
`differences` and `ratios`
    Dates that were moved together and amounts that were multiplied together are as far apart as before.

Whether a guess is right is known to the test alone: row i of the release is row i of the original (`shuffle =
false`), and the *units* say to which person, household or group of the original each row belongs.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from datetime import datetime
from functools import cache
from itertools import combinations
from typing import NamedTuple

LEAST_SETS = 8  # sets of records that a grouping must make before anyone believes in it
LEAST_SHARE = 0.5  # of these sets, the share that must be of one unit only
LEAST_SHARING = 30  # records that must share their value with another before a column tells anything
NEAR = 1.0003  # times an amount: how far the next of the same unit may be
HIDDEN = {"", "*"}


class Find(NamedTuple):
    """The people that an attack finds for sure, by their rows in the original, and what it used."""

    attack: str
    columns: tuple[str, ...]
    people: frozenset[int]


def read_rows(path):
    """The records of a file, each a dictionary of texts."""
    with open(path, newline="", encoding="utf-8") as stream:  # noqa: PTH123
        return list(csv.DictReader(stream))


def attack(original, released, known, units):
    """Every find of every attack.

    ``original`` and ``released`` are lists of records; ``known`` are the columns that the intruder knows;
    ``units`` maps "person", and "household" or "group" where there are some, to whose each row is, "" if nobody's.
    """
    assert len(original) == len(released), "row i of the release must be row i of the original"
    finds = [
        *regrouped(original, released, known, units),
        *read_from_another(original, released, known, units),
    ]
    finds += [kept_between(original, released, known, way) for way in (_difference, _ratio)]
    return [each for each in finds if each.people]


# What a released cell says --------------------------------------------------------------------------------


@cache
def as_number(text):
    """A number, or a date or time as a number of days; None for any other text."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when - datetime(1970, 1, 1, tzinfo=when.tzinfo)).total_seconds() / 86400


@cache
def is_compatible(cell, truth):
    """Whether a released cell may stand for a true value: the same, `[lo;hi]`, `{a|b}`, `E11*`, `*19`, `*`, empty.

    A true value that the intruder does not know may be anything.
    """
    if cell in HIDDEN or truth in {"", cell}:
        return True
    number = as_number(truth)
    if cell.startswith("[") and cell.endswith("]") and cell.count(";") == 1:
        low, high = (as_number(end) if end else None for end in cell[1:-1].split(";"))
        return number is not None and (low is None or low <= number) and (high is None or number <= high)
    if cell.startswith("{") and cell.endswith("}"):
        members = cell[1:-1].split("|")
        return "..." in members or any(is_compatible(each, truth) for each in members)
    if cell.endswith("*"):
        return truth.startswith(cell.rstrip("*"))
    if cell.startswith("*"):
        return truth.endswith(cell.lstrip("*"))
    return number is not None and number == as_number(cell)


def fits(record, person, known):
    """Whether a released record may be that of a person, by all that is known and still there."""
    return all(is_compatible(record[name], person[name]) for name in known if name in record)


# Records that are put together again ----------------------------------------------------------------------


def regrouped(original, released, known, units):
    """Find units by their records, put together by each column and each pair of columns that does it."""
    names = list(released[0]) if released else []
    ways = {columns: alike_in(released, columns) for n in (1, 2) for columns in combinations(names, n)}
    ways |= {(f"{name}, nearly",): near_in(released, name) for name in names}
    for columns, sets in ways.items():
        for unit_of in units.values():
            if is_believable(sets, unit_of):
                people = found_units(original, released, known, sets, unit_of)
                yield Find("regrouped", columns, frozenset(people))


def alike_in(released, columns):
    """The sets of two or more rows that agree in some columns; what is hidden agrees with nothing."""
    rows = defaultdict(list)
    for row, record in enumerate(released):
        cells = tuple(record[name] for name in columns)
        if not HIDDEN & set(cells):
            rows[cells].append(row)
    return [each for each in rows.values() if len(each) > 1]


def near_in(released, name):
    """The sets of two or more rows whose amounts follow each other nearly without a gap."""
    amounts = sorted((as_number(record[name]) or 0, row) for row, record in enumerate(released))
    sets, last = [], 0
    for amount, row in amounts:
        if last > 0 and amount <= last * NEAR:
            sets[-1].append(row)
        elif amount > 0:
            sets.append([row])
        last = amount
    return [sorted(each) for each in sets if len(each) > 1]


def is_believable(sets, unit_of):
    """Whether there are enough sets, and most of them are of one unit."""
    pure = sum(unit_of[each[0]] != "" and len({unit_of[row] for row in each}) == 1 for each in sets)
    return len(sets) >= LEAST_SETS and pure >= LEAST_SHARE * len(sets)


def found_units(original, released, known, sets, unit_of):
    """The rows of units whose own set is the only one that fits all their records, one by one.

    Nobody is sure of it if the set would fit another unit as well whose own records were not put together.
    """
    rows_of = defaultdict(list)
    for row, unit in enumerate(unit_of):
        rows_of[unit].append(row)
    rows_of.pop("", None)
    whole, broken = defaultdict(list), defaultdict(list)  # units by the number of their records
    for rows in rows_of.values():
        (whole if rows in sets else broken)[len(rows)].append(rows)
    found = set()
    for size, units in whole.items():
        seen = [each for each in sets if len(each) == size]
        for unit in units:
            others = [(unit, each) for each in seen if each != unit] + [(each, unit) for each in broken[size]]
            pairs = [(unit, unit), *others]
            fit = (can_be_paired(original, released, known, *pair) for pair in pairs)
            if next(fit) and not any(fit):
                found.update(unit)
    return found


def can_be_paired(original, released, known, persons, records):
    """Whether each person can have a record of their own that fits (Kuhn's way to pair them)."""
    options = {p: [r for r in records if fits(released[r], original[p], known)] for p in persons}
    owner = {}

    def place(person, tried):
        for record in options[person]:
            if record not in tried:
                tried.add(record)
                if record not in owner or place(owner[record], tried):
                    owner[record] = person
                    return True
        return False

    return all(options.values()) and all(place(person, set()) for person in persons)


# Keys that another column tells ---------------------------------------------------------------------------


def read_from_another(original, released, known, units):
    """Find who is alone once changed keys are read from the columns that tell them."""
    tellers = {}
    for key in known:
        for name in released[0] if released else ():
            if name not in known and key not in tellers and tells(original, released, name, key, units):
                tellers[key] = name
    if not tellers:
        return
    informed = [dict(record) for record in released]
    for key, name in tellers.items():
        told = {record[name]: person[key] for record, person in zip(released, original, strict=True)}
        shared = Counter(record[name] for record in released)
        for record, plain in zip(informed, released, strict=True):
            if plain[name] not in HIDDEN and shared[plain[name]] > 1:
                record[key] = told[plain[name]]
    columns = tuple(f"{key} from {name}" for key, name in tellers.items())
    yield Find("read from another column", columns, found_alone(original, informed, known, units))


def tells(original, released, name, key, units):
    """Whether each shared value of a column goes with one value of a key that the release changed or dropped.

    A value that only the records of one unit share says which these are, and nothing that others know.
    """
    if all(record.get(key) == person[key] for record, person in zip(released, original, strict=True)):
        return False
    rows = [each for each in alike_in(released, (name,)) if _is_of_several(each, units)]
    values = [{original[row][key] for row in each} for each in rows]
    several = len(set().union(*values)) > 1  # a key that is the same for all needs no telling
    return several and sum(map(len, rows)) >= LEAST_SHARING and all(len(each) == 1 for each in values)


def _is_of_several(rows, units):
    return all(len({unit_of[row] for row in rows}) > 1 for unit_of in units.values())


def found_alone(original, released, known, units):
    """The rows of people whom only their own released records fit."""
    owner, found = units["person"], set()
    for row, person in enumerate(original):
        fitting = {owner[other] for other, record in enumerate(released) if fits(record, person, known)}
        if fitting == {owner[row]} and fits(released[row], person, known):
            found.add(row)
    return frozenset(found)


# What stays between columns -------------------------------------------------------------------------------


def _difference(one, other):
    return round(one - other)


def _ratio(one, other):
    return f"{one / other:.4g}" if other else None


def kept_between(original, released, known, between):
    """Find who is alone in the differences (or ratios) of the known numbers, before and after."""
    names = [
        name
        for name in known
        if any(person[name] for person in original)
        and all(name in record for record in released)
        and all(
            as_number(row[name]) is not None for rows in (original, released) for row in rows if row[name]
        )
    ]
    before, after = (Counter(signatures(rows, names, between)) for rows in (original, released))
    mine = zip(signatures(original, names, between), signatures(released, names, between), strict=True)
    people = (
        row for row, (was, now) in enumerate(mine) if was and was == now and before[was] == after[was] == 1
    )
    return Find(between.__name__.strip("_"), tuple(names), frozenset(people))


def signatures(rows, names, between):
    """What stands between the columns of each record; None where a cell is empty or there are no two."""
    signed = []
    for row in rows:
        numbers = [as_number(row[name]) if row[name] else None for name in names]
        whole = len(numbers) > 1 and None not in numbers
        signed.append(tuple(between(one, two) for one, two in combinations(numbers, 2)) if whole else None)
    return signed


def share_found(find, units):
    """The share of the persons whom an attack finds."""
    owner = units["person"]
    return len({owner[row] for row in find.people}) / len(set(owner))
