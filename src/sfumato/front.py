"""The front door's verbs: inspect, release; read, protect, assess, compare, tune — for scripts and notebooks.

They take what people have in hand (a path, a pandas, polars or Arrow table, or a ``Table``) and give back
the same sort of table they were given.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from sfumato.core import registry
from sfumato.core.measure import Measure, Score
from sfumato.core.method import Method
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, parse_measure, parse_method
from sfumato.core.run import Run
from sfumato.data.guess.columns import guess_schema
from sfumato.data.notebook import as_html
from sfumato.data.persons import is_out_of_order
from sfumato.data.scenario import CONTROL, Scenario
from sfumato.data.schema import Role, Schema, like_schema, with_roles
from sfumato.data.table import Table
from sfumato.errors import ParameterError, PlanError, SfumatoError, UnreachableError, quoted
from sfumato.recipes.demand import Demand
from sfumato.recipes.recipe import Recipe, Step
from sfumato.study.evaluate import Case, Make, evaluate

if TYPE_CHECKING:
    from sfumato.data.guess.overview import Overview
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.profile import Profile
    from sfumato.releasing.gate import Verdict
    from sfumato.releasing.outcome import Outcome
    from sfumato.report.released import Released
    from sfumato.study.compare import Study
    from sfumato.study.cost import Before
    from sfumato.tuning.tuned import Tuned


def inspect(data: Any, *, roles: Mapping[str, str] | None = None, **reading: Any) -> Overview:
    """Say what is in a table: what each column seems to be and why, and who is alone in the likely keys.

    ``data`` is a path, a plan, a pandas, polars or Arrow table or a ``Table``; ``roles`` are those that are
    decided, ``{"edu": "key"}``. ``reading`` says how a file is to be read (``delimiter``, ``decimal``,
    ``encoding``, ``sheet``). The result shows itself; ``.schema`` is what it proposes.
    """
    from sfumato.data.guess.columns import guess, guess_related
    from sfumato.data.guess.overview import declared, survey
    from sfumato.io import frames, read_contents

    if is_plan(data) or isinstance(data, Table) or (isinstance(data, str) and data.startswith("builtin:")):
        table = read(data)
        return declared(replace(table, schema=with_roles(table.schema, roles or {})))
    if isinstance(data, str | Path):
        contents = read_contents(data, **reading)
        frame, facts, told = contents.frame, contents.facts, contents.reading
    else:
        frame, facts, told = frames.to_polars(data)[0], {}, None
    guesses = guess(frame, facts)
    found = survey(frame, [each.given(roles or {}) for each in guesses], guess_related(frame, guesses))
    return replace(found, notes=tuple(told.notes()), reading=told.to_dict()) if told else found


def is_plan(data: Any) -> bool:
    """Whether this is the path of a plan, and so stands for its data with its schema."""
    return isinstance(data, str | Path) and Path(data).suffix.lower() == ".toml"


def read(
    source: Any,
    *,
    schema: Schema | None = None,
    roles: Mapping[str, str] | Literal["guess"] | None = "guess",
    reading: Mapping[str, Any] | None = None,
) -> Table:
    """Read a file, a frame (pandas, polars, Arrow), the data of a plan, or a built-in data set.

    A built-in data set is said like ``builtin:rand?per=person``.

    Without a schema the kinds and roles of the columns are guessed; look at ``table.schema``. ``roles`` are
    those of columns by name, ``{"age": "key"}``; the others are guessed, and with None no role is. A weight
    is never guessed here: a column only weights results if a schema or ``roles`` says so. ``reading`` says
    how a file is written where that is not to be found out: ``delimiter``, ``decimal``, ``encoding``,
    ``header``, ``sheet``.
    """
    if isinstance(source, Table):
        return source if schema is None else Table(source.frame, schema)
    if isinstance(source, str) and source.startswith("builtin:"):
        from sfumato import datasets

        table = datasets.from_uri(source)
        return table if schema is None else Table(table.frame, schema)
    if is_plan(source) and schema is None:
        from sfumato.recipes.plan import Plan
        from sfumato.releasing.load import load

        return load(Plan.read(Path(source)))
    from sfumato.io import conform, frames, read_table

    if isinstance(source, str | Path):
        table = read_table(source, schema=schema, **(reading or {}))
    else:
        frame, _ = frames.to_polars(source)
        table = conform(frame, schema or guess_schema(frame))
    return table if schema is not None else replace(table, schema=_with_roles(table.schema, roles))


def _with_roles(guessed: Schema, roles: Mapping[str, str] | Literal["guess"] | None) -> Schema:
    """What was guessed, with the roles that were given, and no weight that nobody has named."""
    for column in guessed.columns:
        if roles is None or column.role is Role.WEIGHT:
            guessed = guessed.replace(replace(column, role=None))
    return with_roles(guessed, roles if isinstance(roles, Mapping) else {})


def as_table(data: Any, *, schema: Schema | None = None) -> tuple[Table, Any]:
    """Make a ``Table`` of whatever came in, and a way back to its type."""
    from sfumato.io import frames

    if isinstance(data, Table | str | Path):
        return read(data, schema=schema), None
    frame, native = frames.to_polars(data)
    return read(frame, schema=schema), lambda out: frames.back(out, native)


@dataclass(frozen=True, repr=False)
class NativeRelease(Release):
    """A release of data that came in another type, in which its ``data`` go out."""

    native: Callable[[pl.DataFrame], Any] = field(default=lambda frame: frame, compare=False)

    def to_native(self, frame: pl.DataFrame) -> Any:
        """A protected frame in the type that the original came in."""
        return self.native(frame)


def in_native(release: Release, native: Callable[[pl.DataFrame], Any] | None) -> Release:
    """The release with the way back to the type of its original, if that is another."""
    if native is None:
        return release
    return NativeRelease(
        **{each.name: getattr(release, each.name) for each in fields(Release)}, native=native
    )


def _several(said: Any) -> tuple[Any, ...]:
    """Names, measures or requirements; a single one may be given as it is."""
    return (said,) if isinstance(said, str | Measure | Requirement | Demand) else tuple(said)


def make_run(seed: int | None, run: Run | None = None, resources: Mapping[str, Any] | None = None) -> Run:
    """Make the run of a call: chance from the operating system unless a seed is given."""
    if run is None:
        run = Run() if seed is None else Run(seed=seed)
    return replace(run, resources={**run.resources, **resources}) if resources else run


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
    in, without identifiers. ``resources`` are what columns and
    parameters name: hierarchies, a table of the population. ``seed`` is for experiments: who knows it can
    undo the noise.

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
        what = Step(what, _several(columns), _several(within))
    elif columns or within:
        raise ParameterError("`columns` and `within` must be given with a method, got: a step or recipe")
    recipe = Recipe((what,)) if isinstance(what, Step) else what
    return in_native(recipe.apply(table, make_run(seed, run, resources)), native)


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
    seed: int | None = None,
    run: Run | None = None,
) -> Scores:
    """Score a release by several measures: those named, the usual ones, or ``"all"`` there are.

    ``release`` is what ``protect`` gave, or a protected table from elsewhere; then ``aligned=True`` says
    that its records stand in the order of the original. The scores answer to a measure's name however it is
    written: ``scores["k"]`` is ``scores["k-anonymity"]``. Those named are ``exact``. Of large tables the
    usual ones are not unless that is said: some are estimated from a sample of the persons, and say so.

    Attacks such as ``"inference"`` need people who were not protected: a table as the resource ``control``,
    or a rehearsal, in which a share of the persons (``control=0.2``) sits out and the rest is ``made_by``
    the recipe.
    """
    table, _ = as_table(original, schema=schema)
    if release is not None and not isinstance(release, Release):
        release = beside(table, release, aligned=aligned)
    if measures == "all":
        chosen = [cls() for cls in registry.measures().values()]
    else:
        chosen = [parse_measure(m) if isinstance(m, str) else m for m in measures]
    allow_sampling = not (chosen if exact is None else exact)
    chosen = chosen or registry.measures_for("default")
    make = made_by.apply if isinstance(made_by, Recipe) else made_by
    case = Case(table, scenario or Scenario(), _like(table, resources), control, make)
    asking = make_run(seed, run, case.resources)
    return Scores(evaluate(release, case, chosen, asking, allow_sampling=allow_sampling).scores)


class Scores(dict[str, Score]):
    """The scores of measures by their full names; asked by another spelling (``k``) they answer as well."""

    def __missing__(self, said: str) -> Score:
        name = str(parse_measure(said))
        if name not in self.keys():  # `in self` would ask for other spellings again
            raise KeyError(said)
        return self[name]

    def to_frame(self) -> pl.DataFrame:
        """A row for each measure."""
        rows = [each.to_frame().with_columns(pl.lit(name).alias("measure")) for name, each in self.items()]
        return pl.concat(rows, how="vertical_relaxed").select("measure", pl.exclude("measure"))

    def _repr_html_(self) -> str:
        return as_html((), self.to_frame())

    def __contains__(self, said: object) -> bool:
        return isinstance(said, str) and self.get(said) is not None

    def get(self, said: str, default: Any = None) -> Any:
        """The score of a measure, or the default where it was not asked for."""
        try:
            return self[said]
        except (KeyError, SfumatoError):
            return default


def beside(original: Table, protected: Any, *, aligned: bool) -> Release:
    """Make a release of a protected table that came from elsewhere, read as the original's schema says.

    Which record is whose is known if it is ``aligned``, or from the private trail of the file.
    """
    from sfumato.io import frames
    from sfumato.io import read as read_frame
    from sfumato.releasing.read_back import conformed, joined
    from sfumato.releasing.trail import part_kept, rows_kept

    path = Path(protected) if isinstance(protected, str | Path) else None
    kept = None if path is None or aligned else part_kept(path, original)
    if path is not None and kept is not None and "joined" in kept:
        return joined(original, path, kept)
    if isinstance(protected, Table):
        table = protected
    else:
        frame = frames.to_polars(protected)[0] if path is None else read_frame(protected)
        table = conformed(frame, original)
    if not aligned:
        rows, synthetic = (None, False) if path is None else rows_kept(path, original)
        origin = Origin.synthetic() if synthetic and rows is None else Origin.of_rows(rows)
        return Release.as_read(table, origin=origin)
    if len(table) != len(original):
        raise ParameterError(
            f"an aligned release must have the original's {len(original)} records, got: {len(table)}"
        )
    if is_out_of_order(original, table):
        raise ParameterError(
            "an aligned release must have its records in the original's order, got: columns that agree "
            "with it only by chance",
            hint="releases are shuffled; leave it out: the private trail of the release tells who is who",
        )
    return Release.record_by_record(table)


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
    schema: Schema | None = None,
    scenario: Scenario | None = None,
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
    columns are compared, but for those whose chance must not be repeated (differential privacy), which are
    taken only by name. ``control`` is the share of the persons who sit out a rehearsal, for attacks.
    ``before`` is told what is about to be done.
    """
    from sfumato.recipes.profile import Profile
    from sfumato.study import compare as studies
    from sfumato.study.cost import SETTINGS, works_of
    from sfumato.study.target import RANKED_BY, as_measure, demands_of, held_by_default, target_of

    case, names = _case(data, columns, schema, scenario, resources, control=control)
    run, used = make_run(seed, run, resources), None if profile is None else Profile.of(profile)
    wanted, like = _several(require), level if isinstance(level, Release) else None
    for name, given in (("hold", hold), ("level", None if like else level)):
        if (wanted or used) and given is not None:
            raise ParameterError(f"`{name}` must be left out where requirements are given, got: both")
    demands = demands_of(wanted, case, run, profile=used, columns=names, like=like)
    steps = _steps(methods, names, case.table.schema, driven=not demands)
    ranked_by = as_measure(rank_by or (used and used.rank_by) or RANKED_BY)
    held = as_measure(hold) if hold else held_by_default(case)
    turns = repeats if repeats is not None else used.repeats if used else 5
    if before is not None:
        measures, ends = [demand.measure for demand in demands] or [held], turns + points
        works = works_of(
            steps, measures, SETTINGS * min(turns, 3) + ends, at_end=(ranked_by,), ends=ends,
            scenario=case.scenario, resources=case.resources,
        )  # fmt: skip
        before(works, case.table, run)
    target = None
    if not demands:
        target = target_of(held, level, steps, case, run, tolerance=tolerance, named=bool(methods))
    return studies.compare(
        case, steps, run, ranked_by=ranked_by, target=target, demands=demands, repeats=turns, points=points,
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
    trials: int = 60,
    repeats: int = 3,
    confirmations: int = 5,
    workers: int = 1,
    minutes: float | None = 5.0,
    ledger: str | Path | None = None,
    schema: Schema | None = None,
    scenario: Scenario | None = None,
    resources: Mapping[str, Any] | None = None,
    control: float = 0.0,
    plan: Plan | None = None,
    seed: int | None = None,
    run: Run | None = None,
    before: Before | None = None,
    known: Sequence[Recipe] = (),
) -> Tuned:
    """Find the recipe that meets all requirements and loses least, and say why.

    Recipes of several steps are searched, each step a method on a group of columns; the best are run again
    on fresh chance before one is recommended. ``groups`` (``{"money": ["income", "tax"]}``) says which
    columns one step protects; ``methods`` and ``without`` which methods are tried. ``trials`` is what it may
    try, in at most so many ``minutes`` (None: as long as it takes). With a ``ledger`` (a file) a search
    that was stopped goes on where it was.
    ``control`` is the share of the persons who sit out a rehearsal, for requirements on attacks.
    ``tuned.plan.to_toml()`` is what ``sfumato run`` takes. ``before`` is told what is about to be done;
    recipes that are ``known`` are tried first.
    """
    from sfumato.recipes.plan import Plan
    from sfumato.recipes.profile import Profile
    from sfumato.study.target import RANKED_BY, as_measure, demands_of
    from sfumato.tuning import ledger as ledgers
    from sfumato.tuning import tune as search
    from sfumato.tuning.derive_space import Scope
    from sfumato.tuning.workbench import Budget

    if plan is not None and plan.series is not None:
        raise PlanError(
            "a search must be for a plan outside of a series, got: one with [series], whose steps must stay "
            "what they were",
            hint="search without it for the first release, and write [series] into the plan that is found",
        )
    control = control or (plan.control if plan else 0.0)
    place = None if ledger is None else Path(ledger)
    kept = ledgers.kept_seed(place) if place is not None and run is None and seed is None else seed
    case, names = _case(data, columns, schema, scenario, resources, control=control)
    run, used = make_run(kept, run, resources), None if profile is None else Profile.of(profile)
    if place is not None:
        ledgers.keep_seed(place, run, given=seed is not None)
    utilities = _several(utility) or ((used and used.rank_by) or RANKED_BY,)
    return search(
        case,
        demands_of(_several(require), case, run, profile=used, columns=names),
        [as_measure(each) for each in utilities],
        run,
        scope=Scope(names, dict(groups or {}), tuple(methods), tuple(without)),
        budget=Budget(trials, repeats, confirmations, workers, minutes),
        ledger=place,
        plan=replace(plan or Plan(), control=control),
        notes=used.notes(case.table.schema, names) if used else (),
        before=before,
        known=known,
    )


