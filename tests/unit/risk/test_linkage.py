"""Local linkage by hand: the paper's examples, ties, persons, who is in the file, attributes learnt."""

import numpy as np
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind, Role
from sfumato.risk.linkage import AttributeLinkage, DistanceLinkage
from toys import table_of

UNIT = (Kind.NOMINAL, Role.PERSON)


def evidence(original, released, *, sources="same", scenario=None, resources=None, **kinds):
    second = table_of(released, **{name: kind for name, kind in kinds.items() if name in released})
    rows = np.arange(len(second)) if isinstance(sources, str) else sources
    return Evidence(
        table_of(original, **kinds),
        Release.of(second, source_rows=rows),
        scenario=scenario or Scenario(),
        resources=resources or {},
    )


def score(found, measure=None):
    return (measure or DistanceLinkage()).score(found, Run(seed=1))


# -------------------------------------------------------------------------------------------------- DBRL


@pytest.mark.parametrize("scale", ["deviation", "range", "pooled"])
def test_first_example_of_herranz(scale):
    """Both columns have one scale, so the picture is the paper's: only the first record is found."""
    found = score(
        evidence(
            {"x": [1.0, 0, -1, 0], "y": [0.0, 1, 0, -1]}, {"x": [0.0, 0, -2.1, 0], "y": [0.0, 2.1, 0, -2.1]}
        ),
        DistanceLinkage(scale=scale),
    )
    if scale == "pooled":  # x spans 3.1 and y 4.2, so only here they are not scaled alike
        assert found.by_record[0] == 1
    else:
        assert found.value == 0.25
        assert found.by_record.tolist() == [1, 0, 0, 0]
    assert found.baseline == 0.25


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis", "gower"])
def test_second_example_of_herranz(metric):
    found = score(evidence({"x": [1.0, 2, 3, 4]}, {"x": [2.0, 3, 4, -0.1]}), DistanceLinkage(metric=metric))
    assert found.value == 0.25
    assert found.by_record.tolist() == [1, 0, 0, 0]
    assert found.details["links_expected"] == 1
    assert found.details["links_certain"] == 1


def test_ties_are_shared():
    found = score(evidence({"x": [1.0, 1.0, 1.0, 5.0]}, {"x": [1.0, 1.0, 1.0, 5.0]}))
    assert found.by_record.tolist() == [1 / 3, 1 / 3, 1 / 3, 1]
    assert found.value == pytest.approx(0.5)
    assert found.details["ties_shared"] == 3
    assert found.details["links_certain"] == 1


def test_says_what_was_compared():
    found = score(
        evidence({"x": [1.0, 2.0]}, {"x": [1.0, 2.0]}),
        DistanceLinkage(metric="manhattan", scale="pooled"),
    )
    said = {key: found.details[key] for key in ("metric", "scale", "columns", "columns_left_out", "records")}
    assert said == {
        "metric": "manhattan",
        "scale": "ranges over both tables",
        "columns": 1,
        "columns_left_out": 0,
        "records": 2,
    }


def test_a_pattern_of_missing_values_links():
    """The values of the first column are all alike in the release; which are missing still tells."""
    original = {"x": [1.0, np.nan, 3.0, 4.0], "y": [1.0, 2.0, 3.0, np.nan]}
    released = {"x": [2.0, np.nan, 2.0, 2.0], "y": [2.0, 2.0, 2.0, np.nan]}
    assert score(evidence(original, released)).by_record[[1, 3]].tolist() == [1, 1]
    categories = {"c": ["a", None, "b"]}, {"c": ["z", None, "z"]}
    assert score(evidence(*categories, c=Kind.NOMINAL)).by_record.tolist() == [1 / 3, 1, 1 / 3]


def test_a_category_nobody_else_has_links():
    found = score(evidence({"c": ["a", "b", "b"]}, {"c": ["a", "b", "b"]}, c=Kind.NOMINAL))
    assert found.by_record.tolist() == [1, 0.5, 0.5]


