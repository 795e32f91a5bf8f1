"""What a recoding costs: objectives of the search, each with a bound that no suppression can undercut.

The losses of cells are asked of the very measures that anyone can run on a release, so that what is minimised
is what is measured; those of classes follow the definitions of the measures of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Measure
from sfumato.core.params import Resource
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import column_codes, sums_of
from sfumato.data.generalised.levels import GeneralisationLattice, KeyLevels
from sfumato.data.generalised.suppressing import to_wildcard
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.kernels.arrays import Flags, Floats, Ints

ObjectiveName = Literal[
    "loss",
    "granularity",
    "precision",
    "non-uniform-entropy",
    "discernibility",
    "average-class-size",
    "classification",
    "payout",
]
OBJECTIVES: dict[str, str] = {
    "loss": "The share of the leaves of its hierarchy that a label covers; a suppressed one covers all.",
    "granularity": "How much of the domain of its key a cell spans (generalised-information-loss).",
    "precision": "How far a cell has climbed in its hierarchy (precision-loss).",
    "non-uniform-entropy": "The information lost about the value of a cell (non-uniform-entropy).",
    "discernibility": "The number of pairs of records with equal keys; a suppressed record equals all.",
    "average-class-size": "The average size of an equivalence class; suppressed records form one class.",
    "classification": "The number of records suppressed or not of their class's most frequent target.",
    "payout": "What the publisher loses of the benefit, by information and by attacks (publisher-payout).",
}
Aggregate = Literal["geometric", "arithmetic"]

#: The measures whose losses of cells are minimised.
MEASURES = {
    "granularity": "generalised-information-loss",
    "precision": "precision-loss",
    "non-uniform-entropy": "non-uniform-entropy",
}


@dataclass(frozen=True, eq=False)
class NodeClasses:
    """The classes of a node: a combination of values that stands for each, and how many are in it."""

    levels: Ints  # [keys]
    firsts: Ints  # [classes] combinations
    counts: Ints  # [classes] records
    weights: Floats  # [classes]
    tallies: tuple[Tally, ...] = ()  # what stands in each class, for objectives that ask


@dataclass(frozen=True, eq=False)
class Tally:
    """How much of each value of a column stands in each class; missing values are left out."""

    classes: Ints  # [entries] ascending
    values: Ints
    amounts: Floats
    n_values: int

    @classmethod
    def of(cls, table: Table, name: str, of_record: Ints) -> Tally:
        """Add up the weights of the records of each class and value."""
        coding = column_codes(table, name)
        distinct, values = np.unique(coding.codes, return_inverse=True)
        known = coding.codes > 0
        weights = np.ones(len(table)) if table.weights is None else table.weights
        pairs = of_record[known] * len(distinct) + values[known]
        return cls._of_pairs(pairs, weights[known], int(of_record.max(initial=-1)) + 1, len(distinct))

    @classmethod
    def _of_pairs(cls, pairs: Ints, amounts: Floats, n_classes: int, n_values: int) -> Tally:
        found, sums = sums_of(pairs, amounts, n_classes * n_values)
        return cls(found // n_values, found % n_values, sums, n_values)

    def join_classes(self, of_part: Ints, n_classes: int) -> Tally:
        """The tally of coarser classes."""
        pairs = of_part[self.classes] * self.n_values + self.values
        return self._of_pairs(pairs, self.amounts, n_classes, self.n_values)

    def beside_the_most(self, n_classes: int) -> tuple[Floats, Floats]:
        """The sum of each class, and what of it is not of its most frequent value."""
        sums = np.bincount(self.classes, self.amounts, minlength=n_classes).astype(np.float64)
        most = np.zeros(n_classes)
        np.maximum.at(most, self.classes, self.amounts)
        return sums, sums - most


@dataclass(frozen=True, eq=False)
class Objective:
    """What is minimised. Searches compare *scores*, which `value` turns into what people read.

    The score of a node is at least the sum of the ``terms`` of its levels, and at least `lower_bound`; both
    rise with every level, whatever is suppressed.
    """

    terms: Floats  # [keys, levels]

    def value(self, score: float) -> float:
        """The value of a score."""
        return score

    def lower_bound(self, classes: NodeClasses) -> float:  # noqa: ARG002  — not all look at the classes
        """What no node above this one can undercut, beyond the terms."""
        return -np.inf

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The score of a node whose failing classes are suppressed."""
        raise NotImplementedError  # abstract


