"""Risks by a model of all cells of the keys, on mixed tables: a chance whatever the order, or a reason."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.copula import CopulaRisk
from sfumato.risk.log_linear import LogLinearRisk

NODES = Nodes.of({"a": ["a"], "b": ["b"], "c": ["c"], "ab": ["a", "b"]}, leaves=list("abc"))
#: What each key may hold, and its kind; a missing value may stand in all of them.
CELLS = {
    "number": (Kind.CONTINUOUS, st.sampled_from([0.5, 1.0, 2.25])),
    "range": (Kind.CONTINUOUS, st.sampled_from([(0, 0), (0, 2), (1, 3), (None, None)])),
    "group": (Kind.NOMINAL, st.sampled_from(["a", "b", "ab", "*"])),
    "grade": (Kind.ORDINAL, st.sampled_from(["low", "high"])),
    "day": (Kind.DATE, st.sampled_from([date(2020, 1, 1), date(2021, 6, 30)])),
    "text": (Kind.NOMINAL, st.sampled_from(["x", "y", ""])),
}


def series_of(name, values):
    if name == "range":
        pairs = [value or (None, None) for value in values]
        low, high = (pl.Series([pair[side] for pair in pairs], dtype=pl.Int64) for side in (0, 1))
        return intervals(low, high, missing=[value is None for value in values], name=name)
    types = {"number": pl.Float64, "group": NODES.dtype, "day": pl.Date}
    return pl.Series(name, values, dtype=types.get(name, pl.String))


@st.composite
def mixed(draw):
    """A few kinds of keys in some order, with missing and generalised cells, some records twice."""
    names = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(1, 14))
    rows = np.array(draw(st.lists(st.integers(0, n - 1), min_size=0, max_size=20)), dtype=np.int64)
    frame = pl.DataFrame(
        [
            series_of(name, draw(st.lists(st.one_of(CELLS[name][1], st.none()), min_size=n, max_size=n)))
            for name in names
        ]
    )
    columns = {
        name: Column(name, CELLS[name][0], Role.KEY, order=("low", "high") if name == "grade" else ())
        for name in names
    }
    nodes = {"group": NODES} if "group" in names else {}

    def table(order):
        whole = Table(frame.select(order), Schema(tuple(columns[name] for name in order)), nodes=nodes)
        return whole.take(np.concatenate([np.arange(n), rows]))

    return table(names), table(draw(st.permutations(names)))


measures = st.one_of(
    st.builds(
        LogLinearRisk,
        model=st.sampled_from(["best", "independence", "tree", "two-way"]),
        spread=st.sampled_from(["poisson", "log-normal"]),
        chance=st.sampled_from(["unique", "match"]),
        missing=st.sampled_from(["category", "any", "worst"]),
        fraction=st.sampled_from([1e-6, 0.05, 0.5, 1.0]),
    ),
    st.builds(
        CopulaRisk,
        chance=st.sampled_from(["unique", "match"]),
        missing=st.sampled_from(["category", "any", "worst"]),
        fraction=st.sampled_from([1e-6, 0.05, 0.5, 1.0]),
    ),
)


@examples(150)
@given(mixed(), measures)
def test_a_chance_whatever_the_order_or_a_reason(tables, measure):
    first, second = (measure.score(Evidence(table), Run(seed=1)) for table in tables)
    assert (first.status, first.reason) == (second.status, second.reason)
    if first.status not in {Status.OK, Status.APPROXIMATE}:
        assert first.reason
        return
    assert first.value == pytest.approx(second.value, rel=1e-6, abs=1e-9)
    assert first.by_record == pytest.approx(second.by_record, rel=1e-6, abs=1e-9)
    assert 0 <= first.value <= 1
    assert ((first.by_record >= 0) & (first.by_record <= 1)).all()
    if first.interval is not None:
        low, high = first.interval
        assert 0 <= low <= first.value + 1e-9
        assert first.value <= high + 1e-9
        assert high <= 1
    assert (first.confidence is None) == (first.interval is None)


WORDS = Kind.NOMINAL


def keyed(columns, **more):
    frame = pl.DataFrame({f"k{place}": column for place, column in enumerate(columns)} | more)
    roles = {"w": Role.WEIGHT}
    kinds = {"w": Kind.CONTINUOUS}
    return Table(
        frame,
        Schema(
            tuple(Column(name, kinds.get(name, WORDS), roles.get(name, Role.KEY)) for name in frame.columns)
        ),
    )


SOME = [list("aabbc"), list("xyxyx")]
UNIQUE = [[f"v{i}" for i in range(12)], list("xy") * 6]
ODD = {
    "register smaller than the sample": (
        keyed(SOME),
        {"population_size": 3},
        "must not be smaller than its sample",
    ),
    "weights below 1": (keyed(SOME, w=[0.5] * 5), {}, "must not be smaller than its sample"),
    "nothing told": (keyed(SOME), {}, "`fraction`"),
    "all unique": (keyed(UNIQUE), {"fraction": 0.1}, ""),
    "all alike": (keyed([["a"] * 9, ["x"] * 9]), {"fraction": 0.1}, ""),
    "one record": (keyed([["a"], ["x"]]), {"fraction": 0.1}, ""),
    "thirty keys": (keyed([list("ab" * 8)] * 30), {"fraction": 0.1}, ""),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("cls", [LogLinearRisk, CopulaRisk])
def test_odd_samples_have_a_number_or_a_reason(cls, case):
    table, told, reason = ODD[case]
    score = cls(**told).score(Evidence(table), Run(seed=1))
    if score.status in {Status.OK, Status.APPROXIMATE}:
        assert not reason
        assert 0 <= score.value <= 1
    else:
        assert reason in score.reason
        assert score.reason
        assert np.isnan(score.value)
