"""Decides whether something may leave: **the one place** that says so, whoever asks.

What blocks a release is a finding: a rule of `RULES` that it breaks. A finding yields only to someone who
overrides it with a reason, and the reason is recorded. Nothing is written without a `Decision`
(see `sfumato.releasing.destination.write_release`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.core.budget import NO_GUARANTEE
from sfumato.core.randomness import ByPlace
from sfumato.core.release import Release
from sfumato.core.requirement import why_unjudged
from sfumato.core.run import Run
from sfumato.data.checks import Violation, violations
from sfumato.data.guess.columns import Guess, guess_columns, is_shared_key
from sfumato.data.guess.contacts import contacts_in, shown_texts
from sfumato.data.relations.joining import joining_columns
from sfumato.data.schema import UNIT_ROLES, Column, Role
from sfumato.data.table import Table
from sfumato.errors import RequirementError, count_noun
from sfumato.io import Staging
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan, bare_numbers
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.checksums import OVERRIDES, PRIVATE, has_private_part
from sfumato.releasing.key_exposure import key_exposure_of
from sfumato.releasing.load import load_resources
from sfumato.releasing.outcome import Judgement, PlanOutcome, TableOutcome
from sfumato.releasing.read_release import shown_apart
from sfumato.study.evaluate import EvaluationCase, evaluate

#: What is looked for, by name, and what must hold.
RULES: Mapping[str, str] = {
    "identifier-left-in": "no column may identify people directly",
    "contact-left-in": "no text may contain an e-mail address, or a phone, account or identity number",
    "role-missing": "every column must have a role",
    "rule-broken": "every record must satisfy the constraints of the schema",
    "nothing-required": "a requirement must limit the risk of the release",
    "requirement-missed": "every requirement must be met",
    "value-shown-apart": "equal values of a key must be written alike",
    "counts-disclose": "a table of counts must disclose nothing beside the release",
    "not-private": "a privacy budget must be a differential-privacy guarantee",
    "seed-guessable": "the random seed must not be guessable",
}

_MIN_PROPOSAL_CONFIDENCE = 0.8  # of a proposal that is believed whatever was declared

#: The way on where the seed can be guessed.
DRAW_SEED = (
    "leave out --seed (in Python `seed`), and the operating system draws one; or give one of 128 random "
    "bits, and keep it secret"
)


@dataclass(frozen=True)
class Finding:
    """One thing that keeps a release from leaving: the rule it breaks, and how."""

    rule: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """As a dictionary for JSON."""
        return {"rule": self.rule, "must": RULES[self.rule], "message": self.message}


@dataclass(frozen=True)
class Decision:
    """Whether something may leave, and why: what blocks it, and how it scores in every scenario.

    ``outcome`` is what it was decided on; of a file that came from elsewhere there is none. ``override`` is
    the reason of someone who takes the findings on; ``unjudged`` says that its owner accepts by name that
    nothing is required of the risk.
    """

    subject: str
    findings: tuple[Finding, ...]
    judgements: tuple[Judgement, ...] = ()
    override: str = ""
    unjudged: bool = False
    outcome: PlanOutcome | None = field(default=None, repr=False, compare=False)

    @property
    def may_leave(self) -> bool:
        """Whether nothing blocks it, or someone has taken on what does."""
        return not self.findings or bool(self.override)

    @property
    def worst(self) -> tuple[Judgement, ...]:
        """Of each requirement the judgement in the scenario where it does worst: that one decides."""
        by_requirement: dict[str, Judgement] = {}
        for each in self.judgements:
            before = by_requirement.setdefault(str(each.requirement), each)
            if each.is_worse_than(before):
                by_requirement[str(each.requirement)] = each
        return tuple(by_requirement.values())

    @property
    def met_requirements(self) -> tuple[str, ...]:
        """The requirements that are met, each with its scenario and its score."""
        return tuple(each.sentence for each in self.judgements if each.is_met)

    @property
    def estimated_requirements(self) -> tuple[str, ...]:
        """The requirements that are judged by an estimate, which they ask for."""
        return tuple(
            f"{each.scenario}: {each.requirement.short}"
            for each in self.judgements
            if each.requirement.is_estimated(each.score)
        )

    def require_leave(self, *, hint: str = "") -> None:
        """Raise what keeps it from leaving, unless someone has taken that on; the hint says the way on."""
        if not self.may_leave:
            message = f"{self._why_not}, so nothing was written; {self._reasons}"
            raise RequirementError(message, hint=hint or self.way_on)

    @property
    def _why_not(self) -> str:
        rules = {each.rule for each in self.findings}
        if rules == {"nothing-required"}:
            return "no requirement limits the risk of the release"
        if rules == {"requirement-missed"}:
            missed = sum(not each.is_met for each in self.judgements)
            return f"{missed} of {len(self.judgements)} requirements are not met"
        return f"{self.subject} may not leave ({count_noun(len(self.findings), 'problem')})"

    @property
    def _reasons(self) -> str:
        alone = {each.rule for each in self.findings} == {"nothing-required"}
        return "; ".join(each.message if alone else f"{each.rule}: {each.message}" for each in self.findings)

    @property
    def way_on(self) -> str:
        """What to do about what blocks it."""
        alone = {each.rule for each in self.findings} == {"seed-guessable"}
        fix = DRAW_SEED if alone else "fix what is listed"
        return f'{fix}; or release it anyway with --override "REASON", which is recorded'

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON: nothing per record."""
        return {
            "subject": self.subject,
            "open": self.may_leave,
            "findings": [finding.to_dict() for finding in self.findings],
            "met": list(self.met_requirements),
            "estimated": list(self.estimated_requirements),
            **({"override": self.override} if self.override else {}),
        }


