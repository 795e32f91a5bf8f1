"""Dates, times and the many sorts of missing values in the files of SPSS, Stata and SAS."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

from sfumato import io
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError, WriteError
from sfumato.io import statistical

A, B, Z = 2147483622, 2147483623, 2147483647  # .a, .b and .z of Stata, as they stand in a frame


def one(name="x", *values, dtype=None, kind=Kind.NOMINAL, **facts):
    """A table of one column."""
    return Table(pl.DataFrame({name: pl.Series(values, dtype=dtype)}), Schema((Column(name, kind, **facts),)))


def through(table, path):
    io.write(table, path, overwrite=True)
    return io.read_contents(path)


def written(table, path):
    io.write(table, path, overwrite=True)
    return path


# Special missing values ------------------------------------------------------------------------------------


def test_special_missing_values_of_stata(tmp_path):
    frame = pl.DataFrame(
        [
            pl.Series("n", [1, "a", None, "z"], dtype=pl.Object),
            pl.Series("x", [1.5, None, "b", 2.0], dtype=pl.Object),
            pl.Series("day", [21000, "a", None, 0], dtype=pl.Object),
        ]
    )
    pyreadstat.write_dta(
        frame,
        tmp_path / "x.dta",
        version=14,
        missing_user_values={"n": ["a", "b", "z"], "x": ["b"], "day": ["a"]},
        variable_value_labels={"n": {1: "one", "a": "refused", "b": "not met"}, "day": {"a": "refused"}},
        variable_format={"day": "%td"},
    )
    table = io.read_table(tmp_path / "x.dta")
    assert table.frame["n"].to_list() == [1, A, None, Z]
    assert table.frame["x"].to_list() == [1.5, None, B, 2.0]
    assert table.frame["day"].to_list() == [
        dt.date(2017, 6, 30),
        dt.date(9998, 11, 1),
        None,
        dt.date(1960, 1, 1),
    ]
    assert table.schema["n"].labels == ((1, "one"), (A, "refused"), (B, "not met"), (Z, ".z"))
    assert table.schema["n"].missing == (A, B, Z)
    assert table.schema["day"].labels == (("9998-11-01", "refused"),)
    assert table.missing("n").tolist() == [False, True, True, True]
    assert table.missing("day").tolist() == [False, True, True, False]
    io.write(table, tmp_path / "y.dta")
    was, told = pyreadstat.read_dta(tmp_path / "y.dta", user_missing=True, output_format="dict")
    assert was["n"] == [1, "a", None, "z"]
    assert was["x"] == [1.5, None, "b", 2.0]
    assert told.variable_value_labels == {
        "n": {1: "one", "a": "refused", "b": "not met"},
        "day": {"a": "refused"},
    }
    again = io.read_contents(tmp_path / "y.dta")
    assert_frame_equal(again.frame, table.frame)
    assert again.facts == io.read_contents(tmp_path / "x.dta").facts


@pytest.mark.parametrize(("shown_as", "number"), [("%tcHH:MM:SS", 3_600_000), ("%td", 2_936_200)])
def test_letters_among_times_of_day_or_very_late_days(tmp_path, shown_as, number):
    frame = pl.DataFrame([pl.Series("x", [number, "a"], dtype=pl.Object)])
    pyreadstat.write_dta(
        frame,
        tmp_path / "x.dta",
        version=14,
        missing_user_values={"x": ["a"]},
        variable_format={"x": shown_as},
    )
    assert io.read(tmp_path / "x.dta")["x"].to_list() == [number, A]


def test_missing_codes_become_special_missing_values(tmp_path):
    table = one(
        "X",
        1,
        -9,
        -8,
        -7,
        -3,
        None,
        kind=Kind.CONTINUOUS,
        missing=(-9, -8),
        suppressed=-7,
        missing_range=(-5, -1),
        labels=((-9, "refused"), (-4, "unsure")),
    )
    facts = through(table, tmp_path / "x.dta").facts["X"]
    letters = {"a": "refused", "b": ".b", "c": "suppressed", "d": "unsure", "e": ".e"}
    assert dict(facts["labels"]) == {A + ord(letter) - ord("a"): label for letter, label in letters.items()}
    assert facts["missing"] == (A, B, A + 2, A + 3, A + 4)
    assert io.read(tmp_path / "x.dta")["X"].to_list() == [1, A, B, A + 2, A + 4, None]
    found = through(table, tmp_path / "x.xpt")
    assert found.frame["X"].to_list() == [1, A, B, A + 2, A + 4, None]
    assert found.facts["X"]["missing"] == (A, B, A + 2, A + 4)  # what no record has is not in the file
    assert statistical.losses(table, ".dta") == ["missing codes become special missing values: `X`"]
    assert len(statistical.losses(table, ".xpt")) == 2
    assert statistical.losses(table, ".sav") == []


def test_more_missing_codes_than_letters(tmp_path):
    table = one("X", *range(27), missing=tuple(range(27)))
    with pytest.raises(WriteError, match="`X` has 27 missing codes; Stata takes at most 26"):
        io.write(table, tmp_path / "x.dta")


def test_numbers_that_stand_for_letters_must_not_be_met(tmp_path):
    frame = pl.DataFrame([pl.Series("x", [float(A), "b"], dtype=pl.Object)])
    pyreadstat.write_dta(frame, tmp_path / "x.dta", version=14, missing_user_values={"x": ["b"]})
    with pytest.raises(ReadError, match="`x` has special missing values"):
        io.read(tmp_path / "x.dta")
    io.write(pl.DataFrame({"x": [A, 1]}), tmp_path / "y.dta")  # without letters they are what they are
    assert io.read_contents(tmp_path / "y.dta").facts == {}
    assert io.read(tmp_path / "y.dta")["x"].to_list() == [A, 1]


# Dates and times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown_as", "number", "meant"),
    [
        ("%td", 21914, dt.date(2019, 12, 31)),
        ("%tdCCYY-NN-DD", 0, dt.date(1960, 1, 1)),
        ("%d", -1, dt.date(1959, 12, 31)),
        ("%tm", 721, dt.date(2020, 2, 1)),
        ("%tm", -1, dt.date(1959, 12, 1)),
        ("%tq", 243, dt.date(2020, 10, 1)),
        ("%th", 121, dt.date(2020, 7, 1)),
        ("%tw", 3121, dt.date(2020, 1, 8)),
        ("%ty", 2020, 2020),
        ("%tc", 1500, dt.datetime(1960, 1, 1, 0, 0, 1, 500_000)),  # noqa: DTZ001
        ("%tcHH:MM:SS", 1500, dt.time(0, 0, 1, 500_000)),
        ("%tcDD/NN/CCYY_HH:MM", 1000, dt.datetime(1960, 1, 1, 0, 0, 1)),  # noqa: DTZ001
        ("%tC", 1500, 1500),
        ("%9.0g", 7, 7),
        ("%td", 10.5, dt.datetime(1960, 1, 11, 12)),  # noqa: DTZ001
        ("%td", 1e9, 10**9),  # after the year 9999
        ("%td", 1e200, 1e200),
        ("%tm", 0.5, 0.5),
        ("%tcHH:MM", 1e8, 10**8),  # later than a day
    ],
)
def test_formats_of_stata(tmp_path, shown_as, number, meant):
    frame = pl.DataFrame({"x": [float(number), None]})
    pyreadstat.write_dta(frame, tmp_path / "x.dta", version=14, variable_format={"x": shown_as})
    assert io.read(tmp_path / "x.dta")["x"].to_list() == [meant, None]


@pytest.mark.parametrize(
    ("shown_as", "number", "meant"),
    [
        ("ADATE10", 13744944000, dt.date(2018, 5, 6)),
        ("MOYR8", 13744944000, dt.date(2018, 5, 6)),
        ("SDATE10", 13744944001, dt.datetime(2018, 5, 6, 0, 0, 1)),  # noqa: DTZ001
        ("YMDHMS19.0", 13744944000.25, dt.datetime(2018, 5, 6, 0, 0, 0, 250_000)),  # noqa: DTZ001
        ("DATETIME20", 13744944000.123, dt.datetime(2018, 5, 6, 0, 0, 0, 123_000)),  # noqa: DTZ001
        ("DTIME9", 3600, dt.time(1)),
        ("TIME8", -1, -1),
        ("WKDAY9", 3, 3),
    ],
)
def test_formats_of_spss(tmp_path, shown_as, number, meant):
    pyreadstat.write_sav(
        pl.DataFrame({"x": [float(number), None]}), tmp_path / "x.sav", variable_format={"x": shown_as}
    )
    assert io.read(tmp_path / "x.sav")["x"].to_list() == [meant, None]


@pytest.mark.parametrize(
    ("shown_as", "number", "meant"),
    [
        ("DATE9", 21914, dt.date(2019, 12, 31)),
        ("YYMMDDN8", 0, dt.date(1960, 1, 1)),
        ("E8601DA10", 0, dt.date(1960, 1, 1)),
        ("MONYY7", 31, dt.date(1960, 2, 1)),
        ("E8601DT19", 1.5, dt.datetime(1960, 1, 1, 0, 0, 1, 500_000)),  # noqa: DTZ001
        ("DTDATE9", 86400, dt.datetime(1960, 1, 2)),  # noqa: DTZ001
        ("TOD8", 61, dt.time(0, 1, 1)),
        ("BEST12", 3, 3),
    ],
)
def test_formats_of_sas(tmp_path, shown_as, number, meant):
    pyreadstat.write_xport(
        pl.DataFrame({"x": [float(number), None]}), tmp_path / "x.xpt", variable_format={"x": shown_as}
    )
    assert io.read(tmp_path / "x.xpt")["x"].to_list() == [meant, None]


def test_missing_codes_of_dates(tmp_path):
    days = [dt.date(2020, 1, 1), dt.date(9999, 9, 9), dt.date(1900, 1, 1), None]
    table = one(
        "D",
        *days,
        kind=Kind.DATE,
        missing=("9999-09-09",),
        suppressed="1900-01-01",
        labels=(("9999-09-09", "never"),),
    )
    again = io.read_table(written(table, tmp_path / "x.sav"))
    assert again.frame["D"].to_list() == days
    assert again.schema["D"].missing == ("1900-01-01", "9999-09-09")
    assert dict(again.schema["D"].labels) == {"9999-09-09": "never", "1900-01-01": "suppressed"}
    assert again.missing("D").tolist() == [False, True, True, True]
    for suffix in (".dta", ".xpt"):
        assert io.read_table(written(table, tmp_path / f"x{suffix}")).missing("D").tolist() == [
            False,
            True,
            True,
            True,
        ]


def test_a_range_of_missing_dates_is_listed(tmp_path):
    pyreadstat.write_sav(
        pl.DataFrame({"d": [13744944000.0, 100 * 86400.0, 105 * 86400.0, 108 * 86400.0, 110 * 86400.0]}),
        tmp_path / "x.sav",
        missing_ranges={"d": [{"lo": 100 * 86400.0, "hi": 110 * 86400.0}]},
        variable_format={"d": "DATE11"},
    )
    table = io.read_table(tmp_path / "x.sav")
    assert table.missing("d").tolist() == [False, True, True, True, True]
    assert len(table.schema["d"].missing) == 4
    _, told = pyreadstat.read_sav(
        written(table, tmp_path / "y.sav"), user_missing=True, disable_datetime_conversion=True
    )
    assert told.missing_ranges["d"] == [{"lo": 100 * 86400.0, "hi": 110 * 86400.0}]


# Missing codes of SPSS -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "declared"),
    [
        ({"missing": (9,)}, [{"lo": 9.0, "hi": 9.0}]),
        ({"missing": (97, 98), "suppressed": 99}, [{"lo": c, "hi": c} for c in (97.0, 98.0, 99.0)]),
        ({"missing": (96, 97, 98, 99)}, [{"lo": 96.0, "hi": 99.0}]),
        ({"missing": (-9, 97, 98, 99)}, [{"lo": 97.0, "hi": 99.0}, {"lo": -9.0, "hi": -9.0}]),
        ({"missing": (-9, -8, -7, 99)}, [{"lo": -9.0, "hi": -7.0}, {"lo": 99.0, "hi": 99.0}]),
        ({"missing": (-1,), "missing_range": (90, 99)}, [{"lo": 90.0, "hi": 99.0}, {"lo": -1.0, "hi": -1.0}]),
        ({"missing": (95,), "missing_range": (90, 99)}, [{"lo": 90.0, "hi": 99.0}]),
        (
            {"missing": (-1, 80), "missing_range": (90, 99)},
            [{"lo": 80.0, "hi": 99.0}, {"lo": -1.0, "hi": -1.0}],
        ),
    ],
)
def test_codes_that_spss_takes(tmp_path, facts, declared):
    table = one("x", 1, 2, 70, 99, None, kind=Kind.CONTINUOUS, **facts)
    _, told = pyreadstat.read_sav(written(table, tmp_path / "x.sav"), user_missing=True)
    assert told.missing_ranges["x"] == declared
    again = io.read_table(tmp_path / "x.sav", rows=None)
    assert again.missing("x").tolist() == table.missing("x").tolist()


def test_codes_that_spss_does_not_take(tmp_path):
    with pytest.raises(WriteError, match="has 4 missing codes with other values between"):
        io.write(one("x", 1, 5, 9, missing=(0, 2, 7, 9)), tmp_path / "x.sav")
    labelled = one("x", 1, 9, missing=(0, 2, 7, 9), labels=((5, "five"), (1, "one")))
    with pytest.raises(WriteError, match="with other values between them"):
        io.write(labelled, tmp_path / "x.sav")
    with pytest.raises(WriteError, match="has 4 missing codes, 0 of them longer"):
        io.write(one("x", "a", missing=("p", "q", "r", "s")), tmp_path / "x.sav")
    with pytest.raises(WriteError, match="1 missing code, 1 of them longer") as caught:
        io.write(one("x", "a", missing=("not asked",)), tmp_path / "x.sav")
    assert "not asked" not in str(caught.value)


def test_codes_are_of_the_type_of_the_column(tmp_path):
    table = one("x", 1, 2, -9, missing=("-9", "NA", 1.5), labels=(("1", "one"), (2.0, "two"), ("NA", "none")))
    facts = through(table, tmp_path / "x.sav").facts["x"]
    assert facts["missing"] == (-9,)
    assert facts["labels"] == ((1, "one"), (2, "two"))
    table = one("x", "1", "9", missing=(9.0,), labels=((1, "one"),))
    facts = through(table, tmp_path / "x.sav").facts["x"]
    assert (facts["missing"], facts["labels"]) == (("9",), (("1", "one"),))
