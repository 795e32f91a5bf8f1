"""Laws of generalised values: text is the identity there and back, and geometry agrees with brute force."""

import csv
import io
from dataclasses import replace
from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import covers, width
from effort import examples
from sfumato.data.generalised.cover import Cover, cover_of, extent
from sfumato.data.generalised.intervals import exact_intervals, intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.text_forms import looks_generalised, parse_intervals, parse_nodes, to_text
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

modest = examples(40)

awkward = st.text(alphabet="[]{}|;\\* ,\"'\na1-.", max_size=6)
any_text = st.one_of(awkward, st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6))

ENDS = {
    pl.Int64: st.integers(-(2**63), 2**63 - 1),
    pl.Float64: st.floats(allow_nan=False),
    pl.Date: st.dates(),
    pl.Datetime("us"): st.datetimes(),
}
dtypes = pytest.mark.parametrize("dtype", list(ENDS), ids=str)


@st.composite
def interval_columns(draw, dtype, numbers=None):
    """Intervals with exact values, unbounded ends and missing values among them."""
    numbers = ENDS[dtype] if numbers is None else numbers
    one_end = st.one_of(st.none(), numbers)
    pairs = st.one_of(st.tuples(one_end, one_end), numbers.map(lambda end: (end, end)), st.none())
    rows = draw(st.lists(pairs, min_size=1, max_size=12))
    ordered = [row if row is None or None in row else tuple(sorted(row)) for row in rows]
    lo, hi = (
        pl.Series([None if row is None else row[side] for row in ordered], dtype=dtype) for side in (0, 1)
    )
    return intervals(lo, hi, missing=[row is None for row in rows], name="x")


@st.composite
def node_columns(draw):
    """Sets of values, exact values, wildcards and missing values."""
    leaves = draw(st.lists(any_text, min_size=1, max_size=8, unique=True))
    groups = draw(st.lists(st.sets(st.sampled_from(leaves), min_size=1), min_size=1, max_size=6))
    nodes = Nodes.of({f"node {i}": sorted(group) for i, group in enumerate(groups)}, leaves=leaves)
    records = draw(st.lists(st.sampled_from([*nodes.labels, None]), min_size=1, max_size=12))
    return pl.Series("x", records, dtype=nodes.dtype), nodes


def member_sets(column, nodes):
    return [None if code < 0 else frozenset(nodes.members_of(code)) for code in nodes.codes(column)]


@dtypes
@given(data=st.data())
@modest
def test_interval_text_is_the_identity_there_and_back(dtype, data):
    column = data.draw(interval_columns(dtype))
    text = to_text(column)
    assert text.dtype == pl.String
    assert parse_intervals(text, dtype).to_list() == column.to_list()
    assert to_text(parse_intervals(text, dtype)).to_list() == text.to_list()


@dtypes
@given(data=st.data())
@modest
def test_intervals_are_recognised(dtype, data):
    column = data.draw(interval_columns(dtype))
    text = to_text(column).drop_nulls()
    generalised = text.filter(text.str.starts_with("[") | (text == "*"))
    if len(generalised) and (text != "*").any():
        assert looks_generalised(text) == "interval"
    elif len(generalised) == 0:
        assert looks_generalised(text) is None


@given(node_columns())
@modest
def test_node_text_is_the_identity_there_and_back(drawn):
    column, nodes = drawn
    text = to_text(column, nodes)
    read, table = parse_nodes(text, nodes.leaves)
    assert member_sets(read, table) == member_sets(column, nodes)
    # A label that was read is its own text form, so from here on it is the very same column.
    assert to_text(read, table).to_list() == read.cast(pl.String).to_list() == text.to_list()
    again, same_table = parse_nodes(to_text(read, table), nodes.leaves)
    assert again.to_list() == read.to_list()
    assert same_table == table


@given(node_columns())
@modest
def test_without_the_leaves_only_the_wildcard_is_narrower(drawn):
    column, nodes = drawn
    text = to_text(column, nodes)
    read, table = parse_nodes(text)
    for form, now, before in zip(text, member_sets(read, table), member_sets(column, nodes), strict=True):
        assert now == before or (form == "*" and now <= before)


@given(node_columns())
@modest
def test_node_text_survives_a_csv_file(drawn):
    column, nodes = drawn
    text = to_text(column, nodes)
    file = io.StringIO(newline="")
    csv.writer(file).writerows(["x", "" if form is None else form] for form in text)
    rows = csv.reader(io.StringIO(file.getvalue(), newline=""))
    # An empty cell is a missing value: no value, not even the empty one, has an empty text form.
    assert [cell or None for _, cell in rows] == text.to_list()


@given(st.lists(st.one_of(st.none(), any_text), min_size=1, max_size=12))
@modest
def test_any_exact_text_stays_exact(values):
    original = pl.Series("x", values, dtype=pl.String)
    text = to_text(original)
    read, table = parse_nodes(text)
    assert [None if group is None else [*group] for group in member_sets(read, table)] == [
        None if value is None else [value] for value in values
    ]
    assert covers(read, original, nodes=table).all()
    assert looks_generalised(text) != "node"


