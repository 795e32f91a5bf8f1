"""Propensity: whether a model can tell the released records from the original ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.kernels.arrays import Floats, Ints
from sfumato.kernels.regression import fit_logistic, weighted_gram, whitening, with_constant
from sfumato.utility._features import RECORDS_HELP, FeaturePair, ModelMeasure, features_of, weights_of_both

#: Records of the smaller table that there must be for each term of the model.
_RECORDS_PER_TERM = 10
#: A direction is redundant if it has less than this share of the variance of the largest.
_REDUNDANT = 1e-9


@dataclass(frozen=True)
class Propensity:
    """How far the fitted chances of being released are from what they would be by chance alone."""

    mean_square: float
    expected: float  # of a release drawn from the same distribution
    deviation: float
    terms: int
    left_out: int


class PropensityMeasure(ModelMeasure):
    """A measure by the propensity score: what its kind have in common."""

    better = "low"
    cost = "n"

    records: int = param(20_000, RECORDS_HELP, ge=20, unit="records")
    effects: Literal["main", "pairs"] = param(
        "pairs",
        "Which terms the model has.",
        choices={
            "main": "Main effects: the columns alone.",
            "pairs": "In addition, squares of numbers and products of columns.",
        },
    )
    terms: int = param(100, "Largest number of terms of the model.", ge=1, le=2000)

    def propensity(self, evidence: Evidence) -> Propensity:
        """Fit the model once for all measures of the same evidence."""
        names = self.columns(evidence)
        key = ("propensity", names, self.effects, self.terms)
        return evidence.remember(key, lambda: self._fit_propensity(evidence, names))

    def _fit_propensity(self, evidence: Evidence, names: tuple[str, ...]) -> Propensity:
        features = features_of(evidence, names)
        weights = weights_of_both(evidence)
        sizes = len(weights[0]), len(weights[1])
        most = min(self.terms, max(1, min(sizes) // _RECORDS_PER_TERM))
        chosen, left_out = _terms(features, pairs=self.effects == "pairs", most=most)
        everyone = np.vstack([features.original, features.released])
        terms = _independent(_products(everyone, chosen), np.concatenate(weights))
        return _propensity(terms, np.concatenate(weights), sizes, left_out)


class PropensityMeanSquare(PropensityMeasure):
    r"""Mean squared difference between the propensity score and the share of released records.

    Both tables are put together and a logistic regression estimates, for each record, the chance
    :math:`\hat p_i` that it is a released one:

    .. math::

        pMSE = \frac{1}{N} \sum_{i=1}^{N} (\hat p_i - c)^2

    where :math:`N` is the number of records of both tables and :math:`c` the share of released ones. The
    model has each column (numbers, dates, ordinal positions; a term for each category) and, with ``effects``
    "pairs", the squares of numbers and the products of columns: squares see a change of variance, products
    one of correlation.

    See Also
    --------
    PropensityRatio : the same against what a fresh sample would give.
    CoefficientOverlap : one analysis instead of all.

    Notes
    -----
    **How to read it.** 0 means that the model cannot tell the tables apart; the largest value,
    :math:`c(1-c)`, at most 1/4, that it always can. ``baseline`` is what is expected of a release drawn from
    the distribution of the original. Lower is better.

    **Doubt.** A model sees only what it has terms for: 0 does not prove that the tables are alike. It has at
    most ``terms`` terms and one for each ten records of the smaller table: columns first, then the products
    that vary most; ``details`` says how many were left out. Of tables above ``records`` it is the mean of
    samples, with its interval, and overstated by about the baseline; the status is then approximate.

    **Missing.** What is missing, suppressed or a wildcard is a term of its own, so suppression is seen.
    Generalised values are taken at their expectation: ranges at their middle, sets of numbers at their mean,
    sets of categories in equal shares. Records need not map. Where both tables have weights (or the release
    those of the records it comes from), the fit and the mean are weighted.

    **Cost.** :math:`O(N k^2)` for each of about ten steps with :math:`k` terms, which ``records`` and
    ``terms`` bound.
    """

    name = "pmse"
    vetted = "brute-forced: unit/utility/test_propensity.py::test_chances_are_those_of_statsmodels"
    synonyms = ("propensity score", "general utility")
    family = "distributions"
    title = "Propensity score mean square"
    bounds = (0.0, 0.25)
    references = ("woo2009", "snoke2018")

    def fit(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — it takes no chance
        """Fit the propensity score and take its mean square."""
        found = self.propensity(evidence)
        return Score(value=found.mean_square, baseline=found.expected, details=_propensity_details(found))


class PropensityRatio(PropensityMeasure):
    r"""Propensity score mean square as a multiple of its expectation for a fresh sample.

    .. math::

        \frac{pMSE}{E_0}, \qquad E_0 = \frac{(k - 1)(1 - c)^2 c}{N}

    where :math:`pMSE` is the mean squared distance of the propensity score from the share :math:`c` of
    released records, :math:`N` the number of records of both tables, :math:`k` the number of independent
    terms of the logistic model with its constant, and :math:`E_0` the expectation if the released records
    were drawn from the distribution that the original was drawn from, given the original.

    See Also
    --------
    PropensityMeanSquare : the same in its own unit, with all about the model.

    Notes
    -----
    **How to read it.** About 1 for synthetic data from a right model, 10 for data that are clearly off. A
    release whose records are those of the original with little change is nearer than a fresh sample, so it
    goes below 1, and the original itself has 0. Lower is better. ``details`` has the standardised value too,
    :math:`(pMSE - E_0) / (E_0 \sqrt{2 / (k-1)})`, which beyond 3 or so is more than chance.

    **Doubt.** :math:`E_0` is that of large tables: it needs many more records than terms, which is why the
    model has at most one term for each ten records of the smaller table. Of weighted tables, :math:`N` is the
    number of records of equal weight that would tell as much. The ratio of a release that is off grows with
    the number of records, so it compares releases of one size; tables above ``records`` are sampled, and have
    the ratio of tables as large as a sample, with the status approximate.

    **Missing.** As in `PropensityMeanSquare`: a term of its own. Generalised values are taken at their
    expectation. Records need not map. Weights are used where both tables have them.

    **Cost.** :math:`O(N k^2)` for each of about ten steps, which ``records`` and ``terms`` bound.
    """

    name = "pmse-ratio"
    family = "distributions"
    title = "Propensity score ratio"
    tells = Tells(places={"report": 7, "models": 5})
    scales = Scaling(exact_up_to=200_000)
    bounds = (0.0, np.inf)
    references = ("snoke2018", "woo2009")

    def fit(self, evidence: Evidence, run: Run) -> Score:  # noqa: ARG002  — it takes no chance
        """Fit the propensity score and hold its mean square against the expectation."""
        found = self.propensity(evidence)
        if not found.expected > 0:
            return Score.not_estimable("no column varies, so nothing could tell the tables apart")
        details = {**_propensity_details(found), "pmse": found.mean_square}
        return Score(value=found.mean_square / found.expected, baseline=1.0, details=details)


def _propensity_details(found: Propensity) -> dict[str, float | int | str]:
    details: dict[str, float | int | str] = {"terms": found.terms, "terms_left_out": found.left_out}
    details |= {"expected": found.expected}
    if found.deviation > 0:
        details["standardised"] = (found.mean_square - found.expected) / found.deviation
    return details


def _terms(features: FeaturePair, *, pairs: bool, most: int) -> tuple[list[tuple[int, int]], int]:
    """Choose the terms of the model as pairs of features (−1: alone), and say how many were left out."""
    n_features = len(features.columns)
    everyone = np.vstack([features.original, features.released])
    alone = _largest_variances(everyone.var(axis=0), most)
    chosen = [(int(place), -1) for place in alone]
    possible = n_features
    room = most - len(chosen)
    if pairs:
        numbers = features.places["number"]
        first, second = np.triu_indices(n_features, k=1)
        owner = np.array(features.columns, dtype=object)
        apart = owner[first] != owner[second]
        first = np.concatenate([numbers, first[apart]])
        second = np.concatenate([numbers, second[apart]])
        possible += len(first)
        if room > 0 and len(first):
            best = _largest_variances(_variances(everyone, first, second), room)
            chosen += [(int(first[place]), int(second[place])) for place in best]
    return chosen, possible - len(chosen)


def _largest_variances(variances: Floats, most: int) -> Ints:
    """The places of the largest variances that are not 0, in order of place."""
    order = np.argsort(-variances, kind="stable")[:most]
    return np.sort(order[variances[order] > 0])


def _variances(values: Floats, first: Ints, second: Ints) -> Floats:
    """The variance of each product of two features, without making them all at once."""
    squares = (values**2).T @ values**2 / len(values)
    means = values.T @ values / len(values)
    return np.maximum(squares[first, second] - means[first, second] ** 2, 0.0)


def _products(values: Floats, chosen: list[tuple[int, int]]) -> Floats:
    if not chosen:
        return np.empty((len(values), 0))
    factors = ((values[:, one], values[:, other] if other >= 0 else 1.0) for one, other in chosen)
    return np.column_stack([one * other for one, other in factors])


def _independent(terms: Floats, weights: Floats) -> Floats:
    """Turn terms into uncorrelated ones of variance 1 that span the same, without the redundant."""
    centred = terms - np.average(terms, axis=0, weights=weights)
    gram = weighted_gram(centred, weights / weights.sum())
    uncorrelated: Floats = centred @ whitening(gram, redundant=_REDUNDANT)[0]
    return uncorrelated


def _propensity(terms: Floats, weights: Floats, sizes: tuple[int, int], left_out: int) -> Propensity:
    from scipy.special import expit

    released = np.concatenate([np.zeros(sizes[0]), np.ones(sizes[1])])
    share = sizes[1] / (sizes[0] + sizes[1])  # the weights of each table have mean 1
    design = with_constant(terms)
    coefficients = fit_logistic(design, np.column_stack([1 - released, released]), weights)
    chances = expit(design @ coefficients[:, 1])
    mean_square = float((weights * (chances - share) ** 2).sum() / weights.sum())
    mean_square = min(mean_square, share * (1 - share))  # what it tends to where the tables separate
    n_terms = terms.shape[1]
    as_many = float(weights.sum() ** 2 / (weights**2).sum())  # records of equal weight that tell as much
    unit = (1 - share) ** 2 * share / as_many
    return Propensity(mean_square, n_terms * unit, float(np.sqrt(2.0 * n_terms)) * unit, n_terms, left_out)
