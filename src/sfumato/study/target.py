"""What someone wants methods brought to, as they say it: a level, requirements, a profile, a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.measure import Measure, Status
from sfumato.core.params import listed
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.evidence import Scenario
from sfumato.data.table import Table
from sfumato.errors import ParameterError, RefusedError
from sfumato.recipes.demand import Demand
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Step
from sfumato.study.compare import level_of
from sfumato.study.evaluate import CANNOT, assess, usable
from sfumato.study.level import Target

#: What is held when nobody says what, and what ranks.
HELD, RANKED_BY = "rank-linkage", "earth-movers-distance"

Wish = Requirement | Demand | Measure | str


def as_measure(said: Measure | str) -> Measure:
    """A measure, which may be given by its name."""
    return parse_measure(said) if isinstance(said, str) else said


@dataclass(frozen=True)
class Question:
    """A comparison as it is asked for; the parts of it that were not said are None or empty."""

    table: Table
    run: Run
    scenario: Scenario
    resources: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    hold: Measure | str | None = None
    level: float | Release | None = None
    tolerance: float = 0.01
    require: Sequence[Wish] = field(default=())
    profile: Profile | None = None

    def __post_init__(self) -> None:
        if not (self.require or self.profile):
            return
        for name, given in (("hold", self.hold), ("level", self.level)):
            if given is not None and not isinstance(given, Release):
                raise ParameterError(f"`{name}` must be left out where requirements are given, got: both")

    def demands(self) -> tuple[Demand, ...]:
        """Every requirement of the profile and of the caller, each with its intruder."""
        found: list[Demand] = []
        if self.profile is not None:
            found += self.profile.requirements(self.table.schema, keys=self.columns)
        found += [self._demand(wish) for wish in self.require]
        if self.profile is not None and not found:
            raise ParameterError(
                f"the profile `{self.profile.name}` must require something to compare at, "
                "got: nothing for this table",
                hint="; ".join(self.notes()) or "name requirements, or another profile",
            )
        return tuple(found)

    def _demand(self, wish: Wish) -> Demand:
        if isinstance(wish, Demand):
            return wish
        if isinstance(wish, str):
            # The comparison stands after the settings; within them there is none, or that of a setting.
            compared = set(wish.rpartition(")")[2]) & set("<>")
            wish = Requirement.parse(wish) if compared else parse_measure(wish)
        if isinstance(wish, Measure):
            sign = "<=" if wish.better == "low" else ">="
            if not isinstance(self.level, Release):
                raise ParameterError(
                    f"a requirement on {wish.name} must have a number or a release to be as good as, "
                    "got: neither",
                    hint=f"write it like `{wish} {sign} …`",
                )
            wish = Requirement(wish, sign, self.like(self.level, wish))
        return Demand(wish, self.scenario)

    def notes(self) -> tuple[str, ...]:
        """What of the profile does not apply to the table, and what its intruders know that stays bare."""
        if self.profile is None:
            return ()
        schema = self.table.schema
        out = self.profile.left_out(schema, keys=self.columns)
        demands = self.profile.requirements(schema, keys=self.columns)
        known = {name for demand in demands for name in schema.resolve(demand.scenario.columns)}
        bare = [name for name in schema.names if name in known - set(schema.resolve(self.columns))]
        if not self.columns or not bare:
            return out
        return (*out, f"an intruder of the profile also knows {listed(bare)}, which no step here protects")

    @property
    def held(self) -> Measure:
        """The measure that is held at a level, where there are no requirements."""
        return as_measure(self.hold or HELD)

    def target(self, steps: Sequence[Step], *, named: bool) -> Target:
        """The level that is held: a number, that of a release, or what the first step gives as it is.

        Where nobody has ``named`` the steps, the first that gives a level sets it.
        """
        held, level = self.held, self.level
        if isinstance(level, Release):
            level = self.like(level, held)
        elif level is None:
            level = self._as_it_is(held, steps, named=named)
        return Target(held, level, self.tolerance)

    def _as_it_is(self, held: Measure, steps: Sequence[Step], *, named: bool) -> float:
        options: dict[str, Any] = {"scenario": self.scenario, "resources": self.resources}
        for step in () if named else steps[:-1]:
            try:
                return level_of(step, self.table, held, self.run, **options)
            except CANNOT:
                continue
        return level_of(steps[0] if named else steps[-1], self.table, held, self.run, **options)

    def like(self, release: Release, measure: Measure) -> float:
        """The level of a measure that a release has: "as safe as this one"."""
        scores = assess(
            self.table, release, [measure], self.run, scenario=self.scenario, resources=self.resources
        )
        score = scores[str(measure)]
        if score.status is Status.REFUSED and release.source_rows is None:
            hint = "say that it is `aligned` if its records stand in the order of the original"
            raise RefusedError(score.reason, hint=hint)
        return usable(measure, score)
