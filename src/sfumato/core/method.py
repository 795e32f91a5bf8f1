"""What a method of protection is, in the three shapes an author may write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import polars as pl

from sfumato.core.component import Component
from sfumato.core.randomness import RandomKey
from sfumato.core.release import MAIN, Release
from sfumato.core.run import Run
from sfumato.core.state import State
from sfumato.data.column_store import map_pieces, series_of
from sfumato.data.constraints import clip
from sfumato.data.relations.invariants import KeptKind
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import TEXTUAL, Codes, Table
from sfumato.errors import DataError, ParameterError, RefusedError, quoted
from sfumato.kernels.arrays import Flags, Floats, Values
from sfumato.kernels.threads import one_thread_of_algebra

#: Kinds whose values are seen as codes.
_CODED = frozenset({Kind.ORDINAL, Kind.NOMINAL})


#: What may be kept of columns whose values change, in words.
_KEPT_WORDS = {
    "differences": "the differences between them",
    "ratios": "the ratios between them",
    "ranks": "their ranks, but for ties",
    "linear": "one linear map from the original values",
}

#: What becomes of a true value: less of it is shown, it is shown wrong, apart from its record, or not at all.
Nature = Literal["non-perturbative", "perturbative", "de-associative", "synthetic"]


class EnforcedRequirement(NamedTuple):
    """A requirement that every release of a method meets, as a plan writes it: ``k-anonymity >= 5``.

    With ``columns`` it is enforced for an intruder who knows these and no others, as in combinations of keys;
    without, it is about all that an intruder knows, of which the step may protect only a part.
    """

    requirement: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Takes:
    """What a method takes besides columns of its kinds with exact values."""

    generalised: bool = False  # columns that were generalised before
    edit_rules: bool = False  # the rules of the schema, which it respects in what else records say
    whole_records: bool = False  # all that is said of people, unless columns are named: the rest stays real


@dataclass(frozen=True)
class Gives:
    """What a release of a method may have that its original has not."""

    generalised: bool = False  # intervals or labels in place of values
    suppressed: bool = False  # cells that had a value and are missing or a wildcard
    imputed: bool = False  # values where cells were suppressed or coarsened before, and no other change
    deassociated: bool = False  # values apart from their records: a last step
    other_records: bool = False  # fewer, more or reordered records
    new_columns: bool = False
    kept: tuple[KeptKind, ...] = ()  # what stays between or of values that changed, by some settings at least


@dataclass(frozen=True)
class Randomness:
    """What a method draws; with an ``epsilon_parameter`` that is the ε of a guarantee."""

    stochastic: bool = True
    replay: bool = True  # False: noise that must not be repeatable (differential privacy)
    epsilon_parameter: str = ""  # moved on the data, its ε is no guarantee


class Method(Component):
    """Turns a table into a release. Write ``protect`` for methods that need the whole table at once."""

    nature: ClassVar[Nature] = "perturbative"
    analyst_note: ClassVar[str] = ""  # a sentence or two: what to correct for when analysing the release
    analyst_extras: ClassVar[tuple[tuple[str, str], ...]] = ()  # more with a setting: ("replace=mean", "…")
    takes: ClassVar[Takes] = Takes()
    gives: ClassVar[Gives] = Gives()
    randomness: ClassVar[Randomness] = Randomness()

    _former_flags = frozenset({
        "stochastic", "replay", "private_by", "generalises", "takes_generalised", "suppresses", "fills",
        "changes_records", "adds_columns", "keeps_rules", "takes_apart",
    })  # fmt: skip

    def refuses(self, table: Table) -> str | None:
        """Why this method cannot protect the chosen columns of this table; None when it can."""
        wrong = [name for name in table.chosen if table.schema[name].kind not in self.kinds]
        if wrong:
            allowed = " or ".join(sorted(self.kinds))
            have = ", ".join(f"`{name}` ({table.schema[name].kind})" for name in wrong)
            return f"{self.name} must be given {allowed} columns, got: {have}"
        return None

    def refuses_generalised(self, table: Table, columns: Sequence[str] | None = None) -> str | None:
        """Why it cannot work on columns, the chosen ones unless given, as they are not exact; None if so."""
        names = table.chosen if columns is None else columns
        coarse = [name for name in names if table.is_generalised(name)]
        if coarse:
            return f"{self.name} must be given exact values, got: generalised ones in {quoted(coarse)}"
        return None

    def table_names(self) -> tuple[str, ...]:
        """The names of the tables that it may release, each a file of its own if there are several."""
        return (MAIN,)

    def by_person(self) -> bool:
        """Whether all it draws is one record's each: in a series of releases people then keep their noise."""
        return not self.randomness.stochastic

    def followers(self, schema: Schema) -> tuple[str, ...]:  # noqa: ARG002  — most change nothing else
        """The columns of a table of this schema that it changes together with the chosen ones."""
        return ()

    def drive_range(self, table: Table) -> tuple[float, float]:  # noqa: ARG002  — a method may look at it
        """The values of the drive parameter worth searching on this table."""
        drive = self.drive()
        if drive is None or drive.tune is None:
            raise ParameterError(f"{self.name} has no parameter with a range to search")
        return drive.tune

    def protect(self, table: Table, run: Run) -> Release:
        """Protect the chosen columns (``table.chosen``); the input is not changed."""
        raise NotImplementedError  # abstract: every method in the registry has its own

    def enforced_requirements(
        self,
        schema: Schema,  # noqa: ARG002  — most enforce nothing
        columns: Sequence[str],  # noqa: ARG002
    ) -> tuple[EnforcedRequirement, ...]:
        """What it enforces on these columns of such a table: empty for a method that enforces nothing.

        Who requires nothing else of a release requires this. What depends on the records themselves, such as
        the least t within reach, is enforced besides and not listed.
        """
        return ()

    def settings_note(self) -> str:
        """What to correct for when analysing a release of these settings."""
        settings = {f"{each.name}={getattr(self, each.name)}" for each in self.parameters()}
        extras = (note for setting, note in self.analyst_extras if setting in settings)
        return " ".join((self.analyst_note, *extras))

    def kept_relations(self) -> tuple[KeptKind, ...]:
        """What it leaves as it was between the chosen columns, or of their order, by its settings."""
        return self.gives.kept

    @classmethod
    def kept_sentence(cls) -> str:
        """Say what stays of the chosen columns though their values change; empty for most methods."""
        if not cls.gives.kept:
            return ""
        words = " and ".join(_KEPT_WORDS[each] for each in cls.gives.kept)
        always = "" if cls().kept_relations() == cls.gives.kept else ", with some settings,"
        return (
            f"Of the chosen columns it keeps{always} {words}: an intruder compares that in place of the "
            "values, and so do the measures of linkage."
        )

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
        self.state.require_room(self.name, len(table), len(table.chosen), run.engine)
        with one_thread_of_algebra():
            return self.protect(table, run)

    @classmethod
    def shape(cls) -> str:
        """Which of the three shapes a method is written in."""
        return "table"

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """As a dictionary for JSON and for the docs."""
        drive = cls.drive()
        return {
            **super().describe(),
            "nature": cls.nature,
            "analyst_note": cls.analyst_note,
            "shape": cls.shape(),
            "takes": asdict(cls.takes),
            "gives": {**asdict(cls.gives), "kept": list(cls.gives.kept)},
            "keeps": cls.kept_sentence(),
            **asdict(cls.randomness),
            "drive": drive.name if drive else None,
        }


