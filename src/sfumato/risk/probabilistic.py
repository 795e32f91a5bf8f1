"""Risk by probabilistic linkage: how much a pair agrees is weighed by how seldom strangers agree as much."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import why_pairs_unknown
from sfumato.core.measure import Counting, Measure, Score, Status, Tells
from sfumato.core.params import Columns, param
from sfumato.core.run import Run
from sfumato.data.persons import best_by_person
from sfumato.data.schema import COMPARABLE
from sfumato.kernels.arrays import Floats, Ints
from sfumato.risk._agreement import (
    ColumnComparison,
    Differences,
    Pairs,
    cells_of,
    compare_pairs,
    comparisons_of,
    n_pairs,
    nearest_pairs,
    number_equal,
)
from sfumato.risk._spaces import (
    LinkageSpace,
    known_to_intruder,
    space_of,
    unknown_block,
    why_generalised,
    why_incomparable,
)
from sfumato.risk.linkage import expected_links

#: Weights that differ by less are equal: rounding could not tell them apart.
DECIMALS = 9

#: The estimates of two rounds differ by less: there is nothing more to learn.
SETTLED = 1e-3

#: Rounds of estimation at most.
ROUNDS = 40

#: Bits by which the nearest and the farthest level of a column differ before anything is learnt.
STEEPNESS = 10.0

#: Pairs of strangers that the estimate of matches starts from, so that nothing is held to be impossible.
STRANGERS = 1.0


class ProbabilisticLinkage(Measure):
    r"""Share of records linked to their own released record by the greatest match weight.

    Each column of a pair of records is on one of some levels: both missing, equal, ever farther apart, one
    missing. The weight of a pair is what its levels :math:`\gamma_c` tell for its being of one person,

    .. math::

        w = \sum_c \log_2 \frac{m_c(\gamma_c)}{u_c(\gamma_c)},

    where :math:`m_c` is the probability of a level for two records of one person and :math:`u_c` for two
    drawn at random. The intruder estimates both from the two files alone, and links each of their records to
    the released record of the greatest weight, drawing among equals; or, with ``one_to_one``, all records
    at once, by the links of greatest total weight that use no released record twice.

    :math:`u_c` is counted over all pairs. :math:`m_c` is estimated in rounds of expectation and maximisation:
    with :math:`r_{ij} = 2^{w_{ij}}` a pair is held to be of one person with the probability that each is
    the other's,

    .. math::

        p_{ij} = \frac{r_{ij}}{\sum_k r_{ik}} \cdot \frac{r_{ij}}{\sum_k r_{kj}},

    and :math:`m_c` becomes the share of each level among the pairs, counted by :math:`p_{ij}`, such that the
    weight never rises with the distance. The usual estimate, by which a pair is a match whatever the others
    are, takes strangers who agree in correlated columns for matches, and links far fewer.

    The pairs and their levels come from splink (``pip install 'sfumato[linkage]'``), unless there are more
    than ``pairs``.

    See Also
    --------
    DistanceLinkage : links by distance; no estimate, so nothing can go wrong with one.
    DirectMatching : links by equal values only.

    Notes
    -----
    **How to read it.** 0 is safe; 1 means every record is found. ``baseline`` is what guessing finds.
    ``links_believed`` is how many links the intruder, who does not know the truth, holds to be right.
    Columns that were protected more count less by themselves, so it can find more than `DistanceLinkage`
    where columns were treated differently; it finds less where the estimate is misled, as by
    microaggregation, of which it knows only the groups nearest to their centres. Look at both. Numbers are
    compared by their difference, or with ``differences`` *ranks* by that of their ranks, which is the better
    attack on swapped values and on noise in proportion to the value.

    **Doubt.** *ok* if all pairs were compared. *approximate* if only pairs were that agree in ``block``, or,
    where there are more than ``pairs``, only the nearest of each record, half of them by values and half by
    ranks: an intruder with more patience may find more. ``true_pairs_compared`` is the share of true pairs
    that were compared, ``value_if_lost_pairs_were_found`` what the value would be if all others came true.

    **Missing.** That both values are missing is a level of its own, and so is that one is: a pattern of
    missing values that survives gives people away.

    **Units.** Where a column tells whose record it is, a link to any record of the same person is right, and
    persons are counted, each by the record that is linked best. An intruder who knows who is in the file
    (``membership``) does not try the records of others; one who does not tries and fails.

    **Cost.** In proportion to the pairs compared times the columns: about 5 s for a million pairs of 13
    columns.

    Examples
    --------
    >>> schema = Schema((Column("sex", Kind.NOMINAL), Column("age", Kind.CONTINUOUS)))
    >>> people = pl.DataFrame({"sex": ["f", "m", "f", "m"], "age": [31, 44, 58, 67]})
    >>> released = people.with_columns(age=pl.Series([30, 45, 60, 65]))
    >>> release = Release.of(Table(released, schema), source_rows=np.arange(4))
    >>> evidence = Evidence(Table(people, schema), release)
    >>> ProbabilisticLinkage().score(evidence, Run(seed=1)).value
    1.0
    """

    name = "probabilistic-linkage"
    vetted = "brute-forced: unit/risk/test_probabilistic.py::test_links_are_those_of_the_naive_computation"
    synonyms = ("record linkage", "Fellegi-Sunter", "probabilistic-based record linkage")
    family = "linkage"
    title = "Probabilistic record linkage"
    counts = Counting(intruder_records_only=True, compares_kept_relations=True)
    tells = Tells(intruder="weighs the agreements and disagreements of all columns")
    aspect = "risk"
    threat = "linkability"
    better = "low"
    bounds = (0.0, 1.0)
    kinds = COMPARABLE
    references = ("fellegi1969", "carvalho2023", "herzog2007")
    cost = "n²"

    differences: Differences = param(
        "values",
        "By what two numbers are compared.",
        choices={
            "values": "The difference of the numbers.",
            "ranks": "The difference of their ranks.",
        },
    )
    one_to_one: bool = param(False, "Whether each released record is linked at most once.")
    threshold: float | None = param(
        None,
        "Match weight below which a record is not linked; by default every record is.",
        ge=-1000,
        le=1000,
        unit="bits",
    )
    block: Columns = param(Columns(), "Columns in which records must agree to be compared.")
    pairs: int = param(
        3_000_000,
        "Largest number of pairs compared.",
        ge=1000,
        le=1_000_000_000,
        log=True,
        hint="more pairs take longer and find more where not all could be compared",
    )

    def columns(self, evidence: Evidence) -> tuple[str, ...]:
        """The columns that the intruder knows and their table has."""
        return known_to_intruder(evidence, super().columns(evidence))

    def refuses(self, evidence: Evidence) -> str | None:
        """Refuse a release whose records cannot be told to be right or wrong, or not be compared."""
        return (
            why_incomparable(self.name, evidence, self.kinds)
            or super().refuses(evidence)
            or why_pairs_unknown(self.name, evidence)
            or why_generalised(self.name, self.columns(evidence), evidence.known_table, evidence.protected)
            or unknown_block(self.name, evidence, self.block, self.columns(evidence))
        )

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Compare pairs, weigh them, and link."""
        assert evidence.protected is not None  # `refuses` saw to it
        names = self.columns(evidence)
        space = space_of(evidence, (), run, metric="hamming", scale="range")
        if not len(space.rows):
            return Score.not_estimable(space.why_empty)
        comparisons = comparisons_of(
            evidence.known_table, evidence.protected, names, space.rows, self.differences
        )
        space, comparisons = _in_order_of_values(space, comparisons)
        blocked = [names.index(name) for name in evidence.original.schema.resolve(self.block)]
        cells = cells_of(comparisons, blocked)
        if n_pairs(cells) <= self.pairs:
            found = compare_pairs(comparisons, cells, run, self.title)
        else:
            found = nearest_pairs(comparisons, cells, self.pairs, run)
        model = estimate(comparisons, found, run)
        weights = np.round(model.weights(found), DECIMALS)
        links = _Links(
            space, comparisons, found, weights, -np.inf if self.threshold is None else self.threshold
        )
        rng = run.rng(self.name, "matching")
        chances = links.one_to_one(rng) if self.one_to_one else links.of_greatest_weight()
        details = {
            "columns": len(names),
            "columns_left_out": len(evidence.known_columns) - len(names),
            "records": len(space.rows),
            "released": len(space.released_rows),
            "rounds": model.rounds,
            "links_believed": model.believed,
            "ties_shared": int(((chances > 0) & (chances < 1)).sum()),
        }
        return _with_doubt(expected_links(evidence, space, chances, details), space, found, chances)


