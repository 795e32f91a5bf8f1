"""Compare methods at the same risk, or at the same utility."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sfumato.cli import _options
from sfumato.cli._resources import (
    control_option,
    files_of_request,
    hierarchy_option,
    request_of,
    resource_option,
)
from sfumato.cli._screen import announce, emit_json, emit_table, running, say
from sfumato.core.measure import Score, Status
from sfumato.errors import ParameterError
from sfumato.recipes.demand import Demand, label_demands
from sfumato.study.compare import MethodAtLevel, Study, fold
from sfumato.study.level import LevelStatus
from sfumato.study.replicate_mean import ReplicateMean

if TYPE_CHECKING:
    from sfumato.recipes.plan import Plan
    from sfumato.releasing.prepare import AssessmentRequest
    from sfumato.releasing.request import Request

#: Options that are what the front door calls them.
_GIVEN = ("hold", "require", "rank_by", "tolerance", "repeats", "points", "sample_equivalent")

#: Options that say what is compared and how it is read: the next command has them too.
_KEPT = (
    "rank_by", "tolerance", "repeats", "only", "columns", "hierarchy_files", "resource_files", "control",
    "plan_path", "delimiter", "decimal", "encoding", "sheet", "header",
)  # fmt: skip

#: What may be held next, and of how many methods.
_OTHERS, _MOST_METHODS = ("dbrl", "gdbrl"), 5


@click.command("compare", help=__doc__, epilog=f"SOURCE is {_options.SOURCE}.")
@click.argument("source")
@click.option(
    "-m", "--method", "methods", multiple=True, help="A method, such as 'mdav' or 'mdav(k=5)' (default: all)."
)
@click.option(
    "--hold",
    help="Bring all methods to one value of this measure.  [default: rank-linkage; dbrl if keys are mixed]",
)
@click.option(
    "--level",
    type=float,
    help="The value of the measure --hold (default: what the first method reaches with its settings).",
)
@click.option(
    "--require",
    multiple=True,
    help="A requirement, such as 'dbrl <= 0.05'; each method gets its weakest setting that meets all.",
)
@_options.for_option
@click.option(
    "--like",
    help="A protected file: its value is the level, also of a --require without a number.",
)
@click.option("--aligned", is_flag=True, help="The records of --like are in the order of SOURCE.")
@click.option(
    "--rank-by",
    help="The measure by which methods are ranked.  [default: the profile's, or earth-movers-distance]",
)
@click.option(
    "--tolerance", default=0.01, show_default=True, help="Accepted distance from the level, as a share of it."
)
@click.option(
    "--repeats", type=click.IntRange(1), help="Independent runs per method.  [default: the profile's, or 5]"
)
@click.option(
    "--points", default=0, show_default=True, type=click.IntRange(0), help="Points per method on the R-U map."
)
@_options.sample_option
@click.option("--report", type=click.Path(path_type=Path), help="Write a report here, as HTML and JSON.")
@click.option("--public", is_flag=True, help="Leave out of the report what helps an intruder, to publish it.")
@click.option("--write-plan", type=click.Path(path_type=Path), help="Write the plan of the best method here.")
@_options.only_option
@click.option("--why", is_flag=True, help="Give the reason for each method that is not ranked.")
@_options.columns_option
@hierarchy_option
@resource_option
@control_option
@_options.plan_option
@_options.reading_options
@_options.work_options
def command(source: str, **options: Any) -> None:
    """Compare methods at equal risk or equal utility."""
    from sfumato import front
    from sfumato.cli.tune import write_plan
    from sfumato.io import check_writable
    from sfumato.releasing.prepare import prepare_question
    from sfumato.releasing.request import require_columns
    from sfumato.report import check_report, write_report
    from sfumato.study.compare import require_reachable

    report: Path | None = options["report"]
    place: Path | None = options["write_plan"]
    asked = request_of(source, options, columns=(), profile=None)
    named = [*files_of_request(asked), *([options["like"]] if options["like"] else [])]
    how: dict[str, Any] = {"originals": named, "overwrite": options["overwrite"]}
    if report is not None:
        check_report(report, **how)
    if place is not None:
        check_writable(place, **how)
    if options["like"] and options["level"] is not None:
        raise ParameterError("only one of --level and --like can be given")
    question = prepare_question(asked, released=options["like"], aligned=options["aligned"])
    for note in filter(None, (*question.notes, "" if options["require"] else question.others)):
        say(f"note: {note}", quiet=options["quiet"])
    columns = _options.split(options["columns"])
    require_columns(question.table.schema, columns)
    methods = [method_of(text) for text in options["methods"]]
    with running(quiet=options["quiet"], seed=options["seed"]) as run:
        study = front.compare(
            question.table,
            methods,
            level=question.release or options["level"],
            profile=options["profile"] or None,
            columns=columns,
            scenario=question.scenarios if question.scenario else None,
            resources=question.resources,
            control=question.plan.control,
            run=run,
            only=options["only"] or question.plan.only,
            before=partial(announce, quiet=options["quiet"]),
            **{name: options[name] for name in _GIVEN},
        )
    if options["as_json"]:
        emit_json(study.to_dict())
    else:
        _show(study, quiet=options["quiet"], why=options["why"])
    if report is not None:
        paths = write_report(study, report, public=options["public"], **how)
        say("report: " + ", ".join(str(path) for path in paths), quiet=options["quiet"])
    if place is not None and study.winner is not None:
        write_plan(_plan(study, question, asked, options), place, named, options)
    require_reachable(study)
    if not options["as_json"]:
        for line in _next(study, click.get_current_context()):
            say(line, quiet=options["quiet"])


def method_of(text: str) -> Any:
    """Read a method with its settings: ``mdav`` or ``mdav(k=5)``."""
    from sfumato.core.requirement import parse_method

    return parse_method(text)


def _plan(study: Study, question: AssessmentRequest, asked: Request, options: Mapping[str, Any]) -> Plan:
    """The plan of the winner: it requires what all were brought to, a level less the tolerance."""
    from sfumato.cli.tune import base_plan
    from sfumato.recipes.recipe import Recipe
    from sfumato.tuning import planned

    assert study.winner is not None
    demands = study.demands or (Demand(study.target.requirement, study.scenario),)
    return planned(base_plan(question, asked, options), Recipe((study.winner.step,)), demands, question.table)


def _next(study: Study, context: click.Context) -> list[str]:
    """What to do next, as commands: the same by another measure, and the plan of the winner."""
    winner, options = study.winner, context.params
    if winner is None:
        return []
    first, asked = ["--method", str(winner.step.method)], {study.target.measure.name}
    asked |= {demand.measure.name for demand in study.demands}
    others = [o.step.method.name for o in study.outcomes if o.rank is not None and o is not winner]
    named = [word for name in others[: _MOST_METHODS - 1] for word in ("--method", name)]
    kept = ["sfumato", "compare", options["source"], *_repeat_options(context, _KEPT)]
    other = next((name for name in _OTHERS if name not in asked and name in winner.other_risks), "")
    held = _repeat_options(context, ("require", "profile", "like", "aligned"))
    held = held if study.demands else ["--hold", str(study.target.measure)]
    lines = []
    if other and named and study.target.measure.aspect == "risk":
        line = shlex.join([*kept, *first, *named, "--hold", other])
        lines.append(f"  {line}  # at the risk of the best method, by another measure")
    if options["write_plan"] is None:
        line = shlex.join([*kept, *first, *held, "--write-plan", "plan.toml"])
        lines.append(f"  {line}  # write the plan of the best method")
    return ["\nNext:", *lines] if lines else []


def _repeat_options(context: click.Context, names: Sequence[str]) -> list[str]:
    """The options of these names that were given, as they are written."""
    words = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if option.name not in names or not given:
            continue
        if isinstance(value, bool):
            words.append(option.opts[-1] if value else option.secondary_opts[-1])
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words += [option.opts[-1], str(each)]
    return words


def _show(study: Study, *, quiet: bool, why: bool) -> None:
    held, ranked = study.target.measure, study.ranked_by
    what = (
        f"required: {study.aim}"
        if study.demands
        else f"{held.title} held at {study.target.value:.4g} (± {study.target.share})"
    )
    say(
        f"{len(study.original)} records; {what}; ranked by {ranked.title}, {ranked.better} is better; "
        f"{study.headline}",
        quiet=quiet,
    )
    for note in study.notes:
        say(f"note: {note}", quiet=quiet)
    shown = list(dict.fromkeys(label for label, _ in label_demands(study.demands))) or [held.name]
    folded = [outcome for each in study.inapplicable.values() for outcome in each]
    listed = [outcome for outcome in study.outcomes if outcome not in folded]
    rows = [_row(outcome, shown, study) for outcome in listed]
    headers = ["rank", "method", "parameter", *shown, ranked.name, f"at ± {study.target.share}", "remark"]
    emit_table(headers, rows, right=[0], about=1)
    _show_samples(study, listed, quiet=quiet)
    _show_other_risks(listed, quiet=quiet)
    spreads = [spread for o in study.outcomes for spread in (o.held, o.ranked, *o.scores.values())]
    if any(spread and spread.approximate for spread in spreads):
        say("≈ estimated from samples, so not exact", quiet=quiet)
    if study.caution:
        say(f"{study.winner.step.method.name}: {study.caution}" if study.winner else "", quiet=quiet)
    for outcome in study.unranked_methods:
        if why or (outcome.ranked is None and outcome not in folded):
            say(f"{outcome.step.method.name}: {outcome.level.sentence(study.target)}", quiet=quiet)
    for reached, outcomes in study.inapplicable.items():
        if outcomes and not why:
            say(
                f"{fold(reached, [o.step.method.name for o in outcomes])}; --why gives the reasons",
                quiet=quiet,
            )


def _show_samples(study: Study, outcomes: Sequence[MethodAtLevel], *, quiet: bool) -> None:
    """The random sample of the original that each method is as good as; or once why none is told."""
    likes = [(o.step.method.name, o.like_sample) for o in outcomes if o.like_sample]
    samples = [[name, like.words.removeprefix("like ")] for name, like in likes if like.words]
    title = study.axes[1].title
    if samples:
        say(f"\nAs good as a random sample of the original, by {title}:", quiet=quiet)
        emit_table(["method", "sample"], samples)
    elif likes:
        say(f"\nThe random sample that is as good by {title} is not known: {likes[0][1].reason}", quiet=quiet)


def _show_other_risks(outcomes: Sequence[MethodAtLevel], *, quiet: bool) -> None:
    """The risks that were not held equal, of each method that was measured."""
    measured = [outcome for outcome in outcomes if outcome.other_risks]
    if not measured:
        return
    say("\nOther risks, measured once per method (not equalised):", quiet=quiet)
    rows = [[o.step.method.name, *(_score_text(score) for score in o.other_risks.values())] for o in measured]
    emit_table(["method", *measured[0].other_risks], rows, right=range(1, len(rows[0])))
    sampled = {s.reason for o in measured for s in o.other_risks.values() if s.status is Status.APPROXIMATE}
    for reason in sorted(sampled):
        say(f"≈ {reason}", quiet=quiet)


def _score_text(score: Score) -> str:
    about = "≈ " if score.status is Status.APPROXIMATE else ""
    return f"{about}{score.value:.4g}" if math.isfinite(score.value) else "—"


def _row(outcome: MethodAtLevel, shown: Sequence[str], study: Study) -> list[str]:
    reached, remarks = outcome.level.reached, list(outcome.remarks)
    if outcome.ranked is None:
        remarks.append("requirements not met" if outcome.level.reason else "level unreachable")
    elif reached is LevelStatus.NEAREST and not outcome.why_not_ranked:
        remarks.append(str(reached))
    if outcome.tied_with:
        remarks.append(
            f"tied with {', '.join(study.outcomes[place].step.method.name for place in outcome.tied_with)}"
        )
    scores = [outcome.scores.get(label, outcome.held) for label in shown]
    return [
        "—" if outcome.rank is None else str(outcome.rank),
        outcome.step.method.name,
        outcome.level.setting,
        *map(_mean_text, scores),
        _mean_text(outcome.ranked),
        _range(outcome.ranked_range),
        "; ".join(filter(None, remarks)),
    ]


def _range(ends: tuple[float, float] | None) -> str:
    return "" if ends is None or ends[0] == ends[1] else f"{min(ends):.4f}–{max(ends):.4f}"


def _mean_text(spread: ReplicateMean | None) -> str:
    if spread is None:
        return "—"
    low, high = spread.interval
    about = "≈ " if spread.approximate else ""
    return f"{about}{spread.mean:.4f}" + (f" ± {(high - low) / 2:.4f}" if high > low else "")
