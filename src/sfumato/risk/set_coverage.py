"""Coverage by sets of values that are no ranges, in whatever number of columns.

Where boxes would be too many (see `risk.coverage`), the distinct released records are compared with the
intruder's one by one: a column of sets is a table of which code each label has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato import kernels
from sfumato.data.evidence import Evidence
from sfumato.data.table import Floats, Ints
from sfumato.risk.coverage import Coarse, columns_of

#: Losses that differ by less than one part in so many are equal: sums of shares round.
_UNITS = 2.0**40


def set_links(
    evidence: Evidence,
    names: tuple[str, ...],
    rows: Ints,
    *,
    persons: Ints,
    owners: Ints,
    tick: Callable[[int, int], None] | None = None,
) -> Any:
    """Rivals of each of the intruder's records ``rows`` among the released ones that cover it.

    The same as `risk.coverage.Covering.links` says, whatever sets of values the release shows.
    """
    columns = columns_of(evidence, names)
    ranges = [column for column in columns if (column.counts == 1).all()]
    sets = [column for column in columns if (column.counts != 1).any()]
    losses = np.rint(sum(column.widths for column in columns) / len(columns) * _UNITS).astype(np.int64)
    tables, labels, codes = _tables(sets, rows)
    lows, highs = (
        np.column_stack(
            [column.runs[side, column.starts] for column in ranges] or [np.zeros((len(losses), 0))]
        )
        for side in (0, 1)
    )
    classes, samples, sizes = _classes([losses, *lows.T, *highs.T, *labels.T])
    starts, ends, own, counts = _own(classes, persons, owners)
    numbers = np.column_stack([column.values[rows] for column in ranges] or [np.zeros((len(rows), 0))])
    found, mine, tied, nearer = kernels.set_cover.rivals(
        kernels.set_cover.Points(np.ascontiguousarray(numbers), codes, starts, ends, own, counts),
        kernels.set_cover.Shown(
            lows[samples], highs[samples], labels[samples], tables, losses[samples], sizes
        ),
        tick,
    )
    references = np.where(found < 0, np.inf, found / _UNITS)
    return kernels.linking.Rivals(references, mine, tied, nearer)


def _tables(columns: list[Coarse], rows: Ints) -> tuple[Any, Ints, Ints]:
    """Which codes the labels of all columns have; the label of each released record; codes of the intruder's.

    The last code is that of a missing value, which only a label that leaves the column open has.
    """
    codes = np.zeros((len(rows), len(columns)), dtype=np.int64)
    labels = np.zeros((len(columns[0].starts) if columns else 0, len(columns)), dtype=np.int64)
    made, n_labels = [], 0
    greatest = [column.runs[1][np.isfinite(column.runs[1])].max(initial=0) for column in columns]
    n_codes = 2 + int(max(greatest, default=0))
    for place, column in enumerate(columns):
        found, firsts, label = np.unique(column.starts, return_index=True, return_inverse=True)
        labels[:, place] = label.reshape(-1) + n_labels
        values = column.values[rows]
        codes[:, place] = np.where(np.isnan(values), n_codes - 1, np.nan_to_num(values)).astype(np.int64)
        made.append(_members(column, found, column.counts[firsts], n_codes))
        n_labels += len(found)
    none = np.zeros((0, n_codes), dtype=np.uint8)
    return np.concatenate([*made, none]), labels, codes


def _members(column: Coarse, starts: Ints, counts: Ints, n_codes: int) -> Any:
    """Mark the codes of each label, from the runs of codes that it stands for."""
    label = np.repeat(np.arange(len(starts)), counts)
    place = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(len(label))
    lows, highs = column.runs[:, place]
    changes = np.zeros((len(starts), n_codes + 1), dtype=np.int32)
    open_ = np.isinf(lows) & np.isinf(highs)
    np.add.at(changes, (label, np.where(open_, 0, lows).astype(np.int64)), 1)
    np.add.at(changes, (label, np.where(open_, n_codes, highs + 1).astype(np.int64)), -1)
    return (np.cumsum(changes, axis=1)[:, :-1] > 0).astype(np.uint8)


def _classes(parts: list[Floats | Ints]) -> tuple[Ints, Ints, Ints]:
    """Number the distinct released records, those of least loss first; one record and the size of each."""
    order = np.lexsort(parts[::-1])  # by the first part, the loss, then by all others
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = np.any([part[order][1:] != part[order][:-1] for part in parts], axis=0)
    numbers = np.cumsum(opens) - 1
    classes = np.empty(len(order), dtype=np.int64)
    classes[order] = numbers
    return classes, order[opens], np.bincount(numbers)


def _own(classes: Ints, persons: Ints, owners: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The classes of each person's own released records, ascending, and how many records of each."""
    n_classes = int(classes.max(initial=-1)) + 1
    known = owners >= 0
    pairs, counts = np.unique(owners[known] * n_classes + classes[known], return_counts=True)
    whose = pairs // max(n_classes, 1)
    starts, ends = (np.searchsorted(whose, persons, side=side) for side in ("left", "right"))
    return starts, ends, pairs % max(n_classes, 1), counts.astype(np.int64)
