"""Laws between the scores of a measure: those that all keep, and those that it declares (`Measure.laws`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
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
from sfumato.core.waves import SERIES, Waves
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import ORDERED, Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.recoding import Recoding
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

#: The tables that a law is tried on.
SEEDS = (1, 2)
#: Two scores that differ by the order of sums do not differ.
_TOLERANCE = 1e-9
_NUMERIC = frozenset({Status.OK, Status.APPROXIMATE})
_PLACES = ("a1", "a2", "b1", "b2")
#: What does not leave, forwards and backwards.
_STAYS = ("person", "nosrep", "home", "emoh", "visit")
_ORDER = ("low", "middle", "high")
#: What a law lets stand as it is called: a bucket that a measure names, and what tells
#: the records of a person apart.
_NAMED = ("size", "visit")


@cache
def mixed_table(seed: int, *, single: bool = False, whose: str = "p") -> Table:
    """A table of every kind that is compared, with missing cells, ties, and persons of several records.

    Of even seeds its records are mostly alike, of odd ones mostly alone; of ``single`` ones each is another
    person's. ``whose`` begins the numbers of the persons.
    """
    alike = seed % 2 == 0
    rng, records = np.random.default_rng(seed), 96 if alike else 24

    def some(values: Sequence[Any]) -> list[Any]:
        drawn: list[Any] = rng.choice(values[:: len(values) - 1] if alike else values, records).tolist()
        return drawn

    def sets() -> list[list[str]]:
        return [sorted(set(pair)) for pair in zip(some(_PLACES), some(_PLACES), strict=True)]

    persons = np.arange(records) if single else rng.integers(0, records * (1 + seed % 3), records)
    holes = pl.Series(rng.random(records) < 0.1 * (seed % 3 == 1))
    frame = pl.DataFrame(
        {
            "age": some([20, 21, 40, 41, 60]),
            "height": some([1.5, 1.6, 1.75, 1.8]),
            "region": pl.Series(some(_PLACES)).set(holes, None),
            "town": some(_PLACES),
            "size": some(_ORDER),
            "basket": sets(),
            "drugs": sets(),
            "ill": some(["flu", "cold", "none"]),
            "pay": some([1000, 2000, 3000, 4500]),
            "person": [f"{whose}{int(each)}" for each in persons],
            "home": [f"{whose}{int(each) // 3}" for each in persons],
            "visit": np.arange(records),
        }
    )
    key, sensitive = Role.KEY, Role.SENSITIVE
    columns = (
        Column("age", Kind.CONTINUOUS, key), Column("height", Kind.CONTINUOUS, key),
        Column("region", Kind.NOMINAL, key), Column("town", Kind.NOMINAL, key),
        Column("size", Kind.ORDINAL, key, order=_ORDER), Column("basket", Kind.SET, Role.OTHER),
        Column("drugs", Kind.SET, Role.OTHER), Column("ill", Kind.NOMINAL, sensitive),
        Column("pay", Kind.CONTINUOUS, sensitive), Column("person", Kind.NOMINAL, Role.PERSON),
        Column("home", Kind.NOMINAL, Role.HOUSEHOLD), Column("visit", Kind.CONTINUOUS, Role.IDENTIFIER),
    )  # fmt: skip
    return Table(frame, Schema(columns))


def _evidence(
    table: Table, protected: Table, earlier: Evidence | None = None, call: Callable[[Table], Table] = replace
) -> Evidence:
    """A table beside a release of it, with the other tables that a measure may ask for."""
    kept = [name for name in protected.names if name not in _STAYS]
    release = Release.record_by_record(protected.select(kept))
    everybody = replace(table, frame=pl.concat([table.frame] * 3))
    others: dict[str, Any] = {CONTROL: call(mixed_table(77, whose="q")), "population": everybody}
    others[SERIES] = Waves.of([earlier] if earlier else [], record="visit")
    return Evidence(table, release, resources=others)


@cache
def _swap_values(seed: int, *, single: bool = False, renamed: bool = False) -> Evidence:
    """A table beside one whose numbers and regions changed places, and the same in an earlier release."""
    table, call = mixed_table(seed, single=single), _rename_all if renamed else replace
    original, earlier, now = (
        call(each) for each in (table, _exchange(table, seed + 50), _exchange(table, seed))
    )
    return _evidence(original, now, _evidence(original, earlier), call)


def _exchange(table: Table, seed: int) -> Table:
    protected = table
    for number, name in enumerate(("age", "region", "size")):
        shuffled = table.frame[name].sample(fraction=1.0, shuffle=True, seed=seed + number)
        protected = protected.with_values(name, shuffled)
    return protected


@cache
def _recode_keys(seed: int, levels: tuple[int, int, int], *, single: bool = False) -> Evidence:
    """A table beside one whose age, region and town are generalised, each to a level of its hierarchy."""
    table, names = mixed_table(seed, single=single), ("age", "region", "town")
    method = Recoding(levels=PerColumn(0, tuple(zip(names, levels, strict=True))))
    return _evidence(table, Recipe((Step(method, names),)).apply(table, Run(seed=1)).table)


def _measure_of(cls: type[Measure]) -> Measure:
    """The measure, with a population, a bucket and a series where it needs one."""
    given = {"population": "population", "fraction": 0.3, "bucket": ("size",)}
    return cls(**{each.name: given[each.name] for each in cls.parameters() if each.name in given})


def _keys(measure: Measure, evidence: Evidence, kinds: Collection[Kind]) -> tuple[str, ...]:
    """The keys that a measure can look at."""
    return tuple(
        each.name
        for each in evidence.original.schema.columns
        if (each.role is Role.KEY or each.kind is Kind.SET) and each.kind in set(kinds) & measure.kinds
    )


def _score(measure: Measure, evidence: Evidence, known: Sequence[str] = ()) -> Score:
    """The score against an intruder who knows some keys, else those of which there is a number."""
    if measure.aspect == "utility":
        return measure.score(evidence, Run(seed=5))
    tried = [known] if known else [_keys(measure, evidence, kinds) for kinds in (frozenset(Kind), ORDERED)]
    for columns in tried:
        score = measure.score(replace(evidence, scenario=Scenario(columns=tuple(columns))), Run(seed=5))
        if score.status in _NUMERIC:
            break
    return score


def _assert_alike(measure: Measure, one: Evidence, other: Evidence, why: str) -> int:
    """Say whether there were numbers to compare."""
    scores = _score(measure, one), _score(measure, other)
    assert scores[0].status is scores[1].status, f"{measure.name} depends on {why}"
    low, high = measure.bounds
    scale = high - low if np.isfinite(high - low) else max(1.0, abs(scores[0].value))
    value, other_value = (each.value for each in scores)
    near = np.isclose(value, other_value, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True)
    assert near, f"{measure.name} depends on {why}: {scores[0].value} and {scores[1].value}"
    return int(scores[0].status in _NUMERIC)


def _assert_no_safer(measure: Measure, score: Score, than: Score, why: str) -> int:
    """A score is no better than another one of its sort, but for rounding; say whether there were two."""
    if score.status is not than.status or score.status not in _NUMERIC:
        return 0
    gain = (than.value - score.value) * (1 if measure.better == "low" else -1)
    allowed = _TOLERANCE * max(1.0, abs(than.value))
    assert gain <= allowed, f"{measure.name} says that {why}: {score.value} after {than.value}"
    return 1


def check_order_of_all_records_is_irrelevant(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> int:
    """Records of the original and of the release in other orders score alike, unless it says why not."""
    compared = 0
    for evidence in map(_swap_values, seeds if not cls.laws().reads_order else ()):
        rng = np.random.default_rng(len(evidence.original))
        assert evidence.release is not None
        rows, order = rng.permutation(len(evidence.original)), rng.permutation(len(evidence.original))
        places = np.argsort(rows)  # where each original record is now
        there = reorder(evidence.release, order)
        released = Release.of(there.table, source_rows=places[order])
        turned = replace(evidence, original=evidence.original.take(rows), release=released)
        compared += _assert_alike(_measure_of(cls), evidence, turned, "the order of records")
    return compared


def check_names_are_irrelevant(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> int:
    """Columns and categories of other names have the same score, unless the measure says why not."""
    compared = 0
    for seed in seeds if not cls.laws().reads_names else ():
        evidence, turned = (_swap_values(seed, renamed=each) for each in (False, True))
        compared += _assert_alike(_measure_of(cls), evidence, turned, "names")
    return compared


def _rename_all(table: Table) -> Table:
    """The same with other names of columns and of categories, which come in another order."""
    names = {name: name if name in _NAMED else name[::-1] for name in table.names}
    turned = {
        Kind.NOMINAL: lambda column: column.str.reverse(),
        Kind.SET: lambda column: column.list.eval(pl.element().str.reverse()),
    }
    frame = table.frame.select(
        turned.get(each.kind, lambda column: column)(pl.col(each.name)) for each in table.schema.columns
    )
    columns = (replace(each, name=names[each.name]) for each in table.schema.columns)
    return Table(frame.rename(names), Schema(tuple(columns)))


def check_coarser_is_never_riskier(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> int:
    """Keys at higher levels of their hierarchies for all records are no riskier, where that is declared."""
    compared, measure, single = 0, _measure_of(cls), cls.laws().one_record_each
    for seed in seeds if cls.laws().coarser_is_safer else ():
        fine = _score(measure, _recode_keys(seed, (0, seed % 2, 0), single=single))
        coarse = _score(measure, _recode_keys(seed, (1, 1 + seed % 2, seed % 2), single=single))
        compared += _assert_no_safer(measure, fine, coarse, "coarser keys are riskier")
    return compared


def check_knowledge_is_never_safer(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> int:
    """An intruder who knows more columns learns no less, where that is declared."""
    compared, measure, laws = 0, _measure_of(cls), cls.laws()
    for evidence in _releases(seeds, single=laws.one_record_each) if laws.knowledge_is_risk else ():
        for kinds in (frozenset(Kind), ORDERED):
            keys = _keys(measure, evidence, kinds)
            scores = [_score(measure, evidence, keys[:count]) for count in range(1, len(keys) + 1)]
            for less, more in pairwise(scores):
                compared += _assert_no_safer(measure, more, less, "knowing more is safer")
    return compared


def check_a_second_record_hides_nobody(cls: type[Measure], seeds: Sequence[int] = SEEDS) -> int:
    """A person's record that is there twice makes nobody safer, where that is declared."""
    compared, measure = 0, _measure_of(cls)
    for evidence in _releases(seeds) if cls.laws().copies_hide_nobody else ():
        count, once = len(evidence.original), _score(measure, evidence)
        assert evidence.release is not None
        for row in (0, count // 2):
            rows = np.append(np.arange(count), row)
            original = evidence.original.take(rows)
            original = original.with_values("visit", pl.Series(np.arange(count + 1)))
            release = Release.record_by_record(evidence.release.table.take(rows))
            twice = replace(evidence, original=original, release=release)
            compared += _assert_no_safer(measure, _score(measure, twice), once, "a copy hides")
    return compared


def _releases(seeds: Sequence[int], *, single: bool = False) -> Iterator[Evidence]:
    """Releases to try a law on: swapped and recoded, of records that are mostly alone and mostly alike."""
    for seed in seeds:
        yield _swap_values(seed, single=single)
        yield _recode_keys(seed, (1, seed % 2, 0), single=single)


#: What is tried of every measure; the last three where it declares them.
#: Each says how many scores it compared.
LAW_CHECKS: tuple[Callable[[Any], int], ...] = (
    check_order_of_all_records_is_irrelevant,
    check_names_are_irrelevant,
    check_coarser_is_never_riskier,
    check_knowledge_is_never_safer,
    check_a_second_record_hides_nobody,
)
