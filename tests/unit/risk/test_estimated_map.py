"""k-map estimated from a sample: closed forms, the test of one class, coverage of all, and what is refused."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.estimated_map import EstimatedKMap, _fewest, _poisson_tail


def people(*sizes, weights=None):
    frame = {"key": np.repeat(np.arange(len(sizes)), sizes)}
    columns = [Column("key", Kind.NOMINAL, Role.KEY)]
    if weights is not None:
        frame["w"] = np.asarray(weights, dtype=float)
        columns.append(Column("w", Kind.CONTINUOUS, Role.WEIGHT))
    return Table(pl.DataFrame(frame), Schema(tuple(columns)))


def score_of(table, release=None, **parameters):
    evidence = Evidence(table, None if release is None else Release.record_by_record(release))
    return EstimatedKMap(**parameters).score(evidence, Run(seed=1))


def test_estimates_in_closed_form():
    assert score_of(people(4, 7), fraction=0.1, estimator="poisson").value == pytest.approx(40)
    rate = score_of(people(4, 7), fraction=0.1).value * 0.1
    assert rate / (1 - math.exp(-rate)) == pytest.approx(4)
    unique = score_of(people(1, 9), fraction=0.1)
    assert (unique.value, unique.interval[0]) == (1, 1)
    assert score_of(people(1, 9), population_size=100).by_record[0] == unique.value
    whole = score_of(people(3, 9), fraction=1)
    assert (whole.value, whole.status) == (3, Status.OK)


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("k", [2, 5, 11])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_one_class_by_itself_is_the_test_of_el_emam_and_dankar(k, share, truncated):
    """The sample needs as many as a class of k has with a chance of 5 % at most; terms are added plainly."""
    rate = k * share
    terms = [math.exp(-rate) * rate**i / math.factorial(i) for i in range(60)]
    if truncated:
        terms = [0.0, *(term / (1 - terms[0]) for term in terms[1:])]
    needed, below = 0, 0.0
    while below < 0.95:
        below += terms[needed]
        needed += 1
    sizes = np.arange(1.0, 40.0)
    fewest = _fewest(sizes, np.full(39, share), 0.05, _poisson_tail, float(truncated))
    for size, least in zip(sizes, fewest, strict=True):
        assert least >= size
        if size <= k:  # so many were seen, and k is no less
            assert (least > k) == (size >= needed)


def test_the_lower_end_holds_for_all_classes_at_once():
    """In populations that are known the smallest class is missed no more often than was said."""
    rng, missed, n = np.random.default_rng(5), 0, 300
    sizes = np.repeat([2, 3, 5, 40], [60, 40, 20, 10])
    for _ in range(n):
        drawn = rng.binomial(sizes, 0.4)
        seen = drawn > 0
        low = score_of(people(*drawn[seen]), fraction=0.4, confidence=80).interval[0]
        missed += low > sizes[seen].min()
    assert missed <= 0.1 * n


def test_what_was_suppressed_is_not_taken_for_rare():
    table = people(9, 8, 1)
    kept = table.take(np.arange(17))
    cut = EstimatedKMap(fraction=0.1).score(
        Evidence(table, Release.of(kept, source_rows=np.arange(17))), Run(seed=1)
    )
    assert cut.interval[0] == 8
    assert score_of(people(9, 8), fraction=0.1).interval[0] > 8


def test_a_requirement_must_ask_for_the_estimate():
    score = score_of(people(9, 8), fraction=0.1)
    assert not Requirement.parse("k-map-estimate(fraction=0.1) >= 5").met_by(score)
    assert Requirement.parse("k-map-estimate(fraction=0.1) >= 20 at 95%").met_by(score)
    assert not Requirement.parse("k-map-estimate(fraction=0.1) >= 60 at 95%").met_by(score)


def test_it_refuses_without_a_share():
    refused = score_of(people(3, 4))
    assert refused.status is Status.REFUSED
    assert "sampled share" in refused.reason
    assert score_of(people(3, 4), population_size=5).status is Status.NOT_ESTIMABLE


def test_weights_tell_the_share_of_each_class():
    score = score_of(people(2, 2, weights=[10, 10, 2, 50]), estimator="poisson")
    assert score.by_record.tolist() == [20, 20, 4, 4]  # one of the last stands for two only


@st.composite
def mixed(draw):
    n = draw(st.integers(1, 15))

    def of(values):
        return draw(st.lists(st.one_of(st.sampled_from(values), st.none()), min_size=n, max_size=n))

    frame = pl.DataFrame(
        {"text": of(["a", "b"]), "number": of([1.5, 2.5])}, schema={"text": pl.String, "number": pl.Float64}
    )
    kinds = {"text": Kind.NOMINAL, "number": Kind.CONTINUOUS}
    return Table(frame, Schema(tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())))


@examples(100)
@given(table=mixed(), share=st.floats(0.01, 0.99), policy=st.sampled_from(["category", "worst"]))
def test_no_estimate_is_below_the_sample_nor_outside_its_interval(table, share, policy):
    score = score_of(table, fraction=share, missing=policy)
    sure = score_of(table, fraction=share, missing=policy, confidence=99)
    if score.status is Status.OK:  # all lack a key, and are alone at worst
        assert score.value == 1
        return
    low, high = score.interval
    assert score.details["smallest_class"] <= low <= score.value <= high
    assert sure.interval[0] <= low
    assert score_of(table, fraction=share, missing=policy, estimator="poisson").value >= score.value - 1e-9
