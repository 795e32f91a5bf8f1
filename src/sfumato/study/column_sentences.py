"""What was lost by column, in words: for the owner, and as everybody may know it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfumato.data.hidden_content import MIN_PERSONS_NAMED
from sfumato.study.column_changes import Loss

_DAYS = {"years": 365.25, "months": 30.44, "days": 1.0, "hours": 1 / 24, "minutes": 1 / 1440}
#: Nearly all cells, and nearly all of a column that a range or group stands for.
_WHOLE, _NEARLY = 0.99, 0.9
#: A change of a mean that is worth a word: to the owner, and to everybody.
_MOVED, _MOVED_MUCH = 0.005, 0.05
#: What is said of a column of which all cells met with the same.
_FATES = {
    "made anew": "replaced by synthetic values",
    "emptied": "fully suppressed",
    "untouched": "untouched",
    "renamed": "replaced by pseudonyms",
    "left out": "left out",
}


@dataclass(frozen=True)
class ColumnSentence:
    """What happened to one column, without a verdict on it: for its owner, or ``public``.

    The one place that says it, for every text that leaves. Of what is public, shares are rounded to 5 %,
    since those of changed cells tell the parameter of a method that changes at random, and sizes to one digit
    or two; no mean, sum or end of the original from which one value follows, and no category that few people
    had.
    """

    loss: Loss
    public: bool = False

    def __str__(self) -> str:
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        loss = self.loss
        if loss.fate != "changed":
            yield f"{loss.column} {_FATES[loss.fate]}"
        elif loss.width is not None:
            yield self._in_ranges()
        elif loss.size is not None:
            yield self._in_groups()
        if loss.changed:
            yield self._public_change() if self.public else self._change()
        if loss.suppressed and loss.fate == "changed":
            yield f"{self._percent(loss.suppressed)} of {loss.column} suppressed"
        yield from self._vanished_text()
        yield from self._public_mean() if self.public else self._means()

    def _percent(self, share: float) -> str:
        """A share of some cells: in steps of five percent for everybody, neither none nor all."""
        step = 5 if self.public else 1
        if share < 0.05 if self.public else round(100 * share) == 0:  # noqa: PLR2004
            return f"under {step} %"
        if share > 0.95 if self.public else share < 1 and round(100 * share) >= 100:  # noqa: PLR2004
            return f"over {100 - step} %"
        return f"about {5 * round(20 * share)} %" if self.public else f"{min(round(100 * share), 100)} %"

    def _in_ranges(self) -> str:
        loss, sizes = self.loss, self.loss.public_sizes if self.public else self.loss
        whole = loss.coarser + loss.suppressed > _WHOLE
        name = loss.column if whole else f"{self._percent(loss.coarser)} of {loss.column}"
        if sizes.width is None:
            return f"{name} given as wide ranges"
        wide = f"{self._amount(sizes.width)} wide{self._of_spread(sizes.width, sizes.of)}"
        return f"{name} given as ranges, typically {wide}{self._emptiness_text(sizes.width, sizes.of)}"

    def _in_groups(self) -> str:
        loss, sizes = self.loss, self.loss.public_sizes if self.public else self.loss
        size, of = sizes.size, sizes.of
        its = "its {} values" if of is None or of <= (loss.of or of) else "{} possible values"
        large = f", typically of {_figure(size)} of {its.format(_figure(of))}" if size and of else ""
        if self.public and (part := loss.public_sizes.part):
            size, of, large = part, 1.0, f", typically of {self._percent(part)} of its values"
        order = {True: ", each of neighbours", False: ", not all of neighbours", None: ""}[loss.in_order]
        name = f"{self._percent(loss.coarser)} of {loss.column}"
        return f"{name} given as groups{large}{order}{self._emptiness_text(size, of)}"

    def _emptiness_text(self, typical: float | None, of: float | None) -> str:
        """That little is left, where nearly all cells stand for nearly all of the column."""
        loss = self.loss
        if not typical or not of or typical < _NEARLY * of or loss.coarser + loss.suppressed < _NEARLY:
            return ""
        return f": {'no' if loss.size == loss.of else 'hardly any'} detail left"

    def _change(self) -> str:
        loss = self.loss
        changed = f"{self._percent(loss.changed)} of {loss.column} changed"
        if not loss.moved:
            return changed
        return f"{changed}, by {self._amount(loss.moved)} on average{self._of_spread(loss.moved, loss.of)}"

    def _public_change(self) -> str:
        loss, sizes = self.loss, self.loss.public_sizes
        if sizes.changed_cells < MIN_PERSONS_NAMED:
            return f"fewer than {MIN_PERSONS_NAMED} values of {loss.column} changed"
        changed = f"{self._percent(loss.changed)} of {loss.column} changed"
        if not sizes.move:
            return changed
        by, part = f"by about {self._amount(sizes.move, digits=1)}", self._of_spread(sizes.move, sizes.of)
        return f"{changed}, {by} on average{part}" if sizes.is_mean else f"{changed}, typically {by}{part}"

    def _vanished_text(self) -> Iterator[str]:
        """Which categories are gone, and how many had them."""
        gone = self.loss.public_sizes.vanished if self.public else self.loss.vanished
        if gone is None:
            return
        common = f"the {gone.of} categories that at least {MIN_PERSONS_NAMED} people have"
        of = common if self.public else f"its {gone.of} categories"
        verb = "is" if gone.categories == 1 else "are"
        also = "; rarer ones may be gone, too" if self.public else ""
        yield f"{gone.categories} of {of} {verb} gone ({self._percent(gone.share)} of the records){also}"

    def _public_mean(self) -> Iterator[str]:
        moved = self.loss.public_sizes.mean_change
        if moved is not None and abs(moved) >= _MOVED_MUCH:
            yield f"its mean is {self._percent(abs(moved))} {_direction(moved)}"

    def _means(self) -> Iterator[str]:
        """How mean and total moved, where they did by more than is worth a word."""
        loss, same = self.loss, "as before"
        mean, total = (
            same
            if not change or abs(change) < _MOVED
            else f"{_figure(100 * abs(change))} % {_direction(change)}"
            for change in (loss.mean_change, loss.total_change)
        )
        total = mean if loss.suppressed else total  # a part of the cells has a part of the total
        by = "" if loss.width is None else "with the middle of each range "
        if mean == total != same:
            yield f"{by}its mean {'is' if loss.suppressed else 'and total are'} {mean}"
        elif mean != total:
            yield f"{by}its mean is {mean}, its total {total}"

    def _of_spread(self, size: float | None, of: float | None) -> str:
        """A size against the spread of its column, where it is less than that."""
        return f" ({self._percent(size / of)} of its spread)" if size and of and size < of else ""

    def _amount(self, value: float, *, digits: int = 2) -> str:
        if not self.loss.unit:
            return _figure(value, digits)
        unit = next((unit for unit, days in _DAYS.items() if value >= 2 * days), "minutes")
        return f"{_figure(value / _DAYS[unit], digits)} {unit}"


def sentences(found: Sequence[Loss]) -> list[str]:
    """What was lost by column, in words: what changed, column by column, then the others together."""
    alone, together = [], dict[str, list[str]]((words, []) for words in _FATES.values())
    for loss in found:
        text, words = str(ColumnSentence(loss)), _FATES.get(loss.fate, "")
        if text == f"{loss.column} {words}":
            together[words].append(loss.column)
        else:
            alone.append(text)
    return alone + [f"{join_names(names)} {words}" for words, names in together.items() if names]


def _figure(value: float, digits: int = 2) -> str:
    """A number in two digits that count, or in so many."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"  # noqa: PLR2004


def _direction(change: float) -> str:
    return "higher" if change > 0 else "lower"


def join_names(names: Sequence[str]) -> str:
    """Names in a row, the last after "and"."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
