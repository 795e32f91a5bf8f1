"""Anatomy: keys and sensitive values are shown in two tables, which only the number of a bucket joins."""

from __future__ import annotations

from dataclasses import replace

from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.table import Table
from sfumato.methods._buckets import (
    BucketMethod,
    deal_records,
    merge_failing_buckets,
    split_into_tables,
    within_buckets,
)


class Anatomy(BucketMethod):
    r"""Release keys and sensitive values in two tables, linked only by buckets of at least l records.

    The records are dealt out to :math:`\lfloor n / l \rfloor` buckets, so that no bucket gets a value twice.
    The first table (``qit``) has every record as it is, with the number of its bucket instead of its
    sensitive values; the second (``st``) has the sensitive values of each bucket, in an order of chance. Who
    finds a person's record guesses the value with a chance of at most

    .. math::

        \max_s \frac{c_B(s)}{|B|} \le \frac{1}{l}

    where :math:`c_B(s)` is how often the value :math:`s` stands in bucket :math:`B`.

    See Also
    --------
    Bucketisation : buckets of records near to each other, in one table.
    Angelisation : keys are made coarser as well.
    Slicing : any columns apart, those that hang together in one table.

    Notes
    -----
    **When to use.** Where analyses need exact keys and exact sensitive values, but not which is whose: counts
    by key and value are expected counts (``expected_count``), and much nearer to the truth than those of
    keys made coarse.

    **Guarantees.** In each bucket, no value of a sensitive column fills more than one place in :math:`l`;
    what is released is measured before anyone gets it. Both tables hold the values of the original.
    Tables in which one value is that of more than :math:`n / l` records are refused.

    **Risk to know.** Keys are exact: whoever knows them sees who is in the file, and k-anonymity is what it
    was. Make keys coarser in a step before. With ``permute``, which shuffles each key within its buckets,
    nobody learns other keys from some; who knows all of them finds the bucket that has all. Who knows that
    somebody does *not* have a value, or knows others of the bucket, guesses better. Several sensitive columns
    stay together in one row: who knows one of them learns the others.

    **Ties, missing, weights.** Missing sensitive values are refused, or a value of their own; missing keys
    stay. Several records of one person are refused, as their buckets have the value in common. Weights
    stay in the first table.

    **Cost.** Sorting the records once or twice. With several sensitive columns buckets in which some value is
    too frequent are put together until none is.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [23, 35, 41, 58], "illness": ["flu", "flu", "ulcer", "angina"]})
    >>> schema = Schema((
    ...     Column("age", Kind.CONTINUOUS, Role.KEY), Column("illness", Kind.NOMINAL, Role.SENSITIVE)
    ... ))
    >>> release = Anatomy(l=2).protect(Table(frame, schema, targets=("age",)), Run(seed=1))
    >>> release.tables["qit"].names, release.tables["st"].names
    (('age', 'bucket'), ('bucket', 'illness'))
    >>> release.tables["st"].frame.group_by("bucket").agg(pl.col("illness").n_unique())["illness"].to_list()
    [2, 2]
    """

    name = "anatomy"
    synonyms = ("anatomisation",)
    family = "de-associative methods"
    title = "Anatomy"
    references = ("xiao2006", "he2012permutation")

    counts: bool = param(False, "Show each value of a bucket once, with its number.", label="Show counts")
    permute: bool = param(False, "Shuffle each key within its buckets as well.", label="Shuffle keys")

    def table_names(self) -> tuple[str, ...]:
        """Keys and sensitive values."""
        return ("qit", "st")

    def part(self, table: Table, names: tuple[str, ...], run: Run) -> Release:
        """Deal the records out, and show keys and values by bucket."""
        rng = run.rng("deal")
        buckets = deal_records(table, names, self.l, rng)
        if len(names) > 1:
            buckets = merge_failing_buckets(buckets, self.failing(table, run), rng)
        release = split_into_tables(table, buckets, {"qit": (), "st": names}, run, counts=self.counts)
        if not self.permute:
            return release
        first, moved = release.first, {}
        for name in table.chosen:
            moved[name] = within_buckets(buckets, run.rng("permute", name))
            first = first.with_values(name, first.take(moved[name]).frame[name])
        apart = (*release.bucketed_columns, *((name,) for name in table.chosen))
        layout = replace(release.layout or ReleaseLayout(), bucketed_columns=apart, moved=moved)
        return replace(release, tables={**release.tables, "qit": first}, layout=layout)
