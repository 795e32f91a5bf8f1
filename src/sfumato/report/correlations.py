"""Correlations of the original, of the releases, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.data.schema import ORDERED
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Floats
from sfumato.report.values import ChartRules, numbers_of

#: More columns than this no picture can show.
MOST_COLUMNS = 30
#: A variance below this share of the column's own is rounding, not variation.
_NO_VARIANCE = 1e-12


def correlations(
    original: Table, releases: Mapping[str, Table], columns: Sequence[str], *, public: bool
) -> dict[str, Any] | None:
    """Correlation matrices of the columns that have an order; None when there are fewer than two.

    A cell is None where a column is constant or too few records have both values.
    """
    rules = ChartRules.of(public=public)
    ordered = [name for name in columns if original.schema[name].kind in ORDERED]
    names = ordered[:MOST_COLUMNS]
    if len(names) < 2:  # noqa: PLR2004  — one column correlates with nothing
        return None
    least = max(rules.floor, 3)
    before = _round_matrix(correlate(_matrix(original, names, like=original), least=least), rules)
    after = {
        key: _round_matrix(correlate(_matrix(table, names, like=original), least=least), rules)
        for key, table in releases.items()
    }
    return {
        "columns": names,
        "left_out": len(ordered) - len(names),
        "original": _plain(before),
        "releases": {key: _plain(matrix) for key, matrix in after.items()},
        "differences": {
            key: _plain(np.round(matrix - before, rules.decimals)) for key, matrix in after.items()
        },
    }


def correlate(matrix: Floats, *, least: int = 3) -> Floats:
    """Pearson's correlation of each two columns over the records that have both; NaN where there is none."""
    present = ~np.isnan(matrix)
    counts = np.maximum(present.sum(axis=0), 1)
    centred = np.where(present, matrix - np.where(present, matrix, 0.0).sum(axis=0) / counts, 0.0)
    scales = np.sqrt((centred**2).sum(axis=0) / counts)
    constant = scales <= _NO_VARIANCE * np.abs(np.where(present, matrix, 0.0)).max(axis=0, initial=0.0)
    scaled = centred / np.where(constant, 1.0, scales)
    flags = present.astype(np.float64)
    both = flags.T @ flags
    pairs = np.maximum(both, 1.0)
    sums = scaled.T @ flags  # [i, j]: sum of column i over the records that have j too
    squares = (scaled**2).T @ flags
    covariance = (scaled.T @ scaled) / pairs - sums * sums.T / pairs**2
    variance = squares / pairs - (sums / pairs) ** 2
    product = variance * variance.T
    usable = (both >= least) & (product > _NO_VARIANCE) & ~constant[:, None] & ~constant[None, :]
    found = np.where(usable, covariance / np.sqrt(np.where(usable, product, 1.0)), np.nan)
    return np.clip(found, -1.0, 1.0)


def _matrix(table: Table, names: Sequence[str], *, like: Table) -> Floats:
    """The columns side by side; one that is absent, or is no longer on an axis of numbers, is all missing."""
    matrix = np.full((len(table), len(names)), np.nan)
    for place, name in enumerate(names):
        if name in table.schema:
            try:
                matrix[:, place] = numbers_of(table, name, like=like)
            except DataError:
                continue
    return matrix


def _round_matrix(matrix: Floats, rules: ChartRules) -> Floats:
    return np.round(matrix, rules.decimals)


def _plain(matrix: Floats) -> list[list[float | None]]:
    return [[None if np.isnan(cell) else float(cell) + 0.0 for cell in row] for row in matrix]
