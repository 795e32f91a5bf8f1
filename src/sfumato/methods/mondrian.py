"""Mondrian: recursive splits of the records, as long as each group has enough people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato import kernels
from sfumato.core.params import Columns, param
from sfumato.data.classes.classes import column_codes
from sfumato.data.generalised.ranges import RecordGroups, is_categorical, numbers_and_type
from sfumato.data.generalised.round_ends import Cuts
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.points import points_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Codes, Flags, Floats, Ints
from sfumato.methods._clusters import clusters_of
from sfumato.methods._local_recoding import Canvas, LocalRecoding, natural_places

#: Classes of about as many records that a target of numbers or dates is told by.
N_CLASSES = 10


class Mondrian(LocalRecoding):
    r"""Split records into groups of at least k and replace each key by the group's range.

    All records form one group at first. A group is split in two at its widest key, measured as a share of the
    table's range,

    .. math::

        w_j(G) = \frac{\max_{i \in G} x_{ij} - \min_{i \in G} x_{ij}}{\max_i x_{ij} - \min_i x_{ij}},

    at the value that makes the two sides most equal in number, if both meet the requirements; otherwise the
    next widest key is tried. A group that no key can split is final, and every record shows, for each key,
    the range of its group: an interval of numbers or dates, widened to round ends; a run of ordered
    categories; the set of the nominal categories that occur.

    Ordinal keys are measured by the ranks of their values. The categories of a nominal key are distributed
    over two sets of similar size, the most frequent first; :math:`w_j` is then the number of categories, less
    one, over that of the table. Texts with numbers are split in their natural order (G3, G5, G15, SES), and
    distributed only where that leaves too few on one side. Where a nominal column names a hierarchy, the
    labels just below the lowest common one are distributed, and the group shows the lowest common label,
    whose share of the leaves is its width. Codes (ten or more, of digits and one length or of capitals and
    digits, such as postcodes and diagnoses) have a hierarchy without naming one: their prefixes, in order; a
    group without a common prefix shows the set of its codes.

    With a ``target``, splits are chosen to predict that column best (the information gain of decision trees),
    over all keys and values at once, and by width only where no split has any gain. With ``clusters`` the
    records are first put into so many clusters by their keys (k-means, each key in its standard deviations),
    and the cluster is the target: groups then keep the clusters as far as they can.

    See Also
    --------
    SortedGeneralisation : groups neighbours in one order of all records; faster, but coarser.
    CloseGeneralisation : for groups that must be close in a sensitive column.
    Mdav : shows the centre of a group instead of its range.

    Notes
    -----
    **When to use.** The usual choice for k-anonymity of numeric and mixed keys, if values may be coarser for
    some records than for others. Global recoding loses more information, but gives columns that are easier to
    analyse.

    **Guarantees.** The release meets every requirement, or nothing is released. Every range contains the
    original value. A group that some key can split, at its most equal value, is split: with k alone, groups
    have fewer than 2k records unless ties forbid it. Groups of a strict partition do not overlap, except for
    labels of a hierarchy, which may cover values of both sides of a split, for wildcards over missing values,
    and for ranges without a round number between them.

    **Risk to know.** The ends of ranges are round numbers, not values of real people, but they reveal that a
    person's value is near. As with any release that is only k-anonymous, all people of a group may share a
    sensitive value: require ``l`` or ``t`` in ``also``.

    **Ties, missing, weights.** Equal values stay on one side; with ``relaxed`` records with the middle value
    of an ordered key are split between both, in the order of the file, so that the sides are equal. Missing
    counts as a value below all others: where some records of a group lack a key, this key counts as widest,
    and missing values are split off first. A group that keeps both shows the wildcard in this key, and one in
    which all are missing stays missing (under ``missing`` other than *category*, the wildcard too). With a
    column of persons, people are counted instead of records. Weights are not used.

    **Cost.** :math:`O(n d \log n)` for :math:`d` keys. Requirements other than k are measured for all groups
    together, once for each level.

    Examples
    --------
    >>> from sfumato.data.generalised.text_forms import to_text
    >>> frame = pl.DataFrame({"age": [20, 22, 50, 24, 52, 58], "sex": list("fmfmmf")})
    >>> table = Table(frame, Schema((Column("age", Kind.CONTINUOUS), Column("sex", Kind.NOMINAL))))
    >>> shown = Mondrian(k=3).protect(table, Run(seed=1)).table
    >>> to_text(shown.frame["age"]).to_list()
    ['[20;24]', '[20;24]', '[50;59]', '[20;24]', '[50;59]', '[50;59]']
    """

    name = "mondrian"
    vetted = "brute-forced: unit/methods/test_mondrian.py::test_equals_a_naive_mondrian"
    synonyms = (
        "local recoding", "LocalRecProg", "local transformation", "k-anonymisation", "InfoGain Mondrian",
        "cluster-preserving recoding",
    )  # fmt: skip
    family = "recoding"
    nature = "non-perturbative"
    title = "Mondrian"
    references = ("lefevre2006", "lefevre2006workload", "fung2009")

    relaxed: bool = param(
        False,
        "Split equal values between both sides, so that the sides have equal sizes.",
        label="Split equal values",
        advanced=True,
    )
    target: Columns = param(
        Columns(),
        "A column outside the keys that the groups should predict as well as possible.",
        hint="name one",
        label="Column to predict",
    )
    clusters: int = param(
        0,
        "Number of clusters of the records that the groups should keep; 0 for none.",
        ge=0,
        le=100,
        label="Clusters to keep",
        advanced=True,
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse a target that is not one column outside the keys."""
        reason = super().refuses(table)
        if reason is None and self.target and self.clusters:
            reason = f"{self.name} must be given a `target` or `clusters` to keep, got: both"
        if reason is not None or not self.target:
            return reason
        names = table.schema.resolve(self.target)
        if len(names) != 1 or names[0] in table.chosen or table.schema[names[0]].kind is Kind.SET:
            return (
                f"`target` of {self.name} must be one column of single values outside the keys, "
                f"got: {quoted(names) or 'none'}"
            )
        return None

    def group(self, canvas: Canvas) -> tuple[RecordGroups, tuple[str, ...]]:
        """Cut until nothing can be cut."""
        table = canvas.table

        def failing(order: Ints, starts: Ints) -> Flags:
            return canvas.failing(RecordGroups(order, starts))

        order, starts, borders = kernels.mondrian.partition(
            coded_keys(table, canvas.hierarchies, canvas.beginnings),
            canvas.k,
            relaxed=self.relaxed,
            target=self._target_of(table),
            failing=None if canvas.needs_only_k else failing,
            tick=canvas.run.ticker(self.title),
        )
        places = {name: borders[:, place] for place, name in enumerate(table.chosen)}
        cuts = {name: Cuts(each[:, :2], each[:, 2:]) for name, each in places.items()}
        return RecordGroups(order, starts, cuts), ()

    def _target_of(self, table: Table) -> Codes | None:
        """The classes that groups should predict, if any."""
        if self.clusters:
            points = points_of(table, scale="deviation", nominal="frequency")
            return (clusters_of(points, self.clusters) + 1).astype(np.int32)
        return target_classes(table, *table.schema.resolve(self.target)) if self.target else None


