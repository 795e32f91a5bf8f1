"""What every measure must do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import ClassMeasure, Measure, Score, Status
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.kernels.arrays import Floats
from sfumato.testing.components import COMPONENT_CHECKS
from sfumato.testing.engines import columns_in_files
from sfumato.testing.laws import LAW_CHECKS
from sfumato.testing.secrecy import assert_silent, noises
from sfumato.testing.tables import hard_tables, table_of

#: The share of a measure's scale by which the order of sums may move a score.
_FLOAT_TOLERANCE = 1e-12

_table = cache(table_of)


@cache
def _tables(kind: Kind) -> tuple[Table, ...]:
    """An ordinary table of a kind, and the hard ones."""
    return _table(kind), *(table for _, table in hard_tables(kind))


@lru_cache(maxsize=256)
def _evidence(table: Table) -> Evidence:
    """A table beside a version of it in which each key column was permuted on its own.

    Measures share it, and what they remember of it, as they share a release that is judged.
    """
    seed, protected = 3, table
    rng = np.random.default_rng(seed)
    for name in ("a", "b"):
        protected = protected.with_values(
            name, table.frame[name].sample(fraction=1.0, shuffle=True, seed=seed)
        )
        seed = int(rng.integers(1 << 30))
    return Evidence(
        table, Release.record_by_record(protected), Scenario(columns=("a", "b")), _strangers(table)
    )


def _strangers(table: Table) -> dict[str, Table]:
    """A control: other records of the same sort."""
    others = _table(table.schema["a"].kind, seed=77)
    fits = set(table.names) <= set(others.names)
    return {CONTROL: others.select(table.names) if fits else others}


def _score(measure: Measure, evidence: Evidence) -> Score:
    return measure.score(evidence, Run(seed=5))


def check_declares_direction(cls: type[Measure]) -> None:
    """Aspect, direction and bounds are declared."""
    assert cls.aspect in {"risk", "utility"}
    assert cls.better in {"low", "high"}
    assert cls.bounds[0] < cls.bounds[1]


def check_within_bounds(cls: type[Measure]) -> None:
    """A score lies within the declared bounds, none is worse than the worst, and no number says so."""
    for kind in Kind:
        for table in _tables(kind):
            try:
                score = _score(cls(), _evidence(table))
            except SfumatoError:
                continue
            if score.status in {Status.OK, Status.APPROXIMATE}:
                assert cls.bounds[0] <= score.value <= cls.bounds[1]
                assert not cls().is_better(cls().worst, score.value)
            else:
                assert np.isnan(score.value)
                assert score.reason


def check_identity_is_extreme(cls: type[Measure]) -> None:
    """The original itself is the riskiest and the most useful release.

    A measure of one table alone does not compare: other records may look rarer than the true ones. One that
    trades risk for loss is best in between.
    """
    if not cls.needs.release or cls.tells.trades:
        return
    for kind in sorted(cls.kinds):
        table = _with_determined_keys(kind)
        unchanged = Evidence(table, Release.unchanged(table), Scenario(columns=("a", "b")), _strangers(table))
        same = _score(cls(), unchanged)
        permuted = _score(cls(), _evidence(table))
        worse = permuted if cls.aspect == "utility" else same
        better = same if cls.aspect == "utility" else permuted
        if Status.REFUSED not in {same.status, permuted.status}:
            assert not cls().is_better(_end(worse, cls, best=False), _end(better, cls, best=True))


@cache
def _with_determined_keys(kind: Kind) -> Table:
    """A table whose keys tell what is learnt: else a permutation may tell it better by chance."""
    table = _table(kind)
    learnt = table.frame["learnt"]
    places = np.empty(len(table), dtype=np.int64)
    places[table.frame["a"].rank("ordinal").to_numpy().argsort()] = np.arange(len(table))
    return table.with_values("learnt", learnt.sort().gather(places))


def _end(score: Score, cls: type[Measure], *, best: bool) -> float:
    """The value of a score; of an estimate by lot the end of its interval: two that overlap do not differ."""
    if score.status is not Status.APPROXIMATE or score.interval is None:
        return score.value
    return score.interval[0 if best is (cls.better == "low") else 1]


def _slack(cls: type[Measure], kind: Kind) -> float:
    """How far two scores may lie apart that differ by rounding: where the true value is 0, no ratio tells.

    The scale of a measure is the width of its bounds or, where it has none, the largest score in size of
    what is alike, permuted and altogether other.
    """
    width = cls.bounds[1] - cls.bounds[0]
    if np.isfinite(width):
        return _FLOAT_TOLERANCE * width
    table, scenario = _table(kind), Scenario(columns=("a", "b"))
    compared = [_evidence(table)]
    compared += [
        Evidence(table, Release.of(other), scenario=scenario) for other in (table, _table(kind, seed=4))
    ]
    sizes = np.abs([_score(cls(), evidence).value for evidence in compared])
    return _FLOAT_TOLERANCE * float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


def check_record_order_is_irrelevant(cls: type[Measure]) -> None:
    """The order of the released records does not change a score: file order is not evidence."""
    for kind in sorted(cls.kinds):
        evidence = _evidence(_table(kind, missing=0.1))
        assert evidence.release is not None
        order = np.random.default_rng(8).permutation(len(evidence.release.table))
        there = replace(evidence, release=reorder(evidence.release, order))
        np.testing.assert_allclose(
            _score(cls(), there).value,
            _score(cls(), evidence).value,
            rtol=_FLOAT_TOLERANCE,
            atol=_slack(cls, kind),
        )


def check_scores_repeat(cls: type[Measure]) -> None:
    """The same evidence and seed give the same score; so does another order of the columns."""
    for kind in sorted(cls.kinds):
        evidence = _evidence(_table(kind))
        assert evidence.protected is not None
        there = evidence.read_as(evidence.protected.select(reversed(evidence.protected.names)))
        turned = replace(there, original=evidence.original.select(reversed(evidence.original.names)))
        value = _score(cls(), evidence).value
        np.testing.assert_array_equal(_score(cls(), evidence).value, value)
        np.testing.assert_allclose(
            _score(cls(), turned).value, value, rtol=_FLOAT_TOLERANCE, atol=_slack(cls, kind)
        )


def check_columns_in_files_score_alike(cls: type[Measure]) -> None:
    """Tables whose columns lie in files have the score that they have in memory, to the last bit."""
    for kind in sorted(cls.kinds):
        evidence = _evidence(_table(kind))
        usual = _score(cls(), evidence)
        with columns_in_files():
            assert evidence.release is not None
            tables = {name: replace(each) for name, each in evidence.release.tables.items()}
            release = replace(evidence.release, tables=tables)
            stored = replace(evidence, original=replace(evidence.original), release=release)
            again = _score(cls(), stored)
        assert again.status is usual.status
        assert np.array_equal(again.value, usual.value, equal_nan=True), f"columns in files change {cls.name}"


def check_refuses_with_a_reason(cls: type[Measure]) -> None:
    """Where it does not apply it says why, and gives no number."""
    table = _table(min(cls.kinds))
    if cls.needs.release:
        alone = _score(cls(), Evidence(original=table))
        assert alone.status is Status.REFUSED
        assert alone.reason
    for kind in set(Kind) - cls.kinds:
        nothing = _table(kind).select(["a", "b"])
        score = _score(cls(), _evidence(nothing))
        assert score.status is Status.REFUSED
        assert score.reason


def check_classes_are_as_declared(cls: type[Measure]) -> None:
    """What a measure of classes declares of them is so: searches of recodings take it at its word."""
    for seed in range(20 if issubclass(cls, ClassMeasure) else 0):
        measure: Any = cls()
        numbers = np.random.default_rng(seed).integers(0, (6, 3, 2), (40, 3))
        roles = zip(("key", "one", "two"), (Role.KEY, Role.SENSITIVE, Role.SENSITIVE), strict=True)
        schema = Schema(tuple(Column(name, Kind.NOMINAL, role) for name, role in roles))
        fine = Table(pl.DataFrame(numbers, schema=schema.names), schema)
        joined = fine.with_values("key", fine.frame["key"] // 2)
        parts, whole = _by_class(measure, fine), _by_class(measure, joined)
        classes, evidence = measure.classes(Evidence(original=joined)), Evidence(original=fine)
        found = classes.of_record, classes.members
        known = Classes.known(fine, measure.keys(evidence), *found, examples=classes.examples, counts={})
        np.testing.assert_allclose(measure.of_classes(evidence, known)[classes.of_record], whole)
        rest = np.flatnonzero(classes.of_record)
        if measure.class_values.independent:
            np.testing.assert_allclose(_by_class(measure, joined.take(rest)), whole[rest])
        if measure.class_values.are_sizes:
            np.testing.assert_array_equal(whole, measure.of_sizes(classes.persons)[classes.of_record])
            sign = 1 if cls.better == "high" else -1
            assert (np.diff(sign * measure.of_sizes(np.arange(50))) >= 0).all()
        if measure.class_values.survive_merging:
            sign = -1 if cls.better == "high" else 1
            for each in range(len(classes)):
                inside = classes.of_record == each
                assert (sign * whole[inside]).max() <= (sign * parts[inside]).max() + 1e-9
        for level in (
            np.unique(whole[np.isfinite(whole)])[:-1] if cls.better == "low" else np.unique(whole)[1:]
        ):
            shares = measure.always_failing(evidence, known, float(level))
            worse = parts > level if cls.better == "low" else parts < level
            assert (shares * classes.members <= np.bincount(classes.of_record, worse) + 1e-9).all()


def _by_class(measure: ClassMeasure, table: Table) -> Floats:
    """The number of each record's class."""
    evidence = Evidence(original=table)
    classes = measure.classes(evidence)
    return measure.of_classes(evidence, classes)[classes.of_record]


def check_measure_says_no_cell(cls: type[Measure]) -> None:
    """No cell value in a message, a reason, a log or a traceback."""
    for kind in sorted(cls.kinds):
        for text in noises(lambda table: _score(cls(), _evidence(table)), kind):
            assert_silent(text, cls.name)


#: What every measure must do.
MEASURE_CHECKS: tuple[Callable[[Any], int | None], ...] = (
    *COMPONENT_CHECKS,
    check_declares_direction,
    check_within_bounds,
    check_identity_is_extreme,
    check_record_order_is_irrelevant,
    check_scores_repeat,
    check_columns_in_files_score_alike,
    check_refuses_with_a_reason,
    check_classes_are_as_declared,
    check_measure_says_no_cell,
    *LAW_CHECKS,
)
