"""Hierarchies that grow from a column alone: small columns worked out by hand, and laws for all of them."""

from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from brute import covers
from sfumato.data.generalised.text_forms import parse_intervals
from sfumato.data.hierarchy.grow import (
    from_codes,
    from_frequencies,
    from_labels,
    from_order,
    from_quantiles,
    from_widths,
    present_values,
    propose,
    round_widths,
    roundest,
)
from sfumato.data.schema import Column, Kind
from sfumato.errors import DataError, ParameterError, RefusedError
from toys import SECRET_WORD


def rows(hierarchy):
    return [";".join(row) for row in hierarchy.levels.iter_rows()]


def sizes(hierarchy):
    return [len(hierarchy.labels(level)) for level in range(hierarchy.height)]


# ------------------------------------------------------------------------------------------------ numbers


def test_widths_of_ages():
    ages = from_widths(pl.Series("age", range(95)))
    assert ages.name == "age"
    assert sizes(ages) == [95, 19, 10, 5, 1]  # of 5, 10 and 20 years
    assert ages.labels(1)[:2].to_list() == ["[0;4]", "[5;9]"]
    assert ages.labels(3).to_list() == ["[0;19]", "[20;39]", "[40;59]", "[60;79]", "[80;99]"]


@pytest.mark.parametrize(
    ("low", "high", "whole", "widths"),
    [
        ("0", "94", True, ["5", "10", "20"]),
        ("0", "10", True, ["2", "10"]),
        ("0", "1", True, []),
        ("0", "1", False, ["0.05", "0.1", "0.2", "1"]),
        ("7", "7", False, []),
        # From 95 to 105 the intervals of 20 and of 100 part the values as those of 10 do.
        ("95", "105", True, ["2", "10"]),
        ("-5", "5", True, ["2", "10"]),
        ("-0.003", "0.004", False, ["0.0005", "0.001", "0.002", "0.01"]),
        ("1000000", "250000000", True, ["10000000", "20000000", "100000000", "200000000"]),
    ],
)
def test_widths_are_round_and_nest(low, high, whole, widths):
    found = round_widths(Fraction(low), Fraction(high), whole=whole)
    assert found == [Fraction(width) for width in widths]
    assert all(wide % narrow == 0 for narrow, wide in pairwise(found))


@pytest.mark.parametrize(
    ("below", "upto", "found"),
    [
        ("3387", "3412", "3400"),
        ("17", "18", "18"),
        ("18", "23", "20"),
        ("-7.7", "-3.2", "-5"),
        ("-1", "1", "0"),
        ("-3", "0", "0"),
        ("0", "0.0034", "0.002"),
        ("0.31", "0.32", "0.32"),
        ("99", "1001", "1000"),
    ],
)
def test_the_roundest_number_between_two(below, upto, found):
    assert roundest(Fraction(below), Fraction(upto)) == Fraction(found)


def test_quantiles_of_whole_numbers():
    tree = from_quantiles(pl.Series("x", range(1, 17)), levels=2)
    # Sixteen values in four groups of four; the cuts 5, 9 and 13 move by one to be round: 5, 10, 14.
    assert rows(tree)[::4] == ["1;[;4];[;9];*", "5;[5;9];[;9];*", "9;[5;9];[;9];*", "13;[10;13];[10;];*"]
    assert sizes(from_quantiles(pl.Series("x", range(1000)))) == [1000, 32, 16, 8, 4, 2, 1]
    assert sizes(from_quantiles(pl.Series("x", range(1000)), fanout=4)) == [1000, 256, 64, 16, 4, 1]
    assert sizes(from_quantiles(pl.Series("x", range(1000)), fanout=10, levels=1)) == [1000, 10, 1]


def test_groups_of_quantiles_are_of_about_one_size():
    rng = np.random.default_rng(3)
    values = pl.Series("income", rng.lognormal(10, 1, 2000))
    tree = from_quantiles(values, levels=3)
    counts = tree.climb(values, 1).value_counts()["count"]
    assert counts.min() > 2000 / 8 * 0.5
    assert counts.max() < 2000 / 8 * 1.5


