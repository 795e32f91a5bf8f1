"""Two distributions on a line: how far apart their distribution functions are, and the work between them."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Floats
from sfumato.kernels.compiling import by_python, njit
from sfumato.kernels.threads import CompileAllowance

_ALLOWANCE = CompileAllowance(2_000_000)  # points, by numpy


class LineMasses(NamedTuple):
    """Masses at points of a line.

    ``sums[i]`` is the mass of the first i points; with empty ``sums`` each point has the mass ``1 / n``.
    There may be mass that is at no point, so the masses need not sum to 1.
    """

    points: Floats  # ascending, finite
    sums: Floats  # [points + 1], or empty
    n: int  # at least 1


class DistributionGap(NamedTuple):
    """The difference D of two distribution functions: its extremes, and the area under its absolute value.

    The area is in halves of the unit of the points, so that no difference of two large points overflows.
    """

    highest: float
    lowest: float
    half_area: float


def gap(first: LineMasses, second: LineMasses) -> DistributionGap:
    r"""Compare the distribution functions of two sets of points in one pass.

    .. math:: D(t) = F(t) - G(t), \qquad F(t) = \sum_{i : x_i \le t} w_i

    Notes
    -----
    **Cost:** one pass over both.
    """
    with by_python(_ALLOWANCE.takes(len(first.points) + len(second.points) + 1000)):
        return DistributionGap(*_gap(first, second))


def _gap_by_numpy(first: LineMasses, second: LineMasses) -> tuple[float, float, float]:
    """The same as `_gap`: sums in the same order."""
    here = np.union1d(first.points, second.points)
    levels, of_second = (
        (each.sums if len(each.sums) else np.arange(len(each.points) + 1) / each.n)[
            np.searchsorted(each.points, here, side="right")
        ]
        for each in (first, second)
    )
    levels = levels - of_second
    areas = np.cumsum(np.abs(levels[:-1]) * np.diff(0.5 * here))
    area = float(areas[-1]) if len(areas) else 0.0
    return float(levels.max(initial=0.0)), float(levels.min(initial=0.0)), area


@njit(small=_gap_by_numpy, cache=True, nogil=True)
def _gap(first: LineMasses, second: LineMasses) -> tuple[float, float, float]:
    """Walk over both at once, from one distinct point to the next."""
    first_points, second_points = first.points, second.points
    n, m = len(first_points), len(second_points)
    highest, lowest, area, level, last = 0.0, 0.0, 0.0, 0.0, 0.0
    i, j = 0, 0
    while i < n or j < m:
        here = (
            first_points[i] if j == m or (i < n and first_points[i] <= second_points[j]) else second_points[j]
        )
        if level != 0.0:
            area += abs(level) * (0.5 * here - last)
        last = 0.5 * here
        while i < n and first_points[i] == here:
            i += 1
        while j < m and second_points[j] == here:
            j += 1
        level = first.sums[i] if len(first.sums) > 0 else i / first.n
        level -= second.sums[j] if len(second.sums) > 0 else j / second.n
        highest, lowest = max(highest, level), min(lowest, level)
    return highest, lowest, area


def half_area_of_part(first: LineMasses, second: LineMasses) -> float:
    r"""Find the least work on a line when the surplus of the greater mass may be left out anywhere.

    Where both have the same mass this is the area of `gap`. Else, with the surplus :math:`\delta` of the
    first (change the two where the second has more), it is

    .. math:: \min_R \int |D(t) - R(t)| \, dt, \qquad 0 \le R \le \delta \text{ rising},

    where :math:`R(t)` is the mass left out up to :math:`t`. A best :math:`R` never rises by more than
    :math:`F` does: between two of its levels it rises from above :math:`D` to below it, and :math:`D` rises
    by no more than :math:`F`. In halves of the unit of the points.

    Notes
    -----
    **Cost:** the work of an isotonic median regression, :math:`O(n \log n)`.
    """
    if first.n == second.n and len(first.sums) == len(second.sums) == 0:
        more, fewer = (first, second) if len(first.points) >= len(second.points) else (second, first)
        return _part_of_counts(more.points, fewer.points) / first.n
    levels, halves = _steps(first, second)
    if len(levels) == 0:
        return 0.0
    levels = levels if levels[-1] >= 0 else -levels
    allowed = np.clip(levels, 0.0, levels[-1])
    outside = float((np.abs(levels - allowed) * halves).sum())
    return outside + _cost_of_rising(allowed[:-1], halves[:-1])


@njit(cache=True, nogil=True)
def _steps(first: LineMasses, second: LineMasses) -> tuple[Floats, Floats]:
    """The level of D from each distinct point on, and half the way from there to the next (the last: 0)."""
    first_points, second_points = first.points, second.points
    n, m = len(first_points), len(second_points)
    levels, halves = np.empty(n + m), np.zeros(n + m)
    i, j, count, last = 0, 0, 0, 0.0
    while i < n or j < m:
        here = (
            first_points[i] if j == m or (i < n and first_points[i] <= second_points[j]) else second_points[j]
        )
        if count > 0:
            halves[count - 1] = 0.5 * here - last
        last = 0.5 * here
        while i < n and first_points[i] == here:
            i += 1
        while j < m and second_points[j] == here:
            j += 1
        level = first.sums[i] if len(first.sums) > 0 else i / first.n
        levels[count] = level - (second.sums[j] if len(second.sums) > 0 else j / second.n)
        count += 1
    return levels[:count], halves[:count]


@njit(cache=True, nogil=True)
def _cost_of_rising(levels: Floats, weights: Floats) -> float:
    """The least weighted sum of absolute changes that makes levels rise.

    The least cost of the levels so far, as a function of a bound on the last of them, is convex and falls in
    straight pieces; the heap holds where its slope changes, and by how much, the highest first. A new level
    adds its own two slopes, and where the function would rise again it is cut.
    """
    cost = 0.0
    bends = [(0.0, 0.0)]
    bends.pop()
    for k in range(len(levels)):
        level, weight = levels[k], weights[k]
        if weight == 0.0:
            continue
        heapq.heappush(bends, (-level, 2.0 * weight))
        while weight > 0.0:
            highest, slope = bends[0]
            taken = min(slope, weight)
            cost += taken * (-highest - level)
            weight -= taken
            if slope > taken:
                bends[0] = highest, slope - taken  # it stays the highest
            else:
                heapq.heappop(bends)
    return cost


@njit(cache=True, nogil=True)
def _part_of_counts(more: Floats, fewer: Floats) -> float:
    """The whole of it for points of mass 1: levels are counts, and an array does for the heap.

    From one point to the next a level changes by little, so the highest bend is never far.
    """
    n, m = len(more), len(fewer)
    surplus = n - m
    slopes = np.zeros(surplus + 1)
    i, j, level, highest, cost, last = 0, 0, 0, 0, 0.0, 0.0
    while i < n or j < m:
        here = more[i] if j == m or (i < n and more[i] <= fewer[j]) else fewer[j]
        weight = 0.5 * here - last if i + j > 0 else 0.0
        last = 0.5 * here
        allowed = min(max(level, 0), surplus)
        cost += abs(level - allowed) * weight
        slopes[allowed] += 2.0 * weight
        highest = max(highest, allowed)
        while weight > 0.0:
            while slopes[highest] == 0.0:
                highest -= 1
            taken = min(slopes[highest], weight)
            cost += taken * (highest - allowed)
            weight -= taken
            slopes[highest] -= taken
        while i < n and more[i] == here:
            i += 1
        while j < m and fewer[j] == here:
            j += 1
        level = i - j
    return cost
