"""What an intruder compares: coordinates by hand, whose records are whose, and who is held."""

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

from sfumato.core import registry
from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.intruder_view import why_pairs_unknown
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.codings import codes_of_both, numbers_of_both
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import best_by_person, persons_of
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk._coordinates import FARTHEST
from sfumato.risk._spaces import held_rows, space_of
from sfumato.risk.global_linkage import distances
from toys import table_of

UNIT = (Kind.NOMINAL, Role.PERSON)
IDENTIFIER = (Kind.NOMINAL, Role.IDENTIFIER)


def space(
    original, released, *, metric="euclidean", scale="deviation", sources="same", scenario=None, **kinds
):
    """The space of all columns of two literal tables."""
    first, second = table_of(original, **kinds), table_of(released, **kinds)
    rows = np.arange(len(second)) if isinstance(sources, str) else sources
    evidence = Evidence(first, Release.of(second, source_rows=rows), scenario=scenario or Scenario())
    return space_of(evidence, evidence.known_columns, Run(seed=1), metric=metric, scale=scale)


def squares(found):
    """All squared distances, codes among them."""
    gaps = found.known_points[:, None, :] - found.released_points[None, :, :]
    n_measured = found.known_points.shape[1] - found.n_codes
    return (gaps[:, :, :n_measured] ** 2).sum(axis=2) + ((gaps[:, :, n_measured:] != 0) * found.weights).sum(
        axis=2
    )


# ------------------------------------------------------------------------------------------- coordinates


def test_numbers_are_scaled_by_deviation_range_or_both_ranges():
    original, released = {"x": [0.0, 2.0, 4.0]}, {"x": [0.0, 2.0, 9.0]}
    deviation = np.sqrt(8 / 3)
    for scale, unit in {"deviation": deviation, "range": 4.0, "pooled": 9.0}.items():
        found = space(original, released, scale=scale)
        np.testing.assert_allclose(found.known_points[:, 0], (np.array([0, 2, 4]) - 2) / unit)
        np.testing.assert_allclose(found.released_points[:, 0], (np.array([0, 2, 9]) - 2) / unit)
        assert (found.metric, found.n_codes) == ("euclidean", 0)


def test_a_constant_is_divided_by_the_spread_of_both():
    for scale, unit in (("deviation", np.sqrt(3) / 2), ("range", 2), ("pooled", 2)):
        found = space({"x": [5.0, 5.0]}, {"x": [5.0, 7.0]}, scale=scale)
        assert found.known_points[:, 0].tolist() == [0, 0]
        np.testing.assert_allclose(found.released_points[:, 0], [0, 2 / unit])
    alone = space({"x": [5.0, 5.0]}, {"x": [5.0]})
    assert not alone.known_points.any()
    assert not alone.released_points.any()


def test_an_offset_costs_no_digits():
    steps = np.arange(20) / 8
    plain = space({"x": steps}, {"x": steps[::-1].copy()})
    far = space({"x": steps + 1e8}, {"x": steps[::-1] + 1e8})
    np.testing.assert_allclose(far.known_points, plain.known_points, rtol=1e-12, atol=1e-12)


def test_a_value_far_out_costs_no_digits():
    steps = np.arange(20) / 8
    plain = space({"x": steps}, {"x": steps}, scale="range")
    for place in (0, 19):  # whether it stands first or last
        x = np.roll(np.append(steps, 1e25), place)
        gaps = np.diff(np.sort(space({"x": x}, {"x": x}, scale="range").known_points[:, 0]))[:19] * 1e25
        np.testing.assert_allclose(gaps, np.diff(plain.known_points[:, 0]) * 19 / 8, rtol=1e-12)


