"""Generalised values read one by one, by their definition: what the reader of whole columns must agree with."""

import numpy as np
import polars as pl

from sfumato.data.generalised.intervals import ends
from sfumato.data.generalised.nodes import WILDCARD, match_leaves


def covers(column, values, nodes=None):
    """Whether each generalised value covers the exact one beside it.

    A missing value is covered by a missing one and by the wildcard, by nothing else.
    """
    assert len(column) == len(values)
    if nodes is not None:
        members = {label: set(nodes.members_of(code)) for code, label in enumerate(nodes.labels)}
        found = match_leaves(values, nodes.leaves).tolist()
        leaves = [nodes.leaves[code] if code >= 0 else None for code in found]
        cells = zip(column.cast(pl.String), values.is_null(), leaves, strict=True)
        found = [
            gone if cell is None else cell == WILDCARD or leaf in members[cell] for cell, gone, leaf in cells
        ]
    else:
        values = values.fill_nan(None) if values.dtype.is_float() else values
        cells = zip(column.is_null(), *ends(column), values, strict=True)
        found = [_inside(gone, lo, hi, value) for gone, lo, hi, value in cells]
    return np.array(found, dtype=bool)


def _inside(gone, lo, hi, value):
    if gone or value is None:
        return value is None and (gone or (lo is None and hi is None))
    return (lo is None or lo <= value) and (hi is None or value <= hi)


def width(column, domain=None, nodes=None):
    """The share of the domain (of intervals: by default that of their ends) that each value spans."""
    if nodes is not None:
        most = max(len(nodes.leaves) - 1, 1)
        of_label = {label: (size - 1) / most for label, size in zip(nodes.labels, nodes.sizes, strict=True)}
        of_label |= {None: np.nan, WILDCARD: 1.0}
        return np.array([of_label[label] for label in column.cast(pl.String)])
    lows, highs = (end.to_physical().cast(pl.Float64).to_list() for end in ends(column))
    stated = [end for end in lows + highs if end is not None and np.isfinite(end)] or [0.0]
    limits = pl.Series(domain, dtype=ends(column)[0].dtype).to_physical().to_list() if domain else stated
    low, high = min(limits) / 2, max(limits) / 2
    shares = []
    for gone, lo, hi in zip(column.is_null(), lows, highs, strict=True):
        start = low if lo is None else min(max(lo / 2, low), high)
        stop = high if hi is None else min(max(hi / 2, low), high)
        open_ = lo is None and hi is None
        shares.append(np.nan if gone else 1.0 if open_ else (stop - start) / ((high - low) or 1.0))
    return np.array(shares)
