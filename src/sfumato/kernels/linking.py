"""Linking: how many released records are nearer to each of an intruder's than its own, and how many as near.

Only the distance of a record to its own released records matters: one that is strictly nearer ends the search
for it. The released records lie in leaves of a balanced tree of bounding boxes; identical ones are one point
with a weight. Boxes that are too far are not opened, boxes that lie wholly within reach are counted unopened,
and the nearer of two boxes is opened first.

Distances of equal length may differ by rounding. Each distance is compared with one reference only, and ties
with it if they differ by no more than `DISTANCE_TOLERANCE` of the numbers that go into them: far above what
rounding does, far below what data say. That is a matter of the place: one value far out must not make all
others tie. Codes are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.norms import Metric, Norm, keys_of, norm_of
from sfumato.kernels.threads import CompileAllowance, Tick, share_out
from sfumato.kernels.trees import linking as linking_tree
from sfumato.kernels.trees.linking import PointTree, Questions

_NUMPY_ALLOWANCE = CompileAllowance(100_000_000)  # differences of columns, by numpy
_PAIRS = 2**16  # compared at once
_FEW_QUESTIONS = 20_000  # the tree stays in the processor's cache, in whatever order they are asked
DISTANCE_TOLERANCE = 2.0**-34  # of how far a point and those it is compared with lie from the middle


@dataclass(frozen=True)
class Window:
    """A condition on the candidates of each point: their ``values`` must lie from ``lows`` to ``highs``."""

    values: Floats  # [m, w]
    lows: Floats  # [n, w]
    highs: Floats  # [n, w]
    decides: bool = (
        False  # it rules out more than distance does: the search goes by it; this changes no answer
    )


class OwnerIndex(NamedTuple):
    """The own others of each point: ``members[starts[i]:ends[i]]``."""

    members: Ints
    starts: Ints
    ends: Ints


@dataclass(frozen=True)
class CloserCounts:
    """What stands between each point and its own others."""

    references: Floats  # [n] distance to the nearest of its own; infinite where it has none
    own: Ints  # [n] its own at that distance
    tied: Ints  # [n] all others at that distance, its own among them
    nearer: Ints  # [n] others that are nearer, as far as they were counted

    @property
    def chances(self) -> Floats:
        """The probability of each point to find one of its own, if it draws from the nearest others."""
        found = np.isfinite(self.references) & (self.nearer == 0)
        return np.where(found, self.own / np.maximum(self.tied, 1), 0.0)


def closer_counts(
    points: Floats,
    others: Floats,
    groups: Ints,
    other_groups: Ints,
    *,
    metric: Metric,
    n_codes: int = 0,
    weights: Floats | None = None,
    window: Window | None = None,
    cap: int | None = 1,
    tick: Tick | None = None,
) -> CloserCounts:
    r"""Count the others that are nearer to each point than the nearest of its own, and those as near.

    Parameters
    ----------
    points : float64[n, d]
    others : float64[m, d]
    groups, other_groups : int64[n], int64[m]
        A point's own are the others of its group; a negative group has none.
    metric, n_codes, weights
        What is measured and what counts by being unequal, as for `norm_of`.
    window : Window, optional
        Others outside the window of a point are no candidates, its own among them.
    cap : int, optional
        Stop at so many that are nearer; then ``tied`` means nothing. None: count them all.
    tick : callable, optional
        Called as ``tick(done, total)`` a few times each second; what it raises ends the run.

    Notes
    -----
    Exact up to the slack for ties. **Cost:** :math:`O(n \log n)` in few columns; in many, up to
    :math:`O(n^2)` for records that are found and have few nearer than their own.
    """
    points, others, norm = _check_points(points, others, metric, n_codes, weights)
    groups, other_groups = np.asarray(groups, dtype=np.int64), np.asarray(other_groups, dtype=np.int64)
    if groups.shape != (len(points),) or other_groups.shape != (len(others),):
        raise ValueError("`groups` must name one group for each point and each other, got: other lengths")
    window = _checked_window(window, len(points), len(others))
    belongings = _belongings(groups, other_groups)
    owners, own_keys = _own(points, others, window, belongings, norm)
    keys = np.full(len(points), np.inf)
    np.minimum.at(keys, owners, own_keys)
    near, far = _tying(keys, points, norm)
    own = np.bincount(owners[own_keys <= far[owners]], minlength=len(points))
    questions = Questions(points, window.lows, window.highs, near, far)
    asked = np.flatnonzero(np.isfinite(keys))
    if _NUMPY_ALLOWANCE.takes(len(asked) * others.size):
        nearer, tied = _count_all_pairs(questions, asked, others, window.values, norm, cap=cap)
    else:
        nearer, tied, _ = _counts(_plant(others, window, norm), questions, asked, cap=cap, tick=tick)
    return CloserCounts(np.sqrt(keys) if norm.euclidean else keys, own, tied, nearer)


def nearest_in_window(
    points: Floats,
    others: Floats,
    *,
    metric: Metric,
    window: Window,
    n_codes: int = 0,
    weights: Floats | None = None,
    tick: Tick | None = None,
) -> tuple[Ints, Ints]:
    """Count the others nearest to each point, and those of them that lie in its window.

    Parameters are those of `closer_counts`; the window does not matter to who is nearest.

    Returns
    -------
    tied : int64[n]
        The others at the least distance from each point.
    inside : int64[n]
        Those of them in the point's window.
    """
    points, others, norm = _check_points(points, others, metric, n_codes, weights)
    window = _checked_window(window, len(points), len(others))
    tree = _plant(others, window, norm)
    asked, keys = np.arange(len(points) if len(others) else 0), np.zeros(len(points))

    def least(part: Ints) -> None:
        keys[part] = linking_tree.least(tree, points[part])

    first, back = _distinct_questions(tree, points, asked)
    share_out(first, least, _of_parts(tick, 0, 2))
    keys[asked] = keys[back]
    nobody, far = np.full(len(points), -np.inf), _tying(keys, points, norm)[1]  # nearer than the nearest
    questions = Questions(points, window.lows, window.highs, nobody, far)
    _, inside, outside = _counts(
        tree, questions, asked, cap=None, everywhere=True, tick=_of_parts(tick, 1, 2)
    )
    return inside + outside, inside


def count_inside(points: Floats, amounts: Ints, lows: Floats, highs: Floats) -> Ints:
    r"""Sum the amounts of the points in each box, its sides included.

    Parameters
    ----------
    points : float64[n, d]
        Without NaN.
    amounts : int64[n]
        How often each point occurs.
    lows, highs : float64[m, d]
        The sides of each box; −∞ and ∞ leave it open.

    Returns
    -------
    int64[m]

    Notes
    -----
    Exact: a window without a distance. **Cost:** :math:`O(n \log^2 n)` to plant the tree; a box then costs
    what its surface cuts.
    """
    tree = linking_tree.plant(
        points, amounts, norm=norm_of("hamming", 0, 0), n_counted=0, units=np.ones(points.shape[1])
    )
    anybody = np.full(len(lows), np.inf)
    questions = Questions(np.empty((len(lows), 0)), lows, highs, anybody, anybody)
    return linking_tree.count(tree, questions, np.iinfo(np.int64).max, False)[0]


# The shell: checks, identical records, threads ----------------------------------------------------------


def _check_points(
    points: Floats, others: Floats, metric: Metric, n_codes: int, weights: Floats | None
) -> tuple[Floats, Floats, Norm]:
    """Return both as the kernels want them, and what their columns count for."""
    points, others = (np.ascontiguousarray(each, dtype=np.float64) for each in (points, others))
    if points.ndim != 2 or others.ndim != 2 or points.shape[1] != others.shape[1]:  # noqa: PLR2004
        raise ValueError(f"points and others must have as many columns, got: {points.shape}, {others.shape}")
    if not np.isfinite(points).all() or not np.isfinite(others).all():
        raise ValueError("points and others must be finite")
    norm = norm_of(metric, points.shape[1], n_codes, weights)
    n_measured = norm.n_measured
    if n_measured and len(points):
        # Around a value that occurs, so that offsets cost no digits; a median, so that one far out does not.
        middle = (len(points) - 1) // 2
        origin = np.zeros(points.shape[1])
        origin[:n_measured] = np.partition(points[:, :n_measured], middle, axis=0)[middle]
        points, others = points - origin, others - origin
    return *_common_codes(points, others, n_measured), norm


def _common_codes(points: Floats, others: Floats, n_measured: int) -> tuple[Floats, Floats]:
    """Number the codes that both have, and give one number to all that only one has: they match nobody.

    So records that differ only there are one point, and a column of numbers taken as codes costs nothing.
    """
    points, others = points.copy(), others.copy()
    for column in range(n_measured, points.shape[1]):
        shared = np.intersect1d(points[:, column], others[:, column])
        for side, alone in ((points, len(shared)), (others, len(shared) + 1)):
            places = np.searchsorted(shared, side[:, column])
            known = np.append(shared, np.nan)[places] == side[:, column]
            side[:, column] = np.where(known, places, alone)
    return points, others


def _checked_window(window: Window | None, n: int, m: int) -> Window:
    if window is None:
        return Window(np.empty((m, 0)), np.empty((n, 0)), np.empty((n, 0)))
    values, lows, highs = (
        np.ascontiguousarray(each, dtype=np.float64) for each in (window.values, window.lows, window.highs)
    )
    width = values.shape[1]
    if values.shape != (m, width) or lows.shape != (n, width) or highs.shape != (n, width):
        raise ValueError(
            f"a window must have a value for each other and limits for each point, got: {values.shape}, "
            f"{lows.shape}, {highs.shape}"
        )
    if not np.isfinite(values).all() or np.isnan(lows).any() or np.isnan(highs).any():
        raise ValueError("the values of a window must be finite and its limits numbers")
    return Window(values, lows, highs, window.decides)


def _belongings(groups: Ints, other_groups: Ints) -> OwnerIndex:
    """List the others by group, and find each point's own in the list."""
    order = np.argsort(other_groups, kind="stable")
    starts = np.searchsorted(other_groups[order], groups, side="left")
    ends = np.searchsorted(other_groups[order], groups, side="right")
    return OwnerIndex(order, starts, np.where(groups < 0, starts, ends))


