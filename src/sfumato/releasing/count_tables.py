"""Tables that leave beside a release, and what an intruder makes of both together.

Tables of the protected file tell nothing new. Those of the original are judged with the release, in the order
of the plan, each beside those before it:

- *By columns that the intruder knows, counts alone.* Exchange the original keys of two records of one
  equivalence class: release and counts stay the same, rounded ones too. So each record of a class is as
  likely as before to be the one that is looked for, and whatever was judged by classes holds.
- *By other columns, of amounts, or of people with several records.* The intruder is given more than both
  tell: whose record is counted in which cell, and which records are of one person. The release with the
  counted columns is judged by the same requirements: of the people of one class in it, no way of guessing is
  right more often than they say.
- *Cells.* A cell of few people is never written, nor a total that tells an amount, nor what tells either by
  difference (`sfumato.releasing.table_disclosure`).

What none of this covers is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sfumato.core.measure import ClassMeasure
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.joining import joining_columns, units_of
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import PlanError, count_noun, quoted
from sfumato.kernels.arrays import count_distinct
from sfumato.kernels.controlled_rounding import round_table
from sfumato.recipes.demand import Demand
from sfumato.recipes.parts import CountTable
from sfumato.recipes.plan import Plan
from sfumato.releasing.outcome import CountsBeside, Judgement
from sfumato.releasing.table_disclosure import (
    Publication,
    TooManyCellsError,
    tell_amounts,
    tell_few_persons,
)
from sfumato.releasing.tabulate import Tabulation, free_name
from sfumato.releasing.tau_argus import tau_argus_files
from sfumato.study.evaluate import EvaluationCase, evaluate

_BY_DIFFERENCE = "by difference, with other tables or the release"


def count_beside(plan: Plan, original: Table, release: Release, run: Run) -> CountsBeside:
    """Make the tables of a plan, and judge those of the original with the release."""
    if not plan.count_tables:
        return CountsBeside()
    if not release.plain:
        raise PlanError("tables of counts need a release of one table, got: several tables")
    room = _Judging(plan, original, release, run)
    for asked in plan.count_tables:
        if asked.counts == "protected":
            room.write(Publication(Tabulation.of(release.first, asked), least=0))
        else:
            room.take_in(asked)
    return CountsBeside(
        room.tables,
        tuple(room.faults),
        tuple(room.judgements),
        room.sentences,
        tuple(room.notes),
        room.private,
    )


@dataclass
class _Judging:
    """The tables that may leave so far, and what was said of the others."""

    plan: Plan
    original: Table
    release: Release
    run: Run
    accepted: list[Publication] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)
    sentences: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    private: dict[str, str] = field(default_factory=dict)

    def take_in(self, asked: CountTable) -> None:
        """Judge a table beside those before it, and do with it what the plan says."""
        least = asked.least or self.plan.class_size
        exact = Publication(Tabulation.of(self.original, asked), least)
        candidate, faults = exact, self._faults(exact)
        if faults and asked.otherwise == "round":
            candidate = round_counts(exact, asked.base or least)
            faults = self._faults(candidate)
        telling = [each.made.asked for each in (*self.accepted, candidate)]
        judged = (
            [] if faults else list(_judge_joined(self.plan, telling, self.original, self.release, self.run))
        )
        if asked.otherwise in {"leave out", "tau-argus"} and (
            faults or not all(each.is_met for each in judged)
        ):
            self.notes.append(f"the table `{asked.name}` is left out: {_reason(faults)}")
            if asked.otherwise == "tau-argus":
                self.private |= tau_argus_files(exact.made)
            return
        self.accepted.append(candidate)
        self.write(candidate)
        self.faults += faults
        self.judgements = judged or self.judgements

    def write(self, publication: Publication) -> None:
        """Let a table leave, with the sentence that says what it is."""
        asked = publication.made.asked
        self.tables[asked.name] = publication.made.to_table(publication.rounded)
        who = "weighted persons" if asked.weighted else "persons" if publication.made.by_person else "records"
        amounts = [
            f"{what} of {quoted(names)}"
            for what, names in (("totals", asked.totals), ("means", asked.means))
            if names
        ]
        what = f"counts of {who}{''.join(f', {each}' for each in amounts)} by {quoted(asked.columns)}"
        rounded = f", rounded to multiples of {publication.base}" if publication.base else ""
        self.sentences[asked.name] = f"{what}, of the {asked.counts} file{rounded}"

    def _faults(self, candidate: Publication) -> list[str]:
        found = list(_unjudgeable(self.plan, candidate.made.asked, self.original, self.release))
        return found or list(self._disclosures(candidate))

    def _disclosures(self, candidate: Publication) -> Iterator[str]:
        """What a table tells of few people or of amounts, alone, beside the others and with the release."""
        what, least = f"`{candidate.made.asked.name}`", candidate.least
        if few := len(candidate.small_cells()):
            cells = f"{count_noun(few, 'cell')} of fewer than {least} persons"
            yield f"{what} has {cells}: count fewer columns or coarser ones, or round"
            return
        together = [*self.accepted, candidate]
        beyond = any(_is_beyond(each.made.asked, self.plan, self.original) for each in together)
        try:
            telling, sets = tell_amounts(together, self.release)
            groups = tell_few_persons(together, self.original, self.release, of_classes=beyond)
        except TooManyCellsError:
            yield f"{what} has too many cells to be judged with the release: count fewer columns"
            return
        if len(telling):
            where = count_noun(len(telling), "cell")
            yield f"{what} tells an amount of somebody in {where}: few people contribute, or one dominates"
        if sets:
            yield f"{what} tells amounts {_BY_DIFFERENCE}, of {count_noun(sets, 'group')} of people"
        if groups:
            yield f"{what} tells {count_noun(groups, 'group')} of fewer than {least} persons {_BY_DIFFERENCE}"


def round_counts(exact: Publication, base: int) -> Publication:
    """The same table with counts rounded to multiples of a base, and sums of them near the true ones."""
    made = exact.made
    return replace(exact, base=base, rounded=round_table(made.counts, made.codes, base))


def _reason(faults: Sequence[str]) -> str:
    return "; ".join(faults) if faults else "a requirement is not met with it"


def _unjudgeable(plan: Plan, asked: CountTable, original: Table, release: Release) -> Iterator[str]:
    """Why a table of the original cannot be judged with the release."""
    rows, why = release.source_rows, ""
    person = {original.schema.only_role(Role.PERSON)}
    linked = {*units_of(original), *joining_columns(release.first)} - person
    if plan.recipe.stochastic or release.budget:
        why = "a step of the plan draws at random"
    elif plan.series is not None:
        why = "the release is one of a series"
    elif linked:
        why = "people have several records, or belong together, by columns that do not number persons"
    elif not plan.risk_demands or not all(map(_judges_classes, plan.risk_demands)):
        why = "requirements must be on equivalence classes, such as k >= 5, with missing keys as a category"
    elif rows is None or (rows < 0).any() or count_distinct(rows) < len(rows):
        why = "released records are not single records of the original"
    else:
        gone, beyond = len(original) - len(rows), _is_beyond(asked, plan, original)
        if 0 < gone < (math.inf if beyond else max(asked.least, plan.class_size)):
            why = f"{count_noun(gone, 'record')} that the release leaves out can be counted by difference"
    if why:
        yield f"`{asked.name}` cannot be judged with the release: {why}; count the protected file"


def _has_several_records(original: Table) -> bool:
    return original.schema.only_role(Role.PERSON) in units_of(original)


def _is_beyond(asked: CountTable, plan: Plan, original: Table) -> bool:
    """Whether some intruder could learn more from a table than which keys there are."""
    known = [set(_known_columns(original, each)) for each in plan.scenarios]
    return (
        bool(asked.values)
        or _has_several_records(original)
        or any(not set(asked.columns) <= each for each in known)
    )


def _judges_classes(demand: Demand) -> bool:
    """Whether a requirement is on classes of records that are alike as they stand."""
    return isinstance(demand.measure, ClassMeasure) and getattr(demand.measure, "missing", "") == "category"


def _known_columns(original: Table, scenario: Scenario) -> tuple[str, ...]:
    """What an intruder knows of people, whether or not the release has it."""
    return original.schema.resolve(scenario.columns) or original.schema.known_columns()


def _joined_columns(telling: Sequence[CountTable], known: Sequence[str], *, always: bool) -> tuple[str, ...]:
    """The columns of all tables that tell something the intruder does not know."""
    beyond = [
        each.columns for each in telling if always or each.values or not set(each.columns) <= set(known)
    ]
    return tuple(dict.fromkeys(name for columns in beyond for name in columns))


def _judge_joined(
    plan: Plan, telling: Sequence[CountTable], original: Table, release: Release, run: Run
) -> Iterator[Judgement]:
    """Judge what is required by the release with the columns of each record's cells, if that tells more."""
    several, person = _has_several_records(original), original.schema.only_role(Role.PERSON)
    for scenario in plan.scenarios:
        known = _known_columns(original, scenario)
        columns, rows = _joined_columns(telling, known, always=several), release.source_rows
        if not columns or rows is None:  # without rows it was refused
            continue
        added = {name: free_name(f"{name} as counted", original.names) for name in columns if name in known}
        joined = (*columns, person) if several and person is not None else columns
        shown = release.with_table(_with_cells(release.first, original.take(rows), joined, added))
        case = EvaluationCase(_with_cells(original, original, (), added), resources=run.resources)
        seen = replace(scenario, columns=(*known, *added.values()))
        for demand in (each for each in plan.risk_demands if each.scenario == scenario):
            (score,) = evaluate(shown, case, [replace(demand, scenario=seen)], run).scores.values()
            yield Judgement(demand.requirement, f"{scenario.name}, with the tables of counts", score)


def _with_cells(table: Table, beside: Table, columns: Sequence[str], added: Mapping[str, str]) -> Table:
    """A table with what the cells tell of each record: known columns besides, others in place."""
    values = {name: name for name in columns if name not in added} | {new: old for old, new in added.items()}
    kept = table.select(name for name in table.names if name not in values)
    frame = kept.frame.with_columns(beside.frame[old].alias(new) for new, old in values.items())
    own = [replace(beside.schema[old], name=new) for new, old in values.items()]
    return Table(frame, replace(kept.schema, columns=(*kept.schema.columns, *own)), nodes=kept.nodes)