def test_huge_and_tiny_numbers_stay_finite():
    found = space({"x": [1e308, -1e308, 0.0]}, {"x": [0.0, 1e308, 1e-308]})
    assert np.isfinite(found.known_points).all()
    assert np.abs(found.released_points).max() < 3
    lone = space({"x": [0.0, 0.0]}, {"x": [1e308, 0.0]})  # a constant that was turned into something huge
    np.testing.assert_allclose(lone.released_points[:, 0], [4 / np.sqrt(3), 0])
    tiny = space({"x": [0.0, 1e-300]}, {"x": [1e308, 0.0]})
    assert tiny.released_points[:, 0].tolist() == [FARTHEST, 0]


def test_categories_that_differ_are_one_unit_apart():
    kinds = {"c": Kind.NOMINAL, "d": Kind.NOMINAL}
    tables = {"c": ["a", "b", None], "d": ["x", "x", "x"]}, {"c": ["b", "new", None], "d": ["x", "y", "x"]}
    found = space(*tables, **kinds)
    assert found.n_codes == 2
    np.testing.assert_array_equal(squares(found), [[1, 2, 1], [0, 2, 1], [1, 2, 0]])


@pytest.mark.parametrize("metric", ["manhattan", "gower"])
def test_mixed_columns_add_up(metric):
    found = space(
        {"x": [0.0, 10.0], "c": ["a", "b"]}, {"x": [5.0, 10.0], "c": ["a", "a"]},
        metric=metric, scale="pooled", c=Kind.NOMINAL,
    )  # fmt: skip
    assert (found.metric, found.n_codes) == ("manhattan", 1)
    gaps = found.known_points[:, None, :] - found.released_points[None, :, :]
    totals = np.abs(gaps[:, :, 0]) + (gaps[:, :, 1] != 0)
    np.testing.assert_allclose(totals, [[0.5, 1.0], [1.5, 1.0]])


def test_hamming_counts_columns_that_differ():
    found = space(
        {"x": [1.0, 2.0, np.nan], "c": ["a", None, "b"]}, {"x": [1.0, np.nan, np.nan], "c": ["b", None, "b"]},
        metric="hamming", c=Kind.NOMINAL,
    )  # fmt: skip
    assert found.known_points.shape == (3, 2)  # one column each, in their order
    differing = (found.known_points[:, None, :] != found.released_points[None, :, :]).sum(axis=2)
    np.testing.assert_array_equal(differing, [[1, 2, 2], [2, 1, 2], [1, 1, 0]])


def test_a_missing_number_lies_at_the_mean_and_one_unit_off():
    found = space({"x": [0.0, 4.0, np.nan]}, {"x": [4.0, np.nan, np.nan]}, scale="range")
    assert found.n_codes == 1
    np.testing.assert_allclose(squares(found), [[1.0, 1.25, 1.25], [0.0, 1.25, 1.25], [1.25, 0.0, 0.0]])


def test_a_column_that_is_all_missing_tells_nothing():
    found = space({"x": [np.nan, np.nan]}, {"x": [np.nan, np.nan]})
    assert (squares(found) == 0).all()


def test_mahalanobis_whitens_with_both_covariances():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    y = x + rng.normal(size=x.shape)
    names = ["a", "b", "c"]
    found = space(
        dict(zip(names, x.T, strict=True)), dict(zip(names, y.T, strict=True)), metric="mahalanobis"
    )
    inverse = np.linalg.inv(np.cov(x.T, bias=True) + np.cov(y.T, bias=True))
    gaps = x[:, None, :] - y[None, :, :]
    np.testing.assert_allclose(squares(found), np.einsum("ijk,kl,ijl->ij", gaps, inverse, gaps), rtol=1e-9)


def test_mahalanobis_counts_a_redundant_column_once():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    once = space({"a": x[:, 0], "b": x[:, 1]}, {"a": y[:, 0], "b": y[:, 1]}, metric="mahalanobis")
    twice = space(
        {"a": x[:, 0], "b": x[:, 1], "c": 3e6 * x[:, 0] + 7}, {"a": y[:, 0], "b": y[:, 1], "c": 3e6 * y[:, 0] + 7},
        metric="mahalanobis",
    )  # fmt: skip
    assert twice.known_points.shape[1] == 2
    np.testing.assert_allclose(squares(twice), squares(once), rtol=1e-6)


