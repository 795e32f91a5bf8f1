"""Reads what someone names: a file, a frame, a built-in data set, the data of a plan and its other files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from sfumato.core.measure import Measure
from sfumato.core.params import Columns
from sfumato.data.guess.columns import guess_schema
from sfumato.data.scenario import Scenario
from sfumato.data.schema import UNIT_ROLES, Role, Schema, with_roles
from sfumato.data.table import Table
from sfumato.errors import NoteWarning, ParameterError, PlanError, UnknownNameError, quoted
from sfumato.io import FORMATS, addresses, conform, databases, frames, read_contents, read_table
from sfumato.io.formats import READING, FileDialect
from sfumato.io.hierarchies import read_hierarchy
from sfumato.recipes.parts import Source, locate
from sfumato.recipes.plan import Plan

if TYPE_CHECKING:
    from sfumato.data.guess.overview import Overview

#: Records that are looked at to see how a text is written, or what the columns of a database are.
_ROWS_LOOKED_AT = 10_000


def load(plan: Plan) -> Table:
    """Read the plan's data as its schema says."""
    if plan.data is None:
        raise PlanError("the plan names no data", hint='add [data] with path = "…"')
    return _read_source(plan.data, plan, schema=plan.schema)


def load_resources(plan: Plan, schema: Schema | None = None) -> dict[str, Any]:
    """Read the other files the plan uses; columns they share with its table are of the kinds declared there.

    ``schema`` is that of the table where the plan declares none.
    """
    return {
        name: read_hierarchy(str(source.check(plan.folder)))
        if source.holds == "hierarchy"
        else _read_source(source, plan, like=plan.schema or schema)
        for name, source in plan.resources.items()
    }


def reading_of(plan: Plan) -> FileDialect | None:
    """How the plan's data are read, so that a release can be written likewise; None if there is one way."""
    source = plan.data
    if source is None or source.is_builtin or addresses.is_address(source.path):
        return None
    place = Path(locate(source.path, plan.folder))
    if FORMATS.get(place.suffix.lower()) not in {"delimited", "excel"}:
        return None
    return read_contents(place, schema=plan.schema, rows=_ROWS_LOOKED_AT, **source.reading).reading


def _read_source(
    source: Source, plan: Plan, *, schema: Schema | None = None, like: Schema | None = None
) -> Table:
    if source.is_builtin:
        from sfumato import datasets

        table = datasets.from_uri(source.path)
        return table if schema is None else Table(table.frame, schema)
    return read_table(source.check(plan.folder), schema=schema, like=like, **source.reading)


def is_plan(data: Any) -> bool:
    """Whether this is the path of a plan, and so stands for its data with its schema."""
    return isinstance(data, str | Path) and Path(data).suffix.lower() == ".toml"


def read(
    source: Any,
    *,
    schema: Schema | None = None,
    roles: Mapping[str, str] | Literal["guess"] | None = "guess",
    **reading: Any,
) -> Table:
    """Read a file, a frame (pandas, polars, Arrow), the data of a plan, or a built-in data set.

    A built-in data set is said like ``builtin:rand?per=person``.

    Without a schema the kinds and roles of the columns are guessed; look at ``table.schema``. ``roles`` are
    those of columns by name, ``{"age": "key"}``; the others are guessed, and with None no role is. A weight
    is never guessed here: a column only weights results if a schema or ``roles`` says so. ``reading`` says
    how a file is written where that is not to be found out: ``delimiter``, ``decimal``, ``encoding``,
    ``header``, ``sheet``.
    """
    require_file(source, reading)
    if isinstance(source, Table):
        return source if schema is None else Table(source.frame, schema)
    if isinstance(source, str) and source.startswith("builtin:"):
        from sfumato import datasets

        table = datasets.from_uri(source)
        return table if schema is None else Table(table.frame, schema)
    if is_plan(source) and schema is None:
        return load(Plan.read(Path(source)))
    if isinstance(source, str | Path):
        table = read_table(source, schema=schema, **reading)
    else:
        frame, _ = frames.to_polars(source)
        table = conform(frame, schema or guess_schema(frame))
    return table if schema is not None else replace(table, schema=_with_roles(table.schema, roles))


