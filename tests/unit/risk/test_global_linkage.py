"""Global linkage: the paper's examples, SciPy and brute force as oracles, and proofs that can be checked."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.global_linkage import GlobalLinkage, distortion
from sfumato.risk.linkage import DistanceLinkage


def table(points, *, kinds=None, **more) -> Table:
    points = [list(point) if isinstance(point, tuple) else np.atleast_1d(point).tolist() for point in points]
    names = [f"c{i}" for i in range(len(points[0]))]
    kinds = kinds or [Kind.CONTINUOUS] * len(names)
    columns = tuple(Column(name, kind, Role.KEY) for name, kind in zip(names, kinds, strict=True))
    frame = pl.DataFrame(points, schema=names, orient="row")
    for name, (values, role) in more.items():
        frame = frame.with_columns(pl.Series(name, values))
        columns = (*columns, Column(name, Kind.NOMINAL, role))
    return Table(frame, Schema(columns))


def evidence_of(original, released, rows=None, **scenario) -> Evidence:
    original = original if isinstance(original, Table) else table(original)
    released = released if isinstance(released, Table) else table(released)
    rows = np.arange(len(released)) if rows is None else np.asarray(rows)
    release = Release.of(released, source_rows=rows)
    return Evidence(original, release, scenario=Scenario(**scenario))


def score(evidence, **settings):
    return GlobalLinkage(**settings).score(evidence, Run(seed=3))


CROSS = ([(1, 0), (0, 1), (-1, 0), (0, -1)], [(0, 0), (0, 2.1), (-2.1, 0), (0, -2.1)])
LINE = ([1, 2, 3, 4], [2, 3, 4, -0.1])


@pytest.mark.parametrize(("files", "local", "all_at_once"), [(CROSS, 0.25, 1.0), (LINE, 0.25, 0.0)])
def test_the_examples_of_the_paper(files, local, all_at_once):
    """Section 3.2: the global linkage finds everyone where the local one finds one in four, and vice versa."""
    evidence = evidence_of(*files)
    assert DistanceLinkage().score(evidence, Run(seed=3)).value == local
    result = score(evidence)
    assert result.value == all_at_once
    assert result.status is Status.OK
    assert result.proof.verify(evidence, Run(seed=9)) is None


def test_a_tampered_certificate_is_rejected():
    rng = np.random.default_rng(5)
    original = rng.normal(size=(40, 3))
    evidence = evidence_of(original, original + rng.normal(size=(40, 3)))
    proof = score(evidence).proof
    assert proof.verify(evidence, Run(seed=1)) is None
    turned = proof.partners.copy()
    turned[[0, 1]] = turned[[1, 0]]
    dearer = proof.row_prices.copy()
    dearer[3] += 5
    broken = [
        replace(proof, partners=turned),
        replace(proof, row_prices=dearer),
        replace(proof, column_prices=proof.column_prices + 1),
        replace(proof, value=proof.value + 0.025),
        replace(proof, released=proof.released[::-1].copy()),
        replace(proof, rows=proof.rows[:-1]),
    ]
    for forged in broken:
        try:
            told = forged.verify(evidence, Run(seed=1))
        except ValueError:  # one price too few
            continue
        assert told
    other = evidence_of(original, original + rng.normal(size=(40, 3)))
    assert proof.verify(other, Run(seed=1))


def scaled(original, released):
    """Distances by hand: numbers in deviations of the original."""
    spread = original.std(axis=0)
    spread[spread == 0] = 1
    return np.linalg.norm((original[:, None] - released[None]) / spread, axis=2)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 40), d=st.integers(1, 4), noise=st.floats(0.01, 3))
def test_against_scipy(seed, n, d, noise):
    """Without ties there is one linkage of least cost, and SciPy's dense solver finds it too."""
    rng = np.random.default_rng(seed)
    original = rng.lognormal(size=(n, d))
    released = original + rng.normal(size=(n, d)) * noise
    costs = scaled(original, released)
    if d == 1:
        return  # on a line many linkages cost the same; see below
    rows, columns = linear_sum_assignment(costs)
    assert score(evidence_of(original, released)).value == pytest.approx((rows == columns).mean())


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30))
def test_mixed_columns_against_scipy(seed, n):
    """Two unequal categories add one to the squared distance, however large the numbers are."""
    rng = np.random.default_rng(seed)
    numbers, words = rng.normal(size=(n, 2)) * 1e3, rng.integers(0, 3, n)
    moved, turned = numbers + rng.normal(size=(n, 2)) * 400, rng.integers(0, 3, n)
    kinds = [Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.NOMINAL]
    evidence = evidence_of(
        table([(*pair, str(word)) for pair, word in zip(numbers.tolist(), words, strict=True)], kinds=kinds),
        table([(*pair, str(word)) for pair, word in zip(moved.tolist(), turned, strict=True)], kinds=kinds),
    )
    costs = np.sqrt(scaled(numbers, moved) ** 2 + (words[:, None] != turned[None]))
    rows, columns = linear_sum_assignment(costs)
    result = score(evidence)
    assert result.details["mean_distance"] == pytest.approx(costs[rows, columns].mean())
    assert result.value == pytest.approx((rows == columns).mean())


