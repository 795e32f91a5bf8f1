"""Where records come from: spans and rows compose as arrays of rows do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.origin import Origin
from sfumato.errors import DataError
from toys import numbers_table


@st.composite
def origins(draw, n):
    """An origin in a table of ``n`` records, as it may be said, and its rows."""
    if draw(st.booleans()):
        start = draw(st.integers(0, n))
        stop = draw(st.integers(start, n))
        return Origin(range(start, stop)), np.arange(start, stop)
    rows = np.array(draw(st.lists(st.integers(-1, n - 1), max_size=6)), dtype=np.int64)
    return Origin.of_rows(rows), rows


@given(st.data())
def test_steps_compose_as_their_rows_do(data):
    first, rows = data.draw(origins(5))
    later, places = data.draw(origins(len(rows)))
    made = first.then(later)
    assert made.rows.tolist() == np.append(rows, -1)[places].tolist()
    assert made.size == len(places)
    assert made.is_complete == (made.rows >= 0).all()
    order = np.random.default_rng(1).permutation(len(rows))
    assert first.take(order).rows.tolist() == rows[order].tolist()


@given(st.data())
def test_parts_one_below_the_other(data):
    parts = [data.draw(origins(4)) for _ in range(data.draw(st.integers(1, 3)))]
    whole = Origin.concatenate([origin for origin, _ in parts])
    assert whole.rows.tolist() == np.concatenate([rows for _, rows in parts]).tolist()


def test_records_that_stay_need_no_array():
    same = Origin.identity(3)
    blocks = [Origin(range(2)).then(Origin.identity(2)), Origin(range(2, 3)).then(Origin.identity(1))]
    for made in (same.then(same), Origin.concatenate(blocks)):
        assert made.is_identity
        assert made.span == range(3)
        assert "rows" not in vars(made)
    table = numbers_table(3)
    assert same.records_of(table) is table
    assert Origin.of_rows(np.array([2, 0])).records_of(table).frame.equals(table.frame[[2, 0]])


def test_what_is_nobodys_stays_so_and_what_is_unknown_does_not_become_synthetic():
    some, synthetic, unknown = Origin.identity(2), Origin.synthetic(), Origin.unknown()
    assert synthetic.then(some).is_synthetic
    assert some.then(synthetic).is_synthetic
    assert unknown.then(synthetic).is_synthetic
    for made in (unknown.then(some), some.then(unknown), Origin.concatenate([synthetic, some])):
        assert made.rows is None
        assert not made.is_synthetic
    assert Origin.concatenate([synthetic, synthetic]).is_synthetic
    assert unknown.take(np.array([0])) is unknown
    with pytest.raises(DataError, match="must map"):
        unknown.records_of(numbers_table(1))
