"""Methods and measures as functions, made of their classes: ``sfumato.methods.mdav(frame, ["income"], k=3)``.

A method calls `front.protect` and gives a release; a measure calls `front.assess` and gives a score. The
rooms offer them under the names of the registry, with underscores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from inspect import Parameter, Signature
from textwrap import fill
from typing import Any, cast

from sfumato import front
from sfumato.core.component import Component
from sfumato.core.measure import Measure, Score
from sfumato.core.method import Method
from sfumato.data.scenario import CONTROL, Scenario

_DATA = "a path, a pandas, polars or Arrow table, or a ``Table``"

#: What the functions take beside the parameters of a class, and what it is.
_MEANS = {
    "data": f"The table: {_DATA}.",
    "original": f"The table before it was protected: {_DATA}.",
    "release": "What ``sfumato.protect`` gave, or a protected table from elsewhere.",
    "control": f"People of the same population who are not in the release (control group): {_DATA}.",
    "keys": "The columns that an intruder knows; without them, those whose role is key.",
    "columns": "The columns to protect.",
    "within": "Columns within whose groups the method is applied.",
    "aligned": "Whether a release from elsewhere has the records of the original in their order.",
    "schema": "What the columns are; without it, that is guessed.",
    "resources": "What parameters name: hierarchies, a table of the population.",
    "seed": "For experiments only: with the seed the noise can be undone.",
}


@cache
def function_of(cls: type[Component]) -> Callable[..., Any]:
    """The function that protects by a method, or scores by a measure, with the parameters of its class."""
    own = {each.name: each for each in cls.parameters()}
    signature = _signature(cls)

    def function(*args: Any, **keywords: Any) -> Any:
        given = signature.bind(*args, **keywords).arguments
        component = cls(**{name: given.pop(name) for name in own if name in given})
        if isinstance(component, Method):
            return front.protect(given.pop("data"), component, **given)
        return _score(cast("Measure", component), **given)

    lines = [cls.summary(), "", "Parameters", "----------"]
    for name in signature.parameters:
        text = own[name].help if name in own else _MEANS[name]
        lines += [name, fill(text, 100, initial_indent="    ", subsequent_indent="    ")]
    result = "Release" if issubclass(cls, Method) else "Score"
    lines += [
        "",
        "Returns",
        "-------",
        result,
        "",
        "See Also",
        "--------",
        f"{cls.__name__} : explains it in full.",
    ]
    function.__name__ = function.__qualname__ = cls.name.replace("-", "_")
    function.__module__, function.__doc__ = cls.__module__, "\n".join(lines)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _signature(cls: type[Component]) -> Signature:
    """First the data, then columns and what drives a method; all else by keyword."""
    first: dict[str, Any]
    shared: dict[str, Any] = {"schema": None, "resources": None, "seed": None}
    driven = cls.drive()
    if issubclass(cls, Method):
        first = {"data": Parameter.empty, "columns": ()} | ({driven.name: driven.default} if driven else {})
        shared = {"within": (), **shared}
    elif issubclass(cls, Measure) and cls.needs.release:
        first = dict.fromkeys(
            ("original", "release", *(["control"] if cls.needs.control else [])), Parameter.empty
        )
        first |= {"keys": ()} if cls.aspect == "risk" else {}
        shared = {"aligned": False, **shared}
    else:
        first = {"data": Parameter.empty, "keys": ()}
        shared = {"release": None, "aligned": False, **shared}
    own = {each.name: each.default for each in cls.parameters() if each.name not in first}
    types = {each.name: each.type for each in fields(cast("Any", cls))}
    return Signature(
        [
            Parameter(name, kind, default=default, annotation=types.get(name, Parameter.empty))
            for kind, part in (
                (Parameter.POSITIONAL_OR_KEYWORD, first),
                (Parameter.KEYWORD_ONLY, own | shared),
            )
            for name, default in part.items()
        ]
    )


def _score(
    measure: Measure, *, keys: Any = (), control: Any = None, resources: Any = None, **given: Any
) -> Score:
    """The score of one measure, against an intruder who knows the keys."""
    original = given.pop("original" if "original" in given else "data")
    scenario = Scenario(columns=(keys,) if isinstance(keys, str) else tuple(keys))
    resources = {**(resources or {}), **({} if control is None else {CONTROL: control})}
    release = given.pop("release", None)
    scores = front.assess(original, release, [measure], scenario=scenario, resources=resources, **given)
    return scores[str(measure)]
