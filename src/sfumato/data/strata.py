"""Strata: the parts of a table that are protected apart from each other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints

#: What the records of a stratum have in each column that it is made of, as text; None: no value.
Stratum = tuple[str | None, ...]


def strata(table: Table, within: Sequence[str]) -> Iterator[tuple[Stratum, Ints]]:
    """Yield each combination of values with its records."""
    names = [f"by_{number}" for number in range(len(within))]  # no name of theirs can meet that of the rows
    keys = pl.DataFrame([table.frame[column].alias(name) for column, name in zip(within, names, strict=True)])
    for values, part in keys.with_row_index("row").group_by(names, maintain_order=True):
        labels = tuple(None if value is None else str(value) for value in values)
        yield labels, part["row"].to_numpy().astype(np.int64)


def label_of(stratum: Stratum) -> bytes:
    """What its stream of chance is called."""
    return hashlib.blake2b(json.dumps(stratum).encode(), digest_size=16).digest()
