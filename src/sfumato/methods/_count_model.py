"""A model of categories whose noisy counts are known: what it must be, and records drawn from it.

The tables of counts that were measured join columns to a graph, which a junction tree of cliques covers.
Belief propagation gives all marginals of the model by two walks along the tree; its potentials, one for each
table of counts, are moved until these fit the noisy counts (McKenna, Sheldon and Miklau 2019). What cannot be
is zero in all of them. That these marginals are exact is proved in ``docs/proofs/junction-tree.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.kernels.arrays import Flags, Floats, Ints

#: The gain of the fit below which it ends.
_MIN_GAIN = 1e-7

#: The logarithm of what cannot be: finite, so that nothing is divided by it, and far below any potential.
_NEVER = -1e6

#: Columns, in rising order.
Columns = tuple[int, ...]


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of columns, an axis for each, and their deviation."""

    columns: Columns
    counts: Floats
    deviation: float

    def merge_categories(self, places: Ints) -> NoisyCounts:
        """The counts of one column whose categories are taken as one where they have the same place."""
        counts = np.bincount(places, weights=self.counts).astype(np.float64)
        return NoisyCounts(self.columns, counts, self.deviation)

    def pool(self, other: NoisyCounts) -> NoisyCounts:
        """What two measurements of the same columns say together."""
        own, more = self.deviation**-2.0, other.deviation**-2.0
        counts = (own * self.counts + more * other.counts) / (own + more)
        return NoisyCounts(self.columns, counts, (own + more) ** -0.5)


@dataclass(frozen=True)
class Clique:
    """Columns that stand together in the tree; some are ``shared`` with its ``parent``, −1 at the root."""

    columns: Columns
    parent: int
    shared: Columns


def cliques_of(sizes: Sequence[int], tables: Iterable[Columns]) -> list[Columns]:
    """Cliques of a triangulated graph in which the columns of each table stand together; small ones first."""
    near: list[set[int]] = [set() for _ in sizes]
    for columns in tables:
        for column in columns:
            near[column].update(columns)
    left, found = set(range(len(sizes))), list[Columns]()
    while left:
        column = min(left, key=lambda each: (cells(sizes, near[each] | {each}), each))
        clique = near[column] | {column}
        if not any(clique <= set(other) for other in found):
            found.append(tuple(sorted(clique)))
        for other in clique - {column}:
            near[other] = (near[other] | clique) - {column}
        left.remove(column)
    return found


def cells(sizes: Sequence[int], columns: Iterable[int]) -> int:
    """How many combinations columns have."""
    return math.prod(sizes[each] for each in columns)


def that_fit(
    zeros: Mapping[Columns, Flags], sizes: Sequence[int], tables: Iterable[Columns], most_cells: float
) -> dict[Columns, Flags]:
    """Those zeros, small tables first, with which the cliques of some tables stay below so many cells."""
    known, found = list(tables), dict[Columns, Flags]()
    for columns in sorted(zeros, key=lambda each: cells(sizes, each)):
        joined = cliques_of(sizes, [*known, *found, columns])
        if sum(cells(sizes, each) for each in joined) <= most_cells:
            found[columns] = zeros[columns]
    return found


def _tree_of(cliques: Sequence[Columns]) -> list[Clique]:
    """The cliques as a tree, each after the one it hangs on, with which it shares as much as it can."""
    placed, left = [Clique(cliques[0], -1, ())], list(cliques[1:])
    while left:
        shared = [[len(set(each) & set(one.columns)) for one in placed] for each in left]
        each = max(range(len(left)), key=lambda place: max(shared[place]))
        parent = max(range(len(placed)), key=lambda place: shared[each][place])
        columns = left.pop(each)
        both = tuple(sorted(set(columns) & set(placed[parent].columns)))
        placed.append(Clique(columns, parent, both))
    return placed


