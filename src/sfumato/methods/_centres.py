"""What a group shows: the centre of each kind of column, and whether a column can have the requested one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import ColumnView, set_protected_values
from sfumato.core.params import PerColumn
from sfumato.data.constraints import clip
from sfumato.data.schema import ORDERED, Column, Kind
from sfumato.data.table import Table
from sfumato.errors import quoted
from sfumato.kernels.arrays import Flags, Floats, Ints, Values

Centre = Literal["auto", "mean", "median", "mode", "trimmed"]

#: The centres each kind of column can have, the automatic one first.
CENTRES: dict[Kind, tuple[str, ...]] = {
    Kind.CONTINUOUS: ("mean", "median", "mode", "trimmed"),
    Kind.DATE: ("median", "mean", "mode", "trimmed"),
    Kind.ORDINAL: ("median", "mode"),
    Kind.NOMINAL: ("mode",),
}

#: Values of more decimals are not rounded to be read; nor those beyond which a float is not exact.
_MOST_DECIMALS, _LARGEST_EXACT = 6, 2.0**53


def centre_for(column: Column, wish: str) -> str | None:
    """The centre a column shows; None when it cannot have the one wished for."""
    possible = CENTRES[column.kind]
    if column.kind is Kind.DATE and column.missing_codes:
        # The mean of dates may be a date that stands for "not known"; one that occurs is not.
        possible = tuple(centre for centre in possible if centre not in {"mean", "trimmed"})
    if wish == "auto":
        return possible[0]
    return wish if wish in possible else None


def refusal(table: Table, wishes: PerColumn[Any], *, name: str) -> str | None:
    """Why a table's chosen columns cannot have the centres wished for; None when they can."""
    columns = [table.schema[each] for each in table.chosen]
    wrong = [column for column in columns if centre_for(column, wishes[column.name]) is None]
    if not wrong:
        return None
    have = ", ".join(f"`{wishes[column.name]}` for `{column.name}` ({column.kind})" for column in wrong)
    return (
        f"`centre` of {name} must be auto or one that the column can have (a mean needs numbers or dates, "
        f"a median an order), got: {have}"
    )


def notes_on_centres(table: Table, wishes: PerColumn[Any] | Mapping[str, str]) -> tuple[str, ...]:
    """Name the numbers and dates that show no means: people's own values are among what they show."""
    own = [
        name
        for name in table.chosen
        if table.schema[name].kind in {Kind.CONTINUOUS, Kind.DATE}
        and centre_for(table.schema[name], wishes[name]) != "mean"
    ]
    sentence = f"groups of {quoted(own)} show no mean, but mostly a value of one of their records"
    return (sentence,) if own else ()


def replace_by_centres(
    column: Column, values: Values, groups: Ints, *, wish: str, weights: Floats | None
) -> Values:
    """Give each value the centre of its group; ``values`` are without holes, ``groups`` from 0 up."""
    n_groups = int(groups.max(initial=-1)) + 1
    centre = centre_for(column, wish)
    centres = _centres_of_groups(column, centre, values, (groups, n_groups), weights)
    if (
        centre == "mode"
        and column.kind in ORDERED
        and (distinct := _distinct(values, groups, n_groups)).any()
    ):
        instead = centre_for(column, "mean") or "median"
        centres = np.where(
            distinct, _centres_of_groups(column, instead, values, (groups, n_groups), weights), centres
        )
    if column.kind is Kind.CONTINUOUS:
        centres = _readable(values, centres, weights)
        if column.missing_codes or column.missing_range is not None:
            centres = _off_missing_codes(column, values, groups, centres)
    return centres[groups]


def _centres_of_groups(
    column: Column, centre: str | None, values: Values, of: tuple[Ints, int], weights: Floats | None
) -> Values:
    """The centre of each group, of so many."""
    found: Values
    if centre == "mode":
        found = kernels.groups.centres.modes(values, *of, weights)
    elif centre == "median":  # kinds other than numbers show a value that occurs
        between = column.kind is Kind.CONTINUOUS
        found = kernels.groups.centres.medians(values, *of, weights, between=between)
    else:
        mean = kernels.groups.centres.trimmed_means if centre == "trimmed" else kernels.groups.centres.means
        found = mean(values, *of, weights)
    return found


def _readable(values: Floats, centres: Floats, weights: Floats | None) -> Floats:
    r"""Round centres to one decimal more than the values have, and to as many as a total needs.

    The unit of the last decimal is at most a millionth of the mean size of a value, so that a total moves by
    less than :math:`5 \cdot 10^{-7} \sum_i |x_i|`. Values of more than six decimals, or too large for a float
    to hold them with these, are left as they are.
    """
    largest = np.abs(values).max(initial=0.0)
    if not 0 < largest < _LARGEST_EXACT:
        return centres
    own = next((d for d in range(_MOST_DECIMALS + 1) if (np.round(values, d) == values).all()), None)
    if own is None:
        return centres
    size = float(np.average(np.abs(values), weights=weights))
    decimals = max(own + 1, 6 - math.floor(math.log10(size)))
    return np.round(centres, decimals) if largest * 10.0**decimals < _LARGEST_EXACT else centres


def _distinct(values: Values, groups: Ints, n_groups: int) -> Flags:
    """Groups in which no value occurs twice: their mode would be the smallest, and one person's own."""
    order = np.lexsort((values, groups))
    same = (groups[order][1:] == groups[order][:-1]) & (values[order][1:] == values[order][:-1])
    repeats = np.zeros(n_groups, dtype=np.bool_)
    repeats[groups[order][1:][same]] = True
    return ~repeats & (np.bincount(groups, minlength=n_groups) > 1)


def _off_missing_codes(column: Column, values: Values, groups: Ints, centres: Values) -> Values:
    """Show the lower median, which occurs, where the centre would read as missing.

    The shell would move such a value a little towards what each record had, and so tell the group's
    records apart.
    """
    clipped = clip(column, values, centres[groups])
    firsts = np.zeros_like(centres)
    firsts[groups[::-1]] = clipped[::-1]
    moved = np.zeros(len(centres), dtype=np.bool_)
    moved[groups[clipped != firsts[groups]]] = True
    return np.where(moved, kernels.groups.centres.medians(values, groups, len(centres)), centres)


def show_centres(table: Table, name: str, groups: Ints, wish: str) -> pl.Series:
    """Make a column whose values are the centres of their groups, over what is present; holes stay."""
    present = ~table.missing(name)
    if not present.any():
        return table.frame[name]
    view = ColumnView.of(table, name)
    shown = replace_by_centres(view.column, view.values, groups[present], wish=wish, weights=view.weights)
    return set_protected_values(table, name, shown, categories=view.categories)
