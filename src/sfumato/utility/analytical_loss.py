"""Analytical loss: what people who analyse a release have lost, on one scale from nothing to everything."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Needs, Score
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import Column, Kind, Role
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._features import MAX_CATEGORIES, labels_of, standardise_pair, weights_of_both
from sfumato.utility._marginals import DistributionMeasure
from sfumato.utility._readings import spans_of

#: How much each part counts; a part that a table has nothing for leaves its share to the others.
PARTS: Final = {"columns": 0.4, "means": 0.15, "associations": 0.25, "models": 0.2}

#: An association counts as if it were at least this strong: small ones are chance.
_WEAK: Final = 0.1
#: A column of which others explain less than this has no model to lose.
_EXPLAINED: Final = 0.02
#: What is added to the variance of each explaining feature, where some repeat others.
_RIDGE: Final = 0.01
#: Correlations of so many standard errors may be chance, and count by what is beyond.
_BY_CHANCE: Final = 2.0
#: A feature of this variance is a constant.
_CONSTANT: Final = 1e-12
#: Records whose features are held at a time.
_BLOCK: Final = 1 << 15


class AnalyticalLoss(DistributionMeasure):
    r"""Loss of analytical validity: of columns, means by group, associations and models.

    .. math::

        L = \sum_{q} \omega_q L_q, \qquad
        L_1 = \sum_j v_j (1 - a_j (1 - u_j) (1 - s_j))

    where :math:`v_j` is the importance of column :math:`j` as a share of all, :math:`a_j` the share of its
    values that are there, :math:`u_j` how much those differ who may stand behind one released cell, as a
    share of how much all people of the file do (the mean difference of two ranks, or the entropy of
    categories), and
    :math:`s_j` how far its distribution moved, as a share of how far it would if everybody had the median or
    the most frequent category. A column of which nothing is left loses 1.
    The other parts, each from 0 to 1: how far the means of amounts moved, of all and by each category, in
    mean deviations; how much of the associations of pairs of columns (correlations of ranks, amounts and
    categories) is another; and how much less of each important column models explain that were fitted to
    the release.

    See Also
    --------
    EarthMoversDistance : how far whole records moved, whatever they are used for.

    Notes
    -----
    **How to read it.** 0: an analyst finds what the original says; 1: nothing is left. It compares releases
    of one original, and ranks what a search finds. ``by_column`` is the loss of each column, ``details`` has
    the parts. Columns count by their importance, pairs by that of both; models explain the columns that
    matter most, or else the sensitive ones, or else all.

    **Doubt.** Exact. How much the parts count (.4, .15, .25, .2) is a choice of ours: with it thirty-two
    pairs of releases, of which one is plainly better, stand in the right order.

    **Missing.** A value that is missing in the release only is lost; so is that of a record that was left
    out. A column that was left out loses all, and numbers of persons do not count. Correlations are those of
    the records that have both values. Beyond twenty categories the rarest count as one in all but the first
    part.

    **Cost.** :math:`O(n\,p^2)` for :math:`p` features: two for an amount, one for a category.
    """

    name = "analytical-loss"
    family = "analyses"
    title = "Loss of analytical validity"
    bounds = (0.0, 1.0)
    references = ("winkler1998", "gionis2009")
    cost = "n d²"
    needs = Needs(records=True, exact_original=True)

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Read each column once, then take all moments together."""
        names, weights = self.columns(evidence), weights_of_both(evidence)
        tracked = run.track(self.title, names, len(names))
        contents = {name: _content(evidence, name, weights) for name in tracked}
        found = {name: each for name, each in contents.items() if each is not None}
        if not found:
            return Score.not_estimable("no column of the original has values to analyse")
        columns = [evidence.original.schema[name] for name in found]
        compared = MomentComparison.of(found, columns, weights)
        losses = {name: each.loss for name, each in found.items()}
        worth = [column.importance for column in columns]
        parts = {
            "columns": float(np.average(list(losses.values()), weights=worth)),
            "means": compared.means(),
            "associations": compared.associations(),
            "models": compared.models(),
        }
        known_losses = {part: value for part, value in parts.items() if value is not None}
        value = float(np.average(list(known_losses.values()), weights=[PARTS[part] for part in known_losses]))
        return Score(value=value, by_column=losses, details=dict(known_losses))


# Columns --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RecordFeatures:
    """Features of the records of one table: a row for each, or one for each code and the code of each."""

    rows: Floats
    there: Flags
    codes: Ints | None = None

    def take(self, part: slice) -> Floats:
        """The features of some records, 0 where nothing is said."""
        found = self.rows[part] if self.codes is None else self.rows[self.codes[part]]
        return np.where(self.there[part][:, None], found, 0.0)


