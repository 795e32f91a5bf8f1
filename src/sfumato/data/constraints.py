"""Keeps protected values to what the schema promises of a column: whole numbers, a range, no missing code.

Every method's values pass here on their way back into the table, so a release that is measured is the one
that is written. Sums and other rules across columns are mended at the end (`data.repair`), as asked.
"""

from __future__ import annotations

import numpy as np

from sfumato.data.schema import Column
from sfumato.kernels.arrays import Flags, Floats


def clip(column: Column, before: Floats, after: Floats) -> Floats:
    """Round what a method made of a column, and bring it into its range.

    A promise that the original does not keep is none: with fractions in it nothing is rounded, and its own
    least and greatest value always lie in the range, so values that only change places are never touched.

    Parameters
    ----------
    column
        The column, whose ``integer``, ``lower``, ``upper`` and missing codes are looked at.
    before, after
        The values that are there, of the same records, in the original and after the method.
    """
    if not len(after):
        return after
    whole = column.integer and bool(np.all(before == np.rint(before)))
    if whole:
        after = np.rint(after) + 0.0  # adding 0 makes 0 of −0, which a file would show
    if column.lower is not None:
        lower = min(column.lower, float(before.min()))
        after = np.maximum(after, np.ceil(lower) if whole else lower)
    if column.upper is not None:
        upper = max(column.upper, float(before.max()))
        after = np.minimum(after, np.floor(upper) if whole else upper)
    if not column.missing_codes and column.missing_range is None:
        return after
    return _off_missing_codes(column, before, after, whole=whole)


def _off_missing_codes(column: Column, before: Floats, after: Floats, *, whole: bool) -> Floats:
    """Move values that would read as missing a step towards what they were, which is no missing code."""
    lost = _reads_as_missing(column, after)
    if not lost.any():
        return after
    after = after.copy()
    if column.missing_range is not None:
        low, high = column.missing_range
        inside = lost & (after >= low) & (after <= high)
        after[inside] = np.where(before[inside] > high, high, low)
    while lost.any():
        here, there = after[lost], before[lost]
        step = here + np.sign(there - here) if whole else np.nextafter(here, there)
        # A step of one from a fractional bound may pass the original value: then take that.
        after[lost] = np.where(np.abs(step - here) > np.abs(there - here), there, step)
        lost = _reads_as_missing(column, after)
    return after


def _reads_as_missing(column: Column, values: Floats) -> Flags:
    codes = [code for code in map(_number, column.missing_codes) if code is not None]
    lost: Flags = np.isin(values, codes) if codes else np.zeros(len(values), dtype=np.bool_)
    if column.missing_range is not None:
        low, high = column.missing_range
        lost = lost | ((values >= low) & (values <= high))
    return lost


def _number(code: object) -> float | None:
    try:
        return float(str(code))
    except ValueError:
        return None
