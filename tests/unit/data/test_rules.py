"""Edit rules and the promises of a schema: what is counted, and what is not held against a record."""

import math
import pickle
import traceback

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.checks import Violation, violations
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from toys import SECRET_NUMBER, SECRET_WORD

FRAME = pl.DataFrame(
    {
        "total": [3, 5, 9, None],
        "part a": [1, 2, 4, 1],
        "b": [2, 2, None, 1],
        "sex": ["male", "male", "female", None],
        "pregnant": ["no", "yes", "yes", "yes"],
    }
)


@pytest.mark.parametrize(
    ("text", "broken", "columns"),
    [
        ('total = "part a" + b', 1, ("b", "part a", "total")),
        ("sex <> 'male' OR pregnant = 'no'", 1, ("pregnant", "sex")),
        ("total > 4", 1, ("total",)),
        ("NOT total > 4", 2, ("total",)),
        ("total BETWEEN 3 AND 5", 1, ("total",)),
        ("sex IN ('female')", 2, ("sex",)),
        ("total IS NOT NULL", 1, ("total",)),
        ("total IS NULL OR b IS NOT NULL", 1, ("b", "total")),
        ("b <= AVG(b)", 2, ("b",)),
    ],
)
def test_violations(text, broken, columns):
    """As in SQL's CHECK an unknown result is no violation."""
    rule = Rule(text)
    assert rule.columns == columns
    assert rule.violations(FRAME) == broken
    assert rule.violations(FRAME.clear()) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "total >",
        "total = 1 b = 2",
        "total = 1, b = 2",
        "total = 1; b = 2",
        "*",
        "1 = 0",
        "TRUE",
        None,
        5,
        ["total = 1"],
        "SELECT 1",
    ],
)
def test_what_is_no_rule_is_refused_when_it_is_made(text):
    """Neither the second half of a rule nor a rule about nothing may be passed over in silence."""
    with pytest.raises(PlanError) as caught:
        Rule(text)
    assert caught.value.message == f"the rule `{text}` is not an SQL condition on columns"
    assert "total = part_a + part_b" in caught.value.hint


def test_a_rule_is_about_one_record():
    with pytest.raises(PlanError, match="must be about one record"):
        Rule("SUM(total) > 100").violations(FRAME)
    with pytest.raises(PlanError, match="is not true or false for a record, but Int64"):
        Rule("total + b").violations(FRAME)


@pytest.mark.parametrize(
    "text",
    ["total < 'x'", "CAST(sex AS INT) < 3", "nowhere > 1", "sex + 1 > 2", "CAST(sex AS DATE) > '2020-01-01'"],
)
def test_a_rule_that_does_not_fit_quotes_no_cell(text):
    frame = FRAME.with_columns(sex=pl.lit(SECRET_WORD))
    with pytest.raises(PlanError) as caught:
        Rule(text).violations(frame)
    assert caught.value.message == f"rule `{text}` does not fit the types of its columns"
    assert SECRET_WORD not in "".join(traceback.format_exception(caught.value))


def test_rules_are_equal_by_their_text_and_travel():
    rule = Rule("total > 4")
    assert rule == Rule("total > 4")
    assert hash(rule) == hash(Rule("total > 4"))
    assert pickle.loads(pickle.dumps(rule)).violations(FRAME) == 1


# ----------------------------------------------------------------------------------- promises of a schema


def table(columns, *described, rules=(), **more):
    return Table(pl.DataFrame(columns), Schema(described, rules=tuple(Rule(text) for text in rules)), **more)


def test_promises_of_a_column():
    made = table(
        {"x": [1.5, 2.0, -3.0, 12.0, math.nan, None, -99.0]},
        Column("x", Kind.CONTINUOUS, integer=True, lower=0, upper=10, missing=(-99,)),
    )
    assert violations(made) == (
        Violation("`x` is a whole number", 1),
        Violation("`x` is at least 0", 1),
        Violation("`x` is at most 10", 1),
    )