@dataclass(frozen=True, eq=False)
class ColumnContent:
    """What one column tells in both tables.

    Of a nominal column the features are the shares of its categories; of others the rank, and then the amount
    of a continuous one. ``within`` is how much each feature varies, on average, among what a released cell
    may stand for; ``unsure`` and ``moved`` are u and s of the formula.
    """

    original: RecordFeatures
    released: RecordFeatures
    within: Floats
    unsure: float
    moved: float
    deviation: float = 0.0  # the mean one of the amount, 0 where there is none
    loss: float = 1.0


def _content(evidence: Evidence, name: str, weights: tuple[Floats, Floats]) -> ColumnContent | None:
    """Read a column of both tables; None where the original says nothing."""
    assert evidence.protected is not None  # `refuses` saw to it
    kind = evidence.original.schema[name].kind
    numbers, spans = spans_of(evidence.original, evidence.protected, name)
    original_weights, released_weights = weights[0] * ~np.isnan(numbers), weights[1] * ~spans.uninformative
    if not original_weights.sum() > 0:
        return None
    held = released_weights / (released_weights.sum() or 1.0)
    found = (_nominal if kind is Kind.NOMINAL else _rank_content)(
        numbers, spans, original_weights / original_weights.sum(), held
    )
    if kind is Kind.CONTINUOUS:
        found = _with_amounts(found, *standardise_pair(numbers, spans.middles), original_weights)
    there = original_weights.sum() / weights[0].sum()
    released_share = released_weights.sum() / (weights[1].sum() or 1.0)
    share = min(1.0, released_share * min(1.0, len(released_weights) / len(original_weights)) / there)
    loss = 1.0 - share * (1.0 - found.unsure) * (1.0 - found.moved)
    return replace(found, loss=float(min(max(loss, 0.0), 1.0)))


def _with_amounts(
    found: ColumnContent, original_weights: Floats, released_weights: Floats, weights: Floats
) -> ColumnContent:
    original, released = (
        replace(each, rows=np.column_stack([each.rows, amounts]))
        for each, amounts in ((found.original, original_weights), (found.released, released_weights))
    )
    middle = np.average(original_weights, weights=weights)
    deviation = float(np.average(np.abs(original_weights - middle), weights=weights))
    within = np.append(found.within, 0.0)
    return replace(found, original=original, released=released, within=within, deviation=deviation)


def _nominal(
    numbers: Floats, spans: Cover, original_weights: Floats, released_weights: Floats
) -> ColumnContent:
    """The shares of the categories; a set stands for each of its values as often as the original has it."""
    from scipy.special import xlogy

    codes = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
    labels, owners, members = labels_of(spans)
    n_codes = int(max(codes.max(initial=-1), members.max(initial=-1))) + 1
    n_labels = int(max(labels.max(initial=-1), owners.max(initial=-1))) + 1
    masses = np.bincount(codes[codes >= 0], original_weights[codes >= 0], minlength=n_codes)
    sizes = np.bincount(owners, minlength=n_labels)
    known = np.bincount(owners, masses[members], minlength=n_labels)
    likely = np.where(
        known[owners] > 0, masses[members] / np.where(known > 0, known, 1.0)[owners], 1.0 / sizes[owners]
    )
    entropy = np.bincount(owners, -xlogy(likely, likely), minlength=n_labels)
    held = np.bincount(labels[labels >= 0], released_weights[labels >= 0], minlength=n_labels)
    whole = float(-xlogy(masses, masses).sum())
    unsure = min(1.0, float(held @ entropy) / whole) if whole > _CONSTANT else 0.0
    after = np.bincount(members, held[owners] * likely, minlength=n_codes)
    rest = 1.0 - float(masses.max())
    moved = 0.5 * float(np.abs(masses - after).sum()) / (rest if rest > _CONSTANT else 1.0)
    width = min(n_codes, MAX_CATEGORIES)
    slots = np.empty(n_codes, dtype=np.int64)
    slots[np.argsort(-masses, kind="stable")] = np.minimum(np.arange(n_codes), width - 1)
    of_label = np.bincount(owners * width + slots[members], likely, minlength=n_labels * width)
    shares = of_label.reshape(n_labels, width)
    return ColumnContent(
        RecordFeatures(np.eye(width)[slots], codes >= 0, codes),
        RecordFeatures(np.vstack([shares, np.zeros((1, width))]), labels >= 0, labels),
        np.asarray(held @ (shares * (1.0 - shares)), dtype=np.float64),
        unsure,
        min(1.0, moved) if held.any() else 0.0,
    )


