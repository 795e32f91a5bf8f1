"""Hierarchies: small tables with the answer worked out by hand, and ARX's own files."""

import pickle
from datetime import date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised import covers, parse_intervals, to_text
from sfumato.data.hierarchy import Hierarchy
from sfumato.errors import DataError, ParameterError, PlanError, ReadError, WriteError

SHARED = Path(__file__).resolve().parents[3] / "shared"
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


@pytest.fixture
def work():
    return Hierarchy.from_levels(
        pl.DataFrame(
            {
                "value": ["Private", "Self-emp", "Federal", "State", "Never"],
                "kind": ["Business", "Business", "Government", "Government", "None"],
            }
        ),
        name="work",
    )


def rows(hierarchy):
    return [";".join(row) for row in hierarchy.levels.iter_rows()]


# Climbing


def test_the_root_is_added_where_there_is_none(work):
    assert (work.height, work.n_leaves, work.root) == (3, 5, "*")
    assert work.labels(1).to_list() == ["Business", "Government", "None"]
    assert work.labels(2).to_list() == ["*"]
    assert rows(work)[0] == "Private;Business;*"


def test_values_climb_and_missing_ones_stay_missing(work):
    values = pl.Series("job", ["State", None, "Never", "Private"])
    climbed = work.climb(values, 1)
    assert climbed.to_list() == ["Government", None, "None", "Business"]
    assert climbed.name == "job"
    assert climbed.dtype == pl.Enum(["Business", "Government", "None"])
    assert work.climb(values, 0).to_list() == values.to_list()
    assert work.climb(values, 2).to_list() == ["*", None, "*", "*"]
    assert work.climb(values.cast(pl.Categorical), 1).to_list() == climbed.to_list()


def test_codes_are_positions_among_the_labels(work):
    codes = work.codes(pl.Series(["State", None, "Never", "Private"]), 1)
    assert codes.dtype == np.int32
    assert codes.tolist() == [1, -1, 2, 0]


def test_parents_lead_from_level_to_level(work):
    assert work.parents(0).tolist() == [0, 0, 1, 1, 2]
    assert work.parents(1).tolist() == [0, 0, 0]
    assert work.parents(1).dtype == np.int32


def test_an_unseen_value_is_counted_and_not_shown(work):
    values = pl.Series("job", ["sentinel", "Private", "sentinel", "other sentinel", None])
    with pytest.raises(DataError, match=r"2 values of `job` \(3 records\)") as caught:
        work.climb(values, 1)
    assert "sentinel" not in str(caught.value)
    assert caught.value.hint


def test_an_unseen_value_may_climb_to_the_root(work):
    values = pl.Series("job", ["sentinel", "Never", None])
    assert work.climb(values, 1, unseen="root").to_list() == ["*", "None", None]
    assert work.climb(values, 1, unseen="root").dtype == pl.Enum(["Business", "Government", "None", "*"])
    assert work.climb(values, 2, unseen="root").to_list() == ["*", "*", None]
    # The root's code follows those of the level's labels, and leads to the root on every level above.
    assert work.codes(values, 1, unseen="root").tolist() == [3, 2, -1]
    assert work.parents(0, unseen="root").tolist() == [0, 0, 1, 1, 2, 3]
    assert work.parents(1, unseen="root").tolist() == [0, 0, 0, 0]


def test_numbers_climb_by_their_value():
    ages = Hierarchy.from_levels(pl.DataFrame({"age": ["25", "26.0", "30"], "band": ["20s", "20s", "30s"]}))
    for values in (
        pl.Series([25, 26, 30]),
        pl.Series([25.0, 26.0, 30.0]),
        pl.Series([25, 26, 30], dtype=pl.UInt8),
    ):
        assert ages.climb(values, 1).to_list() == ["20s", "20s", "30s"]
    assert ages.climb(pl.Series([float("nan"), None]), 1).to_list() == [None, None]
    with pytest.raises(DataError, match="1 value"):
        ages.climb(pl.Series([25.5]), 1)


@pytest.mark.parametrize("level", [-1, 3])
def test_a_level_must_exist(work, level):
    with pytest.raises(ParameterError, match="from 0 to 2"):
        work.climb(pl.Series(["Never"]), level)


def test_the_root_has_no_parents(work):
    with pytest.raises(ParameterError, match="below the root"):
        work.parents(2)


