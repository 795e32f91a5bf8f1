"""Columns shown at a level of their hierarchies say what the labels say, and no more."""

from __future__ import annotations

import polars as pl
import pytest

from sfumato.data.generalised.levels import KeyLevels
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.build import from_dates
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

MOMENTS = pl.Series("t", ["1980-05-17T10:22", "1981-03-04T01:01", "1981-09-09T09:09"]).str.to_datetime()


def shown(series: pl.Series, hierarchy: Hierarchy, level: int) -> list[str]:
    table = Table(series.to_frame(), Schema((Column(series.name, Kind.DATE),)))
    return to_text(
        KeyLevels.of(table, series.name, hierarchy).write(table, level).frame[series.name]
    ).to_list()


@pytest.mark.parametrize(
    ("unit", "zone", "end"),
    [
        ("us", None, "12-31T23:59:59.999999"),
        ("ms", None, "12-31T23:59:59.999"),
        ("us", "UTC", "12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_time_that_is_alone_in_its_year_is_not_shown(unit, zone, end):
    series = MOMENTS.cast(pl.Datetime(unit)).dt.replace_time_zone(zone)
    years = shown(series, from_dates(series, levels=["year"]), 2)
    start = "01-01T00:00:00" + ("+00:00" if zone else "")
    assert years == [f"[{year}-{start};{year}-{end}]" for year in (1980, 1981, 1981)]


def test_a_time_climbs_to_its_day_where_the_clocks_are():
    series = MOMENTS[:1].dt.replace_time_zone("Europe/Berlin")
    assert shown(series, from_dates(series), 1) == [
        "[1980-05-17T00:00:00+02:00;1980-05-17T23:59:59.999999+02:00]"
    ]


def test_weeks_are_no_months():
    days = MOMENTS.cast(pl.Date)
    weeks = pl.DataFrame({"day": days, "week": ["1980-20", "1981-10", "1981-37"]})
    found = shown(days, Hierarchy.from_levels(weeks.cast(pl.String)), 1)
    assert found == ["1980-05-17", "1981-03-04", "1981-09-09"]  # a label says what its leaves span
