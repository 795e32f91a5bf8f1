"""IL1, IL1s and squares lost against hand-worked tables and against the loss of microaggregation."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from pairs import beside, numeric, score, table
from sfumato import kernels
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Kind
from sfumato.errors import DataError
from sfumato.utility.losses import Il1, Il1s, SseRatio

ROOT2 = np.sqrt(2.0)
LOSSES = [Il1s, Il1, SseRatio]
READINGS = ["midpoint", "worst", "expected"]


def test_il1s_by_hand():
    """Changes 1, 0, 2 over a deviation of 2 (values 1, 3, 5): (1 + 0 + 2) / 3 / (√2 · 2)."""
    found = score(Il1s(), table({"x": [1.0, 3.0, 5.0]}), table({"x": [2.0, 3.0, 3.0]}))
    assert found.value == pytest.approx(1 / (2 * ROOT2))
    np.testing.assert_allclose(found.by_record, np.array([1, 0, 2]) / (2 * ROOT2))


def test_il1_by_hand_with_a_zero():
    """1/2, 0/4, and a zero that became 9: 1."""
    assert score(Il1(), table({"x": [2.0, -4.0, 0.0]}), table({"x": [3.0, -4.0, 9.0]})).value == 0.5


def test_squares_by_hand():
    """Squares 1, 1, 0, 9 of a sum of squares of 20 around the mean 4."""
    found = score(SseRatio(), table({"x": [1.0, 3.0, 5.0, 7.0]}), table({"x": [2.0, 2.0, 5.0, 10.0]}))
    assert found.value == pytest.approx(11 / 20)


@pytest.mark.parametrize("cls", LOSSES)
def test_the_number_of_records_does_not_matter(cls):
    """sdcMicro's IL1 is a sum: twice the records, twice the loss. A mean is not."""
    rng = np.random.default_rng(1)
    x = rng.lognormal(size=(40, 3))
    y = x + rng.normal(size=x.shape)
    one = score(cls(), numeric(x), numeric(y)).value
    many = score(cls(), numeric(np.vstack([x] * 50)), numeric(np.vstack([y] * 50))).value
    assert many == pytest.approx(one, rel=0.02)  # deviations are over n − 1


def test_zeros_are_not_dropped():
    """Half of the values are 0, and only these change."""
    x, y = np.array([0.0, 0.0, 5.0, 5.0]), np.array([1.0, 1.0, 5.0, 5.0])
    assert score(Il1(), table({"x": x}), table({"x": y})).value == 0.5
    assert score(Il1s(), table({"x": x}), table({"x": y})).value == pytest.approx(
        0.5 / (ROOT2 * x.std(ddof=1))
    )


@pytest.mark.parametrize("k", [2, 3, 7])
def test_squares_of_group_means_are_the_loss_of_microaggregation(k):
    rng = np.random.default_rng(k)
    points = rng.normal(size=(60, 3))
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    groups = kernels.groups.mdav(points, k)
    released = kernels.groups.group_means(points, groups)[groups]
    expected = kernels.groups.centres.sse_ratio(points, groups)
    assert score(SseRatio(), numeric(points), numeric(released)).value == pytest.approx(expected, rel=1e-12)


def test_units_do_not_matter():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 30, 2))
    for cls in (Il1s, SseRatio):
        plain = score(cls(), numeric(x), numeric(y)).value
        for unit in (np.array([1e-200, 1e200]), np.array([-1e6, 3.0])):
            assert score(cls(), numeric(x * unit), numeric(y * unit)).value == pytest.approx(plain, rel=1e-12)


def test_large_offsets_cost_no_digits():
    """Squares computed as E[x²] − E[x]² would be noise here."""
    x, y = np.array([1.0, 3.0, 5.0, 7.0]), np.array([2.0, 2.0, 5.0, 10.0])
    found = score(SseRatio(), table({"x": x + 1e8}), table({"x": y + 1e8}))
    assert found.value == pytest.approx(11 / 20, rel=1e-9)


