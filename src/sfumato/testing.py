"""The contract as tests: what every method and measure must do, for ours and for a plugin's.

A plugin's own test file needs two lines::

    import pytest
    from sfumato.testing import METHOD_CHECKS

    @pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(MyMethod)

Needs hypothesis only where a strategy is asked for.
"""

from __future__ import annotations

import doctest
import logging
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from sfumato.compare.recipe import Recipe, Step, reordered
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.method import Described, Method
from sfumato.core.params import Param, Parameters
from sfumato.core.references import references
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.evidence import Evidence, Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, SfumatoError

#: Numbers and words that stand nowhere else: found in a message, they are a leak.
SENTINEL_NUMBER = 918273645.5
SENTINEL_WORD = "Zanzibarquux"


# ----------------------------------------------------------------------------------------------- tables


def columns_of(kind: Kind, records: int, rng: np.random.Generator) -> list[pl.Series]:
    """Two ordinary columns of a kind."""
    if kind is Kind.CONTINUOUS:
        base = rng.lognormal(3, 1, records)
        return [
            pl.Series("a", base),
            pl.Series("b", np.rint(base * rng.lognormal(0, 0.3, records))).cast(pl.Int64),
        ]
    if kind is Kind.ORDINAL:
        words = np.array(["low", "middle", "high"])
        return [
            pl.Series("a", rng.integers(0, 9, records)),
            pl.Series("b", words[rng.integers(0, 3, records)]),
        ]
    if kind is Kind.DATE:
        start = date(2020, 1, 1)
        days = [[start + timedelta(days=int(d)) for d in rng.integers(0, 900, records)] for _ in range(2)]
        return [pl.Series(name, values, dtype=pl.Date) for name, values in zip("ab", days, strict=True)]
    if kind is Kind.SET:
        sets = [[["x", "y", "z"][: int(size)] for size in rng.integers(0, 4, records)] for _ in range(2)]
        return [
            pl.Series(name, values, dtype=pl.List(pl.String)) for name, values in zip("ab", sets, strict=True)
        ]
    return [
        pl.Series(name, [f"v{int(code)}" for code in rng.integers(0, 5, records)], dtype=pl.String)
        for name in "ab"
    ]


def table_of(kind: Kind, records: int = 60, *, missing: float = 0.0, seed: int = 11) -> Table:
    """A table with two key columns of a kind, a stratum and an untouched column."""
    rng = np.random.default_rng(seed)
    series = columns_of(kind, records, rng)
    if missing:
        series = [_with_holes(each, rng.random(records) < missing) for each in series]
    frame = pl.DataFrame(series).with_columns(
        pl.Series("stratum", rng.integers(0, 2, records), dtype=pl.Int64),
        pl.Series("other", np.arange(records), dtype=pl.Int64),
    )
    order = ("low", "middle", "high") if kind is Kind.ORDINAL else ()
    schema = Schema(
        (
            Column("a", kind, Role.KEY),
            Column("b", kind, Role.KEY, order=order),
            Column("stratum", Kind.NOMINAL, Role.OTHER),
            Column("other", Kind.NOMINAL, Role.OTHER),
        )
    )
    return Table(frame, schema)


def _with_holes(series: pl.Series, holes: Any) -> pl.Series:
    return series.to_frame().select(pl.when(pl.Series(~holes)).then(pl.col(series.name))).to_series()


def hard_tables(kind: Kind) -> Iterator[tuple[str, Table]]:
    """Tables on which careless code breaks."""
    usual = table_of(kind)
    yield "missing", table_of(kind, missing=0.3)
    yield "all missing", usual.with_values("a", pl.Series([None] * len(usual), dtype=usual.frame["a"].dtype))
    yield "empty", usual.take(np.arange(0))
    yield "one record", usual.take(np.arange(1))
    yield "two records", usual.take(np.arange(2))
    yield "constant", usual.take(np.zeros(40, dtype=np.int64))
    yield "duplicate columns", usual.with_values("b", usual.frame["a"], column=Column("b", kind, Role.KEY))
    yield "heavy ties", usual.take(np.repeat(np.arange(4), 15))


