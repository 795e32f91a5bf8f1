"""How far a sum of unknown cells can be told from sums of them that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.kernels.arrays import Floats

if TYPE_CHECKING:
    from scipy.sparse import sparray

#: Branches that one search may open; where they do not suffice, the best table found stands.
_NODES = 50


def extreme_tables(
    target: Floats,
    published: sparray,
    lows: Floats,
    highs: Floats,
    *,
    truth: Floats,
    most: Floats | float = np.inf,
    whole: bool = True,
) -> tuple[Floats, Floats]:
    """Tables x that fit what is published, one with the least ``target @ x`` and one with the greatest.

    Cells are ``whole`` numbers or amounts, from 0 to ``most``; ``lows <= published @ x <= highs``. Where a
    search does not end in time it is the best table found, or the ``truth``: what can be told is never
    understated (``docs/proofs/tables-beside.md``).
    """
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    ends = []
    for sign in (1.0, -1.0):
        if whole:
            solved = milp(
                sign * target,
                integrality=np.ones(len(target)),
                bounds=Bounds(0, most),
                constraints=LinearConstraint(published, lows, highs),
                options={"node_limit": _NODES},
            )
        else:
            limits = np.column_stack([np.zeros(len(target)), np.broadcast_to(most, len(target))])
            solved = linprog(sign * target, A_eq=published, b_eq=lows, bounds=limits, method="highs")
        ends.append(truth if solved.x is None else np.rint(solved.x) if whole else solved.x)
    return ends[0], ends[1]
