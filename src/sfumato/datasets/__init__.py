"""Data to start with: built-in sets that need no download, and the reference sets of the literature.

Built in, by name or as ``builtin:NAME?OPTION=VALUE`` wherever a file is asked for:

======== =================================================================================
patients discharges of an invented California, as many as you like (`patients`)
rand     health insurance experiment, 20,190 years of 5,912 persons (`rand`)
fair     survey on extramarital affairs, 6,366 persons (`fair`)
======== =================================================================================

From a file of yours: `census`, `eia`, `tarragona`, `adult`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from sfumato.data.table import Table
from sfumato.datasets.patients import patients
from sfumato.datasets.reference import adult, census, eia, tarragona
from sfumato.datasets.surveys import fair, rand
from sfumato.errors import ParameterError, UnknownNameError

__all__ = [
    "adult",
    "census",
    "eia",
    "fair",
    "from_uri",
    "load",
    "names",
    "patients",
    "rand",
    "tarragona",
]

#: What an address of a built-in data set begins with.
SCHEME: Final = "builtin:"


class _Builtin(NamedTuple):
    make: Callable[..., Table]
    options: dict[str, type[int | str]]


_BUILTIN: Final = {
    "fair": _Builtin(fair, {}),
    "patients": _Builtin(patients, {"n": int, "seed": int}),
    "rand": _Builtin(rand, {"per": str}),
}


def names() -> tuple[str, ...]:
    """Names of the built-in data sets.

    Examples
    --------
    >>> names()
    ('fair', 'patients', 'rand')
    """
    return tuple(_BUILTIN)


def load(name: str, **options: Any) -> Table:
    """Make the built-in data set of this name.

    Parameters
    ----------
    name : str
        One of `names`.
    **options
        What the data set's own function takes: `n` and `seed` of `patients`, `per` of `rand`.

    Returns
    -------
    Table
        The data set with its schema.

    Raises
    ------
    UnknownNameError
        If there is no such data set, or it has no such option.
    ParameterError
        If an option is outside its domain.

    Examples
    --------
    >>> len(load("patients", n=50))
    50
    """
    builtin = _find(name)
    for option in options:
        _require_option(name, builtin, option)
    return builtin.make(**options)


def from_uri(text: str) -> Table:
    """Make the built-in data set that an address names.

    Parameters
    ----------
    text : str
        ``builtin:rand``, ``builtin:rand?per=person``, ``builtin:patients?n=5000&seed=1``.

    Returns
    -------
    Table
        The data set with its schema.

    Raises
    ------
    ParameterError
        If the address is not of this form, or an option is outside its domain.
    UnknownNameError
        If there is no such data set, or it has no such option.

    Examples
    --------
    >>> len(from_uri("builtin:patients?n=50&seed=1"))
    50
    """
    if not text.startswith(SCHEME):
        raise ParameterError(
            f"`{text}` is not the address of a built-in data set, which begins with `{SCHEME}`",
            hint=f"write it like `{SCHEME}patients?n=5000&seed=1`",
        )
    name, _, query = text.removeprefix(SCHEME).partition("?")
    builtin = _find(name)
    options: dict[str, int | str] = {}
    for option, value in _pairs(text, query):
        _require_option(name, builtin, option)
        if option in options:
            raise ParameterError(f"`{option}` of the data set `{name}` is given twice: `{text}`")
        options[option] = _whole(name, option, value) if builtin.options[option] is int else value
    return builtin.make(**options)


def _find(name: str) -> _Builtin:
    if name not in _BUILTIN:
        raise UnknownNameError.of("data set", name, _BUILTIN)
    return _BUILTIN[name]


def _require_option(name: str, builtin: _Builtin, option: str) -> None:
    if option not in builtin.options:
        raise UnknownNameError.of(f"`{name}` option", option, builtin.options)


def _pairs(text: str, query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        hint = "write options as `OPTION=VALUE`, with `&` between them"
        raise ParameterError(f"the options of the data set in `{text}` cannot be read", hint=hint) from None


def _whole(name: str, option: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ParameterError(
            f"`{option}` of the data set `{name}` must be a whole number, got: `{value}`"
        ) from None
