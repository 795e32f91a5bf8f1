"""What de-associative methods share: which records they accept, buckets, and the check of the release.

A sensitive value may fill at most one place in :math:`l` of a bucket, so that nobody's value is guessed with
a better chance. Whether it does is measured on what is released, by the measure that anyone can run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, final

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core import registry
from sfumato.core.method import EnforcedRequirement, Gives, Method, Takes
from sfumato.core.origin import Origin
from sfumato.core.params import Columns, param
from sfumato.core.release import Byproducts, Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import Coding, closed_up, pack
from sfumato.data.generalised.ranges import RecordGroups
from sfumato.data.persons import persons_of
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, UnreachableError, quoted
from sfumato.kernels.arrays import Flags, Ints, count_distinct
from sfumato.methods._enforcing import COMPARABLE, Guarantee

#: Codes below this are sorted in one pass for each of their two bytes.
_MAX_TWO_BYTE_CODES = 1 << 16


class DeassociatingMethod(Method):
    """Separates sensitive values from their records, so that no value is too frequent in any bucket."""

    kinds = COMPARABLE
    nature = "de-associative"
    takes = Takes(generalised=True)
    gives = Gives(deassociated=True, new_columns=True)
    cost = "n log n"

    sensitive: Columns = param(
        Columns(("@sensitive",)),
        "Sensitive columns, whose values are separated from their records.",
        label="Sensitive columns",
    )
    missing: Literal["refused", "category"] = param(
        "refused",
        "How a missing sensitive value is treated.",
        choices={
            "refused": "As an error: nothing is released while one is missing.",
            "category": "As a value of its own, separated like the others.",
        },
        label="Missing sensitive values",
    )

    @property
    def values_in_bucket(self) -> int:
        """Diversity l: no sensitive value makes up more than 1/l of a bucket."""
        raise NotImplementedError  # abstract: the parameter has the letter of its model

    def sensitive_columns(self, table: Table) -> tuple[str, ...]:
        """The sensitive columns, sorted by name."""
        return tuple(sorted(table.schema.resolve(self.sensitive)))

    def refuses(self, table: Table) -> str | None:
        """Refuse nobody's table, columns that cannot be parted, and persons with several records."""
        return super().refuses(table) or _unpartable(self.name, table, self.sensitive_columns(table))

    def require_values(self, table: Table) -> None:
        """Raise if sensitive values are missing that may not be."""
        for name in self.sensitive_columns(table) if self.missing == "refused" else ():
            if gone := int(table.missing(name).sum()):
                raise DataError(
                    f"`{name}` must have a value in every record for {self.name}, got: {gone} missing",
                    hint="remove these records, or count missing as a value with missing = category",
                )

    def guarantee(self, keys: Sequence[str]) -> Guarantee:
        """What must hold of the buckets: that no value of any sensitive column is too frequent."""
        share = registry.measure("alpha-k-anonymity").from_dict({"sensitive": list(self.sensitive)})
        return Guarantee((Requirement(share, "<=", 1 / self.values_in_bucket),), tuple(keys))

    def enforced_requirements(
        self,
        schema: Schema,  # noqa: ARG002
        columns: Sequence[str],
    ) -> tuple[EnforcedRequirement, ...]:
        """That no sensitive value is too frequent in a bucket, and what else is asked for."""
        return self.guarantee(columns).listing()


