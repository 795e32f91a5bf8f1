"""Linking generalised releases: who covers whom, with what loss, against all pairs."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from brute import chances_by_cells, covers, distances_to_cells, width
from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.risk import _box_distances
from sfumato.risk._box_distances import nearness_of
from sfumato.risk._coverage import TooManyBoxes, covering_of
from sfumato.risk.exact_match import ExactMatch
from sfumato.risk.linkage import AttributeLinkage, DistanceLinkage
from toys import table_of

GROUPS = {
    "a": ["a"], "b": ["b"], "c": ["c"], "d": ["d"], "e": ["e"],
    "early": ["a", "b"], "late": ["c", "d", "e"], "odd": ["a", "c", "e"],
}  # fmt: skip
NODES = Nodes.of(GROUPS, leaves=list("abcde"))


def score(evidence, measure=None):
    return (measure or DistanceLinkage()).score(evidence, Run(seed=1))


def evidence(original, released, kinds, *, nodes=None, sources=None):
    columns = tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())
    second = Table(pl.DataFrame(released), Schema(columns), nodes=nodes or {})
    rows = np.arange(len(second)) if sources is None else sources
    return Evidence(table_of(original, **dict(kinds)), Release.of(second, source_rows=rows))


def exhaustive(found, names):
    """Chances by all pairs, with what the data room says of intervals and nodes; a missing cell may be any."""
    n, m = len(found.original), len(found.protected)
    covered, losses = np.ones((n, m), dtype=bool), np.zeros(m)
    for name in names:
        values, column = found.original.frame[name], found.protected.frame[name]
        nodes = found.protected.nodes.get(name)
        gone = column.is_null().to_numpy()
        for i in range(n):
            one = covers(column, values.new_from_index(i, m), nodes=nodes)
            covered[i] &= one | gone
        ends = {} if nodes is not None else {"domain": (values.min(), values.max())}
        losses += np.where(gone, 1.0, width(column, nodes=nodes, **ends)) / len(names)
    chances = np.zeros(n)
    for i in range(n):
        if covered[i].any():
            best = covered[i] & (losses <= losses[covered[i]].min() + 1e-9)
            chances[i] = best[i] / best.sum()
    return chances


def test_intervals_by_hand():
    """20 and 25 share two boxes [20;29]; 31 lies in [30;39] and in [20;70], of which the first is narrower."""
    boxes = intervals([20, 20, 30, 20], [29, 29, 39, 70])
    found = score(evidence({"age": [20, 25, 31, 70]}, {"age": boxes}, {"age": Kind.CONTINUOUS}))
    assert found.by_record.tolist() == [0.5, 0.5, 1, 1]
    assert found.value == 0.75
    assert found.details["metric"] == "euclidean to what released values stand for, then information loss"
    assert found.details["not_covered"] == 0
    assert found.details["columns"] == 1


def test_a_narrower_box_of_another_is_taken():
    boxes = intervals([0, 10], [100, 30])
    found = score(evidence({"x": [20, 60]}, {"x": boxes}, {"x": Kind.CONTINUOUS}))
    # The second is taken for the first; the first lies farther off than all that covers the other, but none
    # that says less than its own is nearer wherever its value lies.
    assert found.by_record.tolist() == [0, 1]
    assert found.details["not_covered"] == 1


def test_one_coarse_cell_hides_nobody():
    """Perturbed incomes of five; of the last record the sex becomes either, of another the income any."""
    kinds = {"income": Kind.CONTINUOUS, "sex": Kind.NOMINAL}
    original = {"income": [100.0, 200.0, 300.0, 400.0, 500.0], "sex": list("fmfmf")}
    either = Nodes.of({"f": ["f"], "m": ["m"], "any": ["f", "m"]}, leaves=["f", "m"])
    moved = np.array(original["income"]) + 0.1
    sexes = pl.Series(["f", "m", "f", "m", "any"], dtype=either.dtype)
    found = score(evidence(original, {"income": moved, "sex": sexes}, kinds, nodes={"sex": either}))
    assert found.by_record.tolist() == [1, 1, 1, 1, 1]
    assert found.details["not_covered"] == 5
    wild = intervals([*moved[:4], -np.inf], [*moved[:4], np.inf])
    found = score(evidence({"income": original["income"]}, {"income": wild}, {"income": Kind.CONTINUOUS}))
    assert found.by_record.tolist() == [1, 1, 1, 1, 1]  # a wildcard is as near to all, and hides none


def test_a_suppressed_value_may_be_any():
    boxes = intervals([10, None, 30], [19, None, 39], missing=[False, True, False])
    found = score(evidence({"x": [12, 25, 33]}, {"x": boxes}, {"x": Kind.CONTINUOUS}))
    assert found.by_record.tolist() == [1, 1, 1]  # to say that nothing covers 25 would understate it


def test_a_missing_value_is_covered_by_what_says_nothing():
    kinds = {"x": Kind.CONTINUOUS}
    boxes = intervals([10, None, 30, None], [19, None, 39, None], missing=[False, True, False, False])
    found = score(evidence({"x": [12, None, None, 50]}, {"x": boxes}, kinds))
    assert found.by_record.tolist() == [1, 0.5, 0, 0.5]


def test_groups_by_hand():
    """“odd” is no range of the leaves, so it is looked up in parts; its loss is 2/4, that of “late” 2/4 too."""
    labels = pl.Series("g", ["odd", "late", "c", "*"], dtype=NODES.dtype)
    kinds = {"g": Kind.NOMINAL}
    found = score(evidence({"g": ["a", "e", "c", "b"]}, {"g": labels}, kinds, nodes={"g": NODES}))
    assert found.by_record.tolist() == [1, 0.5, 1, 1]


def test_dates_of_another_type():
    boxes = intervals(
        pl.Series([date(2020, 1, 1), date(2020, 2, 1)]), pl.Series([date(2020, 1, 31), date(2020, 2, 28)])
    )
    days = [datetime(2020, 1, 15, 12), datetime(2020, 2, 3)]  # noqa: DTZ001
    found = score(evidence({"d": days}, {"d": boxes}, {"d": Kind.DATE}))
    assert found.by_record.tolist() == [1, 1]


@pytest.mark.parametrize("kind", [Kind.ORDINAL, Kind.NOMINAL])
def test_numbers_of_any_kind_lie_in_intervals_of_values(kind):
    boxes = intervals([1, 8], [5, 9])
    found = score(evidence({"o": [3, 9]}, {"o": boxes}, {"o": kind}))
    assert found.by_record.tolist() == [1, 1]


@pytest.mark.parametrize(("seed", "places"), [*((seed, 1024) for seed in range(6)), (6, 3), (7, 1)])
def test_agrees_with_all_pairs(seed, places, monkeypatch):
    """Intervals, groups that are no ranges, wildcards, exact and suppressed cells, and boxes that miss.

    Also where many numbers share a place when those who may cover them are looked for.
    """
    monkeypatch.setattr(_box_distances, "_PLACES", places)
    rng = np.random.default_rng(seed)
    n = 60 if places > 3 else 150  # more boxes than fit into a word or two
    ages, letters = rng.integers(0, 40, n), rng.choice(list("abcde"), n)
    starts = ages // 10 * 10 - rng.integers(0, 2, n) * 5
    boxes = intervals(starts, starts + rng.integers(5, 15, n), missing=rng.random(n) < 0.1)
    holding = [[label for label, members in GROUPS.items() if letter in members] for letter in letters]
    labels = [rng.choice(fitting) for fitting in holding]
    labels = [
        None if u < 0.05 else "*" if u < 0.1 else label
        for u, label in zip(rng.random(n), labels, strict=True)
    ]
    released = {"age": boxes, "g": pl.Series(labels, dtype=NODES.dtype)}
    kinds = {"age": Kind.CONTINUOUS, "g": Kind.NOMINAL}
    found = evidence({"age": ages, "g": letters}, released, kinds, nodes={"g": NODES})
    near, far, losses = distances_to_cells(found, ("age", "g"))
    chances, covered = chances_by_cells(near, far, losses), np.diagonal(near) == 0
    np.testing.assert_allclose(score(found).by_record, chances, atol=1e-12)
    np.testing.assert_allclose(chances[covered], exhaustive(found, ["age", "g"])[covered], atol=1e-12)
    assert 0 < covered.mean() < 1
    persons = rng.integers(0, n // 3, n)
    owners = np.where(rng.random(n) < 0.1, -1, persons)
    boxes = nearness_of(found, ("age", "g"), np.arange(n), metric="euclidean", scale="deviation")
    expected = chances_by_cells(near, far, losses, persons, owners)
    np.testing.assert_allclose(boxes.links(persons, owners).chances, expected, atol=1e-12)
    others = (near == 0) & (owners != persons[:, None])
    mine = (near == 0) & (owners == persons[:, None])
    assert np.array_equal(
        boxes.is_covered_by_own_only(persons, owners), mine.any(axis=1) & ~others.any(axis=1)
    )
    points, classes, _ = boxes.covering(most=n * n)
    listed = np.zeros((n, len(boxes.shown.losses)), dtype=bool)
    listed[points, classes] = True
    assert np.array_equal(listed[:, boxes.classes], near == 0)


@pytest.mark.parametrize("seed", range(3))
def test_boxes_that_miss_some_of_many_categories(seed):
    """From none to all of six columns are missed, in more boxes than fit into a word."""
    rng = np.random.default_rng(seed)
    n, names = 80, ("g1", "g2", "g3", "g4", "g5", "g6")
    letters = {name: rng.choice(list("abcde"), n) for name in names}
    labels = {name: pl.Series(rng.choice([*GROUPS, "*"], n), dtype=NODES.dtype) for name in names}
    kinds = dict.fromkeys(names, Kind.NOMINAL)
    found = evidence(letters, labels, kinds, nodes=dict.fromkeys(names, NODES))
    near, far, losses = distances_to_cells(found, names)
    np.testing.assert_allclose(score(found).by_record, chances_by_cells(near, far, losses), atol=1e-12)
    boxes = nearness_of(found, names, np.arange(n), metric="euclidean", scale="deviation")
    pricing, free = (
        kernels.box_distances.Pricing(2.0**30, np.inf),
        np.zeros(len(boxes.shown.losses), np.int64),
    )
    costs = np.rint((near + losses) * 2.0**30)
    for reach in (0.51, 1.23, 1.61, 1.93, 2.21, 3.53):
        limits = np.full(n, int(reach * 2.0**30))
        points, classes, listed = boxes.pairs(pricing, limits, free, most=n * n)
        is_listed = np.zeros((n, len(free)), dtype=bool)
        is_listed[points, classes] = True
        assert np.array_equal(is_listed[:, boxes.classes], costs <= limits[0])
        nearest = kernels.box_distances.best(boxes.points, boxes.shown, pricing, limits, free, 3, None)
        for i in range(n):
            wanted = np.sort(listed[points == i])[:3]
            assert np.array_equal(np.sort(nearest[2][nearest[0] == i]), wanted)


def test_exact_columns_beside_generalised_ones_must_agree():
    boxes = intervals([0, 0, 0], [9, 9, 9])
    released = {"age": boxes, "town": ["x", "y", "x"], "size": [1.5, 1.5, None]}
    kinds = {"age": Kind.CONTINUOUS, "town": Kind.NOMINAL, "size": Kind.CONTINUOUS}
    original = {"age": [1, 2, 3], "town": ["x", "y", "x"], "size": [1.5, 1.5, 2.5]}
    assert score(evidence(original, released, kinds)).by_record.tolist() == [1, 1, 1]
    original["size"] = [2.5, 1.5, 1.5]  # the third is covered by a narrower one than its own
    assert score(evidence(original, released, kinds)).by_record[1:].tolist() == [1, 0]


def test_boxes_say_whose_they_are():
    labels = pl.Series("g", ["odd", "early"], dtype=NODES.dtype)
    found = evidence({"g": ["c", "b"]}, {"g": labels}, {"g": Kind.NOMINAL}, nodes={"g": NODES})
    covering = covering_of(found, ("g",), np.arange(2))
    inside = (covering.lows[:, 0] <= covering.points[:, :1]) & (
        covering.points[:, :1] <= covering.highs[:, 0]
    )
    assert [covering.records[row].tolist() for row in inside] == [[0], [1]]


def test_sets_that_would_fall_apart_into_many_boxes_are_compared_as_they_are():
    leaves = [str(i) for i in range(400)]
    rng = np.random.default_rng(1)
    sets = {f"s{i}": rng.choice(leaves, 120, replace=False) for i in range(12)}
    nodes = Nodes.of(sets, leaves=leaves)
    labels = pl.Series("g", [f"s{i}" for i in range(12)], dtype=nodes.dtype)
    both = {"g": Kind.NOMINAL, "h": Kind.NOMINAL}
    found = evidence(
        {name: [each[i] for each in sets.values()] for i, name in enumerate(both)},
        {"g": labels, "h": labels},
        both,
        nodes={"g": nodes, "h": nodes},
    )
    with pytest.raises(TooManyBoxes, match="boxes"):
        covering_of(found, ("g", "h"), np.arange(12))
    np.testing.assert_allclose(score(found).by_record, exhaustive(found, ["g", "h"]), atol=1e-12)
    near, _, _ = distances_to_cells(found, ("g", "h"))
    alone = (np.diagonal(near) == 0) & ((near == 0).sum(axis=1) == 1)
    assert np.array_equal(score(found, ExactMatch()).by_record, alone)
    assert 0 < alone.sum() < 12


def test_who_cannot_read_intervals_says_so():
    boxes = intervals([0, 0], [9, 9])
    kinds = {"age": Kind.CONTINUOUS, "x": Kind.CONTINUOUS}
    found = evidence({"age": [1, 2], "x": [1.0, 2.0]}, {"age": boxes, "x": [1.0, 2.0]}, kinds)
    assert score(found, AttributeLinkage()).status is Status.REFUSED
    turned = Evidence(found.protected, Release.of(found.original, source_rows=np.arange(2)))
    refused = score(turned)
    assert refused.status is Status.REFUSED
    assert "`age`" in refused.reason


def test_ordinal_text_has_no_intervals():
    found = evidence({"o": ["low", "high"]}, {"o": intervals([1, 2], [2, 3])}, {"o": Kind.ORDINAL})
    with pytest.raises(DataError, match="must hold numbers to lie in ranges"):
        score(found)
