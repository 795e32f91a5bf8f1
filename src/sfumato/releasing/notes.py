"""What an owner should know of a release beside its scores: what leaves as it was and tells something."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sfumato.core.release import Release
from sfumato.data.guess.relations import find_related
from sfumato.data.persons import joining
from sfumato.data.schema import Role
from sfumato.data.table import Table

#: Weights of so many different sizes or more tell strata, and people in them.
FEW_WEIGHTS = 10


def notes_of(original: Table, release: Release) -> tuple[str, ...]:
    """Sentences on a release, in the order in which one would read them; no cell is in them."""
    return (
        *_on_numbers(original, release),
        *_on_weights(original, release),
        *_on_related(original, release),
    )


def _on_numbers(original: Table, release: Release) -> Iterator[str]:
    for name in joining(release.against(original)):
        yield f"`{name}` stays and tells which records belong together: they are judged together"


def _on_weights(original: Table, release: Release) -> Iterator[str]:
    for name in release.table.schema.with_role(Role.WEIGHT):
        if release.table.frame[name].n_unique() >= FEW_WEIGHTS and _is_unchanged(original, release, name):
            yield f"the weights in `{name}` are exact: they tell the stratum, and few may share one"


def _on_related(original: Table, release: Release) -> Iterator[str]:
    schema = original.schema
    there = [each for each in schema.columns if each.name in release.table.schema]
    groups = schema.related or [each.columns for each in find_related(original.frame, there)]
    for group in groups:
        left = [name for name in group if name in release.table.schema]
        kept = [name for name in left if _is_unchanged(original, release, name)]
        changed = [name for name in schema.with_role(Role.KEY) if name in left and name not in kept]
        others = [name for name in kept if schema[name].role is not Role.KEY]
        if changed and others:
            yield f"{_listed(others)} left as it was may give {_listed(changed)} back: they are related"


def _is_unchanged(original: Table, release: Release, name: str) -> bool:
    """Whether a column leaves with all of its values where they were."""
    rows, now = release.source_rows, release.table.frame[name]
    if rows is None or name not in original.schema or (rows < 0).any():
        return False
    before = original.frame[name].gather(pl.Series(rows))
    if before.dtype != now.dtype:
        before, now = before.cast(pl.String, strict=False), now.cast(pl.String, strict=False)
    return bool(before.eq_missing(now).all())


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
