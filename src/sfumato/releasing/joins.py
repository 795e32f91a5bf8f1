"""Tables that leave together: what an intruder makes of them who joins them by the numbers of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.scenario import Scenario
from sfumato.data.schema import SINGLE_ROLES, UNIT_ROLES, Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.releasing.outcome import Part
from sfumato.study.evaluate import score_of

#: The column that says of which table a record is; it is known, like a key.
_TABLE = "table of the record"


@dataclass(frozen=True)
class Join:
    """Tables with one sort of number of people: of each table its part, and the column of the number."""

    number: str
    columns: Mapping[str, str]
    parts: Mapping[str, Part]

    def score(self, measure: Measure, scenario: str, run: Run) -> Score:
        """Score the records of all tables as those of the persons they are of."""
        if not measure.counts.joins_person_records:
            return Score.refused(
                f"tables that `{self.number}` joins leave together, and {measure.name} looks at each alone"
            )
        if not all(self.parts[name].release.plain for name in self.columns):
            return Score.refused(
                f"tables that `{self.number}` joins leave together, and in one of them values stand apart "
                f"from their records, where {measure.name} cannot see both"
            )
        return score_of(measure, self.evidence(scenario), run)

    def evidence(self, scenario: str) -> Evidence:
        """The records of all tables one below the other, cells of other tables' columns missing."""
        parts = {name: self.parts[name] for name in self.columns}
        known = [_TABLE]
        for name, part in parts.items():
            named = {each.name: each for each in part.plan.scenarios}
            seen = Evidence(part.original, part.release, named.get(scenario, Scenario()))
            known += [f"{name}.{each}" for each in seen.known_columns if each != self.columns[name]]
        ends = accumulate(len(part.original) for part in parts.values())
        origins = [
            Origin(range(end - len(part.original), end)).then(part.release.origin)
            for part, end in zip(parts.values(), ends, strict=True)
        ]
        return Evidence(
            original=self._stacked({name: part.original for name, part in parts.items()}),
            release=Release.of(
                self._stacked({name: part.release.table for name, part in parts.items()}),
                source_rows=Origin.concatenated(origins).rows,
            ),
            scenario=Scenario(scenario, tuple(known)),
        )

    def _stacked(self, tables: Mapping[str, Table]) -> Table:
        frames, columns, nodes = [], dict[str, Column](), dict[str, Nodes]()
        for name, table in tables.items():
            number = self.columns[name]
            names = {each: f"{name}.{each}" for each in table.names if each != number}
            marks = [pl.col(number).cast(pl.String).alias(self.number), pl.lit(name).alias(_TABLE)]
            frames.append(table.frame.select(*marks, *(pl.col(old).alias(new) for old, new in names.items())))
            for old, new in names.items():
                column = table.schema[old]
                role = Role.OTHER if column.role in SINGLE_ROLES else column.role
                columns[new] = replace(column, name=new, role=role)
            nodes |= {names[old]: each for old, each in table.nodes.items() if old in names}
        whose = Column(self.number, Kind.NOMINAL, Role.PERSON)
        schema = Schema((whose, Column(_TABLE, Kind.NOMINAL, Role.KEY), *columns.values()))
        return Table(pl.concat(frames, how="diagonal"), schema, nodes=nodes)


def joins_of(parts: Mapping[str, Part]) -> Iterator[Join]:
    """The sorts of numbers of people that stand in several released tables."""
    holders: dict[str, dict[str, str]] = {}
    for name, part in parts.items():
        for column in part.release.first.schema.columns:
            if column.pseudonym or column.role in UNIT_ROLES:
                holders.setdefault(column.pseudonym or column.name, {}).setdefault(name, column.name)
    for number, columns in holders.items():
        if len(columns) > 1:
            yield Join(number, columns, parts)
