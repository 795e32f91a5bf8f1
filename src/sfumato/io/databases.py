"""Tables of SQLite and PostgreSQL databases, read and written by their address (`io.addresses`).

A table is written in one transaction: it appears whole or not at all, and the one it replaces (with its
indexes and permissions) is there until the new one is. The table that a plan reads is never replaced.
"""

from __future__ import annotations

import importlib
import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError, MissingDependencyError, ReadError, SfumatoError, WriteError, suggest
from sfumato.io import textual
from sfumato.io.addresses import (
    POSTGRES,
    SQLITE,
    TIMEOUT,
    Address,
    DatabaseRelation,
    is_address,
    name_beside,
    parse,
    sql_name,
)
from sfumato.io.formats import Contents, Options

_LONGEST_NAME = 63  # bytes; PostgreSQL would cut the rest off

#: The type of a column that is written: the first that fits.
_TYPES: Mapping[str, tuple[tuple[Any, str], ...]] = {
    SQLITE: ((pl.Boolean, "BOOLEAN"), (pl.Int64, "INTEGER"), (pl.Float64, "REAL"), (pl.Date, "DATE"),
             (pl.Datetime("us"), "TIMESTAMP"), (pl.String, "TEXT")),
    POSTGRES: ((pl.Boolean, "BOOLEAN"), (pl.Int64, "BIGINT"), (pl.Float64, "DOUBLE PRECISION"),
               (pl.Date, "DATE"), (pl.Datetime("us"), "TIMESTAMP"), (pl.Datetime, "TIMESTAMPTZ"),
               (pl.Time, "TIME"), (pl.Decimal, "NUMERIC"), (pl.String, "TEXT")),
}  # fmt: skip

#: What is wrong, by the code or text of a fault; the text itself may hold cells and is never shown.
_FAULTS = (
    ("28P01|password authentication failed|no password supplied", "the password is wrong or missing",
     "set the environment variable PGPASSWORD, or write a line into ~/.pgpass"),
    ("28000|no pg_hba.conf entry|role .* does not exist", "the server does not admit this user", ""),
    ("3D000|database .* does not exist", "there is no database of that name", "check the name"),
    ("3F000", "there is no schema of that name", "create it first, or choose another"),
    ("could not translate|onnection refused|timeout expired|unreachable|No route|failed: No such file",
     "the server does not answer", "is it running, and are host and port right?"),
    ("invalid URI query parameter", "unknown settings", "allowed are `table` and the settings of libpq"),
    ("42501|permission denied", "no permission", "ask the owner of the table or schema to grant it"),
    ("25006|readonly database", "it is read-only", "choose one that you may write to"),
    ("55P03|is locked", "another program has locked it", "try again when that is done"),
    ("not a database|malformed", "the file is not an SQLite database, or is damaged or encrypted", ""),
    ("failed to open|unable to open", "the file cannot be opened", "may you use it and its folder?"),
    ("53100|disk is full", "no space left", ""),
    ("22021|22P05|[Ii]nvalid UTF-?8", "it holds text that is not in UTF-8", "correct it in the database"),
    ("2BP01", "other tables or views depend on this one", "choose another name, or drop them first"),
    ("42P07|already exists", "the table was created in the meantime", "try again, or choose another name"),
)  # fmt: skip


def read(address: str | Path, *, rows: int | None = None) -> Contents:
    """Read a table or view: numbers, text, truth values, dates and times.

    A column of SQLite that holds values of several types, and columns of the other types of PostgreSQL, come
    as text. Records come in the order of the primary key, or else as they are stored.
    """
    Options(rows=rows)  # refuses a negative number
    return Contents(_fetch(parse(address), rows))


def count(address: str | Path, names: Collection[str]) -> pl.DataFrame:
    """Count the equal records of a table in these columns, where it is: how many stands in the last column.

    Texts are equal if their bytes are, whatever the collation of a column says: it may take `a` for `A`, and
    larger classes would understate a risk.
    """
    return _fetch(parse(address), None, names)


