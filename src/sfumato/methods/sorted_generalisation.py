"""Generalisation of neighbours in one order of all records: simple, and fast for millions of records."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.ranges import RecordGroups
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods._local_recoding import Canvas, LocalRecoding, join_failing_groups, natural_places


class SortedGeneralisation(LocalRecoding):
    r"""Sort records by their distance from zero and replace each key by the range of k neighbours.

    Algorithm S2 of Sánchez, Martínez and Domingo-Ferrer. The records are put in ascending order of the
    distance

    .. math::

        d_i = \sqrt{\sum_j \left( \frac{x_{ij}}{\sigma_j} \right)^2}

    from a record of zeros over all keys :math:`j`, where :math:`\sigma_j` is the standard deviation of the
    key. The first :math:`k` records form a group, the next :math:`k` another, and so on; the last has up to
    :math:`2k - 1`. Every key shows the range of its group.

    A key that is stored as numbers counts with its numbers, whatever its kind, as in the paper, where all
    keys "are numerical or are numerically coded"; dates count from 1970, and texts by their rank among the
    texts of the column, from 0, where G15 follows G3. Constant keys do not count. Ranges are shown as in
    `Mondrian`.

    See Also
    --------
    Mondrian : groups records that are similar in all keys; loses far less.
    CloseGeneralisation : the same idea with groups that are t-close in a sensitive column.

    Notes
    -----
    **When to use.** Very large tables, a first look, and to reproduce the paper. Records at the same distance
    from zero need not be similar, so ranges are wide with many keys.

    **Guarantees.** The release meets every requirement, or nothing is released. Every range contains the
    original value. Groups have :math:`k` to :math:`2k - 1` records unless another requirement needs more:
    then groups that fail are merged with their neighbours until none fails.

    **Risk to know.** The ends of ranges are round numbers, but reveal that a person's value is near. As with
    any release that is only k-anonymous, all people of a group may share a sensitive value: require ``l`` or
    ``t`` in ``also``.

    **Ties, missing, weights.** Records at equal distances keep the order of the file. Records with the same
    keys missing are grouped among themselves if there are k of them, and stay missing (under ``missing``
    other than *category* they show the wildcard); a key that is missing for some records of a group shows the
    wildcard. With a column of persons, people are counted instead of records. Weights are not used.

    **Cost.** :math:`O(n (d + \log n))` for :math:`d` keys.

    Examples
    --------
    >>> from sfumato.data.generalised.text_forms import to_text
    >>> frame = pl.DataFrame({"age": [20, 61, 50, 24, 22, 58], "stay": [1, 9, 7, 2, 4, 3]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    >>> shown = SortedGeneralisation(k=3).protect(table, Run(seed=1)).table
    >>> to_text(shown.frame["age"]).to_list()
    ['[20;29]', '[50;69]', '[50;69]', '[20;29]', '[20;29]', '[50;69]']
    """

    name = "sorted-generalisation"
    vetted = (
        "brute-forced: property/test_local_recoding.py::"
        "test_models_hold_alone_and_together_or_there_is_no_release"
    )
    family = "recoding"
    nature = "non-perturbative"
    title = "Sorted generalisation"
    references = ("sanchez2016",)

    def group(self, canvas: Canvas) -> tuple[RecordGroups, tuple[str, ...]]:
        """Take k at a time from the order, and join what fails."""
        patterns, order = order_from_zero(canvas.table)
        sizes = np.bincount(patterns)
        starts = kernels.groups.sorted_clusters.neighbours(sizes, canvas.k)
        groups = RecordGroups(order, starts)
        return groups if canvas.needs_only_k else join_failing_groups(groups, canvas), ()


def order_from_zero(table: Table) -> tuple[Ints, Ints]:
    """Which keys each record lacks, as a number from 0; and the records in order of that and the distance."""
    flags = [table.missing(name) for name in table.chosen]
    codings = [Coding(each.astype(np.uint8), 2) for each in flags if each.any()]
    patterns = number(pack(codings, len(table)))[0]
    return patterns, np.lexsort((from_zero(table), patterns))


def from_zero(table: Table) -> Floats:
    r"""The square of each record's distance from zero, less a constant: it has the same order.

    Of each key :math:`x^2 - m^2 = (|x| - m)(|x| + m)` is taken, where :math:`m` is the least :math:`|x|`, so
    that a key far from zero does not drown the others in rounding. A missing key counts for nothing.
    """
    total = np.zeros(len(table))
    for name in table.chosen:
        values = as_numbers(table, name)
        known = ~np.isnan(values)
        largest = np.abs(values[known]).max(initial=0.0)
        if not largest > 0:
            continue
        scaled = values / largest  # no square overflows
        deviation = scaled[known].std()
        if np.ptp(scaled[known]) > 0 and deviation > 0:
            sizes = np.abs(scaled)
            least = sizes[known].min()
            with np.errstate(over="ignore"):  # beyond all others is where such a record belongs
                parts = (sizes - least) / deviation * ((sizes + least) / deviation)
            total += np.where(known, np.minimum(parts, 1e300), 0.0)
    return total


def as_numbers(table: Table, name: str) -> Floats:
    """A key as numbers: its own, dates since 1970, or the place of each word; NaN where missing."""
    series = table.frame[name]
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        numbers = series.cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        numbers[table.missing(name)] = np.nan
        return numbers
    coded = table.codes(name) if table.schema[name].kind is Kind.NOMINAL else None
    places = None if coded is None else natural_places(coded.categories)
    if coded is None or places is None:
        return table.numbers(name)
    return np.append(places.astype(np.float64), np.nan)[coded.codes]