def test_nodes_cover_the_leaves_under_them(work):
    nodes = work.nodes()
    assert nodes.leaves.to_list() == ["Private", "Self-emp", "Federal", "State", "Never"]
    by_label = {label: nodes.members_of(code).to_list() for code, label in enumerate(nodes.labels)}
    assert by_label == {
        **{leaf: [leaf] for leaf in nodes.leaves},
        "Business": ["Private", "Self-emp"],
        "Government": ["Federal", "State"],
        "None": ["Never"],
        "*": nodes.leaves.to_list(),
    }
    values = pl.Series(["State", None, "Never"])
    assert covers(work.climb(values, 1), values, nodes=nodes).all()
    assert to_text(work.climb(values, 1), nodes).to_list() == ["{Federal|State}", None, "Never"]


def test_a_label_of_two_meanings_is_told_apart():
    # "Other" is the leaf on level 0 and a group of two on level 1; "Black" is the same on both.
    race = Hierarchy.from_levels(
        pl.DataFrame({"0": ["White", "Black", "Other", "Asian"], "1": ["White", "Black", "Other", "Other"]})
    )
    assert race.labels(1).to_list() == ["White", "Black", "Other (level 1)"]
    assert race.climb(pl.Series(["Asian", "Other"]), 1).to_list() == ["Other (level 1)"] * 2
    assert rows(race)[3] == "Asian;Other;*"
    nodes = race.nodes()
    assert nodes.labels.to_list() == ["White", "Black", "Other", "Asian", "Other (level 1)", "*"]
    assert nodes.sizes.tolist() == [1, 1, 1, 1, 2, 4]


def test_a_name_that_is_taken_is_not_taken_again():
    odd = Hierarchy.from_levels(pl.DataFrame({"0": ["a", "b", "c"], "1": ["a", "a", "a (level 1)"]}))
    assert odd.labels(1).to_list() == ["a (level 1)'", "a (level 1)"]


def test_early_suppression_is_the_wildcard():
    early = Hierarchy.from_levels(
        pl.DataFrame({"0": ["a", "b", "c"], "1": ["x", "x", "*"], "2": ["*", "*", "*"]})
    )
    assert early.climb(pl.Series(["c", "a"]), 1).to_list() == ["*", "x"]
    assert early.codes(pl.Series(["z"]), 1, unseen="root").tolist() == [1]
    nodes = early.nodes()
    assert nodes.members_of(nodes.labels.index_of("*")).to_list() == ["a", "b", "c"]


def test_a_root_may_have_a_name():
    world = Hierarchy.from_levels(pl.DataFrame({"0": ["Spain", "Japan"], "1": ["World", "World"]}))
    assert (world.height, world.root) == (2, "World")
    assert world.climb(pl.Series(["Mars"]), 0, unseen="root").to_list() == ["World"]
    assert world.nodes().labels.to_list() == ["Spain", "Japan", "World", "*"]


def test_hierarchies_compare_and_pickle_and_keep_their_values_to_themselves(work):
    work.labels(1)
    copy = pickle.loads(pickle.dumps(work))
    assert copy == work
    assert hash(copy) == hash(work)
    assert copy != Hierarchy("other", work.levels)
    assert work != "work"
    assert repr(work) == "Hierarchy('work', 5 leaves, 3 levels)"


# Faults


def test_all_faults_are_gathered_and_none_shows_a_value():
    faulty = Hierarchy(
        "job",
        pl.DataFrame(
            {
                # s1 twice; group X under both A and B; the last row short; two roots.
                "0": ["s1", "s2", "s1", "s3", "*"],
                "1": ["X", "X", "X", "Y", "Z"],
                "2": ["A", "B", "A", "B", None],
            }
        ),
    )
    expected = [
        "1 row with fewer levels than the 3 of the deepest",
        "1 value on more than one row",
        "a value called `*`, which is the wildcard's name",
        "1 label of level 1 with several parents at level 2",
        "2 roots instead of one at level 2",
    ]
    assert faulty.check() == expected
    values = pl.Series("s", ["s1", "s4", "s4", "s5", None])
    assert faulty.check(values, "column") == [
        *expected,
        "2 values of `column` (3 records) not among its 5 leaves",
    ]
    with pytest.raises(PlanError, match="has 6 faults") as caught:
        faulty.require(values, "column")
    assert len(caught.value.faults) == 6
    assert not any(value in str(caught.value) for value in ("s1", "s4", "s5", "X", "Y"))
    for use in (lambda: faulty.labels(0), lambda: faulty.climb(values, 0), faulty.nodes):
        with pytest.raises(PlanError):
            use()