def _rank_content(
    numbers: Floats, spans: Cover, original_weights: Floats, released_weights: Floats
) -> ColumnContent:
    """The ranks among the original's people; a range stands for all of them that it covers."""
    there = ~np.isnan(numbers)
    values, places = np.unique(numbers[there], return_inverse=True)
    masses = np.bincount(places, original_weights[there]).astype(np.float64)
    ends = np.append(0.0, np.cumsum(masses))
    ranks = (ends[:-1] + ends[1:]) / 2
    first = np.searchsorted(values, spans.lows)
    last = np.maximum(first, np.searchsorted(values, spans.highs, side="right"))
    lows, highs, coarse = ends[first], ends[last], (last - first > 1) & (spans.lows < spans.highs)
    middles, widths = (lows + highs) / 2, np.where(coarse, highs - lows, 0.0)
    per_mass = np.where(coarse, released_weights / np.where(widths > 0, widths, 1.0), 0.0)
    opened, closed = (np.bincount(each, per_mass, minlength=len(ends)) for each in (first, last))
    opened = opened - closed
    covered = masses * np.cumsum(opened)[:-1]
    exact = ~coarse & ~spans.uninformative
    points = np.concatenate([ranks, middles[exact]])
    excess = np.concatenate([masses - covered, -released_weights[exact]])
    order = np.argsort(points, kind="stable")
    work = np.abs(np.cumsum(excess[order])[:-1]) @ np.diff(points[order])
    most = float(masses @ np.abs(ranks - 0.5)) or 0.5
    unsure = np.where(coarse, _differences(masses, ranks, first, last), 0.0)
    return ColumnContent(
        RecordFeatures(np.interp(numbers, values, ranks)[:, None], there),
        RecordFeatures(middles[:, None], ~spans.uninformative),
        np.array([released_weights @ widths**2 / 12]),
        min(1.0, float(released_weights @ unsure)),
        min(1.0, float(work) / most) if exact.any() or coarse.any() else 0.0,
    )


def _differences(masses: Floats, ranks: Floats, first: Ints, last: Ints) -> Floats:
    """How far apart the ranks of two people are within each run of values, as a share of two of all.

    The sum over pairs b > a of p_a p_b (r_b − r_a) is a difference of running sums.
    """
    below = np.append(0.0, np.cumsum(masses))
    weighted = np.append(0.0, np.cumsum(masses * ranks))
    pairs = np.append(0.0, np.cumsum(masses * (ranks * below[:-1] - weighted[:-1])))

    def mean(start: Ints, end: Ints) -> Floats:
        mass: Floats = below[end] - below[start]
        found: Floats = pairs[end] - pairs[start] - below[start] * (weighted[end] - weighted[start])
        found += weighted[start] * mass
        shares: Floats = np.maximum(found, 0.0) / np.where(mass > 0, mass, 1.0) ** 2
        return shares

    everyone = float(mean(np.array([0]), np.array([len(masses)]))[0])
    shares: Floats = mean(first, last) / (everyone if everyone > _CONSTANT else 1.0)
    return np.minimum(shares, 1.0)


