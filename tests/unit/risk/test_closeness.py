"""Closeness by hand: the salaries of the paper, hierarchies, and models that have no finite value."""

import math

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.closeness import BetaLikeness, DeltaDisclosure, TCloseness

#: The salaries of Li, Li and Venkatasubramanian (2007), section 4.3: the first three, and three others.
SALARIES = [3, 4, 5, 6, 11, 8, 7, 9, 10]
CLASSES = ["first", "first", "first", "second", "second", "second", "third", "third", "third"]


def table_of(groups, values, kind=Kind.NOMINAL, **facts):
    columns = (Column("group", Kind.NOMINAL, Role.KEY), Column("s", kind, Role.SENSITIVE, **facts))
    return Table(pl.DataFrame({"group": groups, "s": values}, strict=False), Schema(columns))


def score(measure, table, **more):
    return measure.score(Evidence(table, **more), Run(seed=1))


# ------------------------------------------------------------------------------------------------ t-closeness


def test_the_salaries_of_the_paper():
    """0.375 for the lowest three, 0.167 for 6, 8 and 11."""
    found = score(TCloseness(distance="ordered"), table_of(CLASSES, SALARIES, Kind.CONTINUOUS))
    assert found.value == pytest.approx(0.375, rel=1e-12)
    assert found.by_record[3:6] == pytest.approx([1 / 6] * 3, rel=1e-12)
    assert Requirement.parse("t(distance=ordered) <= 0.375").met_by(found)


def test_equal_distance_by_hand():
    """The table has ½, ¼, ¼; the first class ½, ½, 0; the second ½, 0, ½."""
    found = score(TCloseness(), table_of([1, 1, 2, 2], ["a", "b", "a", "c"]))
    assert found.value == 0.25
    assert found.by_column == {"s": 0.25}
    alone = score(TCloseness(), table_of([1, 2, 2, 2], ["a", "b", "b", "b"]))
    assert alone.by_record.tolist() == [0.75, 0.25, 0.25, 0.25]
    assert alone.details["mean"] == pytest.approx(0.375)


def test_one_class_is_as_close_as_can_be():
    values = ["a", "b", "b", None]
    for missing in ("category", "any"):
        assert score(TCloseness(missing=missing), table_of([1] * 4, values)).value == 0
    table = table_of([1] * 4, [1.0, 5.0, 5.0, None], Kind.CONTINUOUS)
    assert score(TCloseness(distance="ordered"), table).value == 0


def test_the_order_is_that_of_the_values():
    """Not of first appearance, nor of the alphabet where an order is declared."""
    groups, sizes = [1, 1, 2, 2], ["high", "low", "middle", "middle"]
    ordinal = table_of(groups, sizes, Kind.ORDINAL, order=("low", "middle", "high"))
    assert score(TCloseness(distance="ordered"), ordinal).value == pytest.approx(0.25)
    unused = table_of(groups, sizes, Kind.ORDINAL, order=("never", "low", "none", "middle", "high"))
    assert score(TCloseness(distance="ordered"), unused).value == pytest.approx(0.25)
    alphabet = table_of(groups, sizes, Kind.ORDINAL)  # high, low, middle
    assert score(TCloseness(distance="ordered"), alphabet).value == pytest.approx(0.375)


def test_negative_numbers_and_dates_have_their_order():
    numbers = table_of([1, 1, 2, 2], [-5.0, -1.0, 2.0, 3.0], Kind.CONTINUOUS)
    days = table_of([1, 1, 2, 2], pl.Series([1, 5, 8, 9]).cast(pl.Date), Kind.DATE)
    for table in (numbers, days):
        assert score(TCloseness(distance="ordered"), table).value == pytest.approx((0.25 + 0.5 + 0.25) / 3)


def test_a_value_that_is_missing_in_the_order():
    """Half of the first class is missing, nothing of the second, a quarter of the table."""
    table = table_of([1, 1, 2, 2], [1.0, None, 1.0, 2.0], Kind.CONTINUOUS)
    found = score(TCloseness(distance="ordered"), table)
    # What both know: the table has 1 with ⅔ and 2 with ⅓, the classes have 1 only, and halves.
    assert found.by_record.tolist() == pytest.approx([0.25 + 0.5 / 3, 0.25 + 0.5 / 3, *[0.25 + 0.75 / 6] * 2])
    nothing = table_of([1, 2], [None, 3.0], Kind.CONTINUOUS)
    assert score(TCloseness(distance="ordered"), nothing).by_record.tolist() == [0.5, 0.5]
    never = table_of([1, 2], pl.Series([None, None], dtype=pl.Float64), Kind.CONTINUOUS)
    assert score(TCloseness(distance="ordered"), never).value == 0


