"""Explain a record: which keys single it out, which attack reaches it, what each step changed.

Everything here is private: it shows the values of one person. It is made for the owner of the data, never for
a report that is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Missing
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.scenario import Scenario
from sfumato.data.schema import COMPARABLE
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.explain.attacks import Attack, RiskiestRecords, attacks_on, usual_attacks
from sfumato.explain.attacks import riskiest as find_riskiest
from sfumato.explain.keys import Cell, KeyExplanation, cell, explain_keys
from sfumato.explain.steps import StepExplanation, follow_record, rows_of
from sfumato.recipes.recipe import Recipe
from sfumato.risk._rank_moves import RankMove, moves_of
from sfumato.study.evaluate import EvaluationCase

#: The first line of every explanation of a record.
PRIVATE = "private: never share this, it shows the values of one record"


@dataclass(frozen=True)
class Explanation:
    """What is known of one record of the original, by its position from 0.

    ``keys`` is its equivalence class in the original, ``released_keys`` in the release (None without one, or
    where it is not in there). ``moves`` are how far each of its values moved in rank. ``silent`` says why
    some measures have no value for it.
    """

    record: int
    records: int
    values: Mapping[str, Cell] = field(repr=False)
    keys: KeyExplanation | None
    released_keys: KeyExplanation | None
    released_as: tuple[int, ...] | None
    moves: tuple[RankMove, ...]
    attacks: tuple[Attack, ...]
    silent: Mapping[str, str]
    steps: tuple[StepExplanation, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private, and says so."""
        return {
            "private": PRIVATE,
            "record": self.record,
            "records": self.records,
            "values": dict(self.values),
            "keys": self.keys and self.keys.to_dict(),
            "released_keys": self.released_keys and self.released_keys.to_dict(),
            "released_as": None if self.released_as is None else list(self.released_as),
            "moves": [move.to_dict() for move in self.moves],
            "attacks": [attack.to_dict() for attack in self.attacks],
            "silent": dict(self.silent),
            "steps": [step.to_dict() for step in self.steps],
            "notes": list(self.notes),
        }


def explain_record(
    table: Table,
    row: int,
    release: Release | None = None,
    *,
    recipe: Recipe | None = None,
    run: Run | None = None,
    measures: Sequence[Measure] = (),
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
    k: int = 5,
    missing: Missing = "category",
    postprocess: Callable[[Release], Release] | None = None,
) -> Explanation:
    """Explain one record of a table: what singles it out, which attack reaches it, what each step changed.

    Parameters
    ----------
    table
        The original.
    row
        The position of the record, from 0.
    release
        A release of the table that is there already; or else
    recipe
        how to make one: it is followed with ``run``; with the run of a release, its very steps are seen.
    measures
        The attacks; if none is given, the usual measures of risk and all that cost little.
    scenario
        The intruder. The worst case is taken: one who holds the true values of this record.
    k
        The class size that the record should have in the keys.
    missing
        What a missing key counts for.
    postprocess
        What a plan does after its steps (see `releasing.postprocess`), shown as a last one.

    Examples
    --------
    >>> frame = pl.DataFrame({"sex": ["f", "f", "m"], "job": ["cook", "smith", "cook"]})
    >>> table = Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in frame.columns)))
    >>> explain_record(table, 0, k=2).keys.unique_in
    (('job', 'sex'),)
    >>> explain_record(table, 1, k=2).keys.unique_in
    (('job',),)
    """
    _require_row(table, row)
    if release is not None and recipe is not None:
        raise ParameterError("give either `release` or `recipe`, not both")
    run, resources = run or Run(), resources or {}
    run = replace(run, resources={**run.resources, **resources})
    steps: tuple[StepExplanation, ...] = ()
    if recipe is not None and (recipe.steps or postprocess):
        steps, release = follow_record(recipe, table, row, run, postprocess=postprocess)
    intruder, notes = _worst_case(scenario or Scenario())
    evidence = EvaluationCase(table, intruder, resources).evidence(release)
    attacks, silent = attacks_on(evidence, row, list(measures) or usual_attacks(), run)
    places = None if release is None else rows_of(release, row)
    settings: dict[str, Any] = {"k": k, "missing": missing}
    keys, left_out = _keys(evidence, table)
    if left_out:
        notes += (f"not used as keys, because their values cannot be compared: {', '.join(left_out)}",)
    hierarchies = _hierarchies(table, resources)
    return Explanation(
        record=row,
        records=len(table),
        values={name: cell(table, name, row) for name in table.names},
        keys=explain_keys(table, row, keys, hierarchies=hierarchies, **settings) if keys else None,
        released_keys=_released_keys(release, places, evidence, settings),
        released_as=None if places is None else tuple(places),
        moves=moves_of(evidence, row),
        attacks=attacks,
        silent=silent,
        steps=steps,
        notes=notes,
    )


def riskiest_records(
    table: Table,
    count: int,
    release: Release | None = None,
    *,
    measure: Measure | None = None,
    run: Run | None = None,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
) -> RiskiestRecords:
    """Find the records most at risk, by position from 0.

    Without a ``measure``, by the probability of being linked to the nearest released record or, if there is
    no release, by the number of small combinations of keys in which a record is rare.
    """
    intruder, _ = _worst_case(scenario or Scenario())
    evidence = EvaluationCase(table, intruder, resources or {}).evidence(release)
    if measure is None:
        measure = registry.measure("unsafe-combinations" if release is None else "dbrl")()
    return find_riskiest(evidence, measure, count, run or Run())


def _require_row(table: Table, row: int) -> None:
    if not len(table):
        raise ParameterError("the table has no records")
    if not 0 <= row < len(table):
        raise ParameterError(
            f"`record` must be a position from 0 to {len(table) - 1}, got: `{row}`",
            hint="the first record of a file has position 0",
        )


def _worst_case(scenario: Scenario) -> tuple[Scenario, tuple[str, ...]]:
    """The intruder who holds the true values of this record, whatever file they have it from."""
    if not scenario.external and scenario.records == 1:
        return scenario, ()
    note = f"the intruder of scenario `{scenario.name}` is assumed to know the true values of this record"
    return replace(scenario, external="", records=1.0), (note,)


def _keys(evidence: Evidence, table: Table) -> tuple[list[str], list[str]]:
    """The columns an intruder knows of a table, and those of them that cannot be compared."""
    known = [name for name in evidence.known_columns if name in table.schema]
    usable = [name for name in known if table.schema[name].kind in COMPARABLE]
    return usable, [f"`{name}`" for name in known if name not in usable]


def _released_keys(
    release: Release | None, places: list[int] | None, evidence: Evidence, settings: Mapping[str, Any]
) -> KeyExplanation | None:
    if release is None or not places:
        return None
    keys, _ = _keys(evidence, release.reading())
    return explain_keys(release.reading(), places[0], keys, **settings) if keys else None


def _hierarchies(table: Table, resources: Mapping[str, Any]) -> dict[str, Hierarchy]:
    found = {column.name: resources.get(column.hierarchy) for column in table.schema.columns}
    return {name: each for name, each in found.items() if isinstance(each, Hierarchy)}