def _with_doubt(score: Score, space: LinkageSpace, found: Pairs, chances: Floats) -> Score:
    """Say how many pairs were compared, and what it means if not all were."""
    known_rows, released_rows = _true_pairs(space)
    n_theirs = len(space.released_rows)
    compared = np.isin(
        known_rows * n_theirs + released_rows, found.known_rows * n_theirs + found.released_rows
    )
    lost = 1 - float(compared.mean()) if len(compared) else 0.0
    details = {**score.details, "pairs": len(found.known_rows), "true_pairs_compared": 1 - lost}
    left_out = len(space.rows) * n_theirs - len(found.known_rows)
    if not left_out:
        return replace(score, details=details)
    hopeful = chances.copy()
    hopeful[known_rows[~compared]] = 1.0
    details["value_if_lost_pairs_were_found"] = float(best_by_person(space.persons, hopeful).mean())
    share = 100 * left_out / (len(space.rows) * n_theirs)
    return replace(
        score,
        status=Status.APPROXIMATE,
        reason=(
            f"{share:.3g} % of the pairs were not compared, {100 * lost:.3g} % of the true ones among them; "
            "an intruder who compares more pairs may find more"
        ),
        details=details,
    )


def _true_pairs(space: LinkageSpace) -> tuple[Ints, Ints]:
    """All pairs of one of mine and a released record of the same person."""
    assert space.owners is not None  # `refuses` saw to it
    held = pl.DataFrame({"person": space.persons}).with_row_index("mine")
    released = pl.DataFrame({"person": space.owners}).with_row_index("theirs")
    pairs = held.join(released.filter(pl.col("person") >= 0), on="person")
    return pairs["mine"].to_numpy().astype(np.int64), pairs["theirs"].to_numpy().astype(np.int64)


