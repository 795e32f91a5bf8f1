"""What every method and every measure must declare."""

from __future__ import annotations

import doctest
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import sfumato
from sfumato.core.component import Component
from sfumato.core.evidence import Evidence
from sfumato.core.references import references
from sfumato.core.run import Run
from sfumato.errors import ParameterError
from sfumato.testing.strategies import outside


def check_describes_itself(cls: type[Component]) -> None:
    """Name, title, kinds, one-line summary, and literature that exists."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cls.name), "the name must be kebab-case"
    assert cls.title
    assert cls.kinds
    assert cls.summary().endswith("."), "the docstring must begin with a sentence on one line"
    for key in cls.references:
        assert key in references(), f"`{key}` must be in references.bib"
    for declared in cls.parameters():
        assert declared.help.endswith("."), f"the help of `{declared.name}` must be a sentence"
        assert declared.accepts(declared.default), f"the default of `{declared.name}` must be in its domain"
    described = cls.describe()
    assert described["name"] == cls.name


def check_choices_are_explained(cls: type[Component]) -> None:
    """Every choice of every parameter has a sentence, which forms, help and docs show."""
    for declared in cls.parameters():
        for choice, sentence in declared.choices.items():
            assert sentence.endswith("."), (
                f"`{choice}` of `{declared.name}` must have a sentence: param(…, choices={{…}})"
            )


def check_refuses_values_outside(cls: type[Component]) -> None:
    """A value outside a parameter's domain is an error that names the parameter and the domain."""
    for declared in cls.parameters():
        for value in outside(declared):
            message = _refusal(cls, declared.name, value)
            assert f"`{declared.name}`" in message, f"{cls.name} accepts {declared.name}={value!r}"
            assert declared.domain in message


def _refusal(cls: type[Component], name: str, value: object) -> str:
    try:
        cls(**{name: value})
    except ParameterError as error:
        return error.message
    return ""


def check_round_trips(cls: type[Component]) -> None:
    """An instance survives a plan, a pickle and a hash."""
    made = cls()
    assert cls.from_dict(made.to_dict()) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  — our own bytes
    assert hash(made) == hash(cls())
    for declared in cls.parameters():
        if declared.tune:
            for value in declared.grid(5):
                assert declared.accepts(value), (
                    f"the range worth searching of `{declared.name}` leaves its domain"
                )


def example_names() -> dict[str, Any]:
    """What an example need not import: polars, numpy, the front door and its names, `Run` and `Evidence`."""
    public = {name: getattr(sfumato, name) for name in sfumato.__all__}
    return {"np": np, "pl": pl, "sfumato": sfumato, "Evidence": Evidence, "Run": Run, **public}


def check_examples_run(cls: type[Component]) -> None:
    """The examples in the docstring give what they say, with `example_names` at hand."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    module = sys.modules[cls.__module__]
    names = {**example_names(), **vars(module)}
    for test in finder.find(cls, cls.__name__, module=module, globs=names):
        assert runner.run(test).failed == 0, f"an example of {cls.name} gives another result than it shows"


#: What methods and measures alike must do.
COMPONENT_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_choices_are_explained,
    check_describes_itself,
    check_refuses_values_outside,
    check_round_trips,
    check_examples_run,
)
