"""Strata: the parts of a table that are protected apart from each other, and the whole put together again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.release import Release
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import as_labels, as_ranges
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints


def strata(table: Table, within: Sequence[str]) -> Iterator[tuple[bytes, Ints]]:
    """Yield each combination of values as a label for its stream of chance, with its records."""
    names = [f"by_{number}" for number in range(len(within))]  # no name of theirs can meet that of the rows
    keys = pl.DataFrame([table.frame[column].alias(name) for column, name in zip(within, names, strict=True)])
    for values, part in keys.with_row_index("row").group_by(names, maintain_order=True):
        said = json.dumps([None if value is None else str(value) for value in values])
        label = hashlib.blake2b(said.encode(), digest_size=16)
        yield label.digest(), part["row"].to_numpy().astype(np.int64)


def stitched(pieces: Sequence[tuple[Ints, Release]], *, keep_order: bool) -> Release:
    """Put the releases of parts together, each given with the rows that it was made of."""
    merged = _joined([release.table for _, release in pieces])
    rows = classes = None
    if all(release.source_rows is not None for _, release in pieces):
        rows = np.concatenate([own[release.source_rows] for own, release in pieces])
    if all(release.classes is not None for _, release in pieces):
        offsets = np.cumsum(
            [0, *(int(r.classes.max(initial=-1)) + 1 for _, r in pieces if r.classes is not None)]
        )
        classes = np.concatenate(
            [
                r.classes + offset
                for (_, r), offset in zip(pieces, offsets, strict=False)
                if r.classes is not None
            ]
        )
    notes = tuple(dict.fromkeys(note for _, release in pieces for note in release.notes))
    whole = Release.of(merged, source_rows=rows, classes=classes, notes=notes)
    return reordered(whole, np.argsort(rows, kind="stable")) if keep_order and rows is not None else whole


def _joined(tables: Sequence[Table]) -> Table:
    """One below the other; labels of groups of values get one table of what they cover."""
    named = {name for table in tables for name in table.nodes}
    ranged = {name for table in tables for name, dtype in table.frame.schema.items() if is_interval(dtype)}
    for shown, names in ((as_labels, named), (as_ranges, ranged)):
        for name in sorted(names):  # what is coarse in one stratum is so in all, even if only in form
            tables = [shown(table, name) for table in tables]
    nodes = {
        name: Nodes.union([table.nodes[name] for table in tables if name in table.nodes])
        for name in sorted(named)
    }
    casts = [pl.col(name).cast(pl.String).cast(each.dtype) for name, each in nodes.items()]
    frame = pl.concat([table.frame.with_columns(casts) for table in tables], how="vertical_relaxed")
    return replace(tables[0], frame=frame, schema=tables[-1].schema, nodes=nodes)


def reordered(release: Release, order: Ints) -> Release:
    """Put the records of a release in another order."""
    return replace(
        release,
        tables=Release.of(release.table.take(order)).tables,
        source_rows=None if release.source_rows is None else release.source_rows[order],
        classes=None if release.classes is None else release.classes[order],
    )