def _fetch(place: Address, rows: int | None, counted: Collection[str] | None = None) -> pl.DataFrame:
    with session(place, ReadError) as connection:
        found = _find(place, connection)
        if found is None:
            raise _no_table(place, _relations(place, connection))
        fetch = _fetch_sqlite if place.system == SQLITE else _fetch_postgres
        return fetch(connection, found, rows, counted)


def _grouping_query(relation: DatabaseRelation, columns: Mapping[str, str]) -> str:
    """The query that counts the equal rows of these expressions, each under its name."""
    chosen = ", ".join(f"{expression} AS {sql_name(name)}" for name, expression in columns.items())
    counter = sql_name(name_beside(columns))
    groups = ", ".join(columns.values())
    return f"SELECT {chosen}, count(*) AS {counter} FROM {relation} GROUP BY {groups}"  # noqa: S608


def _no_table(place: Address, relations: list[DatabaseRelation]) -> ReadError:
    there = [f"{one.schema}.{one.name}" if place.schema else one.name for one in relations]
    asked = f"{place.schema}.{place.table}" if place.schema else place.table
    hint = suggest(asked, there, "it has no tables")
    return ReadError(f"there is no table `{asked}` in `{place}`", hint=hint)


def write(
    table: Table,
    address: str | Path,
    *,
    originals: Sequence[str | Path] = (),
    overwrite: bool = False,
    trial: bool = False,
) -> None:
    """Write a table in one transaction; ``originals``, which are addresses or files, are never replaced.

    As a ``trial`` it raises what writing would, and leaves everything as it was.
    """
    place = parse(address, error=WriteError)
    frame = _storable(table.frame, place)
    with session(place, WriteError, writing=True) as connection:
        _store(place, connection, frame, _in_the_way(place, connection, originals, overwrite=overwrite))
        if not trial:
            connection.commit()


# Talking to a database -----------------------------------------------------------------------------------


@contextmanager
def session(place: Address, error: type[DataError], *, writing: bool = False) -> Iterator[Any]:
    """Open a connection in a transaction, which ends with the block; faults are told without any cell."""
    try:
        driver = importlib.import_module(f"adbc_driver_{place.system}.dbapi")
    except ImportError:
        package = f"adbc-driver-{place.system}"
        raise MissingDependencyError.of(package, extra="databases", purpose=f"`{place}`") from None
    file = Path(place.place).absolute()
    new = place.system == SQLITE and not file.exists()
    if new and not (writing and file.parent.is_dir()):
        what = f"Folder not found: {file.parent}" if writing else f"File not found: {place.place}"
        raise error(what, hint="check the path")
    try:
        connection = driver.connect(place.uri(writing=writing))
        try:
            yield connection
        finally:
            connection.close()  # undoes what was not committed
    except SfumatoError:
        raise
    except (driver.Error, pl.exceptions.PolarsError, OSError, ValueError) as fault:
        raise _database_error(fault, place, error) from None
    finally:
        if new and file.is_file() and not file.stat().st_size:
            file.unlink()  # nothing came of it


def _database_error(fault: Exception, place: Address, error: type[DataError]) -> DataError:
    state = getattr(fault, "sqlstate", None) or ""
    for pattern, why, hint in _FAULTS:
        if re.search(pattern, f"{state} {fault}"):
            return error(f"cannot use the database `{place}`: {why}", hint=hint)
    code = f" (error code {state})" if state else ""
    return error(f"cannot use the table `{place.table}` of `{place}`{code}")


