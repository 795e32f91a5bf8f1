"""Safe weights are a function of the released keys, of enough records and units, and keep their totals."""

from collections import defaultdict
from math import fsum

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import Output
from sfumato.releasing.postprocess import postprocess

SCHEMA = Schema(
    (
        Column("job", Kind.NOMINAL, Role.KEY, missing=("?",)),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.ORDINAL, Role.KEY),
        Column("vote", Kind.NOMINAL, Role.SENSITIVE),
        Column("home", Kind.NOMINAL, Role.HOUSEHOLD),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT, missing=(-9,)),
    )
)


@st.composite
def surveys(draw):
    """Few values of each key, some missing; weights by job, by home, or of each record."""
    n, rng = draw(st.integers(1, 120)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    jobs, homes = (
        rng.choice(["a", "b", "?", None], n, p=[0.5, 0.3, 0.1, 0.1]),
        rng.integers(0, max(n // 3, 1), n),
    )
    size = draw(st.sampled_from(["job", "home", "own", "one"]))
    told = {"job": [ord(str(job)[0]) for job in jobs], "home": homes, "own": np.arange(n), "one": np.ones(n)}
    w = rng.lognormal(3, 1, 300)[np.asarray(told[size], dtype=int)].round(2)
    gone = rng.random(n) < draw(st.sampled_from([0.0, 0.1]))
    frame = pl.DataFrame(
        {
            "job": pl.Series(jobs.tolist(), dtype=pl.String),
            "age": pl.Series(
                np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 23, n)), nan_to_null=True
            ),
            "sex": rng.choice([1, 2], n),
            "vote": rng.choice(["x", "y"], n),
            "home": [None if rng.random() < 0.1 else str(home) for home in homes],
            "w": [
                rng.choice([None, -9.0]) if lost else float(each) for lost, each in zip(gone, w, strict=True)
            ],
        },
        schema_overrides={"w": pl.Float64, "home": pl.String},
    )
    return Table(frame, SCHEMA)


def coarsened(table, how, seed):
    """The same with one key made coarser, suppressed here and there, or exchanged between records."""
    rng = np.random.default_rng(seed)
    if how == "ranges":
        low = table.frame["age"] // 2 * 2
        return table.with_values("age", intervals(low, low + 2, name="age"))
    if how == "wildcards":
        return to_wildcard(table, "job", rng.random(len(table)) < 0.3)
    if how == "swapped":
        return table.with_values("job", table.frame["job"].gather(pl.Series(rng.permutation(len(table)))))
    return table


def cells(table, names):
    """What a file shows of each record in these columns."""
    return list(zip(*(map(str, table.frame[name].to_list()) for name in names), strict=True)) or [()] * len(
        table
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    surveys(), st.sampled_from(["none", "ranges", "wildcards", "swapped"]), st.integers(0, 99),
    st.sampled_from([(), ("home",), ("home", "job"), ("age", "home", "job", "sex")]),
)  # fmt: skip
def test_safe_weights(table, how, seed, drop):
    before = coarsened(table, how, seed)
    made = Release.record_by_record(before)
    release, _ = postprocess(made, table, Output(drop=drop), Run(seed=1))
    after = release.first
    exact, lost = before.frame["w"].to_list(), [w in (None, -9.0) for w in before.frame["w"]]
    shown = after.frame["w"].to_list()
    assert [w in (None, -9.0) for w in shown] == lost  # what is missing stays so, and nothing else is
    assert [w for w, gone in zip(shown, lost, strict=True) if gone] == [
        w for w, gone in zip(exact, lost, strict=True) if gone
    ]
    if all(lost):
        return
    by = release.exact_weights.by
    assert set(by) <= {"job", "age", "sex"} - set(drop)
    groups = defaultdict(list)
    for row, cell in enumerate(cells(after, by)):
        if not lost[row]:
            groups[cell].append(row)
    for rows in groups.values():
        assert len({shown[row] for row in rows}) == 1
        assert fsum(shown[row] for row in rows) == pytest.approx(fsum(exact[row] for row in rows), rel=1e-12)
        if by:
            homes = [table.frame["home"][row] or f"alone {row}" for row in rows]
            assert len(rows) >= 10
            assert len(set(homes)) >= 5
            for key in ("job", "age", "sex"):  # who is hidden is not alone in what was hidden
                values, all_values = (
                    {str(table.frame[key][row]) for row in part} for part in (rows, range(len(table)))
                )
                present = {str(table.frame[key][row]) for row in range(len(table)) if not lost[row]}
                hidden = key in drop or any(
                    str(after.frame[key][row]) != str(table.frame[key][row]) for row in rows
                )
                assert len(values) > 1 or len(present) == 1 or not hidden or all_values == values
