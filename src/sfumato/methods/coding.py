"""Top and bottom coding: extreme values, which single records out, are replaced by a common value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import ColumnMethod, ColumnView, Method, Randomness, with_matrix
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import DType
from sfumato.data.generalised.round_ends import roundest
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, ParameterError
from sfumato.kernels.arrays import Flags, Floats, Ints, Values

#: What a share of records or weights may miss a whole number by: 0.1 · 30 is not quite 3.
_FLOAT_TOLERANCE = 1e-9
#: A group may be larger by so much that its threshold is a round number.
_MORE = 1.1

_SIDES = ("top", "bottom")


class TopBottomCoding(ColumnMethod):
    r"""Replace the largest values of a column by one common value, and the smallest by another.

    On each chosen side the most extreme records form a group that shows one value. For the top, with
    :math:`x_{(1)} \ge x_{(2)} \ge \dots \ge x_{(n)}`,

    .. math::

        c = \max\left( \left\lceil \tfrac{p}{100}\,n \right\rceil, m \right), \qquad
        t = x_{(c)}, \qquad
        y_i = \begin{cases} v & x_i \ge t \\ x_i & \text{else} \end{cases}

    where :math:`p` is the ``share`` and :math:`m` the least ``count`` of records in a group. With ``top``
    given for a column, :math:`t` is that value; if some records, but fewer than :math:`m`, lie there, the
    group is filled up to :math:`m`, and :math:`t = x_{(m)}`. The value shown, :math:`v`, is :math:`t` itself
    (``replace="threshold"``), or the mean or the median of the group. The bottom is the mirror image.

    A threshold that is shown but was not given would be a person's value. So it moves (down, for the top) to
    the roundest number at which the group is at most a tenth larger; a group of fewer than ten stays as it is
    and shows a number between its lowest value and the next. Dates move to the first of a month, quarter or
    year.

    ``share=0, count=10`` codes the ten largest; ``top={age: 90}, count=0`` codes by value alone.

    See Also
    --------
    MultivariateTopCoding : treats records that are extreme only in several columns together.
    Rounding : hides the digits in the middle.

    Notes
    -----
    **When to use.** Tails of few and well-known records: high incomes, great ages, large families. Everything
    between the two thresholds stays unchanged.

    **Guarantees.** At least :math:`\min(c, n)` records show the greatest value of the release, and as many
    the least (by value: :math:`\min(m, n)`, if any record lies there). What lies between the thresholds does
    not change; the order of any two records is not reversed; repeating the same coding changes nothing. With
    ``replace="mean"`` the total and the mean of the column are kept, up to a declared range and whole
    numbers.

    **Risk to know.** The records of a group are equal only in this column, and all of them are known to be
    extreme. The median is a real person's value, and so is the threshold of ordered categories; the mean
    reveals the last value of the group to an intruder who knows all others. The variance shrinks, more so
    with *threshold* than with *mean*.

    **Ties, missing, weights.** Equal values are treated alike, so a group may be larger than requested, never
    smaller. Where the two groups meet (many ties, few records, a share near 50 %) all records show the
    median, or with *mean* the mean, of all. The median is a value that occurs: of two middle ones that nearer
    to the other records. Missing values stay missing and do not count. With weights the share is one of the
    population (the sum of weights), and mean and median are weighted, so that weighted totals are kept; the
    count is in records.

    **Cost.** :math:`O(n \log n)` per column.

    Examples
    --------
    >>> ages = ColumnView(Column("age", Kind.CONTINUOUS), np.array([3.0, 41, 17, 88, 104, 65, 93, 22]))
    >>> TopBottomCoding(side="top").protect_column(ages, np.random.default_rng(1)).tolist()
    [3.0, 41.0, 17.0, 80.0, 80.0, 65.0, 80.0, 22.0]
    >>> coding = TopBottomCoding(side="top", replace="mean", top=90, count=2)
    >>> coding.protect_column(ages, np.random.default_rng(1)).tolist()
    [3.0, 41.0, 17.0, 88.0, 98.5, 65.0, 98.5, 22.0]
    """

    name = "top-bottom-coding"
    vetted = "brute-forced: property/test_coding.py::test_it_is_the_definition"
    synonyms = ("topBotCoding", "top coding", "bottom coding", "winsorisation", "capping")
    family = "rounding and coding"
    nature = "non-perturbative"
    title = "Top and bottom coding"
    analyst_note = (
        "The largest or smallest values are replaced by one common value: treat them as censored. Medians "
        "hold; variances and tails do not."
    )
    analyst_extras = (
        ("replace=threshold", "Means do not hold."),
        ("replace=median", "Means do not hold."),
        ("replace=mean", "Means and totals hold."),
    )
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.DATE})
    references = ("willenborg2001", "hundepool2012")
    randomness = Randomness(stochastic=False)

    share: float = param(
        1.0,
        "Share of the records to code on each side, where no value is given.",
        ge=0,
        le=50,
        unit="%",
        symbol="p",
        log=True,
        tune=(0.1, 50),
        drive=True,
        hint="1 codes the highest and the lowest hundredth; 0 leaves it to `count`",
    )
    count: int = param(
        3,
        "Smallest number of records that are coded together on one side.",
        ge=0,
        unit="records",
        symbol="m",
        label="Least number coded",
    )
    top: PerColumn[float] | None = param(
        None, "Values from this one upwards are coded, instead of a share.", when="side=both|top"
    )
    bottom: PerColumn[float] | None = param(
        None, "Values from this one downwards are coded, instead of a share.", when="side=both|bottom"
    )
    side: Literal["both", "top", "bottom"] = param(
        "both",
        "Which end of a column is coded.",
        choices={
            "both": "The largest and the smallest values.",
            "top": "Only the largest values.",
            "bottom": "Only the smallest values.",
        },
        label="Coded end",
    )
    replace: Literal["threshold", "mean", "median"] = param(
        "threshold",
        "What the coded records of each end show.",
        choices={
            "threshold": "The threshold from which values are coded.",
            "mean": "Their mean; not in ordinal columns.",
            "median": "Their median.",
        },
        label="Coded records show",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse means of categories, and thresholds that a column or the other settings have no use for."""
        return super().refuses(table) or next(self._contradictions(table), None)

    def _contradictions(self, table: Table) -> Iterator[str]:
        for side in _SIDES:
            if getattr(self, side) is not None and self.side not in {"both", side}:
                only = f"must be given only if the {side} is coded, got: side `{self.side}`"
                yield f"`{side}` of {self.name} {only}"
        for name in table.chosen:
            kind, given = table.schema[name].kind, [self._parameter_value(side, name) for side in _SIDES]
            if kind is Kind.ORDINAL and self.replace == "mean":
                yield f"{self.name} must replace the ordinal `{name}` by threshold or median, got: mean"
            if kind is not Kind.CONTINUOUS and given != [None, None] and not _has_numbers(table, name):
                yield f"{self.name} must code `{name}`, which has no numbers, by share or count, got: a value"
            if None not in given and not given[1] < given[0]:
                both = f"`{given[1]}` and `{given[0]}` for `{name}`"
                yield f"`bottom` of {self.name} must be below `top`, got: {both}"

    def _parameter_value(self, side: str, name: str) -> Any:
        values: PerColumn[float] | None = getattr(self, side)
        return None if values is None else values[name]

    def drive_range(self, table: Table) -> tuple[float, float]:
        """Search shares, unless every side of every column is coded by value."""
        coded = [side for side in _SIDES if self.side in {"both", side}]
        if table.chosen and all(
            self._parameter_value(side, name) is not None for side in coded for name in table.chosen
        ):
            raise ParameterError(
                f"`share` of {self.name} cannot be searched: all columns are coded by values",
                hint="leave out `top` and `bottom`",
            )
        return super().drive_range(table)

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values:  # noqa: ARG002
        """Code the extremes of one column."""
        ends = {
            side: self._end(column, side) if self.side in {"both", side} and len(column) else None
            for side in _SIDES
        }
        top, bottom = ends["top"], ends["bottom"]
        if top is not None and bottom is not None and top.threshold <= -bottom.threshold:
            return self._one_value_for_all(column)
        coded = column.values.copy()
        for end in (top, bottom):
            if end is not None:
                group = end.sign * column.values >= end.threshold
                coded[group] = end.sign * self._code_of_group(end, column, group)
        return coded

    def _end(self, column: ColumnView, side: str) -> _End | None:
        """Find the threshold on one side, on the values as they are or, for the bottom, upside down."""
        sign = 1 if side == "top" else -1
        values = sign * column.values
        least = min(self.count, len(values))
        given = _as_code(column, self._parameter_value(side, column.column.name), side)
        if given is not None:
            there = int(np.count_nonzero(values >= sign * given))
            if not there or there >= least:
                return _End(sign, sign * given) if there else None
        share = 0.0 if given is not None else self.share / 100
        threshold = _threshold_of_share(values, column.weights, share, least)
        if threshold is None or self.replace != "threshold" or column.categories is not None:
            return None if threshold is None else _End(sign, threshold)
        beyond = _group_limit(values, column.weights, threshold, share, least)
        if beyond is None:
            return _End(sign, threshold)
        rounded = roundest(sign * threshold, sign * beyond, column.values, _dtype(column))
        return _End(sign, sign * rounded)

    def _code_of_group(self, end: _End, column: ColumnView, group: Flags) -> Any:
        """Find what a group shows, in the direction of its side."""
        weights = None if column.weights is None else column.weights[group]
        values = end.sign * column.values[group]
        if self.replace == "mean":
            return _mean(values, weights)
        return end.threshold if self.replace == "threshold" else _weighted_quantile(values, weights, 0.5)

    def _one_value_for_all(self, column: ColumnView) -> Values:
        """Show one value for all, since the two groups meet; but none beyond a value that was given."""
        if self.replace == "mean":
            shown = _mean(column.values, column.weights)
        else:
            shown = _weighted_quantile(column.values, column.weights, 0.5)
        for side, keep in (("top", min), ("bottom", max)) if self.replace == "threshold" else ():
            given = _as_code(column, self._parameter_value(side, column.column.name), side)
            shown = shown if given is None else keep(shown, given)
        return np.full_like(column.values, shown)


