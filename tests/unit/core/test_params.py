"""Parameters: what they accept, what they become, and what they say when they refuse."""

import dataclasses
import json
import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.parameter_types import Requirements, as_requirements
from sfumato.core.params import Columns, Condition, Param, Parameters, PerColumn, Resource, param
from sfumato.errors import ParameterError, PlanError, SfumatoError, UnknownNameError
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from toys import SECRET_NUMBER, SECRET_WORD, Draw, Mean, Rounding, Sampling, Shift


class Full(Parameters):
    """One parameter of each sort."""

    name = "full"

    share: float = param(0.5, "A share.", gt=0, lt=1)
    count: int = param(3, "A count.", ge=1, le=50, log=True, tune=(1, 50), drive=True)
    flag: bool = param(False, "A flag.")
    word: str = param("x", "A word.")
    scale: Literal["range", "deviation"] = param("range", "A choice.")
    limit: float | None = param(None, "A limit, or none.", ge=0)
    base: PerColumn[int] = param(2, "By column.", ge=1)
    lookup: Resource | None = param(None, "A file.", holds="hierarchy")
    signed: float = param(0.0, "Below and above nought.", ge=-1, le=1, tune=(-1, 1))
    free: float = param(0.0, "Any number.")


def refusal(**said):
    with pytest.raises(ParameterError) as caught:
        Full(**said)
    return caught.value.message


# ------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("share", "a number above 0 and below 1"),
        ("count", "a whole number at least 1 and at most 50"),
        ("flag", "true or false"),
        ("word", "a text"),
        ("scale", "one of range, deviation"),
        ("limit", "a number at least 0, or nothing"),
        ("base", "a whole number at least 1, for all columns or by column"),
        ("lookup", "the name of a resource that holds a hierarchy, or nothing"),
        ("free", "a number"),
    ],
)
def test_domain_in_words(name, words):
    assert Full.parameter(name).domain == words


def test_the_message_word_for_word():
    with pytest.raises(ParameterError) as caught:
        RankSwapping(window=250.0)
    assert caught.value.message == (
        "`window` of rank-swapping must be a number above 0 and at most 100, got: `250.0`"
    )
    assert str(caught.value) == (
        "`window` of rank-swapping must be a number above 0 and at most 100, got: `250.0`\n\n"
        "hint: it is a percentage of the records; 5 is the usual start"
    )
    assert caught.value.exit_code == 2
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SfumatoError)


def test_no_hint_leaves_no_blank_lines():
    with pytest.raises(ParameterError) as caught:
        Full(flag="yes")
    assert str(caught.value) == "`flag` of full must be true or false, got: `yes`"


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series("income", [SECRET_NUMBER] * 3),
        pl.DataFrame({"income": [SECRET_WORD]}),
        np.array([SECRET_NUMBER]),
        [SECRET_NUMBER],
        {"income": [SECRET_WORD]},
        (SECRET_WORD,),
    ],
    ids=lambda cells: type(cells).__name__,
)
@pytest.mark.parametrize("name", ["share", "count", "flag", "word", "scale", "base", "lookup"])
def test_data_given_for_a_parameter_are_not_quoted(name, cells):
    """Who passes a column by mistake must not find its cells in the message (or a log of it)."""
    message = refusal(**{name: cells})
    assert SECRET_WORD not in message
    assert "91827" not in message
    assert "9.18" not in message
    assert re.search(r"got: a `\w+`$", message)


# ----------------------------------------------------------------------------------------- what it accepts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("share", 0), ("share", 1), ("share", 0.0), ("share", -0.0), ("share", math.nan), ("share", math.inf),
        ("share", True), ("share", "0.5"), ("share", None), ("share", 0.5 + 0j), ("share", Decimal("0.5")),
        ("share", np.float64("nan")), ("share", np.True_), ("share", 10**400), ("share", -(10**400)),
        ("count", 0), ("count", 51), ("count", 2.5), ("count", "3"), ("count", True), ("count", False),
        ("count", math.nan), ("count", -math.inf), ("count", 10**400), ("count", np.float64(2.5)), ("count", None),
        ("flag", 1), ("flag", 0), ("flag", "true"), ("flag", None),
        ("word", 3), ("word", b"x"), ("word", None),
        ("scale", "Range"), ("scale", ""), ("scale", None), ("scale", 0),
        ("limit", -1e-300), ("limit", math.inf), ("limit", "none"), ("limit", False),
        ("base", 0), ("base", 1.5), ("base", None), ("base", {"a": 0}), ("base", {"default": 0}), ("base", {"a": None}),
        ("base", {"a": True}), ("base", PerColumn(2, (("a", -1),))), ("base", PerColumn(0)),
        ("lookup", 3),
        ("free", math.nan), ("free", math.inf), ("free", -math.inf), ("free", True),
    ],
)  # fmt: skip
def test_refuses(name, value):
    message = refusal(**{name: value})
    assert message.startswith(f"`{name}` of full must be {Full.parameter(name).domain}, got: ")
    assert not Full.parameter(name).accepts(value)


