"""k-anonymity, k-map, (X,Y)-anonymity and the chances to be found: worked by hand."""

import numpy as np
import polars as pl
import pytest

import sfumato
from brute import covers
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels.linking import count_inside
from sfumato.risk.anonymity import KAnonymity, KMap, XYAnonymity
from sfumato.risk.reidentification import (
    Distinction,
    JournalistRisk,
    MarketerRisk,
    ProsecutorRisk,
    Separation,
)
from sfumato.risk.uniqueness import Uniqueness

NUMBER, NAME, KEY = Kind.CONTINUOUS, Kind.NOMINAL, Role.KEY


def table_of(columns, *described, nodes=None):
    frame = pl.DataFrame(columns, strict=False)
    given = {column.name: column for column in described}
    schema = Schema(tuple(given.get(name, Column(name, NAME, KEY)) for name in frame.columns))
    return Table(frame, schema, nodes=nodes or {})


def score(measure, table, **more):
    return measure.score(Evidence(table, **more), Run(seed=1))


#: Classes of 3, 2 and 1; the third record's sex is not known.
PEOPLE = {
    "age": [30, 30, 30, 41, 41, 55],
    "sex": ["f", "f", "f", "m", "m", None],
}


def test_k_is_the_smallest_class():
    found = score(KAnonymity(), table_of(PEOPLE))
    assert found.value == 1
    assert found.status is Status.OK
    assert found.by_record.tolist() == [3, 3, 3, 2, 2, 1]
    assert found.details == {
        "counted": "records", "records": 6, "classes": 3, "incomplete_records": 1, "records_below_2": 1,
        "records_below_3": 3, "records_below_5": 6, "records_below_10": 6,
        "mean_size": pytest.approx((3 * 3 + 2 * 2 + 1) / 6),
    }  # fmt: skip


def test_missing_keys_are_not_dropped():
    """The table without the last record would have k = 2."""
    table = table_of({"age": [30, 30, 30, 30], "sex": ["f", "f", "f", None]})
    assert score(KAnonymity(), table).value == 1
    assert score(KAnonymity(missing="any"), table).value == 4
    assert score(KAnonymity(missing="worst"), table).value == 1
    two = table_of({"age": [30] * 5, "sex": ["f", "f", "f", None, None]})
    assert score(KAnonymity(), two).value == 2
    assert score(KAnonymity(missing="worst"), two).by_record.tolist() == [3, 3, 3, 1, 1]


def test_persons_count_where_a_column_tells_whose_record_it_is():
    who = Column("who", NAME, Role.PERSON)
    table = table_of({"age": [30, 30, 30, 41, 41], "who": [7, 7, 8, 9, 10]}, who)
    rows = np.arange(5)
    found = score(KAnonymity(), table, release=Release.of(table.select(["age"]), source_rows=rows))
    assert found.value == 2
    assert found.details["counted"] == "persons"
    assert score(KAnonymity(), table_of({"age": [30, 30, 30], "who": [7, 7, 7]}, who)).value == 1


def test_persons_count_where_the_release_no_longer_tells():
    """Two records of one person do not hide each other because the person's number was left out."""
    who = Column("who", NAME, Role.PERSON)
    table = table_of({"age": [30, 30, 41, 41], "who": [7, 7, 8, None]}, who)
    released = table.select(["age"]).take(np.array([0, 1, 2, 3, 3]))
    found = score(KAnonymity(), table, release=Release.of(released, source_rows=np.array([0, 1, 2, 3, -1])))
    assert found.value == 1
    assert found.by_record.tolist() == [1, 1, 3, 3]
    assert found.details["counted"] == "persons"
    fewest = score(
        KAnonymity(), table, release=Release.of(released.take(np.arange(4)))
    )  # nobody knows whose they are
    assert (fewest.status, fewest.interval, fewest.interval_is_proved) == (Status.APPROXIMATE, (1, 2), True)
    found = score(ProsecutorRisk(), table, release=Release.of(released))
    assert found.status is Status.NOT_ESTIMABLE


def test_keys_are_those_of_the_scenario():
    table = table_of(PEOPLE)
    assert score(KAnonymity(), table, scenario=Scenario(columns=("sex",))).value == 1
    assert score(KAnonymity(), table.take(np.arange(5)), scenario=Scenario(columns=("sex",))).value == 2
    assert score(KAnonymity(), table.take(np.arange(5))).details["classes"] == 2