@dataclass(frozen=True)
class _End:
    """One side of a column: from ``threshold`` up, once the values are multiplied by ``sign``, is coded."""

    sign: int
    threshold: Any


def _has_numbers(table: Table, name: str) -> bool:
    """Whether thresholds mean something in a column of categories: they are numbers in their order."""
    if table.schema[name].kind is not Kind.ORDINAL:
        return False
    categories = table.codes(name).categories
    return categories.dtype.is_numeric() and categories.is_sorted()


def _as_code(column: ColumnView, given: float | None, side: str) -> Any:
    """Turn a threshold on categories into the code of the category at it, or next to it on its side."""
    if given is None or column.categories is None:
        return given
    values = column.categories.to_numpy()
    if side == "top":
        return int(np.searchsorted(values, given, side="left"))
    return int(np.searchsorted(values, given, side="right")) - 1


def _threshold_of_share(values: Values, weights: Floats | None, share: float, least: int) -> Any:
    """The value down to which that share lies, and at least so many records; None where neither asks."""
    if weights is None:
        wanted = max(ceil(share * len(values) - _FLOAT_TOLERANCE), least)
        return _greatest(values, wanted) if wanted else None
    found = [_greatest(values, least)] if least else []
    if share * weights.sum() > _FLOAT_TOLERANCE:
        found.append(-_weighted_quantile(-values, weights, share))
    return min(found) if found else None