# ------------------------------------------------------------------------------------------- strategies


def strategy_of(declared: Param) -> Any:
    """The hypothesis strategy of one parameter's domain."""
    from hypothesis import strategies as st

    if declared.choices:
        plain: Any = st.sampled_from(declared.choices)
    elif declared.type is bool:
        plain = st.booleans()
    elif declared.type is int:
        plain = st.integers(*(int(end) if end is not None else None for end in _ends(declared)))
    elif declared.type is float:
        low, high = _ends(declared)
        plain = st.floats(
            low, high, exclude_min=declared.gt is not None, exclude_max=declared.lt is not None,
            allow_nan=False, allow_infinity=False,
        )  # fmt: skip
    else:
        plain = st.text(min_size=1, max_size=8)
    return st.one_of(st.none(), plain) if declared.optional else plain


def _ends(declared: Param) -> tuple[float | None, float | None]:
    step = 1 if declared.type is int else 0
    low = declared.ge if declared.ge is not None else (None if declared.gt is None else declared.gt + step)
    high = declared.le if declared.le is not None else (None if declared.lt is None else declared.lt - step)
    return low, high


def instances(cls: type[Parameters]) -> Any:
    """The hypothesis strategy of every way a method or measure can be set."""
    from hypothesis import strategies as st

    return st.builds(cls, **{declared.name: strategy_of(declared) for declared in cls.parameters()})


def outside(declared: Param) -> list[Any]:
    """Values just outside a parameter's domain, and of the wrong type."""
    wrong: list[Any] = [] if declared.optional else [None]
    wrong += [object(), [1]]
    if declared.type in {int, float}:
        wrong += ["much", float("nan"), float("inf"), True]
        wrong += [bound for bound in (declared.gt, declared.lt) if bound is not None]
        wrong += [declared.ge - 1] * (declared.ge is not None) if declared.ge is not None else []
        wrong += [declared.le + 1] * (declared.le is not None) if declared.le is not None else []
    if declared.type is int:
        wrong.append(2.5)
    if declared.choices:
        wrong.append("no-such-choice")
    if declared.type is bool:
        wrong.append("yes")
    return wrong


# -------------------------------------------------------------------------------- checks of both sorts


def check_describes_itself(cls: type[Described]) -> None:
    """Name, title, kinds, one-line summary, and literature that exists."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cls.name), "the name must be kebab-case"
    assert cls.title
    assert cls.kinds
    assert cls.summary().endswith("."), "the docstring must begin with a sentence on one line"
    for key in cls.references:
        assert key in references(), f"`{key}` must stand in references.bib"
    for declared in cls.parameters():
        assert declared.help.endswith("."), f"the help of `{declared.name}` must be a sentence"
        assert declared.accepts(declared.default), f"the default of `{declared.name}` must be in its domain"
    described = cls.describe()
    assert described["name"] == cls.name


def check_refuses_values_outside(cls: type[Described]) -> None:
    """A value outside a parameter's domain is an error that names the parameter and the domain."""
    for declared in cls.parameters():
        for value in outside(declared):
            message = _refusal(cls, declared.name, value)
            assert f"`{declared.name}`" in message, f"{cls.name} accepts {declared.name}={value!r}"
            assert declared.domain in message


def _refusal(cls: type[Described], name: str, value: object) -> str:
    try:
        cls(**{name: value})
    except ParameterError as error:
        return error.message
    return ""


def check_round_trips(cls: type[Described]) -> None:
    """An instance survives a plan, a pickle and a hash."""
    made = cls()
    assert cls.from_dict(made.to_dict()) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  — our own bytes
    assert hash(made) == hash(cls())
    for declared in cls.parameters():
        if declared.tune:
            for value in declared.grid(5):
                assert declared.accepts(value), (
                    f"the range worth searching of `{declared.name}` leaves its domain"
                )


