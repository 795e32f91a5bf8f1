"""No file of a release holds what the release withholds: the bytes of every format are searched.

One person has a value of their own in every column. Each way of withholding is followed by the one way out, and
all files that were written are searched, unpacked, for these values in every form that a format has for them.
That the search finds what is not withheld is tested first.
"""

import datetime as dt
import struct
import zipfile
import zlib
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.registry import method
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release

pa = pytest.importorskip("pyarrow")

RECORDS, ALONE = 40, 7
BORN = dt.date(1911, 3, 7)
#: What one person alone has, and two values that the others have. Texts fit a chunk of SPSS, which has eight.
CELLS = {
    "TOWN": ("QxTown77", "Rome", "Oslo"),
    "ZIP": ("7799", "77", "55"),
    "LEVEL": ("QxLevel7", "low", "high"),
    "CODE": (88099, 1, 2),
    "INCOME": (813377.25, 100.5, 200.5),
    "BORN": (BORN, dt.date(1980, 1, 1), dt.date(1990, 1, 1)),
    "HAS": (["QxItem77"], ["car", "cat"], ["dog"]),
    "WHY": (77123, 4, 5),
}
SCHEMA = Schema(
    (
        Column("TOWN", Kind.NOMINAL, Role.KEY),
        Column("ZIP", Kind.NOMINAL, Role.KEY),
        Column("LEVEL", Kind.ORDINAL, Role.KEY, order=("low", "QxLevel7", "high")),
        Column("CODE", Kind.NOMINAL, Role.KEY, labels=((88099, "QxMean77"), (1, "one"), (2, "two"))),
        Column("INCOME", Kind.CONTINUOUS, Role.KEY),
        Column("BORN", Kind.DATE, Role.KEY),
        Column("HAS", Kind.SET, Role.OTHER),
        Column(
            "WHY",
            Kind.ORDINAL,
            Role.OTHER,
            missing=(77123,),
            labels=((4, "four"), (5, "five"), (77123, "QxWhy777")),
        ),
        Column("REST", Kind.NOMINAL, Role.OTHER),
    )
)
SINGLE = tuple(name for name in CELLS if name not in {"HAS", "WHY"})  # keys with one value in a cell
FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "xlsx", "sav", "zsav", "dta", "xpt", "db")
HOLD_SETS = frozenset({"parquet", "arrow", "feather"})


def ibm(number):
    """A number as SAS has it in transport files."""
    exponent = 64
    while number >= 1:
        number, exponent = number / 16, exponent + 1
    return bytes([exponent]) + int(number * 16**14).to_bytes(7, "big")


def forms(number):
    packed = [struct.pack(form, number) for form in ("<d", ">d")]
    if float(number).is_integer():
        packed += [struct.pack(form, int(number)) for form in ("<i", "<q")] + [int(number).to_bytes(3, "big")]
    return [*packed, ibm(number), f"{number:.15g}".encode()]


def days_since(year, month, day):
    return (BORN - dt.date(year, month, day)).days


