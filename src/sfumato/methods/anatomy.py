"""Anatomy: keys and sensitive values in two tables, linked only by the number of a bucket."""

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

    The records are distributed over :math:`\lfloor n / l \rfloor` buckets, so that no bucket has a value
    twice. The first table (``qit``) has every record as it is, with the number of its bucket in place of its
    sensitive values; the second (``st``) has the sensitive values of each bucket, in random order. An
    intruder who finds a person's record guesses the value with a probability of at most

    .. math::

        \max_s \frac{c_B(s)}{|B|} \le \frac{1}{l}

    where :math:`c_B(s)` is how often bucket :math:`B` has the value :math:`s`.

    See Also
    --------
    Bucketisation : buckets of similar records, in one table.
    Angelisation : keys are made coarser as well.
    Slicing : separates any columns, with related ones in one table.

    Notes
    -----
    **When to use.** Analyses need exact keys and exact sensitive values, but not the link between the two:
    counts by key and value are expected counts (``expected_count``), and much closer to the truth than counts
    by generalised keys.

    **Guarantees.** In each bucket, no value of a sensitive column makes up more than :math:`1/l` of the
    records; the release is measured before it is returned. Both tables have the values of the original.
    Tables in which one value has more than :math:`n / l` records are refused.

    **Risk to know.** Keys are exact: an intruder who knows them sees who is in the file, and k-anonymity is
    unchanged. Generalise the keys in an earlier step. With ``permute``, which shuffles each key within its
    buckets, some keys do not reveal the others; but an intruder who knows all keys of a person finds the
    bucket that has them all. An intruder who knows that a person does *not* have a value, or knows others in
    the bucket, guesses better. Several sensitive columns stay together in one row: an intruder who knows one
    learns the others.

    **Ties, missing, weights.** Missing sensitive values are refused, or a value of their own; missing keys
    stay. Several records of one person are refused, because comparing their buckets reveals the value.
    Weights stay in the first table.

    **Cost.** Sorting the records once or twice. With several sensitive columns, buckets in which a value is
    too frequent are merged until none is.

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
    vetted = (
        "brute-forced: property/test_buckets.py::"
        "test_an_intruder_with_two_files_guesses_no_better_than_one_in_l"
    )
    synonyms = ("anatomisation",)
    family = "de-associative methods"
    title = "Anatomy"
    references = ("xiao2006", "he2012permutation")

    counts: bool = param(False, "Show each value of a bucket once, with its count.", label="Show counts")
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