def release(
    data: Any,
    *,
    for_: Profile | str | Path | None = None,
    minutes: float = 5.0,
    roles: Mapping[str, str] | None = None,
    resources: Mapping[str, Any] | None = None,
    control: float = 0.0,
    plan: Plan | None = None,
    override: str = "",
    seed: int | None = None,
    run: Run | None = None,
    **search: Any,
) -> Released:
    """Make a release for someone: find a recipe within some minutes that meets the profile, and judge it.

    What fails its requirements is never given back: if the search finds nothing in time, a method that
    enforces them is taken at its weakest setting that does, and if that fails too, the error says what came
    nearest. A plan that has steps is carried out as it stands. What else blocks a release (see
    `sfumato.releasing.gate`) is raised too. Nothing is written; see ``Released.write``.

    Parameters
    ----------
    data
        A path, a plan, a pandas, polars or Arrow table, or a ``Table``.
    for_
        Whom it is for: a profile (``"public"``, ``"scientific"`` …). By default what the plan requires, and
        without a requirement ``"scientific"``.
    minutes
        How long to search.
    roles
        Roles of columns by name; every column must have one, guessed or given.
    control
        The share of the persons who sit out a rehearsal, for requirements on attacks; by default the plan's.
    plan
        What is to be kept of a plan: where the data are, resources, the output.
    override
        The reason why it may leave though something blocks it; it is recorded.
    search
        More for ``tune``, such as ``methods`` or ``trials``.
    """
    from sfumato.recipes.profile import Profile
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.gate import require_open
    from sfumato.releasing.load import load_resources
    from sfumato.report.released import Released

    base, source = _base(data, plan, control), Path(data) if is_plan(data) else None
    if any(part.recipe.steps for part in base.parts.values()):
        base = _as_it_stands(base, for_, roles)
        used = Profile.of(for_) if for_ else _of_plan(Profile.of("scientific"))
        run = make_run(seed, run, resources)
        outcome = carry_out(base, run)
        verdict = _judged(outcome, data, override=override, unjudged=bool(for_) and not used.thresholds)
        require_open(verdict)
        how = "the steps of the plan, as they stand"
        return Released(outcome, used, how, run, gate=verdict, about=base.about, source=source)
    if base.tables:
        raise PlanError(
            "a plan of several tables must have steps to be released, got: none",
            hint="search for those of one table at a time with `sfumato tune`",
        )
    if base.series is not None:
        raise PlanError(
            "a plan in a series must have steps, so that people keep the noise they have, got: none",
            hint="release the first without [series] in it, and take the steps of its plan",
        )
    table, native = _decided(data, base, roles)
    base, used = _required(base, table, for_)
    resources = {**load_resources(base), **(resources or {})}
    run = make_run(seed, run, resources)
    how_to: dict[str, Any] = {"minutes": minutes, "resources": resources, "search": search}
    outcome, verdict, how, found = _searched(base, used, table, run, data, override=override, **how_to)
    part = outcome.parts[""]
    part = replace(part, release=in_native(part.release, native))
    outcome = replace(outcome, parts={"": part})
    return Released(outcome, used, how, run, gate=verdict, source=source, tuned=found)


