"""What came of a plan, before anyone has decided on it: each table's release, and the judgement on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.budget import PrivacyBudget
from sfumato.core.measure import Score
from sfumato.core.randomness import ByPlace
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement, why_unjudged
from sfumato.data.checks import Violation
from sfumato.data.records import as_spec
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.recipes.plan import Plan
from sfumato.releasing.budget_coverage import BudgetCoverage, coverage_of
from sfumato.releasing.key_exposure import KeyExposure, warnings_of
from sfumato.releasing.notes import total_budget
from sfumato.releasing.series import SeriesMember
from sfumato.study.column_changes import Loss
from sfumato.study.evaluate import EvaluationCase
from sfumato.version import __version__


@dataclass(frozen=True)
class Judgement:
    """One requirement in one scenario, and the score it is judged by."""

    requirement: Requirement
    scenario: str
    score: Score

    @property
    def is_met(self) -> bool:
        """Whether the score meets the requirement."""
        return self.requirement.met_by(self.score)

    @property
    def sentence(self) -> str:
        """In which scenario it is met or not, and by what score."""
        return f"{self.scenario}: {self.requirement.verdict(self.score)}"

    def is_worse_than(self, other: Judgement) -> bool:
        """Whether the same requirement does worse here: not certain is the worst."""
        own_worst, other_worst = (self.requirement.worst(each.score) for each in (self, other))
        if math.isnan(own_worst) or math.isnan(other_worst):
            return math.isnan(own_worst) and not math.isnan(other_worst)
        return self.requirement.measure.is_better(other_worst, own_worst)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "requirement": str(self.requirement),
            "scenario": self.scenario,
            "met": self.is_met,
            "judges": self.requirement.judges,
            "verdict": self.requirement.verdict(self.score),
            "score": self.score.to_dict(),
        }


@dataclass(frozen=True)
class CountsBeside:
    """Tables that leave beside a release, why they may not, and what is judged of both together.

    ``sentences`` say what each is; ``notes`` which were left out, and why; ``private`` are texts of tables
    that stay, by file name.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    sentences: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    private: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TableOutcome:
    """What came of one table: the release as it would be written, and the judgement on it.

    ``changes`` are how many cells postprocessing changed, by what; ``broken`` the promises of the schema that
    the release does not keep; ``lost`` what became of each column, and ``stake`` who is alone in the
    keys; ``notes`` what else the owner should know. Of several ``copies`` the release is the first, and they
    are judged together. A ``member`` of a series of releases is judged beside the earlier ones;
    ``beside`` are the tables of counts that leave with it. The ``case`` is what it was judged by, for those
    who rehearse it together with other tables.
    """

    plan: Plan
    original: Table
    release: Release
    judgements: tuple[Judgement, ...]
    broken: tuple[Violation, ...]
    changes: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    stake: KeyExposure | None = None
    notes: tuple[str, ...] = ()
    further: tuple[Release, ...] = ()
    member: SeriesMember | None = None
    beside: CountsBeside = field(default_factory=CountsBeside)
    case: EvaluationCase | None = field(default=None, repr=False)

    @property
    def copies(self) -> tuple[Release, ...]:
        """All copies: the release, and any further ones."""
        return (self.release, *self.further)

    @property
    def budget(self) -> PrivacyBudget:
        """What was spent for all copies together: each is drawn anew from the same people."""
        return total_budget(self.copies)

    @property
    def coverage(self) -> BudgetCoverage:
        """Which of its columns the budget covers."""
        return coverage_of(self.release, self.original)

    @property
    def is_judged(self) -> bool:
        """Whether anything is required of its risk."""
        return any(judgement.requirement.judges == "risk" for judgement in self.judgements)

    @property
    def at_stake(self) -> str:
        """Who is alone in its keys, where nothing is required of its risk."""
        stake = self.stake.sentence() if self.stake else "there is no key to examine"
        return why_unjudged((each.requirement for each in self.judgements), stake)

    @property
    def is_met(self) -> bool | None:
        """Whether every requirement is met; None if none judges its risk: nothing is said of the release."""
        met = all(judgement.is_met for judgement in self.judgements)
        return None if met and not self.is_judged else met

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known of the release, whatever was required of it."""
        fewer = len(self.release.first) < len(self.original)
        return tuple(warnings_of(self.plan, self.lost, self.stake, fewer=fewer))

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        return {
            "sfumato": __version__,
            "records": len(self.release.first),
            **({"copies": len(self.copies)} if self.further else {}),
            "columns": list(self.release.reading().names),
            **_tables(self.release),
            **({"count_tables": self._count_tables()} if self.beside.tables else {}),
            "steps": [step.to_dict() for step in self.release.provenance],
            **({"budget": self.coverage.statement(self.budget)} if self.budget else {}),
            **({} if self.member is None else {"in_series": self.member.to_dict()}),
            "met": self.is_met,
            "requirements": [judgement.to_dict() for judgement in self.judgements],
            "broken_promises": [vars(violation) for violation in self.broken],
            "changes": dict(self.changes),
            "warnings": list(self.warnings),
            "lost": [loss.to_dict() for loss in self.lost],
            "notes": list(self.notes),
        }

    def _count_tables(self) -> dict[str, Any]:
        """What each table beside the release is of."""
        written = (each for each in self.plan.count_tables if each.name in self.beside.tables)
        sentences = self.beside.sentences
        return {
            each.name: {**as_spec(each), "counts": each.counts, "what": sentences.get(each.name, "")}
            for each in written
        }


def tally(judged: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many requirements are met, and of how many that count: of none where no risk is judged."""
    counted = [each for each in judged if each["judges"] != "nothing"]
    if all(each["met"] and each["judges"] != "risk" for each in counted):
        counted = []
    return {"met": sum(bool(each["met"]) for each in counted), "of": len(counted)}


