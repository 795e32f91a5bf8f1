"""What a report tells, as plain data: the JSON twin that the page shows and its charts are drawn from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import tomli_w

from sfumato.core.component import Component
from sfumato.core.group_measure import GroupMeasure
from sfumato.core.measure import Measure
from sfumato.core.references import cite, references
from sfumato.core.release import Release
from sfumato.data.generalised.cover import uninformative_records
from sfumato.data.persons import persons_of
from sfumato.data.schema import STRUCTURAL_ROLES, Role
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints
from sfumato.recipes.demand import label_demands
from sfumato.report.class_sizes import class_sizes
from sfumato.report.correlations import correlations
from sfumato.report.distributions import distributions
from sfumato.report.mosaics import mosaics
from sfumato.report.values import PUBLIC
from sfumato.report.words import finite, plain, remark, verdict
from sfumato.study.column_changes import losses
from sfumato.study.compare import MethodAtLevel, Study, other_risk_dict
from sfumato.study.frontier import Point, mark_front
from sfumato.study.replicate_mean import ReplicateMean
from sfumato.version import __version__

#: Okabe and Ito's colours, which colour-blind readers can tell apart; grey is kept for the original.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#B8A800")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
#: Places at which the lines of a public map are drawn again, so that they do not tell the parameters tried.
_CURVE_POINTS = 15
#: Shares of cells are published in steps of this.
_SHARE_STEP = 0.05


def twin(study: Study, *, public: bool, generated: str = "") -> dict[str, Any]:
    """Say a study as plain data.

    The public form leaves out every parameter that was found or tried and coarsens what is shown of the
    data; neither form holds a seed or anything of a single record. ``generated`` is a date or any other
    word on the making; there is no clock in here, so the same study gives the same report.
    """
    study = _coarse(study) if public else study
    labels = _labels(study.outcomes)
    keys = [f"m{place}" for place in range(len(study.outcomes))]
    made = {key: outcome.example for key, outcome in zip(keys, study.outcomes, strict=True)}
    examples = {key: each for key, each in made.items() if each is not None}
    original, releases, pictured = pictured_tables(study.original, examples, public=public)
    protected = _protected_columns(study)
    hidden = suppressed_columns(releases, protected) if public else frozenset()
    drawn = tuple(name for name in protected if name not in hidden)
    ordered = (*drawn, *(name for name in about_people(study.original) if name not in protected))
    return {
        "form": "public" if public else "internal",
        "sfumato": __version__,
        "generated": generated,
        "records": len(study.original),
        "columns": [_column(study.original, name, protected) for name in study.original.names],
        "held": {**_measure(study.target.measure), "level": study.target.value, "slack": study.target.slack},
        "requirements": [
            {"requirement": str(demand), "scenario": demand.scenario.name} for demand in study.demands
        ],
        "notes": [*study.notes, *pictured],
        "ranked_by": _measure(study.ranked_by),
        "tolerance": study.target.tolerance,
        "repeats": study.repeats,
        "scenario": {**asdict(study.scenario), "columns": list(study.scenario.columns)},
        "headline": study.headline,
        "verdict": verdict(study, dict(enumerate(labels)), public=public),
        "outcomes": [
            _outcome(study, place, labels, key=keys[place], public=public) for place in range(len(keys))
        ],
        "map": _map(study, keys, public=public),
        "distributions": distributions(original, releases, drawn, public=public),
        "class_sizes": class_sizes(original, releases, study.scenario, public=public),
        "mosaics": mosaics(original, releases, ordered, about=drawn, public=public),
        "correlations": correlations(original, releases, ordered, public=public),
        "recipes": [_recipe(outcome, public=public) for outcome in study.outcomes],
        "glossary": _glossary(study),
        "references": _references(study),
    }


def _coarse(study: Study) -> Study:
    """The study with its numbers to two digits, and none finer than one record in all of them.

    Who has the release can undo a sum over its records: a score to sixteen digits gives the one value away
    that the release hides, and where most of a small mean is one record's, two digits are too many.
    """
    grain = 1 / max(len(study.original), 1)
    outcomes = tuple(_coarse_outcome(outcome, study, grain) for outcome in study.outcomes)
    shown = {each.step.method.name for each in outcomes if each.held and each.ranked}
    points = tuple(
        replace(p, risk=public_digits(p.risk, grain=grain), utility=public_digits(p.utility, grain=grain))
        for p in study.points
        if p.method in shown
    )
    target = replace(study.target, value=public_digits(study.target.value, 3))
    return replace(study, outcomes=outcomes, points=points, target=target)


def _coarse_outcome(outcome: MethodAtLevel, study: Study, grain: float) -> MethodAtLevel:
    """The outcome in the digits that may be published; a loss that would tell somebody's value is none."""
    example = outcome.example
    hides = example is not None and all(each.hides_each for each in losses(study.original, example))

    def number(value: float, measure: Measure) -> float | None:
        if measure.aspect == "risk" and not isinstance(measure, GroupMeasure):
            return public_digits(value, grain=grain)
        return public_loss(measure, value, hides_each=hides, grain=grain)

    def spread(each: ReplicateMean | None, measure: Measure) -> ReplicateMean | None:
        if each is None or (mean := number(each.mean, measure)) is None:
            return None
        return replace(each, mean=mean, deviation=public_digits(each.deviation, grain=grain))

    utility = study.axes[1]
    useful = spread(outcome.ranked if utility == study.ranked_by else outcome.held, utility)
    held, level = study.target.measure, number(outcome.level.score, study.target.measure)
    best, worst = (number(end, study.ranked_by) for end in outcome.ranked_range or (math.nan, math.nan))
    scores = {
        label: spread(outcome.scores.get(label), demand.measure)
        for label, demand in label_demands(study.demands)
    }
    return replace(
        outcome,
        level=replace(outcome.level, score=math.nan if level is None else level),
        held=spread(outcome.held, held),
        ranked=spread(outcome.ranked, study.ranked_by),
        like_sample=outcome.like_sample.rounded() if outcome.like_sample and useful else None,
        ranked_range=None if outcome.ranked_range is None or best is None or worst is None else (best, worst),
        scores={label: each for label, each in scores.items() if each is not None},
        other_risks={
            name: replace(each, value=public_digits(each.value, grain=grain))
            for name, each in outcome.other_risks.items()
        },
    )


