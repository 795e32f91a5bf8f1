"""Tables that leave together: what an intruder makes of them who joins them by the numbers of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import Nodes, canonical_text
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import SINGLE_ROLES, UNIT_ROLES, Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.kernels.arrays import Ints
from sfumato.releasing.outcome import TableOutcome
from sfumato.study.evaluate import EXPECTED_ERRORS, score_of

#: The column that says of which table a record is; it is known, like a key.
_TABLE = "table of the record"
#: More rows there may not be where the records of people stand side by side.
_MOST_JOINED = 2_000_000


@dataclass(frozen=True)
class Join:
    """Places of one sort of number of people: each a table, and the column that holds the number there.

    A table that holds it in several columns, such as those of a child and its mother, is seen by each.
    """

    number: str
    places: tuple[tuple[str, str], ...]
    parts: Mapping[str, TableOutcome]

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, each once."""
        return tuple(dict.fromkeys(name for name, _ in self.places))

    def score(self, measure: Measure, scenario: str, run: Run) -> Score:
        """Score the records of all tables as those of the persons they are of."""
        links = f"`{self.number}` links tables that are released together; {measure.name}"
        if not (measure.counts.joins_person_records or measure.counts.sees_joined_rows):
            return Score.refused(f"{links} measures each alone")
        if not all(self.parts[name].release.plain for name in self.tables):
            return Score.refused(
                f"{links} cannot measure them together, because one of them separates values from their "
                "records"
            )
        if measure.counts.joins_person_records:
            return score_of(measure, self.evidence(scenario), run)
        try:
            return score_of(measure, self.rehearsed_evidence(scenario, run), run)
        except EXPECTED_ERRORS as error:
            return Score.not_estimable(f"{links} could not rehearse them together: {error.message}")

    def evidence(self, scenario: str) -> Evidence:
        """The records of all tables one below the other, cells of other tables' columns missing."""
        parts = [self.parts[name] for name, _ in self.places]
        ends = accumulate(len(part.original) for part in parts)
        origins = [
            Origin(range(end - len(part.original), end)).then(part.release.origin)
            for part, end in zip(parts, ends, strict=True)
        ]
        return Evidence(
            original=self._stack_tables([part.original for part in parts]),
            release=Release.of(
                self._stack_tables([part.release.table for part in parts]),
                source_rows=Origin.concatenate(origins).rows,
            ),
            scenario=Scenario(scenario, (_TABLE, *self._known_columns(scenario))),
        )

    def _known_columns(self, scenario: str) -> Iterator[str]:
        """What an intruder knows of all tables."""
        for name, number in self.places:
            part = self.parts[name]
            named = {each.name: each for each in part.plan.scenarios}
            seen = Evidence(part.original, part.release, named.get(scenario, Scenario()))
            for each in seen.known_columns:
                if each != number:
                    yield self._column_at_place(name, number, each)

    def rehearsed_evidence(self, scenario: str, run: Run) -> Evidence:
        """The tables released without some of their people, side by side, and these people as the control.

        Where the control group is given, it is given for every table, and the releases are as they are.
        """
        parts = {name: self.parts[name] for name in self.tables}
        cases = {name: part.case for name, part in parts.items() if part.case is not None}
        held = self._held_numbers(max((each.control for each in cases.values()), default=0.0), run)
        strangers = {name: part.original.take(self._rows_of(name, held)) for name, part in parts.items()}
        if len(held):
            parts = {name: self._rehearse_without(name, held, run.at("table", name)) for name in self.tables}
        else:
            given = {
                name: each.resources[CONTROL] for name, each in cases.items() if CONTROL in each.resources
            }
            known = all(name in given and number in given[name].schema for name, number in self.places)
            strangers = given if known else strangers
        control = self._join_side_by_side(strangers)
        if len(held):  # those whom a record of theirs names beside them are not held
            control = control.take(np.flatnonzero(control.frame[self.number].is_in(held.implode())))
        return Evidence(
            original=self._join_side_by_side({name: part.original for name, part in parts.items()}),
            release=Release.of(
                self._join_side_by_side({name: part.release.table for name, part in parts.items()})
            ),
            scenario=Scenario(scenario, tuple(self._known_columns(scenario))),
            resources={CONTROL: control} if len(control) else {},
        )

    def _held_numbers(self, share: float, run: Run) -> pl.Series:
        """The numbers of the people who sit out, in no order."""
        every = [_numbers(self.parts[name].original, number).alias("") for name, number in self.places]
        numbers = pl.concat(every).drop_nulls().unique().sort()
        n = max(round(share * len(numbers)), 1) if share else 0
        return numbers.gather(run.rng("control", self.number).permutation(len(numbers))[:n])

    def _rows_of(self, name: str, held: pl.Series) -> Ints:
        """The records of a table that are of some people, by any of its numbers."""
        original = self.parts[name].original
        columns = [number for table, number in self.places if table == name]
        found = [
            _numbers(original, number).is_in(held.implode()).fill_null(value=False) for number in columns
        ]
        return np.flatnonzero(np.any([each.to_numpy() for each in found], axis=0))

    def _rehearse_without(self, name: str, held: pl.Series, run: Run) -> TableOutcome:
        """What would come of a table without some people."""
        part = self.parts[name]
        assert part.case is not None and part.case.make is not None  # noqa: PT018  — who sits out is said there
        rest = part.original.take(np.setdiff1d(np.arange(len(part.original)), self._rows_of(name, held)))
        run = replace(run, resources={**run.resources, **part.case.resources})
        return replace(part, original=rest, release=part.case.make(rest, run.at("rehearsal")))

    def _join_side_by_side(self, tables: Mapping[str, Table]) -> Table:
        """Each record of a person beside each of theirs in the other tables; cells that none has missing."""
        owners = [_numbers(tables[name], number).alias("of") for name, number in self.places]
        sizes = [each.drop_nulls().value_counts().rename({"count": str(i)}) for i, each in enumerate(owners)]
        n_rows = int(
            _join_all(sizes).drop("of").fill_null(1).to_numpy().astype(np.float64).prod(axis=1).sum()
        )
        if n_rows > _MOST_JOINED:
            raise DataError(f"records side by side must be at most {_MOST_JOINED:,}, got: {n_rows:,}")
        rows = _join_all(
            [pl.DataFrame({"of": each}).with_row_index(str(i)).drop_nulls() for i, each in enumerate(owners)]
        )
        rows = rows.sort(pl.all())
        person = Column(self.number, Kind.NOMINAL, Role.PERSON)
        frame, columns, nodes = [rows["of"].alias(self.number)], [person], dict[str, Nodes]()
        for place, (name, number) in enumerate(self.places):
            at = rows[str(place)]
            for old, column in self._columns_at_place(name, number, tables[name]).items():
                frame.append(tables[name].frame[old].gather(at).alias(column.name))
                columns.append(column)
                nodes |= {column.name: tables[name].nodes[old]} if old in tables[name].nodes else {}
        return Table(pl.DataFrame(frame), Schema(tuple(columns)), nodes=nodes)

    def _columns_at_place(self, name: str, number: str, table: Table) -> dict[str, Column]:
        """The columns of a table as a place shows them, by their names in it."""
        found = {}
        for column in table.schema.columns:
            if column.name != number:
                role = Role.OTHER if column.role in SINGLE_ROLES else column.role
                shown = self._column_at_place(name, number, column.name)
                found[column.name] = replace(column, name=shown, role=role)
        return found

    def _column_at_place(self, table: str, number: str, column: str) -> str:
        """A column as a place shows it."""
        is_alone = sum(name == table for name, _ in self.places) == 1
        return f"{table}.{column}" if is_alone else f"{table}.{column} by {number}"

    def _stack_tables(self, tables: Sequence[Table]) -> Table:
        frames, columns, nodes = [], dict[str, Column](), dict[str, Nodes]()
        for (name, number), table in zip(self.places, tables, strict=True):
            here = self._columns_at_place(name, number, table)
            shown = table.frame.select(pl.col(old).alias(each.name) for old, each in here.items())
            whose = _numbers(table, number).alias(self.number)
            frames.append(shown.with_columns(whose, pl.lit(f"{name} {number}").alias(_TABLE)))
            columns |= {each.name: each for each in here.values()}
            nodes |= {here[old].name: each for old, each in table.nodes.items() if old in here}
        person = Column(self.number, Kind.NOMINAL, Role.PERSON)
        schema = Schema((person, Column(_TABLE, Kind.NOMINAL, Role.KEY), *columns.values()))
        return Table(pl.concat(frames, how="diagonal"), schema, nodes=nodes)


