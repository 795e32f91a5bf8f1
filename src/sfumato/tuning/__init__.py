"""Tune: find the recipe that meets all requirements and loses least, and make a plan of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.measure import Measure
from sfumato.core.release import Release
from sfumato.core.requirement import why_unjudged
from sfumato.core.run import Run
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.io.formats import written_suffix
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan, remaining_identifiers
from sfumato.recipes.recipe import Recipe
from sfumato.study.cost import SETTINGS, Before, PlannedWork, sample_tables, works_of
from sfumato.study.evaluate import After, EvaluationCase, evaluate
from sfumato.tuning.candidate import RecipeJudge
from sfumato.tuning.companions import Companions, without_links
from sfumato.tuning.derive_space import Scope, derive, unprotected_keys_note
from sfumato.tuning.ledger import Ledger, fingerprint
from sfumato.tuning.search_space import SearchSpace
from sfumato.tuning.time_budget import TimeBudget, WorkClock
from sfumato.tuning.trial_runner import SearchBudget
from sfumato.tuning.tuner import Tuner
from sfumato.tuning.tuning_result import TuningResult, conclude
from sfumato.version import __version__

#: Records that tell whether a demand looks at the sensitive columns.
_RECORDS_LOOKED_AT = 2000
#: The way on where nothing is required.
_REQUIRE = "add a requirement such as `k >= 3`, or name a release profile"


def tune(
    case: EvaluationCase,
    demands: Sequence[Demand],
    utilities: Sequence[Measure],
    run: Run,
    *,
    scope: Scope | None = None,
    budget: SearchBudget | None = None,
    ledger: Path | None = None,
    plan: Plan | None = None,
    notes: Sequence[str] = (),
    before: Before | None = None,
    known: Sequence[Recipe] = (),
    finish: Callable[[Output], After] | None = None,
    clock: Callable[[], float] | None = None,
) -> TuningResult:
    """Search recipes, confirm the best in fresh runs, and recommend one.

    Parameters
    ----------
    case
        The original, with the intruder before whom utilities are measured.
    demands
        What the release must score, and against which intruder.
    utilities
        What is to be lost least; the first is told first, all count alike.
    scope
        Which columns, groups and methods; derived from the table where nothing is said.
    budget
        How much may be tried; the same whatever the number of workers.
    ledger
        A file in which finished work is kept, so that a search that was stopped goes on.
    plan
        What the recommended plan says beside steps, requirements and scenarios: data, resources, output.
    notes
        What should be told with the recommendation, such as requirements that do not apply.
    before
        Told of about the work that is to be done, before it is; that counts as time of the search.
    known
        Recipes that are tried first, so that what is recommended loses no more than they do.
    finish
        What the way out does to a release, by the plan's output: candidates are judged as they would leave.
    clock
        Where the seconds of the budget are read, instead of the system's and the processor's clocks.
    """
    asked = [demand.requirement for demand in demands]
    judging = sum(each.judges == "risk" for each in asked)
    if not judging or not utilities:
        needs = "a utility measure to rank the recipes by" if judging else "a requirement on risk"
        hint = "" if judging else why_unjudged(asked, _REQUIRE)
        raise ParameterError(f"the search needs {needs}", hint=hint)
    judge, budget = RecipeJudge(tuple(demands), tuple(utilities)), budget or SearchBudget()
    seconds = math.inf if budget.minutes is None else 60 * budget.minutes
    work = None if run.engine.n_workers else WorkClock()  # this process waits while others work
    watch = TimeBudget(seconds, clock) if clock else TimeBudget(seconds, work=work)
    whole = case.table
    plan, left = without_links(case, demands, plan or Plan())
    case, notes = replace(case, after=(finish or dropping)(plan.output)), (*notes, *left)
    table = whole.select([name for name in whole.names if name not in plan.output.drop])
    run = replace(run, resources={**run.resources, **case.resources})
    companions = Companions.of(whole, plan.output.drop, demands)
    space = derive(
        companions.as_keys(table),
        scope or Scope(),
        requirements=asked,
        resources=run.resources,
        sensitive=bool(companions.amounts) or looks_at_sensitive(replace(case, table=table), demands, run),
    )
    if before is not None:
        before(_works(space, judge, budget, case.resources), table, run)
    mark = fingerprint(run, _identity(case, judge, space, run.resources))
    with Ledger(ledger, mark) as kept:
        here = replace(run, randomness=run.randomness.of_data(whole.digest))  # nothing of it leaves
        found = Tuner(case, judge, space, here, budget, kept, watch).search(known)
    bare = unprotected_keys_note(space, table.schema)
    every_note = (*notes, bare) if bare else tuple(notes)
    return conclude(found, judge, space, lambda recipe: planned(plan, recipe, demands, whole), every_note)


def dropping(output: Output) -> After:
    """What leaves of a release if nothing is done to it but to drop what its output does."""
    return partial(_drop_columns, output)


def _drop_columns(output: Output, release: Release, _table: Table, _run: Run) -> Release:
    tables = {
        key: each.select([name for name in each.names if name not in output.drop])
        for key, each in release.tables.items()
    }
    return replace(release, tables=tables)


def _works(
    space: SearchSpace, judge: RecipeJudge, budget: SearchBudget, resources: Mapping[str, Any]
) -> list[PlannedWork]:
    """About what a search does: each method alone over its settings, then as many recipes as may be tried."""
    singles = space.singles()
    measures = [*(demand.measure for demand in judge.demands), *judge.quick().utilities]
    runs = SETTINGS * min(len(singles), budget.trials) + max(0, budget.trials - len(singles)) * budget.repeats
    scenario = judge.demands[0].scenario
    return works_of(singles, measures, runs / max(len(singles), 1), scenario=scenario, resources=resources)


def planned(base: Plan, recipe: Recipe, demands: Sequence[Demand], table: Table) -> Plan:
    """The plan that makes a recipe, judged by the demands."""
    scenarios = tuple(dict.fromkeys(demand.scenario for demand in demands))
    required = {s.name: tuple(each.requirement for each in demands if each.scenario == s) for s in scenarios}
    everywhere = next(iter(required.values())) if len(set(required.values())) == 1 else ()
    return replace(
        base,
        schema=base.schema or table.schema,
        recipe=recipe,
        scenarios=scenarios,
        requirements=everywhere,
        required_in={} if everywhere else required,
        output=_output(base, table),
    )


def _output(base: Plan, table: Table) -> Output:
    """What the plan writes: never an identifier, unless it is given another name."""
    output, suffix = base.output, written_suffix(base.data.path if base.data else "")
    drop = (*output.drop, *remaining_identifiers(table.schema, output.drop))
    return replace(output, path=output.path or f"release{suffix}", drop=drop)


def _identity(
    case: EvaluationCase, judge: RecipeJudge, space: SearchSpace, resources: Mapping[str, Any]
) -> dict[str, Any]:
    """What makes a search this search: results of another one mean nothing here."""
    return {
        "sfumato": __version__,
        "data": case.table.digest.hex(),
        "schema": case.table.schema.to_dict(),
        "scenario": case.scenario.to_dict(),
        "demands": [[str(each.requirement), each.scenario.to_dict()] for each in judge.demands],
        "utilities": [str(measure) for measure in judge.utilities],
        "space": space.to_dict(),
        "control": case.control,
        "resources": {name: _contents(value) for name, value in sorted(resources.items())},
    }


def _contents(resource: Any) -> str:
    """A fingerprint of a resource: another hierarchy of the same name is another search."""
    if isinstance(resource, Table):
        return resource.digest.hex()
    if isinstance(resource, Hierarchy):
        return hashlib.sha256(resource.levels.write_json().encode()).hexdigest()
    return type(resource).__name__


def looks_at_sensitive(case: EvaluationCase, demands: Sequence[Demand], run: Run) -> bool:
    """Whether any demand changes with the sensitive columns, so that protecting them may help to meet it.

    Found by trying: with the keys as they are and with all keys alike (where each record is a class of its
    own, diversity does not change), the sensitive columns are once shuffled and once made alike.
    """
    sensitive = case.table.schema.with_role(Role.SENSITIVE)
    if not sensitive or len(case.table) < 2:  # noqa: PLR2004
        return False
    if any(demand.measure.needs.control for demand in demands):  # what it says takes a rehearsal
        return True
    case = replace(case, table=sample_tables(case.table, None, _RECORDS_LOOKED_AT)[0])
    table, demands = case.table, [each.among(case.table.schema) for each in demands]
    keys = table.schema.with_role(Role.KEY)
    shuffled = run.at(table).rng("sensitive").permutation(len(table))
    alike = np.zeros(len(table), dtype=np.int64)
    for start in (table, _permute_columns(table, keys, alike)):
        tried = [start, *(_permute_columns(start, sensitive, order) for order in (shuffled, alike))]
        seen = set()
        for each in tried:
            release = Release.record_by_record(each)
            scores = evaluate(release, case, demands, run.silent()).scores
            seen.add(tuple((repr(float(score.value)), score.status) for score in scores.values()))
        if len(seen) > 1:
            return True
    return False


def _permute_columns(table: Table, names: Sequence[str], rows: Any) -> Table:
    """The table with other records' values in some columns."""
    places = pl.Series(rows, dtype=pl.UInt32)
    for name in names:
        table = table.with_values(name, table.frame[name][places])
    return table