def public_digits(value: float, digits: int = 2, *, grain: float = 0.0) -> float:
    """A number in digits that may be published, and no finer than the ``grain``."""
    if grain and math.isfinite(value):
        value = round(value / grain) * grain
    return float(f"{value:.{digits}g}")


def public_loss(measure: Measure, value: float | None, *, hides_each: bool, grain: float) -> float | None:
    """A loss as everybody may know it: the one place that says it of a number.

    Shares of cells are in steps of 5 %, as in `ColumnSentence`; others in two digits. A mean of how far
    values went has no end, so that one of them may make it up: it is told where it ``hides_each``. What the
    worst group scores is not told: a share of few tells how few they are.
    """
    if isinstance(measure, GroupMeasure):
        return None
    if value is None or not (hides_each or all(map(math.isfinite, measure.bounds))):
        return None
    if measure.family == "cells" and measure.bounds == (0.0, 1.0):
        return public_digits(max(value, _SHARE_STEP), grain=_SHARE_STEP) if value else value
    return public_digits(value, grain=grain)


def pictured_tables(
    original: Table, examples: Mapping[str, Release], *, public: bool
) -> tuple[Table, dict[str, Table], tuple[str, ...]]:
    """The original and releases (by key) as they are drawn, and what must be said of that.

    A person may have many records: in public each has one, so that a group of ten is one of ten persons.
    """
    if not public or original.schema.only_role(Role.PERSON) is None:
        return original, {key: each.reading() for key, each in examples.items()}, ()
    persons = persons_of(original)
    releases = {
        key: _one_each(each.reading(), persons[each.source_rows])
        for key, each in examples.items()
        if each.source_rows is not None and (each.source_rows >= 0).all()
    }
    return _one_each(original, persons), releases, ("the pictures show one record of each person",)


