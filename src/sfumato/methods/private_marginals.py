"""Private marginals: new records that have noisy counts of pairs of columns, and nothing else of anyone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np
import polars as pl

from sfumato.core.params import listed, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.kernels.arrays import Floats, Ints
from sfumato.methods import _opendp
from sfumato.methods._private import (
    Grid,
    PrivateMethod,
    categories_of,
    codes_among,
    in_type,
    others,
    spending,
)
from sfumato.methods._tree_model import Measured, TreeModel, evenly

#: Noisy counts below so many deviations may be nothing: such categories of a column are taken as one. That
#: values are missing at all must be surer.
_RARE, _SURE = 3.0, 5.0

#: What the counts of columns, the choice of the tree and the counts of its pairs get of the budget.
_SHARES = (0.2, 0.1, 0.7)

#: Most combinations of two columns that are counted.
_MOST_CELLS = 4_000_000


@dataclass(frozen=True)
class Coded:
    """A column as categories that are known beforehand: ``codes``, 0 where missing, below ``size``.

    They are values of a list, or parts of the range of a number of ``width`` steps of its grid each.
    """

    codes: Ints
    size: int
    values: pl.Series | None = None
    grid: Grid | None = None
    width: int = 1

    @classmethod
    def of(cls, table: Table, name: str, method: PrivateMarginals, run: Run) -> Self:
        """Code a column."""
        if table.schema[name].kind is not Kind.CONTINUOUS:
            values = categories_of(table, name, method.domain, run)
            return cls(codes_among(table, name, values) + 1, len(values) + 1, values)
        grid = Grid.of(table, name, method.domain)
        width = -(-(grid.size + 1) // method.bins)
        numbers = table.numbers(name)
        codes = np.where(np.isnan(numbers), 0, 1 + grid.places(numbers) // width)
        return cls(codes, 2 + grid.size // width, None, grid, width)

    def series(self, codes: Ints, table: Table, name: str, rng: np.random.Generator) -> pl.Series:
        """Values for codes: those of the list, or any of the part of the range."""
        missing = codes == 0
        if self.values is not None:
            places = pl.Series(codes - 1).replace(-1, None)
            return in_type(self.values.gather(places), table.frame.schema[name]).alias(name)
        assert self.grid is not None
        steps = (codes - 1) * self.width + rng.integers(0, self.width, len(codes))
        grid = replace(self.grid, kept=True)
        fresh = grid.series(np.maximum(steps, 0), table.schema[name], table.frame.schema[name])
        return pl.select(pl.when(pl.Series(~missing)).then(fresh)).to_series().alias(name)


class PrivateMarginals(PrivateMethod):
    r"""Draw new records from noisy counts of a tree of pairs of columns (MST).

    All columns become categories that are known beforehand. A fifth of the budget goes to the noisy counts of
    each column, a tenth to the choice of a tree of pairs, the rest to the noisy counts of these:

    .. math::

        \rho + 2\sqrt{\rho \ln(1/\delta)} = \varepsilon, \qquad
        \tilde n = n + N_{\mathbb Z}\left(0,\; \frac{m\,c^2}{2 \rho'}\right)

    where :math:`\rho'` is the share of :math:`m` such tables of counts, and :math:`c` the most records of a
    person. A pair is chosen by the exponential mechanism for how far (L1) its counts are from those of
    independent columns. Then the model of the tree is fitted to all noisy counts by belief propagation, and
    the records are drawn from it: as many as the noisy counts say. Categories of a column whose noisy count
    is below three deviations are taken as one.

    See Also
    --------
    Synthesis : follows the data more closely, and promises nothing.
    PrivateLaplace : hides every value where it stands.

    Notes
    -----
    **When to use.** Tables of up to some dozens of columns with few categories each and thousands of
    records. The best of the private methods for analysts, though only pairs in the tree are kept.

    **Guarantees.** ρ-zero-concentrated differential privacy of the whole release, and so (ε, δ), where
    neighbours are tables with and without a record, or all of one person. Its records are nobody's.

    **Risk to know.** What everyone shares is told, of those who are not in the data too. Rules between
    columns that are no pair of the tree break: repair or check them. Categories and bounds from the data
    (``domain`` data) and an ε chosen by the data are no guarantee.

    **Ties, missing, weights.** That a value is missing is a category of its own, and hidden like the others;
    it is drawn only where it is not rare. Columns that are not chosen come out empty, as there is nobody to
    have them. Sampling weights are not used, and are 1 in the release.

    **Cost.** :math:`O(d^2 n)` for the counts of all pairs of :math:`d` columns, and 13 µs for each cell that
    is released.

    Examples
    --------
    >>> from sfumato.data.schema import Column, Schema
    >>> columns = [Column(name, Kind.ORDINAL, order=(0, 1)) for name in "ab"]
    >>> table = Table(pl.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500}), Schema(columns)).aimed_at("ab")
    >>> release = PrivateMarginals(epsilon=10).apply(table, Run(seed=1))
    >>> release.synthetic, release.table.frame.corr()["a"][1] > 0.9
    (True, True)
    """

    name = "private-marginals"
    title = "Private marginals"
    analysts = (
        "Records are drawn from noisy counts of some pairs of columns: other relations are lost, small "
        "counts are mostly noise, and one copy understates the doubt."
    )
    family = "differential privacy"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL})
    references = ("mckenna2021", "mckenna2019", "canonne2020")
    cost = "n"
    changes_records = True
    suppresses = True

    delta: float = param(
        1e-6, "Chance with which nothing is promised.", ge=1e-15, le=0.1, symbol="δ", log=True,
        hint="well below one in the number of records",
    )  # fmt: skip
    bins: int = param(
        100,
        "Most parts of the range of a number, each as wide; values are drawn evenly within a part.",
        ge=2,
        le=2_000,
        hint="whole numbers of a range up to this many are drawn as they are",
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Count with noise, choose the tree, count its pairs, fit the model, and draw."""
        rho, names = _opendp.concentrated(self.epsilon, self.delta), table.chosen
        columns = [Coded.of(table, name, self, run) for name in names]
        first, choice, second = (rho * share for share in _SHARES) if len(names) > 1 else (rho, 0.0, 0.0)
        noise = self.records * math.sqrt(len(names) / (2 * first))
        singles = self._counted([np.bincount(each.codes, minlength=each.size) for each in columns], first)
        merged = [_merged(counts, noise) for counts in singles]
        codes = [places[each.codes] for places, each in zip(merged, columns, strict=True)]
        known = [
            Measured(np.bincount(places, weights=counts).astype(np.float64), noise)
            for places, counts in zip(merged, singles, strict=True)
        ]
        sums = np.array([counts.sum() for counts in singles])
        total = max(1.0, float(np.average(sums, weights=[1 / each.size for each in columns])))
        sizes = [len(each.counts) for each in known]
        _require_countable(self.name, names, sizes)
        pairs = self._tree(codes, known, total, choice, run) if len(names) > 1 else []
        model = TreeModel.of(sizes, pairs, total)
        model.fit(known, self._pairs_counted(model, codes, sizes, second))
        # What is drawn from the model tells nothing more, but must not repeat where the noise does not.
        own = [_parted(places, counts) for places, counts in zip(merged, singles, strict=True)]
        place = run.at("records", np.concatenate(singles).tobytes())
        made = self._assembled(model.drawn(round(total), place.rng("model")), columns, own, table, place)
        steps = [spending("discrete Gaussian noise on the counts of columns", "add-remove", rho=first)]
        if len(names) > 1:
            steps.append(spending("exponential mechanism for a tree of pairs", "add-remove", rho=choice))
            steps.append(spending("discrete Gaussian noise on the counts of pairs", "add-remove", rho=second))
        empty = others(table)
        note = (f"left empty, as new records have nothing of anyone: {listed(empty)}",) if empty else ()
        release = replace(Release.of(made, notes=note), synthetic=True)
        return self.spent(release, table, steps, delta=self.delta)

    def _counted(self, tables: Sequence[Ints], rho: float) -> list[Floats]:
        """Counts with noise; each table of counts spends the same."""
        share = rho / len(tables)
        noisy = _opendp.gaussian(
            np.concatenate([each.ravel() for each in tables]), sensitivity=self.records, rho=share
        )
        ends = np.cumsum([each.size for each in tables])[:-1]
        parts = np.split(noisy.astype(np.float64), ends)
        return [part.reshape(each.shape) for part, each in zip(parts, tables, strict=True)]

    def _tree(
        self, codes: Sequence[Ints], known: Sequence[Measured], total: float, rho: float, run: Run
    ) -> list[tuple[int, int]]:
        """Join all columns by the pairs that tell most, chosen one by one by the exponential mechanism."""
        shares = [np.maximum(each.counts, 0) / max(np.maximum(each.counts, 0).sum(), 1) for each in known]
        every = list(combinations(range(len(codes)), 2))
        far = np.empty(len(every))
        for place, (a, b) in enumerate(run.track(f"{self.title}: pairs", every, total=len(every))):
            counts = _crossed(codes[a], codes[b], len(shares[a]), len(shares[b]))
            far[place] = np.abs(counts - total * np.outer(shares[a], shares[b])).sum()
        chosen: list[tuple[int, int]] = []
        part = np.arange(len(codes))  # which columns are joined already
        for _ in range(len(codes) - 1):
            free = [place for place, (a, b) in enumerate(every) if part[a] != part[b]]
            found = _opendp.highest(far[free], sensitivity=self.records, rho=rho / (len(codes) - 1))
            a, b = every[free[found]]
            chosen.append((a, b))
            part[part == part[b]] = part[a]
        return chosen

    def _pairs_counted(
        self, model: TreeModel, codes: Sequence[Ints], sizes: Sequence[int], rho: float
    ) -> dict[int, Measured]:
        """The noisy counts of each column with the one it hangs on."""
        hanging = list(model.order[1:])
        if not hanging:
            return {}
        noise = self.records * math.sqrt(len(hanging) / (2 * rho))
        above = {each: model.parents[each] for each in hanging}
        counts = [_crossed(codes[above[c]], codes[c], sizes[above[c]], sizes[c]) for c in hanging]
        return {
            c: Measured(noisy, noise) for c, noisy in zip(hanging, self._counted(counts, rho), strict=True)
        }

    def _assembled(
        self,
        codes: Sequence[Ints],
        columns: Sequence[Coded],
        merged: Sequence[Floats],
        table: Table,
        run: Run,
    ) -> Table:
        """The new records as a table; of categories that were taken as one, by how ``merged`` they are."""
        made: dict[str, pl.Series] = {}
        for name, drawn, column, chances in zip(table.chosen, codes, columns, merged, strict=True):
            rng = run.rng(name)
            made[name] = column.series(evenly(chances, drawn, rng), table, name, rng)
        return replace(table, frame=_frame(table, made, len(codes[0])))


