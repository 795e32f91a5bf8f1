"""Every measure the registry finds keeps the contract: tested because it exists."""

import pytest

from sfumato.core import registry
from sfumato.testing import MEASURE_CHECKS

MEASURES = registry.measures()


#: They start a database or grow a forest for every score: what asks for many waits.
SLOW = {"probabilistic-linkage", "inference"}
MANY = {
    "check_within_bounds",
    "check_scores_repeat",
    "check_record_order_is_irrelevant",
    "check_examples_run",
}


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(
            name,
            check,
            marks=pytest.mark.slow if name in SLOW and check.__name__ in MANY else (),
            id=f"{name}-{check.__name__}",
        )
        for name in MEASURES
        for check in MEASURE_CHECKS
    ],
)
def test_contract(name, check):
    check(MEASURES[name])


@pytest.mark.parametrize("name", [name for name, cls in MEASURES.items() if cls.aspect == "risk"])
def test_a_risk_says_what_an_intruder_does_by_it(name):
    assert MEASURES[name].threat in {"singling out", "linkability", "inference"}
