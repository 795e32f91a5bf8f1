"""What the start page asks: what is in a file, and the plan that its answers make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sfumato.data.guess.columns import guess_schema
from sfumato.data.schema import UNIT_ROLES, Role
from sfumato.io import read_contents
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.starter import safe_steps
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.load import inspect
from sfumato.releasing.prepare import Prepared, prepare_release
from sfumato.releasing.request import Request
from sfumato.web.tasks.base import Desk, task

#: Records with which a first answer is rehearsed while the questions are read.
_REHEARSED_RECORDS = 300


@task
def look_into(desk: Desk, source: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """What is in a file, and which role each column seems to have; profiles to choose from."""
    desk.hold(source, reading)
    overview = inspect(source, **reading)
    return {
        "overview": overview.to_dict(),
        "warnings": overview.warnings(),
        "roles": [role.value for role in Role],
        "profiles": [_describe_profile(name) for name in Profile.names()],
    }


@task
def rehearse(desk: Desk, source: str, reading: Mapping[str, Any]) -> None:
    """Go the way of a first answer with a few records, so that its kernels are compiled by then."""
    if hasattr(os, "nice"):
        os.nice(10)  # whoever waits for an answer goes first
    frame = read_contents(source, rows=_REHEARSED_RECORDS, **reading).frame
    roles = {each.name: str(each.role or Role.OTHER) for each in guess_schema(frame).columns}
    prepared = prepare_release(Request(source=frame, roles=roles))
    outcome = carry_out(_with_first_step(prepared.plan), desk.run().silent(), table=prepared.table)
    decide(outcome, subject="the release")


def _describe_profile(name: str) -> dict[str, Any]:
    profile = Profile.load(name)
    return {
        "name": name,
        "title": profile.title,
        "summary": profile.summary,
        "intruders": [{"name": each.name, "reason": each.reason} for each in profile.intruders],
        "requirements": [
            {
                "text": str(each.requirement),
                "words": each.requirement.in_words,
                "against": list(each.scenarios),
                "reason": each.reason,
            }
            for each in profile.thresholds
            if not each.series
        ],
    }


def prepare_from(request: Mapping[str, Any]) -> Prepared:
    """What a request of the page asks for, as a plan with its table."""
    return prepare_release(Request(**{**request, "matters": tuple(request.get("matters", ()))}))


@task
def draft(desk: Desk, request: Mapping[str, Any], *, with_step: bool) -> dict[str, Any]:  # noqa: ARG001
    """The plan that answers make: roles, profile, and for the desk a first step that can meet it."""
    plan = prepare_from(request).plan
    return {"toml": (_with_first_step(plan) if with_step else plan).to_toml()}


def _with_first_step(plan: Plan) -> Plan:
    """The plan with a first step that can meet what it requires, if it has none yet."""
    if plan.recipe.steps or plan.schema is None:
        return plan
    step = next(iter(safe_steps(plan.schema, plan.demands)), None)
    drop = dict.fromkeys((*plan.output.drop, *(plan.schema.with_role(*UNIT_ROLES) if plan.demands else ())))
    return replace(
        plan, recipe=Recipe((step,) if step else ()), output=replace(plan.output, drop=tuple(drop))
    )
