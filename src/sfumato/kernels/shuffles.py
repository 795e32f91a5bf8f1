"""Shuffles: random permutations inside windows that slide over the ranks."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.arrays import Ints
from sfumato.kernels.compiling import njit


def window_bounds(n: int, width: int, slide: int) -> tuple[Ints, Ints]:
    r"""Lay windows over n ranks, the first at the lowest rank, the last ending with the highest.

    It takes :math:`m = \lceil (n - w)^+ / s \rceil + 1` windows of width :math:`w`, each :math:`s` ranks
    beyond the one before. Where these overhang, :math:`h = (m - 1) s + w > n`, all are narrowed alike,

    .. math:: a_k = \lfloor k s\, n / h \rfloor, \quad b_k = \lfloor (k s + w)\, n / h \rfloor,

    for a short last window would leave the highest values almost where they are. With a slide of the width
    the windows are a partition into blocks whose sizes differ by at most one.

    Parameters
    ----------
    n : int
        Number of ranks.
    width : int
        Ranks in a window, at least 1.
    slide : int
        Ranks between the starts of two windows, from 1 to the width.

    Returns
    -------
    starts, ends : int64[m]
        Window k is the ranks from ``starts[k]`` up to, not including, ``ends[k]``; never more than the width.
    """
    if n < 0 or width < 1 or not 1 <= slide <= width:
        raise ValueError(
            f"`n` must not be negative and `slide` from 1 to the width, got: {n}, {slide}, {width}"
        )
    n_windows = -(-max(n - width, 0) // slide) + 1
    overhanging = max((n_windows - 1) * slide + width, 1)
    starts = np.arange(n_windows, dtype=np.int64) * slide
    ends = starts + width
    if overhanging > n:
        starts, ends = starts * n // overhanging, ends * n // overhanging
    return starts, ends


def shuffle_in_windows(n: int, width: int, slide: int, rng: np.random.Generator) -> Ints:
    """Shuffle n ranks inside windows that slide upwards, one window after the other.

    Parameters
    ----------
    n : int
        Number of ranks.
    width, slide : int
        See `window_bounds`.
    rng : numpy.random.Generator
        Advanced by one bounded integer for each rank of each window but its first.

    Returns
    -------
    int64[n]
        ``sources[i]``, the rank whose value rank i gets. Never more than ``i + width - 1``; with a slide of
        the width, never less than ``i - width + 1`` either.

    Notes
    -----
    **Cost:** a draw for each rank of each window, about ``n * width / slide`` in all.
    """
    starts, ends = window_bounds(n, width, slide)
    sources = np.arange(n, dtype=np.int64)
    _shuffle_windows(sources, starts, ends, rng)
    return sources


@njit(cache=True, nogil=True)
def _shuffle_windows(items: Ints, starts: Ints, ends: Ints, rng: np.random.Generator) -> None:
    """Shuffle each window in place (Fisher and Yates): every order of its items is equally likely."""
    for window in range(len(starts)):
        start = starts[window]
        for last in range(ends[window] - 1, start, -1):
            drawn = rng.integers(start, last + 1)
            items[last], items[drawn] = items[drawn], items[last]
