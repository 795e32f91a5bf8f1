"""Files of hierarchies: small ones of every usual form, and ARX's own."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from brute import covers
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.errors import PlanError, ReadError, WriteError
from sfumato.io.hierarchies import read_hierarchy, write_hierarchy

SHARED = Path(__file__).resolve().parents[4] / "shared"
ADULT = SHARED / "data" / "adult"
needs_adult = pytest.mark.skipif(not ADULT.is_dir(), reason="shared/data/adult is not beside the repository")

# Levels, the values and the root included, as the README of the files has them.
ADULT_HEIGHTS = {
    "sex": 2,
    "age": 5,
    "race": 2,
    "marital-status": 3,
    "education": 4,
    "native-country": 3,
    "workclass": 3,
    "occupation": 3,
    "salary-class": 2,
}


def rows(hierarchy):
    return [";".join(row) for row in hierarchy.levels.iter_rows()]


def written(folder, content, name="work.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "a;X;*\nb;X;*\nc;Y;*\n",
        "a;X;*\r\nb;X;*\r\nc;Y;*",
        "a,X,*\nb,X,*\nc,Y,*\n",
        "a\tX\t*\nb\tX\t*\nc\tY\t*\n",
        "a|X|*\nb|X|*\nc|Y|*\n",
        "\ufeffa;X;*\nb;X;*\n\nc;Y;*\n",
        '"a";"X";"*"\n"b";"X";"*"\n"c";"Y";"*"\n',
        "value;level1;level2\na;X;*\nb;X;*\nc;Y;*\n",
        "work;anything;at all\na;X;*\nb;X;*\nc;Y;*\n",
        "old;new\na;X\nb;X\nc;Y\n",
        "work,level_1\na,X\nb,X\nc,Y\n",
        "a;X\nb;X\nc;Y\n",
        "a;X;*;\nb;X;*;;\nc;Y;*\n",
    ],
)
def test_every_usual_file_reads_alike(tmp_path, content):
    work = read_hierarchy(written(tmp_path, content))
    assert work.name == "work"
    assert rows(work) == ["a;X;*", "b;X;*", "c;Y;*"]


def test_a_first_row_that_is_data_is_kept(tmp_path):
    assert rows(read_hierarchy(written(tmp_path, "a;X\nb;Y\nc;Y\n"))) == ["a;X;*", "b;Y;*", "c;Y;*"]
    assert rows(read_hierarchy(written(tmp_path, "new\nused\n"))) == ["new;*", "used;*"]
    assert rows(read_hierarchy(written(tmp_path, "new;old\nused;old\n"))) == ["new;old", "used;old"]
    assert rows(read_hierarchy(written(tmp_path, "old;new\na;X\n"), header=False)) == ["old;new;*", "a;X;*"]
    assert rows(read_hierarchy(written(tmp_path, "h;i\na;X\nb;Y\n"), header=True)) == ["a;X;*", "b;Y;*"]


def test_separators_inside_values_do_not_mislead(tmp_path):
    content = "Smith, J, Dr, MD, PhD;X;*\nRoe, R, Dr, MD, PhD;Y;*\n"
    assert read_hierarchy(written(tmp_path, content)).labels(1).to_list() == ["X", "Y"]
    assert read_hierarchy(written(tmp_path, "a;b,X\nc,Y\n"), separator=",").labels(0).to_list() == [
        "a;b",
        "c",
    ]


def test_spaces_are_kept(tmp_path):
    assert rows(read_hierarchy(written(tmp_path, " a ; X ;*\nb;Y ;*\n"))) == [" a ; X ;*", "b;Y ;*"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_a_hierarchy_is_decoded_as_its_table_is(tmp_path, encoding):
    path = written(tmp_path, "5 €;cheap;*\n9 €;dear;*\n".encode(encoding))
    assert read_hierarchy(path).labels(0).to_list() == ["5 €", "9 €"]


def test_text_that_is_not_utf8_is_western(tmp_path):
    path = written(tmp_path, "Málaga;Sur;*\nVigo;Norte;*\n".encode("latin-1"))
    assert read_hierarchy(path).labels(0).to_list() == ["Málaga", "Vigo"]
    with pytest.raises(ReadError, match=r"work\.csv"):
        read_hierarchy(path, encoding="utf-8")
    with pytest.raises(ReadError):
        read_hierarchy(path, encoding="no such encoding")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ReadError, match=r"none\.csv.*No such file"):
        read_hierarchy(tmp_path / "none.csv")
    with pytest.raises(ReadError, match="has no rows"):
        read_hierarchy(written(tmp_path, ""))


def test_a_faulty_file_says_all_its_faults(tmp_path):
    path = written(tmp_path, "s1;X;*\ns1;X;*\ns2;X\ns3;Y;*\n")
    with pytest.raises(PlanError, match="has 2 faults") as caught:
        read_hierarchy(path)
    assert "1 row with fewer levels" in str(caught.value)
    assert "s1" not in str(caught.value)


def test_a_hierarchy_is_written_as_arx_has_it(tmp_path, work):
    path = tmp_path / "out.csv"
    write_hierarchy(work, path)
    assert path.read_text().splitlines()[:2] == ["Private;Business;*", "Self-emp;Business;*"]
    assert read_hierarchy(path, name="work") == work
    assert list(tmp_path.iterdir()) == [path]


def test_an_older_file_is_replaced_only_if_asked(tmp_path, work):
    path = written(tmp_path, "an older file")
    with pytest.raises(WriteError, match="exists already"):
        write_hierarchy(work, path)
    assert path.read_text() == "an older file"
    write_hierarchy(work, path, overwrite=True)
    assert read_hierarchy(path) == work
    assert list(tmp_path.iterdir()) == [path]


def test_line_ends_within_values_survive(tmp_path):
    odd = Hierarchy.from_levels(pl.DataFrame({"0": ["\r", "\n", "a;b", 'c"d', ""]}))
    write_hierarchy(odd, tmp_path / "out.csv")
    assert read_hierarchy(tmp_path / "out.csv", name="") == odd


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, work):
    with pytest.raises(WriteError, match=r"out\.csv"):
        write_hierarchy(work, tmp_path / "no folder" / "out.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="folder"):
        write_hierarchy(work, tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


# ARX's own files


@needs_adult
@pytest.mark.parametrize("attribute", list(ADULT_HEIGHTS))
def test_the_adult_hierarchies_read_and_cover_their_columns(attribute, tmp_path):
    hierarchy = read_hierarchy(ADULT / f"adult_hierarchy_{attribute}.csv", name=attribute)
    assert hierarchy.height == ADULT_HEIGHTS[attribute]
    assert hierarchy.root == "*"
    for infer in (False, True):
        column = pl.read_csv(ADULT / "adult.csv", separator=";", infer_schema=infer)[attribute]
        assert hierarchy.check(column) == []
        nodes = hierarchy.nodes()
        for level in range(hierarchy.height):
            assert covers(hierarchy.climb(column, level), column, nodes=nodes).all()
    write_hierarchy(hierarchy, tmp_path / "again.csv")
    assert read_hierarchy(tmp_path / "again.csv", name=attribute) == hierarchy


@needs_adult
def test_the_lattice_of_adult_has_12960_nodes():
    heights = [read_hierarchy(ADULT / f"adult_hierarchy_{name}.csv").height for name in ADULT_HEIGHTS]
    assert np.prod(heights) == 12_960