def _tying(keys: Floats, points: Floats, norm: Norm) -> tuple[Floats, Floats]:
    """Return the keys from which and up to which others tie with each key."""
    measured, euclidean = np.abs(points[:, : norm.n_measured]), norm.euclidean
    if norm.n_measured == 0 and (norm.weights == 1).all():  # whole numbers
        return keys - 0.5, keys + 0.5
    distances = np.sqrt(keys) if euclidean else keys
    if norm.largest:
        lengths = measured.max(axis=1, initial=0.0)
    else:
        lengths = np.sqrt((measured**2).sum(axis=1)) if euclidean else measured.sum(axis=1)
    near = np.maximum(distances * (1 - DISTANCE_TOLERANCE) - DISTANCE_TOLERANCE * lengths, 0.0)
    far = distances * (1 + DISTANCE_TOLERANCE) + DISTANCE_TOLERANCE * lengths
    return (near**2, far**2) if euclidean else (near, far)


def _plant(others: Floats, window: Window, norm: Norm) -> PointTree:
    """Build the tree of the distinct points among ``others``, told apart by what is watched too."""
    points = np.concatenate((others, window.values), axis=1)
    first, back = _distinct(points)
    weights = np.bincount(back, minlength=len(first)).astype(np.int64)
    n_counted, units = others.shape[1], np.zeros(points.shape[1])
    if len(points) and (window.decides or n_counted == 0):  # by the ranges of what is watched
        spans = np.ptp(window.values, axis=0)
        units[n_counted:] = 1.0 / np.where(spans > 0, spans, 1.0)
    else:
        units[:n_counted] = 1.0
    return linking_tree.plant(points[first], weights, norm=norm, n_counted=n_counted, units=units)