def test_nothing_is_above_the_wildcard():
    levels = pl.DataFrame({"0": ["a", "b"], "1": ["*", "*"], "2": ["X", "X"], "3": ["*", "*"]})
    assert Hierarchy("x", levels).check() == ["1 label above `*`, which nothing can be above"]


def test_a_sound_hierarchy_has_no_faults(work):
    assert work.check(pl.Series(["Never", None])) == []
    work.require(pl.Series(["Never"]))
    with pytest.raises(DataError, match="`job`"):
        work.require(pl.Series(["sentinel"]), "job")


def test_a_hierarchy_of_nothing_is_faulty():
    with pytest.raises(DataError, match="at least one level"):
        Hierarchy("x", pl.DataFrame())
    with pytest.raises(PlanError, match="no values"):
        Hierarchy.from_levels(pl.DataFrame({"0": []}, schema={"0": pl.String}))


# Files


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
    work = Hierarchy.read(written(tmp_path, content))
    assert work.name == "work"
    assert rows(work) == ["a;X;*", "b;X;*", "c;Y;*"]


def test_a_first_row_that_is_data_is_kept(tmp_path):
    assert rows(Hierarchy.read(written(tmp_path, "a;X\nb;Y\nc;Y\n"))) == ["a;X;*", "b;Y;*", "c;Y;*"]
    assert rows(Hierarchy.read(written(tmp_path, "new\nused\n"))) == ["new;*", "used;*"]
    assert rows(Hierarchy.read(written(tmp_path, "new;old\nused;old\n"))) == ["new;old", "used;old"]
    assert rows(Hierarchy.read(written(tmp_path, "old;new\na;X\n"), header=False)) == ["old;new;*", "a;X;*"]
    assert rows(Hierarchy.read(written(tmp_path, "h;i\na;X\nb;Y\n"), header=True)) == ["a;X;*", "b;Y;*"]


def test_separators_inside_values_do_not_mislead(tmp_path):
    content = "Smith, J, Dr, MD, PhD;X;*\nRoe, R, Dr, MD, PhD;Y;*\n"
    assert Hierarchy.read(written(tmp_path, content)).labels(1).to_list() == ["X", "Y"]
    assert Hierarchy.read(written(tmp_path, "a;b,X\nc,Y\n"), separator=",").labels(0).to_list() == [
        "a;b",
        "c",
    ]


def test_spaces_are_kept(tmp_path):
    assert rows(Hierarchy.read(written(tmp_path, " a ; X ;*\nb;Y ;*\n"))) == [" a ; X ;*", "b;Y ;*"]


def test_text_that_is_not_utf8_is_latin1(tmp_path):
    path = written(tmp_path, "Málaga;Sur;*\nVigo;Norte;*\n".encode("latin-1"))
    assert Hierarchy.read(path).labels(0).to_list() == ["Málaga", "Vigo"]
    with pytest.raises(ReadError, match=r"work\.csv"):
        Hierarchy.read(path, encoding="utf-8")
    with pytest.raises(ReadError):
        Hierarchy.read(path, encoding="no such encoding")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ReadError, match=r"none\.csv.*No such file"):
        Hierarchy.read(tmp_path / "none.csv")
    with pytest.raises(ReadError, match="at least one row"):
        Hierarchy.read(written(tmp_path, ""))


def test_a_faulty_file_says_all_its_faults(tmp_path):
    path = written(tmp_path, "s1;X;*\ns1;X;*\ns2;X\ns3;Y;*\n")
    with pytest.raises(PlanError, match="has 2 faults") as caught:
        Hierarchy.read(path)
    assert "1 row with fewer levels" in str(caught.value)
    assert "s1" not in str(caught.value)


def test_a_hierarchy_is_written_as_arx_has_it(tmp_path, work):
    path = tmp_path / "out.csv"
    path.write_text("an older file")
    work.write(path)
    assert path.read_text().splitlines()[:2] == ["Private;Business;*", "Self-emp;Business;*"]
    assert Hierarchy.read(path, name="work") == work
    assert list(tmp_path.iterdir()) == [path]


