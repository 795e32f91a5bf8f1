"""Coverage: which generalised records may be whose, when released values are intervals or groups of values.

Each released record is a box: in every column from a lowest to a highest value. A set of values that is no
range becomes several boxes that do not overlap. A box covers a record if the record lies in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.cover import Runs, cover_of
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats, Ints

#: Boxes that arbitrary sets of values may be cut into, for each released record on average.
MANY = 64


@dataclass(frozen=True)
class Covering:
    """The intruder's records as points, and the released ones as boxes around some of them.

    Box ``i`` is of the released record ``records[i]`` and covers point ``j`` if
    ``lows[i] <= points[j] <= highs[i]`` in every column. A missing value of the intruder's is NaN: only a
    box that leaves the column open covers it (−∞ to ∞).
    """

    points: Floats  # [n, columns]
    lows: Floats  # [boxes, columns]
    highs: Floats
    records: Ints  # [boxes] which released record each is of
    losses: Floats  # [released records] information loss: the mean share of the domain that is spanned

    def links(
        self,
        persons: Ints,
        owners: Ints,
        *,
        cap: int | None = 1,
        tick: Callable[[int, int], None] | None = None,
    ) -> Any:
        """Rivals of each record among the released ones that cover it, the loss taken for the distance.

        Of ``kernels.linking.Rivals``: who covers with less loss is nearer, who does with as much is tied.
        """
        # lo ≤ x ≤ hi is a window on the corners of the boxes; open ends become numbers beyond all others.
        finite = np.concatenate([each[np.isfinite(each)] for each in (self.points, self.lows, self.highs)])
        beyond = 1.0 + 2.0 * np.abs(finite).max(initial=0.0)
        corners = np.clip(np.hstack((self.lows, self.highs)), -beyond, beyond)
        holes, endless = np.isnan(self.points), np.full(self.points.shape, np.inf)
        window = kernels.linking.Window(
            corners,
            np.hstack((-endless, np.where(holes, beyond, self.points))),
            np.hstack((np.where(holes, -beyond, self.points), endless)),
            decides=True,
        )
        losses = self.losses[self.records][:, None]
        return kernels.linking.rivals(
            np.zeros((len(self.points), 1)), losses, persons, owners[self.records], metric="manhattan",
            window=window, cap=cap, tick=tick,
        )  # fmt: skip


class TooManyBoxes(DataError):  # noqa: N818  — callers that can do without boxes catch it
    """Sets of values that are no ranges would make too many boxes."""


@dataclass(frozen=True)
class Coarse:
    """One column: values of the intruder's, and the runs of values that each released one stands for."""

    values: Floats  # [n] NaN: missing
    runs: Runs  # of the released cells; open where they say nothing
    widths: Floats  # [m] share of the domain


def columns_of(evidence: Evidence, names: tuple[str, ...]) -> list[Coarse]:
    """What the intruder's and the released records say in each column; what is missing may be anything."""
    assert evidence.protected is not None  # measures see to it
    read = (cover_of(evidence.known_table, evidence.protected, name, nested=True) for name in names)
    return [
        Coarse(values, cover.boxes(), np.where(cover.missing, 1.0, cover.spread())) for values, cover in read
    ]


def covering_of(evidence: Evidence, names: tuple[str, ...], rows: Ints) -> Covering:
    """Put the intruder's records ``rows`` and the boxes of the released ones into one space."""
    assert evidence.protected is not None  # measures see to it
    released = evidence.protected
    records = np.arange(len(released), dtype=np.int64)
    points, sides = np.empty((len(rows), len(names))), np.empty((2, len(released), 0))
    losses = np.zeros(len(released))
    for i, (name, column) in enumerate(zip(names, columns_of(evidence, names), strict=True)):
        points[:, i] = column.values[rows]
        losses += column.widths / len(names)
        # Each box so far is repeated for each run of the column's value.
        if column.runs.counts[records].sum() > MANY * max(len(released), 1):
            raise TooManyBoxes(
                f"`{name}` must not make the released records fall apart into more than {MANY} boxes each, "
                "got: sets of values that are no ranges",
                hint="leave the column out of the scenario, or generalise it along a hierarchy",
            )
        chosen, runs = column.runs.laid_out(records)
        sides = np.concatenate((sides[:, chosen], column.runs.ends[:, runs, None]), axis=2)
        records = records[chosen]
    return Covering(points, sides[0], sides[1], records, losses)
