"""The schema: what may be declared, all that is wrong with it at once, and its way through TOML."""

import tomllib
from datetime import date

import polars as pl
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.rules import Rule
from sfumato.data.schema import SINGLE_ROLES, Column, Kind, Role, Schema, like_schema
from sfumato.errors import PlanError, UnknownNameError

NAMES = st.one_of(
    st.text(min_size=1, max_size=8).filter(lambda name: not name.startswith("^")),
    st.sampled_from(
        [
            "a.b",
            'quo"te',
            "tick`",
            " ",
            "line\nbreak",
            "ünïcode",
            "[x]",
            "#",
            "=",
            "default",
            "columns",
            "\\",
            "日本",
        ]
    ),
)
WORDS = st.text(max_size=5)
WHOLE = st.integers(-(2**60), 2**60)
BOUND = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-99, 99))
MISSING = st.lists(st.one_of(WORDS, WHOLE, st.floats(allow_nan=False)), max_size=3).map(tuple)


ROLES = st.sampled_from([None, *(role for role in Role if role not in SINGLE_ROLES)])


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(Kind))
    facts = {"missing": draw(MISSING), "label": draw(WORDS), "hierarchy": draw(WORDS)}
    if kind is Kind.CONTINUOUS:
        lower, upper = draw(BOUND), draw(BOUND)
        if lower is not None and upper is not None and lower > upper:
            lower, upper = upper, lower
        facts |= {"lower": lower, "upper": upper, "integer": draw(st.booleans())}
    if kind is Kind.ORDINAL:
        facts["order"] = draw(
            st.one_of(st.lists(WORDS, unique=True), st.lists(WHOLE, unique=True)).map(tuple)
        )
    return Column(draw(NAMES), kind, draw(ROLES), **facts)


@st.composite
def schemas(draw):
    made = draw(st.lists(columns(), max_size=5, unique_by=lambda column: column.name))
    names = [column.name for column in made]
    related = (
        draw(st.lists(st.lists(st.sampled_from(names), unique=True).map(tuple), max_size=2)) if names else []
    )
    return Schema(tuple(made), related=tuple(related))


@given(schemas())
def test_survives_toml(schema):
    """Through the text of a file and back, with names as odd as a person can type."""
    text = tomli_w.dumps(schema.to_dict())
    assert Schema.from_dict(tomllib.loads(text)) == schema


@given(schemas())
def test_selecting_everything_changes_nothing(schema):
    assert schema.select(schema.names) == schema
    assert schema.replace(*schema.columns) == schema
    assert hash(schema) == hash(Schema.from_dict(schema.to_dict()))


def test_it_is_shown_in_one_line_without_values():
    order = Column("size", Kind.ORDINAL, Role.KEY, order=("small", "large"))
    assert repr(Schema((order, Column("x", Kind.CONTINUOUS)))) == "Schema(1 key, 1 undecided)"


def test_rules_and_relations_survive_toml():
    schema = Schema(
        (Column("total", Kind.CONTINUOUS), Column("a b", Kind.CONTINUOUS), Column("c", Kind.CONTINUOUS)),
        rules=(Rule('total = "a b" + c'), Rule("total >= 0")),
        related=(("a b", "c"),),
    )
    again = Schema.from_dict(tomllib.loads(tomli_w.dumps(schema.to_dict())))
    assert again == schema
    assert again.rules[0].columns == ("a b", "c", "total")


def test_says_only_what_is_not_default():
    assert Column("a", Kind.NOMINAL).to_dict() == {"kind": "nominal"}
    column = Column("a", Kind.CONTINUOUS, Role.KEY, lower=0, integer=True, missing=(-9, "."))
    assert column.to_dict() == {
        "kind": "continuous", "role": "key", "lower": 0, "integer": True, "missing": [-9, "."],
    }  # fmt: skip


# -------------------------------------------------------------------------------------- words for enums


