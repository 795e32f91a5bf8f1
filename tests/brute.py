"""Generalised values read one by one, by their definition: what the reader of whole columns must agree with."""

import numpy as np
import polars as pl

from sfumato.data.generalised.intervals import ends
from sfumato.data.generalised.nodes import WILDCARD, match_leaves
from sfumato.data.schema import Kind


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


# Distances to what released values stand for --------------------------------------------------------------


def _meant(table, name):
    """What each cell may stand for: None (anything), a set of texts, or a pair of numbers."""
    nodes, missing = table.nodes.get(name), table.missing(name)
    labels = [] if nodes is None else nodes.labels
    leaves = {label: set(nodes.members_of(code)) for code, label in enumerate(labels)}
    cells = []
    for value, gone in zip(table.frame[name].to_list(), missing, strict=True):
        if gone or value == "*":
            cells.append(None)
        elif nodes is not None:
            cells.append(leaves[value])
        elif isinstance(value, dict):
            low = -np.inf if value["lo"] is None else value["lo"]
            high = np.inf if value["hi"] is None else value["hi"]
            cells.append(None if np.isinf(low) and np.isinf(high) else (low, high))
        else:
            cells.append({value} if table.schema[name].kind is Kind.NOMINAL else (value, value))
    return cells


def distances_to_cells(evidence, names):
    """Near and far Euclidean distances of all pairs, and the loss of each released record."""
    known, released = evidence.known_table, evidence.protected
    n, m = len(known), len(released)
    near, far, losses = np.zeros((n, m)), np.zeros((n, m)), np.zeros(m)
    for name in names:
        values, cells = known.frame[name].to_list(), _meant(released, name)
        measured = known.schema[name].kind is not Kind.NOMINAL
        there = [x for x in values if x is not None]
        ends = [end for cell in cells if isinstance(cell, tuple) for end in cell if np.isfinite(end)]
        unit = (np.std(there) or np.std(there + ends) or 1.0) if measured else 1.0
        least, most = (min(there + ends), max(there + ends)) if measured else (None, None)
        low, high = (min(there), max(there)) if measured else (None, None)
        n_leaves = len(released.nodes[name].leaves) if name in released.nodes else 1
        for j, cell in enumerate(cells):
            if cell is None:
                losses[j] += 1
            elif measured:
                losses[j] += (np.clip(cell[1], low, high) - np.clip(cell[0], low, high)) / ((high - low) or 1)
            else:
                losses[j] += (len(cell) - 1) / max(n_leaves - 1, 1)
            for i, x in enumerate(values):
                if x is None:
                    gaps = float(cell is not None), 1.0
                elif not measured:
                    gaps = float(cell is not None and x not in cell), float(cell is None or cell != {x})
                elif cell is None:
                    gaps = 0.0, max(x - least, most - x) / unit
                else:
                    lo, hi = max(cell[0], min(least, cell[1])), min(cell[1], max(most, cell[0]))
                    gaps = max(cell[0] - x, x - cell[1], 0) / unit, max(abs(x - lo), abs(hi - x)) / unit
                near[i, j] += gaps[0] ** 2
                far[i, j] += gaps[1] ** 2
    return np.sqrt(near), np.sqrt(far), losses / len(names)


def chances_by_cells(near, far, losses, persons=None, owners=None):
    """The chance of each record to be linked to its own: those of the person, or that of the same place."""
    chances = np.zeros(len(near))
    persons = np.arange(len(near)) if persons is None else persons
    owners = np.arange(len(losses)) if owners is None else owners
    for i, person in enumerate(persons):
        is_own = owners == person
        if not is_own.any():
            continue
        own = near[i][is_own].min()
        slack = 1e-9 if own > 0 else 0.0  # what covers does so without rounding
        loss = losses[is_own & (near[i] <= own + slack)].min()
        finer = losses <= loss + 1e-9
        as_fine = finer & (losses >= loss - 1e-9)
        nearer = np.where(finer, near[i] < own - slack, far[i] < own - slack)
        nearer |= finer & ~as_fine & (near[i] <= own + slack)
        tied = as_fine & (near[i] <= own + slack)
        if not nearer.any():
            chances[i] = (tied & is_own).sum() / tied.sum()
    return chances
