"""What measures of several releases share: the releases, who is alike in each, and what stands in each class.

Every release is read as the last one is: records alike in the keys are a class; where sensitive values stand
apart from their records, the bucket is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.waves import SERIES, Wave, Waves
from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import Coding, fits, number, pack
from sfumato.data.generalised.cover import cover_of
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, quoted
from sfumato.kernels.arrays import Flags, Ints
from sfumato.risk._key_measures import KeyMeasure, SensitiveMeasure

#: Pairs of a cell and a value, or of a class and a value, that are looked at at a time.
_AT_ONCE = 1 << 24


def waves_of(evidence: Evidence) -> Waves | None:
    """The earlier releases that the evidence knows of."""
    found: object = evidence.resources.get(SERIES)
    return found if isinstance(found, Waves) else None


def why_not_traceable(measure: str, evidence: Evidence, *, by_record: bool = True) -> str | None:
    """Why nobody can be found again in other releases; None if people can.

    Where it matters which of a person's records is which (``by_record``), something must tell.
    """
    waves = waves_of(evidence)
    if waves is None:
        how = "name them in the part [series] of the plan, which may be empty for the first"
        return f"{measure} needs the earlier releases: {how}"
    if evidence.source_rows is None:
        return f"{measure} needs to know whose the released records are: they do not map to the original"
    if evidence.original.schema.only_role(Role.PERSON) is None:
        return f"{measure} needs a column of persons, and the original has none"
    try:
        everyone = [*waves.earlier, waves.now(evidence)]
    except DataError as error:
        return f"{measure} cannot find people again in other releases: {error.message}"
    return _mixed_up(measure, everyone) if by_record and not waves.identity.record else None


def _mixed_up(measure: str, waves: Sequence[Wave]) -> str | None:
    """Why nobody tells which of a person's records is which; None if each has one at most."""
    again = sum(wave.further for wave in waves)
    if not again:
        return None
    how = "name the column that tells them apart as `record` of the series"
    return f"{measure} cannot tell the records of a person apart ({again} are further ones): {how}"


def evidence_of(wave: Wave, evidence: Evidence) -> Evidence:
    """What the intruder of the last release sees in another one; whose its records are is not asked."""
    return Evidence(evidence.original, Release.as_read(wave.reading, wave.buckets), evidence.scenario)


def left_out(measure: KeyMeasure, waves: Sequence[Wave], evidence: Evidence) -> str | None:
    """Which keys of an earlier release cannot be compared: to leave one out would overstate the safety."""
    for wave in waves:
        seen = evidence_of(wave, evidence)
        others = sorted(set(measure.key_columns(seen)) - set(measure.columns(seen)))
        if others:
            named = quoted(others)
            return f"{measure.name} cannot compare {named} in {wave.name}"
    return None


def why_values_coarse(measure: SensitiveMeasure, waves: Sequence[Wave], evidence: Evidence) -> str | None:
    """Which sensitive columns have generalised values: nobody could tell whether two of them are the same."""
    tables = [*(wave.reading if wave.buckets is None else wave.buckets.values for wave in waves)]
    tables.append(measure.seen_values(evidence))
    coarse = [
        f"`{name}`"
        for name in measure.sensitive_columns(evidence)
        if any(name in each.schema and each.is_generalised(name) for each in tables)
    ]
    return (
        f"{measure.name} needs exact sensitive values, and {', '.join(coarse)} has generalised ones"
        if coarse
        else None
    )