def test_a_word_is_as_good_as_its_enum():
    """`role is Role.KEY` is asked everywhere: a plain "key" must not slip past it and leave keys unprotected."""
    column = Column("age", "ordinal", "key", order=["young", "old"], missing=[-9])
    assert column == Column("age", Kind.ORDINAL, Role.KEY, order=("young", "old"), missing=(-9,))
    assert column.kind is Kind.ORDINAL
    assert column.role is Role.KEY
    assert hash(column)
    assert Schema([column]) == Schema((column,))
    assert Schema([column]).with_role(Role.KEY) == ("age",)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            {"kind": "numeric"},
            "`kind` must be one of continuous, ordinal, nominal, date, set, got: `numeric`",
        ),
        (
            {"role": "quasi"},
            "`role` must be one of identifier, key, sensitive, weight, household, person, group, other",
        ),
        ({"role": "senstive"}, "got: `senstive` (did you mean `sensitive` or"),
        ({"kind": None}, "`kind` must be one of"),
        ({"order": "abc"}, "`order` must be a list, got: str"),
        ({"missing": "-9"}, "`missing` must be a list, got: str"),
        (
            {"missing": (None,)},
            "each item of `missing` must be a text or a number or true or false, got: nothing",
        ),
        ({"order": ([1],)}, "each item of `order` must be a text or a number or true or false, got: list"),
    ],
)
def test_a_word_that_is_none_is_refused(facts, words):
    with pytest.raises(PlanError) as caught:
        Column(**{"name": "age", "kind": "ordinal", **facts})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"name": ""}, "its name must not be empty"),
        ({"name": "^x.*$"}, "its name must not begin with ^ and end with $"),
        ({"order": (1, 2)}, "`order` is for ordinal columns, got kind: `continuous`"),
        ({"kind": Kind.ORDINAL, "order": (1, 1)}, "`order` must list each value once"),
        ({"kind": Kind.NOMINAL, "lower": 0}, "`lower` and `upper` are for continuous columns"),
        ({"kind": Kind.DATE, "upper": 0}, "`lower` and `upper` are for continuous columns"),
        ({"lower": 2, "upper": 1}, "`lower` must be at most `upper`, got: 2 and 1"),
        ({"lower": float("nan")}, "`lower` must be a number, got: nan"),
        ({"kind": Kind.ORDINAL, "role": Role.WEIGHT}, "a weight must be continuous, got kind: `ordinal`"),
    ],
)
def test_what_does_not_fit_together(column, words):
    with pytest.raises(PlanError) as caught:
        Column(**{"name": "x", "kind": Kind.CONTINUOUS, **column})
    assert words in caught.value.faults[0]


def test_an_order_may_be_of_truth_values():
    column = Column("x", Kind.ORDINAL, order=(False, True), labels=((True, 1),))
    assert Column.from_dict("x", column.to_dict()) == column
    assert column.labels == ((True, "1"),)


def test_equal_bounds_and_infinite_ones_are_fine():
    Column("x", Kind.CONTINUOUS, lower=1, upper=1)
    Column("x", Kind.CONTINUOUS, lower=float("-inf"), upper=float("inf"))


# ------------------------------------------------------------------------------------- faults of a schema


def test_all_faults_of_all_columns_come_together():
    with pytest.raises(PlanError) as caught:
        Schema.from_dict(
            {
                "columns": {
                    "age": {"kind": "continous", "role": "kee"},
                    "sex": {"knd": "nominal"},
                    "pay": {"kind": "continuous", "lower": "low", "integer": 1},
                    "town": "nominal",
                    "year": {"kind": "continuous", "order": [1]},
                    "fine": {"kind": "nominal"},
                },
                "rules": ["pay >", 5],
                "related": ["ab"],
            }
        )
    faults = "\n".join(caught.value.faults)
    for words in (
        "column `age`: `kind` must be one of",
        "column `age`: `role` must be one of",
        "column `sex`: there is no setting `knd` (did you mean `kind`?)",
        "column `sex`: `kind` is missing",
        "column `pay`: `lower` must be a number, got: str",
        "column `pay`: `integer` must be true or false, got: int",
        "column `town` must be a table, got: str",
        "column `year`: `order` is for ordinal columns",
        "the rule `pay >` is not an SQL condition on columns",
        "the rule `5` is not",
        "each item of `related` must be a list, got: str",
    ):
        assert words in faults
    assert len(caught.value.faults) == 11
    assert all("\n" not in fault for fault in caught.value.faults), "a fault is one line of the list"


