"""Signs of the kind of a column, and of the codes that stand for a missing value in it.

The signs are asked in order and the first that speaks is believed. To teach it something new, add a sign to
`KIND_SIGNS`, or a word to `sfumato.data.guess.words`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import polars as pl

from sfumato.data.date_forms import FORMS, days, to_iso
from sfumato.data.generalised.intervals import is_interval
from sfumato.data.generalised.text_forms import looks_generalised
from sfumato.data.guess import words
from sfumato.data.guess.facts import Facts, KindSign, plain_words
from sfumato.data.schema import Column, Kind
from sfumato.errors import count_noun

_CODES_AT_MOST = 15  # more distinct whole numbers than this are a quantity
_LARGEST_CODE = 999
_APART = 5  # a missing code among positive numbers is at least this many times the largest of the rest
_BANDS_AT_MOST = 50  # more ranges than this are no grades
_SHOWN_IN_ORDER = 6
_MAX_SHORT_WORD = 3  # NA may be one among words of at most this length

_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}:\d{2}(\.\d+)?)?$"
_LIKE_A_DATE = r"^\s*(?:\d{1,2}[./\-]\d{1,2}[./\-]\d{2,4}|\d{4}[./\-]\d{1,2}[./\-]\d{1,2})"
_SHORT_YEAR = r"^\s*(\d{1,2}[./\-]\d{1,2}[./\-]\d{2})\s*$"
_THOUSANDS_OR_DECIMALS = r"^\s*-?\d{1,3}(,\d{3})+\s*$"
_CENTURIES = (18_500_000, 21_000_000)
#: Letters and a number: G3, GS-12, T2.
_CODE = r"^(\p{L}{1,5})[ .\-]?(0|[1-9]\d{0,2})$"
_ODD_CODES = 2  # words beside such codes, as SES beside G3
#: What may stand between the items of a set, and the share of the values that must have several items.
_SEPARATORS, _SEVERAL_ITEMS = ("|", ";", ","), 0.2
_LONGEST_ITEM = 40
_AT_SEVERAL_PLACES = 0.3  # the share of the items of a set that stand now first, now later


def _band() -> str:
    """The pattern of ranges as people write them: 18-24, 25 to 34, < 18, 65+, and a single number."""
    number = r"\d+(?:\.\d+)?"
    below, above, between, onward, measures = (
        "|".join(sorted((word.replace("+", r"\+") for word in words.RANGES[part]), key=len, reverse=True))
        for part in ("below", "above", "between", "onward", "measures")
    )
    measured = rf"(?:\s?(?:{measures}))?"
    return (
        rf"(?i)^(?:({below})|({above}))?\s?€?({number}){measured}"
        rf"(?:\s?(?:{between})\s?€?({number}){measured}|\s?({onward}))?$"
    )


_BAND = _band()


def generalised_form(texts: pl.Series) -> Literal["interval", "node"] | None:
    """Which text forms of generalised values a column holds; quick where there are none."""
    return looks_generalised(texts) if texts.str.contains(r"^[\[{*]|^[0-9]+\*+$").any() else None


def kind_of(facts: Facts) -> KindSign:
    """What the first sign that speaks says of the column."""
    return next(sign for look in KIND_SIGNS if (sign := look(facts)) is not None)


# The signs ------------------------------------------------------------------------------------------------


def _by_type(facts: Facts) -> KindSign | None:
    dtype = facts.series.dtype
    if dtype.is_temporal():
        codes = _missing_dates(facts, facts.values.cast(pl.String)) if dtype.is_(pl.Date) else ()
        reason = "its type is a date or time" + _missing_codes_note("dates", codes)
        return KindSign(Kind.DATE, reason, 1.0, {"missing": codes})
    if isinstance(dtype, pl.List):
        return KindSign(Kind.SET, "its type is a list of values", 1.0)
    if isinstance(dtype, pl.Enum):
        return KindSign(Kind.ORDINAL, "its categories have an order", 0.8, {"order": tuple(dtype.categories)})
    if dtype == pl.Boolean:
        return KindSign(Kind.NOMINAL, "true or false", 1.0)
    if is_interval(dtype):
        temporal = dtype.fields[0].dtype.is_temporal()  # type: ignore[attr-defined]
        return KindSign(Kind.DATE if temporal else Kind.CONTINUOUS, "intervals", 1.0)
    return None


def _by_form(facts: Facts) -> KindSign | None:
    if facts.series.dtype != pl.String:
        return None
    form = generalised_form(facts.values)
    # Written as in the original's country.
    if form is None and facts.values.str.contains(r"^\[.*;.*\]$").any():
        if generalised_form(facts.values.str.replace_all(",", ".", literal=True)) == "interval":
            return KindSign(Kind.CONTINUOUS, "intervals written as text, with decimal commas", 0.9)
        for each in FORMS:
            if generalised_form(to_iso(facts.values, each)) == "interval":
                return KindSign(Kind.DATE, f"intervals of dates written {each}", 0.9, {"form": each})
    if form == "interval":
        temporal = facts.share(r"\d{4}-\d{2}-\d{2}") > 0
        return KindSign(Kind.DATE if temporal else Kind.CONTINUOUS, "intervals written as text", 0.9)
    return KindSign(Kind.NOMINAL, "sets of values written as text", 0.9) if form == "node" else None


def _by_numbers(facts: Facts) -> KindSign | None:
    if not facts.series.dtype.is_numeric() or not facts.distinct:
        return None
    codes = _missing_numbers(facts)
    if facts.series.dtype.is_integer() and _are_days(facts.values, codes):
        return KindSign(Kind.DATE, "dates written yyyymmdd", 0.9, {"missing": codes, "form": "yyyymmdd"})
    kind, reason, confidence = _number_kind(facts, facts.distinct - len(codes))
    more: dict[str, Any] = {"missing": codes}
    if kind is Kind.CONTINUOUS and facts.whole:
        more["integer"] = True
    note = "; it has unusual values, possibly codes for missing" if codes else ""
    return KindSign(kind, reason + note, confidence, more)


def _are_days(values: pl.Series, codes: tuple[int, ...]) -> bool:
    """Whether all but the missing codes are days such as 20241231, and not just numbers of eight digits."""
    values = values.cast(pl.Int64, strict=False)
    values = values.filter(~values.is_in(list(codes)))
    if not len(values) or not values.is_between(*_CENTURIES).all():
        return False
    return not days(values.cast(pl.String), "yyyymmdd").is_null().any()


def _number_kind(facts: Facts, distinct: int) -> tuple[Kind, str, float]:
    if not facts.whole:
        return Kind.CONTINUOUS, "numbers with decimals", 0.95
    if facts.numbers == "label":
        return Kind.NOMINAL, "the name suggests a code", 0.8
    if facts.numbers == "quantity":
        return Kind.CONTINUOUS, "whole numbers, and the name suggests a quantity", 0.9
    large = (facts.values.abs() > _LARGEST_CODE).any()
    if distinct > _CODES_AT_MOST or 3 * distinct > len(facts.present) or large:
        return Kind.CONTINUOUS, "whole numbers, many or large ones", 0.8
    if distinct > 2 and facts.numbers == "grade":  # noqa: PLR2004
        return Kind.ORDINAL, "few whole numbers, and the name suggests a grade", 0.7
    return Kind.NOMINAL, "few distinct whole numbers: perhaps codes", 0.5


def _by_text(facts: Facts) -> KindSign | None:
    if facts.series.dtype != pl.String or not len(facts.sample):
        return None
    if (numbers := _by_number_texts(facts)) is not None:
        return numbers
    if facts.sample.str.contains(_THOUSANDS_OR_DECIMALS).all():
        reason = "numbers whose commas may separate thousands or decimals: give `decimal`"
        return KindSign(Kind.NOMINAL, reason, 0.3)
    if facts.sample.str.contains(_ISO_DATE).any():
        odd = _missing_codes_among(facts, _dates)
        if odd is not None:
            codes = (*odd, *_missing_dates(facts, facts.values))
            reason = "dates written year, month, day" + _missing_codes_note("texts", codes)
            return KindSign(Kind.DATE, reason, 0.95, {"missing": codes})
    return _by_date_form(facts)


def _by_number_texts(facts: Facts) -> KindSign | None:
    """Speak of numbers beside texts that stand for a missing value, or for one that does not apply."""
    if facts.sample.cast(pl.Float64, strict=False).is_null().all():
        return None
    odd = _missing_codes_among(facts, _floats, words.NOT_APPLICABLE)
    if odd is None:
        return None
    missing = tuple(code for code in odd if code not in words.NOT_APPLICABLE)
    numbers = _by_numbers(Facts(_floats(facts.series))) if odd else None
    if numbers is None or facts.values.str.contains(r"^\s*(-?0\d|\+)").any():
        return KindSign(
            Kind.NOMINAL,
            "digits that are a code: a number would lose some of them",
            0.9,
            {"missing": missing},
        )
    reason = numbers.reason + _missing_codes_note(
        "texts", odd if numbers.kind is not Kind.NOMINAL else missing
    )
    if numbers.kind is Kind.CONTINUOUS:
        codes = {"missing": (*odd, *numbers.facts["missing"])}
        return KindSign(Kind.CONTINUOUS, reason, numbers.confidence, {**numbers.facts, **codes})
    texts = facts.values.filter(_floats(facts.values).is_not_null())
    apart = texts.filter(_floats(texts).is_in(list(numbers.facts["missing"])))
    blank = ("",) if facts.blanks else ()
    padded = (facts.values.str.strip_chars() != facts.values).any()
    if numbers.kind is Kind.ORDINAL and not padded:
        graded = pl.DataFrame({"text": texts.filter(~texts.is_in(apart.implode()))})
        order = graded.sort(_floats(graded["text"]), "text")["text"].to_list()
        codes = {"order": tuple(order), "missing": (*odd, *apart.sort(), *blank)}
        return KindSign(Kind.ORDINAL, reason, numbers.confidence, codes)
    return KindSign(Kind.NOMINAL, reason, numbers.confidence, {"missing": (*missing, *apart.sort())})


def _floats(texts: pl.Series) -> pl.Series:
    return texts.str.strip_chars().cast(pl.Float64, strict=False)


def _by_date_form(facts: Facts) -> KindSign | None:
    """Speak of dates as they are written in a country, if only one form reads all of them."""
    if not facts.sample.str.contains(_LIKE_A_DATE).any():
        return None
    found = {form: _missing_codes_among(facts, partial(days, form=form)) for form in FORMS}
    read = {form: odd for form, odd in found.items() if odd is not None}
    if len(read) > 1:
        forms = " or ".join(f'"{form}"' for form in read)
        reason = f"dates in which day or month may come first: give kind = date, form = {forms}"
        return KindSign(Kind.NOMINAL, reason, 0.3)
    for form, odd in read.items():
        codes = (*odd, *_missing_dates(facts, to_iso(facts.values, form)))
        reason = f"dates written {form}" + _missing_codes_note("texts", codes)
        return KindSign(Kind.DATE, reason, 0.95, {"missing": codes, "form": form})
    if _missing_codes_among(facts, lambda texts: texts.str.extract(_SHORT_YEAR)) is not None:
        return KindSign(
            Kind.NOMINAL, "dates with two-digit years: write four digits, or the column stays text", 0.3
        )
    unread = {form: int(days(facts.values, form).null_count()) for form in FORMS}
    form = min(unread, key=unread.__getitem__)
    if 2 * unread[form] <= len(facts.values):
        odd_values = count_noun(unread[form], "different value")
        reason = f"dates written {form}, beside {odd_values}: correct them, or list as `missing`"
        return KindSign(Kind.NOMINAL, reason, 0.3)
    return None


def _dates(texts: pl.Series) -> pl.Series:
    texts = texts.set(~texts.str.contains(r"^\s*\d{4}"), None)  # 80-11-15 is no day of the first century
    days = texts.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
    times = texts.str.replace(" ", "T", literal=True).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False)
    return days.zip_with(days.is_not_null(), times)


def _by_order(facts: Facts) -> KindSign | None:
    """Speak of texts that have an order: ranges such as 18-24 and 65+, words of a scale, grades like G3."""
    if not facts.textual or not 2 < facts.distinct <= min(_BANDS_AT_MOST, len(facts.present) // 3):  # noqa: PLR2004
        return None
    texts = facts.values.cast(pl.String)
    codes = [*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS]
    odd, texts = texts.filter(texts.is_in(codes)), texts.filter(~texts.is_in(codes))
    missing = (*odd.sort(), *([""] if facts.blanks else []))  # whatever is not in the order must be missing
    for what, read in (("ranges of numbers", _bands), ("words of a scale", _scale), ("grades", _grade_order)):
        order = read(texts, facts)
        if len(order) > 2:  # noqa: PLR2004
            reason = f"{what}, which have an order" + _missing_codes_note("texts", missing)
            return KindSign(Kind.ORDINAL, reason, 0.8, {"order": tuple(order), "missing": missing})
    return None


def _bands(texts: pl.Series, facts: Facts) -> list[str]:  # noqa: ARG001
    """The texts in order, if all are numbers or ranges, most of them ranges, and none overlaps another."""
    bands = _read_bands(texts).sort("low", "high", "text")
    overlap = (bands["high"].shift(1) > bands["low"]).any()
    sound = bands["sound"].all() and 2 * int(bands["ranged"].sum()) > len(bands) and not overlap
    return bands["text"].to_list() if sound else []


def _read_bands(texts: pl.Series) -> pl.DataFrame:
    """The ends of each range, whether there are two, and whether it reads at all."""
    plain = pl.col("text").str.replace_all(r"(\d),(\d{3})\b", "${1}${2}")
    below, over, low, high, above = (plain.str.extract(_BAND, group) for group in range(1, 6))
    # 00-04 is a range, 01-01301 is a code.
    code = low.str.contains(r"^0\d") & (low.str.len_bytes() != high.str.len_bytes())
    read = pl.DataFrame({"text": texts}).with_columns(
        low=pl.when(below.is_not_null()).then(-1.0).otherwise(low.cast(pl.Float64, strict=False)),
        high=pl.coalesce(high, low).cast(pl.Float64, strict=False),
        ranged=pl.any_horizontal(part.is_not_null() for part in (below, over, high, above)),
        code=code.fill_null(value=False),
    )
    return read.with_columns(sound=(pl.col("low") <= pl.col("high")).fill_null(value=False) & ~pl.col("code"))


def _scale(texts: pl.Series, facts: Facts) -> list[str]:  # noqa: ARG001
    """The texts in order, if all are words of one scale, such as never, sometimes, always."""
    plain = dict(zip(texts, plain_words(texts), strict=True))
    for scale in words.SCALES:
        if scale.keys() >= set(plain.values()) and len({scale[bare] for bare in plain.values()}) > 2:  # noqa: PLR2004
            return sorted(plain, key=lambda text: (scale[plain[text]], text))
    return []


def _grade_order(texts: pl.Series, facts: Facts) -> list[str]:
    """The texts in order, if the column is one of grades and they are letters with a number, as G3 to G15.

    A word or two beside them, as SES, stand last.
    """
    if facts.numbers != "grade":
        return []
    letters, number = (pl.col("text").str.extract(_CODE, group) for group in (1, 2))
    read = pl.DataFrame({"text": texts}).with_columns(letters=letters, number=number.cast(pl.Int64))
    others = read.filter(pl.col("number").is_null())["text"]
    if len(others) > _ODD_CODES or len(read) - len(others) < 2 or not others.str.contains(r"^\p{L}+$").all():  # noqa: PLR2004
        return []
    return read.sort("letters", "number", "text", nulls_last=True)["text"].to_list()


def shown_order(column: Column) -> str:
    """The order of a column as far as its values are ranges, grades or words of our own lists."""
    texts = pl.Series([str(value) for value in column.order], dtype=pl.String)
    ours = set().union(*words.SCALES)
    known = texts.str.contains(_BAND) | texts.str.contains(_CODE) | plain_words(texts).is_in(list(ours))
    shown = texts.filter(known).to_list()
    if not shown:
        return ""
    ends = [*shown[:2], "…", shown[-1]] if len(shown) > _SHOWN_IN_ORDER else shown
    rest = len(texts) - len(shown)
    return " < ".join(ends) + (f", and {count_noun(rest, 'other')}" if rest else "")


def _by_items(facts: Facts) -> KindSign | None:
    """Speak of sets of items in one text, as bread|milk: items that several values share, in any number."""
    if facts.series.dtype != pl.String:
        return None
    known = facts.values.is_in([*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS])
    texts, codes = facts.values.filter(~known), tuple(facts.values.filter(known).sort())
    for separator in _SEPARATORS:
        if _are_sets(texts, separator):
            more = {"separator": separator, "missing": codes}
            return KindSign(Kind.SET, f"sets of items with `{separator}` between them", 0.7, more)
    return None


def _are_sets(texts: pl.Series, separator: str) -> bool:
    several = texts.str.contains(separator, literal=True)
    if int(several.sum()) < max(3, _SEVERAL_ITEMS * len(texts)):
        return False
    cells = pl.DataFrame(
        {"items": texts.str.strip_chars().str.strip_chars_end(separator).str.split(separator)}
    )
    sizes, different = cells["items"].list.len(), cells["items"].list.n_unique()
    if sizes.n_unique() < 2 or (sizes != different).any():  # noqa: PLR2004  # parts of a code, or of an address
        return False
    items = cells.with_row_index("cell").explode("items").with_columns(pl.col("items").str.strip_chars())
    items = items.with_columns(place=pl.int_range(pl.len()).over("cell"))
    texts_of = items["items"]
    long = texts_of.str.len_chars().max() or 0
    if (texts_of == "").any() or long > _LONGEST_ITEM:  # type: ignore[operator]
        return False
    if separator == "," and not texts_of.str.contains(r"\p{L}").all():
        return False
    counts = items.group_by("items").agg(pl.len(), places=pl.col("place").n_unique())
    wandering = float((counts["places"] > 1).mean() or 0.0)  # type: ignore[arg-type]
    return 2 * len(counts) <= len(items) and wandering >= _AT_SEVERAL_PLACES


def _otherwise(facts: Facts) -> KindSign:
    if not len(facts.present):
        return KindSign(Kind.NOMINAL, "no value at all", 0.1)
    codes = _missing_words(facts) if facts.series.dtype == pl.String else ()
    met = set(plain_words(facts.sample)) if facts.textual and facts.distinct == 2 else set()  # noqa: PLR2004
    what = "yes or no" if met and any(met <= each for each in words.YES_NO) else "text"
    return KindSign(Kind.NOMINAL, what + _missing_codes_note("texts", codes), 0.9, {"missing": codes})


KIND_SIGNS: tuple[Callable[[Facts], KindSign | None], ...] = (
    _by_type,
    _by_form,
    _by_numbers,
    _by_text,
    _by_order,
    _by_items,
    _otherwise,
)


# Codes that stand for a missing value ---------------------------------------------------------------------


def _missing_codes_note(what: str, codes: tuple[str, ...]) -> str:
    return f"; some {what} mean missing" if codes else ""


def _missing_codes_among(
    facts: Facts, read: Callable[[pl.Series], pl.Series], more: tuple[str, ...] = ()
) -> tuple[str, ...] | None:
    """The texts that do not read, if each stands for a missing value; None if one does not."""
    odd = facts.values.filter(read(facts.values).is_null())
    known = odd.str.strip_chars().is_in([*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS, *more])
    return tuple(odd.str.strip_chars().unique().sort()) if known.all() else None


def _missing_words(facts: Facts) -> tuple[str, ...]:
    known = [*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS]
    met = set(facts.values.filter(facts.values.is_in(known)))
    # NA may be Namibia among countries of two letters, and − a grade among other signs.
    longest = int(facts.sample.str.len_chars().max() or 0)  # type: ignore[arg-type]
    allowed = known if longest > _MAX_SHORT_WORD else words.MISSING_WORDS
    return tuple(word for word in allowed if word in met)


def _missing_numbers(facts: Facts) -> tuple[int, ...]:
    """Codes that stand apart: negative where nothing else is, or far above all else; met more than once."""
    codes = pl.Series(words.MISSING_NUMBERS).cast(facts.values.dtype, strict=False).drop_nulls().unique()
    candidate = facts.values.is_in(codes.implode())
    rest = facts.values.filter(~candidate)
    if len(rest) < 3 or not candidate.any():  # noqa: PLR2004
        return ()
    low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
    met = [
        code for code in facts.values.filter(candidate) if (code < 0 <= low) or code >= _APART * max(high, 1)
    ]
    return tuple(sorted(int(code) for code in _frequent_values(facts, met)))


def _missing_dates(facts: Facts, texts: pl.Series) -> tuple[str, ...]:
    """Dates that no one means, met more than once."""
    met = texts.filter(texts.is_in(words.MISSING_DATES))
    if not len(met) or len(met) == len(texts):
        return ()
    values = facts.values.filter(texts.is_in(met.implode()))
    return tuple(sorted(str(day) for day in _frequent_values(facts, values.to_list())))


def _frequent_values(facts: Facts, met: list[Any]) -> list[Any]:
    """Those of a few values that more than one record has."""
    if not met:
        return []
    few = pl.Series(met, dtype=facts.present.dtype)
    counts = facts.present.filter(facts.present.is_in(few.implode())).value_counts()
    return [value for value, count in counts.iter_rows() if count > 1]
