"""What answers took, and so whether one on all records comes at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato import kernels
from sfumato.recipes.plan import Plan
from sfumato.study.growth import Growth, Timings


class AnswerCosts:
    """Seconds of the processor that answers took, by the methods and measures of a plan and the records."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock, self._seconds = clock, dict[str, dict[int, float]]()

    @contextmanager
    def noting(self, plan: Plan, records: int, *, anew: bool) -> Iterator[None]:
        """Note what an answer takes, unless kernels are compiled for it, which is done once.

        One that is not made ``anew`` takes less than the next may, so it counts only where it takes more.
        """
        compiled = list[bool]()
        kernels.on_compile(lambda: compiled.append(True))
        began = self._clock()
        yield
        seconds, known = self._clock() - began, self._seconds.setdefault(_kind_of(plan), {})
        if not compiled and (anew or seconds > known.get(records, 0.0)):
            known[records] = seconds

    def is_tried(self, plan: Plan, small: int, large: int) -> bool:
        """Whether it is known of two sizes what such a plan takes, and more records took longer."""
        known = self._seconds.get(_kind_of(plan), {})
        return small in known and large in known and known[small] < known[large]

    def expected_seconds(self, plan: Plan, records: int) -> float:
        """What an answer on so many records will take: between what grows with them and what is declared."""
        points = sorted(self._seconds.get(_kind_of(plan), {}).items())
        costs = [step.method.cost for step in plan.recipe.steps]
        costs += [each.measure.cost for each in plan.demands]
        growth = max((Growth.declared_as(each) for each in costs), default=Growth(1))
        timings = Timings(growth, [each for each in points if each[0] <= records])
        return timings.seconds_between(records, Growth(1))


def _kind_of(plan: Plan) -> str:
    """What an answer's cost depends on, beside the records: not on the settings, which are what is moved."""
    steps = [(step.method.name, step.columns, step.within) for step in plan.recipe.steps]
    return str((steps, [(each.measure.name, each.scenario.columns) for each in plan.demands]))
