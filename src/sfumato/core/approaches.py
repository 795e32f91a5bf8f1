"""How an intruder goes about it: by the records as they are, and by what the release lets them put together.

Every risk is scored by each approach, and the worst counts (`sfumato.core.measure.Measure.score`). Which
relations there are is found in `sfumato.data.relations`; of a release without any there is one approach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import polars as pl

from sfumato.core.evidence import Evidence, JoinedRecords
from sfumato.core.intruder_view import regroupings_of
from sfumato.data.relations.invariants import KINDS, KeptRelation, changed_columns, kept_relations
from sfumato.data.relations.joining import group_links
from sfumato.data.relations.key_inference import RevealingColumn, telling_columns
from sfumato.data.relations.readings import (
    with_likely_values,
    with_open_cells,
    with_original_numbers,
)
from sfumato.data.scenario import CONTROL
from sfumato.data.schema import Role
from sfumato.data.table import Table
from sfumato.errors import quoted

#: Ways to put the units of one column together again by which risks are judged: those that succeed most.
_MOST_REGROUPINGS = 2


@dataclass(frozen=True)
class Approach:
    """One way to look at the evidence, how it is called in a sentence, and the columns it makes use of.

    The plain one has no name and uses what is known as it is released. One that ``compares_values`` in
    another form is for measures that compare what is known with what is released, and one that
    ``adds_columns`` to what is known is none for a mean over the columns. One that ``opens_cells`` takes
    suppressed ones for any value, for measures that look for the nearest record, and one that
    ``rounds_numbers`` is for those that ask whether values are equal. One that ``fills_values`` takes what is
    suppressed of the other columns for what those have who are alike, for measures of what can be learnt.
    """

    evidence: Evidence
    name: str = ""
    by: tuple[str, ...] = ()
    compares_values: bool = False
    adds_columns: bool = False
    opens_cells: bool = False
    rounds_numbers: bool = False
    fills_values: bool = False


def approaches(evidence: Evidence, *, round_numbers: bool = True) -> tuple[Approach, ...]:
    """The plain approach first; where a release is judged, one for each relation that it keeps.

    Who does not ``round_numbers`` is not made to wait for those that do: each column is sorted for them.
    """
    if evidence.protected is None or evidence.sampling.ignore_person_links:
        return (Approach(evidence),)
    parts = [_plain_approaches, _further_approaches]
    if round_numbers:
        parts.insert(1, _snapping_approaches)
    return tuple(
        chain.from_iterable(evidence.remember(each, partial(tuple, each(evidence))) for each in parts)
    )


def _plain_approaches(evidence: Evidence) -> Iterator[Approach]:
    plain = Approach(evidence)
    yield plain
    yield from _wildcard_approaches(plain)


def _further_approaches(evidence: Evidence) -> Iterator[Approach]:
    for each in _comparing(evidence):
        yield each
        yield from _wildcard_approaches(each)
    for informed in _approaches_by_inference(evidence):
        yield informed
        yield from _wildcard_approaches(informed)
        evidence = informed.evidence
    yield from _imputing_approaches(evidence)
    yield from _approaches_by_joining(evidence)
    yield from _attacks_on_regrouped_records(evidence)


def _snapping_approaches(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who takes a number that is hardly apart from one of the original's for that one."""
    assert evidence.protected is not None  # nothing is put together of the raw table
    original, released = evidence.original, evidence.protected
    read = evidence.remember_for_all(
        "original numbers", lambda: with_original_numbers(original, released, evidence.shared_columns)
    )
    if read is not released:
        name = "with numbers as fine as the original's"
        snapped = Approach(evidence.read_as(read), name, rounds_numbers=True)
        yield snapped
        yield from _wildcard_approaches(snapped)


def _wildcard_approaches(approach: Approach) -> Iterator[Approach]:
    """The same intruder, who takes a missing cell for any value where some were suppressed."""
    evidence = approach.evidence
    released, names, rows = evidence.protected, evidence.known_columns, evidence.source_rows
    assert released is not None  # nothing is put together of the raw table
    opened = evidence.remember_for_all(
        ("open cells", names), lambda: with_open_cells(evidence.original, released, rows, names)
    )
    if opened is not released:
        name = (
            f"{approach.name or 'with'}{' and' if approach.name else ''} suppressed cells taken for any value"
        )
        yield replace(approach, evidence=evidence.read_as(opened), name=name, opens_cells=True)


