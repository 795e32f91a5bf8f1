"""What the files of SPSS, Stata and SAS can hold: names, lengths, numbers, and codes for missing values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sfumato.errors import WriteError, count_noun, quoted
from sfumato.io.statistical import clocks
from sfumato.io.statistical.clocks import Clock
from sfumato.io.statistical.variables import LETTERS, Variable

_SPSS_WORDS = "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH"
_STATA_WORDS = (
    "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with str[0-9]+"
)
_SAS_WORDS = "_N_ _ERROR_ _NUMERIC_ _CHARACTER_ _ALL_"


@dataclass(frozen=True)
class Package:
    """A package and the limits of its files; lengths are in bytes of UTF-8 unless said otherwise.

    ``reserved`` has the words that no variable may be called; with ``folds_case`` Age and age are one name.
    """

    name: str
    clock: Clock
    naming: str
    rule: str
    reserved: str
    folds_case: bool
    longest_name: int
    longest_label: int
    longest_meaning: int
    longest_text: int
    largest: float
    counts_letters: bool = False

    def length(self, text: str) -> int:
        """The length of a name or label as the package counts it."""
        return len(text) if self.counts_letters else len(text.encode())

    def fitting(self, text: str, limit: int) -> str:
        """Cut a label that is too long, with … at the end to show it."""
        text = text.replace("\0", "")
        if self.length(text) <= limit:
            return text
        if self.counts_letters:
            return text[: limit - 1] + "…"
        return text.encode()[: limit - len("…".encode())].decode(errors="ignore") + "…"


SPSS = Package(
    "SPSS",
    clocks.SPSS,
    naming=r"[^\W\d_][\w.$#@]*(?<!\.)",
    rule="begin with a letter, go on with letters, digits, _ . $ # or @, and not end with a point",
    reserved=_SPSS_WORDS,
    folds_case=True,
    longest_name=64,
    longest_label=256,
    longest_meaning=120,
    longest_text=32_767,
    largest=1.797e308,
)
STATA = Package(
    "Stata",
    clocks.STATA,
    naming=r"[^\W\d]\w*",
    rule="begin with a letter or _, and go on with letters, digits or _",
    reserved=_STATA_WORDS,
    folds_case=False,
    longest_name=32,
    longest_label=80,
    longest_meaning=8_000,
    longest_text=2_000_000,
    largest=8.98e307,
    counts_letters=True,
)
SAS = Package(
    "SAS",
    clocks.SAS,
    naming=r"[A-Za-z_][A-Za-z0-9_]*",
    rule="begin with a letter from A to Z or _, and go on with such letters, digits or _",
    reserved=_SAS_WORDS,
    folds_case=True,
    longest_name=32,
    longest_label=256,
    longest_meaning=0,
    longest_text=32_767,
    largest=9e74,
)

#: The largest whole number of Stata's type for such; above it are its missing values.
STATA_WHOLE = 2_147_483_620

_SPSS_CODES = 3  # how many codes, or else a range and one code
_SPSS_CODE_BYTES = 8


# What does not fit -----------------------------------------------------------------------------------------


def name_faults(names: Sequence[str], package: Package) -> Iterator[str]:
    """Say which names the package does not take."""
    reserved = re.compile("|".join(package.reserved.split()), re.IGNORECASE if package.folds_case else 0)
    for name in names:
        if not re.fullmatch(package.naming, name):
            yield f"the name `{name}` does not suit {package.name}: names must {package.rule}"
        elif package.length(name) > package.longest_name:
            unit = "letters" if package.counts_letters else "bytes"
            yield f"the name `{name}` is longer than {package.longest_name} {unit}"
        elif reserved.fullmatch(name):
            yield f"the name `{name}` is reserved in {package.name}"
    if package.folds_case:
        folded = Counter(name.upper() for name in names)
        same = [name for name in names if folded[name.upper()] > 1]
        if same:
            yield f"for {package.name} these names are the same, because case is ignored: {quoted(same)}"


def value_faults(variable: Variable, package: Package) -> Iterator[str]:
    """Say which values of a variable the package does not hold."""
    values = variable.values
    if variable.is_text:
        long = int((values.str.len_bytes() > package.longest_text).sum())
        if long:
            most = f"{package.longest_text:,} bytes, the most {package.name} takes"
            yield f"`{variable.name}` has {count_noun(long, 'text')} longer than {most}"
    elif values.dtype.is_float():
        large = int((values.abs() > package.largest).sum())
        if large:
            most = f"{package.largest:g}, the largest {package.name} takes"
            yield f"`{variable.name}` has {count_noun(large, 'number')} above {most}"


# Codes for missing values ----------------------------------------------------------------------------------


def spss_missing(variable: Variable) -> list[Any]:
    """The codes, or the range and the code, that SPSS is told of.

    More codes than SPSS takes become a range from the lowest to the highest, or to the last but one, if no
    other value lies between: the same values are then missing.
    """
    if variable.is_text:
        return _spss_texts(variable)
    span = variable.span
    apart = sorted(c for c in variable.codes if span is None or not span[0] <= c <= span[1])
    if span is None and len(apart) <= _SPSS_CODES:
        return [float(code) for code in apart]
    if span is None or len(apart) > 1:
        span, apart = _covering(variable, apart, span)
    return [{"lo": float(span[0]), "hi": float(span[1])}, *(float(code) for code in apart)]


def _spss_texts(variable: Variable) -> list[str]:
    long = sum(len(code.encode()) > _SPSS_CODE_BYTES for code in variable.codes)
    if len(variable.codes) > _SPSS_CODES or long:
        raise WriteError(
            f"`{variable.name}` has {count_noun(len(variable.codes), 'missing code')}, {long} of them longer "
            "than 8 bytes; SPSS takes at most 3 of at most 8 bytes",
            hint="declare fewer or shorter ones, or make them empty",
        )
    return list(variable.codes)


def _covering(
    variable: Variable, codes: Sequence[float], span: tuple[float, float] | None
) -> tuple[tuple[float, float], list[float]]:
    """A range that covers all codes but at most one, and nothing else that occurs or has a label."""
    meant = pl.Series(list(variable.labels), dtype=pl.Float64, strict=False)
    coded = Variable(variable.name, meant, codes=variable.codes, span=variable.span).coded()
    valid = variable.values.filter(~variable.coded()).drop_nulls().cast(pl.Float64)
    valid = pl.concat([valid, meant.filter(~coded)])
    for left_out in ([], [codes[0]], [codes[-1]]):
        ends = [code for code in codes if code not in left_out] + list(span or ())
        if not valid.is_between(min(ends), max(ends)).any():
            return (min(ends), max(ends)), left_out
    raise WriteError(
        f"`{variable.name}` has {len(variable.codes)} missing codes with other values between them; "
        "SPSS takes at most 3, or a range and a code",
        hint="declare fewer, or give them numbers that follow each other",
    )


def letters_of(variable: Variable, package: Package) -> dict[Any, str]:
    """The special missing value of Stata or SAS, from a to z, that each missing code becomes.

    A code that was such a value keeps its letter; the others take those that are free, in their order.
    """
    if variable.is_text:
        return {}
    codes = dict.fromkeys(variable.codes)
    if variable.span is not None:
        lo, hi = variable.span
        codes |= dict.fromkeys(key for key in variable.labels if lo <= key <= hi)
        codes |= dict.fromkeys(variable.values.filter(variable.coded()).unique().sort())
    taken = {code: letter for code, letter in variable.tags.items() if package is SAS or letter != "_"}
    free = [letter for letter in LETTERS[1:] if letter not in taken.values()]
    others = [code for code in codes if code not in taken]
    if len(others) > len(free):
        raise WriteError(
            f"`{variable.name}` has {len(codes)} missing codes; {package.name} takes at most "
            f"{len(LETTERS) - 1}",
            hint="declare fewer, or write an SPSS file",
        )
    return taken | dict(zip(others, free, strict=False))


def require_codes(variable: Variable, package: Package) -> None:
    """Raise unless the package can be told of all missing codes."""
    _ = spss_missing(variable) if package is SPSS else letters_of(variable, package)


def cut_labels(variables: Iterable[Variable], package: Package) -> list[str]:
    """Names of the variables with a label that is longer than the package takes."""
    limits = package.longest_label, package.longest_meaning
    return [
        variable.name
        for variable in variables
        if package.length(variable.label) > limits[0]
        or any(package.length(label) > limits[1] > 0 for label in variable.labels.values())
    ]
