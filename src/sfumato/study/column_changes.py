"""What was lost by column, as data: original beside release; nothing per record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.core.release import Release
from sfumato.data.codings import microseconds
from sfumato.data.column_store import distinct_values, series_of
from sfumato.data.dominance import hides_each
from sfumato.data.generalised.cover import CATEGORIES, Cover, covers_of
from sfumato.data.generalised.intervals import is_interval, value_dtype
from sfumato.data.generalised.rare_values import known_of
from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.data.persons import count_by_value, persons_of
from sfumato.data.schema import STRUCTURAL_ROLES, Kind
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints, count_distinct

Fate = Literal["untouched", "changed", "emptied", "renamed", "left out", "made anew"]

_MICROSECONDS_A_DAY = 86_400e6
#: What lies between these shares of the values is the spread of a column: nine of ten.
_SPREAD_PERCENTILES = (5, 95)
#: A mean that is farther from 0, in standard deviations, can have changed by a share of it.
_MIN_MEAN_DEVIATIONS = 0.1


@dataclass(frozen=True)
class Vanished:
    """Categories that somebody has in the original and that no cell of the release can stand for.

    So many ``categories`` ``of`` those that occur; ``share`` of the records had them.
    """

    categories: int
    of: int
    share: float


@dataclass(frozen=True)
class PublicSizes:
    """What may be public of the sizes of a loss, beside its shares.

    ``changed_cells`` is how many cells changed, told only where they are few. Values moved by ``move``: the
    mean of the changes where it hides each (``is_mean``), else the median over people, of at least ten; None
    where there are fewer. ``mean_change`` is told where that mean is. ``width`` is that of the typical range
    as the release shows it, None where that has an open end: ended where the original ends, it would tell
    the largest or smallest value. ``of`` is the spread of the column, where ten people lie beyond each end
    of it. Groups (``size``, ``of``) are counted without rare values, those that fewer than ten people have
    and nothing declares; where these are ten or more, only the ``part`` of all values in a group is told. Of
    categories that ``vanished`` no rare one is counted, nor told of: who knows which there can be would
    learn that somebody has it. Of a column that was left out, emptied or made anew ``is_mean`` is whether
    the mean distance from the middle hides each.
    """

    changed_cells: int = 0
    move: float | None = None
    is_mean: bool = False
    mean_change: float | None = None
    width: float | None = None
    size: float | None = None
    of: float | None = None
    part: float | None = None
    vanished: Vanished | None = None


@dataclass(frozen=True)
class Loss:
    """What became of one column: its fate, shares of the cells, and sizes in the column's own unit.

    Of the cells that have a value in the original, ``suppressed`` say nothing in the release, ``coarser``
    stand for several values (ranges of the typical ``width``, groups of the typical ``size``) and ``changed``
    hold another value, ``moved`` away from the original on average. ``unit`` is that of width and moved:
    days for dates, nothing for numbers. ``of`` is what they are held against: where nine of ten values lie,
    or, of groups, how many values occur in the original. ``in_order`` is whether groups of an ordered column
    are of neighbours. ``mean_change`` and ``total_change`` are shares of the original's, middles standing for
    ranges. All this is for the owner; ``public_sizes`` is for everybody.
    """

    column: str
    role: str
    fate: Fate
    suppressed: float = 0.0
    coarser: float = 0.0
    width: float | None = None
    size: float | None = None
    of: float | None = None
    in_order: bool | None = None
    changed: float = 0.0
    moved: float | None = None
    unit: Literal["", "days"] = ""
    mean_change: float | None = None
    total_change: float | None = None
    vanished: Vanished | None = None
    public_sizes: PublicSizes = field(default=PublicSizes(), repr=False)

    @property
    def outcome(self) -> Literal[Fate, "ranges", "groups", "suppressed"]:
        """What chiefly happened to the column: of several things the one that an analyst meets first."""
        if self.fate != "changed":
            return self.fate
        if self.width is not None:
            return "ranges"
        if self.size is not None:
            return "groups"
        return "changed" if self.changed else "suppressed"

    @property
    def hides_each(self) -> bool:
        """Whether a public mean of how far its values went gives nobody's value away."""
        if self.fate in {"left out", "emptied", "made anew"}:
            return self.public_sizes.is_mean
        is_open = self.width is not None and self.public_sizes.width is None
        return not is_open and (self.moved is None or self.public_sizes.is_mean)

    @property
    def shares(self) -> dict[str, float]:
        """Which share of the cells met with what, for the owner: the rest is as it was."""
        whole = {"left out": "suppressed", "emptied": "suppressed", "made anew": "made anew"}
        if self.fate in whole:
            return {whole[self.fate]: 1.0}
        found = {name: getattr(self, name) for name in ("coarser", "changed", "suppressed")}
        return {name: min(share, 1.0) for name, share in found.items() if share}

    @property
    def spans(self) -> dict[str, float]:
        """Which part of the column a typical range or group stands for, and values moved by; at most all."""
        sized = {"coarser": self.size if self.width is None else self.width, "changed": self.moved}
        return {name: min(size / self.of, 1.0) for name, size in sized.items() if size and self.of}

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, for the owner, in two digits."""
        payload = asdict(self)
        del payload["public_sizes"]
        gone = payload.pop("vanished") or {"categories": 0, "of": None, "share": 0.0}
        payload |= {"vanished": gone["categories"], "categories": gone["of"], "vanished_share": gone["share"]}
        return {k: float(f"{v:.2g}") if isinstance(v, float) else v for k, v in payload.items()}


def losses(original: Table, release: Release) -> tuple[Loss, ...]:
    """What became of each column of the original, in its order."""
    rows, reading = release.source_rows, release.reading()
    if rows is not None and (rows < 0).any():  # nobody has lost anything
        reading, rows = reading.take(np.flatnonzero(rows >= 0)), rows[rows >= 0]
    tables = _TablePair(original, reading, rows)
    return tuple(_loss(name, tables) for name in original.names)


@dataclass(frozen=True, eq=False)
class _TablePair:
    """The original and the release, and the original's row of each released record; None: they do not map."""

    original: Table
    released: Table
    rows: Ints | None

    @cached_property
    def beside(self) -> Table | None:
        """The original's records in the order of the release."""
        return None if self.rows is None else self.original.take(self.rows)

    @cached_property
    def persons(self) -> Ints:
        return persons_of(self.original)

    @cached_property
    def is_of_all(self) -> bool:
        """Whether every record of the original is in the release."""
        if self.rows is None:
            return False
        there = np.zeros(len(self.original), dtype=np.bool_)
        there[self.rows] = True
        return bool(there.all())


