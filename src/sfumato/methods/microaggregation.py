"""Microaggregation: records form small groups of similar ones, and each shows its group's centre."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import Method, Randomness
from sfumato.core.params import PerColumn, param
from sfumato.core.release import BELOW_K, Release
from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.hierarchy.likeness import why_not_covered
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.points import SCALES, Nominal, Scale, points_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods._centres import Centre, notes_on_centres, refusal, show_centres
from sfumato.methods._clusters import clusters_of, join_small


class Microaggregation(Method):
    """What all microaggregation of several columns shares; a method writes ``partition``."""

    analyst_note = (
        "Values are centres of small groups: usually means of numbers, existing values of dates and "
        "categories. Means hold or nearly hold, variances shrink, and correlations of columns grouped "
        "together grow."
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    cost = "n²"
    state = State(per_record=3, per_cell=9)
    randomness = Randomness(stochastic=False)

    k: int = param(
        5,
        "Smallest number of records in a group.",
        ge=1,
        unit="records",
        symbol="k",
        log=True,
        tune=(2, 500),
        drive=True,
        hint="3 to 10 is usual; it cannot exceed the number of records",
    )
    scale: Scale = param(
        "deviation",
        "What one unit of distance is in each column.",
        choices=SCALES,
        advanced=True,
        label="Unit of distance",
    )
    centre: PerColumn[Centre] = param(
        "auto",
        "What a group shows.",
        choices={
            "auto": "The mean of numbers, the median of ordinal columns and dates, the mode of nominal ones.",
            "mean": "The mean, for numbers and dates.",
            "median": "The median, for numbers, dates and ordinal columns.",
            "mode": "The most frequent value; the mean of numbers and dates that all differ.",
            "trimmed": "The mean of numbers or dates, without the lowest and highest quarter of a group.",
        },
        hint="a mean needs numbers or dates, a median an order; set it by column, or choose auto",
    )
    nominal: Nominal = param(
        "frequency",
        "Distance between two different values of a nominal column.",
        choices={
            "frequency": "Larger for rarer values.",
            "equal": "Equal for all values.",
            "hierarchy": "By the hierarchy that the column names.",
        },
        advanced=True,
        label="Distance of categories",
    )

    clusters: int = param(
        0,
        "Number of clusters of the records, found first, within which groups are formed; 0 for none.",
        ge=0,
        le=100,
        label="Clusters first",
        advanced=True,
    )

    def partition(self, points: Floats, run: Run) -> Ints:
        """Give the group of each record: from 0 up, each of k to 2k − 1 records."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def refuses(self, table: Table) -> str | None:
        """Refuse kinds it cannot take, centres a column cannot have, and hierarchies that no column names."""
        reason = super().refuses(table) or refusal(table, self.centre, name=self.name)
        if reason or self.nominal != "hierarchy":
            return reason
        nominal = [table.schema[name] for name in table.chosen if table.schema[name].kind is Kind.NOMINAL]
        if nominal and all(column.hierarchy for column in nominal):
            return None
        without = ", ".join(f"`{column.name}` without one" for column in nominal if not column.hierarchy)
        return (
            f"{self.name} with nominal=hierarchy must be given nominal columns that name a hierarchy, "
            f"got: {without or 'no nominal column'}"
        )

    def drive_range(self, table: Table) -> tuple[float, float]:
        """From pairs to groups of 500, or to one group of everyone."""
        low, high = super().drive_range(table)
        return min(low, max(len(table), 1)), min(high, max(len(table), 1))

    def protect(self, table: Table, run: Run) -> Release:
        """Group the records and show each group's centre."""
        if not len(table):
            return Release.unchanged(table)
        if self.k > len(table):
            raise ParameterError(
                f"`k` of {self.name} must be at most the number of records, {len(table)}, got: `{self.k}`",
                hint="choose a smaller k, or fewer strata",
            )
        trees = _hierarchies(table, run, self.name) if self.nominal == "hierarchy" else {}
        points = points_of(table, scale=self.scale, nominal=self.nominal, hierarchies=trees)
        groups = self._partition_clusters(points, run) if self.clusters else self.partition(points, run)
        protected, whole, notes = table, True, notes_on_centres(table, self.centre)
        for name in table.chosen:
            run.check()
            protected = protected.with_values(name, show_centres(table, name, groups, self.centre[name]))
            whole = whole and not table.missing(name).any()
        if whole:
            return Release.record_by_record(protected, classes=groups, notes=notes)
        names = list(table.chosen)
        sizes = protected.frame.select(size=pl.len().over(names))["size"]
        figures = {BELOW_K: int((sizes < self.k).sum())}
        return Release.record_by_record(protected, notes=notes, figures=figures)

    def _partition_clusters(self, points: Floats, run: Run) -> Ints:
        """Form groups within clusters by k-means; one of fewer than k records joins the nearest."""
        clusters = join_small(points, clusters_of(points, self.clusters), self.k)
        groups, n_groups = np.empty(len(points), dtype=np.int64), 0
        for cluster in range(int(clusters.max()) + 1):
            own = clusters == cluster
            groups[own] = n_groups + self.partition(points[own], run.at("cluster", cluster))
            n_groups = int(groups[own].max()) + 1
        return groups


