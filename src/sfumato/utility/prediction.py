"""Prediction: models trained on the release, tested on original records that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Counting, Laws, Scaling, Score, Tells
from sfumato.core.params import param
from sfumato.core.run import Run
from sfumato.data.schema import ORDERED, Kind
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.utility._features import (
    MAX_CATEGORIES,
    RECORDS_HELP,
    TargetMeasure,
    column_spans,
    features_of,
    shares_of,
    standardise_pair,
    weights_of_both,
)
from sfumato.utility._learners import Learner, Model, Training, learner


@dataclass(frozen=True, eq=False)
class Task:
    """One target: what is known of the original's records, what the release teaches, who is who."""

    tested: Floats  # [records, features] of the original
    truth: Floats  # [records] the class or number of each
    weights: Floats
    taught: Training  # of the original
    released: Training
    n_classes: int  # 0: the target is a number


class PredictionMeasure(TargetMeasure):
    """A measure of how well models of the release predict the original: what its kind have in common."""

    cost = "n"
    counts = Counting(
        laws=Laws(
            reads_order="Of equal records that were changed differently the first are dealt first.",
            reads_names="Its draws follow the order of the columns, which is that of their names.",
        )
    )
    classes: ClassVar[bool]

    records: int = param(1_500, RECORDS_HELP, ge=20, unit="records")
    draws: int = param(3, "Number of samples of larger tables.", ge=2, le=100)
    model: Literal["linear", "forest"] = param(
        "linear",
        "Which model is trained.",
        choices={
            "linear": "A logistic or linear regression with a ridge.",
            "forest": "A random forest of scikit-learn.",
        },
    )
    folds: int = param(5, "Number of parts of the original, each predicted in turn (folds).", ge=2, le=20)
    repeats: int = param(2, "Number of times the original is split; a sample is split once.", ge=1, le=100)
    trees: int = param(100, "Number of trees of a forest.", ge=1, le=2000, when="model=forest")

    def verdict(self, task: Task, guesses: Floats) -> float:
        """Score guesses for all records of a task."""
        raise NotImplementedError  # abstract: classes and numbers have their own

    def measure(self, evidence: Evidence, run: Run) -> Score:
        """Split all records as often as asked, or each sample once: it is another split anyhow."""
        is_sampled = max(len(evidence.original), len(evidence.protected or ())) > self.records
        measure = replace(self, repeats=1) if is_sampled else self
        return super(PredictionMeasure, measure).measure(evidence, run)

    def fit(self, evidence: Evidence, run: Run) -> Score:
        """Train and test every target, as often as asked."""
        targets = self.targets(evidence)
        found: dict[str, Floats] = {}
        for target in targets:
            task = _task(evidence, target, self.predictors_of(evidence, target), classes=self.classes)
            if task is not None:
                found[target] = self._scores_by_repeat(task, run.at("target", target))
        if not found:
            return Score.not_estimable("no target varies in the original and has values in the release")
        means = np.mean(list(found.values()), axis=0)  # [repeats, (release, original, guess)]
        value, baseline, guess = (float(mean) for mean in means.mean(axis=0))
        return Score(
            value=value,
            interval=(float(means[:, 0].min()), float(means[:, 0].max())),
            by_column={target: float(scores[:, 0].mean()) for target, scores in found.items()},
            baseline=baseline,
            details={"guess": guess, "targets": len(found), "targets_left_out": len(targets) - len(found)},
        )

    def _scores_by_repeat(self, task: Task, run: Run) -> Floats:
        """Score a model of the release, one of the original, and a guess, in each repeat [repeats, 3]."""
        models: tuple[Model, ...] = (self.model, self.model, "guess")
        scores = []
        for repeat in run.track(self.title, range(self.repeats), total=self.repeats):
            place = run.at("repeat", repeat)
            folds = _folds(task.truth, self.folds, place.rng("folds"), classes=self.classes)
            lessons = task.released, task.taught, task.taught
            guesses = [
                _held_out(
                    task, each, folds, learner(model, n_classes=task.n_classes, trees=self.trees), place
                )
                for each, model in zip(lessons, models, strict=True)
            ]
            scores.append([self.verdict(task, each) for each in guesses])
        return np.array(scores)