def coded_keys(table: Table, hierarchies: Mapping[str, Hierarchy], beginnings: Collection[str] = ()) -> Any:
    """The keys of a table as Mondrian cuts them; the hierarchies of ``beginnings`` are in order."""
    matrix = np.zeros((len(table), len(table.chosen)), dtype=np.int32)
    scales = []
    for position, name in enumerate(table.chosen):
        codes, scale = _encode_key(table, name, hierarchies.get(name), natural=name in beginnings)
        matrix[:, position] = codes
        scales.append(scale)
    places = [scale.places for scale in scales]
    labels = [scale.labels for scale in scales]
    return kernels.mondrian.Keys(
        codes=matrix,
        places=np.concatenate([*places, np.zeros(1)]),
        place_starts=_starts([len(each) for each in places]),
        labels=np.concatenate([each.ravel() for each in labels]).astype(np.int32),
        widths=np.concatenate([scale.widths.ravel() for scale in scales]).astype(np.float64),
        label_starts=_starts([each.size for each in labels]),
        n_codes=np.array([scale.n_codes for scale in scales], dtype=np.int64),
        n_levels=np.array([len(each) for each in labels], dtype=np.int64),
        importance=np.array([table.schema[name].importance for name in table.chosen]),
        natural=np.array([scale.natural for scale in scales]),
    )


