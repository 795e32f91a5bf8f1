"""Sets of items survive every format: as lists where it has them, as text with a separator elsewhere."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.cli import _exit_code
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.errors import PlanError, WriteError
from sfumato.io import conform, read_table, write

SUFFIXES = [".csv", ".tsv", ".parquet", ".arrow", ".xlsx", ".sav", ".dta", "sqlite"]
ITEMS = st.one_of(
    st.sampled_from(["beer", "wine", "1", "2.5", "01", "true", "*", "{a|b}", "[1;2]", "-9"]),
    st.text(st.characters(codec="latin-1", categories=["L", "N"]), min_size=1, max_size=5),
)
SETS = st.lists(st.one_of(st.none(), st.lists(ITEMS, max_size=4, unique=True)), min_size=1, max_size=8)


def _schema(separator="|", **more):
    return Schema(
        (Column("basket", Kind.SET, Role.KEY, separator=separator, **more), Column("n", Kind.CONTINUOUS))
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_sets_come_back_as_they_went(suffix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    place = f"sqlite:{folder}/sets.db?table=sets" if suffix == "sqlite" else folder / f"sets{suffix}"

    @examples(15)
    @given(SETS, st.sampled_from(["|", ";", ", ", "+-"]))
    def holds(sets, separator):
        clean = [
            None if each is None else [item for item in each if separator.strip() not in item]
            for each in sets
        ]
        frame = pl.DataFrame({"basket": pl.Series(clean, dtype=pl.List(pl.String)), "n": range(len(sets))})
        table = conform(frame, _schema(separator))
        write(table, place, overwrite=True)
        again = read_table(place, _schema(separator))
        assert again.frame["basket"].to_list() == clean

    holds()


def test_people_write_blanks_and_ends(tmp_path):
    place = tmp_path / "sets.csv"
    place.write_text("basket,n\nbeer; wine;,1\n;,2\n,3\n-,4\nmilk,5\n")
    table = read_table(place, _schema(";", missing=("-",)))
    assert table.frame["basket"].to_list() == [["beer", "wine"], [], None, None, ["milk"]]


def test_numbers_are_items_too(tmp_path):
    place = tmp_path / "sets.csv"
    place.write_text("basket,n\n12,1\n7,2\n")
    assert read_table(place, _schema(";")).frame["basket"].to_list() == [["12"], ["7"]]


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ([["a|b"]], "1 item that could not be read back: .* with the separator in it"),
        ([["a", None]], "1 missing item, which cannot be written as text"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(sets, says, tmp_path):
    frame = pl.DataFrame({"basket": pl.Series(sets, dtype=pl.List(pl.String)), "n": [1]})
    place = tmp_path / "sets.csv"
    with pytest.raises(WriteError, match=says):
        write(conform(frame, _schema("|")), place)
    assert not place.exists()


def test_without_a_separator_sets_are_not_written_as_text(tmp_path):
    frame = pl.DataFrame({"basket": [["a"]], "n": [1]})
    with pytest.raises(WriteError, match="`separator`"):
        write(frame, tmp_path / "sets.csv")


def test_a_separator_is_for_sets():
    with pytest.raises(PlanError, match="`separator` is for sets"):
        Column("x", Kind.NOMINAL, separator=";")


def test_a_release_is_written_as_it_was_read(tmp_path, capfd):
    source, plan, out = tmp_path / "in.csv", tmp_path / "plan.toml", tmp_path / "out.csv"
    source.write_text("basket\n" + "beer;wine\n" * 4 + ";\n" * 3 + "gold\n")
    plan.write_text(
        'requirements = ["km-anonymity >= 2"]\n'
        f'[data]\npath = "{source.name}"\n[columns.basket]\nkind = "set"\nrole = "key"\nseparator = ";"\n'
        '[[steps]]\nmethod = "record-suppression"\nparameters = { k = 2 }\n[output]\npath = "out.csv"\n'
    )
    code = _exit_code(["run", str(plan)])
    assert code == 0, capfd.readouterr()
    assert sorted(out.read_text().split()) == sorted(["basket", *["beer;wine"] * 4, *[";"] * 3])
