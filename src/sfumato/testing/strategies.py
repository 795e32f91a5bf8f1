"""From a declared parameter to values inside and outside its domain."""

from __future__ import annotations

from typing import Any

from sfumato.core.params import Columns, Param, Parameters, Requirements


def strategy_of(declared: Param) -> Any:
    """The hypothesis strategy of one parameter's domain."""
    from hypothesis import strategies as st

    if declared.type in {Columns, Requirements}:
        return st.just(declared.default)  # what columns there are, and of what role, depends on the table
    if declared.choices:
        plain: Any = st.sampled_from(tuple(declared.choices))
    elif declared.type is bool:
        plain = st.booleans()
    elif declared.type is int:
        plain = st.integers(*(int(end) if end is not None else None for end in _ends(declared)))
    elif declared.type is float:
        low, high = _ends(declared)
        plain = st.floats(
            low, high, exclude_min=declared.gt is not None, exclude_max=declared.lt is not None,
            allow_nan=False, allow_infinity=False,
        )  # fmt: skip
    else:
        plain = st.text(min_size=1, max_size=8)
    return st.one_of(st.none(), plain) if declared.optional else plain


def _ends(declared: Param) -> tuple[float | None, float | None]:
    step = 1 if declared.type is int else 0
    low = declared.ge if declared.ge is not None else (None if declared.gt is None else declared.gt + step)
    high = declared.le if declared.le is not None else (None if declared.lt is None else declared.lt - step)
    return low, high


def instances(cls: type[Parameters]) -> Any:
    """The hypothesis strategy of every way a method or measure can be set."""
    from hypothesis import strategies as st

    return st.builds(cls, **{declared.name: strategy_of(declared) for declared in cls.parameters()})


def outside(declared: Param) -> list[Any]:
    """Values just outside a parameter's domain, and of the wrong type."""
    wrong: list[Any] = [] if declared.optional else [None]
    wrong += [object(), [1]]
    if declared.type in {int, float}:
        wrong += ["much", float("nan"), float("inf"), True]
        wrong += [bound for bound in (declared.gt, declared.lt) if bound is not None]
        wrong += [] if declared.ge is None else [declared.ge - 1]
        wrong += [] if declared.le is None else [declared.le + 1]
    if declared.type is int:
        wrong.append(2.5)
    if declared.choices:
        wrong.append("no-such-choice")
    if declared.type is bool:
        wrong.append("yes")
    return wrong
