"""What equal values put together is what a loop over records finds, whatever the columns hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.regrouping import regroupings
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.shares import wilson
from sfumato.data.table import Table
from sfumato.risk.regrouping import RegroupedUnits

KINDS = {"number": Kind.CONTINUOUS, "text": Kind.NOMINAL, "weight": Kind.CONTINUOUS}


@st.composite
def files(draw):
    """Records of units; each value is often the unit's own, sometimes another, sometimes missing."""
    units = draw(st.lists(st.integers(-1, 9), max_size=30))
    columns = {}
    for name, kind in KINDS.items():
        values = [draw(st.sampled_from([unit, unit, unit, 0, 1, None])) for unit in units]
        texts = kind is Kind.NOMINAL
        columns[name] = pl.Series(
            name,
            [None if each is None else f"v{each}" if texts else each / 4 for each in values],
            dtype=pl.String if texts else pl.Float64,
        )
    schema = Schema(tuple(Column(name, kind) for name, kind in KINDS.items()))
    return Table(pl.DataFrame(columns), schema), np.array(units, dtype=np.int64)


def by_hand(table, units, names):
    """The sets, right sets and units of an equality, by dictionaries."""
    sets = defaultdict(list)
    for record, row in enumerate(table.frame.select(names).iter_rows()):
        sets[(record,) if all(value is None for value in row) else (row,)].append(record)
    sets = [each for each in sets.values() if len(each) > 1]
    right = []
    for each in sets:
        unit, count = Counter(units[each].tolist()).most_common(1)[0]
        if unit >= 0 and count > 1 and 2 * count > len(each):
            right.append(unit)
    return sets, right


@given(files())
def test_an_equality_is_what_dictionaries_find(file):
    table, units = file
    for each in regroupings(table, {"unit": units}):
        assert each.is_trusted
        assert each.units == sum(count > 1 for unit, count in Counter(units.tolist()).items() if unit >= 0)
        if each.how == "equal":
            sets, right = by_hand(table, units, each.columns)
            assert (each.sets, each.right, each.regrouped) == (len(sets), len(right), len(set(right)))
            assert all(len(set(each.numbers[rows].tolist())) == 1 for rows in sets)
            assert len(set(each.numbers.tolist())) == len(units) - sum(len(rows) - 1 for rows in sets)


@given(files())
def test_no_column_that_can_be_trusted_is_overlooked(file):
    """Whatever one column puts together, what is told puts at least as many together."""
    table, units = file
    most = max((each.regrouped for each in regroupings(table, {"unit": units})), default=0)
    for name in KINDS:
        sets, right = by_hand(table, units, [name])
        if sets and wilson(len(right), len(sets), 1.959964)[0] >= 0.25:
            assert most >= len(set(right))


@given(files(), st.randoms(use_true_random=False))
def test_neither_the_order_of_columns_nor_of_numbers_of_units_matters(file, random):
    table, units = file
    there = regroupings(table, {"unit": units})
    names = list(KINDS)
    random.shuffle(names)
    again = regroupings(table.select(names), {"unit": np.where(units < 0, -1, 100 - units)})
    assert {(frozenset(each.columns), each.regrouped) for each in there} == {
        (frozenset(each.columns), each.regrouped) for each in again
    }


@given(files())
def test_fewest_columns_and_most_units(file):
    table, units = file
    told = regroupings(table, {"unit": units})
    assert [each.regrouped for each in told] == sorted((each.regrouped for each in told), reverse=True)
    for better, worse in combinations(told, 2):
        assert not set(better.columns) <= set(worse.columns)


@given(files())
def test_declared_columns_are_passed_over(file):
    table, units = file
    declared = table.schema.replace(*(Column(name, kind, Role.GROUP) for name, kind in KINDS.items()))
    assert regroupings(Table(table.frame, declared), {"unit": units}) == ()


@given(files())
def test_the_measure_is_the_worst_way_and_no_less_than_any_trusted_column(file):
    """Of units whose number is left out, by dictionaries."""
    table, units = file
    who = pl.Series("who", [None if unit < 0 else unit for unit in units.tolist()], dtype=pl.Int64)
    schema = Schema((Column("who", Kind.NOMINAL, Role.HOUSEHOLD), *table.schema.columns))
    original = Table(table.frame.insert_column(0, who), schema)
    released = Release.of(original.select(list(KINDS)), source_rows=np.arange(len(table)))
    score = RegroupedUnits().score(Evidence(original, released), Run(seed=1))
    several = sum(count > 1 for unit, count in Counter(units.tolist()).items() if unit >= 0)
    if not several:
        assert score.value == 0 or np.isnan(score.value)
        return
    for name in KINDS:
        sets, right = by_hand(table, units, [name])
        if sets and wilson(len(right), len(sets), 1.959964)[0] >= 0.25:
            assert score.value >= len(set(right)) / several
    if score.details.get("how") == "equal":
        _, right = by_hand(table, units, score.details["columns"].split(", "))
        assert score.value == len(set(right)) / several
        assert score.by_record.tolist() == [float(unit in right) for unit in units.tolist()]
