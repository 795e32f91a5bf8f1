"""Laws between the scores of a measure: those that all keep, and those that it declares (`Measure.laws`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.params import PerColumn
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.recoding import Recoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

#: The tables that a law is tried on.
SEEDS = (1, 2)
#: Two scores that differ by the order of sums do not differ.
_TOLERANCE = 1e-9
_PLACES = ("a1", "a2", "b1", "b2")
_ORDER = ("low", "middle", "high")


@cache
def mixed_table(seed: int, records: int = 24) -> Table:
    """A table of every kind that is compared, with missing cells, ties, and persons of several records."""
    rng = np.random.default_rng(seed)
    holes = rng.random(records) < 0.1 * (seed % 2)
    frame = pl.DataFrame(
        {
            "age": rng.choice([20, 21, 40, 41, 60], records),
            "height": rng.choice([1.5, 1.6, 1.75, 1.8], records),
            "region": pl.Series(rng.choice(_PLACES, records)).set(pl.Series(holes), None),
            "town": rng.choice(_PLACES, records),
            "size": rng.choice(_ORDER, records),
            "ill": rng.choice(["flu", "cold", "none"], records),
            "pay": rng.choice([1000, 2000, 3000, 4500], records),
            "person": [f"p{int(each)}" for each in rng.integers(0, records * (1 + seed % 3), records)],
        }
    )
    key, sensitive = Role.KEY, Role.SENSITIVE
    columns = (
        Column("age", Kind.CONTINUOUS, key), Column("height", Kind.CONTINUOUS, key),
        Column("region", Kind.NOMINAL, key), Column("town", Kind.NOMINAL, key),
        Column("size", Kind.ORDINAL, key, order=_ORDER), Column("ill", Kind.NOMINAL, sensitive),
        Column("pay", Kind.CONTINUOUS, sensitive), Column("person", Kind.NOMINAL, Role.PERSON),
    )  # fmt: skip
    return Table(frame, Schema(columns))


def _evidence(table: Table, protected: Table) -> Evidence:
    """A table beside a release of it, without the numbers of persons."""
    release = Release.record_by_record(protected.select([name for name in table.names if name != "person"]))
    everybody = replace(table, frame=pl.concat([table.frame] * 3))
    return Evidence(table, release, resources={CONTROL: mixed_table(77), "population": everybody})


@cache
def _swap_values(seed: int) -> Evidence:
    """A table beside one whose numbers and regions changed places."""
    table = protected = mixed_table(seed)
    for number, name in enumerate(("age", "region", "size")):
        shuffled = table.frame[name].sample(fraction=1.0, shuffle=True, seed=seed + number)
        protected = protected.with_values(name, shuffled)
    return _evidence(table, protected)


@cache
def _recode_keys(seed: int, levels: tuple[int, int, int]) -> Evidence:
    """A table beside one whose age, region and town are generalised, each to a level of its hierarchy."""
    table, names = mixed_table(seed), ("age", "region", "town")
    method = Recoding(levels=PerColumn(0, tuple(zip(names, levels, strict=True))))
    return _evidence(table, Recipe((Step(method, names),)).apply(table, Run(seed=1)).table)


def _measure_of(cls: type[Measure]) -> Measure:
    """The measure, with a population where it needs one."""
    given = {"population": "population", "fraction": 0.3}
    return cls(**{each.name: given[each.name] for each in cls.parameters() if each.name in given})


def _score(measure: Measure, evidence: Evidence) -> Score:
    """The score against an intruder who knows the keys that it can look at, unless they know some of them."""
    if measure.aspect == "risk" and not evidence.scenario.columns:
        keys = evidence.original.schema.with_role(Role.KEY)
        known = tuple(name for name in keys if evidence.original.schema[name].kind in measure.kinds)
        evidence = replace(evidence, scenario=Scenario(columns=known))
    return measure.score(evidence, Run(seed=5))


def _assert_alike(measure: Measure, one: Evidence, other: Evidence, why: str) -> None:
    scores = _score(measure, one), _score(measure, other)
    assert scores[0].status is scores[1].status, f"{measure.name} depends on {why}"
    low, high = measure.bounds
    scale = high - low if np.isfinite(high - low) else max(1.0, abs(scores[0].value))
    value, other_value = (each.value for each in scores)
    near = np.isclose(value, other_value, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True)
    assert near, f"{measure.name} depends on {why}: {scores[0].value} and {scores[1].value}"


def _assert_no_safer(measure: Measure, score: Score, than: Score, why: str) -> None:
    """A certain score is no better than another one, but for rounding."""
    if Status.OK in {score.status, than.status} and score.status is than.status:
        gain = (than.value - score.value) * (1 if measure.better == "low" else -1)
        allowed = _TOLERANCE * max(1.0, abs(than.value))
        assert gain <= allowed, f"{measure.name} says that {why}: {score.value} after {than.value}"


def check_order_of_all_records_is_irrelevant(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> None:
    """Records of the original and of the release in other orders score alike, unless it says why not."""
    for seed in seeds if not cls.laws().reads_order else ():
        evidence, rng = _swap_values(seed), np.random.default_rng(seed)
        assert evidence.release is not None
        rows, order = rng.permutation(len(evidence.original)), rng.permutation(len(evidence.original))
        places = np.argsort(rows)  # where each original record is now
        there = reorder(evidence.release, order)
        released = Release.of(there.table, source_rows=places[order])
        turned = replace(evidence, original=evidence.original.take(rows), release=released)
        _assert_alike(_measure_of(cls), evidence, turned, "the order of records")


def check_names_are_irrelevant(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> None:
    """Columns and categories of other names have the same score, unless the measure says why not."""
    for seed in seeds if not cls.laws().reads_names else ():
        evidence = _swap_values(seed)
        assert evidence.release is not None
        resources = {name: _rename_all(table) for name, table in evidence.resources.items()}
        release = Release.record_by_record(_rename_all(evidence.release.table))
        turned = replace(
            evidence, original=_rename_all(evidence.original), release=release, resources=resources
        )
        _assert_alike(_measure_of(cls), evidence, turned, "names")


def _rename_all(table: Table) -> Table:
    """The same with other names of columns and of categories, which come in another order."""
    names = {name: name[::-1] for name in table.names}
    turned = [
        pl.col(column.name).str.reverse() if column.kind is Kind.NOMINAL else pl.col(column.name)
        for column in table.schema.columns
    ]
    columns = (replace(each, name=names[each.name]) for each in table.schema.columns)
    return Table(table.frame.select(turned).rename(names), Schema(tuple(columns)))


def check_coarser_is_never_riskier(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> None:
    """Keys that are generalised further for all records are no riskier, where that is declared."""
    for seed in seeds if cls.laws().coarser_is_safer else ():
        fine, coarse = _recode_keys(seed, (seed % 2, 1, 0)), _recode_keys(seed, (1, 2, seed % 2))
        _assert_no_safer(
            _measure_of(cls),
            _score(_measure_of(cls), fine),
            _score(_measure_of(cls), coarse),
            "coarser keys are riskier",
        )


def check_knowledge_is_never_safer(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> None:
    """An intruder who knows more columns learns no less, where that is declared."""
    for seed in seeds if cls.laws().knowledge_is_risk else ():
        for evidence in (_swap_values(seed), _recode_keys(seed, (1, 1, 0))):
            scores = [
                _score(_measure_of(cls), replace(evidence, scenario=Scenario(columns=names)))
                for names in (("age", "region"), ("age", "region", "size"), ("age", "region", "size", "town"))
            ]
            for less, more in pairwise(scores):
                _assert_no_safer(_measure_of(cls), more, less, "knowing more is safer")


def check_a_second_record_hides_nobody(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> None:
    """A person's record that is there twice makes nobody safer, where that is declared."""
    for seed in seeds if cls.laws().copies_hide_nobody else ():
        for evidence in (_swap_values(seed), _recode_keys(seed, (1, 1, 0))):
            assert evidence.release is not None
            for row in range(0, len(evidence.original), 12):
                rows = np.append(np.arange(len(evidence.original)), row)
                release = Release.record_by_record(evidence.release.table.take(rows))
                twice = replace(evidence, original=evidence.original.take(rows), release=release)
                _assert_no_safer(
                    _measure_of(cls),
                    _score(_measure_of(cls), twice),
                    _score(_measure_of(cls), evidence),
                    "a copy hides",
                )


#: What is tried of every measure; the last three where it declares them.
LAW_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_order_of_all_records_is_irrelevant,
    check_names_are_irrelevant,
    check_coarser_is_never_riskier,
    check_knowledge_is_never_safer,
    check_a_second_record_hides_nobody,
)
