"""What methods are brought to, read from how people say it: a level, requirements, a profile, a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.core.measure import Measure, Status
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.errors import ParameterError, RefusedError
from sfumato.recipes.demand import Demand
from sfumato.recipes.profile import Profile
from sfumato.recipes.step import Step
from sfumato.study.evaluate import EXPECTED_ERRORS, EvaluationCase, evaluate, usable
from sfumato.study.level import Target, level_of

#: What is held when nobody says what (and where the intruder knows what that does not see), and what ranks
#: methods in a comparison, and recipes in a search.
HELD, HELD_IF_MIXED = "rank-linkage", "dbrl"
RANKED_BY, SEARCHED_BY = "earth-movers-distance", "analytical-loss"


def held_by_default(case: EvaluationCase) -> Measure:
    """What is held when nobody says what: the usual measure, or one that sees all that the intruder knows."""
    evidence = case.evidence(Release.unchanged(case.table))
    usual = parse_measure(HELD)
    sees_all = set(usual.columns(evidence)) >= set(evidence.known_columns)
    return usual if sees_all else parse_measure(HELD_IF_MIXED)


def as_measure(measure: Measure | str) -> Measure:
    """A measure, which may be given by its name."""
    return parse_measure(measure) if isinstance(measure, str) else measure


def demands_of(
    require: Sequence[Requirement | Demand | Measure | str],
    case: EvaluationCase,
    run: Run,
    *,
    profile: Profile | None = None,
    columns: Sequence[str] = (),
    like: Release | None = None,
    intruders: Sequence[Scenario] = (),
) -> tuple[Demand, ...]:
    """Every requirement of the profile and of the caller, each with its intruder.

    The caller's must be met against each of the ``intruders``, or that of the case. ``columns`` are those
    that are protected; a measure without a number must be as good as in ``like``.
    """
    schema = case.table.schema
    found = [] if profile is None else list(profile.requirements(schema, keys=columns))
    cases = [replace(case, scenario=each) for each in intruders or (case.scenario,)]
    found += dict.fromkeys(_demand(each, here, run, like) for here in cases for each in require)
    if profile is not None and not found:
        hint = "; ".join(profile.notes(schema, columns)) or "name requirements, or another profile"
        raise ParameterError(f"the profile `{profile.name}` requires nothing of this table", hint=hint)
    return tuple(found)


def _demand(
    asked: Requirement | Demand | Measure | str, case: EvaluationCase, run: Run, like: Release | None
) -> Demand:
    if isinstance(asked, Demand):
        return asked
    if isinstance(asked, str):
        # The comparison stands after the settings; within them there is none, or that of a setting.
        compared = set(asked.rpartition(")")[2]) & set("<>")
        asked = Requirement.parse(asked) if compared else parse_measure(asked)
    if isinstance(asked, Measure):
        sign = "<=" if asked.better == "low" else ">="
        if like is None:
            raise ParameterError(f"{asked.name} has no level", hint=f"write it like `{asked} {sign} …`")
        asked = Requirement(asked, sign, _level_in(like, asked, case, run))
    return Demand(asked, case.scenario)


def target_of(
    held: Measure,
    level: float | Release | None,
    steps: Sequence[Step],
    case: EvaluationCase,
    run: Run,
    *,
    tolerance: float,
    named: bool,
) -> Target:
    """The level that is held: a number, that of a release, or what the first step gives as it is.

    Where nobody has ``named`` the steps, the first that gives a level sets it.
    """
    if isinstance(level, Release):
        level = _level_in(level, held, case, run)
    elif level is None:
        level = _as_it_is(held, steps[:1] if named else steps, case, run)
    return Target(held, level, tolerance)


def _as_it_is(held: Measure, steps: Sequence[Step], case: EvaluationCase, run: Run) -> float:
    for step in steps[:-1]:
        try:
            return level_of(step, case, held, run)
        except EXPECTED_ERRORS:
            continue
    return level_of(steps[-1], case, held, run)


def _level_in(release: Release, measure: Measure, case: EvaluationCase, run: Run) -> float:
    """The level of a measure that a release has: "as safe as this one"."""
    score = evaluate(release, case, [measure], run).scores[str(measure)]
    if score.status is Status.REFUSED and release.source_rows is None:
        hint = "add `aligned` if its records are in the order of the original"
        raise RefusedError(score.reason, hint=hint)
    return usable(measure, score)