# Generalised values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reading", "distance"), [("midpoint", 1.0), ("worst", 4.0), ("expected", 13 / 7)])
def test_a_range_is_read_as_asked(reading, distance):
    """4 became [2; 8], whole numbers: middle 5; farthest 8; on average (2 + 1 + 0 + 1 + 2 + 3 + 4) / 7 away."""
    x, y = table({"x": [4, 0, 10]}), table({"x": intervals([2, 0, 10], [8, 0, 10])})
    found = score(Il1s(generalised=reading), x, y)
    assert found.by_record[0] == pytest.approx(distance / (ROOT2 * np.std([4, 0, 10], ddof=1)))
    assert found.details["generalised_cells"] == 1


def test_a_range_of_real_numbers_is_filled_with_all_of_them():
    """4 in [2; 8]: ((4−2)² + (8−4)²) / (2 · 6) = 5/3 from the truth on average; square (4−5)² + 6²/12 = 4."""
    x, y = table({"x": [4.0, 0.0, 10.0]}), table({"x": intervals([2.0, 0.0, 10.0], [8.0, 0.0, 10.0])})
    values = np.array([4.0, 0.0, 10.0])
    found = score(Il1s(generalised="expected"), x, y)
    assert found.by_record[0] == pytest.approx(5 / 3 / (ROOT2 * values.std(ddof=1)))
    found = score(SseRatio(generalised="expected"), x, y)
    assert found.by_record[0] == pytest.approx(4 / values.var())


def test_a_range_that_misses_the_truth():
    """1 became [4; 8]: at least 3 away, at most 7, and 5 on average."""
    x, y = table({"x": [1.0, 9.0]}), table({"x": intervals([4.0, 9.0], [8.0, 9.0])})
    scale = ROOT2 * np.std([1, 9], ddof=1)
    for reading, distance in (("midpoint", 5), ("worst", 7), ("expected", 5)):
        assert score(Il1s(generalised=reading), x, y).by_record[0] == pytest.approx(distance / scale)


def test_open_ends_reach_as_far_as_the_column():
    """70 became 65 and above, in ages up to 90: farthest 20 away; the middle is 77.5."""
    x, y = table({"age": [20, 70, 90]}), table({"age": intervals([20, 65, 90], [20, None, 90])})
    scale = ROOT2 * np.std([20, 70, 90], ddof=1)
    assert score(Il1s(generalised="worst"), x, y).by_record[1] == pytest.approx(20 / scale)
    assert score(Il1s(), x, y).by_record[1] == pytest.approx(7.5 / scale)


def test_a_declared_range_bounds_the_worst_case():
    x = table({"age": [20.0, 70.0, None]}, age={"lower": 0, "upper": 100})
    y = table({"age": [20.0, None, None]}, age={"lower": 0, "upper": 100})
    assert score(Il1s(generalised="worst"), x, y).by_record[1] == pytest.approx(
        70 / (ROOT2 * np.std([20, 70], ddof=1))
    )


@pytest.mark.parametrize("reading", READINGS)
def test_labels_of_numbers(reading):
    """1 became {1, 2, 6}: middle 3.5, farthest 6, mean distance (0 + 1 + 5) / 3 and square (0 + 1 + 25) / 3."""
    nodes = Nodes.of({"few": ["1", "2", "6"], "9": ["9"]}, leaves=["1", "2", "6", "9"])
    x = table({"x": [1, 9]})
    y = table({"x": pl.Series(["few", "9"], dtype=nodes.dtype)}, nodes={"x": nodes})
    distance = {"midpoint": 2.5, "worst": 5.0, "expected": 2.0}[reading]
    square = {"midpoint": 6.25, "worst": 25.0, "expected": 26 / 3}[reading]
    assert score(Il1s(generalised=reading), x, y).by_record.tolist() == pytest.approx(
        [distance / (ROOT2 * np.std([1, 9], ddof=1)), 0.0]
    )
    assert score(SseRatio(generalised=reading), x, y).by_record.tolist() == pytest.approx([square / 16, 0.0])


def test_words_are_corners():
    """Shares 1/2, 1/4, 1/4: variance 1 − 3/8 = 5/8. One of four words changed: 2 of squares, and √2 of distance."""
    x = table({"x": ["a", "a", "b", "c"]}, Kind.NOMINAL)
    y = table({"x": ["a", "a", "b", "z"]}, Kind.NOMINAL)
    assert score(SseRatio(), x, y).value == pytest.approx(2 / 4 / (5 / 8))
    assert score(Il1s(), x, y).value == pytest.approx(1 / 4 / np.sqrt(5 / 8 * 4 / 3))


