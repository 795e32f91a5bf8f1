"""Controlled rounding of a table of counts: cells to multiples of a base, so that sums stay near, too.

See Cox (1987) and Salazar-González (2006).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from sfumato.kernels.arrays import Floats, Ints

#: Branches that a search for the nearest rounding may open; tables by one or two columns need none.
_NODES = 2_000
#: What a sum that leaves its bounds costs, in distances of a cell.
_PENALTY = 1_000.0


def margin_groups(codes: Ints) -> Iterator[Ints]:
    """For each choice of fewer columns than all, the number of the sum that each cell is part of."""
    n, dims = codes.shape
    for size in range(dims):
        for columns in combinations(range(dims), size):
            if columns:
                yield np.unique(codes[:, columns], axis=0, return_inverse=True)[1].ravel()
            else:
                yield np.zeros(n, dtype=np.int64)


def round_table(counts: Ints, codes: Ints, base: int) -> Ints:
    """Round the cells, at ``codes`` of their columns, to multiples of a base at the least distance in all.

    Each cell and each sum over columns goes to one of the two multiples beside it. By one or two columns that
    is a transport on a network, whose optimum is whole; by more it may be impossible, and then as few sums as
    can be found go farther. It hangs on the counts and their places alone.
    """
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, identity

    down, rest = counts - counts % base, counts % base
    free = np.flatnonzero(rest)
    if not len(free):
        return down
    owners, cells, floors, ceilings = [], [], [], []
    n_sums = 0
    for groups in margin_groups(codes):
        sums = np.bincount(groups, weights=rest)
        owners.append(groups[free] + n_sums)
        cells.append(np.arange(len(free)))
        floors.append(sums // base)
        ceilings.append(-(-sums // base))
        n_sums += len(sums)
    places = (np.concatenate(owners), np.concatenate(cells))
    chosen = coo_array((np.ones(len(places[0])), places), shape=(n_sums, len(free)))
    exceeded = identity(n_sums)
    first = np.arange(len(free)) * (0.25 / len(free) ** 2)  # of equals the first go up
    costs: Floats = (base - 2.0 * rest[free] + first).astype(np.float64)
    solved = milp(
        np.concatenate([costs, np.full(2 * n_sums, _PENALTY * base)]),
        integrality=np.ones(len(free) + 2 * n_sums),
        bounds=(0, np.concatenate([np.ones(len(free)), np.full(2 * n_sums, np.inf)])),
        constraints=LinearConstraint(
            hstack([chosen, -exceeded, exceeded]).tocsc(), np.concatenate(floors), np.concatenate(ceilings)
        ),
        options={"node_limit": _NODES, "mip_rel_gap": 0.0},
    )
    up = rest[free] * 2 >= base if solved.x is None else solved.x[: len(free)] > 0.5  # noqa: PLR2004
    rounded: Ints = down.copy()
    rounded[free] += base * up
    return rounded