def require_file(source: Any, reading: Mapping[str, Any]) -> None:
    """Refuse to be told how something is read that is no file of data."""
    if not reading:
        return
    unknown = next((name for name in reading if name not in READING), None)
    if unknown is not None:
        raise UnknownNameError.of("way to say how a file is read", unknown, READING)
    named = isinstance(source, str | Path)
    if is_plan(source) or not named or str(source).startswith("builtin:"):
        what = "a plan" if is_plan(source) else "a built-in data set" if named else "a table"
        raise ParameterError(
            f"`{min(reading)}` can only be given for a data file, got: {what}",
            hint="write it in [data] of the plan" if is_plan(source) else "",
        )


def _with_roles(guessed: Schema, roles: Mapping[str, str] | Literal["guess"] | None) -> Schema:
    """What was guessed, with the roles that were given, and no weight that nobody has named."""
    for column in guessed.columns:
        if roles is None or column.role is Role.WEIGHT:
            guessed = guessed.replace(replace(column, role=None))
    return with_roles(guessed, roles if isinstance(roles, Mapping) else {})


def as_table(data: Any, *, schema: Schema | None = None, **reading: Any) -> tuple[Table, Any]:
    """Make a ``Table`` of whatever came in, and a way back to its type."""
    if isinstance(data, Table | str | Path) or reading:
        return read(data, schema=schema, **reading), None
    frame, native = frames.to_polars(data)
    return read(frame, schema=schema), lambda out: frames.to_native(out, native)


def is_foreign_query(data: Any) -> bool:
    """Whether this is a lazy frame of another package than polars, which nobody has run."""
    return not isinstance(data, Table | str | Path | pl.LazyFrame) and frames.as_lazy(data) is not None


def read_counts(
    source: Any,
    measures: Sequence[Measure],
    scenarios: Sequence[Scenario],
    *,
    schema: Schema | None = None,
    as_released: bool = False,
) -> Table:
    """Count the equal records of a table of a database, or of a lazy frame, where it is.

    They are counted in the columns that the measures look at for these intruders, each combination with its
    number (`Table.counts`); nothing else is read. Without a schema what the columns are is guessed from the
    first records. Where the table is judged ``as_released``, columns that link records are refused.
    """
    if is_plan(source) and schema is None:
        plan = Plan.read(Path(source))
        if plan.data is None:
            raise PlanError("the plan names no data", hint='add [data] with path = "…"')
        source, schema = plan.data.check(plan.folder), plan.schema
    lazy = None if isinstance(source, str | Path) else frames.as_lazy(source)
    if lazy is None and not (isinstance(source, str) and addresses.is_address(source)):
        raise ParameterError(
            "`in_database` needs the address of a table in a database, or a lazy frame",
            hint="write postgresql://user@host/database?table=NAME, or leave it out",
        )
    if schema is None:
        rows = _ROWS_LOOKED_AT
        schema = _guess_from_first(
            read_contents(source, rows=rows).frame if lazy is None else frames.first_records(lazy, rows)
        )
    links = [each.name for each in schema.columns if each.role in UNIT_ROLES or each.pseudonym]
    if as_released and links:
        raise ParameterError(
            f"{quoted(links)} may link records, and a person's are judged together, which counts do not tell",
            hint="leave out --in-database",
        )
    names = _columns_counted(schema, measures, scenarios)
    if not names:
        raise ParameterError("there is no column to count by", hint="name those that the intruder knows")
    counted = databases.count(source, names) if lazy is None else frames.count_lazy(lazy, names)
    *columns, counts = counted.get_columns()
    table = conform(pl.DataFrame(columns), schema.select(names))
    return _with_lone_records(replace(table, counts=counts.to_numpy().astype(np.int64)), measures)


