"""What is measured for the report of one release: asked once, by `evaluate`, and told in every form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.core import registry
from sfumato.core.group_measure import GroupMeasure
from sfumato.core.measure import Measure, Place, Score
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Schema
from sfumato.errors import MissingDependencyError
from sfumato.recipes.demand import Demand
from sfumato.recipes.profile import Profile
from sfumato.releasing.carry_out import maker
from sfumato.releasing.copies import score_copies, worst_of
from sfumato.releasing.load import load_resources
from sfumato.releasing.outcome import TableOutcome
from sfumato.study.evaluate import NUMERIC_STATUSES, EvaluationCase, evaluate
from sfumato.study.growth import Growth
from sfumato.study.sample_equivalent import QUICK_SECONDS, SampleEquivalents

#: Which of the profiles that come with sfumato stands for what a recipient may be given.
RECIPIENTS: Mapping[str, str] = {"processor": "industry", "researcher": "scientific", "public": "public"}

#: What is measured for the report: what is shown in it, or in one of its sections.
_PLACES: tuple[Place, ...] = (
    "report", "default", "gauges", "records", "combinations", "uniques", "sensitive", "models",
)  # fmt: skip

Scores = Mapping[str, tuple[Measure, Score]]


@dataclass(frozen=True)
class IntruderScores:
    """One intruder: the risks of the release by the names of measures, and those of the original.

    ``names`` are those of the plan's scenarios in which no more and no less is known; none of a recipient's.
    """

    scenario: Scenario
    names: tuple[str, ...]
    known: frozenset[str]
    risks: Scores
    before: Mapping[str, Score]

    @property
    def name(self) -> str:
        """What the intruder is called."""
        return ", ".join(self.names) or f"{self.scenario.name} (of a recipient)"


@dataclass(frozen=True)
class ReleaseScores:
    """All that was measured of one table of a release.

    ``intruders`` are those of the plan, and those that the profiles of recipients think of; the ``main`` one
    knows most. ``listed`` are the names of what the profile asks to be reported. ``by_group`` are a risk and
    a loss of every group, where something else is required in every group.
    """

    part: TableOutcome
    intruders: tuple[IntruderScores, ...]
    utilities: Scores
    listed: tuple[str, ...]
    by_group: Scores = field(default_factory=dict)

    @property
    def main(self) -> IntruderScores:
        """The intruder who knows most; of equals the first."""
        return max(self.intruders, key=lambda each: len(each.known))

    def score_of(self, measure: Measure) -> Score | None:
        """The score of a measure against the intruder who knows most, if it was asked for."""
        found = self.main.risks.get(str(measure))
        return found[1] if found else None

    def shown_in(self, place: Place) -> list[tuple[Measure, Score]]:
        """The measures of a section of the report, with their scores against the intruder who knows most."""
        scores = ((each, self.score_of(each)) for each in registry.measures_for(place))
        return [(each, score) for each, score in scores if score is not None]

    def verdicts(self, demands: Iterable[Demand]) -> Iterator[tuple[Requirement, Score]]:
        """What is known of demands, each by the score against an intruder who knows the same columns."""
        schema = self.part.original.schema
        for demand in demands:
            known = _columns_known_to(demand.scenario, schema)
            for each in self.intruders:
                if each.known == known and str(demand.measure) in each.risks:
                    yield demand.requirement, each.risks[str(demand.measure)][1]
                    break


def is_number(score: Score | None) -> bool:
    """Whether there is a number to show."""
    return score is not None and score.status in NUMERIC_STATUSES


def measure_release(part: TableOutcome, run: Run, profile: Profile | None = None) -> ReleaseScores:
    """Measure what the report of a release shows; what was judged already is not measured again."""
    shown = [each for each in registry.measures_for(*_PLACES) if each.concerns(part.original)]
    run = _with_resources(part, run)
    listed = (*profile.report, *filter(None, [profile.rank_by])) if profile else ()
    plan = part.plan
    case = EvaluationCase(part.original, resources=run.resources, control=plan.control, make=maker(plan))
    intruders = [
        _against(part, replace(case, scenario=scenario), names, _risks(shown, more, listed), run)
        for scenario, names, more in _intruder_questions(part)
    ]
    most = max(range(len(intruders)), key=lambda place: len(intruders[place].known))
    attacks = [each for each in shown if each.needs.control and str(each) not in intruders[most].risks]
    utilities = _distinct_measures(each for each in (*shown, *listed) if each.aspect == "utility")
    judged = _judged_scores(part, "utility")
    attacked = replace(case, scenario=intruders[most].scenario)
    scores = _score_rest(part, attacked, [*attacks, *utilities], run, judged)
    risks = {**intruders[most].risks, **{str(each): (each, scores[str(each)]) for each in attacks}}
    intruders[most] = replace(intruders[most], risks=risks)
    likes = SampleEquivalents(attacked, run, QUICK_SECONDS)
    scores = likes.add_to(scores, utilities, part.release)
    useful = {str(each): (each, scores[str(each)]) for each in utilities}
    beside = _beside_in_groups(part)
    grouped = _score_rest(part, attacked, beside, run, {})
    by_group = {str(each): (each, grouped[str(each)]) for each in beside}
    return ReleaseScores(part, tuple(intruders), useful, tuple(dict.fromkeys(map(str, listed))), by_group)


def _beside_in_groups(part: TableOutcome) -> list[Measure]:
    """A risk or a loss to show of every group, where only the other is required of it."""
    asked = [each.requirement.measure for each in part.judgements]
    shown = [*registry.measures_for("comparison"), *registry.measures_for("report")]
    found = {each.groups: set[str]() for each in asked if isinstance(each, GroupMeasure)}
    for each in asked:
        if isinstance(each, GroupMeasure):
            found[each.groups].add(each.aspect)
    return [
        GroupMeasure(inner=next(each for each in shown if each.aspect == aspect), groups=groups)
        for groups, aspects in found.items()
        for aspect in ("risk", "utility")
        if aspect not in aspects
    ]


def _with_resources(part: TableOutcome, run: Run) -> Run:
    """The run with the other tables that the plan names, read again unless they are at hand."""
    if set(part.plan.resources) <= set(run.resources):
        return run
    return replace(run, resources={**load_resources(part.plan), **run.resources})


def _intruder_questions(part: TableOutcome) -> list[tuple[Scenario, tuple[str, ...], list[Measure]]]:
    """The intruders, each once by what they know, under which names, and what else is asked about them."""
    schema = part.original.schema
    found: dict[tuple[frozenset[str], float, bool, str], tuple[Scenario, list[str], list[Measure]]] = {}
    others = [demand for name in RECIPIENTS.values() for demand in Profile.load(name).requirements(schema)]
    own = [(each, None) for each in part.plan.scenarios]
    for scenario, measure in (*own, *((demand.scenario, demand.measure) for demand in others)):
        key = (_columns_known_to(scenario, schema), scenario.records, scenario.membership, scenario.external)
        _, names, more = found.setdefault(key, (scenario, [], []))
        if measure is None:
            names.append(scenario.name)
        else:
            more.append(measure)
    return [(scenario, tuple(names), more) for scenario, names, more in found.values()]


def _columns_known_to(scenario: Scenario, schema: Schema) -> frozenset[str]:
    return frozenset(schema.resolve(scenario.columns) or schema.known_columns())


def _risks(*asked: Iterable[Measure]) -> list[Measure]:
    """The risks that are looked at before every intruder; attacks are, before who knows most."""
    risks = (each for measures in asked for each in measures if each.aspect == "risk")
    return _distinct_measures(each for each in risks if not each.needs.control)


def _against(
    part: TableOutcome, case: EvaluationCase, names: tuple[str, ...], asked: Sequence[Measure], run: Run
) -> IntruderScores:
    """Score the release, and by what needs no release the original, before one intruder."""
    judged = _judged_scores(part, "risk", names)
    named = [each.requirement.measure for each in part.judgements if str(each.requirement.measure) in judged]
    scores = _score_rest(part, case, asked, run, judged)
    found = {str(each): (each, scores[str(each)]) for each in _distinct_measures([*named, *asked])}
    seen = [each for each, score in found.values() if not each.needs.release and is_number(score)]
    before = evaluate(None, case, seen, run.silent(), allow_sampling=True).scores
    known = _columns_known_to(case.scenario, part.original.schema)
    return IntruderScores(case.scenario, names, known, found, before)


def _judged_scores(part: TableOutcome, aspect: str, names: Sequence[str] | None = None) -> dict[str, Score]:
    """What was judged already, by the names of measures: the worst where copies or joins were looked at."""
    found: dict[str, tuple[Measure, list[Score]]] = {}
    for each in part.judgements:
        measure = each.requirement.measure
        there = names is None or any(
            each.scenario == name or each.scenario.startswith(f"{name}, ") for name in names
        )
        if measure.aspect == aspect and there:
            found.setdefault(str(measure), (measure, []))[1].append(each.score)
    return {name: worst_of(measure, scores) for name, (measure, scores) in found.items()}


def _score_rest(
    part: TableOutcome, case: EvaluationCase, asked: Sequence[Measure], run: Run, judged: Mapping[str, Score]
) -> dict[str, Score]:
    """What was judged as it was, and the rest of all copies; what needs a missing package says so."""
    # What costs least first: there may not be time for all.
    rest = sorted((each for each in asked if str(each) not in judged), key=_growth)
    try:
        return {**judged, **score_copies(part.copies, case, rest, run, allow_sampling=True)}
    except MissingDependencyError as error:
        if len(rest) == 1:
            return {**judged, str(rest[0]): Score.not_estimable(f"{error.message} ({error.hint})")}
    alone = [_score_rest(part, case, [each], run, {}) for each in rest]
    return {**judged, **{name: score for found in alone for name, score in found.items()}}


def _growth(measure: Measure) -> tuple[int, int]:
    """How steeply the cost of a measure grows with the records."""
    declared = Growth.declared_as(measure.cost)
    return declared.power, declared.logs


def _distinct_measures(measures: Iterable[Measure]) -> list[Measure]:
    return list({str(each): each for each in measures}.values())
