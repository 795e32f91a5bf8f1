"""What protecting gives: the protected table or tables, where each record comes from, and how it was made."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.budget import PrivacyBudget, side_by_side
from sfumato.core.origin import Origin
from sfumato.core.params import Parameters
from sfumato.core.rememberer import Rememberer
from sfumato.data.buckets import Buckets, ReleaseLayout, join_buckets
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.suppressing import as_labels, as_ranges
from sfumato.data.generalised.text_forms import joined_nodes
from sfumato.data.hidden_content import strip_hidden
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.schema import Role
from sfumato.data.strata import Stratum
from sfumato.data.table import Table
from sfumato.errors import DataError, IdentifierWarning, quoted
from sfumato.kernels.arrays import Floats, Ints

#: The name of the table of a release that has only one.
MAIN = "release"

#: The figure of a step that was to make k records alike: how many a missing value tells from the others.
BELOW_K = "records_below_k"


@dataclass(frozen=True)
class FittedMethod:
    """What a method found out: a ``method`` that does the same to other tables, with these ``resources``."""

    method: Parameters
    resources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PrivateArtifact:
    """What a step tells its owner alone, of all records or of a stratum: tables, and what does the same."""

    method: Parameters
    tables: Mapping[str, Table]
    stratum: Stratum = ()


@dataclass(frozen=True)
class Byproducts:
    """What a method gives beside its tables.

    ``notes`` are what it has to say of its work in counts, such as how many records it could not treat, and
    ``figures`` are these counts and losses as numbers by name. ``budget`` is what it spent, if it is
    differentially private. ``private_artifacts`` are what only the private trail keeps, such as the chances
    by which PRAM changed categories.
    """

    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    budget: PrivacyBudget = field(default_factory=PrivacyBudget)
    private_artifacts: tuple[PrivateArtifact, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Provenance:
    """One step that was taken, with what its owner should know of it. It never holds the seed."""

    method: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...]
    within: tuple[str, ...] = ()
    together: str = ""
    byproducts: Byproducts = field(default_factory=Byproducts)
    seconds: float = field(default=0.0, compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the method has to say of its work."""
        return self.byproducts.notes

    @property
    def figures(self) -> Mapping[str, float]:
        """Its counts and losses, by name."""
        return self.byproducts.figures

    def to_dict(self) -> dict[str, Any]:
        """Describe the step, without what only its owner may know."""
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
class ExactWeights:
    """The sampling weights of a release before they were averaged ``by`` keys: what risks are estimated by.

    They are their owner's: no file that leaves holds them.
    """

    values: Floats = field(repr=False)
    by: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Release(Rememberer, Tabular):
    """A protected table, or several named ones, with where its records come from and how it was made.

    ``origin`` says which original record each record of the first table comes from. ``layout`` is how several
    tables belong together, and which values are not those of their record but of its bucket; None for one
    plain table. ``classes`` are the equivalence classes the last step vouches for.

    ``steps`` are those that were taken. ``byproducts`` are what a method has to say of its work; a step that
    is taken keeps them. ``fit`` is what a method found out, such as the levels of a recoding, to do the same
    to other tables: ``protect(other, release.fitted, resources=release.resources)``. ``exact_weights`` are
    there if the weights of the first table were averaged.
    """

    tables: Mapping[str, Table]
    origin: Origin = field(default_factory=Origin.unknown)
    layout: ReleaseLayout | None = None
    classes: Ints | None = None
    steps: tuple[Provenance, ...] = ()
    byproducts: Byproducts = field(default_factory=Byproducts)
    fit: FittedMethod | None = field(default=None, compare=False)
    exact_weights: ExactWeights | None = field(default=None, compare=False)

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
        """Make a release of one table, of whose records ``source_rows`` are the originals."""
        byproducts = Byproducts(notes, figures or {})
        return cls({MAIN: table}, Origin.of_rows(source_rows), classes=classes, byproducts=byproducts)

    @classmethod
    def record_by_record(
        cls,
        table: Table,
        *,
        classes: Ints | None = None,
        notes: tuple[str, ...] = (),
        figures: Mapping[str, float] | None = None,
    ) -> Release:
        """Make a release of one table, whose records are the original's in their order."""
        byproducts = Byproducts(notes, figures or {})
        return cls({MAIN: table}, Origin.identity(len(table)), classes=classes, byproducts=byproducts)

    @classmethod
    def unchanged(cls, table: Table) -> Release:
        """Make the release that is the original itself."""
        return cls.record_by_record(table)

    @classmethod
    def as_read(
        cls, table: Table, buckets: Buckets | None = None, *, origin: Origin | None = None
    ) -> Release:
        """Make a release of the one table that an intruder reads, and the buckets that they know of."""
        return cls(
            {MAIN: table},
            origin or Origin.unknown(),
            None if buckets is None else ReleaseLayout(buckets=buckets),
        )

    def with_table(self, table: Table) -> Release:
        """The same with one plain table in place of its own, of the same records."""
        return replace(self, tables={MAIN: table}, layout=None)

    def read_as(self, table: Table) -> Release:
        """The same, read as another table of the same records; its buckets stay."""
        return replace(
            self,
            tables={MAIN: table},
            layout=None if self.buckets is None else ReleaseLayout(buckets=self.buckets),
        )

    def with_notes(self, *notes: str, figures: Mapping[str, float] | None = None) -> Release:
        """The same with more to say of it."""
        byproducts = self.byproducts
        more = replace(
            byproducts, notes=(*byproducts.notes, *notes), figures={**byproducts.figures, **(figures or {})}
        )
        return replace(self, byproducts=more)

    @property
    def source_rows(self) -> Ints | None:
        """The original's row of each record of the first table, −1 for nobody's; None if they do not map."""
        return self.origin.rows

    @property
    def synthetic(self) -> bool:
        """Whether its records are nobody's: nothing in them is kept of a person.

        One whose ``source_rows`` are unknown, as of a file from elsewhere, is not: its records are people's.
        """
        return self.origin.is_synthetic

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        """The steps that were taken."""
        return self.steps

    @property
    def notes(self) -> tuple[str, ...]:
        """What a method has to say of its work; a step that is taken has it in its own."""
        return self.byproducts.notes

    @property
    def figures(self) -> Mapping[str, float]:
        """Counts and losses of the last step, by name."""
        return self.byproducts.figures or (self.steps[-1].figures if self.steps else {})

    @property
    def budget(self) -> PrivacyBudget:
        """What all of its differentially private steps spent."""
        return sum((each.byproducts.budget for each in self.steps), PrivacyBudget()) + self.byproducts.budget

    @property
    def fitted(self) -> Parameters | None:
        """The method that does to other tables what was done to this one."""
        return None if self.fit is None else self.fit.method

    @property
    def resources(self) -> Mapping[str, Any]:
        """What the fitted method needs, by the names it calls them."""
        return {} if self.fit is None else self.fit.resources

    @property
    def table(self) -> Table:
        """The protected table of a release that has only one."""
        if len(self.tables) != 1:
            names = ", ".join(self.tables)
            raise DataError(f"this release has {len(self.tables)} tables ({names}): choose one")
        return self.first

    @property
    def first(self) -> Table:
        """The table with a row for each record: the only one, or that which others are joined to."""
        return next(iter(self.tables.values()))

    @property
    def plain(self) -> bool:
        """Whether it is one table whose cells are those of their records."""
        return len(self.tables) == 1 and (self.layout is None or self.layout.is_plain)

    @property
    def bucketed_columns(self) -> tuple[tuple[str, ...], ...]:
        """Groups of columns whose values are not those of their record but of its bucket."""
        return () if self.layout is None else self.layout.bucketed_columns

    @cached_property
    def buckets(self) -> Buckets | None:
        """The values that stand apart from their records; None where none does."""
        return (
            None
            if self.plain
            else join_buckets(self.tables, self.layout or ReleaseLayout(), self.source_rows)
        )

    def reading(self) -> Table:
        """One table as an intruder reads it, whatever the number of tables.

        A column whose values stand apart from their records shows what the record's bucket spans.
        """
        is_read = self.layout is not None and self.layout.buckets is not None
        return self.first if is_read or self.buckets is None else self.buckets.reading

    @property
    def data(self) -> Any:
        """The protected table without identifiers, to look at and to analyse.

        It is of the type the original came in (pandas, polars, Arrow), of several tables a dictionary by
        their names. What names people is left out by its role, with a warning; ``release.table`` has it all.
        The way out is ``sfumato.release(...)`` and ``release.write(folder)``: nobody has judged these data,
        their records stand in their order, and no trail tells how they were made.
        """
        shown = self.to_polars()
        if isinstance(shown, dict):
            return {name: self.to_native(frame) for name, frame in shown.items()}
        return self.to_native(shown)

    def to_polars(self) -> Any:
        """The protected table without identifiers, as ``data`` but in polars whatever came in."""
        shown = {name: self._visible_frame(table) for name, table in self.tables.items()}
        return shown if len(shown) > 1 else next(iter(shown.values()))

    def to_native(self, frame: pl.DataFrame) -> Any:
        """A protected frame in the type that the original came in."""
        return frame

    @staticmethod
    def _visible_frame(table: Table) -> pl.DataFrame:
        frame, schema = strip_hidden(table.frame), table.schema
        left = [name for name in schema.with_role(Role.IDENTIFIER) if not schema[name].pseudonym]
        if left:
            named = quoted(left)
            warnings.warn(
                f"left out, because they are direct identifiers: {named}", IdentifierWarning, stacklevel=4
            )
            frame = frame.drop(left)
        return frame

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
                for each in self.steps
            ]
        )

    def _sizes(self) -> list[str]:
        return [
            f"{name}: {len(each)} records, {len(each.names)} columns" for name, each in self.tables.items()
        ]

    def __repr__(self) -> str:  # no cells: it may stand in a traceback
        taken = " → ".join(each.method for each in self.steps)
        return f"Release({'; '.join([*self._sizes(), *filter(None, [taken])])})"

    def _repr_html_(self) -> str:
        return as_html([*self._sizes(), *self.notes], self.to_frame())

    def then(self, later: Release) -> Release:
        """Compose with a step that started from this release's table.

        The later step's classes hold; those of the earlier one are dropped, since the step may have
        broken them. What was fitted last is kept: it is that step alone, not those before it. Budgets add up,
        and what was nobody's stays so.
        """
        budget = self.byproducts.budget + later.byproducts.budget
        return replace(
            later,
            origin=self.origin.then(later.origin),
            layout=later.layout and later.layout.map_rows(self.origin.locate),
            steps=self.steps + later.steps,
            byproducts=replace(later.byproducts, budget=budget),
            fit=later.fit or self.fit,
        )

    def of_stratum(self, stratum: Stratum) -> Release:
        """The same, its private artefacts being those of a stratum."""
        artifacts = tuple(replace(each, stratum=stratum) for each in self.byproducts.private_artifacts)
        return replace(self, byproducts=replace(self.byproducts, private_artifacts=artifacts))


