"""Pairs for swapping: each unit that seeks one gets a partner alike, from another area."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Flags, Ints
from sfumato.kernels.compiling import njit


def pair_up(
    profiles: Ints,
    areas: Ints,
    partners: Ints,
    *,
    seekers: Ints,
    preferred: Flags,
    most: int,
    rng: np.random.Generator,
) -> Ints:
    r"""Give each seeker in turn a partner of its own profile and of another area, drawn at random.

    Free are the units without a partner. A seeker draws uniformly from the free preferred units of its
    profile outside its area; if there are none, from the other free ones there; if there are none either,
    it stays alone.

    Parameters
    ----------
    profiles, areas : int64[n]
        Labels; a negative area is unknown, and such a unit is never paired.
    partners : int64[n]
        The pairs so far: ``partners[i]``, or −1. It is not changed.
    seekers : int64[m]
        Units that seek a partner, in the order of their turns; those that have one are passed over.
    preferred : bool[n]
        Units to be drawn first.
    most : int
        Largest number of pairs to make.
    rng : numpy.random.Generator
        Advanced by one bounded integer for each pair.

    Returns
    -------
    int64[n]
        ``partners`` with the new pairs in it.

    Notes
    -----
    **Cost:** one sort, then :math:`O(\log n)` for each seeker: the free units are counted in Fenwick trees
    over the units sorted by profile and area, where "my profile but not my area" is two stretches.
    """
    free = (partners < 0) & (areas >= 0)
    waiting = seekers[free[seekers]]
    if most <= 0 or not len(waiting):
        return partners
    order = np.lexsort((areas, profiles))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    opens_profile = np.append(True, np.diff(profiles[order]) != 0)
    opens_cell = opens_profile | np.append(True, np.diff(areas[order]) != 0)
    bounds = np.concatenate([_stretches(opens_profile), _stretches(opens_cell)], axis=1)
    sorts = np.stack([free & preferred, free & ~preferred])
    found = _pair_up(places[waiting], bounds, sorts[:, order], most, rng)
    settled = partners.copy()
    met = found >= 0
    settled[order[met]] = order[found[met]]
    return settled


def _stretches(opens: Flags) -> Ints:
    """First place and end of the stretch that each place lies in."""
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(opens))
    return np.repeat(np.stack([starts, ends], axis=1), ends - starts, axis=0)


@njit(cache=True, nogil=True)
def _pair_up(seekers: Ints, bounds: Ints, free: Flags, most: int, rng: np.random.Generator) -> Ints:
    """Pair places; ``free[0]`` are the free preferred ones, ``free[1]`` the other free ones."""
    n = free.shape[1]
    partners = np.full(n, -1, dtype=np.int64)
    trees = np.zeros((2, n + 1), dtype=np.int64)
    for node in range(1, n + 1):
        trees[0, node] += free[0, node - 1]
        trees[1, node] += free[1, node - 1]
        above = node + (node & -node)
        if above <= n:
            trees[0, above] += trees[0, node]
            trees[1, above] += trees[1, node]
    made = 0
    for seeker in seekers:
        if made >= most:
            break
        if partners[seeker] >= 0:
            continue
        for which in range(2):
            partner = _draw_outside_cell(trees[which], bounds[seeker], rng)
            if partner >= 0:
                partners[seeker] = partner
                partners[partner] = seeker
                _remove(trees[which], partner)
                _remove(trees[0 if free[0, seeker] else 1], seeker)
                made += 1
                break
    return partners


@njit(cache=True, nogil=True)
def _draw_outside_cell(tree: Ints, bound: Ints, rng: np.random.Generator) -> int:
    """Draw a free place of the profile outside the cell of an area; −1 if there is none."""
    first, low = _count(tree, bound[0]), _count(tree, bound[2])
    high, last = _count(tree, bound[3]), _count(tree, bound[1])
    below, above = low - first, last - high
    if below + above == 0:
        return -1
    drawn = rng.integers(0, below + above)
    wanted = first + drawn if drawn < below else high + drawn - below
    return _place_of(tree, int(wanted))


@njit(cache=True, nogil=True)
def _count(tree: Ints, end: int) -> int:
    """Count the free places before ``end``."""
    total = 0
    while end > 0:
        total += tree[end]
        end -= end & -end
    return total


@njit(cache=True, nogil=True)
def _place_of(tree: Ints, wanted: int) -> int:
    """Find the free place that has exactly ``wanted`` free ones before it."""
    node, step = 0, 1
    while 2 * step < len(tree):
        step *= 2
    while step > 0:
        if node + step < len(tree) and tree[node + step] <= wanted:
            node += step
            wanted -= tree[node]
        step //= 2
    return node


@njit(cache=True, nogil=True)
def _remove(tree: Ints, place: int) -> None:
    node = place + 1
    while node < len(tree):
        tree[node] -= 1
        node += node & -node