def _base(data: Any, plan: Plan | None, control: float) -> Plan:
    """What is known of the plan of a release before its data are looked at: at least where a file is."""
    from sfumato.recipes.parts import Source
    from sfumato.recipes.plan import Plan

    if plan is None and is_plan(data):
        plan = Plan.read(Path(data))
    elif plan is None:
        plan = Plan(Source(str(data))) if isinstance(data, str | Path) else Plan()
    return replace(plan, control=control or plan.control)


def _of_plan(profile: Profile) -> Profile:
    """The profile of a release that is for those whom its plan is for."""
    said: dict[str, Any] = {"name": "plan", "title": "What the plan requires", "summary": ""}
    return replace(profile, **said, intruders=(), thresholds=())


def _as_it_stands(plan: Plan, for_: Profile | str | Path | None, roles: Mapping[str, str] | None) -> Plan:
    """A plan that has its steps, with roles that were given, and what a profile requires beside it."""
    from sfumato.recipes.profile import Profile

    if roles and plan.schema is None:
        raise PlanError("roles must be given to a plan that declares its columns, got: one that does not")
    if roles and plan.schema is not None:
        plan = replace(plan, schema=with_roles(plan.schema, roles))
    return Profile.of(for_).apply_to(plan) if for_ else plan


def _required(base: Plan, table: Table, for_: Profile | str | Path | None) -> tuple[Plan, Profile]:
    """The plan with what is required of the release of a table, and the profile that requires it."""
    from sfumato.recipes.profile import Profile
    from sfumato.recipes.starter import with_pseudonyms

    base = replace(base, schema=with_pseudonyms(table.schema))
    used = Profile.of(for_ or "scientific")
    if for_ is None and base.demands:
        return base, _of_plan(used)
    return used.apply_to(replace(base, scenarios=(), requirements=(), required_in={})), used


