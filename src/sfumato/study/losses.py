"""What was lost by column: original beside release, as data and in words. Nothing per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sfumato.core.release import Release
from sfumato.data.codings import microseconds
from sfumato.data.dominance import hides_each
from sfumato.data.generalised.cover import Cover, covers_of
from sfumato.data.generalised.intervals import is_interval, value_dtype
from sfumato.data.persons import persons_of
from sfumato.data.schema import Kind
from sfumato.data.shown import ENOUGH
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags, Floats, Ints

Fate = Literal["untouched", "changed", "renamed", "left out", "made anew"]

_DAYS = {"years": 365.25, "months": 30.44, "days": 1.0, "hours": 1 / 24, "minutes": 1 / 1440}
_MICROSECONDS_A_DAY = 86_400e6


@dataclass(frozen=True)
class PublicSizes:
    """What may be public of the sizes of a loss, beside its shares.

    ``changed_cells`` is how many cells changed, told only where they are few. Values moved by ``move``: the
    mean of the changes where it hides each (``is_mean``), else the median over people, of at least ten; None
    where there are fewer. ``width`` is that of the typical range as the release shows it, None where that has
    an open end: ended where the original ends, it would tell the largest or smallest value. Of a column that
    was left out or made anew ``is_mean`` is whether the mean distance from the middle hides each.
    """

    changed_cells: int = 0
    move: float | None = None
    is_mean: bool = False
    width: float | None = None


@dataclass(frozen=True)
class Loss:
    """What became of one column: its fate, shares of the cells, and sizes in the column's own unit.

    Of the cells that have a value in the original, ``suppressed`` say nothing in the release, ``coarser``
    stand for several values (ranges of the typical ``width``, groups of the typical ``size``) and ``changed``
    hold another value, ``moved`` away from the original on average. ``unit`` is that of width and moved:
    days for dates, nothing for numbers. All this is for the owner; ``public_sizes`` is for everybody.
    """

    column: str
    role: str
    fate: Fate
    suppressed: float = 0.0
    coarser: float = 0.0
    width: float | None = None
    size: float | None = None
    changed: float = 0.0
    moved: float | None = None
    unit: Literal["", "days"] = ""
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
        if self.fate in {"left out", "made anew"}:
            return self.public_sizes.is_mean
        is_open = self.width is not None and self.public_sizes.width is None
        return not is_open and (self.moved is None or self.public_sizes.is_mean)

    def to_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON, for the owner, in two digits."""
        said = asdict(self)
        del said["public_sizes"]
        return {
            key: float(f"{value:.2g}") if isinstance(value, float) else value for key, value in said.items()
        }

    def sentence(self) -> str:
        """What happened to the column, without a verdict on it."""
        if self.fate != "changed":
            return f"{self.column} {self.fate}"
        return "; ".join(self._parts())

    def public_sentence(self) -> str:
        """What may be public of the column: the one place that says it, for every text that leaves.

        Shares are rounded to 5 %, since those of changed cells tell the parameter of a method that changes at
        random, and sizes to one digit; no mean, sum or end of the original from which one value follows.
        """
        if self.fate != "changed":
            return self.sentence()
        return "; ".join(self._public_parts())

    def _public_parts(self) -> Iterator[str]:
        name, sizes = self.column, self.public_sizes
        if self.width is not None:
            within = "in wide ranges" if sizes.width is None else f"within {self._amount(sizes.width)}"
            whole = self.coarser + self.suppressed > 0.99  # noqa: PLR2004
            yield f"{name} {within}{'' if whole else f' for {_coarse_percent(self.coarser)}'}"
        elif self.size is not None:
            yield f"{_coarse_percent(self.coarser)} of {name} became groups of {_figure(self.size)}"
        if self.changed and sizes.changed_cells < ENOUGH:
            yield f"fewer than {ENOUGH} values of {name} changed"
        elif self.changed:
            by = f"by about {self._amount(sizes.move, digits=1)}" if sizes.move else ""
            how = (f", {by} on average" if sizes.is_mean else f", typically {by}") if by else ""
            yield f"{_coarse_percent(self.changed)} of {name} changed{how}"
        if self.suppressed:
            yield f"{_coarse_percent(self.suppressed)} of {name} suppressed"

    def _parts(self) -> Iterator[str]:
        if self.width is not None:
            whole = self.coarser + self.suppressed > 0.99  # noqa: PLR2004
            share = "" if whole else f" for {_percent(self.coarser)}"
            yield f"{self.column} within {self._amount(self.width)}{share}"
        elif self.size is not None:
            yield f"{_percent(self.coarser)} of {self.column} became groups of {_figure(self.size)}"
        if self.changed:
            by = f", by {self._amount(self.moved)} on average" if self.moved else ""
            yield f"{_percent(self.changed)} of {self.column} changed{by}"
        if self.suppressed:
            yield f"{_percent(self.suppressed)} of {self.column} suppressed"

    def _amount(self, value: float, *, digits: int = 2) -> str:
        if not self.unit:
            return _figure(value, digits)
        unit = next((unit for unit, days in _DAYS.items() if value >= 2 * days), "minutes")
        return f"{_figure(value / _DAYS[unit], digits)} {unit}"


