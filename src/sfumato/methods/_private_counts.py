"""Counts of categories that are seen through noise alone, and which of them are worth their price.

`PrivateCounts` holds the codes of the records, and nothing else here looks at them: each of its two answers
spends, and it keeps what it spent. All that is done with the answers is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from sfumato.core.budget import Spending
from sfumato.core.run import Run
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods import _opendp
from sfumato.methods._count_model import Columns, CountModel, NoisyCounts, cells, cliques_of, that_fit
from sfumato.methods._private import spending

#: What of a round, and of a tree, goes to the choice of a table; its counts get the rest.
_CHOOSING = 0.1

#: Rounds for each column that the first of them leave room for, and how much more the next one spends when
#: the last told nothing new (McKenna, Mullins, Sheldon and Miklau 2022, who leave room for 16).
_ROUNDS, _MORE = 8, 4.0

#: Combinations of columns that cannot be.
Zeros = Mapping[Columns, Flags]

#: Steps of the fit between rounds, and at the end.
_STEPS_BETWEEN, STEPS = 50, 1_000


@dataclass
class PrivateCounts:
    """Records as ``codes`` of columns of some ``sizes``, of which at most ``records`` are one person's."""

    codes: Sequence[Ints]
    sizes: Sequence[int]
    records: int
    tick: _opendp.Tick | None = None
    spent: dict[str, float] = field(default_factory=dict)
    _scores: dict[Columns, float] = field(default_factory=dict, repr=False)

    def measure_tables(self, tables: Sequence[Columns], *, rho: float) -> list[NoisyCounts]:
        """The noisy counts of tables, which spend the same each: a person changes one by c at most (L2)."""
        share = rho / len(tables)
        exact = [self._count_columns(columns) for columns in tables]
        cells_of_all = np.concatenate([each.ravel() for each in exact])
        noisy = _opendp.gaussian(cells_of_all, sensitivity=self.records, rho=share, tick=self.tick)
        self._spend("discrete Gaussian noise on counts of columns", rho)
        deviation = self.records / math.sqrt(2 * share)
        parts = np.split(noisy.astype(np.float64), np.cumsum([each.size for each in exact])[:-1])
        return [
            NoisyCounts(columns, part.reshape(each.shape), deviation)
            for columns, part, each in zip(tables, parts, exact, strict=True)
        ]

    def look(self, expected: Iterable[tuple[Columns, Floats]], *, penalty: float = 0.0) -> None:
        r"""Keep for `furthest` how far the counts of tables are from those expected; nothing is told yet.

        .. math:: |r| \left( \lVert n_r - \hat n_r \rVert_1 - p\, \lvert r \rvert_{cells} \right)

        Expected counts and penalties are whole numbers here, so that no rounding adds to the most that a
        person can change: their records, for each of the columns.
        """
        self._scores = {
            columns: len(columns)
            * (float(np.abs(self._count_columns(columns) - np.rint(each)).sum()) - round(penalty * each.size))
            for columns, each in expected
        }

    def furthest(self, among: Sequence[Columns], *, rho: float) -> Columns:
        """The table that is furthest from what was expected, by the exponential mechanism."""
        scores = np.array([self._scores[columns] for columns in among])
        most = self.records * max(len(columns) for columns in among)
        found = _opendp.highest(scores, sensitivity=most, rho=rho)
        self._spend("exponential mechanism for what is counted", rho)
        return among[found]

    def merge_categories(self, places: Sequence[Ints]) -> PrivateCounts:
        """The same, with categories that are taken as one."""
        codes = [own[each] for own, each in zip(places, self.codes, strict=True)]
        return replace(self, codes=codes, sizes=[int(own.max()) + 1 for own in places])

    def _count_columns(self, columns: Columns) -> Ints:
        shape = [self.sizes[each] for each in columns]
        places = np.zeros(len(self.codes[0]), dtype=np.int64)
        for each in columns:
            places = places * self.sizes[each] + self.codes[each]
        return np.bincount(places, minlength=math.prod(shape)).reshape(shape)

    def _spend(self, mechanism: str, rho: float) -> None:
        self.spent[mechanism] = self.spent.get(mechanism, 0.0) + rho

    def spending(self) -> list[Spending]:
        """What was spent, by mechanism."""
        return [spending(name, "add-remove", rho=rho) for name, rho in self.spent.items()]


