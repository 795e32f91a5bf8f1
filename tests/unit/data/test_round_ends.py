"""Intervals end at round numbers, hold what they held, and stay apart where a round number lies between."""

import datetime as dt
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.round_ends import Cuts, Scales, round_outwards, scales_of
from sfumato.data.generalised.text_forms import parse_intervals, to_text
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.mondrian import Mondrian


def ends(low, high, values, dtype=pl.Float64, cuts=None):
    lows, highs = round_outwards(np.array([low]), np.array([high]), np.array(values), dtype, cuts)
    return lows[0].item(), highs[0].item()


DENSE = np.linspace(0.5, 99.5, 100_000)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (21.37, 28.91, (21.0, 29.0)),  # a fifth of 7.5 is 1.5: steps of 1
        (21.37, 71.4, (20.0, 80.0)),  # of 50 it is 10
        (
            0.517,
            0.5219,
            (0.517, 0.522),
        ),  # of 0.0049 it is 0.00098: steps of 0.0005, but people are 0.001 apart
        (40.0, 40.0, (40.0, 40.0)),  # an exact value stays
    ],
)
def test_steps_go_by_the_width(low, high, expected):
    assert ends(low, high, DENSE) == pytest.approx(expected)


def test_whole_numbers_end_before_the_next_begins():
    ages = np.arange(100_000) % 97
    assert ends(23, 28, ages, pl.Int64) == (23, 28)  # everybody's age is somebody else's too
    assert ends(23, 71, ages, pl.Int64) == (20, 74)
    assert ends(-7, 41, np.arange(-50, 50), pl.Int64) == (-10, 44)


def test_dates_end_with_months_and_years():
    days = np.arange(-10_000, 10_000, 10)
    low, high = (int((day - date(1970, 1, 1)).days) for day in (date(1980, 2, 10), date(1984, 9, 3)))
    found = [date(1970, 1, 1) + timedelta(days=end) for end in ends(low, high, days, pl.Date)]
    assert found == [date(1980, 1, 1), date(1984, 12, 31)]
    low, high = (int((day - date(1970, 1, 1)).days) for day in (date(1980, 2, 10), date(1980, 2, 21)))
    found = [date(1970, 1, 1) + timedelta(days=end) for end in ends(low, high, days, pl.Date)]
    assert found == [date(1980, 2, 1), date(1980, 2, 29)]  # no birthdays, however short the span


def test_instants_end_with_hours():
    hour = 3_600_000_000
    values = np.arange(0, 1000 * hour, hour // 4)
    low, high = ends(5 * hour + 7, 25 * hour + 9, values, pl.Datetime("us"))
    assert (low, high) == (3 * hour, 27 * hour)


def test_groups_that_were_cut_apart_stay_apart():
    """The values 10 to 23 and 31 to 47 were cut apart: at 30, the roundest number between."""
    values = np.array([10.5, 23.5, 31.5, 47.5] * 1000)
    cuts = Cuts(below=np.array([[0, 0], [2, 3]]), above=np.array([[2, 3], [0, 0]]))
    lows, highs = round_outwards(np.array([10.5, 31.5]), np.array([23.5, 47.5]), values, pl.Float64, cuts)
    assert lows.tolist() == [10.0, 30.0]
    assert highs.tolist() == [24.0, 48.0]


def test_where_no_round_number_lies_between_they_overlap():
    values = np.array([10.0, 40.0001, 40.0002, 80.0] * 10)
    cuts = Cuts(below=np.array([[0, 0], [2, 3]]), above=np.array([[2, 3], [0, 0]]))
    lows, highs = round_outwards(
        np.array([10.0, 40.0002]), np.array([40.0001, 80.0]), values, pl.Float64, cuts
    )
    assert (highs[0], lows[1]) == (45.0, 40.0)


@given(
    st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=2, max_size=40, unique=True),
    st.booleans(),
)
def test_what_an_interval_held_it_holds(numbers, whole):
    values = np.sort(np.rint(numbers).astype(np.int64) if whole else np.array(numbers))
    dtype = pl.Int64 if whole else pl.Float64
    low, high = ends(values[0].item(), values[-1].item(), values, dtype)
    width = float(values[-1]) - float(values[0])
    assert low <= values[0]
    assert values[-1] <= high
    spacing = scales_of(values, dtype)
    assert high - low <= width + 2 * max(0.2 * width, spacing.steps[spacing.of_spacing(values)])


