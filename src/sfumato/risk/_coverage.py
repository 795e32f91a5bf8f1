"""Coverage: which generalised records may be whose, when released values are intervals or groups of values.

Each released record is a box: in every column from a lowest to a highest value. A set of values that is no
range becomes several boxes that do not overlap. A box covers a record if the record lies in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.data.codings import codes_of_both, microseconds, numbers_of_both
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.intervals import ends, is_interval, width
from sfumato.data.generalised.nodes import WILDCARD, Nodes, match_leaves
from sfumato.data.schema import Kind
from sfumato.data.table import Floats, Ints, Table
from sfumato.errors import DataError

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


def columns_of(evidence: Evidence, names: tuple[str, ...]) -> list[Coarse]:
    """What the intruder's and the released records say in each column."""
    assert evidence.protected is not None  # measures see to it
    return [_column_of(evidence.known_table, evidence.protected, name) for name in names]


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
        repeats = column.counts[records]
        if repeats.sum() > MANY * max(len(released), 1):
            raise TooManyBoxes(
                f"`{name}` must not make the released records fall apart into more than {MANY} boxes each, "
                "got: sets of values that are no ranges",
                hint="leave the column out of the scenario, or generalise it along a hierarchy",
            )
        chosen = np.repeat(np.arange(len(records)), repeats)
        runs = np.repeat(column.starts[records] - np.cumsum(repeats) + repeats, repeats)
        runs += np.arange(len(chosen))
        sides = np.concatenate((sides[:, chosen], column.runs[:, runs, None]), axis=2)
        records = records[chosen]
    return Covering(points, sides[0], sides[1], records, losses)


@dataclass(frozen=True)
class Coarse:
    """One column: values of the intruder's, and the runs of values that each released one stands for."""

    values: Floats  # [n] NaN: missing
    runs: Floats  # [2, runs] from and to
    starts: Ints  # [m] its first run
    counts: Ints  # [m] how many
    widths: Floats  # [m] share of the domain


def _single(values: Floats, lows: Floats, highs: Floats, widths: Floats) -> Coarse:
    """One run for each released value; a missing one may be any."""
    gone = np.isnan(lows) | np.isnan(highs)
    runs = np.vstack((np.where(gone, -np.inf, lows), np.where(gone, np.inf, highs)))
    one = np.ones(len(lows), dtype=np.int64)
    return Coarse(values, runs, np.arange(len(lows)), one, np.where(gone, 1.0, widths))


def _column_of(known: Table, released: Table, name: str) -> Coarse:
    if name in released.nodes:
        return _nodes(known, released, name, released.nodes[name])
    if is_interval(released.frame.schema[name]):
        return _intervals(known, released, name)
    if known.schema[name].kind is Kind.NOMINAL:
        values, others = (
            np.where(codes < 0, np.nan, codes) for codes in codes_of_both(known, released, name)
        )
    else:
        values, others = numbers_of_both(known, released, name)
    return _single(values, others, others, np.zeros(len(others)))


def _intervals(known: Table, released: Table, name: str) -> Coarse:
    """Intervals of numbers or dates."""
    column = released.frame[name]
    kind = known.schema[name].kind
    values = known.numbers(name) if kind in {Kind.CONTINUOUS, Kind.DATE} else _as_written(known, name)
    lo, hi = ends(column)
    if kind is Kind.DATE:
        mine, theirs = known.frame.schema[name], lo.dtype
        values = values * (microseconds(mine) / microseconds(theirs))
    sides = [end.to_physical().cast(pl.Float64) for end in (lo, hi)]
    gone = column.is_null().to_numpy()
    lows, highs = (
        np.where(gone, np.nan, side.fill_null(beyond).to_numpy())
        for side, beyond in zip(sides, (-np.inf, np.inf), strict=True)
    )
    there = values[~np.isnan(values)]
    low, high = (there.min(), there.max()) if len(there) else (0.0, 0.0)
    spans = np.clip(highs, low, high) - np.clip(lows, low, high)
    widths = np.where(np.isinf(lows) & np.isinf(highs), 1.0, spans / ((high - low) or 1.0))
    return _single(values, lows, highs, widths)


def _as_written(known: Table, name: str) -> Floats:
    """An ordinal or nominal column's own numbers: intervals are of values, not of positions."""
    series = known.frame[name]
    if not series.dtype.is_numeric():
        raise DataError(
            f"column `{name}` must hold numbers to lie in intervals, got: {series.dtype.base_type()}"
        )
    return np.where(known.missing(name), np.nan, series.cast(pl.Float64).fill_null(np.nan).to_numpy())


def _nodes(known: Table, released: Table, name: str, nodes: Nodes) -> Coarse:
    """Groups of values: the leaves are put into an order in which groups are ranges as far as can be."""
    codes = nodes.codes(released.frame[name]).astype(np.int64)
    groups = runs_of_labels(nodes, np.unique(codes[codes >= 0]))
    found = match_leaves(known.frame[name], nodes.leaves)
    found = np.where(known.missing(name), -1, found)
    values = np.where(found < 0, np.nan, np.append(groups.places, 0)[found].astype(np.float64))
    # The wildcard, and a missing value, which may be any, leave the column open: one run more, at the end.
    runs = np.hstack((groups.runs.astype(np.float64), [[-np.inf], [np.inf]]))
    wild = np.append((nodes.labels == WILDCARD).to_numpy(), [True])[codes]  # code −1 is the last: missing
    widths = width(released.frame[name], nodes=nodes)
    return Coarse(
        values,
        runs,
        np.where(wild, runs.shape[1] - 1, np.append(groups.starts, 0)[codes]),
        np.where(wild, 1, np.append(groups.counts, 0)[codes]).astype(np.int64),
        np.where(np.isnan(widths), 1.0, widths),
    )


@dataclass(frozen=True)
class Runs:
    """The leaves of a node table side by side, and the runs of leaves that each label stands for."""

    places: Ints  # [leaves] where each stands
    runs: Ints  # [2, runs] from and to, both included; those of one label next to each other
    starts: Ints  # [labels] its first run
    counts: Ints  # [labels] how many


def runs_of_labels(nodes: Nodes, used: Ints) -> Runs:
    """Put the leaves into an order in which the labels ``used`` are ranges, as far as can be."""
    order = _nested_order(nodes, used)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    # Runs of each label: where the next place is not the next number, a new one begins.
    labels = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    placed = places[nodes.members]
    sorted_ = np.lexsort((placed, labels))
    labels, placed = labels[sorted_], placed[sorted_]
    opens = np.ones(len(placed), dtype=np.bool_)
    opens[1:] = (labels[1:] != labels[:-1]) | (placed[1:] != placed[:-1] + 1)
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(placed)) - 1 if len(firsts) else firsts
    counts = np.bincount(labels[firsts], minlength=len(nodes.labels))
    return Runs(places, np.vstack((placed[firsts], placed[lasts])), np.cumsum(counts) - counts, counts)


def _nested_order(nodes: Nodes, used: Ints) -> Ints:
    """Sort the leaves by the groups they are in, large groups first: nested groups become ranges."""
    order = np.arange(len(nodes.leaves), dtype=np.int64)
    # From the smallest groups to the largest: each sort keeps what the former did among equals.
    for label in used[np.argsort(nodes.sizes[used], kind="stable")]:
        outside = np.ones(len(order), dtype=np.bool_)
        outside[nodes.members[nodes.starts[label] : nodes.starts[label + 1]]] = False
        order = order[np.argsort(outside[order], kind="stable")]
    return order
