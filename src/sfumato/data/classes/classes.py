"""Classes: the records that look alike in the keys, found in one pass for all measures that count them.

Each key is coded to whole numbers once, the codes of a record are packed into one number, and equal numbers
are a class. How often the values of a sensitive column stand in each class is one sparse count more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato import kernels
from sfumato.data.classes import compatible
from sfumato.data.classes.packing import (
    MAX_PACKED_CODE,
    Coding,
    Unsigned,
    blocks,
    closed_up,
    distinct_of,
    firsts_of,
    fits,
    number,
    pack,
)
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.persons import persons_of
from sfumato.data.schema import Role
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Flags, Floats, Ints

#: What a missing key counts for.
Missing = Literal["category", "any", "worst"]
MISSING_POLICIES: dict[str, str] = {
    "category": "It is a value of its own: only records that lack it too are alike.",
    "any": "It may be any value, and so is alike to all.",
    "worst": "It is whatever makes the record rarest: who lacks a key is alone.",
}

#: Up to here every whole number is one of 64 bits with a point.
MAX_WHOLE = 2**53
#: Whole numbers that fit into 64 bits with a sign.
_NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each value of a column stands in each class: one entry for each pair that occurs, by class.

    Persons are counted where the table says whose record it is, each once for a class and value.
    """

    classes: Ints  # [entries] ascending
    values: Ints  # [entries] codes, ascending within a class; 0 is missing
    counts: Ints  # [entries]
    starts: Ints  # [classes + 1] the entries of class c are starts[c] to starts[c + 1]
    of_values: Ints  # [values] how often each stands in the table: each class of its own members
    examples: Ints  # [values] a record that has the value, −1 for a code that does not occur

    def join_classes(self, of_part: Ints, n_classes: int) -> Counts:
        """The counts of coarser classes, where ``of_part`` says of which each of these is a part."""
        n_values = len(self.of_values)
        if fits(n_classes * n_values, len(self.counts)):
            found = kernels.lattice.join_counts(
                of_part, self.classes, self.values, self.counts, (n_classes, n_values)
            )
            return replace(self, **dict(zip(("classes", "values", "counts", "starts"), found, strict=True)))
        return self._sum_entries(of_part[self.classes], self.values, n_classes, n_values)

    def _sum_entries(self, classes: Ints, values: Ints, n_classes: int, n_values: int) -> Counts:
        """The same entries, of other classes or values: equal ones are added up."""
        distinct, sums = sums_of(classes * n_values + values, self.counts, n_classes * n_values)
        classes = distinct // n_values
        return replace(
            self,
            classes=classes,
            values=distinct % n_values,
            counts=sums.astype(np.int64),
            starts=np.searchsorted(classes, np.arange(n_classes + 1)),
        )

    def recode_values(self, labels: Ints) -> Counts:
        """How often the label of the values stands in each class; ``labels`` are those of the value codes."""
        of_values = _sums(labels, self.of_values, int(labels.max()) + 1)
        examples = np.full(len(of_values), -1, dtype=np.int64)
        examples[labels] = self.examples
        found = self._sum_entries(self.classes, labels[self.values], len(self.starts) - 1, len(of_values))
        return replace(found, of_values=of_values, examples=examples)

    @cached_property
    def totals(self) -> Ints:
        """The sum of the counts of each class."""
        return np.add.reduceat(self.counts, self.starts[:-1]) if len(self.counts) else self.counts

    @cached_property
    def distinct(self) -> Ints:
        """The number of values in each class, missing included."""
        return np.diff(self.starts)

    @cached_property
    def missing_counts(self) -> Ints:
        """How often the value is missing in each class."""
        gone = self.values == 0
        return _sums(self.classes[gone], self.counts[gone], len(self.starts) - 1)


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a table: which records are alike in the keys, and how many.

    ``of_record`` numbers the distinct combinations of keys; ``members`` are the records of each. ``sizes``
    (records), ``persons`` and ``weights`` count all that are alike under the policy ``missing``; they are
    those of the members, unless a missing key matches anything: then a record is alike to records of several
    combinations, and the classes overlap.

    Classes that are ``joined`` hold persons (or households) alike in all of their records, as who sees a file
    sees them that tells whose each record is: the number of records of each combination of keys is the same.
    What is counted are these; a missing key is then alike to a missing one only, which is on the safe side.
    """

    table: Table
    keys: tuple[str, ...]
    missing: Missing
    numbers: Ints | Callable[[], Ints] = field(repr=False)  # of records: see `of_record`
    members: Ints  # [classes]
    examples: Ints  # [classes] the first record of each
    key_codes: Ints | Callable[[], Ints] = field(repr=False)  # of classes: see `codes`
    joined: Ints | None = field(default=None, repr=False)  # [records] who is counted, if they are joined
    _counts: dict[str, Counts] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, table: Table, keys: Sequence[str], *, missing: Missing = "category", apart: bool = True
    ) -> Classes:
        """Find the classes of a table; with no key at all, everyone is alike.

        As a category, what stands for missing values is told ``apart``: each code, and the empty cell.
        """
        n = len(table)
        names = tuple(sorted(keys))
        code = partial(column_codes, table, apart=apart and missing == "category")
        packed = pack(map(code, names), n)  # one column after the other: of many records they take much
        if missing == "worst" and names:
            packed = _separate_missing(packed, map(code, names))
        of_record, members = number(packed)
        if table.counts is not None:
            members = _sums(of_record, table.counts, len(members))
        examples = firsts_of(of_record, len(members))

        def codes() -> Ints:
            found = np.empty((len(members), len(names)), dtype=np.int64)
            for position, name in enumerate(names):
                found[:, position] = code(name).codes[examples]
            return found

        return cls(table, names, missing, of_record, members, examples, codes)

    @classmethod
    def known(
        cls,
        table: Table,
        keys: Sequence[str],
        of_record: Ints | Callable[[], Ints],
        members: Ints,
        *,
        examples: Ints,
        counts: Mapping[str, Counts],
    ) -> Classes:
        """Take classes that were found otherwise, no key missing, and what is known to stand in them.

        Of which class each record is may be given as a function, for who will hardly ask.
        """
        names = tuple(sorted(keys))
        codes = np.broadcast_to(np.int64(1), (len(members), len(names)))
        classes = cls(table, names, "category", of_record, members, examples, codes)
        classes._counts.update(counts)
        return classes

    def join(self, by: Sequence[Ints], persons: Ints) -> Classes:
        """The classes of those whose records have the same number, the last of these the widest.

        ``persons`` are counted: whose each record is.
        """
        of_record = self.of_record
        for numbers in by:
            of_record = alike_in_all(of_record, numbers)
        of_record, members = number(Coding(of_record.astype(np.uint64), int(of_record.max(initial=-1)) + 1))
        examples = firsts_of(of_record, len(members))
        codes = np.full((len(members), len(self.keys)), np.iinfo(np.int64).max)
        np.minimum.at(codes, of_record, self.codes[self.of_record])
        return replace(
            self, numbers=of_record, members=members, examples=examples, key_codes=codes, joined=persons
        )

    def divide_by(self, records: Classes) -> tuple[Classes, Ints]:
        """These classes divided by the classes of single records, and which of these each part is of."""
        pairs = self.of_record * len(records) + records.of_record
        of_record, members = number(Coding(pairs.astype(np.uint64), len(self) * len(records)))
        examples = firsts_of(of_record, len(members))
        codes = records.codes[records.of_record[examples]]
        parts = replace(self, numbers=of_record, members=members, examples=examples, key_codes=codes)
        return parts, self.of_record[examples]

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def of_record(self) -> Ints:
        """The class of each record."""
        return self.numbers() if callable(self.numbers) else self.numbers

    @cached_property
    def codes(self) -> Ints:
        """The codes of the keys, [classes, keys]: 0 is missing; as a category, only what is empty."""
        return self.key_codes() if callable(self.key_codes) else self.key_codes

    @property
    def overlap(self) -> bool:
        """Whether some record is alike to records of several combinations of keys."""
        return self.missing == "any" and self.joined is None and bool((self.codes == 0).any())

    @cached_property
    def sizes(self) -> Ints:
        """The number of records that are alike to those of each class, themselves among them."""
        if not self.overlap:
            return self.members
        return compatible.sums(self.codes, self.members.astype(np.float64)).astype(np.int64)

    @cached_property
    def persons(self) -> Ints:
        """The number of persons in each class: of records, where no column tells whose they are."""
        return self.sizes if self._owners is None else self._count_persons(self._people, 1)[2]

    @cached_property
    def weights(self) -> Floats:
        """The estimated size of each class in the population: the sum of the weights of its records.

        A person with several records counts once for a class, by the least of their weights.
        """
        weights, owners, counts = self.table.weights, self._owners, self.table.counts
        if weights is None:
            return self.persons.astype(np.float64)
        if owners is not None:
            least = np.full(int(owners.max(initial=-1)) + 1, np.inf)
            np.minimum.at(least, owners, weights)
            found = self._people
            own = np.bincount(found.classes, weights=least[found.owners], minlength=len(self))
            return own.astype(np.float64)
        weights = weights if counts is None else weights * counts
        own = np.bincount(self.of_record, weights=weights, minlength=len(self))
        return compatible.sums(self.codes, own.astype(np.float64)) if self.overlap else own.astype(np.float64)

    @cached_property
    def incomplete(self) -> int:
        """The number of records with a missing key."""
        holes = np.zeros(len(self.of_record), dtype=np.bool_)
        for name in self.keys:
            if name in self.table.frame.columns:
                holes |= self.table.missing(name)
        return self.table.count(holes)

    def counts(self, name: str) -> Counts:
        """How often each value of a column stands in each class."""
        if name not in self._counts:
            self._counts[name] = self.counts_of(*_dense(column_codes(self.table, name)))
        return self._counts[name]

    def counts_of(self, values: Ints, n_values: int) -> Counts:
        """How often each of the value codes below ``n_values``, one for each record, stands in each class."""
        own = self._entries(values, n_values)
        found = compatible.spread_entries(self.codes, own) if self.overlap else own
        classes, codes, counts = self._count_persons(found, n_values)
        return Counts(
            classes=classes,
            values=codes,
            counts=counts,
            starts=np.searchsorted(classes, np.arange(len(self) + 1)),
            of_values=_sums(own.values, own.counts, n_values),
            examples=firsts_of(values, n_values),
        )

    @cached_property
    def _owners(self) -> Ints | None:
        """Whose record each is, as numbers from 0; None where no column tells."""
        if self.joined is None and self.table.schema.only_role(Role.PERSON) is None:
            return None
        owners = persons_of(self.table) if self.joined is None else self.joined
        return np.unique(owners, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _people(self) -> compatible.Entries:
        """Who is in each class, each person once."""
        own = self._entries(np.zeros(len(self.of_record), dtype=np.int64), 1)
        return compatible.spread_entries(self.codes, own) if self.overlap else own

    def _entries(self, values: Ints, n_values: int) -> compatible.Entries:
        """Which values stand in each class and how often; or whose they are, each person once."""
        pairs = self.of_record * n_values + values
        owners = self._owners
        if owners is None and self.table.counts is not None:
            distinct, sums = sums_of(pairs, self.table.counts, len(self) * n_values)
            return compatible.Entries(distinct // n_values, distinct % n_values, sums.astype(np.int64))
        if owners is None:
            distinct, counts = distinct_of(pairs, len(self) * n_values)
            return compatible.Entries(distinct // n_values, distinct % n_values, counts)
        kinds, _ = distinct_of(pairs, len(self) * n_values)
        places = np.searchsorted(kinds, pairs)
        n_owners = int(owners.max(initial=0)) + 1
        triples, _ = distinct_of(places * n_owners + owners, len(kinds) * n_owners)
        pairs = kinds[triples // n_owners]
        ones = np.ones(len(triples), dtype=np.int64)
        return compatible.Entries(pairs // n_values, pairs % n_values, ones, triples % n_owners)

    def _count_persons(self, entries: compatible.Entries, n_values: int) -> tuple[Ints, Ints, Ints]:
        """Count the persons of each class and value, where the entries are of persons."""
        if entries.owners is None:
            return entries.classes, entries.values, entries.counts
        distinct, counts = distinct_of(entries.classes * n_values + entries.values, len(self) * n_values)
        return distinct // n_values, distinct % n_values, counts


def alike_in_all(of_record: Ints, numbers: Ints) -> Ints:
    """A number for each record, the same for those whose persons have the same classes equally often."""
    order = np.lexsort((of_record, numbers))
    _, starts, counts = np.unique(numbers[order], return_index=True, return_counts=True)
    alike, used, depth = np.zeros(len(starts), dtype=np.int64), 1, 0
    space = int(of_record.max(initial=0)) + 1
    going = np.arange(len(starts))  # the persons who have a further record
    while len(going):
        pairs = alike[going] * space + of_record[order[starts[going] + depth]]
        distinct, places = np.unique(pairs, return_inverse=True)
        alike[going] = used + places  # never a number of those who end before
        used, depth = used + len(distinct), depth + 1
        going = going[counts[going] > depth]
    found = np.empty(len(of_record), dtype=np.int64)
    found[order] = np.repeat(alike, counts)
    return found


# Codes of a column -------------------------------------------------------------------------------------


def column_codes(table: Table, name: str, *, apart: bool = False) -> Coding:
    """Code a column: equal values, exact or generalised, have equal codes; 0 is missing.

    If what stands for missing values is to be told ``apart``, as by whoever sees the file, a declared code is
    a value like others, and 0 is only what is empty. The codes depend on the column alone, whatever else
    there is in the process.
    """

    def make() -> Coding:
        series = table.frame[name]
        gone = series.is_null().to_numpy() if apart else table.missing(name)
        return _mark_missing(_series_codes(series), gone)

    return table.remember(name, ("coding", apart), make)


def _mark_missing(coding: Coding, gone: Flags) -> Coding:
    """The codes from 1 on, and 0 for what is missing."""
    codes: Unsigned = np.empty(len(gone), np.min_scalar_type(coding.space + 1))
    np.add(coding.codes, codes.dtype.type(1), out=codes, dtype=codes.dtype, casting="same_kind")
    if gone.any():
        codes[gone] = 0
    return Coding(codes, coding.space + 1)


def _series_codes(series: pl.Series) -> Coding:
    """Code the values of a series from 0; what code a missing one has means nothing."""
    dtype = series.dtype
    if is_interval(dtype):
        ends = [series.struct.field(end) for end in ("lo", "hi")]
        coding = pack(
            [_mark_missing(_series_codes(end), end.is_null().to_numpy()) for end in ends], len(series)
        )
    elif dtype.is_float():
        coding = _float_codes(series.cast(pl.Float64).fill_null(0.0))
    elif dtype in _NARROW or dtype.is_temporal():
        coding = _whole_codes(series.to_physical().cast(pl.Int64))
    elif dtype in TEXTUAL or dtype.is_numeric() or dtype == pl.Boolean:
        coding = _text_codes(series if dtype in TEXTUAL else series.cast(pl.String))
    elif dtype == pl.Null:
        coding = Coding(np.zeros(len(series), dtype=np.uint8), 1)
    else:
        raise DataError(
            f"column `{series.name}` must hold plain or generalised values, got: {dtype.base_type()}"
        )
    return coding


def _text_codes(series: pl.Series) -> Coding:
    physical = series.cast(pl.Categorical) if series.dtype == pl.String else series
    found = physical.to_physical()
    numbers = (found.fill_null(0) if found.null_count() else found).to_numpy()
    # A category's own number depends on what else was read: here it is its place of first appearance.
    firsts = firsts_of(numbers, int(numbers.max(initial=0)) + 1)
    there = np.flatnonzero(firsts >= 0)
    seen = there[np.argsort(firsts[there])]
    places = np.zeros(len(firsts), dtype=np.min_scalar_type(len(seen)))
    places[seen] = np.arange(len(seen))
    codes = np.empty_like(places, shape=len(numbers))
    for block in blocks(len(codes)):
        codes[block] = places[numbers[block]]
    return Coding(codes, max(len(seen), 1))


def _float_codes(series: pl.Series) -> Coding:
    if series.len() and (series.is_between(0, MAX_WHOLE) & (series.floor() == series)).all():
        return _whole_codes(series.cast(pl.Int64))  # in the same order
    numbers = series.to_numpy() + 0.0  # −0 is 0
    numbers[np.isnan(numbers)] = np.nan  # of which there are many
    return _rank_codes(numbers.view(np.uint64))


def _whole_codes(series: pl.Series) -> Coding:
    low, high = series.min(), series.max()
    if not isinstance(low, int) or not isinstance(high, int):
        return Coding(np.zeros(len(series), dtype=np.uint8), 1)
    numbers = series.fill_null(low).to_numpy()
    if high - low >= MAX_PACKED_CODE:
        return _rank_codes(numbers.view(np.uint64))
    narrow: np.dtype[np.unsignedinteger] = np.min_scalar_type(high - low)
    codes = np.empty(len(numbers), dtype=narrow)
    np.subtract(numbers, low, out=codes, casting="unsafe")  # exact: it fits
    return Coding(codes, high - low + 1)


def _rank_codes(bits: npt.NDArray[np.uint64]) -> Coding:
    distinct, codes = np.unique(bits, return_inverse=True)
    return Coding(codes.astype(np.min_scalar_type(len(distinct))), max(len(distinct), 1))


def _dense(coding: Coding) -> tuple[Ints, int]:
    """Codes without gaps in the same order, 0 for missing; and a number above all of them."""
    present, _ = distinct_of(coding.codes, coding.space)
    present = present[present > 0]
    if fits(coding.space, len(coding.codes)):
        places = np.zeros(coding.space, dtype=np.int64)
        places[present] = np.arange(1, len(present) + 1)
        return places[coding.codes], len(present) + 1
    found = np.searchsorted(present, coding.codes.astype(np.int64)) + 1
    return np.where(coding.codes == 0, 0, found), len(present) + 1


def _separate_missing(packed: Coding, codings: Iterable[Coding]) -> Coding:
    """Give each record with a missing code a number of its own."""
    alone = np.zeros(len(packed.codes), dtype=np.bool_)
    for coding in codings:
        alone |= coding.codes == 0
    packed = closed_up(packed)
    codes = np.where(alone, np.uint64(packed.space - 1) + np.cumsum(alone).astype(np.uint64), packed.codes)
    return Coding(codes, packed.space + int(alone.sum()))


def sums_of(codes: Ints, amounts: Ints | Floats, space: int) -> tuple[Ints, Floats]:
    """The distinct codes below ``space`` in ascending order, and the sum of the amounts of each."""
    if fits(space, len(codes)):
        # An amount of 0 must not hide a code: whether one occurs is counted.
        present = np.flatnonzero(np.bincount(codes, minlength=1))
        return present, np.bincount(codes, weights=amounts, minlength=1)[present].astype(np.float64)
    distinct, places = np.unique(codes, return_inverse=True)
    return distinct, np.bincount(places, weights=amounts, minlength=len(distinct)).astype(np.float64)


def _sums(places: Ints, counts: Ints, n: int) -> Ints:
    """Sums of whole numbers by place: exact, since they stay below 2^53."""
    return np.bincount(places, weights=counts, minlength=n).astype(np.int64)
