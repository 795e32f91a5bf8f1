"""Regeneration: masked cells are filled with values, so that the marginals match the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, Takes
from sfumato.core.params import Resource, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import canonical_text, parse_exact
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError, count_noun
from sfumato.kernels.arrays import Flags, Ints
from sfumato.methods._enforcing import COMPARABLE
from sfumato.methods._resources import columns_of

Masked = Literal["coarse", "missing", "both"]

_COLUMNS = ("column", "value", "count")


class Regeneration(Method):
    r"""Fill masked cells with as many copies of each value as were masked, at random places.

    This is Algorithm S1 of Sánchez et al. (2016): for each column :math:`a` and each value :math:`e` of it,

    .. math::

        v[a][e] \text{ of the masked cells of } a \text{, drawn without replacement, become } e

    where :math:`v[a][e]` is how often :math:`e` was masked in column :math:`a`. Some statistical offices
    publish these counts with a masked file. The result is a partially synthetic table that has the marginals
    of the original.

    The resource ``marginals`` is a table with one line for each :math:`v[a][e]` and the columns ``column``,
    ``value`` and ``count``; an empty value stands for values that were missing. With the original,
    `masked_marginals` makes this table. Without it each value is copied in proportion to its unmasked
    frequency, which keeps no marginal of the original, since rare values are masked more often.

    See Also
    --------
    SafeHarbour : masks in the order of the Californian discharge data.

    Notes
    -----
    **When to use.** To estimate what a masked file was like before: how many people were unique, what a
    method would do. Or to give users of a masked file a complete one.

    **Guarantees.** With counts that add up to the number of masked cells every column has exactly the
    marginal of the original. Cells that are not masked stay as they are. With ``counts="shares"`` the counts
    are scaled to the masked cells and rounded so that they add up (largest remainders first).

    **Risk to know.** A filled cell is invented, but does not look like it. Places are drawn without regard to
    other columns and to the remaining range of a coarsened value: correlations shrink towards zero, and
    impossible combinations arise. It does not protect: the counts are those of the original.

    **Ties, missing, weights.** Masked are wildcards, ranges and labels of several values
    (``masked="coarse"``); missing values are not, since they were not masked, unless ``"missing"`` or
    ``"both"`` says that they were. Columns of ranges become exact numbers or dates again, labels become text,
    or whole numbers where all values are. Weights are not used.

    **Cost.** :math:`O(n)` for each column.

    Examples
    --------
    >>> masked = pl.DataFrame({"race": ["a", "b", None, None, None, "a"]})
    >>> counts = Table(
    ...     pl.DataFrame({"column": "race", "value": ["a", "c"], "count": [1, 2]}), MARGINALS
    ... )
    >>> filled = sfumato.protect(
    ...     masked, Regeneration(marginals="counts", masked="missing"), resources={"counts": counts}, seed=1
    ... )
    >>> filled.data["race"].to_list()
    ['a', 'b', 'a', 'c', 'c', 'a']
    """

    name = "regeneration"
    vetted = (
        "brute-forced: property/test_safe_harbour.py::"
        "test_masked_and_regenerated_has_the_marginals_of_the_original"
    )
    family = "synthetic data"
    title = "Regeneration of masked values"
    analyst_note = (
        "Masked cells were filled with values of their column at random places: relations with these cells "
        "are weaker, and counts of one column hold only if the masked counts were given."
    )
    kinds = COMPARABLE
    references = ("sanchez2016",)
    takes = Takes(generalised=True)
    gives = Gives(imputed=True)

    marginals: Resource | None = param(None, "Table of masked values: column, value, count.", holds="table")
    counts: Literal["exact", "shares"] = param(
        "exact",
        "How the counts of the marginals are read.",
        choices={
            "exact": "As numbers of cells, which must add up to the masked cells.",
            "shares": "As proportions, which are scaled to the masked cells.",
        },
        when="marginals",
    )
    masked: Masked = param(
        "coarse",
        "Which cells count as masked.",
        choices={
            "coarse": "Wildcards, ranges and labels of several values.",
            "missing": "Missing values, in columns without generalised ones.",
            "both": "All of these.",
        },
        label="Masked cells",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse to leave ranges beside values that are filled in."""
        coarse = [f"`{name}`" for name in table.chosen if table.is_generalised(name)]
        if self.masked == "missing" and coarse:
            return f"{self.name} with masked = missing cannot fill generalised {', '.join(coarse)}"
        return super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Fill the columns one by one, each with a stream of chance of its own."""
        known = columns_of(self, "marginals", run, _COLUMNS)
        filled, notes = table, []
        for name in run.track(self.title, table.chosen, total=len(table.chosen)):
            places = np.flatnonzero(masked_cells(table, name, self.masked))
            exact = _exact_values(table, name)
            if not len(places):
                if table.is_generalised(name):
                    filled = _with_exact(filled, name, exact)
                continue
            supply = _own_supply(table, name, exact, places) if known is None else _supply(known, name, exact)
            copies = _copies(supply, len(places), exact=self.counts == "exact" and known is not None)
            if copies is None:
                notes.append(f"no value of `{name}` is known: {count_noun(len(places), 'masked cell')} left")
                continue
            rows = np.arange(len(table))
            rows[run.rng(name).permutation(places)] = len(table) + np.repeat(np.arange(len(copies)), copies)
            filled = _with_exact(filled, name, exact.append(supply.values).gather(rows))
        if known is None:
            notes.append("no marginals were given: values are drawn in proportion to the unmasked ones")
        return Release.record_by_record(filled, notes=tuple(notes))


# What is masked ----------------------------------------------------------------------------------------

#: What the columns of a table of marginals are.
MARGINALS = Schema(
    (
        Column("column", Kind.NOMINAL),
        Column("value", Kind.NOMINAL),
        Column("count", Kind.CONTINUOUS, integer=True, lower=0),
    )
)


def masked_cells(table: Table, name: str, masked: Masked = "coarse") -> Flags:
    """Which cells of a column are masked: wildcards, ranges and groups of values, missing ones, or both."""
    gone, coarse = table.missing(name), np.zeros(len(table), dtype=np.bool_)
    if table.is_generalised(name):
        cover = Cover.of(table, name)
        coarse = cover.lows < cover.highs
    return {"coarse": coarse, "missing": gone, "both": coarse | gone}[masked]


def masked_marginals(
    original: Table, release: Table, names: Sequence[str] = (), *, masked: Masked = "coarse"
) -> Table:
    """Count which original values were masked in a release whose records stand in the same order.

    The table has one line for each column and value, as `Regeneration` takes it.
    """
    if len(original) != len(release):
        raise DataError(
            f"the release must have the original's {len(original)} records, got: {len(release)}",
            hint="compute the marginals before records are dropped or shuffled",
        )
    parts = []
    for name in names or release.names:
        lost = pl.Series(masked_cells(release, name, masked) & ~masked_cells(original, name, masked))
        present = original.frame[name].zip_with(
            pl.Series(~original.missing(name)), pl.Series([None], dtype=original.frame.schema[name])
        )
        counts = canonical_text(present.filter(lost)).alias("value").value_counts(name="count")
        parts.append(counts.select(pl.lit(name).alias("column"), "value", pl.col("count").cast(pl.Int64)))
    return Table(pl.concat(parts).sort("column", "value"), MARGINALS)


def _exact_values(table: Table, name: str) -> pl.Series:
    """The exact values of a column, whatever where it is masked or missing."""
    series = table.frame[name]
    if is_interval(series.dtype):
        return series.struct.field("lo").alias(name)
    if name not in table.nodes:
        return series.cast(pl.String) if isinstance(series.dtype, pl.Enum | pl.Categorical) else series
    nodes = table.nodes[name]
    if not len(nodes.leaves):  # a column in which nothing was known, covered by wildcards
        return pl.Series(name, [None] * len(series), dtype=pl.String)
    codes = nodes.codes(series)
    firsts = np.append(nodes.members, 0)[nodes.starts[:-1]]
    texts = nodes.leaves.gather(firsts).gather(pl.Series(codes).replace(-1, None)).alias(name)
    exact = texts.filter(pl.Series((codes >= 0) & (nodes.sizes[codes] == 1)))
    return texts.cast(pl.Int64, strict=False) if _are_whole(exact if len(exact) else nodes.leaves) else texts


def _are_whole(texts: pl.Series) -> bool:
    """Whether every text is a whole number as it is written."""
    return texts.cast(pl.Int64, strict=False).cast(pl.String).equals(texts)


def _with_exact(table: Table, name: str, values: pl.Series) -> Table:
    """Show exact values only: what labels covered is forgotten."""
    changed = table.with_values(name, values)
    return replace(changed, nodes={each: nodes for each, nodes in table.nodes.items() if each != name})


# What is filled in -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Supply:
    """The values that masked cells of a column may get, in a fixed order, and how many of each there are."""

    column: str
    values: pl.Series
    counts: Ints


def _own_supply(table: Table, name: str, exact: pl.Series, places: Ints) -> _Supply:
    """The values that are there."""
    there = ~table.missing(name)
    there[places] = False
    counts = exact.filter(pl.Series(there)).alias("value").value_counts(name="count").sort("value")
    return _Supply(name, counts["value"], counts["count"].to_numpy().astype(np.int64))


def _supply(known: pl.DataFrame, name: str, exact: pl.Series) -> _Supply:
    """The values that the table of marginals lists, in the type of the column."""
    frame = known.select(_COLUMNS).filter(known["column"].cast(pl.String) == name)
    given = frame["count"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    wrong = int((~((given >= 0) & (given == np.floor(given)))).sum())
    if wrong:
        raise DataError(
            f"the counts of `{name}` in the marginals must be whole numbers from 0 up, got: {wrong} others"
        )
    texts = canonical_text(frame["value"])
    summed = (
        pl.DataFrame({"value": texts, "count": given.astype(np.int64)})
        .group_by("value")
        .agg(pl.col("count").sum())
        .sort("value", nulls_last=True)
    )
    values = _in_type_of(exact, summed["value"])
    unread = int((values.is_null() & summed["value"].is_not_null()).sum())
    if unread:
        raise DataError(
            f"the marginals have {count_noun(unread, 'value')} of `{name}` of another type than the column",
            hint="write numbers with a point and dates as 2026-11-15",
        )
    return _Supply(name, values, summed["count"].to_numpy())


def _in_type_of(exact: pl.Series, texts: pl.Series) -> pl.Series:
    if exact.dtype in TEXTUAL:
        return texts
    if exact.dtype == pl.Boolean:
        return texts.replace_strict(["true", "false"], [True, False], default=None, return_dtype=pl.Boolean)
    return parse_exact(texts, exact.dtype)


def _copies(supply: _Supply, n_masked: int, *, exact: bool) -> Ints | None:
    """How often each value is filled in; None where no value is known."""
    total = int(supply.counts.sum())
    if exact and total != n_masked:
        raise DataError(
            f"the counts of `{supply.column}` in the marginals must add up to its {n_masked} masked cells, "
            f"got: {total}",
            hint='take them for shares with counts="shares"',
        )
    if not total:
        return None
    shares = supply.counts * n_masked / total
    copies: Ints = np.floor(shares).astype(np.int64)
    # The largest remainders are rounded up, the first of equals.
    first = np.argsort(copies - shares, kind="stable")[: n_masked - int(copies.sum())]
    copies[first] += 1
    return copies