def test_against_sums_over_every_value():
    """The sparse sum against the plain one, on many values."""
    rng = np.random.default_rng(6)
    groups, values = rng.integers(0, 30, 2000), rng.lognormal(3, 1, 2000).round(1)
    found = score(TCloseness(distance="ordered"), table_of(groups, values, Kind.CONTINUOUS))
    distinct = np.unique(values)
    everybody = np.cumsum([np.mean(values == value) for value in distinct])
    for group in range(30):
        mine = np.cumsum([np.mean(values[groups == group] == value) for value in distinct])
        expected = np.abs(mine - everybody)[:-1].sum() / (len(distinct) - 1)
        assert found.by_record[groups == group] == pytest.approx(expected, rel=1e-11)


def test_hierarchical_distance_by_hand():
    """Flu and bronchitis are ½ apart, either and gastritis 1."""
    levels = pl.DataFrame(
        {
            "0": ["flu", "bronchitis", "gastritis", "ulcer"],
            "1": ["lung", "lung", "stomach", "stomach"],
            "2": ["*"] * 4,
        }
    )
    resources = {"illness": Hierarchy("illness", levels)}
    values = ["flu", "bronchitis", "flu", "bronchitis", "gastritis", "ulcer", "flu", "flu"]
    table = table_of([1, 1, 2, 2, 2, 2, 1, 1], values, hierarchy="illness")
    found = score(TCloseness(distance="hierarchy"), table, resources=resources)
    # Table: flu ½, bronchitis ¼, gastritis ⅛, ulcer ⅛. First class: flu ¾, bronchitis ¼.
    # ¼ goes from flu to the stomach: cost ¼. Second: a quarter each; ¼ goes back.
    assert found.by_record[0] == pytest.approx(0.25)
    assert found.by_record[2] == pytest.approx(0.25)
    near = table_of([1, 1, 2, 2], ["flu", "flu", "bronchitis", "bronchitis"], hierarchy="illness")
    assert score(TCloseness(distance="hierarchy"), near, resources=resources).value == pytest.approx(0.25)
    assert score(TCloseness(), near).value == 0.5


def test_a_hierarchy_of_a_single_value():
    """Missing is apart from it: 1/3 of everybody's, 0 and 1/2 of the classes'."""
    lone = {"h": Hierarchy("h", pl.DataFrame({"0": ["flu"]}))}
    table = table_of([1, 2, 2], ["flu", "flu", None], hierarchy="h")
    assert score(TCloseness(distance="hierarchy"), table, resources=lone).value == pytest.approx(1 / 3)


