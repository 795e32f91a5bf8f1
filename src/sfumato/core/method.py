"""What a method of protection is, in the three shapes an author may write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
import polars as pl

from sfumato.core.params import Parameters
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.promises import as_promised
from sfumato.data.schema import Column, Kind
from sfumato.data.table import TEXTUAL, Codes, Table
from sfumato.engines.memory import BLOCK_RECORDS
from sfumato.errors import DataError, ParameterError, RefusedError
from sfumato.kernels.arrays import Flags, Floats, Values

#: The square of a number up to here, and a sum of them, is finite, and that of its inverse is not 0.
_LARGEST = 1e150


class Described(Parameters):
    """What methods and measures say of themselves."""

    name: ClassVar[str]  # kebab-case: the word in the CLI, in URLs and in plans
    aliases: ClassVar[tuple[str, ...]] = ()  # other words for it, as in `k >= 5`
    former: ClassVar[tuple[str, ...]] = ()  # what it was called once: still understood, with a note
    title: ClassVar[str] = ""
    kinds: ClassVar[frozenset[Kind]] = frozenset()
    references: ClassVar[tuple[str, ...]] = ()
    cost: ClassVar[str] = "n"

    @classmethod
    def family(cls) -> str:
        """The module it stands in: methods of one family share a file."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Describe itself for machines (``--json``) and for the docs."""
        return {
            "name": cls.name,
            "aliases": list(cls.aliases),
            "title": cls.title,
            "family": cls.family(),
            "summary": cls.summary(),
            "kinds": sorted(kind.value for kind in cls.kinds),
            "cost": cls.cost,
            "references": list(cls.references),
            "parameters": [declared.to_dict() for declared in cls.parameters()],
        }


class Method(Described):
    """Turns a table into a release. Write ``protect`` for methods that need the whole table at once."""

    produces: ClassVar[frozenset[Kind]] = frozenset()  # empty: the kinds it is given
    stochastic: ClassVar[bool] = True
    replay: ClassVar[bool] = True  # False: noise that must not be repeatable (differential privacy)
    generalises: ClassVar[bool] = False  # True: values may be intervals or labels afterwards
    takes_generalised: ClassVar[bool] = False  # True: it also works on columns that were generalised before
    suppresses: ClassVar[bool] = False  # True: cells that had a value may be missing or a wildcard afterwards
    fills: ClassVar[bool] = False  # True: changes nothing but cells that were suppressed or coarsened before
    changes_records: ClassVar[bool] = False  # True: the release may have other records than the original

    def refuses(self, table: Table) -> str | None:
        """Why this method cannot protect the chosen columns of this table; None when it can."""
        wrong = [name for name in table.chosen if table.schema[name].kind not in self.kinds]
        if wrong:
            allowed = " or ".join(sorted(self.kinds))
            have = ", ".join(f"`{name}` ({table.schema[name].kind})" for name in wrong)
            return f"{self.name} must be given {allowed} columns, got: {have}"
        return None

    def drive_range(self, table: Table) -> tuple[float, float]:  # noqa: ARG002  — a method may look at it
        """The values of the drive parameter worth searching on this table."""
        drive = self.drive()
        if drive is None or drive.tune is None:
            raise ParameterError(f"{self.name} must have a drive parameter with a range, got: none")
        return drive.tune

    def protect(self, table: Table, run: Run) -> Release:
        """Protect the chosen columns (``table.chosen``); the input is not changed."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def unmet(self, table: Table, release: Release, run: Run) -> list[str]:  # noqa: ARG002  — most promise nothing
        """What it vouches for and a release put together from parts does not meet, in words."""
        return []

    @final
    def apply(self, table: Table, run: Run) -> Release:
        """Check, then protect: what the doors and recipes call."""
        reason = self.refuses(table)
        if reason is not None:
            raise RefusedError(reason, hint="choose other columns or settings, or correct kinds in the plan")
        run.check()
        return self.protect(table, run)

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Describe itself for machines and for the docs."""
        drive = cls.drive()
        return {
            **super().describe(),
            "shape": shape_of(cls),
            "stochastic": cls.stochastic,
            "replay": cls.replay,
            "produces": sorted(kind.value for kind in cls.produces or cls.kinds),
            "drive": drive.name if drive else None,
        }


def shape_of(method: type[Method]) -> str:
    """Which of the three shapes a method is written in."""
    if issubclass(method, ColumnMethod):
        return "column"
    return "block" if issubclass(method, BlockMethod) else "table"


