"""Postprocess a release before it is judged and written.

In this order: repair what the schema promises, drop columns and identifiers, mark what was suppressed, name
no value in a set that few have, average weights, rename people, and forget what no record shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.release import ExactWeights, Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.generalised.nodes import WILDCARD, canonical_text
from sfumato.data.generalised.rare_values import hide_rare_values, known_of, read_released_column
from sfumato.data.generalised.text_forms import KnownValues
from sfumato.data.hidden_content import strip_hidden
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.pseudonyms import derive_key, pseudonyms
from sfumato.data.repair import repair
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.kernels.arrays import Flags, Ints
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import remaining_identifiers
from sfumato.releasing.budget_coverage import coverage_of
from sfumato.releasing.read_release import domains_of
from sfumato.releasing.safe_weights import average_weights


def postprocess(
    release: Release, original: Table, output: Output, run: Run, *, key: bytes | None = None
) -> tuple[Release, dict[str, int]]:
    """The release as it would be written, and how many cells that changed, by what.

    People are renamed by the ``key`` of their pseudonyms, or else by the run's secret of persons.
    """
    (first, table), *others = release.tables.items()
    changes = dict[str, int]()
    dropped = {*output.drop, *remaining_identifiers(original.schema, output.drop)}
    if output.repair:
        if not release.plain:
            raise PlanError(
                "this release cannot be repaired: its method separates values from their records",
                hint="remove `repair` from the output: these values are those of the original",
            )
        if release.budget:  # what is not private may not mend what is
            unseen = dropped & set(coverage_of(release, original).uncovered)
            table = table.select([name for name in table.names if name not in unseen])
        mended = repair(table, _originals_of(release, original))
        table = mended.table
        changes.update(mended.counts)
    if release.source_rows is not None and not release.budget:  # which holes are true is hidden there
        apart = {name for group in release.bucketed_columns for name in group}
        table, marked = mark_suppressed(table, original, release.source_rows, but=apart | dropped)
        changes.update({f"`{name}` marked as suppressed": count for name, count in marked.items()})
    tables, exact = {}, None
    for name, each in ((first, table), *others):
        left, notes = _table_to_release(each, original, dropped, run)
        if name == first and output.weights == "safe":  # the weights of other tables are counts
            left, exact, own = _with_safe_weights(left, release, original)
            notes |= own
        if any(column.pseudonym for column in left.schema.columns):
            left = rename_people(left, run.randomness.person_secret if key is None else key)
        tables[name] = forget_unshown(left)
        changes |= notes
    return replace(release, tables=tables, exact_weights=exact), changes


def postprocessor(output: Output) -> Callable[[Release, Table, Run], Release]:
    """What is done to a release of a table before it is judged and written as an output says."""
    return partial(_postprocess_as, output)


def _postprocess_as(output: Output, release: Release, original: Table, run: Run) -> Release:
    return postprocess(release, original, output, run)[0]


def _table_to_release(
    table: Table, original: Table, dropped: Collection[str], run: Run
) -> tuple[Table, dict[str, int]]:
    """One table without what is dropped, as it will be read, and without values in its sets that few have."""
    table = table.select([name for name in table.names if name not in dropped])
    changes, domains = dict[str, int](), domains_of(original, run.resources)
    for name in table.names:
        if name not in original.schema or not table.is_generalised(name):
            continue
        if (known := known_of(original, name, domains.get(name, ()))) is None:
            continue
        table = read_released_column(table, name, original, known.values)
        table, count = _without_naming(table, name, original, known, run)
        changes |= {f"`{name}` with rare values hidden": count} if count else {}
    return table, changes


def _with_safe_weights(
    table: Table, release: Release, original: Table
) -> tuple[Table, ExactWeights | None, dict[str, int]]:
    """The table with averaged weights, what they were, and how many cells that changed."""
    safe, exact = average_weights(table, release, original)
    if exact is None:
        return table, None, {}
    name = str(table.schema.only_role(Role.WEIGHT))
    count = int((np.nan_to_num(safe.numbers(name)) != np.nan_to_num(exact.values)).sum())
    return safe, exact, {f"`{name}` averaged within equivalence classes": count} if count else {}


def _without_naming(
    table: Table, name: str, original: Table, known: KnownValues, run: Run
) -> tuple[Table, int]:
    """Name no value in a set that few have, unless the values of the column are declared by a hierarchy."""
    if name not in table.nodes or original.schema[name].hierarchy:
        return table, 0
    leaves = table.nodes[name].leaves
    declared = (each for each in run.resources.values() if isinstance(each, Hierarchy))
    if any(leaves.is_in(each.levels[:, 0].implode()).all() for each in declared):
        return table, 0
    return hide_rare_values(table, name, frozenset(known.few))


def _originals_of(release: Release, original: Table) -> Table | None:
    """The original of each released record, beside it; None when records do not map.

    None too where privacy was paid for: what looks at the original again would tell more than was spent.
    """
    rows = None if release.budget else release.source_rows
    return None if rows is None else original.take(rows)


def mark_suppressed(
    table: Table, original: Table, source_rows: Ints, *, but: Collection[str] = ()
) -> tuple[Table, dict[str, int]]:
    """Write the declared code where a value is gone that the original has, to tell it from an unknown one.

    A generalised column has no room for it: there a suppressed cell stays missing, as in the classes that the
    steps made.
    """
    counts: dict[str, int] = {}
    for column in table.schema.columns:
        if column.suppressed is None or column.name not in original.schema or column.name in but:
            continue
        if table.is_generalised(column.name):
            continue
        unknown = np.append(original.missing(column.name), True)  # a source of −1 is nobody, of no value
        gone = table.missing(column.name) & ~unknown[source_rows]
        gone &= table.frame[column.name].is_null().to_numpy()
        if gone.any():
            counts[column.name] = int(gone.sum())
            table = table.with_values(column.name, _with_code(table.frame[column.name], column, gone))
    return table, counts


def _with_code(series: pl.Series, column: Column, gone: Flags) -> pl.Series:
    textual = isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum)
    if not textual and (not series.dtype.is_numeric() or isinstance(column.suppressed, str)):
        raise PlanError(
            f"`suppressed` of column `{column.name}` must be a code its values can hold, "
            f"got: a {type(column.suppressed).__name__} for {series.dtype.base_type()}"
        )
    values = series.cast(pl.String) if textual else series
    code: Any = str(column.suppressed) if textual else column.suppressed
    marked = pl.select(pl.when(pl.Series(gone)).then(pl.lit(code)).otherwise(values)).to_series()
    return marked.cast(values.dtype) if textual or float(code).is_integer() else marked


def rename_people(table: Table, secret: bytes) -> Table:
    """Replace the numbers of every column that has a ``pseudonym``; columns of one pseudonym still link."""
    for column in table.schema.columns:
        if column.pseudonym:
            key = derive_key(secret, column.pseudonym)
            numbers = table.frame[column.name].set(pl.Series(table.missing(column.name)), None)
            named = replace(column, kind=Kind.NOMINAL, order=(), lower=None, upper=None, integer=False)
            table = table.with_values(column.name, pseudonyms(numbers, key), column=named)
    return table


def forget_unshown(table: Table) -> Table:
    """Leave nothing below a missing cell, and no category, label or missing code that no record has.

    Columns of generalised values are made anew as text when they are written.
    """
    frame = table.frame.with_columns(strip_hidden(table.frame.drop(table.nodes)))
    columns = [_drop_absent_codes(column, table) for column in table.schema.columns]
    return replace(table, frame=frame, schema=table.schema.replace(*columns))


def _drop_absent_codes(column: Column, table: Table) -> Column:
    """A column that declares no more codes and labels than its records show."""
    bare = replace(column, missing=(), missing_range=None, suppressed=None)
    codes = tuple(code for code in column.missing if _occurs(replace(bare, missing=(code,)), bare, table))
    span = column.missing_range
    if span is not None and not _occurs(replace(bare, missing_range=span), bare, table):
        span = None
    labels = column.labels
    if labels:
        shown = {*_shown_texts(table, column.name), *_texts((*codes, column.suppressed))}
        values = _texts(value for value, _ in labels)
        labels = tuple(pair for pair, text in zip(labels, values, strict=True) if text in shown)
    return replace(column, missing=codes, missing_range=span, labels=labels)


def _occurs(coded: Column, bare: Column, table: Table) -> bool:
    """Whether some record shows what a column declares to be a code for a missing value."""
    frame = table.frame.select(bare.name)
    counts = [Table(frame, Schema((column,))).missing(bare.name).sum() for column in (coded, bare)]
    return bool(counts[0] > counts[1])


def _texts(values: Iterable[Any]) -> list[str]:
    return [canonical_text(pl.Series([value])).item() for value in values if value is not None]


def _shown_texts(table: Table, name: str) -> set[str]:
    """The values that records show alone, as ends of a range or in a set, as texts."""
    series, nodes = table.frame[name], table.nodes.get(name)
    if nodes is not None:
        used = series.filter(series.cast(pl.String) != WILDCARD).unique()
        return {member for code in nodes.codes(used) for member in nodes.members_of(int(code))}
    if is_interval(series.dtype):
        return {text for end in ends(series) for text in canonical_text(end.unique()).drop_nulls()}
    plain = series.explode() if isinstance(series.dtype, pl.List) else series
    return set(canonical_text(plain.unique()).drop_nulls())


def dangling(tables: Mapping[str, Table]) -> dict[str, int]:
    """How many numbers of people are in one table and not in another that has them, by pair of columns."""
    holders: dict[str, list[tuple[str, pl.Series]]] = {}
    for name, table in tables.items():
        for column in table.schema.columns:
            if column.pseudonym:
                numbers = table.frame[column.name].drop_nulls().unique()
                here = f"{name}.{column.name}" if name else column.name
                holders.setdefault(column.pseudonym, []).append((here, numbers))
    found = {}
    for places in holders.values():
        for here, numbers in places:
            for there, others in places:
                lost = int((~numbers.is_in(others.implode())).sum()) if here != there else 0
                if lost:
                    found[f"`{here}` not in `{there}`"] = lost
    return found
