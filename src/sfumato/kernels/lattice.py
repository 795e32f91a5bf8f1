"""The lattice of levels: classes of a node from those of a finer one, and nodes in order of a bound."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.kernels.arrays import Bytes, Codes, Flags, Floats, Ints
from sfumato.kernels.compiling import njit

Number = TypeVar("Number", bound=np.generic)

#: What `next_node` gives instead of a node: no node can be better; or too many were passed by.
NONE_BETTER, TOO_MANY = -1, -2
#: Odd numbers that spread labels over the table of classes.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


# Classes of a node --------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def merge(
    leaves: Codes, labels: Codes, starts: Ints, sizes: Ints, parts: tuple[Ints, Ints, Floats, Ints]
) -> tuple[Ints, Ints, Floats]:
    """Join finer classes that have the same labels at a node.

    Parameters
    ----------
    leaves : int32[combinations, keys]
        The codes of the values of each distinct combination.
    labels : int32[…]
        For each key and level the label of each code, one after the other.
    starts, sizes : int64[keys]
        Where the labels of the node's level begin, and how many there are.
    parts : int64[finer], int64[finer], float64[finer], int64[finer] or int64[0]
        Of each finer class a combination that stands for it, its count and its weight; and where to write of
        which class it is a part, if there is room.

    Returns
    -------
    int64[classes], int64[classes], float64[classes]
        A combination that stands for each class, its count and its weight; numbered as they come.

    Notes
    -----
    Exact: where the labels of all keys do not fit into one number, records of one number are compared. Takes
    memory for the classes that are found, not for their parts.
    """
    firsts, counts, weights, of_part = parts
    n_keys = leaves.shape[1]
    room, fits = 1.0, True
    for key in range(n_keys):
        room *= sizes[key]
        fits &= room < 2.0**62
    slots, numbers = np.full(32, -1, dtype=np.int64), np.empty(16, dtype=np.uint64)
    first, count, weight = np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16)
    n_classes = 0
    for part in range(len(firsts)):
        row, number = firsts[part], np.uint64(0)
        for key in range(n_keys):
            if sizes[key] > 1:
                label = np.uint64(labels[starts[key] + leaves[row, key]])
                number = number * (np.uint64(sizes[key]) if fits else _SPREAD) + label
        slot = _slot(number, len(slots))
        while True:
            found = slots[slot]
            if found < 0:
                break
            same = numbers[found] == number
            if same and not fits:
                for key in range(n_keys):
                    other = first[found]
                    same &= labels[starts[key] + leaves[row, key]] == labels[starts[key] + leaves[other, key]]
            if same:
                break
            slot = (slot + 1) & (len(slots) - 1)
        if found < 0:
            if n_classes == len(numbers):
                slots, numbers = _rehash(numbers)
                first, count, weight = _double_room(first), _double_room(count), _double_room(weight)
                slot = _free_slot(slots, number)
            found = n_classes
            slots[slot], numbers[found] = found, number
            first[found], count[found], weight[found] = row, 0, 0.0
            n_classes += 1
        if len(of_part) > 0:
            of_part[part] = found
        count[found] += counts[part]
        weight[found] += weights[part]
    return first[:n_classes].copy(), count[:n_classes].copy(), weight[:n_classes].copy()


@njit(cache=True, nogil=True)
def _slot(number: np.uint64, n_slots: int) -> np.int64:
    """Where in the table of classes a number is looked for first."""
    return np.int64(((number ^ (number >> np.uint64(32))) * _SPREAD) >> np.uint64(20)) & (n_slots - 1)


@njit(cache=True, nogil=True)
def _free_slot(slots: Ints, number: np.uint64) -> np.int64:
    slot = _slot(number, len(slots))
    while slots[slot] >= 0:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@njit(cache=True, nogil=True)
def _rehash(numbers: npt.NDArray[np.uint64]) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """A table of classes with room for twice as many, and their numbers."""
    slots = np.full(4 * len(numbers), -1, dtype=np.int64)
    for class_ in range(len(numbers)):
        slots[_free_slot(slots, numbers[class_])] = class_
    return slots, _double_room(numbers)


@njit(cache=True, nogil=True)
def _double_room(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The same array with as much room again."""
    found = np.empty(2 * len(values), dtype=values.dtype)
    for place in range(len(values)):  # a slice takes seconds to compile, because its errors speak
        found[place] = values[place]
    return found