def losses(original: Table, release: Release) -> tuple[Loss, ...]:
    """What became of each column of the original, in its order."""
    rows, reading = release.source_rows, release.reading()
    if rows is not None and (rows < 0).any():  # nobody has lost anything
        reading, rows = reading.take(np.flatnonzero(rows >= 0)), rows[rows >= 0]
    beside = None if rows is None else original.take(rows)
    return tuple(_loss(name, original, beside, reading) for name in original.names)


def sentences(found: Sequence[Loss]) -> list[str]:
    """What was lost by column, in words: what changed, column by column, then the others together."""
    said = [loss.sentence() for loss in found if loss.fate == "changed"]
    for fate in ("made anew", "untouched", "renamed", "left out"):
        names = [loss.column for loss in found if loss.fate == fate]
        if names:
            said.append(f"{named(names)} {'given new numbers' if fate == 'renamed' else fate}")
    return said


def _loss(name: str, original: Table, beside: Table | None, released: Table) -> Loss:
    column = original.schema[name]
    role = column.role.value if column.role else ""
    if name not in released.names or column.pseudonym or beside is None:
        there: Fate = "renamed" if column.pseudonym else "made anew"
        sizes = PublicSizes(is_mean=_hides_extremes(original, name))
        return Loss(name, role, there if name in released.names else "left out", public_sizes=sizes)
    if column.kind is Kind.SET:
        differs = (beside.frame[name] != released.frame[name]).fill_null(value=True)
        share = float(differs.mean() or 0.0)  # type: ignore[arg-type]
        sizes = PublicSizes(int(differs.sum()))
        return Loss(name, role, "changed" if share else "untouched", changed=share, public_sizes=sizes)
    if not released.is_generalised(name) and beside.frame[name].equals(released.frame[name]):
        return Loss(name, role, "untouched")
    before, after = covers_of(beside, released, name)
    loss = _counted(name, role, before, after, ~before.missing)
    if not (loss.suppressed or loss.coarser or loss.changed):
        return Loss(name, role, "untouched")
    days = _days(beside, released, name) if column.kind is Kind.DATE else 1.0
    return _with_sizes(loss, before, after, column.kind, days, persons=persons_of(beside))


def _counted(name: str, role: str, before: Cover, after: Cover, there: Flags) -> Loss:
    """The shares of cells; a value that stands where there was none counts as changed."""
    count = max(int(there.sum()), 1)
    coarse, gone = _coarse(after), there & after.silent
    with np.errstate(invalid="ignore"):
        other = ~coarse & ~after.silent & (before.lows != after.lows)
    return Loss(
        name, role, "changed",
        suppressed=float(gone.sum() / count),
        coarser=float((coarse & there).sum() / count),
        changed=float(other.sum() / count),
        public_sizes=PublicSizes(int(other.sum())),
    )  # fmt: skip


