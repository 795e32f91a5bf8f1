"""Tables that leave together: what an intruder makes of them who joins them by the numbers of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import Nodes, canonical_text
from sfumato.data.scenario import Scenario
from sfumato.data.schema import SINGLE_ROLES, UNIT_ROLES, Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.releasing.outcome import TableOutcome
from sfumato.study.evaluate import score_of

#: The column that says of which table a record is; it is known, like a key.
_TABLE = "table of the record"


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
        if not measure.counts.joins_person_records:
            return Score.refused(
                f"`{self.number}` links tables that are released together; {measure.name} measures each alone"
            )
        if not all(self.parts[name].release.plain for name in self.tables):
            return Score.refused(
                f"`{self.number}` links tables that are released together; {measure.name} cannot measure "
                "them together, because one of them separates values from their records"
            )
        return score_of(measure, self.evidence(scenario), run)

    def evidence(self, scenario: str) -> Evidence:
        """The records of all tables one below the other, cells of other tables' columns missing."""
        parts, known = [self.parts[name] for name, _ in self.places], [_TABLE]
        for (name, number), part in zip(self.places, parts, strict=True):
            named = {each.name: each for each in part.plan.scenarios}
            seen = Evidence(part.original, part.release, named.get(scenario, Scenario()))
            columns = [each for each in seen.known_columns if each != number]
            known += [self._column_at_place(name, number, each) for each in columns]
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
            scenario=Scenario(scenario, tuple(known)),
        )

    def _column_at_place(self, table: str, number: str, column: str) -> str:
        """A column as a place shows it."""
        is_alone = sum(name == table for name, _ in self.places) == 1
        return f"{table}.{column}" if is_alone else f"{table}.{column} by {number}"

    def _stack_tables(self, tables: Sequence[Table]) -> Table:
        frames, columns, nodes = [], dict[str, Column](), dict[str, Nodes]()
        for (name, number), table in zip(self.places, tables, strict=True):
            others = [each for each in table.names if each != number]
            names = {each: self._column_at_place(name, number, each) for each in others}
            shown = table.frame.select(pl.col(old).alias(new) for old, new in names.items())
            whose = _numbers(table, number).alias(self.number)
            frames.append(shown.with_columns(whose, pl.lit(f"{name} {number}").alias(_TABLE)))
            for old, new in names.items():
                column = table.schema[old]
                role = Role.OTHER if column.role in SINGLE_ROLES else column.role
                columns[new] = replace(column, name=new, role=role)
            nodes |= {names[old]: each for old, each in table.nodes.items() if old in names}
        person = Column(self.number, Kind.NOMINAL, Role.PERSON)
        schema = Schema((person, Column(_TABLE, Kind.NOMINAL, Role.KEY), *columns.values()))
        return Table(pl.concat(frames, how="diagonal"), schema, nodes=nodes)


def _numbers(table: Table, name: str) -> pl.Series:
    """The numbers of a column as texts that are the same for 5, 5.0 and "5", as those of pseudonyms are."""
    return canonical_text(table.frame[name].set(pl.Series(table.missing(name)), None))


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
