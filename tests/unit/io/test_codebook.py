"""The file beside a release that says which values the labels of large groups stand for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import io
from sfumato.data.generalised import text_forms
from sfumato.data.generalised.cover import Cover, cover_of
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.hierarchy.build import from_prefix
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import WriteError
from sfumato.io import codebook
from sfumato.io.codebook import SHOWN, codebook_path

ZIPS = [str(code) for code in range(93000, 93010)]


def table_of(groups: dict[str, list[str]], labels: list[str | None], leaves: list[str] = ZIPS) -> Table:
    nodes = Nodes.of(groups, leaves=leaves)
    column = pl.Series("zip", labels, dtype=pl.String).cast(nodes.dtype)
    frame = pl.DataFrame([column, pl.Series("n", range(len(labels)))])
    schema = Schema((Column("zip", Kind.NOMINAL), Column("n", Kind.CONTINUOUS)))
    return Table(frame, schema, nodes={"zip": nodes})


def covered(table: Table) -> list[tuple[str, ...] | None]:
    """What each record's value may be."""
    nodes = table.nodes["zip"]
    return [None if code < 0 else tuple(nodes.members_of(code)) for code in nodes.codes(table.frame["zip"])]


LARGE, SMALL = ZIPS[: SHOWN + 1], ZIPS[SHOWN + 1 :]


def test_a_large_group_is_written_by_its_label_and_read_back_with_its_values(tmp_path: Path) -> None:
    table = table_of({"930**": LARGE, "rest": SMALL}, ["930**", "rest", None, "*", "930**"])
    io.write(table, tmp_path / "r.csv")
    shown = (tmp_path / "r.csv").read_text().splitlines()
    assert shown == ["zip,n", "930**,0", "{" + "|".join(SMALL) + "},1", ",2", "*,3", "930**,4"]
    lines = (tmp_path / "r.labels.csv").read_text().splitlines()
    assert lines == ["column,label,value", *(f"zip,930**,{code}" for code in LARGE)]
    again = io.read_table(tmp_path / "r.csv", table.schema, generalised=["zip"])
    assert covered(again)[:3] == [tuple(LARGE), tuple(SMALL), None]
    assert covered(again)[4] == tuple(LARGE)


@pytest.mark.parametrize("label", ["{a|b}", "[1;2]", "93001", "", "\\x"])
def test_a_label_that_would_be_read_as_something_else_gets_another_name(tmp_path: Path, label: str) -> None:
    table = table_of({label: LARGE}, [label, "*"])
    io.write(table, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[1] == "group 1,0"
    again = io.read_table(tmp_path / "r.csv", table.schema, generalised=["zip"])
    assert covered(again)[0] == tuple(LARGE)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_beginnings_of_codes_say_themselves_what_they_stand_for(tmp_path: Path, ending: str) -> None:
    nodes = from_prefix(["9300", "1011"], lengths=[3, 1]).nodes()
    column = pl.Series("zip", ["930*", "1***", "9300", "*"]).cast(nodes.dtype)
    table = Table(column.to_frame(), Schema((Column("zip", Kind.NOMINAL),)), nodes={"zip": nodes})
    io.write(table, tmp_path / f"r.{ending}")
    assert [file.name for file in tmp_path.iterdir()] == [f"r.{ending}"]
    again = io.read_table(tmp_path / f"r.{ending}", table.schema)
    assert again.frame["zip"].to_list() == column.to_list()
    assert covered(again) == covered(table)
    assert (
        Cover.of(again, "zip").share_of_domain().tolist() == Cover.of(table, "zip").share_of_domain().tolist()
    )
    original = Table(pl.DataFrame({"zip": ["9307"] * 4}), table.schema)
    numbers, cover = cover_of(original, again, "zip")
    assert cover.holds(numbers).tolist() == [True, False, False, True]


def test_small_groups_need_no_codebook(tmp_path: Path) -> None:
    io.write(table_of({"rest": SMALL}, ["rest"]), tmp_path / "r.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_an_old_codebook_goes_with_the_file_it_was_of(tmp_path: Path) -> None:
    io.write(table_of({"930**": LARGE}, ["930**"]), tmp_path / "r.csv")
    io.write(table_of({"rest": SMALL}, ["rest"]), tmp_path / "r.csv", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_a_file_of_that_name_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    mine = codebook_path(tmp_path / "r.csv")
    mine.write_text("my notes\n")
    io.write(table_of({"rest": SMALL}, ["rest"]), tmp_path / "r.csv", overwrite=True)
    assert mine.read_text() == "my notes\n"
    with pytest.raises(WriteError):
        io.write(table_of({"930**": LARGE}, ["930**"]), tmp_path / "r.csv", originals=[mine], overwrite=True)
    assert mine.read_text() == "my notes\n"


def test_a_file_that_may_not_be_replaced_leaves_no_codebook(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a\n1\n")
    with pytest.raises(WriteError):
        io.write(table_of({"930**": LARGE}, ["930**"]), tmp_path / "r.csv")
    assert not codebook_path(tmp_path / "r.csv").exists()


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "xlsx", "tsv"])
def test_every_format_has_it(tmp_path: Path, suffix: str) -> None:
    table = table_of({"930**": LARGE, "rest": SMALL}, ["930**", "rest"])
    io.write(table, tmp_path / f"r.{suffix}")
    assert codebook_path(tmp_path / f"r.{suffix}").exists()
    again = io.read_table(tmp_path / f"r.{suffix}", table.schema, generalised=["zip"])
    assert covered(again) == [tuple(LARGE), tuple(SMALL)]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "parquet"])
