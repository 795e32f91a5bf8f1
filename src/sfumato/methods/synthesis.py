"""Synthesis: records drawn column by column, each conditional on the previous ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.core.method import Gives, Method, Takes, set_protected_values
from sfumato.core.origin import Origin
from sfumato.core.params import Columns, PerColumn, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.checks import without_missing
from sfumato.data.codings import decimals_of, microseconds, time_unit_of
from sfumato.data.persons import persons_of
from sfumato.data.repair import sums_in_order
from sfumato.data.rules import Rule
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import DataError, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._analyst_notes import SYNTHETIC
from sfumato.methods._conditional_models import By, ConditionalModel, ModelColumn, fit_conditional_model

#: How often records that break a rule are drawn again: up to the first from the rule's last column on, up to
#: the second from its second column on, then as a whole.
_LATE_ROUNDS, _EARLY_ROUNDS, _MOST_ROUNDS = 40, 200, 220

#: The level of a column that is a record's own, below that of persons and of households.
_OWN = 2

#: Where each value may be moved to, the decimals of that, and the unit in which it is counted.
_Gaps = tuple[Floats, Floats, int | None, float]

#: Roles of columns that say which records belong together, and nothing else of a person.
_NUMBER_ROLES = (Role.IDENTIFIER, Role.GROUP, Role.HOUSEHOLD, Role.PERSON)


class Synthesis(Method):
    r"""Generate synthetic records, one column after another, each conditional on the previous ones.

    The joint distribution is factorised,

    .. math:: f(x_1, \dots, x_d \mid g) = f(x_1 \mid g) \prod_{j > 1} f(x_j \mid x_1, \dots, x_{j-1}, g)

    where :math:`g` are the ``given`` columns, each factor is fitted to the original, and a new record is
    drawn from the first to the last. With ``by="cart"``, the default, a factor is a classification or
    regression tree: a record that falls into a leaf gets the value of one of the original records there, of
    which there are at least ``leaf``. ``"regression"`` is a normal linear model of the ranks, or linear
    discriminants of categories; ``"sample"`` draws from the column alone.

    If all columns are drawn (numbers of persons and households are assigned new), no record belongs to a
    person: the release is fully synthetic, and its ``source_rows`` are unknown. Otherwise the other columns
    stay with their records, and the release is partially synthetic; columns to condition on are ``given``.

    See Also
    --------
    GaussianCopula : one normal model for all columns.
    IpsoC : keeps means, coefficients and covariances exactly.
    DataShuffling : keeps the values of each column exactly.

    Notes
    -----
    **When to use.** Whole tables of mixed columns for teaching, for tests, or for analyses that are not known
    in advance. Relations of any shape are followed, the more closely the smaller the leaves.

    **Guarantees.** Every value is one that the column has or, with ``smoothing``, lies in the gap beside one
    that fewer than ``leaf`` persons have. No category is drawn that fewer than ``holders`` persons have (of
    what is the same throughout a household: households); where a column has no other category and no missing
    value, the whole column becomes missing. The edit rules of the schema hold of every drawn record: totals
    are computed, and for records that violate another rule the last of its columns and those after it are
    drawn again, so that no group is replaced by others; where that does not help, the whole record is drawn
    again, which a note counts, or the method stops. None of this bounds the disclosure risk: measure it.

    **Risk to know.** A leaf of ``leaf`` records reveals what these have in common, and with many columns an
    original record may be reproduced. Records that are unusual in the columns drawn first lead to leaves of
    similar records. Several copies together reveal more than one. Where a person has several records, a leaf
    counts records.

    **Ties, missing, weights.** Ties need no special treatment. Whether a value is missing is drawn first, by
    a model of its own or as a category. Columns that are the same for all records of a household or person
    are drawn once for it, before the others; of a fully synthetic table households and persons are drawn as
    wholes, so that the number of records is about what was asked for. Weights are not used; a weight can be
    drawn like any column.

    **Cost.** :math:`O(d^2 n \log n)` for :math:`d` columns; a bit of memory for each record and column.

    Examples
    --------
    >>> ages = [20 + i % 60 for i in range(300)]
    >>> people = pl.DataFrame({"age": ages, "retired": ["yes" if a >= 65 else "no" for a in ages]})
    >>> made = sfumato.protect(people, Synthesis(), columns=["age", "retired"], seed=1)
    >>> made.synthetic, made.source_rows is None, len(made.data)
    (True, True, 300)
    >>> made.data.filter((pl.col("age") < 60) & (pl.col("retired") == "yes")).height
    0
    """

    name = "synthesis"
    synonyms = ("synthetic data", "fully synthetic data", "synthpop", "CART synthesis")
    title = "Sequential synthesis"
    analyst_note = SYNTHETIC
    family = "synthetic data"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL, Kind.DATE})
    references = ("nowok2016", "reiter2005")
    cost = "n log n"
    takes = Takes(whole_records=True)
    gives = Gives(suppressed=True, other_records=True)

    leaf: int = param(
        5,
        "Smallest number of records that a value is drawn from.",
        ge=2,
        unit="records",
        log=True,
        tune=(3, 1000),
        drive=True,
        hint="5 is usual; more is safer, but loses finer relations",
        label="Smallest leaf",
    )
    by: PerColumn[By] = param(
        "cart",
        "Model from which a column is drawn.",
        choices={
            "cart": "A tree that predicts it from the previous columns; values come from its leaves (CART).",
            "regression": "A linear model of its normal scores, or linear discriminants of its categories.",
            "sample": "Its own values, independent of the other columns.",
        },
        label="Model",
    )
    given: Columns = param(
        Columns(),
        "Columns released as they are, whose relations to the drawn ones the release keeps.",
        label="Given columns",
    )
    visit: str = param(
        "",
        "Columns in the order in which they are drawn, with + between; others after them, few values first.",
        label="Order of columns",
        advanced=True,
    )
    predictors: PerColumn[str] = param(
        "",
        (
            "Columns that a column is conditional on, with + between; by default all given and previously "
            "drawn ones."
        ),
        advanced=True,
    )
    records: int = param(
        0,
        "Number of records to draw; 0 means as many as in the original.",
        ge=0,
        unit="records",
        label="Number of records",
    )
    smoothing: bool = param(
        True,
        "Whether numbers and dates that fewer than `leaf` persons share are moved into the gap next to them.",
        advanced=True,
    )
    holders: int = param(
        3,
        "Smallest number of persons, or households, that must have a category for it to be drawn.",
        ge=1,
        unit="persons",
        hint="1 also draws categories of a single person",
        label="Smallest category",
        advanced=True,
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that do not fit together, and tables of fewer records than a leaf."""
        reason = super().refuses(table) or self._why_unsuitable(table)
        if reason is not None:
            return reason
        if 0 < len(table) < self.leaf:
            return f"{self.name} must have at least {self.leaf} records to draw from, got: {len(table)}"
        original_columns = self._original_columns(table)
        numbered = [name for name in table.names if table.schema[name].role in {Role.HOUSEHOLD, Role.PERSON}]
        if self.records and original_columns and numbered:
            return (
                f"{self.name} must draw all columns to change the number of records, got columns that stay: "
                f"{quoted(original_columns)}"
            )
        return None

    def _why_unsuitable(self, table: Table) -> str | None:
        given = self._conditioning_columns(table)
        sets = [name for name in given if table.schema[name].kind is Kind.SET]
        if sets:
            return f"{self.name} must be given columns of single values, got: sets in {quoted(sets)}"
        if reason := self.refuses_generalised(table, (*table.chosen, *given)):
            return reason
        for name in _split(self.visit):
            if name not in table.chosen:
                return f"`visit` of {self.name} must name columns that are drawn, got: `{name}`"
        for name in self.predictors.columns:
            strange = set(_split(self.predictors[name])) - {*table.chosen, *given} - {name}
            if strange or name in _split(self.predictors[name]):
                others = quoted(sorted(strange)) or f"`{name}` itself"
                return (
                    f"`predictors` of {self.name} must be drawn or given columns, got for `{name}`: {others}"
                )
        return None

    def _conditioning_columns(self, table: Table) -> tuple[str, ...]:
        return tuple(sorted(set(table.schema.resolve(self.given)) - set(table.chosen)))

    def _original_columns(self, table: Table) -> list[str]:
        """The columns that stay with their record, and say something of a person."""
        others = [name for name in table.names if name not in table.chosen]
        return [name for name in others if table.schema[name].role not in _NUMBER_ROLES]

    def drive_range(self, table: Table) -> tuple[float, float]:
        """From small leaves to those of half the records."""
        low, high = super().drive_range(table)
        return low, float(min(high, max(len(table) // 2, low + 1)))

    def protect(self, table: Table, run: Run) -> Release:
        """Fit a model to each column, draw, and draw again what breaks a rule."""
        if not len(table):
            return Release.unchanged(table)
        frame = _Skeleton.of(table, self, run.rng("records"), whole=not self._original_columns(table))
        order = self._order(table, frame)
        coded = {name: ModelColumn.of(table, name) for name in (*self._conditioning_columns(table), *order)}
        rare = {name: frame.rare_records(table, name, self.holders) for name in order}
        models = {
            name: self._model(name, order, frame, coded, rare[name])
            for name in run.track(f"{self.title}: fitting", order, total=len(order))
        }
        drawing = _SyntheticRecords(self, table, frame, coded, models, rare=rare)
        drawing.draw(np.arange(len(frame.sources)), run.at("round", 0))
        redrawn, anew = drawing.keep_rules(run)
        made = drawing.assemble(np.arange(len(frame.sources)))
        origin = Origin.synthetic() if frame.whole else Origin.of_rows(frame.sources)
        figures = {"redrawn_records": redrawn} if table.schema.rules else {}
        empty = [name for name in order if rare[name].any() and (rare[name] | table.missing(name)).all()]
        notes = [
            f"{quoted(empty)}: empty, because no category is shared by {self.holders} persons or households"
        ] * bool(empty)
        if anew:
            notes.append(
                f"{anew} whole records were drawn again to satisfy the rules: groups that often violate a "
                "rule may be underrepresented"
            )
        return replace(Release.of(made, notes=tuple(notes), figures=figures), origin=origin)

    def _order(self, table: Table, frame: _Skeleton) -> list[str]:
        """The columns in the order of their visit: those of households first, then of persons."""
        visit_order = _split(self.visit)
        sizes = {name: table.frame[name].n_unique() for name in table.chosen}
        rest = sorted(set(table.chosen) - set(visit_order), key=lambda name: (sizes[name], name))
        return sorted([*visit_order, *rest], key=lambda name: frame.levels[name])

    def _model(
        self, name: str, order: Sequence[str], frame: _Skeleton, coded: Mapping[str, ModelColumn], rare: Flags
    ) -> tuple[ConditionalModel, tuple[str, ...]]:
        """The model of a column, and what it looks at: nothing that differs within its household."""
        before = [each for each in coded if each not in order] + list(order[: order.index(name)])
        asked = _split(self.predictors[name])
        used = tuple(
            each
            for each in before
            if frame.levels[each] <= frame.levels[name] and (not asked or each in asked)
        )
        late = [each for each in asked if each not in used]
        if late:
            raise DataError(
                f"`predictors` of `{name}` must be known before it is drawn, got: {quoted(late)}",
                hint="set the order in `visit`; columns of a household or person are drawn first",
            )
        rows = frame.firsts(frame.levels[name])
        rows = rows if rare.all() else rows[~rare[rows]]  # of only rare ones what is drawn is emptied
        return fit_conditional_model(
            self.by[name], coded[name], [coded[each] for each in used], rows, self.leaf
        ), used


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split("+") if name.strip()]


@dataclass(frozen=True)
class _Skeleton:
    """Which records are made: what each takes over from a ``source``, and to whom it belongs.

    ``units`` number the household, the person and the record of each original record, ``new`` those of each
    record that is made; ``levels`` say of each column whose it is.
    """

    whole: bool
    sources: Ints
    units: tuple[Ints, ...]
    new: tuple[Ints, ...]
    levels: Mapping[str, int]

    @classmethod
    def of(cls, table: Table, method: Synthesis, rng: np.random.Generator, *, whole: bool) -> _Skeleton:
        """Decide on the records: as many as asked for, in whole households and persons."""
        n, own = len(table), np.arange(len(table), dtype=np.int64)
        household = table.schema.only_role(Role.HOUSEHOLD)
        persons = own if table.schema.only_role(Role.PERSON) is None else persons_of(table)
        homes = persons if household is None else _number_missing(table.codes(household).codes)
        count, units = method.records or n, (homes, persons, own)
        names = [*table.chosen, *table.schema.resolve(method.given)]
        levels = {name: _level(table, name, units) for name in names}
        if not whole and count == n:
            return cls(whole, own, units, units, levels)
        if not table.schema.with_role(Role.HOUSEHOLD) and not table.schema.with_role(Role.PERSON):
            sources = rng.integers(0, n, count)
            new = np.arange(count)
            return cls(whole, sources, units, (new, new, new), levels)
        order, sizes = np.argsort(homes, kind="stable"), np.bincount(np.unique(homes, return_inverse=True)[1])
        drawn = rng.integers(0, len(sizes), count)  # at least one record each: enough
        drawn = drawn[: max(int(np.searchsorted(np.cumsum(sizes[drawn]), count)), 0) + 1]
        starts, lengths = (np.cumsum(sizes) - sizes)[drawn], sizes[drawn]
        new_homes = np.repeat(np.arange(len(drawn)), lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        sources = order[np.repeat(starts, lengths) + within]
        pairs = new_homes * (int(persons.max()) + 1) + persons[sources]
        return cls(whole, sources, units, (new_homes, pairs, np.arange(len(sources))), levels)

    def firsts(self, level: int) -> Ints:
        """The first original record of each household or person."""
        return self.units[level] if level == _OWN else np.unique(self.units[level], return_index=True)[1]

    def holders_of(self, name: str) -> Ints:
        """Whose the value of each original record is: a person's, or a household's if all of it has it."""
        return self.units[min(self.levels[name], 1)]

    def rare_records(self, table: Table, name: str, fewest: int) -> Flags:
        """Which original records have a category that fewer persons have, or households if it is theirs."""
        if table.schema[name].kind not in {Kind.NOMINAL, Kind.ORDINAL}:
            return np.zeros(len(table), dtype=np.bool_)
        units = pl.DataFrame({"value": table.codes(name).codes, "unit": self.holders_of(name)})
        few = units.select(pl.col("unit").n_unique().over("value") < fewest).to_series().to_numpy()
        found: Flags = few & ~table.missing(name)
        return found

    @cached_property
    def heads(self) -> tuple[Ints, ...]:
        """For each level, the first new record of the household or person that each one belongs to."""
        found = []
        for numbers in self.new[:_OWN]:
            if numbers is self.new[_OWN]:
                found.append(numbers)
                continue
            _, firsts, places = np.unique(numbers, return_index=True, return_inverse=True)
            found.append(firsts[places])
        return (*found, self.new[_OWN])


def _number_missing(codes: Ints) -> Ints:
    """A number of its own for each record that has none."""
    return np.where(codes < 0, codes.max(initial=-1) + np.cumsum(codes < 0), codes)


def _level(table: Table, name: str, units: Sequence[Ints]) -> int:
    """Whose a column is: 0 if it is the same throughout a household, 1 a person, else 2."""
    for level, numbers in enumerate(units[:_OWN]):
        if numbers is units[_OWN]:
            continue
        seen = pl.DataFrame({"unit": numbers, "value": table.frame[name]}).group_by("unit")
        if seen.agg(pl.col("value").n_unique())["value"].max() == 1:
            return level
    return _OWN


class _SyntheticRecords:
    """Records under way: of which original record each has the value of each column."""

    def __init__(
        self,
        method: Synthesis,
        table: Table,
        frame: _Skeleton,
        coded: Mapping[str, ModelColumn],
        models: Mapping[str, tuple[ConditionalModel, tuple[str, ...]]],
        *,
        rare: Mapping[str, Flags],
    ) -> None:
        self.method, self.table, self.frame, self.coded, self.models = method, table, frame, coded, models
        self.rare = rare
        self.donors = {name: frame.sources.copy() for name in coded}
        self.moves = {name: np.zeros(len(frame.sources)) for name in models}
        self.gaps: dict[str, _Gaps] = {}

    def draw(self, places: Ints, run: Run, start: int = 0) -> None:
        """Draw the new records in some places, whole households and persons, from one column on."""
        order = list(self.models)[start:]
        for name in run.track(self.method.title, order, total=len(order)):
            model, used = self.models[name]
            level, heads = self.frame.levels[name], self.frame.heads[self.frame.levels[name]]
            firsts = places if level == _OWN else np.unique(heads[places])
            codes = [self.coded[each].codes[self.donors[each][firsts]] for each in used]
            seen = np.stack(codes) if codes else np.zeros((0, len(firsts)), dtype=np.uint8)
            rng = run.rng(name)
            self.donors[name][firsts] = model.draw_donors(seen, rng)
            self.moves[name][firsts] = rng.random(len(firsts))
            for drawn_rows in (self.donors[name], self.moves[name]) if level < _OWN else ():
                drawn_rows[places] = drawn_rows[heads[places]]

    def keep_rules(self, run: Run) -> tuple[int, int]:
        """Draw again what breaks a rule of the schema; say how many records were, and how many as a whole."""
        rules = [rule for rule in self.table.schema.rules if set(rule.columns) & set(self.models)]
        order, places, redrawn, anew = list(self.models), np.arange(len(self.frame.sources)), 0, 0
        for turn in range(1, _MOST_ROUNDS + 2):
            starts = self._starts(rules, places, turn)
            broken = starts < len(order)
            if not broken.any():
                return redrawn, anew
            parts = []
            for start in np.unique(starts[broken])[::-1]:
                heads = self.frame.heads[self.frame.levels[order[start]]]
                parts.append(np.flatnonzero(np.isin(heads, heads[places[starts == start]])))
                self.draw(parts[-1], run.silent().at("round", turn).at("from", order[start]), int(start))
            places = np.unique(np.concatenate(parts))
            redrawn = max(redrawn, len(places))
            anew = max(anew, len(places) if turn > _EARLY_ROUNDS else 0)
        texts = quoted(rule.text for rule in rules)
        raise DataError(
            f"{int(broken.sum())} drawn records violate the rules {texts} after {_MOST_ROUNDS} draws",
            hint=(
                "put the columns of a rule next to each other in `visit`, lower `leaf`, or draw all columns: "
                "columns that stay may make a rule impossible"
            ),
        )

    def _starts(self, rules: Sequence[Rule], places: Ints, turn: int) -> Ints:
        """From which column on records are drawn again, by the rules they break and their source does not."""
        order, made = list(self.models), self.assemble(places) if rules else self.table
        starts = np.full(len(places), len(order))
        before = None if self.frame.whole else self.table.take(self.frame.sources[places])
        for rule in rules:
            wrong = rule.breaks(without_missing(made, rule.columns)).to_numpy()
            if before is not None:
                wrong = wrong & ~rule.breaks(without_missing(before, rule.columns)).to_numpy()
            spoken = sorted(order.index(name) for name in rule.columns if name in self.models)
            late, early = spoken[-1], spoken[min(1, len(spoken) - 1)]
            start = late if turn <= _LATE_ROUNDS else early if turn <= _EARLY_ROUNDS else 0
            starts[wrong] = np.minimum(starts[wrong], start)
        return starts

    def assemble(self, places: Ints) -> Table:
        """The new records in some places, as a table."""
        made = self.table.take(self.frame.sources[places])
        for name in self.models:
            donors = self.donors[name][places]
            values = self.table.select([name]).take(donors)
            series = values.frame[name]
            if self.method.smoothing and self.table.schema[name].kind in {Kind.CONTINUOUS, Kind.DATE}:
                series = self._smooth_values(values, name, donors, places)
            if (emptied := self.rare[name][donors]).any():
                series = series.gather(pl.Series(np.arange(len(series))).set(pl.Series(emptied), None))
            made = made.with_values(name, series)
        return self._renumber_persons(self._restore_sums(made), places)

    def _smooth_values(self, values: Table, name: str, donors: Ints, places: Ints) -> pl.Series:
        lows, highs, decimals, unit = self._gaps(name)
        present = ~values.missing(name)
        at = donors[present]
        moved = lows[at] + self.moves[name][places][present] * (highs[at] - lows[at])
        return set_protected_values(
            values, name, moved if decimals is None else np.round(moved, decimals) * unit
        )

    def _gaps(self, name: str) -> _Gaps:
        """Where each original record's value may be moved to, with how many decimals, and in what unit."""
        if name not in self.gaps:
            numbers, holders = self.table.numbers(name), self.frame.holders_of(name)
            unit = _time_unit(self.table, name) if self.table.schema[name].kind is Kind.DATE else 1.0
            self.gaps[name] = (*_gaps(numbers / unit, holders, self.method.leaf), unit)
        return self.gaps[name]

    def _restore_sums(self, made: Table) -> Table:
        """Sum the drawn totals of what the schema says is a sum, where the original has no exception."""
        for rule, equation, total in sums_in_order(self.table):
            if total not in self.models or rule.breaks(without_missing(self.table, rule.columns)).any():
                continue
            known = without_missing(made, rule.columns)
            sums = known.select(equation.value(total)).to_series()
            there = (sums.is_not_null() & known[total].is_not_null()).to_numpy()
            if there.any():
                fresh = set_protected_values(made, total, sums.fill_null(0).to_numpy()[~made.missing(total)])
                before = made.frame[total].cast(fresh.dtype)
                made = made.with_values(total, fresh.zip_with(pl.Series(there), before))
        return made

    def _renumber_persons(self, made: Table, places: Ints) -> Table:
        """Numbers of households and persons of a whole table of nobody's are their own; others go."""
        if not self.frame.whole:
            return made
        for column in made.schema.columns:
            if column.name in self.models or column.role not in _NUMBER_ROLES:
                continue
            dtype = made.frame.schema[column.name]
            if column.role in {Role.IDENTIFIER, Role.GROUP}:
                fresh = pl.Series([None] * len(made), dtype=dtype)
            else:
                numbers = self.frame.heads[0 if column.role is Role.HOUSEHOLD else 1][places] + 1
                fresh = pl.Series(numbers).cast(dtype if dtype.is_numeric() else pl.String)
            made = made.with_values(column.name, fresh)
        return made


def _time_unit(table: Table, name: str) -> float:
    """In what the dates of a column are written, as days or minutes, counted as the column counts."""
    numbers, own = table.numbers(name), microseconds(table.frame.schema[name])
    return time_unit_of(numbers[~np.isnan(numbers)] * own) / own or 1.0


def _gaps(values: Floats, units: Ints, leaf: int) -> tuple[Floats, Floats, int | None]:
    """The gap beside each value that fewer than ``leaf`` units have: half-way to its neighbours."""
    present = ~np.isnan(values)
    distinct, places = np.unique(values[present], return_inverse=True)
    size = int(units.max(initial=0)) + 1
    counts = np.bincount(np.unique(places * size + units[present]) // size)
    lows, highs = values.copy(), values.copy()
    if len(distinct):
        middles = distinct[:-1] + np.diff(distinct) / 2
        below, above = np.append(distinct[:1], middles), np.append(middles, distinct[-1:])
        often = counts >= leaf
        lows[present] = np.where(often, distinct, below)[places]
        highs[present] = np.where(often, distinct, above)[places]
    return lows, highs, decimals_of(distinct)
