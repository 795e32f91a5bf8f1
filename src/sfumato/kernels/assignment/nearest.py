"""Nearest records: those of one file that lie nearest to each of another's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.assignment.costs import NEVER, Frame, frame
from sfumato.kernels.assignment.leaves import leaf_order, plant, search_coordinates
from sfumato.kernels.assignment.search import reach_of, search
from sfumato.kernels.norms import Metric


def nearest(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    k: int,
    *,
    n_codes: int = 0,
    weights: Floats | None = None,
    beat: Callable[[], None] = lambda: None,
) -> Ints:
    """Find the k columns that are nearest to each row; with equals at the end any of them.

    Parameters
    ----------
    rows, columns, metric, n_codes, weights
        As for `solve`.
    k : int
        No more than there are columns.

    Returns
    -------
    int64[n, k]
        In no order.

    Notes
    -----
    In single precision: of two that are as far but for a millionth, either may be taken.
    """
    if not len(rows) or k == 0:
        return np.empty((len(rows), k), dtype=np.int64)
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    here, there = search_coordinates(framed.space)
    (row_order, row_leaves), (column_order, column_leaves) = (
        leaf_order(here, framed.space.norm),
        leaf_order(there, framed.space.norm),
    )
    space = framed.space._replace(
        rows=framed.space.rows[row_order], columns=framed.space.columns[column_order]
    )
    filter_ = plant(
        Frame(space, framed.unit, framed.rounding), here[row_order], there[column_order], row_leaves,
        column_leaves,
    )  # fmt: skip
    n, m = len(rows), len(columns)
    reach = reach_of(filter_, np.full(n, NEVER), np.full(m, NEVER))
    found, _ = search(filter_, np.arange(n), k, np.zeros(m, np.int64), np.full(n, NEVER), reach, beat=beat)
    neighbours = np.empty((n, k), dtype=np.int64)
    neighbours[row_order] = column_order[found]
    return neighbours