def _coarse(cover: Cover) -> Flags:
    """Which cells stand for several values."""
    if cover.sets is not None and cover.codes is not None:
        several = np.append(cover.sets.sizes > 1, False)[cover.codes]
        return several & ~cover.silent
    return (cover.highs > cover.lows) & ~cover.silent


def _with_sizes(loss: Loss, before: Cover, after: Cover, kind: Kind, days: float, *, persons: Ints) -> Loss:
    """How wide ranges are, how large groups, how far values moved: typical ones, in the column's unit."""
    coarse, sized, public = _coarse(after), dict[str, Any](), loss.public_sizes
    as_numbers = kind in {Kind.CONTINUOUS, Kind.DATE}
    if coarse.any() and (as_numbers or after.sets is None):
        ended = after.closed()
        sized["width"] = float(np.median((ended.highs - ended.lows)[coarse])) * days
        shown = float(np.median((after.highs - after.lows)[coarse])) * days
        public = replace(public, width=shown if np.isfinite(shown) else None)
    elif coarse.any() and after.sets is not None and after.codes is not None:
        sized["size"] = float(np.median(after.sets.sizes[after.codes[coarse]]))
    if as_numbers and loss.changed:
        with np.errstate(invalid="ignore"):
            far = np.abs(after.lows - before.lows) * days
        changed = np.isfinite(far) & (far > 0) & ~coarse
        sized["moved"] = float(np.mean(far[changed])) if changed.any() else None
        move, is_mean = _public_move(far[changed], persons[changed])
        public = replace(public, move=move, is_mean=is_mean)
    return replace(loss, unit="days" if kind is Kind.DATE else "", public_sizes=public, **sized)


def _public_move(far: Floats, persons: Ints) -> tuple[float | None, bool]:
    """How far values moved, as everybody may know, and whether that is their mean (see `PublicSizes`)."""
    if hides_each(far, persons):
        return float(far.mean()), True
    own = np.unique(persons, return_inverse=True)[1]
    means = np.bincount(own, weights=far) / np.maximum(np.bincount(own), 1)
    return (float(np.median(means)) if len(means) >= ENOUGH else None), False


def _hides_extremes(original: Table, name: str) -> bool:
    """Whether nobody's distance from the middle of a column of numbers follows from the mean of all."""
    if original.schema[name].kind is not Kind.CONTINUOUS or original.is_generalised(name):
        return True
    values = original.numbers(name)
    there = np.isfinite(values)
    far = np.abs(values[there] - np.median(values[there])) if there.any() else values[there]
    return not far.any() or hides_each(far, persons_of(original)[there])


def _days(original: Table, released: Table, name: str) -> float:
    """How many days one step of the common line of two columns of dates is."""
    mine, theirs = original.frame.schema[name], released.frame.schema[name]
    if name not in released.nodes:
        theirs = value_dtype(theirs) if is_interval(theirs) else theirs
        if microseconds(mine) != microseconds(theirs):
            return 1 / _MICROSECONDS_A_DAY
    return microseconds(mine) / _MICROSECONDS_A_DAY


# Words ----------------------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    """A share in whole percent: a little is not nothing, and nearly all is not all."""
    rounded = round(100 * share)
    if rounded == 0:
        return "under 1 %"
    return "over 99 %" if rounded >= 100 and share < 1 else f"{min(rounded, 100)} %"  # noqa: PLR2004


def _coarse_percent(share: float) -> str:
    """A share of some cells as everybody may know it: in steps of five percent, and neither none nor all."""
    if share < 0.05:  # noqa: PLR2004
        return "under 5 %"
    return "over 95 %" if share > 0.95 else f"about {5 * round(20 * share)} %"  # noqa: PLR2004


def _figure(value: float, digits: int = 2) -> str:
    """A number in two digits that count, or in so many."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"  # noqa: PLR2004


def named(names: Sequence[str]) -> str:
    """Names in a row, the last after "and"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
