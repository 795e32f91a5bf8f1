"""Information lost record by record: how far each released value lies from its own original."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.kernels.arrays import Floats
from sfumato.utility._readings import GeneralisedReading, Rows, by_original, n_left_out, pairs_of, spans_of


class MappedLoss(Measure):
    """A mean over columns of what the cells of each have lost against their own originals."""

    aspect = "utility"
    better = "low"
    bounds = (0.0, np.inf)
    kinds = COMPARABLE
    cost = "n"
    needs = Needs(mapping=True, exact_original=True)

    generalised: GeneralisedReading = param(
        "midpoint",
        "Which value a range or set counts as.",
        choices={
            "midpoint": "Its middle.",
            "worst": "Its member farthest from the original value.",
            "expected": "Any of its members, each equally likely.",
        },
    )

    @abstractmethod
    def losses(self, changes: Changes) -> Floats:
        """What each cell of a column has lost, NaN where the original has no value."""

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare each released value with its own original."""
        names, rows = self.columns(evidence), pairs_of(evidence)
        released, sources = rows
        weights = None if evidence.original.weights is None else evidence.original.weights[sources]
        by_column: dict[str, float] = {}
        sums: Floats = np.zeros(1)
        counts: Floats = np.zeros(1)
        n_coarse = n_silent = n_constant = 0
        for name in run.track(self.title, names, len(names)):
            changes = changes_of(evidence, name, rows, self.generalised)
            if changes is None:
                continue
            losses = self.losses(changes)
            known = ~np.isnan(losses)
            by_column[name] = _mean(losses, None if weights is None else weights * known)
            sums, counts = sums + np.where(known, losses, 0.0), counts + known
            n_coarse, n_silent = n_coarse + changes.n_coarse, n_silent + changes.n_silent
            n_constant += changes.variance == 0
        if not by_column:
            return Score.not_estimable("no column of the original has values")
        per_record = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=by_original(per_record, sources, len(evidence.original)),
            details={
                "columns": len(by_column),
                "columns_without_variation": n_constant,
                "records": len(per_record),
                "records_left_out": n_left_out(released),
                "generalised_cells": n_coarse,
                "suppressed_cells": n_silent,
                "weighted": "no" if weights is None else "yes",
            },
        )


