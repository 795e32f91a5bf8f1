"""Uniqueness against the enumeration of all combinations of exact values, and laws of it."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.uniqueness import Uniqueness

HOLE = "hole"
WILD = (None, None)
GROUPS = {"a": "a", "b": "b", "c": "c", "d": "d", "ab": "ab", "bcd": "bcd", "ad": "ad", "ac": "ac"}
NODES = Nodes.of({label: list(members) for label, members in GROUPS.items()}, leaves=list("abcd"))


def ordered(pair):
    return tuple(sorted(pair))


ranges = st.one_of(
    st.integers(0, 3).map(lambda x: (x, x)), st.tuples(st.integers(0, 3), st.integers(0, 3)).map(ordered),
    st.just(WILD), st.integers(0, 3).map(lambda x: (None, x)), st.none(),
)  # fmt: skip
sets = st.one_of(st.sampled_from([*GROUPS, "*"]), st.none())
words = st.one_of(st.sampled_from("uvw"), st.none())


@st.composite
def tables(draw):
    """Whole numbers, real numbers, sets and words, each generalised or missing here and there."""
    n = draw(st.integers(1, 8))
    chosen = draw(
        st.lists(st.sampled_from(["whole", "real", "set", "word"]), min_size=1, max_size=3, unique=True)
    )
    kinds = {"whole": ranges, "real": ranges, "set": sets, "word": words}
    cells = {name: draw(st.lists(kinds[name], min_size=n, max_size=n)) for name in chosen}
    persons = draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return cells, persons


def table_from(cells, persons):
    series, columns, nodes = [], [], {}
    for name, values in cells.items():
        kind = Kind.NOMINAL
        if name in {"whole", "real"}:
            kind = Kind.CONTINUOUS
            pairs = [WILD if value is None else value for value in values]
            dtype = pl.Int64 if name == "whole" else pl.Float64
            lo, hi = (pl.Series([pair[side] for pair in pairs], dtype=dtype) for side in (0, 1))
            series.append(intervals(lo, hi, missing=[value is None for value in values], name=name))
        elif name == "set":
            series.append(pl.Series(name, values, dtype=NODES.dtype))
            nodes[name] = NODES
        else:
            series.append(pl.Series(name, values, dtype=pl.String))
        limits = {"lower": 0, "upper": 3} if kind is Kind.CONTINUOUS else {}
        columns.append(Column(name, kind, Role.KEY, **limits))
    if persons is not None:
        series.append(pl.Series("who", persons))
        columns.append(Column("who", Kind.NOMINAL, Role.PERSON))
    return Table(pl.DataFrame(series), Schema(tuple(columns)), nodes=nodes)


def atoms_of(name, values, policy):
    """The exact values each cell may stand for; between two whole numbers one real number is as any other."""
    domain = {"whole": range(4), "real": [x / 2 for x in range(7)], "set": "abcd"}
    every = set(domain.get(name) or {value for value in values if value is not None} or "?")
    some_missing = policy == "category" and None in values

    def atoms(value):
        if value is None:
            return every if policy == "any" else {HOLE}
        if value in {WILD, "*"}:
            return every | ({HOLE} if some_missing else set())
        if name == "set":
            return set(GROUPS[value])
        if name == "word":
            return {value}
        low, high = value
        return {x for x in every if (low is None or low <= x) and (high is None or x <= high)}

    return [atoms(value) for value in values]


def enumerated(cells, persons, policy):
    """Which records are unique, by all combinations of exact values."""
    n = len(next(iter(cells.values())))
    owner = list(range(n)) if persons is None else persons
    boxes = list(zip(*(atoms_of(name, values, policy) for name, values in cells.items()), strict=True))
    incomplete = [any(values[i] is None for values in cells.values()) for i in range(n)]
    rows = list(zip(*cells.values(), strict=True))
    # A wildcard covers nobody, and is covered by its equals only, unless it stands for any value.
    wild = [policy != "any" and any(value in {WILD, "*"} for value in row) for row in rows]
    found = []
    for i in range(n):
        if policy == "worst" and incomplete[i]:
            found.append(True)
            continue
        if wild[i]:
            found.append(not any(rows[j] == rows[i] and owner[j] != owner[i] for j in range(n)))
            continue
        others = [
            boxes[j]
            for j in range(n)
            if owner[j] != owner[i] and not wild[j] and not (policy == "worst" and incomplete[j])
        ]
        found.append(
            any(
                not any(all(x in box for x, box in zip(point, other, strict=True)) for other in others)
                for point in itertools.product(*boxes[i])
            )
        )
    return np.array(found)


@given(tables(), st.sampled_from(["category", "any", "worst"]))
@examples(300)
def test_agrees_with_all_combinations(drawn, policy):
    cells, persons = drawn
    score = Uniqueness(missing=policy).score(Evidence(table_from(cells, persons)), Run(seed=1))
    expected = enumerated(cells, persons, policy)
    np.testing.assert_array_equal(score.by_record, expected)
    assert score.status is Status.OK
    if persons is None:
        assert score.value == pytest.approx(expected.mean())
    else:
        unique = {person for person, flag in zip(persons, expected, strict=True) if flag}
        assert score.value == pytest.approx(len(unique) / len(set(persons)))


@given(tables())
def test_never_more_than_who_is_alone_in_a_class(drawn):
    cells, persons = drawn
    table = table_from(cells, persons)
    score = Uniqueness().score(Evidence(table), Run(seed=1))
    classes = Classes.of(table, list(cells))
    alone = (classes.persons == 1)[classes.of_record]
    assert (score.by_record <= alone).all()
    assert score.details["alone"] == score.details["unique"] + score.details["fitted"] == alone.sum()


@given(tables())
def test_less_effort_never_understates(drawn):
    cells, persons = drawn
    table = table_from(cells, persons)
    full = Uniqueness().score(Evidence(table), Run(seed=1))
    hasty = Uniqueness(effort=1).score(Evidence(table), Run(seed=1))
    assert (hasty.by_record >= full.by_record).all()
    low, high = hasty.interval or (hasty.value, hasty.value)
    assert low <= full.value <= high


@given(tables())
def test_who_looks_twice_is_nobody_twice(drawn):
    """A file in which every record stands twice, of other people, has no unique record."""
    cells, _ = drawn
    table = table_from({name: values * 2 for name, values in cells.items()}, None)
    assert Uniqueness().score(Evidence(table), Run(seed=1)).value == 0


@given(tables(), st.randoms(use_true_random=False))
def test_order_of_records_changes_nothing(drawn, random):
    cells, persons = drawn
    table = table_from(cells, persons)
    order = np.array(random.sample(range(len(table)), len(table)))
    there = Uniqueness().score(Evidence(table.take(order)), Run(seed=1))
    np.testing.assert_array_equal(
        there.by_record, Uniqueness().score(Evidence(table), Run(seed=1)).by_record[order]
    )


@st.composite
def boxes(draw):
    n_columns, n = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    corner = st.lists(
        st.lists(st.integers(0, 4), min_size=n_columns, max_size=n_columns), min_size=n, max_size=n
    )
    first, second = np.array(draw(corner), dtype=np.int32), np.array(draw(corner), dtype=np.int32)
    owners = np.array(draw(st.lists(st.integers(-1, 5), min_size=n, max_size=n)), dtype=np.int64)
    return np.minimum(first, second), np.maximum(first, second), owners


@given(boxes())
@examples(150)
def test_kernel_agrees_with_all_points(drawn):
    lows, highs, owners = drawn
    n, n_columns = lows.shape
    points = np.array(list(itertools.product(range(5), repeat=n_columns)))
    inside = np.array(
        [((low <= points) & (points <= high)).all(axis=1) for low, high in zip(lows, highs, strict=True)]
    )
    states = kernels.trees.fitting.fits(lows, highs, owners, np.arange(n), effort=10**6)
    for i in range(n):
        others = inside[(owners != owners[i]) | (owners == kernels.trees.fitting.SEVERAL)]
        covered = others.any(axis=0)[inside[i]].all() if len(others) else False
        assert states[i] == (kernels.trees.fitting.COVERED if covered else kernels.trees.fitting.OPEN)