def test_hierarchical_distance_is_the_cheapest_transport():
    """Against an exact solver with the heights of lowest common labels as costs."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(8)
    leaves = [f"{a}{b}{c}" for a in "xy" for b in "12" for c in "pq"]
    levels = pl.DataFrame(
        {"0": leaves, "1": [v[:2] for v in leaves], "2": [v[0] for v in leaves], "3": ["*"] * 8}
    )
    groups, values = rng.integers(0, 4, 60), np.array(leaves)[rng.integers(0, 8, 60)]
    found = score(
        TCloseness(distance="hierarchy"),
        table_of(groups, values, hierarchy="h"),
        resources={"h": Hierarchy("h", levels)},
    )
    height = [[next(h for h in range(4) if a[: 3 - h] == b[: 3 - h]) / 3 for b in leaves] for a in leaves]
    for group in range(4):
        mine = [np.mean(values[groups == group] == leaf) for leaf in leaves]
        others = [np.mean(values == leaf) for leaf in leaves]
        rows = np.kron(np.eye(8), np.ones(8))
        columns = np.kron(np.ones(8), np.eye(8))
        cost = linprog(np.ravel(height), A_eq=np.vstack((rows, columns)), b_eq=[*mine, *others]).fun
        assert found.by_record[groups == group] == pytest.approx(cost, abs=1e-9)


def test_what_has_no_order_or_hierarchy_is_refused():
    table = table_of([1], ["a"])
    assert "an order of `s`, which is a nominal column" in score(TCloseness(distance="ordered"), table).reason
    boxes = table_of([1, 2], intervals([1, 2], [3, 4]), Kind.CONTINUOUS)
    assert "which has ranges" in score(TCloseness(distance="ordered"), boxes).reason
    assert score(TCloseness(), boxes).value == 0.5
    hierarchical = TCloseness(distance="hierarchy")
    assert "a hierarchy of `s`, and none is declared" in score(hierarchical, table).reason
    other = {"h": Hierarchy("h", pl.DataFrame({"0": ["b"], "1": ["*"]}))}
    unknown = score(hierarchical, table_of([1], ["a"], hierarchy="h"), resources=other)
    assert unknown.status is Status.REFUSED
    assert "1 value of `s`" in unknown.reason


def test_worst_adds_what_is_missing():
    table = table_of([1, 1, 2, 2], ["a", None, "a", "b"])
    plain = score(TCloseness(), table).by_record
    worst = score(TCloseness(missing="worst"), table).by_record
    assert worst.tolist() == pytest.approx(
        [plain[0] + 0.75, plain[1] + 0.75, plain[2] + 0.25, plain[3] + 0.25]
    )


# ------------------------------------------------------------------------------------------- δ-disclosure, β-likeness


def test_delta_by_hand():
    """a is ½ of the table, ¾ of the first class and ¼ of the second."""
    table = table_of([1] * 4 + [2] * 4, list("aaabbbba"))
    found = score(DeltaDisclosure(), table)
    assert found.value == pytest.approx(math.log(2), rel=1e-15)
    assert score(DeltaDisclosure(), table_of([1, 1, 2, 2], list("abab"))).value == 0


def test_the_change_of_each_class_is_its_own():
    """a is ½ of the table: of the second class it is so, too, of the first ¾, of the third ¼."""
    table = table_of([1] * 4 + [2] * 2 + [3] * 4, list("aaabababbb"))
    found = score(DeltaDisclosure(), table)
    assert found.by_record == pytest.approx([math.log(2)] * 4 + [0] * 2 + [math.log(2)] * 4)
    found = score(BetaLikeness(), table)
    assert found.by_record == pytest.approx([0.5] * 4 + [0] * 2 + [0.5] * 4)


def test_a_value_that_a_class_lacks_makes_delta_infinite():
    table = table_of([1, 1, 2, 2], list("abaa"))
    found = score(DeltaDisclosure(), table)
    assert found.status is Status.NOT_ESTIMABLE
    assert math.isnan(found.value)
    assert "infinite" in found.reason
    assert found.details["records_lacking_a_value"] == 2
    assert found.details["finite"] == pytest.approx(math.log(2))
    assert not Requirement.parse("delta-disclosure <= 1000").met_by(found)


def test_a_missing_value_may_be_one_that_others_lack():
    table = table_of([1, 1, 1, 2, 2, 2], ["a", "b", None, "a", "b", None])
    assert score(DeltaDisclosure(), table).value == 0
    assert score(DeltaDisclosure(missing="worst"), table).status is Status.NOT_ESTIMABLE
    assert score(DeltaDisclosure(missing="worst"), table_of([1, 1], ["a", None])).value == pytest.approx(0)


def test_beta_by_hand():
    """b is ¼ of the table and ½ of the first class: it doubles."""
    table = table_of([1, 1, 2, 2], list("abac"))
    found = score(BetaLikeness(), table)
    assert found.value == 1
    assert score(BetaLikeness(), table_of([1, 1, 2, 2], list("abab"))).value == 0


def test_enhanced_beta_bounds_frequent_values():
    """a is ¾ of the table: a gain above −ln ¾ = 0.288 is too much for any β, and ⅓ is above."""
    table = table_of([1] * 2 + [2] * 2, list("aaab"))
    assert score(BetaLikeness(), table).value == 1  # b
    found = score(BetaLikeness(kind="enhanced"), table)
    assert found.status is Status.NOT_ESTIMABLE
    assert found.details["feasible"] == "no"
    assert found.details["records_beyond_every_beta"] == 2  # b may gain −ln ¼ = 1.39
    mild = table_of([1] * 4 + [2] * 4, list("aaababbb"))
    found = score(BetaLikeness(kind="enhanced"), mild)
    assert found.value == 0.5
    assert found.details["feasible"] == "yes"


def test_beta_at_its_worst():
    """The hole of the first class may be a value of its own (twice as frequent there), or b."""
    table = table_of([1, 1, 2, 2], ["a", None, "a", "b"])
    assert score(BetaLikeness(missing="worst"), table).value == 1
    enhanced = BetaLikeness(missing="worst", kind="enhanced")
    assert score(enhanced, table).status is Status.NOT_ESTIMABLE  # all of the class a: ⅓ more, above −ln ¾
    assert score(enhanced, table_of([1] * 4 + [2] * 4, [*"abc", None, *"abcd"])).value == 1
    alone = table_of([1, 2, 2, 2], [None, "a", "a", "b"])
    assert score(BetaLikeness(missing="worst"), alone).value == 3
    assert score(enhanced, alone).status is Status.NOT_ESTIMABLE
