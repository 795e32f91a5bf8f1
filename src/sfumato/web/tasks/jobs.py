"""Long work, each as the verb of the same name does it: search, compare, release, verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import RequirementError, UnknownNameError
from sfumato.releasing.load import load_resources
from sfumato.releasing.prepare import prepare_release
from sfumato.releasing.request import Request
from sfumato.study.evaluate import EvaluationCase
from sfumato.study.target import HELD_IF_MIXED
from sfumato.tuning.tuning_result import describe
from sfumato.web.candidates import candidate_of
from sfumato.web.tasks.base import Desk, read_plan, task
from sfumato.web.tasks.maps import map_of, mark_recipes
from sfumato.web.tasks.start import prepare_from

#: What to do about a release that may not leave.
_WAY_ON = "change what is listed at the desk; or type a reason on the release page, which is recorded"


@task
def make_release(
    desk: Desk, *, request: Mapping[str, Any], minutes: float, folder: str, override: str = ""
) -> dict[str, Any]:
    """Search, judge and write, as `sfumato release` does."""
    from sfumato import front

    prepared = prepare_from(request)
    released = front.make_release(
        prepared, subject=str(request["source"]), minutes=minutes, run=desk.run(), override=override
    )
    return _write_release(released, folder, override)


@task
def carry_out_plan(desk: Desk, *, toml: str, folder: str, override: str = "") -> dict[str, Any]:
    """Carry out a plan as it stands, judge it and write its folder."""
    from sfumato import front

    plan = read_plan(toml)
    prepared = prepare_release(Request(source=plan.data.path if plan.data else None, plan=plan))
    try:
        released = front.make_release(
            prepared, subject="the release", minutes=5.0, run=desk.run(), override=override
        )
    except RequirementError as error:
        raise RequirementError(error.message, hint=_WAY_ON) from None
    return _write_release(released, folder, override)


def _write_release(released: Any, folder: str, override: str) -> dict[str, Any]:
    written = released.write(folder, overwrite=False)
    place = Path(folder)
    return {
        "folder": folder,
        "files": [str(path.relative_to(place)) for path in written],
        "sentences": released.sentences(),
        "toml": released.plan.to_toml(),
        "override": override,
    }


@task
def find_recipe(desk: Desk, *, toml: str, minutes: float) -> dict[str, Any]:
    """The recipe that meets the plan's requirements and loses least, as `sfumato tune` finds it."""
    from sfumato import front
    from sfumato.report.alternatives import rejected_candidates

    plan = read_plan(toml)
    known = (plan.recipe,) if plan.recipe.steps else ()
    tuned = front.tune(
        desk.table(plan), plan.demands, plan=plan, resources=load_resources(plan), minutes=minutes,
        known=known, run=desk.run(),
    )  # fmt: skip
    content = tuned.to_dict()
    return {
        "toml": tuned.plan.to_toml(),
        "rejected": rejected_candidates(tuned, tuned.recipe),
        "recipe": describe(tuned.recipe),
        "candidates": [candidate_of(each) for each in (content["recommended"], *content["runners_up"])],
        "sentences": tuned.sentences(),
    }


@task
def compare_methods(
    desk: Desk, *, toml: str, methods: Sequence[str], intruder: str = "", points: int = 4
) -> dict[str, Any]:
    """Bring methods to the risk of the plan's recipe, and rank them; as `sfumato compare` does.

    The risk is that from one ``intruder``, the plan's first if none is named.
    """
    from sfumato import front
    from sfumato.report.content import twin

    plan = read_plan(toml)
    table = desk.table(plan)
    known = {each.name: each for each in plan.scenarios}
    if intruder and intruder not in known:
        raise UnknownNameError.of("scenario", intruder, known)
    scenario = known[intruder] if intruder else plan.scenarios
    resources, steps = load_resources(plan), plan.recipe.steps[:1]
    ranges = any(each.method.gives.generalised for each in steps)  # which not every linkage can compare
    study = front.compare(
        table, [*steps, *methods], hold=HELD_IF_MIXED if ranges else None, scenario=scenario,
        resources=resources, repeats=2, points=points, run=desk.run(),
    )  # fmt: skip
    case = EvaluationCase(table, study.scenario, resources)
    return map_of(study, twin(study, public=False), mark_recipes(study, plan.recipe, case, desk.run()))


@task
def verify_folder(desk: Desk, *, folder: str) -> dict[str, Any]:
    """Check every file of a release folder, and make the release again."""
    from sfumato.releasing.verify import verify_release

    reports = verify_release(Path(folder), desk.run())
    return {
        "holds": all(each.holds for each in reports.values()),
        "reports": {str(path): each.to_dict() for path, each in reports.items()},
    }
