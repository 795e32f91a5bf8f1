"""Rotation of pairs of columns: distances hold, the formula holds, and linkage sees the map."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.invariants import kept_relations
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.rotation import PairRotation
from sfumato.risk.linkage import DistanceLinkage


def table_of(values, **declared):
    names = "abcdefg"[: values.shape[1]]
    frame = pl.DataFrame({name: values[:, place] for place, name in enumerate(names)})
    schema = Schema(tuple(Column(name, Kind.CONTINUOUS, Role.KEY, **declared) for name in names))
    return Table(frame, schema)


def correlated(n, columns, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) @ rng.normal(size=(columns, columns)) * 10 + 50


def distances(values, units):
    scaled = values / units
    return np.linalg.norm(scaled[:, None] - scaled[None], axis=2)


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("angle", [10, 45, 90])
def test_distances_and_means_hold(columns, angle):
    values = correlated(40, columns)
    turned = PairRotation(angle=angle).apply(table_of(values), Run(seed=1)).table.frame.to_numpy()
    units = values.std(axis=0)
    assert np.allclose(distances(values, units), distances(turned, units))
    assert np.allclose(values.mean(axis=0), turned.mean(axis=0))
    assert not np.isclose(values, turned).any()


def test_a_column_differs_by_the_variance_that_the_docs_state():
    values = correlated(500, 2)
    turned = PairRotation(angle=30).apply(table_of(values), Run(seed=1)).table.frame.to_numpy()
    rho = np.corrcoef(values.T)[0, 1]
    theta = np.radians(30)
    stated = 2 * (1 - np.cos(theta)) * (1 - rho * np.sin(theta) * np.array([1, -1]))
    assert np.allclose((turned - values).var(axis=0), stated * values.var(axis=0))


def test_missing_values_stay_and_their_partner_is_still_protected():
    values = correlated(30, 2)
    values[3, 0] = values[4, 1] = np.nan
    table = table_of(values)
    table = table.with_values("a", table.frame["a"].fill_nan(None)).with_values(
        "b", table.frame["b"].fill_nan(None)
    )
    turned = PairRotation(angle=60).apply(table, Run(seed=1)).table.frame
    assert (turned["a"].null_count(), turned["b"].null_count(), turned["a"][3], turned["b"][4]) == (
        1,
        1,
        None,
        None,
    )
    centre = np.nanmean(values[:, 1])
    assert turned["b"][3] == pytest.approx(centre + 0.5 * (values[3, 1] - centre))


def test_constants_stay_and_what_cannot_be_paired_is_refused():
    values = np.column_stack((correlated(20, 2), np.full(20, 7.0)))
    turned = PairRotation().apply(table_of(values), Run(seed=1)).table.frame
    assert set(turned["c"]) == {7.0}
    for unfit in (values[:, [0, 2]], values[:1]):
        with pytest.raises(RefusedError, match="two columns that vary"):
            PairRotation().apply(table_of(unfit), Run(seed=1))
    assert len(PairRotation().apply(table_of(values[:0]), Run(seed=1)).table) == 0
    huge = correlated(20, 2) * 1e200
    assert np.isfinite(PairRotation().apply(table_of(huge), Run(seed=1)).table.frame.to_numpy()).all()


@pytest.mark.parametrize("columns", [2, 3, 5])
@pytest.mark.parametrize("declared", [{}, {"integer": True}])
def test_linkage_sees_through_the_map(columns, declared):
    values = correlated(200, columns, seed=columns)
    table = table_of(values.round() if declared else values, **declared)
    release = PairRotation(angle=70).apply(table, Run(seed=1))
    (found,) = [
        each
        for each in kept_relations(table, release.table, np.arange(200), table.names)
        if each.kind == "linear"
    ]
    assert found.columns == table.names
    score = DistanceLinkage().score(Evidence(table, release), Run(seed=1))
    assert score.value > 0.85
    assert "as mapped" in score.details["approach"]


def test_who_knows_one_of_the_columns_has_no_map():
    table = table_of(correlated(200, 2))
    release = PairRotation(angle=70).apply(table, Run(seed=1))
    assert not [
        each for each in kept_relations(table, release.table, np.arange(200), ("a",)) if each.kind == "linear"
    ]


def test_noise_is_no_map():
    values = correlated(200, 3)
    noisy = values + np.random.default_rng(2).normal(size=values.shape)
    found = kept_relations(table_of(values), table_of(noisy), np.arange(200), ("a", "b", "c"))
    assert not found
    shifted = np.column_stack(
        (values[:, 0] * 2 + 1, values[:, 1] + 3, noisy[:, 2])
    )  # alone, no map is needed
    found = kept_relations(table_of(values), table_of(shifted), np.arange(200), ("a", "b", "c"))
    assert "linear" not in {each.kind for each in found}


def test_few_records_are_no_evidence_of_a_map():
    values = correlated(5, 2)
    release = PairRotation().apply(table_of(values), Run(seed=1))
    assert isinstance(release, Release)
    assert not kept_relations(table_of(values), release.table, np.arange(5), ("a", "b"))