# Losses of cells ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellLoss(Objective):
    """A mean over keys of mean losses of cells, arithmetic or geometric; a suppressed cell has the most."""

    lattice: GeneralisationLattice
    means: Floats  # [keys, levels] the loss of a key at a level with nobody suppressed
    gains: Floats  # by key, level and code, laid out as the labels: how much more a suppressed cell costs
    shares: Floats  # [keys] how much a key counts; they sum to 1
    totals: Floats  # [keys] the weight of the cells that have a value
    geometric: bool

    def value(self, score: float) -> float:
        """The mean of the keys."""
        return float(np.expm1(score)) if self.geometric else score

    def losses(self, classes: NodeClasses, failing: Flags) -> Floats:
        """The loss of each key."""
        keys = np.arange(len(self.shares))
        sums = kernels.lattice.sum_over_classes(
            self.lattice.leaves,
            self.gains,
            self.lattice.starts[keys, classes.levels],
            (classes.firsts, classes.weights, failing),
        )
        losses: Floats = self.means[keys, classes.levels] + sums / self.totals
        return losses

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The mean of the losses of the keys, or of their logarithms."""
        losses = self.losses(classes, failing)
        return float(((np.log1p(losses) if self.geometric else losses) * self.shares).sum())


def _cell_loss(
    lattice: GeneralisationLattice,
    costs: list[list[Floats]],
    most: list[Floats],
    *,
    geometric: bool = False,
    by_information: bool = False,
    importance: Floats | None = None,
) -> CellLoss:
    """Make the objective from the loss of each code at each level, and when it is suppressed."""
    n_keys, means, least = len(costs), np.zeros(lattice.starts.shape), np.zeros(lattice.starts.shape)
    totals, held = np.ones(n_keys), np.zeros(n_keys)
    known = np.zeros(n_keys, dtype=np.bool_)
    for place, key in enumerate(lattice.keys):
        amounts = _amounts(lattice, place, key)
        known[place] = amounts.any()
        totals[place] = amounts.sum() or 1.0
        held[place] = most[place] @ amounts
        for level, cost in enumerate(costs[place]):
            means[place, level] = (cost @ amounts) / totals[place]
            least[place, level] = (np.minimum(cost, most[place]) @ amounts) / totals[place]
    wanted = known if importance is None else known * importance
    shares = wanted / (float(wanted.sum()) or 1.0)
    if by_information:  # keys count by what they hold
        shares = totals / (float(held.sum()) or np.inf)
    terms = (np.log1p(least) if geometric else least) * shares[:, None]
    for place, key in enumerate(lattice.keys):  # a level must not cost less than one below it
        rising = np.minimum.accumulate(terms[place, : key.height][::-1])[::-1]
        terms[place, : key.height] = rising
    gains = np.concatenate([most[place] - cost for place, own in enumerate(costs) for cost in own])
    return CellLoss(terms, lattice, means, gains, shares, totals, geometric)


def hierarchy_loss(
    lattice: GeneralisationLattice,
    aggregate: Aggregate,
    importance: Floats | None = None,
    balance: float = 0.5,
) -> CellLoss:
    """The share of the hierarchy's leaves that a label covers, 1 if suppressed, each as the balance says."""
    generalised, suppressed = min(2 * (1 - balance), 1.0), min(2 * balance, 1.0)
    costs = [[generalised * width for width in key.widths] for key in lattice.keys]
    most = [np.append(0.0, np.full(len(key.leaves) - 1, suppressed)) for key in lattice.keys]
    return _cell_loss(lattice, costs, most, geometric=aggregate == "geometric", importance=importance)