@pytest.mark.parametrize(
    ("name", "value", "becomes"),
    [
        ("share", np.float32(0.5), 0.5), ("share", Fraction(1, 4), 0.25),
        ("count", 5.0, 5), ("count", np.int8(5), 5), ("count", np.float64(5.0), 5), ("count", np.uint64(50), 50),
        ("flag", np.True_, True),
        ("word", np.str_("y"), "y"), ("word", "", ""),
        ("limit", None, None), ("limit", 3, 3.0),
        ("base", 4.0, PerColumn(4)), ("base", {"b": 3, "a": 2.0}, PerColumn(2, (("a", 2), ("b", 3)))),
        ("base", {"default": 7, "a": 1}, PerColumn(7, (("a", 1),))), ("base", {}, PerColumn(2)),
        ("lookup", "tree", Resource("tree")),
        ("signed", -1, -1.0), ("signed", 1, 1.0),
        ("free", 1e308, 1e308), ("free", -7, -7.0),
    ],
)  # fmt: skip
def test_takes_and_casts(name, value, becomes):
    made = getattr(Full(**{name: value}), name)
    assert made == becomes
    assert type(made) is type(becomes)


def test_casts_are_plain_types_that_toml_and_json_can_hold():
    made = Full(share=np.float64(0.25), count=np.int64(4), flag=np.True_, base={"a": np.int16(9)})
    assert json.loads(json.dumps(made.to_dict())) == made.to_dict()
    assert {type(value) for value in made.to_dict().values()} <= {float, int, bool, str, dict}
    assert all(type(value) is int for value in made.to_dict()["base"].values())


@given(
    st.one_of(
        st.floats(allow_nan=True, allow_infinity=True), st.integers(), st.booleans(), st.text(), st.none()
    )
)
def test_whatever_is_accepted_lies_in_the_domain(value):
    """`accepts` and the constructor agree, and nothing outside 0 < x < 1 ever gets in."""
    taken = Full.parameter("share").accepts(value)
    if taken:
        assert 0 < Full(share=value).share < 1
        assert type(value) in {int, float}
    else:
        refusal(share=value)


# ---------------------------------------------------------------------------------- equality, hash, digest


def test_50_and_50_point_0_are_the_same_thing():
    whole, point = RankSwapping(window=50), RankSwapping(window=50.0)
    assert whole == point
    assert hash(whole) == hash(point)
    assert repr(whole) == repr(point)
    assert (
        Recipe.of(whole).digest
        == Recipe.of(point).digest
        == Recipe.of(RankSwapping(window=np.int8(50))).digest
    )
    assert Recipe.of(Mdav(k=5.0)).digest == Recipe.of(Mdav(k=5)).digest
    assert Recipe.of(RankSwapping(window=50.000001)).digest != Recipe.of(whole).digest


def test_the_digest_sees_columns_strata_households_and_order():
    steps = [
        Step(RankSwapping()),
        Step(RankSwapping(), ("a",)),
        Step(RankSwapping(), ("a", "b")),
        Step(RankSwapping(), within=("a",)),
        Step(RankSwapping(), together="a"),
        Step(Mdav()),
    ]
    digests = {Recipe((step,)).digest for step in steps}
    digests |= {Recipe((steps[0], steps[5])).digest, Recipe((steps[5], steps[0])).digest, Recipe().digest}
    assert len(digests) == len(steps) + 3


def test_per_column_is_equal_and_hashed_whatever_the_order():
    one, other = Rounding(base={"a": 2, "b": 3}), Rounding(base=PerColumn(10.0, (("b", 3.0), ("a", 2.0))))
    assert one == other
    assert hash(one) == hash(other)
    assert one.base["a"] == 2.0
    assert one.base["somewhere else"] == 10.0
    assert one.base.columns == ("a", "b")
    assert one != Rounding(base={"a": 2})
    assert Recipe.of(one).digest == Recipe.of(other).digest


