r"""The text forms of generalised values: written, read and recognised.

The text forms are ``[20;29]``, ``[65;]``, ``{Kern|Fresno}``, ``{Kern|...}``, ``E11*``, ``***21`` and ``*``;
an exact value stands plainly. A beginning or an end with stars is a code that is cut short (`cut_codes`).
Three dots are the values that few have, and that are not told. In braces a backslash stands before each of
``\ | { }``, and before three dots that are a value. An exact text that would read as one of the forms, begins
with a backslash or is empty has one backslash in front: ``\*``, ``\[1;2]``, ``\E11*``, and ``\`` for "".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from sfumato.data.column_store import gather, join_pieces
from sfumato.data.generalised.cut_codes import (
    CUT,
    LISTED,
    SortedValues,
    all_like,
    codes_of,
    have_one_length,
    kept_part,
)
from sfumato.data.generalised.intervals import end_dtype, ends, intervals, is_interval
from sfumato.data.generalised.nodes import (
    WILDCARD,
    DType,
    Nodes,
    Values,
    canonical_text,
    parse_exact,
    zoned_text,
)
from sfumato.errors import DataError, ParameterError, count_noun
from sfumato.kernels.arrays import Codes, Flags, Ints

_INTERVAL = r"^\[([^;\[\]]*);([^;\[\]]*)\]$"
#: The values that few have, in a set.
REST = "..."
#: A text that reads as one of the other forms.
WOULD_MISREAD = r"(?s)^(\*|\[.*\]|\{.*\}|\\.*|)$"
_TO_ESCAPE = rf"(?s)^(\*|\[.*\]|\{{.*\}}|\\.*||{CUT.pattern})$"
_SET = re.compile(r"\{((?:[^\\{}]|\\.)*)\}", re.DOTALL)
_ESCAPED_IN_BRACES = str.maketrans({sign: "\\" + sign for sign in "\\|{}"})
_SET_PIECE = re.compile(r"\\(.)|(\|)|([^\\|]+)", re.DOTALL)
#: Sets that are written at a time.
_AT_ONCE = 2**14
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
        used, places = nodes.used_codes(nodes.codes(column))
        return gather(_node_texts(nodes, used.astype(np.int32)), places).alias(column.name)
    return (
        column.cast(pl.String) if isinstance(column.dtype, pl.Enum) else _escape_texts(canonical_text(column))
    )


def _escape_texts(texts: pl.Series) -> pl.Series:
    return texts.str.replace(_TO_ESCAPE, r"\${1}")


def _interval_texts(column: pl.Series) -> pl.Series:
    lo, hi = (_end_texts(end) for end in ends(column))
    exact = (column.struct.field("lo") == column.struct.field("hi")).fill_null(value=False)
    frame = pl.DataFrame({"lo": lo, "hi": hi}).select(
        pl.when(column.is_null())
        .then(None)
        .when(exact)
        .then(_end_texts(column.struct.field("lo")))
        .when(pl.col("lo").is_null() & pl.col("hi").is_null())
        .then(pl.lit(WILDCARD))
        .otherwise(pl.format("[{};{}]", pl.col("lo").fill_null(""), pl.col("hi").fill_null("")))
    )
    return frame.to_series().alias(column.name)


def _end_texts(values: pl.Series) -> pl.Series:
    zoned = isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None
    return zoned_text(values) if zoned else canonical_text(values)


def _node_texts(nodes: Nodes, used: Codes) -> pl.Series:
    """The texts of labels, missing for −1; some at a time, as joining them takes ten times as much."""
    if not len(used):
        return pl.Series([], dtype=pl.String)
    return join_pieces(
        _some_texts(nodes, some) for some in np.split(used, range(_AT_ONCE, len(used), _AT_ONCE))
    )


def _some_texts(nodes: Nodes, used: Codes) -> pl.Series:
    plain = shown_by_label(nodes, used) | (used < 0)
    labels = nodes.labels.gather(pl.Series(used).cast(pl.Int64).set(pl.Series(used < 0), None))
    sets = set_texts(nodes.leaves, nodes.sizes[used[~plain]], nodes.members_of_all(used[~plain]))
    place = pl.Series(np.where(plain, 0, np.cumsum(~plain) - 1))
    return labels if plain.all() else labels.zip_with(pl.Series(plain), sets.gather(place))


def set_texts(leaves: pl.Series, sizes: Ints, members: Codes | Ints) -> pl.Series:
    """Write sets of leaves, whose members follow each other: a value alone, or ``{a|b}``."""
    if not len(sizes):
        return pl.Series([], dtype=pl.String)
    parts = leaves.str.replace_all(r"([\\|{}])", r"\${1}").replace(REST, "\\" + REST)
    of_set = np.repeat(np.arange(len(sizes)), sizes)
    joined = (
        pl.DataFrame({"set": of_set, "text": parts.gather(members)})
        .group_by("set", maintain_order=True)
        .agg(pl.col("text").str.join("|"))["text"]
    )
    exact = _escape_texts(leaves).gather(members[np.cumsum(sizes) - sizes])
    return exact.zip_with(pl.Series(sizes == 1), "{" + joined + "}")


def shown_by_label(nodes: Nodes, codes: Codes) -> Flags:
    """Which labels are written as they stand, since they say themselves what they stand for."""
    labels = nodes.labels.gather(np.maximum(codes, 0))
    flags = (labels == WILDCARD).to_numpy().copy()
    for place in np.flatnonzero(labels.str.ends_with(REST + "}").to_numpy()):
        flags[place] = has_rest(labels[int(place)])
    for place in np.flatnonzero(labels.str.contains(r"(?s)[^*]\*+$|^\*+[^*]").to_numpy()):
        flags[place] |= stands_for_all(nodes, int(codes[place]))
    return flags & (codes >= 0)


def values_named(nodes: Nodes, codes: Codes) -> list[str]:
    """All values that the texts of these labels name; of a text that names none, the text."""
    by_label = shown_by_label(nodes, codes)
    pairs = np.repeat(np.isin(np.arange(len(nodes.labels)), codes[~by_label]), nodes.sizes)
    leaves = nodes.leaves.gather(np.unique(nodes.members[pairs])).to_list()
    labels = nodes.labels.gather(codes[by_label])
    return [*leaves, *(value for label in labels for value in (named_in(label) or [label]))]


def stands_for_all(nodes: Nodes, code: int) -> bool:
    """Whether a label is cut short, and stands for its members and for no other leaf.

    Where all codes of digits can be listed, they must be.
    """
    label = nodes.labels[code]
    if CUT.fullmatch(label) is None or label.startswith("\\"):  # which would read as an exact value
        return False
    members = nodes.members_of(code)
    if label in members:  # it is an exact value with a star
        return False
    if LISTED.fullmatch(label) and nodes.of_digits == len(label):
        return members.n_unique() == 10 ** label.count(WILDCARD) and all_like(members, label)
    like = nodes.sorted_leaves.like(label)
    return len(like) == len(members) and set(like) == set(members.to_list())


def joined_nodes(tables: Sequence[Nodes]) -> Nodes:
    """`Nodes.union`, in which a code that is cut short stands for all codes like it of all tables."""
    ordered = SortedValues(pl.concat([nodes.leaves.rename("leaves") for nodes in tables]).unique())
    return Nodes.union([_with_leaves(nodes, ordered) for nodes in tables])


def _with_leaves(nodes: Nodes, leaves: SortedValues) -> Nodes:
    """The same labels over more leaves; codes of digits as long as a label are all there."""
    if len(leaves) == len(nodes.leaves):
        return nodes
    listed = {}
    for code, label in enumerate(nodes.labels):
        of_digits = LISTED.fullmatch(label) and nodes.of_digits == len(label)
        grows = not of_digits and stands_for_all(nodes, code)
        listed[label] = leaves.like(label) if grows else nodes.members_of(code).to_list()
    listed.pop(WILDCARD, None)
    return Nodes.of(listed, leaves=leaves.ascending)


def set_text(members: Sequence[str], *, rest: bool = False) -> str:
    """Write a set; with the ``rest`` it holds the values that few have, too."""
    parts = [_escape_in_braces(member) for member in members]
    return _in_braces([*parts, REST] if rest else parts)


def _escape_in_braces(member: str) -> str:
    return "\\" + member if member == REST else member.translate(_ESCAPED_IN_BRACES)


def _in_braces(parts: Sequence[str]) -> str:
    return "{" + "|".join(parts) + "}"


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
        read = _read_intervals(distinct, kind)
        faulty = distinct.filter(read["faulty"])
        if faulty.is_empty():
            found = intervals(read["lo"], read["hi"])
            places = np.arange(len(distinct), dtype=np.uint32)
            codes = text.replace_strict(distinct, places, default=None, return_dtype=pl.UInt32)
            return found.gather(codes).alias(text.name)
    raise DataError(
        f"`{text.name}` has {count_noun(int(text.is_in(faulty.implode()).sum()), 'record')} with a text that "
        "is neither an interval nor an exact value nor `*`",
        hint="an interval is written [lo;hi] with lo at most hi, decimals with a point, dates as 2020-12-31",
    )


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


class KnownValues(NamedTuple):
    """What is known of a column from elsewhere: its values, and which of them few have."""

    values: Collection[str]
    few: Collection[str]


def parse_nodes(
    text: pl.Series, leaves: Values | None = None, *, known: KnownValues | None = None
) -> tuple[pl.Series, Nodes]:
    """Read a node column from its text forms; each label of the result is its own text form.

    Without ``leaves`` they are the values that the texts name and those that are ``known``, in alphabetical
    order; beside codes that are cut short, all that are as long, if they can be listed. Where none is known
    that a code that is cut short, or values that are not told, could stand for, a leaf with three dots
    (``E11...``) stands for what nobody can list.
    """
    stated = {form: _read(form) for form in text.drop_nulls().unique().sort()}
    read = [each for each in stated.values() if each is not None]
    order = {leaf: place for place, leaf in enumerate(_leaves(read, known) if leaves is None else leaves)}
    ordered = SortedValues(order)
    groups = {form: None if each is None else _group(each, ordered, known) for form, each in stated.items()}
    faulty = [form for form, group in groups.items() if group is None or not order.keys() >= set(group)]
    if faulty:
        raise DataError(
            f"`{text.name}` has {count_noun(int(text.is_in(faulty).sum()), 'record')} with a text that is "
            "neither a known value nor a set {a|b} of known values nor `*`",
            hint="write a backslash before a value in braces that is not a set",
        )
    listed = dict(
        zip(_escape_texts(pl.Series(list(order), dtype=pl.String)), ([leaf] for leaf in order), strict=True)
    )
    exact = list(listed)
    labels = {}
    for form, each in stated.items():
        group = sorted(set(groups[form] or ()), key=order.__getitem__)
        assert each is not None  # it would be faulty
        if each.cut or not group:
            label = form
        elif each.rest:
            label = set_text(sorted(set(each.values), key=order.__getitem__), rest=True)
        else:
            label = exact[order[group[0]]] if len(group) == 1 else set_text(group)
        labels[form], listed[label] = label, group
    nodes = Nodes.of(listed, leaves=list(order))
    new = pl.Series(list(labels.values()), dtype=pl.String)
    column = text.replace_strict(
        pl.Series(list(labels), dtype=pl.String), new, default=None, return_dtype=pl.String
    )
    return column.cast(nodes.dtype), nodes


class _Form(NamedTuple):
    """What a text form states: the values it names, others cut short, those that few have."""

    values: Sequence[str] = ()
    cut: str = ""
    rest: bool = False


def _read(form: str) -> _Form | None:
    """What a text form states: nothing for the wildcard, and None for a malformed set."""
    if form == WILDCARD:
        return _Form()
    if form.startswith("\\"):
        return _Form([form[1:]])
    if not (form.startswith("{") and form.endswith("}")):
        return _Form(cut=form) if CUT.fullmatch(form) else _Form([form])
    body = _SET.fullmatch(form)
    if body is None:
        return None
    members, escaped = [""], [False]
    for marked, bar, plain in _SET_PIECE.findall(body[1]):
        if bar:
            members.append("")
            escaped.append(False)
        members[-1] += marked + plain
        escaped[-1] |= bool(marked)
    rest = members[-1] == REST and not escaped[-1]
    return _Form(members[:-1] if rest else members, rest=rest)


def has_rest(form: str) -> bool:
    """Whether a text is a set with values that are not told."""
    read = _read(form) if form.endswith(REST + "}") else None
    return read is not None and read.rest


def named_in(form: str) -> Sequence[str]:
    """The values that a text form names."""
    read = _read(form)
    return () if read is None else read.values


def is_open(texts: pl.Series, known: KnownValues) -> bool:
    """Whether a text is no known value, but ``*``, one that is cut short, or a set with values not told."""
    strange = set(texts.drop_nulls().unique()) - set(known.values)
    ordered = SortedValues(known.values)
    return WILDCARD in strange or any(
        has_rest(text) or (CUT.fullmatch(text) and ordered.like(text)) for text in strange
    )


def _leaves(forms: Sequence[_Form], known: KnownValues | None) -> list[str]:
    """The values that forms name; and those that they stand for without naming them."""
    named = {value for form in forms for value in form.values}
    cuts, rest = {form.cut for form in forms if form.cut}, any(form.rest for form in forms)
    if not (cuts or rest):
        return sorted(named if known is None else named | set(known.values))
    codes = [*named, *cuts, *(() if known is None else known.values)]
    if all(map(LISTED.fullmatch, cuts)) and not rest and have_one_length(codes):
        return codes_of(WILDCARD * len(codes[0]))
    if known is None:
        return sorted({*named, *map(_leaf_of_cut, cuts), *([REST] if rest else [])})
    found = SortedValues(named | set(known.values))
    alone = [_leaf_of_cut(cut) for cut in cuts if not found.like(cut)]
    return sorted({*found.ascending, *alone, *([REST] if rest and not known.few else [])})


def _leaf_of_cut(cut: str) -> str:
    """The leaf that stands for all codes that begin, or end, so."""
    return kept_part(cut) + REST if cut.endswith(WILDCARD) else REST + kept_part(cut)


def _group(form: _Form, leaves: SortedValues, known: KnownValues | None) -> Sequence[str]:
    """The leaves that a form stands for."""
    if form.cut:
        return leaves.like(form.cut) or [_leaf_of_cut(form.cut)]
    if form.rest:
        return [*form.values, *(known.few if known and known.few else [REST])]
    return form.values


def looks_generalised(text: pl.Series) -> Literal["interval", "node"] | None:
    """Which text forms a column of text holds, or None where it is ordinary text.

    "interval": every value is an interval, a number (or every one a date) or ``*``, and not all are numbers.
    "node": there is a set of two or more values, or a code of three to five digits that is cut short among
    others of its length, or nothing but ``*``. A value that these forms would have escaped speaks against
    both, and other words with ``*`` stay text, since a star can be a rating, or belong to a diagnosis (the
    original tells: `is_open`). Empty text is passed over.
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
    cut = any(map(LISTED.fullmatch, others))
    if (
        (cut and not have_one_length(others))
        or not (cut or len(sets))
        or distinct.str.contains(r"(?s)^\[.*\]$").any()
    ):
        return None
    read = [_read(form) for form in sets]
    return "node" if all(form and (form.rest or len(form.values) > 1) for form in read) else None