@dataclass(frozen=True, eq=False)
class _ColumnPair:
    """A column of the original, whole and beside the release, and of the release, on one line of numbers."""

    tables: _TablePair
    name: str

    @property
    def original(self) -> Table:
        return self.tables.original

    @property
    def persons(self) -> Ints:
        """Whose each record of the original is."""
        return self.tables.persons

    @cached_property
    def covers(self) -> tuple[Cover, Cover]:
        return covers_of(self.original, self.tables.released, self.name)

    @property
    def whole(self) -> Cover:
        return self.covers[0]

    @property
    def after(self) -> Cover:
        return self.covers[1]

    @cached_property
    def before(self) -> Cover:
        return self.whole if self.tables.rows is None else self.whole.take(self.tables.rows)

    @property
    def kind(self) -> Kind:
        return self.original.schema[self.name].kind

    @property
    def is_number(self) -> bool:
        return self.kind in {Kind.CONTINUOUS, Kind.DATE}

    @cached_property
    def coarse(self) -> Flags:
        """Which cells stand for several values."""
        after = self.after
        if after.sets is not None and after.codes is not None:
            return np.append(after.sets.sizes > 1, False)[after.codes] & ~after.uninformative
        return (after.highs > after.lows) & ~after.uninformative

    @cached_property
    def days(self) -> float:
        """How many days one step of the line is, of dates; 1 of all others."""
        return _days(self.original, self.tables.released, self.name) if self.kind is Kind.DATE else 1.0

    @cached_property
    def moves(self) -> Floats:
        """How far up each value moved, in the column's unit; NaN where it did not, or is no value."""
        with np.errstate(invalid="ignore", over="ignore"):
            moved = (self.after.lows - self.before.lows) * self.days
        return np.where(np.isfinite(moved) & (moved != 0) & ~self.coarse, moved, np.nan)


