"""The files of SPSS, Stata and SAS: what they say of their columns comes in and goes out again."""

from __future__ import annotations

import base64
import datetime as dt
import lzma
import sys

import pandas as pd
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

import sfumato
from sfumato import io
from sfumato.data.generalised.intervals import intervals, is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError, ParameterError, ReadError, WriteError
from sfumato.io.statistical import reading
from sfumato.methods.swapping import RankSwapping

A, B, Z = 2147483622, 2147483623, 2147483647  # .a, .b and .z of Stata, as they stand in a frame
WRITTEN = [".sav", ".zsav", ".dta", ".xpt"]


def one(name="x", *values, dtype=None, kind=Kind.NOMINAL, **facts):
    """A table of one column."""
    return Table(pl.DataFrame({name: pl.Series(values, dtype=dtype)}), Schema((Column(name, kind, **facts),)))


def through(table, path):
    io.write(table, path, overwrite=True)
    return io.read_contents(path)


def written(table, path):
    io.write(table, path, overwrite=True)
    return path


@pytest.fixture
def survey(tmp_path):
    """A file as SPSS would write it, by the library itself."""
    frame = pl.DataFrame(
        {
            "sex": [1.0, 2.0, 2.0, 9.0, None, 1.0],
            "health": [1.0, 2.0, 3.0, 3.0, 2.0, 7.0],
            "income": [1250.5, -8.0, 3100.0, -2.0, 99.0, 800.0],
            "town": ["Kern", "NA", "", "Fresno", "Kings", "Kern"],
            "born": [13744944000.0, 12219379200.0, None, 13744944000.0, 0.0, 86400.0],
        }
    )
    pyreadstat.write_sav(
        frame,
        tmp_path / "survey.sav",
        column_labels={"sex": "Sex of the respondent", "income": "Income in €"},
        variable_value_labels={
            "sex": {1.0: "male", 2.0: "female", 9.0: "no answer"},
            "health": {1.0: "good", 2.0: "fair", 3.0: "bad"},
            "town": {"NA": "not asked"},
        },
        missing_ranges={
            "sex": [9.0],
            "health": [7.0, 8.0],
            "income": [{"lo": -9.0, "hi": -1.0}, 99.0],
            "town": ["NA"],
        },
        variable_measure={
            "sex": "nominal",
            "health": "ordinal",
            "income": "scale",
            "town": "nominal",
            "born": "scale",
        },
        variable_format={"born": "EDATE10"},
    )
    return tmp_path / "survey.sav"


# Reading ---------------------------------------------------------------------------------------------------


def test_what_an_spss_file_says(survey):
    found = io.read_contents(survey)
    assert found.frame.schema == {
        "sex": pl.Int64,
        "health": pl.Int64,
        "income": pl.Float64,
        "town": pl.String,
        "born": pl.Date,
    }
    assert found.frame["born"].to_list()[:2] == [dt.date(2018, 5, 6), dt.date(1970, 1, 1)]
    assert found.frame["town"].to_list() == ["Kern", "NA", None, "Fresno", "Kings", "Kern"]
    assert found.facts["sex"] == {
        "kind": "nominal",
        "label": "Sex of the respondent",
        "labels": ((1, "male"), (2, "female"), (9, "no answer")),
        "missing": (9,),
    }
    assert found.facts["health"]["kind"] == "ordinal"
    assert found.facts["health"]["missing"] == (7, 8)
    assert found.facts["income"]["missing"] == (99.0,)
    assert found.facts["income"]["missing_range"] == (-9.0, -1.0)
    assert found.facts["town"]["labels"] == (("NA", "not asked"),)
    assert "born" not in found.facts  # a date is a date, whatever its level


def test_user_missing_values_are_missing_in_the_table(survey):
    table = io.read_table(survey)
    assert table.missing("sex").tolist() == [False, False, False, True, True, False]
    assert table.missing("income").tolist() == [False, True, False, True, True, False]
    assert table.missing("town").tolist() == [False, True, True, False, False, False]
    assert table.schema["health"].kind is Kind.ORDINAL
    assert table.schema["income"].kind is Kind.CONTINUOUS