@dataclass
class CountModel:
    """Potentials (logarithms) of tables of counts, and the cliques that they make with the ``zeros``."""

    sizes: Sequence[int]
    total: float
    zeros: Mapping[Columns, Flags] = field(default_factory=dict)  # combinations that cannot be
    known: Sequence[NoisyCounts] = ()  # what it was last fitted to
    potentials: dict[Columns, Floats] = field(default_factory=dict)
    tree: list[Clique] = field(default_factory=list)
    beliefs: list[Floats] = field(default_factory=list)  # the marginals of the cliques
    length: float = 0.0  # of the last step of the fit
    homes: dict[Columns, int] = field(default_factory=dict)  # which clique holds the columns of a potential
    bases: list[Floats] = field(default_factory=list)  # the cliques before any potential: 0, or never

    def fit(self, known: Sequence[NoisyCounts], steps: int, check: Callable[[], None] = lambda: None) -> None:
        """Move the potentials until the marginals are nearest to what was measured, in its deviations.

        By mirror descent, from where the potentials are, in steps as long as the last fit's; tables that
        are new begin at nothing. ``check`` is called before each step and may stop it.
        """
        self.known = known
        fresh = {each.columns: np.zeros(each.counts.shape) for each in known}
        self.potentials = fresh | {key: self.potentials[key] for key in self.potentials if key in fresh}
        self.tree = _tree_of(cliques_of(self.sizes, [*self.potentials, *self.zeros]))
        self.homes = {columns: self._home(columns) for columns in self.potentials}
        self.bases = [np.zeros([self.sizes[each] for each in clique.columns]) for clique in self.tree]
        for columns, never in self.zeros.items():
            place = self._home(columns)
            self.bases[place] += _broadcast_over(
                np.where(never, _NEVER, 0.0), columns, self.tree[place].columns
            )
        aims = {
            each.columns: (each.counts / self.total, (self.total / each.deviation) ** 2) for each in known
        }
        largest = max(weight for _, weight in aims.values())
        length = max(1.0 / largest, self.length / 4)
        loss, slopes = self._loss(self.potentials, aims)
        for _ in range(steps):
            check()
            moved = {key: each - length * slopes[key] for key, each in self.potentials.items()}
            found, steep = self._loss(moved, aims)
            if found > loss:
                length /= 2
                if length * largest < _MIN_GAIN:
                    break
                continue
            gain, loss, slopes, self.potentials = loss - found, found, steep, moved
            length *= 1.1
            self.length = length
            if gain < _MIN_GAIN * loss:
                break
        self.beliefs = self._propagate_beliefs(self.potentials)

    def _loss(
        self, potentials: Mapping[Columns, Floats], aims: Mapping[Columns, tuple[Floats, float]]
    ) -> tuple[float, dict[Columns, Floats]]:
        beliefs = self._propagate_beliefs(potentials)
        slopes, loss = {}, 0.0
        for columns, (aim, weight) in aims.items():
            place = self.homes[columns]
            off = _sum_over_others(beliefs[place], self.tree[place].columns, columns) - aim
            slopes[columns] = weight * off
            loss += weight * float((off**2).sum()) / 2
        return loss, slopes

    def _home(self, columns: Columns) -> int:
        """The smallest clique that holds these columns, −1 if none does."""
        homes = [place for place, each in enumerate(self.tree) if set(columns) <= set(each.columns)]
        return min(homes, key=lambda place: cells(self.sizes, self.tree[place].columns), default=-1)

    def _propagate_beliefs(self, potentials: Mapping[Columns, Floats]) -> list[Floats]:
        """The chances of all combinations of each clique, by belief propagation."""
        below = [each.copy() for each in self.bases]
        for columns, each in potentials.items():
            place = self.homes[columns]
            below[place] += _broadcast_over(each, columns, self.tree[place].columns)
        up: list[Floats] = [np.zeros(())] * len(self.tree)
        for place in range(len(self.tree) - 1, 0, -1):
            clique = self.tree[place]
            up[place] = _log_sums(below[place], clique.columns, clique.shared)
            below[clique.parent] += _broadcast_over(
                up[place], clique.shared, self.tree[clique.parent].columns
            )
        beliefs: list[Floats] = []
        for place, clique in enumerate(self.tree):
            belief = below[place]
            if clique.parent >= 0:
                above = _sum_over_others(
                    beliefs[clique.parent], self.tree[clique.parent].columns, clique.shared
                )
                with np.errstate(divide="ignore"):
                    belief = belief + _broadcast_over(
                        np.log(above) - up[place], clique.shared, clique.columns
                    )
            beliefs.append(_chances(belief))
        return beliefs

    def marginal(self, columns: Columns) -> Floats:
        """The chances of the combinations of any columns: the other ones are summed out clique by clique."""
        home = self._home(columns)
        if home >= 0:
            return _sum_over_others(self.beliefs[home], self.tree[home].columns, columns)
        factors, asked = [], set(columns)
        needed = set[int]()
        for place in range(len(self.tree) - 1, -1, -1):  # what hangs below and is not asked for sums to one
            clique = self.tree[place]
            if place in needed or (set(clique.columns) - set(clique.shared)) & asked:
                needed |= {clique.parent}
                shared = _sum_over_others(self.beliefs[place], clique.columns, clique.shared)
                chances = self.beliefs[place] / np.maximum(
                    _broadcast_over(shared, clique.shared, clique.columns), np.finfo(float).tiny
                )
                factors.append((chances, clique.columns))
        return _contract_factors(factors, columns)

    def draw(self, records: int, rng: np.random.Generator) -> list[Ints]:
        """The codes of so many new records, column by column; counts are those expected but for rounding."""
        codes: dict[int, Ints] = {}
        for clique, belief in zip(self.tree, self.beliefs, strict=True):
            new = [each for each in clique.columns if each not in codes]
            given = np.zeros(records, dtype=np.int64)
            for each in clique.shared:
                given = given * self.sizes[each] + codes[each]
            order = [clique.columns.index(each) for each in (*clique.shared, *new)]
            shape = [self.sizes[each] for each in new]
            found = draw_evenly(belief.transpose(order).reshape(-1, math.prod(shape)), given, rng)
            codes |= dict(zip(new, np.unravel_index(found, shape), strict=True))
        return [codes[each].astype(np.int64) for each in range(len(self.sizes))]


