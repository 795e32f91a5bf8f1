"""Every method the registry finds keeps the contract: tested because it exists."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toys
from effort import examples
from sfumato.core import registry
from sfumato.core.run import Run
from sfumato.errors import SfumatoError
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.testing import METHOD_CHECKS, instances, table_of

METHODS = registry.methods()
TOYS = {cls.name: cls for cls in toys.CONTRACT}


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_contract(name, check):
    check(METHODS[name])


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", TOYS)
def test_contract_of_what_no_method_does_yet(name, check):
    """Chance that must not repeat, records left out of blocks, other kinds, new columns, several tables."""
    check(TOYS[name])


@pytest.mark.parametrize("name", METHODS)
def test_any_setting_in_the_domain_gives_a_release_or_a_clear_error(name):
    """The declared domain is a promise: with warnings as errors, a bound that is too wide fails here."""
    tables = [table_of(kind, 30, missing=0.1) for kind in sorted(METHODS[name].kinds)]

    @given(method=instances(METHODS[name]), table=st.sampled_from(tables))
    @examples(25)
    def holds(method, table):
        recipe = Recipe((Step(method, ("a", "b")),))
        assert Recipe.from_list(recipe.to_list()) == recipe
        with contextlib.suppress(SfumatoError):
            names = recipe.apply(table, Run(seed=1)).reading().names
            assert set(table.names) <= set(names)
            assert method.gives.new_columns or len(names) == len(table.names)

    holds()