def _starts(sizes: list[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)[:-1]


class Scale(NamedTuple):
    """What the codes of a key mean: places on a line, or labels on levels. Code 0 is missing."""

    n_codes: int
    places: Floats  # [codes]; none for a nominal key
    labels: Codes  # [levels below the root, codes]; none for an ordered key
    widths: Floats  # the same: the share of the leaves below each label
    natural: bool = False  # whether the labels are in an order to keep


def _encode_key(
    table: Table, name: str, hierarchy: Hierarchy | None, *, natural: bool
) -> tuple[Codes, Scale]:
    """A key as codes in their order, 0 where it is missing, and what they mean.

    Whether a hierarchy is ``natural``, of the values and in their order, its maker says.
    """
    missing, kind = table.missing(name), table.schema[name].kind
    coarse = is_categorical(table, name) or table.is_generalised(name)
    numbers = None if coarse else numbers_and_type(table, name)
    codes = np.zeros(len(table), dtype=np.int32)
    if numbers is not None:
        distinct, found = np.unique(numbers[0][~missing], return_inverse=True)
        codes[~missing] = found + 1
        return codes, _line(_even_scale(distinct))
    if table.is_generalised(name):  # what is coarse already is a category: the same or another
        found = column_codes(table, name).codes.astype(np.int64)
        distinct, codes[~missing] = np.unique(found[~missing], return_inverse=True)
        codes[~missing] += 1
        return codes, _names(len(distinct))
    coded = table.codes(name)
    codes[:] = coded.codes + 1
    n_values = len(coded.categories)
    if kind is not Kind.NOMINAL:
        return codes, _line(np.arange(n_values) / max(n_values - 1, 1))
    places = natural_places(coded.categories) if hierarchy is None else None
    order = np.arange(n_values) if places is None else places
    levels, widths = [np.append(0, order + 1)], [np.zeros(n_values + 1)]
    if hierarchy is not None:
        rows = hierarchy.codes(coded.categories, 0)
        spanned = rows if natural else np.arange(hierarchy.n_leaves)  # what occurs, or all that is declared
        for level in range(1, hierarchy.height - 1):
            labels = hierarchy.leaf_codes(level)[rows]
            leaves = np.bincount(hierarchy.leaf_codes(level)[spanned])
            levels.append(np.append(0, np.unique(labels, return_inverse=True)[1] + 1))
            widths.append(np.append(0.0, (leaves[labels] - 1) / max(len(spanned) - 1, 1)))
    names = np.array(levels, dtype=np.int32)
    return codes, Scale(n_values + 1, np.zeros(0), names, np.array(widths), natural or places is not None)


def _names(n_values: int) -> Scale:
    labels = np.arange(n_values + 1, dtype=np.int32)[None, :]
    return Scale(n_values + 1, np.zeros(0), labels, np.zeros((1, n_values + 1)))


def _line(places: Floats) -> Scale:
    nothing = np.zeros((0, len(places) + 1))
    return Scale(len(places) + 1, np.append(0.0, places), nothing.astype(np.int32), nothing)


def _even_scale(distinct: npt.NDArray[np.number]) -> Floats:
    """Ascending numbers on a scale from 0 to 1; halves, since the distance of two large ones overflows."""
    halves = distinct.astype(np.float64) / 2
    if not len(halves) or halves[-1] == halves[0]:
        return np.zeros(len(halves))
    places: Floats = (halves - halves[0]) / (halves[-1] - halves[0])
    return places


def target_classes(table: Table, name: str) -> Codes:
    """The classes of a target, 0 where it is missing: its categories, or tenths of its numbers and dates."""
    if is_categorical(table, name):
        return (table.codes(name).codes + 1).astype(np.int32)
    numbers = table.numbers(name)
    known = ~np.isnan(numbers)
    classes = np.zeros(len(table), dtype=np.int32)
    if known.any():
        cuts = np.unique(np.quantile(numbers[known], np.arange(1, N_CLASSES) / N_CLASSES))
        classes[known] = np.searchsorted(cuts, numbers[known], side="left") + 1
    return classes
