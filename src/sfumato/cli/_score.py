"""What `risk` and `utility` share: read, score, show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from sfumato.cli._options import reading_of, require_columns, schema_and_scenario, split
from sfumato.cli._resources import control_of, with_resources
from sfumato.cli._screen import announce, emit_json, emit_table, running, say
from sfumato.core import registry
from sfumato.core.measure import Measure, Score, Status
from sfumato.data.scenario import Scenario
from sfumato.errors import ParameterError, RequirementError, quoted

if TYPE_CHECKING:
    from sfumato.core.run import Run
    from sfumato.data.table import Table


def score(
    aspect: Literal["risk", "utility"], original: str, protected: str | None, options: dict[str, Any]
) -> None:
    """Score a release by the usual measures of an aspect, or by those asked for."""
    from sfumato.core.requirement import Requirement, parse_measure
    from sfumato.front import beside, read

    originals = [each for each in (original, protected) if each is not None]
    _check_report(options, originals)
    requirements = [Requirement.parse(text) for text in options["require"]]
    measures = _every(aspect) if "all" in options["measure"] else [*map(parse_measure, options["measure"])]
    for measure in (*measures, *(requirement.measure for requirement in requirements)):
        if measure.aspect != aspect:
            raise ParameterError(f"{measure.name} must be a measure of {aspect}, got: {measure.aspect}")
    usual = not measures and not requirements
    if usual:
        measures = [measure for measure in registry.measures_for("default") if measure.aspect == aspect]
    schema, scenario = schema_and_scenario(options["plan_path"])
    table, resources = with_resources(
        read(original, schema=schema, reading=reading_of(options["plan_path"])), options
    )
    known = split(options["columns"])
    require_columns(table.schema, known)
    if known:
        scenario = Scenario(columns=known)
    release = None
    if protected is not None:
        other: Any = read(protected).frame if protected.startswith("builtin:") else protected
        release = beside(table, other, aligned=options["aligned"])
        if release.source_rows is not None and not options["aligned"]:
            told = "note: which record is whose is known from the private trail of the release"
            say(told, quiet=options["quiet"])
    every = [*measures, *(requirement.measure for requirement in requirements)]
    how = {"release": release, "scenario": scenario, "resources": resources}
    scores = _scored(every, table, how, options, usual=usual)
    _show(measures or every, scores, options)
    _write_report(measures or every, scores, options, originals)
    unmet = [r for r in requirements if not r.met_by(scores[str(r.measure)])]
    for requirement in requirements:
        say(requirement.verdict(scores[str(requirement.measure)]), quiet=options["quiet"])
    if unmet:
        raise RequirementError(f"{len(unmet)} of {len(requirements)} requirements are not met")


def _rehearsal(options: dict[str, Any]) -> dict[str, Any]:
    """Who sits out, and what is followed without them: the steps of the plan that is named."""
    share = control_of(options)
    if not share:
        return {}
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.carry_out import maker

    plan = Plan.read(options["plan_path"]) if options["plan_path"] else Plan()
    if not plan.recipe.steps:
        raise ParameterError(
            f"`--control {share:g}` must have a plan whose steps can be rehearsed, got: none",
            hint="name the plan, or with --control a file of people who are not in the release",
        )
    return {"control": share, "made_by": maker(plan)}


def _scored(
    every: list[Measure], table: Table, how: dict[str, Any], options: dict[str, Any], *, usual: bool
) -> dict[str, Score]:
    """Score, saying before what it costs; if nobody asked for them by name, a sample of large tables."""
    from sfumato.front import assess
    from sfumato.study.cost import Work
    from sfumato.study.evaluate import Case

    evidence = Case(table, how["scenario"] or Scenario(), how["resources"]).evidence(how["release"])
    sampled = [measure for measure in every if usual and measure.is_sampled(evidence)]
    exact = tuple(measure for measure in every if measure not in sampled)
    with running(quiet=options["quiet"], seed=options["seed"]) as run:
        announce(Work(measures=exact, **how), table, run, quiet=options["quiet"])
        asking = {"scenario": how["scenario"], "resources": how["resources"], "run": run, "exact": not usual}
        asking |= _rehearsal(options)
        scores: dict[str, Score] = assess(table, how["release"], every, **asking)
        if how["release"] is None and every[0].aspect == "risk":
            scores |= _judged_together(table, every, asking, quiet=options["quiet"])
        if not options["quiet"]:
            _offer(
                [each for each in sampled if scores[str(each)].status is not Status.REFUSED], table, run, how
            )
    return scores


def _every(aspect: str) -> list[Measure]:
    return [cls() for cls in registry.measures().values() if cls.aspect == aspect]


def _offer(sampled: list[Measure], table: Table, run: Run, how: dict[str, Any]) -> None:
    """Say by what name the exact number is to be had of measures that were estimated or left out."""
    from sfumato.study.cost import Work, estimate

    for measure in sampled:
        cost = estimate(Work(measures=(measure,), **how), table, run)
        takes = "" if cost is None else f": {cost.sentence()}"
        say(f"note: {measure.name} of all {len(table):,} records is measured by -m {measure.name}{takes}")


def _judged_together(
    table: Table, measures: list[Measure], asking: dict[str, Any], *, quiet: bool
) -> dict[str, Score]:
    """Scores of a file looked at alone that tells which records belong together, as if it were released."""
    from sfumato.core.release import Release
    from sfumato.data.persons import joining_columns
    from sfumato.front import assess

    names, measures = joining_columns(table), [each for each in measures if not each.needs.release]
    if not names or not measures:
        return {}
    listed = quoted(names, " and ")
    say(
        f"note: {listed} tells which records belong together: they are judged together, as if this file were "
        "released with it",
        quiet=quiet,
    )
    return assess(table, Release.unchanged(table), measures, **asking)


def _show(measures: list[Measure], scores: dict[str, Score], options: dict[str, Any]) -> None:
    if options["as_json"]:
        emit_json(
            {name: value.to_dict(private=options.get("per_record", False)) for name, value in scores.items()}
        )
        return
    rows = []
    for measure in measures:
        found = scores[str(measure)]
        value = "—" if math.isnan(found.value) else f"{found.value:.4f}"
        told = not found.reason or found.confidence is not None  # why it is an estimate, the measure tells
        details = "; ".join(_said(found)) if told else found.reason
        rows.append([str(measure), value, found.status.value, f"{measure.better} is better", details])
    emit_table(["measure", "value", "status", "direction", "details"], rows, right=[1], about=0)


def _check_report(options: dict[str, Any], originals: list[str]) -> None:
    if options.get("report") is not None:
        from sfumato.report import check_report

        check_report(options["report"], originals=originals, overwrite=options["overwrite"])


def _write_report(
    measures: list[Measure], scores: dict[str, Score], options: dict[str, Any], originals: list[str]
) -> None:
    if options.get("report") is None:
        return
    from sfumato.report import write_pictures
    from sfumato.report.assessed import assessment_pictures

    pictures, overwrite = assessment_pictures(measures, scores), options["overwrite"]
    paths = write_pictures(pictures, options["report"], overwrite=overwrite, originals=originals)
    say("report: " + ", ".join(str(path) for path in paths), quiet=options["quiet"])


def _said(found: Score) -> list[str]:
    between = []
    if found.interval:
        sure = "" if found.confidence is None else f" (estimated at {found.confidence:g}%)"
        between = [f"between {_short(found.interval[0])} and {_short(found.interval[1])}{sure}"]
    return between + [f"{key.replace('_', ' ')}: {_short(value)}" for key, value in found.details.items()]


def _short(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
