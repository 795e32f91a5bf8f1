"""One reader of records: type hints say what a file may say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Literal

import pytest

from sfumato.data.records import as_spec, read_record, read_values
from sfumato.errors import ParameterError, PlanError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    name: str
    at: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self):
        if self.at[0] < 0:
            raise ParameterError("`at` must not be left of 0")


class Size(int):
    """Made by a maker."""


@dataclass(frozen=True)
class Picture:
    title: str
    count: int = 1
    weight: float | None = None
    wide: bool = False
    colours: tuple[Colour, ...] = (Colour.RED,)
    form: Literal["", "round", "square"] = ""
    code: str | float = ""
    points: Mapping[str, Point] = field(default_factory=dict)
    first: tuple[Point, ...] = ()
    size: Size = field(default=Size(), metadata={"key": "how_large"})
    words: tuple[str, ...] = field(
        default=(), metadata={"prepare": lambda value: value.split() if isinstance(value, str) else value}
    )


def size_of(value):
    if value != "large":
        raise ParameterError("a size must be large", hint="write large")
    return Size(9)


def read(**spec):
    return read_record(Picture, spec, "the picture", makers={Size: size_of})


def faults(**spec):
    with pytest.raises(PlanError) as caught:
        read(**spec)
    return caught.value.faults


def test_reads_every_sort_of_value():
    assert read(
        title="t",
        count=2,
        weight=3,
        wide=True,
        colours=["blue"],
        form="round",
        code=5,
        points={"a": {"at": [1, 2.5]}},
        first=[{"name": "b"}],
        how_large="large",
        words="x y",
    ) == Picture(
        title="t",
        count=2,
        weight=3,
        wide=True,
        colours=(Colour.BLUE,),
        form="round",
        code=5,
        points={"a": Point("a", (1, 2.5))},
        first=(Point("b"),),
        size=Size(9),
        words=("x", "y"),
    )
    assert read(title=date(2030, 12, 31)) == Picture("2030-12-31")  # TOML has dates of its own


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, "`title` is missing"),
        ({"title": 3}, "`title` must be a text, got: int"),
        ({"count": 1.5}, "`count` must be a whole number, got: float"),
        ({"count": True}, "`count` must be a whole number, got: bool"),
        ({"weight": "x"}, "`weight` must be a number, got: str"),
        ({"wide": 1}, "`wide` must be true or false, got: int"),
        ({"colours": "red"}, "`colours` must be a list, got: str"),
        ({"colours": ["pink", "pink"]}, "each item of `colours` must be one of red, blue, got: `pink`"),
        (
            {"colours": ["bleu"]},
            "each item of `colours` must be one of red, blue, got: `bleu` (did you mean `blue`?)",
        ),
        ({"form": "flat"}, "`form` must be one of round, square, got: `flat`"),
        ({"form": 2}, "`form` must be one of round, square, got: int"),
        ({"code": []}, "`code` must be a text or a number, got: list"),
        ({"points": []}, "`points` must be a table, got: list"),
        ({"points": {"a": 3}}, "point `a` must be a table, got: int"),
        ({"points": {"a": {"at": [1]}}}, "point `a`: `at` must be a list of 2, got: one of 1"),
        ({"points": {"a": {"at": ["x", 1]}}}, "point `a`: each item of `at` must be a number, got: str"),
        ({"points": {"a": {"at": [-1, 1]}}}, "point `a`: `at` must not be left of 0"),
        ({"points": {"a": {"name": "b"}}}, "point `a`: there is no setting `name` (there is only `at`)"),
        ({"first": [{"name": "b"}, {}]}, "first 2: `name` is missing"),
        ({"how_large": "small"}, "how_large: a size must be large (write large)"),
        ({"titel": 1}, "there is no setting `titel` (did you mean `title`?)"),
    ],
)
def test_says_what_is_wrong(spec, fault):
    assert faults(**({"title": "t", **spec} if spec else {})) == (fault,)


def test_gathers_all_faults_those_of_what_is_made_among_them():
    found = faults(points={"a": {"at": [-1, 0], "x": 1}}, wide="no")
    assert found == (
        "point `a`: there is no setting `x` (there is only `at`)",
        "point `a`: `at` must not be left of 0",
        "`wide` must be true or false, got: str",
        "`title` is missing",
    )


def test_keeps_what_is_right():
    found = []
    assert read_values(Picture, {"title": "t", "count": "x"}, found) == {"title": "t"}
    assert found == ["`count` must be a whole number, got: str"]


def test_says_what_is_required_or_not_default():
    assert as_spec(Picture("t")) == {"title": "t"}
    assert as_spec(Picture("t", wide=True, words=("a",), size=Size(1))) == {
        "title": "t", "wide": True, "how_large": 1, "words": ["a"],
    }  # fmt: skip