def _tables(release: Release) -> dict[str, Any]:
    """Of a release of several tables what each of them is."""
    if len(release.tables) == 1:
        return {}
    sizes = {n: {"records": len(t), "columns": list(t.names)} for n, t in release.tables.items()}
    return {"files": sizes}


@dataclass(frozen=True)
class PlanOutcome:
    """What came of a plan: each table by its name, which one alone lacks, and how many numbers dangle.

    ``randomness`` is where its chance came from; ``new_keys`` are keys of pseudonyms that were drawn, by the
    file each is to be kept in.
    """

    parts: Mapping[str, TableOutcome]
    randomness: ByPlace = field(repr=False)
    dangling: Mapping[str, int] = field(default_factory=dict)
    new_keys: Mapping[Path, str] = field(default_factory=dict, repr=False)

    @property
    def release(self) -> Release:
        """The release of a plan for one table."""
        if len(self.parts) != 1:
            raise PlanError(f"the plan must be for one table, got: {len(self.parts)}")
        return next(iter(self.parts.values())).release

    @property
    def coverage(self) -> BudgetCoverage:
        """Which columns the budgets of its tables cover; none lacks it where nothing was spent."""
        if not any(part.budget for part in self.parts.values()):
            return BudgetCoverage(())
        return BudgetCoverage.joint({name: part.coverage for name, part in self.parts.items()})

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Every requirement in every scenario, over all tables."""
        return tuple(judgement for part in self.parts.values() for judgement in part.judgements)

    @property
    def unmet(self) -> int:
        """How many requirements are not met."""
        return sum(not judgement.is_met for judgement in self.judgements)

    @property
    def is_met(self) -> bool:
        """Whether a risk is required of every table, and all that is required is met in every scenario."""
        return all(part.is_met for part in self.parts.values())

    @property
    def unjudged_tables(self) -> list[str]:
        """The tables of whose risk nothing was required, each as what is at stake in it."""
        unjudged = {name: part for name, part in self.parts.items() if not part.is_judged}
        return [(f"{name}: " if name else "") + part.at_stake for name, part in unjudged.items()]

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record, no seed."""
        payload = {name: part.to_dict() for name, part in self.parts.items()}
        return payload[""] if "" in payload else {"tables": payload, "dangling": dict(self.dangling)}