def test_persons_are_linked_by_any_of_their_records():
    """Person a has two records; the first of them is linked to the second, which is right all the same."""
    original = {"x": [0.0, 1.0, 5.0, 9.0], "who": ["a", "a", "b", "c"]}
    released = {"x": [3.0, 0.0, 9.0, 5.0]}
    found = score(evidence(original, released, who=UNIT))
    assert found.by_record.tolist() == [1, 1, 0, 0]
    assert found.value == pytest.approx(1 / 3)
    assert found.details["persons"] == 3
    assert found.details["links_expected"] == 1
    assert found.baseline == pytest.approx((2 / 4 + 1 / 4 + 1 / 4) / 3)
    alone = score(evidence({"x": original["x"]}, released))
    assert alone.by_record.tolist() == [0, 1, 0, 0]  # to count only one's own record would understate it


def test_a_pseudonym_that_stays_has_persons_found_by_all_of_their_records_at_once():
    """Each value is that of two persons, and no two persons have the same two."""
    table = {"x": [1.0, 2.0, 2.0, 3.0, 3.0, 1.0], "who": list("aabbcc")}
    found = score(evidence(table, table, who=UNIT))
    assert (found.value, found.status) == (1, Status.OK)
    assert found.details["units"] == found.details["links_certain"] == 3
    assert found.baseline == pytest.approx(1 / 3)
    assert score(evidence(table, {"x": table["x"]}, who=UNIT)).value == 0.5


def test_where_units_are_too_many_to_be_linked_it_is_no_more_than_an_estimate(monkeypatch):
    table = {"x": [1.0, 2.0, 2.0, 3.0, 3.0, 1.0], "who": list("aabbcc")}
    monkeypatch.setattr("sfumato.risk.linkage.MOST_PAIRS_OF_UNITS", 35)
    found = score(evidence(table, table, who=UNIT))
    assert found.status is Status.APPROXIMATE
    assert "`who` joins records" in found.reason
    monkeypatch.setattr("sfumato.risk.linkage.MOST_PAIRS_OF_UNITS", 36)
    assert score(evidence(table, table, who=UNIT)).status is Status.OK


def test_a_shift_of_all_of_a_persons_dates_hides_nobody_whose_records_stay_together():
    """By the dates themselves each is nearest to another; what lies between two of a person tells who it is."""
    known = {"x": [0.0, 3.0, 100.0, 105.0, 200.0, 209.0], "who": list("aabbcc")}
    shown = {"x": [100.0, 103.0, 200.0, 205.0, 0.0, 9.0], "who": list("ddeeff")}
    assert score(evidence(known, shown, who=UNIT)).value == 1
    assert score(evidence(known, {"x": shown["x"]}, who=UNIT)).value == 0


def test_a_record_released_twice_is_found_by_either():
    found = score(evidence({"x": [1.0, 9.0]}, {"x": [5.0, 1.0, 9.0]}, sources=np.array([0, 0, 1])))
    assert found.value == 1
    turned = score(evidence({"x": [1.0, 9.0]}, {"x": [1.0, 5.0, 9.0]}, sources=np.array([0, 0, 1])))
    assert turned.value == 1


def test_who_is_in_the_file_matters():
    sample = {"sources": np.array([0, 1])}
    known = score(evidence({"x": [1.0, 2, 3, 4]}, {"x": [1.0, 2.0]}, **sample))
    assert known.value == 1
    assert np.isnan(known.by_record).tolist() == [False, False, True, True]
    blind = score(
        evidence({"x": [1.0, 2, 3, 4]}, {"x": [1.0, 2.0]}, **sample, scenario=Scenario(membership=False))
    )
    assert blind.value == 0.5
    assert blind.by_record.tolist() == [1, 1, 0, 0]
    assert blind.baseline == 0.25


def test_share_of_records_held():
    rng = np.random.default_rng(1)
    x = {"x": rng.normal(size=100), "y": rng.normal(size=100)}
    found = score(evidence(x, x, scenario=Scenario(records=0.3)))
    assert found.value == 1
    assert found.details["records"] == 30
    assert np.isnan(found.by_record).sum() == 70