def _ask(connection: Any, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Have something done, or a few rows of what a database says of itself."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())


def _fetch_frame(connection: Any, query: str, options: Mapping[str, str] | None = None) -> pl.DataFrame:
    with connection.cursor(adbc_stmt_kwargs=options) as cursor:
        cursor.execute(query)
        found = cursor.fetch_arrow_table()
        found.validate(full=True)  # SQLite holds any bytes as text
        return pl.DataFrame(pl.from_arrow(found))


def _relations(place: Address, connection: Any) -> list[DatabaseRelation]:
    listed = _POSTGRES_RELATIONS if place.system == POSTGRES else _SQLITE_RELATIONS
    return [DatabaseRelation(*row) for row in _ask(connection, listed)]


def _find(place: Address, connection: Any) -> DatabaseRelation | None:
    return next((found for found in _relations(place, connection) if place.means(found)), None)


# Reading -------------------------------------------------------------------------------------------------


_SQLITE_RELATIONS = """SELECT 'main', name, type FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"""
_POSTGRES_RELATIONS = """
    SELECT n.nspname::text, c.relname::text,
           CASE WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid) THEN 'part of another table'
                WHEN c.relkind = 'r' THEN 'table' ELSE 'view' END,
           c.oid::int8, pg_table_is_visible(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)'"""
_POSTGRES_COLUMNS = """
    SELECT a.attname::text, coalesce(b.typname, t.typname)::text, coalesce(a.attnum = ANY (i.indkey), false)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
    LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
    WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
#: The types that are read as they are; all others are read as text.
_POSTGRES_TYPES = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "date", "timestamp", "timestamptz", "time"}
)


def _fetch_postgres(
    connection: Any, relation: DatabaseRelation, rows: int | None, counted: Collection[str] | None
) -> pl.DataFrame:
    order = ("synchronize_seqscans = off", "max_parallel_workers_per_gather = 0")  # the same every time
    for setting in (*(order if counted is None else ()), f"lock_timeout = '{TIMEOUT}s'"):
        _ask(connection, f"SET LOCAL {setting}")
    columns = _ask(connection, _POSTGRES_COLUMNS, relation.key)
    columns = [each for each in columns if counted is None or each[0] in counted]
    types = {name: word for name, word, _ in columns}
    moments = [name for name, word in types.items() if word in {"date", "timestamp", "timestamptz"}]
    if moments:  # PostgreSQL has infinite dates, which come out as some date or other
        looks = ", ".join(f"bool_or(NOT isfinite({sql_name(name)}))" for name in moments)
        [infinite] = _ask(connection, f"SELECT {looks} FROM {relation}")  # noqa: S608
        types |= {name: "text" for name, wrong in zip(moments, infinite, strict=True) if wrong}
    casts = {
        name: f"{sql_name(name)}::{word if word in _POSTGRES_TYPES else 'text'}"
        for name, word in types.items()
    }
    if counted is not None:
        exact = {
            name: f'({each} COLLATE "C")' if each.endswith("::text") else each for name, each in casts.items()
        }
        frame = _fetch_frame(connection, _grouping_query(relation, exact))
        return pl.DataFrame([_number(series, types.get(series.name, "int8")) for series in frame])
    chosen = ", ".join(f"{each} AS {sql_name(name)}" for name, each in casts.items())
    key = ", ".join(sql_name(name) for name, _, in_key in columns if in_key)
    tail = (f" ORDER BY {key}" if key else "") + ("" if rows is None else f" LIMIT {rows}")
    frame = _fetch_frame(connection, f"SELECT {chosen} FROM {relation}{tail}")  # noqa: S608
    return pl.DataFrame([_number(series, types[series.name]) for series in frame])


def _number(series: pl.Series, word: str) -> pl.Series:
    """Decimals as numbers; whole ones with more digits than a number holds are names, and stay text."""
    if word != "numeric":
        return series.cast(pl.Int64) if series.dtype.is_integer() else series
    read = textual.numbers(series)
    return series if read is None or textual.is_code(series, read) else read


def _fetch_sqlite(
    connection: Any, relation: DatabaseRelation, rows: int | None, counted: Collection[str] | None
) -> pl.DataFrame:
    """Read a table after looking through each column, since in SQLite every cell has its own type."""
    listed = "SELECT name, upper(type) FROM pragma_table_xinfo(?) WHERE hidden <> 1"
    declared = dict(_ask(connection, listed, relation.name))
    declared = {name: word for name, word in declared.items() if counted is None or name in counted}
    part = f"{relation} LIMIT {-1 if rows is None else rows}"
    looks = ", ".join(f"group_concat(DISTINCT typeof({sql_name(name)}))" for name in declared)
    [(n_rows, *kinds)] = _ask(connection, f"SELECT count(*), {looks} FROM (SELECT * FROM {part})")  # noqa: S608
    held = [set((kind or "null").split(",")) - {"null"} for kind in kinds]
    alike = {name: _uniform(sql_name(name), kind) for name, kind in zip(declared, held, strict=True)}
    chosen = ", ".join(f"{each} AS {sql_name(name)}" for name, each in alike.items())
    query = f"SELECT {chosen} FROM {part}"  # noqa: S608
    if counted is not None:
        query = _grouping_query(relation, {name: f"({each} COLLATE BINARY)" for name, each in alike.items()})
    # The driver takes the types from the first batch alone, so that it must hold all.
    batch = {"adbc.sqlite.query.batch_rows": str(max(n_rows, 1))}
    frame = _fetch_frame(connection, query, batch)
    columns = zip(frame, declared.values(), held, strict=False)  # the last may be counts
    found = [_cast_to_declared(series, word, empty=not kind) for series, word, kind in columns]
    return pl.DataFrame([*found, *frame.get_columns()[len(found) :]])


def _uniform(name: str, kinds: set[str]) -> str:
    """The cells of a column as cells of one type, in the words of SQLite."""
    if len(kinds) <= 1 or kinds == {"integer", "real"}:  # the driver makes numbers of one sort of these
        return name
    return f"CASE typeof({name}) WHEN 'blob' THEN hex({name}) ELSE CAST({name} AS TEXT) END"


def _cast_to_declared(series: pl.Series, word: str, *, empty: bool) -> pl.Series:
    """Truth values and dates, which SQLite holds as numbers and text, as the column was declared."""
    if empty:
        kinds = (("INT", pl.Int64), ("REAL|FLOA|DOUB|NUM|DEC", pl.Float64), ("BOOL", pl.Boolean),
                 ("DATE$", pl.Date), ("DATETIME|TIMESTAMP", pl.Datetime("us")), ("", pl.String))  # fmt: skip
        return series.cast(next(kind for words, kind in kinds if re.search(words, word)))
    if "BOOL" in word and series.dtype == pl.Int64 and series.drop_nulls().is_in([0, 1]).all():
        return series.cast(pl.Boolean)
    if re.match("DATE|TIMESTAMP", word) and series.dtype == pl.String:
        readings = textual.dates(series)
        return readings[0] if len(readings) == 1 else series
    return series


# Writing -------------------------------------------------------------------------------------------------


def _in_the_way(
    place: Address, connection: Any, originals: Sequence[str | Path], *, overwrite: bool
) -> DatabaseRelation | None:
    """The table that is there already and may be replaced, if there is one."""
    old = _find(place, connection)
    if old is None:
        return None
    what = f"the table `{place.table}` of `{place}`"
    if any(_spoils(place, connection, old, original) for original in originals):
        hint = "an original is never overwritten: choose another name"
        raise WriteError(f"{what} is an original", hint=hint)
    if not overwrite or old.kind != "table":
        hint = "choose another name" + (
            ", or replace it: --overwrite (in Python overwrite=True)" if old.kind == "table" else ""
        )
        raise WriteError(
            f"{what} exists already{'' if old.kind == 'table' else f', as a {old.kind}'}", hint=hint
        )
    return old


def _spoils(place: Address, connection: Any, old: DatabaseRelation, original: str | Path) -> bool:
    """Whether replacing a table would change an original, by whatever name that is called."""
    other = parse(original, error=WriteError) if is_address(original) else Address(SQLITE, str(original), "")
    if other.system != place.system:
        return False
    if place.system == SQLITE:
        if not Path(other.place).exists() or not Path(place.place).samefile(other.place):
            return False
        found = _find(other, connection)  # a view may show the table
        return not other.table or (found is not None and (found.kind == "view" or found.name == old.name))
    if other.table != place.table:  # a view that shows the table keeps it from being dropped
        return False
    with session(other, WriteError) as there:
        found = _find(other, there)  # of one that cannot be seen it cannot be said which it is
        query = "SELECT pg_postmaster_start_time()::text, current_database()::text"
        return _ask(there, query) == _ask(connection, query) and (found is None or found.key == old.key)


def _store(place: Address, connection: Any, frame: pl.DataFrame, old: DatabaseRelation | None) -> None:
    """Put the records into a new table, which then takes the place of the old one."""
    if place.system == SQLITE:  # or it would refuse a name that a view mentions
        _ask(connection, "PRAGMA legacy_alter_table = ON")
        _ask(connection, "PRAGMA secure_delete = ON")  # or a table that is replaced stays in free pages
        schema = "main"
    else:
        _ask(connection, f"SET LOCAL lock_timeout = '{TIMEOUT}s'")
        home = place.schema or (old.schema if old else _ask(connection, "SELECT current_schema()")[0][0])
        schema = home or "public"
    new = DatabaseRelation(schema, f"sfumato_{secrets.token_hex(8)}", "table")
    columns = ", ".join(f"{sql_name(series.name)} {_type(series, place)}" for series in frame)
    _ask(connection, f"CREATE TABLE {new} ({columns})")
    with connection.cursor() as cursor:
        there = {"db_schema_name": schema} if place.system == POSTGRES else {}
        cursor.adbc_ingest(new.name, frame.to_arrow(), mode="append", **there)
    if old is not None:
        _ask(connection, f"DROP TABLE {old}")
    _ask(connection, f"ALTER TABLE {new} RENAME TO {sql_name(place.table)}")


def _type(series: pl.Series, place: Address) -> str | None:
    return next((word for dtype, word in _TYPES[place.system] if series.dtype == dtype), None)


def _storable(frame: pl.DataFrame, place: Address) -> pl.DataFrame:
    """The columns in types that the database holds, or a `WriteError`."""
    names = [name.encode() for name in (place.table, *frame.columns)]
    folded = {name.lower() if place.system == SQLITE else name for name in names[1:]}
    if not frame.width or len(folded) < frame.width or any(b"\0" in name for name in names):
        raise WriteError("the database needs columns, each with a name of its own without zero bytes")
    if place.system == POSTGRES and max(map(len, names)) > _LONGEST_NAME:
        raise WriteError(f"a name is longer than {_LONGEST_NAME} bytes, the most that PostgreSQL takes")
    return pl.DataFrame([_storable_column(series, place) for series in frame])


def _storable_column(series: pl.Series, place: Address) -> pl.Series:
    dtype, stored, lite = series.dtype, series, place.system == SQLITE
    if dtype.is_integer():
        stored = series.cast(pl.Int64, strict=False)
    elif dtype.is_float() or (lite and dtype.is_decimal()):
        stored = series.cast(pl.Float64)
    elif dtype in (*TEXTUAL, pl.Null):
        stored = series.cast(pl.String)
    elif isinstance(dtype, pl.Datetime) or dtype == pl.Time:
        zoned = getattr(dtype, "time_zone", "") is not None
        stored = series.dt.to_string("iso") if lite and zoned else series
        stored = stored.dt.cast_time_unit("us") if isinstance(stored.dtype, pl.Datetime) else stored
    fault = ""
    if _type(stored, place) is None:
        fault = f"values of type {dtype.base_type()}"
    elif stored.null_count() > series.null_count():
        fault = "numbers that are too large"
    elif not lite and stored.dtype == pl.String and stored.str.contains("\0", literal=True).any():
        fault = "texts with a zero byte"
    if fault:
        raise WriteError(f"the database cannot store the column `{series.name}`: it has {fault}")
    return stored
