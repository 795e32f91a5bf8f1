"""Attribute disclosure: who is in a class that gives a value or range away, worked out by hand."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.disclosure import AttributeDisclosure
from toys import table_of

KINDS = {
    "ward": Kind.NOMINAL,
    "ill": (Kind.NOMINAL, Role.SENSITIVE),
    "charge": (Kind.CONTINUOUS, Role.SENSITIVE),
}


def wards(**columns):
    return table_of(columns, **{name: KINDS[name] for name in columns})


def score_of(table, measure, **evidence):
    return measure.score(Evidence(table, **evidence), Run(seed=1))


CHARGES = wards(ward=[1, 1, 2, 2, 3, 3], charge=[300, 250, 400, 9, 8, 7])


def test_share_of_those_with_a_value_in_the_range():
    """Three are above 100; the two of ward 1 are given away, the one of ward 2 is not."""
    score = score_of(CHARGES, AttributeDisclosure(low=100))
    assert score.value == pytest.approx(2 / 3)
    assert score.by_record.tolist() == [1, 1, 0, 0, 0, 0]
    assert score.details["records_concerned"] == 3
    assert score.details["records_disclosed"] == 2


def test_both_ends_are_included():
    assert score_of(CHARGES, AttributeDisclosure(low=250, high=300)).value == 1
    assert score_of(CHARGES, AttributeDisclosure(low=250.5, high=300)).value == 0
    assert score_of(CHARGES, AttributeDisclosure(high=8)).value == 1
    assert score_of(CHARGES, AttributeDisclosure(high=9)).value == pytest.approx(2 / 3)


def test_one_value_or_several():
    table = wards(ward=[1, 1, 2, 2, 3], ill=["flu", "gout", "gout", "gout", "flu"])
    assert score_of(table, AttributeDisclosure(value="gout")).value == pytest.approx(2 / 3)
    assert score_of(table, AttributeDisclosure(value="flu")).value == pytest.approx(1 / 2)
    assert score_of(table, AttributeDisclosure(value="flu|gout")).value == 1


def test_without_a_value_every_value_counts():
    """In wards 2 and 3 all have the same: three of five records."""
    table = wards(ward=[1, 1, 2, 2, 3], ill=["flu", "gout", "gout", "gout", "flu"])
    score = score_of(table, AttributeDisclosure())
    assert score.value == pytest.approx(3 / 5)
    assert score.by_record.tolist() == [0, 0, 1, 1, 1]
    both = wards(ward=[1, 1, 2, 2, 3], ill=["flu", "gout", "gout", "gout", "flu"], charge=[1, 1, 2, 3, 4])
    score = score_of(both, AttributeDisclosure())
    assert dict(score.by_column) == {"charge": pytest.approx(3 / 5), "ill": pytest.approx(3 / 5)}
    assert score.by_record.tolist() == [1, 1, 1, 1, 1]


def test_whoever_is_alone_is_disclosed():
    table = wards(ward=[1, 2, 3], charge=[300, 250, 9])
    assert score_of(table, AttributeDisclosure(low=100)).value == 1


def test_a_range_must_lie_inside():
    table = Table(
        pl.DataFrame(
            [pl.Series("ward", [1, 1, 2]), intervals([100, 150, 50], [200, 160, 300], name="charge")]
        ),
        Schema((Column("ward", Kind.NOMINAL, Role.KEY), Column("charge", Kind.CONTINUOUS, Role.SENSITIVE))),
    )
    score = score_of(table, AttributeDisclosure(low=100))
    assert score.by_record.tolist() == [1, 1, 0]
    assert score.value == 1
    assert score_of(table, AttributeDisclosure(low=100, high=180)).by_record.tolist() == [0, 0, 0]
    assert score_of(table, AttributeDisclosure(value="100")).status is Status.REFUSED


def test_a_set_must_lie_inside():
    nodes = Nodes.of(
        {"flu": ["flu"], "lung": ["lung"], "skin": ["skin"], "cancer": ["lung", "skin"]},
        leaves=["flu", "lung", "skin"],
    )
    table = Table(
        pl.DataFrame(
            {"ward": [1, 1, 2, 2], "ill": pl.Series(["cancer", "lung", "*", "skin"], dtype=nodes.dtype)}
        ),
        Schema((Column("ward", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))),
        nodes={"ill": nodes},
    )
    assert score_of(table, AttributeDisclosure(value="lung|skin")).by_record.tolist() == [1, 1, 0, 0]
    assert score_of(table, AttributeDisclosure(value="lung")).value == 0


@pytest.mark.parametrize(("policy", "value"), [("category", 0.0), ("any", 0.0), ("worst", 1.0)])
def test_missing_sensitive_value(policy, value):
    table = wards(ward=[1, 1], charge=[300, None])
    score = score_of(table, AttributeDisclosure(low=100, missing=policy))
    assert score.value == value
    assert score.details["records_concerned"] == 1
    assert score_of(table, AttributeDisclosure(missing=policy)).value == value


@pytest.mark.parametrize(
    ("policy", "expected"), [("category", [1, 1, 0]), ("any", [1, 0, 0]), ("worst", [1, 1, 0])]
)
def test_missing_key(policy, expected):
    """The one without a ward may be in either: then ward 2 does not give them away, but ward 1 does its own."""
    table = wards(ward=[1, None, 2], charge=[300, 300, 9])
    score = score_of(table, AttributeDisclosure(low=100, missing=policy))
    assert score.by_record.tolist() == expected


def test_persons_are_counted():
    table = table_of(
        {"ward": [1, 1, 2, 2, 3], "charge": [300, 300, 300, 9, 300], "who": ["a", "b", "a", "c", "c"]},
        ward=Kind.NOMINAL, charge=(Kind.CONTINUOUS, Role.SENSITIVE), who=(Kind.NOMINAL, Role.PERSON),
    )  # fmt: skip
    score = score_of(table, AttributeDisclosure(low=100))
    assert score.by_record.tolist() == [1, 1, 0, 0, 1]
    assert score.value == 1  # a, b and c each have a record that gives them away


def test_release_is_what_is_looked_at():
    released = wards(ward=[0, 0, 0, 0, 0, 0], charge=[300, 250, 400, 9, 8, 7])
    score = score_of(
        CHARGES, AttributeDisclosure(low=100), release=Release.of(released, source_rows=np.arange(6))
    )
    assert score.value == 0
    one = score_of(CHARGES, AttributeDisclosure(low=100), scenario=Scenario(columns=("ward",)))
    assert one.value == pytest.approx(2 / 3)


def test_what_cannot_be_told_is_refused():
    both = wards(ward=[1], ill=["flu"], charge=[3])
    for measure, word in (
        (AttributeDisclosure(low=1, value="flu"), "both"),
        (AttributeDisclosure(low=3, high=1, sensitive=("charge",)), "`low`"),
        (AttributeDisclosure(low=1), "`sensitive`"),
        (AttributeDisclosure(low=1, sensitive=("ill",)), "`ill`"),
    ):
        score = score_of(both, measure)
        assert score.status is Status.REFUSED
        assert word in score.reason
    assert score_of(both, AttributeDisclosure(low=1, sensitive=("charge",))).value == 1


def test_nobody_has_it():
    assert score_of(CHARGES, AttributeDisclosure(low=1000)).status is Status.NOT_ESTIMABLE
    assert score_of(CHARGES.take(np.arange(0)), AttributeDisclosure(low=1)).status is Status.NOT_ESTIMABLE


def test_who_is_suppressed_where_no_value_is_left_has_none_for_sure():
    nodes = Nodes.of({}, leaves=[])
    table = Table(
        pl.DataFrame({"ward": [1, 1], "ill": pl.Series(["*", None], dtype=nodes.dtype)}),
        Schema((Column("ward", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))),
        nodes={"ill": nodes},
    )
    assert score_of(table, AttributeDisclosure(value="lung")).status is Status.NOT_ESTIMABLE


def test_ordinal_numbers_have_ranges_too():
    table = table_of(
        {"ward": [1, 1], "grade": [4, 5]}, ward=Kind.NOMINAL, grade=(Kind.ORDINAL, Role.SENSITIVE)
    )
    assert score_of(table, AttributeDisclosure(low=4)).value == 1
    assert score_of(table, AttributeDisclosure(low=5)).value == 0
