"""What every method must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from polars.testing import assert_frame_equal

from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import SfumatoError
from sfumato.recipes.recipe import Recipe, Step
from sfumato.testing.described import (
    check_describes_itself,
    check_examples_run,
    check_refuses_values_outside,
    check_round_trips,
)
from sfumato.testing.secrecy import assert_silent, noises
from sfumato.testing.tables import hard_tables, table_of


def _run(seed: int = 5, *, method: Method, table: Table) -> Run:
    """A run in which every table that a method asks for is there: for want of another, the one at hand."""
    asked = [getattr(method, each.name) for each in method.parameters() if each.holds == "table"]
    return Run(seed=seed, resources={str(name): table for name in asked if name is not None})


def _protected(method: Method, table: Table, seed: int = 5, **more: Any) -> Release:
    return Recipe((Step(method, ("a", "b"), **more),)).apply(table, _run(seed, method=method, table=table))


def _try(method: Method, table: Table) -> Release | None:
    """Protect, or refuse on purpose; anything else is a fault."""
    try:
        return _protected(method, table)
    except SfumatoError:
        return None


def check_has_a_drive(cls: type[Method]) -> None:
    """At most one parameter is the drive, and it has a range worth searching."""
    drives = [declared for declared in cls.parameters() if declared.drive]
    assert len(drives) <= 1
    assert all(declared.tune is not None for declared in drives)


def check_same_seed_same_release(cls: type[Method]) -> None:
    """The same seed gives the same release; another gives another when chance is used."""
    for kind in sorted(cls.kinds):
        table = table_of(kind)
        first, again, other = (_protected(cls(), table, seed) for seed in (5, 5, 6))
        assert_frame_equal(first.table.frame, again.table.frame)
        if not cls.stochastic:
            assert_frame_equal(first.table.frame, other.table.frame)
        elif not (cls.fills and first.table.frame.equals(table.frame)):  # there may be nothing to fill
            assert not first.table.frame.equals(other.table.frame), f"{cls.name} must use its chance"


def check_column_order_is_irrelevant(cls: type[Method]) -> None:
    """The order of the columns in the file and in the step does not change a value."""
    for kind in sorted(cls.kinds):
        table = table_of(kind)
        turned = table.select(reversed(table.names))
        straight = _protected(cls(), table).table.frame
        run = _run(method=cls(), table=turned)
        other = Recipe((Step(cls(), ("b", "a")),)).apply(turned, run).table.frame
        assert_frame_equal(straight, other.select(straight.columns))


def check_input_is_untouched(cls: type[Method]) -> None:
    """The original, its other columns and its missing cells stay as they are."""
    for kind in sorted(cls.kinds):
        for _, table in [("usual", table_of(kind)), *hard_tables(kind)]:
            before = table.frame.clone()
            release = _try(cls(), table)
            assert_frame_equal(table.frame, before)
            if release is None or cls.changes_records:
                continue
            after = release.table
            assert after.names == table.names
            assert len(after) == len(table)
            assert_frame_equal(after.frame.select("stratum", "other"), before.select("stratum", "other"))
            for name in () if cls.suppresses else ("a", "b"):
                assert np.array_equal(after.missing(name), table.missing(name)), (
                    "missing cells must stay missing"
                )
            assert release.source_rows is not None
            assert np.array_equal(release.source_rows, np.arange(len(table)))


def check_hard_tables(cls: type[Method]) -> None:
    """Missing, empty, one record, constants, ties: a release or an error on purpose, for every kind."""
    for kind in Kind:
        for what, table in hard_tables(kind):
            release = _try(cls(), table)
            if kind not in cls.kinds:
                assert release is None, f"{cls.name} must refuse a {kind} column ({what})"
            elif what == "missing":
                assert release is not None, f"{cls.name} must cope with missing {kind} values"


def check_engines_agree(cls: type[Method]) -> None:
    """Work done in parallel gives bit for bit the release of work done in turn."""
    for kind in sorted(cls.kinds):
        table = table_of(kind)
        recipe, run = Recipe((Step(cls(), ("a", "b")),)), _run(method=cls(), table=table)
        alone = recipe.apply(table, run)
        pooled = recipe.apply(table, replace(run, engine=_Threads()))
        assert_frame_equal(alone.table.frame, pooled.table.frame)


class _Threads:
    """An engine that works on several items at once and hands the results over in order."""

    def map(self, work: Callable[[Any], Any], items: Any) -> Iterator[Any]:
        with ThreadPoolExecutor(4) as pool:
            yield from pool.map(work, items)

    def fold(self, merge: Callable[[Any, Any], Any], items: Any) -> Any:
        return reduce(merge, items)


def check_strata_stay_apart(cls: type[Method]) -> None:
    """Within strata each stratum is protected as if it were alone."""
    kind = min(cls.kinds)
    table = table_of(kind)
    try:
        release = _protected(cls(), table, within=("stratum",))
    except SfumatoError:
        return
    assert sorted(release.table.frame["stratum"]) == sorted(table.frame["stratum"])
    if not cls.stochastic and not cls.changes_records:
        rows = np.flatnonzero(table.frame["stratum"].to_numpy() == 0)
        alone = _protected(cls(), table.take(rows)).table.frame
        columns = ["a", "b"]
        assert_frame_equal(
            release.table.take(rows).frame.select(columns), alone.select(columns), check_dtypes=False
        )


def check_says_no_cell(cls: type[Method]) -> None:
    """No cell value in a message, a log or a traceback."""
    for kind in sorted(cls.kinds):
        for text in noises(lambda table: _protected(cls(), table), kind):
            assert_silent(text, cls.name)


#: What every method must do.
METHOD_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_describes_itself,
    check_refuses_values_outside,
    check_round_trips,
    check_examples_run,
    check_has_a_drive,
    check_same_seed_same_release,
    check_column_order_is_irrelevant,
    check_input_is_untouched,
    check_hard_tables,
    check_engines_agree,
    check_strata_stay_apart,
    check_says_no_cell,
)
