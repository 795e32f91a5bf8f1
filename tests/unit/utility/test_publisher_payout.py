"""The payout of a publisher: worked out by hand, its ends, and what it may not be used for."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.utility.publisher_payout import PublisherPayout


def table_of(**columns):
    kinds = dict.fromkeys(columns, Kind.NOMINAL)
    return Table(
        pl.DataFrame(columns, strict=False),
        Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())),
    )


def score_of(original, released, rows=None, *, resources=None, **parameters):
    rows = np.arange(len(original)) if rows is None else rows
    evidence = Evidence(original, Release.of(released, source_rows=rows), resources=resources or {})
    return PublisherPayout(**parameters).score(evidence, Run(seed=1))


def test_by_hand():
    table = table_of(town=["a", "a", "a", "b"])
    found = score_of(table, table, benefit=100, loss=50, gain=30, price=10)
    # Three have a chance of a third, which gains 10 and costs 10: only the fourth is attacked.
    assert found.value == pytest.approx(1 - 50 / 4 / 100)
    assert (found.details["attacked"], found.details["adversary_payout"]) == (1, 20)
    assert found.by_record.tolist() == [0, 0, 0, 20]
    assert found.details["payout"] == pytest.approx(400 - 50)
    cheap = score_of(table, table, benefit=100, loss=50, gain=30, price=9)
    assert cheap.value == pytest.approx(1 - 50 * (1 + 1) / 4 / 100)  # three thirds, and one


def test_who_is_left_out_is_neither_found_nor_of_benefit():
    table = table_of(town=["a", "a", "b", "b"])
    kept = table.take(np.arange(2))
    found = score_of(table, kept, np.arange(2), price=1e9)
    assert found.value == pytest.approx(0.5)
    everybody = to_wildcard(table, "town", np.ones(4, dtype=bool))
    assert score_of(table, everybody, price=1e9).value == pytest.approx(0)


def test_a_journalist_knows_the_population_only():
    table = table_of(town=["a", "b"])
    people = table_of(town=["a"] * 10 + ["b"] * 2)
    given = {"benefit": 100, "loss": 100, "gain": 100, "price": 20}
    found = score_of(
        table, table, resources={"people": people}, knows="population", population="people", **given
    )
    assert found.value == pytest.approx(1 - 0.5 / 2)  # b is found by half of the tries, a is not tried
    refused = score_of(table, table, knows="population", **given)
    assert refused.status is Status.NOT_ESTIMABLE
    assert "population" in refused.reason


def test_it_cannot_be_required():
    with pytest.raises(PlanError, match="cannot be required"):
        Requirement.parse("publisher-payout >= 0.5")


@st.composite
def releases(draw):
    n = draw(st.integers(2, 12))
    value = st.one_of(st.sampled_from("abc"), st.none())
    original = table_of(
        text=draw(st.lists(value, min_size=n, max_size=n)),
        number=draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)),
    )
    rows = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return original, to_wildcard(original, "number", rows)


@examples(100)
@given(pair=releases(), gain=st.floats(0, 1000), price=st.floats(0, 1000))
def test_an_adversary_who_pays_more_never_costs_the_publisher_more(pair, gain, price):
    found, dearer = (score_of(*pair, gain=gain, price=each) for each in (price, price + 1))
    if found.status is Status.NOT_ESTIMABLE:  # nothing varies
        return
    assert found.value <= dearer.value <= 1
    assert found.details["adversary_payout"] >= dearer.details["adversary_payout"] >= 0
