"""Numbers of persons of every type: equal ones stay one person, and two different ones never become one."""

from decimal import Decimal
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.persons import persons_of
from sfumato.data.pseudonyms import keyed_numbers, pseudonyms
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.series import Identity
from sfumato.data.table import Table
from sfumato.errors import PlanError

KEY = b"k" * 32
#: What a careless reading takes for one number: neighbours beyond what floats and 64 bits hold.
EDGES = [0, 1, 2**24, 2**53, 2**63, 2**64, 2**70, 10**19, 10**30]
WHOLE = st.one_of(
    st.integers(-9, 9), st.builds(lambda edge, more: edge + more, st.sampled_from(EDGES), st.integers(-3, 3))
)
TEXTS = st.one_of(
    st.sampled_from(
        ["7", "07", "007", "7 ", " 7", "7.0", "+7", "7e0", "", " ", "-0", "0", "A7", "a7", "true", "Ä"]
    ),
    WHOLE.map(str),
)


def within(dtype):
    low, high = pl.select(dtype.min(), dtype.max().alias("high")).row(0)
    return WHOLE.filter(lambda number: low <= number <= high)


INTEGERS = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128,
)  # fmt: skip
TYPES = {
    **{str(dtype): (within(dtype), dtype) for dtype in INTEGERS},
    "decimal": (WHOLE.map(Decimal), pl.Decimal(38, 0)),
    "decimal parts": (
        st.builds(lambda whole, part: Decimal(f"{whole}.{part:03}"), WHOLE, st.integers(0, 12)),
        pl.Decimal(38, 3),
    ),
    "float": (
        st.floats(-(2.0**52), 2.0**52) | st.sampled_from([0.0, -0.0, 0.1, 0.1 + 2**-56, 1e-7]),
        pl.Float64,
    ),
    "text": (TEXTS, pl.String),
    "categories": (TEXTS, pl.Categorical),
    "listed": (st.sampled_from(["7", "07", "x"]), pl.Enum(["x", "07", "7"])),
    "boolean": (st.booleans(), pl.Boolean),
    "date": (st.dates(), pl.Date),
    "instant": (st.datetimes(), pl.Datetime("us")),
    "time": (st.times(), pl.Time),
}


def told(series):
    """Everything by which records are told to be of one person."""
    table = Table(series.alias("who").to_frame(), Schema((Column("who", Kind.NOMINAL, Role.PERSON),)))
    return {
        "words": keyed_numbers(series, KEY).tolist(),
        "pseudonyms": pseudonyms(series, KEY).to_list(),
        "persons": persons_of(table).tolist(),
        "series": Identity.of(KEY).persons(table).tolist(),
    }


@pytest.mark.parametrize("name", TYPES)
@given(st.data())
def test_equal_numbers_are_one_person_and_different_ones_are_not(name, data):
    values, dtype = TYPES[name]
    drawn = data.draw(st.lists(values, min_size=1, max_size=8))
    for how, words in told(pl.Series(drawn, dtype=dtype)).items():
        for one, other in combinations(range(len(drawn)), 2):
            assert (words[one] == words[other]) == (drawn[one] == drawn[other]), how


@given(WHOLE)
def test_a_number_is_the_same_person_in_whatever_type_a_table_keeps_it(number):
    held = [
        pl.Series([number], dtype=dtype)
        for dtype in INTEGERS
        if pl.select(dtype.min()).item() <= number <= pl.select(dtype.max()).item()
    ]
    held += [pl.Series([Decimal(number)], dtype=pl.Decimal(38, 2)), pl.Series([str(number)])]
    held += [pl.Series([float(number)])] if abs(number) < 2**53 else []
    assert len({int(keyed_numbers(series, KEY)[0]) for series in held}) == 1
    assert len({pseudonyms(series, KEY)[0] for series in held}) == 1


@given(st.lists(st.one_of(st.none(), within(pl.Int64)), min_size=1, max_size=8))
def test_nobody_has_a_pseudonym_without_a_number(drawn):
    named = pseudonyms(pl.Series(drawn, dtype=pl.Int64), KEY).to_list()
    assert [each is None for each in named] == [each is None for each in drawn]


@pytest.mark.parametrize(("dtype", "bits"), [(pl.Float64, 53), (pl.Float32, 24)])
@pytest.mark.parametrize("role", [Role.PERSON, Role.HOUSEHOLD, Role.GROUP, Role.IDENTIFIER])
def test_floats_that_may_have_merged_two_numbers_are_refused(dtype, bits, role):
    schema = Schema((Column("who", Kind.NOMINAL, role, pseudonym="who"),))
    merged = pl.Series("who", [2**bits, 2**bits + 1, 5, None], dtype=pl.Int64).cast(dtype)
    assert merged.n_unique() == 3  # nobody can tell the first two apart any more
    with pytest.raises(PlanError, match=rf"has 2 floats of 2\^{bits} or more") as caught:
        Table(merged.to_frame(), schema)
    assert str(2**bits) not in str(caught.value)
    small = pl.Series("who", [2**bits - 1, 2**bits - 2, None], dtype=pl.Int64).cast(dtype)
    assert len(Table(small.to_frame(), schema)) == 3
