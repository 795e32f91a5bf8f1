"""Matchable pairs: which pairs of a graph of near records are in one of its complete matchings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.assignment.costs import frame, limits_of
from sfumato.kernels.assignment.ties import MOST_PAIRS
from sfumato.kernels.assignment.tight import exchangeable
from sfumato.kernels.assignment.verification import scan
from sfumato.kernels.norms import Metric
from sfumato.kernels.threads import Tick


@dataclass(frozen=True)
class MatchablePairs:
    """How many pairs of each row lie within its radius, and the pairs that a complete matching can have."""

    near: Ints
    rows: Ints
    columns: Ints

    @property
    def matchable(self) -> Ints:
        """How many pairs of each row a complete matching can have."""
        return np.bincount(self.rows, minlength=len(self.near))


def matchable(
    rows: Floats,
    columns: Floats,
    metric: Metric,
    radii: Floats,
    matching: Ints,
    *,
    n_codes: int = 0,
    weights: Floats | None = None,
    most_pairs: int = MOST_PAIRS,
    tick: Tick | None = None,
) -> MatchablePairs | None:
    """Count the pairs within the radii, and list those that are in some complete matching [tassa2012]_.

    Parameters
    ----------
    rows, columns : float64[n, d]
        Equally many.
    radii : float64[n]
        Pairs farther apart than a row's radius are no pairs.
    matching : int64[n]
        A complete matching within the radii, such as the true one.
    most_pairs : int
        With more pairs than this the answer is None.
    """
    n = len(rows)
    if len(columns) != n or not np.array_equal(np.sort(matching), np.arange(n)):
        raise ValueError("`matching` must be complete, on files of equally many records")
    framed = frame(rows, columns, metric, n_codes=n_codes, weights=weights)
    limits = limits_of(framed, radii, n)
    # With each row's limit as its price, and none for columns, the pairs at or below it are the near ones.
    _, _, listed = scan(framed, limits, np.zeros(n, np.int64), limits, n_listed=most_pairs, tick=tick)
    if listed is None:
        return None
    near_rows, near_columns = listed
    _, possible = exchangeable(near_rows, near_columns, matching)
    near = np.bincount(near_rows, minlength=n)
    return MatchablePairs(near, near_rows[possible], near_columns[possible])
