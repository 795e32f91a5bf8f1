"""Learned metrics: closed forms, SciPy as oracle of the linkage, what cannot be learned from, and proofs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.mondrian import Mondrian
from sfumato.recipes.recipe import Recipe
from sfumato.risk._learned_metric import FIXED, LEAST_PAIRS, TruePairs, learn_metrics
from sfumato.risk.global_linkage import GlobalLinkage
from sfumato.risk.linkage import DistanceLinkage

LEARNED = GlobalLinkage(metric="learned")


def table(values, kind=Kind.CONTINUOUS):
    names = [f"c{i}" for i in range(np.shape(values)[1])]
    schema = Schema(tuple(Column(name, kind, Role.KEY) for name in names))
    return Table(pl.DataFrame(np.asarray(values), schema=names), schema)


def evidence_of(known, released, kind=Kind.CONTINUOUS):
    release = Release.of(table(released, kind), source_rows=np.arange(len(released)))
    return Evidence(table(known, kind), release)


def noisy(n, deviations, seed=1):
    """Independent normal columns, each with noise of its own size."""
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(n, len(deviations)))
    return evidence_of(known, known + rng.normal(size=known.shape) * deviations)


def learned_in(evidence, metric="euclidean", scale="deviation"):
    measure = GlobalLinkage(metric=metric, scale=scale)
    space = measure.space(evidence, Run(seed=1), measure.columns(evidence))
    pairs = TruePairs.draw(space, np.random.default_rng(2))
    return {form.title: form for form in learn_metrics(space, pairs, metric, scale)}, space


def test_weights_are_what_true_pairs_differ_less_by_than_strangers():
    """1/σ² − 1/(σ² + 2), of columns of variance 1 with noise of variance σ² (Fellegi and Sunter, normal)."""
    forms, _ = learned_in(noisy(40_000, [0.1, 0.5, 1.0]))
    found = np.sort((forms["weights"].known_map ** 2).sum(axis=1))[::-1]
    np.testing.assert_allclose(found, [1 / v - 1 / (v + 2) for v in (0.01, 0.25, 1.0)], rtol=0.05)


def test_a_column_of_pure_noise_weighs_nothing():
    rng = np.random.default_rng(3)
    known = rng.normal(size=(2000, 2))
    released = np.column_stack((known[:, 0] + 0.1 * rng.normal(size=2000), rng.normal(size=2000)))
    forms, _ = learned_in(evidence_of(known, released))
    weights = (forms["weights"].known_map ** 2).sum(axis=1)
    assert weights[1] / weights[0] < 0.002
    # So nearly as many are found as by the first column alone, and more than by both.
    alone = GlobalLinkage().measure(evidence_of(known[:, :1], released[:, :1]), Run(seed=1))
    both = LEARNED.measure(evidence_of(known, released), Run(seed=1))
    assert both.value >= 0.8 * alone.value
    assert both.value >= 2 * both.details["share_euclidean"]


def test_a_bilinear_form_undoes_correlated_noise():
    """Noise along one direction hides nobody who is compared across it."""
    rng = np.random.default_rng(4)
    known = rng.normal(size=(600, 2))
    released = known + rng.normal(size=(600, 1)) * [3.0, 3.0] + 0.001 * rng.normal(size=(600, 2))
    found = LEARNED.measure(evidence_of(known, released), Run(seed=1))
    assert found.details["metric"].startswith(("bilinear form", "regression"))
    assert found.value > 0.8
    assert found.value > 5 * found.details["share_mahalanobis"]


def test_a_regression_undoes_a_linear_map():
    rng = np.random.default_rng(5)
    known = rng.normal(size=(400, 3))
    released = known[:, ::-1] * [2.0, -1.0, 0.5] + 7 + 0.01 * rng.normal(size=(400, 3))
    found = LEARNED.measure(evidence_of(known, released), Run(seed=1))
    assert found.details["metric"].startswith("regression")
    assert found.details["share_held_out"] > 0.95
    assert found.details["share_euclidean"] < 0.1


def test_swapped_cells_are_seen_by_the_equal_ones():
    rng = np.random.default_rng(6)
    known = rng.integers(0, 30, size=(400, 6)).astype(float)
    swapped = np.where(rng.random(known.shape) < 0.4, rng.permutation(known), known)
    found = LEARNED.measure(evidence_of(known, swapped), Run(seed=1))
    assert found.details["metric"] == "weights of equalities"
    assert found.value > found.details["share_euclidean"] + 0.1


def test_categories_are_weighed_by_how_seldom_strangers_agree():
    rng = np.random.default_rng(7)
    known = np.column_stack((rng.integers(0, 200, 500), rng.integers(0, 2, 500), rng.integers(0, 50, 500)))
    released = known.copy()
    released[:, 2] = rng.permutation(released[:, 2])
    words = [np.char.add("v", each.astype(str)) for each in (known, released)]
    evidence = evidence_of(*words, kind=Kind.NOMINAL)
    form = learned_in(evidence, "hamming")[0]["weights"]
    weights = dict(zip(form.codes.tolist(), form.weights, strict=True))
    assert weights[0] == 1.0
    assert 0 < weights[1] < 1
    assert weights.get(2, 0) < 0.2
    found = LEARNED.measure(evidence, Run(seed=1))
    assert found.value >= max(found.details[f"share_{metric}"] for metric in FIXED)
    assert found.proof.verify(evidence, Run(seed=9)) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_linkage_is_that_of_scipy_in_the_learned_space(seed):
    evidence = noisy(90, [0.1, 3.0, 0.3], seed)
    found = LEARNED.measure(evidence, Run(seed=seed))
    form = found.proof.learned
    assert form is not None
    measure = found.proof.measure
    space = form.place(measure.space(evidence, Run(seed=1), measure.columns(evidence)))
    costs = cdist(space.known_points, space.released_points)
    rows, columns = linear_sum_assignment(costs)
    assert found.value == (rows == columns).mean()
    assert found.details["mean_distance"] == pytest.approx(costs[rows, columns].mean(), rel=1e-9)


def test_a_proof_holds_whoever_checks_it_and_not_for_another_metric():
    evidence = noisy(200, [0.1, 3.0, 0.3])
    found = LEARNED.score(evidence, Run(seed=1))
    assert found.status is Status.OK
    assert found.proof.learned is not None
    assert found.proof.verify(evidence, Run()) is None
    other = replace(found.proof.learned, known_map=found.proof.learned.known_map * 1.01)
    assert "prices" in replace(found.proof, learned=other).verify(evidence, Run())
    assert "prices" in replace(found.proof, learned=None).verify(evidence, Run())


@pytest.mark.parametrize("kind", [GlobalLinkage, DistanceLinkage])
def test_the_same_chance_gives_the_same_metric_and_another_no_less(kind):
    evidence, measure = noisy(300, [0.2, 2.0, 0.6]), kind(metric="learned")
    first, again, other = (measure.score(evidence, Run(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert other.value == pytest.approx(first.value, abs=0.05)
    assert first.value >= max(first.details[f"share_{metric}"] for metric in FIXED)


def test_nothing_is_found_where_nothing_is_to_be_found():
    """Learning does not make links up: of strangers as many are found as by chance, learned from or not."""
    rng = np.random.default_rng(8)
    found = LEARNED.measure(evidence_of(*rng.normal(size=(2, 400, 4))), Run(seed=1))
    assert found.value < 0.03
    assert found.details["share_held_out"] < 0.03


def test_too_few_pairs_leave_the_fixed_metrics():
    evidence = noisy(2 * LEAST_PAIRS - 1, [0.3, 0.9])
    found = LEARNED.measure(evidence, Run(seed=1))
    fixed = {name: GlobalLinkage(metric=name).measure(evidence, Run(seed=1)).value for name in FIXED}
    assert found.details["learned_from"] == 0
    assert found.value == max(fixed.values())
    assert found.details["metric"] in fixed


@pytest.mark.parametrize(
    "change",
    [
        lambda known: known[:1],
        lambda known: np.column_stack((known, np.full(len(known), 3.0))),
        lambda known: np.column_stack((known, known[:, 0])),
        lambda known: np.column_stack((known, np.where(np.arange(len(known)) == 5, 1e200, known[:, 0]))),
        lambda known: known * 1e-150,
        np.ones_like,
    ],
    ids=["one record", "a constant", "a column twice", "one value far out", "tiny numbers", "only constants"],
)
def test_odd_tables(change):
    rng = np.random.default_rng(9)
    known = change(rng.normal(size=(120, 2)))
    evidence = evidence_of(known, known * (1 + 0.1 * rng.normal(size=known.shape)))
    found = LEARNED.score(evidence, Run(seed=1))
    assert 0 <= found.value <= 1
    assert found.value >= GlobalLinkage().score(evidence, Run(seed=1)).value - 1e-12
    assert found.proof.verify(evidence, Run()) is None


def test_generalised_values_have_no_learned_distance():
    rng = np.random.default_rng(10)
    original = table(rng.integers(0, 90, size=(200, 2)))
    evidence = Evidence(original, Recipe.of(Mondrian(k=5)).apply(original, Run(seed=1)))
    plain, found = (measure.measure(evidence, Run(seed=1)) for measure in (GlobalLinkage(), LEARNED))
    assert found == plain
    assert "learned" not in found.details["metric"]


def test_a_published_bound_has_a_fixed_metric():
    evidence = noisy(50, [0.1, 0.1])
    reason = GlobalLinkage(metric="learned", pairs="published", bound=1.0).refuses(evidence)
    assert "fixed" in reason
    assert GlobalLinkage(metric="learned", pairs="delta").score(evidence, Run(seed=1)).status is Status.OK


def test_a_requirement_may_rely_on_it():
    asked = Requirement.parse("gdbrl(metric=learned) <= 0.3")
    assert asked.measure == LEARNED
    hidden, found = noisy(200, [9.0, 9.0]), noisy(200, [9.0, 0.001])
    assert asked.met_by(LEARNED.score(hidden, Run(seed=1)))
    assert not asked.met_by(LEARNED.score(found, Run(seed=1)))
    assert Requirement.parse("gdbrl <= 0.3").met_by(GlobalLinkage().score(found, Run(seed=1)))