def categories_of(table: Table) -> dict[str, pl.Series]:
    """The categories of the chosen columns that have some, over all records."""
    return {name: table.categories(name) for name in table.chosen if table.schema[name].kind in _CODED}


@dataclass(frozen=True)
class ColumnView:
    """One column as a column method sees it: the values that are there, and what they mean.

    Missing values are set aside before and put back after, so no author can forget them; ``missing`` says
    which records lack one. ``values`` are floats for a continuous column, days or microseconds for a date,
    and codes in the column's order for an ordinal or nominal one (``categories`` has their values).
    ``hierarchy`` is the resource that the column names, if there is one, and ``dtype`` what the values are in
    the table.
    """

    column: Column
    values: Values
    weights: Floats | None = None
    categories: pl.Series | None = None
    missing: Flags | None = None
    hierarchy: Any = None
    dtype: pl.DataType | None = None

    @classmethod
    def of(
        cls, table: Table, name: str, *, categories: pl.Series | None = None, hierarchy: Any = None
    ) -> Self:
        """Look at one column of a table."""
        column, missing = table.schema[name], table.missing(name)
        values: Values
        if column.kind in _CODED:
            codes = table.codes(name, categories)
            values, categories = codes.codes, codes.categories
        elif column.kind is Kind.DATE and table.frame[name].dtype.is_temporal():
            # Whole numbers: nanoseconds since 1970 are more than a float can hold.
            values = table.frame[name].to_physical().cast(pl.Int64).fill_null(0).to_numpy()
        else:
            values = table.numbers(name)
        weights = None if table.weights is None else table.weights[~missing]
        dtype = table.frame.schema[name]
        return cls(column, values[~missing], weights, categories, missing, hierarchy, dtype)

    def __len__(self) -> int:
        return len(self.values)


class ColumnMethod(Method):
    """Protects each column on its own. Write ``protect_column``."""

    state = State("ranks", per_record=19, per_cell=13)

    @classmethod
    def shape(cls) -> str:
        """Which of the three shapes a method is written in."""
        return "column"

    def protect_column(self, column: ColumnView, rng: np.random.Generator) -> Values | pl.Series:
        """Return the protected values of one column, in the order of the records.

        An array means values as they came (codes for codes); a Series is taken as it is.
        """
        raise NotImplementedError  # abstract: every method in the registry has its own

    def remarks(self, table: Table) -> tuple[str, ...]:  # noqa: ARG002
        """What there is to say of the columns it protects; a method may name some, never their values."""
        return ()

    def tally(self, table: Table) -> dict[str, float]:  # noqa: ARG002
        """Figures of the protected table that its owner should know, by name."""
        return {}

    @final
    def protect(self, table: Table, run: Run) -> Release:
        """Protect the chosen columns one by one, each with a stream of chance of its own."""
        names = [name for name in table.chosen if not table.missing(name).all()]
        categories = categories_of(table)
        views = _views(table, names, categories, run)
        results = run.engine.map(partial(_protect_column, self), views, records=len(table))
        protected = table
        for name, result in zip(names, run.track(self.title, results, total=len(names)), strict=True):
            series = set_protected_values(table, name, result, categories=categories.get(name))
            protected = protected.with_values(name, series)
        return Release.record_by_record(protected, notes=self.remarks(table), figures=self.tally(protected))