def test_a_set_among_the_keys_is_not_left_out_in_silence():
    table = table_of({"age": [1, 1], "drugs": [["a"], ["b"]]}, Column("drugs", Kind.SET, KEY))
    found = score(KAnonymity(), table)
    assert found.status is Status.REFUSED
    assert "`drugs` (set)" in found.reason


def test_weights_estimate_the_population():
    weighted = table_of({"age": [1, 1, 2], "w": [10.0, 2.5, 40.0]}, Column("w", NUMBER, Role.WEIGHT))
    assert score(KAnonymity(), weighted).details["population_size"] == 12.5
    found = score(JournalistRisk(threshold=0.05), weighted)
    assert found.status is Status.APPROXIMATE
    two = sum((h - 1) * 0.16**2 * 0.84 ** (h - 2) / h for h in range(2, 500))  # E[1/F] of two who are 12.5
    one = sum(0.025 * 0.975 ** (h - 1) / h for h in range(1, 2000))
    np.testing.assert_allclose(found.by_record, [two, two, one])
    assert found.value == found.by_record.max() > 1 / 12.5
    assert found.details["at_risk"] == 3
    assert score(MarketerRisk(), weighted).value == pytest.approx((2 * two + one) / 3)
    assert not Requirement.parse("journalist-risk <= 0.5").met_by(found)


def test_requirements_say_k():
    found = score(KAnonymity(), table_of({"age": [1, 1, 1]}))
    requirement = Requirement.parse("k >= 3")
    assert requirement.measure == KAnonymity()
    assert requirement.met_by(found)
    assert not Requirement.parse("k > 3").met_by(found)
    assert Requirement.parse("k(missing=worst) >= 3").measure == KAnonymity(missing="worst")
    assert Requirement.parse(str(requirement)) == requirement


def test_nobody():
    empty = table_of(PEOPLE).take(np.arange(0))
    for measure in (KAnonymity(), ProsecutorRisk(), MarketerRisk(), Distinction(), Separation()):
        found = score(measure, empty)
        assert found.status is Status.NOT_ESTIMABLE
        assert np.isnan(found.value)
    assert score(Separation(), table_of({"a": ["x"]})).status is Status.NOT_ESTIMABLE


def test_from_the_front_door():
    frame = pl.DataFrame({"age": [30, 30, 41], "sex": ["f", "f", "m"]})
    assert sfumato.assess(frame, measures=["k", "separation"])["k-anonymity"].value == 1


# --------------------------------------------------------------------------------------------- population


REGISTER = table_of({"age": [30, 30, 41, 41, 41, 99], "sex": ["f", "f", "m", "m", None, "f"]})


def test_k_map_by_hand():
    drawn = table_of({"age": [30, 41, 41], "sex": ["f", "m", None]})
    resources = {"register": REGISTER}
    found = score(KMap(population="register"), drawn, resources=resources)
    assert found.by_record.tolist() == [2, 2, 1]
    assert found.value == 1
    found = score(KMap(population="register", missing="any"), drawn, resources=resources)
    assert found.by_record.tolist() == [2, 3, 3]
    found = score(KMap(population="register", missing="worst"), drawn, resources=resources)
    assert found.by_record.tolist() == [2, 2, 1]
    stranger = table_of({"age": [30, 12], "sex": ["f", "m"]})
    found = score(KMap(population="register"), stranger, resources=resources)
    assert found.value == 0
    assert found.details["not_in_population"] == 1


def test_numbers_and_text_of_the_population_match_by_value():
    people = table_of({"age": ["30", "30", "41"], "sex": ["f", "f", "m"]})
    drawn = table_of({"age": [30.0, 41.0], "sex": pl.Series(["f", "m"], dtype=pl.Categorical)})
    assert score(KMap(population="p"), drawn, resources={"p": people}).by_record.tolist() == [2, 1]


def test_generalised_keys_cover_people():
    """[30;39] covers three, [40;∞) two; `early` are the women's jobs a and b, and * is everyone."""
    nodes = Nodes.of({"early": ["a", "b"], "c": ["c"]}, leaves=["a", "b", "c"])
    released = table_of(
        {
            "age": intervals([30, 30, 40, None], [39, 39, None, None]),
            "job": pl.Series(["early", "*", "c", "*"], dtype=nodes.dtype),
        },
        Column("age", NUMBER, KEY),
        nodes={"job": nodes},
    )
    people = table_of(
        {"age": [30, 39, 35, 40, 99, None], "job": ["a", "b", "c", "c", "a", None]},
        Column("age", NUMBER, KEY),
    )
    found = score(KMap(population="p"), released, resources={"p": people})
    assert found.by_record.tolist() == [2, 3, 1, 6]


