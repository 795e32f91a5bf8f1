"""Laws of repair: what could be mended is, nothing else changes, and a second repair finds nothing to do."""

import math

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.data.checks import breaches, violations
from sfumato.data.repair import repair
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

modest = examples(25)

NAMES = ("all", "women", "men", "girls", "adults")
RULES = (Rule("all = women + men"), Rule("girls + adults = women"))
TOTALS = ("all", "women")

numbers = st.one_of(
    st.none(),
    st.just(math.nan),
    st.integers(-20, 120).map(float),
    st.decimals(-20, 120, places=2).map(float),
    st.floats(-1e12, 1e12),
)
bounds = st.one_of(st.none(), st.integers(-10, 10), st.decimals(-10, 10, places=1).map(float))


@st.composite
def columns(draw, name):
    lower, upper = draw(bounds), draw(bounds)
    if lower is not None and upper is not None:
        lower, upper = min(lower, upper), max(lower, upper)
    integer = draw(st.booleans())
    if integer and lower is not None and upper is not None and math.ceil(lower) > math.floor(upper):
        upper = lower + 1
    missing = draw(st.sampled_from([(), (99,), (-9, 5)]))
    return Column(name, Kind.CONTINUOUS, integer=integer, lower=lower, upper=upper, missing=missing)


@st.composite
def schemas(draw):
    return Schema(tuple(draw(columns(name)) for name in NAMES), rules=RULES)


def tables(schema, n):
    cells = st.lists(numbers, min_size=n, max_size=n)
    frames = st.fixed_dictionaries(dict.fromkeys(NAMES, cells))
    typed = dict.fromkeys(NAMES, pl.Float64)
    return frames.map(lambda cells: Table(pl.DataFrame(cells, schema=typed), schema))


pairs = schemas().flatmap(
    lambda schema: st.integers(0, 6).flatmap(lambda n: st.tuples(*[tables(schema, n)] * 2))
)


def missing_of(table):
    return {name: table.missing(name).tolist() for name in NAMES}


@given(pairs)
@modest
def test_what_can_be_mended_is(pair):
    table, _ = pair
    mended = repair(table)
    left = {each.promise: each.broken for each in mended.left if each.broken}
    assert left == {violation.promise: violation.records for violation in violations(mended.table)}
    for column in table.schema.columns:
        # A missing code is never written, even where it is the end of a range; a sum wins over its total's.
        if column.name not in TOTALS and not column.missing:
            assert not [promise for promise in left if promise.startswith(f"`{column.name}` ")]
    for rule, total in zip(RULES, TOTALS, strict=True):
        if not table.schema[total].missing:
            assert f"`{rule.text}` holds" not in left


@given(pairs)
@modest
def test_whole_parts_make_whole_totals(pair):
    """A total of rounded parts breaks nothing but its own range."""
    table, _ = pair
    schema = Schema(
        tuple(Column(c.name, c.kind, integer=True, missing=()) for c in table.schema.columns), rules=RULES
    )
    mended = repair(Table(table.frame, schema))
    assert violations(mended.table) == ()
    assert set(mended.table.frame.dtypes) == {pl.Int64}


@given(pairs)
@modest
def test_missing_stays_missing_and_present_stays_present(pair):
    table, original = pair
    assert missing_of(repair(table).table) == missing_of(table)
    assert missing_of(repair(table, original).table) == missing_of(table)


@given(pairs)
@modest
def test_a_second_repair_finds_nothing_to_do(pair):
    table, original = pair
    for beside in (None, original):
        once = repair(table, beside)
        twice = repair(once.table, beside)
        assert twice.counts == {}
        assert twice.table.frame.equals(once.table.frame)
        assert twice.left == once.left


@given(pairs)
@modest
def test_records_that_keep_every_promise_keep_every_value(pair):
    table, _ = pair
    sound = ~np.logical_or.reduce([broken for _, broken in breaches(table)])
    mended = repair(table).table
    for name in NAMES:
        old, new = (each.frame[name].cast(pl.Float64).fill_nan(None) for each in (table, mended))
        kept = old.eq_missing(new)
        # A record may keep all promises and lack the value that one of them needs; it is still not touched.
        assert kept.filter(pl.Series(sound)).all()


@given(pairs)
@modest
def test_what_the_original_broke_is_left_and_what_it_kept_is_mended(pair):
    table, original = pair
    before = dict(breaches(original))
    mended = repair(table, original)
    left = {each.promise: each for each in mended.left}
    for promise, broken in breaches(mended.table):
        count = left[promise].inherited if promise in left else 0
        assert count == int((broken & before[promise]).sum())
    for name in set(NAMES) - set(TOTALS):
        column = table.schema[name]
        spared = np.logical_or.reduce(
            [np.zeros(len(table), dtype=bool), *(b for p, b in before.items() if p.startswith(f"`{name}` "))]
        )
        fresh = [broken & ~spared for p, broken in breaches(mended.table) if p.startswith(f"`{name}` ")]
        assert column.missing or not any(broken.any() for broken in fresh)


@given(pairs)
@modest
def test_the_original_itself_is_never_touched(pair):
    table, _ = pair
    mended = repair(table, table)
    assert mended.counts == {}
    assert mended.table.frame.equals(table.frame)
    assert all(each.broken == each.inherited for each in mended.left)


@given(pairs, st.randoms(use_true_random=False))
@modest
def test_records_are_mended_one_by_one(pair, random):
    table, _ = pair
    order = list(range(len(table)))
    random.shuffle(order)
    rows = np.array(order, dtype=np.int64)
    whole, shuffled = repair(table).table.take(rows), repair(table.take(rows)).table
    assert whole.frame.equals(shuffled.frame)
