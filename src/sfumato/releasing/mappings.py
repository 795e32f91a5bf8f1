"""Which label each value of a recoded column got: for the owner, who must be able to explain the release."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from sfumato.core import registry
from sfumato.core.release import Release
from sfumato.data.generalised.nodes import WILDCARD
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.io import codebook
from sfumato.io.formula_injection import guarded_texts
from sfumato.releasing.outcome import PlanOutcome, TableOutcome

_NOT_IN_NAMES = re.compile(r"[^\w-]+")
_LONGEST = 80


def is_mapping(name: str) -> bool:
    """Whether a file of a release folder is called like a mapping table."""
    return name.startswith("mapping.") and name.endswith(".csv")


def mapping_files(outcome: PlanOutcome) -> dict[str, str]:
    """The mapping tables of a release as CSV, by the names of their files."""
    files: dict[str, str] = {}
    for table, part in outcome.parts.items():
        for column, mapping in mappings_of(part).items():
            words = [_NOT_IN_NAMES.sub("_", each)[:_LONGEST] for each in (table, column) if each]
            named = f"mapping.{'.'.join(words)}"
            alike = sum(each.casefold().startswith(f"{named}.".casefold()) for each in files)
            texts = guarded_texts(mapping.drop("records").cast(pl.String)) if part.plan.output.guard else ()
            files[f"{named}{f'.{alike + 1}' if alike else ''}.csv"] = mapping.with_columns(texts).write_csv()
    return files


def mappings_of(part: TableOutcome) -> dict[str, pl.DataFrame]:
    """By column what each value became, and in how many records, where each value became one label.

    Suppressed cells have a line of their own. A column in which chance had a part, or in which the same value
    has other labels in other records, has no mapping.
    """
    rows, release = part.release.source_rows, part.release
    if rows is None or not release.plain:
        return {}
    known = np.flatnonzero(rows >= 0)
    beside, released = part.original.take(rows[known]), release.first.take(known)
    names = [each.column for each in part.lost if each.outcome in {"ranges", "groups", "changed"}]
    recoded = [name for name in names if _is_recoded(part.original, release, name)]
    found = {name: _mapping(beside, released, name) for name in recoded}
    return {name: mapping for name, mapping in found.items() if mapping is not None}


def _is_recoded(original: Table, release: Release, name: str) -> bool:
    """Whether steps that draw nothing changed a column, and nothing else did."""
    own = [registry.method(step.method) for step in release.provenance if name in step.columns]
    is_drawn = any(method.randomness.stochastic and method.family != "sampling" for method in own)
    return bool(own) and not is_drawn and original.schema[name].kind is not Kind.SET


def _mapping(beside: Table, released: Table, name: str) -> pl.DataFrame | None:
    values, labels = beside.frame[name].alias("original"), released.frame[name]
    if name in released.nodes:
        labels = codebook.text_and_codebook(labels, released.nodes[name])[0]
    elif released.is_generalised(name):
        labels = to_text(labels)
    pairs = pl.DataFrame([values, labels.alias("released")])
    pairs = pairs.group_by("original", "released").len("records").sort("original", "released")
    known_pairs = pairs.drop_nulls()
    if labels.dtype == pl.String:
        known_pairs = known_pairs.filter(pl.col("released") != WILDCARD)
    is_function = known_pairs["original"].n_unique() == len(known_pairs)
    return pairs if is_function and (_in_runs(known_pairs) or not _has_order(values)) else None


def _has_order(values: pl.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype.is_temporal()


def _in_runs(pairs: pl.DataFrame) -> bool:
    """Whether the values of each label lie side by side: groups of records that cross are no code."""
    labels = pairs["released"]
    return int((labels != labels.shift()).fill_null(value=True).sum()) == labels.n_unique()