def test_an_external_file_needs_an_identifier():
    x = {"x": [1.0, 2.0, 3.0], "id": ["p", "q", "r"]}
    identifier = (Kind.NOMINAL, Role.IDENTIFIER)
    register = table_of({"x": [2.9, 1.1], "id": ["r", "p"]}, id=identifier)
    away = Scenario(columns=("x",), external="register")
    found = score(
        evidence(x, {"x": [1.0, 2.0, 3.0]}, scenario=away, resources={"register": register}, id=identifier)
    )
    assert found.by_record.tolist() == [1, 1]
    nameless = {"register": register.select(["x"])}
    refused = score(evidence(x, {"x": [1.0, 2, 3]}, scenario=away, resources=nameless, id=identifier))
    assert refused.status is Status.REFUSED
    strange = {"register": table_of({"z": [1.0], "id": ["p"]}, id=identifier)}
    refused = score(evidence(x, {"x": [1.0, 2, 3]}, scenario=away, resources=strange, id=identifier))
    assert refused.status is Status.REFUSED


def test_an_external_file_of_one_person_has_no_spread_of_its_own():
    """Income in cents must not outweigh age because the file does not say how incomes vary."""
    original = {"age": [20.0, 40.0, 60.0, 80.0], "income": [1e6, 5e6, 3e6, 4e6], "id": [1, 2, 3, 4]}
    released = {"age": [20.0, 40.0, 60.0, 80.0], "income": [1.1e6, 4.8e6, 3.2e6, 4.9e6]}
    kinds = {"id": (Kind.NOMINAL, Role.IDENTIFIER)}
    person = table_of({"age": [40.0], "income": [5e6], "id": [2]}, **kinds)
    found = evidence(
        original, released, scenario=Scenario(external="file"), resources={"file": person}, **kinds
    )
    assert score(found).value == 1
    learnt = score(found, AttributeLinkage(within=20)).by_column
    assert learnt == {"age": 0.0, "income": 1.0}


def test_refuses_synthetic_data():
    found = score(evidence({"x": [1.0, 2.0]}, {"x": [1.0, 2.0]}, sources=None))
    assert found.status is Status.REFUSED
    assert "do not map" in found.reason


def test_nobody_to_link_is_not_a_risk_of_nought():
    found = score(evidence({"x": [1.0, 2.0]}, {"x": [7.0]}, sources=np.array([-1])))
    assert found.status is Status.NOT_ESTIMABLE


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "mahalanobis", "hamming", "gower"])
def test_offsets_do_not_matter(metric):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 100, (80, 2)) / 8
    y = x + rng.integers(-3, 4, (80, 2)) / 8
    near, far = (
        ({"x": v[:, 0], "y": v[:, 1]} for v in (x, y)),
        ({"x": v[:, 0] + 1e8, "y": v[:, 1]} for v in (x, y)),
    )
    measure = DistanceLinkage(metric=metric)
    assert score(evidence(*near), measure).value == pytest.approx(
        score(evidence(*far), measure).value, rel=1e-12
    )


