"""Columns beside the keys that a release must change too: they would give keys back, or join records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.intruder_view import joining
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.key_inference import tellers_of
from sfumato.data.relations.regrouping import regroupings, released_units
from sfumato.data.schema import ORDERED, UNIT_ROLES, Role
from sfumato.data.table import Table
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study.evaluate import After, EvaluationCase

#: How many records share each amount that would join them, tried from the mildest on.
_SHARED_BY = (10, 50, 250)


@dataclass(frozen=True)
class Companions:
    """Columns to be protected as if they were keys, and sensitive amounts to be made less exact."""

    keys: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()

    @classmethod
    def of(cls, whole: Table, dropped: Iterable[str], demands: Iterable[Demand]) -> Companions:
        """Find them in a table without the columns that are dropped."""
        left = whole.select([name for name in whole.names if name not in set(dropped)])
        schema, known = left.schema, set[str]()
        for demand in demands:
            named = [name for name in whole.schema.resolve(demand.scenario.columns) if name in schema]
            known |= {*(named or schema.known_columns())}
        beside = left.select([name for name in left.names if name not in known])
        found = set(tellers_of(left, sorted(known))) | set(_joiners(whole, beside))
        columns = [name for name in left.names if name in found and schema[name].role is not Role.WEIGHT]
        sensitive = [name for name in columns if schema[name].role is Role.SENSITIVE]
        amounts = [name for name in sensitive if schema[name].kind in ORDERED]
        return cls(tuple(name for name in columns if name not in sensitive), tuple(amounts))

    def also_joining_in(self, whole: Table, release: Release) -> Companions:
        """The same with the amounts that join records beside what a release still says of their keys."""
        rows = release.source_rows
        if rows is None or not release.plain:
            return self
        released = release.reading()
        units = released_units(whole, rows)
        apart = {name: own for name, own in units.items() if name not in released.schema}
        joining = {name for each in regroupings(released, apart) for name in each.columns}
        amounts = [
            column.name
            for column in released.schema.columns
            if column.role is Role.SENSITIVE and column.kind in ORDERED and column.name in joining
        ]
        return replace(self, amounts=tuple(dict.fromkeys((*self.amounts, *amounts))))

    def as_keys(self, table: Table) -> Table:
        """The table whose columns to be protected are keys, as a search of steps sees it."""
        columns = [replace(table.schema[name], role=Role.KEY) for name in self.keys]
        return replace(table, schema=table.schema.replace(*columns))

    def further_steps(self, records: int) -> Iterator[tuple[Step, ...]]:
        """Nothing, then ever more records that share each amount."""
        from sfumato.methods.univariate_microaggregation import IndividualRanking

        yield ()
        for k in _SHARED_BY if self.amounts else ():
            if 2 * k <= records:
                yield (Step(IndividualRanking(k=k), self.amounts),)


def without_links(case: EvaluationCase, demands: Sequence[Demand], plan: Plan) -> tuple[Plan, list[str]]:
    """The plan that also drops the persons' and households' numbers that no demand bears.

    Where a column joins records, a measure that looks at each alone is never certain, and nothing would do.
    """
    schema = case.table.schema
    linking = schema.with_role(*UNIT_ROLES)
    blind = sorted({each.measure.name for each in demands if not each.measure.counts.joins_person_records})
    joined = joining(case.evidence(Release.unchanged(case.table))) if blind else {}
    new = [name for name in linking if name in joined and name not in plan.output.drop]
    plan = replace(plan, output=replace(plan.output, drop=(*plan.output.drop, *new)))
    names = " and ".join(blind)
    notes = [f"`{name}` is left out: it links records, and {names} measures each alone" for name in new]
    return plan, notes


def followed_by(steps: tuple[Step, ...], after: After) -> After:
    """What is done to a release if further steps are taken, none of which leaves anything to chance."""

    def take(release: Release, table: Table, run: Run) -> Release:
        if steps and release.plain:
            release = release.then(Recipe(steps).apply(release.table, run))
        return after(release, table, run)

    return take


def _joiners(whole: Table, beside: Table) -> Iterator[str]:
    """Columns by which persons, households or groups are put together again that nothing else tells."""
    if not beside.names or not whole.schema.with_role(*UNIT_ROLES, Role.IDENTIFIER):
        return
    units = released_units(whole, np.arange(len(whole)))
    for each in regroupings(beside, {name: own for name, own in units.items() if name not in beside.schema}):
        yield from each.columns
