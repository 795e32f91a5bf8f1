"""Regression: linear and logistic models of weighted records, fitted by least squares and by likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels.arrays import Flags, Floats

#: Largest slope of the mean log-likelihood, by directions of variance 1, at which a fit is done.
_FLAT = 1e-10
#: Steps after which a fit is taken as it is, and how often a step is halved before it is the last.
_MAX_STEPS, _MAX_HALVINGS = 100, 20
#: Products with the curvature that one step may take.
_MAX_PRODUCTS = 200
#: The share of the expected fall of the loss that a step must bring, but for rounding.
_LEAST_FALL, _LOSS_TOLERANCE = 1e-4, 1e-15
#: What makes a singular curvature regular, and the least curvature that a step is scaled by.
_SINGULAR, _LEAST_CURVE = 1e-14, 1e-4


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


def fit_logistic(
    design: Floats, shares: Floats, weights: Floats, *, ridge: float = 0.0, flat: float = _FLAT
) -> Floats:
    """The coefficients [K, classes] of a multinomial logistic model by maximum likelihood; the first are 0.

    ``shares`` [n, classes] are 1 for the class of a record, or what each class has of it; the penalty is half
    ``ridge`` times the squared coefficients. Directions are scaled so that the records and the penalty
    together curve each by 1, and turned so that the penalty holds each apart. Newton's method then takes ten
    to thirty steps, until no slope is above ``flat``. Where classes separate there is no maximum; the chances
    then are near what they tend to.
    """
    total = weights.sum()
    turn, _ = whitening(weighted_gram(design, weights / 2, ridge) / total)  # no class curves it by more
    held, basis = np.linalg.eigh(ridge / total * turn[1:].T @ turn[1:])
    turn = turn @ basis
    model = _LogisticModel(design @ turn, shares, weights[:, None] / total, np.maximum(held, 0.0)[:, None])
    coefficients: Floats = turn @ model.maximise(flat)
    return coefficients - coefficients[:, :1]


@dataclass(frozen=True)
class _LogisticModel:
    """The penalised mean log-likelihood, its sign turned, of coefficients [K, classes]."""

    design: Floats  # [n, K], directions that neither the records nor the penalty mix
    shares: Floats  # [n, classes]
    weights: Floats  # [n, 1], of sum 1
    held: Floats  # [K, 1], the curvature of the penalty

    def maximise(self, flat: float) -> Floats:
        """Newton's method; a step that leads too far is halved."""
        place = np.zeros((self.design.shape[1], self.shares.shape[1]))
        loss, chances, slope = self._evaluate(place)
        for _ in range(_MAX_STEPS):
            if np.abs(slope).max(initial=0.0) <= flat:
                break
            step = self._step_of_two(chances, slope) if place.shape[1] == 2 else self._step(chances, slope)  # noqa: PLR2004
            fall = float((slope * step).sum())
            for _ in range(_MAX_HALVINGS):
                after = self._evaluate(place + step)
                if after[0] <= loss + _LEAST_FALL * fall + _LOSS_TOLERANCE:
                    break
                step, fall = step / 2, fall / 2
            else:
                break  # nothing near is better
            place, (loss, chances, slope) = place + step, after
        return place

    def _evaluate(self, place: Floats) -> tuple[float, Floats, Floats]:
        """The loss, the chances of all classes and the slope of the loss."""
        scores = self.design @ place
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        sums = chances.sum(axis=1)
        pull = self.held * place
        loss = self.weights[:, 0] @ (np.log(sums) - (self.shares * scores).sum(axis=1))
        chances /= sums[:, None]
        slope = self.design.T @ (self.weights * (chances - self.shares)) + pull
        return float(loss + (pull * place).sum() / 2), chances, slope

    def _step_of_two(self, chances: Floats, slope: Floats) -> Floats:
        """The step of two classes, whose coefficients are each other's opposites."""
        curves = weighted_gram(self.design, (self.weights * chances[:, :1] * chances[:, 1:])[:, 0])
        diagonal = np.einsum("ii->i", curves)
        diagonal += self.held[:, 0] / 2 + _SINGULAR * diagonal.max()
        half = np.linalg.solve(curves, -slope[:, 1]) / 2
        return np.column_stack([-half, half])

    def _step(self, chances: Floats, slope: Floats) -> Floats:
        """The step of more classes by conjugate gradients: their curvature is too large a matrix."""
        each = self.weights * chances
        shares = each.sum(axis=0)
        scale = 1 / np.maximum(2 * (1 - self.held) * shares * (1 - shares) + self.held, _LEAST_CURVE)
        step, left = np.zeros_like(slope), -slope
        towards = scale * left
        size = first = float((left * towards).sum())
        near = min(0.01, np.sqrt(first)) * first
        for _ in range(_MAX_PRODUCTS):
            moved = each * (self.design @ towards)
            moved -= chances * moved.sum(axis=1, keepdims=True)
            curved = self.design.T @ moved + self.held * towards
            curve = float((towards * curved).sum())
            if curve <= 0:
                break
            step += size / curve * towards
            left -= size / curve * curved
            scaled = scale * left
            size, before = float((left * scaled).sum()), size
            if size <= near:
                break
            towards = scaled + size / before * towards
        return step if step.any() else -slope