def test_a_label_of_digits_is_no_number(tmp_path: Path, suffix: str) -> None:
    table = table_of({"9": LARGE, "93009": ["93009"]}, ["9", "93009", "9"])
    io.write(table, tmp_path / f"r.{suffix}")
    again = io.read_table(tmp_path / f"r.{suffix}", table.schema)
    assert covered(again) == [tuple(LARGE), ("93009",), tuple(LARGE)]


@pytest.mark.parametrize("groups", [{"rest": SMALL}, {"930**": LARGE}])
def test_the_codebook_of_an_original_is_never_touched(tmp_path: Path, groups: dict[str, list[str]]) -> None:
    original = tmp_path / "r.csv"
    io.write(table_of({"93": LARGE}, ["93"]), original)
    before = codebook_path(original).read_bytes()
    with suppress(WriteError):
        io.write(table_of(groups, [*groups]), tmp_path / "r.parquet", originals=[original], overwrite=True)
    assert codebook_path(original).read_bytes() == before


def test_the_codebook_of_a_guarded_file_is_guarded(tmp_path: Path) -> None:
    values = [f"={number}+1" for number in range(SHOWN + 1)]
    table = table_of({"-all": values, "x": ["x"]}, ["-all", "x"], leaves=[*values, "x"])
    io.write(table, tmp_path / "r.csv", guard=True)
    assert (tmp_path / "r.labels.csv").read_text().splitlines()[1] == "zip,'-all,'=0+1"
    again = io.read_table(tmp_path / "r.csv", table.schema)
    assert covered(again) == [tuple(f"'{value}" for value in values), ("x",)]


@given(st.lists(st.integers(-1, 6)))
def test_codes_that_occur_are_found_without_sorting(codes):
    nodes = Nodes.of({f"g{i}": ["a"] for i in range(6)}, leaves=["a"])
    found = nodes.used_codes(np.array(codes, dtype=np.int32))
    expected = np.unique(np.array(codes, dtype=np.int32), return_inverse=True)
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]


@given(st.data())
def test_sets_written_some_at_a_time_are_those_written_one_by_one(data):
    """Each text and each line of the codebook by a loop that shares no code, with escapes and long sets."""
    leaves = data.draw(
        st.lists(st.text("ab|{}\\\\*.", min_size=1, max_size=3), min_size=1, max_size=9, unique=True)
    )
    sets = data.draw(st.lists(st.sets(st.integers(0, len(leaves) - 1), min_size=1), min_size=1, max_size=12))
    codes = data.draw(st.lists(st.integers(-1, len(sets) - 1), max_size=20))
    labels = {f"L{i}": [leaves[place] for place in sorted(own)] for i, own in enumerate(sets)}
    nodes = Nodes.of(labels, leaves=leaves)
    column = pl.Series("x", [None if code < 0 else f"L{code}" for code in codes], dtype=nodes.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_forms, "_AT_ONCE", 2)
        patch.setattr(codebook, "_AT_ONCE", 2)
        texts = text_forms.to_text(column, nodes).to_list()
        shown, lines = codebook.text_and_codebook(column, nodes)

    def in_braces(value: str) -> str:
        return "\\..." if value == "..." else "".join("\\" + c if c in "\\|{}" else c for c in value)

    for code, text, short in zip(codes, texts, shown, strict=True):
        own = [] if code < 0 else labels[f"L{code}"]
        if len(own) > 1:
            assert text == "{" + "|".join(map(in_braces, own)) + "}"
        elif own:
            assert text.removeprefix("\\") == own[0].removeprefix("\\")
        assert short == (f"L{code}" if len(own) > SHOWN else text)
    listed = [(f"L{code}", value) for code in sorted({*codes} - {-1}) for value in labels[f"L{code}"]]
    long = [(label, value) for label, value in listed if len(labels[label]) > SHOWN]
    assert lines.rows() == [("x", label, value) for label, value in long]
