"""Recoding record by record: each at the lowest levels at which enough of those that are left are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import prod

import numpy as np

from sfumato.data.classes.classes import Classes
from sfumato.data.classes.packing import Coding, number, pack
from sfumato.data.generalised.levels import Lattice
from sfumato.data.schema import Role
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._recoding.judges import Part, told_by_classes


def nodes_in_order(terms: Floats, heights: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield the nodes of a lattice, those that lose least first; of some levels only if they are too many."""
    levels = [list(range(height)) for height in heights]
    while prod(map(len, levels)) > most and max(map(len, levels)) > 2:  # noqa: PLR2004  — values and root
        longest = max(levels, key=len)
        longest[1:-1] = longest[2:-1:2]
    bottom = (0,) * len(levels)
    heap, seen = [(0.0, bottom)], {bottom}
    for _ in range(most):
        if not heap:
            return
        _, places = heappop(heap)
        yield tuple(own[place] for own, place in zip(levels, places, strict=True))
        for key, own in enumerate(levels):
            above = (*places[:key], places[key] + 1, *places[key + 1 :])
            if above[key] < len(own) and above not in seen:
                seen.add(above)
                lost = sum(float(terms[j, levels[j][place]]) for j, place in enumerate(above))
                heappush(heap, (lost, above))


def peeled(
    whole: Part, levels: Sequence[int | Ints], left: Flags, nodes: Iterator[tuple[int, ...]]
) -> tuple[list[Ints], Flags]:
    """Show each record that is ``left`` at the first of the nodes at which its class may stand.

    Returns
    -------
    list of int64[n], bool[n]
        The level of each record in each key, and who is still left.
    """
    n, k = len(whole.table), whole.guarantee.k
    own, left = [np.broadcast_to(level, n).copy() for level in levels], left.copy()
    by_size = _needs_only_k(whole)
    for node in nodes:
        whole.run.check()
        rows = np.flatnonzero(left)
        if len(rows) < k:
            break
        groups, sizes = _alike(whole.lattice, node, rows)
        stands = sizes >= k
        if stands.any() and not by_size:
            stands &= ~_failing(whole, own, node, (rows, groups))
        found = rows[stands[groups]]
        if len(found):
            for each, level in zip(own, node, strict=True):
                each[found] = level
            left[found] = False
    return own, left


def _needs_only_k(whole: Part) -> bool:
    asked, whose = whole.guarantee.requirements, whole.table.schema.only_role(Role.PERSON)
    by_size = all(each.persons_alike is not None for each in asked)
    return by_size and whose is None and told_by_classes(whole) is not None


def _alike(lattice: Lattice, node: Sequence[int], rows: Ints) -> tuple[Ints, Ints]:
    """Number these records by what they would show at a node, and count them."""
    codings = []
    for key, level in zip(lattice.keys, node, strict=True):
        labels = key.labels[level]
        codings.append(Coding(labels[key.codes[rows]].astype(np.uint32), int(labels.max(initial=0)) + 1))
    groups, counts = number(pack(codings, len(rows)))
    return groups, counts


def _failing(whole: Part, own: Sequence[Ints], node: Sequence[int], found: tuple[Ints, Ints]) -> Flags:
    """Which groups of the records left could not stand at a node, beside all others."""
    rows, groups = found
    n_groups = int(groups.max(initial=-1)) + 1
    evidence = told_by_classes(whole)
    if evidence is not None:
        of_record = np.full(len(whole.table), n_groups, dtype=np.int64)  # all others are one class
        of_record[rows] = groups
        _, examples, of_record, members = np.unique(
            of_record, return_index=True, return_inverse=True, return_counts=True
        )
        classes = Classes.known(
            whole.table, whole.guarantee.keys, of_record, members, examples=examples, counts={}
        )
        return whole.guarantee.failing_classes(evidence, classes)[:n_groups]
    tried = [each.copy() for each in own]
    for each, level in zip(tried, node, strict=True):
        each[rows] = level
    shown = whole.lattice.write(whole.table, tried)
    records = whole.guarantee.failing(shown, whole.run)[rows]
    return np.bincount(groups[records], minlength=n_groups) > 0
