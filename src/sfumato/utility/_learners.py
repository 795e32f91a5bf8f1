"""Learners: what is trained on one table to predict another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from sfumato.errors import MissingDependencyError
from sfumato.kernels.arrays import Flags, Floats, Ints

Model: TypeAlias = Literal["linear", "forest", "guess"]

#: Steps after which a logistic regression is taken as it is.
_STEPS = 500
#: Share of its first slope at which it is done: chances are then right to about four digits.
_FLAT = 1e-5
#: Moves remembered to learn the curvature from.
_MOVES = 10
#: A move, the change of the slope along it, and their product.
_Move: TypeAlias = tuple[Floats, Floats, float]


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
    middles = np.average(lessons.features, axis=0, weights=lessons.weights)
    middle = np.average(lessons.answers, weights=lessons.weights)
    centred = lessons.features - middles
    weighted = centred * lessons.weights[:, None]
    gram = weighted.T @ centred + np.eye(centred.shape[1])
    coefficients = np.linalg.solve(gram, weighted.T @ (lessons.answers - middle))
    return (middle + (tested - middles) @ coefficients)[:, None]


def _logistic(lessons: Training, tested: Floats, _seed: int, *, n_classes: int) -> Floats:
    """Multinomial logistic regression with a penalty of half the squared coefficients, the constants free."""
    from scipy.special import softmax

    chances = np.zeros((len(tested), n_classes))
    present, codes = np.unique(lessons.answers.astype(np.int64), return_inverse=True)
    if len(present) == 1:
        chances[:, present] = 1.0
        return chances
    lines = np.arange(len(codes))
    design = np.column_stack([lessons.features, np.ones(len(codes))])
    free = np.ones((design.shape[1], 1))
    free[-1] = 0.0

    def penalised(coefficients: Floats) -> tuple[float, Floats]:
        scores = design @ coefficients
        scores -= scores.max(axis=1, keepdims=True)
        room = np.exp(scores)  # everything is done in these two places: of many classes, new ones cost most
        totals = np.log(room.sum(axis=1))
        loss = (lessons.weights * (totals - scores[lines, codes])).sum()
        scores -= totals[:, None]
        np.exp(scores, out=room)
        room[lines, codes] -= 1.0
        room *= lessons.weights[:, None]
        slope = design.T @ room
        penalty = free * coefficients
        return float(loss + (penalty * coefficients).sum() / 2), slope + penalty

    # No class curves the loss by more than a half of this, so its inverse is where steps begin from.
    curvature = (design * lessons.weights[:, None]).T @ design / 2 + np.diag(np.maximum(free[:, 0], 1e-9))
    coefficients = lowest(penalised, np.linalg.inv(curvature), np.zeros((design.shape[1], len(present))))
    chances[:, present] = softmax(tested @ coefficients[:-1] + coefficients[-1], axis=1)
    return chances


def lowest(function: Callable[[Floats], tuple[float, Floats]], inverse: Floats, start: Floats) -> Floats:
    """Find where a smooth convex function is least, given with its slope, by L-BFGS.

    Our own, since that of SciPy waits for threads longer than a small fit takes. ``inverse`` is a first
    guess of the inverse curvature of every column.
    """
    point, (value, slope) = start, function(start)
    flat = _FLAT * max(float(np.abs(slope).max(initial=0.0)), 1.0)
    moves: list[_Move] = []
    for _ in range(_STEPS):
        if np.abs(slope).max(initial=0.0) <= flat:
            break
        direction = -_newtonian(slope, moves, inverse)
        fall, length = float((direction * slope).sum()), 1.0
        while (tried := function(point + length * direction))[0] > value + 1e-4 * length * fall:
            length /= 2
            if length < 1e-9:  # noqa: PLR2004  — rounding hides what is left to gain
                return point
        step, bend = length * direction, tried[1] - slope
        if (along := float((step * bend).sum())) > 0:
            moves = [*moves[1 - _MOVES :], (step, bend, along)]
        point, value, slope = point + step, *tried
    return point


def _newtonian(slope: Floats, moves: list[_Move], inverse: Floats) -> Floats:
    """The inverse curvature, as the last moves tell of it, applied to a slope."""
    left, shares = slope, []
    for move, bend, along in reversed(moves):
        shares.append((move * left).sum() / along)
        left = left - shares[-1] * bend
    found: Floats = inverse @ left
    for (move, bend, along), share in zip(moves, reversed(shares), strict=True):
        found = found + (share - (bend * found).sum() / along) * move
    return found


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