@njit(cache=True, nogil=True)
def join_counts(
    of_part: Ints, classes: Ints, values: Ints, counts: Ints, room: tuple[int, int]
) -> tuple[Ints, Ints, Ints, Ints]:
    """Add up how often values stand in finer classes to how often they stand in coarser ones.

    Parameters
    ----------
    of_part : int64[finer classes]
        Of which class each is a part.
    classes, values, counts : int64[entries]
        A finer class, a value, and how often it stands there: more than 0.
    room
        The number of coarser classes, and that of values.

    Returns
    -------
    The same of the coarser classes, by class and value; and where the entries of each class begin.
    """
    n_classes, n_values = room
    table = np.zeros(n_classes * n_values, dtype=np.int64)
    for entry in range(len(classes)):
        table[of_part[classes[entry]] * n_values + values[entry]] += counts[entry]
    n_found = 0
    for place in range(len(table)):
        n_found += table[place] > 0
    found = np.empty((3, n_found), dtype=np.int64)
    starts = np.empty(n_classes + 1, dtype=np.int64)
    here, place = 0, 0
    for class_ in range(n_classes):
        starts[class_] = here
        for value in range(n_values):
            if table[place] > 0:
                found[0, here], found[1, here], found[2, here] = class_, value, table[place]
                here += 1
            place += 1
    starts[n_classes] = here
    return found[0], found[1], found[2], starts


@njit(cache=True, nogil=True)
def sum_over_classes(
    leaves: Codes, amounts: Floats, starts: Ints, classes: tuple[Ints, Floats, Flags]
) -> Floats:
    """For each key the weighted sum of an amount by value, over the classes that are marked.

    Parameters
    ----------
    leaves : int32[combinations, keys]
        The codes of the values of each distinct combination.
    amounts : float64[…]
        For each key and level an amount for each code, laid out as the labels of `merge`.
    starts : int64[keys]
        Where those of the node's level begin.
    classes : int64[classes], float64[classes], bool[classes]
        The combination that stands for each class, its weight and its mark.
    """
    firsts, weights, marked = classes
    sums = np.zeros(len(starts))
    for place in range(len(firsts)):
        if marked[place]:
            row = firsts[place]
            for key in range(len(starts)):
                sums[key] += weights[place] * amounts[starts[key] + leaves[row, key]]
    return sums


# Nodes in order of a bound ------------------------------------------------------------------------------


class Frontier(NamedTuple):
    """The nodes that are next, as a heap: none below them is left.

    A node is a number in mixed radix, the last key counting in ones. Each is reached in one way: from the
    node in which its last key that is not at level 0 is one level lower.
    """

    scores: Floats  # a bound from below of each
    nodes: Ints
    size: Ints  # [1] how many there are


def frontier() -> Frontier:
    """The frontier with nothing but the bottom node."""
    start = Frontier(np.zeros(1024), np.zeros(1024, dtype=np.int64), np.ones(1, dtype=np.int64))
    start.scores[0] = -np.inf
    return start