def _judged(outcome: Outcome, data: Any, *, override: str, unjudged: bool) -> Verdict:
    """What the gate says of a release, with the reason why someone overrides what it finds."""
    from sfumato.releasing.gate import gate_outcome

    subject = str(data) if isinstance(data, str | Path) else "the release"
    verdict = gate_outcome(outcome, subject=subject, unjudged=unjudged)
    return replace(verdict, override=override.strip()) if verdict.findings else verdict


def _searched(
    base: Plan, used: Profile, table: Table, run: Run, data: Any, *, override: str,
    minutes: float, resources: Mapping[str, Any], search: Mapping[str, Any],
) -> tuple[Outcome, Verdict, str, Tuned | None]:  # fmt: skip
    """The first way that meets what is required and passes the gate, how it was found, and by what search."""
    from sfumato.releasing.carry_out import carry_out
    from sfumato.releasing.gate import require_open
    from sfumato.tuning.tuned import Tuned
    from sfumato.tuning.ways import WHAT_HELPS, ways

    start, searched = time.monotonic(), list[Tuned]()

    def tuned(plan: Plan, kept: Table, known: Sequence[Recipe]) -> Tuned:
        left = max(minutes - (time.monotonic() - start) / 60, minutes / 10)
        how = {
            "utility": used.rank_by or (),
            "minutes": left,
            "resources": resources,
            "known": known,
            "control": plan.control,
            **search,
        }
        searched.append(tune(kept, plan.demands, plan=plan, run=run, **how))
        return searched[-1]

    missed, blocked = list[str](), None
    for tried, how in ways(base, table, run, tuned):
        outcome = carry_out(tried, run, table=table)
        if outcome.met or not base.demands:
            verdict = _judged(outcome, data, override=override, unjudged=not base.demands)
            if verdict.is_open:
                return outcome, verdict, how, searched[-1] if searched else None
            blocked = verdict
            continue
        missed += [
            f"{how}: {each.requirement.verdict(each.score)}" for each in outcome.judgements if not each.met
        ]
    if blocked is not None:
        require_open(blocked)
    raise UnreachableError(
        f"a release for {used.name} use must meet its profile, got: none that does, so nothing was released",
        hint="; ".join((WHAT_HELPS, *missed)),
    )


