"""Which means hide those who make them up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.dominance import hides_each, is_dominated


@pytest.mark.parametrize(
    ("contributions", "hides"),
    [
        ([1.0] * 10, True),
        ([1.0] * 9, False),  # fewer than ten
        ([1.0] * 9 + [0.0] * 5, False),  # who changed nothing hides nobody
        ([1.0] * 10 + [9.9], True),
        ([1.0] * 10 + [10.0], False),  # half of the sum
        ([0.1] * 9 + [10.0, 10.0], False),  # 20.9 − 10 − 10 is less than a tenth of 10
        ([0.1] * 10 + [10.0, 10.0], True),
        ([0.0] * 20, False),
        ([], False),
    ],
)
def test_ten_people_of_whom_none_dominates(contributions, hides):
    assert hides_each(np.array(contributions)) is hides


def test_records_of_one_person_count_as_one():
    changes, persons = np.ones(20), np.repeat(np.arange(10), 2)
    assert hides_each(changes, persons)
    assert not hides_each(changes, np.minimum(persons, 8))  # nine people
    assert not hides_each(changes, np.maximum(np.arange(20) - 9, 0))  # one has 10 of 20


@pytest.mark.parametrize("values", [[], [0.0, 0.0]])
def test_what_is_nothing_is_not_dominated(values):
    assert not is_dominated(np.array(values))


@given(st.lists(st.integers(0, 50), max_size=14))
def test_as_the_rules_say(values):
    """By hand: sorted, summed and compared as whole numbers."""
    given = sorted((value for value in values if value), reverse=True)
    total = sum(given)
    hides = len(given) >= 10 and 2 * given[0] < total and 10 * (total - given[0] - given[1]) >= given[0]
    assert hides_each(np.array(values, dtype=float)) is hides
