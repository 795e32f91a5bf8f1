"""GenILoss, precision, ambiguity and non-uniform entropy on ranges and labels, worked out by hand."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest

from brute import width
from pairs import score, table
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.hierarchy.build import from_intervals
from sfumato.data.hierarchy.grow import propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.recoding import Recoding
from sfumato.utility.ambiguity import Ambiguity, NonUniformEntropy
from sfumato.utility.generalisation import GeneralisedInformationLoss, PrecisionLoss

COARSE = [GeneralisedInformationLoss, PrecisionLoss, Ambiguity, NonUniformEntropy]
LEAST = {Ambiguity: 1.0}


@pytest.fixture
def climbed(work):
    """Four people's work at four levels: as it was, its kind, everything, suppressed."""
    nodes = work.nodes()
    values = ["Private", "Federal", "State", "Never"]
    shown = pl.Series(["Private", "Government", "*", None], dtype=nodes.dtype)
    return table({"work": values}, Kind.NOMINAL), table({"work": shown}, Kind.NOMINAL, nodes={"work": nodes})


def test_levels_of_a_hierarchy(climbed):
    """Levels 0, 1, 2 and suppressed of two: (0 + 1/2 + 1 + 1) / 4; five steps were taken."""
    found = score(PrecisionLoss(), *climbed)
    assert found.by_record.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert found.value == 0.625
    assert found.details["steps"] == 5


def test_leaves_below_a_label(climbed):
    """One, two and five of five leaves: (0 + 1/4 + 1 + 1) / 4."""
    found = score(GeneralisedInformationLoss(), *climbed)
    assert found.by_record.tolist() == [0.0, 0.25, 1.0, 1.0]
    assert found.value == 0.5625
    assert (found.details["generalised_cells"], found.details["suppressed_cells"]) == (1, 2)


def test_a_step_that_covers_no_more_is_none(work):
    """Never is alone under None: the label says as much as the value."""
    nodes = work.nodes()
    x = table({"work": ["Never", "State"]}, Kind.NOMINAL)
    y = table({"work": pl.Series(["None", "State"], dtype=nodes.dtype)}, Kind.NOMINAL, nodes={"work": nodes})
    for cls in COARSE:
        assert score(cls(), x, y).value == LEAST.get(cls, 0.0)


def test_deep_and_shallow_branches():
    """a under ab under abc under all; d directly under all: the root is on level 3 for both."""
    nodes = Nodes.of(
        {"a": ["a"], "d": ["d"], "ab": ["a", "b"], "abc": ["a", "b", "c"]}, leaves=["a", "b", "c", "d"]
    )
    x = table({"x": list("aaad")}, Kind.NOMINAL)
    shown = pl.Series(["a", "ab", "abc", "*"], dtype=nodes.dtype)
    found = score(PrecisionLoss(), x, table({"x": shown}, Kind.NOMINAL, nodes={"x": nodes}))
    assert found.by_record.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_ranges_by_hand():
    """Ages 20 to 60: [20; 30], [60; 60], 40 and above, unknown."""
    x = table({"age": [20, 60, 45, 50]})
    y = table({"age": intervals([20, 60, 40, None], [30, 60, None, None])})
    for cls in (GeneralisedInformationLoss, PrecisionLoss):
        assert score(cls(), x, y).by_record.tolist() == [0.25, 0.0, 0.5, 1.0]
    lows, highs = [20, 60, 40, None], [30, 60, None, None]
    assert width(intervals(lows, highs), domain=(20, 60)).tolist() == [0.25, 0.0, 0.5, 1.0]


def test_ranges_outside_the_column_are_cut():
    x = table({"age": [20.0, 60.0]}, age={"lower": 0, "upper": 80})
    y = table({"age": intervals([-20.0, 40.0], [20.0, 100.0])}, age={"lower": 0, "upper": 80})
    assert score(GeneralisedInformationLoss(), x, y).by_record.tolist() == [0.25, 0.5]


def test_ranges_of_positions_and_days():
    """Ordinal 1, 2, 4, 8: the range 2–8 spans positions 1 to 3 of 3."""
    x = table({"x": [1, 2, 4, 8]}, Kind.ORDINAL)
    y = table({"x": intervals([1, 2, 2, 8], [1, 8, 4, 8])}, Kind.ORDINAL)
    assert score(GeneralisedInformationLoss(), x, y).by_record.tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0])
    days = [date(2020, 1, 1), date(2020, 1, 11)]
    x, y = (
        table({"d": days}, Kind.DATE),
        table({"d": intervals(days, [date(2020, 1, 6), days[1]])}, Kind.DATE),
    )
    assert score(GeneralisedInformationLoss(), x, y).by_record.tolist() == [0.5, 0.0]


