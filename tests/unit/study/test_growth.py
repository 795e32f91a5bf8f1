"""How seconds grow with the records: what methods declare, and what a few sizes tell of many."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import registry
from sfumato.errors import ParameterError
from sfumato.study.growth import Growth, Timings

# ---------------------------------------------------------------------------------------------- what is declared


@pytest.mark.parametrize(
    ("text", "power", "logs"),
    [("n", 1, 0), ("n log n", 1, 1), ("n²", 2, 0), ("n^2", 2, 0), ("n³", 3, 0), ("n d²", 1, 0), ("n g²", 1, 0),
     ("n² log n", 2, 1), ("n log k", 1, 0), ("n n", 2, 0), ("n + nodes · classes", 1, 0), ("n + n² d", 2, 0), ("n · log n", 1, 1)],
)  # fmt: skip
def test_costs_are_read(text, power, logs):
    assert Growth.parse(text) == Growth(power, logs)


@pytest.mark.parametrize(
    "text", ["fast", "d²", "", "n + ", "n+n", "2n", "n*n", "n!", "log² n", "n^x", "O(n)", "nlog n"]
)
def test_other_forms_are_refused(text):
    with pytest.raises(ParameterError, match="cost"):
        Growth.parse(text)


@pytest.mark.parametrize("name", [*registry.methods(), *registry.measures()])
def test_everything_declares_a_cost_that_can_be_read(name):
    cls = registry.methods().get(name) or registry.measure(name)
    assert Growth.parse(cls.cost).power >= 1


# ------------------------------------------------------------------------------------------------ extrapolation


@given(
    power=st.sampled_from([1, 2, 3]),
    ready=st.floats(0, 1),
    slope=st.floats(1e-9, 1e-5),
    n=st.integers(4_000, 10**6),
)
def test_what_grows_as_declared_is_met_exactly(power, ready, slope, n):
    points = [(size_, ready + slope * size_**power) for size_ in (240, 960, 3840)]
    expected, most = Timings(Growth(power), points).expected_seconds(n)
    truth = ready + slope * n**power
    growing = slope * 3840**power / points[-1][1]
    if growing > 0.11:  # less is taken for a tenth, since it would be noise
        assert expected == pytest.approx(truth, rel=1e-3)
        assert most == pytest.approx(truth, rel=1e-3)
    assert expected <= most * (1 + 1e-12)


@given(
    seconds=st.lists(st.floats(0, 10), min_size=1, max_size=5),
    n=st.integers(1, 10**7),
    logs=st.integers(0, 1),
)
def test_whatever_the_clock_says_there_is_an_estimate(seconds, n, logs):
    points = [(60 * 4**i, each) for i, each in enumerate(seconds)]
    expected, most = Timings(Growth(1, logs), points).expected_seconds(n)
    assert 0 <= expected <= most * (1 + 1e-9)
    assert math.isfinite(most)
    if n > points[-1][0]:
        assert most >= seconds[-1]


def test_what_does_better_than_declared_is_believed_but_the_worst_is_told():
    points = [(size_, 1e-3 + 1e-5 * size_) for size_ in (240, 960, 3840)]
    expected, most = Timings(Growth(2), points).expected_seconds(100_000)
    assert expected == pytest.approx(1.001, rel=1e-6)
    assert most > 20 * expected


def test_one_size_alone_grows_as_declared():
    assert Timings(Growth(2), [(100, 0.5)]).expected_seconds(1000) == (50.0, 50.0)
    assert Timings(Growth(2)).expected_seconds(1000) == (0.0, 0.0)
    assert Timings(Growth(2), [(100, 0.5)]).expected_seconds(50) == (0.5, 0.5)


def test_what_cannot_be_read_is_taken_for_the_worst_that_is_usual():
    assert Growth.declared_as("quick") == Growth(2)
    assert max(map(Growth.declared_as, ("n", "n log n", "n d²"))) == Growth(1, 1)


def test_between_what_does_not_grow_and_all_that_is_declared():
    one = Timings(Growth(2), [(100, 0.5)])
    assert one.seconds_between(50, Growth(0)) == one.seconds_between(100, Growth(0)) == 0.5
    assert one.seconds_between(1000, Growth(0)) == pytest.approx(0.5 * 10)  # between 1 and 100 times
    assert one.at_most(1000) == pytest.approx(50.0)
    assert Timings(Growth(2)).seconds_between(1000, Growth(0)) == 0.0
    assert Timings(Growth(2)).at_most(1000) == math.inf


@given(seconds=st.lists(st.floats(1e-3, 10), min_size=1, max_size=4), n=st.integers(1, 10**7))
def test_what_lies_between_is_never_more_than_the_most(seconds, n):
    timings = Timings(Growth(2), [(60 * 4**i, each) for i, each in enumerate(seconds)])
    assert 0 < timings.seconds_between(n, Growth(1)) <= timings.expected_seconds(n)[1] * (1 + 1e-9)
