"""Predictions: learners and verdicts against scikit-learn, and who teaches whom."""

import sys

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import MissingDependencyError
from sfumato.utility import _verdicts as verdicts
from sfumato.utility._learners import Training, learner
from sfumato.utility.prediction import Prediction, PredictionError, _folds
from toys import table_of

CLASS = (Kind.NOMINAL, Role.SENSITIVE)
NUMBER = (Kind.CONTINUOUS, Role.SENSITIVE)


def score(measure, original, protected, rows=None):
    return measure.score(Evidence(original, protected, source_rows=rows), Run(seed=1))


def classes(n=200, seed=1, noise=0.3):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    y = np.where(x + z + noise * rng.normal(size=n) > 0, "yes", "no")
    return table_of({"x": x, "z": z, "y": y}, y=CLASS)


# ------------------------------------------------------------------------------------------------ verdicts


def guesses(seed, n_classes=3, n=60):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    chances = rng.random((n, n_classes)).round(1) + 0.5 * np.eye(n_classes)[truth] * (
        rng.random((n, 1)) < 0.5
    )
    return truth, chances / chances.sum(axis=1, keepdims=True), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_verdicts_are_those_of_scikit_learn(seed, n_classes):
    metrics = pytest.importorskip("sklearn.metrics")
    truth, chances, weights = guesses(seed, n_classes)
    given = chances.argmax(axis=1)
    each = {"average": "macro", "sample_weight": weights, "zero_division": 0}
    expected = {
        "accuracy": metrics.accuracy_score(truth, given, sample_weight=weights),
        "precision": metrics.precision_score(truth, given, **each),
        "recall": metrics.recall_score(truth, given, **each),
        "f": metrics.f1_score(truth, given, **each),
        "auc": np.mean(
            [
                metrics.roc_auc_score(truth == label, chances[:, label], sample_weight=weights)
                for label in range(n_classes)
            ]
        ),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(verdicts.VERDICTS[name](truth, chances, weights), value, rtol=1e-9)


def test_verdicts_by_hand():
    # Classes 0, 0, 0, 1; given 0, 0, 1, 1: recalls 2/3 and 1, precisions 1 and 1/2, f 4/5 and 2/3.
    truth, ones = np.array([0, 0, 0, 1]), np.ones(4)
    chances = np.eye(2)[[0, 0, 1, 1]]
    assert verdicts.accuracy(truth, chances, ones) == 3 / 4
    np.testing.assert_allclose(verdicts.recall(truth, chances, ones), 5 / 6)
    np.testing.assert_allclose(verdicts.precision(truth, chances, ones), 3 / 4)
    np.testing.assert_allclose(verdicts.f_score(truth, chances, ones), (4 / 5 + 2 / 3) / 2)
    np.testing.assert_allclose(verdicts.geometric_mean(truth, chances, ones), np.sqrt(2 / 3))
    # Of the three pairs of a 1 with a 0, two are in order and one is a tie.
    np.testing.assert_allclose(verdicts.auc(truth, chances, ones), 2.5 / 3)


def test_a_class_that_is_never_given_has_no_precision_and_no_geometric_mean():
    truth, chances, ones = np.array([0, 0, 1]), np.eye(2)[[0, 0, 0]], np.ones(3)
    np.testing.assert_allclose(verdicts.precision(truth, chances, ones), (2 / 3 + 0) / 2)
    assert verdicts.geometric_mean(truth, chances, ones) == 0


def test_errors_by_hand():
    truth, given, weights = np.array([0.0, 0.0]), np.array([1.0, 3.0]), np.array([3.0, 1.0])
    assert verdicts.mse(truth, given, weights) == 3
    assert verdicts.rmse(truth, given, weights) == np.sqrt(3)
    assert verdicts.mae(truth, given, weights) == 1.5


# ------------------------------------------------------------------------------------------------ learners


def lessons(n=120, n_classes=3, seed=2):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 4))
    answers = (features @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=n)).round(3)
    if n_classes:
        answers = np.digitize(answers, [-0.7, 0.9][: n_classes - 1]).astype(float)
    return Training(features, answers, rng.integers(1, 4, n).astype(float), None), rng.normal(size=(30, 4))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_is_that_of_scikit_learn(n_classes):
    LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression
    training, tested = lessons(n_classes=n_classes)
    ours = learner("linear", n_classes=n_classes, trees=1)(training, tested, 0)
    # With two classes scikit-learn has one vector of coefficients, we have two opposite ones: half the penalty.
    theirs = LogisticRegression(
        C=1.0 if n_classes > 2 else 2.0, solver="newton-cg", tol=1e-10, max_iter=10_000
    )
    theirs.fit(training.features, training.answers, sample_weight=training.weights)
    np.testing.assert_allclose(ours, theirs.predict_proba(tested), atol=2e-6)


