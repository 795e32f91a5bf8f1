"""A demand: one requirement against one intruder; and how a plan says its scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.measure import Measure
from sfumato.core.params import listed
from sfumato.core.requirement import Requirement
from sfumato.data.scenario import Scenario
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Demand:
    """A requirement against one intruder."""

    requirement: Requirement
    scenario: Scenario = field(default_factory=Scenario)

    @property
    def measure(self) -> Measure:
        """The measure that is asked for a number."""
        return self.requirement.measure

    def __str__(self) -> str:
        return self.requirement.short


def read_scenarios(
    parts: Sequence[Any], read: Callable[..., Any]
) -> tuple[tuple[Scenario, ...], dict[str, tuple[Requirement, ...]]]:
    """Read the scenarios of a plan, and by their names the requirements that hold against one alone.

    ``read(make, part)`` gives what is made of a part, or None once it has noted the fault.
    """
    scenarios, required = [], {}
    for part in parts:
        said = dict(part) if isinstance(part, Mapping) else part
        own = said.pop("requirements", []) if isinstance(said, dict) else []
        scenario = read(Scenario.from_dict, said)
        found = [read(Requirement.parse, each) for each in (own if isinstance(own, list) else [own])]
        if scenario is not None:
            scenarios.append(scenario)
            if any(found):
                required[scenario.name] = tuple(filter(None, found))
    return tuple(scenarios), required


def say_scenarios(
    scenarios: Sequence[Scenario], required: Mapping[str, Sequence[Requirement]]
) -> list[dict[str, Any]]:
    """Say scenarios with their own requirements as the plan does."""
    return [
        {**scenario.to_dict(), "requirements": [str(each) for each in required[scenario.name]]}
        if required.get(scenario.name)
        else scenario.to_dict()
        for scenario in scenarios
    ]


def labelled(demands: Sequence[Demand]) -> list[tuple[str, Demand]]:
    """Each demand with the label its score stands under: the measure, after its scenario if they are several.

    Two requirements on one measure in one scenario share a label, and so a score; two scenarios must not
    share a name, or one would be judged by the score of the other.
    """
    names = [scenario.name for scenario in dict.fromkeys(demand.scenario for demand in demands)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(
            f"each scenario must have a name of its own, got for several: {listed(twice)}",
            hint="name the intruders apart",
        )
    several = len(names) > 1
    return [
        (f"{demand.scenario.name}: {demand.measure}" if several else str(demand.measure), demand)
        for demand in demands
    ]