def test_generalised_keys_against_all_pairs():
    rng = np.random.default_rng(5)
    n, people = 40, 300
    lows = rng.integers(0, 20, (n, 2))
    highs = lows + rng.integers(0, 8, (n, 2))
    released = table_of(
        {
            "x": intervals(lows[:, 0], highs[:, 0]),
            "y": intervals(lows[:, 1], highs[:, 1]),
            "z": rng.integers(0, 2, n),
        },
        Column("x", NUMBER, KEY),
        Column("y", NUMBER, KEY),
        Column("z", NUMBER, KEY),
    )
    values = {name: rng.integers(0, 25, people) for name in "xy"}
    population = table_of(
        {**values, "z": rng.integers(0, 2, people)}, *(Column(c, NUMBER, KEY) for c in "xyz")
    )
    inside = np.ones((n, people), dtype=bool)
    for name in "xy":
        for j, value in enumerate(population.frame[name]):
            inside[:, j] &= covers(released.frame[name], pl.Series([value] * n))
    inside &= released.frame["z"].to_numpy()[:, None] == population.frame["z"].to_numpy()
    found = score(KMap(population="p"), released, resources={"p": population})
    assert found.by_record.tolist() == inside.sum(axis=1).tolist()


@pytest.mark.parametrize("n", [0, 1, 31, 33, 700])
def test_points_in_boxes(n):
    rng = np.random.default_rng(n)
    points, amounts = rng.integers(0, 12, (n, 3)).astype(float), rng.integers(1, 5, n)
    points[rng.random((n, 3)) < 0.05] = np.inf
    lows = rng.integers(-1, 12, (50, 3)).astype(float)
    highs = lows + rng.integers(0, 9, (50, 3))
    lows[::7], highs[::5] = -np.inf, np.inf
    inside = ((points >= lows[:, None]) & (points <= highs[:, None])).all(axis=2)
    assert count_inside(points, amounts, lows, highs).tolist() == (inside * amounts).sum(axis=1).tolist()


def test_a_population_must_be_there_and_have_the_keys():
    drawn = table_of(PEOPLE)
    assert "needs a table of the population" in score(KMap(), drawn).reason
    assert "names a resource that is not declared" in score(KMap(population="nobody"), drawn).reason
    ages = {"p": table_of({"age": [1]})}
    assert "`sex`" in score(KMap(population="p"), drawn, resources=ages).reason
    other = score(KMap(population="p"), drawn, resources={"p": "not a table"})
    assert other.status is Status.REFUSED
    assert "needs the population" in score(JournalistRisk(), drawn).reason


# ----------------------------------------------------------------------------------------- chances to be found


def test_the_three_intruders():
    """Classes of 2 and 1 in the release are 2 and 4 people of the population."""
    drawn = table_of({"age": [30, 30, 41]})
    people = {"p": table_of({"age": [30, 30, 41, 41, 41, 41]})}
    prosecutor = score(ProsecutorRisk(threshold=0.5), drawn)
    assert prosecutor.value == 1
    assert prosecutor.by_record.tolist() == [0.5, 0.5, 1]
    assert prosecutor.details["mean"] == pytest.approx(2 / 3)
    assert prosecutor.details["at_risk"] == 1  # one half is not above one half
    assert prosecutor.details["feasible"] == "no"
    journalist = score(JournalistRisk(population="p", threshold=0.5), drawn, resources=people)
    assert journalist.value == 0.5
    assert journalist.status is Status.OK
    assert journalist.details["feasible"] == "yes"
    marketer = score(MarketerRisk(population="p"), drawn, resources=people)
    assert marketer.value == pytest.approx((0.5 + 0.5 + 0.25) / 3)
    assert score(MarketerRisk(), drawn).value == pytest.approx(2 / 3)  # classes over records


def test_a_person_is_as_much_at_risk_as_the_riskiest_record():
    table = table_of({"age": [1, 1, 2], "who": [5, 6, 5]}, Column("who", NAME, Role.PERSON))
    found = score(
        ProsecutorRisk(threshold=0.6),
        table,
        release=Release.of(table.select(["age"]), source_rows=np.arange(3)),
    )
    assert found.details["mean"] == pytest.approx((1 + 0.5) / 2)
    assert found.details["at_risk"] == 1
    assert found.details["share_at_risk"] == 0.5


def test_a_fifth_is_not_above_a_fifth():
    table = table_of({"age": [1] * 5 + [2] * 4})
    assert score(ProsecutorRisk(threshold=0.2), table).details["at_risk"] == 4