def optimal_matchings(costs):
    """All permutations of least cost, by trying every one."""
    n = len(costs)
    totals = {order: sum(costs[i][j] for i, j in enumerate(order)) for order in permutations(range(n))}
    least = min(totals.values())
    return [order for order, total in totals.items() if total <= least + 1e-9]


def expected_links(original, released, order):
    """The share of correct links if those who are alike change places at random."""
    n = len(original)
    alike = (original[:, None] == original).all(axis=2), (released[:, None] == released).all(axis=2)
    matched = np.zeros((n, n))
    matched[np.arange(n), order] = 1
    mixed = alike[0] / alike[0].sum(axis=1) @ matched @ (alike[1] / alike[1].sum(axis=1))
    return np.trace(mixed) / n


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), values=st.integers(1, 3), d=st.integers(1, 2))
def test_with_ties_the_value_lies_among_all_optima(seed, n, values, d):
    """On small grids many linkages cost the least: the interval has the fewest and most correct links."""
    rng = np.random.default_rng(seed)
    original = rng.integers(0, values, (n, d)).astype(float)
    released = rng.integers(0, values, (n, d)).astype(float)
    result = score(evidence_of(original, released), metric="manhattan")
    spread = original.std(axis=0)
    spread[spread == 0] = 1
    costs = (np.abs(original[:, None] - released[None]) / spread).sum(axis=2)
    hits = [sum(i == j for i, j in enumerate(order)) / n for order in optimal_matchings(costs)]
    assert min(hits) - 1e-12 <= result.value <= max(hits) + 1e-12
    assert result.interval == pytest.approx((min(hits), max(hits)))
    assert result.interval_is_proved
    told = [expected_links(original, released, order) for order in optimal_matchings(costs)]
    if result.status is Status.OK:  # then any of them would have told the same
        assert told == pytest.approx([result.value] * len(told))
    else:
        assert result.reason.startswith("several linkages cost the least")
        assert min(hits) < max(hits)
    found = [{(i, j) for i, j in enumerate(order) if i == j} for order in optimal_matchings(costs)]
    assert result.details["links_certain"] == len(set.intersection(*found))


def test_identical_records_share_their_links():
    """Two people who are alike in both files are told apart by nobody: each is found with chance one half."""
    result = score(evidence_of([0, 0, 5], [0, 0, 5]))
    assert result.by_record.tolist() == [0.5, 0.5, 1]
    assert result.value == pytest.approx(2 / 3)


def test_a_linkage_that_was_drawn_is_an_estimate():
    """Of a square each corner has two as near as each other: both ways to link cost the same."""
    evidence = evidence_of([(0, 0), (1, 1)], [(0, 1), (1, 0)])
    result = score(evidence, metric="manhattan")
    assert result.status is Status.APPROXIMATE
    assert result.value in {0.0, 1.0}
    assert result.interval == (0, 1)
    assert not Requirement.parse("gdbrl <= 0.99").met_by(result)
    assert Requirement.parse("gdbrl <= 1").met_by(result)


