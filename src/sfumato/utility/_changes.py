"""Changes: how far the released cells of a column lie from their originals, in the column's own spread."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Floats
from sfumato.utility._readings import Reading, Rows, spans_of

#: Beyond these powers of two squares of values are no numbers any more: the column is taken in another unit.
_FAR = 400


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


def changes_of(evidence: Evidence, name: str, rows: tuple[Rows, Rows], reading: Reading) -> Changes | None:
    """Compare a column of both tables; None where the original has no value."""
    assert evidence.protected is not None
    released, sources = rows
    numbers, spans = spans_of(evidence.original, evidence.protected, name)
    present = ~np.isnan(numbers)
    if not present.any():
        return None
    spans = spans.take(released)
    weights = (
        np.ones(int(present.sum()))
        if evidence.original.weights is None
        else evidence.original.weights[present]
    )
    weights = weights / weights.sum()
    if evidence.original.schema[name].kind is Kind.NOMINAL:
        distances, squares, variance = _of_codes(numbers, sources, spans, weights, reading)
        own = numbers[sources]
    else:
        numbers, spans = _in_a_safe_unit(numbers, spans)
        own = numbers[sources]
        whole = _Column.of(numbers[present], weights, spans.domain)
        distances, squares = _of_numbers(own, spans, whole, reading)
        variance = whole.variance
    known = ~np.isnan(own)
    silent = spans.silent & known
    coarse = 0 if spans.exact else int((known & (spans.lows < spans.highs)).sum())
    return Changes(distances, squares, own, variance, int(present.sum()), coarse, int(silent.sum()))


def _in_a_safe_unit(numbers: Floats, spans: Cover) -> tuple[Floats, Cover]:
    """Take a power of two off where squares would not be numbers."""
    sizes = [float(np.nanmax(np.abs(each), initial=0.0)) for each in (numbers, spans.lows, spans.highs)]
    exponent = int(np.frexp(max(sizes))[1])
    if abs(exponent) <= _FAR:
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
class _Column:
    """The original column as a whole, for which a cell stands that says nothing."""

    values: Floats
    weights: Floats
    mean: float
    variance: float
    domain: tuple[float, float]

    @classmethod
    def of(cls, values: Floats, weights: Floats, domain: tuple[float, float]) -> _Column:
        # Around a first value, so that a constant has a variance of exactly 0 and offsets cost no digits.
        centred = values - values[0]
        mean = float((centred * weights).sum())
        variance = float(((centred - mean) ** 2 * weights).sum()) if np.ptp(centred) > 0 else 0.0
        mean = float(values[0]) if variance == 0.0 else float(values[0] + mean)
        return cls(values, weights, mean, variance, domain)

    def distances(self, own: Floats, reading: Reading) -> tuple[Floats, Floats]:
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


def _of_numbers(own: Floats, spans: Cover, whole: _Column, reading: Reading) -> tuple[Floats, Floats]:
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
        distances, squares = _expected(own, spans) if spans.sets is None else _expected_of_sets(own, spans)
    said_nothing = spans.silent & ~np.isnan(own)
    if said_nothing.any():
        distances[said_nothing], squares[said_nothing] = whole.distances(own[said_nothing], reading)
    return distances, squares


def _expected(own: Floats, spans: Cover) -> tuple[Floats, Floats]:
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
    there = ~np.isnan(own) & ~spans.silent
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
    numbers: Floats, sources: Rows, spans: Cover, weights: Floats, reading: Reading
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
    silent = spans.silent & known
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
    return np.where(spans.silent, 1.0, sizes)
