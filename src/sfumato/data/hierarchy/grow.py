"""Grows hierarchies from no more than a column: its values, how often they occur, what is declared of them.

`propose` chooses what fits the column. Whatever grows here holds every value it was grown from, does not
depend on the order of the records, and has a handful of levels. It is a proposal: write it to a file, change
it there, read it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count

import numpy as np
import polars as pl

from sfumato.data.column_store import count_values
from sfumato.data.generalised.nodes import WILDCARD, Nodes, Values, canonical_text
from sfumato.data.generalised.text_forms import to_text
from sfumato.data.hierarchy.build import (
    add_root,
    by_cuts,
    distinct_texts,
    from_dates,
    from_prefix,
    hierarchy_name,
)
from sfumato.data.hierarchy.tree import Hierarchy
from sfumato.data.schema import Column, Kind, Scalar, Schema
from sfumato.data.table import TEXTUAL, Table
from sfumato.errors import DataError, ParameterError, RefusedError, count_noun
from sfumato.kernels.arrays import Floats

Labels = Sequence[tuple[Scalar, str]]

#: Sets of more members are named by their number: a label of thousands of words helps nobody.
_SHOWN_MEMBERS = 5
#: The most levels between the values and the root that are chosen unasked.
_MOST_LEVELS = 5
#: If the middle half of the records spans less of the range, equal widths would put most into one interval.
_LEAST_MIDDLE = 0.1
#: Years beyond which dates climb to decades too.
_MANY_YEARS = 20
#: Codes of digits: 02139, 02139-1014; of capitals and digits: E11.9, SW1A 1AA; and a name with a number: G15.
_DIGITS = r"^[0-9]+([.\-/ ][0-9]+)*$"
_LETTERED = r"^[A-Z][A-Z.\-/ ]*[0-9][0-9A-Z.\-/ ]*$"
_NUMBERED = r"^([A-Z]+[ .\-]?)[1-9][0-9]*$"
#: The least length and number of codes that are taken to be grouped by their beginnings.
_LEAST_CODE_LENGTH, _LEAST_CODES = 3, 10


def propose(column: Column, values: pl.Series) -> Hierarchy:
    """Build the hierarchy that fits a column.

    Continuous columns get intervals of equal width, or of equally many records where most values crowd in a
    small part of the range; dates climb the calendar; ordered categories are joined with their neighbours;
    nominal codes of digits, or of capitals and digits, lose their last signs, labels such as
    ``Europe: Spain`` their last part; of all other nominal values the rare are joined. Missing values and
    missing codes are left out.
    """
    if column.kind is Kind.SET:
        raise RefusedError(f"`{column.name}` is set-valued, and a hierarchy needs single values")
    present = present_values(column, values)
    if column.kind is Kind.CONTINUOUS:
        series = _present(present)
        return by_cuts(series, cuts_of(series))
    if column.kind is Kind.DATE:
        return _from_calendar(present)
    if _is_structured([label for _, label in column.labels], ":"):
        return from_labels(present, labels=column.labels)
    if column.kind is Kind.ORDINAL:
        order = [value for value in column.order if value not in column.missing_codes]
        return from_order(present, order=order, labels=column.labels)
    return from_codes(present) or from_frequencies(present, labels=column.labels)


def present_values(column: Column, values: pl.Series) -> pl.Series:
    """The values of a column that are neither missing nor codes for it."""
    values = values.alias(column.name)
    missing = Table(values.to_frame(), Schema((column,))).missing(column.name)
    return values.filter(pl.Series(~missing)) if missing.any() else values


# Numbers -----------------------------------------------------------------------------------------------


def from_quantiles(
    values: Values, *, fanout: int = 2, levels: int | None = None, name: str = ""
) -> Hierarchy:
    """Build intervals of about equally many records, ``fanout`` of which make one of the next level.

    Each cut is the roundest number near its place and the outer intervals are unbounded, so that labels are
    easy to read and seldom the value of a record. Without ``levels`` there are as many as leave two distinct
    values to an interval, at most five.
    """
    if fanout < 2 or (levels is not None and levels < 1):  # noqa: PLR2004
        raise ParameterError(
            f"`fanout` must be at least 2 and `levels` at least 1, got: `{fanout}` and `{levels}`"
        )
    series = _present(values, name)
    return by_cuts(series, _cuts_by_quantiles(_sorted_numbers(series), fanout, levels), name=name)


def cuts_of(values: pl.Series) -> list[list[Fraction]]:
    """The cuts of each level between the values and the root that `propose` gives a continuous column."""
    ordered = _sorted_numbers(values)
    return _cuts_by_quantiles(ordered) if _is_skewed(ordered) else _cuts_by_widths(ordered)


def _cuts_by_quantiles(ordered: Floats, fanout: int = 2, levels: int | None = None) -> list[list[Fraction]]:
    n_distinct = 1 + int(np.count_nonzero(np.diff(ordered)))
    if levels is None:
        levels = min(_MOST_LEVELS, _whole_power(n_distinct // 2, fanout))
    levels = min(levels, _whole_power(n_distinct, fanout))  # more could not part the values further
    finest = _quantile_cuts(ordered, fanout**levels)
    cuts: list[list[Fraction]] = []
    for level in range(levels):
        found = sorted({cut for place, cut in finest.items() if place % fanout**level == 0})
        if found and (not cuts or len(found) < len(cuts[-1])):
            cuts.append(found)
    return cuts


def from_widths(values: Values, *, bins: int = 32, name: str = "") -> Hierarchy:
    """Build intervals of equal, round widths (1, 2 or 5 with noughts), each a multiple of the one before.

    The narrowest leave at most ``bins`` intervals, the widest two. Labels are those of `from_intervals`.
    """
    if bins < 1:
        raise ParameterError(f"`bins` must be at least 1, got: `{bins}`")
    series = _present(values, name)
    return by_cuts(series, _cuts_by_widths(_sorted_numbers(series), bins), name=name)


def _cuts_by_widths(ordered: Floats, bins: int = 32) -> list[list[Fraction]]:
    whole = bool((ordered == np.floor(ordered)).all())
    low, high = (Fraction(str(end)) for end in (ordered[0].item(), ordered[-1].item()))
    return [
        [step * place for place in range(low // step, high // step + 2)]
        for step in round_widths(low, high, bins=bins, whole=whole)
    ]


def round_widths(low: Fraction, high: Fraction, *, bins: int = 32, whole: bool = False) -> list[Fraction]:
    """Widths of 1, 2 or 5 with noughts that part the range and nest, narrowest first.

    For ``whole`` numbers they begin at 2, as a width of 1 is the value itself.
    """
    if low == high:
        return []

    def intervals(step: Fraction) -> int:
        return high // step - low // step + 1

    steps = _round_steps(_magnitude((high - low) / bins))
    step = next(step for step in steps if intervals(step) <= bins and (step > 1 or not whole))
    found: list[Fraction] = []
    while intervals(step) > 1:
        if not found or intervals(step) < intervals(found[-1]):
            found.append(step)
        if step > max(abs(low), abs(high)):  # values on both sides of 0 are never in one interval
            break
        # 1, 2, 10 and 5, 10, 20: the least multiple that is round again.
        step *= 5 if _leading_digit(step) == 2 else 2  # noqa: PLR2004
    return found


def _round_steps(magnitude: int) -> Iterator[Fraction]:
    """1, 2 and 5 with noughts, upwards."""
    for exponent in count(magnitude):
        yield from (digit * Fraction(10) ** exponent for digit in (1, 2, 5))


def _leading_digit(step: Fraction) -> int:
    """The digit of a number that is one digit with noughts: 2 of 200 and of 1/50, which is 0.02."""
    shifted = step * Fraction(10) ** -_magnitude(step)
    return int(shifted if shifted < 10 else shifted / 10)  # noqa: PLR2004


def _magnitude(number: Fraction) -> int:
    """The exponent of ten of a positive number, or one less; a logarithm could underflow."""
    return len(str(number.numerator)) - len(str(number.denominator)) - 1


def _quantile_cuts(ordered: Floats, groups: int) -> dict[int, Fraction]:
    """Cuts that part sorted values into groups of about equally many, by their place among the cuts."""
    n = len(ordered)
    slack = n // (4 * groups)  # a quarter of a group on either side: cuts do not meet
    cuts = {}
    for place in range(1, groups):
        middle = place * n // groups
        low, high = max(middle - 1 - slack, 0), middle + slack
        if ordered[low] == ordered[high]:
            # One value fills the place; it is cut off at its nearer end that others are beyond.
            first, after = (
                int(np.searchsorted(ordered, ordered[high], side=side)) for side in ("left", "right")
            )
            ends = [end for end in (first, after) if 0 < end < n]
            if not ends:
                continue
            high = min(ends, key=lambda end: abs(end - middle))
            low = high - 1
        cuts[place] = roundest(*(Fraction(str(ordered[end].item())) for end in (low, high)))
    return cuts


def roundest(below: Fraction, upto: Fraction) -> Fraction:
    """The number above ``below`` and at most ``upto`` with the fewest digits."""
    if below < 0 <= upto:
        return Fraction(0)
    for exponent in count(_magnitude(max(abs(below), abs(upto))) + 2, -1):
        for digit in (5, 2, 1):
            step = digit * Fraction(10) ** exponent
            if (found := upto // step * step) > below:
                return found
    raise AssertionError  # never reached: a step fine enough divides `upto` itself


def _is_skewed(ordered: Floats) -> bool:
    # Halves, as the distance of two large ends would overflow.
    low, middle_low, middle_high, high = np.quantile(ordered, [0, 0.25, 0.75, 1]) / 2
    return bool(middle_high - middle_low < _LEAST_MIDDLE * (high - low))


def _sorted_numbers(series: pl.Series) -> Floats:
    numbers = series.cast(pl.String) if series.dtype in TEXTUAL else series
    real = numbers.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    if n_odd := int((~np.isfinite(real)).sum()):
        raise DataError(f"`{series.name}` has {count_noun(n_odd, 'record')} with a value that is not finite")
    return np.sort(real)


def _whole_power(number: int, base: int) -> int:
    """The greatest exponent with which ``base`` is at most ``number``; 0 for less than that."""
    exponent = 0
    while base ** (exponent + 1) <= number:
        exponent += 1
    return exponent


def _present(values: Values, name: str = "") -> pl.Series:
    """The values that are there, as a series with a name; at least one."""
    series = values if isinstance(values, pl.Series) else pl.Series(values, strict=False)
    series = series.alias(hierarchy_name(name, series)).drop_nulls()
    series = series.drop_nans() if series.dtype.is_float() else series
    if series.is_empty():
        raise DataError(f"all values of `{series.name}` are missing")
    return series


# Dates and codes ---------------------------------------------------------------------------------------


def _from_calendar(values: pl.Series) -> Hierarchy:
    dates = _present(values)
    if dates.dtype in TEXTUAL:
        dates = dates.cast(pl.String).str.to_date("%Y-%m-%d", strict=False)
        if n_odd := dates.null_count():
            raise DataError(
                f"`{dates.name}` has {count_noun(n_odd, 'record')} with a value that is no date",
                hint="write 2026-11-15",
            )
    levels = ["month", "quarter", "year"]
    if dates.dtype == pl.Date or isinstance(dates.dtype, pl.Datetime):
        years = dates.dt.year().to_numpy()
        levels += ["decade"] if years.max() - years.min() >= _MANY_YEARS else []
    return from_dates(dates, levels=levels)


def from_codes(values: Values, *, name: str = "") -> Hierarchy | None:
    """Build levels of ever shorter beginnings of codes; None where the values are something else.

    Codes are of digits, all of one length (postcodes), or of capitals and digits (diagnoses); ten of them or
    more, some of which begin alike. Names with a number, as G3 to G15, are none: G10 is no kind of G1.
    """
    texts = distinct_texts(values)
    alike = texts.str.len_chars().n_unique() == 1
    codes = texts.str.contains(_LETTERED).all() or (alike and texts.str.contains(_DIGITS).all())
    names = texts.str.extract(_NUMBERED)
    numbered = not alike and not names.has_nulls() and names.n_unique() == 1
    if len(texts) < _LEAST_CODES or not codes or numbered:
        return None
    lengths = _telling_lengths(texts)
    return from_prefix(values, lengths=lengths, name=name) if lengths else None


def _telling_lengths(texts: pl.Series) -> Sequence[int]:
    """The lengths of the beginnings to keep, longest first; none where codes do not share their beginnings.

    Of long codes they are some of those at which codes part: 02139-1014 has 02139-101*, and no 02139-*.
    """
    length = int(texts.str.len_chars().max())  # type: ignore[arg-type]
    if length < _LEAST_CODE_LENGTH or texts.str.head(length // 2).n_unique() == len(texts):
        return ()
    if length <= _MOST_LEVELS:
        return range(length - 1, 0, -1)
    amounts = [texts.str.head(n).n_unique() for n in range(1, length + 1)]
    parting = [n for n in range(length - 1, 0, -1) if 1 < amounts[n - 1] < amounts[n]]
    spread = np.linspace(0, len(parting) - 1, min(_MOST_LEVELS, len(parting)))
    return [parting[round(place)] for place in spread]


# Categories --------------------------------------------------------------------------------------------


def from_frequencies(
    values: Values, *, few: int = 3, levels: int = 4, labels: Labels = (), name: str = ""
) -> Hierarchy:
    """Build levels on which the rarest values are one set, ``{Kern|Tulare}``, that grows until few remain.

    The most frequent values stand for themselves longest. Each level leaves at most half of the labels of the
    one before, and the last of at most ``levels`` leaves ``few``. Of values that are equally frequent the
    later in their own order goes first. ``labels`` say what codes mean: they are a level of their own, and
    the names in sets.
    """
    if few < 2 or levels < 1:  # noqa: PLR2004
        raise ParameterError(f"`few` must be at least 2 and `levels` at least 1, got: `{few}` and `{levels}`")
    series = _present(values, name)
    leaves = distinct_texts(series)
    counted = count_values(series)
    counts = (
        counted.select(leaf=canonical_text(counted["value"]), n="n").group_by("leaf").agg(pl.col("n").sum())
    )
    found = pl.DataFrame({"leaf": leaves, "name": _leaf_names(leaves, labels)})
    found = found.join(counts, on="leaf", how="left", maintain_order="left")
    names = found.group_by("name", maintain_order=True).agg(pl.col("n").sum()).with_row_index("place")
    ranked = names.sort(["n", "place"], descending=[True, False])["place"].to_numpy()
    groups = []
    for size in _falling(len(names), few, levels):
        group = np.full(len(names), size - 1)
        group[ranked[: size - 1]] = np.arange(size - 1)
        groups.append(group)
    return _join_leaves(found, names["name"], groups, hierarchy_name(name, series), "other: {n} values")


def from_order(
    values: Values, *, order: Sequence[Scalar] = (), levels: int = 4, labels: Labels = (), name: str = ""
) -> Hierarchy:
    """Build levels of runs of neighbouring categories, ``{low|middle}``, from their order.

    Two runs make one of the next level (more where there would be too many levels), from the low end up.
    Without ``order`` it is that of the values; what is listed and does not occur is among the leaves too.
    """
    if levels < 1:
        raise ParameterError(f"`levels` must be at least 1, got: `{levels}`")
    series = _present(values, name)
    leaves = _ordered_texts(series, order)
    found = pl.DataFrame({"leaf": leaves, "name": _leaf_names(leaves, labels)})
    names = found["name"].unique(maintain_order=True)
    fanout = max(2, math.ceil((len(names) / 2) ** (1 / levels)))
    widths = [fanout**power for power in range(1, levels + 1) if fanout**power < len(names)]
    groups = [np.arange(len(names)) // width for width in widths]
    return _join_leaves(found, names, groups, hierarchy_name(name, series), "{first} … {last}")


def from_labels(values: Values, *, labels: Labels, separator: str = ":", name: str = "") -> Hierarchy:
    """Build from what codes mean: 724, ``Europe: Spain``, ``Europe``; one without a label means itself."""
    series = _present(values, name)
    leaves = distinct_texts(series)
    called = _leaf_names(leaves, labels)
    table = {"leaf": leaves, "name": called}
    if _is_structured(called.to_list(), separator):
        parts = [[part.strip() for part in text.split(separator)] for text in called]
        for depth in range(max(map(len, parts)) - 1, 0, -1):
            shortened = [f"{separator} ".join(each[:depth]) or separator for each in parts]
            table[str(depth)] = pl.Series(shortened, dtype=pl.String)
    return Hierarchy.from_levels(add_root(table), name=hierarchy_name(name, series))


def _is_structured(labels: Sequence[str], separator: str) -> bool:
    """Whether several labels begin alike before a separator."""
    begun = [label.split(separator)[0].strip() for label in labels if separator in label]
    return 0 < len(set(begun)) < len(begun)


def _leaf_names(leaves: pl.Series, labels: Labels) -> pl.Series:
    """What each leaf is called: its label, or itself where it has none."""
    label_of = {
        canonical_text(pl.Series([code])).item(): label for code, label in labels if label != WILDCARD
    }
    return leaves.replace(list(label_of), list(label_of.values())) if label_of else leaves


def _ordered_texts(series: pl.Series, order: Sequence[Scalar]) -> pl.Series:
    """The categories as text in their order; every value must be one."""
    leaves = distinct_texts(series)
    if not order:
        return leaves
    listed = pl.concat([canonical_text(pl.Series([value])) for value in order]).unique(maintain_order=True)
    if unknown := int((~leaves.is_in(listed.implode())).sum()):
        raise DataError(
            f"`{series.name}` has {count_noun(unknown, 'value')} outside its declared order",
            hint="complete `order`, or declare the code as missing",
        )
    return listed


def _falling(number: int, few: int, levels: int) -> list[int]:
    """Numbers of labels that fall evenly to ``few``, at least by half from each level to the next."""
    ratio = max(2.0, (number / few) ** (1 / levels))
    sizes: list[int] = []
    while (sizes[-1] if sizes else number) > few:
        sizes.append(max(few, round(number / ratio ** (len(sizes) + 1))))
    return sizes


def _join_leaves(
    found: pl.DataFrame, names: pl.Series, groups: Sequence[np.ndarray], name: str, many: str
) -> Hierarchy:
    """Build the levels on which leaves, by their names, are joined into groups."""
    table = {"leaf": found["leaf"]}
    if not found["leaf"].equals(found["name"]):
        table["name"] = found["name"]
    for level, group in enumerate(groups):
        of_name = pl.DataFrame({"name": names, "group": group})
        joined = of_name.group_by("group").agg("name").sort("group")
        labels, taken = list[str](), set(names)
        for members in joined["name"].to_list():
            label = members[0] if len(members) == 1 else _label_of_set(members, many)
            while len(members) > 1 and label in taken:  # a value may be called as a set is
                label += "'"
            taken.add(label)
            labels.append(label)
        of_name = of_name.join(joined.select("group", label=pl.Series(labels)), on="group", how="left")
        table[str(level)] = found.join(of_name, on="name", how="left", maintain_order="left")["label"]
    return Hierarchy.from_levels(add_root(table), name=name)


def _label_of_set(members: Sequence[str], many: str) -> str:
    if len(members) > _SHOWN_MEMBERS:
        return many.format(n=len(members), first=members[0], last=members[-1])
    nodes = Nodes.of({"set": members}, leaves=members)
    return str(to_text(pl.Series(["set"], dtype=nodes.dtype), nodes).item())