def suppressed_columns(releases: Mapping[str, Table], names: Iterable[str]) -> frozenset[str]:
    """The columns of which a release shows hardly a cell: in public the original's are not drawn either."""
    return frozenset(
        name
        for name in names
        for table in releases.values()
        if name in table.schema and np.sum(~uninformative_records(table, [name])) < PUBLIC.floor
    )


def _one_each(table: Table, persons: Ints) -> Table:
    """The first record of each person."""
    return table.take(np.sort(np.unique(persons, return_index=True)[1]))


def _labels(outcomes: Sequence[MethodAtLevel]) -> list[str]:
    """The titles of the methods, numbered where one method is compared more than once."""
    titles = [outcome.step.method.title or outcome.step.method.name for outcome in outcomes]
    total, seen = Counter(titles), Counter[str]()
    labels = []
    for title in titles:
        seen[title] += 1
        labels.append(f"{title} ({seen[title]})" if total[title] > 1 else title)
    return labels


def _protected_columns(study: Study) -> tuple[str, ...]:
    """The columns some method protects, in the table's order; identifiers are never shown."""
    schema = study.original.schema
    named = {name for outcome in study.outcomes for name in outcome.step.resolve(schema)}
    return tuple(c.name for c in schema.columns if c.name in named and c.role is not Role.IDENTIFIER)


def about_people(table: Table) -> tuple[str, ...]:
    """The columns that say something of people: not who they are, nor which records are theirs."""
    return tuple(column.name for column in table.schema.columns if column.role not in STRUCTURAL_ROLES)


def _column(table: Table, name: str, protected: Sequence[str]) -> dict[str, Any]:
    column = table.schema[name]
    return {
        "name": name,
        "label": column.label,
        "kind": column.kind.value,
        "role": column.role.value if column.role else None,
        "protected": name in protected,
    }


def _measure(measure: Measure) -> dict[str, Any]:
    where = f" {measure.groups}" if isinstance(measure, GroupMeasure) else ""
    return {
        "measure": measure.name,
        "title": (measure.title or measure.name) + where,
        "aspect": measure.aspect,
        "better": measure.better,
        "direction": measure.side(),
        "parameters": measure.to_dict(),
    }


