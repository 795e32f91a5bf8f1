"""The averaging attack on Census: one plan of 60 % noise, followed ten times with a cell changed each time."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.randomness import ByPerson, ByPlace, Series, series_secret
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods import UncorrelatedNoise
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk.linkage import DistanceLinkage

RELEASES = 10


@pytest.fixture
def waves(reference_data):
    """The register at ten times: each time one person's first value is another."""
    frame = pl.read_csv(reference_data("census.csv"))
    names = frame.columns
    columns = [Column("who", Kind.NOMINAL, Role.PERSON)]
    columns += [Column(name, Kind.CONTINUOUS, Role.KEY) for name in names]
    frame = frame.cast(pl.Float64).with_columns(pl.Series("who", np.arange(frame.height)))
    found = []
    for turn in range(RELEASES):
        changed = frame[names[0]].to_numpy().copy()
        changed[turn] += 1.0
        found.append(Table(frame.with_columns(pl.Series(names[0], changed)), Schema(tuple(columns))))
    return found


def links(table, values):
    """The share of records that are nearest to their own."""
    made = table
    for name, column in zip(table.schema.with_role(Role.KEY), values.T, strict=True):
        made = made.with_values(name, pl.Series(column))
    release = Release.of(made.select(table.schema.with_role(Role.KEY)), source_rows=np.arange(len(table)))
    return DistanceLinkage().score(Evidence(table, release), Run(seed=1)).value


def released(waves, series):
    keys = waves[0].schema.with_role(Role.KEY)
    recipe, kept, made = Recipe((Step(UncorrelatedNoise(deviation=60), keys),)), {}, []
    for number, table in enumerate(waves):
        there = ByPerson(1, series=Series(series_secret(1), previous_fits=kept)) if series else ByPlace(1)
        release = recipe.apply(table, Run(randomness=there))
        for each in release.provenance[0].byproducts.private_artifacts:
            kept.setdefault((recipe.step_identities[0], each.stratum), each.tables)
        made.append(release.table.matrix(keys))
        assert number == 0 or series or not np.allclose(made[0], made[-1])
    return made


def test_fresh_noise_averages_out(waves):
    """What the issue measured: .15 alone, .47 from three, .86 from ten."""
    made = released(waves, series=False)
    found = [links(waves[0], np.mean(made[:count], axis=0)) for count in (1, 3, 10)]
    assert found == pytest.approx([0.15, 0.47, 0.86], abs=0.05)


def test_in_a_series_ten_releases_tell_no_more_than_one(waves):
    made = released(waves, series=True)
    alone, all_of_them = links(waves[0], made[-1]), links(waves[0], np.mean(made, axis=0))
    assert alone == pytest.approx(0.15, abs=0.05)
    assert abs(all_of_them - alone) <= 0.01


def test_nor_does_the_difference_of_two_releases(waves):
    """Noise whose spread follows the data would tell itself: y₁ − y₂ = (c₁ − c₂) z."""
    made = released(waves, series=True)
    moved = np.abs(made[1] - made[0])
    assert (moved[2:] <= 1e-6 * np.abs(made[0][2:])).all()
