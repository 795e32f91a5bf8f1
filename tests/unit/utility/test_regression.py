"""Coefficients and their intervals: against statsmodels, and overlaps by hand."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.utility.regression import CoefficientOverlap, least_squares, logistic, overlap
from toys import table_of

TARGET = (Kind.CONTINUOUS, Role.SENSITIVE)
CLASS = (Kind.NOMINAL, Role.SENSITIVE)


def score(original, protected, **settings):
    return CoefficientOverlap(**settings).score(Evidence(original, protected), Run(seed=1))


def linear(n, seed, *, slope=1.0):
    """y on two numbers and a category."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = 3 + slope * x - 2 * z + (group == "b") + rng.normal(size=n)
    return table_of({"x": x, "z": z, "group": group, "y": y}, y=TARGET, group=Kind.NOMINAL)


# ------------------------------------------------------------------------------------------------ overlaps


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 2), (0, 2), 1),
        ((0, 2), (1, 3), 1 / 2),
        ((0, 4), (1, 2), (1 / 4 + 1) / 2),
        ((0, 1), (2, 3), 0),
        ((0, 1), (1, 2), 0),
        ((0, 2), (1, 1), 1 / 2),  # a point inside: none of the first, all of the second
        ((0, 2), (3, 3), 0),
        ((1, 1), (1, 1), 1),
        ((0, 2), (np.nan, np.nan), 0),
    ],
)
def test_overlap_by_hand(first, second, expected):
    found = overlap(np.array([first], dtype=float), np.array([second], dtype=float))
    np.testing.assert_allclose(found, [expected])


# ------------------------------------------------------------------------------------------ against statsmodels


def a_design(n=80, seed=3):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    return design, design @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=n), rng.integers(1, 5, n).astype(float)


def test_least_squares_are_those_of_statsmodels():
    WLS = pytest.importorskip("statsmodels.regression.linear_model").WLS
    design, response, weights = a_design()
    theirs = WLS(response, design, weights=weights).fit()
    ours = least_squares(design, response, weights)
    np.testing.assert_allclose(ours.coefficients, theirs.params, rtol=1e-9)
    np.testing.assert_allclose(ours.errors, theirs.bse, rtol=1e-9)
    np.testing.assert_allclose(ours.intervals(0.9), theirs.conf_int(0.1), rtol=1e-9)


def test_logistic_regression_is_that_of_statsmodels():
    Logit = pytest.importorskip("statsmodels.discrete.discrete_model").Logit
    design, response, _ = a_design()
    answers = (response > 0.5).astype(float)
    theirs = Logit(answers, design).fit(disp=False, tol=1e-12)
    ours = logistic(design, answers, np.ones(len(answers)))
    np.testing.assert_allclose(ours.coefficients, theirs.params, rtol=1e-7)
    np.testing.assert_allclose(ours.errors, theirs.bse, rtol=1e-6)
    np.testing.assert_allclose(ours.intervals(0.95), theirs.conf_int(), rtol=1e-6)


def test_weights_of_a_logistic_regression_are_repeated_records():
    design, response, weights = a_design()
    answers = (response > 0.5).astype(float)
    repeated = np.repeat(np.arange(len(answers)), weights.astype(int))
    first = logistic(design, answers, weights)
    second = logistic(design[repeated], answers[repeated], np.ones(len(repeated)))
    np.testing.assert_allclose(first.coefficients, second.coefficients, rtol=1e-8)
    np.testing.assert_allclose(first.errors, second.errors, rtol=1e-8)


def test_what_cannot_be_told_apart_is_not_known():
    design, response, weights = a_design()
    doubled = np.column_stack([design, design[:, 1]])
    assert least_squares(doubled, response, weights).known.tolist() == [True, False, True, True, False]


def test_fewer_records_than_coefficients_tell_nothing():
    design, response, weights = a_design(n=4)
    assert not least_squares(design, response, weights).known.any()
    assert not logistic(design, (response > 0).astype(float), weights).known.any()


def test_classes_that_separate_are_not_known():
    design = np.column_stack([np.ones(20), np.arange(20.0)])
    assert not logistic(design, (design[:, 1] > 9.5).astype(float), np.ones(20)).known.all()


# ------------------------------------------------------------------------------------------------ the measure