#: Every form in which a format could hold what one person alone has, by column.
TRACES = {
    "TOWN": [b"QxTown77"],
    "ZIP": [b"7799"],
    "LEVEL": [b"QxLevel7"],
    "CODE": [*forms(88099), b"QxMean77"],
    "INCOME": forms(813377.25),
    "BORN": [
        b"1911-03-07",
        struct.pack("<i", days_since(1970, 1, 1)),
        struct.pack("<i", days_since(1960, 1, 1)),
        struct.pack("<d", days_since(1960, 1, 1)),
        b"\xc4" + ibm(-days_since(1960, 1, 1))[1:],
        struct.pack("<d", days_since(1582, 10, 14) * 86400.0),
        f"<v>{days_since(1899, 12, 30)}</v>".encode(),
    ],
    "HAS": [b"QxItem77"],
    "WHY": [*forms(77123), b"QxWhy777"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    cells = {
        name: [alone if i == ALONE else (one, other)[i % 2] for i in range(RECORDS)]
        for name, (alone, one, other) in CELLS.items()
    }
    cells["ZIP"] = [f"{code}{10 + i % 7}"[:4] for i, code in enumerate(cells["ZIP"])]
    cells["REST"] = ["all"] * RECORDS
    levels = pl.Enum(SCHEMA["LEVEL"].order)
    pl.DataFrame(cells).with_columns(pl.col("LEVEL").cast(levels)).write_parquet(folder / "in.parquet")
    return folder


def step(name, columns=SINGLE, **parameters):
    return Step(method(name)(**parameters), columns)


def without_them(table, run):
    """A sample of the records."""
    rows = np.array([row for row in range(3, RECORDS - 5) if row != ALONE])
    return Release.of(table.take(rows), source_rows=rows)


def without_sets(table, run):
    """No method suppresses sets yet."""
    return Release.record_by_record(to_missing(table, "HAS", np.arange(RECORDS) == ALONE))


def first_records(table, run):
    """What stands in one piece of memory with what was cut off."""
    cut = replace(table, frame=table.frame.head(ALONE))
    return Release.record_by_record(cut)


SUPPRESSIONS = {
    "cells": [step("local-suppression", k=2)],
    "columns missing": [step("attribute-suppression", k=20, show="missing")],
    "columns starred": [step("attribute-suppression", k=20, show="wildcard")],
    "records missing": [step("record-suppression", k=2, show="missing")],
    "records starred": [step("record-suppression", k=2, show="wildcard")],
    "recoded to the root": [step("recoding", levels=99)],
    "microaggregated": [step("mdav", ("INCOME", "BORN"), k=2), step("local-suppression", k=2)],
    "removed": [step("trivial-removal")],
}
GROWN = ("ZIP", "INCOME", "BORN")
#: What is done, which columns are dropped, and whose lonely values are then withheld.
WAYS = {
    **{name: (Recipe.of(*steps), (), SINGLE) for name, steps in SUPPRESSIONS.items()},
    "records dropped": (Recipe.of(step("record-suppression", k=2, show="drop")), (), tuple(CELLS)),
    "sets missing": (without_sets, (), ("HAS",)),
    "columns dropped": (Recipe.of(), (*SINGLE[1:], "WHY"), (*SINGLE[1:], "WHY")),
    "top coded": (Recipe.of(step("top-bottom-coding", ("INCOME",), share=5, side="top")), (), ("INCOME",)),
    "bottom coded": (Recipe.of(step("top-bottom-coding", ("BORN",), share=5, side="bottom")), (), ("BORN",)),
    "grown groups": (Recipe.of(step("recoding", GROWN, levels=2)), (), GROWN),
    "sampled": (without_them, (), tuple(CELLS)),
    "cut off": (first_records, (), tuple(CELLS)),
    "nothing": (Recipe.of(), (), ()),
}


def unpacked(path):
    """The bytes of a file, and of what is packed in it."""
    content = path.read_bytes()
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            return b"\n".join(archive.read(name) for name in archive.namelist())
    parts = [content]
    if path.suffix == ".zsav":
        for at in range(len(content)):
            if content[at : at + 1] == b"\x78":
                try:
                    parts.append(zlib.decompressobj().decompress(content[at:]))
                except zlib.error:
                    continue
    if path.suffix == ".parquet":
        parts += [piece for start in content.split(b"\x28\xb5\x2f\xfd")[1:] if (piece := unzstd(start))]
    return b"\n".join(parts)


def unzstd(frame):
    stream = pa.CompressedInputStream(pa.BufferReader(b"\x28\xb5\x2f\xfd" + frame), "zstd")
    found = bytearray()
    try:
        while piece := stream.read(1):
            found += piece
    except OSError:  # what comes behind the frame
        pass
    return bytes(found)


@cache
def made(folder, way, *, sets):
    """The plan of a way, and what came of it."""
    how, dropped, _ = WAYS[way]
    plan = Plan(
        data=Source(str(folder / "in.parquet")),
        schema=SCHEMA,
        recipe=how if isinstance(how, Recipe) else Recipe.of(),
        output=Output("later", drop=dropped if sets else (*dropped, "HAS")),
    )
    return plan, carry_out(plan, Run(seed=LARGE + 1), protect=None if isinstance(how, Recipe) else how)


def traces_in(folder, way, ending, tmp_path):
    """The columns of which a file of the release, made in this way, holds what one person alone has."""
    plan, outcome = made(folder, way, sets=ending in HOLD_SETS)
    place = f"sqlite:{tmp_path}/out.db?table=t" if ending == "db" else str(tmp_path / f"out.{ending}")
    there = replace(plan, output=Output(place), folder=tmp_path)
    write_release(decide(outcome, subject="it", unjudged=True), Destination(there))
    files = [path for path in tmp_path.iterdir() if not path.name.endswith(".private.json")]
    content = b"\n".join(unpacked(path) for path in files)
    return {name for name, traces in TRACES.items() if any(trace in content for trace in traces)}


@pytest.mark.parametrize("ending", FORMATS)
def test_the_search_finds_what_is_not_withheld(folder, ending, tmp_path):
    found = traces_in(folder, "nothing", ending, tmp_path)
    assert found == {
        *SINGLE,
        *(["HAS"] if ending in HOLD_SETS else []),
        *(["WHY"] if ending != "xpt" else []),
    }


def ways_and_formats():
    """Every way in two or three formats, and every format in four ways or more; the others are slow."""
    for number, way in enumerate(way for way in WAYS if way != "nothing"):
        for place, ending in enumerate(FORMATS):
            marks = () if (number + place) % 4 == 0 else pytest.mark.slow
            yield pytest.param(way, ending, marks=marks, id=f"{way}-{ending}")


@pytest.mark.parametrize(("way", "ending"), [*ways_and_formats()])
def test_no_file_holds_what_is_withheld(folder, way, ending, tmp_path):
    assert not traces_in(folder, way, ending, tmp_path) & set(WAYS[way][2])