def _group_limit(values: Values, weights: Floats | None, threshold: Any, share: float, least: int) -> Any:
    """The greatest value that is not to be drawn in: with it a group is more than a tenth above its least."""
    distinct, places = np.unique(values, return_inverse=True)
    people, records = (np.cumsum(np.bincount(places, each)[::-1])[::-1] for each in (weights, None))
    at = int(np.searchsorted(distinct, threshold))
    allowed = max(people[at], _MORE * share * people[0]), max(records[at], _MORE * least)
    outside = (people > allowed[0] * (1 + _FLOAT_TOLERANCE)) & (records > allowed[1] * (1 + _FLOAT_TOLERANCE))
    return distinct[outside][-1] if outside.any() else None


def _dtype(column: ColumnView) -> DType:
    """What the values of a column are counted in, as round numbers go."""
    if column.dtype is not None and column.dtype.is_temporal():
        return column.dtype
    return pl.Date() if column.column.kind is Kind.DATE else pl.Float64()


def _greatest(values: Values, count: int) -> Any:
    """The value of that many-th place from the top."""
    place = max(len(values) - count, 0)
    return np.partition(values, place)[place]


def _weighted_quantile(values: Values, weights: Floats | None, share: float) -> Any:
    """The least value up to which the values make up that share of the weights."""
    if weights is None:
        place = max(ceil(share * len(values) - _FLOAT_TOLERANCE) - 1, 0)
        return np.partition(values, place)[place]
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1 - _FLOAT_TOLERANCE)))
    return values[order[min(place, len(values) - 1)]]


