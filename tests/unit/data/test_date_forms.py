"""Dates as they are written in a country: proposed, read, written again; asked about where they may be two."""

from datetime import date

import polars as pl
import pytest

from sfumato.data.date_forms import FORMS, days, in_form, to_iso
from sfumato.data.guess.columns import guess
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import PlanError
from sfumato.io import conform

DAYS = [date(1980, 12, 31), date(2001, 2, 3), date(1999, 11, 30)]


@pytest.mark.parametrize("form", FORMS)
def test_there_and_back(form):
    written = in_form(pl.Series(DAYS), form)
    assert days(written, form).to_list() == DAYS
    assert to_iso(written, form).to_list() == [str(day) for day in DAYS]
    assert in_form(pl.Series(["[1980-12-31;2001-02-03]", "*"]), form)[1] == "*"
    boxed = pl.Series([f"[{written[0]};{written[1]}]"])
    assert to_iso(boxed, form).to_list() == ["[1980-12-31;2001-02-03]"]


@pytest.mark.parametrize("form", [form for form in FORMS if form not in {"yyyy-mm-dd", "yyyymmdd"}])
def test_a_form_is_proposed_with_its_reason(form):
    [found] = guess(pl.DataFrame({"born": in_form(pl.Series(DAYS), form)}))
    assert (found.column.kind, found.column.form) == (Kind.DATE, form)
    assert found.kind_reason == f"dates written {form}"


def test_days_as_whole_numbers():
    [found] = guess(pl.DataFrame({"born": [19801231, 20010203, 19991130]}))
    assert (found.column.kind, found.column.form) == (Kind.DATE, "yyyymmdd")
    [found] = guess(pl.DataFrame({"sum": [19801331, 20010203, 19991130]}))  # there is no thirteenth month
    assert found.column.kind is Kind.CONTINUOUS


def test_day_or_month_first_is_asked():
    [found] = guess(pl.DataFrame({"born": ["01/02/1980", "11/12/1990"]}))
    assert found.column.kind is Kind.NOMINAL
    assert 'form = "dd/mm/yyyy" or "mm/dd/yyyy"' in found.kind_reason
    frame = pl.DataFrame({"born": ["01/02/1980", "11/12/1990"]})
    for form, first in (("dd/mm/yyyy", date(1980, 2, 1)), ("mm/dd/yyyy", date(1980, 1, 2))):
        schema = Schema((Column("born", Kind.DATE, form=form),))
        assert conform(frame, schema).frame["born"][0] == first
    with pytest.raises(PlanError, match='"dd/mm/yyyy" or "mm/dd/yyyy"'):
        conform(frame, Schema((Column("born", Kind.DATE),)))


def test_years_of_two_digits_are_asked_about():
    [found] = guess(pl.DataFrame({"born": ["31.12.80", "01.02.90"]}))
    assert found.column.kind is Kind.NOMINAL
    assert "two-digit years" in found.kind_reason


def test_times_and_missing_words():
    texts = ["31.12.1980 14:05", "01.02.1990 07:00:30", "n/a", None]
    [found] = guess(pl.DataFrame({"seen": texts}))
    assert (found.column.form, found.column.missing) == ("dd.mm.yyyy", ("n/a",))
    read = conform(pl.DataFrame({"seen": texts}), Schema((found.column,))).frame["seen"]
    assert read.cast(pl.String).to_list()[:2] == ["1980-12-31 14:05:00.000000", "1990-02-01 07:00:30.000000"]
    assert read.null_count() == 2


@pytest.mark.parametrize("wrong", ["31.02.2024", "31.12.2024 25:61"])
def test_a_date_that_is_none_is_told(wrong):
    [found] = guess(pl.DataFrame({"born": [wrong, "01.01.2024", "02.01.2024"]}))
    assert found.column.kind is Kind.NOMINAL
    assert "beside 1 different value" in found.kind_reason


def test_a_form_is_for_dates():
    with pytest.raises(PlanError, match="`form` is for dates"):
        Column("a", Kind.NOMINAL, form="dd.mm.yyyy")
    with pytest.raises(PlanError, match="`form` is for dates"):
        Column("a", Kind.DATE, form="%d.%m.%Y")


@pytest.mark.parametrize(
    "text", ["call 0351-12345 today", "try 030/1234567 or mail", "his is 555-867-5309 ok"]
)
def test_phone_numbers_within_a_country_stand_out_in_text(text):
    notes = [f"{text} {number}" for number in range(30)]
    [found] = guess(pl.DataFrame({"note": [*notes[:5], *["nothing to say here"] * 25]}))
    assert found.column.role is Role.IDENTIFIER
    assert found.role_reason.startswith("its text contains phone numbers")