# Means, associations and models ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Moments of all features of a table: means and covariances of each pair where both have a value."""

    means: Floats  # [p, p] of the first feature, over the records that have both
    products: Floats  # [p, p]
    masses: Floats  # [p, p]
    within: Floats  # [p]

    @classmethod
    def of(cls, sides: list[RecordFeatures], weights: Floats, within: Floats) -> FeatureMoments:
        """Sum over the records, some at a time."""
        widths = [each.rows.shape[1] for each in sides]
        totals = np.zeros((3, sum(widths), sum(widths)))
        for start in range(0, len(weights), _BLOCK):
            part = slice(start, start + _BLOCK)
            values = np.hstack([each.take(part) for each in sides])
            there = np.repeat(np.column_stack([each.there[part] for each in sides]), widths, axis=1)
            shown = there.astype(np.float64)
            totals[0] += (values * weights[part, None]).T @ shown
            totals[1] += (values * weights[part, None]).T @ values
            totals[2] += (shown * weights[part, None]).T @ shown
        masses = np.where(totals[2] > 0, totals[2], 1.0)
        return cls(totals[0] / masses, totals[1] / masses, totals[2], within)

    @cached_property
    def correlations(self) -> Floats:
        """Of all pairs of features, with what varies within cells; 0 with a constant."""
        covariances = self.products - self.means * self.means.T
        variances = np.maximum(np.diagonal(covariances), 0.0) + self.within
        scales = np.sqrt(np.where(variances > _CONSTANT, variances, np.inf))
        found: Floats = np.clip(covariances / np.outer(scales, scales), -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return found

    @property
    def associations(self) -> Floats:
        """The correlations less what may be chance."""
        found = self.correlations
        chance = _BY_CHANCE / np.sqrt(np.maximum(self.masses, 1.0))
        return np.sign(found) * np.maximum(np.abs(found) - chance, 0.0)


@dataclass(frozen=True, eq=False)
class MomentComparison:
    """The moments of both tables, and which features are of which column."""

    columns: list[Column]
    places: list[slice]
    original: FeatureMoments
    released: FeatureMoments
    deviations: list[float]

    @classmethod
    def of(
        cls, contents: dict[str, ColumnContent], columns: list[Column], weights: tuple[Floats, Floats]
    ) -> MomentComparison:
        """Compare what the columns tell in both tables."""
        own = [contents[column.name] for column in columns]
        ends = np.cumsum([0, *(len(each.within) for each in own)])
        within = np.concatenate([each.within for each in own])
        return cls(
            columns,
            [slice(int(start), int(end)) for start, end in pairwise(ends)],
            FeatureMoments.of([each.original for each in own], weights[0], np.zeros(len(within))),
            FeatureMoments.of([each.released for each in own], weights[1], within),
            [each.deviation for each in own],
        )

    def means(self) -> float | None:
        """How far the mean of each amount moved, of all and by each category, in its mean deviations."""
        losses, worth = [], []
        for column, place, deviation in zip(self.columns, self.places, self.deviations, strict=True):
            if not deviation > 0:
                continue
            amount = place.stop - 1
            whole = [each.means[amount, amount] for each in (self.original, self.released)]
            moved = [min(1.0, abs(whole[0] - whole[1]) / deviation)]
            for other, groups in zip(self.columns, self.places, strict=True):
                if other.kind is Kind.NOMINAL:
                    moved.append(self._by_group(groups, amount, whole[1], deviation))
            losses.append(float(np.mean(moved)) if self.released.masses[amount, amount] > 0 else 1.0)
            worth.append(column.importance)
        return float(np.average(losses, weights=worth)) if losses else None

    def _by_group(self, groups: slice, amount: int, middle: float, deviation: float) -> float:
        """How far the means of an amount moved by category; one that vanished has the mean of all."""
        shares = self.original.means[groups, amount], self.released.means[groups, amount]
        sums = self.original.products[groups, amount], self.released.products[groups, amount]
        before, after = (
            np.where(share > 0, total / np.where(share > 0, share, 1.0), middle)
            for share, total in zip(shares, sums, strict=True)
        )
        gaps = np.minimum(np.abs(before - after) / deviation, 1.0)
        return float(np.average(gaps, weights=shares[0])) if shares[0].sum() > 0 else 0.0

    def associations(self) -> float | None:
        """How much of the associations of pairs of columns is another."""
        gaps, sizes = 0.0, 0.0
        first, second = self.original.associations, self.released.associations
        for (a, one), (b, other) in combinations(list(zip(self.columns, self.places, strict=True)), 2):
            width = min(one.stop - one.start, other.stop - other.start)
            worth = a.importance * b.importance / math.sqrt(width)
            size = max(float(np.linalg.norm(first[one, other])), _WEAK)
            seen = self.released.masses[one.start, other.start] > 0
            gaps += worth * (float(np.linalg.norm(first[one, other] - second[one, other])) if seen else size)
            sizes += worth * size
        return min(1.0, gaps / sizes) if sizes else None

    def models(self) -> float | None:
        """How much less models of the release explain of the original's columns that matter."""
        losses, worth, targets = [], [], self._targets()
        for column, place in zip(self.columns, self.places, strict=True):
            lost = self._model(place) if column in targets else None
            if lost is not None:
                losses.append(lost)
                worth.append(column.importance)
        return float(np.average(losses, weights=worth)) if losses else None

    def _targets(self) -> list[Column]:
        """The columns that matter most, or else the sensitive ones, or else all."""
        most = max(column.importance for column in self.columns)
        first = [column for column in self.columns if column.importance == most]
        if len(first) < len(self.columns):
            return first
        return [column for column in self.columns if column.role is Role.SENSITIVE] or self.columns

    def _model(self, target: slice) -> float | None:
        """How much less of a column the model of the release explains; None where there is nothing to."""
        known, seen = self.original.correlations, self.released.correlations
        others = np.delete(np.arange(len(known)), np.arange(target.start, target.stop))
        others = others[np.diagonal(self.original.products - self.original.means**2)[others] > _CONSTANT]
        if not len(others):
            return None
        inside = known[np.ix_(others, others)]
        explained = []
        for each in (known, seen):
            system = each[np.ix_(others, others)] + _RIDGE * np.eye(len(others))
            slopes = np.linalg.lstsq(system, each[others, target], rcond=None)[0]
            fitted = (slopes * (2 * known[others, target] - inside @ slopes)).sum(axis=0)
            explained.append(np.maximum(fitted, 0.0).sum())
        if explained[0] < _EXPLAINED * (target.stop - target.start):
            return None
        return float(min(max(1.0 - explained[1] / explained[0], 0.0), 1.0))