@pytest.mark.parametrize("kind", ["date", "number"])
def test_no_end_of_mondrian_is_a_persons_value(kind):
    """Two keys of 2,000 people: ends are firsts and lasts of months, or multiples of ten of the spacing."""
    rng = np.random.default_rng(4)
    if kind == "date":
        born = [date(1940, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 25_000, 2000)]
        column, dtype = Column("a", Kind.DATE, Role.KEY), pl.Date
    else:
        born, column, dtype = rng.lognormal(10, 1, 2000), Column("a", Kind.CONTINUOUS, Role.KEY), pl.Float64
    frame = pl.DataFrame({"a": pl.Series(born, dtype=dtype), "b": rng.integers(0, 3, 2000)})
    table = Table(frame, Schema((column, Column("b", Kind.NOMINAL, Role.KEY))))
    shown = Mondrian(k=5).apply(table, Run(seed=1)).table.frame
    low, high = (shown["a"].struct.field(end) for end in ("lo", "hi"))
    assert ((low <= frame["a"]) & (frame["a"] <= high)).all()
    assert shown.group_by("a", "b").len()["len"].min() >= 5
    if kind == "date":
        assert (low.dt.day() == 1).all()
        assert ((high + timedelta(days=1)).dt.day() == 1).all()
    else:
        assert not set(low) & set(frame["a"])
        assert not set(high) & set(frame["a"])


def test_the_boxes_of_one_key_are_disjoint_where_people_are_not_too_near():
    ages = np.random.default_rng(2).integers(18, 90, 500)
    table = Table(pl.DataFrame({"age": ages}), Schema((Column("age", Kind.CONTINUOUS, Role.KEY),)))
    shown = Mondrian(k=10).apply(table, Run(seed=1)).table.frame["age"].unique().sort()
    pairs = [(each["lo"], each["hi"]) for each in shown]
    assert all(one[1] < other[0] for one, other in pairwise(pairs))


# Zones ----------------------------------------------------------------------------------------------------

ZONES = ["Europe/Berlin", "America/Havana", "Asia/Beirut", "Asia/Kolkata", "America/St_Johns", "UTC"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", ["us", "ms", "ns"])
def test_steps_of_a_zone_hold_their_times_and_begin_at_its_midnight(zone, unit):
    """Of Havana and Beirut some midnights come twice, and some never."""
    kind = pl.Datetime(unit, zone)
    first, last = (dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (2019, 2021))
    times = pl.datetime_range(first, last, "17m", time_unit=unit, eager=True).dt.convert_time_zone(zone)
    scales = Scales(kind, whole=True, largest=1.0)
    values = times.to_physical().to_numpy()
    day = int(np.searchsorted(scales.steps, 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]))
    for scale in (day, day + 1, day + 2, day + 4):
        below, after = scales.below(values, scale), scales.after(values, scale)
        assert (below <= values).all()
        assert (values < after).all()
        begins = pl.Series(below).cast(pl.Datetime(unit, "UTC")).dt.convert_time_zone(zone)
        assert scale == day or (begins.dt.day() == 1).all()
        late = begins.filter(begins.dt.time() != dt.time())  # where clocks passed over midnight
        assert (late.dt.time() == dt.time(1)).all()
        assert len(late) < len(begins) / 20


@pytest.mark.parametrize("zone", ZONES)
def test_ranges_of_a_zone_are_written_by_its_clocks_and_read_back(zone):
    moments = [dt.datetime(2020, month, 25, 0, 30, tzinfo=dt.UTC) for month in (1, 7, 10)]
    times = pl.Series(moments).dt.convert_time_zone(zone)
    column = intervals(times, times.dt.offset_by("90d"), name="t")
    texts = to_text(column)
    offset = times.dt.strftime("%:z")[1]
    assert texts[1].startswith(times.dt.strftime("[%Y-%m-%dT%H:%M:%S%:z;")[1])
    assert offset in texts[1]
    assert parse_intervals(texts, times.dtype).equals(column)
    bare = parse_intervals(texts)  # who does not know the zone has the same times
    assert bare.struct.field("lo").to_physical().equals(column.struct.field("lo").to_physical())
    exact = to_text(intervals(times, times, name="t"))
    assert exact[1] == times.dt.strftime("%Y-%m-%dT%H:%M:%S%:z")[1]


def test_mondrian_in_a_zone():
    first = dt.datetime(2020, 1, 1, 0, 30, tzinfo=dt.UTC)
    hours = pl.Series("t", [first + dt.timedelta(days=17 * i) for i in range(24)])
    frame = hours.dt.convert_time_zone("Europe/Berlin").to_frame()
    release = Mondrian(k=3).apply(
        Table(frame, Schema((Column("t", Kind.DATE),))).aimed_at(("t",)), Run(seed=1)
    )
    texts = to_text(release.table.frame["t"])
    assert texts.str.contains(
        r"^\[\d{4}-\d\d-01T00:00:00\+0[12]:00;\d{4}-\d\d-01T00:00:00\+0[12]:00\]$"
    ).all()
    shown = release.table.frame["t"].struct
    assert ((shown.field("lo") <= frame["t"]) & (frame["t"] <= shown.field("hi"))).all()
