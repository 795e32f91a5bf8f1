"""Verdicts: how good predictions are, of classes and of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from sfumato.kernels.arrays import Floats, Ints

Verdict = Callable[[Ints, Floats, Floats], float]


def accuracy(truth: Ints, chances: Floats, weights: Floats) -> float:
    """The share of records whose likeliest class is the true one."""
    return float(np.average(chances.argmax(axis=1) == truth, weights=weights))


def _counts(truth: Ints, chances: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each class that there is: the weight that is right, that is given it, and that is of it."""
    given, n_classes = chances.argmax(axis=1), chances.shape[1]
    right = np.bincount(truth, weights * (given == truth), minlength=n_classes).astype(np.float64)
    named = np.bincount(given, weights, minlength=n_classes).astype(np.float64)
    there = np.bincount(truth, weights, minlength=n_classes).astype(np.float64)
    return right[there > 0], named[there > 0], there[there > 0]


def precision(truth: Ints, chances: Floats, weights: Floats) -> float:
    """Of what is given a class, the share that is of it; mean over the classes, 0 for one never given."""
    right, named, _ = _counts(truth, chances, weights)
    return float((right / np.where(named > 0, named, 1.0)).mean())


def recall(truth: Ints, chances: Floats, weights: Floats) -> float:
    """Of what is of a class, the share that is given it; mean over the classes."""
    right, _, there = _counts(truth, chances, weights)
    return float((right / there).mean())


def f_score(truth: Ints, chances: Floats, weights: Floats) -> float:
    """The harmonic mean of precision and recall of a class; mean over the classes."""
    right, named, there = _counts(truth, chances, weights)
    return float((2 * right / (named + there)).mean())


def geometric_mean(truth: Ints, chances: Floats, weights: Floats) -> float:
    """The geometric mean of the recalls: 0 if one class is never found."""
    right, _, there = _counts(truth, chances, weights)
    return float(np.prod((right / there) ** (1 / len(there))))


def auc(truth: Ints, chances: Floats, weights: Floats) -> float:
    """The chance that a record of a class is ranked above one of another, ties half; mean over classes."""
    areas = []
    for label in np.unique(truth):
        _, ranks = np.unique(chances[:, label], return_inverse=True)
        positive = np.bincount(ranks, weights * (truth == label))
        negative = np.bincount(ranks, weights * (truth != label))
        below = np.cumsum(negative) - negative
        areas.append((positive * (below + negative / 2)).sum() / (positive.sum() * negative.sum()))
    return float(min(np.mean(areas), 1.0))


def mse(truth: Floats, guesses: Floats, weights: Floats) -> float:
    """Mean squared error."""
    return float(np.average((truth - guesses) ** 2, weights=weights))


def rmse(truth: Floats, guesses: Floats, weights: Floats) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(mse(truth, guesses, weights)))


def mae(truth: Floats, guesses: Floats, weights: Floats) -> float:
    """Mean absolute error."""
    return float(np.average(np.abs(truth - guesses), weights=weights))


#: How predictions of classes are scored: the true classes, the chance of each class, the weights.
VERDICTS: Mapping[str, Verdict] = MappingProxyType(
    {
        "accuracy": accuracy,
        "precision": precision,
        "recall": recall,
        "f": f_score,
        "geometric-mean": geometric_mean,
        "auc": auc,
    }
)

#: How predictions of numbers are scored: the true numbers, the predicted ones, the weights.
ERRORS: Mapping[str, Callable[[Floats, Floats, Floats], float]] = MappingProxyType(
    {"rmse": rmse, "mse": mse, "mae": mae}
)
