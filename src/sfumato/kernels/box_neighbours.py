"""The nearest boxes of a few points: known records, and released ones, exact or generalised."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.compiling import njit
from sfumato.kernels.pace import Tick, share_out

BLOCK = 256  # boxes at a time: they stay in the nearest cache while many points pass


class Boxes(NamedTuple):
    """Released records, each a range in every column.

    Both ends are NaN where a value is missing and that is a value of its own; a cell that says nothing is
    open at both ends, and as far from every point as ``blind`` says for the column.
    """

    lows: Floats  # [m, d]
    highs: Floats  # [m, d]
    is_step: Flags  # [d] values are equal or not
    blind: Floats  # [d]
    extras: Floats  # [m] what is added to each box's distance, to decide between equals


def nearest(points: Floats, boxes: Boxes, *, k: int, tick: Tick | None = None) -> tuple[Ints, Floats]:
    """Return the ``k`` nearest boxes of each point by the sum of the distances in each column.

    Parameters
    ----------
    points : float64[n, d]
        NaN is missing: one unit from any value, none from another missing one.
    boxes : Boxes
        Of boxes that are equally near the first are taken.
    k : int
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.

    Returns
    -------
    int64[n, k]
        Places of the boxes, the nearest first; −1 where there are fewer.
    float64[n, k]
        Their distances, infinite where there is none.

    Notes
    -----
    Exact. **Cost:** a look at each pair; of most of them in one column or two.
    """
    points = np.ascontiguousarray(points, dtype=np.float64)
    places = np.full((len(points), k), -1, dtype=np.int64)
    distances = np.full((len(points), k), np.inf)
    held = Boxes(
        np.ascontiguousarray(boxes.lows), np.ascontiguousarray(boxes.highs), boxes.is_step, boxes.blind,
        boxes.extras,
    )  # fmt: skip

    def work(part: Ints) -> None:
        if len(part):
            places[part], distances[part] = _nearest(points[part], held, k)

    share_out(np.arange(len(points)), work, tick)
    return places, distances


@njit(cache=True, nogil=True)
def _nearest(points: Floats, boxes: Boxes, k: int) -> tuple[Ints, Floats]:
    n, (m, n_columns) = len(points), boxes.lows.shape
    places, distances = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)
    for start in range(0, m, BLOCK):
        stop = min(start + BLOCK, m)
        for i in range(n):
            limit = distances[i, k - 1]
            for j in range(start, stop):
                total = boxes.extras[j]
                for c in range(n_columns):
                    if total >= limit:
                        break
                    total += _gap(
                        points[i, c], boxes.lows[j, c], boxes.highs[j, c], boxes.is_step[c], boxes.blind[c]
                    )
                if total >= limit:
                    continue
                place = k - 1
                while place > 0 and distances[i, place - 1] > total:
                    distances[i, place], places[i, place] = distances[i, place - 1], places[i, place - 1]
                    place -= 1
                distances[i, place], places[i, place] = total, j
                limit = distances[i, k - 1]
    return places, distances


@njit(cache=True, nogil=True)
def _gap(value: float, low: float, high: float, is_step: bool, blind: float) -> float:  # noqa: FBT001
    """How far a value is from what a cell stands for."""
    if low == -np.inf and high == np.inf:
        return blind
    if value < low:
        return 1.0 if is_step else low - value
    if value > high:
        return 1.0 if is_step else value - high
    if low <= value:
        return 0.0
    return 0.0 if np.isnan(value) and np.isnan(low) else 1.0
