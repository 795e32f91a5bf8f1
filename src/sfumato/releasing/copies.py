"""Several copies of one release: what an intruder who has all of them sees, and how they are judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.measure import Measure, Score
from sfumato.core.method import set_protected_values
from sfumato.core.origin import Origin
from sfumato.core.release import Release, concatenate_releases, reorder
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Ints, Values, count_distinct
from sfumato.recipes.demand import Demand, label_demands
from sfumato.study.evaluate import EvaluationCase, evaluate


def judge_copies(
    copies: Sequence[Release], case: EvaluationCase, demands: Sequence[Demand], run: Run
) -> dict[str, tuple[Score, str]]:
    """The worst score of each demand over all copies, by its label, and what was measured, in words.

    A risk that can see several copies at once is also judged by all of them together: one below the other,
    and the mean of them where records map. Others are judged on each copy alone, which is said.
    """
    if len(copies) == 1:
        scores = evaluate(copies[0], case, demands, run).scores
        return {label: (scores[label], "") for label, _ in label_demands(demands)}
    together = [demand for demand in demands if _sees(demand.measure)]
    found = [evaluate(each, case, demands, run).scores for each in copies]
    for number, view in enumerate(_views(copies) if together else ()):
        found.append(evaluate(view, _rehearsing(case, len(copies), number), together, run).scores)
    judged = {}
    for label, demand in label_demands(demands):
        how = "and of all together" if _sees(demand.measure) else "each measured alone"
        seen = [each[label] for each in found if label in each]
        judged[label] = (_worst(demand, seen), f"the worst of {len(copies)} copies, {how}")
    return judged


def _rehearsing(case: EvaluationCase, count: int, number: int) -> EvaluationCase:
    """The case whose rehearsal makes as many copies, and attacks them in the same view."""
    make = case.make
    if make is None:
        return case

    def view(table: Table, run: Run) -> Release:
        copies = [make(table, run.at("copy", copy) if copy else run) for copy in range(count)]
        return list(_views(copies))[: number + 1][-1]

    return replace(case, make=view)


def score_copies(
    copies: Sequence[Release],
    case: EvaluationCase,
    measures: Sequence[Measure],
    run: Run,
    *,
    allow_sampling: bool = False,
) -> dict[str, Score]:
    """The worst score of each measure over all copies, by its name; looked at as demands are judged.

    What is rehearsed is asked of one copy and of all together: the rehearsal is the same for every copy.
    """
    found = [evaluate(copies[0], case, measures, run, allow_sampling=allow_sampling).scores]
    rest = [each for each in measures if not (each.needs.control and case.control)]
    found += [evaluate(each, case, rest, run, allow_sampling=allow_sampling).scores for each in copies[1:]]
    together = [measure for measure in measures if _sees(measure)] if len(copies) > 1 else []
    for number, view in enumerate(_views(copies) if together else ()):
        there = _rehearsing(case, len(copies), number)
        found.append(evaluate(view, there, together, run, allow_sampling=allow_sampling).scores)
    return {
        str(measure): worst_of(measure, [each[str(measure)] for each in found if str(measure) in each])
        for measure in measures
    }


def worst_of(measure: Measure, scores: Sequence[Score]) -> Score:
    """The worst of some scores; one without a number is the worst of all: nobody knows what it hides."""
    sign = -1.0 if measure.better == "low" else 1.0
    return min(scores, key=lambda score: -math.inf if math.isnan(score.value) else sign * score.value)


def _sees(measure: Measure) -> bool:
    return measure.aspect == "risk" and measure.counts.pools_copies


def _worst(demand: Demand, scores: Sequence[Score]) -> Score:
    """The score that is furthest from meeting a demand; one without a number meets nothing."""

    def goodness(score: Score) -> tuple[bool, float]:
        worst = demand.requirement.worst(score)
        value = -worst if demand.measure.better == "low" else worst
        return demand.requirement.met_by(score), -math.inf if math.isnan(value) else value

    return min(scores, key=goodness)


def _views(copies: Sequence[Release]) -> Iterator[Release]:
    """What an intruder makes of all copies: one below the other, and their mean."""
    sources = [(Origin.identity(_n_sources(each)), each) for each in copies]
    yield concatenate_releases(sources, keep_order=False)
    mean = mean_of(copies)
    if mean is not None:
        yield mean


def _n_sources(release: Release) -> int:
    rows = release.source_rows
    return 0 if rows is None else int(rows.max(initial=-1)) + 1


def mean_of(copies: Sequence[Release]) -> Release | None:
    """The mean of copies record by record, the commonest value where there is none; None if they do not map.

    Generalised values have no mean: then there is none either.
    """
    rows = [each.source_rows for each in copies]
    if any(each is None or count_distinct(each) < len(each) for each in rows):
        return None
    pairs = zip(copies, rows, strict=True)
    aligned = [reorder(each, np.argsort(own)) for each, own in pairs if own is not None]
    first = aligned[0]
    if any(not np.array_equal(each.source_rows, first.source_rows) for each in aligned[1:]):  # type: ignore[arg-type]
        return None
    tables = [each.table for each in aligned]
    if any(table.is_generalised(*table.names) for table in tables):
        return None
    made = first.table
    for name in first.table.names:
        made = made.with_values(name, _middle(tables, name))
    return replace(first.with_table(made), classes=None)


def _middle(tables: Sequence[Table], name: str) -> pl.Series:
    """The mean, or the commonest value, of a column in each record; the first copy says what is missing."""
    kind, model = tables[0].schema[name].kind, tables[0]
    if kind is Kind.CONTINUOUS:
        present = ~model.missing(name)
        numbers = np.stack([table.numbers(name)[present] for table in tables])
        there = ~np.isnan(numbers)
        mean = np.where(there, numbers, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        free = model.with_values(name, model.frame[name], column=replace(model.schema[name], integer=False))
        return set_protected_values(free, name, mean)
    values = pl.concat([table.frame[name].cast(model.frame[name].dtype, strict=False) for table in tables])
    codes = values.rank("dense").fill_null(0).to_numpy().reshape(len(tables), -1)
    return values.gather(_commonest(codes) * codes.shape[1] + np.arange(codes.shape[1]))


def _commonest(codes: Values) -> Ints:
    """Which copy has the value that most copies have, the first of equals."""
    counts = np.stack([(codes == own).sum(axis=0) for own in codes])
    found: Ints = counts.argmax(axis=0)
    return found
