"""Whatever the data: the public pictures show no small group, and nothing that gives a value away."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.report.class_sizes import class_sizes
from sfumato.report.mosaics import mosaics
from sfumato.report.values import OTHERS, PUBLIC


@st.composite
def tables(draw) -> list[Table]:
    """An original and two releases of two columns of letters, some frequent and some rare."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 300))
    made = []
    for _ in range(3):
        sizes = [draw(st.integers(1, 7)) for _ in range(2)]
        weights = [rng.dirichlet(np.full(size, draw(st.sampled_from([0.3, 1.0, 10.0])))) for size in sizes]
        letters = [rng.choice(list("abcdefg")[: len(w)], n, p=w) for w in weights]
        copied = rng.random(n) < draw(st.sampled_from([0.0, 0.5, 0.9]))
        frame = pl.DataFrame({"x": letters[0], "y": np.where(copied, letters[0], letters[1])})
        holes = pl.Series(rng.random(n) < 0.05)
        frame = frame.with_columns(pl.when(holes).then(None).otherwise(pl.col("x")).alias("x"))
        made.append(Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in "xy"))))
    return made


def counted(table: Table, entry: dict) -> np.ndarray:
    """The counts behind a mosaic, cell by cell."""
    records = [row for row in table.frame.select(entry["columns"]).rows() if None not in row]
    names = entry["categories"]

    def place(value, axis):
        return names[axis].index(value if value in names[axis] else OTHERS)

    cells = np.zeros([len(each) for each in names], dtype=int)
    for first, second in records:
        cells[place(first, 0), place(second, 1)] += 1
    return cells


@given(tables())
def test_public_mosaics_hold_no_small_cell_and_nothing_certain(given_tables):
    named = dict(zip(("original", "m0", "m1"), given_tables, strict=True))
    releases = {key: table for key, table in named.items() if key != "original"}
    found = mosaics(given_tables[0], releases, ["x", "y"], about=["x"], public=True)
    for entry in found["pairs"] if found else []:
        for key, shares in entry["shares"].items():
            cells = counted(named[key], entry)
            assert ((cells == 0) | (cells >= PUBLIC.floor)).all()
            rounded = PUBLIC.round_counts(cells)
            np.testing.assert_allclose(shares, rounded / rounded.sum(), atol=5.1e-5)
        original = counted(given_tables[0], entry)
        for axis in (0, 1):
            assert ((original > 0).sum(axis=axis)[original.sum(axis=axis) > 0] > 1).all()
        told = {*entry["shares"], *entry["suppressed"], *entry["unchanged"], *entry["absent"]}
        assert told == set(named)


@given(tables())
def test_internal_mosaics_hold_every_record(given_tables):
    original, release, _ = given_tables
    found = mosaics(original, {"m0": release}, ["x", "y"], about=["y"], public=False)
    for entry in found["pairs"] if found else []:
        for table, key in ((original, "original"), (release, "m0")):
            if key in entry["shares"]:
                cells = counted(table, entry)
                np.testing.assert_allclose(entry["shares"][key], cells / max(cells.sum(), 1), atol=5.1e-5)


@given(tables())
def test_public_class_sizes_hold_no_small_group(given_tables):
    named = dict(zip(("original", "m0", "m1"), given_tables, strict=True))
    releases = {key: table for key, table in named.items() if key != "original"}
    found = class_sizes(given_tables[0], releases, Scenario(), public=True)
    for key, shares in found["shares"].items():
        sizes = named[key].frame.group_by("x", "y").len()["len"].to_numpy()
        counts = np.array(
            [int(sizes[(sizes >= first) & (sizes <= last)].sum()) for first, last in found["groups"]]
        )
        assert counts.sum() == len(named[key])
        assert ((counts == 0) | (counts >= PUBLIC.floor)).all()
        rounded = PUBLIC.round_counts(counts)
        np.testing.assert_allclose(shares, rounded / rounded.sum(), atol=5.1e-5)
    assert bool(found["shares"]) is ("note" not in found)
