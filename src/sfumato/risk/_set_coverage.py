"""Coverage class by class: the distinct released records, whatever sets of values they show.

Boxes (see `risk.coverage`) find who covers whom fastest, but sets of values that are no ranges make many of
them. Here each class of released records is compared with the intruder's one by one; a column of sets is a
table of which code each label has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.data.evidence import Evidence
from sfumato.data.generalised.cover import Runs
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._coverage import Coarse, columns_of

Tick = Callable[[int, int], None]

#: Losses that differ by less than one part in so many are equal: sums of shares round.
_UNITS = 2.0**40


@dataclass(frozen=True)
class ClassCovering:
    """The intruder's records, and the classes of the released ones in the order of their loss."""

    points: Any  # kernels.set_cover.Points
    shown: Any  # kernels.set_cover.Shown
    classes: Ints  # [released records] the class of each

    @property
    def losses(self) -> Floats:
        """Information loss of each class: the mean share of the domain that is spanned."""
        losses: Floats = self.shown.losses / _UNITS
        return losses

    def links(self, persons: Ints, owners: Ints, *, tick: Tick | None = None) -> Any:
        """Rivals of each of the intruder's records, as `risk.coverage.Covering.links` has them."""
        belongings = kernels.set_cover.Own(*_own(self.classes, persons, owners))
        found, own, tied, nearer = kernels.set_cover.rivals(self.points, belongings, self.shown, tick)
        return kernels.linking.Rivals(np.where(found < 0, np.inf, found / _UNITS), own, tied, nearer)

    def distinct_points(self) -> tuple[Ints, Ints]:
        """Number the distinct ones of the intruder's records, and name one record of each."""
        numbers = np.nan_to_num(self.points.numbers, nan=np.inf) + 0.0
        groups, samples, _ = _numbered([*numbers.T, *self.points.codes.T], len(numbers))
        return groups, samples

    def pairs(self, rows: Ints, *, most: int, tick: Tick | None = None) -> tuple[Ints, Ints] | None:
        """Which of the records ``rows`` (by place) are covered by which classes; None if too many are."""
        some = kernels.set_cover.Points(self.points.numbers[rows], self.points.codes[rows])
        found: tuple[Ints, Ints] | None = kernels.set_cover.pairs(some, self.shown, most=most, tick=tick)
        return found


def class_covering_of(evidence: Evidence, names: tuple[str, ...], rows: Ints) -> ClassCovering:
    """Put the intruder's records ``rows`` beside the classes of the released ones."""
    assert evidence.protected is not None  # measures see to it
    n_released = len(evidence.protected)
    columns = columns_of(evidence, names)
    ranges = [column for column in columns if (column.runs.counts == 1).all()]
    sets = [column for column in columns if (column.runs.counts != 1).any()]
    widths = sum((column.widths for column in columns), start=np.zeros(n_released))
    losses = np.rint(widths / max(len(columns), 1) * _UNITS).astype(np.int64)
    members, labels, codes = _tables(sets, rows, n_released)
    lows, highs = (
        _side_by_side([column.runs.ends[side, column.runs.starts] for column in ranges], n_released)
        for side in (0, 1)
    )
    classes, samples, sizes = _numbered([losses, *lows.T, *highs.T, *labels.T], n_released)
    numbers = _side_by_side([column.values[rows] for column in ranges], len(rows))
    shown = lows[samples], highs[samples], labels[samples], members, losses[samples], sizes
    return ClassCovering(kernels.set_cover.Points(numbers, codes), kernels.set_cover.Shown(*shown), classes)


def _side_by_side(columns: list[Floats], n: int) -> Floats:
    matrix = np.empty((n, len(columns)))
    for place, column in enumerate(columns):
        matrix[:, place] = column
    return matrix


def _tables(columns: list[Coarse], rows: Ints, n_released: int) -> tuple[Any, Ints, Ints]:
    """Which codes the labels of all columns have; the label of each released record; codes of the intruder's.

    The last code is that of a missing value, which only a label that leaves the column open has.
    """
    codes = np.zeros((len(rows), len(columns)), dtype=np.int64)
    labels = np.zeros((n_released, len(columns)), dtype=np.int64)
    greatest = [
        side[np.isfinite(side)].max(initial=0) for side in (column.runs.ends[1] for column in columns)
    ]
    n_codes = 2 + int(max(greatest, default=0))
    made, n_labels = [np.zeros((0, n_codes), dtype=np.uint8)], 0
    for place, column in enumerate(columns):
        found, firsts, label = np.unique(column.runs.starts, return_index=True, return_inverse=True)
        labels[:, place] = label.reshape(-1) + n_labels
        values = column.values[rows]
        codes[:, place] = np.where(np.isnan(values), n_codes - 1, np.nan_to_num(values)).astype(np.int64)
        made.append(_members(column.runs, firsts, n_codes))
        n_labels += len(found)
    return np.concatenate(made), labels, codes


def _members(runs: Runs, examples: Ints, n_codes: int) -> Any:
    """Mark the codes of each label, from the runs of codes that a record which shows it stands for."""
    label, place = runs.laid_out(examples)
    lows, highs = runs.ends[:, place]
    changes = np.zeros((len(examples), n_codes + 1), dtype=np.int32)
    open_ = np.isinf(lows) & np.isinf(highs)
    np.add.at(changes, (label, np.where(open_, 0, lows).astype(np.int64)), 1)
    np.add.at(changes, (label, np.where(open_, n_codes, highs + 1).astype(np.int64)), -1)
    return (np.cumsum(changes, axis=1)[:, :-1] > 0).astype(np.uint8)


def _numbered(parts: list[Any], n: int) -> tuple[Ints, Ints, Ints]:
    """Number distinct records in the order of their parts, first part first; one record and size of each."""
    if not parts or not n:
        return np.zeros(n, dtype=np.int64), np.arange(min(n, 1)), np.array([n] if n else [], dtype=np.int64)
    order = np.lexsort(parts[::-1])
    opens = np.ones(n, dtype=np.bool_)
    opens[1:] = np.any([part[order][1:] != part[order][:-1] for part in parts], axis=0)
    numbers = np.cumsum(opens) - 1
    groups = np.empty(n, dtype=np.int64)
    groups[order] = numbers
    return groups, order[opens].astype(np.int64), np.bincount(numbers)


def _own(classes: Ints, persons: Ints, owners: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The classes of each person's own released records, ascending, and how many records of each."""
    n_classes = int(classes.max(initial=0)) + 1
    known = owners >= 0
    pairs, counts = np.unique(owners[known] * n_classes + classes[known], return_counts=True)
    starts, ends = (np.searchsorted(pairs // n_classes, persons, side=side) for side in ("left", "right"))
    return starts, ends, pairs % n_classes, counts.astype(np.int64)