def test_file_order_gives_nothing_away():
    rng = np.random.default_rng(7)
    original = rng.integers(0, 3, (60, 2)).astype(float)
    released = rng.integers(0, 3, (60, 2)).astype(float)
    order = rng.permutation(60)
    straight = score(evidence_of(original, released))
    shuffled = score(evidence_of(original, released[order], rows=order))
    assert straight.value == shuffled.value
    np.testing.assert_array_equal(straight.by_record, shuffled.by_record)


def test_an_intruder_with_fewer_or_more_records():
    """Section 3.4 (a): dummies take the records that are left over."""
    rng = np.random.default_rng(2)
    original = rng.normal(size=(30, 3))
    released = original[:20] + 0.01 * rng.normal(size=(20, 3))
    more = score(evidence_of(original, released, rows=np.arange(20), membership=False))
    assert more.value == pytest.approx(20 / 30)  # ten of them are not in the file and are not found
    exact = score(evidence_of(original, released, rows=np.arange(20)))
    assert exact.value == 1.0
    whole = evidence_of(original, original + 0.01 * rng.normal(size=(30, 3)), records=0.5)
    part = score(whole)
    assert part.details["records"] == 15
    assert part.value == 1.0
    assert part.proof.verify(whole, Run(seed=77)) is None


def test_an_external_file_instead_of_the_original():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(12, 2))
    names = [f"p{i}" for i in range(12)]
    original = table(points, who=(names, Role.PERSON))
    external = table(points[:8] + 0.001, who=(names[:8], Role.PERSON))
    release = Release.of(table(points, who=(names, Role.PERSON)), source_rows=np.arange(12))
    evidence = Evidence(
        original,
        release,
        scenario=Scenario(columns=("c0", "c1"), external="register"),
        resources={"register": external},
    )
    result = score(evidence)
    assert result.value == 1.0
    assert result.details["records"] == 8


def test_persons_are_counted_once():
    points = [0.0, 0.1, 5.0, 9.0]
    people = (["a", "a", "b", "c"], Role.PERSON)
    evidence = evidence_of(
        table(points, who=people), table([0.1, 0.0, 9.0, 5.0], who=people), columns=("c0",)
    )
    result = score(evidence)
    assert result.value == pytest.approx(1 / 3)  # a is found by either record; b and c changed places
    assert result.details["persons"] == 3


def test_near_pairs_only():
    """All five sorts of pairs; the unrestricted optimum keeps to δ here, so GDBRL-δ is the same."""
    rng = np.random.default_rng(11)
    original = rng.normal(size=(80, 3))
    evidence = evidence_of(original, original + 0.8 * rng.normal(size=(80, 3)))
    free = score(evidence)
    space = GlobalLinkage().space(evidence, Run(seed=3), GlobalLinkage().columns(evidence))
    delta = distortion(space)
    costs = scaled(original, evidence.protected.frame.to_numpy())
    assert delta == pytest.approx(np.diagonal(costs).max())
    for pairs, limits in {
        "delta": np.full(80, delta),
        "own": np.diagonal(costs),
        "rank": np.partition(costs, h_of(costs), axis=1)[:, h_of(costs)],
    }.items():
        allowed = np.where(costs <= limits[:, None] * (1 + 1e-9), costs, 1e6)
        rows, columns = linear_sum_assignment(allowed)
        result = score(evidence, pairs=pairs)
        assert result.value == pytest.approx((rows == columns).mean())
        assert result.status is Status.OK
        assert result.proof.verify(evidence, Run(seed=1)) is None
    published = score(evidence, pairs="published", bound=delta * 1.001)
    assert published.value == score(evidence, pairs="delta").value
    assert score(evidence, pairs="published", bound=delta * 10).value == free.value
    assert score(evidence, pairs="own").value >= free.value


def h_of(costs):
    """Definition 3.4: the largest number of released records nearer than the own one."""
    return int((costs < np.diagonal(costs)[:, None]).sum(axis=1).max())


def test_a_bound_belongs_to_published_pairs():
    evidence = evidence_of(*CROSS)
    for settings in ({"pairs": "published"}, {"bound": 3.0}):
        assert score(evidence, **settings).status is Status.REFUSED
    assert score(evidence, pairs="published", bound=1e-3).status is Status.NOT_ESTIMABLE