@dataclass(frozen=True)
class ColumnView:
    """One column as a column method sees it: the values that are there, and what they mean.

    Missing values are set aside before and put back after, so no author can forget them. ``values`` are
    floats for a continuous column, days or microseconds for a date, and codes in the column's order for
    an ordinal or nominal one (``categories`` has their values).
    """

    column: Column
    values: Values
    weights: Floats | None = None
    categories: pl.Series | None = None

    def __len__(self) -> int:
        return len(self.values)


class ColumnMethod(Method):
    """Protects each column on its own. Write ``protect_column``."""

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values | pl.Series:
        """Return the protected values of one column, in the order of the records.

        An array means values as they came (codes for codes); a Series is taken as it is.
        """
        raise NotImplementedError  # abstract: every method in the registry has its own

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Protect the chosen columns one by one, each with a stream of chance of its own."""
        work = partial(_protect_one, self, table, run)
        protected = table
        for name, series in run.track(
            self.title, run.engine.map(work, table.chosen), total=len(table.chosen)
        ):
            protected = protected.with_values(name, series)
        return Release.of(protected, source_rows=np.arange(len(table), dtype=np.int64))


def _protect_one(method: ColumnMethod, table: Table, run: Run, name: str) -> tuple[str, pl.Series]:
    column, missing = table.schema[name], table.missing(name)
    present = np.flatnonzero(~missing)
    if not len(present):
        return name, table.frame[name]
    codes = table.codes(name) if column.kind in {Kind.ORDINAL, Kind.NOMINAL} else None
    values = _physical(table, name) if codes is None else codes.codes
    weights = None if table.weights is None else table.weights[present]
    view = ColumnView(
        column=column,
        values=values[present],
        weights=weights,
        categories=None if codes is None else codes.categories,
    )
    result = method.protect_column(view, run.rng(name))
    if len(result) != len(present):
        raise DataError(f"{method.name} must return {len(present)} values, got: {len(result)}")
    return name, put_back(table, name, result, codes=codes)


def _physical(table: Table, name: str) -> Values:
    if table.schema[name].kind is Kind.DATE and table.frame[name].dtype.is_temporal():
        return table.frame[name].to_physical().fill_null(0).to_numpy()
    return table.numbers(name)


def put_back(table: Table, name: str, result: Values | pl.Series, *, codes: Codes | None = None) -> pl.Series:
    """Set the protected values of the records that have one into the column; missing cells stay.

    Numbers are kept to what the schema promises of the column, see `data.promises`.
    """
    original, missing = table.frame[name], table.missing(name)
    if isinstance(result, pl.Series):
        fresh = result
    elif table.schema[name].kind in {Kind.ORDINAL, Kind.NOMINAL}:
        fresh = _decoded(original, result, table.codes(name) if codes is None else codes)
    elif table.schema[name].kind is Kind.DATE and original.dtype in TEXTUAL:
        fresh = _in_kind_of(original.clear().cast(pl.Date), result).cast(pl.String)
    else:
        fresh = _in_kind_of(original, _as_promised(table, name, result, missing))
    if not missing.any():
        return fresh.alias(name)
    places = np.full(len(missing), -1, dtype=np.int64)
    places[~missing] = np.arange(len(fresh))
    spread = fresh.gather(pl.Series(places).replace(-1, None))
    kept = original.cast(fresh.dtype, strict=False)  # a declared missing code such as −9 survives
    return pl.select(pl.when(pl.Series(missing)).then(kept).otherwise(spread)).to_series().alias(name)


def _as_promised(table: Table, name: str, result: Values, missing: Flags) -> Values:
    column = table.schema[name]
    promises = (column.lower, column.upper, column.missing_range)
    if column.kind is not Kind.CONTINUOUS or not (
        column.integer or column.missing_codes or any(promise is not None for promise in promises)
    ):
        return result
    return as_promised(column, table.numbers(name)[~missing], result.astype(np.float64))


def _decoded(original: pl.Series, values: Values, codes: Codes) -> pl.Series:
    """Turn codes back into values, in the original's list of categories where it has one."""
    wrong = int((~((values == np.rint(values)) & (values >= -1) & (values < len(codes.categories)))).sum())
    if wrong:
        raise DataError(
            f"`{original.name}` must be given codes of its {len(codes.categories)} categories, "
            f"got: {wrong} values that are none"
        )
    fresh = codes.decode(values.astype(np.int64))
    listed = fresh.cast(original.dtype, strict=False)
    return listed if listed.null_count() == fresh.null_count() else fresh