def check_examples_run(cls: type[Described]) -> None:
    """The examples in the docstring give what they say."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    module = sys.modules[cls.__module__]
    for test in finder.find(cls, cls.__name__, module=module, globs=dict(vars(module))):
        assert runner.run(test).failed == 0, f"an example of {cls.name} does not give what it says"


# -------------------------------------------------------------------------------------- checks of methods


def _run(seed: int = 5) -> Run:
    return Run(seed=seed)


def _protected(method: Method, table: Table, seed: int = 5, **more: Any) -> Release:
    return Recipe((Step(method, ("a", "b"), **more),)).apply(table, _run(seed))


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
        else:
            assert not first.table.frame.equals(other.table.frame), f"{cls.name} must use its chance"


def check_column_order_is_irrelevant(cls: type[Method]) -> None:
    """The order of the columns in the file and in the step does not change a value."""
    for kind in sorted(cls.kinds):
        table = table_of(kind)
        turned = table.select(reversed(table.names))
        straight = _protected(cls(), table).table.frame
        other = Recipe((Step(cls(), ("b", "a")),)).apply(turned, _run()).table.frame
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
            for name in ("a", "b"):
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
        recipe = Recipe((Step(cls(), ("a", "b")),))
        alone = recipe.apply(table, _run())
        pooled = recipe.apply(table, replace(_run(), engine=_Threads()))
        assert_frame_equal(alone.table.frame, pooled.table.frame)


class _Threads:
    """An engine that works on several items at once and hands the results over in order."""

    def map(self, work: Callable[[Any], Any], items: Any) -> Iterator[Any]:
        with ThreadPoolExecutor(4) as pool:
            yield from pool.map(work, items)

    def fold(self, merge: Callable[[Any, Any], Any], items: Any) -> Any:
        items = list(items)
        total = items[0]
        for item in items[1:]:
            total = merge(total, item)
        return total


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
        for text in _noises(lambda table: _protected(cls(), table), kind):
            _assert_silent(text, cls.name)


# ------------------------------------------------------------------------------------- checks of measures


def _evidence(table: Table, *, seed: int = 3) -> Evidence:
    """A table beside a version of it in which each key column was permuted on its own."""
    rng = np.random.default_rng(seed)
    protected = table
    for name in ("a", "b"):
        protected = protected.with_values(
            name, table.frame[name].sample(fraction=1.0, shuffle=True, seed=seed)
        )
        seed = int(rng.integers(1 << 30))
    return replace(Release.unchanged(table), tables=Release.of(protected).tables).against(
        table, scenario=Scenario(columns=("a", "b"))
    )


def _score(measure: Measure, evidence: Evidence) -> Score:
    return measure.score(evidence, _run())


def check_declares_direction(cls: type[Measure]) -> None:
    """Aspect, direction and bounds are declared."""
    assert cls.aspect in {"risk", "utility"}
    assert cls.better in {"low", "high"}
    assert cls.bounds[0] < cls.bounds[1]


def check_within_bounds(cls: type[Measure]) -> None:
    """A score lies within the declared bounds, and a number that is none says so."""
    for kind in Kind:
        for _, table in [("usual", table_of(kind)), *hard_tables(kind)]:
            try:
                score = _score(cls(), _evidence(table))
            except SfumatoError:
                continue
            if score.status in {Status.OK, Status.APPROXIMATE}:
                assert cls.bounds[0] <= score.value <= cls.bounds[1]
            else:
                assert np.isnan(score.value)
                assert score.reason


def check_identity_is_extreme(cls: type[Measure]) -> None:
    """The original itself is the riskiest and the most useful release."""
    for kind in sorted(cls.kinds):
        table = table_of(kind)
        same = _score(cls(), Release.unchanged(table).against(table, scenario=Scenario(columns=("a", "b"))))
        permuted = _score(cls(), _evidence(table))
        worse = permuted if cls.aspect == "utility" else same
        better = same if cls.aspect == "utility" else permuted
        if Status.REFUSED not in {same.status, permuted.status}:
            assert not cls().is_better(worse.value, better.value)


def check_record_order_is_irrelevant(cls: type[Measure]) -> None:
    """The order of the released records does not change a score: file order is not evidence."""
    for kind in sorted(cls.kinds):
        evidence = _evidence(table_of(kind, missing=0.1))
        assert evidence.protected is not None
        release = Release.of(evidence.protected, source_rows=evidence.source_rows)
        shuffled = reordered(release, np.random.default_rng(8).permutation(len(evidence.protected)))
        there = replace(evidence, protected=shuffled.table, source_rows=shuffled.source_rows)
        np.testing.assert_allclose(_score(cls(), evidence).value, _score(cls(), there).value, rtol=1e-12)


def check_scores_repeat(cls: type[Measure]) -> None:
    """The same evidence and seed give the same score; so does another order of the columns."""
    for kind in sorted(cls.kinds):
        evidence = _evidence(table_of(kind))
        assert evidence.protected is not None
        turned = replace(
            evidence,
            original=evidence.original.select(reversed(evidence.original.names)),
            protected=evidence.protected.select(reversed(evidence.protected.names)),
        )
        value = _score(cls(), evidence).value
        np.testing.assert_array_equal(_score(cls(), evidence).value, value)
        np.testing.assert_allclose(_score(cls(), turned).value, value, rtol=1e-12)


def check_refuses_with_a_reason(cls: type[Measure]) -> None:
    """Where it does not apply it says why, and gives no number."""
    table = table_of(min(cls.kinds))
    if cls.needs_release:
        alone = _score(cls(), Evidence(original=table))
        assert alone.status is Status.REFUSED
        assert alone.reason
    for kind in set(Kind) - cls.kinds:
        nothing = table_of(kind).select(["a", "b"])
        score = _score(cls(), _evidence(nothing))
        assert score.status is Status.REFUSED
        assert score.reason


def check_measure_says_no_cell(cls: type[Measure]) -> None:
    """No cell value in a message, a reason, a log or a traceback."""
    for kind in sorted(cls.kinds):
        for text in _noises(lambda table: _score(cls(), _evidence(table)), kind):
            _assert_silent(text, cls.name)


# ------------------------------------------------------------------------------------------------ secrecy


def _noises(work: Callable[[Table], Any], kind: Kind) -> Iterator[str]:
    """What work says, in log, message and traceback, on tables of sentinel values, sound and unsound."""
    for table in _sentinel_tables(kind):
        with _log() as heard:
            try:
                result = work(table)
            except Exception as error:  # noqa: BLE001  — whatever is raised must keep the secret
                heard.append("".join(traceback.format_exception(error)))
            else:
                heard.append(result.reason if isinstance(result, Score) else repr(result))
        yield "\n".join(heard)


def _sentinel_tables(kind: Kind) -> Iterator[Table]:
    usual = table_of(kind, 8)
    if kind is Kind.CONTINUOUS:
        yield usual.with_values("a", pl.Series([SENTINEL_NUMBER] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_NUMBER, float("inf")] * 4))
    elif kind in {Kind.NOMINAL, Kind.ORDINAL}:
        yield usual.with_values("b", pl.Series([SENTINEL_WORD] * 8))
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))
    elif kind is Kind.DATE:
        yield usual.with_values("a", pl.Series([SENTINEL_WORD] * 8))


@contextmanager
def _log() -> Iterator[list[str]]:
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    root, ear = logging.getLogger(), Ear(level=logging.DEBUG)
    before = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    try:
        yield heard
    finally:
        root.removeHandler(ear)
        root.setLevel(before)


def _assert_silent(text: str, who: str) -> None:
    for secret in (SENTINEL_WORD, "918273645", "918_273_645", "9.18273645"):
        assert secret not in text, f"{who} says a cell value"


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

#: What every measure must do.
MEASURE_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_describes_itself,
    check_refuses_values_outside,
    check_round_trips,
    check_examples_run,
    check_declares_direction,
    check_within_bounds,
    check_identity_is_extreme,
    check_record_order_is_irrelevant,
    check_scores_repeat,
    check_refuses_with_a_reason,
    check_measure_says_no_cell,
)