def _loss(name: str, tables: _TablePair) -> Loss:
    original, released, beside = tables.original, tables.released, tables.beside
    column = original.schema[name]
    role = column.role.value if column.role else ""
    if name not in released.names or column.pseudonym:
        fate: Fate = "renamed" if name in released.names else "left out"
        return Loss(name, role, fate, public_sizes=_of_distances(original, name))
    if column.kind is Kind.SET:
        return _loss_of_sets(name, role, beside, released)
    pair = _ColumnPair(tables, name)
    if beside is None:
        loss = Loss(name, role, "made anew", public_sizes=_of_distances(original, name))
        return _with_vanished(_with_means(loss, pair), pair)
    if not released.is_generalised(name) and beside.frame[name].equals(released.frame[name]):
        loss = Loss(name, role, "untouched")
        return loss if tables.is_of_all else _with_vanished(loss, pair)
    return _with_vanished(_loss_of_cells(name, role, pair), pair)


def _loss_of_cells(name: str, role: str, pair: _ColumnPair) -> Loss:
    """What became of a column whose cells are not all as they were."""
    loss = _count_changes(name, role, pair)
    if not (loss.suppressed or loss.coarser or loss.changed):
        return Loss(name, role, "untouched")
    if pair.after.uninformative.all():
        return Loss(name, role, "emptied", suppressed=1.0, public_sizes=_of_distances(pair.original, name))
    return _with_means(_with_sizes(loss, pair), pair)


def _loss_of_sets(name: str, role: str, beside: Table | None, released: Table) -> Loss:
    """What became of a column of sets of items: how many of the sets differ, or say nothing."""
    if beside is None:
        return Loss(name, role, "made anew", public_sizes=PublicSizes(is_mean=True))
    before, after = beside.frame[name], released.frame[name]
    there = before.is_not_null()
    gone, count = there & after.is_null(), max(int(there.sum()), 1)
    other = before.ne_missing(after) & ~gone
    suppressed, changed = int(gone.sum()) / count, int(other.sum()) / count
    fate: Fate = "changed" if suppressed or changed else "untouched"
    if suppressed and after.is_null().all():
        fate = "emptied"
    sizes = PublicSizes(int(other.sum()), is_mean=True)
    return Loss(name, role, fate, suppressed=suppressed, changed=changed, public_sizes=sizes)


def _count_changes(name: str, role: str, pair: _ColumnPair) -> Loss:
    """The shares of cells; a value that stands where there was none counts as changed."""
    before, after, there = pair.before, pair.after, ~pair.before.missing
    count = max(int(there.sum()), 1)
    with np.errstate(invalid="ignore"):
        other = ~pair.coarse & ~after.uninformative & (before.lows != after.lows)
    return Loss(
        name, role, "changed",
        suppressed=float((there & after.uninformative).sum() / count),
        coarser=float((pair.coarse & there).sum() / count),
        changed=float(other.sum() / count),
        unit="days" if pair.kind is Kind.DATE else "",
        public_sizes=PublicSizes(int(other.sum())),
    )  # fmt: skip


def _with_sizes(loss: Loss, pair: _ColumnPair) -> Loss:
    """How wide ranges are, how large groups, how far values moved: typical ones, in the column's unit."""
    if pair.coarse.any() and not pair.is_number and pair.after.sets is not None:
        return _with_groups(loss, pair)
    if pair.coarse.any() or pair.is_number:
        loss = _with_spread(loss, pair)
    if pair.coarse.any():
        loss = _with_ranges(loss, pair)
    return _with_moves(loss, pair) if pair.is_number and loss.changed else loss


def _with_spread(loss: Loss, pair: _ColumnPair) -> Loss:
    """Where nine of ten values of the original lie; public if ten people are beyond each end."""
    known = ~pair.whole.missing
    values, persons = pair.whole.middles[known], pair.persons[known]
    if not len(values) or not np.isfinite(values).all():
        return loss
    low, high = map(float, np.percentile(values, _SPREAD_PERCENTILES))
    spread = (high - low) * pair.days or None
    beyond = min(count_distinct(persons[values <= low]), count_distinct(persons[values >= high]))
    public = replace(loss.public_sizes, of=spread if beyond >= MIN_PERSONS_NAMED else None)
    return replace(loss, of=spread, public_sizes=public)