def decide(outcome: PlanOutcome, *, subject: str, override: str = "", unjudged: bool = False) -> Decision:
    """Decide whether what came of a plan may leave.

    Parameters
    ----------
    outcome
        What was made and how it is judged, in every scenario and of every table.
    subject
        What it is called in messages.
    override
        The reason of someone who releases it whatever is found.
    unjudged
        Whether its owner accepts that nothing is required of its risk.
    """
    found = [
        replace(finding, message=(f"{name}: " if name else "") + finding.message)
        for name, part in outcome.parts.items()
        for finding in _findings_in(part, unjudged=unjudged)
    ]
    found += _uncovered_column_findings(outcome)
    found += _guessable(outcome.randomness, [part.plan for part in outcome.parts.values()])
    accepted = unjudged and bool(outcome.unjudged_tables)
    reason = override.strip() if found else ""
    return Decision(subject, tuple(found), outcome.judgements, reason, accepted, outcome)


def _findings_in(part: TableOutcome, *, unjudged: bool) -> Iterator[Finding]:
    yield from dict.fromkeys(each for copy in part.copies for each in _identifiers(copy.reading()))
    yield from _rule_findings(part.broken)
    yield from _not_private(part.release)
    if not part.is_judged and not unjudged:
        yield Finding("nothing-required", part.at_stake)
    yield from _requirement_findings(part.judgements)
    yield from (Finding("counts-disclose", fault) for fault in part.beside.faults)


def decide_reproduced(outcome: PlanOutcome, trail: Mapping[str, Any]) -> Decision:
    """The decision that a private trail tells of, on what was made again to be compared with what left."""
    override = trail.get("override", {}).get("override", "")
    missed = () if override else tuple(_requirement_findings(outcome.judgements))
    unjudged = bool(outcome.unjudged_tables)
    return Decision("the release", missed, outcome.judgements, override, unjudged, outcome)


def decide_plan(plan: Plan, run: Run, *, subject: str, table: Table | None = None) -> Decision:
    """Decide on what a plan would release, without writing anything: its own chance will be another.

    The ``table`` of a plan for one table need not be read where it is at hand.
    """
    if blocked := tuple(Finding("role-missing", each) for each in plan.blockers()):
        return Decision(subject, blocked)
    chance = replace(run.randomness, is_given=False, person_seed=run.randomness.seed)  # none of it leaves
    return decide(carry_out(plan, replace(run, randomness=chance), table=table), subject=subject)


