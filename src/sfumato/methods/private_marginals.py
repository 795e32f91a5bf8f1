"""Private marginals: new records that have noisy counts of columns together, and nothing else of anyone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import polars as pl

from sfumato.core.budget import concentrated
from sfumato.core.method import Gives
from sfumato.core.origin import Origin
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.checks import without_missing
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.errors import RefusedError, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods import _opendp
from sfumato.methods._count_model import CountModel, Measured, evenly
from sfumato.methods._private import Grid, PrivateMethod, categories_of, codes_among, in_type, others
from sfumato.methods._private_counts import PrivateCounts, adaptively, by_tree

#: Noisy counts below so many deviations may be nothing: such categories of a column are taken as one. That
#: values are missing at all must be surer.
_RARE, _SURE = 3.0, 5.0

#: What of the budget the counts of single columns get, if there are several.
_SINGLES = 0.1

#: Most combinations of two columns that are counted.
_MOST_CELLS = 4_000_000

#: How often records that break a rule are drawn again.
_MOST_ROUNDS = 20


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
    r"""Draw new records from noisy counts of columns together (MST, AIM).

    All columns become categories that are known beforehand. A tenth of the budget goes to the noisy counts of
    each column; categories whose count is below three deviations are taken as one. The rest is spent on
    counts of several columns, a tenth of it on the choice of them:

    .. math::

        \tilde n_r = n_r + N_{\mathbb Z}\left(0,\; \frac{c^2}{2 \rho_r}\right), \qquad
        P(r) \propto \exp\left( \sqrt{2 \rho'_r}\,
        \frac{ |r| \left( \lVert n_r - \hat n_r \rVert_1 - p_r \right)}{ c \max |r|} \right)

    where :math:`c` is the most records of a person, :math:`\hat n_r` what the model so far expects of the
    columns :math:`r`, :math:`p_r` the noise to be expected, and all :math:`\rho_r, \rho'_r` make up the
    :math:`\rho` that gives (ε, δ). Counted are pairs that join all columns to a tree (``choice`` tree, MST),
    or round by round what the model tells worst, with more of the budget as soon as a round tells nothing
    new, as long as the cliques of the model have no more than ``cells`` (adaptive, AIM). The model is fitted
    to all noisy counts by belief propagation in a junction tree, and as many records are drawn from it as
    they say.

    See Also
    --------
    Synthesis : follows the data more closely, and promises nothing.
    PrivateLaplace : hides every value where it stands.

    Notes
    -----
    **When to use.** Tables of up to some dozens of columns with few categories each and thousands of
    records. The best of the private methods for analysts, though only what was counted together is kept.

    **Guarantees.** ρ-zero-concentrated differential privacy of the whole release, and so (ε, δ), where
    neighbours are tables with and without a record, or all of one person. Its records are nobody's. Records
    that break a rule of the schema are drawn again, which needs nothing of the data; totals are not hit by
    chance, and left to repair.

    **Risk to know.** What everyone shares is told, of those who are not in the data too. Categories and
    bounds from the data (``domain`` data), strata that are found in the data, and an ε chosen by the data are
    no guarantee.

    **Ties, missing, weights.** That a value is missing is a category of its own, and hidden like the others;
    it is drawn only where it is not rare. Columns that are not chosen come out empty, as there is nobody to
    have them. Sampling weights are not used, and are 1 in the release.

    **Cost.** :math:`O(d^2 n)` in each of up to :math:`8 d` rounds for :math:`d` columns, and 13 µs for each
    cell that is counted; 27,253 records of 10 columns take about six seconds and 20,000 of 30 columns a
    minute and a half, with a tree one or two seconds.

    Examples
    --------
    >>> columns = [Column(name, Kind.ORDINAL, order=(0, 1)) for name in "ab"]
    >>> table = Table(pl.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500}), Schema(columns)).aimed_at("ab")
    >>> release = PrivateMarginals(epsilon=10).apply(table, Run(seed=1))
    >>> release.synthetic, release.table.frame.corr()["a"][1] > 0.9
    (True, True)
    """

    name = "private-marginals"
    title = "Private marginals"
    analyst_note = (
        "Records are drawn from noisy counts of some pairs of columns: other relations are lost, small "
        "counts are mostly noise, and one copy understates the doubt."
    )
    family = "differential privacy"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL})
    references = ("mckenna2022", "mckenna2021", "mckenna2019", "canonne2020")
    cost = "n"
    gives = Gives(suppressed=True, other_records=True)

    choice: Literal["tree", "adaptive"] = param(
        "adaptive",
        "What is counted together.",
        choices={
            "tree": "Pairs that join all columns to a tree (MST).",
            "adaptive": "Round by round what the model tells worst (AIM).",
        },
        hint="a tree is quicker, and enough for few columns or a small ε",
        label="Choice of counts",
    )
    ways: int = param(
        2,
        "Most columns that are counted together.",
        ge=2,
        le=3,
        when="choice=adaptive",
        label="Columns at once",
    )
    cells: int = param(
        200_000, "Most cells of the model, all its cliques together.", ge=1_000, le=50_000_000, log=True,
        hint="more keeps more relations, and takes longer", when="choice=adaptive", advanced=True,
        label="Cells of the model",
    )  # fmt: skip
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
        advanced=True,
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Count columns with noise, choose what to count together, fit the model, and draw."""
        rho, names = concentrated(self.epsilon, self.delta), table.chosen
        columns = [Coded.of(table, name, self, run) for name in names]
        counts = PrivateCounts(
            [each.codes for each in columns],
            [each.size for each in columns],
            self.records,
            run.ticker(f"{self.title}: noise"),
        )
        alone = _SINGLES * rho if len(names) > 1 else rho
        singles = counts.measured([(place,) for place in range(len(names))], rho=alone)
        merged = [_merged(each) for each in singles]
        counts = counts.merged(merged)
        _require_countable(self.name, names, counts.sizes)
        model = self._model(
            counts,
            [each.merged(places) for each, places in zip(singles, merged, strict=True)],
            rho - alone,
            run,
        )
        parts = [_parted(places, each.counts) for places, each in zip(merged, singles, strict=True)]
        made, notes = _Drawing(table, columns, parts, model).drawn(round(model.total))
        release = replace(Release.of(made, notes=notes), origin=Origin.synthetic())
        return self.spent(release, table, counts.spending(), delta=self.delta)

    def _model(self, counts: PrivateCounts, singles: Sequence[Measured], rho: float, run: Run) -> CountModel:
        """The model of the noisy counts, after what is left of the budget was spent on it."""
        sums = [float(each.counts.sum()) for each in singles]
        total = max(1.0, float(np.average(sums, weights=[1 / each.counts.size for each in singles])))
        if self.choice == "tree" or len(singles) == 1:
            return by_tree(counts, singles, total, rho, run)
        return adaptively(counts, singles, total, rho, run, most_cells=self.cells, ways=self.ways)


