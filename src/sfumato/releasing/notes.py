"""What an owner should know of a release beside its scores: what leaves as it was and tells something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np

from sfumato.core import registry
from sfumato.core.approaches import approaches
from sfumato.core.budget import PrivacyBudget
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import joining
from sfumato.core.measure import Score
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.relations.associations import find_related
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import WriteError, count_noun, quoted
from sfumato.io import FORMATS, losses
from sfumato.io.formats import written_suffix
from sfumato.recipes.plan import Plan
from sfumato.releasing.budget_coverage import coverage_of
from sfumato.releasing.safe_weights import LEAST_RECORDS, estimate_changes
from sfumato.study.column_changes import Loss
from sfumato.study.evaluate import NUMERIC_STATUSES, EvaluationCase, evaluate


def notes_of(original: Table, release: Release, lost: Sequence[Loss]) -> tuple[str, ...]:
    """Sentences on a release, in the order in which one would read them; no cell is in them."""
    unchanged = {loss.column for loss in lost if loss.fate == "untouched"}
    related = _related_column_notes(original, release, unchanged)
    return (*_on_numbers(original, release), *_on_weights(release), *related)


def format_notes(plan: Plan, release: Release) -> Iterator[str]:
    """What the format of the release cannot hold, where it or that of the original is one that has labels."""
    source, out = plan.data.path if plan.data else "", plan.output.path
    if "statistical" not in {FORMATS.get(Path(each).suffix.lower()) for each in (source, out)} or not out:
        return
    try:
        yield from (f"`{Path(out).name}`: {each}" for each in losses(release.first, out))
    except WriteError:
        return  # which writing says
    if written_suffix(source) == Path(out).suffix.lower() != Path(source).suffix.lower():
        yield f"`{Path(out).name}` has another format: that of the original can be read, but not written"


def total_budget(copies: Sequence[Release]) -> PrivacyBudget:
    """What copies of one release spent together on the same people."""
    return sum((each.budget for each in copies), PrivacyBudget())


def budget_notes(original: Table, copies: Sequence[Release]) -> Iterator[str]:
    """What ε does not cover, and what several private steps, or copies, spent together."""
    spent = total_budget(copies)
    if not spent:
        return
    uncovered = coverage_of(copies[0], original).sentence
    yield from filter(None, [uncovered])
    if len(copies[0].provenance) * len(copies) == 1:  # one says it itself
        return
    if len({(each.unit, each.neighbours) for each in spent.spent}) > 1:
        yield "the budgets of the private steps do not add up: their units or their neighbours differ"
        return
    total = spent.total()
    meant = f"no test of membership has an advantage above {total.advantage:.3f} over guessing"
    yield (
        f"all private steps and copies together spend ε = {total.epsilon:.4g}, δ = {total.delta:.2g}: "
        f"{uncovered or meant}"
    )


def measured_risk_notes(original: Table, copies: Sequence[Release], run: Run) -> Iterator[str]:
    """What can be measured of a private release: a fixed ε fixes no confidentiality (Muralidhar 2020)."""
    if not total_budget(copies):
        return
    measures = registry.measures_for("epsilon")
    case = EvaluationCase(original, resources=run.resources)
    scores = evaluate(copies[0], case, measures, run.at("beside ε").silent(), allow_sampling=True).scores
    scores_text = ", ".join(f"{name} {_score_text(score)}" for name, score in scores.items())
    part = " and does not cover all columns" if coverage_of(copies[0], original).uncovered else ""
    yield f"risks that were measured, as ε does not limit them{part}: {scores_text}"


def _score_text(score: Score) -> str:
    return f"{score.value:.4g}" if score.status in NUMERIC_STATUSES else f"is not known ({score.reason})"


def _on_numbers(original: Table, release: Release) -> Iterator[str]:
    for name in joining(Evidence(original, release)):
        yield f"`{name}` is released and links records that belong together: these are judged together"


def _on_weights(release: Release) -> Iterator[str]:
    table, exact = release.first, release.exact_weights
    name = table.schema.only_role(Role.WEIGHT)
    if name is None or any(name in step.columns for step in release.steps):  # its author knows
        return
    if exact is None:
        if table.frame[name].n_unique() > 1:
            yield (
                f"the weights in `{name}` are exact: equal weights may reveal records of one household, and "
                'a weight the stratum; without `weights = "exact"` in the output they are averaged'
            )
        return
    there = ~np.isnan(exact.values)
    before, after = exact.values[there], table.numbers(name)[there]
    if (before != after).any():
        variance, changes = float(after.var() / before.var()), estimate_changes(table, exact)
        yield _weight_averaging_note(name, exact.by, variance, changes)
    few = int((~there).sum())
    if 0 < few < LEAST_RECORDS:
        records = count_noun(few, "record")
        yield f"{records} without a weight in `{name}` can be told apart: drop or complete them"


def _weight_averaging_note(
    name: str, by: Sequence[str], variance: float, changes: Mapping[str, float]
) -> str:
    """What was lost by averaging weights."""
    totals = f"by {quoted(by)}, so that totals by these stay" if by else "over all: their sum stays"
    worst = max(changes, key=lambda each: changes[each], default="")
    others = f"; other means and shares change by up to {changes[worst]:.1%} (`{worst}`)" if worst else ""
    left = f"{variance:.0%} of their variance is left"
    return f"the weights in `{name}` are averaged {totals} exact; {left}{others}"


def _related_column_notes(original: Table, release: Release, unchanged: AbstractSet[str]) -> Iterator[str]:
    """Columns left as they were that may give a changed key back; what surely does is judged, and said so."""
    found = approaches(Evidence(original, release), round_numbers=False)  # which are by no column
    judged = [each for each in found if each.by and not each.opens_cells]
    yield from (f"risks are judged also for an intruder who reads the release {each.name}" for each in judged)
    schema, used = original.schema, {name for each in judged for name in each.by}
    there = [each for each in schema.columns if each.name in release.reading().schema]
    groups = schema.related or [each.columns for each in find_related(original.frame, there)]
    for group in groups:
        left = [name for name in group if name in release.reading().schema]
        changed = [name for name in schema.with_role(Role.KEY) if name in left and name not in unchanged]
        others = [name for name in left if name in unchanged - used and schema[name].role is not Role.KEY]
        if changed and others:
            hidden, shown = (quoted(names, " and ") for names in (changed, others))
            yield f"{shown} may reveal {hidden}: they are related, and {shown} is unchanged"