def require_secret_seed(plan: Plan, run: Run, *, subject: str, override: str = "") -> None:
    """Raise before any work if a release would hang on a seed that is guessed, unless that is overridden."""
    found = tuple(_guessable(run.randomness, plan.parts.values()))
    Decision(subject, found, override=override).require_leave()


def foresee(plan: Plan, tables: Mapping[str, Table], *, subject: str, unjudged: bool = False) -> Decision:
    """Decide what can be decided before anything is protected, by the originals of the tables at hand.

    A column that no step is about leaves as it is: if it names people there, it does so in the release.
    """
    found = [Finding("role-missing", each) for each in plan.blockers()]
    for name, part in plan.parts.items():
        where, table = f"{name}: " if name else "", tables.get(name)
        if table is not None and part.schema is not None:
            touched = {each for step in part.recipe.steps for each in step.resolve(part.schema)}
            bare = [each for each in table.names if each not in {*part.left_out, *touched}]
            shown = _identifiers(table.select(bare))
            found += [replace(each, message=f"{where}{each.message}") for each in shown]
        if not part.risk_demands and not unjudged:
            stake = None
            if table is not None:
                stake = key_exposure_of(part, table, None, Run(resources=load_resources(part)))
            exposure = stake.sentence() if stake else "the keys were not examined"
            why = why_unjudged((each.requirement for each in part.demands), exposure)
            found.append(Finding("nothing-required", where + why))
    return Decision(subject, tuple(found))


def decide_file(
    table: Table,
    demands: Sequence[Demand],
    run: Run,
    *,
    subject: str,
    original: Table | None = None,
    release: Release | None = None,
    merged: Collection[str] = (),
) -> Decision:
    """Decide whether a file may leave as it is.

    With the ``original`` and the ``release`` that was made of it, measures that need both can be required;
    alone the file is judged as its own release, and what needs the original is not met. Of the columns that
    are ``merged`` the file shows apart what was read as one value: people whom it tells apart would count as
    alike in them, unless their values are what is to be learnt.
    """
    undecided, alone = table.schema.columns_without_role(), original is None
    seen_table = table if original is None else original
    case = EvaluationCase(_as_keys(seen_table, undecided), resources=run.resources)
    if alone and joining_columns(table):
        release = Release.unchanged(case.table)
    judgements = []
    for demand in demands:
        seen = None if alone and demand.measure.needs.release else release
        (score,) = evaluate(seen, case, [demand], run).scores.values()
        judgements.append(Judgement(demand.requirement, demand.scenario.name, score))
    findings = [*_identifiers(table)]
    findings += [Finding("role-missing", f"`{n}` has no role: add --role {n}=ROLE") for n in undecided]
    findings += _rule_findings(violations(table))
    asked = [demand.requirement for demand in demands]
    if not any(each.judges == "risk" for each in asked):
        why = why_unjudged(asked, "no requirement on its risk is given")
        findings.append(Finding("nothing-required", why))
    findings += _requirement_findings(judgements)
    apart = shown_apart(merged, table.schema, (each.scenario for each in demands))
    findings += [Finding("value-shown-apart", each) for each in apart]
    return Decision(subject, tuple(findings), tuple(judgements))


def _as_keys(table: Table, names: Sequence[str]) -> Table:
    """What nobody has decided counts as known to others, so that no requirement is met by not looking."""
    own = [replace(table.schema[name], role=Role.KEY) for name in names if name in table.schema]
    return replace(table, schema=table.schema.replace(*own))


