"""A plan with one thing changed, and what was done in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sfumato.core import registry
from sfumato.core.method import Method
from sfumato.data.schema import with_roles
from sfumato.errors import ParameterError, PlanError, SfumatoError, UnknownNameError
from sfumato.recipes.parts import About
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.tuning.tuning_result import describe
from sfumato.web.fields import Texts, names_in, settings_from, text_of
from sfumato.web.tasks.base import Desk, read_plan, task
from sfumato.web.tasks.forms import fields_of_step, with_chosen_files

#: As many digits as any number of a plan.
_MOST_DIGITS = 18


class FormError(PlanError):
    """What is wrong with a form, by the name of the field that caused it."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(faults.values()))
        self.by_field = dict(faults)


@task
def edit(desk: Desk, toml: str, action: str, texts: Texts) -> dict[str, Any]:
    """A plan with one thing changed, and what was done in words; or why not, and at which field."""
    plan = read_plan(toml)
    if action not in _EDITS:
        raise UnknownNameError.of("action", action, _EDITS)
    try:
        changed, words = _EDITS[action](plan, texts)
    except SfumatoError as error:
        return {"refusal": _refusal(desk, plan, action, texts, error)}
    return {"toml": changed.to_toml(), "action": words}


def _refusal(desk: Desk, plan: Plan, action: str, texts: Texts, error: SfumatoError) -> dict[str, Any]:
    """Why a plan was not changed: for the form that asked for it, whose entries are kept."""
    faults = error.by_field if isinstance(error, FormError) else {}
    content: dict[str, Any] = {
        "sentence": error.message, "hint": error.hint, "action": action, "faults": faults,
        "column": text_of(texts, "column"), "number": None, "fields": [],
    }  # fmt: skip
    if not faults:
        return content
    number = _number(plan, texts)
    fields = fields_of_step(plan.recipe.steps[number], plan, desk.table(plan))
    shown = [each.refill(texts, faults.get(each.name, "")).to_dict() for each in fields]
    return {**content, "number": number, "fields": shown}


def _with_steps(plan: Plan, steps: Sequence[Step]) -> Plan:
    changed = replace(plan, recipe=Recipe(tuple(steps)))
    return Plan.from_dict(changed.to_dict(), folder=plan.folder)  # where all its faults are found


def _number(plan: Plan, texts: Texts) -> int:
    text = text_of(texts, "number") or "0"
    number = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not 0 <= number < len(plan.recipe.steps):
        raise ParameterError("There is no step of this number in this plan.", hint="reload this page")
    return number


def _add_step(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    method = registry.method(text_of(texts, "method"))()
    return _with_steps(plan, [*plan.recipe.steps, Step(method)]), f"added {method.name}"


def _change_step(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    number = _number(plan, texts)
    old = plan.recipe.steps[number]
    plan, texts = with_chosen_files(plan, type(old.method), texts)
    settings, faults = settings_from(type(old.method), texts)
    if faults:
        raise FormError(faults)
    method, columns = type(old.method)(**settings), names_in(texts, "columns")
    steps = [*plan.recipe.steps]
    steps[number] = replace(old, method=method, columns=old.columns if columns is None else columns)
    try:
        return _with_steps(plan, steps), f"{method}"
    except PlanError as error:
        raise FormError(_by_field(error.lines, method)) from None


def _by_field(lines: Sequence[str], method: Method) -> dict[str, str]:
    """Faults of a plan by the field that caused them; what is said of a step itself is of its columns."""
    faults: dict[str, str] = {}
    for line in lines:
        named = (each.name for each in method.parameters() if f"`{each.name}` of {method.name}" in line)
        place = next(named, "columns")
        faults[place] = f"{faults[place]}; {line}" if place in faults else line
    return faults


def _remove_step(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    number = _number(plan, texts)
    steps = [each for i, each in enumerate(plan.recipe.steps) if i != number]
    return _with_steps(plan, steps), f"removed {plan.recipe.steps[number].method.name}"


def _use_recipe(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    """The steps of a candidate instead of those of the plan."""
    try:
        specs = json.loads(text_of(texts, "steps"))
    except ValueError:
        raise ParameterError("The steps of the candidate cannot be read.") from None
    recipe = Recipe.from_list(specs)
    return _with_steps(plan, recipe.steps), f"took {describe(recipe)}"


def _set_role(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    assert plan.schema is not None
    name, role = text_of(texts, "column"), text_of(texts, "role")
    return replace(plan, schema=with_roles(plan.schema, {name: role})), f"{name} is {role}"


def _set_profile(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    profile = Profile.of(text_of(texts, "profile"))
    bare = replace(plan, scenarios=(), requirements=(), required_in={})
    return profile.apply_to(bare), f"requirements of {profile.name}"


def _set_about(plan: Plan, texts: Texts) -> tuple[Plan, str]:
    words: dict[str, Any] = {
        each.name: text_of(texts, each.name) for each in fields(About) if each.name in texts
    }
    if "recipients" in words:
        words["recipients"] = tuple(filter(None, map(str.strip, words["recipients"].split(";"))))
    return replace(plan, about=replace(plan.about, **words)), "described the release"


_EDITS: dict[str, Callable[[Plan, Texts], tuple[Plan, str]]] = {
    "add-step": _add_step,
    "change-step": _change_step,
    "remove-step": _remove_step,
    "use-recipe": _use_recipe,
    "set-role": _set_role,
    "set-profile": _set_profile,
    "describe": _set_about,
}
