"""What every method must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal, assert_series_equal

from sfumato.core.method import Method
from sfumato.core.randomness import ByPerson, Series, series_secret
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role
from sfumato.data.table import Table
from sfumato.engines.interface import Engine
from sfumato.engines.memory import MemoryEngine
from sfumato.errors import SfumatoError
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.testing.components import COMPONENT_CHECKS
from sfumato.testing.engines import FEW_RECORDS, PicklingEngine, ThreadEngine, columns_in_files, forms_of
from sfumato.testing.secrecy import SENTINEL_WORD, assert_silent, noises
from sfumato.testing.tables import hard_tables, table_of, with_declared_domains

#: Characters after which a sentence is too long to be read.
_LONG_SENTENCE = 250
#: Runs of a method that repeats nothing: not all of them come to the same.
_RUNS = 8
#: A seed that would stand out among the bytes that travel.
_SEED = 0xD15EA5E0FBADC0DE8BADF00DCAFED00D


def _run(seed: int = 5, *, method: Method, table: Table, engine: Engine | None = None) -> Run:
    """A run in which every table that a method asks for is there: for want of another, the one at hand."""
    asked = [getattr(method, each.name) for each in method.parameters() if each.holds == "table"]
    resources = {str(name): table for name in asked if name is not None}
    return Run(seed=seed, resources=resources, engine=engine or MemoryEngine())


def _protect_columns(
    method: Method, table: Table, seed: int = 5, *, engine: Engine | None = None, **more: Any
) -> Release:
    run = _run(seed, method=method, table=table, engine=engine)
    return Recipe((Step(method, ("a", "b"), **more),)).apply(table, run)


def _table(cls: type[Method], kind: Kind, **more: Any) -> Table:
    """An ordinary table of a kind, with what a method of a guarantee must be told of its columns."""
    table = table_of(kind, **more)
    return with_declared_domains(table) if cls.randomness.epsilon_parameter else table


def _hard(cls: type[Method], kind: Kind) -> Iterator[tuple[str, Table]]:
    for what, table in hard_tables(kind):
        yield what, with_declared_domains(table) if cls.randomness.epsilon_parameter else table


def _are_equal_releases(first: Release, second: Release) -> bool:
    """Whether two releases have the same tables, to the last bit and type."""
    tables = [
        {name: (table.digest, table.frame.schema) for name, table in release.tables.items()}
        for release in (first, second)
    ]
    return tables[0] == tables[1]


def _try(method: Method, table: Table) -> Release | None:
    """Protect, or refuse on purpose; anything else is a fault."""
    try:
        return _protect_columns(method, table)
    except SfumatoError:
        return None


def check_has_a_drive(cls: type[Method]) -> None:
    """At most one parameter is the drive, and it has a range worth searching."""
    drives = [declared for declared in cls.parameters() if declared.drive]
    assert len(drives) <= 1
    assert all(declared.tune is not None for declared in drives)


def check_tells_analysts(cls: type[Method]) -> None:
    """A sentence for the change note says what analysts of a release must correct for."""
    assert cls.analyst_note[:1].isupper(), "`analyst_note` must be a sentence for the change note"
    assert cls.analyst_note.endswith(".")
    assert len(cls.analyst_note) < _LONG_SENTENCE, "`analyst_note` must be a sentence or two"


def _released_nobody(cls: type[Method], release: Release) -> bool:
    """Whether true chance shows nothing here, as where a private method leaves small tables empty."""
    return not cls.randomness.replay and not len(release.table)


def check_same_seed_same_release(cls: type[Method]) -> None:
    """The same seed gives the same release, unless it must not; another gives another when chance is used."""
    for kind in sorted(cls.kinds):
        table = _table(cls, kind)
        first, other = (_protect_columns(cls(), table, seed) for seed in (5, 6))
        if _released_nobody(cls, first):
            continue
        runs = 1 if cls.randomness.replay else _RUNS  # true chance may give the same once
        alike = all(_are_equal_releases(first, _protect_columns(cls(), table, 5)) for _ in range(runs))
        must = "repeat" if cls.randomness.replay else "never repeat"
        assert alike == cls.randomness.replay, f"{cls.name} must {must} what a seed gave"
        if not cls.randomness.replay:
            continue
        if not cls.randomness.stochastic:
            assert _are_equal_releases(first, other), f"{cls.name} must declare the chance it uses"
        elif not cls.gives.imputed or not first.table.frame.equals(table.frame):  # nothing to impute
            assert not _are_equal_releases(first, other), f"{cls.name} must use its chance"


def check_column_order_is_irrelevant(cls: type[Method]) -> None:
    """The order of the columns in the file and in the step does not change a value."""
    for kind in sorted(cls.kinds) if cls.randomness.replay else ():
        table = _table(cls, kind)
        turned = table.select(reversed(table.names))
        run = _run(method=cls(), table=turned)
        other = Recipe((Step(cls(), ("b", "a")),)).apply(turned, run)
        for name, straight in _protect_columns(cls(), table).tables.items():
            assert_frame_equal(straight.frame, other.tables[name].frame.select(straight.names))


def check_input_is_untouched(cls: type[Method]) -> None:
    """The original, its other columns and its missing cells stay; records come from where it says."""
    for kind in sorted(cls.kinds):
        _sound_release(cls, _table(cls, kind, missing=0.1))


def _sound_release(cls: type[Method], table: Table) -> Release | None:
    """A release that is as it must be, or None where it is refused on purpose."""
    before = table.frame.clone()
    release = _try(cls(), table)
    assert_frame_equal(table.frame, before)
    if release is not None:
        _require_columns(cls, table, release)
        _require_records(cls, table, release)
    return release


def _require_columns(cls: type[Method], table: Table, release: Release) -> None:
    """Every column is there, in its place; what is new was declared, and several tables can be joined."""
    shown = dict.fromkeys(name for each in release.tables.values() for name in each.names)
    added = [name for name in shown if name not in table.names]
    assert cls.gives.new_columns or not added, f"{cls.name} must declare that it adds columns"
    assert set(table.names) <= set(shown), "a column must not get lost"
    if len(release.tables) == 1:
        assert release.table.names == (*table.names, *added)
        return
    layout = release.layout
    assert layout is not None, "several tables must say how they belong together"
    assert set(layout.keys) == set(release.tables), "several tables must say by which columns they join"
    for name, keys in layout.keys.items():
        assert set(keys) <= set(release.tables[name].names)


def _require_records(cls: type[Method], table: Table, release: Release) -> None:
    """Records that come from an original one have its other columns and its missing cells."""
    rows = release.source_rows
    if not cls.gives.other_records:
        assert rows is not None
        assert np.array_equal(rows, np.arange(len(table)))
    if rows is None:
        return  # of nobody: there is nothing to compare with
    assert np.isin(rows, np.arange(-1, len(table))).all()
    after, apart = release.first, {name for group in release.bucketed_columns for name in group}
    assert len(rows) == len(after) == len(release.reading())
    after, came = after.take(np.flatnonzero(rows >= 0)), table.take(rows[rows >= 0])  # −1 is nobody
    names = set(after.names) - apart
    for name in names & {"stratum", "other"}:
        assert_series_equal(after.frame[name], came.frame[name])
    for name in set() if cls.gives.suppressed else names & {"a", "b"}:
        assert np.array_equal(after.missing(name), came.missing(name)), "missing cells must stay missing"


def check_a_stratum_of_one(cls: type[Method]) -> None:
    """A record alone in its stratum is changed, counted in a note, or refused: never left in silence.

    Of a method with a guarantee chance may leave it as it is: nobody can tell.
    """
    for kind in sorted(cls.kinds) if not cls.randomness.epsilon_parameter else ():
        table = _table(cls, kind)
        table = table.with_values("stratum", pl.Series("stratum", [1, *[0] * (len(table) - 1)]))
        try:
            release = _protect_columns(cls(), table, within=("stratum",))
        except SfumatoError:
            continue
        noted = any("alone in their stratum" in note for note in release.provenance[0].notes)
        for after in release.tables.values() if release.source_rows is not None and not noted else ():
            for place in np.flatnonzero(release.source_rows == 0):
                before, now = table.frame.row(0, named=True), after.frame.row(int(place), named=True)
                assert any(before[name] != now[name] for name in ("a", "b") if name in now), (
                    f"{cls.name} must not leave a record alone in its stratum as it is"
                )


def check_hard_tables(cls: type[Method]) -> None:
    """Missing, empty, one record, constants, ties: a sound release or an error on purpose, for every kind."""
    for kind in Kind:
        for what, table in _hard(cls, kind):
            release = _sound_release(cls, table)
            if kind not in cls.kinds:
                assert release is None, f"{cls.name} must refuse a {kind} column ({what})"
            elif what == "missing":
                assert release is not None, f"{cls.name} must cope with missing {kind} values"


def check_engines_agree(cls: type[Method]) -> None:
    """Many small blocks give the same release bit for bit, worked on in turn, at once, or sent away and back.

    So do columns that lie in files. What is sent holds neither the seed nor a column that is not chosen.
    """
    secrets = (*forms_of(_SEED), SENTINEL_WORD.encode())
    engines = (ThreadEngine(FEW_RECORDS), PicklingEngine(FEW_RECORDS, secrets))
    for kind in sorted(cls.kinds):
        usual = _table(cls, kind, missing=0.1)
        table = usual.with_values("other", pl.Series([SENTINEL_WORD] * len(usual)))
        alone = _protect_columns(cls(), table, _SEED, engine=MemoryEngine(FEW_RECORDS))
        if _released_nobody(cls, alone):
            continue
        for engine in engines:
            release = _protect_columns(cls(), table, _SEED, engine=engine)
            assert _are_equal_releases(release, alone) == cls.randomness.replay, (
                f"{type(engine).__name__} changes {cls.name}"
            )
            if cls.randomness.replay:
                np.testing.assert_array_equal(release.source_rows, alone.source_rows)
        with columns_in_files():
            stored = _protect_columns(cls(), replace(table), _SEED, engine=MemoryEngine(FEW_RECORDS))
        assert _are_equal_releases(stored, alone) == cls.randomness.replay, (
            f"columns in files change {cls.name}"
        )


def check_strata_stay_apart(cls: type[Method]) -> None:
    """Within strata each stratum is protected as if it were alone."""
    kind = min(cls.kinds)
    table = _table(cls, kind)
    try:
        release = _protect_columns(cls(), table, within=("stratum",))
    except SfumatoError:
        return
    assert cls.gives.other_records or len(release.table) == len(table)
    if release.source_rows is not None:
        assert_frame_equal(
            release.table.frame.select("stratum"), table.take(release.source_rows).frame.select("stratum")
        )
    if not cls.randomness.stochastic and not cls.gives.other_records:
        rows = np.flatnonzero(table.frame["stratum"].to_numpy() == 0)
        alone = _protect_columns(cls(), table.take(rows)).table.frame
        columns = ["a", "b"]
        assert_frame_equal(
            release.table.take(rows).frame.select(columns), alone.select(columns), check_dtypes=False
        )


def check_people_keep_their_chance(cls: type[Method]) -> None:
    """In a series another order of records, or other blocks, give each person the same; or it is refused."""
    replays = cls.randomness.stochastic and cls.randomness.replay
    for kind in sorted(cls.kinds) if replays and not cls.gives.deassociated else ():
        table, method = _table(cls, kind, missing=0.1), cls()
        person = Column("other", Kind.NOMINAL, Role.PERSON)
        table = replace(table, schema=table.schema.replace(person))
        series = Series(series_secret(5))
        run = replace(_run(method=method, table=table), randomness=ByPerson(5, series=series))
        recipe = Recipe((Step(method, ("a", "b")),))
        if not method.by_person():
            reason = _refusal(recipe, table, run)
            assert cls.name in reason, f"{cls.name} must be refused in a series"
            continue
        order = np.random.default_rng(3).permutation(len(table))
        straight = recipe.apply(table, run).table.take(order).frame
        turned = recipe.apply(table.take(order), replace(run, engine=MemoryEngine(FEW_RECORDS)))
        assert_frame_equal(straight, turned.table.frame, rel_tol=1e-9)


def _refusal(recipe: Recipe, table: Table, run: Run) -> str:
    try:
        recipe.apply(table, run)
    except SfumatoError as error:
        return error.message
    return ""


def check_says_no_cell(cls: type[Method]) -> None:
    """No cell value in a message, a log or a traceback."""
    for kind in sorted(cls.kinds):
        for text in noises(lambda table: _protect_columns(cls(), table), kind):
            assert_silent(text, cls.name)


#: What every method must do.
METHOD_CHECKS: tuple[Callable[[Any], None], ...] = (
    *COMPONENT_CHECKS,
    check_has_a_drive,
    check_tells_analysts,
    check_same_seed_same_release,
    check_column_order_is_irrelevant,
    check_input_is_untouched,
    check_a_stratum_of_one,
    check_hard_tables,
    check_engines_agree,
    check_strata_stay_apart,
    check_people_keep_their_chance,
    check_says_no_cell,
)