def _hierarchies(table: Table, run: Run, method: str) -> dict[str, Hierarchy]:
    """The hierarchies of the nominal columns; each must have one that holds its values."""
    nominal = [name for name in table.chosen if table.schema[name].kind is Kind.NOMINAL]
    found = {name: run.resources.get(table.schema[name].hierarchy) for name in nominal}
    trees = {name: each if isinstance(each, Hierarchy) else None for name, each in found.items()}
    faults = [fault for name, tree in trees.items() if (fault := why_not_covered(tree, name, table))]
    if faults:
        raise PlanError(
            f"{method} with nominal=hierarchy must be given a hierarchy of each nominal column, got: "
            f"{'; '.join(faults)}",
            hint="declare `hierarchy` of the column and its resource, or leave `nominal` out",
        )
    return {name: tree for name, tree in trees.items() if tree is not None}


class Mdav(Microaggregation):
    r"""Replace each record by the centre of a group of at least k similar records, the outermost first.

    The records are partitioned into groups of :math:`k` to :math:`2k-1`, and in the protected columns every
    record shows the centre of its group: the mean of a continuous column, the median of an ordinal one or a
    date, the most frequent value of a nominal one. Means of continuous columns are kept; variances shrink.

    MDAV, maximum distance to average vector: while at least :math:`3k` records remain, the record
    :math:`r` farthest from their mean takes its :math:`k-1` nearest as a group, then the record farthest
    from :math:`r` does; of the last :math:`2k` to :math:`3k-1` records the farthest takes one more group
    and the rest is the last. The distance is

    .. math::

        d(x, y)^2 = \sum_j \frac{(x_j - y_j)^2}{s_j^2}
            + \sum_{c:\, x_c \ne y_c} \frac{1}{C_c - 1} \left(\frac{1}{p(x_c)} + \frac{1}{p(y_c)}\right)

    over the ordered columns :math:`j` (an ordinal one by the position of its values) and the nominal ones
    :math:`c`, where :math:`s_j` is the column's standard deviation, its range, or 1, as ``scale`` says,
    :math:`p` the share of a value and :math:`C_c` the number of values: differing in a rare value counts
    more. With ``nominal="equal"`` each term of the second sum is :math:`2 / (1 - \sum_a p_a^2)`; with
    ``nominal="hierarchy"`` it is in proportion to the height of the lowest label that covers both values. In
    each case a nominal column has the variance 1 of a standardised number (with ``scale="range"``, the
    greatest distance 1). With ``scale="robust"`` the first sum is the Mahalanobis distance
    :math:`(x - y)^\top S^{-1} (x - y)` by the robust covariances :math:`S` of ``multivariate-top-coding``,
    which outliers cannot move; with ``clusters`` groups are formed within clusters by k-means.

    See Also
    --------
    VMdav : lets groups grow where records are dense.
    SequentialMicroaggregation : moves records between groups until no move helps.
    MdavInParts : for millions of records.
    OptimalMicroaggregation : for one column, with the least loss there can be.

    Notes
    -----
    **When to use.** Several columns of any kind that an intruder knows together; with all keys in one step,
    every combination of protected values occurs at least :math:`k` times.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding (one decimal more than the column has, and as many as keep a total
    within a millionth), unless the schema declares whole numbers or a range to which a mean must be adjusted.
    Medians of ordinal columns and dates, and modes, are values that occur in the group; the notes of a
    release name these columns.

    **Risk to know.** The records of a group are equal only in the protected columns: a rare value in another
    column still singles a record out. A group of equal records keeps their exact values.

    **Ties, missing, weights.** Of records at equal distances the first in the file is taken; of equally
    frequent values the mode is the one more frequent in the table, then the first in order. Missing values
    count as the column's mean when groups are formed and stay missing; the centre is over the values present,
    so with missing values the groups are not guaranteed to be equivalence classes. With a weight column,
    centres are weighted, so weighted totals of continuous columns are kept; distances and group sizes count
    each record once. A nominal column of more than 50 values: the rarest, from the 50th on, count as one
    value when groups are formed.

    **Cost.** :math:`O(n^2/k)`, far less in few columns.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 60.0, 20.0, 50.0, 30.0, 40.0], "sex": list("fmfmmm")})
    >>> schema = Schema((Column("income", Kind.CONTINUOUS), Column("sex", Kind.NOMINAL)))
    >>> release = Mdav(k=3).protect(Table(frame, schema), Run(seed=1))
    >>> release.table.frame["income"].to_list()
    [20.0, 50.0, 20.0, 50.0, 20.0, 50.0]
    >>> release.table.frame["sex"].to_list()
    ['f', 'm', 'f', 'm', 'f', 'm']
    """

    name = "mdav"
    vetted = "brute-forced: property/test_kernels_groups.py::test_equals_the_definition"
    synonyms = (
        "numerical microaggregation",
        "microaggrGower",
        "argus_microaggregation",
        "maximum distance to average vector",
        "fixed-size microaggregation",
        "multivariate microaggregation",
        "categorical microaggregation",
        "heuristic microaggregation",
        "rmd",
        "robust Mahalanobis microaggregation",
        "clustered microaggregation",
        "clustpca",
        "clustmcdpca",
    )
    family = "microaggregation"
    title = "Microaggregation (MDAV)"
    references = ("domingoferrer2005", "torra2004", "greenacre1984", "templ2008")

    def partition(self, points: Floats, run: Run) -> Ints:
        """Group by maximum distance to the average vector."""
        groups: Ints = kernels.groups.mdav(points, self.k, tick=run.ticker(self.title))
        return groups


