"""What protecting gives: the protected table or tables, where each record comes from, and how it was made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.budget import Budget, side_by_side
from sfumato.core.evidence import Evidence
from sfumato.core.params import Parameters
from sfumato.data.buckets import Buckets, bucketed
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.generalised.suppressing import as_labels, as_ranges
from sfumato.data.notebook import as_html
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Role
from sfumato.data.shown import only_shown
from sfumato.data.strata import Stratum
from sfumato.data.table import Table
from sfumato.errors import DataError, IdentifierWarning, quoted
from sfumato.kernels.arrays import Ints

#: The name of the table of a release that has only one.
MAIN = "release"


@dataclass(frozen=True)
class Confided:
    """What a step tells its owner alone, of all records or of a stratum: tables, and what does the same."""

    fitted: Parameters
    tables: Mapping[str, Table]
    stratum: Stratum = ()


@dataclass(frozen=True)
class Provenance:
    """One step that was taken, with what its owner should know of it. It never holds the seed."""

    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...]
    within: tuple[str, ...] = ()
    together: str = ""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)
    confided: tuple[Confided, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Describe the step, without what it confided."""
        return {
            "method": self.method,
            "parameters": dict(self.parameters),
            "columns": list(self.columns),
            "within": list(self.within),
            "together": self.together,
            "notes": list(self.notes),
            "figures": dict(self.figures),
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class Release:
    """A protected table, or several named ones with the ``keys`` that join them: of each table its columns.

    ``source_rows[i]`` is the original record that record ``i`` of the first table comes from; None when
    records do not map (synthetic data). ``apart`` are groups of columns whose values are not those of their
    record but of its bucket, which ``keys`` name; ``sources`` are which originals the rows of further tables
    come from, and ``moved`` the cells of columns of the first, as far as the owner knows it. ``classes`` are
    the equivalence classes the last step vouches for. ``notes`` are what a method has to say of its work in
    counts, such as how many records it could not treat, and ``figures`` are these counts and losses as
    numbers by name; a step that is taken keeps both in its provenance, and the figures of the last one stay
    here.

    The records are nobody's if the release is ``synthetic``: nothing in them is kept of a person. A release
    whose ``source_rows`` are unknown, as of a file from elsewhere, is not: its records are people's.
    ``budget`` is what its differentially private steps spent.

    ``fitted`` is what a method found out, as a method that does the same to other tables: the levels of a
    recoding, the groups of another. ``resources`` are what it needs for that, by the names it calls them:
    ``protect(other, release.fitted, resources=release.resources)``. ``confided`` is what only the private
    trail keeps, such as the chances by which PRAM changed categories; a step keeps it in its provenance.
    """

    tables: Mapping[str, Table]
    source_rows: Ints | None = field(default=None, repr=False)
    classes: Ints | None = field(default=None, repr=False)
    provenance: tuple[Provenance, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    fitted: Parameters | None = field(default=None, repr=False, compare=False)
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    confided: tuple[Confided, ...] = field(default=(), repr=False, compare=False)
    native: Callable[[pl.DataFrame], Any] | None = field(default=None, repr=False, compare=False)
    synthetic: bool = False
    budget: Budget = field(default_factory=Budget)
    apart: tuple[tuple[str, ...], ...] = ()
    sources: Mapping[str, Ints] = field(default_factory=dict, repr=False, compare=False)
    moved: Mapping[str, Ints] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        source_rows: Ints | None = None,
        classes: Ints | None = None,
        notes: tuple[str, ...] = (),
        figures: Mapping[str, float] | None = None,
    ) -> Release:
        """Make a release of one table."""
        return cls({MAIN: table}, source_rows, classes, notes=notes, figures=figures or {})

    @classmethod
    def unchanged(cls, table: Table) -> Release:
        """Make the release that is the original itself."""
        return cls.of(table, source_rows=np.arange(len(table), dtype=np.int64))

    @property
    def table(self) -> Table:
        """The protected table of a release that has only one."""
        if len(self.tables) != 1:
            names = ", ".join(self.tables)
            raise DataError(f"this release must have one table, got: {len(self.tables)} ({names})")
        return next(iter(self.tables.values()))

    @property
    def first(self) -> Table:
        """The table with a row for each record: the only one, or that which others are joined to."""
        return next(iter(self.tables.values()))

    @property
    def plain(self) -> bool:
        """Whether it is one table whose cells are those of their records."""
        return len(self.tables) == 1 and not self.apart

    @cached_property
    def buckets(self) -> Buckets | None:
        """The values that stand apart from their records; None where none does."""
        apart = self.apart or tuple(
            names
            for name, table in list(self.tables.items())[1:]
            if (names := tuple(each for each in table.names if each not in self.keys.get(name, ())))
        )
        if not apart:
            return None
        return bucketed(
            self.tables, self.keys, apart, self.source_rows, sources=self.sources, moved=self.moved
        )

    def reading(self) -> Table:
        """One table as an intruder reads it, whatever the number of tables.

        A column whose values stand apart from their records shows what the record's bucket spans.
        """
        return self.first if self.buckets is None else self.buckets.reading

    @property
    def data(self) -> Any:
        """The protected table in the type the original came in (pandas, polars, Arrow), without identifiers.

        What names people is left out by its role, with a warning; ``release.table`` has all columns. Of
        several tables it is a dictionary by their names.
        """
        shown = {name: self._shown(table) for name, table in self.tables.items()}
        return shown if len(shown) > 1 else next(iter(shown.values()))

    def _shown(self, table: Table) -> Any:
        frame, schema = only_shown(table.frame), table.schema
        left = [name for name in schema.with_role(Role.IDENTIFIER) if not schema[name].pseudonym]
        if left:
            named = quoted(left)
            warnings.warn(f"left out, as they identify people: {named}", IdentifierWarning, stacklevel=3)
            frame = frame.drop(left)
        return frame if self.native is None else self.native(frame)

    def to_frame(self) -> pl.DataFrame:
        """The steps that were taken, a row each; the protected table is ``data``."""
        return pl.DataFrame(
            [
                {
                    "method": each.method,
                    "parameters": ", ".join(f"{key}={value}" for key, value in each.parameters.items()),
                    "columns": ", ".join(each.columns),
                    "notes": "; ".join(each.notes),
                }
                for each in self.provenance
            ]
        )

    def _repr_html_(self) -> str:
        sizes = [
            f"{name}: {len(each)} records, {len(each.names)} columns" for name, each in self.tables.items()
        ]
        return as_html([*sizes, *self.notes], self.to_frame())

    def then(self, later: Release) -> Release:
        """Compose with a step that started from this release's table.

        The later step's classes hold; those of the earlier one are dropped, since the step may have
        broken them. What was fitted last is kept: it is that step alone, not those before it. Budgets add up,
        and what was nobody's stays so.
        """
        rows = later.source_rows
        if rows is not None:
            rows = None if self.source_rows is None else np.append(self.source_rows, -1)[rows]  # −1: nobody
        last = later if later.fitted is not None else self
        own = self.source_rows
        return replace(
            later,
            source_rows=rows,
            sources={} if own is None else {name: own[each] for name, each in later.sources.items()},
            moved={} if own is None else {name: own[each] for name, each in later.moved.items()},
            provenance=self.provenance + later.provenance,
            synthetic=self.synthetic or later.synthetic,
            budget=self.budget + later.budget,
            fitted=last.fitted,
            resources=last.resources,
        )

    def of_stratum(self, stratum: Stratum) -> Release:
        """The same, what it confides being said of a stratum."""
        return replace(self, confided=tuple(replace(each, stratum=stratum) for each in self.confided))

    def against(
        self,
        original: Table,
        *,
        scenario: Scenario | None = None,
        resources: Mapping[str, Table] | None = None,
    ) -> Evidence:
        """Put this release beside its original, as measures want it."""
        return Evidence(
            original=original,
            protected=self.reading(),
            source_rows=self.source_rows,
            classes=self.classes,
            buckets=self.buckets,
            scenario=scenario or Scenario(),
            resources=resources or {},
            synthetic=self.synthetic,
        )


def stitched(pieces: Sequence[tuple[Ints, Release]], *, keep_order: bool) -> Release:
    """Put the releases of parts together, each given with the rows that it was made of."""
    merged = _joined([release.table for _, release in pieces])
    rows = classes = None
    if all(release.source_rows is not None for _, release in pieces):
        rows = np.concatenate([np.append(own, -1)[release.source_rows] for own, release in pieces])
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
    figures = _together([release.figures for _, release in pieces], [len(own) for own, _ in pieces])
    whole = replace(
        Release.of(merged, source_rows=rows, classes=classes, notes=notes, figures=figures),
        confided=tuple(each for _, release in pieces for each in release.confided),
        synthetic=all(release.synthetic for _, release in pieces),
        budget=side_by_side([release.budget for _, release in pieces]),
    )
    return reordered(whole, np.argsort(rows, kind="stable")) if keep_order and rows is not None else whole


def _together(figures: Sequence[Mapping[str, float]], records: Sequence[int]) -> dict[str, float]:
    """The figures of parts together: counts add up, of losses it is the mean over the records."""
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for each in figures for name in each):
        own = [(each[name], n) for each, n in zip(figures, records, strict=True) if name in each]
        counts = all(isinstance(value, int) for value, _ in own)
        found[name] = (
            sum(value for value, _ in own)
            if counts
            else sum(value * n for value, n in own) / max(sum(n for _, n in own), 1)
        )
    return found


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
    """Put the records of a release in another order; further tables stay as they are."""
    name, table = next(iter(release.tables.items()))
    return replace(
        release,
        tables={**release.tables, name: table.take(order)},
        source_rows=None if release.source_rows is None else release.source_rows[order],
        classes=None if release.classes is None else release.classes[order],
        moved={name: each[order] for name, each in release.moved.items()},
    )
