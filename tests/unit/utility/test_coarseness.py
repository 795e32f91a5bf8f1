"""Loss by generalisation: equations 2 to 4 of paper 003, worked out by hand and against a plain loop."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.utility.cells import CellsChanged
from sfumato.utility.coarseness import GeneralisationLoss
from toys import table_of


def evidence(original, released, *, sources=None, nodes=None, **facts):
    """Two tables of key columns; ``facts`` are kinds, or columns, by name."""
    first = table_of(original, **facts)
    second = Table(pl.DataFrame(released), first.schema, nodes=nodes or {})
    rows = np.arange(len(second)) if sources is None else np.array(sources)
    return Evidence(first, second, source_rows=rows)


def score_of(given, measure=None):
    return (measure or GeneralisationLoss()).score(given, Run(seed=1))


def ranges(*pairs, missing=None, name="x"):
    return {name: intervals([p[0] for p in pairs], [p[1] for p in pairs], missing=missing, name=name)}


def test_farthest_end_counts():
    """σ of 0, 10 is 5; 0 is 10 from the end of [0, 10], 10 is 4 from that of [6, 13]."""
    score = score_of(evidence({"x": [0, 10]}, ranges((0, 10), (6, 13))))
    assert score.by_record.tolist() == [10 / 5, 4 / 5]
    assert score.value == pytest.approx((2 + 0.8) / 2)
    assert score.by_column == {"x": pytest.approx(1.4)}


def test_columns_are_joined_as_distances_and_divided_by_their_number():
    given = evidence(
        {"x": [0, 10], "y": [0.0, 2.0]}, {"x": [5, 10], "y": [1.0, 2.0]}
    )  # exact: 5/5 and 1/1 away, then nothing
    assert score_of(given).by_record.tolist() == [pytest.approx(np.sqrt(2) / 2), 0]


def test_same_values_lose_nothing():
    given = evidence({"x": [0, 10], "c": ["a", "b"]}, {"x": [0, 10], "c": ["a", "b"]}, c=Kind.NOMINAL)
    assert score_of(given).value == 0


def test_wildcards_and_missing_values_cost_the_whole_domain():
    original = {"x": [0, 10, 10]}
    sigma = np.std([0, 10, 10])
    open_ = score_of(evidence(original, ranges((None, None), (10, 10), (10, 10))))
    assert open_.by_record[0] == pytest.approx(10 / sigma)
    gone = score_of(evidence(original, {"x": [None, 10, 10]}))
    assert gone.by_record[0] == pytest.approx(10 / sigma)
    column = Column("x", Kind.CONTINUOUS, Role.KEY, lower=-30, upper=20)
    declared = score_of(evidence(original, ranges((None, None), (10, 10), (10, None)), x=column))
    assert declared.by_record.tolist() == pytest.approx([30 / sigma, 0, 10 / sigma])


def test_missing_in_the_original_cannot_be_lost():
    score = score_of(evidence({"x": [0, None, 10]}, ranges((0, 0), (0, 9), (10, 10))))
    assert score.value == 0


def test_records_left_out_are_lost_and_copies_are_averaged():
    given = evidence({"x": [0, 10, 5]}, {"x": [0, 10, 0]}, sources=[0, 1, 1])
    sigma = np.std([0, 10, 5])
    score = score_of(given)
    assert score.by_record.tolist() == pytest.approx([0, 5 / sigma, 5 / sigma])
    assert score.value == pytest.approx((0 + 0 + 10 + 5) / sigma / 4)
    assert score.details["records_left_out"] == 1


def test_nominal_values_are_equal_or_not():
    """σ² of a binary column is p(1 − p), as if it were a number."""
    given = evidence({"c": ["a", "a", "b", "b"]}, {"c": ["a", "b", "b", None]}, c=Kind.NOMINAL)
    assert score_of(given).by_record.tolist() == [0, 2, 0, 2]
    as_numbers = evidence({"c": [0, 0, 1, 1]}, {"c": [0, 1, 1, 1]})
    assert score_of(as_numbers).by_record.tolist() == [0, 2, 0, 0]


def test_sets_of_nominal_values_and_coded_ranges():
    nodes = Nodes.of({"a": ["a"], "b": ["b"], "ab": ["a", "b"]}, leaves=["a", "b", "c"])
    given = evidence(
        {"c": ["a", "a", "b", "b"]},
        {"c": pl.Series(["a", "ab", "*", "b"], dtype=nodes.dtype)},
        nodes={"c": nodes}, c=Kind.NOMINAL,
    )  # fmt: skip
    assert score_of(given).by_record.tolist() == [0, 2, 2, 0]
    coded = evidence({"x": [1, 1, 2, 2]}, ranges((1, 1), (1, 2), (2, 2), (None, None)), x=Kind.NOMINAL)
    assert score_of(coded).by_record.tolist() == [0, 2, 0, 2]


def test_ordinal_values_count_by_position_and_ranges_by_value():
    order = Column("g", Kind.ORDINAL, Role.KEY, order=("low", "mid", "high"))
    nodes = Nodes.of({"low": ["low"], "upper": ["mid", "high"]}, leaves=["low", "mid", "high"])
    given = evidence(
        {"g": ["low", "mid", "high"]},
        {"g": pl.Series(["low", "upper", "upper"], dtype=nodes.dtype)},
        nodes={"g": nodes}, g=order,
    )  # fmt: skip
    sigma = np.std([0, 1, 2])
    assert score_of(given).by_record.tolist() == pytest.approx([0, 1 / sigma, 1 / sigma])
    exact = evidence({"g": ["low", "mid", "high"]}, {"g": ["high", "mid", "high"]}, g=order)
    assert score_of(exact).by_record.tolist() == pytest.approx([2 / sigma, 0, 0])
    quarter = evidence({"x": [1, 2, 4]}, ranges((1, 2), (1, 2), (4, 4)), x=Kind.ORDINAL)
    assert score_of(quarter).by_record.tolist() == pytest.approx([1 / np.std([1, 2, 4])] * 2 + [0])


def test_dates_count_in_their_unit():
    days = [date(2020, 1, 1), date(2020, 1, 11)]
    given = evidence(
        {"x": days}, {"x": intervals([days[0], days[1]], [days[1], days[1]], name="x")}, x=Kind.DATE
    )
    assert score_of(given).by_record.tolist() == [2, 0]


def test_keys_are_meant_unless_others_are_named():
    first = table_of({"x": [0, 10], "s": [0, 10]}, s=(Kind.CONTINUOUS, Role.SENSITIVE))
    second = Table(pl.DataFrame({"x": [0, 10], "s": [10, 0]}), first.schema)
    given = Evidence(first, second, source_rows=np.arange(2))
    assert score_of(given).value == 0
    assert score_of(given, GeneralisationLoss(about=("s",))).value == 2
    assert score_of(given, GeneralisationLoss(about=("x", "s"))).value == 1


def test_columns_that_do_not_vary_are_left_out():
    score = score_of(evidence({"x": [5, 5], "y": [0, 10]}, {"x": [5, 7], "y": [0, 0]}))
    assert set(score.by_column) == {"y"}
    assert score.details["columns_left_out"] == 1
    assert score_of(evidence({"x": [5, 5]}, {"x": [5, 7]})).status is Status.NOT_ESTIMABLE
    nothing = {"c": pl.Series([None, None], dtype=pl.String)}
    given = evidence({"y": [0, 10], **nothing}, {"y": [0, 0], **nothing}, c=Kind.NOMINAL)
    assert score_of(given).by_column == {"y": 1.0}


@pytest.mark.parametrize("unit", [1e-310, 1.0, 1e307])
def test_the_unit_does_not_count(unit):
    given = evidence({"x": [0.0, 10 * unit]}, {"x": [0.0, 5 * unit]})
    assert score_of(given).value == pytest.approx(0.5)


def test_times_of_day_may_be_labels():
    table = table_of({"x": pl.Series(["08:00", "09:30", "10:00"]).str.to_time("%H:%M")}, x=Kind.DATE)
    hidden = to_wildcard(table, "x", np.array([False, True, False]))
    given = Evidence(table, hidden, source_rows=np.arange(3))
    assert CellsChanged().score(given, Run(seed=1)).value == pytest.approx(1 / 3)


def test_refuses_what_it_cannot_compare():
    unmapped = Evidence(table_of({"x": [1, 2]}), table_of({"x": [1, 2]}))
    assert score_of(unmapped).status is Status.REFUSED
    coarse = Table(pl.DataFrame(ranges((1, 2))), Schema((Column("x", Kind.CONTINUOUS, Role.KEY),)))
    reason = score_of(Evidence(coarse, coarse, source_rows=np.arange(1))).reason
    assert "`x`" in reason


def test_against_a_plain_loop():
    rng = np.random.default_rng(4)
    values = rng.integers(0, 50, (40, 3))
    low, high = values - rng.integers(0, 9, values.shape), values + rng.integers(0, 9, values.shape)
    given = evidence(
        {name: values[:, j] for j, name in enumerate("xyz")},
        {name: intervals(low[:, j], high[:, j], name=name) for j, name in enumerate("xyz")},
    )
    total = 0.0
    for i in range(40):
        square = 0.0
        for j in range(3):
            above, below = high[i, j] - values[i, j], values[i, j] - low[i, j]
            end = high[i, j] if above > below else low[i, j]  # equation 4
            square += ((values[i, j] - end) / values[:, j].std()) ** 2
        total += np.sqrt(square)
    assert score_of(given).value == pytest.approx(total / (40 * 3), rel=1e-12)
