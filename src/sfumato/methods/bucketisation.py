"""Bucketisation: sensitive values are shuffled within buckets of similar records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sfumato import kernels
from sfumato.core.release import MAIN, Release
from sfumato.core.run import Run
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.generalised.ranges import RecordGroups
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._buckets import BucketMethod, split_into_tables, within_buckets
from sfumato.methods.mondrian import coded_keys


class Bucketisation(BucketMethod):
    r"""Shuffle sensitive values within buckets of similar records in which no value is too frequent.

    All records form one bucket at first. As in Mondrian, a bucket is split in two at its widest key, as long
    as no sensitive value :math:`s` is too frequent in either half :math:`B`:

    .. math::

        \frac{c_B(s)}{|B|} \le \frac{1}{l}

    where :math:`c_B(s)` is how often the half has that value. Then the sensitive values of each bucket are
    shuffled. The release is one table, with the number of the bucket as a new column: a sensitive value
    belongs to some record of its bucket.

    See Also
    --------
    Anatomy : smaller buckets, independent of the keys, in two tables.
    Mondrian : generalises the keys of a group instead.
    DataSwapping : swaps without buckets that can be seen.

    Notes
    -----
    **When to use.** For counts by ranges of keys and sensitive values: because the records of a bucket are
    similar, a range more often contains a whole bucket or nothing of it than with anatomy.

    **Guarantees.** In each bucket, no value of a sensitive column makes up more than :math:`1/l` of the
    records; the release is measured before it is returned. Keys stay as they are, and each bucket keeps its
    sensitive values, several columns of them together.

    **Risk to know.** As with anatomy, exact keys show who is in the file. A row looks like a record but is
    not one: analyse by bucket. Where a value is frequent among similar records, buckets are large.

    **Ties, missing, weights.** Equal keys stay together; missing is a value below all others. Missing
    sensitive values are refused, or a value of their own. Several records of one person are refused. Weights
    stay with the keys.

    **Cost.** That of Mondrian with a requirement on l.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [23, 58, 25, 60], "illness": ["flu", "flu", "ulcer", "angina"]})
    >>> schema = Schema((
    ...     Column("age", Kind.CONTINUOUS, Role.KEY), Column("illness", Kind.NOMINAL, Role.SENSITIVE)
    ... ))
    >>> release = Bucketisation(l=2).protect(Table(frame, schema, targets=("age",)), Run(seed=1))
    >>> release.table.names
    ('age', 'illness', 'bucket')
    >>> release.table.frame.group_by("bucket").agg(pl.col("age").max() - pl.col("age").min())["age"].to_list()
    [2, 2]
    """

    name = "bucketisation"
    vetted = (
        "brute-forced: property/test_buckets.py::"
        "test_the_reading_is_a_naive_join_and_measures_count_the_bucket"
    )
    family = "de-associative methods"
    title = "Bucketisation"
    references = ("zhang2007permutation", "li2017bucketisation")

    def part(self, table: Table, names: tuple[str, ...], run: Run) -> Release:
        """Cut near records into buckets, and shuffle the values in each."""
        buckets = near_buckets(table, self.l, self.failing(table, run), run, self.title)
        release = split_into_tables(table, buckets, {MAIN: ()}, run)
        order = within_buckets(buckets, run.rng("shuffle"))
        shuffled = table.select(names).take(order)
        made = release.first
        for name in names:
            made = made.with_values(name, shuffled.frame[name])
        layout = replace(
            release.layout or ReleaseLayout(), bucketed_columns=(names,), moved=dict.fromkeys(names, order)
        )
        return replace(release, tables={MAIN: made}, layout=layout)


def near_buckets(table: Table, least: int, fails: Callable[..., Flags], run: Run, title: str) -> Ints:
    """Cut the records into buckets that may stand, by the keys that they span most of."""
    judged, ticker = _PartJudge(fails, len(table)), run.ticker(title)

    def tick(done: int, total: int) -> None:
        judged.next_round()
        if ticker is not None:
            ticker(done, total)

    order, starts, _ = kernels.mondrian.partition(coded_keys(table, {}), least, failing=judged, tick=tick)
    return RecordGroups(order, starts).of_record


class _PartJudge:
    """Judges parts of records once each, as a part tells by itself whether it may stand."""

    def __init__(self, fails: Callable[..., Flags], n: int) -> None:
        self.fails = fails
        self.standing = np.full(n, -1)  # [places] where a part ends that begins there and may stand
        self.tried = np.full(n, -1)  # the same of parts looked at in this round,
        self.failed = np.zeros(n, dtype=np.bool_)  # and whether they may not

    def next_round(self) -> None:
        """Records change places only within parts that stand: what was tried and not taken is no part."""
        self.tried[:] = -1

    def __call__(self, order: Ints, starts: Ints) -> Flags:
        firsts, ends = starts[:-1], starts[1:]
        new = np.flatnonzero((self.standing[firsts] != ends) & (self.tried[firsts] != ends))
        if len(new):
            self.tried[firsts[new]] = ends[new]
            self.failed[firsts[new]] = self.fails(order, np.column_stack((firsts[new], ends[new])))
        found: Flags = (self.tried[firsts] == ends) & self.failed[firsts]
        if not found.any():
            self.standing[firsts] = ends
        return found