def concatenate_releases(pieces: Sequence[tuple[Origin, Release]], *, keep_order: bool) -> Release:
    """Put the releases of parts together, each given with the origin of what it was made of."""
    releases = [release for _, release in pieces]
    classes = None
    if all(release.classes is not None for release in releases):
        labels = [release.classes for release in releases if release.classes is not None]
        offsets = np.cumsum([0, *(int(each.max(initial=-1)) + 1 for each in labels)])
        classes = np.concatenate([each + offset for each, offset in zip(labels, offsets, strict=False)])
    byproducts = [release.byproducts for release in releases]
    whole = Release(
        {MAIN: _concatenate_tables([release.table for release in releases])},
        Origin.concatenate([own.then(release.origin) for own, release in pieces]),
        classes=classes,
        byproducts=Byproducts(
            tuple(dict.fromkeys(note for each in byproducts for note in each.notes)),
            _merge_figures([release.figures for release in releases], [own.size for own, _ in pieces]),
            side_by_side([release.budget for release in releases]),
            tuple(artifact for each in byproducts for artifact in each.private_artifacts),
        ),
    )
    rows = None if whole.origin.is_identity else whole.origin.rows
    return reorder(whole, np.argsort(rows, kind="stable")) if keep_order and rows is not None else whole


def _merge_figures(figures: Sequence[Mapping[str, float]], records: Sequence[int]) -> dict[str, float]:
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


