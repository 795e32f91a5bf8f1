"""Which combinations of columns tell records apart, against the measures of each combination by itself."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.run import Run
from sfumato.data.combinations import combine_columns
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.risk.reidentification import Distinction, Separation

KINDS = {"text": Kind.NOMINAL, "number": Kind.CONTINUOUS, "flag": Kind.NOMINAL, "other": Kind.NOMINAL}


@st.composite
def tables(draw):
    """Mixed columns of few values with holes; one of them has no role."""
    n = draw(st.integers(1, 12))

    def of(values):
        return draw(st.lists(st.one_of(st.sampled_from(values), st.none()), min_size=n, max_size=n))

    frame = pl.DataFrame(
        {"text": of(["a", "b", ""]), "number": of([0.5, 1.5]), "flag": of([True, False]), "other": of([7])},
        schema={"text": pl.String, "number": pl.Float64, "flag": pl.Boolean, "other": pl.Int64},
    )
    roles = {"text": Role.KEY, "number": Role.SENSITIVE, "flag": Role.OTHER, "other": None}
    return Table(frame, Schema(tuple(Column(name, KINDS[name], role) for name, role in roles.items())))


@examples(200)
@given(table=tables(), largest=st.integers(1, 5))
def test_each_combination_is_what_the_measures_say(table, largest):
    found = combine_columns(table, largest).to_frame()
    every = [set(names) for size in range(1, largest + 1) for names in combinations(table.names, size)]
    assert sorted(map(sorted, found["columns"])) == sorted(map(sorted, every))
    for names, _, distinction, separation, alone in found.iter_rows():
        evidence = Evidence(table, scenario=Scenario(columns=tuple(names)))
        assert distinction == pytest.approx(Distinction().score(evidence, Run(seed=1)).value, abs=1e-12)
        assert alone == table.frame.select(names).is_unique().sum() / len(table)
        if len(table) > 1:
            assert separation == pytest.approx(Separation().score(evidence, Run(seed=1)).value, abs=1e-12)


@examples(100)
@given(table=tables())
def test_more_columns_never_tell_fewer_apart(table):
    found = {frozenset(row[0]): row[2:] for row in combine_columns(table, 4).to_frame().iter_rows()}
    for names, numbers in found.items():
        for fewer in names:
            part = found.get(names - {fewer}, (0.0, 0.0, 0.0))
            assert all(more >= less for more, less in zip(numbers, part, strict=True))


def test_order_roles_and_limits():
    frame = {"id": range(6), "a": [1, 1, 2, 2, 3, 3], "b": [1, 2, 1, 2, 1, 2], "c": [0] * 6}
    found = sfumato.inspect(pl.DataFrame(frame), roles={"id": "identifier"}, combinations=9)
    rows = found.combinations.to_frame().rows()
    assert [row[0] for row in rows[:4]] == [["a"], ["b"], ["c"], ["a", "b"]]
    assert rows[3][2:] == (1.0, 1.0, 1.0)
    assert rows[0][2:] == (0.5, 1 - 3 / 15, 0.0)
    assert found.combinations.strongest(1)["size"].to_list() == [1, 2, 3]
    assert found.to_dict()["quasi_identifiers"]["combinations"] == 7
    wide = pl.DataFrame(np.random.default_rng(1).integers(0, 2, (5, 70)), schema=[f"x{i}" for i in range(70)])
    with pytest.raises(ParameterError, match="at most"):
        sfumato.inspect(wide, combinations=2)
    empty = sfumato.inspect(pl.DataFrame({"a": []}, schema={"a": pl.Int64}), combinations=1)
    assert empty.combinations.to_frame()["distinction"].to_list() == [0.0]