def _with_ranges(loss: Loss, pair: _ColumnPair) -> Loss:
    """The typical width of ranges."""
    after, ended = pair.after, pair.after.close_ends()
    width = float(np.median((ended.highs - ended.lows)[pair.coarse])) * pair.days
    shown = float(np.median((after.highs - after.lows)[pair.coarse])) * pair.days
    public = replace(loss.public_sizes, width=shown if np.isfinite(shown) else None)
    return replace(loss, width=width, public_sizes=public)


def _with_moves(loss: Loss, pair: _ColumnPair) -> Loss:
    """How far values moved that are others now."""
    changed = ~np.isnan(pair.moves)
    far = np.abs(pair.moves[changed])
    move, is_mean = _public_move(far, pair.persons[pair.tables.rows][changed])
    public = replace(loss.public_sizes, move=move, is_mean=is_mean)
    return replace(loss, moved=float(np.mean(far)) if len(far) else None, public_sizes=public)


def _with_groups(loss: Loss, pair: _ColumnPair) -> Loss:
    """The typical size of groups, how many values there are, and whether neighbours are together.

    For everybody these are the values that there may be, of which the release does not tell which occur.
    """
    sets, codes = pair.after.sets, pair.after.codes
    assert sets is not None  # they are groups
    assert codes is not None
    counts = np.bincount(codes[pair.coarse], minlength=len(sets.sizes))
    used, known = np.flatnonzero(counts), known_of(pair.original, pair.name)
    leaves = pair.tables.released.nodes[pair.name].leaves
    rare = leaves.is_in(list(known.few) if known else []).to_numpy()
    common = ~np.isnan(sets.places) & ~rare
    order = np.unique(sets.places[~np.isnan(sets.places)])
    there = ~np.isnan(sets.places) & _occurring(leaves, pair)
    size, seen = (
        _median(np.bincount(sets.owners, some[sets.leaves], len(sets.sizes)), counts)
        for some in (common, there)
    )
    ends = (np.searchsorted(order, each[used]) for each in (sets.highs, sets.lows))
    runs = np.subtract(*ends) + 1 == sets.sizes[used]
    if np.count_nonzero(rare) >= MIN_PERSONS_NAMED:
        public = replace(loss.public_sizes, part=_median(sets.sizes, counts) / len(order))
    else:
        public = replace(loss.public_sizes, size=size if size > 1 else None, of=float(common.sum()))
    is_in_order = bool(runs.all()) if pair.kind is Kind.ORDINAL else None
    return replace(loss, size=seen, of=float(there.sum()), in_order=is_in_order, public_sizes=public)