def test_categories_and_missing_values():
    kinds = [Kind.NOMINAL, Kind.CONTINUOUS]
    rows = [("a", 1.0), ("b", 1.0), ("a", None), ("b", 7.0)]
    for metric in ("euclidean", "manhattan", "hamming", "gower"):
        evidence = evidence_of(table(rows, kinds=kinds), table(rows, kinds=kinds))
        result = score(evidence, metric=metric)
        assert result.value == 1.0
        assert result.proof.verify(evidence, Run(seed=1)) is None


def test_nothing_uncertified_is_called_exact():
    rng = np.random.default_rng(4)
    original = rng.normal(size=(3000, 6))
    evidence = evidence_of(original, original + rng.normal(size=(3000, 6)))
    result = score(evidence, rounds=1)
    if result.status is Status.OK:
        assert result.proof.verify(evidence, Run(seed=1)) is None
        assert result.details["gap"] == 0
    else:
        assert result.status is Status.APPROXIMATE
        assert result.details["gap"] > 0
        assert result.proof.verify(evidence, Run(seed=1))


def test_sums_that_tie_only_without_rounding():
    """Two linkages of least cost find 2 and 4 of 4: their distances are other numbers with the same sum."""
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("y", Kind.CONTINUOUS, Role.KEY)))
    original, released = (
        Table(pl.DataFrame({"x": xs, "y": ys}), schema)
        for xs, ys in (
            ([0.0, 0.0, 3.0, 3.0], [2.0, 3.0, 3.0, 1.0]),
            ([0.0, 0.0, 2.0, 2.0], [1.0, 2.0, 3.0, 2.0]),
        )
    )
    evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    found = GlobalLinkage().score(evidence, Run(seed=1))
    assert found.interval == (0.5, 1.0)
    assert found.status is Status.APPROXIMATE
    assert found.details["links_certain"] == 2
    assert found.proof.verify(evidence, Run(seed=1)) is None
    too_narrow = replace(found.proof, interval=(0.5, 0.5))
    assert "leaves out" in too_narrow.verify(evidence, Run(seed=1))


@pytest.mark.parametrize("how", ["rounded", "shifted"])
@pytest.mark.parametrize("seed", range(8))
def test_of_persons_with_several_records_no_linkage_finds_more_than_the_bound(seed, how):
    """Against every assignment of least cost, each by the share of identical records, by brute force."""
    rng = np.random.default_rng(seed)
    columns = (Column("who", Kind.NOMINAL, Role.PERSON), Column("x", Kind.CONTINUOUS, Role.KEY))
    who, x = rng.integers(0, 3, 6), rng.integers(0, 3, 6).astype(float)
    original = Table(pl.DataFrame({"who": [f"p{w}" for w in who], "x": x}), Schema(columns))
    # Rounded values leave one linkage of least cost, shifted ones several: on a line links may cross for free.
    shown = np.round(x / 2) * 2 if how == "rounded" else x + rng.permutation([0.0, 0.0, 1.0, 1.0, 2.0, 3.0])
    released = original.with_values("x", pl.Series(shown)).select(["x"])
    evidence = Evidence(original, Release.record_by_record(released))
    score = GlobalLinkage().score(evidence, Run(seed=1))
    costs = np.abs(np.subtract.outer(x, shown))
    every = [np.array(each) for each in permutations(range(6))]
    totals = np.array([costs[np.arange(6), each].sum() for each in every])
    finds = []
    for each in (every[i] for i in np.flatnonzero(totals == totals.min())):
        chance = np.zeros(6)
        for i in range(6):
            alike = x == x[i]
            flows = {c: np.sum(alike & (shown[each] == c)) / alike.sum() for c in set(shown)}
            own = {c: np.sum((shown == c) & (who == who[i])) / np.sum(shown == c) for c in set(shown)}
            chance[i] = sum(flows[c] * own[c] for c in flows)
        finds.append(np.mean([chance[who == person].max() for person in set(who)]))
    assert score.bound >= max(finds) - 1e-12
    if how == "rounded":
        assert (score.status, score.value) == (Status.OK, pytest.approx(min(finds)))
    else:
        assert score.status is Status.APPROXIMATE
        assert min(finds) - 1e-12 <= score.value < max(finds) + 1e-12