def test_ridge_is_that_of_scikit_learn():
    Ridge = pytest.importorskip("sklearn.linear_model").Ridge
    training, tested = lessons(n_classes=0)
    ours = learner("linear", n_classes=0, trees=1)(training, tested, 0)
    theirs = Ridge(alpha=1.0).fit(training.features, training.answers, sample_weight=training.weights)
    np.testing.assert_allclose(ours[:, 0], theirs.predict(tested), rtol=1e-9)


def test_a_forest_repeats_with_its_seed():
    pytest.importorskip("sklearn")
    for n_classes in (0, 3):
        training, tested = lessons(n_classes=n_classes)
        train = learner("forest", n_classes=n_classes, trees=5)
        first, again, other = (
            train(training, tested, 1),
            train(training, tested, 1),
            train(training, tested, 2),
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


@pytest.mark.parametrize("model", ["linear", "guess"])
def test_classes_nobody_taught_have_no_chance(model):
    training, tested = lessons(n_classes=2)
    chances = learner(model, n_classes=4, trees=1)(training, tested, 0)
    assert chances.shape == (30, 4)
    np.testing.assert_allclose(chances[:, 2:], 0)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    alone = Training(training.features, np.full(120, 3.0), training.weights, None)
    assert (learner(model, n_classes=4, trees=1)(alone, tested, 0)[:, 3] == 1).all()


def test_without_scikit_learn_a_forest_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    original = classes(40)
    with pytest.raises(MissingDependencyError, match="sfumato\\[models\\]"):
        score(Prediction(model="forest"), original, original, np.arange(40))


# ------------------------------------------------------------------------------------------------ the measures


@pytest.mark.parametrize("score_by", sorted(verdicts.VERDICTS))
@pytest.mark.parametrize("model", ["linear", "forest"])
def test_the_original_predicts_as_well_as_the_original(model, score_by):
    if model == "forest":
        pytest.importorskip("sklearn")
    original = classes(80)
    measure = Prediction(model=model, score_by=score_by, trees=5)
    found = score(measure, original, original, np.arange(80))
    assert found.value == found.baseline
    assert found.value > found.details["guess"]
    assert found.interval[0] <= found.value <= found.interval[1]


def test_a_release_that_knows_nothing_of_the_class_is_a_guess():
    original = classes(400, noise=0.0)
    shuffled = original.with_values("y", original.frame["y"].sample(fraction=1.0, shuffle=True, seed=1))
    found = score(Prediction(), original, shuffled, np.arange(400))
    assert found.baseline > 0.95
    assert abs(found.value - 0.5) < 0.15
    assert abs(found.details["guess"] - 0.5) < 0.1


def test_nobody_teaches_what_they_are_tested_on():
    """Answers drawn by chance can be remembered, not learnt: a fold without its own records scores by chance."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(5)
    original = table_of({"x": rng.random(200), "y": rng.choice(["a", "b"], 200)}, y=CLASS)
    measure = Prediction(model="forest", trees=20, repeats=1)
    apart = score(measure, original, original, np.arange(200))
    assert 0.35 < apart.value < 0.65  # 200 fair coins lie there in all but 2 of 100,000 cases
    remembered = score(measure, original, original)  # as if nobody knew whose records they are
    assert remembered.value > 0.9


def test_a_generalised_class_teaches_each_of_its_members():
    original = table_of({"x": [0.0, 0.0, 1.0, 1.0] * 20, "y": ["a", "a", "b", "b"] * 20}, y=CLASS)
    nodes = Nodes.of({"a": ["a"], "b": ["b"], "ab": ["a", "b"]}, leaves=["a", "b"])
    labels = pl.Series("y", ["a", "ab", "b", "*"] * 20, dtype=nodes.dtype)
    coarse = Table(original.frame.with_columns(labels), original.schema, nodes={"y": nodes})
    # At 0 the lessons are a and half a, half b: a wins; at 1 they are b and nothing.
    assert score(Prediction(), original, coarse, np.arange(80)).value == 1
    all_alike = pl.Series("y", ["ab"] * 80, dtype=nodes.dtype)
    blurred = Table(original.frame.with_columns(all_alike), original.schema, nodes={"y": nodes})
    assert score(Prediction(), original, blurred, np.arange(80)).value == 0.5


def test_numbers_that_follow_from_others_are_predicted():
    x = np.linspace(0, 10, 200)
    original = table_of({"x": x, "y": 3 * x - 7}, y=NUMBER)
    found = score(PredictionError(), original, original, np.arange(200))
    assert found.value < 0.02  # the ridge shrinks a little
    np.testing.assert_allclose(found.details["guess"], 1, atol=0.01)  # the mean is one deviation off
    squared = score(PredictionError(score_by="mse"), original, original, np.arange(200))
    np.testing.assert_allclose(squared.value, found.value**2, rtol=0.01)
    constant = original.with_values("x", pl.Series("x", np.zeros(200)))
    np.testing.assert_allclose(
        score(PredictionError(), original, constant, np.arange(200)).value, 1, atol=0.05
    )


@pytest.mark.parametrize("classes", [True, False])
def test_folds_are_alike_and_drawn_by_chance(classes):
    truth = np.repeat([0.0, 1.0], [18, 5]) if classes else np.arange(23.0)
    first, second = (_folds(truth, 5, np.random.default_rng(seed), classes=classes) for seed in (1, 2))
    assert (first != second).any()
    for folds in (first, second):
        counts = np.bincount(folds, minlength=5)
        assert counts.max() - counts.min() <= 1
        if classes:
            assert (np.bincount(folds[truth == 1], minlength=5) == 1).all()
        else:  # of the first five, the next five and so on, one each
            assert all(len(set(folds[start : start + 5])) == 5 for start in range(0, 20, 5))


def test_ordinal_targets_are_classes_or_positions():
    column = Column("y", Kind.ORDINAL, Role.SENSITIVE, order=("low", "middle", "high"))
    original = table_of({"x": [0.0, 1.0, 2.0] * 30, "y": ["low", "middle", "high"] * 30}, y=column)
    rows = np.arange(90)
    assert score(Prediction(), original, original, rows).value == 1
    assert score(PredictionError(), original, original, rows).value < 0.05


def test_several_targets_are_a_mean():
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    original = table_of({"x": x, "y": x > 0, "z": rng.random(100) > 0.5}, y=CLASS, z=CLASS)
    found = score(Prediction(), original, original, np.arange(100))
    assert set(found.by_column) == {"y", "z"}
    np.testing.assert_allclose(found.value, np.mean(list(found.by_column.values())))


def test_weights_weigh():
    """Records of weight almost 0 neither teach nor test."""
    schema = Schema(
        (
            Column("x", Kind.CONTINUOUS),
            Column("y", Kind.NOMINAL, Role.SENSITIVE),
            Column("w", Kind.CONTINUOUS, Role.WEIGHT),
        )
    )
    x = np.tile([-1.0, 1.0], 100)
    right = np.repeat([True, False], 100)
    y = np.where((x > 0) == right, "yes", "no")
    frame = pl.DataFrame({"x": x, "y": y, "w": np.where(right, 1.0, 1e-9)})
    original = Table(frame, schema)
    np.testing.assert_allclose(score(Prediction(), original, original, np.arange(200)).value, 1, rtol=1e-6)


def test_what_is_not_estimable_and_refused():
    one_class = table_of({"x": [1.0, 2.0, 3.0], "y": ["a", "a", "a"]}, y=CLASS)
    assert score(Prediction(), one_class, one_class, np.arange(3)).status is Status.NOT_ESTIMABLE
    original = classes(30)
    nothing = original.with_values("y", pl.Series("y", [None] * 30, dtype=pl.String))
    assert score(Prediction(), original, nothing, np.arange(30)).status is Status.NOT_ESTIMABLE
    assert score(PredictionError(), original, original, np.arange(30)).status is Status.REFUSED  # classes


def test_large_tables_are_sampled():
    original = classes(400)
    found = score(Prediction(records=100, draws=3, repeats=1), original, original, np.arange(400))
    assert found.status is Status.APPROXIMATE
    assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1