class Prediction(PredictionMeasure):
    r"""How well a model trained on the release predicts the classes of original records.

    The original is cut into ``folds`` parts. Each part is predicted by a model that was trained on the
    release without the records that come from it (on all of a release whose records do not map), and all
    predictions are scored together:

    ==================  ====================================================================================
    accuracy            share of records whose class is right
    precision           of the records given a class, the share that is of it; mean over the classes
    recall              of the records of a class, the share that is given it; mean over the classes
    f                   harmonic mean of precision and recall of a class; mean over the classes
    geometric-mean      geometric mean of the recalls
    auc                 chance that a record of a class is ranked above one of another; mean over the classes
    ==================  ====================================================================================

    See Also
    --------
    PredictionError : the same for numbers.
    ClassificationMetric : the loss by classes of alike records, without a model.

    Notes
    -----
    **How to read it.** 1 is perfect. ``baseline`` is what a model trained on the original scores
    in the same folds: the release lost what lies between. ``details`` has the score of guessing without any
    predictor. Higher is better; the mean over several targets, ``by_column`` has each. By chance the release
    can do better than the original.

    **Doubt.** The value depends on how the original is cut; the interval goes from the worst to the best of
    the ``repeats``. Of tables above ``records`` each sample is cut once, and the status is then approximate.
    "linear" is a logistic regression with a ridge of 1, "forest" a random forest of scikit-learn. Beyond 20
    classes the rarest count as one. Averages are over the classes that the original has.

    **Missing.** Records whose target is missing neither teach nor test. A predictor that is missing or a
    wildcard is a feature of its own. Generalised values teach by their expectation: ranges by their middle,
    sets of categories in equal shares; a generalised target teaches each of its classes with its share.
    Records need not map, though then a model may have seen the records it is tested on. Where both tables
    have weights, training and scores are weighted.

    **Cost.** ``folds`` × ``repeats`` × 2 fits for each target, of :math:`O(n)` each (a forest:
    :math:`O(n \log n)`), which ``records`` bounds.
    """

    name = "prediction"
    synonyms = ("classification", "predictive performance", "classification accuracy", "TSTR")
    family = "analyses"
    tells = Tells(places={"report": 5, "models": 3})
    scales = Scaling(exact_up_to=200_000)
    title = "Prediction of classes"
    better = "high"
    bounds = (0.0, 1.0)
    target_kinds = frozenset({Kind.NOMINAL, Kind.ORDINAL})
    references = ("lefevre2006workload", "kubat1998", "rijsbergen1979", "breiman2001", "carvalho2023")
    classes = True

    score_by: Literal["accuracy", "precision", "recall", "f", "geometric-mean", "auc"] = param(
        "accuracy",
        "How predictions are scored.",
        choices={
            "accuracy": "The share of records whose class is right.",
            "precision": "Of the records predicted to be in a class, the share that is; mean over classes.",
            "recall": "Of the records of a class, the share predicted to be in it; mean over the classes.",
            "f": "The harmonic mean of precision and recall of a class; mean over the classes.",
            "geometric-mean": "The geometric mean of the recalls.",
            "auc": "The probability that a record of a class is ranked above another; mean over the classes.",
        },
        synonyms={
            "F-score": "f",
            "F1": "f",
            "F-measure": "f",
            "G-mean": "geometric-mean",
            "area under the ROC curve": "auc",
        },
    )

    def verdict(self, task: Task, guesses: Floats) -> float:
        """Score chances of classes [records, classes]."""
        return VERDICTS[self.score_by](task.truth.astype(np.int64), guesses, task.weights)


class PredictionError(PredictionMeasure):
    r"""Error of a model trained on the release when it predicts the numbers of original records.

    The original is cut into ``folds`` parts. Each part is predicted by a model that was trained on the
    release without the records that come from it (on all of a release whose records do not map). With
    :math:`e_i` the error of record :math:`i`, in standard deviations of the target in the original,

    .. math::

        RMSE = \sqrt{\frac{1}{n} \sum_i e_i^2}, \qquad MSE = RMSE^2, \qquad MAE = \frac{1}{n} \sum_i |e_i|.

    See Also
    --------
    Prediction : the same for classes.
    CoefficientOverlap : whether the coefficients of the model are the same.

    Notes
    -----
    **How to read it.** 0 is perfect; 1 is about what the mean of the target would do
    (``details`` has it as the guess). ``baseline`` is what a model trained on the original scores in the
    same folds. Lower is better; the mean over several targets, ``by_column`` has each.

    **Doubt.** The value depends on how the original is cut; the interval goes from the best to the worst of
    the ``repeats``. Of tables above ``records`` each sample is cut once, and the status is then approximate.
    "linear" is a least-squares regression with a ridge of 1, "forest" a random forest of scikit-learn. One
    far value weighs heavily in squares: "mae" is calmer.

    **Missing.** Records whose target is missing neither teach nor test. A predictor that is missing or a
    wildcard is a feature of its own. Generalised values teach by their expectation: ranges by their middle,
    sets of categories in equal shares. Ordinal targets count by position. Records need not map, though then a
    model may have seen the records it is tested on. Where both tables have weights, training and scores are
    weighted.

    **Cost.** ``folds`` × ``repeats`` × 2 fits for each target, of :math:`O(n)` each (a forest:
    :math:`O(n \log n)`), which ``records`` bounds.
    """

    name = "prediction-error"
    synonyms = ("predictive performance", "regression error")
    family = "analyses"
    tells = Tells(places={"report": 6, "models": 4})
    scales = Scaling(exact_up_to=200_000)
    title = "Prediction error"
    better = "low"
    bounds = (0.0, np.inf)
    target_kinds = ORDERED
    references = ("lefevre2006workload", "breiman2001", "carvalho2023")
    classes = False

    score_by: Literal["rmse", "mse", "mae"] = param(
        "rmse",
        "How errors are put together.",
        choices={
            "rmse": "The root of the mean squared error.",
            "mse": "The mean squared error.",
            "mae": "The mean absolute error.",
        },
        synonyms={
            "mean squared error": "mse",
            "root mean squared error": "rmse",
            "mean absolute error": "mae",
        },
    )

    def verdict(self, task: Task, guesses: Floats) -> float:
        """Score numbers [records, 1]."""
        return ERRORS[self.score_by](task.truth, guesses[:, 0], task.weights)


