"""Patterns of missing values: the records that have the same columns, taken together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.kernels.arrays import Flags, Ints


def patterns(present: Flags) -> Iterator[tuple[Ints, Ints]]:
    """Yield the columns and the rows of each pattern of what is present, if anything is.

    Parameters
    ----------
    present : bool[n, d]

    Yields
    ------
    columns, rows : int64[p], int64[m]
        Both ascending; every row with a value comes once.
    """
    n, d = present.shape
    if n == 0 or d == 0:
        return
    if present.all():
        yield np.arange(d), np.arange(n)
        return
    bits = np.packbits(present, axis=1)
    words = np.zeros((n, -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : bits.shape[1]] = bits
    keys = words.view(np.uint64)  # whole numbers sort much faster than rows of flags
    _, first, which = np.unique(
        keys[:, 0] if keys.shape[1] == 1 else keys,
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    rows_in_turn = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    for start, rows in zip(first, np.split(rows_in_turn, ends[:-1]), strict=True):
        columns = np.flatnonzero(present[start])
        if len(columns):
            yield columns, rows