def test_bounds_belong_to_the_range():
    assert violations(table({"x": [0, 10]}, Column("x", Kind.CONTINUOUS, lower=0, upper=10))) == ()
    assert violations(table({"x": [-1e-9]}, Column("x", Kind.CONTINUOUS, lower=0)))[0].records == 1


def test_a_kept_promise_is_not_mentioned():
    assert violations(table({"x": [1]}, Column("x", Kind.CONTINUOUS, integer=True), rules=["x > 0"])) == ()


def test_missing_values_break_no_rule_be_they_null_nan_or_a_code():
    """A mother's age of −9 is not known: her child is not older than she is."""
    made = table(
        {"child": [3, 4, 5, 6, 7], "mother": [30.0, -9.0, math.nan, None, 6.0]},
        Column("child", Kind.CONTINUOUS),
        Column("mother", Kind.CONTINUOUS, missing=(-9,)),
        rules=["child < mother", "mother < 90"],
    )
    assert violations(made) == (Violation("`child < mother` holds", 1),)


def test_odd_names_in_rules():
    made = table(
        {"*": [1.0, -9.0], "a b": [5.0, 5.0]},
        Column("*", Kind.CONTINUOUS, missing=(-9,)),
        Column("a b", Kind.CONTINUOUS),
        rules=['"a b" < 5'],
    )
    assert violations(made) == (Violation('`"a b" < 5` holds', 2),)


def test_a_rule_may_ask_for_a_value_to_be_there():
    made = table({"x": [1, -9, None]}, Column("x", Kind.CONTINUOUS, missing=(-9,)), rules=["x IS NOT NULL"])
    assert violations(made) == (Violation("`x IS NOT NULL` holds", 2),)


def test_generalised_values_break_no_promise():
    """An interval is neither above nor below: the rule is passed over, the others are still counted."""
    made = table(
        {"age": [{"lo": 20, "hi": 29}], "pay": [-1.0]},
        Column("age", Kind.CONTINUOUS, lower=50, integer=True),
        Column("pay", Kind.CONTINUOUS, lower=0),
        rules=["age < pay", "pay > 0"],
    )
    assert violations(made) == (Violation("`pay` is at least 0", 1), Violation("`pay > 0` holds", 1))


def test_generalised_words_break_no_rule():
    nodes = Nodes.of({"{a|b}": ("a", "b")}, leaves=("a", "b"))
    made = table(
        {"x": ["{a|b}", "*"]}, Column("x", Kind.NOMINAL), rules=["x IN ('a', 'b')"], nodes={"x": nodes}
    )
    assert violations(made) == ()
    assert (
        violations(table({"x": ["c"]}, Column("x", Kind.NOMINAL), rules=["x IN ('a', 'b')"]))[0].records == 1
    )


def test_promises_hold_no_cell():
    made = table({"x": [SECRET_NUMBER]}, Column("x", Kind.CONTINUOUS, upper=5), rules=["x < 3"])
    assert "91827" not in repr(violations(made))


# ------------------------------------------------------------------------------------- equations of sums


@pytest.mark.parametrize(
    ("text", "totals", "terms"),
    [
        ("total = a + b + c", ("total",), {"total": 1, "a": -1, "b": -1, "c": -1}),
        ("a + b = total", ("total",), {"a": 1, "b": 1, "total": -1}),
        ("net == gross - tax", ("net",), {"net": 1, "gross": -1, "tax": 1}),
        ("gross - tax = net", ("net",), {"gross": 1, "tax": -1, "net": -1}),
        ("a = b", ("a", "b"), {"a": 1, "b": -1}),
        # Nobody stands alone: the one with a sign of its own is made up of the others.
        ("total - a - b = 0", ("total",), {"total": 1, "a": -1, "b": -1}),
        ("a + b = total - c", ("total",), {"a": 1, "b": 1, "c": 1, "total": -1}),
        ("a + b = c + d", (), {"a": 1, "b": 1, "c": -1, "d": -1}),
        ("a - b = 0", (), {"a": 1, "b": -1}),
        ("a = 3", (), {"a": 1}),
        ("2 * total = a + b + c", (), {"total": 2, "a": -1, "b": -1, "c": -1}),
        ('"the ""total""" = ("part a" - 2 * (b + 1.5))', ('the "total"',), None),
        ("year = 12 * month", ("year",), {"year": 1, "month": -12}),
        ("total = - -a + +b", ("total",), {"total": 1, "a": -1, "b": -1}),
        ("straße = größe + a#b", ("straße",), {"straße": 1, "größe": -1, "a#b": -1}),
    ],
)
def test_sums_are_read(text, totals, terms):
    found = Rule(text).sum
    assert found.totals == totals
    if terms is not None:
        assert found.terms == terms