def test_ambiguity_by_hand():
    """Two of three ages times two sexes, and exact: (4 + 1 + 1) / 3; by column (2+1+1)/3 and the same."""
    x = table({"age": [20, 30, 50], "sex": ["f", "m", "f"]}, {"age": Kind.CONTINUOUS, "sex": Kind.NOMINAL})
    y = table(
        {"age": intervals([15, 30, 50], [35, 30, 50]), "sex": [None, "m", "f"]},
        {"age": Kind.CONTINUOUS, "sex": Kind.NOMINAL},
    )
    found = score(Ambiguity(), x, y)
    assert found.value == pytest.approx(2.0)
    assert found.by_column == {"age": pytest.approx(4 / 3), "sex": pytest.approx(4 / 3)}
    assert found.by_record.tolist() == [4.0, 1.0, 1.0]
    assert found.details["bits"] == pytest.approx(2 / 3)


def test_ambiguity_of_labels(climbed):
    """1, 2, 4 and 4 of the four leaves that occur, as ranges would count them."""
    assert score(Ambiguity(), *climbed).value == pytest.approx(11 / 4)


def test_too_many_combinations_are_no_number():
    n, m = 1100, 110
    columns = {f"c{i:03}": np.arange(n) for i in range(m)}
    gone = {name: pl.Series([None] * n, dtype=pl.Int64) for name in columns}
    found = score(Ambiguity(), table(columns), table(gone))
    assert found.status is Status.NOT_ESTIMABLE


def test_entropy_by_hand():
    """Values a, a, a, b. Suppressing one a costs log2(4/3), of 3 log2(4/3) + 2 altogether."""
    x = table({"x": list("aaab")}, Kind.NOMINAL)
    y = table({"x": ["a", "a", None, "b"]}, Kind.NOMINAL)
    bits = np.log2(4 / 3)
    found = score(NonUniformEntropy(), x, y)
    assert found.value == pytest.approx(bits / (3 * bits + 2))
    assert found.by_record.tolist() == pytest.approx([0, 0, bits, 0])


def test_entropy_of_labels_counts_records():
    """Private 3, Self-emp 1, Federal 4: a Self-emp among Business is one of four, a Private three of four."""
    nodes = Nodes.of({"F": ["F"], "B": ["P", "S"], "P": ["P"]}, leaves=["P", "S", "F"])
    x = table({"x": list("PPPSFFFF")}, Kind.NOMINAL)
    shown = pl.Series(["B", "P", "P", "B", "F", "F", "F", "F"], dtype=nodes.dtype)
    found = score(NonUniformEntropy(), x, table({"x": shown}, Kind.NOMINAL, nodes={"x": nodes}))
    assert found.by_record.tolist() == pytest.approx([np.log2(4 / 3), 0, 0, 2, 0, 0, 0, 0])


def test_what_is_false_is_lost():
    """A value in a range that does not hold it, or replaced by another, counts as suppressed."""
    x = table({"x": [1, 2, 3, 4]})
    for y in ([2, 2, 3, 4], intervals([3, 2, 3, 4], [4, 2, 3, 4])):
        found = score(NonUniformEntropy(), x, table({"x": y}))
        assert found.by_record.tolist() == [2.0, 0.0, 0.0, 0.0]
        assert found.value == 0.25


def test_weights_make_frequencies():
    """With weights 3, 1 the value a has three quarters, and a record of it counts threefold."""
    x = table({"x": ["a", "b"], "weight": [3.0, 1.0]}, {"x": Kind.NOMINAL})
    y = table({"x": [None, "b"]}, Kind.NOMINAL)
    all_bits = 3 * np.log2(4 / 3) + 2
    assert score(NonUniformEntropy(), x, y).value == pytest.approx(3 * np.log2(4 / 3) / all_bits)
    assert score(GeneralisedInformationLoss(), x, y).value == 0.75
    assert score(Ambiguity(), x, y).value == pytest.approx((3 * 2 + 1) / 4)


@pytest.mark.parametrize("cls", COARSE)
def test_everything_suppressed_is_the_other_extreme(cls):
    x = table({"a": [1, 2, 3], "b": list("uvv")}, {"a": Kind.CONTINUOUS, "b": Kind.NOMINAL})
    gone = {"a": pl.Series([None] * 3, dtype=pl.Int64), "b": pl.Series([None] * 3, dtype=pl.String)}
    y = table(gone, {"a": Kind.CONTINUOUS, "b": Kind.NOMINAL})
    assert score(cls(), x, y).value == pytest.approx(6.0 if cls is Ambiguity else 1.0)
    left_out = y.take(np.arange(0))
    assert score(cls(), x, left_out, rows=np.zeros(0, dtype=int)).value == pytest.approx(
        score(cls(), x, y).value
    )


@pytest.mark.parametrize("cls", [GeneralisedInformationLoss, PrecisionLoss, Ambiguity])
def test_noise_and_records_that_do_not_map_can_be_measured(cls):
    x, y = table({"x": [1.0, 2.0, 3.0]}), table({"x": [1.5, 2.5]})
    found = score(cls(), x, y, rows=None)
    assert found.value == LEAST.get(cls, 0.0)
    assert found.by_record is None
    half = score(cls(), x, table({"x": [1.5, None]}), rows=None)
    assert half.value == (2.0 if cls is Ambiguity else 0.5)


