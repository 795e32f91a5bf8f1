"""Reads a release back from its files, as the original's schema and the private trail say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.data.buckets import ReleaseLayout
from sfumato.data.classes.classes import column_codes
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.persons import is_out_of_order
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.io import FORMATS, conform, frames
from sfumato.io import read as read_frame
from sfumato.io.delimited import TABBED, is_utf8
from sfumato.recipes.parts import fingerprint
from sfumato.releasing.trail import read_rows, source_rows_of_file, trail_of_file


def conform_released(
    frame: pl.DataFrame,
    original: Table,
    others: Sequence[Column] = (),
    *,
    resources: Mapping[str, Any] | None = None,
) -> Table:
    """Read a released frame as the original's schema and hierarchies say, and ``others`` that it has not."""
    known = [name for name in frame.columns if name in original.schema]
    if not known:
        raise ParameterError("the protected table and the original have no column in common")
    schema = _released_schema(frame, original.schema.select(known))
    schema = replace(schema, columns=(*schema.columns, *others))
    domains = domains_of(original, resources or {})
    return conform(frame.select(schema.names), schema, original=original, domains=domains)


def domains_of(original: Table, resources: Mapping[str, Any]) -> dict[str, list[str]]:
    """The values of columns that are declared by a hierarchy, whether anybody has them or not."""
    trees = {column.name: resources.get(column.hierarchy) for column in original.schema.columns}
    return {
        name: tree.levels.to_series(0).drop_nulls().to_list()
        for name, tree in trees.items()
        if isinstance(tree, Hierarchy)
    }


def read_like(path: Path, reading: Mapping[str, Any], *, text: Collection[str] = ()) -> pl.DataFrame:
    """Read a released file, which is written as its original was: but for its header, sheet and suffix.

    Columns of ``text`` are kept as they are written.

    Where the encoding had no letter for a value the release is in UTF-8.
    """
    suffix = path.suffix.lower()
    how = {name: reading[name] for name in ("delimiter", "decimal", "encoding") if name in reading}
    if FORMATS.get(suffix) != "delimited":
        how = {}
    if suffix in TABBED:
        how.pop("delimiter", None)
    if "encoding" in how and is_utf8(path):
        del how["encoding"]
    return read_frame(path, text=text, **how)


#: Of a column that a file writes so that people whom it tells apart would count as alike.
_SHOWN_APART = (
    "`{}` writes equal values in several ways, such as 1 and 1.0 or two codes for missing, or has numbers of "
    "more digits than are read: write each value in one way, and judge that file"
)


def shown_apart(merged: Collection[str], schema: Schema, scenarios: Iterable[Scenario]) -> list[str]:
    """What is wrong with each of the ``merged_columns``, unless its values are only what is to be learnt."""
    known = {name for each in scenarios for name in each.columns}
    learnt = {*schema.with_role(Role.SENSITIVE)} - known
    return [_SHOWN_APART.format(name) for name in merged if name not in learnt]


def require_written_alike(
    released: Table, path: Path, reading: Mapping[str, Any], scenarios: Iterable[Scenario]
) -> None:
    """Stop where people whom a file tells apart would count as alike, and their risk as lower than it is."""
    for wrong in shown_apart(merged_columns(released, path, reading), released.schema, scenarios):
        raise ParameterError(wrong)


def merged_columns(table: Table, path: Path, reading: Mapping[str, Any]) -> tuple[str, ...]:
    """Columns of a delimited text that show apart what was read as one value, as 1.0 and 1 are.

    So are numbers of too many digits, −0 and 0, and codes for missing values beside a set or a number.
    Whoever sees the file tells them apart; other formats hold the values themselves.
    """
    if FORMATS.get(path.suffix.lower()) != "delimited":
        return ()
    texts = read_like(path, reading, text=table.names)
    if texts.height != len(table):
        return ()  # a release of several files, which were joined
    shown = {name: texts[name].fill_null("").n_unique() for name in table.names if name in texts}
    return tuple(name for name in shown if shown[name] > _count_values(table, name))


def _count_values(table: Table, name: str) -> int:
    return int(np.unique(column_codes(table, name, apart=True).codes).size)


def join_released_files(
    original: Table,
    path: Path,
    trail: Mapping[str, Any],
    reading: Mapping[str, Any],
    resources: Mapping[str, Any] | None = None,
) -> Release:
    """Make the release of files of which the private trail says how they are joined."""
    tables, files = {}, trail["joined"]["files"]
    for name, spec in files.items():
        place = path.with_name(spec["name"])
        if not place.is_file() or fingerprint(place) != spec["sha256"]:
            raise ParameterError(
                f"`{place}` must be beside `{path}`, unchanged since both were written, got: "
                f"{'another file' if place.is_file() else 'none'}"
            )
        keys = [each for each in spec["keys"] if each not in original.schema]
        others = [Column(each, Kind.NOMINAL, Role.OTHER) for each in keys]
        others += [Column(each, Kind.CONTINUOUS, Role.WEIGHT) for each in spec["counts"]]
        tables[name] = conform_released(read_like(place, reading), original, others, resources=resources)
    layout = ReleaseLayout(
        keys={name: tuple(spec["keys"]) for name, spec in files.items()},
        bucketed_columns=tuple(tuple(group) for group in trail["joined"]["apart"]),
        sources={name: read_rows(spec) for name, spec in files.items() if "rows" in spec},
        moved={name: read_rows({"rows": each}) for name, each in trail["joined"].get("moved", {}).items()},
    )
    return Release(tables, Origin.of_rows(read_rows(trail)), layout)


def read_release(
    original: Table,
    protected: Any,
    *,
    aligned: bool,
    resources: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Release:
    """Make a release of a protected table that came from elsewhere, read as the original's schema says.

    Which record is whose is known if it is ``aligned``, or from the private trail of the file. ``reading``
    is how the original is read.
    """
    path = Path(protected) if isinstance(protected, str | Path) else None
    trail = None if path is None or aligned else trail_of_file(path, original)
    if path is not None and trail is not None and "joined" in trail:
        return join_released_files(original, path, trail, reading or {}, resources)
    if isinstance(protected, Table):
        table = protected
    else:
        frame = frames.to_polars(protected)[0] if path is None else read_like(path, reading or {})
        table = conform_released(frame, original, resources=resources)
    if not aligned:
        rows, synthetic = (None, False) if path is None else source_rows_of_file(path, original)
        origin = Origin.synthetic() if synthetic and rows is None else Origin.of_rows(rows)
        return Release.as_read(table, origin=origin)
    if len(table) != len(original):
        raise ParameterError(
            f"an aligned release must have the original's {len(original)} records, got: {len(table)}"
        )
    if is_out_of_order(original, table):
        raise ParameterError(
            "the records are not in the order of the original: their columns agree only by chance",
            hint="releases are shuffled: leave out --aligned (in Python `aligned`); the private trail of the "
            "release maps the records",
        )
    return Release.record_by_record(table)


def _released_schema(frame: pl.DataFrame, schema: Schema) -> Schema:
    """The schema of an original for its release, where numbers of people may have become pseudonyms."""
    renamed = [
        Column(column.name, Kind.NOMINAL, column.role, label=column.label, pseudonym=column.pseudonym)
        for column in schema.columns
        if column.pseudonym and frame.schema[column.name] == pl.String
    ]
    return schema.replace(*renamed)
