"""Signs of the role of a column: its name, the shape of its values, how many records share them.

Of the signs that speak the surest is believed. To teach it something new, add a sign to `ROLE_SIGNS`, a shape
to `SHAPES`, a numbering to `sfumato.data.guess.identifiers`, or a word to `sfumato.data.guess.words`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import polars as pl

from sfumato.data.guess import words
from sfumato.data.guess.contacts import EMAIL, contacts_in
from sfumato.data.guess.facts import MOST_SHARE, Facts, RoleSign, plain_words
from sfumato.data.guess.identifiers import recognise
from sfumato.data.schema import Kind, Role
from sfumato.errors import quoted

UNDECIDED = "role unknown: choose one, or leave the column out"

_UNIT_NUMBERS = (Role.PERSON, Role.HOUSEHOLD)
_MANY_UNITS = 15  # fewer distinct numbers than this are a type of household or a place in it, not a number
_MIN_RECORDS = 20  # records below which "all distinct" says nothing
_LEAST_NUMBER = 1_000  # whole numbers below this may be counts
_SEVERAL = 5  # distinct values below which a shape says nothing
_MIN_WORDS_OF_SENTENCE = 6  # words that make a text a sentence
_MANY_TEXTS = 50  # different texts that are more than a list of answers
_MANY_WORDS = 20  # the same in a column that is called one of free text
_FEW_WORDS = 12  # the most words that a column of sexes or marital states has
_MOSTLY_DISTINCT = 0.5
_A_PHONE = 0.02  # fewer distinct values for each record than this are no phones, but codes: 01-01301, an area
_SHARED = 0.1  # fewer distinct values for each record than this name something shared, not a person
_FAMILIES = 0.05  # the share of family names that are common ones: most are rare

#: How a value becomes its shape: letters, digits and any sign that is not common are replaced.
_SIGNS = (
    (r"\p{N}", "9"), (r"\p{Lu}|\p{Lt}", "A"), (r"[\p{L}\p{M}--A]", "a"), (r"\s+", " "),
    (r"[^9Aa \-./,:;()+@|_]", "?"), ("a{4,}", "aaa"), ("A{5,}", "AAAA"), ("9{12,}", "999999999999"),
    (r"\?{2,}", "?"), ("^(.{24}).+$", "${1}…"),
)  # fmt: skip
_LETTERS = r"\p{Lu}[\p{L}'’\-]*\.?"
_NAME = rf"^(?:\p{{Lu}}\p{{Ll}}*\.\s)?{_LETTERS}(?:,?\s(?:{_LETTERS}|\p{{Ll}}{{1,3}})){{1,4}}$"
_WORDS = r"^[\p{L}'’.,\- ]+$"
_TITLED = (
    r"\b(?:Mrs?|Ms|Dr|Prof|Herrn?|Frau|Mme|Mlle|Monsieur|Madame|Señora?|Sra|Signora?|Dott)\b\.? \p{Lu}\p{Ll}+"
)
_STREET = (
    r"(?i)^\d+\w?,? .*\b(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|way|court|ct|place"
    r"|square|terrace|close|crescent|rue|chemin|impasse|quai|allée)\b"
    r"|^\p{L}[\p{L} .\-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|damm|ufer|straat|laan|plein|gracht"
    r"|kade|gatan|vägen|gata|veien|vegen|vej|gade|katu|tie) ?\d+"
    r"|^(?:calle|c/|avenida|avda\.?|plaza|paseo|via|viale|piazza|corso|rua|travessa|largo|ul\.|ulica|al\.) "
    r".*\d"
)


@dataclass(frozen=True)
class Shape:
    """What most values look like, and what that makes of a column.

    ``spread`` is the least number of distinct values for each record.
    """

    what: str
    pattern: str
    confidence: float = 0.95
    spread: float = 0.0


SHAPES: tuple[Shape, ...] = (
    Shape("e-mail addresses", f"^{EMAIL}$"),
    Shape(
        "phone numbers",
        r"^(\+|0|\()[\d\s().\-/]{6,19}$|^\(?\d{3}\)?[\s.\-]\d{3}[\s.\-]\d{4}$",
        spread=_A_PHONE,
    ),
    Shape("addresses of devices", r"(?i)^[\da-f]{2}([:\-][\da-f]{2}){5}$"),
    Shape("network addresses", r"^\d{1,3}(\.\d{1,3}){3}$|(?i)^[\da-f]{1,4}(:[\da-f]{0,4}){3,7}$"),
    Shape("web addresses", r"(?i)^(https?://|www\.)\S+$", 0.85, spread=_SHARED),
    Shape(
        "universal identifiers", r"(?i)^\{?[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\}?$", 0.9, spread=_SHARED
    ),
    Shape(
        "hashes, which identify what they were made from",
        r"(?i)^([\da-f]{32}|[\da-f]{40}|[\da-f]{64})$",
        0.85,
        _SHARED,
    ),
    Shape("addresses of streets", _STREET, 0.85),
)


def role_of(facts: Facts, kind: Kind) -> RoleSign:
    """What the surest sign says of the column; without one it is undecided, and its values have a shape."""
    signs = [sign for look in ROLE_SIGNS if (sign := look(facts, kind)) is not None]
    if signs:
        return max(signs, key=lambda sign: sign.confidence)
    shapes = _shapes(facts)
    return RoleSign(None, f"{UNDECIDED}; values like {shapes}" if shapes else UNDECIDED, 0.0)


def _shapes(facts: Facts) -> str:
    """The shape that most of the values have, and the one that fewest have: 9 for digits, a for letters."""
    shapes = facts.sample.str.strip_chars().rename("shape")
    for pattern, sign in _SIGNS:
        shapes = shapes.str.replace_all(pattern, sign)
    counts = shapes.value_counts(name="count").filter(pl.col("shape") != "").sort("count", "shape")["shape"]
    return quoted(dict.fromkeys([*counts.tail(1), *counts.head(1)]), " or ")


# By the name of the column --------------------------------------------------------------------------------


def _by_name(facts: Facts, kind: Kind) -> RoleSign | None:
    for concept in facts.concepts:
        role, repeats = concept.role, facts.distinct < len(facts.present)
        if role is None:
            return None
        if role is Role.WEIGHT and not _can_weigh(facts):
            continue
        if role in _UNIT_NUMBERS and repeats and facts.distinct <= _MANY_UNITS:
            continue
        if role is Role.HOUSEHOLD and not repeats:
            continue
        if role is Role.PERSON and not repeats:
            return RoleSign(Role.IDENTIFIER, "the name suggests a person number", concept.sure)
        return RoleSign(role, f"the name suggests {concept.what}", concept.sure)
    if kind is Kind.DATE:
        return RoleSign(Role.KEY, "others may know a date (quasi-identifier)", 0.5)
    return None


def _can_weigh(facts: Facts) -> bool:
    if not facts.series.dtype.is_numeric() or not facts.distinct:
        return False
    return bool((facts.values > 0).all())


# By the shape of the values -------------------------------------------------------------------------------


def _by_shape(facts: Facts, kind: Kind) -> RoleSign | None:
    if not facts.textual or kind in {Kind.DATE, Kind.CONTINUOUS, Kind.ORDINAL}:
        return None
    for shape in SHAPES:
        if facts.share(shape.pattern) >= MOST_SHARE and facts.distinct_share >= shape.spread:
            return RoleSign(Role.IDENTIFIER, f"its values are {shape.what}", shape.confidence)
    return None


def _by_number(facts: Facts, kind: Kind) -> RoleSign | None:
    """Speak of numbers with check digits: of persons, accounts, cards."""
    if kind is Kind.DATE or not (facts.textual or facts.whole):
        return None
    found = recognise(facts.sample, numbers=facts.series.dtype.is_numeric())
    if found is None or found.share < MOST_SHARE:
        return None
    hinted = facts.name_contains(found.numbering.hints) or facts.name_contains(words.PERSON_NUMBERS)
    if not hinted and (not found.enough or facts.distinct_share < _SHARED):
        return None
    several = "; several records share one" if facts.distinct_share < _MOSTLY_DISTINCT else ""
    return RoleSign(Role.IDENTIFIER, f"its values are {found.numbering.what}{several}", 0.97, names=True)


def _by_numbering(facts: Facts, kind: Kind) -> RoleSign | None:  # noqa: ARG001
    """Speak of numbers of which nearly every record has its own: tax_number, employee_no."""
    if not facts.whole or not facts.name_contains(words.NUMBERS) or len(facts.present) < _MIN_RECORDS:
        return None
    if facts.distinct_share < MOST_SHARE or not (facts.values.abs() >= _LEAST_NUMBER).any():
        return None
    return RoleSign(Role.IDENTIFIER, "the name suggests a number, and nearly every record has its own", 0.87)


# By what is in the text -------------------------------------------------------------------------------


def _by_content(facts: Facts, kind: Kind) -> RoleSign | None:
    """Speak of what stands somewhere in the texts, be it in few of them."""
    if not facts.textual or kind in {Kind.DATE, Kind.CONTINUOUS, Kind.ORDINAL}:
        return None
    found = contacts_in(facts.values)
    if found:
        return RoleSign(Role.IDENTIFIER, f"its text contains {next(iter(found.cells))}", 0.85)
    if facts.share(r"\s\S+\s") and facts.values.cast(pl.String).str.contains(_TITLED).any():
        return RoleSign(Role.IDENTIFIER, "its text contains titles with names", 0.85)
    return None


def _by_length(facts: Facts, kind: Kind) -> RoleSign | None:
    """Speak of free text: many words, mostly distinct; or some, if there are many or the name says so."""
    if not facts.textual or kind is not Kind.NOMINAL:
        return None
    spaced = facts.share(r"\S\s+\S")
    if facts.name_contains(words.FREE_TEXT) and (spaced > 0 or facts.distinct >= _MANY_WORDS):
        return RoleSign(Role.IDENTIFIER, "the name suggests free text, which may name people", 0.8)
    if len(facts.sample) < _SEVERAL:
        return None
    long = facts.share(rf"(?:\S+\s+){{{_MIN_WORDS_OF_SENTENCE - 1},}}\S") >= _MOSTLY_DISTINCT
    if long and facts.distinct_share >= _MOSTLY_DISTINCT:
        reason = "long texts, mostly distinct: free text may name people"
        return RoleSign(Role.IDENTIFIER, reason, 0.87)
    if spaced >= _MOSTLY_DISTINCT and facts.distinct >= _MANY_TEXTS and facts.distinct_share >= _SHARED:
        return RoleSign(Role.IDENTIFIER, "many texts of several words: free text may name people", 0.6)
    return None


def _by_words(facts: Facts, kind: Kind) -> RoleSign | None:
    """Speak of values that are words for the sexes, or for marital states, of one language."""
    if not facts.textual or kind is not Kind.NOMINAL or not 1 < facts.distinct <= _FEW_WORDS:
        return None
    if are_sexes(facts):
        return RoleSign(Role.KEY, "its values are words for the sexes", 0.75)
    met = _words_of(facts)
    if len(met) > 1 and any(met <= states for states in words.MARITAL):
        return RoleSign(Role.KEY, "its values are words for marital states", 0.75)
    return None


def are_sexes(facts: Facts) -> bool:
    """Whether the values are words for the sexes in one language, for the one and for the other."""
    if not facts.textual or not 1 < facts.distinct <= _FEW_WORDS:
        return False
    met = _words_of(facts)
    return any(
        met <= one | other | neither and met & one and met & (other - one) and len(met & (one | other)) > 1
        for one, other, neither in words.SEXES
    )


def _words_of(facts: Facts) -> set[str]:
    texts = facts.values.cast(pl.String)
    return set(plain_words(texts.filter(~texts.is_in([*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS]))))


def _by_people(facts: Facts, kind: Kind) -> RoleSign | None:
    """Speak of names of persons: common ones among them, or mostly distinct words in capitals."""
    words_only = facts.textual and kind is Kind.NOMINAL and facts.share(_WORDS) >= MOST_SHARE
    if not words_only or len(facts.sample) < _SEVERAL:
        return None
    if _among(facts, words.GIVEN_NAMES) >= _MOSTLY_DISTINCT:
        sure = 0.85 if facts.share(r"\S\s\S") >= MOST_SHARE else 0.75  # a single word may be a place as well
        return RoleSign(Role.IDENTIFIER, "common names of persons are among its values", sure)
    if len(facts.present) < _MIN_RECORDS:
        return None
    if facts.share(_NAME) >= MOST_SHARE and facts.distinct_share >= MOST_SHARE:
        sure = 0.87 if facts.distinct == len(facts.present) else 0.7
        reason = "capitalised words, mostly distinct: perhaps names of persons or firms"
        return RoleSign(Role.IDENTIFIER, reason, sure)
    if facts.distinct_share >= _MOSTLY_DISTINCT / 2 and _among(facts, words.FAMILY_NAMES) >= _FAMILIES:
        return RoleSign(Role.IDENTIFIER, "common family names are among its values", 0.7)
    return None


def _among(facts: Facts, names: str) -> float:
    """The share of the sample in which one of these names stands."""
    parts = _plain(facts.sample).str.split(" ")
    return float(parts.list.eval(pl.element().is_in(_split_names(names))).list.any().mean() or 0.0)  # type: ignore[arg-type]


def _plain(texts: pl.Series) -> pl.Series:
    """Small letters without accents, words with one space between."""
    bare = texts.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return bare.str.replace_all(r"[^\p{L}]+", " ").str.strip_chars()


@cache
def _split_names(names: str) -> list[str]:
    return names.split()


# By how many records share a value ------------------------------------------------------------------------


def _by_distinctness(facts: Facts, kind: Kind) -> RoleSign | None:
    n = len(facts.present)
    if facts.distinct == 1 and n == len(facts.series) > 1 and kind is not Kind.SET:
        return RoleSign(Role.OTHER, "the same value in every record", 0.6)
    if n < _MIN_RECORDS or facts.distinct < n or facts.series.dtype.is_nested():
        return None
    if facts.series.dtype.is_integer():
        span = int(facts.values.max()) - int(facts.values.min())  # type: ignore[arg-type]
        if span != n - 1:
            return None
        return RoleSign(Role.IDENTIFIER, "consecutive whole numbers: record numbers", 0.95)
    if facts.textual and kind is Kind.NOMINAL:
        return RoleSign(Role.IDENTIFIER, "a different text in every record", 0.85)
    return None


ROLE_SIGNS: tuple[Callable[[Facts, Kind], RoleSign | None], ...] = (
    _by_name,
    _by_shape,
    _by_number,
    _by_numbering,
    _by_content,
    _by_length,
    _by_words,
    _by_people,
    _by_distinctness,
)
