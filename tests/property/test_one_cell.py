"""No share of records falls because one cell of one record says less, whatever else was done to the release."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import chances_by_cells, distances_to_cells
from effort import examples
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import ClassMeasure, Status
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.linkage import DistanceLinkage

GROUPS = {"a": ["a"], "b": ["b"], "c": ["c"], "early": ["a", "b"], "odd": ["a", "c"], "late": ["b", "c"]}
NODES = Nodes.of(GROUPS, leaves=list("abc"))
KEYS = {"x": Kind.CONTINUOUS, "z": Kind.CONTINUOUS, "g": Kind.NOMINAL}
FEW = 6  # records that one cell may matter to: ranks move, and so do the links of those that are near


def shares():
    """The risks that are shares of records."""
    found = []
    for name in registry.measures():
        measure = registry.measure(name)
        is_share = measure.aspect == "risk" and measure.better == "low" and measure.bounds == (0.0, 1.0)
        if is_share and not issubclass(measure, ClassMeasure):
            found.append(name)
    return found


def mixed(seed, n, *, noise, coarse):
    """Two columns of numbers with noise and one of letters; some of the cells are ranges, sets or wildcards."""
    rng = np.random.default_rng(seed)
    x, z, letters = rng.normal(size=n), rng.normal(size=n), rng.choice(list("abc"), n)
    columns = (*(Column(name, kind, Role.KEY) for name, kind in KEYS.items()),
               Column("s", Kind.NOMINAL, Role.SENSITIVE))  # fmt: skip
    schema, said = Schema(columns), rng.choice(list("uv"), n)
    original = Table(pl.DataFrame({"x": x, "z": z, "g": letters, "s": said}), schema)
    shown = {
        "x": x + noise * rng.normal(size=n),
        "z": z + noise * rng.normal(size=n),
        "g": letters,
        "s": said,
    }
    if not coarse:
        return Evidence(original, Table(pl.DataFrame(shown), schema), source_rows=np.arange(n))
    reach = np.where(rng.random(n) < coarse, rng.random(n), 0.0)
    reach[rng.random(n) < coarse / 5] = np.inf
    shown["x"] = intervals(shown["x"] - reach, shown["x"] + reach, name="x")
    wider = [rng.choice([label for label, held in GROUPS.items() if letter in held]) for letter in letters]
    labels = np.where(rng.random(n) < coarse, wider, letters).tolist()
    shown["g"] = pl.Series(labels, dtype=NODES.dtype)
    return Evidence(
        original, Table(pl.DataFrame(shown), schema, nodes={"g": NODES}), source_rows=np.arange(n)
    )


def coarser(evidence, name, row, change):
    rows = np.zeros(len(evidence.original), dtype=bool)
    rows[row] = True
    released = change(evidence.protected, name, rows)
    return Evidence(
        evidence.original, released, source_rows=evidence.source_rows, resources=evidence.resources
    )


changes = st.tuples(st.sampled_from(sorted(KEYS)), st.sampled_from([to_wildcard, to_missing]))


@pytest.mark.parametrize("name", shares())
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.3]), st.sampled_from([0.0, 0.3]), changes)
def test_one_cell_hides_few(name, seed, noise, coarse, changed):
    column, change = changed
    n = 40
    evidence = mixed(seed, n, noise=noise, coarse=coarse)
    measure = registry.measure(name)()
    before = measure.score(evidence, Run(seed=1))
    after = measure.score(coarser(evidence, column, seed % n, change), Run(seed=1))
    if {before.status, after.status} <= {Status.OK, Status.APPROXIMATE}:
        assert after.value >= before.value - FEW / n


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.3, 1.0]), st.sampled_from([0.1, 0.4, 0.9]))
@examples(100)
def test_links_to_mixed_releases_are_those_of_all_pairs(seed, noise, coarse):
    evidence = mixed(seed, 30, noise=noise, coarse=coarse)
    expected = chances_by_cells(*distances_to_cells(evidence, tuple(KEYS)))
    np.testing.assert_allclose(DistanceLinkage().score(evidence, Run(seed=1)).by_record, expected)


@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.3, 1.0]), st.sampled_from([0.0, 0.4]))
def test_a_suppressed_record_lowers_nobody_elses_chance(seed, noise, coarse):
    evidence = suppressed = mixed(seed, 30, noise=noise, coarse=coarse)
    for name in KEYS:
        suppressed = coarser(suppressed, name, 7, to_wildcard)
    before, after = (DistanceLinkage().score(each, Run(seed=1)).by_record for each in (evidence, suppressed))
    assert (np.delete(after, 7) >= np.delete(before, 7)).all()