def _views(
    table: Table, names: Sequence[str], categories: Mapping[str, pl.Series], run: Run
) -> Iterator[tuple[ColumnView, RandomKey]]:
    for name in names:
        hierarchy = run.resources.get(table.schema[name].hierarchy)
        view = ColumnView.of(table, name, categories=categories.get(name), hierarchy=hierarchy)
        yield view, run.random_key(name).subset(~table.missing(name))


def _protect_column(method: ColumnMethod, work: tuple[ColumnView, RandomKey]) -> Values | pl.Series:
    column, chance = work
    result = method.protect_column(column, chance.rng())
    if len(result) != len(column):
        raise DataError(f"{method.name} must return {len(column)} values, got: {len(result)}")
    return result


def set_protected_values(
    table: Table, name: str, result: Values | pl.Series, *, categories: pl.Series | None = None
) -> pl.Series:
    """Set the protected values of the records that have one into the column; missing cells stay.

    Codes are of the ``categories``, those of the column itself unless given. Numbers are kept to what the
    schema promises of the column, see `data.promises`.
    """
    original, missing = table.frame[name], table.missing(name)
    if isinstance(result, pl.Series):
        fresh = result
    elif table.schema[name].kind in _CODED:
        fresh = _decode_codes(original, result, table.categories(name) if categories is None else categories)
    elif table.schema[name].kind is Kind.DATE and original.dtype in TEXTUAL:
        fresh = _in_kind_of(original.clear().cast(pl.Date), result).cast(pl.String)
    else:
        fresh = _in_kind_of(original, _clip_to_constraints(table, name, result, missing))
    if not missing.any():
        return fresh.alias(name)
    places = np.full(len(missing), -1, dtype=np.int64)
    places[~missing] = np.arange(len(fresh))
    spread = fresh.gather(pl.Series(places).replace(-1, None))
    original_values = original.cast(fresh.dtype, strict=False)  # a declared missing code such as −9 survives
    return (
        pl.select(pl.when(pl.Series(missing)).then(original_values).otherwise(spread)).to_series().alias(name)
    )


def with_matrix(table: Table, names: Sequence[str], values: Floats) -> Table:
    """The table with other numbers in some columns, a column of ``values`` for each; missing cells stay."""
    protected = table
    for place, name in enumerate(names):
        fresh = set_protected_values(table, name, values[~table.missing(name), place])
        protected = protected.with_values(name, fresh)
    return protected


def _clip_to_constraints(table: Table, name: str, result: Values, missing: Flags) -> Values:
    column = table.schema[name]
    promises = (column.lower, column.upper, column.missing_range)
    if column.kind is not Kind.CONTINUOUS or not (
        column.integer or column.missing_codes or any(promise is not None for promise in promises)
    ):
        return result
    return clip(column, table.numbers(name)[~missing], result.astype(np.float64))


def _decode_codes(original: pl.Series, values: Values, categories: pl.Series) -> pl.Series:
    """Turn codes back into values, in the original's list of categories where it has one."""
    codes = values if values.dtype.kind in "iu" else np.rint(values)
    if codes is not values or codes.min(initial=0) < -1 or codes.max(initial=-1) >= len(categories):
        wrong = int(((codes != values) | (values < -1) | (values >= len(categories))).sum())
    else:
        wrong = 0
    if wrong:
        raise DataError(
            f"`{original.name}` must be given codes of its {len(categories)} categories, "
            f"got: {wrong} values that are none"
        )
    fresh = Codes(np.empty(0, dtype=np.int64), categories).decode(codes.astype(np.int32, copy=False))
    listed = fresh.cast(original.dtype, strict=False)
    return listed if listed.null_count() == fresh.null_count() else fresh


def _in_kind_of(original: pl.Series, values: Values) -> pl.Series:
    """Give numbers the original's type where that loses nothing: whole numbers stay whole numbers."""
    dtype = original.dtype
    if dtype.is_temporal():
        # Nanoseconds since 1970 are whole numbers that a float cannot hold, so they must not become one.
        instants = values if values.dtype.kind in "iu" else np.rint(values).astype(np.int64)
        return pl.Series(instants).cast(dtype)
    series = series_of(values.astype(np.float64))
    if dtype.is_integer():
        whole = bool(np.all(values == np.rint(values)))
        as_whole = map_pieces(series, lambda piece: piece.cast(dtype, strict=False))
        return as_whole if whole and as_whole.null_count() == 0 else series
    return series.cast(dtype) if dtype.is_float() else series
