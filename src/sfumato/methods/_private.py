"""What differentially private methods share: declared domains, the unit of privacy, and the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import polars as pl

from sfumato.core.budget import NO_GUARANTEE, Neighbours, PrivacyBudget, Spending
from sfumato.core.method import Method, Randomness, Takes
from sfumato.core.params import PerColumn, param
from sfumato.core.release import Byproducts, Release
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import canonical_text, parse_exact
from sfumato.data.persons import persons_of
from sfumato.data.schema import STRUCTURAL_ROLES, Column, Kind, Role
from sfumato.data.table import Table
from sfumato.errors import DataError, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._resources import declared_hierarchy

#: Steps of the grid on which a number with decimals is protected, at least, and the most of any grid.
_STEPS, _MOST_STEPS = 1e6, 1 << 40

#: How much of a step may be lost to the rounding of floats.
_GRID_TOLERANCE = 1e-6

#: Beyond here no whole number is written.
_FURTHEST = 2.0**62

#: How far a bound from the data lies beyond the data (Muralidhar, Domingo-Ferrer and Martínez 2020).
_BEYOND = 1.5


class PrivateMethod(Method):
    """Protects by noise that OpenDP draws, for a stated ε and a stated unit."""

    takes = Takes(whole_records=True)
    randomness = Randomness(replay=False, epsilon_parameter="epsilon")

    epsilon: float = param(
        1.0,
        "Privacy budget: one person's data make any release at most e to this power times as likely.",
        ge=1e-3,
        le=1e3,
        symbol="ε",
        log=True,
        tune=(0.1, 100),
        drive=True,
        hint="1 is strong and 10 is weak; it is a guarantee only if it was not chosen from the data",
    )
    records: int = param(
        1,
        "Largest number of records of a person, which are protected together.",
        ge=1,
        le=1_000_000,
        symbol="c",
        hint="noise grows with it; without a column of persons every record counts as a person",
        label="Records of a person",
    )
    domain: Literal["declared", "data"] = param(
        "declared",
        "Where bounds and categories come from.",
        choices={"declared": "From the schema.", "data": "From the data, which voids the guarantee."},
        label="Bounds and categories",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse sets, coarse values, persons of too many records, and domains that nobody declared."""
        sets = [name for name in table.chosen if table.schema[name].kind is Kind.SET]
        if sets:
            return (
                f"{self.name} must be given columns of single values, got: sets in {quoted(sets)}, to which "
                "one record may add any number of items"
            )
        reason = self.refuses_generalised(table) or super().refuses(table)
        return reason or self.why_undeclared(table) or self._too_many(table)

    def why_undeclared(self, table: Table) -> str | None:
        """Say which bounds and categories nobody declared."""
        columns = [table.schema[name] for name in table.chosen] if self.domain == "declared" else []
        open_ended = [each.name for each in columns if each.kind is Kind.CONTINUOUS and not _has_bounds(each)]
        if open_ended:
            return (
                f"{self.name} needs the smallest and largest possible value: the schema has no finite "
                f"`lower` and `upper` for {quoted(open_ended)} (`domain` data takes them from the data)"
            )
        unlisted = [
            each.name for each in columns if each.kind is not Kind.CONTINUOUS and not _has_categories(each)
        ]
        if unlisted:
            return (
                f"{self.name} needs all possible categories: the schema has no `order`, `labels` or "
                f"`hierarchy` for {quoted(unlisted)} (`domain` data takes them from the data)"
            )
        return None

    def _too_many(self, table: Table) -> str | None:
        most = int(np.unique(persons_of(table), return_counts=True)[1].max(initial=0))
        if most > self.records:
            return (
                f"{self.name} must be given at most {self.records} records per person, got: more (raise "
                "`records` to protect more)"
            )
        return None

    def unit(self, table: Table) -> str:
        """Who is hidden, in words."""
        if table.schema.only_role(Role.PERSON) is None:
            return "record" if self.records == 1 else f"group of at most {self.records} records"
        return "person" if self.records == 1 else f"person with at most {self.records} records"

    def with_budget(
        self, release: Release, table: Table, steps: Sequence[Spending], *, delta: float = 0.0, void: str = ""
    ) -> Release:
        """The release with what was spent for it, what that means, and what it is not about."""
        unit = self.unit(table)
        if self.domain == "data":
            void = void or "bounds and categories were taken from the data"
        steps = [replace(each, unit=unit, kept=not void) for each in steps]
        budget = PrivacyBudget(tuple(steps))
        total = budget.total(delta or 1e-6)
        epsilon_text = f"ε = {total.epsilon:.4g}" + (f", δ = {total.delta:.2g}" if total.delta else "")
        meant = (
            f"{epsilon_text} for each {unit}: by its columns no test of whether someone is in the data gains "
            f"more than {total.advantage:.3f} (true minus false positive rate)"
        )
        notes = [meant, f"{void}: {NO_GUARANTEE}"] if void else [meant]
        figures = {"epsilon": total.epsilon, "advantage_at_most": total.advantage}
        more = Byproducts((*notes, *release.notes), {**release.figures, **figures}, budget)
        return replace(release, byproducts=more)


