"""Regressions: whether the release leads to the same coefficients as the original."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.generalised.cover import Cover
from sfumato.data.schema import Kind
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.regression import fit_linear, fit_logistic, weighted_gram, whitening, with_constant
from sfumato.utility._features import (
    RECORDS_HELP,
    FeaturePair,
    TargetMeasure,
    column_spans,
    features_of,
    shares_of,
    standardise_pair,
    weights_of_both,
)

#: A regressor follows from those before it if they leave less than this share of its variance.
_FOLLOWS = 1e-7
#: A standard error beyond which nothing is known of a coefficient, in standard deviations.
_UNKNOWN = 1e3
#: Classes of a target that are told apart; the rarest beyond are one.
_CLASSES = 10


class CoefficientOverlap(TargetMeasure):
    r"""Overlap of the confidence intervals of regression coefficients, original against release.

    Each target is regressed on the other columns in both tables: by least squares if it is a number, a date
    or ordinal, by logistic regression if it is nominal (each class against all others). Over the
    coefficients,

    .. math::

        J = \frac{1}{K} \sum_{k=1}^{K} \frac{1}{2} \left(
            \frac{U_k - L_k}{u_k - l_k} + \frac{U_k - L_k}{u'_k - l'_k} \right)

    where :math:`(l_k, u_k)` and :math:`(l'_k, u'_k)` are the intervals from the original and from the
    release, and :math:`(L_k, U_k)` is what they share; intervals that share nothing count 0.

    See Also
    --------
    PropensityMeanSquare : whether any model can tell the tables apart.
    Prediction : whether a model of the release predicts, whatever its coefficients.

    Notes
    -----
    **How to read it.** 1 means the same inference; 0 that no interval of the release touches that of the
    original. A release that blurs all (very wide intervals around the right ones) tends to 1/2. Higher is
    better. ``by_column`` is the overlap of each target.

    **Doubt.** The intervals are those of the model, with independent errors; of weighted tables, those of
    weighted fits with weights of mean 1, without the effect of the design. Only the coefficients that the
    original identifies count: the most frequent category of a column is the reference, and a column that
    follows from others is left out. One that the release cannot identify counts 0. Tables above ``records``
    are sampled, and the status is then approximate.

    **Missing.** Records whose target is missing are left out. A predictor that is missing or a wildcard lies
    at the mean, with a coefficient of its own for saying nothing. Generalised values are taken at their
    expectation: ranges at their middle, sets of numbers at their mean, sets of categories in equal shares.
    Records need not map.

    **Cost.** :math:`O(n K^2)` for each fit, which ``records`` bounds.
    """

    name = "coefficient-overlap"
    vetted = (
        "brute-forced: unit/utility/test_regression.py::test_the_overlap_is_that_of_intervals_of_statsmodels"
    )
    synonyms = ("confidence interval overlap",)
    family = "analyses"
    tells = Tells(places={"report": 4, "models": 2})
    scales = Scaling(exact_up_to=200_000)
    title = "Overlap of coefficients"
    better = "high"
    bounds = (0.0, 1.0)
    references = ("karr2006", "snoke2018")
    cost = "n"

    records: int = param(10_000, RECORDS_HELP, ge=20, unit="records")
    confidence: float = param(95.0, "Confidence of the intervals.", gt=0, lt=100, unit="%")

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Regress each target in both tables and hold the intervals against each other."""
        by_column: dict[str, float] = {}
        outside: list[float] = []
        targets = self.targets(evidence)
        for target in run.track(self.title, targets, total=len(targets)):
            pairs = []
            for fits in self._fits(evidence, target):
                pairs.append(self._intervals(*fits))
                run.check()
            nothing = np.empty((0, 2))
            first, second = (np.vstack([pair[side] for pair in pairs] or [nothing]) for side in (0, 1))
            if len(first):
                by_column[target] = float(overlap(first, second).mean())
                outside += _outside(first, second).tolist()
        if not by_column:
            return Score.not_estimable("the original identifies no regression of a target")
        return Score(
            value=float(np.mean(list(by_column.values()))),
            by_column=by_column,
            details={"coefficients": len(outside), "outside": float(np.mean(outside))},
        )

    def _intervals(self, original_fit: RegressionFit, released_fit: RegressionFit) -> tuple[Floats, Floats]:
        """The intervals of the coefficients that the original tells of."""
        fits = (fit.intervals(self.confidence / 100) for fit in (original_fit, released_fit))
        first, second = (each[original_fit.known] for each in fits)
        return first, second

    def _fits(self, evidence: Evidence, target: str) -> Iterator[tuple[RegressionFit, RegressionFit]]:
        """Fit one target in both tables: one pair of fits, or one for each class."""
        features = features_of(evidence, self.predictors_of(evidence, target))
        numbers, spans = column_spans(evidence, target)
        present = ~np.isnan(numbers), ~spans.uninformative
        weights = tuple(each[there] for each, there in zip(weights_of_both(evidence), present, strict=True))
        nominal = evidence.original.schema[target].kind is Kind.NOMINAL
        responses = _responses(numbers, spans, nominal=nominal)
        designs = _designs(features, present, weights[0])
        fit = logistic if nominal else least_squares
        for place in range(responses[0].shape[1]):
            asked = [response[there, place] for response, there in zip(responses, present, strict=True)]
            if len(asked[0]) and np.ptp(asked[0]) > 0:
                pairs = zip(designs, asked, weights, strict=True)
                original_fit, released_fit = (fit(*each) for each in pairs)
                yield original_fit, released_fit