def test_constants_and_brackets_in_sums():
    found = Rule('total = ("part a" - 2 * (b + 1.5)) + .5').sum
    assert found.terms == {"total": 1, "part a": -1, "b": 2}
    assert found.constant == 2.5
    frame = pl.DataFrame({"part a": [10.0, None], "b": [3.0, 1.0]})
    assert frame.select(found.value("total")).to_series().to_list() == [1.5, None]  # 10 − 2 × 4.5 + 0.5


@pytest.mark.parametrize(
    "text",
    [
        "total > a + b",
        "total = a * b",
        "a = a + b + c",
        "total = a / 2",
        "a = b --a",
        "a = b /* + c */",
        "a = 'b'",
        "a = NULL",
        "a = b AND c = d",
        "NOT a = b",
        "SQRT(a) = b",
        "a = TRUE",
        "`a` = b",
        "CASE WHEN a = b THEN TRUE END",
    ],
)
def test_what_is_no_sum_is_left_to_sql(text):
    assert Rule(text).sum is None


def test_a_total_of_decimals_does_not_break_by_rounding():
    rule = Rule("total = a + b")
    frame = pl.DataFrame(
        {
            # 0.1 + 0.2 is not 0.3 in binary; a hundred-thousandth off is a mistake, at any size.
            "total": [0.3, 0.30001, 3e9 + 0.3, 3e9 + 30.3, 0.0, 3.0000000001],
            "a": [0.1, 0.1, 1e9 + 0.1, 1e9 + 0.1, 0.1, 1.0],
            "b": [0.2, 0.2, 2e9 + 0.2, 2e9 + 0.2, -0.1, 2.0],
        }
    )
    assert rule.breaks(frame).to_list() == [False, True, False, True, False, False]


def test_whole_numbers_add_up_exactly_however_they_are_stored():
    rule = Rule("total = a + b")
    frame = pl.DataFrame({"total": [3_000_000_001, 3], "a": [1_000_000_000, 1], "b": [2_000_000_000, 2]})
    assert rule.breaks(frame).to_list() == [True, False]
    assert rule.breaks(frame.cast(pl.Float64)).to_list() == [True, False]
    # In eight bits 100 + 100 is −56.
    narrow = pl.DataFrame(
        {"total": [200], "a": [100], "b": [100]}, schema_overrides={"a": pl.Int8, "b": pl.Int8}
    )
    assert rule.violations(narrow) == 0


def test_sums_of_single_precision_and_of_decimals():
    frame = pl.DataFrame({"total": [0.3, 0.4], "a": [0.1, 0.1], "b": [0.2, 0.2]})
    assert Rule("total = a + b").violations(frame.cast(pl.Float32)) == 1
    assert Rule("total = a + b").violations(frame.cast(pl.Decimal(10, 2))) == 1


def test_what_is_not_known_breaks_no_sum():
    frame = pl.DataFrame({"total": [1.0, math.nan, None, 1.0], "a": [math.nan, 1.0, 1.0, 2.0]})
    assert Rule("total = a").breaks(frame).to_list() == [False, False, False, True]