def by_tree(
    counts: PrivateCounts,
    singles: Sequence[NoisyCounts],
    total: float,
    rho: float,
    run: Run,
    *,
    most_cells: int,
    zeros: Zeros,
) -> CountModel:
    """The model of a tree of pairs of columns, those that tell most (MST), and of what cannot be."""
    columns = len(counts.sizes)
    model = CountModel(counts.sizes, total, that_fit(zeros, counts.sizes, (), most_cells))
    model.fit(singles, STEPS, run.check)
    every: list[Columns] = list(combinations(range(columns), 2))
    tracked = run.track("pairs of columns", every, total=len(every))
    counts.look((pair, total * model.marginal(pair)) for pair in tracked)
    part, chosen = np.arange(columns), list[Columns]()
    for _ in range(columns - 1):
        free = [pair for pair in every if part[pair[0]] != part[pair[1]]]
        pair = counts.furthest(free, rho=_CHOOSING * rho / (columns - 1))
        chosen.append(pair)
        part[part == part[pair[1]]] = part[pair[0]]
    known = counts.measure_tables(chosen, rho=(1 - _CHOOSING) * rho) if chosen else []
    model.zeros = that_fit(zeros, counts.sizes, chosen, most_cells)
    model.fit([*singles, *known], STEPS, run.check)
    return model


def fit_adaptively(
    counts: PrivateCounts,
    singles: Sequence[NoisyCounts],
    total: float,
    rho: float,
    run: Run,
    *,
    most_cells: int,
    ways: int,
    zeros: Zeros,
) -> CountModel:
    """The model of the tables that it told worst, one after the other (AIM), and of what cannot be.

    There is room for the zeros from the start, but they enter at the end: a model that has them early is
    sooner content, and leaves columns alone.
    """
    model, zeros = CountModel(counts.sizes, total), that_fit(zeros, counts.sizes, (), most_cells / 2)
    known = {each.columns: each for each in singles}
    fewest = sum(cells(counts.sizes, each) for each in cliques_of(counts.sizes, zeros))
    model.fit(singles, STEPS, run.check)
    every = [each for way in range(1, ways + 1) for each in combinations(range(len(counts.sizes)), way)]
    left, each = rho, rho / (_ROUNDS * len(counts.sizes))
    while left > 0:
        run.tell("tables of counts", round(1000 * (1 - left / rho)), 1000)
        each = left if left < 2 * each else each
        room = fewest + (most_cells - fewest) * (1 - (left - each) / rho)
        allowed = list(_small(counts.sizes, [*known, *zeros], every, room))
        penalty = math.sqrt(2 / math.pi) * counts.records / math.sqrt(2 * (1 - _CHOOSING) * each)
        counts.look(((columns, total * model.marginal(columns)) for columns in allowed), penalty=penalty)
        columns = counts.furthest(allowed, rho=_CHOOSING * each)
        (found,) = counts.measure_tables([columns], rho=(1 - _CHOOSING) * each)
        before = model.marginal(columns)
        known[columns] = known[columns].pool(found) if columns in known else found
        model.fit(list(known.values()), _STEPS_BETWEEN, run.check)
        left -= each
        moved = total * float(np.abs(model.marginal(columns) - before).sum())
        if moved <= penalty * before.size:
            each *= _MORE
    model.zeros = zeros
    model.fit(list(known.values()), STEPS, run.check)
    run.tell("tables of counts", 1000, 1000)
    return model


def _small(
    sizes: Sequence[int], known: Sequence[Columns], every: Sequence[Columns], most_cells: float
) -> Iterator[Columns]:
    """The tables with which the cliques of the model stay below so many cells; single columns always do."""
    for columns in every:
        if (
            columns in known
            or sum(cells(sizes, each) for each in cliques_of(sizes, [*known, columns])) <= most_cells
        ):
            yield columns
