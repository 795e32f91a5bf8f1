"""What work costs, from trials under a clock that the toys themselves turn: nothing here depends on real time."""

import math

import numpy as np
import pytest

from sfumato.cli._screen import announce
from sfumato.core import registry
from sfumato.core.measure import Measure, Needs, Score
from sfumato.core.method import Method, Randomness
from sfumato.core.params import param
from sfumato.core.release import Release
from sfumato.core.run import Progress, Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Kind
from sfumato.errors import Cancelled, DataError
from sfumato.methods.microaggregation import Mdav
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.study import cost
from sfumato.study.cost import Cost, PlannedWork, duration, estimate, size
from toys import CONTINUOUS, table_of


class Clock:
    """A clock that goes only when work is done, and a memory that only grows."""

    def __init__(self):
        self.seconds, self.bytes, self.sizes = 0.0, 10**8, []

    def __call__(self):
        return self.seconds

    def peak(self):
        return self.bytes

    def work(self, seconds, n, held=0):
        self.seconds += seconds
        self.bytes = max(self.bytes, 10**8 + held)
        self.sizes.append(n)


CLOCK = Clock()


@pytest.fixture
def clock():
    CLOCK.__init__()
    return CLOCK


class Slow(Method):
    """Take n² microseconds on n records, after a millisecond of getting ready."""

    name = "slow"
    title = "Slow"
    kinds = CONTINUOUS
    cost = "n²"
    randomness = Randomness(stochastic=False)

    def protect(self, table, run):
        CLOCK.work(1e-3 + 1e-6 * len(table) ** 2, len(table), held=100 * len(table) * 1000)
        return Release.unchanged(table)


class Better(Slow):
    """Declare n², take n microseconds."""

    name = "better"

    def protect(self, table, run):
        CLOCK.work(1e-3 + 1e-5 * len(table), len(table))
        return Release.unchanged(table)


class Choosy(Slow):
    """Refuse fewer than a thousand records."""

    name = "choosy"

    least: int = param(1000, "Fewest records.", ge=1)

    def protect(self, table, run):
        if len(table) < self.least:
            raise DataError("there must be more records, got: fewer")
        return super().protect(table, run)


class Ruler(Measure):
    """Take as long as sorting would."""

    name = "ruler"
    title = "Ruler"
    aspect = "risk"
    better = "low"
    kinds = CONTINUOUS
    cost = "n log n"
    needs = Needs(release=False)

    def measure(self, evidence, run):
        n = len(evidence.original)
        CLOCK.work(1e-6 * n * math.log(n), n)
        return Score(0.0)


class Drawn(Ruler):
    """Take n³ nanoseconds on at most so many records at once, several times if there are more."""

    name = "drawn"
    cost = "n³"

    records: int = param(1000, "Largest number of records at once.", ge=1)
    draws: int = param(3, "Samples.", ge=1)

    def measure(self, evidence, run):
        n = len(evidence.original)
        CLOCK.work((self.draws if n > self.records else 1) * 1e-9 * min(n, self.records) ** 3, n)
        return Score(0.0)


class Broken(Ruler):
    """Fail on samples."""

    name = "broken"

    def measure(self, evidence, run):
        raise DataError("there must be more, got: fewer")


def table(n):
    return table_of({"x": np.arange(n, dtype=float)})


def estimated(works, n, clock):
    return estimate(works, table(n), Run(seed=1), clock=clock, peak=clock.peak)


# ------------------------------------------------------------------------------------------------------ trials


def test_a_quadratic_method_is_met(clock):
    found = estimated(PlannedWork(Recipe.of(Slow())), 100_000, clock)
    assert found.seconds == pytest.approx(1e-6 * 100_000**2, rel=0.01)
    assert found.most_seconds == pytest.approx(found.seconds, rel=0.01)
    assert found.worth_telling
    assert clock.seconds < 20  # and not the 250 seconds of the next size


def test_the_first_call_is_not_counted(clock):
    class Compiled(Slow):
        name = "compiled"

        def protect(self, table, run):
            first = not CLOCK.sizes
            CLOCK.work((30 if first else 0) + 1e-6 * len(table), len(table))
            return Release.unchanged(table)

    found = estimated(PlannedWork(Recipe.of(Compiled())), 100_000, clock)
    assert found.seconds < 1


