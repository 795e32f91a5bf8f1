"""Recoding like another release: what was fitted on one table is applied to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato import kernels
from sfumato.core.method import Method
from sfumato.core.params import Resource, param
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.codings import codes_of_both, microseconds, numbers_of_both
from sfumato.data.generalised.intervals import ends, is_interval, width
from sfumato.data.generalised.nodes import MISSING, WILDCARD, Nodes, match_leaves
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.hierarchy.tree import counted
from sfumato.data.schema import Kind
from sfumato.data.table import Floats, Ints, Table
from sfumato.errors import DataError, RefusedError, UnreachableError
from sfumato.methods._enforcing import COMPARABLE

Bits = npt.NDArray[np.uint8]

#: Cells of the lists of members of labels that are no ranges; beyond, the labels are too many to be held.
_LARGEST_LISTS = 2**30
_NO_LISTS: Bits = np.zeros((0, 0), dtype=np.uint8)


class RecodeLike(Method):
    r"""Give each record the narrowest combination of ranges and labels of another release that covers it.

    The resource ``like`` is a protected table, such as the release of a local recoding. Its distinct
    combinations of keys are boxes :math:`B = B_1 \times \dots \times B_q`, where :math:`B_j` is the set of
    exact values that the :math:`j`-th key of the box may stand for. A record :math:`x` is shown as

    .. math::

        B(x) = \arg\min_{B \ni x} \frac{1}{q} \sum_{j=1}^{q} w(B_j)

    where :math:`w` is the share of its domain that a value spans, as information loss counts it:
    :math:`(hi - lo)/(max - min)` for a range, :math:`(members - 1)/(leaves - 1)` for a label, 0 for an exact
    value, 1 for the wildcard. The domain is that of ``like``. Of boxes equally narrow the first in ``like``
    is taken. So a recoding is fitted once and applied later, to another year or to those who came late.

    See Also
    --------
    Mondrian : makes such a release.
    Recoding : shows keys at fixed levels of their hierarchies, which is how a global recoding is repeated.

    Notes
    -----
    **When to use.** New records must be shown in the very classes of an earlier release: a panel's next wave,
    a file that arrives in parts. Give ``like`` the protected table, ``resources={"first": release.table}``
    or a file with it in a plan's ``[resources]``; the release of a local recoding has both ready, in
    ``fitted`` and ``resources``. A global recoding needs no boxes: apply its levels. Ranges that hug the
    records they were made of leave gaps between them, and of a small table cover few others.

    **Guarantees.** Every record lies in what it shows. Nothing else is promised of the new table: k was
    counted in the other one. The new records *add* to the classes of the first table if both are published as
    one; measure the joint release. A record that no box covers is shown as the wildcard in every key
    (``unseen="suppress"``), or there is no release at all (``"raise"``).

    **Risk to know.** The new records were not asked when the boxes were made: a box may hold just one of
    them, and who is new in it can be told by comparing the two releases. Require ``k`` of the new release,
    and suppress what fails. Ranges that follow the first table's records tell of those records.

    **Ties, missing, weights.** A missing value lies in boxes where the key is missing or the wildcard. With
    ``missing="any"`` a missing key of a box covers every value, as if the whole domain were spanned, and the
    cell is suppressed: right for a release by local suppression. A value that ``like`` never saw lies in
    ranges that hold it, and among categories in the wildcard alone. Weights are not used.

    **Cost.** About :math:`O(\log m)` for each record if the :math:`m` boxes do not overlap; up to
    :math:`O(m)` if most overlap. A label that is no range in any order of the values costs a byte for each
    value.

    Examples
    --------
    >>> import polars as pl
    >>> import sfumato
    >>> from sfumato.data.generalised.intervals import intervals
    >>> ages = pl.DataFrame([intervals([20, 20, 30], [29, 59, 59], name="age")])
    >>> schema = sfumato.Schema((sfumato.Column("age", Kind.CONTINUOUS),))
    >>> first = Table(ages, schema)
    >>> later = Table(pl.DataFrame({"age": [25, 47, 61]}), schema)
    >>> release = sfumato.protect(later, RecodeLike(like="first"), resources={"first": first})
    >>> release.table.frame["age"].to_list()
    [{'lo': 20, 'hi': 29}, {'lo': 30, 'hi': 59}, {'lo': None, 'hi': None}]
    >>> release.provenance[0].notes
    ('1 record that no box of `first` covers, suppressed in every key',)
    """

    name = "recode-like"
    title = "Recoding like another release"
    kinds = COMPARABLE
    references = ("lefevre2006", "hundepool2012")
    stochastic = False
    generalises = True
    suppresses = True
    cost = "n log m"

    like: Resource = param(
        Resource("fitted"), "The protected table whose combinations of keys are used.", holds="table"
    )
    unseen: Literal["suppress", "raise"] = param(
        "suppress",
        "What is done with records that no combination covers: the wildcard, or no release.",
        renamed={"withhold": "suppress"},
    )
    missing: Literal["category", "any"] = param(
        "category",
        "What a missing key there stands for: a missing value, or any value, which is then suppressed.",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that are generalised already: nobody knows in which box they lie."""
        coarse = [
            f"`{name}`"
            for name in table.chosen
            if name in table.nodes or is_interval(table.frame.schema[name])
        ]
        if coarse:
            return f"{self.name} must be given exact values, got: generalised ones in {', '.join(coarse)}"
        return super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Find the box of each record, then show it."""
        like = self._learnt_from(table, run)
        boxes = _boxes_of(table, like, anything=self.missing == "any")
        found = kernels.covering_boxes.first_covering(
            boxes.points,
            boxes.lows,
            boxes.highs,
            lists=boxes.lists,
            members=boxes.members,
            tick=run.ticker(self.title),
        )
        uncovered = found < 0
        n_uncovered = int(uncovered.sum())
        if n_uncovered and self.unseen == "raise":
            raise UnreachableError(
                f"every record must lie in a combination of keys of `{self.like}`, got: {n_uncovered} that "
                "lie in none",
                hint='suppress them with unseen="suppress", or learn from a table that covers them',
            )
        rows, shown = np.append(boxes.examples, MISSING)[found], table
        for name in table.chosen:
            shown = to_wildcard(_shown(shown, like, name, rows), name, uncovered)
        note = (
            f"{counted(n_uncovered, 'record')} that no box of `{self.like}` covers, suppressed in every key"
        )
        return Release.of(
            shown,
            source_rows=np.arange(len(table), dtype=np.int64),
            classes=np.unique(found, return_inverse=True)[1].astype(np.int64),
            notes=(note,) if n_uncovered else (),
        )

    def _learnt_from(self, table: Table, run: Run) -> Table:
        like: object = run.resource(self.like)
        if not isinstance(like, Table):
            found = f"a {type(like).__name__.lower()}"
            raise RefusedError(f"`like` of {self.name} must name a resource that holds a table, got: {found}")
        absent = [f"`{name}`" for name in table.chosen if name not in like.schema]
        if absent:
            raise RefusedError(
                f"{self.name} must find all keys in `{self.like}`, got: no {', '.join(absent)}"
            )
        return like.select(table.chosen)


def learning(release: Release, keys: Sequence[str]) -> Release:
    """Have the release of a local recoding say how other tables are recoded like it."""
    table = release.table.select(sorted(keys)).aimed_at(())
    return replace(release, fitted=RecodeLike(), resources={str(RecodeLike().like): table})


# Records as points, combinations of keys as boxes ------------------------------------------------------


@dataclass(frozen=True)
class _Boxes:
    """Records of one table as points, combinations of keys of another as boxes, the narrowest first."""

    points: Floats  # [n, columns] +∞: a value that only an unbounded side covers
    lows: Floats  # [boxes, columns]
    highs: Floats
    lists: Ints  # [boxes, columns] which list of members a side with gaps has, −1: none
    members: Bits  # [lists, values]
    examples: Ints  # [boxes] a record of `like` that shows the box


@dataclass(frozen=True)
class _Side:
    """One column: the values of the records, and what each box stands for there."""

    values: Floats  # [n] NaN: covered by nothing but the wildcard
    lows: Floats  # [boxes] −∞ and ∞: the wildcard
    highs: Floats
    widths: Floats  # [boxes] share of the domain
    lists: Ints  # [boxes]
    members: Bits  # [lists, values]


def _boxes_of(table: Table, like: Table, *, anything: bool) -> _Boxes:
    classes = Classes.of(like, table.chosen)
    examples = np.sort(classes.examples)  # in the order in which they come: of equals the first is taken
    shown = like.take(examples)
    sides = [_side_of(table, shown, name, anything=anything) for name in table.chosen]
    losses = np.zeros(len(examples))
    for side in sides:
        losses += side.widths
    order = np.argsort(losses, kind="stable")
    lists = np.empty((len(examples), len(sides)), dtype=np.int64)
    n_lists = 0
    for column, side in enumerate(sides):
        lists[:, column] = np.where(side.lists < 0, -1, side.lists + n_lists)
        n_lists += len(side.members)
    return _Boxes(
        points=_stacked([side.values for side in sides], len(table)),
        lows=_stacked([side.lows for side in sides], len(examples))[order],
        highs=_stacked([side.highs for side in sides], len(examples))[order],
        lists=lists[order],
        members=_padded([side.members for side in sides]),
        examples=examples[order],
    )


def _stacked(columns: list[Floats], n: int) -> Floats:
    stacked = np.column_stack(columns) if columns else np.zeros((n, 0))
    return np.where(np.isnan(stacked), np.inf, stacked)


def _padded(parts: list[Bits]) -> Bits:
    """The lists of all columns one below the other, filled up to one length."""
    longest = max((part.shape[1] for part in parts), default=0)
    filled = [np.pad(part, ((0, 0), (0, longest - part.shape[1]))) for part in parts if len(part)]
    return np.concatenate(filled) if filled else np.zeros((0, longest), dtype=np.uint8)


def _side_of(table: Table, shown: Table, name: str, *, anything: bool) -> _Side:
    """Put the column of both tables on one line, missing values at a place of their own."""
    gone, lacking = shown.missing(name), table.missing(name)
    if name in shown.nodes:
        side = _labels(table, shown, name)
    elif is_interval(shown.frame.schema[name]):
        side = _ranges(table, shown, name)
    else:
        side = _exact(table, shown, name)
    wild = np.isneginf(side.lows) & np.isposinf(side.highs) & ~gone
    lows, highs, widths = side.lows, side.highs, np.where(wild, 1.0, side.widths)
    finite = np.concatenate([each[np.isfinite(each)] for each in (side.values, lows, highs)])
    most = finite.max(initial=0.0)
    # A range without an upper end must not reach what is no value: it ends where the last value is.
    highs = np.where(np.isposinf(highs) & ~wild, most, highs)
    hole = np.nextafter(most, np.inf)  # beyond all values, and below the infinity of what was never seen
    lows, highs = (
        np.where(gone, np.array([-np.inf, np.inf])[end] if anything else hole, side_ends)
        for end, side_ends in enumerate((lows, highs))
    )
    return _Side(
        values=np.where(lacking, hole, side.values),
        lows=lows,
        highs=highs,
        widths=np.where(gone, 1.0 if anything else 0.0, widths),
        lists=np.where(gone, -1, side.lists),
        members=side.members,
    )


def _exact(table: Table, shown: Table, name: str) -> _Side:
    if table.schema[name].kind in {Kind.NOMINAL, Kind.ORDINAL}:
        values, others = (codes.astype(np.float64) for codes in codes_of_both(table, shown, name))
    else:
        values, others = numbers_of_both(table, shown, name)
    none = np.full(len(others), -1, dtype=np.int64)
    return _Side(values, others, others, np.zeros(len(others)), none, _NO_LISTS)


def _ranges(table: Table, shown: Table, name: str) -> _Side:
    column = shown.frame[name]
    lo, hi = ends(column)
    lows = lo.to_physical().cast(pl.Float64).fill_null(-np.inf).to_numpy()
    highs = hi.to_physical().cast(pl.Float64).fill_null(np.inf).to_numpy()
    none = np.full(len(column), -1, dtype=np.int64)
    values = _as_written(table, name, lo.dtype)
    return _Side(values, lows, highs, np.nan_to_num(width(column)), none, _NO_LISTS)


def _as_written(table: Table, name: str, dtype: pl.DataType) -> Floats:
    """The values of a column as numbers on the scale of the ends of ranges."""
    kind, series = table.schema[name].kind, table.frame[name]
    if kind is Kind.DATE:
        instants = table.numbers(name) * (microseconds(series.dtype) / microseconds(dtype))
        return np.floor(instants) if dtype == pl.Date else instants  # noon lies in the day
    if kind is Kind.CONTINUOUS:
        return table.numbers(name)
    if not series.dtype.is_numeric():
        raise DataError(
            f"column `{name}` must hold numbers to lie in ranges, got: {series.dtype.base_type()}"
        )
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _labels(table: Table, shown: Table, name: str) -> _Side:
    """Labels of sets of values: the leaves are put into an order in which most sets are ranges."""
    nodes = shown.nodes[name]
    codes = nodes.codes(shown.frame[name]).astype(np.int64)
    used = np.unique(codes[codes >= 0])
    tame = used[(nodes.labels != WILDCARD).to_numpy()[used]]
    places = _places_of_leaves(nodes, tame)
    of_label = np.repeat(np.arange(len(nodes.labels)), nodes.sizes)
    least = np.full(len(nodes.labels), len(places), dtype=np.int64)
    most = np.full(len(nodes.labels), -1, dtype=np.int64)
    np.minimum.at(least, of_label, places[nodes.members])
    np.maximum.at(most, of_label, places[nodes.members])
    lows, highs = np.full(len(nodes.labels) + 1, -np.inf), np.full(len(nodes.labels) + 1, np.inf)
    lows[tame], highs[tame] = least[tame], most[tame]
    gaps = tame[(most - least + 1 > nodes.sizes)[tame]]
    _require_room(len(gaps) * len(places), name)
    lists = np.full(len(nodes.labels) + 1, -1, dtype=np.int64)
    lists[gaps] = np.arange(len(gaps))
    members = np.zeros((len(gaps), len(places)), dtype=np.uint8)
    listed = lists[of_label] >= 0
    members[lists[of_label[listed]], places[nodes.members[listed]]] = 1
    leaves = match_leaves(table.frame[name], nodes.leaves)
    values = np.where(leaves < 0, np.nan, np.append(places, 0)[np.maximum(leaves, 0)].astype(np.float64))
    widths = np.nan_to_num(width(shown.frame[name], nodes=nodes))
    return _Side(values, lows[codes], highs[codes], widths, lists[codes], members)  # code −1 is the last


def _require_room(n_cells: int, name: str) -> None:
    if n_cells > _LARGEST_LISTS:
        raise DataError(
            f"the labels of `{name}` must be nested or fewer to be applied to another table, got: too many "
            "sets of values that overlap",
            hint="generalise the column along a hierarchy",
        )


def _places_of_leaves(nodes: Nodes, used: Ints) -> Ints:
    """Where each leaf stands, if leaves are sorted by the sets they are in, large sets first."""
    order = np.arange(len(nodes.leaves), dtype=np.int64)
    several = used[nodes.sizes[used] > 1]  # a single leaf is a range wherever it stands
    if len(several) >= len(order):  # more sets than nested ones could be: no order would suit them
        return order
    # From the smallest sets to the largest: each sort keeps what the former did among equals.
    for code in several[np.argsort(nodes.sizes[several], kind="stable")]:
        outside = np.ones(len(order), dtype=np.bool_)
        outside[nodes.members[nodes.starts[code] : nodes.starts[code + 1]]] = False
        order = order[np.argsort(outside[order], kind="stable")]
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


# Boxes shown -------------------------------------------------------------------------------------------


def _shown(table: Table, like: Table, name: str, rows: Ints) -> Table:
    """Show a column as the records ``rows`` of ``like`` do (−1: no record, which is dealt with later)."""
    nodes = like.nodes.get(name)
    if nodes is None and not is_interval(like.frame.schema[name]):
        suppressed = np.append(like.missing(name), False)[rows] & ~table.missing(name)
        return to_missing(table, name, suppressed)  # all else is as it was: exact values lie in equal ones
    taken = like.frame[name].gather(pl.Series(rows).replace(MISSING, None))
    if nodes is None:
        return table.with_values(name, taken)
    return table.with_nodes(name, taken.cast(pl.String).cast(nodes.dtype), nodes)