@dataclass(frozen=True)
class Prices:
    """What records are worth to the publisher and to the adversary of [wan2015]."""

    benefit: float
    loss: float
    gain: float
    price: float


@dataclass(frozen=True, eq=False)
class PayoutObjective(CellLoss):
    """The information lost, and what re-identified people cost, as shares of the benefit.

    Nobody is found less often than never, so nothing above a node undercuts the information it loses.
    """

    prices: Prices
    n: int
    population: KnownPopulation | None = None  # None: the adversary knows who is in the table

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The loss of cells and the damage by attacks that pay; the suppressed are one class."""
        counts = np.append(classes.counts[~failing], classes.counts[failing].sum()).astype(np.float64)
        chances = 1.0 / np.maximum(counts, 1.0)
        if self.population is not None:
            chances = self.population.chances(self.lattice, classes, failing)
        attacked = self.prices.gain * chances > self.prices.price
        found = float(counts[attacked] @ chances[attacked])
        return super().score(classes, failing) + self.prices.loss / self.prices.benefit * found / self.n


@dataclass(frozen=True, eq=False)
class KnownPopulation:
    """The people among whom an adversary looks, who does not know who is in the table."""

    table: Table  # the original, its keys alone
    name: str
    people: Table
    run: Run

    @classmethod
    def of(cls, lattice: GeneralisationLattice, table: Table, name: Resource, run: Run) -> KnownPopulation:
        """Look at the resource once: what journalist-risk cannot count, it refuses."""
        columns = tuple(replace(key.column, role=Role.KEY) for key in lattice.keys)
        keys = Table(table.select([each.name for each in columns]).frame, Schema(columns))
        made = cls(keys, str(name), run.resource(name), run)
        if reason := made._measure.refuses(made._evidence(keys)):
            raise RefusedError(reason)
        return made

    @property
    def _measure(self) -> Measure:
        return registry.measure("journalist-risk").from_dict({"population": self.name})

    def _evidence(self, shown: Table, rows: Ints | None = None) -> Evidence:
        original = self.table if rows is None else self.table.take(rows)
        return Evidence(original, Release.record_by_record(shown), resources={self.name: self.people})

    def chances(self, lattice: GeneralisationLattice, classes: NodeClasses, failing: Flags) -> Floats:
        """The chance to find a record of each class that does not fail, and of the suppressed.

        The measure is asked of one record of each class as the node shows it, and of one with wildcards.
        """
        rows = np.append(lattice.rows[classes.firsts[~failing]], 0)
        shown, is_last = self.table.take(rows), np.arange(len(rows)) == len(rows) - 1
        for key, level in zip(lattice.keys, classes.levels.tolist(), strict=True):
            shown = to_wildcard(key.take(rows).write(shown, level), key.column.name, is_last)
        chances = self._measure.measure(self._evidence(shown, rows), self.run.silent()).by_record
        assert chances is not None  # every record shown is of the original
        return chances


def payout(
    lattice: GeneralisationLattice, table: Table, prices: Prices, population: Resource | None, run: Run
) -> PayoutObjective:
    """What publisher-payout says of a node, against who knows the people of the table or of a population."""
    lost = measured_loss(lattice, table, MEASURES["non-uniform-entropy"], run)
    known = None if population is None else KnownPopulation.of(lattice, table, population, run)
    return PayoutObjective(**vars(lost), prices=prices, n=len(table), population=known)


def measured_loss(lattice: GeneralisationLattice, table: Table, measure: str, run: Run) -> CellLoss:
    """What a measure says of each value at each level."""
    costs, most = [], []
    for place, key in enumerate(lattice.keys):
        found = _loss_by_level(table, key, _amounts(lattice, place, key), measure, run)
        costs.append(found[:-1])
        most.append(found[-1])
    return _cell_loss(lattice, costs, most, by_information=measure == "non-uniform-entropy")


def _amounts(lattice: GeneralisationLattice, place: int, key: KeyLevels) -> Floats:
    """The weight of each code of a key; what was missing before cannot be lost, so it has none."""
    amounts = np.bincount(lattice.leaves[:, place], lattice.weights, minlength=len(key.leaves))
    amounts[0] = 0.0
    return amounts.astype(np.float64)


def _loss_by_level(table: Table, key: KeyLevels, amounts: Floats, measure: str, run: Run) -> list[Floats]:
    """The loss of each code at each level, and suppressed; 0 where the value is missing.

    The measure is asked of a small table: each distinct value once for each level, and once suppressed.
    """
    n, name = len(key.leaves) - 1, key.column.name
    if not n:
        return [np.zeros(1)] * (key.height + 1)
    rows = np.full(n + 1, -1, dtype=np.int64)
    rows[key.codes[::-1]] = np.arange(len(key.codes) - 1, -1, -1)
    times = key.height + 1
    weight = Column(f"weight of {name}", Kind.CONTINUOUS, Role.WEIGHT)
    frame = pl.DataFrame(
        [
            table.frame[name][pl.Series(np.tile(rows[1:], times), dtype=pl.UInt32)],
            pl.Series(weight.name, np.tile(amounts[1:], times)),
        ]
    )
    small = Table(frame, Schema((replace(key.column, role=Role.KEY, hierarchy=name), weight)))
    tiled = replace(key, codes=np.tile(np.arange(1, n + 1, dtype=np.int32), times))
    levels = np.repeat([*range(key.height), 0], n)
    suppressed = np.arange(len(small)) >= key.height * n
    released = to_wildcard(tiled.write(small, levels), name, suppressed)
    evidence = Evidence(small, Release.record_by_record(released))
    own: dict[str, Any] = {name: key.hierarchy}
    evidence = replace(evidence, resources=own)
    score = registry.measure(measure)().score(evidence, run.silent())
    found = np.zeros(len(small)) if score.by_record is None else score.by_record
    return [np.append(0.0, part) for part in found.reshape(times, n)]


# Losses of classes --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DiscernibilityObjective(Objective):
    """The number of pairs of records with equal keys; a suppressed record equals all."""

    n: int

    def lower_bound(self, classes: NodeClasses) -> float:
        """The pairs with nobody suppressed: joining classes adds to them."""
        return self.score(classes, np.zeros(len(classes.counts), dtype=np.bool_))

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The share of the pairs."""
        sizes = classes.counts[~failing].astype(np.float64)
        suppressed = float(classes.counts[failing].sum())
        return float((sizes * sizes).sum() + suppressed * self.n) / float(self.n) ** 2


