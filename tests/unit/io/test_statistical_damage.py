"""Files that are cut, damaged or of another format are told, and never read short."""

from __future__ import annotations

import polars as pl
import pytest

from sfumato import io
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ReadError

SECRET = "Xanthippe"
WRITTEN = [".sav", ".zsav", ".dta", ".xpt"]


def one(name="x", *values, dtype=None, kind=Kind.NOMINAL, **facts):
    """A table of one column."""
    return Table(pl.DataFrame({name: pl.Series(values, dtype=dtype)}), Schema((Column(name, kind, **facts),)))


# Damaged and foreign files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [*WRITTEN, ".sas7bdat", ".por"])
def test_foreign_files(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"")
    with pytest.raises(ReadError, match=r"file `.*` is empty"):
        io.read(path)
    for content in (
        f"name,age\n{SECRET},41\n".encode(),
        b"PAR1" * 100,
        b"\0" * 500,
        b"i,j\n",
        b"$",
        b"<stata",
        b"s\x02",
    ):
        path.write_bytes(content)
        with pytest.raises(ReadError, match=r"is not in .* format|is damaged or cut short") as caught:
            io.read(path)
        assert caught.value.exit_code == 3
        assert caught.value.hint
        assert SECRET not in str(caught.value)


def test_files_that_need_another_hand(tmp_path):
    (tmp_path / "x.sav").write_bytes(b"\x1c\0\0\0\0\0\0\0ENCRYPTEDSAV" + b"\0" * 80)
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "x.sav")
    assert "password" in caught.value.hint
    (tmp_path / "x.xpt").write_bytes(b"**COMPRESSED** " * 20)
    with pytest.raises(ReadError) as caught:
        io.read(tmp_path / "x.xpt")
    assert "XPORT engine" in caught.value.hint


@pytest.mark.parametrize("suffix", WRITTEN)
def test_a_file_that_was_cut_is_never_read_short(tmp_path, suffix):
    frame = pl.DataFrame(
        {"X": list(range(60)), "T": [f"{SECRET} {i:03d}" for i in range(60)], "Y": [0.5] * 60}
    )
    schema = Schema(
        (
            Column("X", Kind.NOMINAL, labels=((1, "one"), (2, "two"))),
            Column("T", Kind.NOMINAL),
            Column("Y", Kind.CONTINUOUS),
        )
    )
    io.write(Table(frame, schema), tmp_path / f"x{suffix}")
    content = (tmp_path / f"x{suffix}").read_bytes()
    path = tmp_path / f"cut{suffix}"
    passed = []
    for length in range(1, len(content), 7):
        path.write_bytes(content[:length])
        try:
            passed.append((length, io.read(path).height))
        except ReadError as error:
            assert error.hint  # noqa: PT017
            assert SECRET not in str(error)  # noqa: PT017
    # A transport file does not say how long it is: cut between two records, it is a shorter one.
    assert suffix == ".xpt" or not [height for _, height in passed if height < 60]
    assert len(passed) <= (15 if suffix == ".xpt" else 1)


def test_a_cut_file_gives_its_first_records_if_asked(tmp_path):
    io.write(pl.DataFrame({"x": list(range(1000)), "t": ["a"] * 1000}), tmp_path / "x.sav")
    (tmp_path / "cut.sav").write_bytes((tmp_path / "x.sav").read_bytes()[:-500])
    with pytest.raises(ReadError, match="damaged or cut short"):
        io.read(tmp_path / "cut.sav")
    assert io.read(tmp_path / "cut.sav", rows=10)["x"].to_list() == list(range(10))


def test_a_transport_file_of_sas_states_its_length(tmp_path):
    io.write(pl.DataFrame({"longname": list(range(100))}), tmp_path / "x.xpt")
    content = (tmp_path / "x.xpt").read_bytes()
    header = content.index(b"HEADER RECORD*******OBSV8")
    for stated, fits in ((100, True), (101, False)):
        told = content[: header + 48] + f"{stated:>15} ".encode() + content[header + 64 :]
        (tmp_path / "x.xpt").write_bytes(told)
        if fits:
            assert io.read(tmp_path / "x.xpt").height == 100
        else:
            with pytest.raises(ReadError, match="damaged or cut short"):
                io.read(tmp_path / "x.xpt")


def test_a_transport_file_of_several_tables(tmp_path):
    io.write(pl.DataFrame({"X": list(range(10))}), tmp_path / "x.xpt")
    content = (tmp_path / "x.xpt").read_bytes()
    (tmp_path / "x.xpt").write_bytes(content + content[240:])
    with pytest.raises(ReadError, match="holds several data sets"):
        io.read(tmp_path / "x.xpt")


def test_labels_of_a_variable_that_is_not_there(tmp_path):
    """Such a file would end the process within the library."""
    io.write(one("x", 1, labels=((1, "one"),)), tmp_path / "x.sav")
    content = bytearray((tmp_path / "x.sav").read_bytes())
    slot = content.index(b"\4\0\0\0\1\0\0\0\1\0\0\0") + 8
    for wrong in (0, 2, 255):
        content[slot] = wrong
        (tmp_path / "x.sav").write_bytes(content)
        with pytest.raises(ReadError, match="damaged"):
            io.read(tmp_path / "x.sav")
    content[slot] = 1
    for place, was in (
        (180, 0),
        (198, 5),
    ):  # a text, or a number shown as text, whose labelled value is a number
        assert content[place] == was
        content[place] = 1
        (tmp_path / "x.sav").write_bytes(content)
        with pytest.raises(ReadError, match="damaged"):
            io.read(tmp_path / "x.sav")
        content[place] = was


def test_a_header_that_states_too_much(tmp_path):
    io.write(pl.DataFrame({"x": [1.5]}), tmp_path / "x.sav")
    content = bytearray((tmp_path / "x.sav").read_bytes())
    content[80:84] = (500_000_000).to_bytes(4, "little")
    stated = content.index(b"\7\0\0\0\x10\0\0\0\x08\0\0\0\2\0\0\0") + 24  # and once more, as a longer number
    content[stated : stated + 8] = (500_000_000).to_bytes(8, "little")
    (tmp_path / "x.sav").write_bytes(content)
    with pytest.raises(ReadError, match="damaged"):
        io.read(tmp_path / "x.sav")
