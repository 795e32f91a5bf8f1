"""What a release claims of itself that anybody can count again: see `check_release.py` in ``static``.

Only requirements that the equivalence classes of one released file decide are stated, with their levels and
never with the scores: whoever has the file can count those. All others are with the owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files as package_files
from typing import Any

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import joining, owners_of
from sfumato.core.measure import ClassMeasure
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.persons import with_own_numbers
from sfumato.data.schema import Column, Kind, Role
from sfumato.data.table import Table
from sfumato.errors import ReadError
from sfumato.io.delimited import TABBED
from sfumato.io.formats import FileDialect
from sfumato.io.formula_injection import escape_formulas_in
from sfumato.kernels.arrays import count_distinct
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan
from sfumato.releasing.destination import Destination
from sfumato.releasing.load import reading_of
from sfumato.releasing.outcome import PlanOutcome, TableOutcome


@dataclass(frozen=True)
class PublicClaims:
    """What is said of the released files, and what is claimed of them, as dictionaries for JSON."""

    tables: tuple[Mapping[str, Any], ...] = ()
    claims: tuple[Mapping[str, Any], ...] = ()


def read_script(name: str) -> str:
    """The text of a script that comes with each release folder."""
    return package_files("sfumato.releasing").joinpath("static", name).read_text("utf-8")


def claims_of(outcome: PlanOutcome, plan: Plan) -> PublicClaims:
    """The claims of what will be released: of each table that is one file, and that alone."""
    tables, claims = [], []
    destination = Destination(plan)
    for name, part in outcome.parts.items():
        if not part.release.plain or part.further:
            continue  # several files are judged together, and none of them tells alone
        (place,) = destination.files(name, part.release.tables).values()
        file = str(place).replace("\\", "/").rpartition("/")[2]
        released = part.release.first
        written = escape_formulas_in(released) if part.plan.output.guard else released
        names = dict(zip(released.names, written.names, strict=True))
        reading = _dialect_of(part.plan)
        tables.append(
            {
                "file": file,
                "records": len(released),
                "delimiter": "\t" if file.lower().endswith(tuple(TABBED)) else reading.delimiter or ",",
                "encoding": reading.encoding or "utf-8",
                "quotes": reading.quotes or "as needed",
                "columns": [_column(released, written, each) for each in released.schema.columns],
            }
        )
        claims += [{"file": file, **each} for each in _claims_of_table(part, names)]
    return PublicClaims(tuple(tables), tuple(claims))


def _dialect_of(plan: Plan) -> FileDialect:
    """How the file is written: as the original is read, if that is a file that is there."""
    try:
        return reading_of(plan) or FileDialect()
    except ReadError:
        return FileDialect()


def _column(table: Table, written: Table, column: Column) -> dict[str, Any]:
    """What must be known of a column to compare its cells as they are ``written``."""
    name = written.names[table.names.index(column.name)]
    series = table.frame[column.name]
    is_numeric = series.dtype.is_numeric()
    kind, order = column.kind.value, list[str]()
    if is_interval(series.dtype):
        kind = "interval"
    elif column.name in table.nodes or (is_numeric and column.order):
        kind = "group"
    elif column.kind is Kind.ORDINAL and not is_numeric:
        positions = table.numbers(column.name)
        _, firsts = np.unique(positions[~np.isnan(positions)], return_index=True)
        rows = np.flatnonzero(~np.isnan(positions))[firsts]
        order = [str(each) for each in written.frame[name].gather(rows).cast(str)]
    return {
        "column": name,
        "role": column.role.value if column.role else "",
        "kind": kind,
        "numeric": is_numeric,
        "order": order,
        "form": column.form,
        "missing": [str(code) for code in column.missing_codes],
        "missing_range": list(column.missing_range or ()),
    }


def _claims_of_table(part: TableOutcome, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """What is claimed of a table, for each intruder: what was required and is met."""
    for demand, judgement in zip(part.plan.demands, part.judgements, strict=False):  # others stand behind
        measure = demand.measure
        if isinstance(measure, ClassMeasure) and judgement.is_met and judgement.requirement.can_fail:
            yield _claim(part, demand, measure, names)


def _claim(
    part: TableOutcome, demand: Demand, measure: ClassMeasure, names: Mapping[str, str]
) -> dict[str, Any]:
    evidence = Evidence(part.original, part.release, demand.scenario)
    person = _person_column(evidence)
    links = joining(evidence) if measure.counts.joins_person_records else ()
    settings = {key: each for key, each in measure.to_dict().items() if not isinstance(each, list)}
    return {
        "scenario": demand.scenario.name,
        "measure": measure.name,
        "settings": settings,
        "sign": demand.requirement.sign,
        "level": demand.requirement.level,
        "keys": [names[each] for each in measure.keys(evidence)],
        "sensitive": [names[each] for each in measure.sensitive_columns(evidence)],
        "counted": "records" if person is None else "persons",
        "person": names.get(person or "", ""),
        "linked_by": [names[each] for each in links],
    }


def _person_column(evidence: Evidence) -> str | None:
    """The released column that tells whose each record is, "" if none does; None if each is of another."""
    original, released = evidence.original, evidence.protected
    assert released is not None  # it was judged
    if original.schema.only_role(Role.PERSON) is None and released.schema.only_role(Role.PERSON) is None:
        return None
    owners = owners_of(evidence)
    n_owners = count_distinct(owners)
    if n_owners == len(owners):
        return None
    for name in (*original.schema.with_role(Role.PERSON), *released.schema.with_role(Role.PERSON)):
        if name in released.schema:
            numbers = with_own_numbers(released.codes(name).codes)
            pairs = len(np.unique(np.column_stack((owners, numbers)), axis=0))
            if count_distinct(numbers) == n_owners == pairs:
                return name
    return ""
