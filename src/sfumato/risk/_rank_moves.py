"""How far the values of a record moved among the ranks of their columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.data.schema import COMPARABLE, Kind
from sfumato.kernels.arrays import Floats
from sfumato.risk._ranked_tables import (
    numbers_in_order,
    why_unranked,
)
from sfumato.risk._spaces import why_generalised


def reverse_mapping(values: Floats, released: Floats, *, rng: np.random.Generator | None = None) -> Floats:
    """Give each released value the original value of its rank: the Z between X and Y.

    Parameters
    ----------
    values, released : float64[n]
        NaN has no rank. Released values that are equal share their mid-rank, and so the original value there,
        or the mean of the two that it falls between.
    rng
        Where there are more of one, as many of it are drawn as there are of the other (004, section 4);
        released values that are not drawn have no Z.

    Examples
    --------
    >>> reverse_mapping(np.array([10.0, 20.0, 30.0, 40.0]), np.array([7.0, 5.0, 5.0, 9.0]))
    array([30., 15., 15., 40.])
    """
    ordered = np.sort(values[~np.isnan(values)])
    places = np.argsort(released)[: int((~np.isnan(released)).sum())]  # so that no order of a file matters
    size = min(len(ordered), len(places))
    if len(ordered) != len(places):
        if rng is None:
            raise ValueError(
                "as many values must be there as released ones unless `rng` draws from the more, "
                f"got: {len(ordered)} and {len(places)}"
            )
        rows = np.sort(rng.choice(max(len(ordered), len(places)), size, replace=False))
        ordered = ordered if len(ordered) == size else ordered[rows]
        places = places if len(places) == size else places[rows]
    mapped = np.full(len(released), np.nan)
    ranks = kernels.ranks.midranks(released[places]) - 1
    low, high = np.floor(ranks).astype(np.int64), np.ceil(ranks).astype(np.int64)
    mapped[places] = ordered[low] / 2 + ordered[high] / 2
    return mapped


class RankMove(NamedTuple):
    """How far one value of a record moved.

    ``as_if`` is the original value that has the released one's rank (Z, of numbers only): what its move comes
    to without the change of values that no longer alters any rank.
    """

    column: str
    rank: float  # in the original
    released_rank: float  # of what was released for it
    of_ranks: int  # values that have a rank
    as_if: float | None

    @property
    def rank_distance(self) -> float:
        """By how many ranks."""
        return self.released_rank - self.rank

    def to_dict(self) -> dict[str, float | int | str | None]:
        """As a dictionary for JSON; it is private."""
        return {**self._asdict(), "moved": self.rank_distance}


def original_and_released_values(evidence: Evidence, name: str) -> tuple[Floats, Floats]:
    """A column of the records that were released and of what became of them; NaN where one lacks it."""
    assert evidence.source_rows is not None
    has_source = evidence.source_rows >= 0
    original, released = numbers_in_order(evidence, name)
    original, released = original[evidence.source_rows[has_source]], released[has_source]
    gone = np.isnan(original) | np.isnan(released)
    return np.where(gone, np.nan, original), np.where(gone, np.nan, released)


def moves_of(evidence: Evidence, row: int) -> tuple[RankMove, ...]:
    """How far each value of a record of the original moved, in the first record released of it.

    Columns without ranks, and values that are missing in either table, are not told of.
    """
    rows, protected = evidence.source_rows, evidence.protected
    if rows is None or protected is None or row not in rows:
        return ()
    names = (
        name
        for name in evidence.of_kinds(evidence.shared_columns, COMPARABLE)
        if why_generalised("", (name,), evidence.original, protected) is None
        and why_unranked("", evidence, (name,)) is None
    )
    place = int(np.flatnonzero(rows[rows >= 0] == row)[0])
    moves = (_move(evidence, name, place) for name in names)
    return tuple(move for move in moves if not np.isnan(move.rank))


def _move(evidence: Evidence, name: str, place: int) -> RankMove:
    values = original_and_released_values(evidence, name)
    rank, released_rank = (float(kernels.ranks.midranks(side)[place]) for side in values)
    is_number = evidence.original.schema[name].kind is Kind.CONTINUOUS
    as_if = float(reverse_mapping(*values)[place]) if is_number and not np.isnan(rank) else None
    return RankMove(name, rank, released_rank, int((~np.isnan(values[0])).sum()), as_if)
