"""Both tables in one space: every column from 0 to 1 over the original's range, or as codes that differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.evidence import Evidence
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Floats, Ints
from sfumato.utility._marginals import ColumnMarginal, read_both


@dataclass(frozen=True)
class Coordinates:
    """Records of both tables as points; the distance of two is Euclidean over the columns.

    A number counts by its difference, a nominal code by 0 or 1; what is missing (NaN) is 1 from any value and
    0 from what is missing too. ``shares[i]`` has a row for each code of nominal column i that stands for
    several values, saying how likely each is; such a code lies in the middle of them: if each value is a unit
    vector (divided by √2, so that two are 1 apart), at the mean of the vectors. The distance in a column
    counts ``importance`` times.
    """

    first: Floats  # [n, d]
    second: Floats  # [m, d]
    first_weights: Floats | None
    second_weights: Floats | None
    nominal: tuple[bool, ...]
    shares: dict[int, Any]  # sparse [codes, values], where some codes are of several values
    importance: Floats  # [d]

    @property
    def complete(self) -> bool:
        """Whether distances are plain: no number is missing, and no code stands for several values."""
        numbers = ~np.array(self.nominal, dtype=np.bool_)
        holes = any(np.isnan(each[:, numbers]).any() for each in (self.first, self.second))
        return not holes and not self.shares


def coordinates_of(
    evidence: Evidence, names: tuple[str, ...], rows: tuple[Ints, Ints] | None = None
) -> Coordinates:
    """Place the records of both tables, or some ``rows`` of either; a generalised number is at its middle."""
    assert evidence.protected is not None  # `refuses` saw to it
    original, protected = evidence.original, evidence.protected
    # Column by column in memory, as that is how they are filled and how directions are taken.
    original_rows, released_rows = rows or (slice(None), slice(None))
    sizes = (len(original), len(protected)) if rows is None else map(len, rows)
    first, second = (np.empty((size, len(names)), order="F") for size in sizes)
    shares: dict[int, Any] = {}
    some = None if rows is None else _take_plain_columns(original, protected, names, rows)
    for i, name in enumerate(names):
        tables, picked = (original, protected), (original_rows, released_rows)
        if some is not None and name in some[0].schema:
            is_code = original.schema[name].kind is Kind.NOMINAL
            # The range of numbers is that of all; codes only differ or not.
            tables = some if is_code else (original, some[1])
            picked = (slice(None) if is_code else original_rows, slice(None))
        readings = read_both(*tables, name)
        if original.schema[name].kind is Kind.NOMINAL:
            one, other, likely = _codes(*readings)
            first[:, i], second[:, i] = one[picked[0]], other[picked[1]]
            if likely is not None:
                shares[i] = likely
        else:
            low, span = _range(readings[0].values)
            for side, place, reading in zip((first, second), picked, readings, strict=True):
                with np.errstate(over="ignore"):
                    side[:, i] = np.clip((reading.values[place] / 2 - low) / span, -_FARTHEST, _FARTHEST)
    nominal = tuple(original.schema[name].kind is Kind.NOMINAL for name in names)
    weights = (_those(original.weights, original_rows), _those(protected.weights, released_rows))
    importance = np.array([original.schema[name].importance for name in names])
    return Coordinates(first, second, *weights, nominal, shares, importance)


def _take_plain_columns(
    original: Table, protected: Table, names: tuple[str, ...], rows: tuple[Ints, Ints]
) -> tuple[Table, Table]:
    """Some records of both tables in the columns that can be read without the others.

    What a label stands for, and the position of an ordinal value, depend on all values there are.
    """
    plain = [
        name
        for name in names
        if original.schema[name].kind is not Kind.ORDINAL
        and name not in original.nodes
        and name not in protected.nodes
    ]
    return original.select(plain).take(rows[0]), protected.select(plain).take(rows[1])


def _those(weights: Floats | None, rows: Ints | slice) -> Floats | None:
    return None if weights is None else weights[rows]


#: What lies farther out is put here: squares of it are still numbers.
_FARTHEST = 1e100


def _range(values: Floats) -> tuple[float, float]:
    """Half the least value, and half the range, or half of 1 for a constant."""
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 0.5
    low, high = float(present.min()) / 2, float(present.max()) / 2
    return low, (high - low) if high > low else 0.5


def _codes(one: ColumnMarginal, other: ColumnMarginal) -> tuple[Floats, Floats, Any]:
    """Codes of both tables; a group of values has a code of its own, after all values."""
    if one.groups is None and other.groups is None:
        return one.values, other.values, None
    from scipy.sparse import csr_array, eye_array, vstack

    pairs = ((each.points, each.values) for each in (one, other))
    points = [values if some is None else np.append(some, values) for some, values in pairs]
    n_values = int(np.nanmax(np.concatenate(points), initial=-1.0)) + 1
    blocks, codes, n_codes = [eye_array(n_values, format="csr")], [], n_values
    for each in (one, other):
        if each.groups is None or each.starts is None or each.points is None:
            codes.append(each.values)
            continue
        codes.append(np.where(each.groups >= 0, n_codes + each.groups, each.values))
        sizes = np.diff(each.starts)
        likely = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
        shape = (len(sizes), n_values)
        blocks.append(csr_array((likely, each.points.astype(np.int64), each.starts), shape=shape))
        n_codes += len(sizes)
    return codes[0], codes[1], vstack(blocks, format="csr")


def distances(space: Coordinates, original: Floats, released: Floats) -> Floats:
    """Distances between records of a space, all pairs."""
    from scipy.spatial.distance import cdist

    holes = np.isnan(original).any(axis=0) | np.isnan(released).any(axis=0)
    nominal = np.array(space.nominal, dtype=np.bool_)
    numbers = np.flatnonzero(~nominal & ~holes)
    worth = space.importance[numbers]
    found: Floats = cdist(original[:, numbers] * worth, released[:, numbers] * worth, "sqeuclidean")
    codes = [i for i in np.flatnonzero(nominal).tolist() if i not in space.shares]
    left = sorted({*range(len(nominal)), *space.shares} - {*numbers.tolist(), *codes})
    further = [_column_squares(space, i, original[:, i], released[:, i]) for i in left]
    for weight in np.unique(space.importance[codes]):
        alike = [i for i in codes if space.importance[i] == weight]
        further.append(_code_squares(weight, original[:, alike], released[:, alike]))
    for start in range(0, len(original), _ROWS):
        part = slice(start, start + _ROWS)
        for squares in further:
            found[part] += squares(part)
        np.sqrt(found[part], out=found[part])
    return found


def _code_squares(weight: float, original: Floats, released: Floats) -> Callable[[slice], Floats]:
    """What columns of codes that count alike add to the squares: in how many of them two records differ."""
    # What is missing is a code of its own.
    first, second = (np.nan_to_num(side, nan=-1.0).astype(np.int32).T.copy() for side in (original, released))

    def squares(part: slice) -> Floats:
        count = np.zeros((len(original[part]), len(released)), dtype=np.uint16)
        for one, other in zip(first, second, strict=True):
            count += one[part, None] != other[None, :]
        found: Floats = count * np.float64(weight**2)
        return found

    return squares


#: Rows of a matrix of distances that are made at a time: so that what goes into them stays at hand.
_ROWS = 16


def _column_squares(space: Coordinates, i: int, one: Floats, other: Floats) -> Callable[[slice], Floats]:
    """What one column adds to the squares of distances, for some of the rows."""
    if i in space.shares:
        by_code, codes = _squares_of_groups(space.shares[i], one, other)
    holes = np.isnan(one), np.isnan(other)
    any_hole = holes[0].any() or holes[1].any()

    def squares(part: slice) -> Floats:
        added = by_code[codes[part]] if i in space.shares else (one[part, None] - other[None, :]) ** 2
        if any_hole:
            first_missing, second_missing = holes[0][part, None], holes[1][None, :]
            added[first_missing ^ second_missing] = 1.0
            added[first_missing & second_missing] = 0.0
        return added if space.importance[i] == 1 else added * space.importance[i] ** 2

    return squares


def _squares_of_groups(shares: Any, original: Floats, released: Floats) -> tuple[Floats, Ints]:
    """Half the squared distances of rows of shares: 1 between two single values that differ.

    Each of my codes is looked at once, not once a record: a group may stand for thousands of values. So there
    is a row for each distinct one of them, and the row that belongs to each record.
    """
    (my_codes, rows), (their_codes, columns) = (
        np.unique(np.nan_to_num(side).astype(np.int64), return_inverse=True) for side in (original, released)
    )
    first, second = shares[my_codes], shares[their_codes]
    lengths = [(each * each).sum(axis=1) for each in (first, second)]
    within = (first @ second.T).toarray()
    squares = np.maximum(0.5 * (lengths[0][:, None] + lengths[1][None, :]) - within, 0.0)
    return squares.take(columns, axis=1), rows
