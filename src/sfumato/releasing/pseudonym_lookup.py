"""Looking back: whose number a pseudonym is, for the owner, who has the data and the key."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sfumato.data.generalised.nodes import canonical_text
from sfumato.data.pseudonyms import derive_key, pseudonyms
from sfumato.errors import PlanError, ReadError
from sfumato.recipes.plan import Plan
from sfumato.releasing.load import load
from sfumato.releasing.pseudonym_keys import keys_of


def look_up(
    plan: Plan, names: Sequence[str], *, secret: bytes | None = None
) -> dict[str, list[tuple[str, str]]]:
    """Whose pseudonyms these are: of each the columns of the plan's data with its number, and the number.

    Parameters
    ----------
    plan
        As it was released: its data are read, and the key that its output names.
    names
        The pseudonyms. One that belongs to nobody has an empty list.
    secret
        That of the run (see `ByPlace.person_secret`), for pseudonyms without a key of their own.
    """
    keys, new = keys_of(plan)
    if new:
        raise ReadError(f"Key not found: {next(iter(new))}")
    wanted = pl.Series([name.strip().lower() for name in names], dtype=pl.String)
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    by_name = dict(zip(wanted, names, strict=True))
    for table_name, part in plan.parts.items():
        if part.schema is None or not any(column.pseudonym for column in part.schema.columns):
            continue
        own = keys.get(table_name, secret)
        if own is None:
            raise PlanError(
                "the plan names no `pseudonym_key` in its output",
                hint="the private trail of the release has the key then: name it with --trail",
            )
        table = load(part)
        for column in table.schema.columns:
            if column.pseudonym:
                numbers = table.frame[column.name].filter(~pl.Series(table.missing(column.name))).unique()
                renamed = pseudonyms(numbers, derive_key(own, column.pseudonym))
                hits = renamed.is_in(wanted.implode())
                where = f"{table_name}.{column.name}" if table_name else column.name
                for name, number in zip(
                    renamed.filter(hits), canonical_text(numbers.filter(hits)), strict=True
                ):
                    found[by_name[name]].append((where, number))
    return found
