"""Explain a measure, a method or a score; or, in private, why a record is at risk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from sfumato.cli import _options
from sfumato.cli._engine import engine_options
from sfumato.cli._resources import hierarchy_option, request_of, resource_option
from sfumato.cli._screen import announce, emit_json, running, say
from sfumato.errors import ParameterError, PlanError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sfumato.core.component import Component
    from sfumato.core.measure import Measure
    from sfumato.core.randomness import ByPlace
    from sfumato.core.release import Release
    from sfumato.core.run import Run
    from sfumato.data.scenario import Scenario
    from sfumato.data.table import Table
    from sfumato.recipes.recipe import Recipe
    from sfumato.releasing.prepare import AssessmentRequest


@click.command(
    "explain",
    help=__doc__,
    epilog=f"WHAT is the name of a measure or method; or {_options.SOURCE}. "
    "Explanations of records are private.",
)
@click.argument("what", required=False)
@click.option("--record", type=int, help="Explain the record at this position (the first is 0). Private.")
@click.option("--riskiest", type=int, help="List this many records with the highest risk. Private.")
@click.option("--measure", "measures", multiple=True, help="A measure to explain, or to judge records by.")
@click.option(
    "-m", "--method", "methods", multiple=True, help="A method to protect SOURCE by, such as 'mdav(k=5)'."
)
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    help="Take columns, intruders and steps from this plan.",
)
@click.option("--scenario", help="Which intruder of the plan (default: the first).")
@click.option("--released", help="The released file, if it exists already.")
@click.option("--aligned", is_flag=True, help="The records of --released are in the order of SOURCE.")
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    help="Repeat the release whose private trail this is, with the same random numbers.",
)
@hierarchy_option
@resource_option
@click.option("--k", type=click.IntRange(2), help="Class size to reach.  [default: the plan's k, or 5]")
@_options.columns_option
@_options.reading_options
@_options.seed_option
@engine_options
@_options.json_option
@_options.quiet_option
def command(what: str | None, **options: Any) -> None:
    """Explain a record, a measure or a method."""
    of_records = options["record"] is not None or options["riskiest"] is not None
    if not of_records and (what is None or (not options["measures"] and _is_name(what))):
        _explain_names([what] if what else options["measures"], as_json=options["as_json"])
        return
    if what is None:
        raise ParameterError("SOURCE is missing: name the file whose records are to be explained")
    _require_sense(options, of_records=of_records)
    with running(
        quiet=options["quiet"], seed=options["seed"], randomness=_randomness_of_trail(options)
    ) as run:
        case = _ExplainedCase.of(what, options, run)
        if options["record"] is not None:
            _explain_record(case, options)
        elif options["riskiest"] is not None:
            _explain_riskiest(case, options)
        else:
            _explain_scores(case, options)


def _require_sense(options: dict[str, Any], *, of_records: bool) -> None:
    if not of_records and not options["measures"]:
        raise ParameterError(
            "what to explain about the file is missing",
            hint="give --record POSITION, --riskiest COUNT or --measure NAME",
        )
    for first, second in (
        ("record", "riskiest"), ("released", "methods"), ("replay", "seed"), ("replay", "released"),
    ):  # fmt: skip
        if options[first] not in {None, ()} and options[second] not in {None, ()}:
            names = [{"methods": "method"}.get(name, name) for name in (first, second)]
            raise ParameterError(f"only one of --{names[0]} and --{names[1]} can be given")
    if options["scenario"] and options["plan_path"] is None:
        raise ParameterError("--scenario needs --plan")


def _randomness_of_trail(options: dict[str, Any]) -> ByPlace | None:
    """The chance of the release that is followed again, if one is."""
    if options["replay"] is None:
        return None
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.trail import randomness_of

    plan = options["plan_path"]
    return randomness_of(options["replay"], Plan.read(plan) if plan else None)


# A measure or a method ---------------------------------------------------------------------------------


def _component_by_name(name: str) -> type[Component]:
    """The measure or method of a name, a measure if both have it; or the one that a word means."""
    from sfumato.cli._describe import say_meant
    from sfumato.core import registry

    plain = name.partition("(")[0].strip()
    if _is_registered(plain, "measures"):
        return registry.measure(plain)
    if _is_registered(plain, "methods"):
        return registry.method(plain)
    if len(found := registry.search(plain)) == 1:
        say_meant(plain, found[0])
        return found[0].cls
    raise registry.unknown("measure, method or file", plain, [*registry.measures(), *registry.methods()])


def _is_registered(name: str, what: Literal["methods", "measures"]) -> bool:
    from sfumato.core import registry

    return any(name in {each.name, *each.aliases, *each.former} for each in registry.entries(what))


def _is_name(what: str) -> bool:
    """Whether it is not a source, and so must be a name: a file that is there needs a path to be one."""
    if "/" in what or ":" in what:
        return False
    plain = what.partition("(")[0].strip()
    return (
        _is_registered(plain, "measures")
        or _is_registered(plain, "methods")
        or not (Path(what).exists() or Path(what).suffix)
    )


def _explain_names(names: list[str], *, as_json: bool) -> None:
    from sfumato.cli._describe import show_meaning
    from sfumato.explain.words import meaning_of

    if not names:
        raise ParameterError(
            "what to explain is missing: name a measure, a method or a file",
            hint="`sfumato explain dbrl`, or `sfumato explain FILE --record 0`",
        )
    classes = [_component_by_name(name) for name in names]
    if as_json:
        explanations = [{**cls.describe(), **meaning_of(cls).to_dict()} for cls in classes]
        emit_json(explanations[0] if len(explanations) == 1 else explanations)
        return
    for number, cls in enumerate(classes):
        if number:
            click.echo("")
        show_meaning(cls)


# A file --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ExplainedCase:
    """What is looked at: a table, how it is protected or what was released of it, and the intruder."""

    table: Table
    run: Run
    scenario: Scenario | None
    recipe: Recipe | None
    release: Release | None
    postprocess: Callable[[Release], Release] | None
    k: int

    @classmethod
    def of(cls, source: str, options: dict[str, Any], run: Run) -> _ExplainedCase:
        from sfumato.recipes.plan import Plan
        from sfumato.releasing.prepare import prepare_question

        if options["plan_path"] is not None and Plan.read(options["plan_path"]).tables:
            raise PlanError("records can be explained for a plan of one table; this plan has several")
        asked = prepare_question(
            request_of(source, options), released=options["released"], aligned=options["aligned"]
        )
        scenario = _scenario(asked, options["scenario"])
        for note in filter(None, (*asked.notes, "" if options["scenario"] else asked.others)):
            say(f"note: {note}", quiet=options["quiet"])
        run = replace(run, resources=asked.resources)
        recipe, after = _recipe(asked, options, run)
        return cls(
            asked.table, run, scenario, recipe, asked.release, after, options["k"] or asked.plan.class_size
        )

    def make_release(self) -> Release | None:
        """The release: that which is there, or as the recipe makes it."""
        if self.recipe is None or self.release is not None:
            return self.release
        release = self.recipe.apply(self.table, self.run)
        return self.postprocess(release) if self.postprocess else release


def _scenario(asked: AssessmentRequest, name: str | None) -> Scenario:
    known = {each.name: each for each in asked.scenarios}
    if name is not None and name not in known:
        raise UnknownNameError.of("scenario", name, known)
    return asked.scenarios[0] if name is None else known[name]


def _recipe(
    asked: AssessmentRequest, options: dict[str, Any], run: Run
) -> tuple[Recipe | None, Callable[[Release], Release] | None]:
    """The steps named, or those of the plan with its postprocessing; none beside a release."""
    from sfumato.cli.compare import method_of
    from sfumato.recipes.recipe import Recipe
    from sfumato.recipes.step import Step
    from sfumato.releasing.postprocess import postprocess

    plan, table = asked.plan, asked.table
    if options["methods"]:
        known = table.schema.resolve(_options.split(options["columns"]))
        made = [method_of(text) for text in options["methods"]]
        # Of the columns the intruder knows, each method takes those it can; if it can none, it says so.
        able = [tuple(name for name in known if table.schema[name].kind in each.kinds) for each in made]
        return Recipe(tuple(Step(each, some or known) for each, some in zip(made, able, strict=True))), None
    if asked.release is not None or not plan.recipe.steps:
        return None, None
    output = plan.output
    return plan.recipe, lambda release: postprocess(release, table, output, run)[0]


def _measures(options: dict[str, Any]) -> list[Measure]:
    from sfumato.core import registry
    from sfumato.core.requirement import parse_measure

    if "all" in options["measures"]:
        return [cls() for cls in registry.measures().values() if cls.aspect == "risk"]
    return [parse_measure(text) for text in options["measures"]]


def _announce_cost(case: _ExplainedCase, measures: list[Measure], options: dict[str, Any]) -> None:
    from sfumato.recipes.recipe import Recipe
    from sfumato.study.cost import PlannedWork

    work = PlannedWork(
        case.recipe or Recipe(), tuple(measures), release=case.release, scenario=case.scenario,
        resources=case.run.resources,
    )  # fmt: skip
    announce(work, case.table, case.run, quiet=options["quiet"])


def _explain_record(case: _ExplainedCase, options: dict[str, Any]) -> None:
    from sfumato.cli._explain import show_record
    from sfumato.explain import explain_record
    from sfumato.explain.attacks import usual_attacks

    measures = _measures(options) or usual_attacks()
    _announce_cost(case, measures, options)
    explanation = explain_record(
        case.table, options["record"], case.release, recipe=case.recipe, run=case.run, measures=measures,
        scenario=case.scenario, resources=case.run.resources, k=case.k, postprocess=case.postprocess,
    )  # fmt: skip
    if options["as_json"]:
        emit_json(explanation.to_dict())
    else:
        show_record(explanation)


def _explain_riskiest(case: _ExplainedCase, options: dict[str, Any]) -> None:
    from sfumato.cli._explain import show_riskiest
    from sfumato.explain import PRIVATE, riskiest_records

    measures = _measures(options)
    if len(measures) > 1:
        raise ParameterError(f"the riskiest must be found by one measure, got: {len(measures)}")
    found = riskiest_records(
        case.table, options["riskiest"], case.make_release(), measure=measures[0] if measures else None,
        run=case.run, scenario=case.scenario, resources=case.run.resources,
    )  # fmt: skip
    if options["as_json"]:
        emit_json({"private": PRIVATE, **found.to_dict()})
    else:
        show_riskiest(found)


def _explain_scores(case: _ExplainedCase, options: dict[str, Any]) -> None:
    from sfumato.cli._explain import show_scores
    from sfumato.explain.words import explain_score
    from sfumato.front import assess

    measures = _measures(options)
    _announce_cost(case, measures, options)
    known = case.run.resources
    scores = assess(
        case.table, case.make_release(), measures, scenario=case.scenario, resources=known, run=case.run
    )
    explanations = [(measure, explain_score(measure, scores[str(measure)])) for measure in measures]
    if options["as_json"]:
        emit_json(
            {
                str(measure): {**scores[str(measure)].to_dict(), "in_words": list(sentences)}
                for measure, sentences in explanations
            }
        )
    else:
        show_scores(explanations)
