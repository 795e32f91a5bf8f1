"""Ways to build the hierarchy of a column, to choose from where the one that is proposed does not suit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from sfumato.data.hierarchy.build import from_intervals, from_prefix
from sfumato.data.hierarchy.grow import from_frequencies, from_order, from_quantiles, from_widths, propose
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind
from sfumato.errors import ParameterError, UnknownNameError

_NUMBERS, _CATEGORIES = frozenset({Kind.CONTINUOUS}), frozenset({Kind.NOMINAL, Kind.ORDINAL})


class Proposal(NamedTuple):
    """One way: what it does, for which kinds of columns, and what builds it of some numbers, if any."""

    sentence: str
    kinds: frozenset[Kind]
    build: Callable[[Column, pl.Series, Sequence[float]], Hierarchy]


def _by_prefix(column: Column, values: pl.Series, numbers: Sequence[float]) -> Hierarchy:
    lengths = [int(each) for each in numbers if each.is_integer()]
    if len(lengths) < len(numbers):
        raise ParameterError("The lengths must be whole numbers, the longest first.", hint="write 3, 2")
    return from_prefix(values, lengths=lengths or (3, 2), name=column.name)


PROPOSALS = {
    "fitting": Proposal(
        "What fits the column.",
        frozenset(Kind) - {Kind.SET},
        lambda column, values, _: propose(column, values),
    ),
    "widths": Proposal(
        "Intervals of round, equal widths.", _NUMBERS, lambda _column, values, _: from_widths(values)
    ),
    "intervals": Proposal(
        "Intervals of your widths, such as 5, 10, 20.",
        _NUMBERS,
        lambda _, values, numbers: from_intervals(values, widths=numbers or (5, 10, 20)),
    ),
    "quantiles": Proposal(
        "Intervals of about equally many records.",
        _NUMBERS,
        lambda _column, values, _: from_quantiles(values),
    ),
    "frequencies": Proposal(
        "The rarest values together.",
        _CATEGORIES,
        lambda column, values, _: from_frequencies(values, labels=column.labels),
    ),
    "order": Proposal(
        "Neighbours in their order together.",
        _CATEGORIES,
        lambda column, values, _: from_order(values, order=column.order, labels=column.labels),
    ),
    "prefix": Proposal(
        "Ever shorter beginnings of codes, of your lengths, such as 3, 2.", _CATEGORIES, _by_prefix
    ),
}  # fmt: skip


def proposals_for(column: Column) -> dict[str, str]:
    """The ways that there are for a column, each with its sentence."""
    return {name: each.sentence for name, each in PROPOSALS.items() if column.kind in each.kinds}


def propose_by(way: str, column: Column, values: pl.Series, numbers: Sequence[float] = ()) -> Hierarchy:
    """Build the hierarchy of a column in one of these ways; ``values`` are those that are not missing."""
    if way not in proposals_for(column):
        raise UnknownNameError.of("way to build a hierarchy of this column", way, proposals_for(column))
    return PROPOSALS[way].build(column, values.alias(column.name), numbers)
