"""Laws of targeted record swapping and of data swapping, for any table and setting."""

from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels.moves import margin_keeping_exchanges
from sfumato.methods.data_swapping import DataSwapping
from sfumato.methods.record_swapping import TargetedSwapping

seeds = st.integers(0, 2**32 - 1)


@st.composite
def frames(draw, names, categories=3, most=60):
    n = draw(st.integers(0, most))
    seed, holes = draw(seeds), draw(st.sampled_from([0.0, 0.2]))
    rng = np.random.default_rng(seed)
    width = draw(st.integers(1, categories))
    columns = {}
    for name in names:
        codes, missing = rng.integers(0, width, n), rng.random(n) < holes
        columns[name] = pl.Series(
            [None if gone else int(code) for code, gone in zip(codes, missing, strict=True)], dtype=pl.Int64
        )
    return pl.DataFrame(columns)


def counts(frame, names):
    return Counter(frame.select(names).rows())


# -------------------------------------------------------------------------------------------- data swapping


@given(frame=frames("abcd"), order=st.integers(1, 5), share=st.floats(0.1, 100), seed=seeds)
def test_every_table_up_to_the_order_stays(frame, order, share, seed):
    table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL) for name in frame.columns)))
    after = DataSwapping(order=order, share=share, sweeps=5).apply(table, Run(seed=seed)).table.frame
    for size in range(1, min(order, 4) + 1):
        for names in combinations(frame.columns, size):
            assert counts(after, names) == counts(frame, names)
    for name in frame.columns:
        assert after[name].is_null().equals(frame[name].is_null())
        wanted = int(np.ceil(share * frame[name].count() / 100))
        assert (after[name] != frame[name]).sum() < wanted + 2 ** min(order, 4)


@given(
    n=st.integers(0, 80), t=st.integers(1, 3), width=st.integers(1, 3), wanted=st.integers(0, 90), seed=seeds
)
def test_exchanges_keep_all_tables_that_leave_out_a_block(n, t, width, wanted, seed):
    rng = np.random.default_rng(seed)
    values, *blocks = rng.integers(0, width, (t + 1, n))
    rows = np.flatnonzero(rng.random(n) < 0.9)
    pairs = margin_keeping_exchanges(values, blocks, rows, wanted=wanted, rng=rng)
    taken = pairs.ravel().tolist()
    assert len(set(taken)) == len(taken)
    assert set(taken) <= set(rows.tolist())
    assert len(taken) < wanted + 2**t
    after = values.copy()
    after[pairs[:, 0]], after[pairs[:, 1]] = values[pairs[:, 1]], values[pairs[:, 0]]
    assert (after[taken] != values[taken]).all()
    for left_out in range(t):
        kept = [block for place, block in enumerate(blocks) if place != left_out]
        before, then = (Counter(zip(*kept, column, strict=True)) for column in (values, after))
        assert before == then


# ------------------------------------------------------------------------------------ targeted record swapping


def targeted(frame, seed, *, household=False, **settings):
    roles = {"key": Role.KEY, "hh": Role.HOUSEHOLD if household else Role.OTHER}
    schema = Schema(tuple(Column(name, Kind.NOMINAL, roles.get(name, Role.OTHER)) for name in frame.columns))
    method = TargetedSwapping(keys=("key",), **settings)
    return method.apply(Table(frame, schema, targets=("area", "part")), Run(seed=seed)).table.frame


@given(
    frame=frames(["area", "part", "key", "same", "alike"]),
    k=st.integers(1, 6),
    share=st.floats(0, 100),
    seed=seeds,
)
def test_records_are_swapped_by_the_rules(frame, k, share, seed):
    after = targeted(frame, seed, k=k, share=share, similar=("same", "alike"))
    others = ["key", "same", "alike"]
    assert after.select(others).equals(frame.select(others))
    assert counts(after, ["area", "part"]) == counts(frame, ["area", "part"])
    # the first similar column is never given up, so its table with the area stays
    assert counts(after, ["area", "part", "same"]) == counts(frame, ["area", "part", "same"])

    home, new = (each.select("area", "part").rows() for each in (frame, after))
    known = [None not in place for place in home]
    moved = [a != b for a, b in zip(home, new, strict=True)]
    assert not any(was and not knew for was, knew in zip(moved, known, strict=True))
    cells = frame.select("area", "part", "key").rows()
    at_risk = [knew and Counter(cells)[cell] < k for cell, knew in zip(cells, known, strict=True)]

    # whoever stayed with a right to be swapped had nobody to swap with: neither has anyone else who stayed
    enough = sum(moved) >= share * sum(known) / 100
    same = frame["same"].to_list()
    stayed = [i for i in range(frame.height) if known[i] and not moved[i]]
    for i in stayed:
        if at_risk[i] or not enough:
            assert not any(same[j] == same[i] and home[j] != home[i] for j in stayed)
    if not any(at_risk):
        assert sum(moved) <= 2 * np.ceil(share * sum(known) / 200)


@given(
    frame=frames(["area", "part", "key", "same"]), k=st.integers(1, 6), share=st.floats(0, 100), seed=seeds
)
def test_full_similarity_keeps_the_joint_table(frame, k, share, seed):
    after = targeted(frame, seed, k=k, share=share, similar=("same",))
    names = ["area", "part", "same"]
    assert counts(after, names) == counts(frame, names)


@given(frame=frames(["area", "part", "key"], most=30), sizes=st.lists(st.integers(1, 4), min_size=30, max_size=30),
       k=st.integers(1, 6), share=st.floats(0, 100), seed=seeds)  # fmt: skip
def test_households_stay_together_and_keep_their_size(frame, sizes, k, share, seed):
    homes = np.repeat(np.arange(frame.height), sizes[: frame.height])
    people = frame[pl.Series(homes, dtype=pl.UInt32)].with_columns(pl.Series("hh", homes, dtype=pl.Int64))
    after = targeted(people, seed, household=True, k=k, share=share)
    for name in ("area", "part"):
        assert after.group_by("hh").agg(pl.col(name).n_unique())[name].max() in {None, 1}
    size = pl.len().over("hh").alias("size")
    names = ["area", "part", "size"]
    assert counts(after.with_columns(size), names) == counts(people.with_columns(size), names)


@given(
    frame=frames(["area", "part", "key", "same", "post"]),
    k=st.integers(1, 6),
    share=st.floats(0, 100),
    seed=seeds,
)
def test_what_is_carried_along_goes_with_the_area_and_changes_no_partner(frame, k, share, seed):
    frame = frame.with_columns(row=pl.int_range(pl.len()), number=pl.int_range(pl.len()) / 7)
    settings = {"k": k, "share": share, "similar": ("same",)}
    plain = targeted(frame, seed, **settings)
    after = targeted(frame, seed, carry_along=("post", "number"), **settings)
    assert after.drop("post", "number").equals(plain.drop("post", "number"))
    whose = [round(number * 7) for number in after["number"]]  # each number is of one record
    assert sorted(whose) == frame["row"].to_list()
    assert after.select("area", "part", "post").rows() == frame.select("area", "part", "post")[whose].rows()
