"""What rules forbid, as tables of codes: against a check of every combination of values."""

from itertools import product

import numpy as np
import polars as pl
import pytest

from sfumato.data.rules import Rule
from sfumato.methods._forbidden_cells import RepresentativeValues, kinds_of, merge_zeros, must_lack, zeros_of

#: Missing first (code 0), as in the methods.
AGES, STATUS, PAY = [None, *range(20)], [None, "single", "married"], [None, 0, 1, 2]


def points():
    return [
        RepresentativeValues(np.arange(len(values)), pl.Series(name, values))
        for name, values in (("age", AGES), ("status", STATUS), ("pay", PAY))
    ]


RULES = [
    Rule("age >= 15 OR (status IS NULL AND pay = 0)"),
    Rule("age < 18 OR status IS NOT NULL"),
    Rule("pay <> 2 OR status = 'married'"),
]


def kept(age, status, pay):
    """The rules in Python; what is unknown breaks none."""
    child = age is not None and age < 15
    first = not child or (status is None and (pay is None or pay == 0))
    second = age is None or age < 18 or status is not None
    third = pay is None or pay != 2 or status is None or status == "married"
    return first and second and third


def test_tables_forbid_exactly_what_breaks_a_rule():
    zeros = zeros_of(RULES, points())
    assert set(zeros) == {(0, 1), (0, 2), (1, 2)}
    for codes in product(range(len(AGES)), range(len(STATUS)), range(len(PAY))):
        values = (AGES[codes[0]], STATUS[codes[1]], PAY[codes[2]])
        never = any(zeros[columns][tuple(codes[each] for each in columns)] for columns in zeros)
        assert never == (not kept(*values))


def test_a_part_of_a_range_is_forbidden_if_all_of_it_is():
    """Codes 1 and 2 stand for 0 to 9 and 10 to 19; 15 lies within the second."""
    ends = RepresentativeValues(
        np.array([0, 1, 1, 2, 2, 2]), pl.Series("age", [None, 0, 9, 10, 15, 19]), some=True
    )
    (never,) = zeros_of([Rule("age >= 15 OR status IS NULL")], [ends, points()[1]]).values()
    assert never.tolist() == [[False] * 3, [False, True, True], [False] * 3]


def test_parts_of_two_ranges_and_what_nobody_can_keep_are_left_alone():
    ends = [
        RepresentativeValues(np.array([0, 1, 1]), pl.Series(name, [None, 0, 9]), some=True) for name in "ab"
    ]
    assert zeros_of([Rule("a = b + 5 OR a = 3")], ends) == {}
    assert zeros_of([Rule("status = 'x' AND pay >= 0"), Rule("pay <= AVG(pay)")], points()) == {}


def test_what_rules_treat_alike():
    zeros = zeros_of(RULES, points())
    ages = kinds_of(zeros, 0, len(AGES))
    assert [len(set(ages[1:16])), len(set(ages[16:19])), len(set(ages[19:]))] == [1, 1, 1]
    assert len(set(ages[[1, 16, 19]])) == 3
    assert len(set(kinds_of({}, 0, 5))) == 1
    assert must_lack(zeros, 1)  # children have no status
    assert not must_lack(zeros, 0)
    assert not must_lack(zeros, 2)  # they have no pay, which is 0


@pytest.mark.parametrize("seed", range(3))
def test_codes_that_are_one_are_forbidden_where_all_that_is_drawn_of_them_is(seed):
    rng = np.random.default_rng(seed)
    never, parts = rng.random((4, 5)) < 0.7, [rng.random((2, 4)), rng.random((3, 5))]
    parts = [np.where(each < 0.4, 0.0, each) for each in parts]
    found = merge_zeros({(0, 1): never}, parts).get((0, 1), np.zeros((2, 3), dtype=bool))
    for one, other in product(range(2), range(3)):
        own = [(a, b) for a in range(4) for b in range(5) if parts[0][one, a] and parts[1][other, b]]
        assert found[one, other] == all(never[each] for each in own)
