"""Fixed format: each column at its place in the line, as the description beside the file says.

``people.asc`` is described by ``people.rda``, the metadata of µ-ARGUS: a line for each column with its name,
first place, length and codes for missing values, then what it is, in angle brackets. A weight, the number of
a household and columns that identify get their roles by it; a code list gives labels. What is blank is
missing; where a column of codes lacks values, a code that nobody has is written for them.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data.schema import Column, Kind, Role
from sfumato.data.table import Table
from sfumato.errors import NoteWarning, ReadError, WriteError, count_noun
from sfumato.io import sniff, textual
from sfumato.io.delimited import is_writable
from sfumato.io.formats import Contents, FileDialect, Options, description_path

#: What a description says of a column in angle brackets, and the role that it has by that.
_ROLES = {"WEIGHT": Role.WEIGHT, "HOUSE_ID": Role.HOUSEHOLD}
_TAG = re.compile(r"<(\w+)>\s*(.*)")
#: How workspaces of R begin, whose files have the same suffix.
_OF_R = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"RDX", b"RDA")
_CATEGORIES = frozenset({Kind.NOMINAL, Kind.ORDINAL})
#: Texts that a line cannot hold so that they are read again.
_SPOILT = r"^$|^\s|\s$|[\r\n\x0b\x0c\x1c-\x1e\x85\u{2028}\u{2029}]"


@dataclass
class _FixedField:
    """What a description says of one column."""

    name: str
    start: int
    length: int
    missing: list[str]
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + self.length


# Reading -------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Contents:
    """Read a file in fixed format by the description beside it."""
    options.refuse_unless(frozenset({"rows", "text", "encoding", "decimal"}), what="files in fixed format")
    described = description_path(path)
    assert described is not None  # the suffix has one
    variables = _read_description(described, path)
    text, encoding = _decode(path, options.encoding)
    lines = pl.Series(text.splitlines(), dtype=pl.String)
    lines = lines.filter(lines.str.strip_chars() != "")
    end = max(variable.end for variable in variables)
    short = (lines.str.len_chars() < end).arg_true()
    if len(short):
        raise ReadError(
            f"`{path.name}` is cut short: {count_noun(len(short), 'record')} with fewer than the {end} "
            f"characters that `{described.name}` says, the first of them record {short[0] + 1}"
        )
    lines = lines if options.rows is None else lines.head(options.rows)
    frame = pl.DataFrame([_cut(lines, variable) for variable in variables])
    frame, decimal = textual.cast_columns(
        frame, decimal=options.decimal, commas="unless thousands", text=options.text
    )
    facts = {each.name: _facts_of(each, frame[each.name], described) for each in variables}
    return Contents(frame, facts, FileDialect(encoding=encoding, decimal=decimal))


def _cut(lines: pl.Series, variable: _FixedField) -> pl.Series:
    texts = lines.str.slice(variable.start, variable.length).str.strip_chars()
    return texts.replace("", None).alias(variable.name)


def _decode(path: Path, encoding: str | None) -> tuple[str, str]:
    raw = path.read_bytes()
    known = sniff.known_encoding(encoding or sniff.encoding_of(raw, name=path.name))
    try:
        return raw.decode(known).removeprefix("\ufeff"), known
    except UnicodeDecodeError:
        raise ReadError(f"`{path.name}` is not in the encoding {known}", hint="give its `encoding`") from None


def _read_description(path: Path, data: Path) -> list[_FixedField]:
    if not path.is_file():
        raise ReadError(
            f"`{data.name}` needs a description beside it: there is no `{path.name}`",
            hint="write one as µ-ARGUS does, or save the data as a CSV file",
        )
    if path.read_bytes().startswith(_OF_R):
        raise ReadError(f"`{path.name}` is a workspace of R, not the description of `{data.name}`")
    found: list[_FixedField] = []
    for number, line in enumerate(_decode(path, None)[0].splitlines(), start=1):
        tag = _TAG.fullmatch(line.strip())
        if tag and tag[1].upper() == "SEPARATOR":
            raise ReadError(
                f"`{path.name}` describes a file in free format, with a separator",
                hint="give the file a header line and the suffix .csv",
            )
        if tag and found:
            found[-1].tags[tag[1].upper()] = tag[2].strip()
        elif line.strip():
            found.append(_read_variable(line, f"line {number} of `{path.name}`"))
    faults = [f"`{each.name}`" for each in found if sum(each.name == other.name for other in found) > 1]
    if faults or not found:
        raise ReadError(f"`{path.name}` must name each column once, got: {', '.join(faults) or 'none'}")
    return found


def _read_variable(line: str, where: str) -> _FixedField:
    try:
        name, start, length, *missing = shlex.split(line, posix=True)
        variable = _FixedField(name, int(start) - 1, int(length), missing)
    except ValueError:
        variable = None
    if variable is None or variable.start < 0 or variable.length < 1:
        raise ReadError(f"{where} must have a name, a first place from 1 on and a length from 1 on")
    return variable


def _facts_of(variable: _FixedField, series: pl.Series, described: Path) -> dict[str, Any]:
    """What the description says of a column, in the type that its values have."""
    facts: dict[str, Any] = {}
    missing = _as_values(variable.missing, series)
    if missing:
        facts["missing"] = tuple(missing)
    if "NUMERIC" in variable.tags and series.dtype.is_numeric():
        facts["kind"] = Kind.CONTINUOUS
    if "HOUSE_ID" in variable.tags:
        facts["kind"] = Kind.NOMINAL
    role = next((role for tag, role in _ROLES.items() if tag in variable.tags), None)
    if role is None and variable.tags.get("IDLEVEL", "0") not in {"", "0"}:
        role = Role.KEY
    if role is not None:
        facts["role"] = role
    if listed := variable.tags.get("CODELIST", "").strip('"'):
        facts |= _labels_in(described.parent / listed, series)
    return facts


def _as_values(texts: Sequence[str], series: pl.Series) -> list[Any]:
    """Codes as values of a column; those that cannot be any are left out."""
    if not series.dtype.is_numeric():
        return list(texts)
    return pl.Series(texts, dtype=pl.String).cast(series.dtype, strict=False).drop_nulls().to_list()


def _labels_in(place: Path, series: pl.Series) -> dict[str, Any]:
    """The labels of a code list: a code, a comma and what it means on each line."""
    if not place.is_file():
        note = NoteWarning(f"the code list `{place.name}` of `{series.name}` is not there: no labels")
        warnings.warn(note, stacklevel=2)
        return {}
    pairs = [line.partition(",") for line in _decode(place, None)[0].splitlines() if "," in line]
    labelled = {code.strip().strip('"'): label.strip().strip('"') for code, _, label in pairs}
    labels = [(value, label) for code, label in labelled.items() for value in _as_values([code], series)]
    return {"labels": tuple(labels)} if labels else {}


# Writing -------------------------------------------------------------------------------------------------


def write(table: Table, path: Path, suffix: str, like: FileDialect) -> None:  # noqa: ARG001
    """Write the records, numbers to the right of their places and texts to the left."""
    columns = [
        texts.str.pad_start(width) if is_right else texts.str.pad_end(width)
        for _, texts, width, is_right in _fields_of(table)
    ]
    lines = pl.select(pl.concat_str(columns)).to_series() if columns else pl.Series([], dtype=pl.String)
    text = "".join(f"{line}\n" for line in lines)
    try:
        path.write_bytes(text.encode(like.encoding or "utf-8"))
    except UnicodeEncodeError:
        path.write_bytes(text.encode())


def write_description(table: Table, path: Path) -> None:
    """Write what µ-ARGUS, and `read`, must know of the file."""
    fields = list(_fields_of(table))
    starts = accumulate((width for _, _, width, _ in fields), initial=1)
    lines = []
    for (column, texts, width, _), start in zip(fields, starts, strict=False):
        codes = dict.fromkeys([*_spare_code(table, column), *map(_code_text, column.missing_codes)])
        lines.append(" ".join([column.name, str(start), str(width), *(f'"{code}"' for code in codes)]))
        lines += [f"    {tag}" for tag in _tags_of(column, texts)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _fields_of(table: Table) -> Iterator[tuple[Column, pl.Series, int, bool]]:
    """Each column with its texts, without holes, the width that it needs, and whether it stands right."""
    for column in table.schema.columns:
        series = table.frame[column.name]
        texts = series.cast(pl.String) if is_writable(series.dtype) else pl.Series([""])
        spoilt = texts.str.contains(_SPOILT).sum()
        if spoilt or not re.fullmatch(r"[^\s<>\"'\\#]+", column.name):
            raise WriteError(
                f"`{column.name}` cannot be written in fixed format, which has no lists, no blanks at the "
                "ends of a value, no empty texts, no line breaks, and no blanks or quotes in names",
                hint="write a CSV file instead",
            )
        codes = [*_spare_code(table, column), *map(_code_text, column.missing_codes)]
        texts = texts.fill_null((_spare_code(table, column) or [""])[0])
        width = max([1, int(texts.str.len_chars().max() or 0), *map(len, codes)])  # type: ignore[arg-type]
        yield column, texts, width, series.dtype.is_numeric()


def _spare_code(table: Table, column: Column) -> list[str]:
    """A code that nobody has, where values of a column of codes are missing; µ-ARGUS wants one there."""
    series = table.frame[column.name]
    if column.kind not in _CATEGORIES or not series.null_count():
        return []
    taken = {*series.cast(pl.String).drop_nulls().unique(), *map(_code_text, column.missing_codes)}
    numbers = count(1)
    spare = ("9" * n for n in numbers) if series.dtype.is_numeric() else ("X" * n for n in numbers)
    return [next(code for code in spare if code not in taken)]


def _code_text(code: object) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _tags_of(column: Column, texts: pl.Series) -> Iterator[str]:
    if column.kind in _CATEGORIES:
        yield "<RECODABLE>"
        yield f"<IDLEVEL> {int(column.role is Role.KEY)}"
    elif column.kind is Kind.CONTINUOUS:
        yield "<NUMERIC>"
        decimals = int(texts.str.extract(r"\.(\d+)$").str.len_chars().max() or 0)  # type: ignore[arg-type]
        if decimals:
            yield f"<DECIMALS> {decimals}"
    yield from (f"<{tag}>" for tag, role in _ROLES.items() if column.role is role)
