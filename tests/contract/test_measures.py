"""Every measure the registry finds keeps the contract: tested because it exists."""

import pytest

from sfumato.core import registry
from sfumato.testing import MEASURE_CHECKS

MEASURES = registry.measures()


@pytest.mark.parametrize("check", MEASURE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", MEASURES)
def test_contract(name, check):
    check(MEASURES[name])