# What stands in each class -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DisclosedValues:
    """What one release tells of a column: the class of each record, and the values that stand in each class.

    Values are numbers that mean the same in all releases; those of class c are ``values[starts[c]:starts[c +
    1]]``, ascending, and each stands there ``counts`` times. What is missing is −1, and sorts first.
    """

    of_record: Ints
    starts: Ints
    values: Ints
    counts: Ints
    space: int

    def without_missing(self) -> DisclosedValues:
        """The same without what is missing: it says nothing, and hides nobody."""
        present = self.values >= 0
        starts = np.append(0, np.cumsum(present))[self.starts]
        return DisclosedValues(self.of_record, starts, self.values[present], self.counts[present], self.space)

    @cached_property
    def sizes(self) -> Ints:
        """How many values stand in each class."""
        return np.diff(self.starts)

    def laid_out(self, classes: Ints) -> tuple[Ints, Ints]:
        """Each of these classes (by place) once for each of its values, and the values."""
        sizes = self.sizes[classes]
        places = np.repeat(np.arange(len(classes)), sizes)
        firsts = np.repeat(self.starts[classes] - np.cumsum(sizes) + sizes, sizes)
        return places, self.values[firsts + np.arange(len(places))]

    def holds(self, classes: Ints, values: Ints) -> Flags:
        """Whether each value stands in the class beside it."""
        wanted = classes * (self.space + 1) + values + 1
        found: Flags
        if self._table is not None:
            found = self._table[wanted]
        else:  # there are values, or the table would be a small one
            places = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
            found = self._pairs[places] == wanted
        return found

    def find(self, classes: Ints, values: Ints) -> Ints:
        """Where each value stands in the class beside it, among all of them; −1 if it does not."""
        wanted = classes * (self.space + 1) + values + 1
        places = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
        return np.where(self._pairs[places] == wanted, places, -1)

    @cached_property
    def _pairs(self) -> Ints:
        """Each class with each of its values, as one number."""
        owners = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return owners * (self.space + 1) + self.values + 1

    @cached_property
    def _table(self) -> Flags | None:
        """Whether each value stands in each class; None where that would be a large table."""
        cells = len(self.sizes) * (self.space + 1)
        if len(self.values) and not fits(cells, len(self.values)):
            return None
        table = np.zeros(cells, dtype=np.bool_)
        table[self._pairs] = True
        return table


def values_of_releases(
    measure: SensitiveMeasure, waves: Sequence[Wave], evidence: Evidence, name: str, *, with_own: bool = False
) -> list[DisclosedValues | None]:
    """What each release, the judged one last, tells of a column; None of one that does not show it.

    With ``with_own`` the original comes after them, in which each value is a class.
    """
    seen = [evidence_of(wave, evidence) for wave in waves]
    seen.append(evidence)
    shown = [name in measure.sensitive_columns(each) for each in seen]
    found = [measure.classes(each) if there else None for each, there in zip(seen, shown, strict=True)]
    lengths = [len(wave.reading) for wave in waves] + [len(evidence.protected or ())]
    if with_own:
        found.append(Classes.of(evidence.original, (name,)))
        lengths.append(len(evidence.original))
    numbered = _number_values(name, evidence, [each for each in found if each is not None], waves)
    return [
        None if classes is None else _values_by_class(classes, name, *next(numbered), length)
        for classes, length in zip(found, lengths, strict=True)
    ]


def _values_by_class(
    classes: Classes, name: str, meanings: tuple[Ints, Ints], space: int, records: int
) -> DisclosedValues:
    """The values of each class; ``meanings`` are those of each value code: where they begin, and they."""
    starts, ids = meanings
    counts = classes.counts(name)
    sizes = np.diff(starts)[counts.values]
    owners = np.repeat(counts.classes, sizes)
    firsts = np.repeat(starts[counts.values] - np.cumsum(sizes) + sizes, sizes)
    values = ids[firsts + np.arange(len(owners))]
    keys = owners * (space + 1) + values + 1
    distinct, places = np.unique(keys, return_inverse=True)
    sums = np.bincount(places, np.repeat(counts.counts, sizes), minlength=len(distinct)).astype(np.int64)
    owners, values = distinct // (space + 1), distinct % (space + 1) - 1
    starts = np.searchsorted(owners, np.arange(len(classes) + 1))
    return DisclosedValues(classes.of_record[:records], starts, values, sums, space)


def _number_values(
    name: str, evidence: Evidence, found: Sequence[Classes], waves: Sequence[Wave]
) -> Iterator[tuple[tuple[Ints, Ints], int]]:
    """For the classes of each release, the numbers that each value code stands for, and their space."""
    cells = [_cells(classes, name) for classes in found]
    coarse = any(table.is_generalised(name) for _, table in cells)
    column = evidence.original.schema[name]
    read = _coarse_meanings if coarse else _exact_meanings
    meanings, space = read(name, column.kind, [table for _, table in cells], evidence, waves)
    for (codes, _), own in zip(cells, meanings, strict=True):
        yield _by_code(codes, own), space


def _cells(classes: Classes, name: str) -> tuple[Ints, Table]:
    """A record of each value code of a column, −1 where it does not occur or is missing, and its cells."""
    examples = classes.counts(name).examples.copy()
    examples[0] = -1
    return examples, classes.table.select([name]).take(examples[examples >= 0])


