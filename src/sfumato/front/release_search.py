"""The front door's release: a plan carried out as it is, or the first recipe found that may leave."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.run import Run
from sfumato.core.vetting import Only
from sfumato.errors import UnreachableError
from sfumato.recipes.recipe import Recipe

if TYPE_CHECKING:
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.profile import Profile
    from sfumato.releasing.decide import Decision
    from sfumato.releasing.outcome import PlanOutcome
    from sfumato.releasing.prepare import Prepared
    from sfumato.report.release_result import Released
    from sfumato.tuning.time_budget import Shares
    from sfumato.tuning.tuning_result import TuningResult
from sfumato.front.inputs import (
    in_native,
    make_run,
    several,
)
from sfumato.front.verbs import tune


def release(
    data: Any,
    *,
    for_: Profile | str | Path | None = None,
    minutes: float = 5.0,
    roles: Mapping[str, str] | None = None,
    resources: Mapping[str, Any] | None = None,
    control: float = 0.0,
    plan: Plan | None = None,
    override: str = "",
    only: Only = "",
    seed: int | None = None,
    run: Run | None = None,
    **search: Any,
) -> Released:
    """Make a release: find a recipe within some minutes that meets the profile, carry it out and judge it.

    A requirement that can never be met is raised at once, with the nearest level that can. A release that
    does not meet its requirements is never returned: if the search finds none in time, a method that enforces
    them is used at its weakest setting that does, and if that fails too, the error says what came nearest. A
    plan with steps is carried out as it is. Other problems (see `sfumato.releasing.decide`) are raised too.
    Nothing is written; see ``Released.write``.

    Parameters
    ----------
    data
        A path, a plan, a pandas, polars or Arrow table, or a ``Table``.
    for_
        The profile of requirements (``"public"``, ``"scientific"`` …). By default those of the plan, and
        if it has none ``"scientific"``.
    minutes
        The time limit; writing comes after.
    roles
        Roles of columns by name; every column must have one, guessed or given.
    control
        The share of the persons held out as the control group, for requirements on attacks; by default the
        plan's.
    plan
        A plan from which data, resources and output are taken.
    override
        The reason to release despite the problems found; it is recorded.
    only
        ``"vetted"``: refuse methods and requirements that were checked by experiments alone.
    seed
        For experiments: one below 2^64 can be guessed by trying, and is refused without ``override``.
    search
        How a file is read, if that is not detected: ``delimiter``, ``decimal``, ``encoding``,
        ``header``, ``sheet``; and more for ``tune``, such as ``methods`` or ``trials``.
    """
    from sfumato.io.formats import READING
    from sfumato.releasing.prepare import prepare_release
    from sfumato.releasing.request import Request

    asked = Request(
        source=data, plan=plan, roles=roles or {}, profile=for_, control=control or "", only=only,
        reading={name: search.pop(name) for name in READING if name in search},
    )  # fmt: skip
    return make_release(
        prepare_release(asked), subject=_subject(data), minutes=minutes, resources=resources,
        override=override, run=make_run(seed, run), search=search,
    )  # fmt: skip


def _subject(data: Any) -> str:
    return str(data) if isinstance(data, str | Path) else "the release"


def make_release(
    prepared: Prepared,
    *,
    subject: str,
    minutes: float,
    run: Run,
    resources: Mapping[str, Any] | None = None,
    override: str = "",
    search: Mapping[str, Any] | None = None,
    since: float | None = None,
) -> Released:
    """Make what was prepared: carry out a plan that has steps, or search for them; and decide on it.

    The minutes are counted ``since`` a time of the monotonic clock, and include writing.
    """
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.decide import decide, require_secret_seed
    from sfumato.releasing.load import load_resources
    from sfumato.report.release_result import Released
    from sfumato.tuning.feasibility import feasible_first
    from sfumato.tuning.time_budget import Shares

    plan, profile = prepared.plan, prepared.profile
    require_secret_seed(plan, run, subject=subject, override=override)
    if prepared.table is None:
        run = make_run(None, run, resources)
        outcome = carry_out(plan, run)
        unjudged = _requires_nothing(profile)
        decision = decide(outcome, subject=subject, override=override, unjudged=unjudged)
        decision.require_leave()
        how = "the steps of the plan, as they are"
        return Released(
            outcome, profile, how, run, decision=decision, about=plan.about, source=prepared.source
        )
    run = make_run(None, run, {**load_resources(plan), **(resources or {})})
    shares = Shares(minutes, time.monotonic() if since is None else since)
    with feasible_first(plan.demands, prepared.table, run, left_out=plan.left_out):
        decision, how, tuned = _search_release(
            prepared, run, subject=subject, override=override, search=search or {}, shares=shares
        )
    assert decision.outcome is not None  # it was decided on what came of a plan
    return Released(
        decision.outcome, profile, how, run, decision=decision, source=prepared.source, tuned=tuned,
        seconds=shares.to_tell(),
    )  # fmt: skip


def _requires_nothing(profile: Profile | None) -> bool:
    """Whether a named profile requires nothing, as `secure`; one that fits no column is another case."""
    return profile is not None and bool(profile.intruders) and not profile.thresholds


def _search_release(
    prepared: Prepared, run: Run, *, subject: str, shares: Shares, override: str, search: Mapping[str, Any]
) -> tuple[Decision, str, TuningResult | None]:
    """The first way that may leave, how it was found, and by what search."""
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.decide import decide
    from sfumato.releasing.postprocess import postprocessor
    from sfumato.study.target import SEARCHED_BY, as_measure
    from sfumato.tuning.candidate import RecipeJudge
    from sfumato.tuning.derive_space import Scope
    from sfumato.tuning.fallbacks import WHAT_HELPS, Fallbacks, ways

    plan, table, profile = prepared.plan, prepared.table, prepared.profile
    assert table is not None
    assert profile is not None
    searches: list[TuningResult] = []
    utilities = several(search.get("utility", ())) or (profile.rank_by or SEARCHED_BY,)
    judge = RecipeJudge(plan.demands, tuple(as_measure(each) for each in utilities))
    methods, without = (tuple(search.get(key, ())) for key in ("methods", "without"))
    scope = Scope(methods=methods, without=without, only=plan.only)
    fallbacks = Fallbacks(plan, table, run, postprocessor, judge, shares, scope)

    def tuned(plan: Plan, known: Sequence[Recipe]) -> TuningResult | None:
        left = shares.to_search(fallbacks.one_run)
        if known and not left:
            return None
        how: dict[str, Any] = {"utility": utilities, "minutes": left or shares.minutes / 10, "known": known}
        how |= {"control": plan.control, "resources": run.resources, **search}
        searches.append(tune(table, plan.demands, plan=plan, run=run, **how))
        return searches[-1]

    missed, blocked = list[str](), None
    for tried, how in ways(plan, fallbacks, tuned):
        outcome = _native(carry_out(tried, run, table=table), prepared.native)
        unjudged = _requires_nothing(profile)
        decision = decide(outcome, subject=subject, override=override, unjudged=unjudged)
        if decision.may_leave and not outcome.unmet:
            return decision, how, searches[-1] if searches else None
        missed += [
            f"{how}; in the release itself {each.sentence}" for each in outcome.judgements if not each.is_met
        ]
        blocked = blocked if outcome.unmet else decision
        if blocked is not None and shares.left <= 0:
            break  # what blocks one way mostly blocks the next
    if blocked is not None:
        blocked.require_leave()
    raise UnreachableError(
        f"no release was found that meets the profile {profile.name}, so nothing was released",
        hint="; ".join((WHAT_HELPS, *missed)),
    )


def _native(outcome: PlanOutcome, native: Any) -> PlanOutcome:
    """The outcome whose release gives its data in the type that the original came in."""
    part = outcome.parts[""]
    return replace(outcome, parts={"": replace(part, release=in_native(part.release, native))})