def test_open_ranges(tmp_path):
    for ends in ((float("-inf"), -1.0), (90.0, float("inf"))):
        pyreadstat.write_sav(
            pl.DataFrame({"x": [1.0, -5.0, 95.0]}),
            tmp_path / "x.sav",
            missing_ranges={"x": [{"lo": ends[0], "hi": ends[1]}]},
        )
        table = io.read_table(tmp_path / "x.sav")
        assert table.schema["x"].missing_range == ends
        assert table.missing("x").sum() == 1
        io.write(table, tmp_path / "y.sav", overwrite=True)
        assert io.read_table(tmp_path / "y.sav").schema == table.schema


def test_a_stata_file_of_pandas(tmp_path):
    frame = pd.DataFrame(
        {
            "n": pd.Series([1, 2, 3], dtype="int32"),
            "x": [0.5, None, 2.5],
            "town": ["Köln", "", "Kern"],
            "day": pd.to_datetime(["2020-02-29", "1950-01-01", None]),
            "sex": pd.Categorical(["m", "f", "m"]),
        }
    )
    for version in (114, 117, 118):
        frame.to_stata(
            tmp_path / "p.dta",
            write_index=False,
            version=version,
            convert_dates={"day": "td"},
            variable_labels={"n": "A count"},
        )
        found = io.read_contents(tmp_path / "p.dta")
        assert found.frame.rows() == [
            (1, 0.5, "Köln", dt.date(2020, 2, 29), 1),
            (2, None, None, dt.date(1950, 1, 1), 0),
            (3, 2.5, "Kern", None, 1),
        ]
        assert found.facts["n"] == {"label": "A count"}
        assert found.facts["sex"]["labels"] == ((0, "f"), (1, "m"))
        assert io.read_table(tmp_path / "p.dta").schema["sex"].kind is Kind.NOMINAL


def test_text_in_another_encoding(tmp_path):
    pd.DataFrame({"t": ["é"]}).to_stata(tmp_path / "p.dta", write_index=False, version=114)
    assert io.read(tmp_path / "p.dta")["t"].to_list() == ["é"]
    assert io.read(tmp_path / "p.dta", encoding="koi8_r")["t"].to_list() == ["И"]
    with pytest.raises(ParameterError, match="there is no encoding"):
        io.read(tmp_path / "p.dta", encoding="klingon")
    with pytest.raises(ReadError, match="is not in the encoding") as caught:
        io.read(tmp_path / "p.dta", encoding="ascii")
    assert "encoding='cp1252'" in caught.value.hint


def test_options_of_other_formats_are_refused(survey, tmp_path):
    with pytest.raises(ParameterError, match="`delimiter` does not apply to SPSS files"):
        io.read(survey, delimiter=";")
    pyreadstat.write_por(pl.DataFrame({"A": [1.0]}), tmp_path / "x.por")
    with pytest.raises(ParameterError, match="`encoding`"):
        io.read(tmp_path / "x.por", encoding="cp1252")


def test_some_records(survey, tmp_path):
    whole = io.read(survey)
    for suffix in WRITTEN:
        io.write(whole, tmp_path / f"x{suffix}")
        for rows in (0, 1, 4, 6, 100):
            assert_frame_equal(
                io.read(tmp_path / f"x{suffix}", rows=rows), whole.head(rows), check_dtypes=rows > 3
            )


@pytest.mark.parametrize("suffix", WRITTEN)
def test_block_by_block(tmp_path, monkeypatch, suffix):
    frame = pl.DataFrame({"X": [*range(95), A, None, A, 3, B], "T": [f"é{i}" for i in range(100)]})
    schema = Schema((Column("X", Kind.CONTINUOUS, missing=(A, B)), Column("T", Kind.NOMINAL)))
    io.write(Table(frame, schema), tmp_path / f"x{suffix}")
    whole = io.read_contents(tmp_path / f"x{suffix}")
    assert_frame_equal(whole.frame, frame)
    monkeypatch.setattr(reading, "_CELLS", 14)
    again = io.read_contents(tmp_path / f"x{suffix}")
    assert_frame_equal(again.frame, frame)
    assert again.facts == whole.facts
    assert io.read(tmp_path / f"x{suffix}", rows=37).height == 37


