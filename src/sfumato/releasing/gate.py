"""The gate before a release: everything that keeps a plan or a file from leaving, as findings.

What blocks yields only to someone who overrides it with a reason, and the reason is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.core.budget import NO_GUARANTEE
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.checks import Violation, violations
from sfumato.data.guess.columns import guess
from sfumato.data.persons import joining_columns
from sfumato.data.schema import Column, Role
from sfumato.data.table import Table
from sfumato.errors import RequirementError, counted
from sfumato.io import Staging
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan, bare_numbers
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.outcome import Judgement, Outcome
from sfumato.releasing.sums import OVERRIDES, PRIVATE, has_private_part
from sfumato.study.evaluate import Case, evaluate

#: What is looked for, by name, and what must hold.
RULES: Mapping[str, str] = {
    "identifier-left-in": "no column may name people",
    "role-missing": "every column must have a role",
    "rule-broken": "every record must keep what the schema promises",
    "nothing-required": "something must be required of the release",
    "requirement-missed": "every requirement must be met",
    "not-private": "what is spent for differential privacy must be a guarantee",
}


@dataclass(frozen=True)
class Finding:
    """One thing that keeps a release from leaving: the rule it breaks, and how."""

    rule: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """As a dictionary for JSON."""
        return {"rule": self.rule, "must": RULES[self.rule], "message": self.message}


@dataclass(frozen=True)
class Verdict:
    """What the gate says of a plan or file: the findings that block it, and the requirements it meets."""

    subject: str
    findings: tuple[Finding, ...]
    met: tuple[str, ...] = ()
    override: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the release may leave: nothing blocks it, or someone has taken that on with a reason."""
        return not self.findings or bool(self.override)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        return {
            "subject": self.subject,
            "open": self.is_open,
            "findings": [each.to_dict() for each in self.findings],
            "met": list(self.met),
            **({"override": self.override} if self.override else {}),
        }


def gate_plan(plan: Plan, run: Run, *, subject: str) -> Verdict:
    """Carry a plan out without writing anything, and say what keeps its release from leaving."""
    if blockers := plan.blockers():
        return Verdict(subject, tuple(Finding("role-missing", each) for each in blockers))
    return gate_outcome(carry_out(plan, run), subject=subject)


def gate_outcome(outcome: Outcome, *, subject: str, unjudged: bool = False) -> Verdict:
    """Say what keeps the outcome of a plan from leaving; it may be ``unjudged`` where nothing is asked."""
    findings = [
        replace(finding, message=(f"{name}: " if name else "") + finding.message)
        for name, part in outcome.parts.items()
        for finding in (
            *_identifiers(part.release.reading()),
            *_broken(part.broken),
            *_not_private(part.release),
            *_missed(part.judgements, "" if part.judgements else "; ".join(outcome.unjudged)),
        )
        if not (unjudged and finding.rule == "nothing-required")
    ]
    return Verdict(subject, tuple(findings), _met(outcome.judgements))


def gate_file(
    table: Table,
    demands: Sequence[Demand],
    run: Run,
    *,
    subject: str,
    original: Table | None = None,
    release: Release | None = None,
) -> Verdict:
    """Say what keeps a file from leaving as it is.

    With the ``original`` and the ``release`` that was made of it, measures that need both can be required;
    alone the file is judged as its own release, and what needs the original is not met.
    """
    undecided, alone = table.schema.undecided(), original is None
    case = Case(_as_keys(table if original is None else original, undecided), resources=run.resources)
    if alone and joining_columns(table):
        release = Release.unchanged(case.table)
    judgements = []
    for demand in demands:
        seen = None if alone and demand.measure.needs.release else release
        (score,) = evaluate(seen, case, [demand], run).scores.values()
        judgements.append(Judgement(demand.requirement, demand.scenario.name, score))
    roles = [Finding("role-missing", f"nobody has said what `{name}` is to others") for name in undecided]
    found = [*_identifiers(table), *roles, *_broken(violations(table)), *_missed(judgements, "")]
    return Verdict(subject, tuple(found), _met(judgements))


