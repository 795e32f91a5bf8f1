"""Budgets add up: pure ε, ρ-zCDP, and what parts of a table spend side by side."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.budget import NO_GUARANTEE, PrivacyBudget, Spending, Total, rho_of_epsilon, side_by_side
from sfumato.core.release import Byproducts, Release
from sfumato.errors import ParameterError
from toys import numbers_table


def spent(*epsilons, **more):
    return PrivacyBudget(tuple(Spending("laplace", epsilon=each, **more) for each in epsilons))


def test_pure_budgets_add_up():
    assert (spent(0.5) + spent(0.25, 0.25)).total() == Total(1.0, 0.0)
    assert not PrivacyBudget()
    assert PrivacyBudget().total() == Total(0.0, 0.0)


def test_concentrated_budgets_add_up_before_they_are_converted():
    budget = PrivacyBudget((Spending("gaussian", rho=0.2), Spending("gaussian", rho=0.3)))
    total = budget.total(1e-6)
    assert total == PrivacyBudget((Spending("gaussian", rho=0.5),)).total(1e-6)
    assert total.delta == 1e-6


@given(st.floats(1e-4, 100), st.floats(1e-12, 0.1))
def test_the_conversion_of_rho_is_that_of_opendp_and_no_looser_than_the_classic_one(rho, delta):
    """ρ + 2 √(ρ ln 1/δ) is Proposition 1.3 of Bun and Steinke (2016)."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")
    noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho)))
    epsilon = PrivacyBudget((Spending("gaussian", rho=rho),)).total(delta).epsilon
    assert epsilon == pytest.approx(noise.map(1.0).epsilon(delta), rel=1e-6, abs=1e-9)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
    if epsilon > 0:
        assert rho_of_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-6)


@given(st.floats(1e-3, 1e3), st.floats(1e-15, 0.1))
def test_no_more_is_spent_than_an_epsilon_allows(epsilon, delta):
    rho = rho_of_epsilon(epsilon, delta)
    assert PrivacyBudget((Spending("gaussian", rho=rho),)).total(delta).epsilon <= epsilon


@given(st.floats(0.01, 5), st.floats(0.001, 2), st.floats(1e-9, 0.1))
def test_pure_beside_concentrated_counts_the_less(epsilon, rho, delta):
    both = spent(epsilon) + PrivacyBudget((Spending("gaussian", rho=rho),))
    alone = PrivacyBudget((Spending("gaussian", rho=rho),)).total(delta).epsilon
    as_rho = PrivacyBudget((Spending("gaussian", rho=rho + epsilon**2 / 2),)).total(delta).epsilon
    assert both.total(delta).epsilon == pytest.approx(min(epsilon + alone, as_rho))


def test_approximate_budgets_add_both():
    budget = spent(0.5, delta=1e-7) + spent(0.25, delta=1e-7)
    assert budget.total() == Total(0.75, pytest.approx(2e-7))


@pytest.mark.parametrize(
    ("epsilon", "advantage"), [(1, 0.462), (3, 0.905), (5, 0.987), (0, 0.0), (5000, 1.0)]
)
def test_the_bound_on_any_attack(epsilon, advantage):
    """FACTS 9: (e^ε − 1)/(e^ε + 1)."""
    assert Total(epsilon, 0.0).advantage == pytest.approx(advantage, abs=5e-4)


def test_what_cannot_be_added_is_refused():
    mixed = spent(1.0) + spent(1.0, unit="person")
    with pytest.raises(ParameterError, match="different units"):
        mixed.total()
    assert "epsilon" not in mixed.to_dict()
    with pytest.raises(ParameterError, match="δ"):
        Spending("laplace", epsilon=-1.0)
    with pytest.raises(ParameterError, match="both"):
        Spending("laplace", epsilon=1.0, rho=1.0)
    with pytest.raises(ParameterError, match="delta"):
        spent(1.0).total(0.0)


def test_strata_that_share_no_record_spend_the_most_of_them():
    assert side_by_side([spent(1.0, 0.5), spent(0.2, 2.0)]).total().epsilon == 3.0
    replaced = [spent(each, neighbours="replace") for each in (1.0, 0.2, 0.7)]
    assert side_by_side(replaced).total().epsilon == pytest.approx(1.7)  # it may move from one to another
    persons = [spent(each, unit="person") for each in (1.0, 0.2)]
    assert side_by_side(persons).total().epsilon == pytest.approx(1.2)  # and stand in several
    assert side_by_side([spent(1.0), spent(0.5, 0.5)]).total().epsilon == pytest.approx(2.0)


def test_releases_add_their_budgets_and_say_what_was_moved():
    table = numbers_table(4)
    first = replace(Release.unchanged(table), byproducts=Byproducts(budget=spent(0.5)))
    both = first.then(replace(first, byproducts=Byproducts(budget=spent(0.5).unkept())))
    assert both.budget.total().epsilon == 1.0
    assert both.budget.to_dict()["guarantee"] == NO_GUARANTEE
    assert "guarantee" not in first.budget.to_dict()
