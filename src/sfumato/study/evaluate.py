"""One evaluation: follow a recipe (or take a release, or the raw table) and score what comes of it.

Everybody who applies a recipe and scores the release does it here, so that the same release, seed and measure
give the same number whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from sfumato.core.evidence import Evidence, PersonSampling
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.memory import free_memory
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.persons import sample_by_person
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.table import Table
from sfumato.errors import (
    Cancelled,
    DataError,
    MissingDependencyError,
    ParameterError,
    PlanError,
    RefusedError,
    UnjudgedError,
    UnknownNameError,
    UnreachableError,
)
from sfumato.kernels.arrays import Ints
from sfumato.recipes.demand import Demand, label_demands
from sfumato.recipes.recipe import Recipe
from sfumato.study.replicate_mean import ReplicateMean

#: What is raised by a method that cannot protect these data, or a measure that cannot score them: other
#: methods, or other settings of it, may.
EXPECTED_ERRORS = (
    RefusedError, DataError, ParameterError, PlanError, UnknownNameError, MissingDependencyError,
    UnreachableError,
)  # fmt: skip

#: What is said of a measure for which there was no time.
LATE: Final = "there was no time for it; more minutes, or `sfumato risk` and `sfumato utility`, give a number"

#: The statuses of a score that has a number.
NUMERIC_STATUSES = (Status.OK, Status.APPROXIMATE)

#: Records from which on measures take long enough to be told of, and workers share them: each finds for
#: itself what they have in common.
_WORTH_SHARING = 100_000

#: Makes a release of a table.
Make: TypeAlias = Callable[[Table, Run], Release]

#: Makes of a release of a table what would be written of it.
After: TypeAlias = Callable[[Release, Table, Run], Release]


@dataclass(frozen=True)
class EvaluationCase:
    """What is asked about: the original, the intruder, and other tables by the names measures call them.

    ``control`` is the share of the persons who sit out a rehearsal, for measures that attack people who were
    not protected; ``make`` is what the rehearsal follows where a release is asked about and no recipe.
    ``after`` is what is done to what a recipe makes before it is judged, as the way out does it: a search
    and a release are judged by the same case. ``sampling`` says whom measures look at.
    """

    table: Table
    scenario: Scenario = field(default_factory=Scenario)
    resources: Mapping[str, Any] = field(default_factory=dict, repr=False)
    control: float = 0.0
    make: Make | None = field(default=None, repr=False, compare=False)
    after: After | None = field(default=None, repr=False, compare=False)
    sampling: PersonSampling = field(default_factory=PersonSampling)

    def __post_init__(self) -> None:
        require_share(self.control)

    def maker(self, recipe: Recipe) -> Make:
        """What makes the release of a table by a recipe, as it would be written."""
        after = self.after
        if after is None:
            return recipe.apply
        return lambda table, run: after(recipe.apply(table, run), table, run)

    def with_some_persons(self, persons: int, part: int = 0, *, plain: bool = True) -> EvaluationCase:
        """The case in which so many persons are looked for; if ``plain``, by the records as they are."""
        return replace(self, sampling=PersonSampling(persons, part, ignore_person_links=plain))

    def may_draw_persons(self, measure: Measure) -> bool:
        """Whether a search may look for some of the persons only, where that takes less than half."""
        drawn = measure.scales.persons_drawn
        return 0 < 2 * drawn <= len(self.table) and self.sampling == PersonSampling()

    def evidence(self, release: Release | None, scenario: Scenario | None = None) -> Evidence:
        """Put a release (None: the raw table itself) beside the original, before this or another intruder."""
        return Evidence(self.table, release, scenario or self.scenario, self.resources, self.sampling)


@dataclass(frozen=True)
class Evaluation:
    """What came of it: the release (None: the raw table), and the scores by their labels.

    The label of a measure is ``str(measure)``; that of a demand is what ``label_demands`` says.
    """

    release: Release | None
    scores: Mapping[str, Score]

    @property
    def numbers(self) -> dict[str, Score]:
        """The scores without what is known by record: what a search keeps of releases it no longer needs."""
        return {label: replace(each, by_record=None, proof=None) for label, each in self.scores.items()}


def evaluate(
    what: Recipe | Release | None,
    case: EvaluationCase,
    asked: Sequence[Measure] | Sequence[Demand],
    run: Run,
    *,
    replicate: int | None = None,
    allow_sampling: bool = False,
) -> Evaluation:
    """Follow a recipe once, or take a release as it is, and score it by all that is asked.

    Parameters
    ----------
    what
        A recipe, followed with the chance of the ``replicate``; a release; or None for the raw table.
    asked
        Measures, which are asked in the scenario of the case, or demands, each in its own.
    allow_sampling
        Measures that nobody asked for by name may answer by samples of large tables
        (`Measure.score_sampled`), and have no number where the time of the run is up; demands never do.
    """
    make, here = case.make, run if replicate is None else run.at("replicate", replicate)
    if isinstance(what, Recipe):
        make = case.maker(what)
        what = make(case.table, here)
    allow_sampling = allow_sampling and not any(isinstance(each, Demand) for each in asked)
    demands = dict(label_demands([each for each in asked if isinstance(each, Demand)]))
    every = [_Question(label, each.measure, each.scenario) for label, each in demands.items()]
    every += [_Question(str(each), each, case.scenario) for each in asked if isinstance(each, Measure)]
    rehearsed = make is not None and bool(case.control) and CONTROL not in case.resources
    attacks = [each for each in every if rehearsed and each.measure.needs.control]
    whole = _Stage(case, what, allow_sampling=allow_sampling, may_be_late=allow_sampling)
    scores = whole.answer([each for each in every if each not in attacks], run)
    if attacks and make is not None:
        scores |= _rehearse_in_time(make, whole, here, run).answer(attacks, run)
    return Evaluation(what, {each.label: scores[each.label] for each in every})


class _Question(NamedTuple):
    """A measure that is asked about an intruder, and what its score is called."""

    label: str
    measure: Measure
    scenario: Scenario


@dataclass
class _Stage:
    """What measures are asked about: of one intruder they share what they find.

    Of a rehearsal ``rows`` are the records that took part; or ``failed`` says why there was none. Scores that
    ``may_be_late`` have no number when the time of the run is up.
    """

    case: EvaluationCase
    release: Release | None
    rows: Ints | None = None
    failed: str = ""
    allow_sampling: bool = False
    may_be_late: bool = False
    seen: dict[Scenario, Evidence] = field(default_factory=dict)

    def answer(self, questions: Sequence[_Question], run: Run) -> dict[str, Score]:
        """Score what is asked, on the workers where there are some and the table is large."""
        n = run.engine.n_workers if len(self.case.table) >= _WORTH_SHARING else 0
        if self.rows is not None or n < 2:  # noqa: PLR2004
            return self._score_all(questions, run)
        case = replace(self.case, make=None, after=None)  # which may be made by functions without a name
        there = replace(self, case=case, seen={})
        some = [questions[i::n] for i in range(min(n, len(questions)))]
        found = run.spread(there._score_all, some)  # noqa: SLF001
        return {label: score for scores in found for label, score in scores.items()}

    def _score_all(self, questions: Sequence[_Question], run: Run) -> dict[str, Score]:
        scores = {}
        is_long = len(self.case.table) >= _WORTH_SHARING
        for place, (label, measure, scenario) in enumerate(questions):
            try:
                if is_long:
                    run.tell("measures scored", place, len(questions))
                scores[label] = self._score(measure, scenario, run)
            except Cancelled:
                if not self.may_be_late or run.progress.stopped():
                    raise
                scores[label] = Score.not_estimable(LATE)
        return scores

    def _score(self, measure: Measure, scenario: Scenario, run: Run) -> Score:
        if self.failed:
            return Score.not_estimable(self.failed)
        if scenario not in self.seen:
            self.seen[scenario] = self.case.evidence(self.release, scenario)
        score = score_of(measure, self.seen[scenario], run, allow_sampling=self.allow_sampling)
        if self.rows is None or score.by_record is None:
            return score
        by_record = np.full(len(self.rows) + len(self.case.resources[CONTROL]), np.nan)
        by_record[self.rows] = score.by_record
        return replace(score, by_record=by_record)


def _rehearse_in_time(make: Make, whole: _Stage, here: Run, run: Run) -> _Stage:
    try:
        return replace(rehearse(make, whole.case, here), may_be_late=whole.may_be_late)
    except Cancelled:
        if not whole.may_be_late or run.progress.stopped():
            raise
        return replace(whole, failed=LATE, seen={})


def rehearse(make: Make, case: EvaluationCase, run: Run) -> _Stage:
    """Follow a recipe without a share of the persons, who are the control of those who attack what came.

    Who sits out is drawn from the seed and the table alone: it is the same for every method and replicate.
    """
    n = len(case.table)
    rng = run.randomness.at_root().key(case.table, CONTROL).rng()
    held = sample_by_person(case.table, min(max(round(case.control * n), 1), n), rng)
    rows = np.setdiff1d(np.arange(n), held)
    if not len(rows):
        return _Stage(case, None, failed="the control group leaves nobody to protect")
    rest, strangers = case.table.take(rows), case.table.take(held)
    try:
        release = make(rest, run.at("rehearsal"))
    except EXPECTED_ERRORS as error:
        why = f"the release without the control group could not be made: {error.message}"
        return _Stage(case, None, failed=why)
    shared = {**case.resources, CONTROL: strangers}
    return _Stage(replace(case, table=rest, resources=shared, control=0.0), release, rows)


def require_share(control: float) -> None:
    """Raise unless a share of the persons can sit out a rehearsal."""
    if not 0 <= control < 1:
        hint = "0.2 takes every fifth person as the control group"
        raise ParameterError(
            f"`control` must be a share of the persons, from 0 to less than 1, got: `{control}`", hint=hint
        )


def score_of(measure: Measure, evidence: Evidence, run: Run, *, allow_sampling: bool = False) -> Score:
    """Score evidence with the chance that this measure always has on this original."""
    score = measure.score_sampled if allow_sampling else measure.score
    found = score(evidence, chance_of(measure, evidence.original, run))
    free_memory(len(evidence.original))
    return found


def chance_of(measure: Measure, original: Table, run: Run) -> Run:
    """The chance of a measure: keyed by the original and the measure alone, from the root of the run.

    Neither the replicate nor the step, the trial or the caller changes it. So one seed gives one number
    whoever asks, and the same queries, samples and folds are put to every method and replicate: comparisons
    are paired, and differ by what the methods did. A release that is made without chance has one score.
    """
    return replace(run, randomness=run.randomness.at_root().at(original, "measure", str(measure)))


def evaluate_replicates(
    recipe: Recipe,
    case: EvaluationCase,
    asked: Sequence[Measure] | Sequence[Demand],
    run: Run,
    replicates: Iterable[int],
) -> Iterator[Evaluation]:
    """Evaluate a recipe once for each replicate, telling nobody; just once if it leaves nothing to chance."""
    for replicate in replicates:
        yield evaluate(recipe, case, asked, run.silent(), replicate=replicate)
        if not recipe.stochastic:
            return


def usable(measure: Measure, score: Score) -> float:
    """The value of a score that a comparison may use, or an error that says why there is none."""
    if score.status is Status.REFUSED:
        raise UnjudgedError(score.reason)
    if score.status is Status.NOT_ESTIMABLE:
        raise UnjudgedError(f"{measure.name} cannot be estimated: {score.reason}")
    return score.value


def spread_of(scores: Sequence[Score]) -> ReplicateMean | None:
    """Summarise the scores of one measure over repeated runs; None if one of them has no number."""
    if not scores or any(score.status not in NUMERIC_STATUSES for score in scores):
        return None
    estimated = any(score.status is Status.APPROXIMATE for score in scores)
    return ReplicateMean.of([score.value for score in scores], approximate=estimated)


def spreads_of(runs: Sequence[Mapping[str, Score]]) -> dict[str, ReplicateMean]:
    """Summarise the scores of repeated runs; a measure without a number in one of them is left out."""
    found = {label: spread_of([scores[label] for scores in runs]) for label in (runs[0] if runs else ())}
    return {label: spread for label, spread in found.items() if spread is not None}