def _in_order_of_values(
    space: LinkageSpace, comparisons: list[ColumnComparison]
) -> tuple[LinkageSpace, list[ColumnComparison]]:
    """Put the released records in the order of what they say, so that the order of the file cannot matter."""
    order = np.lexsort([each.released for each in comparisons])
    assert space.owners is not None  # `refuses` saw to it
    space = replace(space, released_rows=space.released_rows[order], owners=space.owners[order], truth=None)
    return space, [replace(each, released=each.released[order]) for each in comparisons]


@dataclass(frozen=True)
class LinkageModel:
    """What the intruder has learnt: how probable each level of each column is for matches and strangers."""

    m: list[Floats]
    u: list[Floats]
    rounds: int = 0
    believed: float = 0.0  # matches that are expected to be found

    def weights(self, pairs: Pairs) -> Floats:
        """The weight of each pair, in bits."""
        total = np.zeros(len(pairs.known_rows))
        for m, u, levels in zip(self.m, self.u, pairs.levels, strict=True):
            total += np.log2(m / u)[levels]
        return total


def estimate(comparisons: list[ColumnComparison], pairs: Pairs, run: Run) -> LinkageModel:
    """Learn from the pairs alone how matches agree.

    To begin with, a level counts the less the more strangers agree as much, the same in all columns.
    """
    least = 1.0 / max(len(comparisons[0].known) * len(comparisons[0].released), 1)
    u = [_shares_of(np.maximum(each.shares(), least)) for each in comparisons]
    model = LinkageModel(
        [_shares_of(each * np.exp2(-STEEPNESS * (np.cumsum(each) - each / 2))) for each in u], u
    )
    for rounds in range(1, ROUNDS + 1):
        run.check()
        chances = _mutual(pairs, model.weights(pairs))
        m = [
            _falling(np.bincount(levels, weights=chances, minlength=len(each)) + STRANGERS * each, each)
            for each, levels in zip(u, pairs.levels, strict=True)
        ]
        moved = max(float(np.abs(new - old).max()) for new, old in zip(m, model.m, strict=True))
        model = LinkageModel(m, u, rounds, float(chances.sum()))
        if moved < SETTLED:
            break
    return model


def _falling(counts: Floats, strangers: Floats) -> Floats:
    """The shares of the levels nearest to the counts whose ratio to ``strangers`` falls with the distance.

    A missing value has no distance: the first and the last level are as they are. The ratio of level k is the
    least, over the levels i up to k, of the greatest mean over levels from i to one that is not before k.
    """
    inner = slice(1, -1)
    reached, spread = (np.append(0.0, np.cumsum(each[inner])) for each in (counts, strangers))
    first, last = np.triu_indices(len(counts) - 2)
    means = np.full((len(counts) - 2,) * 2, -np.inf)
    means[first, last] = (reached[last + 1] - reached[first]) / (spread[last + 1] - spread[first])
    greatest = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    greatest[np.tril_indices_from(greatest, -1)] = np.inf
    fitted = counts.copy()
    fitted[inner] = greatest.min(axis=0) * strangers[inner]
    return _shares_of(fitted)