def draw_evenly(chances: Floats, given: Ints, rng: np.random.Generator) -> Ints:
    """Draw a code for each record by the row of chances that is given, in even steps within each row."""
    sums = chances.sum(axis=1, keepdims=True)
    rows = np.divide(chances, sums, out=np.full_like(chances, 1 / chances.shape[1]), where=sums > 0)
    heaps = np.cumsum(rows, axis=1)
    heaps /= heaps[:, -1:]
    mixed = rng.permutation(len(given))
    order = mixed[np.argsort(given[mixed], kind="stable")]
    counts = np.bincount(given, minlength=len(chances))
    starts = np.cumsum(counts) - counts
    at = given[order]
    shares = (np.arange(len(given)) - starts[at] + rng.random(len(chances))[at]) / np.maximum(counts[at], 1)
    codes = np.empty(len(given), dtype=np.int64)
    found = np.searchsorted((heaps + np.arange(len(heaps))[:, None]).ravel(), at + shares, side="right")
    codes[order] = np.clip(found - at * chances.shape[1], 0, chances.shape[1] - 1)
    return codes


def _broadcast_over(values: Floats, columns: Columns, over: Columns) -> Floats:
    """Values of columns, with an axis of length one for each other column of those they are spread over."""
    axes = dict(zip(columns, values.shape, strict=True))
    return values.reshape([axes.get(each, 1) for each in over])


def _sum_over_others(values: Floats, columns: Columns, left: Columns) -> Floats:
    """Values of columns summed over all but those that are left."""
    summed: Floats = values.sum(axis=tuple(place for place, each in enumerate(columns) if each not in left))
    return summed


def _contract_factors(factors: Sequence[tuple[Floats, Columns]], left: Columns) -> Floats:
    """The product of factors, summed over all but the columns that are left."""
    names = sorted({*left, *(each for _, columns in factors for each in columns)})
    operands: list[Any] = []
    for values, columns in factors:
        operands += [values, [names.index(each) for each in columns]]
    found: Floats = np.einsum(*operands, [names.index(each) for each in left], optimize="greedy")
    return found


def _log_sums(values: Floats, columns: Columns, left: Columns) -> Floats:
    axes = tuple(place for place, each in enumerate(columns) if each not in left)
    top = values.max(axis=axes, keepdims=True)
    with np.errstate(divide="ignore"):
        summed: Floats = np.log(np.exp(values - top).sum(axis=axes)) + top.squeeze(axes)
    return summed


def _chances(values: Floats) -> Floats:
    scaled: Floats = np.exp(values - values.max())
    scaled /= scaled.sum()
    return scaled
