"""Randomness by place and by person: keys are derived as releases of earlier versions had them."""

import copy
import pickle

import numpy as np
import polars as pl
import pytest

from sfumato.core.randomness import ByPerson, ByPlace, Series, series_secret
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table

COLUMNS = (Column("who", Kind.NOMINAL, Role.PERSON), Column("x", Kind.CONTINUOUS))
TABLE = Table(pl.DataFrame({"who": [7, 8, 7], "x": [1.0, 2.0, 3.0]}), Schema(COLUMNS))
ROWS = np.array([2, 0])
BY_PERSON = ByPerson(5, series=Series(series_secret(6)))


def keys_of(randomness):
    """The keys of a column on the way through a recipe."""
    step = randomness.enter_table(TABLE).enter_step(1, "noise", "said")
    return (
        randomness.key("a"),
        step.key("x"),
        step.enter_stratum(("s",), ROWS).key("x"),
        step.fresh(TABLE).key("x"),
        step.subset(ROWS).key("x"),
        step.per_household(TABLE, "who", ROWS).key("x"),
        step.block_key(1, slice(0, 2)).at("x"),
        step.outside_tables().key("x"),
    )


def test_numbers_by_place_are_those_of_earlier_versions():
    drawn = [key.rng().random() for key in keys_of(ByPlace(5))]
    same = 0.238994290399
    expected = [0.391576797091, same, 0.317877394094, same, same, same, 0.987908938766, 0.867158839439]
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


def test_numbers_by_person_are_those_of_earlier_versions():
    place, step, stratum, fresh, subset, household, block, _ = keys_of(BY_PERSON)
    assert place.people is fresh.people is None
    np.testing.assert_allclose([place.rng().random(), fresh.rng().random()], [0.391576797091, 0.134272147981])
    for key, expected in (
        (step, [0.2237842, 0.04293174, 0.65677507]),
        (stratum, [0.65677507, 0.2237842]),
        (subset, [0.65677507, 0.2237842]),
        (household, [0.47736577, 0.47736577]),
        (block, [0.2237842, 0.04293174]),
    ):
        np.testing.assert_allclose(key.rng().random(len(expected)), expected, atol=1e-8)


def test_what_an_earlier_release_fitted_is_that_of_the_step_and_stratum():
    fitted = TABLE.select(["x"])
    series = Series(series_secret(6), previous_fits={("said", ("s",)): {"matrix": fitted}})
    step = ByPerson(5, series=series).enter_table(TABLE).enter_step(1, "noise", "said")
    assert step.previous_fit("matrix") is None
    assert step.enter_stratum(("s",), ROWS).previous_fit("matrix") is fitted
    assert step.enter_stratum(("t",), ROWS).previous_fit("matrix") is None


@pytest.mark.parametrize("randomness", [ByPlace(5), BY_PERSON, BY_PERSON.enter_table(TABLE)])
def test_it_stays_in_its_process_and_shows_no_seed(randomness):
    assert "5" not in repr(randomness)
    for send in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="a run must stay in its process"):
            send(randomness)


def test_a_search_has_the_chance_of_its_data_unless_a_seed_was_given():
    drawn = [ByPlace.from_system() for _ in range(2)]
    first, second = (each.of_data(b"data").key("x").key for each in drawn)
    assert first == second
    assert first not in {drawn[0].key("x").key, drawn[0].of_data(b"other").key("x").key}
    assert ByPlace(5).of_data(b"data") == ByPlace(5)