def test_a_value_that_many_have_stays_in_one_group():
    values = pl.Series("gain", [0.0] * 900 + list(range(1, 101)))
    tree = from_quantiles(values)
    assert tree.climb(pl.Series([0.0]), 1).to_list() == ["[;0]"]
    # Of the 31 places for cuts, 28 fall on the noughts: the upper half of them cuts these off from the rest.
    assert sizes(tree)[1] == 5
    assert tree.labels(tree.height - 2).to_list() == ["[;0]", "[1;]"]


@pytest.mark.parametrize("grow", [from_widths, from_quantiles])
def test_numbers_of_all_sorts(grow):
    one = grow(pl.Series("x", [5, 5, None]))
    assert rows(one) == ["5;*"]
    for values in (
        [-3.5, -2.25, 0.0, 1.125, 9.0, float("nan"), None],
        [-5, -4, -3, -2, -1],
        [1e-300, 2e-300, 5e-300, 9e-300],
        [1e15, 3e15, 2**53 + 2.0, 1e17, 4e17],
        [-1.7e308, 0.0, 1.0, 1.7e308],
        [f"{x}" for x in range(50)],
    ):
        column = pl.Series("x", values, strict=False)
        tree = grow(column)
        assert tree.check(column) == []
        assert tree.root == "*"


@pytest.mark.parametrize("grow", [from_widths, from_quantiles])
def test_what_are_no_numbers_is_counted(grow):
    with pytest.raises(DataError, match="has 2 records with a value that is not finite") as caught:
        grow(pl.Series("x", ["1", SECRET_WORD, SECRET_WORD]))
    assert SECRET_WORD not in str(caught.value)
    with pytest.raises(DataError, match="finite"):
        grow([1.0, float("inf")])


@pytest.mark.parametrize(
    ("grow", "values"),
    [
        (from_widths, [None]),
        (from_quantiles, [float("nan"), None]),
        (from_frequencies, []),
        (from_order, [None]),
        (lambda values: from_labels(values, labels=[(1, "a")]), [None]),
    ],
)
def test_nothing_grows_from_nothing(grow, values):
    with pytest.raises(DataError, match=r"all values of `.*` are missing"):
        grow(pl.Series("x", values, dtype=pl.Float64))


def test_parameters_are_checked():
    for call in (
        lambda: from_quantiles([1, 2], fanout=1),
        lambda: from_quantiles([1, 2], levels=0),
        lambda: from_widths([1, 2], bins=0),
        lambda: from_frequencies(["a"], few=1),
        lambda: from_frequencies(["a"], levels=0),
        lambda: from_order(["a"], levels=0),
    ):
        with pytest.raises(ParameterError):
            call()


# --------------------------------------------------------------------------------------------- categories


def test_the_rarest_are_joined_first():
    values = ["a"] * 9 + ["b"] * 8 + ["c"] * 7 + ["d"] * 2 + ["e"] * 2 + ["f"]
    tree = from_frequencies(pl.Series("x", values))
    # Six labels, then three: the two most frequent and the others.
    assert rows(tree) == [
        "a;a;*",
        "b;b;*",
        "c;{c|d|e|f};*",
        "d;{c|d|e|f};*",
        "e;{c|d|e|f};*",
        "f;{c|d|e|f};*",
    ]
    assert sizes(from_frequencies(pl.Series("x", values), few=2)) == [6, 3, 2, 1]


def test_ties_are_broken_by_the_values_own_order():
    tree = from_frequencies(pl.Series("x", ["d", "c", "b", "a"]))
    assert rows(tree) == ["a;a;*", "b;b;*", "c;{c|d};*", "d;{c|d};*"]
    numbers = from_frequencies(pl.Series("x", [10, 9, 2, 1]))
    assert numbers.labels(1).to_list() == ["1", "2", "{9|10}"]