def _median(values: Floats | Ints, counts: Ints) -> float:
    """The median of values that occur so often."""
    order = np.argsort(values, kind="stable")
    n_up_to = np.cumsum(counts[order])
    middle = [(n_up_to[-1] - 1) // 2, n_up_to[-1] // 2]
    return float(values[order][np.searchsorted(n_up_to, middle, side="right")].mean())


def _occurring(leaves: pl.Series, pair: _ColumnPair) -> Flags:
    """Which values occur in the original: `010**` stands for a hundred codes, of which a file has a few."""
    if pair.original.is_generalised(pair.name):
        return np.ones(len(leaves), dtype=bool)
    values = distinct_values(pair.original.frame[pair.name].drop_nulls()).cast(leaves.dtype, strict=False)
    return leaves.is_in(values.implode()).to_numpy()


def _with_means(loss: Loss, pair: _ColumnPair) -> Loss:
    """By how much the mean and the total of a column of numbers changed, where they are far from 0.

    Everybody may know that of the mean where the changes hide each and nobody is missing or silent, whose
    value would be the difference of the means.
    """
    if pair.kind is not Kind.CONTINUOUS:
        return loss
    closed = pair.after.close_ends(wildcards="silent")
    before, after = (each[np.isfinite(each)] for each in (pair.whole.means, closed.means))
    if not len(before) or not len(after):
        return loss
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean, spread = before.mean(), before.std()
        change = float((after.mean() - mean) / abs(mean))
        total = float((after.sum() - before.sum()) / abs(before.sum()))
    if not (abs(mean) > _MIN_MEAN_DEVIATIONS * spread and np.isfinite([change, total, spread]).all()):
        return loss
    public = replace(loss.public_sizes, mean_change=change if _hides_all_moves(loss, pair) else None)
    return replace(loss, mean_change=change, total_change=total, public_sizes=public)


def _hides_all_moves(loss: Loss, pair: _ColumnPair) -> bool:
    """Whether the difference of two means is of changes that hide each, upwards and downwards."""
    if loss.fate != "changed" or loss.suppressed or loss.coarser or not pair.tables.is_of_all:
        return False
    sides = [np.flatnonzero(side) for side in (pair.moves > 0, pair.moves < 0) if side.any()]
    people = pair.persons[pair.tables.rows]
    return all(hides_each(np.abs(pair.moves[side]), people[side]) for side in sides)


def _with_vanished(loss: Loss, pair: _ColumnPair) -> Loss:
    """Which categories nobody finds in the release any more; public are those that many people had."""
    column = pair.original.schema[pair.name]
    has_categories = column.kind in CATEGORIES and column.role not in STRUCTURAL_ROLES
    if loss.fate == "emptied" or pair.original.is_generalised(pair.name) or not has_categories:
        return loss
    there = ~pair.whole.missing
    if not there.any():
        return loss
    counts = count_by_value(series_of(pair.whole.lows[there]), pair.persons[there])
    values, records, people = (counts[each].to_numpy() for each in ("value", "records", "people"))
    common, gone = people >= MIN_PERSONS_NAMED, ~_are_covered(pair.after, values)
    public = replace(loss.public_sizes, vanished=_vanished_categories(gone, common, records))
    every = _vanished_categories(gone, np.ones_like(gone), records)
    return replace(loss, vanished=every, public_sizes=public)


def _vanished_categories(gone: Flags, among: Flags, records: Ints) -> Vanished | None:
    lost = gone & among
    if not lost.any():
        return None
    return Vanished(int(lost.sum()), int(among.sum()), float(records[lost].sum() / records.sum()))


def _are_covered(cover: Cover, values: Floats) -> Flags:
    """Which of these values some cell stands for, alone or among others."""
    has_content = ~cover.uninformative
    if cover.sets is not None and cover.codes is not None:
        used = np.bincount(cover.codes[has_content & (cover.codes >= 0)], minlength=len(cover.sets.sizes)) > 0
        return np.isin(values, cover.sets.values[used[cover.sets.owners]])
    begun = np.searchsorted(values, cover.lows[has_content], side="left")
    ended = np.searchsorted(values, cover.highs[has_content], side="right")
    # How many cells begin at a value or before, less those that end before it: the values ascend.
    n_open = np.bincount(begun, minlength=len(values) + 1) - np.bincount(ended, minlength=len(values) + 1)
    return np.cumsum(n_open)[: len(values)] > 0


def _public_move(far: Floats, persons: Ints) -> tuple[float | None, bool]:
    """How far values moved, as everybody may know, and whether that is their mean (see `PublicSizes`)."""
    if hides_each(far, persons):
        return float(far.mean()), True
    own = np.unique(persons, return_inverse=True)[1]
    means = np.bincount(own, weights=far) / np.maximum(np.bincount(own), 1)
    return (float(np.median(means)) if len(means) >= MIN_PERSONS_NAMED else None), False


def _of_distances(original: Table, name: str) -> PublicSizes:
    """Of a column of which no cell is left: whether the mean distance from its middle tells nobody's."""
    if original.schema[name].kind is not Kind.CONTINUOUS or original.is_generalised(name):
        return PublicSizes(is_mean=True)
    values = original.numbers(name)
    there = np.isfinite(values)
    far = np.abs(values[there] - np.median(values[there])) if there.any() else values[there]
    return PublicSizes(is_mean=not far.any() or hides_each(far, persons_of(original)[there]))


def _days(original: Table, released: Table, name: str) -> float:
    """How many days one step of the common line of two columns of dates is."""
    original_dtype, released_dtype = original.frame.schema[name], released.frame.schema[name]
    if name not in released.nodes:
        released_dtype = value_dtype(released_dtype) if is_interval(released_dtype) else released_dtype
        if microseconds(original_dtype) != microseconds(released_dtype):
            return 1 / _MICROSECONDS_A_DAY
    return microseconds(original_dtype) / _MICROSECONDS_A_DAY
