"""One planter for all trees: leaves of near records, boxes from the leaves up."""

import numpy as np
import pytest

from sfumato.kernels.trees.planting import by_node, in_leaves, leaf_of, plant

RNG = np.random.default_rng(5)


def test_a_line_is_halved_at_its_median():
    points = np.array([[3.0], [0.0], [2.0], [1.0], [4.0]])
    order, starts = plant(points, 3)
    assert starts.tolist() == [0, 2, 5]
    assert sorted(order[:2].tolist()) == [1, 3]


@pytest.mark.parametrize("n", [0, 1, 8, 9, 16, 17, 1000])
def test_every_record_lies_in_one_leaf_of_no_more_than_was_asked(n):
    order, starts = plant(RNG.normal(size=(n, 3)), 8)
    assert sorted(order.tolist()) == list(range(n))
    sizes = np.diff(starts)
    assert sizes.sum() == n
    assert sizes.max() <= 8
    assert len(sizes) == 1 or sizes.min() >= 4


def test_only_those_among_are_planted():
    order, _ = plant(RNG.normal(size=(50, 2)), 4, among=np.array([7, 3, 40, 21, 9]))
    assert sorted(order.tolist()) == [3, 7, 9, 21, 40]


def test_the_widest_column_is_cut_in_its_units_up_to_its_most():
    points = np.array([[0.0, 5.0], [1.0, 2.0], [2.0, 9.0], [3.0, 0.0]])

    def left(**how):
        return sorted(plant(points, 2, **how)[0][:2].tolist())

    assert left() == [1, 3]  # the second is 9 wide
    assert left(units=np.array([4.0, 1.0])) == [0, 1]  # 12 against 9
    assert left(most=np.array([np.inf, 1.0])) == [0, 1]  # 3 against 1
    reach = np.array([50.0, 0.0])
    sides = points - reach, points + reach
    assert left(sides=sides) == [0, 1]  # the boxes of the first are 103 wide


def test_nodes_reduce_what_lies_below_them():
    points, amounts = RNG.normal(size=(100, 2)), RNG.integers(1, 9, 100)
    order, starts = plant(points, 8)
    lows, totals = by_node(points[order], starts, np.minimum), by_node(amounts[order], starts, np.add)
    n_leaves = len(starts) - 1
    assert len(lows) == len(totals) == 2 * n_leaves - 1
    assert totals[0] == amounts.sum()
    for node in range(n_leaves - 1):
        assert totals[node] == totals[2 * node + 1] + totals[2 * node + 2]
    for leaf in range(n_leaves):
        records = order[starts[leaf] : starts[leaf + 1]]
        np.testing.assert_array_equal(lows[n_leaves - 1 + leaf], points[records].min(axis=0))


def test_leaves_are_laid_out_with_slots_side_by_side():
    starts = np.array([0, 2, 5])
    assert leaf_of(starts, 4).tolist() == [0, 1, 4, 5, 6]
    assert in_leaves(np.arange(1, 6), starts, 4).tolist() == [[1, 2, 0, 0], [3, 4, 5, 0]]
    rows = np.arange(1.0, 11.0).reshape(5, 2)
    laid_out = in_leaves(rows, starts, 4)
    assert laid_out.shape == (2, 2, 4)
    assert laid_out[1, 0].tolist() == [5.0, 7.0, 9.0, 0.0]