# ------------------------------------------------------------------------------------- one coding for both


def codes(original, released, column):
    first, second = table_of({"v": original}, v=column), table_of({"v": released}, v=column)
    return [found.tolist() for found in codes_of_both(first, second, "v")]


def test_ordinal_positions_are_in_the_union_of_orders():
    natural = Column("v", Kind.ORDINAL)
    assert codes([1, 3, 9], [3, 5, None], natural) == [[0, 1, 3], [1, 2, -1]]
    assert codes(["a", "c"], ["b", "c"], natural) == [[0, 2], [1, 2]]
    declared = Column("v", Kind.ORDINAL, order=("low", "mid", "high"))
    assert codes(["high", "low"], ["mid", "high"], declared) == [[2, 0], [1, 2]]


def test_equal_values_of_another_type_are_equal():
    assert codes([1, 2], [2.0, 3.0], Column("v", Kind.NOMINAL)) == [[0, 1], [1, 2]]
    assert codes([1, 2], ["2", "10"], Column("v", Kind.ORDINAL)) == [[0, 2], [2, 1]]  # mixed: as text


def test_dates_of_two_types_compare():
    first = table_of({"d": [date(2020, 1, 1), date(2020, 1, 2)]}, d=Kind.DATE)
    second = table_of({"d": [datetime(2020, 1, 1), datetime(2020, 1, 2, 12)]}, d=Kind.DATE)  # noqa: DTZ001
    mine, theirs = numbers_of_both(first, second, "d")
    days = 86_400e6
    assert (theirs - mine).tolist() == [0, days / 2]
    assert mine[1] - mine[0] == days
    same = numbers_of_both(first, first, "d")
    assert same[0][1] - same[0][0] == 1


# --------------------------------------------------------------------------------------------- who is who


def test_truth_follows_the_source_rows():
    found = space({"x": [1.0, 2, 3, 4]}, {"x": [3.0, 1.0, 4.0]}, sources=np.array([2, 0, 3]))
    assert found.rows.tolist() == [0, 2, 3]  # who knows who is in the file does not try the others
    assert found.truth.tolist() == [1, 0, 2]
    blind = Scenario(membership=False)
    found = space({"x": [1.0, 2, 3, 4]}, {"x": [3.0, 1, 4]}, sources=np.array([2, 0, 3]), scenario=blind)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.truth.tolist() == [1, -1, 0, 2]


def test_without_source_rows_there_is_no_truth():
    found = space({"x": [1.0, 2.0]}, {"x": [1.0]}, sources=None)
    assert found.truth is None
    assert found.owners is None
    assert found.rows.tolist() == [0, 1]


def test_a_record_that_comes_from_nobody_is_nobodys():
    found = space({"x": [1.0, 2.0]}, {"x": [1.0, 5.0]}, sources=np.array([1, -1]))
    assert found.owners.tolist() == [1, -1]
    assert found.rows.tolist() == [1]


def test_persons_are_the_unit_and_whoever_has_none_is_alone():
    table = table_of({"x": [1.0] * 5, "who": ["b", None, "a", None, "b"]}, who=UNIT)
    persons = persons_of(table)
    assert persons[0] == persons[4]
    assert len(set(persons.tolist())) == 4
    assert best_by_person(persons, np.array([0.1, 0.2, 0.3, 0.4, 0.5])).tolist() == [0.3, 0.5, 0.2, 0.4]
    assert persons_of(table.select(["x"])).tolist() == [0, 1, 2, 3, 4]