def test_two_words_are_0_and_1():
    rng = np.random.default_rng(8)
    x, y = rng.integers(0, 2, (2, 50))
    words = np.array(["no", "yes"])
    for cls in (Il1s, SseRatio):
        as_words = score(cls(), table({"x": words[x]}, Kind.NOMINAL), table({"x": words[y]}, Kind.NOMINAL))
        as_numbers = score(cls(), table({"x": x}), table({"x": y}))
        assert as_words.value == pytest.approx(as_numbers.value, rel=1e-12)


@pytest.mark.parametrize(
    ("reading", "square"), [("midpoint", 1 - 2 / 2 + 1 / 2), ("worst", 2.0), ("expected", 2 * (1 - 1 / 2))]
)
def test_labels_of_words(reading, square):
    """One of four words became a set of two that holds it."""
    nodes = Nodes.of({"a": ["a"], "b": ["b"], "b or c": ["b", "c"]}, leaves=["a", "b", "c"])
    x = table({"x": ["a", "a", "b", "c"]}, Kind.NOMINAL)
    y = table(
        {"x": pl.Series(["a", "a", "b", "b or c"], dtype=nodes.dtype)}, Kind.NOMINAL, nodes={"x": nodes}
    )
    found = score(SseRatio(generalised=reading), x, y)
    assert found.by_record[:3].tolist() == [0.0, 0.0, 0.0]
    assert found.by_record[3] == pytest.approx(square / (5 / 8))


def test_ranges_of_codes_are_sets_of_those_there_are():
    """Postcodes 10, 20, 30: the range 15–30 holds two of them."""
    x = table({"x": [10, 20, 30]}, Kind.NOMINAL)
    y = table({"x": intervals([10, 15, 30], [10, 30, 30])}, Kind.NOMINAL)
    found = score(SseRatio(), x, y)
    assert found.by_record.tolist() == pytest.approx([0.0, 0.5 / (1 - 1 / 3), 0.0])


def test_ordinal_values_and_dates():
    words = {"x": {"order": ("low", "middle", "high")}}
    x = table({"x": ["low", "high", "low"]}, Kind.ORDINAL, **words)
    y = table({"x": ["low", "middle", "low"]}, Kind.ORDINAL, **words)
    assert score(SseRatio(), x, y).value == pytest.approx(1 / 3 / np.var([0, 2, 0]))
    days = [date(2020, 1, 1), date(2020, 1, 11)]
    x, y = (
        table({"d": days}, Kind.DATE),
        table({"d": intervals(days, [date(2020, 1, 5), days[1]])}, Kind.DATE),
    )
    assert score(SseRatio(), x, y).by_record.tolist() == pytest.approx([4 / 25, 0.0])


# Missing, suppressed, left out -------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Il1s, SseRatio])
@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.NOMINAL])
@pytest.mark.parametrize("reading", READINGS)
def test_suppressing_all_is_reading_the_whole_column(cls, kind, reading):
    values = np.array([1.0, 1.0, 2.0, 6.0]) if kind is Kind.CONTINUOUS else np.array(list("aabc"))
    x, y = (
        table({"x": values}, kind),
        table({"x": pl.Series([None] * 4, dtype=pl.Series(values).dtype)}, kind),
    )
    found = score(cls(generalised=reading), x, y)
    assert found.details["suppressed_cells"] == 4
    if cls is SseRatio:
        expected = {"midpoint": 1.0, "expected": 2.0}.get(reading)
    elif kind is Kind.CONTINUOUS:
        apart = np.abs(values[:, None] - values[None, :])
        ends = np.maximum(values - 1, 6 - values)
        wanted = {"midpoint": np.abs(values - values.mean()), "worst": ends, "expected": apart}[reading]
        expected = wanted.mean() / (ROOT2 * values.std(ddof=1))
    else:
        expected = {"expected": 5 / 8 / np.sqrt(5 / 8 * 4 / 3), "worst": 1 / np.sqrt(5 / 8 * 4 / 3)}.get(
            reading
        )
    if expected is not None:
        assert found.value == pytest.approx(expected)
    else:
        assert found.value > 0