class VMdav(Microaggregation):
    r"""Replace each record by the centre of k to 2k − 1 similar records; dense clusters form larger groups.

    As MDAV, but the size of a group follows the data (V-MDAV): the record farthest from the mean of all
    takes its :math:`k-1` nearest as a group; then, while the group has fewer than :math:`2k-1`, the free
    record nearest to it joins if

    .. math::

        d_{in} < \gamma\, d_{out}

    where :math:`d_{in}` is its distance to the nearest member, :math:`d_{out}` that to its nearest free
    record, and :math:`\gamma` the gain. Records left over join the group of nearest mean that has room.

    See Also
    --------
    Mdav : groups of exactly k, except the last; defines the distance between records.
    SequentialMicroaggregation : moves records between groups until no move helps.

    Notes
    -----
    **When to use.** Records that lie in natural clusters of unequal size, which groups of exactly :math:`k`
    would cut. Otherwise larger groups lose more: on the reference file Census at :math:`k = 5`, 9.0 % of the
    sum of squares with the default gain and 10.5 % with 1.1, where MDAV loses 9.1 %. Compare the two on your
    table: ``kernels.groups.centres.share_lost`` gives this share.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding and what the schema declares.

    **Risk to know.** As for MDAV: the records of a group are equal only in the protected columns. Larger
    groups reveal where the clusters are.

    **Ties, missing, weights.** As for MDAV: of records at equal distances the first in the file is taken,
    missing values count as the mean and stay missing, centres are weighted, sizes count records.

    **Cost.** :math:`O(n^2/k)`.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 11.0, 12.0, 50.0, 52.0, 90.0, 94.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> VMdav(k=2, gain=1.1).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [11.0, 11.0, 11.0, 51.0, 51.0, 92.0, 92.0]
    """

    name = "v-mdav"
    vetted = "brute-forced: property/test_kernels_group_variants.py::test_vmdav_equals_its_definition"
    synonyms = ("variable-size microaggregation",)
    family = "microaggregation"
    title = "Microaggregation (V-MDAV)"
    references = ("solanas2006", "domingoferrer2005")

    gain: float = param(
        0.2,
        "How close a record must be to the group, relative to other free records, to join it.",
        ge=0,
        le=1e6,
        symbol="γ",
        hint="0.2 for scattered records, 1.1 for clustered ones; 0 lets no group grow",
        advanced=True,
    )

    def partition(self, points: Floats, run: Run) -> Ints:
        """Group by maximum distance to the average vector, in variable size."""
        groups: Ints = kernels.groups.vmdav(points, self.k, self.gain, tick=run.ticker(self.title))
        return groups


