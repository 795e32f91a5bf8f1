"""Rank linkage and permutation distance against brute force over all pairs."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.ranks import PermutationDistance, RankLinkage


def table_of(values):
    frame = pl.DataFrame({f"c{i}": values[:, i] for i in range(values.shape[1])})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in frame.columns)))


def evidence(original, protected, *, aligned=True, **more):
    rows = np.arange(len(original)) if aligned else None
    return Evidence(table_of(original), table_of(protected), source_rows=rows, **more)


def brute_ranks(values, scale):
    """Mid-ranks of what is there, stretched to a table of `scale` records."""
    ranks = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        there = ~np.isnan(values[:, j])
        if there.any():
            ranks[there, j] = (rankdata(values[there, j]) - 0.5) / there.sum() * scale + 0.5
    return ranks


def brute_nearest(original, protected, norm):
    x, y = brute_ranks(original, len(original)), brute_ranks(protected, len(original))
    m = original.shape[1]
    nearest = []
    for one in x:
        best = math.inf
        for other in y:
            shared = ~(np.isnan(one) | np.isnan(other))
            if shared.any():
                gaps = np.abs(one - other)[shared]
                d = gaps.max() if norm == "max" else math.sqrt((gaps**2).sum() * m / shared.sum())
                best = min(best, d)
        nearest.append(best)
    return np.array(nearest)


values = st.integers(1, 3).flatmap(
    lambda m: st.tuples(
        *(
            arrays(
                np.float64,
                st.tuples(st.integers(2, 25), st.just(m)),
                elements=st.one_of(st.integers(0, 9).map(float), st.just(math.nan)),
            )
            for _ in range(2)
        )
    )
)


@given(values)
def test_rank_linkage_is_brute_force(pair):
    original, protected = pair
    score = RankLinkage().score(evidence(original, protected, aligned=False), Run(seed=1))
    distances = brute_nearest(original, protected, "euclid")
    linked = distances[np.isfinite(distances)]
    if not len(linked):
        assert score.status is Status.NOT_ESTIMABLE
        return
    expected = np.log(np.maximum(linked, 0.5)).mean() / original.shape[1]
    np.testing.assert_allclose(score.value, expected, rtol=1e-10, atol=1e-12)
    assert score.details["zero_distances"] == (linked < 1e-9).sum()
    assert score.details["not_linkable"] == len(distances) - len(linked)


@given(values)
def test_permutation_distance_is_brute_force(pair):
    original, protected = pair
    score = PermutationDistance().score(evidence(original, protected, aligned=False), Run(seed=1))
    distances = brute_nearest(original, protected, "max")
    linked = distances[np.isfinite(distances)]
    if not len(linked):
        assert score.status is Status.NOT_ESTIMABLE
        return
    np.testing.assert_allclose(score.value, linked.mean() / (len(original) - 1), rtol=1e-10, atol=1e-12)


def test_by_hand():
    """Ranks of X are (1,1) (2,2) (3,3); of Y (1,3) (2,2) (3,1).

    Nearest: the first and last are √2 from (2,2) (and 2 from the others), the middle is found exactly:
    R = (ln √2 + ln ½ + ln √2) / (2·3) = (ln 2 − ln 2) / 6 = 0.
    """
    x = np.array([[10.0, 1.0], [20.0, 2.0], [30.0, 3.0]])
    y = np.array([[5.0, 9.0], [6.0, 8.0], [7.0, 7.0]])
    score = RankLinkage().score(evidence(x, y), Run(seed=1))
    assert score.value == pytest.approx(0.0, abs=1e-12)
    assert score.details["zero_distances"] == 1
    permuted = PermutationDistance().score(evidence(x, y), Run(seed=1))
    assert permuted.value == pytest.approx((1 + 0 + 1) / 3 / 2)
    assert permuted.by_column == {"c0": 0.0, "c1": pytest.approx((2 + 0 + 2) / 3 / 2)}


def test_any_increasing_change_of_scale_leaves_the_score():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3))
    y = x + rng.normal(size=(100, 3))
    plain = RankLinkage().score(evidence(x, y), Run(seed=1)).value
    assert RankLinkage().score(evidence(np.exp(x), 7 * y - 3), Run(seed=1)).value == pytest.approx(plain)


def test_more_noise_is_safer_on_average():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    means = [
        np.mean(
            [
                RankLinkage().score(evidence(x, x + s * rng.normal(size=x.shape)), Run(seed=1)).value
                for _ in range(5)
            ]
        )
        for s in (0.01, 0.1, 0.3, 1.0)
    ]
    assert means == sorted(means)


def test_keys_of_other_kinds_are_counted_not_hidden():
    """A nominal key the measure cannot rank is said: the intruder knows more than was measured."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0], "sex": ["f", "m", "f"]})
    table = Table(frame, Schema((Column("x", Kind.CONTINUOUS), Column("sex", Kind.NOMINAL))))
    score = RankLinkage().score(Release.unchanged(table).against(table), Run(seed=1))
    assert score.details["columns"] == 1
    assert score.details["columns_left_out"] == 1