def test_per_column_says_itself_as_a_plan_does():
    assert Rounding(base=5).to_dict() == {"base": 5.0}
    assert Rounding(base={"a": 2}).to_dict() == {"base": {"default": 10.0, "a": 2.0}}
    for made in (Rounding(), Rounding(base=5), Rounding(base={"a": 2, "default": 3})):
        assert Rounding.from_dict(made.to_dict()) == made


def test_a_column_named_default_is_not_taken_for_the_default():
    """In a plan it could not be told from the value for all others: an error, not a wrong number."""
    with pytest.raises(ParameterError, match="`default`"):
        Rounding(base=PerColumn(10.0, (("default", 2.0),)))


def test_the_default_of_a_per_column_parameter_may_be_one_itself():
    class ByColumn(Parameters):
        """Exceptions by default."""

        name = "by-column"
        base: PerColumn[float] = param(PerColumn(3.0, (("a", 4.0),)), "By column.", gt=0)

    assert ByColumn().base == PerColumn(3.0, (("a", 4.0),))
    assert ByColumn(base={"b": 1}).base == PerColumn(3.0, (("b", 1.0),))


def test_pickle_and_replace():
    made = Full(base={"a": 3}, limit=2, lookup="tree")
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ParameterError):
        dataclasses.replace(made, count=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.count = 4


def test_resource_is_a_name():
    assert Shift(source="census").source == "census"
    assert isinstance(Shift(source="census").source, Resource)
    assert Shift(source="census").to_dict() == {"source": "census"}
    assert Shift.from_dict({"source": "census"}) == Shift(source=Resource("census"))
    assert Shift.parameter("source").domain == "the name of a resource that holds a table"


def test_columns_are_names_in_order_each_once():
    class Looks(Parameters):
        """Looks at other columns."""

        name = "looks"
        given: Columns = param(Columns(), "Columns it looks at.")

    assert Looks().to_dict() == {"given": []}
    assert str(Looks()) == "looks"
    made = Looks(given=["b", "@key"])
    assert made.given == ("b", "@key")
    assert made.to_dict() == {"given": ["b", "@key"]}
    assert Looks.from_dict(made.to_dict()) == made
    assert str(made) == "looks(given=b+@key)"
    assert hash(made) == hash(Looks(given=("b", "@key")))
    assert Looks(given="b").given == ("b",)
    assert Looks.parameter("given").domain == "names of columns, or @key, @continuous …"
    for wrong in (["a", "a"], ["a", 3], [""], 5, None):
        with pytest.raises(ParameterError, match="names of columns"):
            Looks(given=wrong)


# ------------------------------------------------------------------------------------------- declarations


def test_nothing_is_said_by_leaving_it_out_so_nothing_must_be_the_default():
    """TOML has no null: an optional parameter with another default would come back as that default."""

    class Forgetful(Parameters):
        """Would not survive a plan."""

        name = "forgetful"
        limit: float | None = param(1.0, "A limit.")

    with pytest.raises(TypeError, match="None must be its default"):
        Forgetful.parameters()
    assert Full(limit=None).to_dict().get("limit", "left out") == "left out"
    assert Full.from_dict(Full(limit=0).to_dict()).limit == 0.0


def test_a_field_without_param_and_an_odd_annotation_are_refused():
    class Bare(Parameters):
        """No param."""

        name = "bare"
        size: int = 3

    class Odd(Parameters):
        """A list."""

        name = "odd"
        sizes: list[int] = param(None, "Sizes.")

    for wrong in (Bare, Odd):
        with pytest.raises(TypeError):
            wrong()


def test_positional_and_unknown_arguments_are_refused():
    with pytest.raises(TypeError):
        RankSwapping(5.0)
    with pytest.raises(TypeError):
        RankSwapping(windw=5.0)


def test_describes_itself_for_machines():
    said = Full.parameter("count").to_dict()
    assert json.loads(json.dumps(said)) == said
    assert said["type"] == "int"
    assert said["tune"] == [1, 50]
    assert said["domain"] == "a whole number at least 1 and at most 50"


# ---------------------------------------------------------------------------------------------- from_dict


def test_one_fault_keeps_its_own_error():
    with pytest.raises(ParameterError):
        Full.from_dict({"count": 0})
    with pytest.raises(UnknownNameError) as caught:
        Full.from_dict({"cuont": 3})
    assert caught.value.message == "there is no parameter of full `cuont`"
    assert "`count`" in caught.value.hint


def test_several_faults_come_together():
    with pytest.raises(PlanError) as caught:
        Full.from_dict({"count": 0, "share": "x", "nonsense": 1, "word": "fine", "base": {"a": 0}})
    assert len(caught.value.faults) == 4
    for word in ("`count`", "`share`", "`nonsense`", "`base`"):
        assert sum(word in fault for fault in caught.value.faults) == 1
    assert str(caught.value).startswith("full has 4 faults:\n  - ")


def test_nothing_said_is_the_defaults():
    assert Full.from_dict({}) == Full()
    assert Mean.from_dict({}) == Mean()


# ------------------------------------------------------------------------------------------------- search


SEARCHED = [
    RankSwapping.parameter("window"),
    Mdav.parameter("k"),
    Full.parameter("count"),
    Full.parameter("signed"),
    Draw.parameter("spread"),
    Sampling.parameter("share"),
]


@pytest.mark.parametrize("declared", SEARCHED, ids=lambda declared: declared.name)
@given(count=st.integers(2, 40))
def test_grid_hits_the_ends_and_stays_inside(declared, count):
    values = declared.grid(count)
    assert values[0] == declared.tune[0]
    assert values[-1] == declared.tune[1]
    assert values == sorted(set(values))
    assert len(values) <= count
    assert all(declared.accepts(value) for value in values)
    assert all(type(value) is declared.type for value in values)
    if declared.type is float:
        assert len(values) == count


def test_grid_is_even_on_its_axis():
    np.testing.assert_allclose(Full.parameter("signed").grid(5), [-1, -0.5, 0, 0.5, 1])
    np.testing.assert_allclose(RankSwapping.parameter("window").grid(4), [0.1, 1, 10, 100])
    assert Full.parameter("count").grid(7) == [1, 2, 4, 7, 14, 26, 50]


def test_grid_of_one_is_the_top():
    assert RankSwapping.parameter("window").grid(1) == [100.0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, None, [0.0, 0.5, 1.0]),  # nought is a bound, not the absence of one
        (None, 0.0, [-1.0, -0.5, 0.0]),
        (-0.5, 0.5, [-0.5, 0.0, 0.5]),
        (-9, 9, [-1.0, 0.0, 1.0]),
        (0.25, 0.25, [0.25]),
        (5, None, [1.0]),
        (None, -5, [-1.0]),
    ],
)
def test_grid_between(low, high, expected):
    assert Full.parameter("signed").grid(3, low=low, high=high) == expected