def _outcome(study: Study, place: int, labels: Sequence[str], *, key: str, public: bool) -> dict[str, Any]:
    outcome = study.outcomes[place]
    tied = [labels[at] for at in outcome.tied_with]
    drive = outcome.step.method.drive()
    payload: dict[str, Any] = {
        "key": key,
        "label": labels[place],
        "method": outcome.step.method.name,
        "color": PALETTE[place % len(PALETTE)],
        # one shape on in each round of the colours, so that colour and shape together stay a method's own
        "shape": SHAPES[(place + place // len(PALETTE)) % len(SHAPES)],
        "dash": DASHES[place // len(PALETTE) % len(DASHES)],
        "columns": list(outcome.step.resolve(study.original.schema)),
        "rank": outcome.rank,
        "reached": outcome.level.reached.value,
        "level": finite(outcome.level.score),
        "held": _mean_dict(outcome.held),
        "ranked": _mean_dict(outcome.ranked),
        "ranked_range": sorted(map(finite, outcome.ranked_range)) if outcome.ranked_range else None,
        "like_sample": outcome.like_sample.to_dict() if outcome.like_sample else None,
        "scores": {label: _mean_dict(spread) for label, spread in outcome.scores.items()},
        "runs_met": outcome.n_runs_meeting,
        "apart": outcome.why_not_ranked,
        "beside": {name: other_risk_dict(score) for name, score in outcome.other_risks.items()},
        "tied_with": tied,
        "remark": remark(outcome, tied, target=study.target),
    }
    if public:
        return payload
    return {
        **payload,
        "parameter": outcome.level.parameter,
        "unit": drive.unit if drive else "",
        "value": finite(outcome.level.value),
        "parameters": outcome.step.method.to_dict(),
        "tried": [[finite(value), finite(score)] for value, score in outcome.level.tried.items()],
    }


def _mean_dict(spread: ReplicateMean | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    ends = [finite(end) for end in spread.interval]
    numbers = {"mean": finite(spread.mean), "deviation": finite(spread.deviation), "interval": ends}
    return {**spread.to_dict(), **numbers}


def _map(study: Study, keys: Sequence[str], *, public: bool) -> list[dict[str, Any]]:
    """The points of the risk–utility map, by line and in the order in which the line runs."""
    keyed = list(zip(keys, study.outcomes, strict=True))
    owners = {id(point): key for key, outcome in reversed(keyed) for point in study.line(outcome)}
    finite = [p for p in study.points if math.isfinite(p.risk) and math.isfinite(p.utility)]
    lines = [line for line in _lines(finite) if id(line[0]) in owners]
    drawn = [(n, point) for n, line in enumerate(lines) for point in (_curve(line) if public else line)]
    if public:
        marked = mark_front([point for _, point in drawn], *study.axes)
        drawn = [(number, point) for (number, _), point in zip(drawn, marked, strict=True)]
    return [
        {
            "key": owners[id(lines[number][0])],
            "line": number,
            "risk": point.risk,
            "utility": point.utility,
            "front": point.on_front,
            **({} if public else {"parameter": point.parameter, "value": point.value}),
        }
        for number, point in drawn
    ]


def _lines(points: Iterable[Point]) -> list[list[Point]]:
    """Cut the points into lines: a method's values run upwards, and start anew when it is compared twice."""
    lines: list[list[Point]] = []
    for point in points:
        last = lines[-1][-1] if lines else None
        if last is None or last.method != point.method or point.value <= last.value:
            lines.append([])
        lines[-1].append(point)
    return lines


def _curve(line: Sequence[Point]) -> list[Point]:
    """The same line through other points, evenly spaced in risk: it no longer tells what was tried."""
    risks, where = np.unique([point.risk for point in line], return_inverse=True)
    utilities = np.bincount(where, weights=[point.utility for point in line]) / np.bincount(where)
    even = np.linspace(risks[0], risks[-1], _CURVE_POINTS if len(risks) > 1 else 1)
    return [
        replace(
            line[0],
            parameter="",
            value=math.nan,
            risk=public_digits(risk, 3),
            utility=public_digits(utility, 3),
        )
        for risk, utility in zip(even, np.interp(even, risks, utilities), strict=True)
    ]


def _recipe(outcome: MethodAtLevel, *, public: bool) -> str:
    """The step as a plan says it, without its parameters in the public form."""
    payload = outcome.step.to_dict()
    if not public:
        return tomli_w.dumps({"steps": [payload]}).strip()
    suppressed = payload.pop("parameters", None)
    text = tomli_w.dumps({"steps": [payload]}).strip()
    return f"{text}\n# parameters: suppressed" if suppressed else text


def _measures(study: Study) -> list[Measure]:
    return [study.target.measure, study.ranked_by, *(demand.measure for demand in study.demands)]


def _glossary(study: Study) -> list[dict[str, Any]]:
    measures = {m.name: m for m in _measures(study)}
    methods = {outcome.step.method.name: outcome.step.method for outcome in study.outcomes}
    return [
        *(_entry(m, f"{m.aspect}; {m.side()}{_bounds(m)}; {m.vetting().level}") for m in measures.values()),
        *(_entry(m, f"method; {m.vetting().level}") for m in methods.values()),
    ]


def _entry(described: Component, what: str) -> dict[str, Any]:
    return {
        "name": described.name,
        "title": described.title or described.name,
        "what": what,
        "summary": plain(described.description()),
        "references": list(described.references),
    }


def _bounds(measure: Measure) -> str:
    low, high = measure.bounds
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f"; from {low:g} upwards"
    return f"; at most {high:g}" if math.isinf(low) else f"; from {low:g} to {high:g}"


def _references(study: Study) -> Mapping[str, str]:
    used = [*_measures(study), *(outcome.step.method for outcome in study.outcomes)]
    keys = dict.fromkeys(key for described in used for key in described.references)
    return {key: cite(key) if key in references() else key for key in keys}
