"""Recoding like another release: the classes of one table are applied to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from sfumato import kernels
from sfumato.core.method import Gives, Method, Randomness
from sfumato.core.params import Resource, param
from sfumato.core.release import FittedMethod, Release
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.cover import Cover, cover_of, extent
from sfumato.data.generalised.nodes import MISSING
from sfumato.data.generalised.suppressing import to_missing, to_wildcard
from sfumato.data.schema import Kind
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError, UnreachableError, count_noun
from sfumato.kernels.arrays import Bytes, Floats, Ints
from sfumato.methods._analyst_notes import RANGES
from sfumato.methods._enforcing import COMPARABLE

#: Cells of the lists of members of labels that are no ranges; beyond, the labels are too many to be held.
_LARGEST_LISTS = 2**30


class RecodeLike(Method):
    r"""Recode records with the ranges and labels of an earlier release, each with the narrowest that fit.

    The resource ``like`` is a protected table, such as the release of a local recoding. Its distinct
    combinations of keys are boxes :math:`B = B_1 \times \dots \times B_q`, where :math:`B_j` is the set of
    exact values that the :math:`j`-th key of the box may stand for. A record :math:`x` is shown as

    .. math::

        B(x) = \arg\min_{B \ni x} \frac{1}{q} \sum_{j=1}^{q} w(B_j)

    where :math:`w` is the share of the domain that a value covers, as in the information loss: :math:`(hi -
    lo)/(max - min)` for a range, :math:`(members - 1)/(leaves - 1)` for a label, 0 for an exact value, 1 for
    the wildcard. The domain is that of ``like``. Of equally narrow boxes the first in ``like`` is taken. So a
    recoding is fitted once and applied later, to another year or to late records.

    See Also
    --------
    Mondrian : makes such a release.
    Recoding : shows keys at fixed levels of their hierarchies, which is how a global recoding is repeated.

    Notes
    -----
    **When to use.** New records must be shown in the same classes as an earlier release: a panel's next wave,
    a file that arrives in parts. Give ``like`` the protected table, ``resources={"first": release.table}`` or
    a file with it in a plan's ``[resources]``; the release of a local recoding has both ready, in ``fitted``
    and ``resources``. A global recoding needs no boxes: apply its levels. Ranges that fit their records
    tightly leave gaps, and those of a small table cover few other records.

    **Guarantees.** Every record lies within the ranges and labels that it shows. Nothing else is guaranteed
    for the new table: k was counted in the other one. The new records *add* to the classes of the first table
    if both are published as one; measure the joint release. A record that no box covers is shown as the
    wildcard in every key (``unseen="suppress"``), or there is no release at all (``"raise"``).

    **Risk to know.** The boxes were made without the new records: a box may contain only one of them, and
    comparing the two releases shows which record is new. Require ``k`` of the new release, and suppress what
    fails. Ranges that follow the first table's records disclose information about those records.

    **Ties, missing, weights.** A missing value lies in boxes where the key is missing or the wildcard. With
    ``missing="any"`` a missing key of a box covers every value, as if it spanned the whole domain, and the
    cell is suppressed: right for a release by local suppression. A value that is not in ``like`` lies in
    ranges that contain it; a category only in the wildcard. Weights are not used.

    **Cost.** About :math:`O(\log m)` for each record if the :math:`m` boxes do not overlap; up to
    :math:`O(m)` if most overlap. A label that is no range in any order of the values costs a byte for each
    value.

    Examples
    --------
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
    vetted = (
        "brute-forced: property/test_recode_like.py::"
        "test_each_record_is_shown_as_the_narrowest_box_that_covers_it"
    )
    family = "recoding"
    nature = "non-perturbative"
    title = "Recoding like another release"
    analyst_note = RANGES
    kinds = COMPARABLE
    references = ("lefevre2006", "hundepool2012")
    gives = Gives(generalised=True, suppressed=True)
    randomness = Randomness(stochastic=False)
    cost = "n log m"

    like: Resource = param(
        Resource("fitted"),
        "The protected table whose combinations of keys are used.",
        holds="table",
        label="Other release",
    )
    unseen: Literal["suppress", "raise"] = param(
        "suppress",
        "How records that no combination covers are treated.",
        choices={
            "suppress": "They are suppressed: every key shows the wildcard.",
            "raise": "As an error: nothing is released.",
        },
        renamed={"withhold": "suppress"},
        label="Uncovered records",
    )
    missing: Literal["category", "any"] = param(
        "category",
        "What a missing key means in the other release.",
        choices={
            "category": "A missing value.",
            "any": "Any value, which is then suppressed: right for a release by local suppression.",
        },
        label="Missing keys",
    )

    def refuses(self, table: Table) -> str | None:
        """Refuse columns that are generalised already: nobody knows in which box they lie."""
        return self.refuses_generalised(table) or super().refuses(table)

    def protect(self, table: Table, run: Run) -> Release:
        """Find the box of each record, then show it."""
        like = self._learnt_from(table, run)
        boxes = _boxes_of(table, like, anything=self.missing == "any")
        found = kernels.trees.covering.first_covering(
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
                f"{count_noun(n_uncovered, 'record')} fit no combination of keys of `{self.like}`",
                hint="suppress them with unseen = suppress, or use a table that covers them",
            )
        rows, shown = np.append(boxes.examples, MISSING)[found], table
        for name in table.chosen:
            shown = to_wildcard(_show_like(shown, like, name, rows), name, uncovered)
        some = count_noun(n_uncovered, "record")
        note = f"{some} that no box of `{self.like}` covers, suppressed in every key"
        return Release.record_by_record(
            shown,
            classes=np.unique(found, return_inverse=True)[1].astype(np.int64),
            notes=(note,) if n_uncovered else (),
            figures={"records_suppressed": n_uncovered},
        )

    def _learnt_from(self, table: Table, run: Run) -> Table:
        like: object = run.resource(self.like)
        if not isinstance(like, Table):
            found = f"a {type(like).__name__.lower()}"
            raise RefusedError(f"`like` of {self.name} must name a resource that is a table, got: {found}")
        absent = [f"`{name}`" for name in table.chosen if name not in like.schema]
        if absent:
            raise RefusedError(f"`{self.like}` lacks keys that {self.name} needs: {', '.join(absent)}")
        return like.select(table.chosen)