@dataclass(frozen=True, eq=False)
class AverageClassSizeObjective(Objective):
    """How many records there are to a class; the suppressed ones are one, as in ARX."""

    n: int

    def lower_bound(self, classes: NodeClasses) -> float:
        """The mean size with nobody suppressed: joining leaves fewer classes, and so does suppressing."""
        return self.n / max(len(classes.counts), 1)

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The records divided by the classes."""
        n_failing = int(failing.sum())
        return self.n / max(len(classes.counts) - n_failing + (n_failing > 0), 1)


@dataclass(frozen=True, eq=False)
class ClassificationObjective(Objective):
    """How many records are not of the most frequent target of their class, or suppressed."""

    totals: tuple[float, ...] = field(default=())

    def lower_bound(self, classes: NodeClasses) -> float:
        """The minorities with nobody suppressed: joining classes adds to them."""
        return self.score(classes, np.zeros(len(classes.counts), dtype=np.bool_))

    def score(self, classes: NodeClasses, failing: Flags) -> float:
        """The mean over the targets."""
        shares = []
        for tally, total in zip(classes.tallies, self.totals, strict=True):
            if total > 0:
                sums, beside = tally.beside_the_most(len(classes.counts))
                shares.append(float(np.where(failing, sums, beside).sum()) / total)
        return float(np.mean(shares)) if shares else 0.0