def _mean(values: Values, weights: Floats | None) -> Any:
    """Take the mean around one of the values, so that instants keep all their digits and constants stay."""
    apart = np.average(values - values[0], weights=weights)
    return values[0] + (apart if values.dtype.kind == "f" else values.dtype.type(np.rint(apart)))


def robust_distances(values: Floats, method: str) -> tuple[Any, Floats, Ints]:
    """The robust centre, the squared distance of each record from it, and over how many columns that is."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = kernels.outlyingness.RobustCentre.of(values)
        squares, sizes = middle.distances(values)
    if not np.isfinite(squares).all():
        raise DataError(
            f"{method} must be given values of moderate size, got: "
            f"{int((~np.isfinite(squares)).sum())} records too far from the centre",
            hint="declare codes such as 1e300 as missing, or use other units",
        )
    return middle, squares, sizes


class MultivariateTopCoding(Method):
    r"""Move multivariate outliers onto an ellipsoid around the centre, or replace them by their mean.

    A record may be ordinary in every column and still have a unique combination. The distance is the
    Mahalanobis distance from a robust centre, which outliers cannot move:

    .. math::

        d_i^2 = z_i^\top R^{-1} z_i, \qquad z_{ij} = \frac{x_{ij} - m_j}{s_j}

    where :math:`m_j` is the median of a column and :math:`s_j = 1.4826` times its median absolute deviation
    (of the values other than the median where more than half are equal to it), and :math:`R` is the
    correlation matrix of the :math:`z_{ij}` drawn in to :math:`\pm 2` (Alqallaf and others 2002), recomputed
    three times from the half of the records with the smallest distances (the concentration steps of Hubert,
    Rousseeuw and Verdonck 2012), if that has five records for each column. Eigenvalues of :math:`R` are at
    least a millionth of the greatest, so redundant columns do no harm.

    The :math:`c = \lceil p\,n/100 \rceil` records of the greatest distances are coded; with :math:`L` the
    next distance, ``replace="ellipsoid"`` shows

    .. math::

        y_i = m + \frac{L}{d_i} (x_i - m)

    the point on the ellipsoid :math:`d = L` in the same direction, and ``replace="mean"`` the mean of the
    coded records.

    See Also
    --------
    TopBottomCoding : codes the extremes of each column.
    MultivariateRounding : coarsens all values, not only the extremes.

    Notes
    -----
    **When to use.** Several continuous columns that an intruder knows together, before rounding, noise or
    microaggregation: those methods protect outliers least.

    **Guarantees.** *Ellipsoid*: no record lies outside the ellipsoid around the original's robust centre
    afterwards; directions from the centre stay; all other records are as they were. *Mean*: at least
    :math:`c` records show the same point, and column totals are kept. Both up to declared ranges and whole
    numbers.

    **Risk to know.** A record on the ellipsoid keeps its direction, and with it the ratios of its deviations:
    many outliers in one direction stay together, a single one stays alone. A record on the surface was
    visibly coded. The farthest records of heavy tails are moved by much.

    **Ties, missing, weights.** Records of equal distance are treated alike. Missing values stay missing: a
    record is judged in the columns it has, by their part of :math:`R`; distances over different numbers of
    columns are compared by the approximation of Wilson and Hilferty (1931). The mean of a column is over the
    coded records that have it. Constants stay and do not count. Weights are not used: the share is in
    records. Rules such as ``total = part_a + part_b`` may be violated; a plan's repair restores them.

    **Cost.** :math:`O(n)` for given columns, and :math:`O(d^3)` for each pattern of missing values.

    Examples
    --------
    >>> frame = pl.DataFrame({"height": [150.0, 160, 170, 180, 190, 260], "shoe": [36.0, 38, 40, 42, 44, 58]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))
    >>> release = MultivariateTopCoding(share=10).protect(table, Run(seed=1))
    >>> (release.table.frame["height"] != frame["height"]).to_list()
    [False, False, False, False, False, True]
    """

    name = "multivariate-top-coding"
    vetted = (
        "brute-forced: unit/methods/test_coding.py::test_outermost_records_come_to_the_ellipsoid_on_their_ray"
    )
    synonyms = ("mvTopCoding",)
    family = "rounding and coding"
    title = "Multivariate top coding"
    analyst_note = (
        "Records far from the others were moved towards the centre: variances, tails and extremes are too "
        "small."
    )
    analyst_extras = (
        ("replace=ellipsoid", "Medians hold; means may move."),
        ("replace=mean", "Means hold; medians may move."),
    )
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("alqallaf2002", "hubert2012", "wilson1931", "willenborg2001")
    randomness = Randomness(stochastic=False)

    share: float = param(
        5.0,
        "Share of the records to code, those farthest from the centre.",
        ge=0.01,
        le=100,
        unit="%",
        symbol="p",
        log=True,
        tune=(0.1, 90),
        drive=True,
        hint="1 to 10 is usual",
    )
    replace: Literal["ellipsoid", "mean"] = param(
        "ellipsoid",
        "What coded records show.",
        choices={
            "ellipsoid": "The point of the ellipsoid in their direction from the centre.",
            "mean": "The mean of all coded records.",
        },
        label="Coded records show",
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Judge all records, then code the outermost."""
        values = table.matrix(table.chosen)
        run.tell(self.title, 0, 2)
        middle, squares, sizes = robust_distances(values, self.name)
        run.tell(self.title, 1, 2)
        coded = self._draw_in(values, middle, squares, sizes)
        changed = ~((coded == values) | np.isnan(values)).all(axis=0)
        names = [name for name, differs in zip(table.chosen, changed, strict=True) if differs]
        protected = with_matrix(table, names, coded[:, changed])
        run.tell(self.title, 2, 2)
        return Release.record_by_record(protected)

    def _draw_in(self, values: Floats, middle: Any, squares: Floats, sizes: Values) -> Floats:
        coded, judged = values.copy(), int(np.count_nonzero(sizes))
        wanted = min(ceil(self.share / 100 * judged - _FLOAT_TOLERANCE), judged)
        if not wanted:
            return coded
        scores = kernels.outlyingness.scores(squares, sizes)
        if self.replace == "mean":
            group = scores >= _greatest(scores, wanted)
            for position, column in enumerate(values.T):
                here = group & ~np.isnan(column)
                if here.any():
                    coded[here, position] = _mean(column[here], None)
            return coded
        limit = _greatest(scores, min(wanted + 1, judged))
        group = scores > limit
        reach = kernels.outlyingness.squares_at(limit, sizes[group])
        coded[group] = middle.centre + np.sqrt(reach / squares[group])[:, None] * (
            values[group] - middle.centre
        )
        return coded