def test_thousands_of_values_need_few_levels_and_short_labels():
    tree = from_frequencies(pl.Series("id", [f"p{i:04}" for i in range(5000)]))
    assert sizes(tree) == [5000, 783, 122, 19, 3, 1]
    assert "other: 4998 values" in tree.labels(4)


def test_a_value_may_be_called_as_a_set_is():
    values = ["{c|d}"] * 9 + ["b"] * 8 + ["c", "d"]
    tree = from_frequencies(pl.Series("x", values))
    assert tree.labels(1).to_list() == ["b", "{c|d}'", "{c|d}"]
    assert tree.check(pl.Series("x", values)) == []


def test_labels_are_a_level_and_the_names_in_sets():
    tree = from_frequencies(
        pl.Series("x", [1, 1, 1, 2, 2, 3, 4, 5]),
        labels=[(1, "single"), (2.0, "married"), ("3", "widowed"), (4, "divorced"), (9, "unused")],
    )
    assert rows(tree) == [
        "1;single;single;*",
        "2;married;married;*",
        "3;widowed;{widowed|divorced|5};*",
        "4;divorced;{widowed|divorced|5};*",
        "5;5;{widowed|divorced|5};*",
    ]


def test_codes_of_one_label_are_one_value():
    tree = from_frequencies(pl.Series("x", [1, 2, 3]), labels=[(1, "no"), (2, "no"), (3, "*")])
    assert rows(tree) == ["1;no;*", "2;no;*", "3;3;*"]


def test_neighbours_are_joined_in_their_order():
    order = ("none", "primary", "secondary", "tertiary", "doctorate")
    tree = from_order(pl.Series("education", ["tertiary", "none", "none"]), order=order)
    assert rows(tree) == [
        "none;{none|primary};{none|primary|secondary|tertiary};*",
        "primary;{none|primary};{none|primary|secondary|tertiary};*",
        "secondary;{secondary|tertiary};{none|primary|secondary|tertiary};*",
        "tertiary;{secondary|tertiary};{none|primary|secondary|tertiary};*",
        "doctorate;doctorate;doctorate;*",
    ]


def test_runs_without_a_declared_order_and_with_many_members():
    grades = from_order(pl.Series("grade", [10, 2, 1, 9]))
    assert grades.labels(1).to_list() == ["{1|2}", "{9|10}"]
    many = from_order(pl.Series("day", range(1, 31)))
    assert sizes(many) == [30, 15, 8, 4, 2, 1]
    assert many.labels(3)[0] == "1 … 8"
    assert len(sizes(from_order(pl.Series("x", range(5000))))) <= 6
    enum = pl.Series("size", ["S", "L", "M"], dtype=pl.Enum(["S", "M", "L"]))
    assert from_order(enum).labels(1).to_list() == ["{S|M}", "L"]


def test_a_value_outside_the_declared_order_is_counted():
    with pytest.raises(DataError, match="has 1 value outside") as caught:
        from_order(pl.Series("x", ["a", SECRET_WORD]), order=("a", "b"))
    assert SECRET_WORD not in str(caught.value)


def test_labels_with_a_structure_climb_it():
    labels = [
        (724, "Europe: Iberia: Spain"),
        (620, "Europe: Iberia: Portugal"),
        (470, "Europe: Malta"),
        (392, "Asia"),
    ]
    tree = from_labels(pl.Series("country", [724, 620, 470, 392, 1]), labels=labels)
    assert rows(tree) == [
        "1;1;1;1;*",
        "392;Asia;Asia;Asia;*",
        "470;Europe: Malta;Europe: Malta;Europe;*",
        "620;Europe: Iberia: Portugal;Europe: Iberia;Europe;*",
        "724;Europe: Iberia: Spain;Europe: Iberia;Europe;*",
    ]
    plain = from_labels(pl.Series("sex", [1, 2]), labels=[(1, "male"), (2, "female")])
    assert rows(plain) == ["1;male;*", "2;female;*"]


