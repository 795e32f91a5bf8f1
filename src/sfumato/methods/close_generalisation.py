"""Generalisation into groups that are k-anonymous and t-close in a sensitive column."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from sfumato import kernels
from sfumato.core.params import Columns, param
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.data.generalised.ranges import RecordGroups
from sfumato.data.points import points_of
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods._centres import notes_on_centres, show_centres
from sfumato.methods._enforcing import Guarantee
from sfumato.methods._local_recoding import Canvas, LocalRecoding, join_failing_groups
from sfumato.methods.sorted_generalisation import order_from_zero

#: What rounding may add to a distance.
_FLOAT_TOLERANCE = 1e-12
#: A sequence of multiples of this, modulo 1, is as even as can be wherever it ends.
_GOLDEN = (math.sqrt(5) - 1) / 2


def closest_of(n: int, k: int) -> float:
    """The distance that clusters of k of n records never exceed, if k divides n: equation 6."""
    return (n - k) / (2 * (n - 1) * k) if n > k else 0.0


def size_for(n: int, k: int, t: float) -> int:
    """The size of clusters of n records that are k alike and t close: equation 8, at most n."""
    needed = math.ceil(n / (2 * (n - 1) * t + 1) - 1e-9)  # what is whole but for rounding is whole
    return min(max(k, needed), max(n, 1))


class CloseRecoding(LocalRecoding):
    """What groups that represent a sensitive column share; a method writes ``clusters``."""

    t: float | None = param(
        None,
        (
            "Largest distance between a group and the table in the sensitive column; by default the bound "
            "that k gives."
        ),
        gt=0,
        le=1,
        symbol="t",
    )
    sensitive: Columns = param(
        Columns(("@sensitive",)),
        "The sensitive column; of several, the first is used.",
        hint="name one",
        label="Sensitive column",
    )

    def governing(self, table: Table) -> str | None:
        """The sensitive column that groups are formed by, None where there is none."""
        names = [name for word in self.sensitive for name in sorted(table.schema.resolve([word]))]
        return names[0] if names else None

    def refuses(self, table: Table) -> str | None:
        """Refuse a sensitive column that has no order or is a key, and a t of nothing."""
        reason = super().refuses(table)
        name = None if reason else self.governing(table)
        if reason or (name is None and self.t is None):
            return reason
        if name is None:
            return f"{self.name} must be given a sensitive column, got: none"
        if name in table.chosen:
            return f"the sensitive column of {self.name} must not be a key, got: {quoted([name])}"
        kind = table.schema[name].kind
        if kind in {Kind.NOMINAL, Kind.SET} or table.is_generalised(name):
            what = "generalised values" if table.is_generalised(name) else kind
            return f"{self.name} must be given a sensitive column with an order, got: `{name}` ({what})"
        return None

    def clusters(self, canvas: Canvas, order: Ints, ranks: Ints, k: int) -> Ints:
        """Cluster the records so that each represents the order, from ``ranks`` or what they are made of."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def group(self, canvas: Canvas) -> tuple[RecordGroups, tuple[str, ...]]:
        """Take one of each part of the order of the sensitive values, and join what fails."""
        table = canvas.table
        name, n = self.governing(table), len(table)
        ranks = np.empty(n, dtype=np.int64)
        ranks[order_from_zero(table)[1]] = np.arange(n)
        values = np.zeros(n) if name is None else table.numbers(name)
        order = np.lexsort((ranks * _GOLDEN % 1.0, np.where(np.isnan(values), np.inf, values)))
        k = min(self.k, n) if self.t is None else size_for(n, self.k, self.t)
        groups = join_failing_groups(RecordGroups.of(self.clusters(canvas, order, ranks, k)), canvas)
        return groups, () if name else ("no column is sensitive: the groups are only k-anonymous",)

    def guarantee_for(self, table: Table) -> Guarantee:
        """What is asked for: k and what else, and to be close in the sensitive column."""
        guarantee, name = super().guarantee_for(table), self.governing(table)
        if name is None:
            return guarantee
        level = closest_of(len(table), self.k) * (1 + _FLOAT_TOLERANCE) if self.t is None else self.t
        close = Requirement.parse(f"t-closeness(distance=ordered, missing={self.missing}) <= {level!r}")
        measure: Any = close.measure
        close = replace(close, measure=replace(measure, sensitive=(name,)))
        return replace(guarantee, requirements=(*guarantee.requirements, close))


