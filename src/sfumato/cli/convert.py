"""Convert a file to another format, with its labels and missing codes where the format has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._options import overwrite_option, plan_option, quiet_option, reading_of, reading_options
from sfumato.cli._screen import say
from sfumato.errors import PlanError, SfumatoError, count_noun

if TYPE_CHECKING:
    import polars as pl

    from sfumato.data.schema import Column, Kind, Schema
    from sfumato.data.table import Table

_EPILOG = (
    "SOURCE and OUT are files, whose suffix is the format, or tables of a database such as "
    "sqlite:people.db?table=persons; SOURCE may be a built-in data set. Nothing is protected, and the "
    "records keep their order: the output is not a release."
)


@click.command("convert", help=__doc__, epilog=_EPILOG)
@click.argument("source")
@click.argument("out")
@plan_option
@click.option("--guard", is_flag=True, help="Disarm text that a spreadsheet would run as a formula.")
@reading_options
@overwrite_option
@quiet_option
def command(
    source: str,
    out: str,
    *,
    plan_path: Path | None,
    guard: bool,
    overwrite: bool,
    quiet: bool,
    **options: str | None,
) -> None:
    """Write a file in another format."""
    from sfumato.io import check_format, check_writable, write

    how = reading_of(source, options)
    originals: list[str | Path] = [] if source.startswith("builtin:") else [source]
    originals += [] if plan_path is None else [plan_path]
    check_format(out, guard=guard)
    check_writable(out, originals=originals, overwrite=overwrite)
    table = _read(source, plan_path, how)
    write(table, out, originals=originals, overwrite=overwrite, guard=guard)
    say(
        f"{count_noun(len(table), 'record')}, {count_noun(len(table.names), 'column')} written to {out}",
        quiet=quiet,
    )
    for note in _lost_facts(table, out):
        say(f"note: {note}", quiet=quiet)
    say("note: nothing was protected, and the records keep their order: this is not a release", quiet=quiet)


def _read(source: str, plan_path: Path | None, how: Mapping[str, Any]) -> Table:
    """The records as they stand, or in the form that a plan declares."""
    from sfumato.data.table import Table
    from sfumato.io import conform, read_contents, read_table
    from sfumato.recipes.plan import Plan

    plan = Plan.read(plan_path) if plan_path else Plan()
    schema = plan.schema
    if plan_path is not None and schema is None:
        raise PlanError(f"the plan `{plan_path}` declares no columns")
    if source.startswith("builtin:"):
        from sfumato import datasets

        table = datasets.from_uri(source)
        return table if schema is None else conform(table.frame, schema)
    how = {**(plan.data.reading if plan.data else {}), **how}
    if schema is not None:
        return read_table(source, schema=schema, **how)
    found = read_contents(source, **how)
    return Table(found.frame, _schema_from_file(found.frame, found.facts))


def _schema_from_file(frame: pl.DataFrame, facts: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Say of the columns what the file does; of what is guessed, only whether a number is a code or amount.

    A CSV file does not tell 1 and 2 that mean male and female from an amount, but a level of measurement is
    written into an SPSS file all the same.
    """
    from sfumato.data.guess.columns import guess
    from sfumato.data.schema import Column, Schema

    numeric = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
    kinds = {name: _kind_of(dtype) for name, dtype in frame.schema.items()}
    kinds |= {one.column.name: one.column.kind for one in guess(frame.select(numeric), facts)}
    return Schema(
        tuple(Column.from_dict(name, {"kind": kinds[name], **facts.get(name, {})}) for name in frame.columns)
    )


def _kind_of(dtype: pl.DataType) -> Kind:
    import polars as pl

    from sfumato.data.generalised.intervals import is_interval
    from sfumato.data.schema import Kind

    if is_interval(dtype):
        dtype = dtype.fields[0].dtype  # type: ignore[attr-defined]
    if dtype.is_numeric():
        return Kind.CONTINUOUS
    if dtype.is_temporal():
        return Kind.DATE
    return Kind.SET if isinstance(dtype, pl.List) else Kind.NOMINAL


def _lost_facts(table: Table, out: str) -> list[str]:
    """Say what the new file lost about the columns, found by reading its first record again."""
    from sfumato.data.guess.overview import name_columns
    from sfumato.io import read_contents

    try:
        again = read_contents(out, rows=1)
    except SfumatoError:  # it is written all the same
        return ["the new file could not be read back: whether it has all labels and missing codes is unknown"]
    lost: dict[str, list[str]] = {}
    before, after = table.frame.schema, again.frame.schema
    for column in table.schema.columns:
        for what in _missing_facts(column, again.facts.get(column.name, {})):
            lost.setdefault(what, []).append(column.name)
        new = after.get(column.name)
        if len(table) and before[column.name].is_temporal() and new is not None and not new.is_temporal():
            lost.setdefault("the type (a date is text there)", []).append(column.name)
    return [f"not kept: {what} of {name_columns(names)}" for what, names in lost.items()]


def _missing_facts(column: Column, facts: Mapping[str, Any]) -> Iterator[str]:
    if column.label and not facts.get("label"):
        yield "the label"
    if len(column.labels) > len(facts.get("labels", ())):
        yield "labels of values"
    codes = len(column.missing_codes) + (column.missing_range is not None)
    if codes > len(facts.get("missing", ())) + (facts.get("missing_range") is not None):
        yield "missing codes"
    natural = all(isinstance(value, int | float) for value in column.order)
    if (
        column.order
        and not facts.get("order")
        and not (natural and list(column.order) == sorted(column.order))
    ):
        yield "the order of values"  # numbers from low to high need none
