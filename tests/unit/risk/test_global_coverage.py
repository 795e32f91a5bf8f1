"""Global linkage of generalised releases: enumeration and SciPy as oracles, and proofs that can be checked."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from brute import distances_to_cells
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk import _global_coverage as global_coverage
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage
from toys import table_of

GROUPS = {"a": ["a"], "b": ["b"], "c": ["c"], "early": ["a", "b"], "odd": ["a", "c"], "late": ["b", "c"]}
NODES = Nodes.of(GROUPS, leaves=list("abc"))
KINDS = {"age": Kind.CONTINUOUS, "g": Kind.NOMINAL}
FAR = 10.0**6  # of a pair that does not cover


def evidence_of(ages, boxes, letters=None, labels=None, *, sources=None, **scenario):
    letters = ["a"] * len(ages) if letters is None else letters
    labels = ["*"] * len(boxes) if labels is None else labels
    columns = tuple(Column(name, kind, Role.KEY) for name, kind in KINDS.items())
    frame = pl.DataFrame({"age": boxes, "g": pl.Series(labels, dtype=NODES.dtype)})
    released = Table(frame, Schema(columns), nodes={"g": NODES})
    rows = np.arange(len(released)) if sources is None else np.asarray(sources)
    original = table_of({"age": ages, "g": letters}, **dict(KINDS))
    return Evidence(original, Release.of(released, source_rows=rows), scenario=Scenario(**scenario))


def score(evidence, **settings):
    return GlobalLinkage(**settings).score(evidence, Run(seed=3))


def costs_of(evidence):
    """What pairs cost: loss where all can be covered at once, and else FAR; if not, distance and loss."""
    near, _, losses = distances_to_cells(evidence, tuple(KINDS))
    covering = np.where(near == 0, losses, FAR)
    rows, columns = linear_sum_assignment(covering)
    return near + losses if (covering[rows, columns] == FAR).any() else covering


def optimal_matchings(costs):
    """All one-to-one linkages of least cost, as partners of the rows; FAR is no link."""
    n, m = costs.shape
    square = np.zeros((max(n, m), max(n, m)))
    square[:n, :m] = costs
    totals = {p: square[np.arange(len(p)), p].sum() for p in permutations(range(max(n, m)))}
    least = min(totals.values())
    found = {
        tuple(j if j < m and costs[i, j] < FAR else -1 for i, j in enumerate(p[:n]))
        for p, total in totals.items()
        if total < least + 1e-7
    }
    return least, np.array(sorted(found))


def random_evidence(seed, n, m, *, misses):
    rng = np.random.default_rng(seed)
    ages, letters = rng.integers(0, 8, n), rng.choice(list("abc"), n)
    sources = rng.permutation(max(n, m))[:m]
    own = np.where(sources < n, ages[np.minimum(sources, n - 1)], 3)
    starts = own - rng.integers(0, 3, m) + (rng.integers(0, 3, m) if misses else 0)
    boxes = intervals(starts, starts + rng.integers(2, 5, m), missing=rng.random(m) < 0.1)
    labels = [
        rng.choice([label for label, members in GROUPS.items() if letters[min(s, n - 1)] in members])
        for s in sources
    ]
    sources = np.where(sources < n, sources, -1)
    return evidence_of(ages, boxes, letters, labels, sources=sources, membership=False), sources


def expected_hits(evidence, linkage, truth):
    """The correct links of a linkage, if records alike change places at random."""
    mine, theirs = (
        each.frame.select("age", "g").rows() for each in (evidence.known_table, evidence.protected)
    )
    total = 0.0
    for i, j in enumerate(truth):
        if j >= 0:
            pairs = sum(
                mine[a] == mine[i] and b >= 0 and theirs[b] == theirs[j] for a, b in enumerate(linkage)
            )
            total += pairs / (mine.count(mine[i]) * theirs.count(theirs[j]))
    return total


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_among_all_linkages(seed, n, m, misses):
    evidence, sources = random_evidence(seed, n, m, misses=misses)
    found = score(evidence)
    least, optima = optimal_matchings(costs_of(evidence))
    truth = np.full(n, -2)
    truth[sources[sources >= 0]] = np.flatnonzero(sources >= 0)
    hits = (optima == truth).sum(axis=1)
    n_unlinked = (optima[0] < 0).sum()
    assert found.details["unlinked"] == n_unlinked
    n_far = round(least // FAR)
    total = found.details["mean_distance"] * (n - n_unlinked)
    assert total == pytest.approx(least - n_far * FAR, abs=1e-6)
    assert hits.min() / n - 1e-12 <= found.value <= hits.max() / n + 1e-12
    if n_unlinked <= max(0, n - m):
        assert found.interval == (hits.min() / n, hits.max() / n)
        assert found.details["links_certain"] == (optima == truth).all(axis=0).sum()
    assert found.interval_is_proved
    assert found.interval[0] <= hits.min() / n <= hits.max() / n <= found.interval[1]
    if found.status is Status.OK:
        told = [expected_hits(evidence, linkage, truth) for linkage in optima]
        assert told == pytest.approx([found.value * n] * len(told))
    else:
        assert found.reason.startswith("several linkages cost the least")
        assert len(optima) > 1
    assert found.proof.verify(evidence, Run(seed=8)) is None


def test_classes_that_do_not_overlap_give_one_in_k():
    ages = np.arange(40)
    boxes = intervals(ages // 4 * 4, ages // 4 * 4 + 3)
    found = score(evidence_of(ages, boxes))
    assert found.value == pytest.approx(0.25)
    assert found.interval == (0, 1)
    assert found.details["links_certain"] == 0


def test_what_is_taken_by_others_is_ruled_out():
    """20 fits both boxes, 35 only the wide one: together they are certain, alone only one is."""
    evidence = evidence_of([20, 35], intervals([10, 10], [30, 40]))
    found = score(evidence)
    assert found.value == 1
    assert found.details["links_certain"] == 2
    crossed = evidence_of([20, 35], intervals([10, 15], [40, 25]))  # the narrower is the other's
    assert DistanceLinkage().score(crossed, Run(seed=1)).by_record[0] == 0
    assert score(crossed).value == 0


def test_who_is_covered_by_nobody_is_linked_to_the_nearest():
    found = score(evidence_of([1, 50, 2], intervals([0, 0, 0], [3, 3, 3])))
    assert found.details["unlinked"] == 0
    assert found.by_record.tolist() == pytest.approx([1 / 3] * 3)
    apart = score(evidence_of([1, 10], intervals([2, 8], [3, 9])))
    assert apart.value == 1
    assert apart.interval == (1, 1)
    assert apart.proof.verify(evidence_of([1, 10], intervals([2, 8], [3, 9])), Run(seed=1)) is None


def test_a_share_of_the_records_prefers_those_of_little_loss():
    ages = np.arange(60)
    widths = np.where(ages % 2 == 0, 1, 20)
    evidence = evidence_of(ages, intervals(ages - widths, ages + widths), records=0.5)
    found = score(evidence)
    held = found.proof.rows
    costs = costs_of(evidence)[held]
    rows, columns = linear_sum_assignment(costs)
    assert found.details["unlinked"] == 0
    assert found.details["mean_distance"] == pytest.approx(costs[rows, columns].mean(), abs=1e-8)
    assert found.proof.verify(evidence, Run(seed=9)) is None


def test_hundreds_of_overlapping_boxes_against_scipy():
    rng = np.random.default_rng(4)
    ages = rng.integers(0, 200, 600)
    starts = ages - rng.integers(0, 6, 600)
    evidence = evidence_of(ages, intervals(starts, starts + rng.integers(3, 9, 600)))
    found = score(evidence)
    costs = costs_of(evidence)
    theirs = costs[linear_sum_assignment(costs)]
    assert found.details["unlinked"] == (theirs >= FAR).sum()
    total = found.details["mean_distance"] * (600 - found.details["unlinked"])
    assert total == pytest.approx(theirs[theirs < FAR].sum(), rel=1e-7)
    assert found.proof.verify(evidence, Run(seed=8)) is None


def test_a_tampered_certificate_is_rejected():
    evidence, _ = random_evidence(7, 40, 45, misses=True)
    proof = score(evidence).proof
    assert proof.verify(evidence, Run(seed=1)) is None
    twice = proof.partners.copy()
    twice[0] = twice[1]
    nobody = proof.partners.copy()
    nobody[nobody >= 0] = -1
    moved = np.roll(proof.partners, 1)
    dearer, cheaper = proof.row_prices + 1, proof.column_prices - 1
    broken = [
        replace(proof, partners=twice), replace(proof, partners=nobody), replace(proof, partners=moved),
        replace(proof, row_prices=dearer), replace(proof, column_prices=cheaper),
        replace(proof, row_prices=dearer, column_prices=cheaper), replace(proof, value=proof.value + 0.01),
        replace(proof, row_prices=proof.row_prices[:-1]), replace(proof, partners=proof.partners + 45),
    ]  # fmt: skip
    assert all(each.verify(evidence, Run(seed=1)) for each in broken)


def test_neither_order_matters():
    evidence, sources = random_evidence(11, 50, 50, misses=False)
    order = np.random.default_rng(1).permutation(50)
    frame = evidence.protected.frame[order]
    shown = Table(frame, evidence.protected.schema, nodes={"g": NODES})
    turned = replace(evidence, release=Release.of(shown, source_rows=sources[order]))
    first, second = score(evidence), score(turned)
    assert first.value == second.value
    assert first.interval == second.interval


def test_too_many_are_not_estimated_rather_than_wrong(monkeypatch):
    evidence, _ = random_evidence(3, 30, 30, misses=False)
    monkeypatch.setattr(global_coverage, "MOST_PAIRS", 20)
    found = score(evidence)
    assert found.status is Status.NOT_ESTIMABLE
    assert "too many" in found.reason


def test_other_pairs_are_refused():
    evidence, _ = random_evidence(3, 10, 10, misses=False)
    found = score(evidence, pairs="delta")
    assert found.status is Status.REFUSED
    assert "must be all" in found.reason


def test_sets_that_would_make_too_many_boxes_are_linked_too():
    """Two columns of sets without any order, so that no few boxes hold them."""
    leaves = [str(i) for i in range(300)]
    rng = np.random.default_rng(4)
    nodes = Nodes.of({f"s{i}": rng.choice(leaves, 150, replace=False) for i in range(9)}, leaves=leaves)
    columns = tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "gh")
    labels = pl.Series([f"s{i}" for i in range(9)], dtype=nodes.dtype)
    members = [nodes.members_of(nodes.labels.index_of(f"s{i}")).to_list() for i in range(9)]
    truth = {name: [rng.choice(each) for each in members] for name in "gh"}
    released = Table(
        pl.DataFrame({"g": labels, "h": labels}), Schema(columns), nodes={"g": nodes, "h": nodes}
    )
    found = Evidence(
        table_of(truth, g=Kind.NOMINAL, h=Kind.NOMINAL), Release.of(released, source_rows=np.arange(9))
    )
    result = score(found)
    covered = np.array([[all(truth[c][i] in members[j] for c in "gh") for j in range(9)] for i in range(9)])
    rows, columns_ = linear_sum_assignment(-covered.astype(int))
    assert result.details["unlinked"] == 9 - int(covered[rows, columns_].sum())
    assert result.proof.verify(found, Run(seed=1)) is None
    assert result.interval[0] <= result.value <= result.interval[1]
