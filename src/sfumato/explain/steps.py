"""What each step of a recipe did to one record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.codings import numbers_of_both
from sfumato.data.schema import ORDERED, Kind
from sfumato.data.table import Table
from sfumato.explain.keys import Cell, cell
from sfumato.kernels.arrays import Floats
from sfumato.recipes.recipe import Recipe
from sfumato.risk.linkage import deviation

#: The value of a column that a table does not have.
ABSENT = "(no such column)"


@dataclass(frozen=True)
class Change:
    """One value before and after a step.

    ``deviations`` is the change in standard deviations of the original column; ``ranks`` how many of its
    ``of_ranks`` values were passed over (half for those that are equal to the one or the other).
    """

    column: str
    before: Cell = field(repr=False)
    after: Cell = field(repr=False)
    deviations: float | None = None
    ranks: float | None = None
    of_ranks: int | None = None


@dataclass(frozen=True)
class StepExplanation:
    """What a step did to a record: the values it changed, and how many records of the release are its own.

    ``copies`` is None where that is unknown, as with synthetic data.
    """

    step: str
    parameters: Mapping[str, Any]
    columns: tuple[str, ...]
    copies: int | None
    changes: tuple[Change, ...] = ()
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON; it is private."""
        return {**asdict(self), "parameters": dict(self.parameters), "columns": list(self.columns)}


def follow_record(
    recipe: Recipe,
    table: Table,
    row: int,
    run: Run,
    *,
    postprocess: Callable[[Release], Release] | None = None,
) -> tuple[tuple[StepExplanation, ...], Release]:
    """Follow the recipe with a record in sight; the release is that of ``recipe.apply`` with the same run.

    ``postprocess`` is what a plan does after its steps, shown as a step of its own.
    """
    before, stories = Release.unchanged(table), []
    for after in recipe.follow(table, run):
        taken = after.provenance[-1]
        story = _story(taken.method, table, row, before, after)
        stories.append(replace(story, parameters=taken.parameters, columns=taken.columns))
        before = after
    if postprocess is not None:
        after = postprocess(before)
        stories.append(_story("postprocessing", table, row, before, after))
        before = after
    return tuple(stories), before


def rows_of(release: Release, row: int) -> list[int] | None:
    """Where a record of the original is in a release; None where that is unknown."""
    if release.source_rows is None:
        return None
    return [int(place) for place in np.flatnonzero(release.source_rows == row)]


def _story(step: str, original: Table, row: int, before: Release, after: Release) -> StepExplanation:
    old, new = rows_of(before, row), rows_of(after, row)
    if new is None or old is None:
        return StepExplanation(step, {}, (), None, note="synthetic records cannot be traced to this one")
    if not new:
        note = "this step removed the record" if old else "an earlier step removed the record"
        return StepExplanation(step, {}, (), 0, note=note)
    changes = tuple(_changes(original, before.reading(), old[0], after.reading(), new[0])) if old else ()
    note = "" if changes else "this step did not change the record"
    if len(new) > 1:
        note = f"the release contains the record {len(new)} times; the first is shown"
    return StepExplanation(step, {}, (), len(new), changes, note)


def _changes(original: Table, before: Table, old: int, after: Table, new: int) -> Iterator[Change]:
    for name in dict.fromkeys((*before.names, *after.names)):
        was = cell(before, name, old) if name in before.schema else ABSENT
        now = cell(after, name, new) if name in after.schema else ABSENT
        if was == now:
            continue
        pair = before.take(np.array([old])), after.take(np.array([new]))
        yield Change(name, was, now, **_scaled_change(original, *pair, name))


def _scaled_change(original: Table, before: Table, after: Table, name: str) -> dict[str, Any]:
    """How far a value moved, on the scale of the original column; nothing where there is no such scale."""
    tables = (original, before, after)
    if not all(name in each.schema and each.schema[name].kind in ORDERED for each in tables):
        return {}
    if len({each.schema[name].kind for each in tables}) > 1 or any(
        each.is_generalised(name) for each in tables
    ):
        return {}
    scale, was = numbers_of_both(original, before, name)
    other, now = numbers_of_both(original, after, name)
    there = np.sort(scale[~np.isnan(scale)])
    if np.isnan(was[0]) or np.isnan(now[0]) or not len(there):
        return {}
    moved = _midrank(np.sort(other[~np.isnan(other)]), now[0]) - _midrank(there, was[0])
    payload: dict[str, Any] = {"ranks": moved, "of_ranks": len(there)}
    spread = deviation(scale)
    if original.schema[name].kind is not Kind.ORDINAL and spread > 0:
        finer = deviation(other) / spread  # not 1 where a date has become a time
        payload["deviations"] = float((now[0] / finer - was[0]) / spread)
    return payload


def _midrank(ordered: Floats, value: float) -> float:
    return float(np.searchsorted(ordered, value, "left") + np.searchsorted(ordered, value, "right")) / 2