def test_line_ends_within_values_survive(tmp_path):
    odd = Hierarchy.from_levels(pl.DataFrame({"0": ["\r", "\n", "a;b", 'c"d', ""]}))
    odd.write(tmp_path / "out.csv")
    assert Hierarchy.read(tmp_path / "out.csv", name="") == odd


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, work):
    with pytest.raises(WriteError, match=r"out\.csv"):
        work.write(tmp_path / "no folder" / "out.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="folder"):
        work.write(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


# Builders


def test_intervals_of_whole_numbers():
    ages = Hierarchy.from_intervals([24, 17, 25, None, 31, 24], widths=[5, 10])
    assert rows(ages) == [
        "17;[15;19];[10;19];*",
        "24;[20;24];[20;29];*",
        "25;[25;29];[20;29];*",
        "31;[30;34];[30;39];*",
    ]
    assert ages.climb(pl.Series([24.0]), 2).to_list() == ["[20;29]"]


def test_intervals_of_a_range_and_an_origin():
    ages = Hierarchy.from_intervals(range(-3, 5), widths=[2, 4], origin=1, name="age")
    # Cuts at …, −3, −1, 1, 3, 5: −3 and −2 belong together.
    assert ages.labels(1).to_list() == ["[-3;-2]", "[-1;0]", "[1;2]", "[3;4]"]
    assert ages.labels(2).to_list() == ["[-3;0]", "[1;4]"]
    assert ages.name == "age"


def test_intervals_of_floats_that_are_whole_are_those_of_whole_numbers():
    assert Hierarchy.from_intervals(pl.Series("age", [17.0, None, float("nan")]), widths=[5]).labels(
        1
    ).to_list() == ["[15;19]"]
    assert Hierarchy.from_intervals([17, 18], widths=[1, 2]).labels(1).to_list() == ["17", "18"]


def test_a_decimal_on_a_cut_belongs_above_it():
    # 0.3 / 0.1 is 2.999… in binary; as it is written it lies on a cut.
    shares = Hierarchy.from_intervals(pl.Series("share", [0.1, 0.25, 0.3, -0.05]), widths=[0.1, 0.5])
    assert shares.name == "share"
    assert rows(shares) == [
        "-0.05;[-0.1;0];[-0.5;0];*",
        "0.1;[0.1;0.2];[0;0.5];*",
        "0.25;[0.2;0.3];[0;0.5];*",
        "0.3;[0.3;0.4];[0;0.5];*",
    ]


@pytest.mark.parametrize("widths", [[5, 12], [10, 5], [0, 5], [-5], [], [float("inf")], [float("nan")]])
def test_widths_must_nest(widths):
    with pytest.raises(ParameterError):
        Hierarchy.from_intervals([1, 2], widths=widths)


@pytest.mark.parametrize("values", [["sentinel", "1"], [float("inf"), 1.0]])
def test_intervals_are_of_numbers(values):
    with pytest.raises(DataError, match="got 1 value others") as caught:
        Hierarchy.from_intervals(values, name="x")
    assert "sentinel" not in str(caught.value)


def test_cuts_leave_the_ends_open():
    ages = Hierarchy.from_cuts([10, 17, 18, 64, 65, 90], cuts=[[18, 65], [65]])
    assert rows(ages) == [
        "10;[;17];[;64];*",
        "17;[;17];[;64];*",
        "18;[18;64];[;64];*",
        "64;[18;64];[;64];*",
        "65;[65;];[65;];*",
        "90;[65;];[65;];*",
    ]
    incomes = Hierarchy.from_cuts([1.5, 2.0], cuts=[[2]])
    assert rows(incomes) == ["1.5;[;2];*", "2;[2;];*"]
    assert covers(
        parse_intervals(ages.climb(pl.Series([10, 90]), 1).cast(pl.String)), pl.Series([10, 90])
    ).all()


@pytest.mark.parametrize("cuts", [[[65, 18]], [[18], [18, 65]], [[18, 18]], [[]]])
def test_cuts_must_nest(cuts):
    with pytest.raises(ParameterError, match="`cuts`"):
        Hierarchy.from_cuts([1], cuts=cuts)


def test_prefixes_of_postcodes():
    codes = Hierarchy.from_prefix(pl.Series("zip", ["93721", "93650", "94000", "93721", "9"]), lengths=[3, 1])
    assert codes.name == "zip"
    assert rows(codes) == ["9;9;9;*", "93650;936**;9****;*", "93721;937**;9****;*", "94000;940**;9****;*"]
    assert Hierarchy.from_prefix([12, 13], lengths=[1], mark="#").labels(1).to_list() == ["1#"]


@pytest.mark.parametrize(
    ("lengths", "mark"), [([2, 3], "*"), ([2, 2], "*"), ([0], "*"), ([], "*"), ([2], ""), ([2], "**")]
)
def test_prefixes_must_shorten(lengths, mark):
    with pytest.raises(ParameterError, match="`lengths`"):
        Hierarchy.from_prefix(["abc"], lengths=lengths, mark=mark)


def test_trees_of_either_form():
    nested = {"Europe": {"Iberia": ["Spain", "Portugal"], "Malta": None}, "Asia": {"Japan": {}}}
    expected = [
        "Spain;Iberia;Europe;*",
        "Portugal;Iberia;Europe;*",
        "Malta;Malta;Europe;*",
        "Japan;Japan;Asia;*",
    ]
    assert rows(Hierarchy.from_tree(nested)) == expected
    parents = {
        "Spain": "Iberia",
        "Portugal": "Iberia",
        "Iberia": "Europe",
        "Malta": "Europe",
        "Japan": "Asia",
    }
    assert rows(Hierarchy.from_tree(parents)) == expected
    assert Hierarchy.from_tree({**parents, "Europe": "World", "Asia": "World"}).root == "World"


@pytest.mark.parametrize(
    "tree", [{"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}, {"a": "a"}, {}, {"x": ["a"], "y": ["a"]}]
)
def test_faulty_trees_are_refused(tree):
    with pytest.raises(PlanError):
        Hierarchy.from_tree(tree)


def test_dates_climb_through_the_calendar():
    days = pl.Series("born", [date(2020, 5, 17), None, date(2020, 4, 1), date(1999, 12, 31)])
    calendar = Hierarchy.from_dates(days)
    assert rows(calendar) == [
        "1999-12-31;1999-12;1999-Q4;1999;*",
        "2020-04-01;2020-04;2020-Q2;2020;*",
        "2020-05-17;2020-05;2020-Q2;2020;*",
    ]
    assert calendar.climb(days, 2).to_list() == ["2020-Q2", None, "2020-Q2", "1999-Q4"]
    assert Hierarchy.from_dates(days, levels=["year"]).height == 3


def test_times_climb_to_their_day_first():
    times = pl.Series("seen", [datetime.fromisoformat("2020-05-17T08:30:00")])
    calendar = Hierarchy.from_dates(times, levels=["month"])
    assert rows(calendar) == ["2020-05-17T08:30:00;2020-05-17;2020-05;*"]
    assert calendar.climb(times, 1).to_list() == ["2020-05-17"]


def test_dates_must_be_dates_and_their_levels_nest():
    with pytest.raises(DataError, match="must be dates"):
        Hierarchy.from_dates(pl.Series("x", ["2020"]))
    for levels in (["week"], ["year", "month"], ["month", "month"]):
        with pytest.raises(ParameterError, match="`levels`"):
            Hierarchy.from_dates(pl.Series([date(2020, 1, 1)]), levels=levels)


# ARX's own files


@needs_adult
@pytest.mark.parametrize("attribute", list(ADULT_HEIGHTS))
def test_the_adult_hierarchies_read_and_cover_their_columns(attribute, tmp_path):
    hierarchy = Hierarchy.read(ADULT / f"adult_hierarchy_{attribute}.csv", name=attribute)
    assert hierarchy.height == ADULT_HEIGHTS[attribute]
    assert hierarchy.root == "*"
    for infer in (False, True):
        column = pl.read_csv(ADULT / "adult.csv", separator=";", infer_schema=infer)[attribute]
        assert hierarchy.check(column) == []
        nodes = hierarchy.nodes()
        for level in range(hierarchy.height):
            assert covers(hierarchy.climb(column, level), column, nodes=nodes).all()
    hierarchy.write(tmp_path / "again.csv")
    assert Hierarchy.read(tmp_path / "again.csv", name=attribute) == hierarchy


@needs_adult
def test_the_lattice_of_adult_has_12960_nodes():
    heights = [Hierarchy.read(ADULT / f"adult_hierarchy_{name}.csv").height for name in ADULT_HEIGHTS]
    assert np.prod(heights) == 12_960
