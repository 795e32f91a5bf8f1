"""Private microaggregation: noise on the means of groups, which need less of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.core.budget import Spending
from sfumato.core.method import Gives, set_protected_values
from sfumato.core.params import param
from sfumato.core.release import Release, reorder
from sfumato.core.run import Run
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods import _opendp
from sfumato.methods._private import Grid, LocalMethod, grids_of, others, spending

#: In how many steps the place of a record in its box counts, to either side.
_STEPS = 1 << 20


class PrivateMicroaggregation(LocalMethod):
    r"""Replace records by the noisy mean of their group, which needs less noise than single values.

    The records are sorted once by their distance from the corner of the lower bounds (each range counting as
    1), and split into groups of :math:`k` in that order. The order does not depend on the data, so changing a
    record changes each group by at most one record. So all :math:`\lfloor n/k \rfloor` means of column
    :math:`j` move by at most

    .. math::

        \left\lfloor \frac{n}{k} \right\rfloor \frac{c\,\Delta_j}{k} \quad \text{(record)}, \qquad
        \frac{c\,\Delta_j}{k} \quad \text{(column)}, \qquad \Delta_j = b_j - a_j

    together, and get Laplace noise for that and the share :math:`\varepsilon / d` of each column. The second
    bound is that of individual ranking (``by`` column): each column is sorted on its own, and a value that
    moves through the order changes the means of all groups on its way by no more than the distance it moves.
    :math:`c` is the largest number of records of a person.

    With ``by`` box the declared ranges are halved, the widest side first, as long as both halves have
    :math:`k` records by noisy counts, which get half of ε. Changing a record changes at most two boxes, so
    that noise does not grow with the number of records: a mean moves by at most the width of its box over
    :math:`k`. Groups that change little are called stable; halving is our way to obtain them.

    See Also
    --------
    PrivateLaplace : the same with groups of one.
    Mdav : groups that fit the data better, without a guarantee.

    Notes
    -----
    **When to use.** Use ``by`` box for several columns, column for one. By record, the classic, is better
    than `PrivateLaplace` only from :math:`k > \sqrt n`.

    **Guarantees.** ε-differential privacy by record and by box, where neighbours are tables in which one
    record, or all of one person, has other values: sizes of groups do not depend on the data or have noise,
    and the records come out sorted by what is shown. By column this holds of a single column.

    **Risk to know.** With several columns and ``by`` column, the groups of a record are released without
    noise, as in the published method; so they are if the release has unprotected columns. The release labels
    both *not a differential-privacy guarantee*. Bounds or an ε taken from the data give no guarantee either.

    **Ties, missing, weights.** Ties in the order are of equal records. Missing values visibly stay missing;
    in the means they count as the middle of the range. Sampling weights are not used.

    **Cost.** :math:`O(n \log n)`, and 10 µs for a mean.

    Examples
    --------
    >>> ages = Column("age", Kind.CONTINUOUS, integer=True, lower=0, upper=120)
    >>> table = Table(pl.DataFrame({"age": list(range(20, 80))}), Schema((ages,))).aimed_at(["age"])
    >>> release = PrivateMicroaggregation(k=20, by="column").apply(table, Run(seed=1))
    >>> release.table.frame["age"].n_unique() <= 3, release.budget.total().epsilon
    (True, 1.0)
    """

    name = "private-microaggregation"
    vetted = (
        "published: reference/test_paper_linkage.py::test_table_2_microaggregation_with_differential_privacy"
    )
    title = "Private microaggregation"
    analyst_note = (
        "Values are group means with noise, on a scale that follows from the published ε: variances may be "
        "too small or too large, and no single value was observed."
    )
    family = "differential privacy"
    kinds = frozenset({Kind.CONTINUOUS})
    references = ("soriacomas2014", "sanchez2016private", "iftikhar2019", "muralidhar2020")
    cost = "n log n"
    gives = Gives(other_records=True)  # they come out in another order

    k: int = param(
        50,
        "Number of records in a group.",
        ge=1,
        le=1_000_000,
        symbol="k",
        hint="by record, larger than the square root of n",
    )
    by: Literal["record", "column", "box"] = param(
        "record",
        "What is grouped.",
        choices={
            "record": "Records, in the order of their distance from the lower bounds.",
            "column": "The values of each column separately: a guarantee only for a single column.",
            "box": "The records of a box, where boxes are made by halving the declared ranges.",
        },
        hint="the noise of box does not grow with the number of records",
        label="Group by",
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Group, take means with noise, and sort what comes out."""
        _opendp.opendp()
        grids = grids_of(table, self.domain)
        places = {name: grid.places(table.numbers(name)) for name, grid in grids.items()}
        work = self._of_boxes if self.by == "box" else self._of_orders
        means, steps = work(places, grids, run.ticker(self.title))
        protected = table
        for name, values in means.items():
            missing = self.kept_missing(table, name)
            fresh = grids[name].series(values[~missing], table.schema[name], table.frame.schema[name])
            column = set_protected_values(table, name, fresh) if missing.any() else fresh.alias(name)
            protected = protected.with_values(name, column)
        release = Release.record_by_record(protected, notes=self.remarks(table))
        shown = protected.matrix(table.chosen)
        return self.with_budget(
            reorder(release, np.lexsort(shown.T[::-1])), table, steps, void=self._void(table)
        )

    def _of_orders(
        self, places: Mapping[str, Ints], grids: Mapping[str, Grid], tick: _opendp.Tick
    ) -> tuple[dict[str, Ints], list[Spending]]:
        """The noisy means of groups in the order of all records, or of each column."""
        n = len(next(iter(places.values())))
        groups = np.minimum(np.arange(n) // self.k, max(n // self.k, 1) - 1)
        order = _order(places, grids) if self.by == "record" else None
        means, share = {}, self.epsilon / len(grids)
        for name, grid in grids.items():
            own = np.argsort(places[name], kind="stable") if order is None else order
            means[name] = np.empty(n, dtype=np.int64)
            noisy = self._noisy_means(places[name][own], groups, grid, share, tick)
            means[name][own] = noisy[groups]
        return means, [_step(name, share, self.by) for name in grids]

    def _of_boxes(
        self, places: Mapping[str, Ints], grids: Mapping[str, Grid], tick: _opendp.Tick
    ) -> tuple[dict[str, Ints], list[Spending]]:
        """The noisy means of boxes of the declared ranges."""
        sizes = np.array([grid.size for grid in grids.values()], dtype=np.int64)
        n = len(next(iter(places.values())))
        first = self.epsilon / 2 if levels_of(n, self.k) else 0.0
        share = (self.epsilon - first) / len(grids)
        every = np.stack(list(places.values()), axis=1)
        boxes = halve_boxes(every, sizes, k=self.k, records=self.records, epsilon=first)
        shown, means = boxes.box_of_record, {}
        for column, name in enumerate(grids):
            tick(column, len(grids))
            found = boxes.means(column, every[:, column], records=self.records, epsilon=share)
            means[name] = found[shown]
        counted = [spending("discrete Laplace noise on counts of boxes", "replace", epsilon=first)]
        return means, (counted if first else []) + [_step(name, share, self.by) for name in grids]

    def _noisy_means(
        self, places: Ints, groups: Ints, grid: Grid, epsilon: float, tick: _opendp.Tick
    ) -> Ints:
        """The mean of each group with noise, in steps of the grid.

        Noise is added to sums over the fixed size k, so that no division comes before it: the last group,
        which may hold up to 2k − 1 records, is divided by more and moves by less.
        """
        if not grid.size or not len(places):
            return np.zeros(int(groups.max(initial=-1)) + 1, dtype=np.int64)
        sums = np.bincount(groups, weights=places).astype(np.int64)
        sizes = np.bincount(groups)
        moved = grid.size * self.records * (len(sums) if self.by == "record" else 1)
        noisy = _opendp.laplace(sums, sensitivity=moved, epsilon=epsilon, tick=tick)
        return np.rint(noisy / sizes).astype(np.int64)

    def _void(self, table: Table) -> str:
        if others(table):
            return "unprotected columns reveal which records share a group"
        if self.by == "column" and len(table.chosen) > 1:
            return f"by column, the groups of records in {quoted(table.chosen)} have no noise"
        return ""


def _step(name: str, epsilon: float, by: str) -> Spending:
    return spending(f"discrete Laplace noise on means of {name} by {by}", "replace", epsilon=epsilon)


def _order(places: Mapping[str, Ints], grids: Mapping[str, Grid]) -> Ints:
    """The records by their distance from the corner of the lower bounds, and by their values in ties."""
    shares = [places[name] / max(grid.size, 1) for name, grid in grids.items()]
    far: Floats = np.sum(np.square(shares), axis=0)
    return np.lexsort((*reversed(shares), far))


# Boxes of the declared ranges ---------------------------------------------------------------------------
#
# A record is in one box, so another one in its place changes two of them and no more, however many records
# there are: groups of this sort are called stable (Iftikhar, Wang and Lin 2019).


@dataclass(frozen=True)
class GridBoxes:
    """From ``lows`` to ``highs`` [box, column], places of a grid that belong to it.

    ``counts`` are how many records each box shows, which is noisy and adds up to all; ``of`` in which box
    each record is.
    """

    lows: Ints
    highs: Ints
    counts: Ints
    of: Ints

    @property
    def box_of_record(self) -> Ints:
        """The box in which each record is shown: its own, but for those of boxes that show fewer."""
        n, order = len(self.of), np.argsort(self.of, kind="stable")
        sizes = np.bincount(self.of, minlength=len(self.counts))
        within = np.arange(n) - (np.cumsum(sizes) - sizes)[self.of[order]]
        fits = within < self.counts[self.of[order]]
        left = self.counts - np.minimum(sizes, self.counts)
        boxes = self.of.copy()
        boxes[order[~fits]] = np.repeat(np.arange(len(left)), left)
        return boxes

    def means(self, column: int, places: Ints, *, records: int, epsilon: float) -> Ints:
        """The noisy mean place of a column in each box: offsets from its middle, in halves of its width."""
        low, high = self.lows[:, column], self.highs[:, column]
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, np.finfo(float).tiny)
        offsets: Floats = np.clip((places - middle[self.of]) / half[self.of], -1, 1)
        steps = np.rint(offsets * _STEPS).astype(np.int64)
        sums = np.zeros(len(low), dtype=np.int64)
        np.add.at(sums, self.of, steps)
        noisy = _opendp.laplace(sums, sensitivity=2 * _STEPS * records, epsilon=epsilon)
        found: Floats = middle + half * np.clip(noisy / (_STEPS * np.maximum(self.counts, 1)), -1, 1)
        return np.rint(found).astype(np.int64)


