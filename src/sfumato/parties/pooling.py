"""Protected records on their way into one file: what a party sends of each, and what the leader makes of all.

A record is the number of its class at the agreed levels, and its columns that are no keys. A suppressed one
has the number after the last class; one that is left out is not sent.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.table import Table
from sfumato.errors import RefusedError
from sfumato.methods.global_recoding import RecodingResult
from sfumato.parties.party_plan import PartyPlan
from sfumato.parties.search import AgreedRecoding, problem_of
from sfumato.recipes.recipe import Recipe
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.outcome import PlanOutcome

#: The column of the classes; no file has a column of this name.
_CLASS = "\0class"


def protected_records(party_plan: PartyPlan, agreed: AgreedRecoding, table: Table, release: Release) -> bytes:
    """What a party sends of the release of its part."""
    domain, rows = party_plan.domain, release.source_rows
    assert rows is not None  # a recoding makes no new records
    classes = domain.classes(domain.codes(table.take(rows)), agreed.node)
    shown = np.where(agreed.failing[classes], len(agreed.failing), classes)
    others = [release.table.frame[name] for name in party_plan.released_columns]
    body = io.BytesIO()
    pl.DataFrame([pl.Series(_CLASS, shown, dtype=pl.UInt32), *others]).write_ipc(body)
    return body.getvalue()


def release_pooled(
    party_plan: PartyPlan, agreed: AgreedRecoding, parts: Mapping[str, bytes], run: Run
) -> PlanOutcome:
    """Carry out the release of all protected records as one table; they are the leader's original."""
    table = pool(party_plan, agreed, parts, run)
    plan = party_plan.judged(party_plan.plan)
    plan = replace(plan, schema=table.schema, recipe=Recipe(), output=replace(plan.output, drop=()))
    note = f"records of {len(parts)} parties, recoded by them before they came; {agreed.sentence()}"
    release = Release.record_by_record(table, notes=(note,))
    return carry_out(plan, run, protect=lambda *_: release, table=table)


def pool(party_plan: PartyPlan, agreed: AgreedRecoding, parts: Mapping[str, bytes], run: Run) -> Table:
    """The protected records of all parties in one table, in an order that tells nothing of who sent them."""
    domain, schema, n_classes = party_plan.domain, party_plan.plan.schema, len(agreed.failing)
    assert schema is not None  # else the plan has faults
    try:
        frame = pl.concat([pl.read_ipc(io.BytesIO(part)) for part in parts.values()], how="vertical_relaxed")
        order = run.rng("parties", "pool").permutation(len(frame))
        frame = frame[pl.Series(order, dtype=pl.UInt32)]
        classes = frame[_CLASS].cast(pl.UInt32).to_numpy().astype(np.int64)
        others = {name: frame[name] for name in party_plan.released_columns}
    except pl.exceptions.PolarsError:
        raise RefusedError(
            "the records of the parties do not fit each other, so nothing was written"
        ) from None
    n_expected = agreed.n_records - (agreed.n_suppressed if agreed.leftover == "dropped" else 0)
    inside = len(classes) == n_expected and (classes <= n_classes).all()
    if not inside or agreed.failing[classes[classes < n_classes]].any():
        raise RefusedError(
            "the records of the parties are not those that were counted, so nothing was written"
        )
    suppressed = classes == n_classes
    keys = domain.table(domain.examples(np.where(suppressed, 0, classes), agreed.node)).frame
    names = [name for name in schema.names if name not in party_plan.plan.left_out]
    columns = [keys[name] if name in domain.names else others[name] for name in names]
    problem = problem_of(party_plan, Table(pl.DataFrame(columns), schema.select(names)), run)
    return RecodingResult(agreed.node, suppressed, "suppressed").release(problem).table