def _identifiers(table: Table) -> Iterator[Finding]:
    """Columns that are identifiers by their role, or look as if they were, whatever was declared of them.

    Any other is searched for what names somebody in a single text. A key that only its name speaks against,
    as of a hospital's number, is judged as a key where several share each value.
    """
    schema, rule = table.schema, "identifier-left-in"
    for warning in bare_numbers(schema, ()):
        yield Finding(rule, warning)
    for proposal in guess_columns(table):
        column = schema[proposal.column.name]
        if column.pseudonym or column.role in UNIT_ROLES:
            continue
        if column.role is Role.IDENTIFIER:
            yield Finding(rule, f"`{column.name}` {_identifier_by(column)}")
        elif _numbers_persons(proposal) and column.role is not Role.KEY:  # a key is judged as one
            yield Finding(rule, f"`{column.name}` links the records of a person: {proposal.role_reason}")
        elif proposal.column.role is Role.IDENTIFIER and not is_shared_key(table, column):
            yield Finding(rule, f"`{column.name}` looks like a direct identifier: {proposal.role_reason}")
        else:
            yield from _contacts(table, column.name)


def _numbers_persons(proposal: Guess) -> bool:
    return proposal.column.role is Role.PERSON and proposal.confidence >= _MIN_PROPOSAL_CONFIDENCE


def _identifier_by(column: Column) -> str:
    """Who says that a column is an identifier."""
    if column.role_basis:
        return f"is taken as a direct identifier ({column.role_basis})"
    return "is declared as a direct identifier"


def _contacts(table: Table, name: str) -> Iterator[Finding]:
    """What a column shows of how to reach or name somebody, in a cell, a set, a label or a codebook."""
    counts = table.remember(name, "contacts", lambda: contacts_in(shown_texts(table, name)).counts)
    for what, texts in counts.items():
        yield Finding("contact-left-in", f"`{name}` contains {what} in {count_noun(texts, 'different text')}")


def _rule_findings(broken: Sequence[Violation]) -> Iterator[Finding]:
    for each in broken:
        verb, records = "violates" if each.records == 1 else "violate", count_noun(each.records, "record")
        yield Finding("rule-broken", f"{records} {verb} the constraint: {each.promise}")


def _not_private(release: Release) -> Iterator[Finding]:
    """Steps that spent an ε which guarantees nothing, as it or its bounds were chosen by the data."""
    for spent in release.budget.spent:
        if not spent.kept:
            yield Finding("not-private", f"the ε of {spent.mechanism} is {NO_GUARANTEE}")


def _uncovered_column_findings(outcome: PlanOutcome) -> Iterator[Finding]:
    """Columns that leave beside what an ε was spent on, whose people it does not hide."""
    if sentence := outcome.coverage.sentence:
        yield Finding(
            "not-private",
            f"{sentence} (protect every released column by private steps, including which values are "
            "missing, or drop these columns)",
        )


def _guessable(chance: ByPlace, plans: Iterable[Plan]) -> Iterator[Finding]:
    """Noise and order of the records that follow from a small number which somebody gave as the seed."""
    if chance.is_guessable and any(plan.output.shuffle or plan.recipe.stochastic for plan in plans):
        yield Finding(
            "seed-guessable",
            "the seed was given and is below 2^64: an intruder who tries all of them can undo the noise or "
            "the shuffling",
        )


def _requirement_findings(judgements: Sequence[Judgement]) -> Iterator[Finding]:
    for each in judgements:
        if not each.is_met:
            yield Finding("requirement-missed", each.sentence)


def override(decision: Decision, reason: str, folder: Path, *, sha256: str) -> Decision:
    """The decision with the reason of someone who takes it on, recorded beside what it is about."""
    if not decision.findings:
        return decision
    decision = replace(decision, override=reason)
    record_override(decision, folder, sha256=sha256)
    return decision


def record_override(decision: Decision, folder: Path, *, sha256: str) -> None:
    """Add what was overridden, and why, to the ledger of a folder."""
    ledger = (folder / PRIVATE if has_private_part(folder) else folder) / OVERRIDES
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sha256": sha256,
        "reason": decision.override,
        **replace(decision, override="").to_dict(),
    }

    def grown() -> str:
        before = ledger.read_text(encoding="utf-8") if ledger.is_file() else ""
        return before + json.dumps(line) + "\n"

    with Staging() as staging:
        staging.grow(ledger, grown)