# ----------------------------------------------------------------------------------------------- propose


def test_proposals_go_by_kind():
    rng = np.random.default_rng(5)
    ages = pl.Series(rng.integers(0, 95, 500))
    assert propose(Column("age", Kind.CONTINUOUS), ages).labels(1)[0] == "[0;4]"
    incomes = pl.Series(rng.lognormal(10, 1, 500).round(2))
    assert propose(Column("income", Kind.CONTINUOUS), incomes).labels(1)[0].startswith("[;")
    words = pl.Series(rng.choice(["a", "b", "c", "d"], 500, p=[0.5, 0.3, 0.15, 0.05]))
    assert propose(Column("word", Kind.NOMINAL), words).labels(1).to_list() == ["a", "b", "{c|d}"]
    ranked = Column("word", Kind.ORDINAL, order=("d", "c", "b", "a"))
    assert propose(ranked, words).labels(1).to_list() == ["{d|c}", "{b|a}"]
    structured = Column("word", Kind.NOMINAL, labels=(("a", "x: 1"), ("b", "x: 2"), ("c", "y: 1")))
    assert propose(structured, words).labels(2).to_list() == ["x", "y", "d"]
    assert propose(Column("flag", Kind.NOMINAL), pl.Series([True, False])).n_leaves == 2


def test_postcodes_lose_their_last_digits():
    codes = pl.Series([f"{code:05}" for code in range(1000, 9000, 37)])
    tree = propose(Column("zip", Kind.NOMINAL), codes)
    assert rows(tree)[1000] == "01000;0100*;010**;01***;0****;*"
    assert tree.n_leaves == 100_000  # every code there can be: none tells that it occurs
    assert propose(Column("zip", Kind.NOMINAL), pl.Series(range(10000, 90000, 37))).labels(4)[1] == "1****"
    long = propose(Column("id", Kind.NOMINAL), pl.Series([f"{code:012}" for code in range(50)]))
    assert long.labels(1).to_list() == [f"{tens:011}*" for tens in range(5)]  # shorter ones are all alike
    assert long.height == 3
    # Neither few codes nor codes that share no beginning are postcodes.
    assert "{" in propose(Column("x", Kind.NOMINAL), pl.Series(["101", "102", "103", "104"])).labels(1)[-1]
    apart = pl.Series([f"{i}" * 3 for i in range(10)])
    assert propose(Column("x", Kind.NOMINAL), apart).labels(1)[0] == "000"


def test_codes_with_signs_between_are_cut_where_they_part():
    plus_four = [f"{code}-{rest}" for code in ("02139", "02140", "94110") for rest in range(1000, 1900, 71)]
    tree = from_codes(pl.Series(plus_four))
    assert rows(tree)[1] == "02139-1071;02139-10**;02139-1***;021*******;*"
    british = from_codes(pl.Series([f"SW1A {i}AA" for i in range(9)] + ["N1 9GU", "N7 8AB"]))
    assert british.labels(1)[-1] == "SW1A *"
    assert british.labels(british.height - 2).to_list() == ["N*", "S*"]
    assert from_codes(pl.Series([f"G{step}" for step in range(3, 16)])) is None  # G10 is no kind of G1
    assert from_codes(pl.Series([f"GS-{step}" for step in range(1, 16)])) is None
    assert from_codes(pl.Series([f"900000{i}" for i in range(10)])) is None  # nothing between all and one
    assert from_codes(pl.Series(["a", "b"])) is None
    assert from_codes(pl.Series([], dtype=pl.String)) is None


