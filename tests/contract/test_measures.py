"""Every measure the registry finds keeps the contract: tested because it exists."""

import pytest

from sfumato.core import registry
from sfumato.testing import MEASURE_CHECKS
from sfumato.testing.laws import (
    LAW_CHECKS,
    check_a_second_record_hides_nobody,
    check_coarser_is_never_riskier,
    check_knowledge_is_never_safer,
    check_names_are_irrelevant,
    check_order_of_all_records_is_irrelevant,
)

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
    compared = check(MEASURES[name])
    if check in LAW_CHECKS and is_tried(check, MEASURES[name].laws()):
        assert compared, (
            f"{check.__name__} found no two numbers of {name} to compare: it would pass whatever it said"
        )


def is_tried(check, laws):
    """Whether a law is one that the measure keeps."""
    return {
        check_order_of_all_records_is_irrelevant: not laws.reads_order,
        check_names_are_irrelevant: not laws.reads_names,
        check_coarser_is_never_riskier: laws.coarser_is_safer,
        check_knowledge_is_never_safer: laws.knowledge_is_risk,
        check_a_second_record_hides_nobody: laws.copies_hide_nobody,
    }[check]


@pytest.mark.parametrize("name", [name for name, cls in MEASURES.items() if cls.aspect == "risk"])
def test_a_risk_says_what_an_intruder_does_by_it(name):
    assert MEASURES[name].threat in {"singling out", "linkability", "inference"}