def levels_of(n: int, k: int) -> int:
    """How often so many records may be halved."""
    return max(0, int(math.log2(n / k))) if n >= k else 0


def halve_boxes(places: Ints, sizes: Ints, *, k: int, records: int, epsilon: float) -> GridBoxes:
    """Halve the whole range, its widest side first, as long as both halves show at least ``k`` records.

    How many records there are is known, as neighbours have as many; one in the place of another changes two
    counts of each level by one.
    """
    n, levels = len(places), levels_of(len(places), k)
    lows, highs = np.zeros((1, len(sizes)), dtype=np.int64), np.array([sizes], dtype=np.int64)
    counts, of, open_ = np.array([n]), np.zeros(n, dtype=np.int64), np.array([True])
    for _ in range(levels):
        axis = ((highs - lows) / np.maximum(sizes, 1)).argmax(axis=1)
        rows = np.arange(len(lows))
        middles = (lows[rows, axis] + highs[rows, axis]) // 2
        upper = (places[np.arange(n), axis[of]] > middles[of]).astype(np.int64)
        exact = np.bincount(2 * of + upper, minlength=2 * len(lows))
        noisy = _opendp.laplace(exact, sensitivity=2 * records, epsilon=epsilon / levels).reshape(-1, 2)
        above = (counts + noisy[:, 1] - noisy[:, 0]) // 2  # both halves make up the whole
        parted = open_ & (np.minimum(above, counts - above) >= k) & (highs[rows, axis] > lows[rows, axis])
        new = len(lows) + np.cumsum(parted) - 1  # where the upper half of each stands from now on
        tops, bottoms = highs[parted].copy(), lows[parted].copy()
        side = np.arange(int(parted.sum()))
        bottoms[side, axis[parted]] = middles[parted] + 1
        highs[parted, axis[parted]] = middles[parted]
        of = np.where(parted[of] & (upper == 1), new[of], of)
        lows, highs = np.vstack([lows, bottoms]), np.vstack([highs, tops])
        counts = np.concatenate([np.where(parted, counts - above, counts), above[parted]])
        open_ = np.concatenate([parted, np.ones(len(side), dtype=np.bool_)])
    return GridBoxes(lows, highs, counts, of)
