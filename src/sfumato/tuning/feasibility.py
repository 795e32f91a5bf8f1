"""Whether what is required can hold at all, what it takes, and which sensitive column stands in the way.

Looked at before a search, which would find it out only by its minutes. No measure is known by its name here:
one whose classes put together are no worse than the worst of them is at its best where all records are one
class, and what a column takes is seen by leaving it out.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.measure import APPROACH, ClassMeasure, Score
from sfumato.core.params import Columns
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.hierarchy.grow import propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind
from sfumato.data.table import Table
from sfumato.errors import UnreachableError, count_noun, quoted
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.starter import safe_steps
from sfumato.study.cost import sample_tables
from sfumato.study.evaluate import EXPECTED_ERRORS, EvaluationCase, evaluate
from sfumato.tuning.fallbacks import WHAT_HELPS

#: A column stands in the way if without it so many times as many classes of records alike can be told apart.
TIMES = 4
#: Records that tell what columns take: at most, at least, and all columns together.
_MOST_RECORDS, _LEAST_RECORDS, _RECORDS_IN_ALL = 5_000, 1_000, 20_000
#: Of more columns than this it is not looked for those that stand in the way only together.
_MAX_COLUMNS_TOGETHER = 4
#: The choice of a measure's `distance` by which codes are the nearer, the lower they meet in a hierarchy.
_HIERARCHY = "hierarchy"
#: What is said before the obstacles of a search that found nothing.
_LEAD = "what stands in the way:"
#: Significant digits of a level that can be met.
_DIGITS = 4


@dataclass(frozen=True)
class FeasibilityRemedy:
    """A way on, and about how many classes of records alike it would leave."""

    what: str
    classes: int | None = None


@dataclass(frozen=True)
class Obstacle:
    """A requirement that cannot hold, or that some sensitive ``columns`` make costly.

    ``values`` says how many each of them has. Of what cannot hold, however the keys are changed, ``best`` is
    the score where all ``records`` are alike, and ``nearest`` the strictest requirement of its kind that can
    (empty if that would ask nothing); it ``is_final`` if it would not even hold were every value of the
    columns equally frequent. Else ``classes`` are about as many as the records can be told apart in.
    """

    requirement: str
    columns: tuple[str, ...]
    values: tuple[int, ...]
    records: int
    best: float | None = None
    nearest: str = ""
    is_final: bool = False
    classes: int | None = None
    remedies: tuple[FeasibilityRemedy, ...] = ()

    @property
    def sentence(self) -> str:
        """What stands in the way of what."""
        held = zip(self.columns, self.values, strict=True)
        named = " and ".join(f"`{name}` ({count_noun(count, 'value')})" for name, count in held)
        if self.best is None:
            few = f"{self._size(self.classes)} records, of {self.records:,} examined"
            return f"{self.requirement} leaves only {few}, because of {named}"
        why = f", because of {named}" if named else ""
        near = f". The nearest that can be met: {self.nearest}" if self.nearest else ""
        how = "" if self.is_final else ", however the keys are changed"
        return (
            f"{self.requirement} cannot be met{how}: with all {self.records:,} records in one class it is "
            f"{self.best:.{_DIGITS}g}{why}{near}"
        )

    @property
    def ways_on(self) -> list[str]:
        """What can be done about it, and what that would leave."""
        return [
            f"{way.what}: {self._size(way.classes)}" if way.classes else way.what for way in self.remedies
        ]

    def _size(self, classes: int | None) -> str:
        return f"equivalence classes of about {self.records // max(classes or 1, 1):,}"

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return asdict(self)


def obstacles_text(obstacles: Sequence[Obstacle]) -> str:
    """The obstacles as one screen of text, each with the ways on."""
    lines = [line for each in obstacles for line in (each.sentence, *(f"  - {way}" for way in each.ways_on))]
    return "\n".join(lines)


def obstacles_to(
    demands: Sequence[Demand], table: Table, run: Run, *, left_out: Sequence[str] = ()
) -> tuple[Obstacle, ...]:
    """What cannot hold; where everything can, the sensitive column that makes it costly, if one does.

    ``left_out`` are columns that are not released.
    """
    case = _case(table, run, left_out)
    demands = [each.among(case.table.schema) for each in demands]
    return _impossible(demands, case, run) or _costly(demands, case.table, run)


@contextmanager
def feasible_first(
    demands: Sequence[Demand], table: Table, run: Run, *, left_out: Sequence[str] = ()
) -> Iterator[None]:
    """Raise at once what can never hold; if nothing is found that meets all, say what stands in the way."""
    case = _case(table, run, left_out)
    demands = [each.among(case.table.schema) for each in demands]
    impossible = _impossible(demands, case, run)
    if final := [each for each in impossible if each.is_final]:
        ways = dict.fromkeys(way for each in final for way in each.ways_on)
        raise UnreachableError(
            "; ".join(each.sentence for each in final),
            hint="\n".join(["what you can do:", *(f"  - {way}" for way in ways)]),
        )
    try:
        yield
    except UnreachableError as error:
        tried = error.hint.removeprefix(WHAT_HELPS).removeprefix("; ")
        if _LEAD not in tried:  # a search within this one has said it
            found = impossible or _costly(demands, case.table, run)
            if not found:
                raise
            tried = "\n".join(filter(None, (_LEAD, obstacles_text(found), tried)))
        raise UnreachableError(error.message, hint=tried) from None


def _case(table: Table, run: Run, left_out: Sequence[str]) -> EvaluationCase:
    kept = [name for name in table.names if name not in set(left_out)]
    return EvaluationCase(table.select(kept), resources=run.resources)


# What cannot hold -----------------------------------------------------------------------------------------


def _impossible(demands: Sequence[Demand], case: EvaluationCase, run: Run) -> tuple[Obstacle, ...]:
    """The requirements that fail even where all records are alike: no change of the keys makes them hold.

    Said only of measures for which that is the best there is, and only where their number is certain.
    """
    found: dict[Any, Obstacle] = {}
    for demand in demands if len(case.table) else ():
        seen = _DemandView.of(demand, case) if _is_best_in_one_class(demand.requirement) else None
        if seen is None or (score := seen.missed_in_one_class(run)) is None:
            continue
        made = _obstacle(seen, score, run)
        found[made.requirement, made.columns] = made
    return tuple(found.values())


def _is_best_in_one_class(requirement: Requirement) -> bool:
    measure = requirement.measure
    if requirement.judges != "risk" or not isinstance(measure, ClassMeasure):
        return False
    return measure.class_values.survive_merging or measure.class_values.are_sizes


@dataclass(frozen=True)
class _DemandView:
    """What a demand looks at: the ``keys`` that make records alike, and the columns that are ``counted``."""

    demand: Demand
    case: EvaluationCase
    keys: tuple[str, ...]
    counted: tuple[str, ...]

    @classmethod
    def of(cls, demand: Demand, case: EvaluationCase) -> _DemandView | None:
        """Find it out; None where the measure is none of classes, or does not apply."""
        measure, schema = demand.measure, case.table.schema
        if not isinstance(measure, ClassMeasure):
            return None
        evidence = case.evidence(Release.unchanged(case.table), demand.scenario)
        try:
            if measure.refuses(evidence) is not None:
                return None
        except EXPECTED_ERRORS:
            return None
        keys = measure.keys(evidence)
        settings = [getattr(measure, each.name) for each in measure.parameters()]
        names = {name for words in settings if isinstance(words, Columns) for name in schema.resolve(words)}
        names |= set(measure.sensitive_columns(evidence))
        return cls(demand, case, keys, tuple(name for name in schema.names if name in names - set(keys)))

    def missed_in_one_class(self, run: Run) -> Score | None:
        """The score where all records are alike, if it certainly misses the requirement; else None.

        By the records alone first, which costs little; then with the persons whose they are.
        """
        alike = self._with_equal_keys()
        if self._score_if_missed(None, replace(self.case, table=alike), run) is None:
            return None
        return self._score_if_missed(Release.record_by_record(alike), self.case, run)

    def is_never_met(self, failing: Sequence[str], run: Run) -> bool:
        """Whether it is missed whatever else is done: of people alone, or by a column of even values too.

        Nothing does better than equally frequent values by swapping or drawing them, or by leaving out
        records; noise, which makes new values, may.
        """
        assert isinstance(self.demand.measure, ClassMeasure)
        if not self.counted:
            return self.demand.measure.class_values.are_sizes
        kinds = {Kind.NOMINAL, Kind.ORDINAL}
        fixed = [each for each in failing if self.case.table.schema[each].kind in kinds]
        return any(self._is_missed_by_even_values(name, run) for name in fixed)

    def _is_missed_by_even_values(self, name: str, run: Run) -> bool:
        """Whether a column misses it with its values equally frequent, be missing one of them or not."""
        alike, cells = self._with_equal_keys(), self.case.table.frame[name]
        for there in (cells.filter(pl.Series(~alike.missing(name))), cells):
            values = there.unique(maintain_order=True)
            if not len(values):
                continue
            places = np.tile(np.arange(len(values)), len(alike) // len(values))
            even = alike.take(np.arange(len(places))).with_values(
                name, values[pl.Series(places, dtype=pl.UInt32)]
            )
            score = self._score_if_missed(None, replace(self.case, table=even), run)
            if score is None or name not in self.failing(score):
                return False
        return True

    def failing(self, score: Score) -> tuple[str, ...]:
        """The columns that make a score miss it."""
        asked = self.demand.requirement
        return tuple(name for name, value in score.by_column.items() if asked.failing(np.array([value]))[0])

    def _score_if_missed(self, release: Release | None, case: EvaluationCase, run: Run) -> Score | None:
        """The score, if it is certain that it misses the requirement by the plain look at the records."""
        asked = self.demand.requirement
        score = next(iter(evaluate(release, case, [self.demand], run.silent()).scores.values()))
        certain = math.isfinite(asked.worst(score)) and APPROACH not in score.details
        return score if certain and not asked.met_by(score) else None

    def _with_equal_keys(self) -> Table:
        """What it looks at of the table, with one value in every key."""
        table = self.case.table
        alike = table.select([name for name in table.names if name in {*self.keys, *self.counted}])
        for name in self.keys:
            present = np.flatnonzero(~alike.missing(name))
            row = np.full(len(alike), present[0] if len(present) else 0)
            alike = alike.with_values(name, alike.frame[name][pl.Series(row, dtype=pl.UInt32)])
        return alike


def _obstacle(seen: _DemandView, score: Score, run: Run) -> Obstacle:
    """Say what cannot hold, by which columns, and what can."""
    asked, failing, records = seen.demand.requirement, seen.failing(score), len(seen.case.table)
    columns, best = failing or seen.counted, asked.worst(score)
    near = replace(asked, sign=f"{asked.sign[0]}=", level=_weaker(best, asked))
    nearest = near.short if near.can_fail else ""
    remedies = [FeasibilityRemedy(_leaving_out(columns))] if columns else []
    if nearest:
        own = "in a plan, or in a profile of your own (`sfumato profiles NAME --write FILE`)"
        remedies.append(FeasibilityRemedy(f"require {nearest}, {own}"))
    values, is_final = _values(seen.case.table, columns), seen.is_never_met(failing, run)
    return Obstacle(asked.short, columns, values, records, best, nearest, is_final, remedies=tuple(remedies))


def _weaker(value: float, requirement: Requirement) -> float:
    """A number rounded to a few digits, to the side that asks less."""
    if not value or value == round(value):
        return value
    scale = 10.0 ** (_DIGITS - 1 - math.floor(math.log10(abs(value))))
    return (math.ceil if requirement.sign.startswith("<") else math.floor)(value * scale) / scale


def _leaving_out(columns: Sequence[str]) -> str:
    return f"leave {quoted(columns, ' and ')} out (--drop {shlex.quote(','.join(columns))})"


def _values(table: Table, columns: Sequence[str]) -> tuple[int, ...]:
    """How many values each of the columns has."""
    return tuple(table.frame[name].filter(pl.Series(~table.missing(name))).n_unique() for name in columns)


# What it takes --------------------------------------------------------------------------------------------


def _costly(demands: Sequence[Demand], table: Table, run: Run) -> tuple[Obstacle, ...]:
    """The sensitive column, or columns, without which many more classes can be told apart."""
    case = EvaluationCase(table, resources=run.resources)
    seen = [each for demand in demands if (each := _DemandView.of(demand, case)) is not None]
    names = list(dict.fromkeys(name for each in seen for name in each.counted))
    most = max(_LEAST_RECORDS, min(_MOST_RECORDS, _RECORDS_IN_ALL // (len(names) + 2)))
    few = sample_tables(table, None, most)[0] if len(table) > most else table
    view = _RecordsView(few, tuple(demands), run)
    if not names or not view.classes or not (columns := _culprits(view, names)):
        return ()
    asked = list(dict.fromkeys(each.demand.requirement for each in seen if set(columns) & set(each.counted)))
    first = asked[0]
    if len(asked) > 1:
        first = max(asked, key=lambda each: view.without_requirement(each).classes or 0)
    bare = view.without(columns).classes or 0
    milder = _milder(view, columns[0], first, bare) if len(columns) == 1 else ()
    remedies = [FeasibilityRemedy(_leaving_out(columns), bare), *milder]
    return (
        Obstacle(
            first.short, columns, _values(table, columns), len(view.table), classes=view.classes,
            remedies=tuple(each for each in remedies if (each.classes or 0) >= TIMES * view.classes),
        ),
    )  # fmt: skip


def _culprits(view: _RecordsView, names: Sequence[str]) -> tuple[str, ...]:
    """The column that takes most; where none takes enough alone, those that do together."""
    enough, most = TIMES * (view.classes or 0), view.without(names).classes or 0
    if most < enough:
        return ()
    alone = {name: view.without([each for each in names if each != name]).classes or 0 for name in names}
    suspects = tuple(name for name in names if TIMES * alone[name] <= most)

    @cache
    def left(columns: tuple[str, ...]) -> int:
        return view.without(columns).classes or 0

    single = max(((name,) for name in suspects), key=left, default=())
    for columns in (single, suspects if len(suspects) <= _MAX_COLUMNS_TOGETHER else ()):
        if columns and left(columns) >= enough:
            return columns
    return ()


@dataclass(frozen=True)
class _RecordsView:
    """A part of the records, and what is asked of it."""

    table: Table
    demands: tuple[Demand, ...]
    run: Run

    @cached_property
    def classes(self) -> int | None:
        """As many classes as the step that enforces what is asked tells apart; None if it cannot."""
        case = EvaluationCase(self.table, resources=self.run.resources)
        asked = [
            each
            for each in self.demands
            if not isinstance(each.measure, ClassMeasure) or _DemandView.of(each, case)
        ]
        step = next(iter(safe_steps(self.table.schema, asked)), None)
        if step is None:
            return None
        try:
            made = Recipe((step,)).apply(self.table, self.run.silent()).classes
        except EXPECTED_ERRORS:
            return None
        return None if made is None else len(np.unique(made))

    def without(self, columns: Sequence[str]) -> _RecordsView:
        """The same without some columns."""
        names = [name for name in self.table.names if name not in columns]
        return replace(self, table=self.table.select(names))

    def without_requirement(self, requirement: Requirement) -> _RecordsView:
        """The same without a requirement."""
        return replace(self, demands=tuple(each for each in self.demands if each.requirement != requirement))


def _milder(
    view: _RecordsView, name: str, requirement: Requirement, bare: int
) -> Iterator[FeasibilityRemedy]:
    """What a hierarchy of a column of many codes would bring: coarser codes, or distances along it."""
    column = view.table.schema[name]
    if column.kind is not Kind.NOMINAL or view.table.is_generalised(name):
        return
    hierarchy = view.run.resources.get(column.hierarchy)
    try:
        tree = hierarchy if isinstance(hierarchy, Hierarchy) else propose(column, view.table.frame[name])
        yield from _coarser(view, name, tree, bare)
        yield from _by_hierarchy(view, name, tree, requirement)
    except EXPECTED_ERRORS:
        return


def _coarser(view: _RecordsView, name: str, tree: Hierarchy, bare: int) -> Iterator[FeasibilityRemedy]:
    """The finest level of the hierarchy that brings at least half of what leaving the column out does."""
    values, missing = view.table.frame[name], view.table.missing(name)
    column = Column(name, Kind.NOMINAL, view.table.schema[name].role)
    for level in range(1, tree.height - 1):
        codes = pl.Series(tree.codes(values, level, unseen="root")).cast(pl.String)
        coded = codes.zip_with(pl.Series(~missing), pl.Series([None], dtype=pl.String))
        there = replace(view, table=view.table.with_values(name, coded, column=column)).classes
        if there and 2 * there >= bare:
            labels = count_noun(len(tree.labels(level)), "label")
            what = f"recode `{name}` to the {labels} of level {level} of its hierarchy, in the file"
            yield FeasibilityRemedy(f"{what} (`sfumato hierarchy` shows it)", there)
            return


def _by_hierarchy(
    view: _RecordsView, name: str, tree: Hierarchy, requirement: Requirement
) -> Iterator[FeasibilityRemedy]:
    """What a measure that can see how near two codes are in a hierarchy would leave."""
    measure: Any = requirement.measure
    choices = {each.name: each.choices for each in measure.parameters()}
    if _HIERARCHY not in choices.get("distance", ()) or measure.distance == _HIERARCHY:
        return
    near = replace(requirement, measure=replace(measure, distance=_HIERARCHY, sensitive=Columns((name,))))
    others = [each for each in view.table.schema.resolve(measure.sensitive) if each != name]
    rest = replace(requirement, measure=replace(measure, sensitive=Columns(others)))
    demands = [
        replace(each, requirement=asked)
        for each in view.demands
        for asked in (
            (near, *([rest] if others else [])) if each.requirement == requirement else (each.requirement,)
        )
    ]
    named = replace(view.table.schema[name], hierarchy=name)
    table = replace(view.table, schema=view.table.schema.replace(named))
    run = replace(view.run, resources={**view.run.resources, name: tree})
    there = _RecordsView(table, tuple(demands), run).classes
    yield FeasibilityRemedy(f"give `{name}` a hierarchy, and require {near.short} instead", there)
