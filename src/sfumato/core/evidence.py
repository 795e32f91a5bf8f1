"""What is known when a release is judged: the original, the release, the intruder, and other tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.rememberer import Rememberer, T
from sfumato.data.buckets import Buckets
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import STRUCTURAL_ROLES, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import UnknownNameError
from sfumato.kernels.arrays import Ints


@dataclass(frozen=True)
class PersonSampling:
    """Whom a measure looks at: of the persons whom the intruder looks for, so many drawn by chance.

    None: all ``persons``. By chance all fall into parts of so many, of which this is the ``part``. A method
    that judges its own work does not know yet which columns will leave: it is
    to ``ignore_person_links``, and takes what it shows as it reads.
    """

    persons: int | None = None
    part: int = 0
    ignore_person_links: bool = False


@dataclass(frozen=True, eq=False)
class JoinedRecords:
    """Released records that an intruder puts together: by what, and a number for each, the same if joined."""

    by: str
    numbers: Ints = field(repr=False)


@dataclass(frozen=True)
class Evidence(Rememberer):
    """All a measure may look at; the ``release`` is absent when the raw file itself is assessed.

    ``scenario`` is the intruder, ``resources`` are other tables by name, and ``sampling`` says whom to look
    at; ``joined`` are records that the intruder puts together beside those of persons and households (see
    `sfumato.core.approaches`). Everything else is a view of these.
    """

    original: Table
    release: Release | None = None
    scenario: Scenario = field(default_factory=Scenario)
    resources: Mapping[str, Table] = field(default_factory=dict)
    sampling: PersonSampling = field(default_factory=PersonSampling)
    joined: JoinedRecords | None = None

    @property
    def protected(self) -> Table | None:
        """The release as one table; values apart from their records show what each bucket spans."""
        return None if self.release is None else self.release.reading()

    @property
    def source_rows(self) -> Ints | None:
        """The original record that each protected one comes from, −1 for nobody; None if they do not map."""
        return None if self.release is None else self.release.source_rows

    @property
    def buckets(self) -> Buckets | None:
        """The values that stand apart from their records; None where none does."""
        return None if self.release is None else self.release.buckets

    @property
    def synthetic(self) -> bool:
        """Whether the released records are nobody's."""
        return self.release is not None and self.release.synthetic

    def remember_for_all(self, what: Hashable, make: Callable[[], T]) -> T:
        """The same, once for all intruders: what the original and the release say, whoever looks at them."""
        if self.release is None:
            return self.remember(what, make)
        return self.release.remember((self.original, what), make)

    def read_as(self, protected: Table) -> Evidence:
        """The same with the released records read as another table."""
        assert self.release is not None  # else nothing is read
        if protected is self.protected:
            return self
        return replace(self, release=self.release.read_as(protected))

    @property
    def known_columns(self) -> tuple[str, ...]:
        """The columns the intruder knows and the release still has, sorted by name."""
        schema = self.original.schema
        named = schema.resolve(self.scenario.columns)
        known = named or schema.known_columns()
        return tuple(sorted(name for name in known if self._is_released(name)))

    @property
    def shared_columns(self) -> tuple[str, ...]:
        """The columns that say something of people and are in both tables, sorted by name."""
        return tuple(sorted(name for name in self._about_people() if self._is_released(name)))

    @property
    def with_all_columns(self) -> Evidence:
        """The same with the columns that the release left out, all of their cells suppressed."""
        dropped = [name for name in self._about_people() if not self._is_released(name)]
        return self.remember("with all columns", lambda: self._with_dropped(dropped)) if dropped else self

    @property
    def with_known_values(self) -> Evidence:
        """The same with the columns that the intruder knows as if nothing stood apart of them.

        Who knows a person's values looks for the bucket that holds all of them: as many records can be theirs
        at most as have the value of any one column. What a bucket spans does not show that; the records
        as they were are no more than these.
        """
        buckets = None if self.sampling.ignore_person_links else self.buckets
        names = [] if buckets is None else [name for name in self.known_columns if name in buckets.names]
        if buckets is None or not names:
            return self
        return self.remember("known values", lambda: self._with_values(buckets.values.select(names)))

    @property
    def with_people_only(self) -> Evidence:
        """The same without records of nobody that say nothing: such counterfeits are seen, and hide no one.

        Their values stay in the buckets, where nobody can tell whose they are.
        """
        rows, protected, names = self.source_rows, self.protected, self.known_columns
        if rows is None or protected is None or self.synthetic or not (rows < 0).any() or not names:
            return self
        seen_false = (rows < 0) & np.all([protected.missing(name) for name in names], axis=0)
        if not seen_false.any():
            return self
        return self.remember("people only", lambda: self._of_rows(np.flatnonzero(~seen_false)))

    def _of_rows(self, kept: Ints) -> Evidence:
        protected, rows = self.protected, self.source_rows
        assert protected is not None and rows is not None  # noqa: PT018  — else nothing maps
        buckets = None if self.buckets is None else self.buckets.select_rows(kept)
        origin = Origin.of_rows(rows[kept])
        return replace(self, release=Release.as_read(protected.take(kept), buckets, origin=origin))

    def _with_values(self, values: Table) -> Evidence:
        protected = self.protected
        assert protected is not None  # else nothing was released
        frame = protected.frame.with_columns(values.frame.get_columns())
        schema = protected.schema.replace(*values.schema.columns)
        nodes = {name: each for name, each in protected.nodes.items() if name not in values.schema}
        return self.read_as(replace(protected, frame=frame, schema=schema, nodes=nodes | dict(values.nodes)))

    def _with_dropped(self, dropped: list[str]) -> Evidence:
        protected, original = self.protected, self.original
        assert protected is not None  # else nothing was dropped
        empty = [pl.Series(name, [None], dtype=original.frame.schema[name]) for name in dropped]
        frame = protected.frame.with_columns(each.new_from_index(0, len(protected)) for each in empty)
        schema = Schema((*protected.schema.columns, *(original.schema[name] for name in dropped)))
        nodes = {name: original.nodes[name] for name in dropped if name in original.nodes}
        return self.read_as(
            replace(protected, frame=frame, schema=schema, nodes={**protected.nodes, **nodes})
        )

    @property
    def known_table(self) -> Table:
        """The table the intruder holds: the original, or the external file of the scenario."""
        if not self.scenario.external:
            return self.original
        try:
            return self.resources[self.scenario.external]
        except KeyError:
            raise UnknownNameError.of("resource", self.scenario.external, self.resources) from None

    @property
    def control(self) -> Table | None:
        """Records of the same population that were not protected: what a release says of strangers."""
        found = self.resources.get(CONTROL)
        return found if isinstance(found, Table) else None

    def hierarchy_of(self, name: str) -> Hierarchy | None:
        """The hierarchy that a column of the original names, if it is among the resources."""
        found: object = self.resources.get(self.original.schema[name].hierarchy)
        return found if isinstance(found, Hierarchy) else None

    def of_kinds(self, names: tuple[str, ...], kinds: frozenset[Kind]) -> tuple[str, ...]:
        """Those of ``names`` whose kind, in both tables, is one of ``kinds``."""
        tables = [self.original] if self.protected is None else [self.original, self.protected]
        return tuple(name for name in names if all(table.schema[name].kind in kinds for table in tables))

    def _about_people(self) -> tuple[str, ...]:
        columns = self.original.schema.columns
        return tuple(column.name for column in columns if column.role not in STRUCTURAL_ROLES)

    def _is_released(self, name: str) -> bool:
        return self.protected is None or name in self.protected.schema