@given(value=st.floats(0.1, 100))
def test_at_undoes_position(value):
    declared = RankSwapping.parameter("window")
    assert declared.at(declared.position(value)) == pytest.approx(value, rel=1e-12)


@given(value=st.integers(2, 500))
def test_at_undoes_position_of_whole_numbers(value):
    declared = Mdav.parameter("k")
    assert declared.at(declared.position(value)) == value


@given(position=st.floats(-50, 50))
def test_at_never_leaves_the_range(position):
    for declared in SEARCHED:
        low, high = declared.tune
        assert low <= declared.at(position) <= high


def test_no_range_no_search():
    with pytest.raises(ParameterError, match="no range to search"):
        Full.parameter("share").grid(3)
    with pytest.raises(ParameterError):
        Param(name="x", type=float, default=1.0, help="X.").at(0.5)


def test_with_drive():
    assert RankSwapping(window=5).with_drive(20) == RankSwapping(window=20)
    assert Mdav(k=5, scale="range").with_drive(7.0) == Mdav(k=7, scale="range")
    assert RankSwapping.drive().name == "window"
    assert Mean.drive() is None
    with pytest.raises(ParameterError, match="mean has no parameter to vary"):
        Mean().with_drive(3)
    with pytest.raises(ParameterError, match="`window` of rank-swapping"):
        RankSwapping().with_drive(101)