class CloseGeneralisation(CloseRecoding):
    r"""Replace each key by the range of a group of at least k that is t-close in a sensitive column.

    Algorithm S4 of Sánchez, Martínez and Domingo-Ferrer. The records are put in ascending order of the
    sensitive column and split into :math:`K` parts; in each part they are sorted as in
    `SortedGeneralisation`, and the i-th records of all parts form a group, which thus has one record of each
    K-quantile of the sensitive values. If all values are distinct and :math:`K` divides :math:`n`, the
    ordered distance of a group from the table (see `t-closeness`) is at most

    .. math::

        t \le \frac{n - K}{2 (n - 1) K}, \qquad \text{and} \qquad
        K = \max\left\{k, \left\lceil \frac{n}{2 (n - 1) t + 1} \right\rceil \right\}

    is large enough for any :math:`t`. Without ``t`` the bound for :math:`K = k` is enforced.

    *Where K does not divide n* there are :math:`q = \lfloor n / k \rfloor` groups and :math:`K = \lfloor n /
    q \rfloor \ge k` parts, which end at :math:`j n / K`, rounded; a part with one record more than :math:`q`
    gives it to one of the last groups. The published rule, with all remaining records at the end, violates
    the bound (:math:`n = 2003, k = 5`), and so does this one for some data, if by little. So every group is
    measured, and groups that are too far from the table are merged with their neighbours until none is. *This
    always ends within the bound:* the distance is convex,

    .. math::

        D\left(\frac{n_1 P_1 + n_2 P_2}{n_1 + n_2}, Q\right)
            \le \frac{n_1 D(P_1, Q) + n_2 D(P_2, Q)}{n_1 + n_2},

    so a merged group is never farther than the farther of the two; every merge leaves one group less, none
    has fewer than k; and a single group of all records has the distance 0. With ties, for which the bound
    above does not hold, and for the requirements in ``also``, groups are merged likewise; a requirement that
    even one group of all records does not meet is an error. The whole proof is in ``docs/proofs``.

    See Also
    --------
    TClosenessFirst : takes the nearest records instead of those of similar rank; slower, with less loss.
    Mondrian : with ``also="t <= 0.2"`` it splits only where groups stay t-close.

    Notes
    -----
    **When to use.** Millions of records with a sensitive number or grade that must not be inferred even
    roughly, such as charges or incomes.

    **Guarantees.** At least :math:`k` people share their keys, and the ordered distance of every group is at
    most ``t``, both measured on the release. Every range contains the original value.

    **Risk to know.** Closeness is measured by the order of the values, so two groups may still differ by one
    extreme value. It is guaranteed for one column: name others in ``also`` (``t <= 0.3``) to have them
    checked too.

    **Ties, missing, weights.** Records with equal sensitive values are distributed over the parts so that
    each part has all ranks. Missing sensitive values come last, and count as the measure says. For missing
    keys see `SortedGeneralisation`. With a column of persons, people are counted instead of records. Weights
    are not used.

    **Cost.** :math:`O(n (d + \log n))` for :math:`d` keys.

    Examples
    --------
    >>> from sfumato.data.generalised.text_forms import to_text
    >>> frame = pl.DataFrame({"age": [20, 61, 50, 24, 22, 58], "charge": [10, 20, 30, 40, 50, 60]})
    >>> columns = (Column("age", Kind.CONTINUOUS), Column("charge", Kind.CONTINUOUS, Role.SENSITIVE))
    >>> table = Table(frame, Schema(columns), targets=("age",))
    >>> shown = CloseGeneralisation(k=2).protect(table, Run(seed=1)).table
    >>> to_text(shown.frame["age"]).to_list()
    ['[20;29]', '[50;69]', '[20;59]', '[20;59]', '[20;29]', '[50;69]']
    """

    name = "close-generalisation"
    vetted = "proved: proofs/t-close-groups.md"
    family = "recoding"
    nature = "non-perturbative"
    title = "Close generalisation"
    references = ("sanchez2016", "soriacomas2015closeness", "li2007")

    def clusters(self, canvas: Canvas, order: Ints, ranks: Ints, k: int) -> Ints:  # noqa: ARG002
        """The i-th of all parts."""
        found: Ints = kernels.groups.sorted_clusters.one_of_each(order, ranks, k)
        return found


