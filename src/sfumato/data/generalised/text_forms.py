r"""The text forms of generalised values: written, read and recognised.

The text forms are ``[20;29]``, ``[65;]``, ``{Kern|Fresno}``, ``93***`` and ``*``; an exact value stands
plainly. Digits with a star for each that is left out, three to five together, are every code that begins so,
whether anyone has it or not. In braces a backslash stands before each of ``\ | { }``. An exact text that
would read as one of the forms, begins with a backslash or is empty has one backslash in front: ``\*``,
``\[1;2]``, and ``\`` for "".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import polars as pl

from sfumato.data.generalised.intervals import end_dtype, ends, intervals, is_interval
from sfumato.data.generalised.nodes import (
    WILDCARD,
    DType,
    Nodes,
    Values,
    canonical_text,
    on_distinct,
    parse_exact,
)
from sfumato.errors import DataError, ParameterError
from sfumato.kernels.arrays import Codes

_CODE = re.compile(r"[0-9]+\**")
_INTERVAL = r"^\[([^;\[\]]*);([^;\[\]]*)\]$"
_PREFIX = r"[0-9]\*{2,4}|[0-9]{2}\*{1,3}|[0-9]{3}\*{1,2}|[0-9]{4}\*"
#: The beginning of codes of digits: so short that all of them can be listed.
PREFIX = re.compile(_PREFIX)
#: A text that reads as one of the other forms.
WOULD_MISREAD = r"(?s)^(\*|\[.*\]|\{.*\}|\\.*|)$"
_TO_ESCAPE = rf"(?s)^(\*|\[.*\]|\{{.*\}}|\\.*||{_PREFIX})$"
_SET = re.compile(r"\{((?:[^\\{}]|\\.)*)\}", re.DOTALL)
_SET_PIECE = re.compile(r"\\(.)|(\|)|([^\\|]+)", re.DOTALL)
_GUESSES: tuple[DType, ...] = (pl.Int64, pl.Float64, pl.Date, pl.Datetime("us"))


# Writing -----------------------------------------------------------------------------------------------


def to_text(column: pl.Series, nodes: Nodes | None = None) -> pl.Series:
    """Write a column in text form; what is missing stays missing.

    A node column is written as the sets of its members with ``nodes``, and by its labels as they stand
    without. Any other column is one of exact values.
    """
    if is_interval(column.dtype):
        return _interval_texts(column)
    if nodes is not None:
        used, places = np.unique(nodes.codes(column), return_inverse=True)
        return pl.Series(column.name, _node_texts(nodes, used), dtype=pl.String).gather(places)
    return column.cast(pl.String) if isinstance(column.dtype, pl.Enum) else _escaped(canonical_text(column))


def _escaped(texts: pl.Series) -> pl.Series:
    return texts.str.replace(_TO_ESCAPE, r"\${1}")


def _interval_texts(column: pl.Series) -> pl.Series:
    lo, hi = ends(column)
    exact = (column.struct.field("lo") == column.struct.field("hi")).fill_null(value=False)
    frame = pl.DataFrame({"lo": canonical_text(lo), "hi": canonical_text(hi)}).select(
        pl.when(column.is_null())
        .then(None)
        .when(exact)
        .then(canonical_text(column.struct.field("lo")))
        .when(pl.col("lo").is_null() & pl.col("hi").is_null())
        .then(pl.lit(WILDCARD))
        .otherwise(pl.format("[{};{}]", pl.col("lo").fill_null(""), pl.col("hi").fill_null("")))
    )
    return frame.to_series().alias(column.name)


def _node_texts(nodes: Nodes, used: Codes) -> list[str | None]:
    texts: list[str | None] = []
    for code in used.tolist():
        label, members = nodes.labels[code], nodes.members_of(code) if code >= 0 else pl.Series()
        if code < 0:
            texts.append(None)
        elif label == WILDCARD or (PREFIX.fullmatch(label) and _are_codes(members, label)):
            texts.append(label)
        else:
            texts.append(_escaped(members)[0] if len(members) == 1 else _set_text(members.to_list()))
    return texts


def codes_of(prefix: str) -> list[str]:
    """Every code of digits that begins like a prefix: ``93***`` is 93000 to 93999; of stars only, all."""
    known = prefix.rstrip(WILDCARD)
    left = len(prefix) - len(known)
    return [f"{known}{rest:0{left}d}" for rest in range(10**left)]


def _are_codes(members: pl.Series, prefix: str) -> bool:
    stars = prefix.count(WILDCARD)
    return len(members) == 10**stars and set(members) == set(codes_of(prefix))


def _set_text(members: Sequence[str]) -> str:
    return "{" + "|".join(re.sub(r"([\\|{}])", r"\\\1", member) for member in members) + "}"


# Reading -----------------------------------------------------------------------------------------------


def parse_intervals(text: pl.Series, dtype: DType | None = None) -> pl.Series:
    """Read an interval column from its text forms.

    Without ``dtype`` it is the first of Int64, Float64, Date and Datetime that reads every value.
    """
    asked = None if dtype is None else end_dtype(dtype)
    if dtype is not None and asked is None:
        raise ParameterError(f"`dtype` of an interval column must be of numbers, dates or times, got {dtype}")
    distinct = text.drop_nulls().unique()
    faulty = distinct
    for kind in _GUESSES if asked is None else (asked,):
        faulty = distinct.filter(_read_intervals(distinct, kind)["faulty"])
        if faulty.is_empty():
            return on_distinct(text, partial(_intervals_of, dtype=kind))
    raise DataError(
        f"the texts of `{text.name}` must be intervals, exact values or `*`, "
        f"got {text.is_in(faulty.implode()).sum()} records with others",
        hint="an interval is written [lo;hi] with lo at most hi, decimals with a point, dates as 2020-12-31",
    )


def _intervals_of(texts: pl.Series, *, dtype: DType) -> pl.Series:
    read = _read_intervals(texts, dtype)
    return intervals(read["lo"], read["hi"])


def _read_intervals(texts: pl.Series, dtype: DType) -> pl.DataFrame:
    """The ends that each text states, null where it leaves one open, and whether the text is faulty."""
    boxed, wild = texts.str.contains(_INTERVAL), texts == WILDCARD
    faulty = texts == ""
    read = {}
    for group, end in enumerate(("lo", "hi"), start=1):
        stated = texts.str.extract(_INTERVAL, group).str.strip_chars(" ").zip_with(boxed, texts)
        open_end = wild | (boxed & (stated == ""))
        read[end] = parse_exact(stated, dtype)
        faulty |= read[end].is_null() & ~open_end
    faulty |= (read["lo"] > read["hi"]).fill_null(value=False)
    return pl.DataFrame({**read, "faulty": faulty})


def parse_nodes(text: pl.Series, leaves: Values | None = None) -> tuple[pl.Series, Nodes]:
    """Read a node column from its text forms; each label of the result is its own text form.

    Without ``leaves`` they are the values that the texts name, in alphabetical order; beside codes that are
    cut short, all that are as long.
    """
    stated = {form: _members(form) for form in text.drop_nulls().unique().sort()}
    named = sorted({value for members in stated.values() for value in members or ()})
    if any(map(PREFIX.fullmatch, stated)) and _are_alike(named):
        named = codes_of(WILDCARD * len(named[0]))
    order = {leaf: place for place, leaf in enumerate(named if leaves is None else leaves)}
    faulty = [form for form, members in stated.items() if members is None or not order.keys() >= set(members)]
    if faulty:
        raise DataError(
            f"the texts of `{text.name}` must be values, sets {{a|b}} of values or `*`, "
            f"got {text.is_in(faulty).sum()} records that are malformed or name a value that is no leaf",
            hint="a value in braces that is no set is written with a backslash in front",
        )
    listed = dict(
        zip(_escaped(pl.Series(list(order), dtype=pl.String)), ([leaf] for leaf in order), strict=True)
    )
    exact = list(listed)
    labels = {}
    for form, members in stated.items():
        group = sorted(set(members or ()), key=order.__getitem__)
        if PREFIX.fullmatch(form) or not group:
            label = form
        else:
            label = exact[order[group[0]]] if len(group) == 1 else _set_text(group)
        labels[form], listed[label] = label, group
    nodes = Nodes.of(listed, leaves=list(order))
    new = pl.Series(list(labels.values()), dtype=pl.String)
    read = text.replace_strict(
        pl.Series(list(labels), dtype=pl.String), new, default=None, return_dtype=pl.String
    )
    return read.cast(nodes.dtype), nodes


def _members(form: str) -> list[str] | None:
    """The values that a text form names: none for the wildcard, and None for a malformed set."""
    if form == WILDCARD:
        return []
    if PREFIX.fullmatch(form):
        return codes_of(form)
    if not (form.startswith("{") and form.endswith("}")):
        return [form.removeprefix("\\")]
    body = _SET.fullmatch(form)
    if body is None:
        return None
    members = [""]
    for escaped, bar, plain in _SET_PIECE.findall(body[1]):
        if bar:
            members.append("")
        members[-1] += escaped + plain
    return members


def _are_alike(codes: Sequence[str]) -> bool:
    """Whether codes are of digits, or cut short, and all of one length."""
    return len({*map(len, codes)}) == 1 and all(map(_CODE.fullmatch, codes))


def looks_generalised(text: pl.Series) -> Literal["interval", "node"] | None:
    """Which text forms a column of text holds, or None where it is ordinary text.

    "interval": every value is an interval, a number (or every one a date) or ``*``, and not all are numbers.
    "node": there is a set of two or more values, or a code that is cut short among others of its length, or
    nothing but ``*``. A value that these forms would have escaped speaks against both, and words with ``*``
    stay text, since a star can be a rating.
    Empty text is passed over.
    """
    distinct = text.drop_nulls().unique()
    distinct = distinct.filter(distinct != "")
    wild, boxed = distinct == WILDCARD, distinct.str.contains(_INTERVAL)
    if wild.all():
        return "node" if len(distinct) else None
    if (wild | boxed).any() and any(not _read_intervals(distinct, kind)["faulty"].any() for kind in _GUESSES):
        return "interval"
    in_braces = distinct.str.contains(r"(?s)^\{.*\}$")
    sets, others = distinct.filter(in_braces), distinct.filter(~in_braces & ~wild).to_list()
    cut = any(map(PREFIX.fullmatch, others))
    if (
        (cut and not _are_alike(others))
        or not (cut or len(sets))
        or distinct.str.contains(r"(?s)^\[.*\]$").any()
    ):
        return None
    return "node" if all(len(_members(form) or ()) > 1 for form in sets) else None