def _imputing_approaches(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who takes suppressed values for the most frequent ones of those who are alike."""
    released, known = evidence.protected, evidence.known_columns
    assert released is not None  # nothing is put together of the raw table
    if not evidence.release or not evidence.release.plain:
        return
    names = [name for name in evidence.shared_columns if name not in known]
    read = evidence.remember_for_all(
        ("likely values", known),
        lambda: with_likely_values(evidence.original, released, evidence.source_rows, known, names),
    )
    if read is not released:
        name = "with suppressed values taken for the most frequent of those who are alike"
        yield Approach(evidence.read_as(read), name, fills_values=True)


def _comparing(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who compares differences, ratios, ranks or a linear map that the release keeps."""
    for view in kept_views(evidence):
        derived = [name for name in view.scenario.columns if name not in evidence.original.schema]
        by = tuple(name for name in evidence.known_columns if name not in view.scenario.columns)
        yield Approach(view, f"by {' and '.join(derived)}", by, compares_values=True)


def _approaches_by_inference(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who reads changed keys from columns that tell them, and then knows what these imply."""
    rows, released = evidence.source_rows, evidence.protected
    assert released is not None  # nothing is put together of the raw table
    if rows is None or evidence.synthetic:
        return
    schema = evidence.original.schema
    known = tuple(sorted(schema.resolve(evidence.scenario.columns) or schema.known_columns()))
    plain = released
    found = evidence.remember_for_all(
        ("telling columns", known), lambda: telling_columns(evidence.original, plain, rows, known)
    )
    for each in found.tellings:
        released = _read_from(released, each, evidence.original)
    by = tuple(each.by for each in found.tellings)
    names = [f"`{each.key}` as `{each.by}` tells it" for each in found.tellings]
    informed = replace(evidence.read_as(released), scenario=replace(evidence.scenario, columns=known))
    if names:
        yield Approach(informed, f"with {' and '.join(names)}", by)
    if found.implied:
        names.append(f"{quoted(found.implied, ' and ')} known by what implies it")
        further = replace(informed, scenario=replace(informed.scenario, columns=(*known, *found.implied)))
        yield Approach(further, f"with {' and '.join(names)}", (*by, *found.implied), adds_columns=True)


def _read_from(released: Table, telling: RevealingColumn, original: Table) -> Table:
    """The table with a key as a column tells it."""
    rows = pl.Series(telling.rows)
    values = original.frame[telling.key].gather(rows.set(rows < 0, None))
    nodes = {name: each for name, each in released.nodes.items() if name != telling.key}
    if telling.key in original.nodes:
        nodes[telling.key] = original.nodes[telling.key]
    column = original.schema[telling.key]
    frame, schema = released.frame.with_columns(values.alias(column.name)), released.schema.replace(column)
    return replace(released, frame=frame, schema=schema, nodes=nodes)


def _approaches_by_joining(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who puts the records of each group together that a number or pseudonym tells."""
    assert evidence.protected is not None  # nothing is put together of the raw table
    known = set(evidence.known_columns)
    for name, numbers in group_links(evidence.protected, evidence.original).items():
        if name not in known:  # what is known of a record is compared as it is
            joined = replace(evidence, joined=JoinedRecords(name, numbers))
            yield Approach(joined, f"by the records that `{name}` joins", (name,))


def _attacks_on_regrouped_records(evidence: Evidence) -> Iterator[Approach]:
    """The intruder who puts records together again by columns that nobody declared to join them.

    By known columns alone records are put together that are alike in them: who is so is looked at anyhow.
    """
    known, counts = set(evidence.known_columns), dict[str, int]()
    for each in regroupings_of(evidence):
        counts[each.unit] = counts.get(each.unit, 0) + (new := not known.issuperset(each.columns))
        if new and counts[each.unit] <= _MOST_REGROUPINGS:
            joined = replace(evidence, joined=JoinedRecords(" × ".join(each.columns), each.numbers))
            by = quoted(each.columns)
            yield Approach(joined, f"by the records put together again by {by}", each.columns)


def kept_views(evidence: Evidence) -> tuple[Evidence, ...]:
    """The evidence as an intruder sees it who compares what the release keeps in place of changed values.

    One view for the differences, one for the ratios, one for the ranks, one for a linear map, and one for all
    of them that leaves out columns whose changed values keep nothing. None where nothing is released or
    kept, nobody knows whose the records are, or the intruder holds another table.
    """
    released, rows = evidence.protected, evidence.source_rows
    if released is None or rows is None or evidence.synthetic or evidence.scenario.external:
        return ()

    def make() -> tuple[Evidence, ...]:
        known = evidence.known_columns
        found = evidence.remember_for_all(
            ("kept", known), lambda: kept_relations(evidence.original, released, rows, known)
        )
        kinds = [[each for each in found if each.kind == kind] for kind in KINDS]
        views = [_with_kept_relations(evidence, group, known) for group in kinds if group]
        own = {name for relation in found for name in relation.columns}
        noisy = found and {*changed_columns(evidence.original, released, rows, known)} - own
        if len(views) > 1 or noisy:
            views.append(_with_kept_relations(evidence, found, [name for name in known if name not in noisy]))
        return tuple(views)

    return evidence.remember("kept", make)


def _with_kept_relations(
    evidence: Evidence, relations: Sequence[KeptRelation], known: Sequence[str]
) -> Evidence:
    """The evidence with what is kept in place of the columns, each of which is replaced once."""
    original, released, names = evidence.original, evidence.protected, list(known)
    assert released is not None  # else nothing is kept
    assert evidence.source_rows is not None
    sources = original.take(evidence.source_rows[evidence.source_rows >= 0])
    resources: dict[str, Any] = dict(evidence.resources)
    for relation in relations:
        if not set(relation.columns) <= set(names):
            continue
        original = _with_derived_keys(original, relation)
        released = _with_derived_keys(released, relation, released=True)
        for name, each in resources.items():
            if isinstance(each, Table) and relation.fits(each):  # ranks of a population: the sample's
                resources[name] = _with_derived_keys(
                    each, relation, among=None if name == CONTROL else sources
                )
        names = [name for name in names if name not in relation.columns] + list(relation.names)
    scenario = replace(evidence.scenario, columns=tuple(names))
    return replace(evidence, original=original, scenario=scenario, resources=resources).read_as(released)


def _with_derived_keys(
    table: Table, relation: KeptRelation, among: Table | None = None, *, released: bool = False
) -> Table:
    """The table with what is kept as keys; the columns themselves stay, for who names them, as others."""
    derived = relation.derive(table, among, released=released)
    for name in relation.columns:
        column = table.schema[name]
        column = column if column.role is Role.SENSITIVE else replace(column, role=Role.OTHER)
        derived = derived.with_values(name, table.frame[name], column=column)
    return derived
