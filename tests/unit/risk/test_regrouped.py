"""The share of units that come back, whose records these are, and where the measure says nothing."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.intruder_view import regroupings_of
from sfumato.core.measure import Status
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.front import assess
from sfumato.risk.regrouping import RegroupedUnits

#: Five households of two, whose weights tell; the sixth and seventh share one weight; the eighth is alone.
HOUSEHOLD = np.repeat(np.arange(8), [2, 2, 2, 2, 2, 2, 2, 1])
WEIGHT = np.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 6.5, 7.5])[HOUSEHOLD]
COLUMNS = (
    Column("household", Kind.NOMINAL, Role.HOUSEHOLD),
    Column("sex", Kind.NOMINAL, Role.KEY),
    Column("weight", Kind.CONTINUOUS, Role.WEIGHT),
)


def original(*, role=Role.HOUSEHOLD, household=HOUSEHOLD):
    data = {"household": household, "sex": np.array(["f", "m"])[np.arange(15) % 2], "weight": WEIGHT}
    return Table(pl.DataFrame(data), Schema((Column("household", Kind.NOMINAL, role), *COLUMNS[1:])))


def evidence(table, rows=None, names=("sex", "weight"), **how):
    rows = np.arange(len(table)) if rows is None else np.asarray(rows, dtype=np.int64)
    released = table.take(np.where(rows < 0, 0, rows)).select(names)
    return Evidence(table, Release.of(released, source_rows=rows), **how)


def score(told):
    return RegroupedUnits().score(told, Run(seed=1))


@pytest.mark.parametrize("role", [Role.HOUSEHOLD, Role.PERSON, Role.GROUP, Role.IDENTIFIER])
def test_whose_weight_tells_comes_back(role):
    there = score(evidence(original(role=role)))
    assert there.value == 5 / 7
    assert there.status is Status.OK
    assert there.interval[0] < 5 / 7 < there.interval[1]
    assert there.by_record.tolist() == [1.0] * 10 + [0.0] * 5
    assert dict(there.details) == {
        "unit": "household", "columns": "weight", "how": "equal", "sets": 6, "right": 5, "regrouped": 5, "units": 7,
    }  # fmt: skip


def test_guessing_by_hand():
    """Five pairs and a set of four at random: of 105 pairs 7 are one household's; no three are."""
    assert score(evidence(original())).baseline == pytest.approx(5 * 7 / 105 / 7)


def test_records_that_are_left_out_do_not_count():
    rows = [0, 2, 4, 5, 6, 7, 8, 9, 14]  # of two households one record each
    there = score(evidence(original(), rows))
    assert there.value == 1
    assert there.details["units"] == 3
    assert there.by_record.tolist() == [0.0] * 4 + [1.0] * 6 + [0.0] * 5


def test_the_order_of_the_release_does_not_matter():
    rows = np.random.default_rng(1).permutation(15)
    there = score(evidence(original(), rows))
    assert there.value == 5 / 7
    assert there.by_record.tolist() == [1.0] * 10 + [0.0] * 5


def test_records_of_nobody_hide():
    rows = [*range(15), *[-1] * 2]
    told = evidence(original(), rows)
    assert told.protected.frame["weight"][15] == 1.5  # like the first household's
    assert score(told).details["regrouped"] == 4


def test_nothing_comes_back_without_the_weight():
    there = score(evidence(original(), names=("sex",)))
    assert (there.value, there.status) == (0, Status.OK)
    assert there.interval[0] == 0 < there.interval[1]
    assert dict(there.details) == {"units": 7}
    assert not there.by_record.any()
    assert Requirement.parse("regrouped <= 0").met_by(there)


@pytest.mark.parametrize("rows", [[0], [0, 2, 4], []])
def test_units_with_one_released_record(rows):
    there = score(evidence(original(), rows))
    assert (there.value, there.status, there.interval) == (0, Status.OK, None)
    assert there.details["units"] == 0


def test_numbers_that_no_two_records_share():
    there = score(evidence(original(household=np.arange(15))))
    assert (there.value, there.status, dict(there.details)) == (0, Status.OK, {"units": 0})


def test_where_nothing_comes_back_the_units_are_those_of_the_column_that_has_most():
    """Three firms and seven households of several records; neither sex nor a lost weight tells of them."""
    table = original()
    schema = Schema((Column("firm", Kind.NOMINAL, Role.GROUP), *table.schema.columns))
    both = Table(table.frame.insert_column(0, pl.Series("firm", np.arange(15) % 3)), schema)
    there = score(evidence(both, names=("sex",)))
    assert (there.value, there.details["units"]) == (0, 7)
    assert there.interval[1] == pytest.approx(1.959964**2 / (7 + 1.959964**2))  # Wilson's of none of seven


def test_it_looks_at_what_is_released():
    assert RegroupedUnits().columns(evidence(original())) == ("sex", "weight")
    assert RegroupedUnits().columns(Evidence(original())) == ("household", "sex", "weight")


def test_the_worst_column_of_units_counts():
    table = original()
    firm = np.arange(15) % 3
    schema = Schema((Column("firm", Kind.NOMINAL, Role.GROUP), *table.schema.columns))
    both = Table(table.frame.insert_column(0, pl.Series("firm", firm)), schema)
    there = score(evidence(both))
    assert (there.value, there.details["unit"]) == (5 / 7, "household")


def test_where_it_says_nothing():
    table = original()
    bare = table.select(["sex", "weight"])
    refused = [
        (Evidence(table), "must be given a release"),
        (evidence(bare), r"needs a column that tells which .*role person, household"),
        (Evidence(table, Release.of(bare)), "records that do not map"),
        (Evidence(table, Release({"release": bare}, Origin.synthetic())), "synthetic records"),
    ]
    for told, reason in refused:
        there = score(told)
        assert there.status is Status.REFUSED
        assert re.search(reason, there.reason), there.reason
        assert regroupings_of(told) == ()


def test_a_method_that_judges_its_own_work_is_not_told():
    told = evidence(original(), sampling=PersonSampling(ignore_person_links=True))
    assert regroupings_of(told) == ()
    plain = evidence(original())
    assert regroupings_of(plain) is regroupings_of(plain)


def test_it_is_shown_unasked_only_where_records_belong_together():
    table = original()
    assert "regrouped" in assess(table, Release.unchanged(table))
    assert RegroupedUnits().concerns(table)
    for other in (table.select(["sex", "weight"]), original(household=np.arange(15), role=Role.IDENTIFIER)):
        assert not RegroupedUnits().concerns(other)
        assert "regrouped" not in assess(other, Release.unchanged(other))
    assert assess(table.select(["sex"]), measures=["regrouped"])["regrouped"].status is Status.REFUSED


def test_a_sentence_for_a_record():
    assert (
        RegroupedUnits().sentence(1.0)
        == "an intruder joins the records of its person, household or group (1: yes): 1"
    )
