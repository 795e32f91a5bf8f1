"""In and out: files of several formats, tables of databases, and the frames of other packages.

`read` gives what a file holds, `conform` brings it into the form a schema declares, `read_table` does both
and proposes a schema where none is given. `write` and its like never leave half a file behind and never touch
an original.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import polars as pl

from sfumato.data.column_store import active_store, store_column
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.generalised.text_forms import has_rest, named_in, to_text
from sfumato.data.guess.columns import guess_schema
from sfumato.data.hidden_content import unsigned_zeros
from sfumato.data.schema import Column, Kind, Schema, like_schema
from sfumato.data.table import Table
from sfumato.engines.stream import available_memory
from sfumato.errors import (
    MemoryLimitError,
    ParameterError,
    ReadError,
    WriteError,
    nearest,
    quoted,
    suggest,
    trouble_with,
)
from sfumato.io import addresses, atomic, codebook, databases, item_texts
from sfumato.io import formula_injection as guards
from sfumato.io.atomic import Staging, is_text, write_text
from sfumato.io.conform import as_text, conform
from sfumato.io.formats import (
    FORMATS,
    KEEP_INTERVALS,
    Contents,
    FileDialect,
    Format,
    Options,
    description_path,
    format_of,
)
from sfumato.io.frames import Native, to_native, to_polars
from sfumato.io.stdin import STDIN, stdin_file

__all__ = [
    "FORMATS",
    "Contents",
    "Native",
    "Staging",
    "check_format",
    "check_writable",
    "conform",
    "losses",
    "read",
    "read_contents",
    "read_table",
    "stage",
    "to_native",
    "to_polars",
    "write",
    "write_text",
]


#: What was read and is still held by somebody, by file, state and way of reading: frames never change.
_HELD: WeakValueDictionary[Hashable, Contents] = WeakValueDictionary()


def read_contents(
    path: str | Path,
    *,
    schema: Schema | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    rows: int | None = None,
    sheet: str | None = None,
    header: bool | None = None,
    text: Collection[str] = (),
) -> Contents:
    """Read a file as it stands, with what it says of its columns; generalised values and dates stay text.

    Parameters
    ----------
    path
        The file, whose suffix says the format; or the address of a table (see `sfumato.io.addresses`); or
        ``-`` for what is piped in.
    schema
        Keeps the columns as they are written that it declares to be dates or words with an order.
    delimiter, decimal, encoding
        How a delimited text is written; found out when not given.
    rows
        Read at most this many records.
    sheet
        The sheet of an Excel workbook; the largest when not given.
    header
        Whether the first line of a delimited text holds names; found out when not given.
    text
        Columns that are kept as they are written.
    """
    place, address = stdin_file() if str(path) == STDIN else Path(path), addresses.is_address(path)
    if not address and not place.name:  # "", `.` and `/`
        _require_file(place)
    text = frozenset(text) if schema is None else as_text(schema).union(text)
    lines = None if address else codebook.read_lines(place)
    options = Options(
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        rows=rows,
        # A label of digits that the codebook explains is no number.
        text=text if lines is None else text.union(lines["column"]),
        sheet=sheet,
        header=header,
    )
    if sheet is not None and (address or FORMATS.get(place.suffix.lower()) != "excel"):
        raise ParameterError("`sheet` applies to Excel workbooks only")
    if address:
        options.refuse_unless(frozenset({"rows", "text"}), what="databases")
        return databases.read(path, rows=rows)
    reader = format_of(place, error=ReadError)
    _require_file(place)
    try:
        found = _read_file(reader, place, options)
        return found if lines is None else replace(found, frame=codebook.expand_labels(found.frame, lines))
    except OSError as error:
        raise ReadError(f"cannot read `{place}`: {trouble_with(error)}") from None


def _read_file(reader: Format, place: Path, options: Options) -> Contents:
    """Read a file, unless somebody still holds what was read of it in the same way."""
    state = place.stat()
    key = (place.resolve(), state.st_mtime_ns, state.st_size, options)
    held = _HELD.get(key)
    if held is None:
        if options.rows is None:
            _require_memory(place.name, state.st_size)
        held = _HELD[key] = reader.read(place, options)
    return held


def read(path: str | Path, **how: Any) -> pl.DataFrame:
    """Read the records of a file as they stand (see `read_contents`)."""
    return read_contents(path, **how).frame


def read_table(
    path: str | Path,
    schema: Schema | None = None,
    *,
    generalised: Collection[str] = (),
    like: Schema | None = None,
    **how: Any,
) -> Table:
    """Read a file and bring it into the form of its schema (see `conform`, and for ``how`` `read_contents`).

    Without ``schema`` one is proposed, in which some columns may have no role yet. What it does not say of a
    column's labels and missing codes the file may say. Columns that a table
    ``like`` it has too are declared as they are there: a register is compared with what it is a register of.
    """
    found = read_contents(path, schema=schema, **how)
    proposed = guess_schema(found.frame, found.facts) if schema is None else _with_facts(schema, found)
    if like is not None:
        proposed = like_schema(proposed, like)
    return conform(found.frame, proposed, generalised=generalised)


def _with_facts(schema: Schema, found: Contents) -> Schema:
    """A schema with the labels and missing codes that the file has, where it says none itself."""
    described = []
    for column in schema.columns:
        facts = found.facts.get(column.name, {})
        silent = {name for name in ("label", "labels") if not getattr(column, name)}
        if not column.missing and column.missing_range is None:
            silent |= {"missing", "missing_range"}
        described.append(replace(column, **{name: facts[name] for name in silent & set(facts)}))
    return schema.replace(*described)


def write(
    data: Table | pl.DataFrame,
    path: str | Path,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
    guard: bool = False,
    like: FileDialect | None = None,
) -> None:
    """Write a table to a file, or a table of a database, that appears whole or not at all.

    Generalised values are written in their text form, dates of a delimited text in the form that the schema
    has; in Parquet and Arrow, intervals stay structs. What
    the labels of large groups stand for is written beside the file (see `sfumato.io.codebook`).

    Parameters
    ----------
    data
        The records; their order is the order in the file, and no row numbers are added.
    path
        The file, whose suffix says the format; or the address of a table (see `sfumato.io.addresses`).
    originals
        Files and tables that must not be overwritten, under whatever name they are met.
    overwrite
        Whether another file or table that is there already may be replaced.
    guard
        Whether texts that a spreadsheet may take for formulas are disarmed (`sfumato.io.formula_injection`).
    like
        How another file was read: a delimited text, or the sheet of a workbook, is written so too.
    """
    with Staging(originals=codebook.with_codebooks(originals), overwrite=overwrite) as staging:
        stage(data, path, staging, guard=guard, like=like)


def stage(
    data: Table | pl.DataFrame,
    path: str | Path,
    staging: Staging,
    *,
    guard: bool = False,
    like: FileDialect | None = None,
) -> None:
    """Make a table ready to appear with other files (see `write` and `Staging`).

    A table of a database is stored, in a transaction of its own, before the files take their names.
    """
    check_format(path, guard=guard)
    if addresses.is_address(path):
        plain, _ = _plain(data, keep_intervals=False)
        how: dict[str, Any] = {"originals": staging.originals, "overwrite": staging.overwrite}
        staging.finally_store(partial(databases.write, plain, path, **how))
        return
    place = Path(path)
    suffix = place.suffix.lower()
    table, lines = _plain(data, keep_intervals=FORMATS[suffix] in KEEP_INTERVALS, short=True)
    if guard:
        table, lines = guards.escape_formulas_in(table), guards.guarded_texts(lines)
    with staging.open(place) as file:
        format_of(place, error=WriteError).write(table, Path(file.name), suffix, like or FileDialect())
    codebook.stage(lines, place, staging)
    if (described := description_path(place)) is not None:
        from sfumato.io import fixed_format

        with staging.open(described) as file:
            fixed_format.write_description(table, Path(file.name))


def losses(data: Table, path: str | Path) -> list[str]:
    """Say what a file does not keep of what is known of the columns, in words."""
    suffix = Path(path).suffix.lower()
    says_more = any(
        each.label or each.labels or each.missing or each.missing_range for each in data.schema.columns
    )
    is_statistical = FORMATS.get(suffix) == "statistical" and not addresses.is_address(path)
    if not (says_more or is_statistical):
        return []  # and nothing need be written to know it
    table, _ = _plain(data, keep_intervals=False, short=True)
    if is_statistical:
        from sfumato.io import statistical

        return statistical.losses(table, suffix)
    columns = table.schema.columns
    lost = {
        "labels are not kept": [each.name for each in columns if each.label or each.labels],
        "missing codes are not marked as missing": [
            each.name
            for each in columns
            if each.missing_range or (each.missing and description_path(Path(path)) is None)
        ],
    }
    return [f"{what}: {quoted(names)}" for what, names in lost.items() if names]


def check_format(path: str | Path, *, guard: bool = False) -> None:
    """Raise if nothing can write such a file, or ``guard`` is not for it."""
    address, suffix = addresses.is_address(path), Path(path).suffix.lower()
    if not address:
        format_of(Path(path), error=WriteError)
    if guard and (address or FORMATS[suffix] not in guards.GUARDED):
        raise ParameterError("`guard` applies to delimited text and Excel only", hint="leave it out")


def check_writable(
    path: str | Path, *, originals: Sequence[str | Path] = (), overwrite: bool = False
) -> None:
    """Raise now what writing would raise later: a long run should not end in front of a locked door."""
    if addresses.is_address(path):
        nothing, _ = _plain(pl.DataFrame({"a": [True]}).clear(), keep_intervals=False)
        databases.write(nothing, path, originals=originals, overwrite=overwrite, trial=True)
    else:
        atomic.check_writable(path, originals=originals, overwrite=overwrite)


def _plain(
    data: Table | pl.DataFrame, *, keep_intervals: bool, short: bool = False
) -> tuple[Table, pl.DataFrame]:
    """Make a table whose generalised values are text, except intervals where the format can hold them.

    With ``short`` large groups are written by their labels, which the codebook explains.
    """
    table = data if isinstance(data, Table) else Table(data, _bare_schema(data))
    table = replace(table, frame=table.frame.with_columns(unsigned_zeros(series) for series in table.frame))
    texts, lines = [], []
    for series in table.frame:
        nodes = table.nodes.get(series.name)
        if nodes is not None and short:
            shown, needed = codebook.text_and_codebook(series, nodes)
            texts.append(store_column(shown))  # each takes more memory than its codes
            lines.append(needed)
        elif nodes is not None or (is_interval(series.dtype) and not keep_intervals):
            texts.append(store_column(to_text(series, nodes)))
        elif isinstance(series.dtype, pl.List) and not keep_intervals:
            separator = table.schema[series.name].separator
            if separator or short:  # a database says itself what it cannot hold
                texts.append(item_texts.join(series, separator))
    if not texts:
        return table, pl.DataFrame()
    frame = table.frame.with_columns(texts)
    changed = [name for name in table.names if frame[name].dtype != table.frame[name].dtype]
    numbers = {name: _restore_numbers(frame[name], table.schema[name]) for name in changed}
    again = {name: series for name, series in numbers.items() if series is not None}
    frame = frame.with_columns(again.values())
    others = [name for name in changed if name not in again and table.schema[name].kind is not Kind.SET]
    book = pl.concat(lines) if lines else pl.DataFrame()
    words = [_in_words(table.schema[name], frame[name], book) for name in others]
    return Table(frame, table.schema.replace(*words)), book


def _restore_numbers(texts: pl.Series, column: Column) -> pl.Series | None:
    """Codes that have labels as the numbers they were, if all cells still show single ones."""
    if not column.labels or not all(isinstance(value, int | float) for value, _ in column.labels):
        return None
    numbers = texts.cast(pl.Int64, strict=False)
    return numbers if numbers.null_count() == texts.null_count() else None


def _in_words(column: Column, texts: pl.Series, book: pl.DataFrame) -> Column:
    """A column whose values have become texts; how dates are written still holds of their intervals.

    Labels stay with the texts of their values; a range has those of its ends, a set, also one that the
    codebook has, those of its members.
    """
    if column.kind is Kind.DATE and column.form:
        return Column(column.name, Kind.DATE, column.role, label=column.label, form=column.form)
    values = canonical_text(pl.Series([value for value, _ in column.labels], strict=False))
    meant = dict(zip(values, (label for _, label in column.labels), strict=True))
    labels = []
    if meant:
        shown = texts.drop_nulls().unique().sort()
        sets = codebook.expand_labels(shown.to_frame(), book)[texts.name] if len(book) else shown
        meanings = [_meaning(text, meant) for text in sets]
        labels = [pair for pair in zip(shown, meanings, strict=True) if pair[1]]
    return Column(column.name, Kind.NOMINAL, column.role, label=column.label, labels=tuple(labels))


def _meaning(text: str, meant: Mapping[str, str]) -> str:
    """What a value, a range or a set says in the labels of its values; nothing where one has none."""
    ranged = text.startswith("[")
    members = text[1:-1].split(";") if ranged else named_in(text)
    if not all(member in meant for member in members):
        return ""
    words = [*(meant[member] for member in members), *(["others"] if has_rest(text) else [])]
    return (" to " if ranged else " or ").join(words)


def _bare_schema(frame: pl.DataFrame) -> Schema:
    """Say no more of the columns than their types do."""
    return Schema(tuple(Column(name, _kind_of(dtype)) for name, dtype in frame.schema.items()))


def _kind_of(dtype: pl.DataType) -> Kind:
    if dtype.is_numeric():
        return Kind.CONTINUOUS
    if dtype.is_temporal():
        return Kind.DATE
    return Kind.SET if isinstance(dtype, pl.List) else Kind.NOMINAL


def _require_memory(name: str, size: int) -> None:
    """Refuse a file that is larger than all memory there is, rather than be ended by the system."""
    free = available_memory()
    if active_store() is None and free is not None and size > free:
        raise MemoryLimitError(
            f"`{name}` has {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are free.",
            hint="keep its columns in files: --engine stream (in Python sfumato.engine('stream'))",
        )


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise ReadError(f"`{path}` is a folder, not a file", hint="name a file in it")
    if not is_text(path):
        raise ReadError("The name of the file is not text in UTF-8.", hint="rename it, or its folder")
    if path.exists():
        return
    folder = path.parent
    hint = f"there is no folder `{folder}`"
    if folder.is_dir():
        files = [other for other in folder.iterdir() if other.suffix.lower() in FORMATS]
        near = nearest(path.stem, {other.stem for other in files})  # all are alike in their endings
        names = sorted(other.name for other in files if not near or other.stem in near)
        hint = suggest(path.name, names, f"the folder `{folder}` has no data file")
    raise ReadError(f"File not found: {path}", hint=hint)