def _distinct(rows: Floats) -> tuple[Ints, Ints]:
    """Return one row of each group of identical rows, and the group of each row.

    By sorting a hash. Should two different rows share theirs, a group may come apart in two, which costs time
    but changes nothing: rows of one group are always identical.
    """
    if rows.shape[1] == 0:
        return np.arange(min(len(rows), 1)), np.zeros(len(rows), dtype=np.int64)
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in range(rows.shape[1]):
        bits = (rows[:, column] + 0.0).view(np.uint64)  # −0 becomes 0
        hashes = (hashes ^ (bits ^ (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes, kind="stable")
    opens = np.ones(len(rows), dtype=np.bool_)
    for start in range(1, len(rows), 65_536):  # in parts: a sorted copy of all rows would double the memory
        part = slice(start, start + 65_536)
        here, before = order[part], order[start - 1 : start + 65_535][: len(order[part])]
        opens[part] = (rows[here] != rows[before]).any(axis=1)
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.cumsum(opens) - 1
    return order[opens], back


def _counts(
    tree: PointTree,
    questions: Questions,
    asked: Ints,
    *,
    cap: int | None,
    everywhere: bool = False,
    tick: Tick | None,
) -> Ints:
    """Count, for the points ``asked`` for, the records nearer, those that tie, and those outside [3, n]."""
    counts = np.zeros((3, len(questions.points)), dtype=np.int64)
    first, back = _distinct_questions(tree, np.column_stack(questions), asked)
    limit = np.iinfo(np.int64).max if cap is None else cap

    def work(part: Ints) -> None:
        some = Questions(*(each[part] for each in questions))
        counts[:, part] = linking_tree.count(tree, some, limit, everywhere)

    share_out(first, work, tick)
    counts[:, asked] = counts[:, back]
    return counts


def _distinct_questions(tree: PointTree, questions: Floats, asked: Ints) -> tuple[Ints, Ints]:
    """Return one row of each distinct question ``asked``, in order, and for each asked the one that answers.

    Neighbours ask one after the other, as they open the same boxes.
    """
    first, back = _distinct(questions[asked])
    distinct = asked[first]
    if tree.n_counted and len(distinct) > _FEW_QUESTIONS:
        places = linking_tree.leaf_of_points(
            tree, np.ascontiguousarray(questions[distinct, : tree.n_counted])
        )
    else:
        places = np.zeros(len(distinct), dtype=np.int64)
    return distinct[np.argsort(places, kind="stable")], distinct[back]


def _of_parts(tick: Tick | None, part: int, parts: int) -> Tick | None:
    """Tell of one of several parts of a work."""
    if tick is None:
        return None
    return lambda done, total: tick(part * total + done, parts * total)


# The distances of records to their own, and of few records to all -----------------------------------------


def _own(
    points: Floats, others: Floats, window: Window, belongings: OwnerIndex, norm: Norm
) -> tuple[Ints, Floats]:
    """Return each pair of a point and one of its own in its window: the point, and their key."""
    counts = belongings.ends - belongings.starts
    owners = np.repeat(np.arange(len(points)), counts)
    firsts = np.repeat(belongings.starts - np.cumsum(counts) + counts, counts)
    its = belongings.members[firsts + np.arange(len(owners))]
    inside = _inside(window.lows[owners], window.values[its], window.highs[owners])
    owners, its = owners[inside], its[inside]
    keys = np.empty(len(owners))
    for start in range(0, len(owners), _PAIRS):
        part = slice(start, start + _PAIRS)
        keys[part] = keys_of(others[its[part]], points[owners[part]], norm)
    return owners, keys


def _inside(lows: Floats, values: Floats, highs: Floats) -> Flags:
    return np.asarray(((lows <= values) & (values <= highs)).all(axis=-1))


def _count_all_pairs(
    questions: Questions, asked: Ints, others: Floats, values: Floats, norm: Norm, *, cap: int | None
) -> tuple[Ints, Ints]:
    """Count as `_counts`, by looking at all pairs."""
    nearer, tied = np.zeros((2, len(questions.points)), dtype=np.int64)
    size = max(1, _PAIRS // max(len(others), 1))
    for start in range(0, len(asked), size):
        part = asked[start : start + size]
        points, lows, highs, near, far = (each[part][:, None] for each in questions)
        keys = np.where(_inside(lows, values, highs), keys_of(others, points, norm), np.inf)
        nearer[part] = (keys < near).sum(axis=1)
        tied[part] = ((near <= keys) & (keys <= far)).sum(axis=1)
    return nearer if cap is None else np.minimum(nearer, cap), tied
