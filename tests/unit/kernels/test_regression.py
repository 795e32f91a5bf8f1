"""Regressions against scikit-learn and statsmodels, and where there is no maximum."""

import numpy as np
import pytest

from sfumato.kernels.regression import fit_linear, fit_logistic, weighted_gram, whitening, with_constant


def a_sample(n=200, n_classes=3, seed=2):
    """Features, the class of each record, a number, and weights."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 1.0, 0.0]
    number = (features - features.mean(axis=0)) / features.std(axis=0) @ [1.0, -1.0, 0.5, 0.0]
    number = number + rng.logistic(size=n)
    classes = np.digitize(number, np.linspace(-1, 1, n_classes - 1))
    return features, classes, number, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
def test_linear_coefficients_are_those_of_scikit_learn(ridge):
    Ridge = pytest.importorskip("sklearn.linear_model").Ridge
    features, _, number, weights = a_sample()
    theirs = Ridge(alpha=ridge).fit(features, number, sample_weight=weights)
    ours = fit_linear(with_constant(features), number, weights, ridge=ridge)
    np.testing.assert_allclose(ours, [theirs.intercept_, *theirs.coef_], rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
def test_penalised_logistic_coefficients_are_those_of_scikit_learn(n_classes, ridge):
    LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression
    features, classes, _, weights = a_sample(n_classes=n_classes)
    # Of two classes scikit-learn penalises the one difference of coefficients, we each of the two: half of it.
    theirs = LogisticRegression(
        C=1 / ridge if n_classes > 2 else 2 / ridge, tol=1e-10, max_iter=100, solver="newton-cg"
    ).fit(features, classes, sample_weight=weights)
    ours = fit_logistic(with_constant(features), np.eye(n_classes)[classes], weights, ridge=ridge)
    expected = np.column_stack([theirs.intercept_, theirs.coef_]).T
    if n_classes > 2:
        expected = expected - expected[:, :1]
    np.testing.assert_allclose(ours[:, -expected.shape[1] :], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logistic_coefficients_without_a_penalty_are_those_of_statsmodels(n_classes):
    MNLogit = pytest.importorskip("statsmodels.discrete.discrete_model").MNLogit
    features, classes, _, _ = a_sample(n_classes=n_classes)
    design = with_constant(features)
    theirs = MNLogit(classes, design).fit(disp=False, tol=1e-12, maxiter=100)
    ours = fit_logistic(design, np.eye(n_classes)[classes], np.ones(len(classes)))
    np.testing.assert_allclose(ours[:, 1:], theirs.params, rtol=1e-6, atol=1e-7)
    assert (ours[:, 0] == 0).all()


def test_a_share_of_a_class_is_a_record_of_that_weight():
    features, classes, _, weights = a_sample(n=80)
    design, shares = with_constant(features), np.eye(3)[classes]
    shares[:40] = [0.5, 0.25, 0.25]
    record, answer = np.nonzero(shares)
    apart = fit_logistic(design[record], np.eye(3)[answer], weights[record] * shares[record, answer])
    np.testing.assert_allclose(fit_logistic(design, shares, weights), apart, rtol=1e-6, atol=1e-8)


def test_chances_of_classes_that_separate_tend_to_certainty():
    softmax = pytest.importorskip("scipy.special").softmax
    design = with_constant(np.arange(40.0)[:, None])
    classes = (design[:, 1] > 19.5).astype(int)
    chances = softmax(design @ fit_logistic(design, np.eye(2)[classes], np.ones(40)), axis=1)
    np.testing.assert_allclose(chances, np.eye(2)[classes], atol=1e-7)


def test_one_class_is_certain_and_redundant_columns_change_no_chance():
    features, classes, _, weights = a_sample()
    assert (fit_logistic(with_constant(features), np.ones((200, 1)), weights) == 0).all()
    design, doubled = with_constant(features), with_constant(features[:, [0, 1, 2, 3, 1]])
    once, twice = (fit_logistic(each, np.eye(3)[classes], weights) for each in (design, doubled))
    np.testing.assert_allclose(design @ once, doubled @ twice, rtol=1e-6, atol=1e-7)


def test_whitening_inverts_what_is_identified():
    features, _, _, weights = a_sample()
    gram = weighted_gram(with_constant(features), weights, 2.0)
    turn, known = whitening(gram)
    np.testing.assert_allclose(turn @ turn.T, np.linalg.inv(gram), rtol=1e-8, atol=1e-12)
    assert known.all()
    assert gram[0, 0] == weights.sum()  # the constant is free
    turn, known = whitening(weighted_gram(features[:, [0, 1, 1]], weights))
    assert known.tolist() == [True, False, False]
    assert turn.shape == (3, 2)
