"""Microaggregation in groups whose size follows the data: k-Ward and the minimum spanning tree."""

from __future__ import annotations

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods.microaggregation import Microaggregation


class KWard(Microaggregation):
    r"""Replace each record by the centre of k to 2k − 1 similar records, joining the closest groups first.

    Two groups are formed at opposite ends: the record farthest from the mean with its :math:`k-1` nearest,
    and the record farthest from that one with its own. All other records begin as groups of one. Then, again
    and again, the two groups are joined whose union adds least to the sum of squares within groups (Ward),

    .. math::

        \frac{n_a n_b}{n_a + n_b} \lVert \bar x_a - \bar x_b \rVert^2

    where :math:`n` is the size of a group and :math:`\bar x` its mean, but never two that both have
    :math:`k` records, until every group has :math:`k`. A group of :math:`2k` or more is split in the same
    way.

    See Also
    --------
    Mdav : groups of exactly k, except the last; defines the distance between records.
    SpanningTreeMicroaggregation : splits where records are far apart.
    SequentialMicroaggregation : usually loses less.

    Notes
    -----
    **When to use.** Records in clusters of unequal size: groups follow the clusters, as hierarchical
    clustering does. On the reference file Tarragona it loses 16.3 % of the sum of squares at :math:`k = 3`,
    where MDAV loses 16.9 %; on Census 6.0 % against 5.7 %. {measure}`microaggregation-gap` says how far any
    of them may be from the best.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding and what the schema declares.

    **Risk to know.** As for MDAV: the records of a group are equal only in the protected columns. Larger
    groups reveal where the clusters are.

    **Ties, missing, weights.** As for MDAV: of equal costs the first in the file is taken, missing values
    count as the mean and stay missing, centres are weighted, sizes count records.

    **Cost.** About :math:`O(n^2)`: some seconds for 10,000 records, minutes for 100,000.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 11.0, 12.0, 50.0, 52.0, 90.0, 94.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> KWard(k=2).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [11.0, 11.0, 11.0, 51.0, 51.0, 92.0, 92.0]
    """

    name = "k-ward"
    vetted = "brute-forced: unit/kernels/test_group_bound.py::test_groups_are_those_of_the_definition"
    synonyms = ("Ward microaggregation", "variable-size microaggregation", "data-oriented microaggregation")
    family = "microaggregation"
    title = "Microaggregation (k-Ward)"
    references = ("domingoferrer2002",)

    def partition(self, points: Floats, run: Run) -> Ints:
        """Join what is closest until every group has k records."""
        groups: Ints = kernels.groups.ward(points, self.k, tick=run.ticker(self.title))
        return groups


class SpanningTreeMicroaggregation(Microaggregation):
    r"""Replace each record by the centre of k to 2k − 1 similar records, splitting where the gaps are widest.

    The records are joined to a tree of least total length (minimum spanning tree),

    .. math::

        \min_T \sum_{(i, j) \in T} \lVert x_i - x_j \rVert,

    over all trees :math:`T` that connect them. Its edges are cut, the longest first, each if at least
    :math:`k` records are left on both sides. What is left of :math:`2k` records or more is grouped by MDAV.

    See Also
    --------
    Mdav : groups of exactly k, except the last; defines the distance between records.
    KWard : joins what is close instead.

    Notes
    -----
    **When to use.** Records in well-separated clusters, of any shape: no group then contains records of two
    clusters if each has :math:`k`. Otherwise it loses more than MDAV: on the reference file Census 10.3 % of
    the sum of squares at :math:`k = 5`, where MDAV loses 9.1 %.

    **Guarantees.** Every group has at least :math:`k` records and at most :math:`2k-1`; means of continuous
    columns are unchanged up to rounding and what the schema declares.

    **Risk to know.** As for MDAV: the records of a group are equal only in the protected columns. Groups
    reveal where the clusters are.

    **Ties, missing, weights.** As for MDAV: missing values count as the mean and stay missing, centres are
    weighted, sizes count records. Of equal edges one is cut first that depends only on the order of the file.

    **Cost.** :math:`O(n^2)`: a few seconds for 10,000 records, minutes for 100,000.

    Examples
    --------
    >>> frame = pl.DataFrame({"income": [10.0, 11.0, 12.0, 50.0, 52.0, 90.0, 94.0]})
    >>> table = Table(frame, Schema((Column("income", Kind.CONTINUOUS),)))
    >>> SpanningTreeMicroaggregation(k=2).protect(table, Run(seed=1)).table.frame["income"].to_list()
    [11.0, 11.0, 11.0, 51.0, 51.0, 92.0, 92.0]
    """

    name = "spanning-tree-microaggregation"
    vetted = "brute-forced: unit/kernels/test_group_bound.py::test_groups_are_those_of_the_definition"
    synonyms = (
        "minimum spanning tree partitioning",
        "MST microaggregation",
        "variable-size microaggregation",
    )
    family = "microaggregation"
    title = "Microaggregation (minimum spanning tree)"
    references = ("laszlo2005",)

    def partition(self, points: Floats, run: Run) -> Ints:
        """Cut the tree, then what is too large."""
        groups: Ints = kernels.groups.spanning_tree(points, self.k, tick=run.ticker(self.title))
        return groups
