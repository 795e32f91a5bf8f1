"""Five algorithms on plain NumPy arrays, without tables, roles or reports.

The methods and measures of these names call the same code. The functions do not know what the columns mean:
scale them first, and measure the risk of a release with ``sfumato.assess``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato import kernels
from sfumato.core.params import PerColumn
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.kernels.arrays import Flags, Floats, Ints
from sfumato.kernels.norms import Metric

if TYPE_CHECKING:
    from sfumato.kernels.assignment import Assignment
    from sfumato.kernels.special_uniques import Uniques

__all__ = ["assign", "mdav", "mondrian", "suda", "suppress"]


def mdav(points: npt.ArrayLike, k: int) -> Ints:
    """Group records by maximum distance to the average vector (MDAV), in groups of k to 2k - 1.

    Parameters
    ----------
    points : array_like of shape (records, columns)
        Finite numbers, in the units in which distances are to be taken: standardise columns first.
    k : int
        Least number of records in a group. Fewer than 2k records make one group.

    Returns
    -------
    ndarray of int64, shape (records,)
        The group of each record, from 0.

    Examples
    --------
    >>> mdav([[1.0], [2.0], [3.0], [40.0], [50.0], [60.0]], k=3).tolist()
    [1, 1, 1, 0, 0, 0]
    """
    return kernels.groups.mdav(_numbers("points", points), _whole("k", k))  # type: ignore[no-any-return]


def mondrian(points: npt.ArrayLike, k: int, *, relaxed: bool = False) -> Ints:
    """Cut records into groups of at least k, by the column of the widest range first.

    Parameters
    ----------
    points : array_like of shape (records, columns)
        Numbers; NaN is a missing value, which is cut from the others first.
    k : int
        Least number of records in a group.
    relaxed : bool
        Whether records with the same middle value may go to both sides of a cut.

    Returns
    -------
    ndarray of int64, shape (records,)
        The group of each record, from 0. The range of a column in a group is what a release shows.

    Examples
    --------
    >>> mondrian([[1.0], [2.0], [40.0], [50.0]], k=2).tolist()
    [0, 0, 1, 1]
    """
    from sfumato.methods.mondrian import coded_keys

    table = _table(_numbers("points", points, gaps=True), Kind.CONTINUOUS)
    keys = coded_keys(table, {})
    order, starts, _ = kernels.mondrian.partition(keys, _whole("k", k), relaxed=relaxed)
    groups = np.empty(len(table), dtype=np.int64)
    groups[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return groups


def suppress(codes: npt.ArrayLike, k: int, *, importance: npt.ArrayLike | None = None) -> Flags:
    """Choose cells of keys to suppress until at least k records show the same.

    Parameters
    ----------
    codes : array_like of shape (records, keys)
        The value of each cell as a whole number; a negative one is missing, which is a value of its own.
    k : int
        Least number of records that show the same.
    importance : array_like of shape (keys,), optional
        What a suppressed cell of each key costs, 1 unless given.

    Returns
    -------
    ndarray of bool, shape (records, keys)
        Which cells to suppress. The fewest up to twelve records; few in larger tables.

    Examples
    --------
    >>> suppress([[30, 0], [30, 0], [30, 1], [31, 1]], k=2).astype(int).tolist()
    [[0, 0], [0, 0], [1, 0], [1, 0]]
    """
    from sfumato.methods._key_cells import ClassSizeRule, KeyCells, form_classes

    table = _table(_codes(codes), Kind.NOMINAL)
    costs = np.ones(len(table.names)) if importance is None else np.asarray(importance, dtype=np.float64)
    if costs.shape != (len(table.names),) or not (costs > 0).all():
        raise ParameterError(f"`importance` must be {len(table.names)} numbers above 0, one for each key")
    cells = KeyCells.of(
        table, table.names, PerColumn(1.0, tuple(zip(table.names, costs.tolist(), strict=True)))
    )
    rule = ClassSizeRule(cells.everything, _whole("k", k))
    return cells.suppressed_cells(form_classes(cells, rule, Run(), "suppress"))


def suda(codes: npt.ArrayLike, *, dimension: int = 3) -> Uniques:
    """Find the special uniques (SUDA2): records that few keys single out.

    Parameters
    ----------
    codes : array_like of shape (records, keys)
        The value of each cell as a whole number; a negative one is missing, which is a value of its own.
    dimension : int
        Largest number of keys in a minimal unique.

    Returns
    -------
    Uniques
        ``scores`` of the records, as Elliot et al. (2005) define them; whether each is ``special``; and the
        ``numbers`` of minimal uniques by their size.

    Examples
    --------
    >>> suda([[0, 0, 1], [0, 0, 1], [1, 0, 1], [1, 1, 1], [1, 0, 1]]).scores.tolist()
    [0.0, 0.0, 0.0, 2.0, 0.0]
    """
    from sfumato.risk.suda import Suda

    matrix, rule = _codes(codes), Suda(dimension=dimension)
    n_keys = matrix.shape[1]
    columns = [np.unique(column, return_inverse=True)[1].astype(np.int32) for column in matrix.T]
    worths = [0.0, *(rule.worth(size, n_keys) for size in range(1, min(dimension, n_keys) + 1))]
    return kernels.special_uniques.minimal_uniques(columns, worths, lambda done, total: None)  # noqa: ARG005


def assign(original: npt.ArrayLike, released: npt.ArrayLike, *, metric: Metric = "euclidean") -> Assignment:
    """Match the records of two files one to one at the least total distance, with a proof.

    Parameters
    ----------
    original, released : array_like of shape (records, columns)
        Finite numbers in the same columns; the files may differ in length.
    metric : {"euclidean", "manhattan", "chebyshev", "hamming"}
        What is summed up.

    Returns
    -------
    Assignment
        ``partners`` is the released record of each original one (-1: none), ``distance`` the total, and
        ``certified`` says whether it is proved to be the least.

    Examples
    --------
    >>> assign([[1.0], [5.0], [9.0]], [[9.2], [0.8], [5.1]]).partners.tolist()
    [1, 2, 0]
    """
    first, second = _numbers("original", original), _numbers("released", released)
    if first.shape[1] != second.shape[1]:
        got = f"{first.shape[1]} and {second.shape[1]}"
        raise ParameterError(f"`original` and `released` must have the same columns, got: {got}")
    if metric not in get_args(Metric):
        raise ParameterError(f"`metric` must be one of {', '.join(get_args(Metric))}, got: `{metric}`")
    return kernels.assignment.solve(first, second, metric)


def _numbers(name: str, values: npt.ArrayLike, *, gaps: bool = False) -> Floats:
    """A matrix of numbers, finite but for missing values where these may be."""
    matrix: Floats = _matrix(name, values, np.float64)
    if np.isinf(matrix).any() or (not gaps and np.isnan(matrix).any()):
        raise ParameterError(f"`{name}` must be finite numbers, got: missing or infinite ones")
    return matrix


def _codes(values: npt.ArrayLike) -> Ints:
    matrix: Ints = _matrix("codes", values, np.int64)
    return matrix


def _matrix(name: str, values: npt.ArrayLike, dtype: Any) -> Any:
    try:
        matrix = np.ascontiguousarray(np.asarray(values).astype(dtype, casting="same_kind"))
    except (TypeError, ValueError):
        noun = "whole numbers" if dtype is np.int64 else "numbers"
        raise ParameterError(f"`{name}` must be {noun}, got: other values") from None
    if matrix.ndim != 2 or not matrix.size:  # noqa: PLR2004  — records and columns
        raise ParameterError(f"`{name}` must have the shape (records, columns), got: {matrix.shape}")
    return matrix


def _whole(name: str, value: int) -> int:
    if value != int(value) or value < 1:
        raise ParameterError(f"`{name}` must be a whole number of at least 1, got: `{value}`")
    return int(value)


def _table(matrix: Floats | Ints, kind: Kind) -> Table:
    """The columns of a matrix under names that sort in their order; NaN and negative codes are missing."""
    names = [f"{place:05}" for place in range(matrix.shape[1])]
    frame = pl.DataFrame(matrix, schema=names)
    gone = pl.all().is_nan() if kind is Kind.CONTINUOUS else pl.all() < 0
    frame = frame.select(pl.when(~gone).then(pl.all()))
    return Table(frame, Schema(tuple(Column(name, kind) for name in names)))
