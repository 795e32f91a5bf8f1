"""Cells: how many were suppressed, and how many are not what they were."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Needs, Score, Tells
from sfumato.core.run import Run
from sfumato.data.generalised.cover import wildcards
from sfumato.data.generalised.intervals import ends, is_interval
from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats
from sfumato.utility._readings import Rows, by_original, n_left_out, pairs_of, spans_of


class SuppressedCells(Measure):
    r"""Share of the original's values that the release suppresses.

    .. math::

        \frac{|\{(i, j) : x_{ij} \text{ has a value},\ y_{ij} \text{ has none}\}|}
             {|\{(i, j) : x_{ij} \text{ has a value}\}|}

    where a value is suppressed if it is missing, the column's code for suppressed values, or a wildcard,
    which says nothing. All values of a record that was left out are suppressed.

    See Also
    --------
    cells-changed : counts values that are false or coarse as well.

    Notes
    -----
    **How to read it.** 0 means that every value is there (though it need not be true), 1 that
    none is. The number of cells is in ``details``, the share of each column in ``by_column``. As in all
    measures of utility, every cell of a column that was left out is suppressed (identifiers and weights
    do not count).

    **Doubt.** Exact. Where records do not map, as in synthetic data, only shares can be compared: a column
    counts with what is missing beyond the original's own share of missing values, and if there is less,
    with 0.

    **Missing.** A value missing in the original cannot be suppressed, and does not count.

    **Cost.** One pass.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.NOMINAL),))
    >>> original = Table(pl.DataFrame({"x": ["a", "b", None, "d"]}), schema)
    >>> released = Table(pl.DataFrame({"x": ["a", None, None, "d"]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> round(SuppressedCells().score(evidence, Run(seed=1)).value, 3)
    0.333
    """

    name = "suppressed-cells"
    vetted = "brute-forced: property/test_losses.py::test_possibilities_and_bits_against_enumeration"
    synonyms = ("number of missing values", "number of suppressions", "minimal distortion")
    family = "cells"
    tells = Tells(places={"default": 0})
    title = "Suppressed cells"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = frozenset(Kind)
    references = ("carvalho2023", "hundepool2012")
    cost = "n"

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Count what is missing in the release only."""
        assert evidence.protected is not None
        if not len(evidence.original):
            return Score.not_estimable("the original has no records")
        mapped = evidence.source_rows is not None
        released, sources = pairs_of(evidence) if mapped else (slice(None), slice(None))
        n_held = n_cells = 0.0
        by_column: dict[str, float] = {}
        names = self.columns(evidence)
        for name in run.track(self.title, names, len(names)):
            tables = evidence.original, evidence.protected
            there, silent = (uninformative_cells(table, name) for table in tables)
            there = ~there
            if mapped:
                there = there[sources]
                cells, held = int(there.sum()), float((there & _flags_of_rows(silent, released)).sum())
            else:
                cells = int(there.sum())
                beyond = float(silent.mean()) - float(1.0 - there.mean()) if len(silent) else 1.0
                held = max(min(beyond * len(there), float(cells)), 0.0)
            n_held, n_cells = n_held + held, n_cells + cells
            if cells:
                by_column[name] = held / cells
        if not n_cells:
            return Score.not_estimable("no column of the original has values")
        return Score(
            value=n_held / n_cells,
            by_column=by_column,
            details={
                "suppressed_cells": round(n_held),
                "cells": int(n_cells),
                "columns": len(by_column),
                "records_left_out": n_left_out(released),
                "records_map": "yes" if mapped else "no",
            },
        )


def uninformative_cells(table: Table, name: str) -> Flags:
    """Which cells of a column say nothing: they are missing, suppressed, or a wildcard."""
    return table.missing(name) | wildcards(table, name)


def _flags_of_rows(flags: Flags, released: Rows) -> Flags:
    """The flags of these released records; of those that are none, yes."""
    return flags[released] if isinstance(released, slice) else np.append(flags, [True])[released]


class CellsChanged(Measure):
    r"""Share of cells whose value changed.

    .. math::

        \frac{|\{(i, j) : y_{ij} \ne x_{ij}\}|}{n\,m}

    A cell is what it was if it says exactly the same value, be it as a number of another type, as a range
    or as a set of that one value; or if it is missing in both tables. A range of several values is a
    change, and so is a value suppressed, a missing one filled in, and every cell of a record that was left
    out.

    See Also
    --------
    il1s : how much they changed, not only whether.

    Notes
    -----
    **How to read it.** 0 means the same values; every cell of a column that was left out has changed.
    The share of each column is in ``by_column``, of each record in ``by_record``. Swapping two equal values
    changes nothing.

    **Doubt.** Exact, to the last digit: a value that was only rounded otherwise has changed. Weights are
    not used: cells are counted.

    **Missing.** Missing in both tables is unchanged, in one of them changed.

    **Cost.** One pass over numbers; grouping over text.

    Examples
    --------
    >>> schema = Schema((Column("x", Kind.NOMINAL), Column("y", Kind.CONTINUOUS)))
    >>> original = Table(pl.DataFrame({"x": ["a", "b", None, "d"], "y": [1, 2, 3, 4]}), schema)
    >>> released = Table(pl.DataFrame({"x": ["a", "c", None, "d"], "y": [1.0, 2.0, 4.0, 3.0]}), schema)
    >>> evidence = Evidence(original, Release.of(released, source_rows=np.arange(4)))
    >>> score = CellsChanged().score(evidence, Run(seed=1))
    >>> score.value, dict(score.by_column)
    (0.375, {'x': 0.25, 'y': 0.5})
    """

    name = "cells-changed"
    vetted = "brute-forced: property/test_losses.py::test_possibilities_and_bits_against_enumeration"
    synonyms = ("IL_variables",)
    family = "cells"
    tells = Tells(places={"report": 1})
    title = "Cells changed"
    aspect = "utility"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = frozenset(Kind)
    references = ("hundepool2012",)
    cost = "n"
    needs = Needs(mapping=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare each cell with its original."""
        if not len(evidence.original):
            return Score.not_estimable("the original has no records")
        names, rows = self.columns(evidence), pairs_of(evidence)
        per_record: Floats = np.zeros(1)
        by_column: dict[str, float] = {}
        for name in run.track(self.title, names, len(names)):
            changed = ~_same(evidence, name, rows)
            by_column[name] = float(changed.mean())
            per_record = per_record + changed
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            by_record=by_original(per_record / len(names), rows[1], len(evidence.original)),
            details={
                "changed_cells": int(per_record.sum()),
                "cells": len(per_record) * len(names),
                "columns": len(names),
                "records_left_out": n_left_out(rows[0]),
            },
        )


def _same(evidence: Evidence, name: str, rows: tuple[Rows, Rows]) -> Flags:
    """Whether each released cell says what its original does."""
    assert evidence.protected is not None
    original, protected = evidence.original, evidence.protected
    released, sources = rows
    if original.schema[name].kind is Kind.SET or original.is_generalised(name):
        original_cells, released_cells = _cell_texts(original, name), _cell_texts(protected, name)
        if original_cells.dtype != released_cells.dtype:
            original_cells, released_cells = (
                each.is_null().replace(False, None) for each in (original_cells, released_cells)
            )
        if not isinstance(sources, slice) and not isinstance(released, slice):
            original_cells, released_cells = (
                original_cells.gather(sources),
                released_cells.gather(np.maximum(released, 0)),
            )
        same = original_cells.eq_missing(released_cells).to_numpy().copy()
        if original_cells.dtype == pl.Boolean:
            same &= original_cells.is_not_null().to_numpy()
    else:
        numbers, spans = spans_of(original, protected, name)
        own, spans = numbers[sources], spans.take(released)
        same = (spans.lows == own) & (spans.highs == own)
        same |= np.isnan(own) & _flags_of_rows(protected.missing(name), released)
    if not isinstance(released, slice):
        same &= released >= 0
    return same


def _cell_texts(table: Table, name: str) -> pl.Series:
    """What the cells of a set-valued or generalised column say, alike where they say the same."""
    series = pl.select(pl.when(pl.Series(~table.missing(name))).then(table.frame[name])).to_series()
    if isinstance(series.dtype, pl.List):
        return series.list.eval(pl.element().cast(pl.String).unique().sort())
    if is_interval(series.dtype):
        lo, hi = (end.to_physical().cast(pl.Float64) for end in ends(series))
        return pl.select(pl.when(series.is_not_null()).then(pl.struct(lo=lo, hi=hi))).to_series()
    return canonical_text(series)