def test_the_wildcard_is_a_suppressed_value():
    x, gone = table({"x": [1.0, 2.0, 6.0]}), table({"x": [1.0, None, 6.0]})
    wild = table({"x": intervals([1.0, None, 6.0], [1.0, None, 6.0])})
    nodes = Nodes.of({"1": ["1"], "6": ["6"]}, leaves=["1", "2", "6"])
    label = table({"x": pl.Series(["1", "*", "6"], dtype=nodes.dtype)}, nodes={"x": nodes})
    for reading in READINGS:
        values = [score(Il1s(generalised=reading), x, y).value for y in (gone, wild, label)]
        assert values == pytest.approx([values[0]] * 3)
        assert values[0] > 0


def test_a_value_missing_in_the_original_does_not_count():
    x, y = table({"x": [1.0, None, 3.0]}), table({"x": [1.0, 7.0, 3.0]})
    found = score(SseRatio(), x, y)
    assert found.value == 0
    assert np.isnan(found.by_record[1])


def test_a_record_that_was_left_out_is_lost():
    x = table({"x": [1.0, 2.0, 6.0]})
    left, gone = table({"x": [1.0, 6.0]}), table({"x": [1.0, None, 6.0]})
    for cls in LOSSES:
        found = score(cls(), x, left, rows=[0, 2])
        assert found.value == pytest.approx(score(cls(), x, gone).value)
        assert found.details["records_left_out"] == 1


def test_copies_of_a_record_are_averaged_by_record():
    x, y = table({"x": [0.0, 4.0]}), table({"x": [0.0, 4.0, 2.0]})
    found = score(SseRatio(), x, y, rows=[0, 1, 1])
    assert found.by_record.tolist() == pytest.approx([0.0, 4 / 4 / 2])


def test_weights_count():
    x, y = table({"x": [0.0, 2.0, 4.0], "weight": [1.0, 1.0, 2.0]}), table({"x": [0.0, 2.0, 3.0]})
    values, weights = np.array([0.0, 2.0, 4.0]), np.array([1.0, 1.0, 2.0])
    mean = np.average(values, weights=weights)
    found = score(SseRatio(), x, y)
    assert found.value == pytest.approx(2 * 1 / (weights * (values - mean) ** 2).sum())
    assert found.details["weighted"] == "yes"


# Refusals and edges ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", LOSSES)
def test_says_why_not(cls):
    x = table({"x": [1.0, 2.0]})
    assert "records that do not map" in score(cls(), x, x, rows=None).reason
    coarse = table({"x": intervals([1.0, 2.0], [1.0, 5.0])})
    refused = score(cls(), coarse, coarse)
    assert refused.status is Status.REFUSED
    assert "exact values in the original" in refused.reason
    nothing = table({"x": pl.Series([None, None], dtype=pl.Float64)})
    assert score(cls(), nothing, nothing).status is Status.NOT_ESTIMABLE


def test_a_constant_that_changed_is_a_loss():
    """It has no spread: the largest change is the unit."""
    x, y = table({"x": [5.0, 5.0, 5.0]}), table({"x": [5.0, 5.0, 8.0]})
    assert score(SseRatio(), x, x).value == 0
    assert score(SseRatio(), x, y).value == pytest.approx(1 / 3)
    assert score(Il1s(), x, y).value == pytest.approx(1 / 3 / ROOT2)
    assert score(Il1s(), x, y).details["columns_without_variation"] == 1


def test_labels_that_are_no_numbers_are_an_error_without_their_text():
    nodes = Nodes.of({"few": ["1", "Zanzibarquux"]}, leaves=["1", "Zanzibarquux"])
    x, y = (
        table({"x": [1, 1]}),
        table({"x": pl.Series(["few", "few"], dtype=nodes.dtype)}, nodes={"x": nodes}),
    )
    with pytest.raises(DataError, match="must be values of its kind, got: 1 ") as error:
        Il1s().score(beside(x, y), Run(seed=1))
    assert "Zanzibarquux" not in str(error.value)


def test_each_column_counts_alike():
    x = table({"a": [0.0, 2.0], "b": [0.0, 2000.0]})
    y = table({"a": [1.0, 1.0], "b": [0.0, 2000.0]})
    found = score(SseRatio(), x, y)
    assert found.by_column == {"a": pytest.approx(1.0), "b": 0.0}
    assert found.value == pytest.approx(0.5)