@pytest.mark.parametrize(
    "facts",
    [
        {"kind": ["nominal"]}, {"kind": 3}, {"kind": {}}, {"kind": True}, {"role": ["key"]}, {"role": {}}, {"role": 1},
        {"order": 3}, {"order": {"a": 1}}, {"order": [[1]]}, {"order": [{}]}, {"order": [date(2020, 1, 1)]},
        {"missing": 5}, {"missing": [[]]}, {"integer": "yes"}, {"lower": True}, {"upper": [1]}, {"hierarchy": 3},
        {"label": ["x"]}, {"name": "other"}, [], "nominal", 5, None,
    ],
)  # fmt: skip
def test_wrong_toml_types_are_faults_and_no_crash(facts):
    said = {"kind": "ordinal", **facts} if isinstance(facts, dict) else facts
    with pytest.raises(PlanError) as caught:
        Schema.from_dict({"columns": {"x": said}})
    assert caught.value.faults
    assert all(fault.startswith("column `x`") for fault in caught.value.faults)


def test_a_column_twice_two_weights_and_strangers():
    with pytest.raises(PlanError) as caught:
        Schema(
            (
                Column("w", Kind.CONTINUOUS, Role.WEIGHT),
                Column("w", Kind.CONTINUOUS),
                Column("v", Kind.CONTINUOUS, Role.WEIGHT),
                Column("h", Kind.NOMINAL, Role.HOUSEHOLD),
                Column("g", Kind.NOMINAL, Role.HOUSEHOLD),
                Column("u", Kind.NOMINAL, Role.PERSON),
            ),
            rules=(Rule("w > zz"),),
            related=(("h", "yy", "xx"),),
        )
    assert caught.value.faults == (
        "column `w` is declared twice",
        "at most one column may be the weight, got: `w`, `v`",
        "at most one column may be the household, got: `h`, `g`",
        "rule `w > zz` names columns that are not declared: `zz`",
        "`related` names columns that are not declared: `yy`, `xx`",
    )


@pytest.mark.parametrize("role", [Role.IDENTIFIER, Role.KEY, Role.SENSITIVE, Role.OTHER, None])
def test_other_roles_may_repeat(role):
    Schema((Column("a", Kind.NOMINAL, role), Column("b", Kind.NOMINAL, role)))


# --------------------------------------------------------------------------------------------- looking up


SCHEMA = Schema(
    (
        Column("id", Kind.NOMINAL, Role.IDENTIFIER),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("sex", Kind.NOMINAL, Role.KEY),
        Column("pay", Kind.CONTINUOUS),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT),
    ),
    rules=(Rule("pay > age"), Rule("age > 0")),
    related=(("age", "pay"), ("age", "sex")),
)


def test_looking_up():
    assert SCHEMA["age"].kind is Kind.CONTINUOUS
    assert "age" in SCHEMA
    assert "Age" not in SCHEMA
    assert SCHEMA.with_role(Role.KEY, Role.IDENTIFIER) == ("id", "age", "sex")
    assert SCHEMA.with_kind(Kind.CONTINUOUS) == ("age", "pay", "w")
    assert SCHEMA.only_role(Role.WEIGHT) == "w"
    assert SCHEMA.only_role(Role.PERSON) is None
    assert SCHEMA.columns_without_role() == ("pay",)
    with pytest.raises(UnknownNameError) as caught:
        SCHEMA["aeg"]
    assert str(caught.value) == "there is no column `aeg`\n\nhint: did you mean `age`?"


