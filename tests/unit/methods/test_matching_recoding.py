"""Local recoding by matching, against every pairing of a few records."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Run
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.matching_recoding import MatchingRecoding, match, places_of


def people(n, seed=1, *, holes=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "age": [None if place < holes else value for place, value in enumerate(rng.integers(20, 80, n))],
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(["a", "b", "c"], n),
        }
    )
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
    )
    return Table(frame, Schema(columns), targets=("age", "sex"))


def class_sizes(table):
    shown = pl.DataFrame({name: to_text(table.frame[name]) for name in ("age", "sex")})
    return shown.group_by("age", "sex").len()["len"]


def every_pairing(records):
    """Each way to pair an even number of records."""
    if not records:
        yield []
        return
    first, *others = records
    for partner in others:
        for rest in every_pairing([each for each in others if each != partner]):
            yield [(first, partner), *rest]


@pytest.mark.parametrize("seed", range(15))
def test_no_pairing_costs_less(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    lows = rng.normal(size=(n, 2)) if seed % 2 else rng.integers(0, 3, size=(n, 2)).astype(float)
    highs = lows + rng.integers(0, 2, size=(n, 2))
    sizes = rng.integers(1, 4, n)

    def cost(one, other):
        width = np.maximum(highs[one], highs[other]) - np.minimum(lows[one], lows[other])
        return (sizes[one] + sizes[other]) * width.sum()

    one, other = match(lows, highs, sizes)
    assert len({*one, *other}) == len(one) + len(other) == n - n % 2
    left_over = range(n) if n % 2 else [None]
    best = min(
        sum(cost(*pair) for pair in pairing)
        for alone in left_over
        for pairing in every_pairing([each for each in range(n) if each != alone])
    )
    assert sum(map(cost, one, other)) <= best * 1.001 + 1e-9


@pytest.mark.parametrize(("n", "k"), [(40, 2), (41, 2), (41, 3), (30, 5), (200, 4)])
def test_groups_have_k_records_and_ranges_hold_the_value(n, k):
    table = people(n)
    release = MatchingRecoding(k=k).apply(table, Run(seed=1))
    assert class_sizes(release.table).min() >= k
    for shown, value in zip(to_text(release.table.frame["age"]), table.frame["age"], strict=True):
        low, _, high = shown.strip("[]").partition(";")
        assert float(low) <= value <= float(high or low)


def test_missing_keys_are_paired_among_themselves_and_further_requirements_are_met():
    table = people(40, holes=4)
    release = MatchingRecoding(k=2).apply(table, Run(seed=1))
    assert class_sizes(release.table).min() >= 2
    assert release.table.frame["age"].null_count() == 4  # four who lack it make two pairs
    diverse = MatchingRecoding(k=2, also=["l >= 2"]).apply(people(60), Run(seed=1))
    shown = pl.DataFrame({name: to_text(diverse.table.frame[name]) for name in ("age", "sex")})
    kinds = shown.with_columns(people(60).frame["ill"]).group_by("age", "sex").agg(pl.col("ill").n_unique())
    assert kinds["ill"].min() >= 2


def test_ties_constants_one_record_and_fewer_than_k():
    same = people(9)
    same = same.with_values("age", pl.Series([30] * 9)).with_values("sex", pl.Series(["f"] * 9))
    assert set(to_text(MatchingRecoding(k=3).apply(same, Run(seed=1)).table.frame["age"])) == {"30"}
    assert places_of(same).shape[0] == 9
    few = people(2)
    assert len(MatchingRecoding(k=2).apply(few, Run(seed=1)).table) == 2
    first, again = (MatchingRecoding(k=2).apply(people(150), Run(seed=seed)).table for seed in (1, 2))
    assert to_text(first.frame["age"]).equals(to_text(again.frame["age"]))
