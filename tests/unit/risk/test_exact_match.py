"""Exact matches: worked out by hand."""

from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.exact_match import ExactMatch

SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("home", Kind.NOMINAL, Role.HOUSEHOLD),
    )
)


def table(ages, sexes, homes=None):
    cells = {
        "age": pl.Series(ages, dtype=pl.Float64),
        "sex": pl.Series(sexes, dtype=pl.String),
        "home": homes,
    }
    names = [name for name in cells if cells[name] is not None]
    schema = Schema(tuple(SCHEMA[name] for name in names))
    return Table(pl.DataFrame({name: cells[name] for name in names}), schema)


def score_of(original, released, rows=None):
    rows = np.arange(len(released)) if rows is None else rows
    return ExactMatch().score(Evidence(original, Release.of(released, source_rows=rows)), Run(seed=1))


def test_who_is_left_as_they_are_and_alone_is_found_whatever_the_order():
    original = table([30, 41, 41, 77], list("ffmm"))
    released = table([77, 40, 41, 41], list("mfmf"))
    score = score_of(original, released, rows=np.array([3, 0, 2, 1]))
    assert score.by_record.tolist() == [0, 1, 1, 1]
    assert score.value == 0.75
    assert score.details["covered"] == 3


def test_two_who_are_alike_hide_each_other_and_noise_hides_all_that_rounding_does_not_undo():
    original = table([30, 30, 50], list("ffm"))
    assert score_of(original, original).by_record.tolist() == [0, 0, 1]
    assert score_of(original, table([30.6, 29.2, 50.7], list("ffm"))).value == 0
    assert score_of(original, table([30.1, 29.7, 50.2], list("ffm"))).by_record.tolist() == [0, 0, 1]


def test_another_at_the_true_place_hides_who_moved():
    assert score_of(table([30, 40], list("ff")), table([40, 30], list("ff"))).value == 0


def test_a_suppressed_cell_hides_only_its_like():
    original = table([30, 40, 50], list("fff"))
    assert score_of(original, table([30, 40, None], list("fff"))).value == 1  # nobody else can be the third
    assert score_of(original, table([30, None, None], list("fff"))).by_record.tolist() == [1, 0, 0]


def test_households_that_stay_are_found_by_their_members_together():
    ages, sexes = [30, 32, 30, 33, 32, 33], list("fmfmmm")
    original = table(ages, sexes, list("aabbcc"))
    assert score_of(original, table(ages, sexes)).value == 0  # everyone has a double
    assert score_of(original, original).value == 1
    doubled = table([30, 32, 30, 32], list("fmfm"), list("aabb"))
    assert score_of(doubled, doubled).value == 0


def test_a_household_of_which_one_member_is_left_as_they_are_is_not_found_by_the_others():
    """Of the first household both stay as they are, of the second one, of the third nobody."""
    ages, sexes, homes = [30, 32, 30, 33, 32, 33], list("fmfmmm"), list("aabbcc")
    released = table([30, 32, 30, 60, 62, 63], sexes, homes)
    score = score_of(table(ages, sexes, homes), released)
    assert score.by_record.tolist() == [1, 1, 0, 0, 0, 0]
    assert score.details["found"] == 2


def test_without_anybody_there_is_no_number():
    original = table([30, 40], list("ff"))
    nobody = original.take(np.arange(0))
    assert score_of(original, nobody, rows=np.arange(0)).status is Status.NOT_ESTIMABLE
    assert score_of(nobody, original, rows=np.array([-1, -1])).status is Status.NOT_ESTIMABLE


def test_an_intruder_who_holds_half_of_the_records_leaves_no_trace_in_what_another_finds():
    original = table([30, 41, 41, 77, 12], list("ffmmf"))
    released = table([30, 41, 60, 77, 13], list("ffmmf"))
    evidence = Evidence(original, Release.record_by_record(released))
    whole = ExactMatch().score(evidence, Run(seed=1))
    fresh = Evidence(original, Release.record_by_record(released))
    for share in (0.4, 0.8):
        ExactMatch().score(replace(fresh, scenario=Scenario(records=share)), Run(seed=1))
    again = ExactMatch().score(fresh, Run(seed=1))
    assert (again.value, again.details) == (whole.value, whole.details)
    assert whole.details["covered"] == 3


def test_where_nobody_knows_who_is_who_it_refuses():
    original = table([30, 40], list("ff"))
    score = ExactMatch().score(Evidence(original, Release.of(original)), Run(seed=1))
    assert score.status is Status.REFUSED