def require_open(verdict: Verdict) -> None:
    """Raise what keeps a release from leaving, unless someone has taken it on."""
    if not verdict.is_open:
        count = len(verdict.findings)
        said = "; ".join(f"{each.rule}: {each.message}" for each in verdict.findings)
        raise RequirementError(
            f"{verdict.subject} must pass the gate to leave, got: {counted(count, 'finding')}; {said}",
            hint='mend them; or --override "REASON", which is recorded',
        )


def _as_keys(table: Table, names: Sequence[str]) -> Table:
    """What nobody has decided counts as known to others, so that no requirement is met by not looking."""
    own = [replace(table.schema[name], role=Role.KEY) for name in names if name in table.schema]
    return replace(table, schema=table.schema.replace(*own))


def _identifiers(table: Table) -> Iterator[Finding]:
    """Columns that are declared to name people, or look as if they did, whatever was declared of them.

    A key that only its name speaks against, as of a hospital's number, is judged as a key where several share
    each value.
    """
    schema = table.schema
    for said in bare_numbers(schema, ()):
        yield Finding("identifier-left-in", said)
    numbers = {Role.PERSON, Role.HOUSEHOLD}
    for proposal in guess(table.frame):
        declared = schema[proposal.column.name]
        if declared.pseudonym or declared.role in numbers:
            continue
        if declared.role is Role.IDENTIFIER:
            yield Finding("identifier-left-in", f"`{declared.name}` is declared an identifier")
        elif proposal.column.role is Role.IDENTIFIER and not _is_shared_key(table, declared):
            yield Finding(
                "identifier-left-in", f"`{declared.name}` looks as if it named people: {proposal.role_reason}"
            )


def _is_shared_key(table: Table, column: Column) -> bool:
    shown = table.frame.select(pl.col(column.name).alias("column"))
    (by_values,) = guess(shown)
    if column.role is not Role.KEY or by_values.column.role is Role.IDENTIFIER:
        return False
    shares = shown.drop_nulls().group_by("column").len()["len"]
    return len(shares) > 0 and int(shares.min()) > 1  # type: ignore[arg-type]


def _broken(broken: Sequence[Violation]) -> Iterator[Finding]:
    for each in broken:
        yield Finding("rule-broken", f"{each.records} records break the promise that {each.promise}")


def _not_private(release: Release) -> Iterator[Finding]:
    """Steps that spent an ε which guarantees nothing, as it or its bounds were chosen by the data."""
    for spent in release.budget.spent:
        if not spent.kept:
            yield Finding("not-private", f"the ε of {spent.mechanism} is {NO_GUARANTEE}")


def _missed(judgements: Sequence[Judgement], stake: str) -> Iterator[Finding]:
    if not judgements:
        yield Finding("nothing-required", stake or "nobody has said what it must meet")
    for each in judgements:
        if not each.met:
            yield Finding("requirement-missed", f"{each.scenario}: {each.requirement.verdict(each.score)}")


def _met(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    return tuple(
        f"{each.scenario}: {each.requirement.verdict(each.score)}" for each in judgements if each.met
    )


def overridden(verdict: Verdict, reason: str, folder: Path, *, sha256: str) -> Verdict:
    """The verdict with the reason of someone who takes it on, recorded beside what it is about."""
    if not verdict.findings:
        return verdict
    ledger = (folder / PRIVATE if has_private_part(folder) else folder) / OVERRIDES
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sha256": sha256,
        "reason": reason,
        **verdict.to_dict(),
    }
    kept = ledger.read_text(encoding="utf-8") if ledger.is_file() else ""
    with Staging() as staging:
        staging.write_text(ledger, kept + json.dumps(line) + "\n", private=True, grows=True)
    return replace(verdict, override=reason)
