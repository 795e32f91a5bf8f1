"""Units are linked by all of their records together."""

import numpy as np
import pytest

from sfumato.kernels.unit_linking import unit_chances

RNG = np.random.default_rng(3)


def brute(points, others, units, other_units):
    """Squared distances to the nearest in both directions, of the means, and one for each record more."""
    found = {}
    for unit in set(units.tolist()):
        mine = points[units == unit]
        far = {}
        for other in set(other_units.tolist()):
            theirs = others[other_units == other]
            pairs = [[float(((a - b) ** 2).sum()) for b in theirs] for a in mine]
            there = sum(min(row) for row in pairs)
            back = sum(min(row[j] for row in pairs) for j in range(len(theirs)))
            means = float(((mine.mean(axis=0) - theirs.mean(axis=0)) ** 2).sum())
            far[other] = there + back + (len(mine) + len(theirs)) * means + abs(len(mine) - len(theirs))
        least = min(far.values())
        nearest = [other for other, each in far.items() if each <= least + 1e-9]
        found[unit] = 1 / len(nearest) if unit in nearest else 0.0
    return np.array([found[unit] for unit in units.tolist()])


@pytest.mark.parametrize("noise", [0.0, 0.3, 2.0])
def test_as_by_hand(noise):
    units = np.repeat(np.arange(12), RNG.integers(1, 5, 12))
    points = RNG.normal(size=(len(units), 3)).round(2)
    kept = RNG.random(len(units)) < 0.9
    others = points[kept] + noise * RNG.normal(size=(int(kept.sum()), 3))
    chances = unit_chances(points, others, units, units[kept], metric="euclidean")
    assert chances == pytest.approx(brute(points, others, units, units[kept]))


def test_equal_units_share_the_chance_and_codes_count_by_being_unequal():
    points = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 2.0], [5.0, 1.0]])
    units = np.array([0, 0, 1, 1, 2])
    chances = unit_chances(points, points, units, units, metric="euclidean", n_codes=1)
    assert chances.tolist() == [0.5, 0.5, 0.5, 0.5, 1.0]


def test_nobody_to_link_to():
    points, units = np.zeros((2, 1)), np.array([0, 0])
    none = np.empty((0, 1)), np.empty(0, dtype=np.int64)
    assert unit_chances(points, none[0], units, none[1], metric="manhattan").tolist() == [0.0, 0.0]
    assert unit_chances(*none[:1], points, none[1], units, metric="manhattan").tolist() == []