def _mean(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(np.nanmean(values))
    return float(np.nansum(values * weights) / weights.sum())


class Il1s(MappedLoss):
    r"""Mean change of a value, as a share of its column's spread (IL1s).

    .. math::

        \mathrm{IL1s} = \frac{1}{m\,n} \sum_{j=1}^{m} \sum_{i=1}^{n} \frac{|x_{ij} - y_{ij}|}{\sqrt 2\, S_j}

    where :math:`S_j` is the standard deviation of column :math:`j` in the original. Divided by the spread
    and not by the value, as IL1 is, a value near 0 does no harm. Ordinal values count by position. Nominal
    ones are corners of a simplex: two that differ are :math:`\sqrt 2` apart, and :math:`S^2 = \frac{n}{n-1}
    (1 - \sum_c p_c^2)`, so that a column of two values has the loss it has as 0 and 1.

    See Also
    --------
    il1 : the change as a share of the value itself.
    sse-ratio : large changes weigh more.
    generalisation-loss : by record, at the worst value of a range.

    Notes
    -----
    **How to read it.** 0 means that no exact value changed; about 0.56 means that
    values of a normal column were replaced by the mean, and 0.80 by those of somebody else. It is a mean:
    tables of different size compare. ``by_column`` shows where, ``by_record`` whose values changed most. A
    range with the truth in its middle counts 0 unless it is read at its ``worst``, and so does a suppressed
    value that is the mean, as in a column that does not vary: ``details`` counts the cells of both sorts.

    **Doubt.** Exact. A column that does not vary in the original has no spread; if it was changed, the
    largest of its changes is taken instead. Where the original has weights, means and deviations are
    weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [-1.0, 1.0, -1.0, 1.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [-1.0, 1.0, -1.0, 3.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> round(Il1s().score(evidence, Run(seed=1)).value, 4)  # 2 / 4 of √2 · √(4/3)
    0.3062
    """

    name = "il1s"
    vetted = "brute-forced: property/test_losses.py::test_ranges_and_sets_of_numbers_against_enumeration"
    synonyms = ("dUtility", "IL_variables", "IL1")
    family = "cells"
    tells = Tells(places={"default": 0})
    title = "Mean change in spreads (IL1s)"
    references = ("yancey2002", "mateosanz2005")

    def losses(self, changes: Changes) -> Floats:
        """Each distance, in deviations."""
        return changes.distances / (float(np.sqrt(2.0)) * changes.scale)


class Il1(MappedLoss):
    r"""Mean change of a value, as a share of the value itself (IL1).

    .. math::

        \mathrm{IL1} = \frac{1}{m\,n} \sum_{j=1}^{m} \sum_{i=1}^{n} \frac{|x_{ij} - y_{ij}|}{|x_{ij}|}

    A zero that became something else has lost all it had, and counts as 1, whatever it became. It is
    neither left out nor infinite.

    See Also
    --------
    il1s : steadier, and for more kinds; to be preferred where values lie near 0.

    Notes
    -----
    **How to read it.** 0.1 means that values changed by a tenth on average; 0 that no exact
    value changed. A few values near 0 can outweigh all others. It is a mean: tables of different
    size compare. A range with the truth in its middle counts 0 unless it is read at its ``worst``, and so
    does a suppressed value that is the mean: ``details`` counts the cells of both sorts.

    **Doubt.** Exact. Where the original has weights, means are
    weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [10.0, -4.0, 0.0, 5.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [11.0, -2.0, 7.0, 5.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> Il1().score(evidence, Run(seed=1)).value  # a tenth, a half, 1 and 0
    0.4
    """

    name = "il1"
    family = "cells"
    title = "Mean relative change (IL1)"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("domingoferrer2001", "mateosanz2005")

    def losses(self, changes: Changes) -> Floats:
        """Each distance, as a share of the original value."""
        sizes = np.abs(changes.originals)
        zero = sizes == 0
        with np.errstate(over="ignore"):  # next to 0 the share of a change may be more than a number can say
            shares = changes.distances / np.where(zero, 1.0, sizes)
        return np.where(zero, np.sign(changes.distances), shares)


class SseRatio(MappedLoss):
    r"""Sum of squared changes as a share of the sum of squares around the mean (SSE/SST).

    .. math::

        \frac{SSE}{SST} = \frac{1}{m} \sum_{j=1}^{m}
            \frac{\sum_i (y_{ij} - x_{ij})^2}{\sum_i (x_{ij} - \bar x_j)^2}

    Each column counts alike, whatever its unit: it is the ratio that one gets from standardised columns, as
    the literature on microaggregation reports it. Ordinal values count by position. Nominal ones are
    corners of a simplex, a set of them the centre of its corners, and the sum of squares around the mean is
    :math:`n (1 - \sum_c p_c^2)`.

    See Also
    --------
    il1s : absolute changes, on which outliers weigh less.

    Notes
    -----
    **How to read it.** 0 means that no exact value changed; 1 that the changes are as
    large as the data's own spread, as if every value were replaced by the mean or suppressed; values of
    somebody else would give 2, and noise can go beyond. ``by_column`` shows where. A range with the truth in
    its middle counts 0 unless it is read at its ``worst``, and so does a suppressed value that is the mean:
    ``details`` counts the cells of both sorts.

    **Doubt.** Exact. A column that does not vary in the original has no spread; if it was changed, the
    largest of its changes is taken instead. Where the original has weights, sums and means are weighted.

    **Missing.** A value missing in the original does not count. One that is missing only in the release, a
    wildcard, or a record that was left out, is read as the whole column: at its mean (``midpoint``), at the
    farthest end of its range (``worst``), or as any of its values (``expected``).

    **Cost.** A few passes.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.CONTINUOUS),))
    >>> original = Table(pl.DataFrame({"x": [1.0, 3.0, 7.0, 9.0]}), schema)
    >>> released = Table(pl.DataFrame({"x": [2.0, 2.0, 8.0, 8.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> SseRatio().score(evidence, Run(seed=1)).value  # 4 of 40
    0.1
    """

    name = "sse-ratio"
    vetted = "brute-forced: property/test_losses.py::test_ranges_and_sets_of_numbers_against_enumeration"
    synonyms = ("SSE", "SSE information loss", "sum of squared errors")
    family = "cells"
    former = ("squares-lost",)
    title = "Sum of squares lost (SSE/SST)"
    references = ("domingoferrer2002", "domingoferrer2005")

    def losses(self, changes: Changes) -> Floats:
        """Each square, as a share of the variance."""
        return changes.squares / changes.total


# How far the cells of a column lie from their originals --------------------------------------------------


#: Beyond these powers of two squares of values are no numbers any more: the column is taken in another unit.
_MAX_EXPONENT = 400


@dataclass(frozen=True, eq=False)
class Changes:
    """One column: how far each released cell lies from its original.

    All are NaN where the original has no value. A cell that says nothing is read as the whole column: at its
    mean (midpoint), at the farthest end of its domain (worst), or as any of its values (expected).
    """

    distances: Floats  # [pairs]
    squares: Floats  # [pairs] of the distances; as expected, the mean of the squares
    originals: Floats  # [pairs] in the unit of the distances
    variance: float  # of the original, over n; of a nominal one the chance that two records differ
    n: int  # how many original records have a value
    n_coarse: int
    n_silent: int

    @property
    def scale(self) -> float:
        """What a distance is divided by: the original's deviation, over n − 1.

        A column that does not vary in the original has no unit but the size of its changes.
        """
        if self.variance > 0:
            return float(np.sqrt(self.variance * self.n / (self.n - 1)))
        return self.largest

    @property
    def total(self) -> float:
        """What a square is divided by: the original's variance, or the largest square where there is none."""
        return self.variance if self.variance > 0 else self.largest**2

    @property
    def largest(self) -> float:
        """The largest change; 1 where there is none."""
        return float(np.nanmax(self.distances, initial=0.0)) or 1.0


def changes_of(
    evidence: Evidence, name: str, rows: tuple[Rows, Rows], reading: GeneralisedReading
) -> Changes | None:
    """Compare a column of both tables; None where the original has no value."""
    assert evidence.protected is not None
    released, sources = rows
    numbers, spans = spans_of(evidence.original, evidence.protected, name)
    present = ~np.isnan(numbers)
    if not present.any():
        return None
    spans = spans.take(released)
    own_weights = evidence.original.weights
    weights = np.ones(int(present.sum())) if own_weights is None else own_weights[present]
    weights = weights / weights.sum()
    if evidence.original.schema[name].kind is Kind.NOMINAL:
        distances, squares, variance = _of_codes(numbers, sources, spans, weights, reading)
        own = numbers[sources]
    else:
        numbers, spans = _in_a_safe_unit(numbers, spans)
        own = numbers[sources]
        whole = _OriginalColumn.of(numbers[present], weights, spans.domain)
        distances, squares = _of_numbers(own, spans, whole, reading)
        variance = whole.variance
    known = ~np.isnan(own)
    silent = spans.uninformative & known
    coarse = 0 if spans.exact else int((known & (spans.lows < spans.highs)).sum())
    return Changes(distances, squares, own, variance, int(present.sum()), coarse, int(silent.sum()))


def _in_a_safe_unit(numbers: Floats, spans: Cover) -> tuple[Floats, Cover]:
    """Take a power of two off where squares would not be numbers."""
    sizes = [float(np.nanmax(np.abs(each), initial=0.0)) for each in (numbers, spans.lows, spans.highs)]
    exponent = int(np.frexp(max(sizes))[1])
    if abs(exponent) <= _MAX_EXPONENT:
        return numbers, spans
    lows = np.ldexp(spans.lows, -exponent)
    sets = spans.sets
    if sets is not None:
        sets = replace(sets, places=np.ldexp(sets.places, -exponent))
    low, high = (float(np.ldexp(end, -exponent)) for end in spans.domain)
    highs = lows if spans.exact else np.ldexp(spans.highs, -exponent)
    step = float(np.ldexp(spans.step, -exponent))
    return np.ldexp(numbers, -exponent), Cover(lows, highs, (low, high), step, sets, spans.codes)


# Numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _OriginalColumn:
    """The original column as a whole, for which a cell stands that says nothing."""

    values: Floats
    weights: Floats
    mean: float
    variance: float
    domain: tuple[float, float]

    @classmethod
    def of(cls, values: Floats, weights: Floats, domain: tuple[float, float]) -> _OriginalColumn:
        # Around a first value, so that a constant has a variance of exactly 0 and offsets cost no digits.
        centred = values - values[0]
        mean = float((centred * weights).sum())
        variance = float(((centred - mean) ** 2 * weights).sum()) if np.ptp(centred) > 0 else 0.0
        mean = float(values[0]) if variance == 0.0 else float(values[0] + mean)
        return cls(values, weights, mean, variance, domain)

    def distances(self, own: Floats, reading: GeneralisedReading) -> tuple[Floats, Floats]:
        """How far the column is from each of some values, and the square."""
        if reading == "worst":
            farthest = np.maximum(np.abs(own - self.domain[0]), np.abs(own - self.domain[1]))
            return farthest, farthest**2
        squares = (own - self.mean) ** 2
        if reading == "midpoint":
            return np.abs(own - self.mean), squares
        order = np.argsort(self.values)
        values = self.values[order] - self.mean
        shares = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        sums = np.concatenate([[0.0], np.cumsum(self.weights[order] * values)])
        centred = own - self.mean
        below = np.searchsorted(values, centred, side="right")
        distances = centred * (2 * shares[below] - shares[-1]) + sums[-1] - 2 * sums[below]
        return np.maximum(distances, 0.0), squares + self.variance


def _of_numbers(
    own: Floats, spans: Cover, whole: _OriginalColumn, reading: GeneralisedReading
) -> tuple[Floats, Floats]:
    if spans.exact:
        distances = np.abs(own - spans.lows)
        squares = distances**2
    elif reading == "worst":
        distances = np.maximum(np.abs(own - spans.lows), np.abs(own - spans.highs))
        squares = distances**2
    elif reading == "midpoint":
        distances = np.abs(own - spans.middles)
        squares = distances**2
    else:
        expected = _expected_distances if spans.sets is None else _expected_of_sets
        distances, squares = expected(own, spans)
    said_nothing = spans.uninformative & ~np.isnan(own)
    if said_nothing.any():
        distances[said_nothing], squares[said_nothing] = whole.distances(own[said_nothing], reading)
    return distances, squares


def _expected_distances(own: Floats, spans: Cover) -> tuple[Floats, Floats]:
    """The mean distance, and square, from each value to those of its range, all alike."""
    widths, step = spans.highs - spans.lows, spans.step
    below, above = own - spans.lows, spans.highs - own
    inside = (below >= 0) & (above >= 0) & (widths > 0)
    centre = np.abs(own - spans.middles)
    spread = (below * (below + step) + above * (above + step)) / (2 * np.where(inside, widths + step, 1.0))
    return np.where(inside, spread, centre), centre**2 + widths * (widths + 2 * step) / 12


def _expected_of_sets(own: Floats, spans: Cover) -> tuple[Floats, Floats]:
    """The mean distance, and square, from each value to the members of its label, all alike."""
    assert spans.sets is not None
    assert spans.codes is not None
    distances, squares = np.full(len(own), np.nan), np.full(len(own), np.nan)
    there = ~np.isnan(own) & ~spans.uninformative
    if not there.any():
        return distances, squares
    codes, sets = spans.codes[there], spans.sets
    shift = float(sets.values[0])
    values, centred = sets.values - shift, own[there] - shift
    sums, powers = (np.concatenate([[0.0], np.cumsum(values**power)]) for power in (1, 2))
    starts, stops = sets.starts[codes], sets.starts[codes + 1]
    place, sizes = sets.up_to(codes, own[there]), stops - starts
    below = sums[place] - sums[starts]
    total = sums[stops] - sums[starts]
    found = (centred * (2 * (place - starts) - sizes) + total - 2 * below) / sizes
    means = total / sizes
    variances = np.maximum((powers[stops] - powers[starts]) / sizes - means**2, 0.0)
    one = sizes == 1  # sums of many values leave rounding behind: one value has none
    exact = np.abs(own[there] - spans.lows[there])
    distances[there] = np.where(one, exact, np.maximum(found, 0.0))
    squares[there] = np.where(one, exact**2, (centred - means) ** 2 + variances)
    return distances, squares


# Codes -------------------------------------------------------------------------------------------------


def _of_codes(
    numbers: Floats, sources: Rows, spans: Cover, weights: Floats, reading: GeneralisedReading
) -> tuple[Floats, Floats, float]:
    r"""Compare values that only differ or do not: each is a corner, and a set of them the centre of some.

    Two corners are :math:`\sqrt 2` apart, and the variance around the centre of all is :math:`1 - \sum p^2`.
    """
    own = numbers[sources]
    codes = numbers[~np.isnan(numbers)].astype(np.int64)
    shares = np.bincount(codes, weights=weights)
    chance_alike = float((shares**2).sum()) if np.count_nonzero(shares) > 1 else 1.0
    known = ~np.isnan(own)
    holds, sizes = spans.holds(own), _sizes(spans)
    true_share, own_share = (
        holds / sizes,
        1.0 / sizes,
    )  # of the truth in the cell; what its centre has of itself
    silent = spans.uninformative & known
    true_share[silent] = shares[own[silent].astype(np.int64)]
    own_share[silent] = chance_alike
    if reading == "midpoint":
        squares = 1.0 - 2.0 * true_share + own_share
        distances = np.sqrt(np.maximum(squares, 0.0))
    else:
        missed = np.ceil(1.0 - true_share) if reading == "worst" else 1.0 - true_share
        squares, distances = 2.0 * missed, float(np.sqrt(2.0)) * missed
    squares, distances = (np.where(known, np.maximum(each, 0.0), np.nan) for each in (squares, distances))
    return distances, squares, 1.0 - chance_alike


def _sizes(spans: Cover) -> Floats:
    """How many values each cell may stand for; 1 where it says nothing."""
    if spans.sets is not None and spans.codes is not None:
        sizes = np.append(spans.sets.sizes, 1)[spans.codes].astype(np.float64)
    else:
        sizes = np.floor(spans.highs - spans.lows) + 1.0
    return np.where(spans.uninformative, 1.0, sizes)
