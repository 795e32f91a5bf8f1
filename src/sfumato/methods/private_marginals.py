"""Private marginals: synthetic records from noisy counts of a few columns at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import polars as pl

from sfumato.core.budget import rho_of_epsilon
from sfumato.core.method import Gives
from sfumato.core.origin import Origin
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.checks import without_missing
from sfumato.data.repair import sums_in_order
from sfumato.data.rules import Rule
from sfumato.data.schema import Kind, Role
from sfumato.data.series import occurrences
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError, quoted
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods import _opendp
from sfumato.methods._count_model import Columns, CountModel, NoisyCounts, draw_evenly
from sfumato.methods._forbidden_cells import RepresentativeValues, kinds_of, merge_zeros, must_lack, zeros_of
from sfumato.methods._private import Grid, PrivateMethod, categories_of, codes_among, in_type, others
from sfumato.methods._private_counts import STEPS, PrivateCounts, Zeros, by_tree, fit_adaptively

#: Noisy counts below so many deviations may be nothing: such categories of a column are taken as one. That
#: values are missing at all must be surer.
_RARE_DEVIATIONS, _MISSING_DEVIATIONS = 3.0, 5.0

#: What of the budget the counts of single columns get, if there are several.
_SINGLES = 0.1

#: Most combinations of two columns that are counted.
_MOST_CELLS = 4_000_000

#: How often records that break a rule are drawn again, and how many are drawn then at least.
_MOST_ROUNDS, _MIN_REDRAWN = 20, 1_000

#: The change of a share by rules that is told.
_TOLD = 0.01


@dataclass(frozen=True)
class CategoryCodes:
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
        steps = (codes - 1) * self.width + rng.integers(0, self.width, len(codes))
        return self._numbers(np.maximum(steps, 0), missing, table, name)

    def _numbers(self, steps: Ints, missing: Flags, table: Table, name: str) -> pl.Series:
        assert self.grid is not None
        grid = replace(self.grid, kept=True)
        fresh = grid.series(steps, table.schema[name], table.frame.schema[name])
        return pl.select(pl.when(pl.Series(~missing)).then(fresh)).to_series().alias(name)

    def points(self, table: Table, name: str, numbers: Sequence[float]) -> RepresentativeValues:
        """Values for all codes: of a part of a range its ends, and what lies at and beside some numbers."""
        if self.grid is None:
            codes = np.arange(self.size)
            return RepresentativeValues(codes, self.series(codes, table, name, np.random.default_rng(0)))
        starts = np.arange(0, self.grid.size + 1, self.width)
        places = self.grid.places(np.array(numbers, dtype=np.float64))
        steps = np.concatenate([starts, starts + self.width - 1, places - 1, places, places + 1])
        steps = np.unique(np.clip(steps, 0, self.grid.size))
        steps, missing = np.append(0, steps), np.append(True, np.zeros(len(steps), dtype=np.bool_))
        codes = np.where(missing, 0, 1 + steps // self.width)
        return RepresentativeValues(codes, self._numbers(steps, missing, table, name), some=self.width > 1)


class PrivateMarginals(PrivateMethod):
    r"""Generate synthetic records from noisy counts of a few columns at a time (MST, AIM).

    All columns become categories that are known beforehand. A tenth of the budget goes to the noisy counts of
    each column; categories whose count is below three deviations are merged, as far as rules treat them
    alike. The rest is spent on counts of several columns, a tenth of it on the choice of them:

    .. math::

        \tilde n_r = n_r + N_{\mathbb Z}\left(0,\; \frac{c^2}{2 \rho_r}\right), \qquad
        P(r) \propto \exp\left( \sqrt{2 \rho'_r}\,
        \frac{ |r| \left( \lVert n_r - \hat n_r \rVert_1 - p_r \right)}{ c \max |r|} \right)

    where :math:`c` is the largest number of records of a person, :math:`\hat n_r` the counts of the columns
    :math:`r` that the model expects so far, :math:`p_r` the expected noise, and all :math:`\rho_r, \rho'_r`
    sum to the :math:`\rho` that gives (ε, δ). Either pairs that connect all columns in a tree are counted
    (``choice`` tree, MST), or round by round the columns that the model predicts worst, with more of the
    budget as soon as a round adds nothing new, as long as the cliques of the model have no more than
    ``cells`` (adaptive, AIM). The model is fitted to all noisy counts by belief propagation in a junction
    tree, and as many records are drawn from it as the noisy counts indicate.

    See Also
    --------
    Synthesis : follows the data more closely, without a guarantee.
    PrivateLaplace : protects every value in its place.

    Notes
    -----
    **When to use.** Tables of up to some dozens of columns with few categories each and thousands of records.
    The best of the private methods for analysts, though only relations of columns that were counted together
    are kept.

    **Guarantees.** ρ-zero-concentrated differential privacy of the whole release, and so (ε, δ), where
    neighbours are tables with and without a record, or all of one person. No record belongs to a person.
    Combinations that a rule of the schema forbids have probability 0 in the model, which does not depend on
    the data; where that model would be too large, a record that violates a rule is replaced by another of its
    group. A note names columns whose shares the rules change. Rules on totals are left to repair, since
    random records hardly ever satisfy them.

    **Risk to know.** General patterns are released, and also apply to people who are not in the data. With
    categories and bounds from the data (``domain`` data), strata found in the data, or an ε chosen from the
    data there is no guarantee.

    **Ties, missing, weights.** A missing value is a category of its own, and protected like the others; it is
    drawn only where it is not rare. Columns that are not chosen are empty in the release, because no original
    record belongs to a synthetic one. Sampling weights are not used, and are 1 in the release.

    **Cost.** :math:`O(d^2 n)` in each of up to :math:`8 d` rounds for :math:`d` columns, and 13 µs for each
    cell that is counted; 27,253 records of 10 columns take about six seconds and 20,000 of 30 columns a
    minute and a half, with a tree one or two seconds. Rules add the time of two fits.

    Examples
    --------
    >>> columns = [Column(name, Kind.ORDINAL, order=(0, 1)) for name in "ab"]
    >>> table = Table(pl.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500}), Schema(columns)).aimed_at("ab")
    >>> release = PrivateMarginals(epsilon=10).apply(table, Run(seed=1))
    >>> release.synthetic, release.table.frame.corr()["a"][1] > 0.9
    (True, True)
    """

    name = "private-marginals"
    vetted = "proved: proofs/budgets.md"
    synonyms = ("differentially private synthetic data",)
    title = "Private marginals"
    analyst_note = (
        "Records are synthetic, from noisy counts of a few columns at a time: other relations are lost, "
        "small counts are mostly noise, and one copy understates the uncertainty."
    )
    family = "differential privacy"
    nature = "synthetic"
    kinds = frozenset({Kind.CONTINUOUS, Kind.ORDINAL, Kind.NOMINAL})
    references = ("mckenna2022", "mckenna2021", "mckenna2019", "canonne2020")
    cost = "n"
    gives = Gives(suppressed=True, other_records=True)

    choice: Literal["tree", "adaptive"] = param(
        "adaptive",
        "Which columns are counted together.",
        choices={
            "tree": "Pairs that connect all columns in a tree (MST).",
            "adaptive": "Round by round those that the model predicts worst (AIM).",
        },
        synonyms={"MST": "tree", "AIM": "adaptive"},
        hint="a tree is faster, and enough for few columns or a small ε",
        label="Choice of counts",
    )
    ways: int = param(
        2,
        "Largest number of columns counted together.",
        ge=2,
        le=3,
        when="choice=adaptive",
        label="Columns at once",
    )
    cells: int = param(
        200_000, "Most cells of the model, over all its cliques.", ge=1_000, le=50_000_000, log=True,
        hint="more keeps more relations, and takes longer", when="choice=adaptive", advanced=True,
        label="Cells of the model",
    )  # fmt: skip
    delta: float = param(
        1e-6, "Probability with which the guarantee may fail.", ge=1e-15, le=0.1, symbol="δ", log=True,
        hint="well below 1 / (number of records)",
    )  # fmt: skip
    bins: int = param(
        100,
        (
            "Largest number of intervals of a numeric range, of equal width; values are drawn uniformly "
            "within one."
        ),
        ge=2,
        le=2_000,
        hint="a range of at most this many whole numbers is used value by value",
        advanced=True,
    )

    def protect(self, table: Table, run: Run) -> Release:
        """Count columns with noise, choose what to count together, fit the model, and draw."""
        rho, names = rho_of_epsilon(self.epsilon, self.delta), table.chosen
        columns = [CategoryCodes.of(table, name, self, run) for name in names]
        counts = PrivateCounts(
            [each.codes for each in columns],
            [each.size for each in columns],
            self.records,
            run.ticker(f"{self.title}: noise"),
        )
        alone = _SINGLES * rho if len(names) > 1 else rho
        singles = counts.measure_tables([(place,) for place in range(len(names))], rho=alone)
        rules = _rules_of(table)
        zeros = _zeros(rules, columns, table)
        places = [_merge_categories(each, zeros) for each in singles]
        parts = [_split_shares(own, each.counts) for own, each in zip(places, singles, strict=True)]
        counts = counts.merge_categories(places)
        _require_countable(self.name, names, counts.sizes)
        few = [each.merge_categories(own) for each, own in zip(singles, places, strict=True)]
        model = self._model(counts, few, rho - alone, merge_zeros(zeros, parts), run)
        made, notes = _MarginalSampler(table, columns, parts, model, rules).draw(round(model.total))
        if rules:
            kinds = [kinds_of(model.zeros, place, size) for place, size in enumerate(counts.sizes)]
            notes = (*notes, *_columns_changed_by_rules(model, kinds, names, run))
        release = replace(Release.of(made, notes=notes), origin=Origin.synthetic())
        return self.with_budget(release, table, counts.spending(), delta=self.delta)

    def _model(
        self, counts: PrivateCounts, singles: Sequence[NoisyCounts], rho: float, zeros: Zeros, run: Run
    ) -> CountModel:
        """The model of the noisy counts, after what is left of the budget was spent on it."""
        sums = [float(each.counts.sum()) for each in singles]
        total = max(1.0, float(np.average(sums, weights=[1 / each.counts.size for each in singles])))
        if self.choice == "tree" or len(singles) == 1:
            return by_tree(counts, singles, total, rho, run, most_cells=self.cells, zeros=zeros)
        return fit_adaptively(
            counts, singles, total, rho, run, most_cells=self.cells, ways=self.ways, zeros=zeros
        )


@dataclass(frozen=True)
class _MarginalSampler:
    """New records of a model: ``parts`` say how categories that were taken as one part again.

    Nothing here is of the data but what the noise left. No seed of ours is used either: an intruder who knew
    it and all data but one person's could recognise the data by the draws.
    """

    table: Table
    columns: Sequence[CategoryCodes]
    parts: Sequence[Floats]
    model: CountModel
    rules: Sequence[Rule]

    def draw(self, records: int) -> tuple[Table, tuple[str, ...]]:
        """So many records, all of which keep the rules, and what must be said of them."""
        rng, empty = _opendp.generator(), others(self.table)
        frame, n_taken = self._replace_rule_breakers(*self._draw_records(records, rng), rng)
        notes = [f"empty, because synthetic records belong to no person: {quoted(empty)}"] if empty else []
        if n_taken:
            notes.append(f"{n_taken} records are copies of synthetic ones, as no draw satisfied the rules")
        made = replace(self.table, frame=frame)
        return made.take(rng.permutation(len(made))), tuple(notes)

    def _draw_records(self, records: int, rng: np.random.Generator) -> tuple[pl.DataFrame, Ints]:
        """Records, and their codes [column, record]."""
        made: dict[str, pl.Series] = {}
        codes = np.empty((len(self.columns), records), dtype=np.int64)
        drawn = self.model.draw(records, rng)
        for place, (name, column) in enumerate(zip(self.table.chosen, self.columns, strict=True)):
            codes[place] = draw_evenly(self.parts[place], drawn[place], rng)
            made[name] = column.series(codes[place], self.table, name, rng)
        return _frame(self.table, made, records), codes

    def _replace_rule_breakers(
        self, frame: pl.DataFrame, codes: Ints, rng: np.random.Generator
    ) -> tuple[pl.DataFrame, int]:
        """Put others of the same group in the place of records that break a rule; also how many are copies.

        A group is who has the same in one column of the rule, that of which most rules speak: so no group
        gains or loses by the rules.
        """
        first = self._first_broken_rule(frame)
        anchors = np.array([*(self._anchor(rule) for rule in self.rules), 0])[first]
        for _ in range(_MOST_ROUNDS):
            if not (first >= 0).any():
                return frame, 0
            more, new = self._draw_records(max(len(frame), _MIN_REDRAWN), rng)
            fine = self._first_broken_rule(more) < 0
            for column in np.unique(anchors[first >= 0]):
                wanting = np.flatnonzero((first >= 0) & (anchors == column))
                own, other = _partners(codes[column, wanting], new[column, fine])
                places, taken = wanting[own], np.flatnonzero(fine)[other]
                frame = _with_rows(frame, places, more, taken)
                codes[:, places], first[places], fine[taken] = new[:, taken], -1, False
        return self._copy_nearest(frame, codes, first, anchors, rng)

    def _copy_nearest(
        self, frame: pl.DataFrame, codes: Ints, first: Ints, anchors: Ints, rng: np.random.Generator
    ) -> tuple[pl.DataFrame, int]:
        """Put copies of the records nearest in the kept column in the place of those that break a rule."""
        fine, wrong = np.flatnonzero(first < 0), np.flatnonzero(first >= 0)
        if not len(fine) and len(wrong):
            texts = quoted(self.rules[each].text for each in np.unique(first))
            raise DataError(
                f"no drawn record satisfies the rules {texts}",
                hint="rules may contradict each other or the noisy counts: leave one out, or raise `epsilon`",
            )
        for column in np.unique(anchors[wrong]):
            wanting = wrong[anchors[wrong] == column]
            mixed = fine[np.argsort(codes[column, fine], kind="stable")]
            taken = mixed[_nearest(codes[column, mixed], codes[column, wanting], rng)]
            frame = _with_rows(frame, wanting, frame, taken)
        return frame, len(wrong)

    def _first_broken_rule(self, frame: pl.DataFrame) -> Ints:
        """Which rule each record breaks first, −1 if none."""
        first, made = np.full(len(frame), -1, dtype=np.int64), replace(self.table, frame=frame)
        for place in range(len(self.rules) - 1, -1, -1):
            rule = self.rules[place]
            first[rule.breaks(without_missing(made, rule.columns)).to_numpy()] = place
        return first

    def _anchor(self, rule: Rule) -> int:
        """The column of a rule that is kept: that of which most rules speak, or of most categories."""
        names = self.table.chosen
        spoken = {name: sum(name in each.columns for each in self.rules) for name in rule.columns}
        best = max(rule.columns, key=lambda name: (spoken[name], self.columns[names.index(name)].size))
        return names.index(best)


def _partners(wanted: Ints, offered: Ints) -> tuple[Ints, Ints]:
    """Places of equal codes in both, each used once."""
    size = len(wanted) + len(offered)
    keys = [codes * size + occurrences(codes) for codes in (wanted, offered)]
    _, own, other = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return own, other


def _nearest(ordered: Ints, wanted: Ints, rng: np.random.Generator) -> Ints:
    """The place of any of the codes nearest to each that is wanted."""
    above = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    below = np.maximum(above - 1, 0)
    code = ordered[np.where(wanted - ordered[below] < ordered[above] - wanted, below, above)]
    first, last = np.searchsorted(ordered, code), np.searchsorted(ordered, code, side="right")
    return rng.integers(first, last)


def _with_rows(frame: pl.DataFrame, places: Ints, other: pl.DataFrame, rows: Ints) -> pl.DataFrame:
    """A table with rows of another in some places."""
    taken = np.arange(len(frame))
    taken[places] = len(frame) + rows
    return pl.concat([frame, other], how="vertical_relaxed")[taken]


def _frame(table: Table, made: Mapping[str, pl.Series], records: int) -> pl.DataFrame:
    """All columns in their order: those that are not made are empty, but for weights, which are 1."""
    weight = table.schema.only_role(Role.WEIGHT)
    rest = {
        name: pl.repeat(1 if name == weight else None, records, dtype=dtype, eager=True).alias(name)
        for name, dtype in table.frame.schema.items()
        if name not in made
    }
    return pl.DataFrame([made[name] if name in made else rest[name] for name in table.names])


def _rules_of(table: Table) -> list[Rule]:
    """The rules that draws can keep: of drawn columns alone, but for totals, which are left to repair."""
    totals = {rule.text for rule, _, _ in sums_in_order(table)}
    return [
        rule
        for rule in table.schema.rules
        if rule.text not in totals and set(rule.columns) <= set(table.chosen)
    ]


def _zeros(rules: Sequence[Rule], columns: Sequence[CategoryCodes], table: Table) -> dict[Columns, Flags]:
    """The combinations of codes that rules forbid."""
    limits = sorted({number for rule in rules for number in rule.numbers})
    points = [each.points(table, name, limits) for each, name in zip(columns, table.chosen, strict=True)]
    return zeros_of(rules, points)


def _merge_categories(single: NoisyCounts, zeros: Zeros) -> Ints:
    """New codes of categories: those whose count may be nothing are one, as far as rules treat them alike.

    Rare missing ones are taken with the rarest value, unless rules need them: who has no holes gets none.
    """
    counts, noise, (column,) = single.counts, single.deviation, single.columns
    rare = counts < _RARE_DEVIATIONS * noise
    rare[0] = len(counts) > 1 and counts[0] < _MISSING_DEVIATIONS * noise and not must_lack(zeros, column)
    kinds = kinds_of(zeros, column, len(counts))
    keys = np.where(rare, len(counts) + kinds, np.arange(len(counts)))
    if rare[0]:
        keys[0] = keys[1 + counts[1:].argmin()]
    return np.unique(keys, return_inverse=True)[1].ravel()


def _split_shares(places: Ints, counts: Floats) -> Floats:
    """How categories that were taken as one part again [merged, own]: by noisy counts, never into missing."""
    chances = np.zeros((int(places.max()) + 1, len(places)))
    chances[places, np.arange(len(places))] = np.maximum(counts, 0) + 1.0
    if (places == places[0]).sum() > 1:
        chances[places[0], 0] = 0.0
    return chances


def _columns_changed_by_rules(
    model: CountModel, kinds: Sequence[Ints], names: Sequence[str], run: Run
) -> list[str]:
    """Name the columns in which rules moved a share by a point: of a value, or of what they treat alike."""
    free = CountModel(model.sizes, model.total)  # from nothing: potentials of what cannot be go anywhere
    free.fit(model.known, STEPS, run.check)
    changed = []
    for place, name in enumerate(names):
        change = model.marginal((place,)) - free.marginal((place,))
        most = max(np.abs(change).max(), np.abs(np.bincount(kinds[place], weights=change)).max())
        if most > _TOLD:
            changed.append(f"`{name}` ({100 * most:.1f} points)")
    return [f"shares of values that the rules changed: {', '.join(changed)}"] if changed else []


def _require_countable(method: str, names: Sequence[str], sizes: Sequence[int]) -> None:
    large = sorted(range(len(sizes)), key=lambda place: -sizes[place])[:2]
    if len(large) > 1 and math.prod(sizes[place] for place in large) > _MOST_CELLS:
        raise RefusedError(
            f"{method} must be given columns of at most {_MOST_CELLS:,} combinations of two, got: more in "
            f"{quoted(names[place] for place in large)}",
            hint="recode them first, or leave one out",
        )