@dataclass(frozen=True)
class _Drawing:
    """New records of a model: ``parts`` say how categories that were taken as one part again.

    Nothing here is of the data but what the noise left. No seed of ours is used either: who had it and knew
    the data but for one person could tell by the draws which data they were.
    """

    table: Table
    columns: Sequence[Coded]
    parts: Sequence[Floats]
    model: CountModel

    def drawn(self, records: int) -> tuple[Table, tuple[str, ...]]:
        """So many records; those that break a rule of the schema are drawn again."""
        rng = _opendp.generator()
        made = self._once(records, rng)
        for _ in range(_MOST_ROUNDS):
            broken = self._breaking(made)
            if not broken.any():
                break
            again = self._once(int(broken.sum()), rng).frame
            made = replace(made, frame=pl.concat([made.frame.filter(~pl.Series(broken)), again]))
        broken, empty = self._breaking(made), others(self.table)
        notes = [f"left empty, as new records have nothing of anyone: {quoted(empty)}"] if empty else []
        if broken.any():
            notes.append(
                f"{int(broken.sum())} records break a rule of the schema, after {_MOST_ROUNDS} draws"
            )
        order = rng.permutation(len(made))
        return made.take(order), tuple(notes)

    def _once(self, records: int, rng: np.random.Generator) -> Table:
        made: dict[str, pl.Series] = {}
        codes = self.model.drawn(records, rng)
        for name, own, column, part in zip(self.table.chosen, codes, self.columns, self.parts, strict=True):
            made[name] = column.series(evenly(part, own, rng), self.table, name, rng)
        return replace(self.table, frame=_frame(self.table, made, records))

    def _breaking(self, made: Table) -> Flags:
        """Which records break a rule of the drawn columns; totals are never hit by chance, but repaired."""
        broken = np.zeros(len(made), dtype=np.bool_)
        for rule in made.schema.rules:
            if rule.sum is None and set(rule.columns) <= set(self.table.chosen):
                broken |= rule.broken(without_missing(made, rule.columns)).to_numpy()
        return broken


def _frame(table: Table, made: Mapping[str, pl.Series], records: int) -> pl.DataFrame:
    """All columns in their order: those that are not made are empty, but for weights, which are 1."""
    weight = table.schema.only_role(Role.WEIGHT)
    rest = {
        name: pl.repeat(1 if name == weight else None, records, dtype=dtype, eager=True).alias(name)
        for name, dtype in table.frame.schema.items()
        if name not in made
    }
    return pl.DataFrame([made[name] if name in made else rest[name] for name in table.names])


def _merged(single: Measured) -> Ints:
    """New codes of categories: those whose count may be nothing are one, the last.

    If it is only the missing, they are taken with the rarest value: a column without holes gets none.
    """
    counts, noise = single.counts, single.deviation
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


def _require_countable(method: str, names: Sequence[str], sizes: Sequence[int]) -> None:
    large = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:2]
    if len(large) > 1 and math.prod(sizes[place] for place in large) > _MOST_CELLS:
        raise RefusedError(
            f"{method} must be given columns of at most {_MOST_CELLS:,} combinations of two, got: more in "
            f"{quoted(names[place] for place in large)}",
            hint="recode them before, or leave one out",
        )
