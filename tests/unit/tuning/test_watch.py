"""A search keeps to its time, under a clock that the test turns."""

import math

import pytest

from sfumato import kernels
from sfumato.core.run import Run
from sfumato.errors import Cancelled
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.tuning.time_budget import CONFIRMING, SAMPLING, TimeBudget, WorkClock, fitting

SWAPPING, QUADRATIC = (Recipe((Step(method, ("x",)),)) for method in (RankSwapping(), Mdav()))


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_each_stage_ends_at_its_share_of_the_time(clock):
    watch = TimeBudget(100.0, clock)
    clock.now += 10
    watch.stage = SAMPLING
    assert watch.seconds_left == pytest.approx(15)
    watch.stage = CONFIRMING
    assert watch.seconds_left == pytest.approx(75)


def test_without_a_limit_every_run_may_go_on(clock):
    run = Run(seed=1)
    assert TimeBudget(math.inf, clock).limit_run(run) is run
    limited = TimeBudget(10.0, clock).limit_run(run)
    clock.now += 11
    with pytest.raises(Cancelled):
        limited.check()


def test_what_a_run_will_take_is_told_by_the_longest_on_the_most_records(clock):
    watch = TimeBudget(100.0, clock)
    assert watch.expected_seconds(QUADRATIC, 10_000) == 0
    for records, seconds in ((500, 1.0), (1000, 2.0), (1000, 1.5), (500, 9.0)):
        watch.note(QUADRATIC, records, seconds)
    assert watch.expected_seconds(QUADRATIC, 800) == watch.expected_seconds(QUADRATIC, 1000) == 2.0
    assert watch.expected_seconds(QUADRATIC, 10_000) == pytest.approx(20.0)  # between 1 and 100 times
    assert watch.expected_seconds(SWAPPING, 10_000) == 0
    assert watch.may_begin(QUADRATIC, 10_000)
    assert not watch.may_begin(QUADRATIC, 10_000, share=0.1)


def test_nothing_at_all_does_not_grow(clock):
    watch = TimeBudget(100.0, clock)
    watch.note(Recipe(), 100, 2.0)
    assert watch.expected_seconds(Recipe(), 10_000) == 2.0


def test_only_work_counts_on_a_busy_machine(monkeypatch):
    """Ten seconds go by; in three the process worked, or in two on several processors at once."""
    wall, cpu = [0.0], [0.0]
    monkeypatch.setattr("time.monotonic", lambda: wall[0])
    monkeypatch.setattr("time.process_time", lambda: cpu[0])
    work = WorkClock()
    wall[0], cpu[0] = 10.0, 3.0
    assert work() == 3.0
    wall[0], cpu[0] = 12.0, 11.0
    assert work() == 5.0


def test_compiling_is_no_work(monkeypatch):
    """Of ten seconds and eight of the processor, six and five were spent compiling."""
    wall, cpu = [0.0], [0.0]
    monkeypatch.setattr("time.monotonic", lambda: wall[0])
    monkeypatch.setattr("time.process_time", lambda: cpu[0])
    watch = type(kernels.compile_watch)()
    monkeypatch.setattr(kernels, "compile_watch", watch)
    work = WorkClock()
    wall[0], cpu[0] = 1.0, 1.0
    watch.begin()
    wall[0], cpu[0] = 7.0, 6.0
    watch.end()
    wall[0], cpu[0] = 10.0, 8.0
    assert (watch.seconds, watch.worked) == (6.0, 5.0)
    assert work() == 3.0


def test_a_sure_share_of_the_time_is_counted_in_work(clock):
    worked = Clock()
    watch = TimeBudget(100.0, clock, work=worked)
    assert (watch.time_left, watch.work_left, watch.seconds_left) == (100, 60, 60)
    clock.now += 50  # others worked
    assert watch.seconds_left == 50
    limited = watch.limit_run(Run(seed=1), share=0.5)
    worked.now += 31
    with pytest.raises(Cancelled):
        limited.check()


def test_as_many_as_surely_fit_are_tried(clock):
    watch = TimeBudget(100.0, clock)
    for first in (9.0, 10.0, 12.0):
        clock.now, watch.started = 0.0, 0.0
        hurry = watch.hurry(1.0)
        clock.now = first
        assert [hurry() for _ in range(10)].index(True) == 8
    hurry = watch.hurry(0.5)
    assert not hurry()
    clock.now = 101.0
    assert hurry()
    assert not TimeBudget(math.inf, clock).hurry(1.0)()


@pytest.mark.parametrize(("seconds", "each", "n"), [(10, 1, 8), (16, 1, 16), (1, 10, 1), (-5, 1, 1)])
def test_a_power_of_two_fits(seconds, each, n):
    assert fitting(seconds, each) == n