def test_a_portable_file(tmp_path):
    frame = pl.DataFrame({"AGE": [30.0, 41.0, None], "T": ["a", "b", ""]})
    pyreadstat.write_por(frame, tmp_path / "x.por", column_labels={"AGE": "Age in years"})
    found = io.read_contents(tmp_path / "x.por")
    assert found.frame.rows() == [(30, "a"), (41, "b"), (None, None)]
    assert found.facts["AGE"] == {"label": "Age in years"}
    assert io.read(tmp_path / "x.por", rows=2).height == 2


#: Two files of SAS itself, from the tests of pyreadstat (Apache 2.0), packed.
SAMPLE = """
XQAAAAT//////////wAAbFadQs7xSzjULvPrXqRALLZoJl7ttMFz/+R9g52VjzFRJejKQHjsMLaoeQmp6UrDZ0zZ4ImXE7y1DnFgi9vMO65Y
ORvDe7vs4dGiGqhRIGF+XS5yi3k5GT5Bi4Z73tv18onUCNTNrIhjyGXC4URiuOaa/jB+p7qwdDF6k6gsh7zEthiFBykbNw3n3LO4rTGk9HFL
ZrQmWhlAQYbMpuHmokL0D6OVTSUgEUq2O28NnYpsoEW2iFuVP/BfBhgPLhVJq62yZ3geshfH9oZ1lpJUC4bIb0f/9dIk4XJDrgyw5l+rohaI
QebcC9tkXf+YqOEy917gaN6sYDJJ/W9yoGj0PlgrCbxY6RcdmAG+VrgucWLApuCyx1zQ25uPwwbAhNIDOKrZfKbm/Tv0sfRZfEAVuRvHsZ57
KugT4fI+WR8QgRIqpxxtjeK6VhBkViwCOw1Z9tOiSxE+TCgyNTlbA/T/J1TTasRRvHxxJP7xp1r9w2vExUB05HKjHSw9RqjM5IBlZf57m+zu
kyviq4Y0eLvkezxVRS8xAtc9k0/0np+/NMfm9+cvSgahSnNWxgutzmzj6yQ1AeeAFLyJMlheLguMKM/dLAvUJgXYBsVW2DviTrze0bRrRC2P
2TUoXj1a8TSSVwKD6WoEdeJD8uFameSvlp2KVnrqDwi8uEgI+rfHMA/7O5wCsYF0zEXQUuiP9kksyNnD9fsg6ZCFIy2twZ8u0qiS5nRol85F
tu+gq/JxFOHYnEXYlSt0pU6e/oiKWhDKJlFhWEY9pDXX0cnW9e9pOJoq7Q/pqs8UCPQa+1Ygmj/TpNm0tBbhcZ9bwzoE26JM2jDK1QLBX1fP
PCsr54/LtUDDOxiMSyPYUNRWAXxZAXvanul74W9uELt3nQAc44zM9SfhZRhxetn6HsYP1IdWJe4TQP7kbAlc/rMml55n5DMqCTe94t5hFOrG
M9XuDreksL5pTY+H70we00e+Zp4sFbUA2LDEMCXdX6v4EVQKB2lzc+KGnLvnfKU1hSLlrBOLZBWP7fF1rc2BtlwZtfHW0SmUZwX6tA93WuOy
/fNZa2JzPR56Smqf5L7O/o9QKdn/q4XoRA==
"""
LETTERED = """
XQAAAAT//////////wAAbFadQs7xSzjULvPrXqRALLZoJl7ttMFz/+R9g52VjzFRJejKQHjsMLaoeQmp6UrDZ0zZ4ImXE7y1DnFgi0uk/SCD
xUnYQF2Fe+6ue97Agq/TBBHazVp9vvUVS0MjSDJ0y+Ja8YEIfKdxNpDKPfWFb4Idhyfk6dQsw5zApkncpawpBDkEgRXLrIDBsV/9N2GrdAim
Id0S3+uqoDuvJfb2SM1XfvAYX6741jlhLLwV+XO49xHggVfSasbQZuEJDFDZUbKEozYAjYfQ8ZTe5pbwUxt4ns2ujOsD/yOKRmaBf7VWlUyJ
v9Nn1gwAnt2wtTHHkI0lNsq4P0XXefvOys0giT99VAsX/BXzQIYC1aflM3MW0OVBFN6yxN91kumKb9qt8hI7VtOw1qv4Dp6KlV6ooxWbR4lY
qjWC9hhfLlFYb4HscpfOUwSguZfjhzlIkQLnt2Nrd5GohfGiDxQTzntwdy+AvzsjCDjir93uBWvVtrHTkZ0wRZ5QhRWU2s+wB7IElTON4Zu9
dQjwDHotMlidUesQvkCgl8501nj2bfDMA4slpdjchm6KOdgnwmQmpm+qqaypOSouD5MhjIXc9ipltttgdpcKb4nAjKiJ7C7iUXxuJg4uyIHX
U5CrEgSkwbgXGipGw1mrg9h6wpIS4aW577Cg3RnmreVF0FDH3G0efe8bN+Eedm2uFWCbtNsEIqnIt7Wdj/g2wEczvuni1e7ZsDw2qNTXnQs0
TTuCMNDYuHaWk3F6ZVvdupCMXRNRs/arZ8mMRtsCZggGgMHwyrwbmZ3b3gv/snYuxcrdYMwjrSFRVbJO+2pCwb+GBxHDnHVhkBpROlwyKgmU
2PMnte879ngz7mTz0Ygj+OOFDda3QRvSAYIDo5CFEbc0wDt/T9wMSmvAPGKbpUe6Nd2/T7NMdsxKbpFP+oC5RlhLZOc+NT9FiLlCjcTAQabX
BDW0D99UeAH8ISL4SdvMDPV1oOnpPMV1kwwq/v2/zYJj3P5qZXStxkzyqeTla8rg7CtUmgbCCXDxcAG7xYSPaMfeIPeNwbYBX/ZC6QE/+Yuh
7D/IR4UsBfIbxgNYtJkvkxmpVAk8X3QEiVEf/CsLWkLeRjneAyUT2F9yKUcdrd/Ij//bLwg3
"""