def outside(register, **kinds):
    """An original of three persons, released without the first, and an intruder's own file."""
    original = table_of({"x": [1.0, 2.0, 3.0], "id": [11, 12, 13]}, id=kinds["id"])
    released = table_of({"x": [2.0, 3.0]})
    return Evidence(
        original,
        Release.of(released, source_rows=np.array([1, 2])),
        scenario=Scenario(columns=("x",), external="register"),
        resources={"register": table_of(register, **kinds)},
    )


@pytest.mark.parametrize("role", [UNIT, IDENTIFIER])
def test_an_external_file_is_matched_by_its_identifier(role):
    evidence = outside({"x": [3.1, 1.1, 9.0, 2.1], "id": [13, 11, 99, 12]}, id=role)
    assert why_pairs_unknown("dbrl", evidence) is None
    found = space_of(evidence, ("x",), Run(seed=1), metric="euclidean", scale="range")
    assert found.rows.tolist() == [0, 3]
    assert found.truth.tolist() == [1, 0]
    np.testing.assert_array_equal(found.owners[found.truth], found.persons)


def test_an_external_file_without_an_identifier_has_no_truth():
    evidence = outside({"x": [3.1, 1.1]}, id=IDENTIFIER)
    assert "person or identifier" in why_pairs_unknown("dbrl", evidence)
    found = space_of(evidence, ("x",), Run(seed=1), metric="euclidean", scale="range")
    assert found.truth is None


def test_a_share_of_the_records_is_held():
    table = table_of({"x": np.arange(40.0)})
    evidence = Evidence(table, Release.of(table), scenario=Scenario(records=0.25))
    held = held_rows(evidence, Run(seed=1))
    assert len(held) == len(set(held.tolist())) == 10
    np.testing.assert_array_equal(held, held_rows(evidence, Run(seed=1)))
    nobody = Evidence(table.take(np.arange(0)), Release.of(table), scenario=Scenario(records=0.25))
    assert len(held_rows(nobody, Run(seed=1))) == 0


def test_shuffling_keeps_the_truth_and_forgets_the_file_order():
    rng = np.random.default_rng(3)
    x = rng.normal(size=30)
    sources = rng.permutation(30)
    first = space({"x": x}, {"x": x[sources]}, sources=sources).shuffle(np.random.default_rng(1))
    straight = space({"x": x}, {"x": x}).shuffle(np.random.default_rng(1))
    np.testing.assert_array_equal(first.released_points, straight.released_points)
    np.testing.assert_array_equal(first.truth, straight.truth)
    np.testing.assert_array_equal(first.released_points[first.truth], first.known_points)
    np.testing.assert_array_equal(first.owners[first.truth], first.persons)
    np.testing.assert_array_equal(x[sources][first.released_rows], x[straight.released_rows])
    gone = space({"x": [1.0, 2.0]}, {"x": [2.0]}, sources=np.array([1]), scenario=Scenario(membership=False))
    assert gone.shuffle(np.random.default_rng(1)).truth.tolist() == [-1, 0]


def test_text_that_polars_holds_as_categories_is_text():
    first = pl.DataFrame({"c": ["a", "b"]}, schema={"c": pl.Enum(["b", "a"])})
    second = pl.DataFrame({"c": ["b", "z"]}, schema={"c": pl.Categorical})
    kind = {"c": Kind.NOMINAL}
    mine, theirs = codes_of_both(table_of(first, **kind), table_of(second, **kind), "c")
    assert theirs[0] == mine[1]
    assert theirs[1] not in mine


LINKAGES = ("dbrl", "gdbrl", "attribute-linkage", "interval-linkage", "direct-matching", "probabilistic-linkage",
            "certain-links")  # fmt: skip


