"""Rotation: the matrices against their definition, and what happens to records that lack values."""

import itertools

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Progress, Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import Cancelled, RefusedError
from sfumato.methods import rotation
from sfumato.methods.rotation import RotationNoise, rotate_groups


def table_of(values):
    names = [f"c{i}" for i in range(values.shape[1])]
    frame = pl.DataFrame({name: values[:, i] for i, name in enumerate(names)})
    return Table(frame, Schema(tuple(Column(name, Kind.CONTINUOUS) for name in names)))


def protected(method, values, seed=1):
    return method.apply(table_of(values), Run(seed=seed)).table.frame.to_numpy()


def matrices(size, angle, count=1, seed=5):
    """The matrices by which groups are multiplied: what becomes of the identity."""
    return rotate_groups(np.stack([np.eye(size)] * count), angle, np.random.default_rng(seed))


@pytest.fixture
def incomes():
    rng = np.random.default_rng(4)
    base = rng.lognormal(10, 1, (400, 1))
    return np.hstack([base * rng.lognormal(0, 0.4, (400, 1)) for _ in range(3)])


@pytest.mark.parametrize("size", [3, 4, 5, 8, 101])
@pytest.mark.parametrize("angle", [0.001, 0.5, np.pi / 2])
def test_matrices_are_orthogonal_and_fix_the_ones(size, angle):
    (matrix,) = matrices(size, angle)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(size), atol=1e-13)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, atol=1e-13)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-13)
    assert np.linalg.det(matrix) == pytest.approx(1)
    turned = 2 * ((size - 1) // 2)  # of all directions, these are turned
    assert np.trace(matrix) == pytest.approx(size - turned + turned * np.cos(angle))


def test_of_an_odd_group_every_direction_is_turned():
    """T + Tᵀ = 2 cos θ (I − 11ᵀ/g) + 2·11ᵀ/g, which is what the second formula of the docstring says."""
    (matrix,) = matrices(7, 0.8)
    middle = np.full((7, 7), 1 / 7)
    np.testing.assert_allclose(
        matrix + matrix.T, 2 * np.cos(0.8) * (np.eye(7) - middle) + 2 * middle, atol=1e-13
    )


def test_three_records_by_hand():
    """Turned by a third of a circle about the axis of ones, three records change places in a ring."""
    found = matrices(3, 2 * np.pi / 3, count=200)
    rings = np.array([[[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]]])
    which = [int(np.abs(matrix - rings[1]).max() < 1e-12) for matrix in found]
    for matrix, ring in zip(found, which, strict=True):
        np.testing.assert_allclose(matrix, rings[ring], atol=1e-12)
    assert 60 < sum(which) < 140  # both directions, 5.6 standard deviations


def test_a_small_table_is_turned_by_its_angle():
    """One odd group: the correlation of each column with its original is cos θ exactly."""
    values = np.random.default_rng(1).lognormal(2, 1, (9, 3))
    for angle in (10, 45, 90):
        turned = protected(RotationNoise(angle=angle), values)
        for j in range(3):
            correlation = np.corrcoef(values[:, j], turned[:, j])[0, 1]
            assert correlation == pytest.approx(np.cos(np.radians(angle)), abs=1e-12)


@pytest.mark.parametrize("size", [3, 4, 11, 101])
def test_means_and_covariances_are_kept(incomes, size):
    turned = protected(RotationNoise(angle=50, size=size), incomes)
    np.testing.assert_allclose(turned.mean(axis=0), incomes.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.cov(turned.T), np.cov(incomes.T), rtol=1e-12)
    assert (np.abs(turned - incomes) > 1e-6).all()


def test_it_is_the_formula_on_the_groups_it_deals(incomes):
    method, seed = RotationNoise(angle=40, size=7), 3
    rng = Run(seed=seed).rng("groups", b"")
    order = rng.permutation(len(incomes))
    expected, centred = np.empty_like(incomes), incomes - incomes.mean(axis=0)
    cuts = [*range(0, 56 * 7 + 1, 7), 400]  # 57 groups of 7 and 1 record over, which joins the last
    for start, end in itertools.pairwise(cuts):
        rows = order[start:end]
        (matrix,) = rotate_groups(np.eye(len(rows))[None], np.radians(40), rng)
        expected[rows] = matrix @ centred[rows] + incomes.mean(axis=0)
    np.testing.assert_allclose(protected(method, incomes, seed), expected, rtol=1e-9)


def test_how_many_groups_are_turned_at_once_changes_nothing(incomes, monkeypatch):
    whole = protected(RotationNoise(), incomes)
    monkeypatch.setattr(rotation, "_DRAWS_AT_ONCE", 1)
    np.testing.assert_allclose(protected(RotationNoise(), incomes), whole, rtol=1e-12)


def pairwise(values):
    """Means, and covariances over the records that have both values."""
    columns = range(values.shape[1])
    both = {}
    for j, k in itertools.product(columns, columns):
        rows = ~np.isnan(values[:, j] + values[:, k])
        both[j, k] = np.cov(values[rows, j], values[rows, k])[0, 1]
    return np.nanmean(values, axis=0), np.array(list(both.values()))


def test_records_that_lack_the_same_columns_are_mixed(incomes):
    """All means and covariances over the values present are kept, and nobody is left as they were."""
    incomes[::3, 0] = np.nan
    incomes[::4, 2] = np.nan
    turned = protected(RotationNoise(angle=30), incomes)
    np.testing.assert_array_equal(np.isnan(turned), np.isnan(incomes))
    for found, wanted in zip(pairwise(turned), pairwise(incomes), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11)
    assert (turned[~np.isnan(incomes)] != incomes[~np.isnan(incomes)]).all()


@pytest.mark.parametrize("lonely", [1, 2, 5])
def test_records_with_a_pattern_of_their_own_are_protected_too(incomes, lonely):
    """Column by column, with others asked in where there are fewer than three: means and variances are kept."""
    values = np.column_stack([incomes, incomes[:, :2] * 2])
    patterns = [[0], [1], [0, 2], [3, 4], [1, 4]][:lonely]
    for row, columns in enumerate(patterns):
        values[row, columns] = np.nan
    turned = protected(RotationNoise(angle=30), values)
    present = ~np.isnan(values)
    np.testing.assert_array_equal(~np.isnan(turned), present)
    assert (turned[present] != values[present]).all()
    np.testing.assert_allclose(np.nanmean(turned, axis=0), np.nanmean(values, axis=0), rtol=1e-11)
    np.testing.assert_allclose(np.nanvar(turned, axis=0), np.nanvar(values, axis=0), rtol=1e-11)


def test_refuses_what_cannot_be_mixed(incomes):
    values = incomes[:5].copy()
    values[2:, 1] = np.nan
    values[:, 2] = np.nan  # a column without values has nothing to hide
    with pytest.raises(RefusedError, match="three records or more with a value, got: 2 in `c1`\n"):
        protected(RotationNoise(), values)
    assert np.isnan(protected(RotationNoise(), values[:, [0, 2]])[:, 1]).all()


def test_can_be_stopped_and_tells_how_far_it_is(incomes, monkeypatch):
    monkeypatch.setattr(rotation, "_DRAWS_AT_ONCE", 2000)
    told = []
    RotationNoise().apply(table_of(incomes), Run(seed=1, progress=Progress(report=told.append)))
    assert [event.done for event in told] == [0, 176, 352, 400]
    assert {event.total for event in told} == {400}
    with pytest.raises(Cancelled):
        RotationNoise().apply(table_of(incomes), Run(seed=1, progress=Progress(stopped=lambda: True)))
