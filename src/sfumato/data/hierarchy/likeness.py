"""How far apart two values of a hierarchy are: the height of the lowest label that covers both.

At how many levels two labels differ is that height, so that everything here is counting of labels.
"""

from __future__ import annotations

import numpy as np

from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints


def labels_of(hierarchy: Hierarchy, table: Table, name: str) -> Ints:
    """The label of each record at each level below the root, as numbers: [n, levels], −1 where it is missing.

    Of a hierarchy that is nothing but a root, the values themselves are the only level.
    """
    column = table.codes(name)
    levels = range(max(hierarchy.height - 1, 1))
    of_values = [np.append(hierarchy.codes(column.categories, level), -1) for level in levels]
    return np.column_stack(of_values).astype(np.int64)[column.codes]  # code −1 is the last


def why_not_covered(hierarchy: Hierarchy | None, name: str, *tables: Table) -> str | None:
    """Why values of a column cannot be compared by a hierarchy; None if they can."""
    if hierarchy is None:
        return f"`{name}` has no hierarchy"
    for table in tables:
        if faults := hierarchy.check(table.categories(name), name):
            return f"`{name}`: {faults[0]}"
    return None


def marginality(labels: Ints, of: Ints) -> Floats:
    r"""How far values lie from those of a column on the whole (Domingo-Ferrer, Sánchez and Rufian 2013).

    .. math:: m(v) = \sum_{i=1}^{n} h(v, x_i)

    where :math:`h` is the height of the lowest label that covers both: the least is that of the most central
    value, the greatest that of the most marginal.

    Parameters
    ----------
    labels : int64[v, levels]
        Of the values, as `labels_of` gives them.
    of : int64[n, levels]
        Of the column; what is missing there does not count.

    Returns
    -------
    float64[v]
        NaN where a value is missing.
    """
    there = of[:, 0] >= 0
    total = np.zeros(len(labels))
    for level in range(labels.shape[1]):
        counts = np.bincount(of[there, level], minlength=labels[:, level].max(initial=0) + 1)
        total += there.sum() - counts[labels[:, level]]
    return np.where(labels[:, 0] < 0, np.nan, total)
