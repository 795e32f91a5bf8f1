"""The doors to one component: values drawn for its parameters, and how each door is told of them."""

import random

from sfumato.core.params import Columns, Requirements, Resource

#: What nothing else says of a text, a list of columns or requirements, a resource.
TEXTS = ("age", "sex+region", "age|sex", "increasing", "flu")
COLUMNS = (("sex",), ("age", "region"), ("@key",), ("@sensitive",), ("no such",), ())
REQUIREMENTS = (
    ("l >= 2",),
    ("l(kind=entropy, missing=worst) >= 1.2", "alpha <= 0.9"),
    ("k >= 2 and t <= 0.9",),
)
RESOURCES = ("population", "nothing")


def drawn(declared, seed):
    """A value of a parameter other than its default: mostly in its domain, at times by column or outside."""
    rng = random.Random(f"{seed} {declared.name}")
    value = _scalar(declared, rng)
    if declared.per_column and rng.random() < 0.6:
        by_column = {rng.choice(("age", "sex", "region", "grade")): value}
        return by_column | ({"default": _scalar(declared, rng)} if rng.random() < 0.5 else {})
    return value


def _scalar(declared, rng):
    if rng.random() < 0.2 and (wrong := _outside(declared)):
        return rng.choice(wrong)
    if declared.choices:
        return rng.choice(
            [each for each in declared.choices if each != declared.default] or list(declared.choices)
        )
    if declared.type is bool:
        return not declared.default
    if declared.type in {int, float}:
        return rng.choice(_numbers(declared))
    lists = {Columns: COLUMNS, Requirements: REQUIREMENTS}
    if declared.type in lists:
        return list(
            rng.choice([each for each in lists[declared.type] if each != tuple(declared.default or ())])
        )
    return rng.choice(RESOURCES if declared.type is Resource else TEXTS)


def _numbers(declared):
    """Numbers near the default and the lower bound: what is far from them may take for ever."""
    low = next((bound for bound in (declared.ge, declared.gt) if bound is not None), 0)
    default = getattr(declared.default, "default", declared.default) or low or 1
    near = {low, low + 1, default + 1, default * 2, default / 2, low + 0.25, default * 0.75}
    near = {round(each) for each in near} if declared.type is int else {float(each) for each in near}
    return sorted(each for each in near if each != default and declared.accepts(each)) or [default]


def _outside(declared):
    if declared.choices:
        return ["no-such-choice"]
    if declared.type not in {int, float}:
        return []
    wrong = ["much", *(bound for bound in (declared.gt, declared.lt) if bound is not None)]
    wrong += [] if declared.ge is None else [declared.ge - 1]
    wrong += [] if declared.le is None else [declared.le + 1]
    return [*wrong, *([2.5] if declared.type is int else [])]


def options(declared, value):
    """How the command line is told of a value."""
    flag = f"--{declared.name.replace('_', '-')}"
    if declared.type is bool and not declared.per_column:
        return [flag if value else f"--no-{declared.name.replace('_', '-')}"]
    if isinstance(value, dict):
        return [
            part
            for name, each in value.items()
            for part in (flag, each if name == "default" else f"{name}={each}")
        ]
    if isinstance(value, list):
        return [part for each in value or [""] for part in (flag, each)]
    return [flag, value]


def notation(name, settings):
    """The component with its settings in one text, as in ``-m`` and in requirements; None by column."""
    if any(isinstance(value, dict) for value in settings.values()):
        return None
    said = {key: _said(value) for key, value in settings.items()}
    return f"{name}({', '.join(f'{key}={value}' for key, value in said.items())})"


def _said(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return (" and " if any(sign in each for each in value for sign in "<>") else "+").join(value)
    return value