def learning(release: Release, keys: Sequence[str]) -> Release:
    """Have the release of a local recoding say how other tables are recoded like it."""
    table = release.table.select(sorted(keys)).aimed_at(())
    return replace(release, fit=FittedMethod(RecodeLike(), {str(RecodeLike().like): table}))


# Records as points, combinations of keys as boxes ------------------------------------------------------


@dataclass(frozen=True)
class _KeyBoxes:
    """Records of one table as points, combinations of keys of another as boxes, the narrowest first."""

    points: Floats  # [n, columns] +∞: a value that only an unbounded side covers
    lows: Floats  # [boxes, columns]
    highs: Floats
    lists: Ints  # [boxes, columns] which list of members a side with gaps has, −1: none
    members: Bytes  # [lists, values]
    examples: Ints  # [boxes] a record of `like` that shows the box


@dataclass(frozen=True)
class _KeyColumn:
    """One column: the values of the records, and what each box stands for there."""

    values: Floats  # [n] NaN: covered by nothing but the wildcard
    lows: Floats  # [boxes] −∞ and ∞: the wildcard
    highs: Floats
    widths: Floats  # [boxes] share of the domain
    lists: Ints  # [boxes]
    members: Bytes  # [lists, values]


def _boxes_of(table: Table, like: Table, *, anything: bool) -> _KeyBoxes:
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
    return _KeyBoxes(
        points=_stack_columns([side.values for side in sides], len(table)),
        lows=_stack_columns([side.lows for side in sides], len(examples))[order],
        highs=_stack_columns([side.highs for side in sides], len(examples))[order],
        lists=lists[order],
        members=_pad_lists([side.members for side in sides]),
        examples=examples[order],
    )