def _by_code(examples: Ints, meanings: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Spread what each cell stands for over the value codes; what is missing stands for −1."""
    starts, ids = meanings
    sizes = np.zeros(len(examples), dtype=np.int64)
    sizes[examples >= 0] = np.diff(starts)
    sizes[0] = 1
    return np.append(0, np.cumsum(sizes)), np.append(-1, ids)


def _exact_meanings(
    name: str, kind: Kind, tables: Sequence[Table], _evidence: Evidence, _waves: Sequence[Wave]
) -> tuple[list[tuple[Ints, Ints]], int]:
    """Exact values stand for themselves, each by a number of its own."""
    if kind is Kind.CONTINUOUS:
        parts = [table.numbers(name) for table in tables]
        distinct, codes = np.unique(np.concatenate(parts), return_inverse=True)
        space = len(distinct)
    else:
        texts = [canonical_text(table.frame[name]).cast(pl.String) for table in tables]
        codes = (pl.concat(texts).rank("dense").fill_null(0).to_numpy() - 1).astype(np.int64)
        space = int(codes.max(initial=-1)) + 1
    ends = np.cumsum([0, *map(len, tables)])
    return [
        (np.arange(len(table) + 1), codes[start : start + len(table)])
        for table, start in zip(tables, ends, strict=False)
    ], space


def _coarse_meanings(
    name: str, _kind: Kind, tables: Sequence[Table], evidence: Evidence, waves: Sequence[Wave]
) -> tuple[list[tuple[Ints, Ints]], int]:
    """A range or group stands for all values in it that some original or exact release has; a wildcard, none.

    Who sees a wildcard learns nothing from it, and it hides nobody.
    """
    known = _domain(name, tables, evidence, waves)
    meanings = []
    for table in tables:
        if len(table) * len(known) > _AT_ONCE:
            raise DataError(
                f"`{name}` has too many values and ranges to be compared over releases: "
                f"{len(known):,} values and {len(table):,} different cells"
            )
        values, cover = cover_of(known, table, name)
        cells, ids = np.divmod(np.arange(len(table) * len(known)), max(len(known), 1))
        held = cover.take(cells).holds(values[ids]) & ~cover.wildcards[cells]
        cells, ids = cells[held], ids[held]
        meanings.append((np.searchsorted(cells, np.arange(len(table) + 1)), ids))
    return meanings, len(known)


def _domain(name: str, tables: Sequence[Table], evidence: Evidence, waves: Sequence[Wave]) -> Table:
    """All exact values of a column that originals and releases have."""
    column = evidence.original.schema[name]
    exact = [each for each in tables if not each.is_generalised(name)]
    exact += [wave.original for wave in waves if wave.original is not None and name in wave.original.schema]
    exact = [each for each in (evidence.original, *exact) if not each.is_generalised(name)]
    there = [each.frame[name].filter(pl.Series(~each.missing(name))) for each in exact]
    dtype = evidence.original.frame.schema[name]
    values = pl.concat([each.cast(dtype, strict=False) for each in there]).drop_nulls().unique()
    return Table(pl.DataFrame({name: values.sort()}), Schema((column,)))


# Who is in which class ---------------------------------------------------------------------------------


def number_rows(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Number the distinct rows of several columns of numbers from −1 on: of each row, and a row of each."""
    n = len(columns[0])
    codings = [Coding((each + 1).astype(np.uint64), int(each.max(initial=-1)) + 2) for each in columns]
    of_row, counts = number(pack(codings, n))
    examples = np.zeros(len(counts), dtype=np.int64)
    examples[of_row[::-1]] = np.arange(n)[::-1]
    return of_row, examples


def common_values(one: DisclosedValues, classes: Ints, other: DisclosedValues, others: Ints) -> Ints:
    """How many values a class of one release and a class of another, beside it, have in common."""
    of_pair, examples = number_rows([classes, others])
    first, second = classes[examples], others[examples]
    common = np.zeros(len(examples), dtype=np.int64)
    for part in slices_of(one.sizes[first]):
        places, values = one.laid_out(first[part])
        held = other.holds(second[part][places], values)
        common[part] = np.bincount(places[held], minlength=len(first[part]))
    return common[of_pair]


def slices_of(sizes: Ints) -> Iterator[slice]:
    """Parts one after the other, in each of which the sizes add up to little enough to be held at a time."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + _AT_ONCE, side="right")), start + 1)
        yield slice(start, stop)
        start = stop