def test_selecting_keeps_the_rules_that_still_make_sense():
    chosen = SCHEMA.select(["sex", "age"])
    assert chosen.names == ("sex", "age")
    assert [rule.text for rule in chosen.rules] == ["age > 0"]
    assert chosen.related == (("age", "sex"),)
    assert SCHEMA.select([]).names == ()
    with pytest.raises(UnknownNameError):
        SCHEMA.select(["nobody"])


def test_replacing_keeps_the_order():
    changed = SCHEMA.replace(Column("age", Kind.ORDINAL, Role.KEY), Column("new", Kind.DATE))
    assert changed.names == (*SCHEMA.names, "new")
    assert changed["age"].kind is Kind.ORDINAL
    assert SCHEMA["age"].kind is Kind.CONTINUOUS


# ------------------------------------------------------------------------------------------ beside a frame


def test_faults_with_a_frame_come_together_and_quote_no_cell():
    frame = pl.DataFrame(
        {
            "idd": ["Zanzibarquux"],
            "age": [date(2020, 1, 1)],
            "sex": ["f"],
            "pay": [[1]],
            "w": [1.0],
            "more": [1],
        }
    )
    faults = SCHEMA.faults_with(frame)
    assert len(faults) == 5
    text = "\n".join(faults)
    assert "there is no column `id` — did you mean `idd`?" in text
    assert "column `idd` of the data is not declared" in text
    assert "column `more` of the data is not declared" in text
    assert "column `age` is declared continuous, but has the type Date" in text
    assert "column `pay` is declared continuous, but has the type List" in text
    assert "Zanzibarquux" not in text
    assert all("\n" not in fault for fault in faults)


@pytest.mark.parametrize(
    ("kind", "dtype", "fits"),
    [
        (Kind.CONTINUOUS, pl.UInt8, True), (Kind.CONTINUOUS, pl.String, True), (Kind.CONTINUOUS, pl.Boolean, True),
        (Kind.CONTINUOUS, pl.Decimal(10, 2), True), (Kind.CONTINUOUS, pl.Null, True), (Kind.CONTINUOUS, pl.Date, False),
        (Kind.CONTINUOUS, pl.List(pl.Int64), False), (Kind.CONTINUOUS, pl.Categorical, True),
        (Kind.CONTINUOUS, pl.Enum(["1", "2"]), True), (Kind.CONTINUOUS, pl.Struct({"lo": pl.Int64}), True),
        (Kind.DATE, pl.Date, True), (Kind.DATE, pl.Datetime("ns"), True), (Kind.DATE, pl.Int64, False),
        (Kind.DATE, pl.String, True), (Kind.DATE, pl.Enum(["x"]), True),
        (Kind.SET, pl.List(pl.String), True), (Kind.SET, pl.Int64, False), (Kind.SET, pl.String, True),
        (Kind.NOMINAL, pl.Int64, True), (Kind.NOMINAL, pl.Date, True), (Kind.ORDINAL, pl.Enum(["a"]), True),
    ],
)  # fmt: skip
def test_which_types_fit_which_kind(kind, dtype, fits):
    schema = Schema((Column("x", kind),))
    assert (schema.faults_with(pl.DataFrame(schema={"x": dtype})) == []) == fits


def test_like_another_schema_but_for_what_it_promises():
    guessed = Schema(
        (
            Column("id", Kind.NOMINAL, Role.PERSON),
            Column("age", Kind.NOMINAL, Role.OTHER),
            Column("more", Kind.NOMINAL, Role.SENSITIVE),
        )
    )
    declared = Schema(
        (
            Column("pid", Kind.NOMINAL, Role.PERSON),
            Column("age", Kind.CONTINUOUS, Role.KEY, lower=0, upper=99, missing=(-1,)),
        )
    )
    made = like_schema(guessed, declared)
    assert made["age"] == Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-1,))
    assert (made["more"], made["id"]) == (guessed["more"], guessed["id"])
    # The person of the other schema is a column that both have: then it is the only one.
    shared = like_schema(guessed, Schema((Column("age", Kind.NOMINAL, Role.PERSON),)))
    assert (shared["id"].role, shared["age"].role) == (None, Role.PERSON)