def _stack_columns(columns: list[Floats], n: int) -> Floats:
    stacked = np.column_stack(columns) if columns else np.zeros((n, 0))
    return np.where(np.isnan(stacked), np.inf, stacked)


def _pad_lists(parts: list[Bytes]) -> Bytes:
    """The lists of all columns one below the other, filled up to one length."""
    longest = max((part.shape[1] for part in parts), default=0)
    filled = [np.pad(part, ((0, 0), (0, longest - part.shape[1]))) for part in parts if len(part)]
    return np.concatenate(filled) if filled else np.zeros((0, longest), dtype=np.uint8)


def _side_of(table: Table, shown: Table, name: str, *, anything: bool) -> _KeyColumn:
    """Put the column of both tables on one line, missing values at a place of their own."""
    values, cover = cover_of(table, shown, name, nested=True)
    gone, wild, lows, highs = cover.missing, cover.wildcards, cover.lows, cover.highs
    if table.schema[name].kind is Kind.DATE and cover.sets is None and cover.step:
        values = np.floor(values / cover.step) * cover.step  # noon lies in the day
    widths = replace(cover, domain=extent(lows, highs)).share_of_domain()
    finite = np.concatenate([each[np.isfinite(each)] for each in (values, lows, highs)])
    most = finite.max(initial=0.0)
    # A range without an upper end must not reach what is no value: it ends where the last value is.
    highs = np.where(np.isposinf(highs) & ~wild, most, highs)
    hole = np.nextafter(most, np.inf)  # beyond all values, and below the infinity of what was never seen
    members, lists = _lists(cover, name)
    return _KeyColumn(
        values=np.where(table.missing(name), hole, values),
        lows=np.where(gone, -np.inf if anything else hole, lows),
        highs=np.where(gone, np.inf if anything else hole, highs),
        widths=np.where(gone, 1.0 if anything else 0.0, widths),
        lists=lists,
        members=members,
    )


def _lists(cover: Cover, name: str) -> tuple[Bytes, Ints]:
    """The members of the labels that are no ranges, and which list each cell has."""
    if cover.sets is None or cover.codes is None:
        return np.zeros((0, 0), dtype=np.uint8), np.full(len(cover.lows), -1, dtype=np.int64)
    sets = cover.sets
    used = np.unique(cover.codes[~cover.uninformative])
    gaps = used[(sets.highs - sets.lows + 1 > sets.sizes)[used]]
    _require_room(len(gaps) * len(sets.places), name)
    lists = np.full(len(sets.sizes) + 1, -1, dtype=np.int64)  # the last is that of code −1
    lists[gaps] = np.arange(len(gaps))
    members = np.zeros((len(gaps), len(sets.places)), dtype=np.uint8)
    listed = lists[sets.owners] >= 0
    members[lists[sets.owners[listed]], sets.values[listed].astype(np.int64)] = 1
    return members, lists[cover.codes]


def _require_room(n_cells: int, name: str) -> None:
    if n_cells > _LARGEST_LISTS:
        raise DataError(
            f"the labels of `{name}` cannot be applied to another table: too many of them overlap",
            hint="generalise the column along a hierarchy",
        )


# Boxes shown -------------------------------------------------------------------------------------------


def _show_like(table: Table, like: Table, name: str, rows: Ints) -> Table:
    """Show a column as the records ``rows`` of ``like`` do (−1: no record, which is dealt with later)."""
    nodes = like.nodes.get(name)
    if not like.is_generalised(name):
        suppressed = np.append(like.missing(name), False)[rows] & ~table.missing(name)
        return to_missing(table, name, suppressed)  # all else is as it was: exact values lie in equal ones
    taken = like.frame[name].gather(pl.Series(rows).replace(MISSING, None))
    if nodes is None:
        return table.with_values(name, taken)
    return table.with_nodes(name, taken.cast(pl.String).cast(nodes.dtype), nodes)
