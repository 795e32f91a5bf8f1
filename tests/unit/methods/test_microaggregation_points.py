"""Records as points: what one unit of distance is in a column of each kind."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.data.points import MAX_COORDINATES, places_of, points_of, standardise
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table


def squared_distances(places):
    return ((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)


def nominal_points(values, *, scale="deviation", nominal="frequency"):
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.NOMINAL),)))
    return points_of(table, scale=scale, nominal=nominal)


@pytest.mark.parametrize(
    ("scale", "expected"), [("deviation", [-1.5, 0, 0.5, 1]), ("range", [-0.6, 0, 0.2, 0.4])]
)
def test_standardised_by_hand(scale, expected):
    """The values 1, 4, 5, 6 have mean 4 and squares 9, 0, 1, 4: deviation √3.5, range 5."""
    values = standardise(np.array([1.0, 4.0, 5.0, 6.0]), scale)
    unit = {"deviation": 2 / np.sqrt(3.5), "range": 1.0}[scale]
    np.testing.assert_allclose(values, np.array(expected) * unit, rtol=1e-15)


def test_missing_values_lie_at_the_mean_and_constants_at_zero():
    values = standardise(np.array([1.0, np.nan, 3.0]), "deviation")
    assert values.tolist() == [-1.0, 0.0, 1.0]
    assert standardise(np.array([0.1, np.nan, 0.1, 0.1]), "deviation").tolist() == [0.0] * 4
    assert standardise(np.array([np.nan, np.nan]), "range").tolist() == [0.0, 0.0]
    assert standardise(np.array([]), "none").tolist() == []


def test_raw_values_are_only_centred():
    assert standardise(np.array([10.0, 20.0, 60.0]), "none").tolist() == [-20.0, -10.0, 30.0]


@pytest.mark.parametrize("factor", [2.0**-900, 1.0, 2.0**1000])
def test_no_unit_overflows(factor):
    values = standardise(np.array([1.0, 2.0, 3.0]) * factor, "deviation")
    np.testing.assert_allclose(values, np.array([-1, 0, 1]) * np.sqrt(1.5), rtol=1e-15)


@pytest.mark.parametrize("nominal", ["frequency", "equal"])
@pytest.mark.parametrize(
    "shares", [[0.5, 0.3, 0.2], [0.9, 0.1], [0.25] * 4, [0.97, 0.01, 0.01, 0.005, 0.005]]
)
def test_distances_are_those_of_the_formula_and_the_variance_is_one(shares, nominal):
    shares = np.array(shares)
    places = places_of(shares, scale="deviation", nominal=nominal)
    if nominal == "frequency":
        expected = (1 / shares[:, None] + 1 / shares[None, :]) / (len(shares) - 1)
    else:
        expected = np.full((len(shares), len(shares)), 2 / (1 - (shares**2).sum()))
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(squared_distances(places), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shares @ places, 0.0, atol=1e-12)
    assert shares @ (places**2).sum(axis=1) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("nominal", ["frequency", "equal"])
def test_by_range_the_farthest_two_values_are_one_apart(nominal):
    places = places_of(np.array([0.5, 0.3, 0.2]), scale="range", nominal=nominal)
    assert squared_distances(places).max() == pytest.approx(1.0, rel=1e-12)


def test_two_values_are_a_standardised_number():
    """Nominal yes and no, and 0 and 1 as a number, are the same column to a distance."""
    words = ["no", "yes", "no", "no", "yes"]
    numbers = standardise(np.array([0.0, 1, 0, 0, 1]), "deviation")
    for nominal in ("frequency", "equal"):
        np.testing.assert_allclose(nominal_points(words, nominal=nominal)[:, 0], numbers, rtol=1e-14)


def test_nominal_values_by_hand():
    """Shares 1/2, 1/4, 1/4 of three values: frequent to rare is (2 + 4) / 2 = 3, rare to rare (4 + 4) / 2 = 4."""
    points = nominal_points(["a", "a", "b", "c"])
    squares = squared_distances(points)
    np.testing.assert_allclose(squares[0], [0, 0, 3, 3], atol=1e-14)
    np.testing.assert_allclose(squares[2, 3], 4, atol=1e-14)


def test_a_missing_nominal_value_lies_at_the_mean():
    points = nominal_points(["a", None, "b", "c", "a"])
    np.testing.assert_array_equal(points[1], 0.0)
    np.testing.assert_allclose(points.sum(axis=0), 0.0, atol=1e-14)
    assert nominal_points([None, None]).tolist() == [[0.0], [0.0]]
    assert nominal_points(["a", "a"]).tolist() == [[0.0], [0.0]]


def test_of_very_many_values_the_rarest_count_as_one():
    """No array of records times values: a column of account numbers would be n by n."""
    common = np.repeat(np.arange(MAX_COORDINATES - 1), 3)
    rare = 1000 + np.arange(400)
    points = nominal_points([f"v{value:04d}" for value in np.concatenate([common, rare])])
    assert points.shape == (len(common) + len(rare), MAX_COORDINATES)
    assert (points[len(common) :] == points[-1]).all()
    assert len(np.unique(points, axis=0)) == MAX_COORDINATES


def test_each_kind_has_its_coordinates_in_the_order_of_names():
    frame = pl.DataFrame(
        {
            "pay": [1.0, 2.0, 3.0],
            "born": [date(2000, 1, 1), date(2000, 1, 3), date(2000, 1, 2)],
            "grade": ["low", "high", "middle"],
            "area": ["n", "s", "e"],
        }
    )
    columns = (
        Column("pay", Kind.CONTINUOUS),
        Column("born", Kind.DATE),
        Column("grade", Kind.ORDINAL, order=("low", "middle", "high")),
        Column("area", Kind.NOMINAL),
    )
    points = points_of(Table(frame, Schema(columns)), scale="deviation", nominal="frequency")
    unit = np.sqrt(1.5)
    assert points.shape == (3, 3 + 3)
    np.testing.assert_allclose(points[:, 3], np.array([-1, 1, 0]) * unit)  # born, after area's three
    np.testing.assert_allclose(points[:, 4], np.array([-1, 1, 0]) * unit)  # grade
    np.testing.assert_allclose(points[:, 5], np.array([-1, 0, 1]) * unit)  # pay
    np.testing.assert_allclose((points**2).mean(axis=0)[:3].sum(), 1.0)


def test_no_column_puts_all_records_at_one_point():
    table = Table(pl.DataFrame({"x": [1.0, 2.0]}), Schema((Column("x", Kind.CONTINUOUS),))).select([])
    assert points_of(table, scale="deviation", nominal="equal").shape[1] == 1
