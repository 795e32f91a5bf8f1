"""Regression: linear and logistic models of weighted records, fitted by least squares and by likelihood."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Flags, Floats

#: Largest slope of the mean log-likelihood, by directions of variance 1, at which a fit is done.
_FLAT = 1e-10
#: Evaluations after which a fit is taken as it is.
_MAX_EVALUATIONS = 2000


def with_constant(features: Floats) -> Floats:
    """A design: a constant, which no penalty holds, and then the features."""
    return np.column_stack([np.ones(len(features)), features])


def whitening(gram: Floats, *, redundant: float = 1e-11) -> tuple[Floats, Flags]:
    """A matrix that makes columns with these products orthonormal, and which of them are identified.

    Columns are scaled to length 1; a direction with less than the share ``redundant`` of the largest is left
    out. The matrix times its transpose is the inverse of the products in the directions that are left.
    """
    units = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(units, units))
    there = values > redundant * max(float(values.max(initial=0.0)), 0.0)
    known = (vectors[:, ~there] ** 2).sum(axis=1) < 1e-8  # noqa: PLR2004  — none of it in what is redundant
    return vectors[:, there] / np.sqrt(values[there]) / units[:, None], known


def weighted_gram(design: Floats, weights: Floats, ridge: float = 0.0) -> Floats:
    """The weighted products of the columns of a design, with a ridge on all but the constant."""
    gram: Floats = (design * weights[:, None]).T @ design
    np.einsum("ii->i", gram)[1:] += ridge
    return gram


def fit_linear(design: Floats, response: Floats, weights: Floats, *, ridge: float = 0.0) -> Floats:
    """The coefficients of least squares, with a penalty of ``ridge`` times their squares."""
    turn, _ = whitening(weighted_gram(design, weights, ridge))
    coefficients: Floats = turn @ (turn.T @ (design.T @ (weights * response)))
    return coefficients


def fit_logistic(design: Floats, shares: Floats, weights: Floats, *, ridge: float = 0.0) -> Floats:
    """The coefficients [K, classes] of a multinomial logistic model by maximum likelihood; the first are 0.

    ``shares`` [n, classes] are 1 for the class of a record, or what each class has of it; the penalty is half
    ``ridge`` times the squared coefficients. Directions are scaled to variance 1 before L-BFGS looks for the
    maximum: the curvature then is near that of a sphere, and ten to thirty evaluations do. Where classes
    separate there is no maximum; the chances then are near what they tend to.
    """
    from scipy.optimize import minimize  # slow to import

    total, n_classes = weights.sum(), shares.shape[1]
    turn, _ = whitening(weighted_gram(design, weights / 2, ridge) / total)  # no class curves it by more
    turned, each, penalty = design @ turn, weights / total, ridge / total * turn[1:].T @ turn[1:]

    def penalised_loss(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(-1, n_classes)
        scores = turned @ coefficients
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)  # of many classes new arrays cost most, so this one is used again
        sums = chances.sum(axis=1)
        pull = penalty @ coefficients
        loss = each @ (np.log(sums) - (shares * scores).sum(axis=1)) + (pull * coefficients).sum() / 2
        chances /= sums[:, None]
        chances -= shares
        chances *= each[:, None]
        return float(loss), (turned.T @ chances + pull).ravel()

    best = minimize(
        penalised_loss, np.zeros(turn.shape[1] * n_classes), jac=True, method="L-BFGS-B",
        options={"gtol": _FLAT, "ftol": 0.0, "maxiter": _MAX_EVALUATIONS, "maxfun": _MAX_EVALUATIONS},
    )  # fmt: skip
    coefficients: Floats = turn @ best.x.reshape(-1, n_classes)
    return coefficients - coefficients[:, :1]