def others(table: Table) -> tuple[str, ...]:
    """The columns that say something of people and are not chosen: nothing hides them."""
    return tuple(
        column.name
        for column in table.schema.columns
        if column.role not in STRUCTURAL_ROLES and column.name not in table.chosen
    )


class LocalMethod(PrivateMethod):
    """Protects every value in its place: the release has as many records, in the same order."""

    missing: Literal["shown", "hidden"] = param(
        "shown",
        "Whether the release shows that a value is missing.",
        choices={
            "shown": "Missing values stay missing: ε does not protect which they are.",
            "hidden": "Missing values get noise like the others, and cannot be recognised.",
        },
        label="Missing values",
    )

    def remarks(self, table: Table) -> tuple[str, ...]:
        """What the noise does not hide, in words."""
        holes = (
            [name for name in table.chosen if table.missing(name).any()] if self.missing == "shown" else []
        )
        beside = others(table)
        notes = [f"not protected by ε: which values are missing in {quoted(holes)}"]
        notes += [f"unchanged, and not protected by ε: {quoted(beside)}"]
        return tuple(each for each, names in zip(notes, (holes, beside), strict=True) if names)

    def kept_missing(self, table: Table, name: str) -> Flags:
        """Where a value is missing afterwards too."""
        missing = table.missing(name)
        return missing if self.missing == "shown" else np.zeros_like(missing)


class ByColumnMethod(LocalMethod):
    """Protects each column with a share of the budget."""

    weight: PerColumn[float] = param(
        1.0,
        "Share of the budget that a column gets, relative to the other columns.",
        ge=1e-3,
        le=1e3,
        symbol="w",
        hint="a column of weight 2 gets twice the share of one of weight 1",
        advanced=True,
    )


def spending(
    mechanism: str, neighbours: Neighbours, *, epsilon: float = 0.0, delta: float = 0.0, rho: float = 0.0
) -> Spending:
    """One step of a budget; who is hidden is filled in by the method."""
    return Spending(mechanism, epsilon=epsilon, delta=delta, rho=rho, neighbours=neighbours)


# Numbers -----------------------------------------------------------------------------------------------


def _has_bounds(column: Column) -> bool:
    ends = (column.lower, column.upper)
    return all(end is not None and math.isfinite(end) for end in ends)