class BucketMethod(DeassociatingMethod):
    """Shows only in which bucket each record's sensitive values are. Write ``part``."""

    analyst_note = (
        "Sensitive values are separated from their records: a count over both is an expected count by "
        "bucket, which `expected_count` gives. Do not join single records."
    )

    l: int = param(  # noqa: E741  — the model's own letter
        3,
        "Diversity l: no sensitive value makes up more than 1/l of a bucket.",
        ge=2,
        le=1000,
        symbol="l",
        log=True,
        tune=(2, 12),
        drive=True,
    )

    @property
    def values_in_bucket(self) -> int:
        """The l of l-diversity."""
        return self.l

    def drive_range(self, table: Table) -> tuple[float, float]:
        """Search no further than the most frequent sensitive value lets it."""
        low, high = super().drive_range(table)
        most = [_most(table, name) for name in self.sensitive_columns(table)]
        return low, max(low, min(high, len(table) // max(*most, 1, 1)))

    def part(self, table: Table, names: tuple[str, ...], run: Run) -> Release:
        """Release the table with the sensitive columns separated."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Part what may be parted, then measure what came of it: what does not hold is refused."""
        names = self.sensitive_columns(table)
        self._require_eligible(table, names)
        release = self.part(table, names, run)
        unmet = self.unmet(table, release, run)
        if unmet:
            raise UnreachableError(
                f"{self.name} cannot meet the requirements: {'; '.join(unmet)}",
                hint="relax the requirements, or name fewer sensitive columns",
            )
        return release

    def _require_eligible(self, table: Table, names: Sequence[str]) -> None:
        """Raise if no buckets whatever would do."""
        n = len(table)
        if n < self.l:
            raise UnreachableError(f"{self.name} must be given at least {self.l} records, got: {n}")
        self.require_values(table)
        most = {name: _most(table, name) for name in names}
        for name in names:
            if self.l * most[name] > n:
                raise UnreachableError(
                    f"no value of `{name}` may have more than 1 in {self.l} records, got: a value with "
                    f"{most[name]} of {n}",
                    hint=f"use l = {n // most[name]}"
                    if n >= 2 * most[name]
                    else "buckets cannot hide a value that most records have: leave the column out",
                )

    def unmet(self, table: Table, release: Release, run: Run) -> list[str]:
        """What was asked for and a release does not meet, in words; what is not released tells nothing."""
        shown = {name for each in release.tables.values() for name in each.names}
        if not shown & set(self.sensitive_columns(table)):
            return []
        buckets = release.buckets
        if buckets is None:
            return ["separation: sensitive values are next to their records, because the bucket is not shown"]
        guarantee = self.guarantee(table.chosen)
        return guarantee.unmet_in(guarantee.evidence_of(buckets.values, buckets, run), run)

    def failing(self, table: Table, run: Run) -> Callable[..., Flags]:  # noqa: ARG002  — others measure
        """Tell which parts [from, to] of an order of records may not be buckets, keys ``beside`` shown."""
        names = self.sensitive_columns(table)

        @cache
        def coded(*columns: str) -> Ints:
            one = len(columns) == 1
            codings = [
                column_codes(table, name, apart=name not in names)
                if one
                else Coding(coded(name).astype(np.uint64), int(coded(name).max()) + 1)
                for name in columns
            ]
            return closed_up(pack(codings, len(table))).codes.astype(np.int64)

        def fails(order: Ints, parts: Ints, beside: Sequence[str] = ()) -> Flags:
            alike, found = coded(*beside), np.zeros(len(parts), dtype=np.bool_)
            if self.l * (int(alike.max()) + 1) > len(table):  # some have fewer who are alike
                return ~found
            for name in names:
                cells = kernels.buckets.ClassValueCodes(alike, coded(*beside, name))
                found |= kernels.buckets.too_frequent(order, parts, cells, self.l)
            return found

        return fails


def _unpartable(method: str, table: Table, names: Sequence[str]) -> str | None:
    """Why sensitive columns cannot be taken apart from their records; None if they can."""
    if not len(table):
        return f"{method} must be given records, got: none"
    both = [name for name in names if name in table.chosen]
    wrong = [name for name in names if table.schema[name].kind not in COMPARABLE]
    coarse = [name for name in names if table.is_generalised(name)]
    if not names or both:
        got = f"{quoted(both)}, which are keys" if both else "none"
        return f"{method} must be given sensitive columns that are not keys, got: {got}"
    if wrong or coarse:
        others = quoted(wrong or coarse)
        return f"{method} must be given single exact sensitive values, got: others in {others}"
    whose = table.schema.only_role(Role.PERSON)
    again = len(table) - count_distinct(persons_of(table)) if whose else 0
    if again:
        return (
            f"{method} must be given one record per person, got: {again} more; the buckets of one person "
            "together reveal the value"
        )
    return None


def _most(table: Table, name: str) -> int:
    """How many records the most frequent value has."""
    codes = closed_up(column_codes(table, name)).codes
    return int(np.bincount(codes.astype(np.int64), minlength=1).max())


def deal_records(table: Table, names: Sequence[str], l: int, rng: np.random.Generator) -> Ints:  # noqa: E741
    r"""Deal the records out to as many buckets as can have l records, the values of one column in turn.

    That is what Xiao and Tao's rounds come to, who take one record of each of the l most frequent values and
    put what is left over where its value is not yet: a value of at most :math:`n / l` records comes at most
    once to each of :math:`\lfloor n / l \rfloor` buckets, if its records are dealt out one after the other.
    """
    hardest = max(names, key=lambda name: _most(table, name))
    coding = closed_up(column_codes(table, hardest))
    values = rng.permutation(coding.space)[coding.codes.astype(np.int64)]
    order = rng.permutation(len(table))
    turns = values[order].astype(np.uint16 if coding.space <= _MAX_TWO_BYTE_CODES else np.int64)
    order = order[np.argsort(turns, kind="stable")]
    buckets = np.empty(len(table), dtype=np.int64)
    buckets[order] = np.arange(len(table)) % (len(table) // l)
    return buckets


def merge_failing_buckets(buckets: Ints, fails: Callable[..., Flags], rng: np.random.Generator) -> Ints:
    """Put buckets that fail together until none does, or one is left: what is in all is never worse."""
    while True:
        groups = RecordGroups.of(buckets)
        parts = np.column_stack((groups.starts[:-1], groups.starts[1:]))
        bad = rng.permutation(np.flatnonzero(fails(groups.order, parts)))
        if not len(bad) or len(groups) == 1:
            return groups.of_record
        others = np.arange(len(groups))
        half = len(bad) // 2
        others[bad[:half]] = bad[half : 2 * half]
        if len(bad) % 2:  # the last joins one of the others
            others[bad[-1]] = others[(bad[-1] + 1 + rng.integers(len(groups) - 1)) % len(groups)]
        buckets = others[groups.of_record]


def split_into_tables(
    table: Table,
    buckets: Ints,
    tables: Mapping[str, Sequence[str]],
    run: Run,
    *,
    counts: bool = False,
    shared: Sequence[str] = (),
) -> Release:
    """Release some columns in tables of their own, joined by buckets; the first is of all other columns.

    The rows of further tables stand bucket by bucket, in an order of chance; with ``counts`` those that are
    alike are one, with their number. Columns that are ``shared`` stand in the first table and in the others,
    and join them as the bucket does.
    """
    first, *others = tables
    rng = run.rng("buckets")
    name, numbers = free_name("bucket", table), _shuffled_numbers(buckets, rng)
    wide = with_column(table, name, numbers)
    apart = {each: tuple(tables[each]) for each in others}
    moved = {column for columns in apart.values() for column in columns}
    made = {first: wide.select([each for each in wide.names if each not in moved])}
    sources = {}
    for each, columns in apart.items():
        order = rng.permutation(len(table))
        order = order[np.argsort(numbers[order], kind="stable")]
        made[each] = wide.select([name, *shared, *columns]).take(order)
        sources[each] = order
        if counts:
            made[each], places = _count_rows(made[each])
            sources[each] = order[places]  # of each row as often as it counts
    return Release(
        made,
        Origin.identity(len(table)),
        ReleaseLayout(dict.fromkeys(made, (name, *shared)), tuple(apart.values()), sources),
        buckets,
        byproducts=Byproducts(figures={"buckets": int(numbers.max(initial=0))}),
    )


def _shuffled_numbers(buckets: Ints, rng: np.random.Generator) -> Ints:
    """The buckets with numbers from 1 that tell nothing of how they came about."""
    return rng.permutation(int(buckets.max(initial=-1)) + 1)[buckets] + 1


def with_column(table: Table, name: str, numbers: Ints) -> Table:
    """The table with the numbers of buckets as a last column."""
    return table.with_values(name, pl.Series(numbers), column=Column(name, Kind.NOMINAL, Role.OTHER))


def free_name(wanted: str, table: Table) -> str:
    """A name that no column has."""
    names = [wanted, *(f"{wanted}_{number}" for number in range(2, len(table.names) + 3))]
    return next(name for name in names if name not in table.schema)


def _count_rows(table: Table) -> tuple[Table, Ints]:
    """Rows that are alike as one, with their number; it counts as a weight, since that is what it is.

    Beside it the rows that each stands for, one after the other.
    """
    name, place = free_name("count", table), free_name("place", table)
    placed = table.frame.with_row_index(place)
    grouped = placed.group_by(table.names, maintain_order=True).agg(place)
    made = replace(table, frame=grouped.select(table.names))
    column = Column(name, Kind.CONTINUOUS, Role.WEIGHT)
    made = made.with_values(name, grouped[place].list.len().cast(pl.Int64), column=column)
    return made, grouped[place].explode().to_numpy().astype(np.int64)


def within_buckets(buckets: Ints, rng: np.random.Generator) -> Ints:
    """For each record one of its bucket, by chance, each once."""
    order = rng.permutation(len(buckets))
    places = np.empty(len(buckets), dtype=np.int64)
    places[np.argsort(buckets, kind="stable")] = order[np.argsort(buckets[order], kind="stable")]
    return places