def test_equations_of_words_are_left_to_sql():
    frame = pl.DataFrame({"home": ["a", "b", None], "birth": ["a", "c", "c"]})
    assert Rule("home = birth").breaks(frame).to_list() == [False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "age >= 16 OR marital = 'single'",
        "NOT (age < 16) OR marital = 'single'",
        "NOT (age < 16 AND marital <> 'single')",
        "CASE WHEN age < 16 THEN marital = 'single' ELSE TRUE END",
        "CASE WHEN age < 16 THEN marital = 'single' END",
        "IF(age < 16, marital = 'single', TRUE)",
    ],
)
def test_conditional_edits(text):
    """The ways to say that something holds of some records only."""
    frame = pl.DataFrame(
        {"age": [15, 15, 40, None, 15], "marital": ["single", "married", "married", "married", None]}
    )
    assert Rule(text).breaks(frame).to_list() == [False, True, False, False, False]


def test_counts_on_an_original_and_its_release_are_worded_alike():
    columns = (Column("total", Kind.CONTINUOUS, lower=0), Column("a", Kind.CONTINUOUS, integer=True))
    original = table({"total": [1.0, 2.0], "a": [1, 3]}, *columns, rules=["total = a"])
    release = table({"total": [1.5, -2.0], "a": [1.5, -2.0]}, *columns, rules=["total = a"])
    assert violations(original) == (Violation("`total = a` holds", 1),)
    assert violations(release) == (
        Violation("`total` is at least 0", 1),
        Violation("`a` is a whole number", 1),
    )


def test_numbers_at_the_ends_of_what_can_be_stored():
    made = table(
        {"x": [2**62, -1, 7], "y": pl.Series([0, 255, 1], dtype=pl.UInt8), "z": [math.inf, 1.0, -math.inf]},
        Column("x", Kind.CONTINUOUS, integer=True, lower=0),
        Column("y", Kind.CONTINUOUS, lower=-1, upper=1000, integer=True),
        Column("z", Kind.CONTINUOUS, upper=math.inf, lower=0),
    )
    assert violations(made) == (Violation("`x` is at least 0", 1), Violation("`z` is at least 0", 1))


# Clauses -----------------------------------------------------------------------------------------------

#: Every combination of two numbers and a word, each of which may be missing.
MIXED = pl.DataFrame(
    [(a, b, w) for a in (None, 0, 1, 2) for b in (None, 0, 1, 2) for w in (None, "x", "y")],
    schema={"a": pl.Int64, "b": pl.Int64, "w": pl.String},
    orient="row",
)
ATOMS = ("a < b", "a = 1", "b IS NULL", "w = 'x'", "w IN ('x', 'y')", "a BETWEEN 1 AND 2", "w IS NOT NULL")
CONDITIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.builds("({} AND {})".format, inner, inner)
        | st.builds("({} OR {})".format, inner, inner)
        | st.builds("(NOT {})".format, inner)
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_a_rule_is_broken_where_one_of_its_clauses_is(text):
    rule = Rule(text)
    broken = [rule.breaks(MIXED, clause) for clause in rule.clauses]
    assert rule.breaks(MIXED).to_list() == [any(each) for each in zip(*broken, strict=True)]


def test_clauses_speak_of_few_columns():
    rule = Rule("age >= 15 OR (status IS NULL AND NOT (income > 0 OR job = 'x'))")
    spoken = [sorted(set(clause.meta.root_names())) for clause in rule.clauses]
    assert spoken == [["age", "status"], ["age", "income"], ["age", "job"]]
    whole = Rule("CASE WHEN age < 16 THEN status = 'single' ELSE TRUE END")
    assert len(whole.clauses) == 1
    assert Rule("age < 15 OR income > -2.5").numbers == (-15.0, -2.5, 2.5, 15.0)


def test_too_many_brackets_stay_whole():
    rule = Rule(" OR ".join(f"(a = {i} AND b = {i} AND w = '{i}')" for i in range(8)))
    assert len(rule.clauses) <= 64
    broken = [rule.breaks(MIXED, clause) for clause in rule.clauses]
    assert rule.breaks(MIXED).to_list() == [any(each) for each in zip(*broken, strict=True)]


@pytest.mark.parametrize("text", ["b <= AVG(b)", "a = 1 OR b < max (a)", "b <= RANK() OVER (ORDER BY b)"])
def test_what_looks_at_other_records_has_no_clauses(text):
    assert Rule(text).clauses == ()