class TestRequirements:
    """What must hold besides, as a parameter."""

    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ([], ()),
            ("l >= 3", ("l >= 3",)),
            ("l >= 3, t <= 0.2", ("l >= 3", "t <= 0.2")),
            (
                "l >= 3 and t(distance=ordered, missing=any) <= 0.2",
                ("l >= 3", "t(distance=ordered, missing=any) <= 0.2"),
            ),
            (["k >= 5", "l >= 2, p > 1"], ("k >= 5", "l >= 2", "p > 1")),
        ],
    )
    def test_is_read_from_a_text_or_a_list(self, given: object, read: tuple[str, ...]) -> None:
        assert as_requirements(given) == read

    @pytest.mark.parametrize("given", ["l", "l = 3", ["l >= "], 3, [3], "l >= 3, t"])
    def test_refuses_what_is_no_requirement(self, given: object) -> None:
        assert as_requirements(given) is None

    def test_survives_being_said_and_read_again(self) -> None:
        wanted = Requirements(("l >= 3", "t(distance=ordered) <= 0.2"))
        assert as_requirements(str(wanted)) == wanted
        assert as_requirements(list(wanted)) == wanted


# ------------------------------------------------------------------------------- labels, choices, conditions


class Centred(Parameters):
    """Parameters that say more than their bounds."""

    name = "centred"

    centre: Literal["mean", "median"] = param(
        "mean", "The centre.", choices={"mean": "The mean of the group.", "median": "The middle value."}
    )
    ties_up: bool = param(False, "Of two in the middle take the upper.", when="centre=median")
    seeds: int = param(3, "Starts.", ge=1, label="Number of starts", advanced=True, when="ties_up=true")
    lookup: Resource | None = param(None, "A file.", holds="table")
    joined: str = param("", "By what it is joined.", when="lookup")
    k: int = param(3, "Group.", ge=1, when="centre=mean|median")


def test_a_label_is_the_name_in_words_unless_it_is_given():
    labels = {declared.name: declared.label for declared in Centred.parameters()}
    assert labels == {
        "centre": "Centre", "ties_up": "Ties up", "seeds": "Number of starts", "lookup": "Lookup",
        "joined": "Joined", "k": "k",
    }  # fmt: skip
    assert [declared.name for declared in Centred.parameters() if declared.advanced] == ["seeds"]


def test_what_a_choice_means_and_when_a_parameter_counts_stand_in_its_explanation():
    assert Centred.parameter("centre").explanation == (
        "The centre. `mean`: The mean of the group. `median`: The middle value."
    )
    assert Centred.parameter("ties_up").explanation.endswith("Only with `centre` = median.")
    assert Centred.parameter("seeds").explanation == "Starts. Only with `ties_up` = true."
    assert Centred.parameter("joined").explanation.endswith("Only with `lookup`.")
    assert Centred.parameter("k").explanation.endswith("Only with `centre` = mean or median.")
    assert list(Full.parameter("scale").choices) == [
        "range",
        "deviation",
    ]  # sentences are for who writes some


def test_a_dictionary_for_json_has_sentences_and_conditions():
    facts = json.loads(json.dumps(Centred.parameter("centre").to_dict()))
    assert facts["choices"] == ["mean", "median"]
    assert facts["choice_help"]["median"] == "The middle value."
    facts = json.loads(json.dumps(Centred.parameter("seeds").to_dict()))
    assert facts["when"] == {"parameter": "ties_up", "values": [True]}
    assert (facts["label"], facts["advanced"]) == ("Number of starts", True)


@pytest.mark.parametrize(
    ("written", "settings", "holds"),
    [
        ("centre=median", {"centre": "median"}, True),
        ("centre=median", {"centre": "mean"}, False),
        ("centre=mean|median", {"centre": "mean"}, True),
        ("exact=true", {"exact": True}, True),
        ("exact=false", {"exact": True}, False),
        ("lookup", {"lookup": None}, False),
        ("lookup", {"lookup": "file"}, True),
        ("lookup", {}, False),
    ],
)
def test_a_condition_holds_or_not(written, settings, holds):
    assert Condition.parse(written).holds(settings) is holds


@pytest.mark.parametrize("when", ["middle=mean", "centre=mode", "nothing", "free=yes"])
def test_a_condition_names_what_is_there(when):
    class Wrong(Parameters):
        name = "wrong"
        centre: Literal["mean", "median"] = param("mean", "The centre.")
        free: float = param(0.0, "A number.")
        ties: bool = param(False, "Ties.", when=when)

    with pytest.raises(TypeError, match="must belong to a setting that exists"):
        Wrong.parameters()


def test_sentences_are_of_the_choices():
    class Wrong(Parameters):
        name = "wrong"
        centre: Literal["mean", "median"] = param("mean", "The centre.", choices={"mean": "The mean."})

    with pytest.raises(TypeError, match="each of its choices"):
        Wrong.parameters()