def _guess_from_first(frame: pl.DataFrame) -> Schema:
    if len(frame) == _ROWS_LOOKED_AT:
        note = (
            f"kinds and roles are guessed from the first {_ROWS_LOOKED_AT:,} records, which may not show "
            "that persons have several; declare them in a plan, in Python by `schema`"
        )
        warnings.warn(NoteWarning(note), stacklevel=4)
    return _with_roles(guess_schema(frame), "guess")


def _columns_counted(
    schema: Schema, measures: Sequence[Measure], scenarios: Sequence[Scenario]
) -> tuple[str, ...]:
    """The columns that some intruder knows or some measure names, and those of persons and weights."""
    wanted = {*schema.with_role(Role.PERSON), *schema.with_role(Role.WEIGHT)}
    for scenario in scenarios:
        wanted.update(schema.resolve(scenario.columns) or schema.known_columns())
    for measure in measures:
        given = (getattr(measure, each.name) for each in measure.parameters())
        wanted.update(name for each in given if isinstance(each, Columns) for name in schema.resolve(each))
    return tuple(name for name in schema.names if name in wanted)


def _with_lone_records(table: Table, measures: Sequence[Measure]) -> Table:
    """Have each record stand for itself of which nobody is said, or whose missing keys make it be alone."""
    alone = np.zeros(len(table), dtype=np.bool_)
    at_worst = any(getattr(measure, "missing", "") == "worst" for measure in measures)
    for name in table.names:
        if at_worst or table.schema[name].role is Role.PERSON:
            alone |= table.missing(name)
    return table.tell_apart(alone)


def inspect(
    data: Any, *, roles: Mapping[str, str] | None = None, combinations: int = 0, **reading: Any
) -> Overview:
    """Say what is in a table: what each column seems to be and why, and who is alone in the likely keys.

    ``data`` is a path, a plan, a pandas, polars or Arrow table or a ``Table``; ``roles`` are those that are
    decided, ``{"edu": "key"}``. ``combinations`` of up to so many columns are looked at, too: which of them
    tell records apart, and so are quasi-identifiers, is in ``.combinations`` of the result. ``reading`` says
    how a file is to be read (``delimiter``, ``decimal``, ``encoding``, ``header``, ``sheet``). The result
    shows itself; ``.schema`` is what it proposes.
    """
    from sfumato.data.combinations import combine_columns

    found, frame = _overview(data, roles or {}, reading)
    if not combinations:
        return found
    return replace(found, combinations=combine_columns(Table(frame, found.schema), combinations))


def _overview(
    data: Any, roles: Mapping[str, str], reading: Mapping[str, Any]
) -> tuple[Overview, pl.DataFrame]:
    """What is in a table at a glance, and its frame."""
    from sfumato.data.guess.columns import guess, guess_related
    from sfumato.data.guess.overview import overview_of_schema, survey

    require_file(data, reading)
    if is_plan(data) or isinstance(data, Table) or (isinstance(data, str) and data.startswith("builtin:")):
        table = read(data)
        return overview_of_schema(replace(table, schema=with_roles(table.schema, roles))), table.frame
    if isinstance(data, str | Path):
        contents = read_contents(data, **reading)
        frame, facts, dialect = contents.frame, contents.facts, contents.reading
    else:
        frame, facts, dialect = frames.to_polars(data)[0], {}, None
    for name in roles:
        if name not in frame.columns:
            raise UnknownNameError.of("column", name, frame.columns)
    guesses = guess(frame, facts)
    found = survey(frame, [each.with_given_role(roles) for each in guesses], guess_related(frame, guesses))
    if dialect:
        found = replace(found, notes=tuple(dialect.notes()), reading=dialect.to_dict())
    return found, frame
