"""Laws of local linkage, and DBRL against all pairs in exact fractions.

There a missing value is one of its own; what suppressed cells may stand for is in `test_suppressed_cells`.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import APPROACH, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.global_linkage import GlobalLinkage, distances
from sfumato.risk.intervals import IntervalDisclosure, IntervalLinkage, RankIntervalLinkage
from sfumato.risk.linkage import AttributeLinkage, DistanceLinkage
from toys import table_of

KINDS = {"x": Kind.CONTINUOUS, "y": Kind.ORDINAL, "c": Kind.NOMINAL}
numbers = st.one_of(st.integers(0, 4), st.none())
letters = st.one_of(st.sampled_from("abc"), st.none())


@st.composite
def tables(draw, *, min_size=1):
    """Two small tables of a number, a rank and a category with ties and holes, and who comes from whom."""
    n, m = draw(st.integers(min_size, 9)), draw(st.integers(min_size, 9))
    original, released = (
        {
            "x": draw(st.lists(numbers, min_size=size, max_size=size)),
            "y": draw(st.lists(numbers, min_size=size, max_size=size)),
            "c": draw(st.lists(letters, min_size=size, max_size=size)),
        }
        for size in (n, m)
    )
    sources = draw(st.lists(st.integers(0, n - 1), min_size=m, max_size=m))
    persons = draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return original, released, np.array(sources), persons


def evidence_of(original, released, sources, persons=None, *, membership=False):
    frames = [
        pl.DataFrame(each, schema={"x": pl.Float64, "y": pl.Int64, "c": pl.String})
        for each in (original, released)
    ]
    first = table_of(frames[0], **KINDS)
    if persons is not None:
        named = frames[0].with_columns(pl.Series("who", persons, dtype=pl.Int64))
        first = table_of(named, **KINDS, who=(Kind.NOMINAL, Role.PERSON))
    scenario = Scenario(columns=("x", "y", "c"), membership=membership)
    return Evidence(first, Release.of(table_of(frames[1], **KINDS), source_rows=sources), scenario=scenario)


def scaled(mine, theirs, metric, scale):
    """A column of both tables in exact units (squared ones for the Euclidean metric), as (coordinate, missing).

    Of the Euclidean metric the coordinates are whole and the unit stands apart, since a deviation has a root.
    """
    there = [Fraction(v) for v in mine if v is not None]
    others = [Fraction(v) for v in theirs if v is not None]
    of_scale = there or others
    if not of_scale:
        return [(Fraction(0), True)] * len(mine), [(Fraction(0), True)] * len(theirs), Fraction(1)
    mean = sum(of_scale) / len(of_scale)
    if scale == "pooled" or len(set(of_scale)) == 1:  # one value has no spread of its own
        of_scale = there + others
    unit = Fraction(max(of_scale) - min(of_scale))
    square = unit**2
    if scale == "deviation":
        middle = sum(of_scale) / len(of_scale)
        square = sum((v - middle) ** 2 for v in of_scale) / len(of_scale)
    place = [
        [(Fraction(v) - mean if v is not None else Fraction(0), v is None) for v in side]
        for side in (mine, theirs)
    ]
    by = (square if metric == "euclidean" else unit) or Fraction(1)
    return place[0], place[1], by


def exact_distances(original, released, metric, scale):
    n, m = len(original["x"]), len(released["x"])
    total = [[Fraction(0)] * m for _ in range(n)]
    ranks = {value: place for place, value in enumerate(sorted({*original["y"], *released["y"]} - {None}))}
    columns = {"x": (original["x"], released["x"])}
    columns["y"] = tuple(
        [None if v is None else ranks[v] for v in side["y"]] for side in (original, released)
    )
    for mine, theirs in columns.values():
        first, second, unit = scaled(mine, theirs, metric, scale)
        for i in range(n):
            for j in range(m):
                gap = abs(first[i][0] - second[j][0])
                total[i][j] += (gap**2 if metric == "euclidean" else gap) / unit
                total[i][j] += first[i][1] != second[j][1]
    for i in range(n):
        for j in range(m):
            total[i][j] += original["c"][i] != released["c"][j]
    return total


def exact_dbrl(distances, sources, persons, n):
    """Mean over persons of the best of their records, and the chance of each record."""
    persons = list(range(n)) if persons is None else persons
    chances = []
    for i, row in enumerate(distances):
        nearest = [j for j, d in enumerate(row) if d == min(row)]
        right = [j for j in nearest if persons[sources[j]] == persons[i]]
        chances.append(Fraction(len(right), len(nearest)))
    best = {}
    for person, chance in zip(persons, chances, strict=True):
        best[person] = max(best.get(person, Fraction(0)), chance)
    return sum(best.values()) / len(best), chances


@pytest.mark.parametrize(
    ("metric", "scale"),
    [("euclidean", "deviation"), ("euclidean", "pooled"), ("manhattan", "range"), ("gower", "pooled")],
)
@examples(40)
@given(tables())
def test_dbrl_is_that_of_all_pairs_in_fractions(metric, scale, drawn):
    original, released, sources, persons = drawn
    found = DistanceLinkage(metric=metric, scale=scale).measure(evidence_of(*drawn), Run(seed=1))
    value, chances = exact_dbrl(
        exact_distances(original, released, metric, scale), sources, persons, len(original["x"])
    )
    np.testing.assert_allclose(found.by_record, [float(chance) for chance in chances], rtol=1e-12)
    assert found.value == pytest.approx(float(value), rel=1e-12)


@given(tables())
def test_dbrl_by_hamming_is_that_of_all_pairs(drawn):
    original, released, sources, persons = drawn
    distances = [
        [sum(original[k][i] != released[k][j] for k in "xyc") for j in range(len(released["x"]))]
        for i in range(len(original["x"]))
    ]
    value, _ = exact_dbrl(distances, sources, persons, len(original["x"]))
    found = DistanceLinkage(metric="hamming").measure(evidence_of(*drawn), Run(seed=1))
    assert found.value == pytest.approx(float(value), rel=1e-12)


MEASURES = [
    DistanceLinkage(),
    DistanceLinkage(metric="mahalanobis"),
    DistanceLinkage(metric="learned"),
    AttributeLinkage(within=20),
    IntervalDisclosure(by="rank", width=40),
    IntervalLinkage(width=150),
    IntervalLinkage(width=60, by="rank"),
    RankIntervalLinkage(window=30),
]


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@examples(20)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(measure, drawn, chance):
    original, released, sources, persons = drawn
    order = list(range(len(sources)))
    chance.shuffle(order)
    turned = {name: [values[i] for i in order] for name, values in released.items()}
    first = measure.score(evidence_of(original, released, sources, persons), Run(seed=1))
    second = measure.score(evidence_of(original, turned, sources[order], persons), Run(seed=1))
    assert first.status is second.status
    np.testing.assert_allclose(first.value, second.value, rtol=1e-9)
    if first.status is Status.OK:
        assert 0 <= first.value <= 1
        assert 0 <= first.baseline <= 1
        np.testing.assert_allclose(first.by_record, second.by_record, rtol=1e-9)


@given(tables())
def test_a_person_is_never_safer_than_any_of_their_records(drawn):
    """Counted as one record each, nobody is linked better than the person whose record it is."""
    original, released, sources, _ = drawn
    persons = [i // 2 for i in range(len(original["x"]))]
    together = DistanceLinkage().score(evidence_of(original, released, sources, persons), Run(seed=1))
    apart = DistanceLinkage().score(evidence_of(original, released, sources), Run(seed=1))
    if together.details.get(APPROACH) == apart.details.get(APPROACH):
        assert (together.by_record >= apart.by_record - 1e-12).all()
    if len(persons) % 2 == 0:  # as many records for each: then the mean cannot fall either
        assert together.value >= apart.value - 1e-12


@st.composite
def perturbed(draw):
    """A mixed table large enough to learn from, with holes and persons of one to three records, and a release."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, share = draw(st.integers(1, 120)), draw(st.sampled_from([0.0, 0.1, 0.9]))
    values = {"x": rng.normal(size=n).round(1), "y": rng.integers(0, 5, n), "c": rng.choice(list("abc"), n)}
    noise = {"x": rng.normal(size=n), "y": rng.integers(0, 5, n), "c": rng.choice(list("abc"), n)}
    order = rng.permutation(n)
    original, released = (
        {
            name: [None if rng.random() < holes else v for v in each[rows].tolist()]
            for name, each in values.items()
        }
        for rows, holes in ((np.arange(n), 0.1), (order, 0.0))
    )
    for name, each in released.items():
        released[name] = [
            b if rng.random() < share else a for a, b in zip(each, noise[name].tolist(), strict=True)
        ]
    return original, released, order, draw(st.sampled_from([None, (np.arange(n) // 3).tolist()]))


@pytest.mark.parametrize("kind", [DistanceLinkage, GlobalLinkage])
@examples(20)
@given(perturbed())
def test_what_is_learned_never_finds_fewer_than_the_fixed_metrics(kind, drawn):
    """Neither by the number nor by what a requirement takes for the worst."""
    evidence, run = evidence_of(*drawn), Run(seed=1)
    found = kind(metric="learned").measure(evidence, run)
    assert found.status in {Status.OK, Status.APPROXIMATE}
    limit = Requirement(kind(), "<=", 1.0)
    for metric in ("euclidean", "manhattan", "mahalanobis"):
        fixed = kind(metric=metric).measure(evidence, run)
        assert found.value >= fixed.value
        assert np.isnan(limit.worst(found)) or limit.worst(found) >= limit.worst(fixed)
    if found.proof is not None:
        assert found.proof.verify(evidence, Run(seed=2)) is None


@given(tables())
def test_who_knows_the_members_is_never_worse_off(drawn):
    knows = DistanceLinkage().score(evidence_of(*drawn, membership=True), Run(seed=1))
    blind = DistanceLinkage().score(evidence_of(*drawn), Run(seed=1))
    assert knows.value >= blind.value - 1e-12


@given(st.lists(st.tuples(numbers, numbers, letters), min_size=1, max_size=12))
def test_the_original_itself_gives_away_whoever_is_unlike_the_others(records):
    """Each finds itself among those who are alike, missing values and all: nothing is left out."""
    table = {name: [record[i] for record in records] for i, name in enumerate("xyc")}
    found = DistanceLinkage().score(evidence_of(table, table, np.arange(len(records))), Run(seed=1))
    np.testing.assert_allclose(found.by_record, [1 / records.count(record) for record in records])
    assert found.value == pytest.approx(len(set(records)) / len(records))


@examples(25)
@given(tables(), st.integers(-3, 3), st.sampled_from([0.25, 1.0, 8.0]))
def test_units_and_offsets_do_not_matter(drawn, shift, unit):
    original, released, sources, persons = drawn
    turned = [
        {**each, "x": [None if v is None else v * unit + shift * 1e6 for v in each["x"]]}
        for each in (original, released)
    ]
    for measure in (DistanceLinkage(), IntervalLinkage(width=150), RankIntervalLinkage(window=30)):
        plain = measure.score(evidence_of(original, released, sources, persons), Run(seed=1))
        other = measure.score(evidence_of(*turned, sources, persons), Run(seed=1))
        np.testing.assert_allclose(plain.by_record, other.by_record, atol=1e-9)


@given(
    st.integers(0, 10**6), st.tuples(st.integers(2, 6), st.integers(2, 6)), st.integers(1, 3),
    st.sampled_from(["euclidean", "manhattan", "hamming", "gower"]), st.sampled_from([1, 3, 7, 10]),
)  # fmt: skip
@examples(400)
def test_interval_of_global_linkage_holds_all_linkages_of_least_cost(seed, sizes, width, metric, parts):
    """On small grids sums tie that are not sums of the same numbers: ⅓ + ⅓ and ⅔."""
    n, m = sizes
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(width)]
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in names))
    original, released = (
        Table(pl.DataFrame(dict(zip(names, rng.integers(0, 5, (width, size)) / parts, strict=True))), schema)
        for size in (n, m)
    )
    sources = np.where(np.arange(m) < n, np.arange(m), -1)
    evidence = Evidence(
        original, Release.of(released, source_rows=sources), scenario=Scenario(membership=False)
    )
    measure, run = GlobalLinkage(metric=metric), Run(seed=seed)
    found = measure.score(evidence, run)
    space = measure.space(evidence, run, tuple(names))
    far = distances(space, np.arange(n)[:, None], np.arange(m)[None, :])
    far, right = (far, np.eye(n, m)) if n <= m else (far.T, np.eye(m, n))
    rows = np.arange(len(far))
    linkages = np.array(list(itertools.permutations(range(far.shape[1]), len(far))))
    costs, hits = far[rows, linkages].sum(axis=1), right[rows, linkages].sum(axis=1)
    least = hits[costs <= costs.min() + 1e-11] / n
    assert found.interval == pytest.approx((least.min(), least.max()))
    assert found.proof.verify(evidence, run) is None
    if least.min() < least.max():
        narrower = replace(found.proof, interval=(least.max(), least.max()))
        assert narrower.verify(evidence, run) == "the interval leaves out linkages of least cost"
