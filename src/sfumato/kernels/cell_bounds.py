"""How far a sum of unknown cells can be told from sums of them that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sfumato.kernels.arrays import Floats

if TYPE_CHECKING:
    from scipy.sparse import sparray

#: Branches that one search may open; where they do not suffice, the best table found stands.
_NODES = 500


def bound_sum(
    target: Floats,
    published: sparray,
    lows: Floats,
    highs: Floats,
    *,
    truth: Floats,
    most: Floats | float = np.inf,
    whole: bool = True,
) -> tuple[float, float]:
    """The least and the greatest value of ``target @ x`` over all tables x that fit what is published.

    Cells are ``whole`` numbers or amounts, from 0 to ``most``; ``lows <= published @ x <= highs``. Both ends
    are values of tables that were found, so that the true interval is never narrower: ``truth`` is one.
    """
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    known, true = LinearConstraint(published, lows, highs), float(target @ truth)
    ends = []
    for sign in (1.0, -1.0):
        if whole:
            solved = milp(
                sign * target,
                integrality=np.ones(len(target)),
                bounds=Bounds(0, most),
                constraints=known,
                options={"node_limit": _NODES},
            )
        else:
            limits = np.column_stack([np.zeros(len(target)), np.broadcast_to(most, len(target))])
            solved = linprog(sign * target, A_eq=published, b_eq=lows, bounds=limits, method="highs")
        ends.append(true if solved.x is None else float(target @ solved.x))
    return min(ends[0], true), max(ends[1], true)
