"""Combinations of categories that edit rules forbid, as tables of zeros for a model of counts.

Rules and categories are known beforehand, so that nothing here is of anyone. A rule is taken clause by
clause: ``age >= 15 OR (status IS NULL AND income IS NULL)`` forbids pairs of age and status, and of age and
income.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.data.rules import Rule
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.methods._count_model import Columns

#: Most combinations that a clause is asked about.
_MOST_COMBINATIONS = 1_000_000

#: Most sorts of values of a column that rules are taken to treat apart.
_MOST_KINDS = 32


@dataclass(frozen=True)
class RepresentativeValues:
    """Values that stand for each of the ``codes`` of a column, in rising order: all of them, or some."""

    codes: Ints
    values: pl.Series
    some: bool = False


def zeros_of(rules: Iterable[Rule], points: Sequence[RepresentativeValues]) -> dict[Columns, Flags]:
    """By columns, the combinations of codes of which no value keeps the rules.

    Clauses of too many combinations are left out, and those that compare columns of which only some values
    are asked: that none of these is equal to another says nothing.
    """
    names, found = [each.values.name for each in points], dict[Columns, Flags]()
    for rule in rules:
        for clause in rule.clauses:
            columns = tuple(sorted(names.index(name) for name in set(clause.meta.root_names())))
            own = [points[each] for each in columns]
            large = math.prod(len(each.codes) for each in own) > _MOST_COMBINATIONS
            if not columns or large or sum(each.some for each in own) > 1:
                continue
            never = _impossible_transitions(rule, clause, own)
            impossible = never.all() or (never.ndim == 1 and never[1:].all())  # no value of a column keeps it
            if never.any() and not impossible:
                found[columns] = found[columns] | never if columns in found else never
    return found


def _impossible_transitions(rule: Rule, clause: pl.Expr, points: Sequence[RepresentativeValues]) -> Flags:
    shape = [len(each.codes) for each in points]
    places = np.indices(shape).reshape(len(shape), -1)
    frame = pl.DataFrame([each.values.gather(at) for each, at in zip(points, places, strict=True)])
    never = rule.breaks(frame, clause).to_numpy().reshape(shape)
    for axis, each in enumerate(points):
        starts = np.flatnonzero(np.diff(each.codes, prepend=-1))
        never = np.logical_and.reduceat(never, starts, axis=axis)
    return never


def kinds_of(zeros: Mapping[Columns, Flags], column: int, size: int) -> Ints:
    """The sort of each code of a column: those that rules treat alike have the same."""
    kinds = np.zeros(size, dtype=np.int64)
    for rows in _by_code(zeros, column):
        alike = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        if alike.max() < _MOST_KINDS:
            kinds = np.unique(kinds * _MOST_KINDS + alike, return_inverse=True)[1].ravel()
    return kinds


def must_lack(zeros: Mapping[Columns, Flags], column: int) -> bool:
    """Whether rules leave some records no value in a column but that it is missing (code 0)."""
    return any(bool((rows[1:].all(axis=0) & ~rows[0]).any()) for rows in _by_code(zeros, column))


def _by_code(zeros: Mapping[Columns, Flags], column: int) -> list[Flags]:
    return [
        np.moveaxis(never, columns.index(column), 0).reshape(never.shape[columns.index(column)], -1)
        for columns, never in zeros.items()
        if column in columns
    ]


def merge_zeros(zeros: Mapping[Columns, Flags], parts: Sequence[Floats]) -> dict[Columns, Flags]:
    """The zeros where codes are taken as one, with the chances of their ``parts`` [merged, own]."""
    found = {}
    for columns, never in zeros.items():
        may = (~never).astype(np.float64)
        for axis, column in enumerate(columns):
            may = np.moveaxis(np.tensordot(parts[column] > 0, may, axes=(1, axis)), 0, axis)
        if (may == 0).any():
            found[columns] = may == 0
    return found