class Cbfs(Microaggregation):
    r"""Replace each record by the centre of k similar records, forming one group at a time from the outside.

    Centroid-based fixed size: while at least :math:`k` records remain, the one farthest from their mean

    .. math::

        r = \arg\max_i \lVert x_i - \bar x \rVert

    takes its :math:`k-1` nearest as a group, and the mean is recomputed, whereas MDAV forms two groups at
    opposite ends for each mean. The fewer than :math:`k` remaining records join the group with the nearest
    mean.

    See Also
    --------
    Mdav : two groups at a time; defines the distance between records.

    Notes
    -----
    **When to use.** As MDAV. The loss is about the same, sometimes slightly less, sometimes slightly more:
    8.9 % of the sum of squares on the reference file Census at :math:`k = 5`, where MDAV loses 9.1 %.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding and what the schema declares.

    **Risk to know.** As for MDAV: the records of a group are equal only in the protected columns.

    **Ties, missing, weights.** As for MDAV: of records at equal distances the first in the file is taken,
    missing values count as the mean and stay missing, centres are weighted, sizes count records.

    **Cost.** :math:`O(n^2/k)`, far less in few columns.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 60.0, 20.0, 50.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> Cbfs(k=3).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [20.0, 50.0, 20.0, 50.0, 20.0, 50.0]
    """

    name = "cbfs"
    vetted = "brute-forced: property/test_kernels_group_variants.py::test_cbfs_equals_its_definition"
    synonyms = ("centroid-based fixed-size microaggregation",)
    family = "microaggregation"
    title = "Microaggregation (CBFS)"
    references = ("laszlo2005",)

    def partition(self, points: Floats, run: Run) -> Ints:
        """Group around the record farthest from the centroid, one group at a time."""
        groups: Ints = kernels.groups.cbfs(points, self.k, tick=run.ticker(self.title))
        return groups


class SequentialMicroaggregation(Microaggregation):
    r"""Replace each record by its group's centre; records move between groups until no move lowers the loss.

    Sequential clustering: the first records of groups are drawn at random, and the others join them; then
    each record in turn moves to the group where it lowers the loss most,

    .. math::

        \mathrm{SSE} = \sum_g \sum_{i \in g} \lVert x_i - \bar x_g \rVert^2,

    until no move does. Groups that are too small are merged, too large ones split, followed by moves and
    exchanges that keep every size from :math:`k` to :math:`2k-1`. MDAV never changes a group once formed;
    this method improves all of them together.

    See Also
    --------
    Mdav : deterministic and faster; defines the distance between records.

    Notes
    -----
    **When to use.** Where a smaller loss is worth some time: on the reference files Census and Tarragona it
    loses 7 to 14 % less than MDAV at :math:`k` from 3 to 10.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding and what the schema declares. No single move that keeps the sizes
    would lower the loss (or the limit on sweeps was reached).

    **Risk to know.** As for MDAV: the records of a group are equal only in the protected columns. Two runs
    with different seeds give two partitions: release only one, because fewer than :math:`k` records may share
    both groups.

    **Ties, missing, weights.** As for MDAV: missing values count as the mean and stay missing, centres are
    weighted, sizes count records.

    **Cost.** About :math:`O(n \log n)` for each sweep in few columns, at most some hundred sweeps.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 60.0, 20.0, 50.0, 30.0, 40.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> SequentialMicroaggregation(k=3).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [20.0, 50.0, 20.0, 50.0, 20.0, 50.0]
    """

    name = "sequential-microaggregation"
    vetted = (
        "brute-forced: property/test_microaggregation.py::"
        "test_groups_have_k_to_2k_minus_1_show_their_centre_and_keep_weighted_means"
    )
    synonyms = ("heuristic microaggregation",)
    family = "microaggregation"
    title = "Sequential microaggregation"
    references = ("goldberger2010",)
    randomness = Randomness()

    def partition(self, points: Floats, run: Run) -> Ints:
        """Deal the records out and move them until no move helps."""
        groups: Ints = kernels.groups.sequential(
            points, self.k, run.rng("groups"), tick=run.ticker(self.title)
        )
        return groups
