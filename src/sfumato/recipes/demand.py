"""A demand: one requirement against one intruder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.core.measure import Measure
from sfumato.core.requirement import Requirement
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Schema
from sfumato.errors import ParameterError, quoted


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

    def among(self, schema: Schema) -> Demand:
        """The same of a table that lacks columns which the intruder knows; without any left, of all keys."""
        known = tuple(word for word in self.scenario.columns if word.startswith("@") or word in schema)
        return replace(self, scenario=replace(self.scenario, columns=known))


def scenario_names(specs: object) -> list[str]:
    """The names of scenarios in a file, sound or not."""
    tables = [each for each in specs if isinstance(each, Mapping)] if isinstance(specs, Sequence) else []
    return [str(each.get("name", Scenario.name)) for each in tables]


def repeated_names(names: Sequence[str]) -> list[str]:
    """What is wrong with the names of scenarios: two must not share one."""
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"each scenario must have a name of its own, got twice: {quoted(twice)}"] if twice else []


def label_demands(demands: Sequence[Demand]) -> list[tuple[str, Demand]]:
    """Each demand with the label its score stands under: the measure, after its scenario if they are several.

    Two requirements on one measure in one scenario share a label, and so a score; two scenarios must not
    share a name, or one would be judged by the score of the other.
    """
    names = [scenario.name for scenario in dict.fromkeys(demand.scenario for demand in demands)]
    for fault in repeated_names(names):
        raise ParameterError(fault, hint="give each intruder a name of its own")
    several = len(names) > 1
    return [
        (f"{demand.scenario.name}: {demand.measure}" if several else str(demand.measure), demand)
        for demand in demands
    ]
