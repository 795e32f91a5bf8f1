"""Records under way: how many of which households and persons, and of whom each has its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sfumato.core.method import set_protected_values
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
from sfumato.methods._conditional_models import ConditionalModel, ModelColumn

#: How often records that break a rule are drawn again: up to the first from the rule's last column on, up to
#: the second from its second column on, then as a whole.
_LATE_ROUNDS, _EARLY_ROUNDS, _MOST_ROUNDS = 40, 200, 220


#: The level of a column that is a record's own, below that of persons and of households.
_OWN = 2


#: Where each value may be moved to, the decimals of that, and the unit in which it is counted.
_Gaps = tuple[Floats, Floats, int | None, float]


#: Roles of columns that say which records belong together, and nothing else of a person.
NUMBER_ROLES = (Role.IDENTIFIER, Role.GROUP, Role.HOUSEHOLD, Role.PERSON)


@dataclass(frozen=True)
class Skeleton:
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
    def of(
        cls, table: Table, rng: np.random.Generator, *, records: int, given: Sequence[str], whole: bool
    ) -> Skeleton:
        """Decide on the records: as many as asked for, in whole households and persons."""
        n, own = len(table), np.arange(len(table), dtype=np.int64)
        household = table.schema.only_role(Role.HOUSEHOLD)
        persons = own if table.schema.only_role(Role.PERSON) is None else persons_of(table)
        homes = persons if household is None else _number_missing(table.codes(household).codes)
        count, units = records or n, (homes, persons, own)
        names = [*table.chosen, *table.schema.resolve(given)]
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


class SyntheticRecords:
    """Records under way: of which original record each has the value of each column."""

    def __init__(
        self,
        table: Table,
        frame: Skeleton,
        coded: Mapping[str, ModelColumn],
        models: Mapping[str, tuple[ConditionalModel, tuple[str, ...]]],
        *,
        rare: Mapping[str, Flags],
        smooth_below: int,
        task: str,
    ) -> None:
        self.smooth_below, self.task = smooth_below, task
        self.table, self.frame, self.coded, self.models = table, frame, coded, models
        self.rare = rare
        self.donors = {name: frame.sources.copy() for name in coded}
        self.moves = {name: np.zeros(len(frame.sources)) for name in models}
        self.gaps: dict[str, _Gaps] = {}

    def draw(self, places: Ints, run: Run, start: int = 0) -> None:
        """Draw the new records in some places, whole households and persons, from one column on."""
        order = list(self.models)[start:]
        for name in run.track(self.task, order, total=len(order)):
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
            if self.smooth_below and self.table.schema[name].kind in {Kind.CONTINUOUS, Kind.DATE}:
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
            self.gaps[name] = (*_gaps(numbers / unit, holders, self.smooth_below), unit)
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
            if column.name in self.models or column.role not in NUMBER_ROLES:
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