# Tasks -------------------------------------------------------------------------------------------------


def _task(evidence: Evidence, target: str, predictors: tuple[str, ...], *, classes: bool) -> Task | None:
    """Put together what is learnt and tested of one target; None where there is nothing to tell apart."""
    features = features_of(evidence, predictors)
    numbers, spans = column_spans(evidence, target)
    original_weights, released_weights = weights_of_both(evidence)
    there, taught = np.flatnonzero(~np.isnan(numbers)), np.flatnonzero(~spans.uninformative)
    places = np.full(len(numbers) + 1, -1, dtype=np.int64)  # a source of −1 is the last: nobody
    places[there] = np.arange(len(there))
    sources = None if evidence.source_rows is None else places[evidence.source_rows[taught]]
    if classes:
        shares = shares_of(numbers, spans, many=MAX_CATEGORIES)
        truth = np.nonzero(shares[0][there])[1].astype(np.float64)  # the one class of each
        answers = shares[0][there], shares[1][taught]
    else:
        values = standardise_pair(numbers, spans.means)
        truth = values[0][there]
        answers = values[0][there], values[1][taught]
    if len(there) < 2 or not len(taught) or not np.ptp(truth) > 0:  # noqa: PLR2004
        return None
    tested = features.original[there]
    return Task(
        tested=tested,
        truth=truth,
        weights=original_weights[there],
        taught=_training(tested, answers[0], original_weights[there], np.arange(len(there))),
        released=_training(features.released[taught], answers[1], released_weights[taught], sources),
        n_classes=answers[0].shape[1] if classes else 0,
    )


def _training(features: Floats, answers: Floats, weights: Floats, sources: Ints | None) -> Training:
    """What is learnt from records; one that may be of several classes is of each, with its share."""
    if answers.ndim == 1:
        return Training(features, answers, weights, sources)
    record, answer = np.nonzero(answers)
    return Training(
        features if len(record) == len(features) else features[record],
        answer.astype(np.float64),
        weights[record] * answers[record, answer],
        None if sources is None else sources[record],
    )


def _folds(truth: Floats, n_folds: int, rng: np.random.Generator, *, classes: bool) -> Ints:
    """Cut records by chance into equal parts that have all classes, or small and large numbers, alike."""
    shuffled = rng.permutation(len(truth))
    order = shuffled[np.argsort(truth[shuffled], kind="stable")]
    dealt = np.arange(len(truth)) % n_folds  # the records of a class stand in an order of chance
    if not classes:  # numbers do not: of neighbours one goes to each part
        dealt = rng.random((len(truth) // n_folds + 1, n_folds)).argsort(axis=1).ravel()[: len(truth)]
    folds = np.empty(len(truth), dtype=np.int64)
    folds[order] = dealt
    return folds


def _held_out(task: Task, training: Training, folds: Ints, train: Learner, run: Run) -> Floats:
    """Predict each fold from what does not come from it."""
    guesses = np.zeros((len(task.truth), max(task.n_classes, 1)))
    for fold, tested in _parts(folds, whole=training.sources is None):
        lessons = training if training.sources is None else training.take(~_from_fold(training, folds, fold))
        if len(lessons.answers) and lessons.weights.sum() > 0:
            seed = int(run.rng("model", fold).integers(1 << 31))
            guesses[tested] = train(lessons, task.tested[tested], seed)
        elif task.n_classes:
            guesses[tested] = 1.0 / task.n_classes  # nothing was taught, so all classes are as likely
    return guesses


def _parts(folds: Ints, *, whole: bool) -> Iterator[tuple[int, Flags]]:
    """The folds; of what teaches all of them alike, all at once."""
    if whole:
        yield 0, np.ones(len(folds), dtype=np.bool_)
        return
    for fold in range(int(folds.max()) + 1):
        yield fold, folds == fold


def _from_fold(training: Training, folds: Ints, fold: int) -> Flags:
    assert training.sources is not None
    found: Flags = np.append(folds, -1)[training.sources] == fold  # a source of −1 is the last: in no fold
    return found


# How good predictions are --------------------------------------------------------------------------------


PredictionScore = Callable[[Ints, Floats, Floats], float]


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
VERDICTS: Mapping[str, PredictionScore] = MappingProxyType(
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