def _concatenate_tables(tables: Sequence[Table]) -> Table:
    """One below the other; labels of groups of values get one table of what they cover."""
    named = {name for table in tables for name in table.nodes}
    ranged = {name for table in tables for name, dtype in table.frame.schema.items() if is_interval(dtype)}
    for shown, names in ((as_labels, named), (as_ranges, ranged)):
        for name in sorted(names):  # what is coarse in one stratum is so in all, even if only in form
            tables = [shown(table, name) for table in tables]
    nodes = {
        name: joined_nodes([table.nodes[name] for table in tables if name in table.nodes])
        for name in sorted(named)
    }
    casts = [pl.col(name).cast(pl.String).cast(each.dtype) for name, each in nodes.items()]
    frame = pl.concat([table.frame.with_columns(casts) for table in tables], how="vertical_relaxed")
    return replace(tables[0], frame=frame, schema=tables[-1].schema, nodes=nodes)


def reorder(release: Release, order: Ints) -> Release:
    """Put the records of a release in another order; further tables stay as they are."""
    name, table = next(iter(release.tables.items()))
    exact = release.exact_weights
    return replace(
        release,
        tables={**release.tables, name: table.take(order)},
        exact_weights=exact and replace(exact, values=exact.values[order]),
        origin=release.origin.take(order),
        classes=None if release.classes is None else release.classes[order],
        layout=release.layout and release.layout.reorder(order),
    )