class TClosenessFirst(CloseRecoding):
    r"""Show the range or centre of groups of at least k similar records, t-close in a sensitive column.

    The third algorithm of Soria-Comas, Domingo-Ferrer, Sánchez and Martínez: microaggregation with
    t-closeness first. The records are split into :math:`K` parts by the sensitive column as in
    `CloseGeneralisation`, which has the formulas. The record farthest from the mean of all that are left
    takes the nearest record of each part

    .. math::

        \arg\min_{i \in S_p} \lVert x_i - x_0 \rVert, \qquad p = 1, \dots, K,

    as a group; then the record farthest from that one does the same, and so on. Where :math:`K` does not
    divide :math:`n`, each part with one record more gives a second one to one of the first groups; groups
    that are too far from the table are merged as in `CloseGeneralisation`, which always ends within the
    bound.

    See Also
    --------
    CloseGeneralisation : for millions of records.
    Mdav : the same without closeness; defines the distance between records.

    Notes
    -----
    **When to use.** Up to some hundred thousand records with a sensitive number or grade, where less
    information should be lost than by sorting. With ``show="centre"`` the release has exact values (means,
    medians, modes), on which any analysis runs.

    **Guarantees.** At least :math:`k` people share their keys, and the ordered distance of every group is at
    most ``t``, both measured on the release. Ranges contain the original values; centres keep the means of
    continuous keys, up to what the schema declares.

    **Risk to know.** As for `CloseGeneralisation`: closeness is measured by order, in one column.

    **Ties, missing, weights.** Of records at equal distances the first in the file is taken. Missing keys
    count as the mean when groups are formed; a key that is missing for some records of a group shows the
    wildcard. Centres need keys without missing values. Centres are weighted where there are weights; groups
    count each person once.

    **Cost.** :math:`O(n^2 d / k)` for :math:`d` keys.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [20, 61, 50, 24, 22, 58], "charge": [10, 20, 30, 40, 50, 60]})
    >>> columns = (Column("age", Kind.CONTINUOUS), Column("charge", Kind.CONTINUOUS, Role.SENSITIVE))
    >>> table = Table(frame, Schema(columns), targets=("age",))
    >>> TClosenessFirst(k=2, show="centre").protect(table, Run(seed=1)).table.frame["age"].to_list()
    [21.0, 59.5, 37.0, 37.0, 21.0, 59.5]
    """

    name = "t-closeness-first"
    vetted = "proved: proofs/t-close-groups.md"
    family = "recoding"
    nature = "non-perturbative"
    title = "t-closeness-first microaggregation"
    analyst_note = (
        "Values are centres of groups, which shrinks variances, or ranges, which are interval-censored; "
        "relations with sensitive columns are weaker."
    )
    references = ("soriacomas2015closeness", "domingoferrer2005", "li2007")
    cost = "n²"

    show: Literal["range", "centre"] = param(
        "range",
        "What a group shows.",
        choices={
            "range": "Its range in each key.",
            "centre": "Its mean, median or mode in each key, of which none may be missing.",
        },
        label="Show",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse centres of keys that have missing values: they would tell the records of a group apart."""
        reason = super().refuses(table)
        if reason is not None or self.show == "range":
            return reason
        holes = [name for name in table.chosen if table.missing(name).any()]
        if holes:
            return f"{self.name} needs complete keys to show centres, got: missing values in {quoted(holes)}"
        return None

    def clusters(self, canvas: Canvas, order: Ints, ranks: Ints, k: int) -> Ints:  # noqa: ARG002
        """The nearest of all parts."""
        points: Floats = points_of(canvas.table, scale="deviation", nominal="frequency")
        found: Ints = kernels.groups.sorted_clusters.nearest_of_each(
            points, order, k, tick=canvas.run.ticker(self.title)
        )
        return found

    def make_release(self, canvas: Canvas, groups: RecordGroups, notes: tuple[str, ...]) -> Release:
        """Show ranges, or centres."""
        if self.show == "range":
            return super().make_release(canvas, groups, notes)
        table = shown = canvas.table
        for name in table.chosen:
            canvas.run.check()
            shown = shown.with_values(name, show_centres(table, name, groups.of_record, "auto"))
        notes += notes_on_centres(table, dict.fromkeys(table.chosen, "auto"))
        return Release.record_by_record(shown, notes=notes)