def _decided(data: Any, base: Plan, roles: Mapping[str, str] | None) -> tuple[Table, Any]:
    """The table, every column of it with a role, and the way back to its type."""
    from sfumato.io import frames

    schema = inspect(data, roles=roles).schema
    require_roles(schema.select([name for name in schema.names if name not in base.output.drop]))
    native = None
    if not isinstance(data, Table | str | Path):
        _, form = frames.to_polars(data)
        native = partial(frames.back, native=form)
    table = read(data) if isinstance(data, Table) or is_plan(data) else read(data, schema=schema)
    return replace(table, schema=schema), native


def require_roles(schema: Schema) -> None:
    """Stop if nothing says what a column is to others; list the columns, and what to type."""
    if undecided := schema.undecided():
        flags = " ".join(f"--role {shlex.quote(f'{name}=key')}" for name in undecided)
        raise PlanError(
            f"every column must have a role before it is released, got none for: {quoted(undecided)}",
            hint=f"say what each is to others: {flags} (or sensitive, identifier, other)",
        )


def _case(
    data: Any,
    columns: str | Sequence[str],
    schema: Schema | None,
    scenario: Scenario | None,
    resources: Mapping[str, Any] | None,
    *,
    control: float,
) -> tuple[Case, tuple[str, ...]]:
    """What is asked about, and the columns to protect: an intruder who is not described knows these."""
    table, _ = as_table(data, schema=schema)
    names = _several(columns)
    return Case(table, scenario or Scenario(columns=names), _like(table, resources), control), names


def _like(table: Table, resources: Mapping[str, Any] | None) -> dict[str, Any]:
    """Resources whose columns are declared as the table declares those of the same name."""
    from sfumato.io import conform

    made = {}
    for name, said in (resources or {}).items():
        each = as_table(said)[0] if name == CONTROL else said  # a file or frame will do, as for the data
        if isinstance(each, Table) and not each.nodes:
            schema = like_schema(each.schema, table.schema)
            made[name] = each if schema == each.schema else conform(each.frame, schema)
        else:
            made[name] = each
    return made


def _steps(
    methods: Sequence[Method | Step | str], columns: Sequence[str], schema: Schema, *, driven: bool
) -> list[Step]:
    if methods:
        made = [parse_method(m) if isinstance(m, str) else m for m in methods]
        return [m if isinstance(m, Step) else Step(m, tuple(columns)) for m in made]
    able = [
        Step(cls(), tuple(columns))
        for cls in registry.methods().values()
        if cls.randomness.replay
        and (cls.drive() or not driven)  # a search on the data voids a guarantee: only by name
    ]
    able = [step for step in able if not list(step.faults(schema))]
    if not able:
        raise ParameterError("at least one method must be able to take the columns, got: none")
    return able