@pytest.fixture
def sas(tmp_path):
    def unpack(packed):
        (tmp_path / "x.sas7bdat").write_bytes(lzma.decompress(base64.b64decode(packed)))
        return tmp_path / "x.sas7bdat"

    return unpack


def test_a_file_of_sas(sas):
    frame = io.read(sas(SAMPLE))
    assert frame.dtypes == [pl.String, pl.Float64, pl.Date, pl.Datetime("us"), pl.Int64, pl.Int64, pl.Time]
    assert frame.row(1) == (
        "b",
        1.2,
        dt.date(1880, 5, 6),
        dt.datetime(1880, 5, 6, 10, 10, 10),  # noqa: DTZ001
        2,
        2,
        dt.time(23, 10, 10),
    )
    assert io.read(sas(SAMPLE), rows=2).height == 2


def test_special_missing_values_of_sas(sas, tmp_path):
    table = io.read_table(sas(LETTERED))
    assert table.frame.row(0) == (A, B, B + 1, Z - 2, Z - 1, Z, A - 1, None, 1)
    assert table.schema["var7"].labels == ((A - 1, "._"),)
    assert [bool(table.missing(name)[0]) for name in table.names] == [True] * 8 + [False]
    io.write(table, tmp_path / "x.xpt")
    assert_frame_equal(io.read(tmp_path / "x.xpt"), table.frame)
    io.write(table, tmp_path / "x.dta")  # Stata has no ._: it takes a letter that is free
    assert io.read(tmp_path / "x.dta")["var7"].to_list() == [A]


