"""Draws that are each one record's own: what they are distributed like, and what they do not depend on."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from effort import examples
from sfumato.core.person_generator import PersonGenerator
from sfumato.core.randomness import ByPerson, ByPlace, Series, series_secret
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.series import Identity, occurrences
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError

KEY = bytes(range(32))
PEOPLE = np.arange(1, 20_001, dtype=np.uint64)


@pytest.mark.parametrize(
    ("call", "distribution"),
    [
        (lambda rng, n: rng.random(n), stats.uniform()),
        (lambda rng, n: rng.uniform(2, 5, n), stats.uniform(2, 3)),
        (lambda rng, n: rng.standard_normal(n), stats.norm()),
        (lambda rng, n: rng.normal(1, 2, n), stats.norm(1, 2)),
        (lambda rng, n: rng.lognormal(0.5, 0.2, n), stats.lognorm(0.2, scale=np.exp(0.5))),
        (lambda rng, n: rng.standard_exponential(n), stats.expon()),
    ],
)
def test_they_have_the_distribution_they_are_named_by(call, distribution):
    drawn = call(PersonGenerator(KEY, PEOPLE), len(PEOPLE))
    assert stats.kstest(drawn, distribution.cdf).pvalue > 0.001


def test_whole_numbers_come_equally_often():
    drawn = PersonGenerator(KEY, PEOPLE).integers(-3, 4, len(PEOPLE), dtype=np.int32)
    assert drawn.dtype == np.int32
    assert stats.chisquare(np.bincount(drawn + 3, minlength=7)).pvalue > 0.001
    assert set(PersonGenerator(KEY, PEOPLE).integers(2, size=len(PEOPLE))) == {0, 1}


def test_draws_and_places_do_not_hang_together():
    rng = PersonGenerator(KEY, PEOPLE)
    first, second = rng.random(len(PEOPLE)), rng.random(len(PEOPLE))
    other = PersonGenerator(KEY[::-1], PEOPLE).random(len(PEOPLE))
    assert max(abs(np.corrcoef(first, each)[0, 1]) for each in (second, other)) < 0.03


def test_a_single_number_is_that_of_the_place():
    assert PersonGenerator(KEY, PEOPLE).random() == PersonGenerator(KEY, PEOPLE[:3]).random()


@given(st.lists(st.integers(1, 2**64 - 1), unique=True, max_size=20), st.randoms())
@examples(50)
def test_they_depend_on_nobody_else(people, chance):
    whole = np.array(people, dtype=np.uint64)
    some = chance.sample(range(len(people)), chance.randint(0, len(people)))
    drawn = PersonGenerator(KEY, whole).standard_normal(len(whole))
    np.testing.assert_array_equal(PersonGenerator(KEY, whole[some]).standard_normal(len(some)), drawn[some])


@pytest.mark.parametrize(
    "call", [lambda rng: rng.permutation(3), lambda rng: rng.choice(3), lambda rng: rng.random(7)]
)
def test_what_is_drawn_for_all_is_refused(call):
    with pytest.raises(RefusedError, match="each person needs random numbers"):
        call(PersonGenerator(KEY, PEOPLE[:3]))


@given(st.lists(st.integers(0, 3)))
def test_the_records_of_a_person_are_counted_in_their_order(persons):
    words = np.array(persons, dtype=np.uint64)
    assert occurrences(words).tolist() == [persons[:i].count(each) for i, each in enumerate(persons)]


def visits(persons, which=None):
    columns = [Column("who", Kind.NOMINAL, Role.PERSON), Column("visit", Kind.NOMINAL, Role.OTHER)]
    which = range(len(persons)) if which is None else which
    return Table(pl.DataFrame({"who": persons, "visit": list(which)}), Schema(tuple(columns)))


def test_who_is_who_in_every_table():
    identity = Identity.of(b"secret")
    units = identity.units(visits([7, 8, 7]))
    assert identity.units(visits(["8", "7"])).tolist() == [units[1], units[0]]
    assert len(set(units.tolist())) == 3
    assert (identity.persons(visits([7, 8, 7]))[[0, 0]] == identity.persons(visits([7, 8, 7]))[[0, 2]]).all()
    assert (Identity.of(b"other").units(visits([7])) != units[0]).all()


def test_records_are_told_by_a_column_whatever_their_order():
    identity = Identity.of(b"secret", "visit")
    units = identity.units(visits([7, 7, 8], ["a", "b", "a"]))
    assert identity.units(visits([7, 8], ["b", "a"])).tolist() == units[[1, 2]].tolist()
    with pytest.raises(DataError, match="does not distinguish 1 record"):
        identity.units(visits([7, 7], ["a", "a"]))


def test_a_record_of_nobody_is_refused():
    with pytest.raises(DataError, match="is missing in 1 record"):
        Identity.of().persons(visits([7, None]))
    with pytest.raises(DataError, match="and there is none"):
        Identity.of().persons(visits([7]).select(["visit"]))


def test_outside_of_a_series_nothing_is_keyed_by_person():
    table, place = visits([7, 8]), ByPlace(1)
    assert place.enter_table(table).key("a") == place.at(table.digest).key("a")
    assert isinstance(place.enter_table(table).key("a").rng(), np.random.Generator)
    assert place.fresh(table) is place
    assert place.previous_fit("fitted") is None
    assert series_secret(1) != series_secret(2)
    in_series = ByPerson(1, series=Series(series_secret(1)))
    assert isinstance(in_series.enter_table(table).key("a").rng(), PersonGenerator)
