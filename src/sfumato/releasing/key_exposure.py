"""What is at stake in a release: who is alone in what others may know, and steps that changed nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.table import Table
from sfumato.recipes.plan import Plan
from sfumato.risk.anonymity import KAnonymity
from sfumato.study.column_changes import Loss
from sfumato.study.column_sentences import join_names
from sfumato.study.evaluate import EvaluationCase, evaluate


@dataclass(frozen=True)
class KeyExposure:
    """How few are alike in the keys: the smallest number, and how many of how many are alone."""

    k: int
    alone: int
    of: int
    counted: str  # in records, persons or households
    keys: tuple[str, ...]

    def sentence(self) -> str:
        """What is at stake in one line, as in "k = 1: 3,000 of 3,000 records are alone in …"."""
        where = f"`{'`, `'.join(self.keys)}`"
        if self.k > 1:
            return f"k = {self.k}: at least {self.k} {self.counted} share each combination of {where}"
        verb = "is" if self.alone == 1 else "are"
        counting = "" if self.counted == "records" else f", counted in {self.counted}"
        return f"k = {self.k}: {self.alone:,} of {self.of:,} records {verb} unique on {where}{counting}"


def key_exposure_of(plan: Plan, original: Table, release: Release | None, run: Run) -> KeyExposure | None:
    """Who is alone in what the plan's intruders know together of a release (None: of the raw table).

    None where nobody can tell, as there is no such column.
    """
    known = tuple(dict.fromkeys(name for scenario in plan.scenarios for name in scenario.columns))
    case, asked = EvaluationCase(original, Scenario(columns=known), run.resources), KAnonymity()
    score = evaluate(release, case, [asked], run.silent()).scores[str(asked)]
    if not score.value >= 0:  # refused, or of an empty table
        return None
    details = score.details
    return KeyExposure(
        k=int(score.value),
        alone=int(details["records_below_2"]),
        of=int(details["records"]),
        counted=str(details["counted"]),
        keys=asked.columns(case.evidence(release)),
    )


def warnings_of(plan: Plan, lost: Sequence[Loss], stake: KeyExposure | None, *, fewer: bool) -> Iterator[str]:
    """What must be known of what came of a plan, whatever was required; it may be ``fewer`` records."""
    yield from plan.vacuous
    if stake is not None and stake.k <= 1:
        yield f"in the release {stake.sentence()}"
    fates = {loss.column: loss.fate for loss in lost}
    for number, step in enumerate(plan.recipe.steps, start=1):
        columns = step.resolve(plan.schema) if plan.schema else ()
        gives = step.method.gives
        if gives.deassociated or (fewer and gives.other_records):  # it changes other columns
            continue
        if columns and all(fates.get(name) == "untouched" for name in columns):
            yield f"step {number} ({step.method.name}) changed nothing in {join_names(columns)}"
