"""What may be done with a table in one call: protect, assess, compare, tune."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from sfumato.core import registry
from sfumato.core.measure import Measure, Score, Status
from sfumato.core.method import Method
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure, parse_method
from sfumato.core.run import Run
from sfumato.core.vetting import Only
from sfumato.data.notebook import Tabular, as_html
from sfumato.data.scenario import Scenario, by_knowledge
from sfumato.data.schema import Schema
from sfumato.errors import NoteWarning, ParameterError, PlanError, SfumatoError
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step, below_k_note
from sfumato.releasing.copies import worst_of
from sfumato.releasing.load import as_table, is_foreign_query, read_counts
from sfumato.study.evaluate import EvaluationCase, Make, evaluate

if TYPE_CHECKING:
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.profile import Profile
    from sfumato.study.compare import Study
    from sfumato.study.cost import Before
    from sfumato.tuning.feasibility import Obstacle
    from sfumato.tuning.tuning_result import TuningResult
from sfumato.front.inputs import (
    conform_resources,
    in_native,
    make_case,
    make_run,
    make_steps,
    require_vetted_measures,
    several,
)


def protect(
    data: Any,
    what: Method | Step | Recipe | str,
    *,
    columns: str | Sequence[str] = (),
    within: str | Sequence[str] = (),
    schema: Schema | None = None,
    resources: Mapping[str, Any] | None = None,
    seed: int | None = None,
    run: Run | None = None,
) -> Release:
    """Protect a table by a method, a step or a whole recipe.

    ``what`` may be text, as in ``"mdav(k=3)"``. ``release.data`` is the protected table in the type that came
    in, without direct identifiers. ``resources`` are the hierarchies and tables that columns and parameters
    refer to by name. ``seed`` is for experiments only: whoever knows it can undo the noise. A warning says
    how many records differ from the k of their group by their missing values.

    Examples
    --------
    >>> from sfumato.methods.microaggregation import Mdav
    >>> incomes = pl.DataFrame({"income": [10.0, 60.0, 20.0, 50.0, 30.0, 40.0]})
    >>> protect(incomes, Mdav(k=3), columns=["income"]).data["income"].to_list()
    [20.0, 50.0, 20.0, 50.0, 20.0, 50.0]
    """
    table, native = as_table(data, schema=schema)
    if isinstance(what, str):
        what = parse_method(what)
    if isinstance(what, Method):
        what = Step(what, several(columns), several(within))
    elif columns or within:
        raise ParameterError("`columns` and `within` must be given with a method, got: a step or recipe")
    recipe = Recipe((what,)) if isinstance(what, Step) else what
    release = recipe.apply(table, make_run(seed, run, resources))
    for note in filter(None, (below_k_note(step.byproducts.figures) for step in release.steps)):
        warnings.warn(NoteWarning(note), stacklevel=2)
    return in_native(release, native)


def assess(
    original: Any,
    release: Any = None,
    measures: Sequence[Measure | str] | Literal["all"] = (),
    *,
    schema: Schema | None = None,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
    aligned: bool = False,
    control: float = 0.0,
    made_by: Recipe | Make | None = None,
    exact: bool | None = None,
    in_database: bool = False,
    sample_equivalent: bool | None = False,
    seed: int | None = None,
    run: Run | None = None,
    **reading: Any,
) -> Scores:
    """Score a release by several measures: those named, the standard ones, or ``"all"``.

    ``release`` is the result of ``protect``, or a protected table from elsewhere; then ``aligned=True`` says
    that its records are in the order of the original. A score is found by any spelling of its measure:
    ``scores["k"]`` is ``scores["k-anonymity"]``. Measures that are named are ``exact``. For large tables some
    standard ones are estimated from a sample of the persons, and their scores say so; ``exact=True`` avoids
    that. The roles, and without a ``scenario`` the intruders, of a released file are those of its plan.
    ``reading`` says how the file of the original is read, if that is not detected (``delimiter``,
    ``decimal``, ``encoding``, ``header``, ``sheet``).

    Attacks such as ``"inference"`` need a control group of people who are not in the release: a table as the
    resource ``control``, or a share of the persons (``control=0.2``), who are held out while the others are
    protected by the recipe ``made_by``.

    A table that stays ``in_database`` is counted there: equal records of the columns in question, each
    combination with its number, are all that is read of it, and measures of classes of records (k-anonymity,
    uniqueness, l-diversity …) score it as if it had been read. So is a lazy frame of duckdb, ibis or pyspark.

    With ``sample_equivalent`` scores of utility have ``like_sample``, the random sample of the original that
    is as good; None looks for it where that takes seconds.
    """
    from sfumato.releasing.read_release import read_release, require_written_alike
    from sfumato.releasing.request import Request, resolve

    scenarios: tuple[Scenario, ...] = (scenario or Scenario(),)
    if measures == "all":
        chosen = [cls() for cls in registry.measures().values()]
    else:
        chosen = [parse_measure(m) if isinstance(m, str) else m for m in measures]
    allow_sampling = not (chosen if exact is None else exact)
    if in_database or is_foreign_query(original):
        if release is not None:
            raise ParameterError(
                "only a table that is judged by itself stays in its database, got: a release"
            )
        chosen = chosen or [each for each in registry.measures_for("default") if each.counts.classes_only]
        table = read_counts(original, chosen, scenarios, schema=schema)
    elif schema is None and isinstance(release, str | Path) and isinstance(original, str | Path):
        request = Request(source=original, reading=reading)
        source = resolve(request, released=release)
        table, reading = source.read(request), source.reading(request)
        scenarios = scenarios if scenario else source.plan.scenarios
    else:
        table, _ = as_table(original, schema=schema, **reading)
    chosen = chosen or [each for each in registry.measures_for("default") if each.concerns(table)]
    if release is not None and not isinstance(release, Release):
        path = Path(release) if isinstance(release, str | Path) else None
        release = read_release(table, release, aligned=aligned, resources=resources, reading=reading)
        if path is not None and any(each.aspect == "risk" for each in chosen):
            require_written_alike(release.reading(), path, reading, scenarios)
    make = made_by.apply if isinstance(made_by, Recipe) else made_by
    case = EvaluationCase(table, scenarios[0], conform_resources(table, resources), control, make)
    asking = make_run(seed, run, case.resources)
    return _scores_of_all(
        release, case, scenarios, chosen, asking, allow_sampling=allow_sampling, samples=sample_equivalent
    )


def _scores_of_all(
    release: Release | None,
    case: EvaluationCase,
    scenarios: Sequence[Scenario],
    chosen: Sequence[Measure],
    asking: Run,
    *,
    allow_sampling: bool,
    samples: bool | None,
) -> Scores:
    """The scores against every intruder who knows something else, by name if there are several."""
    likes = None
    if samples is not False:
        from sfumato.study.sample_equivalent import QUICK_SECONDS, SampleEquivalents

        likes = SampleEquivalents(case, asking, math.inf if samples else QUICK_SECONDS)
    scores = {}
    intruders = by_knowledge(scenarios)
    for intruder, knowing in intruders.items():
        there = replace(case, scenario=knowing)
        own = evaluate(release, there, chosen, asking, allow_sampling=allow_sampling).scores
        own = likes.add_to(own, chosen, release) if likes else own
        before = f"{intruder}: " if len(intruders) > 1 else ""
        scores.update({f"{before}{name}": score for name, score in own.items()})
    return Scores(scores)


class Scores(dict[str, Score], Tabular):
    """The scores of measures by their full names; other spellings (``k``) find them as well.

    With several intruders, the name of each comes before the measure; the measure alone gives the worst of
    its scores.
    """

    def __missing__(self, word: str) -> Score:
        measure = parse_measure(word)
        name = str(measure)
        if name in self.keys():  # `in self` would ask for other spellings again
            return self[name]
        several = [score for label, score in self.items() if label.endswith(f": {name}")]
        if not several:
            raise KeyError(word)
        return worst_of(measure, several)

    def __repr__(self) -> str:
        """A line for each measure: its value, its status where it is not exact, and why."""
        room = max(map(len, self.keys()), default=0)
        return "\n".join(
            f"{name:{room}}  {'–' if math.isnan(each.value) else f'{each.value:.4g}'}"
            + (f"  {each.status.value}: {each.reason}" if each.status is not Status.OK else "")
            for name, each in self.items()
        )

    def to_frame(self) -> pl.DataFrame:
        """A row for each measure."""
        rows = [each.to_frame().with_columns(pl.lit(name).alias("measure")) for name, each in self.items()]
        return pl.concat(rows, how="vertical_relaxed").select("measure", pl.exclude("measure"))

    def _repr_html_(self) -> str:
        return as_html((), self.to_frame())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """The score of a measure, or the default if it was not measured."""
        try:
            return self[name]
        except (KeyError, SfumatoError):
            return default


def compare(
    data: Any,
    methods: Sequence[Method | Step | str] = (),
    *,
    hold: Measure | str | None = None,
    level: float | Release | None = None,
    require: Sequence[Requirement | Demand | Measure | str] | Requirement | Measure | str = (),
    profile: Profile | str | Path | None = None,
    rank_by: Measure | str | None = None,
    columns: str | Sequence[str] = (),
    tolerance: float = 0.01,
    repeats: int | None = None,
    points: int = 0,
    sample_equivalent: bool | None = None,
    only: Only = "",
    schema: Schema | None = None,
    scenario: Scenario | Sequence[Scenario] | None = None,
    resources: Mapping[str, Any] | None = None,
    control: float = 0.0,
    seed: int | None = None,
    run: Run | None = None,
    before: Before | None = None,
) -> Study:
    """Bring methods to the same level of one measure, or to the same requirements, and rank them by another.

    Without ``level`` the first method sets it with its parameters as they are; a release as the ``level``
    means "as safe as this". With ``require`` (``["dbrl <= 0.05", "k >= 5"]``) or a ``profile`` (``"public"``)
    each method is taken at its weakest setting that meets all requirements; one without a number
    (``["dbrl"]``) takes it from the release given as ``level``. Without ``methods`` all that can take the
    columns are compared, except those with a differential-privacy guarantee, which must be named. Of several
    intruders as ``scenario`` a level is held against the first; requirements must be met against each.
    ``control`` is the share of the persons held out as the control group for attacks. The random sample that
    is as good as a method is looked for where that takes no longer than comparing, with
    ``sample_equivalent`` in any case. ``only="vetted"`` leaves out methods that were checked by experiments
    alone, and refuses such methods and measures if they are named or required. ``before`` is called with the
    work that is planned.
    """
    from sfumato.recipes.profile import Profile
    from sfumato.study import compare as studies
    from sfumato.study.cost import SETTINGS, works_of
    from sfumato.study.target import RANKED_BY, as_measure, demands_of, held_by_default, target_of

    case, names = make_case(data, columns, schema, scenario, resources, control=control)
    intruders = (scenario,) if isinstance(scenario, Scenario) else tuple(scenario or ())
    run, used = make_run(seed, run, resources), None if profile is None else Profile.of(profile)
    wanted, like = several(require), level if isinstance(level, Release) else None
    for name, given in (("hold", hold), ("level", None if like else level)):
        if (wanted or used) and given is not None:
            raise ParameterError(f"`{name}` cannot be given together with requirements")
    demands = demands_of(wanted, case, run, profile=used, columns=names, like=like, intruders=intruders)
    steps = make_steps(methods, names, case.table.schema, driven=not demands, only=only)
    ranked_by = as_measure(rank_by or (used and used.rank_by) or RANKED_BY)
    held = as_measure(hold) if hold else held_by_default(case)
    require_vetted_measures(only, demands or [held], [ranked_by] if rank_by else [])
    turns = repeats if repeats is not None else used.repeats if used else 5
    if before is not None:
        measures, ends = [demand.measure for demand in demands] or [held], turns + points + 2 * (not demands)
        tries = 1 if not demands and case.may_draw_persons(held) else min(turns, 3)
        works = works_of(
            steps, measures, SETTINGS * tries + ends, at_end=(ranked_by,), ends=ends,
            scenario=case.scenario, resources=case.resources,
        )  # fmt: skip
        before(works, case.table, run)
    target = None
    if not demands:
        target = target_of(held, level, steps, case, run, tolerance=tolerance, named=bool(methods))
    return studies.compare(
        case, steps, run, ranked_by=ranked_by, target=target, demands=demands, repeats=turns, points=points,
        sample_equivalent=sample_equivalent,
        notes=used.notes(case.table.schema, names) if used else (),
    )  # fmt: skip


def tune(
    data: Any,
    require: Sequence[Requirement | Demand | str] | Requirement | str = (),
    *,
    profile: Profile | str | Path | None = None,
    utility: Measure | str | Sequence[Measure | str] = (),
    columns: str | Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    methods: Sequence[str | type[Method]] = (),
    without: Sequence[str] = (),
    only: Only = "",
    trials: int = 60,
    repeats: int = 3,
    confirmations: int = 5,
    workers: int = 1,
    minutes: float | None = 5.0,
    ledger: str | Path | None = None,
    schema: Schema | None = None,
    scenario: Scenario | Sequence[Scenario] | None = None,
    resources: Mapping[str, Any] | None = None,
    control: float = 0.0,
    plan: Plan | None = None,
    seed: int | None = None,
    run: Run | None = None,
    before: Before | None = None,
    warn: Callable[[Sequence[Obstacle]], None] | None = None,
    known: Sequence[Recipe] = (),
) -> TuningResult:
    """Find the recipe that meets all requirements with the least information loss, and say why.

    Recipes of several steps are searched, each step a method on a group of columns; the best are run again
    with new random numbers before one is recommended. ``groups`` (``{"money": ["income", "tax"]}``) are the
    columns that one step protects; ``methods`` and ``without`` say which methods are tried, and
    ``only="vetted"`` none that was checked by experiments alone; requirements on such measures are refused.
    At most so many ``trials`` are made, in at most so many ``minutes`` (None: no limit). With a ``ledger`` (a
    file) a search that was stopped continues where it was.
    ``control`` is the share of the persons held out as the control group, for requirements on attacks.
    ``tuned.plan.to_toml()`` is the plan for ``sfumato run``. ``before`` is called with the work that is
    planned, and ``warn`` with the obstacles; recipes that are ``known`` are tried first. Requirements that
    can never be met are raised at once.
    """
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.profile import Profile
    from sfumato.releasing.postprocess import postprocessor
    from sfumato.study.target import SEARCHED_BY, as_measure, demands_of
    from sfumato.tuning import tune as search
    from sfumato.tuning.derive_space import Scope
    from sfumato.tuning.feasibility import feasible_first, obstacles_to
    from sfumato.tuning.trial_runner import SearchBudget

    plan = plan or Plan()
    _require_no_series(plan)
    control, only = control or plan.control, only or plan.only
    place = None if ledger is None else Path(ledger)
    case, names = make_case(data, columns, schema, scenario, resources, control=control)
    intruders = (scenario,) if isinstance(scenario, Scenario) else tuple(scenario or ())
    run = _run_of_ledger(place, seed, run, resources)
    used = None if profile is None else Profile.of(profile)
    utilities = several(utility) or ((used and used.rank_by) or SEARCHED_BY,)
    case = replace(case, table=replace(case.table, schema=case.table.schema.dropping(plan.left_out)))
    demands = demands_of(several(require), case, run, profile=used, columns=names, intruders=intruders)
    require_vetted_measures(only, demands, [as_measure(each) for each in several(utility)])
    if warn is not None:
        warn(obstacles_to(demands, case.table, run, left_out=plan.left_out))
    with feasible_first(demands, case.table, run, left_out=plan.left_out):
        return search(
            case, demands, [as_measure(each) for each in utilities], run,
            scope=Scope(names, dict(groups or {}), tuple(methods), tuple(without), only),
            budget=SearchBudget(trials, repeats, confirmations, workers, minutes),
            ledger=place, plan=replace(plan, control=control, only=only), known=known, before=before,
            notes=used.notes(case.table.schema, names) if used else (), finish=postprocessor,
        )  # fmt: skip


def _require_no_series(plan: Plan) -> None:
    if plan.series is not None:
        raise PlanError(
            "a plan with [series] cannot be searched: its steps must stay those of the first release",
            hint="search without [series] for the first release, then add it to the plan that is found",
        )


def _run_of_ledger(
    place: Path | None, seed: int | None, run: Run | None, resources: Mapping[str, Any] | None
) -> Run:
    """The run of a search: one that continues has the seed that its ledger keeps."""
    from sfumato.tuning import ledger as ledgers

    if place is None:
        return make_run(seed, run, resources)
    kept = ledgers.kept_seed(place) if run is None and seed is None else seed
    run = make_run(kept, run, resources)
    ledgers.keep_seed(place, run, given=seed is not None)
    return run
