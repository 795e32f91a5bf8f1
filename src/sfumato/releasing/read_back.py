"""Reads a release back from its files, as the original's schema and the private trail say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.data.buckets import Layout
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.io import conform
from sfumato.io import read as read_frame
from sfumato.recipes.parts import fingerprint
from sfumato.releasing.trail import read_rows


def conformed(frame: pl.DataFrame, original: Table, others: Sequence[Column] = ()) -> Table:
    """Read a released frame as the original's schema says, and ``others`` that it has not."""
    known = [name for name in frame.columns if name in original.schema]
    if not known:
        raise ParameterError(
            "the protected table must share columns with the original, got: no common column"
        )
    schema = _as_released(frame, original.schema.select(known))
    schema = replace(schema, columns=(*schema.columns, *others))
    return conform(frame.select(schema.names), schema, original=original)


def joined(original: Table, path: Path, kept: Mapping[str, Any]) -> Release:
    """Make the release of files of which the private trail says how they are joined."""
    tables, files = {}, kept["joined"]["files"]
    for name, said in files.items():
        place = path.with_name(said["name"])
        if not place.is_file() or fingerprint(place) != said["sha256"]:
            raise ParameterError(
                f"`{place}` must lie beside `{path}` as it was written with it, got: "
                f"{'another' if place.is_file() else 'none'}"
            )
        others = [
            Column(each, Kind.NOMINAL, Role.OTHER) for each in said["keys"] if each not in original.schema
        ]
        others += [Column(each, Kind.CONTINUOUS, Role.WEIGHT) for each in said["counts"]]
        tables[name] = conformed(read_frame(place), original, others)
    layout = Layout(
        keys={name: tuple(said["keys"]) for name, said in files.items()},
        bucketed_columns=tuple(tuple(group) for group in kept["joined"]["apart"]),
        sources={name: read_rows(said) for name, said in files.items() if "rows" in said},
        moved={name: read_rows({"rows": each}) for name, each in kept["joined"].get("moved", {}).items()},
    )
    return Release(tables, Origin.of_rows(read_rows(kept)), layout)


def _as_released(frame: pl.DataFrame, schema: Schema) -> Schema:
    """The schema of an original for its release, where numbers of people may have become pseudonyms."""
    renamed = [
        Column(column.name, Kind.NOMINAL, column.role, label=column.label, pseudonym=column.pseudonym)
        for column in schema.columns
        if column.pseudonym and frame.schema[column.name] == pl.String
    ]
    return schema.replace(*renamed)