def test_files_that_can_only_be_read(tmp_path):
    for suffix in (".sas7bdat", ".por"):
        with pytest.raises(
            WriteError, match=r"cannot be written, only read.*\s.*\s.*\.sav, \.zsav, \.dta, \.xpt"
        ):
            io.write(pl.DataFrame({"a": [1]}), tmp_path / f"x{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_without_the_library(survey, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(MissingDependencyError, match="a file of SPSS needs the package `pyreadstat`"):
        io.read(survey)
    with pytest.raises(MissingDependencyError):
        io.write(pl.DataFrame({"a": [1]}), survey.with_name("x.dta"))


# A release -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".sav", ".zsav"])
def test_a_release_keeps_labels_levels_and_missing_codes(survey, tmp_path, suffix):
    table = io.read_table(survey)
    roles = dict.fromkeys(table.names, Role.KEY)
    schema = Schema(
        tuple(Column.from_dict(c.name, {**c.to_dict(), "role": roles[c.name]}) for c in table.schema.columns)
    )
    release = sfumato.protect(
        Table(table.frame, schema), RankSwapping(window=80), columns=["income", "health"], seed=1
    )
    io.write(release.table.select(["income", "health", "sex"]), tmp_path / f"release{suffix}")
    cells, told = pyreadstat.read_sav(tmp_path / f"release{suffix}", user_missing=True, output_format="dict")
    was, before = pyreadstat.read_sav(survey, user_missing=True, output_format="dict")
    assert told.column_names == ["income", "health", "sex"]
    assert told.column_labels == ["Income in €", None, "Sex of the respondent"]
    for name in told.column_names:
        assert told.variable_value_labels.get(name) == before.variable_value_labels.get(name)
        assert sorted(map(str, told.missing_ranges[name])) == sorted(map(str, before.missing_ranges[name]))
        assert told.variable_measure[name] == before.variable_measure[name]
        assert sorted(cells[name], key=str) == sorted(was[name], key=str)  # swapping keeps the values
    assert [cells["income"][row] for row in (1, 3, 4)] == [-8.0, -2.0, 99.0]
    assert cells["health"][5] == 7.0
    assert cells["income"] != was["income"]


def test_a_code_for_suppressed_values_is_declared_and_labelled(tmp_path):
    table = one("x", 1, -7, None, labels=((1, "yes"),), suppressed=-7)
    _, told = pyreadstat.read_sav(written(table, tmp_path / "x.sav"), user_missing=True)
    assert told.missing_ranges == {"x": [{"lo": -7.0, "hi": -7.0}]}
    assert told.variable_value_labels == {"x": {1.0: "yes", -7.0: "suppressed"}}
    table = one("x", "a", "--", None, suppressed="--")
    facts = through(table, tmp_path / "x.sav").facts["x"]
    assert facts == {"kind": "nominal", "labels": (("--", "suppressed"),), "missing": ("--",)}
    table = one("x", 1, -7, labels=((-7, "held back"),), suppressed=-7)
    assert through(table, tmp_path / "x.sav").facts["x"]["labels"] == ((-7, "held back"),)


@pytest.mark.parametrize("suffix", WRITTEN)
def test_generalised_values_survive_as_text(tmp_path, suffix):
    nodes = Nodes.of({"valley": ["Kern", "Fresno"], "Kern": ["Kern"]}, leaves=["Fresno", "Kern", "Napa"])
    frame = pl.DataFrame(
        {
            "AGE": intervals([20, 30, None, None], [29, 30, None, None], missing=[False, False, False, True]),
            "COUNTY": pl.Series(["valley", "Kern", "*", None], dtype=nodes.dtype),
            "N": [1, 2, 3, 4],
        }
    )
    schema = Schema(
        (
            Column("AGE", Kind.CONTINUOUS, label="Age"),
            Column("COUNTY", Kind.NOMINAL),
            Column("N", Kind.CONTINUOUS),
        )
    )
    io.write(Table(frame, schema, nodes={"COUNTY": nodes}), tmp_path / f"x{suffix}")
    if suffix == ".sav":
        assert io.read(tmp_path / "x.sav").rows()[:2] == [("[20;29]", "{Fresno|Kern}", 1), ("30", "Kern", 2)]
    again = io.read_table(tmp_path / f"x{suffix}")
    assert is_interval(again.frame["AGE"].dtype)
    assert again.schema["AGE"].kind is Kind.CONTINUOUS
    assert again.schema["AGE"].label == "Age"
    assert again.frame["AGE"].to_list()[:2] == [{"lo": 20, "hi": 29}, {"lo": 30, "hi": 30}]
    assert "COUNTY" in again.nodes