def _in_kind_of(original: pl.Series, values: Values) -> pl.Series:
    """Give numbers the original's type where that loses nothing: whole numbers stay whole numbers."""
    dtype = original.dtype
    if dtype.is_temporal():
        # Nanoseconds since 1970 are whole numbers that a float cannot hold, so they must not become one.
        instants = values if values.dtype.kind in "iu" else np.rint(values).astype(np.int64)
        return pl.Series(instants).cast(dtype)
    series = pl.Series(values.astype(np.float64))
    if dtype.is_integer():
        whole = bool(np.all(values == np.rint(values)))
        as_whole = series.cast(dtype, strict=False)
        return as_whole if whole and as_whole.null_count() == 0 else series
    return series.cast(dtype) if dtype.is_float() else series


@dataclass(frozen=True)
class Block:
    """A run of consecutive records, the chosen columns as numbers (NaN where missing)."""

    index: int
    names: tuple[str, ...]
    values: Floats
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.values)


class BlockMethod(Method):
    """Protects records block by block, after one or more rounds of summaries over the whole table.

    Write ``summarise`` and ``merge`` for each of ``rounds`` rounds, then ``protect_block``. A later round
    sees the merged summaries of the earlier ones, and draws the same chance in the same block: that is
    how Höhne's and Kim's noise learn the moments of the noisy data.
    """

    rounds: ClassVar[int] = 1

    def summarise(self, block: Block, summaries: Sequence[Any], run: Run) -> Any:
        """Summarise one block in round ``len(summaries)``."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def merge(self, first: Any, second: Any) -> Any:
        """Merge the summaries of two neighbouring groups of blocks."""
        return first.merge(second)

    def protect_block(self, block: Block, summaries: Sequence[Any], run: Run) -> Floats:
        """Return the protected values of one block; cells that were missing are ignored."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Run the rounds, then protect every block."""
        release = Release.unchanged(table)
        if not len(table):
            return release
        blocks = cut(table)
        if self.rounds:
            _require_squares(blocks)
        summaries: list[Any] = []
        total = len(blocks) * (self.rounds + 1)
        for turn in range(self.rounds):
            work = partial(_summarise_one, self, tuple(summaries), run)
            results = _told(run, self.title, run.engine.map(work, blocks), turn * len(blocks), total)
            summaries.append(run.engine.fold(self.merge, results))
        work = partial(_protect_block, self, tuple(summaries), run)
        results = _told(run, self.title, run.engine.map(work, blocks), self.rounds * len(blocks), total)
        values = np.concatenate(list(results))
        protected = table
        for position, name in enumerate(table.chosen):
            present = values[~table.missing(name), position]
            protected = protected.with_values(name, put_back(table, name, present))
        return replace(release, tables=Release.of(protected).tables)


def _require_squares(blocks: Sequence[Block]) -> None:
    """Raise if variances would be infinite, or 0 in a column that varies: it would go out as it came."""
    largest = np.max([np.nanmax(np.abs(block.values), axis=0, initial=0.0) for block in blocks], axis=0)
    for name, size in zip(blocks[0].names, largest, strict=True):
        if size > _LARGEST or 0 < size < 1 / _LARGEST:
            raise DataError(
                f"column `{name}` must hold numbers from {1 / _LARGEST:g} to {_LARGEST:g} in size to have a "
                f"variance, got: only smaller ones, or larger",
                hint="declare codes such as 1e300 as missing, or write the column in another unit",
            )


def cut(table: Table) -> list[Block]:
    """Cut a table into its logical blocks."""
    names = table.chosen
    matrix, weights = table.matrix(names), table.weights
    starts = range(0, len(table), BLOCK_RECORDS)
    return [
        Block(
            index=index,
            names=names,
            values=matrix[start : start + BLOCK_RECORDS],
            weights=None if weights is None else weights[start : start + BLOCK_RECORDS],
        )
        for index, start in enumerate(starts)
    ]


def _told(run: Run, task: str, results: Any, before: int, total: int) -> Any:
    for done, result in enumerate(results, start=before + 1):
        run.tell(task, done, total)
        yield result


def _summarise_one(method: BlockMethod, summaries: Sequence[Any], run: Run, block: Block) -> Any:
    return method.summarise(block, summaries, run.at("block", block.index))


def _protect_block(method: BlockMethod, summaries: Sequence[Any], run: Run, block: Block) -> Floats:
    return method.protect_block(block, summaries, run.at("block", block.index))