def test_a_weaker_intruder_holds_fewer_records_and_columns():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 2))
    y = x + 0.1 * rng.normal(size=x.shape)
    half = RankLinkage().score(evidence(x, y, scenario=Scenario(records=0.5)), Run(seed=1))
    assert half.details["records"] == 100
    assert len(half.by_record) == 200  # it follows the records of the original; NaN where not held
    assert np.isnan(half.by_record).sum() == 100
    one = RankLinkage().score(evidence(x, y, scenario=Scenario(columns=("c1",))), Run(seed=1))
    expected = RankLinkage().score(evidence(x[:, 1:], y[:, 1:]), Run(seed=1))
    assert one.details["columns"] == 1
    assert one.value == pytest.approx(expected.value)


def test_an_external_file_stands_in_for_the_original():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 2))
    outside = x[:30] + 0.01
    found = evidence(x, x, scenario=Scenario(external="register"), resources={"register": table_of(outside)})
    score = RankLinkage().score(found, Run(seed=1))
    direct = RankLinkage().score(evidence(outside, x, aligned=False), Run(seed=1))
    assert score.value == pytest.approx(direct.value)
    assert score.details["records"] == 30


def test_the_order_of_records_does_not_help_the_intruder():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, (60, 3)).astype(float)
    turned = x[rng.permutation(60)]
    for measure in (RankLinkage(), PermutationDistance()):
        straight = measure.score(evidence(x, x, aligned=False), Run(seed=1)).value
        assert measure.score(evidence(x, turned, aligned=False), Run(seed=1)).value == pytest.approx(straight)


def test_persons_are_counted_not_records():
    """Person a has three records, b one: R is the mean of two persons, a by the nearest of its three."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    persons = pl.Series("person", ["a", "b", "a", "a"])
    column = Column("person", Kind.NOMINAL, Role.PERSON)
    known = table_of(x).with_values("person", persons, column=column)
    released = table_of(y).with_values("person", persons, column=column)
    distances = brute_nearest(x, y, "euclid")
    nearest = [distances[[0, 2, 3]].min(), distances[1]]
    score = RankLinkage().score(Evidence(known, released), Run(seed=1))
    assert score.value == pytest.approx(np.log(np.maximum(nearest, 0.5)).mean() / 2)
    assert score.details["records"] == 2
    assert len(score.by_record) == 4
    permuted = PermutationDistance().score(Evidence(known, released), Run(seed=1))
    steps = brute_nearest(x, y, "max")
    assert permuted.value == pytest.approx((steps[[0, 2, 3]].min() + steps[1]) / 2 / 3)


def test_a_record_without_a_person_is_a_person_of_its_own():
    x = np.arange(8.0).reshape(4, 2)
    persons = pl.Series("person", ["a", None, None, "a"])
    known = table_of(x).with_values("person", persons, column=Column("person", Kind.NOMINAL, Role.PERSON))
    score = RankLinkage().score(Evidence(known, known), Run(seed=1))
    assert score.details["records"] == 3


def test_a_record_of_nobody_is_no_true_pair():
    found = evidence(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [2.0], [9.0]]), aligned=False)
    found = replace(found, source_rows=np.array([-1, 1, -1]))
    assert PermutationDistance().score(found, Run(seed=1)).by_column == {"c0": 0.0}


@pytest.mark.parametrize("measure", [RankLinkage(), PermutationDistance()])
def test_an_external_file_may_lack_columns(measure):
    values = np.array([[1.0, 5.0], [2.0, 7.0], [9.0, 6.0]])
    known = table_of(values[:, :1])
    both = evidence(values, values, scenario=Scenario(external="file"), resources={"file": known})
    one = evidence(values[:, :1], values[:, :1])
    assert measure.score(both, Run(seed=1)).value == measure.score(one, Run(seed=1)).value
    assert measure.score(both, Run(seed=1)).details["columns_left_out"] == 1
