"""Whatever a table holds, what is proposed of it fits, stands in no order of records, and tells no value."""

from __future__ import annotations

import datetime as dt

import hypothesis.strategies as st
import numpy as np
import polars as pl
from hypothesis import example, given

from effort import examples
from sfumato import io
from sfumato.data.guess.columns import guess, guess_related, guess_schema
from sfumato.data.guess.contacts import contacts_in
from sfumato.data.guess.identifiers import NUMBERINGS, recognise
from sfumato.data.guess.overview import survey
from sfumato.data.relations.associations import determination

CHECK = examples(150)

WORDS = st.sampled_from(
    ["", " ", "a", "b", "NA", ".", "?", "-9", "007", "1", "2.5", "18-24", "65+", "<5", "2026-01-01", "9999-12-31",
     "[1;2]", "*", "{a|b}", "Maria", "jo@example.org", "+49 30 1234567", "12345678Z", "4111111111111111", "٣٤٥٦٧٨٩٠",
     "N", "k.A.", "G3", "SES", "bread|milk", "milk", "01-01301", "never", "always", "sometimes", "M", "F", "tel. 972 123 456",
     "DE89370400440532013000", "inf", "NaN", "+", "00", "10,000-19,999", "|", ";"]
) | st.text(max_size=12)  # fmt: skip
VALUES = {
    pl.String: WORDS,
    pl.Int64: st.integers(-(2**62), 2**62) | st.sampled_from([0, 1, 2, -9, 99, 999, 111222333]),
    pl.Float64: st.floats() | st.sampled_from([0.0, 1.0, -9.0, 99.0]),
    pl.Boolean: st.booleans(),
    pl.Date: st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    pl.Datetime("us"): st.builds(dt.datetime.combine, st.dates(dt.date(1900, 1, 1)), st.times()),
    pl.Categorical: WORDS,
    pl.Time: st.times(),
    pl.Duration("us"): st.timedeltas(dt.timedelta(0), dt.timedelta(9)),
    pl.Binary: st.binary(max_size=3),
    pl.List(pl.Int64): st.lists(st.integers(0, 3), max_size=3),
}
NAMES = st.sampled_from(
    ["x", "id", "age", "weight", "hid", "patient_id", "income", "zip", "name", "date", "bsn", "education_level", "Fecha nac.",
     "Sexo", "Obs", "grade", "Płeć", "pid", "emp_no", "birth date", "year"]
)  # fmt: skip


@st.composite
def frames(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    n = draw(st.integers(0, 60))
    data = {}
    for name in names:
        dtype = draw(st.sampled_from(list(VALUES)))
        pool = draw(st.lists(st.none() | VALUES[dtype], min_size=1, max_size=20))
        data[name] = pl.Series([pool[(i * i + i // 3) % len(pool)] for i in range(n)], dtype=dtype)
    return pl.DataFrame(data)


@CHECK
@given(frame=frames())
@example(frame=pl.DataFrame({"x": ["18-24", "25-34", "65+", ""] * 5}))
@example(frame=pl.DataFrame({"x": ["2026-01-01", "9999-12-31", "9999-12-31", "?"]}))
def test_a_proposed_schema_fits(frame):
    table = io.conform(frame, guess_schema(frame))
    assert len(table) == frame.height
    for column in table.schema.columns:  # every value that is there stands in the proposed order
        if column.order:
            table.codes(column.name)


@CHECK
@given(frame=frames(), seed=st.integers(0, 99))
def test_the_order_of_records_does_not_matter(frame, seed):
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    assert guess(frame) == guess(shuffled)


@CHECK
@given(frame=frames())
def test_nothing_is_told_of_the_values(frame):
    """A word that stands in every text cell, and in no sentence of ours, is not heard."""
    secret = "zanzibarquux"
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns(pl.col(texts) + secret)
    guesses = guess(frame)
    found = survey(frame, guesses, guess_related(frame, guesses))
    heard = [found.to_dict(), *(summary.notes() for summary in found.columns)]
    heard += [(each.kind_reason, each.role_reason) for each in guesses]
    assert secret not in repr(heard)
    assert found.records == frame.height
    assert 0 <= found.unique <= frame.height
    assert 0 <= found.duplicates <= frame.height


@CHECK
@given(texts=st.lists(WORDS, max_size=30))
def test_any_text_is_taken_for_a_number_or_not(texts):
    series = pl.Series(texts, dtype=pl.String)
    for numbering in NUMBERINGS:
        assert len(numbering.right(series)) == len(texts)
    for numbers in (True, False):
        found = recognise(series, numbers=numbers)
        assert found is None or 0 < found.share <= 1


@CHECK
@given(texts=st.lists(st.none() | WORDS | st.text("0123456789 +-/().@aeXYZ", max_size=24), max_size=30))
def test_cells_with_contacts_are_those_that_have_one_alone(texts):
    """A cell is judged by itself, but for numbers whose check digits most of a column must have."""
    series = pl.Series(texts, dtype=pl.String)
    found = contacts_in(series)
    for what, flags in found.cells.items():
        assert len(flags) == len(texts)
        assert flags.any()
        assert not flags[series.is_null().to_numpy()].any()
        for place in np.flatnonzero(flags)[:3]:
            assert contacts_in(series[[int(place)]]).counts[what] == 1
    backward = contacts_in(series.reverse())
    assert backward.counts == found.counts


@CHECK
@given(frame=frames(), each=st.integers(1, 4))
def test_persons_are_found_or_not_whatever_a_table_holds(frame, each):
    """With a column that repeats and everything else its function, mixed columns and all."""
    frame = pl.concat([frame] * each).with_columns(
        who=pl.Series(list(range(frame.height)) * each, dtype=pl.Int64)
    )
    guesses = guess(frame)
    found = survey(frame, guesses, ()).persons
    if found is not None:
        assert 0 <= found.unique <= found.persons <= frame.height
        assert 1 <= found.fewest <= found.most


CODES = st.integers(2, 12).flatmap(
    lambda top: st.lists(st.integers(-1, top), min_size=120, max_size=120).map(np.array)
)


@CHECK
@given(a=CODES, b=CODES, shift=st.integers(1, 5))
def test_determination(a, b, shift):
    """It is at most 1, the same with the columns changed over, and with the values called otherwise."""
    forward, backward = determination(a, b)
    assert max(forward, backward) <= 1
    assert determination(b, a) == (backward, forward)
    renamed = np.where(a < 0, -1, (a.max() - a) * shift)
    assert np.allclose(determination(renamed, b), (forward, backward))


@CHECK
@given(a=CODES, seed=st.integers(0, 99))
def test_what_is_a_function_of_a_column_is_determined_by_it(a, seed):
    function = np.random.default_rng(seed).integers(0, 4, 20)
    b = np.where(a < 0, -1, function[a])
    assert determination(a, b)[0] in (0.0, 1.0)  # 0 where too little varies to tell