@given(node_columns())
@modest
def test_sets_are_recognised(drawn):
    column, nodes = drawn
    text = to_text(column, nodes)
    if any(form is not None and form.startswith("{") and form.endswith("}") for form in text):
        assert looks_generalised(text) == "node"


@given(st.lists(st.text(alphabet="abc ;|.-1[(", max_size=5), max_size=10))
@modest
def test_text_without_closing_brackets_and_stars_is_ordinary(values):
    assert looks_generalised(pl.Series(values, dtype=pl.String)) is None


def told(column, values, kind, nodes=None):
    """The reader's answer for a column beside exact values: on the line of values, or of the leaves."""
    schema = Schema((Column("x", kind),))
    known = Table(pl.DataFrame({"x": values}), schema)
    released = Table(pl.DataFrame({"x": column}), schema, nodes={} if nodes is None else {"x": nodes})
    return cover_of(known, released, "x", nested=True)


def held(numbers, cover, lacking):
    """Who is covered, where what is missing is a category of its own."""
    return np.where(cover.missing, lacking, cover.holds(numbers))


#: Where double precision holds every number, which is where columns are read as numbers.
NUMBERS = {
    pl.Int64: st.integers(-(2**52), 2**52),
    pl.Float64: st.floats(allow_nan=False, allow_infinity=False),
    pl.Date: st.dates(),
    pl.Datetime("us"): st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001
}


@dtypes
@given(data=st.data())
@modest
def test_intervals_cover_and_span_as_brute_force_says(dtype, data):
    column = data.draw(interval_columns(dtype, NUMBERS[dtype]))
    values = pl.Series([data.draw(st.one_of(st.none(), NUMBERS[dtype])) for _ in column], dtype=dtype)
    kind = Kind.CONTINUOUS if dtype in (pl.Int64, pl.Float64) else Kind.DATE
    numbers, cover = told(column, values, kind)
    assert held(numbers, cover, values.is_null().to_numpy()).tolist() == covers(column, values).tolist()
    own = replace(cover, domain=extent(cover.lows, cover.highs))
    np.testing.assert_allclose(own.share_of_domain(), width(column), atol=1e-12)
    runs = cover.boxes()
    low, high = runs.ends[:, runs.starts]
    open_ = np.isneginf(low) & np.isposinf(high)
    np.testing.assert_array_equal((low <= numbers) & (numbers <= high) | open_, cover.holds(numbers) | open_)


@given(node_columns(), st.data())
@modest
def test_nodes_cover_and_span_as_brute_force_says(drawn, data):
    column, nodes = drawn
    known = st.sampled_from([*nodes.leaves, None, "no such leaf"])
    values = pl.Series([data.draw(known) for _ in column], dtype=pl.String)
    numbers, cover = told(column, values, Kind.NOMINAL, nodes)
    expected = covers(column, values, nodes=nodes)
    assert held(numbers, cover, values.is_null().to_numpy()).tolist() == expected.tolist()
    np.testing.assert_allclose(cover.share_of_domain(), width(column, nodes=nodes))
    # The runs of a cell hold what the cell holds, each value once; a cell that says nothing is open.
    cells, places = cover.boxes().laid_out(np.arange(len(column)))
    low, high = cover.boxes().ends[:, places]
    inside = np.bincount(cells, (low <= numbers[cells]) & (numbers[cells] <= high), minlength=len(column))
    there = ~cover.uninformative
    np.testing.assert_array_equal(inside[there], expected[there])
    assert np.isinf(low[np.isin(cells, np.flatnonzero(~there))]).all()


@dtypes
@given(data=st.data())
@modest
def test_the_middle_lies_within_and_the_share_within_one(dtype, data):
    column = data.draw(interval_columns(dtype, NUMBERS[dtype]))
    cover = Cover.of(Table(pl.DataFrame({"x": column}), Schema((Column("x", Kind.CONTINUOUS),))), "x")
    closed, whole = cover.close_ends(wildcards="silent"), cover.close_ends()
    assert np.isnan(closed.middles).tolist() == cover.uninformative.tolist()
    for each in (closed, whole):
        there = ~np.isnan(each.lows)
        assert (np.isfinite(each.lows) & np.isfinite(each.highs))[there].all()
        assert ((each.lows <= each.middles) & (each.middles <= each.highs))[there].all()
    shares = cover.share_of_domain()
    assert np.isnan(shares).tolist() == column.is_null().to_list()
    assert ((shares[~cover.missing] >= 0) & (shares[~cover.missing] <= 1)).all()


@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=12)
)
@modest
def test_exact_values_span_nothing_and_are_their_own_middle(values):
    original = pl.Series("x", values, dtype=pl.Float64)
    for column in (exact_intervals(original), original):
        numbers, cover = told(column, original, Kind.CONTINUOUS)
        np.testing.assert_array_equal(cover.middles, numbers)
        assert (cover.share_of_domain()[~cover.missing] == 0).all()
        assert cover.holds(numbers).tolist() == original.is_not_null().to_list()