def test_dates_climb_as_far_as_they_spread():
    start = date(2020, 1, 1)
    near = pl.Series([start + timedelta(days=40 * i) for i in range(9)])
    assert propose(Column("day", Kind.DATE), near).labels(3).to_list() == ["2020"]
    far = pl.Series([start - timedelta(days=400 * i) for i in range(30)])
    assert propose(Column("day", Kind.DATE), far).labels(4).to_list() == [
        "1980s",
        "1990s",
        "2000s",
        "2010s",
        "2020s",
    ]
    texts = near.cast(pl.String)
    tree = propose(Column("day", Kind.DATE), texts)
    assert tree.check(texts) == []
    times = pl.Series([datetime.fromisoformat("2020-05-17T08:30:00")])
    assert propose(Column("at", Kind.DATE), times).labels(1).to_list() == ["2020-05-17"]
    with pytest.raises(DataError, match="has 1 record with a value that is no date") as caught:
        propose(Column("day", Kind.DATE), pl.Series([SECRET_WORD, "2020-01-01"]))
    assert SECRET_WORD not in str(caught.value)


def test_sets_have_no_hierarchy():
    with pytest.raises(RefusedError, match="set-valued"):
        propose(Column("x", Kind.SET), pl.Series([["a"], ["b"]]))


def test_missing_codes_are_left_out():
    column = Column("x", Kind.CONTINUOUS, missing=(-9,), missing_range=(90.0, 99.0), suppressed=-1)
    values = pl.Series([1.0, 2.0, -9.0, 95.0, -1.0, None, float("nan")])
    assert present_values(column, values).to_list() == [1.0, 2.0]
    assert propose(column, values).n_leaves == 2
    ranked = Column("x", Kind.ORDINAL, order=("low", "high", "unknown"), missing=("unknown",))
    assert propose(ranked, pl.Series(["low", "unknown"])).levels["0"].to_list() == ["low", "high"]
    with pytest.raises(DataError, match="all values of `x` are missing"):
        propose(column, pl.Series([-9.0, None]))


# --------------------------------------------------------------------------------------------------- laws

numbers = st.one_of(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=40),
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40),
    st.lists(st.decimals(-1000, 1000, places=2).map(float), min_size=1, max_size=40),
    st.lists(st.sampled_from([0, 1, 1000]), min_size=1, max_size=40),
)
words = st.lists(
    st.text(alphabet="ab{|}\\*… ", max_size=3).filter(lambda text: text != "*"), min_size=1, max_size=30
)
digits = st.lists(st.integers(0, 99999).map("{:05}".format), min_size=1, max_size=40)
days = st.lists(st.dates(date(1900, 1, 1), date(2030, 1, 1)), min_size=1, max_size=20)
columns = st.one_of(
    numbers.map(lambda values: (Column("x", Kind.CONTINUOUS), values)),
    st.tuples(st.sampled_from([Kind.NOMINAL, Kind.ORDINAL]), st.one_of(words, digits, numbers)).map(
        lambda pair: (Column("x", pair[0]), pair[1])
    ),
    days.map(lambda values: (Column("x", Kind.DATE), values)),
)


@given(columns, st.randoms(use_true_random=False))
def test_what_is_proposed_holds_its_values_whatever_their_order(described, random):
    column, values = described
    tree = propose(column, pl.Series("x", values))
    assert tree.check(pl.Series("x", values)) == []  # nested, with one root, and every value a leaf
    assert tree.root == "*"
    assert tree.height <= 8
    shuffled = [*values, None]
    random.shuffle(shuffled)
    assert propose(column, pl.Series("x", shuffled)) == tree


@given(columns)
def test_each_level_has_fewer_labels_or_a_coarser_meaning(described):
    column, values = described
    assume(column.kind is not Kind.DATE)
    tree = propose(column, pl.Series("x", values))
    counts = sizes(tree)
    assert counts == sorted(counts, reverse=True)


@given(numbers)
def test_intervals_cover_their_values(values):
    column = pl.Series("x", values).cast(pl.Float64)
    for tree in (from_widths(column), from_quantiles(column), from_quantiles(column, fanout=3, levels=4)):
        for level in range(tree.height):
            labels = parse_intervals(tree.levels[str(level)], pl.Float64)
            assert covers(labels, tree.levels["0"].cast(pl.Float64)).all()