def _responses(numbers: Floats, spans: Cover, *, nominal: bool) -> tuple[Floats, Floats]:
    """The target of both tables: a number, or the share of each class; of two classes that of one."""
    if not nominal:
        first, second = standardise_pair(numbers, spans.means)
        return first[:, None], second[:, None]
    first, second = shares_of(numbers, spans, many=_CLASSES)
    start = 1 if first.shape[1] == 2 else 0  # noqa: PLR2004  — two classes are one question
    return first[:, start:], second[:, start:]


def _designs(features: FeaturePair, present: tuple[Flags, Flags], weights: Floats) -> tuple[Floats, Floats]:
    """The regressors of both tables, a constant first: those that are independent in the original."""
    shares = features.original[present[0]].sum(axis=0)
    references = set()
    for name in dict.fromkeys(features.columns):
        places = [place for place in features.places["share"].tolist() if features.columns[place] == name]
        if places:
            references.add(max(places, key=lambda place: (shares[place], -place)))
    columns = features.keep([place for place in range(len(features.columns)) if place not in references])
    first = with_constant(columns.original[present[0]])
    chosen = _independent(weighted_gram(first, weights))
    return first[:, chosen], with_constant(columns.released[present[1]])[:, chosen]


def _independent(gram: Floats) -> Ints:
    """The columns, first come first, that do not follow from those before them."""
    left, own, columns = gram.copy(), np.diagonal(gram).copy(), []
    for place in range(len(gram)):
        if left[place, place] > _FOLLOWS * own[place]:
            columns.append(place)
            left -= np.outer(left[:, place], left[place]) / left[place, place]
    return np.array(columns, dtype=np.int64)


def overlap(first: Floats, second: Floats) -> Floats:
    """The share that intervals [K, 2] have in common, mean over the two; those of NaN share nothing."""
    shared = np.minimum(first[:, 1], second[:, 1]) - np.maximum(first[:, 0], second[:, 0])
    met = shared >= 0  # not so where an end is NaN
    shares = []
    for each in (first, second):
        width = each[:, 1] - each[:, 0]
        points = met & ~(width > 0)  # an interval of one point lies wholly in the other
        shares.append(np.where(points, 1.0, np.where(met, shared, 0.0) / np.where(width > 0, width, 1.0)))
    return (shares[0] + shares[1]) / 2


def _outside(first: Floats, second: Floats) -> Flags:
    """Which estimates of the release, the middles of its intervals, do not lie in those of the original."""
    middles = second.mean(axis=1)
    held: Flags = (first[:, 0] <= middles) & (middles <= first[:, 1])
    return ~held


# Fits --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RegressionFit:
    """Coefficients with their standard errors, and which of them are known at all."""

    coefficients: Floats
    errors: Floats
    known: Flags
    freedom: float  # degrees of freedom; infinite where the errors are those of large samples

    def intervals(self, confidence: float) -> Floats:
        """The confidence interval of each coefficient [K, 2], NaN where it is not known."""
        from scipy.special import ndtri, stdtrit

        tail = (1 + confidence) / 2
        quantile = ndtri(tail) if np.isinf(self.freedom) else stdtrit(self.freedom, tail)
        far = quantile * self.errors
        ends = np.stack([self.coefficients - far, self.coefficients + far])
        return np.where(self.known, ends, np.nan).T


def _nothing(size: int) -> RegressionFit:
    return RegressionFit(np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.bool_), 1.0)


def least_squares(design: Floats, response: Floats, weights: Floats) -> RegressionFit:
    """Fit a linear model; weights as those of statsmodels' WLS."""
    coefficients = fit_linear(design, response, weights)
    left = response - design @ coefficients
    turn, known = whitening(weighted_gram(design, weights))
    freedom = len(design) - turn.shape[1]
    if freedom < 1:
        return _nothing(design.shape[1])
    variance = float((weights * left**2).sum()) / freedom
    return RegressionFit(coefficients, np.sqrt(variance * (turn**2).sum(axis=1)), known, float(freedom))


def logistic(design: Floats, response: Floats, weights: Floats) -> RegressionFit:
    """Fit a logistic model by its likelihood; a response may be a share."""
    from scipy.special import expit

    total = float((weights * response).sum())
    if not 0 < total < weights.sum():
        return _nothing(design.shape[1])
    coefficients = fit_logistic(design, np.column_stack([1 - response, response]), weights)[:, 1]
    chances = expit(design @ coefficients)
    turn, known = whitening(weighted_gram(design, weights * chances * (1 - chances)))
    if len(design) <= turn.shape[1]:
        return _nothing(design.shape[1])
    errors = np.sqrt((turn**2).sum(axis=1))
    return RegressionFit(coefficients, errors, known & (errors < _UNKNOWN), np.inf)