def test_distinction_and_separation():
    table = table_of({"age": [1, 1, 2, 3]})
    assert score(Distinction(), table).value == pytest.approx(3 / 4)
    assert score(Separation(), table).value == pytest.approx(5 / 6)
    alike = table_of({"age": [1, 1, 1]})
    assert score(Distinction(), alike).value == pytest.approx(1 / 3)
    assert score(Separation(), alike).value == 0


# ------------------------------------------------------------------------------------------------ (X, Y)


def test_xy_anonymity():
    """Each of two jobs stands beside two and one distinct persons; job and sex together beside one."""
    columns = {"job": ["a", "a", "a", "b", "b"], "sex": ["f", "m", "f", "f", "f"], "who": [1, 2, 1, 3, 3]}
    table = table_of(columns, Column("who", NAME, Role.PERSON), Column("sex", NAME, Role.OTHER))
    found = score(XYAnonymity(y=["who"]), table)
    assert found.value == 1
    assert found.by_record.tolist() == [2, 2, 2, 1, 1]
    assert found.value == score(KAnonymity(), table).value
    assert score(XYAnonymity(x=["job", "sex"], y=["who"]), table).by_record.tolist() == [1, 1, 1, 1, 1]
    assert score(XYAnonymity(y=["sex", "who"]), table).by_record.tolist() == [2, 2, 2, 1, 1]


def test_xy_anonymity_refuses():
    table = table_of({"job": ["a"], "s": ["x"]}, Column("s", NAME, Role.OTHER))
    assert "a column of `y`" in score(XYAnonymity(), table).reason
    assert "share no column, got: `job`" in score(XYAnonymity(y=["job", "s"]), table).reason
    assert "at least one" in score(XYAnonymity(x=["@weight"], y=["s"]), table).reason


def test_k_map_of_sets_that_are_no_ranges():
    """Two columns of sets without any order: boxes would be too many, so classes are compared one by one."""
    leaves = [str(i) for i in range(300)]
    rng = np.random.default_rng(4)
    nodes = Nodes.of({f"s{i}": rng.choice(leaves, 150, replace=False) for i in range(9)}, leaves=leaves)
    members = [set(nodes.members_of(nodes.labels.index_of(f"s{i}"))) for i in range(9)]
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "gh"))
    labels = pl.Series([f"s{i}" for i in range(9)], dtype=nodes.dtype)
    released = Table(pl.DataFrame({"g": labels, "h": labels}), schema, nodes={"g": nodes, "h": nodes})
    people = Table(pl.DataFrame({name: rng.choice(leaves, 400) for name in "gh"}), schema)
    found = KMap(population="p").score(Evidence(released, resources={"p": people}), Run(seed=1))
    rows = people.frame.rows()
    expected = [sum(g in each and h in each for g, h in rows) for each in members]
    assert found.by_record.tolist() == expected
    assert found.value == min(expected)


@pytest.mark.parametrize(
    ("measure", "category", "any_"), [(KAnonymity, 1, 4), (Uniqueness, 0.5, 0.0), (ProsecutorRisk, 1, 0.25)]
)
def test_a_code_for_missing_values_is_seen_in_the_file(measure, category, any_):
    """Who sees −9 beside an empty cell tells the two apart; who takes both for any value does not."""
    column = Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-9,))
    evidence = Evidence(Table(pl.DataFrame({"age": [30, 30, -9, None]}), Schema((column,))))
    assert measure().score(evidence, Run(seed=1)).value == category
    assert measure(missing="any").score(evidence, Run(seed=1)).value == any_


def test_suppressed_and_dropped_records_count_alike_in_shares():
    """Two classes of two and one alone, which says nothing any more: one in two links is right."""
    schema = Schema((Column("k", Kind.NOMINAL, Role.KEY),))
    x = Table(pl.DataFrame({"k": list("aabbc")}), schema)
    suppressed = to_wildcard(x, "k", np.array([False, False, False, False, True]))
    for y in (suppressed, x.take(np.arange(4))):
        found = MarketerRisk(threshold=0.9).score(Evidence(y), Run(seed=1))
        assert found.value == 0.5
        assert found.details["share_at_risk"] == 0
    assert MarketerRisk().score(Evidence(suppressed), Run(seed=1)).details["suppressed"] == 1
    assert (
        ProsecutorRisk().score(Evidence(suppressed), Run(seed=1)).value == 1
    )  # who is left over can be found