@dataclass(frozen=True)
class Grid:
    """The values from ``lower`` in steps that a number is protected on; those of whole numbers are whole.

    ``size`` steps lead to the upper bound; a column of one possible value has none. Values are brought back
    into the bounds where these are ``kept``, as those that were declared are.
    """

    lower: float
    step: float
    size: int
    whole: bool
    kept: bool

    @classmethod
    def of(cls, table: Table, name: str, domain: str) -> Self:
        """The grid of a column, by what its schema declares or, if asked, by the data.

        Whole are numbers that are declared so: the type of a file's column says what all others wrote.
        """
        column, dtype = table.schema[name], table.frame.schema[name]
        lower, upper = column.lower, column.upper
        if domain == "data":
            values = table.numbers(name)
            found = values[~np.isnan(values)]
            lower = _BEYOND * min(0.0, float(found.min(initial=0.0))) if lower is None else lower
            upper = max(lower, _BEYOND * float(found.max(initial=0.0))) if upper is None else upper
        assert lower is not None
        assert upper is not None
        whole = column.integer or (domain == "data" and dtype.is_integer())
        if whole:
            lower, upper = math.ceil(lower), math.floor(upper)
        width = float(upper) - float(lower)
        if not math.isfinite(width):
            raise DataError(f"the bounds of `{name}` are too far apart: their difference is not finite")
        step = _whole_step(width) if whole else _decimal_step(width)
        size = math.floor(width / step + _GRID_TOLERANCE) if step > 0 and width > 0 else 0
        return cls(float(lower), step, size, whole, domain == "declared")

    def places(self, values: Floats) -> Ints:
        """Where values are on the grid; those outside at its ends, missing ones in its middle."""
        if not self.size:
            return np.zeros(len(values), dtype=np.int64)
        steps = np.nan_to_num((values - self.lower) / self.step, nan=self.size / 2)
        return np.clip(np.rint(steps), 0, self.size).astype(np.int64)

    def series(self, places: Ints, column: Column, dtype: pl.DataType) -> pl.Series:
        """Values at places on the grid, in the type of the column where that loses nothing."""
        if self.kept:
            places = np.clip(places, 0, self.size)
        values = (self.lower + self.step * places).astype(np.float64)
        decimals = max(0, -math.floor(math.log10(self.step) + 0.5)) if self.size else 0
        if self.lower == round(self.lower, decimals):
            values = values.round(decimals)  # as people write them: 0.3, not 0.30000000000000004
        values = _off_codes(
            column, values, self.step, self.lower + self.step * self.size if self.kept else math.inf
        )
        fresh = pl.Series(column.name, values)
        if self.whole:
            fresh = fresh.clip(-_FURTHEST, _FURTHEST).cast(pl.Int64)
        fitting = dtype.is_float() or dtype.is_decimal() or (self.whole and dtype.is_integer())
        cast = fresh.cast(dtype, strict=False) if fitting else fresh
        return cast if cast.null_count() == 0 else fresh


def _whole_step(width: float) -> float:
    return float(2 ** max(0, math.ceil(math.log2(max(width, 1) / _MOST_STEPS))))


def _decimal_step(width: float) -> float:
    """The power of ten that parts a range into a million steps, or a few millions."""
    return 10.0 ** math.floor(math.log10(width / _STEPS)) if width / _STEPS > 0 else 0.0


def _off_codes(column: Column, values: Floats, step: float, top: float) -> Floats:
    """Move values that would read as missing by steps of the grid, up or else down, whatever the data are."""
    codes = [float(code) for code in column.missing_codes if isinstance(code, int | float)]
    low, high = column.missing_range or (math.inf, -math.inf)
    for way, beyond in ((step, high + step), (-step, low - step)):
        for _ in range(len(codes) + 1):
            values = np.where((values >= low) & (values <= high), beyond, values)
            values = np.where(np.isin(values, codes), values + way, values)
        values = np.minimum(values, top)
    return values


def grids_of(table: Table, domain: str) -> Mapping[str, Grid]:
    """The grid of every chosen column."""
    return {name: Grid.of(table, name, domain) for name in table.chosen}


# Categories --------------------------------------------------------------------------------------------


def _has_categories(column: Column) -> bool:
    return bool(column.order or column.labels or column.hierarchy)


def categories_of(table: Table, name: str, domain: str, run: Run) -> pl.Series:
    """The categories of a column that are possible, by its schema or, if asked, by the data."""
    column, own = table.schema[name], table.categories(name)
    categories = list(column.order) or [value for value, _ in column.labels]
    if column.hierarchy and not categories:
        hierarchy = declared_hierarchy(run, column.hierarchy, name)
        categories = hierarchy.levels.to_series(0).to_list()
    if not categories:
        assert domain == "data"
        return own
    if own.dtype == pl.Boolean:
        return pl.Series(name, [False, True])
    texts = canonical_text(pl.Series(name, categories, strict=False)).unique(maintain_order=True)
    gone = {str(code) for code in column.missing_codes}
    declared = parse_exact(texts.filter(~texts.is_in(gone)), own.dtype)
    strange = own.len() - own.is_in(declared.implode()).sum() + declared.null_count()
    if strange:
        raise DataError(
            f"`{name}` must have only categories that its schema declares, got: {strange} others",
            hint="add them to `order`, `labels` or the hierarchy",
        )
    return declared


def in_type(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Values in the type of a column, if it has a place for all of them."""
    cast = values.cast(dtype, strict=False)
    return cast if cast.null_count() == values.null_count() else values


def codes_among(table: Table, name: str, categories: pl.Series) -> Ints:
    """The codes of a column's values among categories, −1 where missing."""
    if not len(categories):
        return np.full(len(table), -1, dtype=np.int64)
    return table.codes(name, categories).codes.astype(np.int64)
