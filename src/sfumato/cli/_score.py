"""What `risk` and `utility` share: read, score, show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from sfumato.cli._resources import request_of
from sfumato.cli._screen import announce, emit_json, emit_table, in_options, running, say
from sfumato.core import registry
from sfumato.core.measure import Measure, Score, Status
from sfumato.data.scenario import by_knowledge
from sfumato.errors import ParameterError, RequirementError, quoted

if TYPE_CHECKING:
    from sfumato.core.requirement import Requirement
    from sfumato.core.run import Run
    from sfumato.data.scenario import Scenario
    from sfumato.data.table import Table
    from sfumato.releasing.prepare import AssessmentRequest


def score(
    aspect: Literal["risk", "utility"], original: str, protected: str | None, options: dict[str, Any]
) -> None:
    """Score a release by the usual measures of an aspect, or by those asked for, against every intruder."""
    from sfumato.core.requirement import Requirement, parse_measure
    from sfumato.releasing.prepare import prepare_question

    originals = [each for each in (original, protected) if each is not None]
    _check_report(options, originals)
    requirements = [Requirement.parse(text) for text in options["require"]]
    measures = _every(aspect) if "all" in options["measure"] else [*map(parse_measure, options["measure"])]
    for measure in (*measures, *(requirement.measure for requirement in requirements)):
        if measure.aspect != aspect:
            raise ParameterError(f"{measure.name} must be a measure of {aspect}, got: {measure.aspect}")
    usual, counted_for = not measures and not requirements, list[Measure]()
    if options.get("in_database"):
        counted_for = _measures_of_counts(measures, requirements, protected, options)
        measures = measures if not usual else counted_for
    asked = prepare_question(
        request_of(original, options),
        released=protected,
        aligned=options["aligned"],
        counted_for=counted_for,
        judged=aspect == "risk",
    )
    if not measures and not requirements:
        shown = registry.measures_for("default")
        measures = [each for each in shown if each.aspect == aspect and each.concerns(asked.table)]
    if aspect == "utility" and asked.release is None:
        raise ParameterError("the released file is missing: sfumato utility ORIGINAL PROTECTED")
    for note in asked.notes:
        say(f"note: {note}", quiet=options["quiet"])
    if asked.release is not None and asked.release.source_rows is not None and not options["aligned"]:
        say("note: true matches are checked by the private trail of the release", quiet=options["quiet"])
    every = [*measures, *(requirement.measure for requirement in requirements)]
    scenarios = by_knowledge(asked.scenarios if aspect == "risk" else asked.scenarios[:1])
    scores = {
        name: _score_intruder(every, asked, scenario, options, usual=usual, first=number == 0)
        for number, (name, scenario) in enumerate(scenarios.items())
    }
    _show(measures or every, scores, options)
    _write_report(measures or every, scores, options, originals)
    _require_requirements(requirements, scores, quiet=options["quiet"])


def _measures_of_counts(
    measures: list[Measure], requirements: list[Requirement], protected: str | None, options: dict[str, Any]
) -> list[Measure]:
    """What a table is counted for in its database: all that is asked, or the usual measures of classes."""
    if protected is not None or options["per_record"]:
        what = "--per-record" if protected is None else "a released file"
        raise ParameterError(f"`--in-database` reads no single records, got: {what}", hint="leave one out")
    asked = [*measures, *(requirement.measure for requirement in requirements)]
    return asked or [each for each in registry.measures_for("default") if each.counts.classes_only]


def _require_requirements(
    requirements: list[Requirement], scores: dict[str, dict[str, Score]], *, quiet: bool
) -> None:
    """Stop if a requirement is not met against every intruder."""
    unmet = 0
    for requirement in requirements:
        for scenario, found in scores.items():
            score = found[str(requirement.measure)]
            where = f"{scenario}: " if len(scores) > 1 else ""
            say(where + requirement.verdict(score), quiet=quiet)
            unmet += not requirement.met_by(score)
    if unmet:
        total = len(requirements) * len(scores)
        against = f" against {len(scores)} intruders" if len(scores) > 1 else ""
        raise RequirementError(f"{unmet} of {total} requirements{against} are not met")


def _rehearsal(asked: AssessmentRequest) -> dict[str, Any]:
    """Who sits out, and what is followed without them: the steps of the plan that is named."""
    share = asked.plan.control
    if not share:
        return {}
    from sfumato.releasing.carry_out import maker

    if not asked.plan.recipe.steps:
        raise ParameterError(
            f"`--control {share:g}` needs a plan with steps, to protect the people who are not held out",
            hint="add --plan PLAN, or name a file of people who are not in the release: --control FILE",
        )
    return {"control": share, "made_by": maker(asked.plan)}


def _score_intruder(
    every: list[Measure],
    asked: AssessmentRequest,
    scenario: Scenario,
    options: dict[str, Any],
    *,
    usual: bool,
    first: bool,
) -> dict[str, Score]:
    """Score, saying before what it costs; if nobody asked for them by name, a sample of large tables."""
    from sfumato.front import assess
    from sfumato.study.cost import PlannedWork
    from sfumato.study.evaluate import EvaluationCase

    table, quiet = asked.table, options["quiet"] or not first
    how: dict[str, Any] = {"release": asked.release, "scenario": scenario, "resources": asked.resources}
    evidence = EvaluationCase(table, scenario, asked.resources).evidence(asked.release)
    sampled = [measure for measure in every if usual and measure.is_sampled(evidence)]
    exact = tuple(measure for measure in every if measure not in sampled)
    with running(quiet=options["quiet"], seed=options["seed"]) as run:
        announce(PlannedWork(measures=exact, **how), table, run, quiet=quiet)
        asking: dict[str, Any] = {
            "scenario": scenario,
            "resources": asked.resources,
            "run": run,
            "exact": not usual,
        }
        if every[0].aspect == "utility":
            asking["sample_equivalent"] = options["sample_equivalent"]
        asking |= _rehearsal(asked)
        scores: dict[str, Score] = assess(table, asked.release, every, **asking)
        if asked.release is None and every[0].aspect == "risk":
            scores |= _score_as_released(table, every, asking, quiet=quiet)
        if not quiet:
            _offer(
                [each for each in sampled if scores[str(each)].status is not Status.REFUSED], table, run, how
            )
    return scores


def _every(aspect: str) -> list[Measure]:
    return [cls() for cls in registry.measures().values() if cls.aspect == aspect]


def _offer(sampled: list[Measure], table: Table, run: Run, how: dict[str, Any]) -> None:
    """Say by what name the exact number is to be had of measures that were estimated or left out."""
    from sfumato.study.cost import PlannedWork, estimate

    for measure in sampled:
        cost = estimate(PlannedWork(measures=(measure,), **how), table, run)
        takes = "" if cost is None else f": {cost.sentence()}"
        say(f"note: for {measure.name} of all {len(table):,} records add -m {measure.name}{takes}")


def _score_as_released(
    table: Table, measures: list[Measure], asking: dict[str, Any], *, quiet: bool
) -> dict[str, Score]:
    """Scores of a file looked at alone that tells which records belong together, as if it were released."""
    from sfumato.core.release import Release
    from sfumato.data.relations.joining import joining_columns
    from sfumato.front import assess

    names, measures = joining_columns(table), [each for each in measures if not each.needs.release]
    if not names or not measures:
        return {}
    listed = quoted(names, " and ")
    say(f"note: records linked by {listed} are judged together, as if it were released too", quiet=quiet)
    return assess(table, Release.unchanged(table), measures, **asking)


def _label_scores(scores: dict[str, dict[str, Score]]) -> dict[str, Score]:
    """The scores by measure; where there are several intruders, by the intruder before it."""
    several = len(scores) > 1
    return {
        f"{scenario}: {name}" if several else name: score
        for scenario, found in scores.items()
        for name, score in found.items()
    }


def _show(measures: list[Measure], scores: dict[str, dict[str, Score]], options: dict[str, Any]) -> None:
    if options["as_json"]:
        private = options.get("per_record", False)
        emit_json({name: value.to_dict(private=private) for name, value in _label_scores(scores).items()})
        return
    rows = []
    for scenario, measure in ((scenario, measure) for scenario in scores for measure in measures):
        found = scores[scenario][str(measure)]
        label = f"{scenario}: {measure}" if len(scores) > 1 else str(measure)
        value = "—" if math.isnan(found.value) else f"{found.value:.4f}"
        explained = found.reason and found.confidence is None  # why it is an estimate, the measure tells
        details = "; ".join(_score_lines(measure, found, explained=bool(explained)))
        rows.append([label, value, found.status.value, f"{measure.better} is better", details])
    emit_table(["measure", "value", "status", "direction", "details"], rows, right=[1], about=0)


def _check_report(options: dict[str, Any], originals: list[str]) -> None:
    if options.get("report") is not None:
        from sfumato.report import check_report

        check_report(options["report"], originals=originals, overwrite=options["overwrite"])


def _write_report(
    measures: list[Measure],
    scores: dict[str, dict[str, Score]],
    options: dict[str, Any],
    originals: list[str],
) -> None:
    if options.get("report") is None:
        return
    from sfumato.releasing.copies import worst_of
    from sfumato.report import write_pictures
    from sfumato.report.assessment import assessment_pictures

    worst = {str(each): worst_of(each, [found[str(each)] for found in scores.values()]) for each in measures}
    pictures, overwrite = assessment_pictures(measures, worst), options["overwrite"]
    paths = write_pictures(pictures, options["report"], overwrite=overwrite, originals=originals)
    say("report: " + ", ".join(str(path) for path in paths), quiet=options["quiet"])


def _score_lines(measure: Measure, found: Score, *, explained: bool) -> list[str]:
    like = [found.like_sample.words] if found.like_sample and found.like_sample.words else []
    if explained:
        return [*like, in_options(found.reason)]
    between = []
    if found.interval == measure.bounds:
        between = ["its error is unknown"]
    elif found.interval:
        sure = "" if found.confidence is None else f" ({found.confidence:g}% confidence)"
        between = [f"between {_short(found.interval[0])} and {_short(found.interval[1])}{sure}"]
    return (
        like + between + [f"{key.replace('_', ' ')}: {_short(value)}" for key, value in found.details.items()]
    )


def _short(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