def _numbers(table: Table, name: str) -> pl.Series:
    """The numbers of a column as texts that are the same for 5, 5.0 and "5", as those of pseudonyms are."""
    return canonical_text(table.frame[name].set(pl.Series(table.missing(name)), None))


def _join_all(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames side by side, by whom they are of."""
    return reduce(lambda one, other: one.join(other, on="of", how="full", coalesce=True), frames)


def joins_of(parts: Mapping[str, TableOutcome]) -> Iterator[Join]:
    """The sorts of numbers of people that stand in several columns of the released tables.

    Numbers of persons (or households) that leave as they are join whatever their columns are called.
    """
    holders: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, part in parts.items():
        for column in part.release.first.schema.columns:
            if column.pseudonym or column.role in UNIT_ROLES:
                bare = column.name if column.role is Role.GROUP else str(column.role)
                sort = (column.pseudonym, "" if column.pseudonym else bare)
                holders.setdefault(sort, []).append((name, column.name))
    for (pseudonym, _), places in holders.items():
        if len(places) > 1:
            names = dict.fromkeys(column for _, column in places)
            yield Join(pseudonym or " = ".join(names), tuple(places), parts)


def unlinked_table_notes(parts: Mapping[str, TableOutcome]) -> dict[str, str]:
    """What to tell of tables that number the same people and do not join, by the name of the second."""
    found, seen = dict[str, str](), list[tuple[str, Column, pl.Series]]()
    for name, part in parts.items():
        number = part.release.first.schema.only_role(Role.PERSON)
        if number is None or number not in part.original.schema:
            continue
        column, own = part.release.first.schema[number], _numbers(part.original, number)
        for there, other, numbers in seen:
            if column.pseudonym != other.pseudonym and own.is_in(numbers.implode()).any():
                found[name] = (
                    f"`{there}.{other.name}` and `{name}.{number}` give the same people different "
                    "pseudonyms: the tables cannot be joined, and each is judged alone"
                )
        seen.append((name, column, own.drop_nulls()))
    return found
