"""What a record's number is said to mean: nobody at risk is told to be safe, and the other way round."""

import pytest

from sfumato.core import registry

SAFE_AND_NOT = [
    ("exact-match", "does not find it", "finds it"),
    ("uniqueness", "other records may", "is unique"),
    ("attribute-disclosure", "differ", "learns it"),
    ("unsafe-combinations", "no rare combination", "1 smallest rare combination"),
    ("suda", "no combination", "make it unique"),
    ("dis-suda", "not unique", "is correct"),
    ("population-uniqueness", "not unique in the sample", "is unique in the population"),
    ("log-linear-risk", "not unique in the sample", "is unique in the population"),
]


@pytest.mark.parametrize(("name", "safe", "at_risk"), SAFE_AND_NOT)
def test_a_sentence_says_who_is_safe(name, safe, at_risk):
    measure = registry.measure(name)()
    told = measure.sentence(0.0)
    assert safe in told
    assert at_risk not in told
    for value in (0.6, 1.0):
        told = measure.sentence(value)
        assert at_risk in told
        assert safe not in told


@pytest.mark.parametrize(
    ("alike", "told"),
    [
        (1, "nobody else has the same keys"),
        (2, "1 other has the same keys"),
        (3, "2 others have the same keys"),
    ],
)
def test_of_a_class_the_others_are_counted(alike, told):
    assert registry.measure("k-anonymity")().sentence(alike) == told