def _frame(table: Table, made: Mapping[str, pl.Series], records: int) -> pl.DataFrame:
    """All columns in their order: those that are not made are empty, but for weights, which are 1."""
    weight = table.schema.only_role(Role.WEIGHT)
    rest = {
        name: pl.repeat(1 if name == weight else None, records, dtype=dtype, eager=True).alias(name)
        for name, dtype in table.frame.schema.items()
        if name not in made
    }
    return pl.DataFrame([made[name] if name in made else rest[name] for name in table.names])


def _merged(counts: Floats, noise: float) -> Ints:
    """New codes of categories: those whose count may be nothing are one, the last.

    If it is only the missing, they are taken with the rarest value: a column without holes gets none.
    """
    rare = counts < _RARE * noise
    rare[0] = counts[0] < _SURE * noise
    places = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1).astype(np.int64)
    if rare[0] and rare.sum() == 1 and len(counts) > 1:
        places[0] = places[1 + counts[1:].argmin()]
    return places


def _parted(places: Ints, counts: Floats) -> Floats:
    """How categories that were taken as one part again [merged, own]: by noisy counts, never into missing."""
    chances = np.zeros((int(places.max()) + 1, len(places)))
    chances[places, np.arange(len(places))] = np.maximum(counts, 0) + 1.0
    rare = places == places[0]
    if rare.sum() > 1:
        chances[places[0], 0] = 0.0
    return chances


def _crossed(first: Ints, second: Ints, rows: int, columns: int) -> Ints:
    counts = np.bincount(first * columns + second, minlength=rows * columns)
    return counts.reshape(rows, columns)


def _require_countable(method: str, names: Sequence[str], sizes: Sequence[int]) -> None:
    large = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:2]
    if len(large) > 1 and math.prod(sizes[place] for place in large) > _MOST_CELLS:
        raise RefusedError(
            f"{method} must be given columns of at most {_MOST_CELLS:,} combinations of two, got: more in "
            f"{listed(names[place] for place in large)}",
            hint="recode them before, or leave one out",
        )
