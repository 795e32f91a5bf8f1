"""Coverage: which generalised records may be whose, when released values are intervals or groups of values.

Each released record is a box: in every column from a lowest to a highest value. A set of values that is no
range becomes several boxes that do not overlap. A box covers a record if the record lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.data.generalised.cover import cover_of
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints

#: Boxes that arbitrary sets of values may be cut into, for each released record on average.
MAX_BOXES_PER_RECORD = 64


@dataclass(frozen=True)
class CoverageProblem:
    """The intruder's records as points, and the released ones as boxes around some of them.

    Box ``i`` is of the released record ``records[i]`` and covers point ``j`` if
    ``lows[i] <= points[j] <= highs[i]`` in every column. A missing value of the intruder's is NaN: only a
    box that leaves the column open covers it (−∞ to ∞).
    """

    points: Floats  # [n, columns]
    lows: Floats  # [boxes, columns]
    highs: Floats
    records: Ints  # [boxes] which released record each is of


class TooManyBoxes(DataError):  # noqa: N818  — callers that can do without boxes catch it
    """Sets of values that are no ranges would make too many boxes."""


def covering_of(evidence: Evidence, names: tuple[str, ...], rows: Ints) -> CoverageProblem:
    """Put the intruder's records ``rows`` and the boxes of the released ones into one space."""
    assert evidence.protected is not None  # measures see to it
    released = evidence.protected
    records = np.arange(len(released), dtype=np.int64)
    points, sides = np.empty((len(rows), len(names))), np.empty((2, len(released), 0))
    for i, name in enumerate(names):
        values, cover = cover_of(evidence.known_table, released, name, nested=True)
        points[:, i], of_cells = values[rows], cover.boxes()
        # Each box so far is repeated for each run of the column's value.
        if of_cells.counts[records].sum() > MAX_BOXES_PER_RECORD * max(len(released), 1):
            raise TooManyBoxes(
                f"the sets of values in `{name}` are not ranges, and split a released record into more than "
                f"{MAX_BOXES_PER_RECORD} boxes",
                hint="leave the column out of the scenario, or generalise it along a hierarchy",
            )
        chosen, runs = of_cells.laid_out(records)
        sides = np.concatenate((sides[:, chosen], of_cells.ends[:, runs, None]), axis=2)
        records = records[chosen]
    return CoverageProblem(points, sides[0], sides[1], records)