@pytest.mark.parametrize("name", LINKAGES)
def test_a_known_column_that_cannot_be_compared_is_refused(name):
    """A set among the keys, and a number that is a category in the intruder's file."""
    keys = (Column("sex", Kind.NOMINAL, Role.KEY), Column("age", Kind.CONTINUOUS, Role.KEY))
    who = Column("id", Kind.NOMINAL, Role.IDENTIFIER)
    frame = pl.DataFrame({"sex": ["f", "m"], "age": [30.0, 40.0], "id": ["p", "q"]})
    baskets = Column("items", Kind.SET, Role.KEY)
    table = Table(frame.with_columns(items=pl.Series([["u"], ["v"]])), Schema((*keys, who, baskets)))
    measure = registry.measure(name)()
    found = measure.score(Evidence(table, Release.of(table, source_rows=np.arange(2))), Run(seed=1))
    assert found.status is Status.REFUSED
    assert "`items` (set)" in found.reason
    plain = Table(frame, Schema((*keys, who)))
    other = Schema((keys[0], Column("age", Kind.NOMINAL, Role.KEY), who))
    register = Table(frame.with_columns(age=pl.Series(["30", "40"])), other)
    evidence = Evidence(plain, Release.of(plain, source_rows=np.arange(2)), scenario=Scenario(external="register"), resources={"register": register})  # fmt: skip
    found = measure.score(evidence, Run(seed=1))
    assert found.status is Status.REFUSED
    assert "`age` (continuous, in `register` nominal)" in found.reason


# ------------------------------------------------------------------------------- ranks, and hierarchies

AREAS = Hierarchy.from_levels(
    pl.DataFrame(
        {"town": ["Ulm", "Bonn", "Kiel"], "land": ["south", "west", "north"], "part": ["a", "a", "b"]}
    ),
    name="areas",
)


def in_areas(original, released, **more):
    kinds = {"town": Kind.NOMINAL, "x": Kind.CONTINUOUS}
    sides = [
        Table(
            pl.DataFrame(side),
            Schema(
                tuple(
                    Column(name, kinds[name], Role.KEY, hierarchy="areas" * (name == "town")) for name in side
                )
            ),
        )
        for side in (original, released)
    ]
    return Evidence(sides[0], Release.record_by_record(sides[1]), resources={"areas": AREAS}, **more)


def test_ranks_are_taken_within_each_table_from_0_to_1():
    scenario = Scenario(membership=False)
    found = space({"x": [10.0, 30.0, 30.0, None]}, {"x": [7.0, 5.0]}, scale="rank", scenario=scenario)
    np.testing.assert_allclose(found.known_points[:, 0], [0.5 / 3, 2 / 3, 2 / 3, 0.5])
    np.testing.assert_allclose(found.released_points[:, 0], [0.75, 0.25])
    assert (found.n_codes, found.weights.tolist()) == (1, [1.0])  # that one is missing
    assert found.scale == "ranks within each table, from 0 to 1"


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "gower"])
def test_categories_are_as_far_as_their_lowest_common_label_is_high(metric):
    towns = ["Ulm", "Bonn", "Kiel", None]
    evidence = in_areas({"town": towns}, {"town": towns})
    found = space_of(evidence, ("town",), Run(seed=1), metric=metric, scale="range", nominal="hierarchy")
    everyone = np.arange(4)
    far = distances(found, everyone[:, None], everyone[None, :])
    heights = np.array([[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 3], [3, 3, 3, 0]]) / 3
    np.testing.assert_allclose(far, np.sqrt(heights) if metric == "euclidean" else heights)


def test_semantic_linkage_by_hand():
    """Where Ulm is not released, Bonn is nearer to it than Kiel: two show Bonn; to equality all are as far."""
    evidence = in_areas({"town": ["Ulm", "Bonn", "Kiel"]}, {"town": ["Bonn", "Bonn", "Kiel"]})
    equal, semantic = (
        registry.measure("dbrl")(nominal=nominal).score(evidence, Run(seed=1))
        for nominal in ("equal", "hierarchy")
    )
    assert equal.by_record.tolist() == pytest.approx([1 / 3, 1 / 2, 1])
    assert semantic.by_record.tolist() == [1 / 2, 1 / 2, 1]
    assert semantic.details["hierarchies"] == 1