@pytest.mark.parametrize("shape", ["step", "measure"])
def test_what_is_compiled_for_larger_tables_is_not_counted(shape, clock):
    def work(n):
        first = n >= 240 and 240 not in CLOCK.sizes
        CLOCK.work((30 if first else 0) + 1e-6 * n, n)

    class Later(Slow):
        name = "later"

        def protect(self, table, run):
            work(len(table))
            return Release.unchanged(table)

    class LateRuler(Ruler):
        name = "late-ruler"
        cost = "n²"

        def measure(self, evidence, run):
            for _ in range(2):  # compiling is not stopped, what comes after it is
                work(len(evidence.original))
                run.check()
            return Score(0.0)

    what = PlannedWork(Recipe.of(Later())) if shape == "step" else PlannedWork(measures=(LateRuler(),))
    assert estimated(what, 100_000, clock).seconds < 1


def test_better_than_declared(clock):
    found = estimated(PlannedWork(Recipe.of(Better())), 1_000_000, clock)
    assert found.seconds == pytest.approx(10, rel=0.01)
    assert found.most_seconds > 20 * found.seconds


def test_what_every_table_costs_does_not_grow_with_the_records(clock):
    class Ready(Slow):
        """Take a second and a half and 80 MB to get ready, and then a little."""

        name = "ready"
        cost = "n log n"

        def protect(self, table, run):
            n = len(table)
            CLOCK.work(1.5 + 1e-6 * n * math.log(n), n, held=80_000_000 * (n > 300) + 10 * n)
            return Release.unchanged(table)

    found = estimated(PlannedWork(Recipe.of(Ready())), 10_000_000, clock)
    assert 160 < found.seconds < 400
    assert found.memory_bytes < 10**9


def test_steps_and_measures_add_up_and_repeat(clock):
    once = estimated(PlannedWork(Recipe.of(Slow()), (Ruler(),)), 100_000, clock)
    again = estimated(PlannedWork(Recipe.of(Slow()), (Ruler(),), repeats=3), 100_000, clock)
    assert again.seconds == pytest.approx(3 * once.seconds, rel=0.01)
    both = estimated([PlannedWork(Recipe.of(Slow())), PlannedWork(Recipe.of(Slow()))], 100_000, clock)
    assert both.seconds == pytest.approx(2 * 1e4, rel=0.01)
    ruled = estimated(PlannedWork(at_end=(Ruler(),), repeats=9, ends=4), 10_000_000, clock)
    assert ruled.seconds == pytest.approx(4 * 1e-6 * 1e7 * math.log(1e7), rel=0.05)


def test_records_worked_on_at_once_bound_the_growth(clock):
    found = estimated(PlannedWork(measures=(Drawn(records=1000, draws=30_000),)), 1_000_000, clock)
    assert found.seconds == pytest.approx(30_000 * 1.0, rel=0.05)


def test_parts_are_worked_on_one_after_the_other(clock):
    class InParts(Slow):
        """Take n² microseconds on each part."""

        name = "in-parts"
        cost = "n part"

        part: int = param(10_000, "Most records in a part.", ge=1)

    found = estimated(PlannedWork(Recipe.of(InParts())), 1_000_000, clock)
    assert found.seconds == pytest.approx(100 * 1e-6 * 10_000**2, rel=0.01)


def test_a_trial_ends_once_there_is_nothing_to_tell(clock):
    found = estimated(PlannedWork(measures=(Ruler(),)), 3000, clock)
    assert not found.worth_telling
    assert max(clock.sizes) == 60


def test_a_method_that_needs_more_records_is_tried_on_more(clock):
    found = estimated(PlannedWork(Recipe.of(Choosy(least=200))), 100_000, clock)
    assert min(clock.sizes) == 240
    assert found.seconds == pytest.approx(1e4, rel=0.05)
    assert estimated(PlannedWork(Recipe.of(Choosy(least=10**9))), 100_000, clock) is None


def test_a_measure_that_fails_on_samples_is_left_out_and_named(clock):
    found = estimated(PlannedWork(measures=(Ruler(), Broken())), 10_000_000, clock)
    assert "not tried: broken" in found.basis
    assert found.seconds > 100


def test_memory_grows_with_the_records(clock):
    found = estimated(PlannedWork(Recipe.of(Slow())), 100_000, clock)
    assert found.memory_bytes == pytest.approx(1e8 + 100 * 100_000 * 1000, rel=0.3)
    at_least = estimated(PlannedWork(measures=(Ruler(),)), 100_000, clock)
    assert at_least.memory_bytes >= 1e8 + 3 * 8 * 100_000


