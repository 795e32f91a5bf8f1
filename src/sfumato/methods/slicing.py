"""Slicing: related columns in tables of their own, linked only by buckets of similar records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np

from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import column_codes
from sfumato.data.classes.packing import closed_up, distinct_of
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods._buckets import BucketMethod, split_into_tables
from sfumato.methods.bucketisation import near_buckets
from sfumato.methods.mondrian import target_classes

#: Records by which columns are found to hang together.
_RECORDS_LOOKED_AT = 50_000


class Slicing(BucketMethod):
    r"""Release groups of related columns in separate tables, linked only by buckets of similar records.

    The columns are put into ``slices`` by how strongly they are associated, the mean-square contingency

    .. math::

        \varphi^2(A, B) = \frac{1}{\min(a, b) - 1} \sum_{i=1}^{a} \sum_{j=1}^{b}
            \frac{(f_{ij} - f_{i\cdot} f_{\cdot j})^2}{f_{i\cdot} f_{\cdot j}}

    where :math:`f_{ij}` is the share of the records with the i-th of :math:`a` values of one column and the
    j-th of :math:`b` of the other (numbers and dates in ten classes). Around as many columns as there are
    slices (medoids) the others are placed so that :math:`1 - \varphi^2` is least. The sensitive columns are
    in one slice, with the keys most strongly associated with them. The records are split into buckets of
    similar ones, as in Mondrian, and each slice is a table of its own: the number of the bucket, and its
    columns, in random order. With an ``overlap``, the keys of the other slice that are most strongly
    associated with the sensitive columns are shown with them as well.

    See Also
    --------
    Anatomy : all keys in one table, the sensitive columns in the other.
    Bucketisation : the same in one table, with smaller buckets.

    Notes
    -----
    **When to use.** Analyses need the relation between some keys and the sensitive columns: within a slice
    every combination of values belongs to a real record. Files of many columns, whose keys are unique
    together but not within one slice. To swap values as well, add an earlier step such as rank swapping:
    buckets are then formed from the swapped records.

    **Guarantees.** Among the rows of a bucket with equal keys in the sensitive slice, no sensitive value
    makes up more than :math:`1/l`: whichever buckets a person's values match, an intruder guesses the value
    with a probability of at most :math:`1/l` in each, and so in all of them. The release is measured before
    it is returned. Each slice has the values of the original.

    **Risk to know.** The keys of a slice are exact: a person who is unique in them can be seen to be in the
    file. A combination of values over several slices that only one bucket allows reveals the bucket. Keys
    that overlap link the rows of both slices as the bucket does, and are checked as such. A sensitive column
    is never in two slices: each would allow l values, and both together fewer (flu or cold with the age, flu
    or gout with the area: it is the flu).

    **Ties, missing, weights.** A key whose values each have too few sensitive values moves to another slice.
    Keys that an earlier step generalised are taken as they are. Missing keys are a value of their own;
    missing sensitive values are refused, or one too. Several records of one person are refused. Columns that
    are neither keys nor sensitive, weights among them, stay in the first table.

    **Cost.** That of Mondrian with a requirement on l. Associations of columns are computed from 50,000
    records.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "sex": [*"fmfmfmfm"], "height": [*"smsmsmsm"], "area": [*"NNNNSSSS"],
    ...     "illness": [*"abbaabba"],
    ... })
    >>> roles = {name: Role.KEY for name in frame.columns} | {"illness": Role.SENSITIVE}
    >>> schema = Schema(tuple(Column(name, Kind.NOMINAL, role) for name, role in roles.items()))
    >>> table = Table(frame, schema, targets=("sex", "height", "area"))
    >>> release = Slicing(l=2).protect(table, Run(seed=1))
    >>> [each.names for each in release.tables.values()]
    [('sex', 'height', 'bucket'), ('bucket', 'area', 'illness')]
    """

    name = "slicing"
    vetted = (
        "brute-forced: property/test_buckets.py::"
        "test_slices_keep_their_rows_and_matching_buckets_tell_nothing"
    )
    synonyms = ("overlapped slicing",)
    family = "de-associative methods"
    title = "Slicing"
    references = ("li2012slicing",)

    slices: int = param(2, "Number of tables that the columns are put into.", ge=2, le=100)
    overlap: int = param(0, "Number of keys in both of two slices, as far as l permits.", ge=0, le=100)

    def refuses(self, table: Table) -> str | None:
        """Refuse an overlap of more than two slices: rows would be joined by the keys of any two."""
        if self.overlap and self.slices > 2:  # noqa: PLR2004
            return f"`slices` of {self.name} must be 2 with an `overlap`, got: {self.slices}"
        return super().refuses(table)

    def table_names(self) -> tuple[str, ...]:
        """As many as there are slices, if there are as many columns."""
        return tuple(f"slice{number}" for number in range(1, self.slices + 1))

    def part(self, table: Table, names: tuple[str, ...], run: Run) -> Release:
        """Put columns into slices and records into buckets."""
        fails = self.failing(table, run)
        ties = associations(sample_of(table, run), table.chosen, names)
        everybody = np.arange(len(table)), np.array([[0, len(table)]])
        slices = around(ties, self.slices)
        while len(slices[0]) > 1 and fails(*everybody, _names_at(slices[0], table)).any():
            slices = _without_loosest(slices, ties)
        beside, shared = _names_at(slices[0], table), list[str]()
        for place in sorted({place for each in slices[1:] for place in each}, key=lambda key: -ties[0, key]):
            more = [*shared, *_names_at([place], table)]
            if len(more) <= self.overlap and not fails(*everybody, (*beside, *more)).any():
                shared = more
        fails_here = partial(fails, beside=(*beside, *shared))
        buckets = near_buckets(table, self.l, fails_here, run, self.title)
        keys = sorted((_names_at(each, table) for each in slices[1:]), key=len, reverse=True)
        columns = [*(keys or [()]), (*beside, *names)]
        tables = dict(zip(self.table_names(), columns, strict=False))
        return split_into_tables(table, buckets, tables, run, shared=shared)


def _names_at(places: Sequence[int], table: Table) -> tuple[str, ...]:
    """The keys at these places; the first place is that of the sensitive columns."""
    return tuple(table.chosen[place - 1] for place in places if place)


def sample_of(table: Table, run: Run) -> Table:
    """The records by which columns are found to hang together: some of many."""
    return table.take(np.sort(run.rng("columns").permutation(len(table))[:_RECORDS_LOOKED_AT]))


def associations(table: Table, keys: Sequence[str], learnt: Sequence[str]) -> Floats:
    """How much columns tell of each other, from 0 to 1; the first stands for all that is ``learnt``."""
    codes = {name: _encode_column(table, name) for name in (*keys, *learnt)}
    ties = np.eye(len(keys) + 1)
    for row, name in enumerate(keys, start=1):
        ties[0, row] = ties[row, 0] = max(contingency(codes[name], codes[each]) for each in learnt)
        for column, other in enumerate(keys[: row - 1], start=1):
            ties[row, column] = ties[column, row] = contingency(codes[name], codes[other])
    return ties


def _encode_column(table: Table, name: str) -> Ints:
    """A column in classes: its categories, what it was made coarser to, or tenths of its numbers."""
    if table.is_generalised(name):
        return closed_up(column_codes(table, name)).codes.astype(np.int64)
    return target_classes(table, name).astype(np.int64)


def contingency(first: Ints, second: Ints) -> float:
    """The mean-square contingency of two columns of codes, from 0 to 1."""
    width = int(second.max(initial=0)) + 1
    pairs, counts = distinct_of(first * width + second, (int(first.max(initial=0)) + 1) * width)
    rows, columns = np.bincount(first, minlength=1), np.bincount(second, minlength=1)
    fewer = min(np.count_nonzero(rows), np.count_nonzero(columns)) - 1
    if fewer < 1:
        return 0.0
    expected = rows[pairs // width].astype(np.float64) * columns[pairs % width]
    return float(np.clip((np.sum(counts.astype(np.float64) ** 2 / expected) - 1) / fewer, 0.0, 1.0))


def medoids(distances: Floats, count: int) -> list[int]:
    """The items around which all others lie closest: one after the other, then exchanged while that helps."""
    chosen = [int(distances.sum(axis=1).argmin())]
    while len(chosen) < min(count, len(distances)):
        rest = [item for item in range(len(distances)) if item not in chosen]
        chosen.append(min(rest, key=lambda item: _cluster_cost(distances, [*chosen, item])))
    improved = True
    while improved:
        improved = False
        for place, item in product(range(len(chosen)), range(len(distances))):
            other = [*chosen[:place], item, *chosen[place + 1 :]]
            if (
                item not in chosen
                and _cluster_cost(distances, other) < _cluster_cost(distances, chosen) - 1e-12
            ):
                chosen, improved = other, True
    return sorted(chosen)


def _cluster_cost(distances: Floats, chosen: Sequence[int]) -> float:
    return float(distances[:, list(chosen)].min(axis=1).sum())


def around(ties: Floats, count: int) -> list[list[int]]:
    """So many groups of items, each with the medoid it is tied to most; the first item is in the first."""
    centres = medoids(1 - ties, count)
    nearest = np.argmax(ties[:, list(centres)], axis=1)
    nearest[list(centres)] = np.arange(len(centres))
    groups = [np.flatnonzero(nearest == place).tolist() for place in range(len(centres))]
    return sorted(groups)  # places ascend, so the group with the first item is the lowest


def _without_loosest(slices: Sequence[Sequence[int]], ties: Floats) -> list[list[int]]:
    """Move the key that is tied least to the sensitive columns to the slice that it is tied to most."""
    first, *others = slices
    loosest = min((place for place in first if place), key=lambda place: ties[0, place])
    cluster = [place for place in first if place != loosest]
    if not others:
        return [cluster, [loosest]]
    home = max(range(len(others)), key=lambda place: ties[loosest, list(others[place])].max())
    return [
        cluster,
        *(sorted([*each, loosest]) if place == home else list(each) for place, each in enumerate(others)),
    ]
