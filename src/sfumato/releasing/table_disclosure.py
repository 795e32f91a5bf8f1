"""What tables of the original tell together, and with the released records: few persons, or an amount.

The intruder reads every table and the release, and knows how cells were rounded. *Few persons*: a set of them
(a cell of all columns together, what two cells share, what one has beyond the other, those of a released
class in a cell) is told if in all whole-numbered tables that fit what is published it has from 1 to least − 1
persons. Where the release alone tells that, the tables are not to blame. *An amount*: what the release shows
exactly is subtracted; the rest of a cell must be of enough persons, none of whom dominates it, and no other
set with such a rest may be told to within a tenth of its largest contribution.

A set is safe only if a table was found in which it has nobody or at least as many (`extreme_tables`). The
intruder is taken to know how records belong to persons, and, where there are many cells, which are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sfumato.core.release import Release
from sfumato.data.dominance import hides_each, is_dominated
from sfumato.data.generalised.cover import cover_of
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.cell_bounds import extreme_tables
from sfumato.kernels.controlled_rounding import margin_groups
from sfumato.releasing.tabulate import Tabulation, cells_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Cells of all columns together that are looked at although nobody is in them.
MAX_EMPTY_CELLS = 2_000
#: Published cells and possible places of released classes that are judged at the most, and the work: the
#: sets of persons that the solver is asked for, times these places.
MAX_CELLS, MAX_PLACES, MAX_WORK = 2_000, 50_000, 200_000
#: An amount is told if it is known to within this share of the largest contribution, as by the p % rule.
_WITHIN = 0.1
#: And if it is known to within this share of all amounts, which is nothing.
FLOAT_SHARE = 1e-9


@dataclass(frozen=True, eq=False)
class Publication:
    """A table as it would be written: exact, or with counts ``rounded`` to multiples of a base."""

    made: Tabulation
    least: int
    base: int = 0
    rounded: Ints | None = None

    def small_cells(self) -> Ints:
        """The cells, numbered from 1, that show how few persons they have."""
        return (
            np.flatnonzero(self.made.counts < self.least) + 1 if self.rounded is None else np.array([], int)
        )


class TooManyCellsError(Exception):
    """More cells than can be judged; it never leaves this room."""


# Few persons ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Worlds:
    """Which places the persons of each released class may have, as one system of linear equations.

    A place is what the tables tell of a person: the cells of all columns together that the records are in.
    """

    members: Flags  # [cells, places] which places count in each published cell
    lows: Ints  # [cells] what is published
    highs: Ints
    sums: csr_array  # [margins, cells] sums of cells that are published with rounded ones
    sum_lows: Ints
    sum_highs: Ints
    classes: Ints  # [pairs] the released class of each pair of a class and a place that it may have
    places: Ints  # [pairs]
    sizes: Ints  # [classes] persons of each; −1: those who were left out, whose number is not known
    persons: Floats  # [pairs] how many are there in truth

    @cached_property
    def _system(self) -> tuple[csr_array, Floats, Floats]:
        from scipy.sparse import csr_array, vstack

        known = np.flatnonzero(self.sizes >= 0)
        row_of = np.full(len(self.sizes), -1)
        row_of[known] = np.arange(len(known))
        inside = np.flatnonzero(row_of[self.classes] >= 0)
        released = csr_array(
            (np.ones(len(inside)), (row_of[self.classes[inside]], inside)),
            shape=(len(known), len(self.classes)),
        )
        cells = csr_array(self.members[:, self.places].astype(np.float64))
        rows = vstack([cells, self.sums @ cells, released]).tocsr()
        sizes = self.sizes[known]
        lows = np.concatenate([self.lows, self.sum_lows, sizes]).astype(np.float64)
        highs = np.concatenate([self.highs, self.sum_highs, sizes]).astype(np.float64)
        return rows, lows, highs

    def extremes(self, pairs: Flags) -> tuple[Floats, Floats]:
        """Worlds with the fewest and the most persons at these pairs of a class and a place."""
        rows, lows, highs = self._system
        return extreme_tables(pairs.astype(np.float64), rows, lows, highs, truth=self.persons)

    def told_by_release(self, pairs: Flags, least: int) -> bool:
        """Whether the released classes alone tell that these are few."""
        n = len(self.sizes)
        some = np.bincount(self.classes[pairs], minlength=n) > 0
        other = np.bincount(self.classes[~pairs], minlength=n) > 0
        if (some & (self.sizes < 0)).any():
            return False
        return bool(self.sizes[some & ~other].sum() >= 1 and self.sizes[some].sum() < least)

    def sets(self, least: int, *, of_classes: bool) -> Iterator[Flags]:
        """The sets of persons, as pairs of a class and a place, that are few in truth."""
        persons = _sums(self.places, self.persons, self.members.shape[1])
        few_places = np.flatnonzero((persons > 0) & (persons < least))
        seen = set()
        for chosen in self._place_sets(persons, few_places, least):
            if (key := chosen.tobytes()) not in seen:
                seen.add(key)
                yield chosen[self.places]
        if of_classes:
            for cell in self.members:
                there = cell[self.places]
                inside = np.bincount(
                    self.classes[there], weights=self.persons[there], minlength=len(self.sizes)
                )
                for each in np.flatnonzero((inside > 0) & (inside < least)):
                    yield there & (self.classes == each)

    def _place_sets(self, persons: Floats, few: Ints, least: int) -> Iterator[Flags]:
        for place in few:
            alone = np.zeros(len(persons), dtype=np.bool_)
            alone[place] = True
            yield alone
        numbers = self.members.astype(np.float64)
        shared = (numbers * persons) @ numbers.T
        beyond = np.diag(shared)[:, None] - shared
        for which, is_difference in ((shared, False), (beyond, True)):
            for one, other in np.argwhere((which > 0) & (which < least)):
                yield self.members[one] & (self.members[other] ^ is_difference)


def tell_few_persons(
    publications: Sequence[Publication], original: Table, release: Release, *, of_classes: bool
) -> int:
    """How many sets of few persons the tables tell, alone or with the release."""
    least = max(each.least for each in publications)
    if len(publications) == 1 and publications[0].rounded is None and not of_classes:
        return 0  # its cells share nobody, and no other sums are known
    worlds = _worlds_of(publications, original, release)
    n_told, found = 0, [worlds.persons]
    for pairs in worlds.sets(least, of_classes=of_classes):
        if worlds.told_by_release(pairs, least) or any(_hides(each, pairs, least) for each in found):
            continue
        if len(found) * len(worlds.places) > MAX_WORK:
            raise TooManyCellsError
        extremes = worlds.extremes(pairs)
        n_told += not any(_hides(each, pairs, least) for each in extremes)
        found += extremes
    return n_told


def _hides(world: Floats, pairs: Flags, least: int) -> bool:
    """Whether in a world that fits there is nobody at these pairs, or enough."""
    n = world[pairs].sum()
    return bool(n < 0.5 or n > least - 0.5)  # noqa: PLR2004  — whole numbers


def _worlds_of(publications: Sequence[Publication], original: Table, release: Release) -> _Worlds:
    columns = _columns_of(publications)
    values = tuple(dict.fromkeys(name for each in publications for name in each.made.asked.values))
    own = [
        *(cells_of(original, [name])[0] for name in columns),
        *(~original.missing(name) for name in values),
    ]
    atoms, atom_of = np.unique(np.column_stack(own).astype(np.int64), axis=0, return_inverse=True)
    persons = np.unique(persons_of(original), return_inverse=True)[1]
    alone = int(persons.max(initial=-1)) + 1 == len(persons)
    every = np.concatenate([atoms, _empty_atoms(atoms, publications, columns)]) if alone else atoms
    if sum(len(each.made.firsts) for each in publications) > MAX_CELLS or len(every) > MAX_PLACES:
        raise TooManyCellsError
    seen, covered = _released_classes(original, release, (columns, values), every)
    cells = _published_cells(publications, (columns, values), every)
    places, place_of = _distinct_sets(atom_of.ravel(), persons, len(every), alone=alone)
    classes, class_of = _distinct_sets(seen, persons, len(covered), alone=alone)
    pairs = np.argwhere(covered) if alone else _possible_pairs(classes, places, covered)
    if len(pairs) > MAX_PLACES:
        raise TooManyCellsError
    members = cells.members if alone else np.column_stack([cells.members[:, each].any(1) for each in places])
    sizes = np.bincount(class_of, minlength=len(classes))
    left_out = [number for number, each in enumerate(classes) if each == [len(covered) - 1]]
    sizes[[number for number in left_out if sizes[number]]] = -1
    there, numbers = np.unique(class_of * len(places) + place_of, return_counts=True)
    true = np.zeros(len(classes) * len(places))
    true[there] = numbers
    persons_at = true[pairs[:, 0] * len(places) + pairs[:, 1]]
    return _Worlds(members, *cells[1:], pairs[:, 0], pairs[:, 1], sizes, persons_at)


def _columns_of(publications: Sequence[Publication]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in publications for name in each.made.asked.columns))


def _empty_atoms(atoms: Ints, publications: Sequence[Publication], columns: Sequence[str]) -> Ints:
    """Combinations that nobody has and no exact table shows to be empty, unless there are too many."""
    domains = [np.unique(column) for column in atoms.T]
    if np.prod([float(len(each)) for each in domains]) > MAX_EMPTY_CELLS:
        return atoms[:0]
    every = np.array(list(product(*domains)), dtype=np.int64).reshape(-1, atoms.shape[1])
    possible = ~_is_among(every, atoms)
    for each in publications:
        if each.rounded is None:
            own = [columns.index(name) for name in each.made.asked.columns]
            possible &= _is_among(every[:, own], each.made.codes)
    return every[possible]


def _is_among(rows: Ints, known: Ints) -> Flags:
    listed = set(map(tuple, known.tolist()))
    return np.array([tuple(row) in listed for row in rows.tolist()], dtype=np.bool_)


class _PublishedCells(NamedTuple):
    """What the tables publish of the combinations of all columns: cells, and sums of rounded cells."""

    members: Flags  # [cells, combinations]
    lows: Ints
    highs: Ints
    sums: csr_array
    sum_lows: Ints
    sum_highs: Ints


def _published_cells(
    publications: Sequence[Publication], named: tuple[Sequence[str], Sequence[str]], atoms: Ints
) -> _PublishedCells:
    from scipy.sparse import csr_array, vstack

    (columns, values), members, ranges, sums, sum_ranges = named, [], [], [], []
    n_cells = 0
    for each in publications:
        made, own = each.made, [columns.index(name) for name in each.made.asked.columns]
        codes, cell_of = np.unique(atoms[:, own], axis=0, return_inverse=True)
        inside = cell_of.ravel() == np.arange(len(codes))[:, None]
        number_of = {tuple(code): number for number, code in enumerate(made.codes.tolist())}
        where = np.array([number_of.get(tuple(code), -1) for code in codes.tolist()])
        shown, slack = made.counts if each.rounded is None else each.rounded, max(each.base - 1, 0)
        shown = np.append(shown, 0)[where]
        members.append(inside)
        ranges.append((np.maximum(shown - slack, 0), shown + slack))
        for groups in margin_groups(codes) if each.rounded is not None else ():
            total, true = (
                np.bincount(groups, weights=x).astype(np.int64)
                for x in (shown, np.append(made.counts, 0)[where])
            )
            if (np.abs(total - true) <= slack).all():
                sums.append((groups, n_cells + np.arange(len(codes))))
                sum_ranges.append((np.maximum(total - slack, 0), total + slack))
        n_cells += len(codes)
        for name in made.asked.values:
            present = atoms[:, len(columns) + list(values).index(name)] > 0
            shown = np.append(made.contributors(~made.table.missing(name)), 0)[where]
            members.append(inside & present)
            ranges.append((shown, shown))
            n_cells += len(codes)
    parts = [
        csr_array((np.ones(len(at)), (groups, at)), shape=(len(low), n_cells))
        for (groups, at), (low, _) in zip(sums, sum_ranges, strict=True)
    ]
    joined = vstack(parts).tocsr() if parts else csr_array((0, n_cells))
    none = np.array([], dtype=np.int64)
    lows, highs = (np.concatenate([each[end] for each in ranges]) for end in (0, 1))
    sum_lows, sum_highs = (np.concatenate([none, *(each[end] for each in sum_ranges)]) for end in (0, 1))
    return _PublishedCells(np.concatenate(members), lows, highs, joined, sum_lows, sum_highs)


def _sums(places: Ints, amounts: Floats, n: int) -> Floats:
    return np.bincount(places, weights=amounts, minlength=n).astype(np.float64)


def _released_classes(
    original: Table, release: Release, named: tuple[Sequence[str], Sequence[str]], atoms: Ints
) -> tuple[Ints, Flags]:
    """The released class of each original record by the columns of the tables, and what each class covers.

    The last class is that of records which were left out. A column by which some record is covered wrongly
    says nothing for sure.
    """
    released, rows = release.first, release.source_rows
    assert rows is not None  # or it was refused
    (columns, values), codes, covers = named, [], []
    for place, name in enumerate((*columns, *values)):
        if name not in released.schema:
            continue
        code, cover = (_column_cover if place < len(columns) else _gap_cover)(original, released, rows, name)
        own = cells_of(original, [name])[0] if place < len(columns) else ~original.missing(name)
        if cover[code, own.astype(np.int64)[rows]].all():
            codes.append(code)
            covers.append((cover, place))
    seen: Ints = np.full(len(original), 0, dtype=np.int64)
    combined, class_of = np.unique(
        np.column_stack([*codes, np.zeros(len(released), dtype=np.int64)]), axis=0, return_inverse=True
    )
    covered = np.ones((len(combined) + 1, len(atoms)), dtype=np.bool_)
    for number, (cover, place) in enumerate(covers):
        covered[:-1] &= cover[combined[:, number]][:, atoms[:, place]]
    seen[:] = len(combined)
    seen[rows] = class_of.ravel()
    return seen, covered


def _column_cover(original: Table, released: Table, rows: Ints, name: str) -> tuple[Ints, Flags]:
    """A released column as codes, and which codes of the original column each of them may stand for."""
    code, firsts = cells_of(released, [name])
    own, own_firsts = cells_of(original, [name])
    numbers, cover = cover_of(original, released, name)
    known, shape = numbers[own_firsts], (len(firsts), len(own_firsts))
    held = cover.take(np.repeat(firsts, shape[1])).holds(np.tile(known, shape[0])).reshape(shape)
    is_missing = np.isnan(known)
    for each in np.flatnonzero(cover.missing[firsts]):
        suppressed = not is_missing[own[rows[code == each]]].all()
        held[each] = suppressed | is_missing
    return code, held


def _gap_cover(original: Table, released: Table, rows: Ints, name: str) -> tuple[Ints, Flags]:
    """Which amounts are missing in the release, and what that tells of the original."""
    gone = released.missing(name)
    suppressed = not original.missing(name)[rows][gone].all()
    return (~gone).astype(np.int64), np.array([[True, suppressed], [False, True]])


def _distinct_sets(ids: Ints, persons: Ints, n: int, *, alone: bool) -> tuple[list[list[int]], Ints]:
    """The sets of ids that persons have, and which of them each has; ``alone``: each has one."""
    if alone:
        of_person = np.empty(len(persons), dtype=np.int64)
        of_person[persons] = ids
        return [[each] for each in range(n)], of_person
    pairs = np.unique(np.column_stack([persons, ids]), axis=0)
    parts = np.split(pairs[:, 1], np.flatnonzero(np.diff(pairs[:, 0])) + 1)
    numbers: dict[tuple[int, ...], int] = {}
    of_person = np.array([numbers.setdefault(tuple(part.tolist()), len(numbers)) for part in parts])
    return [list(each) for each in numbers], of_person


def _possible_pairs(classes: list[list[int]], places: list[list[int]], covered: Flags) -> Ints:
    """The pairs in which every released record may be one of the original's, and every one of these is."""
    if len(classes) * len(places) > MAX_PLACES:
        raise TooManyCellsError
    found = [
        (one, other)
        for (one, seen), (other, own) in product(enumerate(classes), enumerate(places))
        if (part := covered[np.ix_(seen, own)]).any(axis=0).all() and part.any(axis=1).all()
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


# Amounts -------------------------------------------------------------------------------------------------


def tell_amounts(publications: Sequence[Publication], release: Release) -> tuple[Ints, int]:
    """The cells of the last table, from 1, whose totals or means tell an amount, and how many sets do."""
    made, n_told = publications[-1].made, 0
    cells = set(_cells_of_one_weight(made))
    for name in made.asked.values:
        asked = [(each, each.made.asked) for each in publications]
        beside = [each for each, of in asked if name in of.values and of.weighted == made.asked.weighted]
        rest = _rest_of(made, release, name)
        cells |= set(_telling_cells(publications[-1], rest, name))
        n_told += _count_told_sets(beside, rest, name) if len(beside) > 1 else 0
    return np.array(sorted(cells), dtype=np.int64), n_told


def _cells_of_one_weight(made: Tabulation) -> Iterator[int]:
    """The cells, from 1, whose weights are mostly those of one person."""
    weights = made.table.weights if made.asked.weighted else None
    if weights is None:
        return
    for number, rows in _rows_by_cell(made):
        if is_dominated(_by_person(weights[rows], made.persons[rows])):
            yield number


def _rows_by_cell(made: Tabulation) -> Iterator[tuple[int, Ints]]:
    order = np.argsort(made.cells, kind="stable")
    yield from enumerate(np.split(order, np.cumsum(np.bincount(made.cells))[:-1]), start=1)


def _rest_of(made: Tabulation, release: Release, name: str) -> Flags:
    """The records with an amount that the release does not show exactly, with its weight if that counts."""
    present = ~np.isnan(made.amounts(name))
    released, rows, shown = release.first, release.source_rows, np.zeros(len(made.table), dtype=np.bool_)
    named = [
        name,
        *(
            each.name
            for each in made.table.schema.columns
            if made.asked.weighted and each.role is Role.WEIGHT
        ),
    ]
    if rows is not None and all(
        each in released.schema and released.frame[each].dtype.is_numeric() for each in named
    ):
        shown[rows] = True
        for each in named:
            shown[rows] &= released.numbers(each) == made.table.numbers(each)[rows]
    return present & ~shown


def _contributions(made: Tabulation, name: str) -> tuple[Floats, Floats]:
    """By how much each amount is above the least one, and below the greatest."""
    numbers = made.table.numbers(name)
    weights = made.table.weights if made.asked.weighted else None
    by = np.ones(len(numbers)) if weights is None else weights
    return (numbers - np.nanmin(numbers)) * by, (np.nanmax(numbers) - numbers) * by


def _telling_cells(publication: Publication, rest: Flags, name: str) -> Iterator[int]:
    """The cells, from 1, whose total tells somebody's amount to readers of the table, or of both."""
    made, present = publication.made, ~np.isnan(publication.made.amounts(name))
    if not present.any():
        return
    sides = _contributions(made, name)
    for number, rows in _rows_by_cell(made):
        parts = [part for part in (rows[present[rows]], rows[rest[rows]]) if len(part)]
        if not all(
            hides_each(side[part], made.persons[part], least=publication.least)
            for part in parts
            for side in sides
        ):
            yield number


def _count_told_sets(publications: Sequence[Publication], rest: Flags, name: str) -> int:
    """How many sets of records in cells of several tables have a rest that is told all but exactly."""
    from scipy.sparse import csr_array

    made, rows = publications[-1].made, np.flatnonzero(rest)
    if not len(rows):
        return 0
    above, below = (side[rows] for side in _contributions(made, name))
    codes = np.column_stack([each.made.cells[rows] for each in publications])
    atoms, atom_of = np.unique(codes, axis=0, return_inverse=True)
    if sum(len(each.made.firsts) for each in publications) > MAX_CELLS or len(atoms) > MAX_PLACES:
        raise TooManyCellsError
    atom_of, least = atom_of.ravel(), max(each.least for each in publications)
    members = np.concatenate([column == np.unique(column)[:, None] for column in atoms.T])
    truth, most = (_sums(atom_of, each, len(atoms)) for each in (above, above + below))
    system = csr_array(members.astype(np.float64))
    totals: Floats = system @ truth
    n_told, found = 0, [truth]
    for chosen in _amount_sets(members):
        own = chosen[atom_of]
        if hides_each(above[own], made.persons[rows][own], least=least):
            continue
        largest = float(_by_person(above[own], made.persons[rows][own]).max())
        needed = max(_WITHIN * largest, FLOAT_SHARE * float(most.sum()))
        if np.ptp([each[chosen].sum() for each in found]) >= needed:
            continue
        if len(found) * len(atoms) > MAX_WORK:
            raise TooManyCellsError
        found += extreme_tables(
            chosen.astype(np.float64), system, totals, totals, truth=truth, most=most, whole=False
        )
        n_told += bool(np.ptp([each[chosen].sum() for each in found]) < needed)
    return n_told


def _amount_sets(members: Flags) -> Iterator[Flags]:
    """The cells of all tables together, and what two published cells share or have beyond each other."""
    n = members.shape[1]
    published, seen = {each.tobytes() for each in members}, set[bytes]()
    for chosen in (*np.eye(n, dtype=np.bool_), *_pairwise(members)):
        key = chosen.tobytes()
        if chosen.any() and key not in seen and key not in published:
            seen.add(key)
            yield chosen


def _pairwise(members: Flags) -> Iterator[Flags]:
    numbers = members.astype(np.float64)
    for one, other in np.argwhere(numbers @ numbers.T > 0):
        yield members[one] & members[other]
        yield members[one] & ~members[other]


def _by_person(amounts: Floats, persons: Ints) -> Floats:
    return np.bincount(np.unique(persons, return_inverse=True)[1], weights=amounts).astype(np.float64)