@pytest.mark.parametrize("where", ["original", "released", "both"])
@pytest.mark.parametrize("scale", ["deviation", "range", "pooled"])
def test_one_value_far_out_does_not_make_the_others_alike(scale, where):
    """Rounding must be judged where the records lie: else a single 1e30 would make everybody tie."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=50)
    y = x + 1e-3 * rng.normal(size=50)
    if where != "released":
        x[0] = 1e30
    if where != "original":
        y[0] = 1e30
    found = score(evidence({"x": x}, {"x": y}), DistanceLinkage(scale=scale))
    assert found.value > 0.9
    # Seen from out there all others are equally far, to the last digit.
    assert found.details["ties_shared"] == (where == "original")


# ------------------------------------------------------------------------------------- attribute linkage


def test_attributes_learnt_by_hand():
    """Linked by y each record finds itself; linked by x the first two find each other's.

    x is released as it was; y is released with the first two exchanged. Learning x: linked by y, records 1 and
    2 find the other's x (10 apart, deviation about 45); record 3 its own. Learning y: linked by x each finds
    its own record, with the other's y: 1 and 2 are wrong.
    """
    found = score(
        evidence(
            {"x": [0.0, 10.0, 100.0], "y": [0.0, 5.0, 50.0]}, {"x": [0.0, 10.0, 100.0], "y": [5.0, 0.0, 50.0]}
        ),
        AttributeLinkage(within=10),
    )
    assert found.by_column == {"x": pytest.approx(1 / 3), "y": pytest.approx(1 / 3)}
    assert found.by_record.tolist() == [0, 0, 1]
    assert found.baseline == pytest.approx(1 / 3)
    wide = score(
        evidence(
            {"x": [0.0, 10.0, 100.0], "y": [0.0, 5.0, 50.0]}, {"x": [0.0, 10.0, 100.0], "y": [5.0, 0.0, 50.0]}
        ),
        AttributeLinkage(within=30),
    )
    assert wide.value == 1
    assert wide.baseline == pytest.approx(5 / 9)


def test_a_value_is_learnt_up_to_the_share_of_the_deviation_whatever_rounding_does():
    """The deviation of 0 and 2 is 1; 2 − 1.9 is a little more than 0.1 as numbers are stored."""
    original = {"x": [1.0, 2.0], "y": [0.0, 2.0]}
    for shown, learnt in ([0.1, 1.9], 1), ([0.1005, 2.0], 0.5), ([0.0, 1.8995], 0.5):
        found = score(evidence(original, {"x": [1.0, 2.0], "y": shown}), AttributeLinkage(within=10))
        assert found.by_column["y"] == learnt


def test_attributes_learnt_are_averaged_over_ties():
    found = score(
        evidence(
            {"c": ["a", "a", "b"], "d": ["u", "u", "u"]},
            {"c": ["a", "a", "b"], "d": ["u", "u", "u"]},
            c=Kind.NOMINAL,
            d=Kind.NOMINAL,
        ),
        AttributeLinkage(),
    )
    assert found.by_column == {"c": pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 3), "d": 1}
    assert found.baseline == pytest.approx(((2 / 3 + 2 / 3 + 1 / 3) / 3 + 1) / 2)


def test_nothing_is_learnt_of_a_missing_value_nor_from_one():
    tables = {"x": [1.0, 2.0, 3.0], "y": [np.nan, 5.0, 6.0]}, {"x": [1.0, 2.0, 3.0], "y": [4.0, np.nan, 6.0]}
    found = score(evidence(*tables), AttributeLinkage(within=0))
    assert found.by_column["y"] == 0.5
    assert found.details["values"] == 5


def test_a_value_far_out_is_not_near_to_all():
    tables = {"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}, {"x": [1.0, 2.0, 3.0], "y": [1e30, 5.0, 6.0]}
    found = score(evidence(*tables), AttributeLinkage(within=0))
    assert found.by_column["y"] == pytest.approx(2 / 3)
    assert found.baseline == pytest.approx((1 / 3 + 2 / 9) / 2)


def test_attributes_need_no_true_pairs():
    x = {"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]}
    assert score(evidence(x, x, sources=None), AttributeLinkage(within=0)).value == 1


def test_attributes_of_persons():
    """Person a is learnt from the better of two records."""
    original = {"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0], "who": ["a", "a", "b"]}
    released = {"x": [1.0, 2.0, 3.0], "y": [9.0, 5.0, 9.0]}
    found = score(evidence(original, released, who=UNIT), AttributeLinkage(within=0))
    assert found.by_column["y"] == 0.5
    assert found.by_record[0] <= found.by_record[1] == 1


def test_one_column_is_not_enough():
    found = score(evidence({"x": [1.0, 2.0]}, {"x": [1.0, 2.0]}), AttributeLinkage())
    assert found.status is Status.REFUSED
    assert "at least 2" in found.reason


def test_no_record_is_not_estimable():
    found = score(evidence({"x": [1.0], "y": [1.0]}, {"x": [], "y": []}, sources=None), AttributeLinkage())
    assert found.status is Status.NOT_ESTIMABLE
