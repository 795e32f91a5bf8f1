"""The records most at risk under a plan, by their rows, and what would hide each; values stay masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import COMPARABLE
from sfumato.data.table import Table
from sfumato.explain import riskiest_records
from sfumato.explain.keys import KeyExplanation, KeyRemedy, explain_keys
from sfumato.explain.steps import rows_of
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.load import load_resources

#: Records that are listed, and ways to hide each that are told.
_RECORDS, _WAYS = 10, 4


def list_riskiest(plan: Plan, table: Table, scenario: Scenario, run: Run) -> dict[str, Any]:
    """The records most at risk once the plan is carried out, the riskiest first; no value of any."""
    part = next(iter(carry_out(plan, run, table=table).parts.values()))
    original, release, schema = part.original, part.release, part.original.schema
    found = riskiest_records(
        original, _RECORDS, release, run=run, scenario=scenario, resources=load_resources(plan)
    )
    known = schema.resolve(scenario.columns) or schema.known_columns()
    measure = parse_measure(found.measure)
    records = [
        {
            "row": row,
            "sentence": measure.sentence(value),
            **_hiding(release, row, known, plan.class_size),
        }
        for row, value in zip(found.rows.tolist(), found.values.tolist(), strict=True)
    ]
    return {
        "intruder": scenario.name, "measure": found.title, "as_risky": found.as_risky, "of": found.records,
        "k": plan.class_size, "records": records,
    }  # fmt: skip


def _hiding(release: Release, row: int, known: Sequence[str], k: int) -> dict[str, Any]:
    """How many share the record's keys in the release, and what would bring them to k."""
    places, seen = rows_of(release, row), release.reading()
    keys = [name for name in known if name in seen.schema and seen.schema[name].kind in COMPARABLE]
    if places is None or not places or not keys:
        why = "its records are synthetic" if places is None else "it is not in the release"
        return {"class_size": None, "note": why if not places else "no key can be compared", "ways": []}
    story = explain_keys(seen, places[0], keys, k=k)
    return {
        "class_size": story.class_size,
        "note": _unique_in(story),
        "ways": [_mask(each) for each in story.remedies[:_WAYS]],
    }


def _unique_in(story: KeyExplanation) -> str:
    """In which keys a record is alone, by their names."""
    some = [" with ".join(names) for names in story.unique_in[:_WAYS]]
    return f"alone by {'; by '.join(some)}" if some else ""


def _mask(remedy: KeyRemedy) -> str:
    """What would hide a record, without the ends of a range: they are cells."""
    how = "given as a range" if remedy.how.startswith("as the range") else remedy.how
    return f"{', '.join(remedy.keys)} {how}: then {remedy.size:,} are alike"