@njit(cache=True, nogil=True)
def next_node(
    front: Frontier, terms: Floats, heights: Ints, hopeless: tuple[Bytes, Ints], limits: tuple[float, int]
) -> tuple[Frontier, int, float, int]:
    """Take the node with the least bound that is not hopeless, and put those above it on the frontier.

    Parameters
    ----------
    front
        Changed in place; use the one that is returned.
    terms : float64[keys, levels]
        The bound of a node is at least the sum of the terms of its levels, and at least that of the node
        it was reached from.
    heights : int64[keys]
        The number of levels of each key.
    hopeless : uint8[nodes] or uint8[0], int64[some, keys]
        Marks of the nodes that need not be looked at. Or, where a mark for each would be too many: nodes
        below which, themselves included, none need be.
    limits
        Bounds above this cannot be better. How many hopeless nodes may be passed by.

    Returns
    -------
    The frontier, the node or `NONE_BETTER` or `TOO_MANY`, its bound, and how many were passed by.
    """
    marks, tops = hopeless
    n_keys, passed = len(heights), 0
    levels = np.empty(n_keys, dtype=np.int64)
    scores, nodes, size = front.scores, front.nodes, front.size[0]
    while True:
        if size == 0 or scores[0] > limits[0]:
            return Frontier(scores, nodes, front.size), NONE_BETTER, np.inf, passed
        if passed > limits[1]:
            return Frontier(scores, nodes, front.size), TOO_MANY, scores[0], passed
        score, node = scores[0], nodes[0]
        size -= 1
        _sink(scores, nodes, size)
        last = _levels_of(node, heights, levels)
        own = 0.0
        for key in range(n_keys):
            own += terms[key, levels[key]]
        score = max(score, own)
        step = 1
        for key in range(n_keys - 1, last - 1, -1):
            if levels[key] + 1 < heights[key]:
                if size == len(scores):
                    scores, nodes = np.append(scores, scores), np.append(nodes, nodes)
                higher = own + (terms[key, levels[key] + 1] - terms[key, levels[key]])
                _rise(scores, nodes, size, max(score, higher), node + step)
                size += 1
            step *= heights[key]
        front.size[0] = size
        bad = marks[node] != 0 if len(marks) > 0 else _below(levels, tops)
        if not bad:
            return Frontier(scores, nodes, front.size), node, score, passed
        passed += 1


@njit(cache=True, nogil=True)
def raise_bounds(front: Frontier, heights: Ints, levels: Ints, score: float) -> None:
    """Raise the bound of the nodes of the frontier above a node, whose own bound is known now."""
    size = front.size[0]
    own_levels = np.empty(len(heights), dtype=np.int64)
    for place in range(size):
        if front.scores[place] < score:
            _levels_of(front.nodes[place], heights, own_levels)
            if np.all(own_levels >= levels):
                front.scores[place] = score
    for place in range(size):  # the heap is built anew: what lies before a place is one already
        _rise(front.scores, front.nodes, place, front.scores[place], front.nodes[place])


@njit(cache=True, nogil=True)
def _levels_of(node: int, heights: Ints, levels: Ints) -> int:
    """Write the levels of a node, and give the last key that is not at level 0."""
    last = 0
    for key in range(len(heights) - 1, -1, -1):
        levels[key] = node % heights[key]
        node //= heights[key]
        if levels[key] > 0 and key > last:
            last = key
    return last


@njit(cache=True, nogil=True)
def _below(levels: Ints, tops: Ints) -> bool:
    for i in range(len(tops)):
        inside = True
        for key in range(len(levels)):
            if levels[key] > tops[i, key]:
                inside = False
                break
        if inside:
            return True
    return False


@njit(cache=True, nogil=True)
def _rise(scores: Floats, nodes: Ints, place: int, score: float, node: int) -> None:
    """Put a node at the end of a heap and let it rise; of equal bounds the smaller number comes first."""
    while place > 0:
        up = (place - 1) // 2
        if scores[up] < score or (scores[up] == score and nodes[up] <= node):
            break
        scores[place], nodes[place] = scores[up], nodes[up]
        place = up
    scores[place], nodes[place] = score, node


@njit(cache=True, nogil=True)
def _sink(scores: Floats, nodes: Ints, size: int) -> None:
    """Take the first of a heap of ``size + 1`` away."""
    score, node, place = scores[size], nodes[size], 0
    while True:
        down = 2 * place + 1
        if down >= size:
            break
        right = down + 1
        if right < size and (
            scores[right] < scores[down] or (scores[right] == scores[down] and nodes[right] < nodes[down])
        ):
            down = right
        if scores[down] > score or (scores[down] == score and nodes[down] >= node):
            break
        scores[place], nodes[place] = scores[down], nodes[down]
        place = down
    scores[place], nodes[place] = score, node
