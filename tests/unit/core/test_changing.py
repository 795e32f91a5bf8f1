"""Draws of persons that change a little with their values."""

import numpy as np
import pytest

from sfumato.core.person_generator import Changing, PersonGenerator
from sfumato.kernels.siphash import value_words

N = 20_000
PEOPLE = np.arange(1, N + 1, dtype=np.uint64)
KEY = b"k" * 32


def generator(values, share, people=PEOPLE):
    return PersonGenerator(
        KEY, people, Changing(value_words(np.asarray(values, dtype=float)[:, None]), share)
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_other_values_have_draws_that_go_with_the_former_ones(share):
    before, after = generator(np.arange(N), share), generator(np.arange(N) * 1.03 + 1, share)
    one, other = before.standard_normal(N), after.standard_normal(N)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(share, abs=0.02)
    assert one.std() == pytest.approx(1, abs=0.02)
    uniform = generator(np.arange(N), share).random(N)
    assert np.abs(np.sort(uniform) - np.arange(N) / N).max() < 0.02
    assert 0 <= uniform.min() <= uniform.max() < 1


def test_equal_values_have_the_same_draws_whatever_the_order_and_the_others():
    values = np.where(np.arange(N) % 3 == 0, np.nan, np.arange(N) * 0.5)
    order = np.random.default_rng(1).permutation(N)[:500]
    whole = generator(values, 0.7).standard_normal(N)
    assert np.array_equal(whole[order], generator(values[order], 0.7, PEOPLE[order]).standard_normal(500))


def test_zero_has_one_sign_and_every_hole_is_one():
    other = np.frombuffer(np.uint64(0x7FF8000000000001).tobytes(), dtype=np.float64)[0]
    words = value_words(np.array([[0.0], [-0.0], [np.nan], [other], [1.0]]))
    assert words[0] == words[1]
    assert words[2] == words[3]
    assert len(set(words.tolist())) == 3


def test_columns_count_each_in_its_place():
    words = value_words(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0]]))
    assert len(set(words.tolist())) == 4
