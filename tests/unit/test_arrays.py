"""Algorithms on arrays give what the methods and measures of their name give, and refuse what they cannot take."""

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato import arrays
from sfumato.errors import ParameterError


@pytest.fixture
def points():
    return np.random.default_rng(1).normal(size=(60, 3))


@pytest.fixture
def codes():
    return np.random.default_rng(1).integers(0, 4, size=(60, 3))


def frame_of(matrix):
    return pl.DataFrame(matrix, schema=["a", "b", "c"])


def test_mdav_groups_as_the_method(points):
    groups = arrays.mdav(points, 4)
    assert np.bincount(groups).min() >= 4
    means = np.array([points[groups == group].mean(axis=0) for group in groups])
    release = sfumato.methods.mdav(frame_of(points), ["a", "b", "c"], 4, scale="none", centre="mean")
    np.testing.assert_allclose(release.data.to_numpy(), means)


def test_mondrian_groups_as_the_method(points):
    points[::7, 1] = np.nan
    groups = arrays.mondrian(points, 5)
    assert np.bincount(groups).min() >= 5
    release = sfumato.methods.mondrian(frame_of(points), ["a", "b", "c"], 5)
    shown = release.to_pandas().groupby(["a", "b", "c"], dropna=False).ngroup().to_numpy()
    np.testing.assert_array_equal(shown[:, None] == shown, groups[:, None] == groups)


def test_suppress_leaves_k_records_that_show_the_same(codes):
    lost = arrays.suppress(codes, 3)
    shown = np.where(lost, -1, codes)
    assert np.unique(shown, axis=0, return_counts=True)[1].min() >= 3
    release = sfumato.methods.local_suppression(frame_of(codes.astype(str)), ["a", "b", "c"], 3)
    assert lost.sum() == release.data.null_count().to_numpy().sum()


def test_important_keys_lose_cells_last(codes):
    lost = arrays.suppress(codes, 3, importance=[1000, 1, 1])
    assert lost[:, 0].sum() <= arrays.suppress(codes, 3)[:, 0].sum()


def test_suda_scores_as_the_measure(codes):
    score = sfumato.risk.suda(frame_of(codes.astype(str)), ["a", "b", "c"])
    np.testing.assert_array_equal(arrays.suda(codes).scores, score.by_record)


def test_assign_finds_the_least_total(points):
    shuffled = np.random.default_rng(2).permutation(len(points))
    found = arrays.assign(points, points[shuffled] + 1e-6)
    np.testing.assert_array_equal(shuffled[found.partners], np.arange(len(points)))
    assert found.certified


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arrays.mdav([1.0, 2.0], 2), "shape"),
        (lambda: arrays.mdav([[np.nan]], 2), "finite"),
        (lambda: arrays.mdav([["x"]], 2), "`points` must be numbers"),
        (lambda: arrays.mdav([[1.0]], 0), "`k` must be a whole number of at least 1"),
        (lambda: arrays.suda([[0.5]]), "whole numbers"),
        (lambda: arrays.suppress([[1, 2]], 1, importance=[1]), "2 numbers above 0"),
        (lambda: arrays.assign([[1.0]], [[1.0, 2.0]]), "same columns"),
        (lambda: arrays.assign([[1.0]], [[1.0]], metric="cosine"), "one of euclidean"),
    ],
)
def test_what_cannot_be_taken_is_refused(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