@pytest.mark.parametrize("cls", COARSE)
def test_says_why_not(cls):
    coarse = table({"x": intervals([1.0, 2.0], [1.0, 5.0])})
    assert "exact values in the original" in score(cls(), coarse, coarse).reason
    nothing = table({"x": pl.Series([None, None], dtype=pl.Float64)})
    assert score(cls(), nothing, nothing).status is Status.NOT_ESTIMABLE
    if cls is NonUniformEntropy:
        x = table({"x": [1.0, 2.0]})
        assert "do not map" in score(cls(), x, x, rows=None).reason
        same = table({"x": [1.0, 1.0]})
        assert score(cls(), same, same).status is Status.NOT_ESTIMABLE


# Sweeney's precision -----------------------------------------------------------------------------------

RACES = Hierarchy.from_levels(
    pl.DataFrame({"0": ["asian", "black", "white"], "1": ["person"] * 3, "2": ["*"] * 3}), name="race"
)
ZIPS = ["02138", "02139", "02141", "02142"]
#: Z0 to Z4: the values, four digits, three, two, none; 021** and 02*** cover as much as the root.
AREAS = Hierarchy.from_levels(
    pl.DataFrame(
        {"0": ZIPS, **{str(i): [z[: 5 - i] + "*" * i for z in ZIPS] for i in (1, 2, 3)}, "4": ["*"] * 4}
    ),
    name="zip",
)


@pytest.mark.parametrize("race", [0, 1, 2])
@pytest.mark.parametrize("area", [0, 1, 2, 3, 4])
def test_precision_is_by_levels_whatever_they_cover(race, area):
    """The mean over all cells of the level as a share of the height: (race/2 + zip/4) / 2."""
    columns = (
        Column("race", Kind.NOMINAL, Role.KEY, hierarchy="race"),
        Column("zip", Kind.NOMINAL, Role.KEY, hierarchy="zip"),
    )
    frame = pl.DataFrame({"race": [r for r in ("asian", "black", "white") for _ in ZIPS], "zip": ZIPS * 3})
    people = Table(frame, Schema(columns), targets=("race", "zip"))
    run = Run(seed=1, resources={"race": RACES, "zip": AREAS})
    release = Recoding(levels={"race": race, "zip": area}).apply(people, run)
    found = PrecisionLoss().score(Evidence(people, release), run)
    assert found.value == pytest.approx((race / 2 + area / 4) / 2)
    assert found.details.get("steps", 0) == 12 * (race + area)


def test_ranges_on_levels_count_by_level_and_others_by_width():
    """Ages by 5, 10 and 20 years: [20;24] is level 1 of 4, [20;29] 2, [20;39] 3; [20;40] is on none: 20 of 40."""
    ages = [20, 24, 30, 60]
    tree = from_intervals(range(20, 61), widths=[5, 10, 20])
    x = table({"age": ages}, age={"hierarchy": "tree"})
    y = table({"age": intervals([20, 20, 20, 60], [24, 29, 39, 60])}, age={"hierarchy": "tree"})
    evidence = replace(Evidence(x, Release.of(y, source_rows=np.arange(4))), resources={"tree": tree})
    assert PrecisionLoss().score(evidence, Run(seed=1)).by_record.tolist() == [0.25, 0.5, 0.75, 0.0]
    y = table({"age": intervals([20, 20, 20, None], [40, 40, 40, None])}, age={"hierarchy": "tree"})
    evidence = replace(Evidence(x, Release.of(y, source_rows=np.arange(4))), resources={"tree": tree})
    assert PrecisionLoss().score(evidence, Run(seed=1)).by_record.tolist() == [0.5, 0.5, 0.5, 1.0]


RNG = np.random.default_rng(7)
NUMBERS = {
    "widths": RNG.integers(0, 200, 300),
    "quantiles": RNG.lognormal(size=300).round(3),
    "whole decimals": RNG.integers(-50, 90, 300).astype(float),
    "on cuts": RNG.integers(0, 100, 300) * 2.5,
    "one value": np.full(300, 7.0),
    "beyond doubles": RNG.integers(0, 2**60, 300).astype(float),
}


@pytest.mark.parametrize("stated", [{}, {"lower": -1000, "upper": 2**61}])
@pytest.mark.parametrize("values", NUMBERS.values(), ids=list(NUMBERS))
def test_levels_of_a_hierarchy_that_grows_are_those_of_the_one_written(values, stated):
    """Ranges of all levels, each beside its own value and beside another, as the written hierarchy has them."""
    shown = pl.Series("x", values).scatter([0, 50], None)
    people = table({"x": shown}, x=stated)
    tree = propose(people.schema["x"], shown)
    given = people.with_values("x", shown, column=replace(people.schema["x"], hierarchy="tree"))
    release = KeyLevels.of(people, "x", tree, "root").write(people, RNG.integers(0, tree.height, 300))
    for rows in (np.arange(300), RNG.permutation(300)[:200]):
        some = Release.of(release.take(np.sort(rows)), source_rows=rows)
        evidence = replace(Evidence(given, some), resources={"tree": tree})
        expected = PrecisionLoss().score(evidence, Run(seed=1))
        found = PrecisionLoss().score(Evidence(people, some), Run(seed=1))
        assert found.value == expected.value
        np.testing.assert_array_equal(found.by_record, expected.by_record)