def test_the_overlap_is_that_of_intervals_of_statsmodels():
    OLS = pytest.importorskip("statsmodels.regression.linear_model").OLS
    tables = linear(150, 1), linear(120, 2, slope=1.3)
    units = {name: (tables[0].frame[name].mean(), tables[0].frame[name].std(ddof=0)) for name in "xyz"}
    ends = []
    for table in tables:
        part = {name: (table.frame[name].to_numpy() - m) / s for name, (m, s) in units.items()}
        group = table.frame["group"].to_numpy()
        regressors = [
            np.ones(len(table)),
            group == "b",
            group == "c",
            part["x"],
            part["z"],
        ]  # "a" is most frequent
        ends.append(OLS(part["y"], np.column_stack(regressors).astype(float)).fit().conf_int())
    found = score(*tables)
    np.testing.assert_allclose(found.value, overlap(*ends).mean(), rtol=1e-8)
    assert found.details["coefficients"] == 5
    assert found.by_column == {"y": found.value}


def test_the_original_overlaps_with_itself():
    original = linear(60, 1)
    found = score(original, original)
    assert found.value == 1
    assert found.details["outside"] == 0


def test_two_classes_are_one_question_and_three_are_three():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    two = np.where(x + rng.normal(size=200) > 0, "yes", "no")
    three = np.where(x + rng.normal(size=200) > 1, "much", two)
    for answers, questions in ((two, 1), (three, 3)):
        original = table_of({"x": x, "y": answers}, y=CLASS)
        found = score(original, original)
        assert found.value == 1
        assert found.details["coefficients"] == 2 * questions


def test_a_slope_that_turned_shares_nothing():
    x = np.linspace(-1, 1, 50)
    noise = np.random.default_rng(1).normal(size=50) / 10
    original = table_of({"x": x, "y": x + noise}, y=TARGET)
    turned = table_of({"x": x, "y": noise - x}, y=TARGET)
    found = score(original, turned)
    np.testing.assert_allclose(found.value, 0.5, atol=0.01)  # the constant is the same, the slope is not
    assert found.details["outside"] == 0.5


def test_what_the_release_cannot_tell_counts_nothing():
    original = linear(100, 1)
    constant = original.with_values("x", pl.Series("x", np.zeros(100)))
    found = score(original, constant)
    kept = score(original.select(["group", "y", "z"]), original.select(["group", "y", "z"]))
    assert kept.value == 1
    assert found.value < 0.85


def test_ranges_are_read_at_their_middle():
    original = linear(100, 1)
    x = original.frame["x"].to_numpy()
    ranges = intervals(x - 0.25, x + 0.25, name="x")
    coarse = Table(original.frame.with_columns(ranges), original.schema)
    np.testing.assert_allclose(score(original, coarse).value, 1, rtol=1e-9)


def test_records_without_a_target_are_left_out():
    original = linear(100, 1)
    holes = original.frame["y"].to_list()
    more = original.take(np.concatenate([np.arange(100), np.arange(5)]))
    more = more.with_values("y", pl.Series("y", [*holes, *[None] * 5], dtype=pl.Float64))
    assert score(original, more).value == 1


def test_columns_can_be_named():
    original = linear(100, 1)
    found = score(original, original, target=("x",), predictors=("z",))
    assert found.by_column == {"x": 1.0}
    assert found.details["coefficients"] == 2


@pytest.mark.parametrize("values", [[1.0] * 30, [None] * 30])
def test_a_target_without_variety_is_not_estimable(values):
    series = pl.Series("y", values, dtype=pl.Float64)
    table = table_of({"x": np.arange(30.0), "y": series}, y=TARGET)
    assert score(table, table).status is Status.NOT_ESTIMABLE


def test_refuses_where_there_is_no_target():
    bare = table_of({"x": [1.0, 2.0], "y": [2.0, 1.0]})
    assert "`target`" in score(bare, bare).reason
    alone = table_of({"y": [2.0, 1.0]}, y=TARGET)
    assert "explains" in score(alone, alone).reason
    original = linear(30, 1)
    lost = score(original, original.select(["x", "z"]))
    assert lost.status is Status.NOT_ESTIMABLE
    assert lost.reason == "the release has no value of `y`"
