"""Sets of items as text: the items with a separator between them, where a format has no lists.

A missing set is a missing text, and the empty set is the separator alone. Blanks around items, and separators
behind the last one, mean nothing.
"""

from __future__ import annotations

import polars as pl

from sfumato.errors import WriteError, count_noun


def split(texts: pl.Series, separator: str) -> pl.Series:
    """Read sets of items; text that is missing or blank is a missing set."""
    blank = texts.str.strip_chars() == ""
    pieces = texts.set(blank, None).str.split(separator.strip())
    stripped = pieces.list.eval(pl.element().str.strip_chars())
    return stripped.list.eval(pl.element().filter(pl.element() != "")).alias(texts.name)


def join(sets: pl.Series, separator: str) -> pl.Series:
    """Write sets of items; raise if one could not be read back."""
    if not separator:
        raise WriteError(
            f"the set-valued column `{sets.name}` has no `separator`, so it cannot be written as text",
            hint='declare it in the plan, as in separator = ";", or write Parquet, which holds lists',
        )
    texts = sets.list.eval(pl.element().cast(pl.String).str.replace(r"^(-?\d+)\.0$", "${1}"))
    items = texts.filter((texts.list.len() > 0).fill_null(value=False)).explode()
    if wrong := items.null_count():
        raise WriteError(
            f"`{sets.name}` has {count_noun(wrong, 'missing item')}, which cannot be written as text",
            hint="write Parquet, which holds lists",
        )
    bare = separator.strip()
    held = items.str.contains(bare, literal=True) | (items.str.strip_chars() != items) | (items == "")
    if held.any():
        raise WriteError(
            f"`{sets.name}` has {count_noun(int(held.sum()), 'item')} that could not be read back: empty, or "
            "with the separator in it or a blank at an end",
            hint="choose another `separator` for the column, or write Parquet, which holds lists",
        )
    empty = (sets.list.len() == 0).fill_null(value=False)
    return texts.list.join(separator).set(empty, bare).alias(sets.name)
