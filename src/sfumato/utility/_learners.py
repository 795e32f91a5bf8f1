"""Learners: what is trained on one table to predict another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from sfumato.errors import MissingDependencyError
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.regression import fit_linear, fit_logistic, with_constant

#: Largest slope of the mean log-likelihood at which chances are known well enough to guess by them.
_FLAT_ENOUGH = 1e-6

Model: TypeAlias = Literal["linear", "forest", "guess"]


@dataclass(frozen=True, eq=False)
class Training:
    """What is learnt from: features, the answer to each (a class or a number), and how much it counts."""

    features: Floats  # [lessons, features]
    answers: Floats  # [lessons]
    weights: Floats
    sources: Ints | None  # which tested record each comes from; −1: none. None: nobody knows

    def take(self, lessons: Flags) -> Training:
        """Keep these lessons."""
        sources = None if self.sources is None else self.sources[lessons]
        return Training(self.features[lessons], self.answers[lessons], self.weights[lessons], sources)


#: Takes what is to be learnt, the features to predict for and a seed; gives the chance of each class
#: [tested, classes], or a number for each [tested, 1].
Learner: TypeAlias = Callable[[Training, Floats, int], Floats]


def learner(model: Model, *, n_classes: int, trees: int) -> Learner:
    """Give the learner of a name, for so many classes (0: for numbers)."""
    if model == "forest":
        return partial(_forest, n_classes=n_classes, trees=trees)
    if not n_classes:
        return _ridge if model == "linear" else _mean
    return partial(_logistic if model == "linear" else _frequencies, n_classes=n_classes)


def _mean(lessons: Training, tested: Floats, _seed: int) -> Floats:
    """Guess the mean, whatever the record."""
    return np.full((len(tested), 1), np.average(lessons.answers, weights=lessons.weights))


def _frequencies(lessons: Training, tested: Floats, _seed: int, *, n_classes: int) -> Floats:
    """Guess each class as often as it occurs, whatever the record."""
    counts = np.bincount(lessons.answers.astype(np.int64), lessons.weights, minlength=n_classes)
    return np.tile(counts / counts.sum(), (len(tested), 1))


def _ridge(lessons: Training, tested: Floats, _seed: int) -> Floats:
    """Least squares with a penalty of the squared coefficients, the constant free."""
    design = with_constant(lessons.features)
    coefficients = fit_linear(design, lessons.answers, lessons.weights, ridge=1.0)
    return (with_constant(tested) @ coefficients)[:, None]


def _logistic(lessons: Training, tested: Floats, _seed: int, *, n_classes: int) -> Floats:
    """Multinomial logistic regression with a penalty of half the squared coefficients, the constants free."""
    from scipy.special import softmax

    present, codes = np.unique(lessons.answers.astype(np.int64), return_inverse=True)
    design, shares = with_constant(lessons.features), np.eye(len(present))[codes]
    coefficients = fit_logistic(design, shares, lessons.weights, ridge=1.0, flat=_FLAT_ENOUGH)
    chances = np.zeros((len(tested), n_classes))
    chances[:, present] = softmax(with_constant(tested) @ coefficients, axis=1)
    return chances


def _forest(lessons: Training, tested: Floats, seed: int, *, n_classes: int, trees: int) -> Floats:
    """Random forest."""
    try:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    except ImportError as error:
        raise MissingDependencyError.of("scikit-learn", extra="models", purpose="a random forest") from error
    if not n_classes:
        trained = RandomForestRegressor(trees, random_state=seed, n_jobs=1)
        trained.fit(lessons.features, lessons.answers, sample_weight=lessons.weights)
        numbers: Floats = trained.predict(tested)
        return numbers[:, None]
    trained = RandomForestClassifier(trees, random_state=seed, n_jobs=1)
    trained.fit(lessons.features, lessons.answers.astype(np.int64), sample_weight=lessons.weights)
    chances = np.zeros((len(tested), n_classes))
    chances[:, trained.classes_] = trained.predict_proba(tested)
    return chances