def test_releases_are_sampled_with_their_originals(clock):
    seen = []

    class Pairs(Ruler):
        name = "pairs-seen"
        needs = Needs()

        def measure(self, evidence, run):
            CLOCK.work(1e-6, len(evidence.original))
            seen.append((evidence.original.frame["x"].to_numpy(), evidence))
            return Score(0.0)

    original = table(5000)
    rows = np.random.default_rng(1).permutation(5000)
    release = Release.of(original.take(rows), source_rows=rows)
    estimate(
        PlannedWork(measures=(Pairs(),), release=release), original, Run(seed=1), clock=clock, peak=clock.peak
    )
    for values, evidence in seen:
        assert (evidence.protected.frame["x"].to_numpy() == values[evidence.source_rows]).all()
    blind = Release.of(original.take(rows))
    assert (
        estimate(PlannedWork(measures=(Pairs(),), release=blind), original, Run(seed=1), clock=clock)
        is not None
    )


def test_chance_and_resources_of_the_run_are_left_alone(clock):
    class Asking(Slow):
        name = "asking"

        def protect(self, table, run):
            assert run.resources == {"other": 1}
            drawn.append(run.rng("x").random())
            return super().protect(table, run)

    drawn = []
    run = Run(seed=1)
    work = PlannedWork(Recipe.of(Asking()), resources={"other": 1})
    estimate(work, table(1000), run, clock=clock, peak=clock.peak)
    before = list(drawn)
    drawn.clear()
    Recipe.of(Asking()).apply(table(1000), Run(seed=1, resources={"other": 1}))
    assert not set(drawn) & set(before)


def test_what_shows_to_be_slow_is_not_awaited(clock):
    class Trap(Ruler):
        """Quick on few records; of many, minutes, telling of each second."""

        name = "trap"
        cost = "n²"

        def measure(self, evidence, run):
            n = len(evidence.original)
            for second in range(1 if n < 900 else 300):
                CLOCK.work(0.01 if n < 900 else 1.0, n)
                run.tell("trap", second, 300)
            return Score(0.0)

    found = estimated(PlannedWork(measures=(Trap(),)), 100_000, clock)
    assert clock.seconds < 5
    assert found.seconds > 1000


def test_a_trial_can_be_stopped(clock):
    with pytest.raises(Cancelled):
        estimate(
            PlannedWork(Recipe.of(Slow())),
            table(10_000),
            Run(seed=1, progress=Progress(stopped=lambda: True)),
            clock=clock,
        )


@pytest.mark.parametrize("n", [0, 1, 50, 119])
def test_tiny_tables_are_not_tried(n, clock):
    assert estimated(PlannedWork(Recipe.of(Slow())), n, clock) is None


def test_real_residents_on_real_kinds():
    rng = np.random.default_rng(1)
    mixed = table_of({"x": rng.random(3000), "g": rng.choice(["a", "b"], 3000)}, g=Kind.NOMINAL)
    work = PlannedWork(Recipe((Step(registry.method("rank-swapping")(), ("x",)),)), (registry.measure("k")(),),
                scenario=Scenario(columns=("x", "g")))  # fmt: skip
    found = estimate(work, mixed, Run(seed=1))
    assert found.seconds > 0
    assert found.memory_bytes > 0


# ------------------------------------------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (40, "40 s"), (100, "2 min"), (5000, "83 min"), (7200, "2 h"), (864_000, "10 days")],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


def test_sizes():
    assert [size(each) for each in (3e8, 9.996e8, 1.2e9)] == ["300 MB", "1.0 GB", "1.2 GB"]


def test_sentences():
    assert Cost(180, 190, 1.2e9, "").sentence() == "about 3 min and 1.2 GB"
    assert Cost(180, 7300, 1.2e9, "").sentence() == "about 3 min (at most 2 h) and 1.2 GB"


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ((5000, 200, False), True),
        ((5000, 200, True), False),
        ((5000, 2, False), False),
        ((100, 200, False), False),
    ],
)
def test_only_long_work_is_announced(work, told, monkeypatch, capsys):
    n, seconds, quiet = work
    monkeypatch.setattr(cost, "estimate", lambda *_: Cost(seconds, seconds, 5e8, "a guess"))
    announce(PlannedWork(), table(n), Run(seed=1), quiet=quiet)
    out, err = capsys.readouterr()
    assert out == ""
    expected = "this takes about 3 min and 500 MB (a guess); Ctrl-C stops it cleanly\n"
    assert err == (expected if told else "")


def test_of_many_steps_some_stand_for_all():
    steps = [Step(Mdav(k=k), ("x",)) for k in range(2, 22)]
    works = cost.works_of(steps, (), 3)
    assert 1 < len(works) <= 8
    assert sum(work.repeats for work in works) == pytest.approx(3 * len(steps), rel=0.1)
    assert [work.repeats for work in cost.works_of(steps[:2], (), 5)] == [5, 5]
    assert cost.works_of([], (), 5) == []