@pytest.mark.parametrize("measure", ["dbrl", "gdbrl"])
def test_rank_linkage_is_not_moved_by_what_keeps_the_order(measure):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(60, 2))
    original = {"x": values[:, 0], "y": values[:, 1]}
    released = {"x": np.exp(3 * values[:, 0]), "y": values[:, 1] ** 3}
    sides = [table_of(each, x=Kind.CONTINUOUS, y=Kind.CONTINUOUS) for each in (original, released)]
    evidence = Evidence(sides[0], Release.record_by_record(sides[1]))
    for metric in ("euclidean", "chebyshev"):
        assert registry.measure(measure)(scale="rank", metric=metric).score(evidence, Run(seed=1)).value == 1
    assert (
        registry.measure(measure)().score(evidence, Run(seed=1)).value == 1
    )  # ranks are kept: it looks at them
    plain = replace(evidence, sampling=PersonSampling(ignore_person_links=True))
    assert registry.measure(measure)().score(plain, Run(seed=1)).value < 1


@pytest.mark.parametrize("nominal", ["equal", "hierarchy"])
@pytest.mark.parametrize(
    ("metric", "scale"), [("chebyshev", "rank"), ("chebyshev", "deviation"), ("manhattan", "rank")]
)
def test_the_proof_of_global_linkage_holds_in_every_space(metric, scale, nominal):
    rng = np.random.default_rng(4)
    towns = rng.choice(["Ulm", "Bonn", "Kiel"], 80)
    values = np.round(rng.normal(size=80), 1)
    shown = np.where(rng.random(80) < 0.3, rng.permutation(towns), towns)
    evidence = in_areas(
        {"x": values, "town": towns}, {"x": values + rng.normal(size=80) * 0.2, "town": shown}
    )
    measure = registry.measure("gdbrl")(metric=metric, scale=scale, nominal=nominal)
    found = measure.score(evidence, Run(seed=1))
    assert found.proof.verify(evidence, Run(seed=1)) is None
    space = measure.space(evidence, Run(seed=1), ("town", "x"))
    costs = distances(space, np.arange(80)[:, None], np.arange(80)[None, :])
    least = costs[linear_sum_assignment(costs)].mean()
    assert found.details["mean_distance"] == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("asked", [{"scale": "rank"}, {"metric": "chebyshev"}, {"nominal": "hierarchy"}])
@pytest.mark.parametrize("measure", ["dbrl", "gdbrl", "attribute-linkage", "interval-linkage"])
def test_one_generalised_cell_is_refused_where_its_distance_is_not_known(measure, asked):
    evidence = in_areas({"x": [1.0, 2, 3], "town": ["Ulm"] * 3}, {"x": [1.0, 2, 3], "town": ["Ulm"] * 3})
    coarse = pl.Series("x", [{"lo": 0.0, "hi": 2.0}] * 3)
    shown = replace(evidence.protected, frame=evidence.protected.frame.with_columns(coarse))
    found = registry.measure(measure)(**asked).score(evidence.read_as(shown), Run(seed=1))
    assert found.status is Status.REFUSED
    assert "exact values" in found.reason


def test_hierarchies_that_are_not_there_are_asked_for():
    evidence = in_areas({"town": ["Ulm"] * 3}, {"town": ["Ulm"] * 3})
    measure = registry.measure("dbrl")(nominal="hierarchy")
    assert measure.score(evidence, Run(seed=1)).status is Status.OK
    assert "none is declared" in measure.score(replace(evidence, resources={}), Run(seed=1)).reason
    unseen = in_areas({"town": ["Ulm"] * 3}, {"town": ["Rome"] * 3})
    reason = measure.score(unseen, Run(seed=1)).reason
    assert "not among its 3 leaves" in reason
    assert "Rome" not in reason