def _shares_of(counts: Floats) -> Floats:
    shares: Floats = counts / counts.sum()
    return shares


def _mutual(pairs: Pairs, weights: Floats) -> Floats:
    """For each pair, the probability that each is the other's."""
    chances = np.ones(len(weights))
    for side in (pairs.known_rows, pairs.released_rows):
        greatest = np.full(int(side.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(greatest, side, weights)
        odds = np.exp2(weights - greatest[side])
        chances *= odds / np.bincount(side, weights=odds)[side]
    return chances


class _Links:
    """Weighed pairs, and who links what by them."""

    def __init__(
        self,
        space: LinkageSpace,
        comparisons: list[ColumnComparison],
        pairs: Pairs,
        weights: Floats,
        threshold: float,
    ) -> None:
        self.n_mine, self.n_theirs = len(space.rows), len(space.released_rows)
        linked = weights >= threshold
        self.known_rows, self.released_rows, self.weights = (
            pairs.known_rows[linked],
            pairs.released_rows[linked],
            weights[linked],
        )
        self.space, self.comparisons, self.threshold = space, comparisons, threshold

    def of_greatest_weight(self) -> Floats:
        """The chance that each of mine is linked rightly, drawing among those of greatest weight."""
        greatest = np.full(self.n_mine, -np.inf)
        np.maximum.at(greatest, self.known_rows, self.weights)
        best = self.weights == greatest[self.known_rows]
        known_rows, released_rows = self.known_rows[best], self.released_rows[best]
        assert self.space.owners is not None  # `refuses` saw to it
        right = self.space.persons[known_rows] == self.space.owners[released_rows]
        n_best, n_right = (
            np.bincount(each, minlength=self.n_mine) for each in (known_rows, known_rows[right])
        )
        chances: Floats = n_right / np.maximum(n_best, 1)
        return chances

    def match_one_to_one(self, rng: np.random.Generator) -> Ints:
        """The released record that each of mine is linked to, no two to one; −1 where there is none.

        Of the greatest total weight, where a record without a link counts like one at the threshold. If there
        is none: below all weights if all pairs were compared; else its own may be missing, and it counts 0.
        """
        if not len(self.weights):
            return np.full(self.n_mine, -1, dtype=np.int64)
        alone = self.threshold
        if not np.isfinite(alone):
            is_all = len(self.weights) == self.n_mine * self.n_theirs
            alone = float(self.weights.min()) - 1 if is_all else 0.0
        places = rng.permutation(self.n_theirs)  # which of several best solutions is found is chance
        # Whole numbers, so that sums are exact; above 0, since 0 is no edge.
        top = max(float(self.weights.max()), alone)
        costs = np.rint((top - np.append(self.weights, np.full(self.n_mine, alone))) * 10.0**DECIMALS) + 1
        rows = np.append(self.known_rows, np.arange(self.n_mine))
        columns = np.append(places[self.released_rows], self.n_theirs + np.arange(self.n_mine))
        shape = self.n_mine, self.n_theirs + self.n_mine
        _, linked = min_weight_full_bipartite_matching(csr_array((costs, (rows, columns)), shape=shape))
        names = np.append(np.argsort(places), np.full(self.n_mine, -1))
        found: Ints = names[linked].astype(np.int64)
        return found

    def one_to_one(self, rng: np.random.Generator) -> Floats:
        """The chance that each of mine is linked rightly if all are linked at once.

        Records that say the same may change places without a change of the total, so a link to one of them is
        a link to each of them with the same chance; and so it is for those of mine that say the same.
        """
        linked = self.match_one_to_one(rng)
        there = np.flatnonzero(linked >= 0)
        if not len(there):
            return np.zeros(self.n_mine)
        held = number_equal([each.known for each in self.comparisons], self.n_mine)
        released = number_equal([each.released for each in self.comparisons], self.n_theirs)
        # How many links go from each group of mine to each group of theirs.
        n_groups = int(released.max()) + 1
        ways, counts = np.unique(held[there] * n_groups + released[linked[there]], return_counts=True)
        known_rows, released_rows = _true_pairs(self.space)
        way = held[known_rows] * n_groups + released[released_rows]
        places = np.minimum(np.searchsorted(ways, way), len(ways) - 1)
        n_links = np.where(ways[places] == way, counts[places], 0)
        shares = (
            n_links / np.bincount(held)[held[known_rows]] / np.bincount(released)[released[released_rows]]
        )
        return np.bincount(known_rows, weights=shares, minlength=self.n_mine).astype(np.float64)
