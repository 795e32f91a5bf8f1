"""Safe harbour masking against rounds done by hand, and the laws of masking and filling again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.front import protect
from sfumato.methods.regeneration import Regeneration, masked_marginals
from sfumato.methods.safe_harbour import SafeHarbour

#: Three levels of codes: themselves, pairs, all.
CODES = Hierarchy.from_levels(pl.DataFrame({"0": list("abcd"), "1": ["ab", "ab", "cd", "cd"]}), name="codes")
PAIRS = {"a": "ab", "b": "ab", "c": "cd", "d": "cd"}
ORDERS = ("x, y, z", "x@1, z, y, x", "y@1, x@1, y, x, z", "z@1, y", "x")


@st.composite
def tables(draw):
    n = draw(st.integers(0, 14))
    cell = st.sampled_from([*"abcd", None])
    columns = {name: draw(st.lists(cell, min_size=n, max_size=n)) for name in "xyz"}
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY, hierarchy="codes") for name in "xyz"))
    frame = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns.items()})
    return Table(frame, schema)


def by_hand(table, order, k):
    """Take the turns on a list of rows; a missing cell is a value like others and cannot climb."""
    original = [list(row) for row in table.frame.select("x", "y", "z").rows()]
    rows = [list(row) for row in original]
    for turn in order.split(", "):
        name, _, level = turn.partition("@")
        counts = Counter(map(tuple, rows))
        for row, exact in [(rows[i], original[i]) for i in range(len(rows)) if counts[tuple(rows[i])] < k]:
            place = "xyz".index(name)
            if not level:
                row[place] = "*"
            elif exact[place] is not None:
                row[place] = PAIRS[exact[place]]
    return rows


def rows_of(table):
    return [list(row) for row in table.frame.select(pl.col("x", "y", "z").cast(pl.String)).rows()]


@given(table=tables(), order=st.sampled_from(ORDERS), k=st.integers(1, 5))
def test_turns_are_those_done_by_hand(table, order, k):
    release = protect(table, SafeHarbour(k=k, order=order), resources={"codes": CODES})
    expected = by_hand(table, order, k)
    assert rows_of(release.table) == expected
    counts = Counter(map(tuple, expected))
    n_rare = sum(counts[tuple(row)] < k for row in expected)
    assert bool(n_rare) == bool(release.provenance[0].notes)
    assert n_rare == 0 or release.provenance[0].notes[0].startswith(f"{n_rare} record")


@given(table=tables(), order=st.sampled_from(ORDERS), k=st.integers(1, 5))
def test_who_is_not_rare_stays_as_they_are(table, order, k):
    release = protect(table, SafeHarbour(k=k, order=order), resources={"codes": CODES})
    before, after = rows_of(table), rows_of(release.table)
    counts = Counter(map(tuple, before))
    for one, other in zip(before, after, strict=True):
        assert counts[tuple(one)] < k or one == other


@given(table=tables(), order=st.sampled_from(ORDERS), k=st.integers(1, 5), seed=st.integers(0, 3))
def test_masked_and_regenerated_has_the_marginals_of_the_original(table, order, k, seed):
    masked = protect(table, SafeHarbour(k=k, order=order), resources={"codes": CODES}).table
    marginals = masked_marginals(table, masked, "xyz")
    filled = protect(
        masked, Regeneration(marginals="marginals"), resources={"marginals": marginals}, seed=seed
    ).table
    assert not filled.nodes
    for name in "xyz":
        assert Counter(filled.frame[name]) == Counter(table.frame[name])
        shown = masked.frame[name].cast(pl.String)
        kept = (shown == table.frame[name]).fill_null(value=False).to_numpy()
        np.testing.assert_array_equal(
            filled.frame[name].filter(kept).to_numpy(), table.frame[name].filter(kept).to_numpy()
        )
