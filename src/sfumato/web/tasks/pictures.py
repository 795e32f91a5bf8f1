"""What is shown and never written down: charts of the report, and the records most at risk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import ParameterError
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.load import load_resources
from sfumato.web.tasks.base import Desk, read_plan, task
from sfumato.web.tasks.scores import intruders_of


@task
def pictures(desk: Desk, *, toml: str) -> dict[str, Any]:
    """The sections and charts of the internal report of what a plan makes."""
    from sfumato.report.lattice import lattices_of
    from sfumato.report.page import sections_of_release
    from sfumato.report.pair_charts import PARTS
    from sfumato.report.pictures import specs_of
    from sfumato.report.release_result import Released

    plan, run = read_plan(toml), desk.run()
    table = desk.table(plan)
    outcome = carry_out(plan, run, table=table)
    lattices = lattices_of(plan.recipe, table, desk.run(load_resources(plan)))
    drawn = {f"lattice-{each['step']}": each.pop("chart") for each in lattices if "chart" in each}
    released = Released(outcome, None, "the steps of the plan", run, about=plan.about, seconds=60.0)
    content = released.tell().to_dict(public=False)
    sections = sections_of_release(content)
    parts = next((each.parts for each in sections if each.title == "Distributions"), ())
    entries = content.get("distributions", ())  # several tables have theirs each: then none is by column
    pairs = (content.get("mosaics") or {}).get("pairs", ())
    return {
        "about": {
            **{
                name: [entry["column"]]
                for entry, part in zip(entries, parts, strict=False)
                for name in part.charts
            },
            **{f"mosaic-{n}-{part}-0": each["columns"] for n, each in enumerate(pairs) for part in PARTS},
        },
        "sections": [each.to_dict() for each in sections],
        "charts": {**specs_of(sections), **drawn},
        "lattices": lattices,
        "threshold": _thresholds(content.get("individual_risk")),
        "columns": {
            entry["column"]: {"charts": list(part.charts), "notes": list(part.notes)}
            for entry, part in zip(entries, parts, strict=False)
        },
    }


def _thresholds(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The thresholds that a line can be moved to, each with what lies above it in words."""
    if not found:
        return None
    records = found["records"]["release"]
    return {
        "at": next(place for place, row in enumerate(found["slider"]) if row[0] == found["threshold"]),
        "stops": [
            {
                "threshold": stop, "at_risk": above, "rate": rate,
                "sentence": f"{above:,} of {records:,} records have a risk above {stop:.4g}. If they were "
                f"protected down to it, {rate:.2%} of all records would be expected to be re-identified.",
            }
            for stop, above, rate in found["slider"]
        ],
    }  # fmt: skip


@task
def find_riskiest(desk: Desk, *, toml: str) -> dict[str, Any]:
    """The records most at risk from the intruder who knows most, and what would hide each; no value."""
    from sfumato.web.riskiest import list_riskiest

    plan = read_plan(toml)
    strongest = intruders_of(plan)[0]["name"]
    scenario = next(each for each in plan.scenarios if each.name == strongest)
    return list_riskiest(plan, desk.table(plan), scenario, desk.run())


@task
def reveal_record(desk: Desk, *, toml: str, row: int) -> dict[str, Any]:
    """The values of one record of the original. They are shown once and kept nowhere."""
    from sfumato.explain.keys import cell

    table = desk.table(read_plan(toml))
    if not 0 <= row < len(table):
        raise ParameterError(f"There is no record {row} in this file.")
    return {name: cell(table, name, row) for name in table.names}
