"""Tables of counts that leave beside a release, and what an intruder makes of both together.

Counts of the protected file tell nothing new. Counts of the original are judged with the release:

- *Of columns that the intruder knows.* Exchange the original keys of two records of one equivalence class:
  release and counts stay the same. So each record of a class is as likely as before to be the one that is
  looked for, and whatever was judged by classes holds.
- *Of other columns, too.* The intruder is given more than both tell: whose record is counted in which cell.
  The release with the counted columns is judged by the same requirements: of the people of one class in it,
  no way of guessing is right more often than they say.

A cell of few people is never written, and what neither argument covers is refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.measure import ClassMeasure
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.joining import joining_columns, units_of
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError, count_noun
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import CountTable
from sfumato.recipes.plan import Plan
from sfumato.releasing.outcome import CountsBeside, Judgement
from sfumato.study.evaluate import EvaluationCase, evaluate


def count_beside(plan: Plan, original: Table, release: Release, run: Run) -> CountsBeside:
    """Make the tables of counts of a plan, and judge those of the original with the release."""
    if not plan.count_tables:
        return CountsBeside()
    if not release.plain:
        raise PlanError("tables of counts need a release of one table, got: several tables")
    sources = {"protected": release.first, "original": original}
    made = {each.name: count_records(sources[each.counts], each) for each in plan.count_tables}
    telling = [each for each in plan.count_tables if each.counts == "original"]
    faults = tuple(_faults(plan, telling, made, original, release)) if telling else ()
    judged = () if faults else tuple(_judge_joined(plan, telling, original, release, run))
    return CountsBeside(made, faults, judged)


def count_records(table: Table, asked: CountTable) -> Table:
    """How many records have each combination of values, sorted: the order of records tells who is who."""
    shown = table.select(asked.columns)
    sets = [column.name for column in shown.schema.columns if column.kind is Kind.SET]
    if sets:
        raise PlanError(f"the table of counts `{asked.name}` must not count by `{sets[0]}`, which holds sets")
    places = [str(place) for place, _ in enumerate(asked.columns)]  # a column may be called * or ^a$
    by_place = pl.DataFrame(
        [shown.frame[name].alias(at) for name, at in zip(asked.columns, places, strict=True)]
    )
    frame = by_place.group_by(places).len("records").sort(places, nulls_last=True)
    counted = _free_name("records", asked.columns)
    frame.columns = [*asked.columns, counted]
    column = Column(counted, Kind.CONTINUOUS, Role.OTHER, integer=True)
    return Table(frame, Schema((*shown.schema.columns, column)), nodes=shown.nodes)


def _faults(
    plan: Plan, telling: Sequence[CountTable], made: Mapping[str, Table], original: Table, release: Release
) -> Iterator[str]:
    """Why counts of the original may not leave, or cannot be judged with the release."""
    least, rows = plan.class_size, release.source_rows
    for each in telling:
        counts = made[each.name].frame.to_series(-1)
        if few := int((counts < least).sum()):
            cells = f"{count_noun(few, 'cell')} of fewer than {least} records"
            yield f"`{each.name}` has {cells}: count fewer columns or coarser ones"
    why = ""
    if plan.recipe.stochastic or release.budget:
        why = "a step of the plan draws at random"
    elif plan.series is not None:
        why = "the release is one of a series"
    elif units_of(original) or joining_columns(release.first):
        why = "people have several records"
    elif not plan.risk_demands or not all(map(_judges_classes, plan.risk_demands)):
        why = "requirements must be on equivalence classes, such as k >= 5, with missing keys as a category"
    elif rows is None or (rows < 0).any() or len(np.unique(rows)) < len(rows):
        why = "released records are not single records of the original"
    else:
        gone = len(original) - len(rows)
        beyond = any(_joined_columns(telling, _known_columns(original, each)) for each in plan.scenarios)
        if 0 < gone < (math.inf if beyond else least):
            why = f"{count_noun(gone, 'record')} that the release leaves out can be counted by difference"
    if why:
        yield f"counts of the original cannot be judged with the release: {why}; count the protected file"


def _judges_classes(demand: Demand) -> bool:
    """Whether a requirement is on classes of records that are alike as they stand."""
    return isinstance(demand.measure, ClassMeasure) and getattr(demand.measure, "missing", "") == "category"


def _known_columns(original: Table, scenario: Scenario) -> tuple[str, ...]:
    """What an intruder knows of people, whether or not the release has it."""
    return original.schema.resolve(scenario.columns) or original.schema.known_columns()


def _joined_columns(telling: Sequence[CountTable], known: Sequence[str]) -> tuple[str, ...]:
    """The columns of all tables that count by something the intruder does not know."""
    beyond = [each.columns for each in telling if not set(each.columns) <= set(known)]
    return tuple(dict.fromkeys(name for columns in beyond for name in columns))


def _judge_joined(
    plan: Plan, telling: Sequence[CountTable], original: Table, release: Release, run: Run
) -> Iterator[Judgement]:
    """Judge what is required by the release with the columns of each record's cells, if that tells more."""
    for scenario in plan.scenarios if telling else ():
        known = _known_columns(original, scenario)
        columns, rows = _joined_columns(telling, known), release.source_rows
        if not columns or rows is None:  # without rows it was refused
            continue
        added = {name: _free_name(f"{name} as counted", original.names) for name in columns if name in known}
        shown = release.with_table(_with_cells(release.first, original.take(rows), columns, added))
        case = EvaluationCase(_with_cells(original, original, (), added), resources=run.resources)
        seen = replace(scenario, columns=(*known, *added.values()))
        for demand in (each for each in plan.risk_demands if each.scenario == scenario):
            (score,) = evaluate(shown, case, [replace(demand, scenario=seen)], run).scores.values()
            yield Judgement(demand.requirement, f"{scenario.name}, with the tables of counts", score)


def _with_cells(table: Table, beside: Table, columns: Sequence[str], added: Mapping[str, str]) -> Table:
    """A table with what the cells tell of each record: known columns besides, others in place."""
    values = {name: name for name in columns if name not in added} | {new: old for old, new in added.items()}
    kept = table.select(name for name in table.names if name not in values)
    frame = kept.frame.with_columns(beside.frame[old].alias(new) for new, old in values.items())
    own = [replace(beside.schema[old], name=new) for new, old in values.items()]
    return Table(frame, replace(kept.schema, columns=(*kept.schema.columns, *own)), nodes=kept.nodes)


def _free_name(name: str, taken: Collection[str]) -> str:
    return name if name not in taken else _free_name(f"{name} ", taken)
