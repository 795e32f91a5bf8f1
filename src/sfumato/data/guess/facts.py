"""What the guessing looks at: one column, its distinct values, a sample; and the signs it finds.

Looks at every record are few and cheap; whatever costs more goes over distinct values, or over a sample of
them taken from all parts of the column, so that ten million records take seconds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import polars as pl

from sfumato.data.column_store import distinct_values
from sfumato.data.guess.words import CONCEPTS, FILLERS, GRADES, LABELS, QUANTITIES, Concept
from sfumato.data.schema import Column, Kind, Role

#: The most distinct values that a slow look sees.
SAMPLE = 1_000
#: The share that counts as "most".
MOST_SHARE = 0.8

_LOOKED_AT = 10 * SAMPLE
#: Letters that no accent is taken from.
_LETTERS = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "œ": "oe", "đ": "d"})


@dataclass(frozen=True)
class KindSign:
    """A sign of what sort of values a column holds, with further facts for its `Column`."""

    kind: Kind
    reason: str
    confidence: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleSign:
    """A sign of what a column means; ``names`` tells that the values only name something, numbers or not."""

    role: Role | None
    reason: str
    confidence: float
    names: bool = False


@dataclass(frozen=True)
class Guess:
    """A proposal for one column.

    ``confidence`` is that of the less certain of kind and role, and 0 where the role is left open.
    """

    column: Column
    kind_reason: str
    role_reason: str
    confidence: float
    is_guessed: bool = True  # False: someone has declared it

    def with_given_role(self, roles: Mapping[str, Any]) -> Guess:
        """The proposal with the role that someone has given the column, if any has."""
        role = roles.get(self.column.name)
        if role is None:
            return self
        return Guess(replace(self.column, role=role), self.kind_reason, "given", 1.0, is_guessed=False)


@dataclass(frozen=True)
class Facts:
    """One column, what is there of it, its distinct values, and a sample of them for slow looks."""

    series: pl.Series

    @cached_property
    def name(self) -> str:
        """The column's name in small letters, its words joined by ``_``."""
        return normalise_name(self.series.name)

    @cached_property
    def _not_null(self) -> pl.Series:
        series = self.series
        if series.dtype.is_float() and series.is_nan().any():
            series = series.fill_nan(None)
        return series.drop_nulls()

    @cached_property
    def _unique(self) -> pl.Series:
        comparable = not self.series.dtype.is_nested() and self.series.dtype != pl.Object
        return distinct_values(self._not_null) if comparable else self.series.clear()

    @cached_property
    def blanks(self) -> bool:
        """Whether there are texts of nothing but spaces, or of nothing at all."""
        return self.series.dtype == pl.String and bool((self._unique.str.strip_chars() == "").any())

    @cached_property
    def present(self) -> pl.Series:
        """The values that are there; a blank text is not."""
        return _without_blanks(self._not_null) if self.blanks else self._not_null

    @cached_property
    def values(self) -> pl.Series:
        """The distinct values, in no order; none for values that cannot be compared."""
        return _without_blanks(self._unique) if self.blanks else self._unique

    @property
    def distinct(self) -> int:
        """The number of distinct values; 0 for values that cannot be compared."""
        return len(self.values)

    @property
    def distinct_share(self) -> float:
        """The number of distinct values for each value that is there."""
        return self.distinct / len(self.present) if len(self.present) else 0.0

    @property
    def textual(self) -> bool:
        """Whether the values are text, be it in categories."""
        return self.series.dtype in (
            pl.String,
            pl.Categorical,
            pl.Enum,
        )  # not a set: an Enum has its own hash

    @cached_property
    def sample(self) -> pl.Series:
        """Some distinct values as text, from all parts of the column."""
        if self.series.dtype.is_nested() or self.series.dtype in {pl.Binary, pl.Object}:
            return pl.Series([], dtype=pl.String)
        some = _every_nth(self.present, _LOOKED_AT).unique(maintain_order=True)
        some = _every_nth(some, SAMPLE)
        if some.dtype.is_float() and self.whole:
            some = some.cast(pl.Int64, strict=False).drop_nulls()  # 7, not 7.0
        return some.cast(pl.String)

    @cached_property
    def whole(self) -> bool:
        """Whether all are whole numbers."""
        if self.values.dtype.is_float():
            return bool((self.values == self.values.floor()).all())
        return self.values.dtype.is_integer()

    def name_contains(self, stems: str) -> bool:
        """Whether the name holds one of these words, be it without "of" and the like."""
        if not stems:
            return False
        bare = "_".join(word for word in self.name.split("_") if word not in FILLERS)
        return any(pattern(some).search(name) for name in {self.name, bare} if (some := _likely(stems, name)))

    @cached_property
    def concepts(self) -> tuple[Concept, ...]:
        """What the name may be that of, the likeliest first."""
        return tuple(concept for concept in CONCEPTS if self.name_contains(concept.stems))

    @cached_property
    def numbers(self) -> str:
        """What whole numbers of this name are: a label, a quantity or a grade; empty if it does not say."""
        spelled = next((concept.numbers for concept in self.concepts if concept.numbers), "")
        known = (("label", LABELS), ("quantity", QUANTITIES), ("grade", GRADES))
        return spelled or next((what for what, stems in known if self.name_contains(stems)), "")

    def share(self, shape: str) -> float:
        """The share of the sample that matches."""
        return float(self.sample.str.contains(shape).mean() or 0.0) if len(self.sample) else 0.0  # type: ignore[arg-type]


def is_about(name: str, what: str) -> bool:
    """Whether the name of a column is likeliest that of an age, a place …: see `Concept.about`."""
    concepts = Facts(pl.Series(name, [], dtype=pl.String)).concepts
    return bool(concepts) and concepts[0].about == what


def _every_nth(series: pl.Series, count: int) -> pl.Series:
    """At most so many values, evenly from all parts."""
    return series.gather_every(max(1, -(-len(series) // count)))


def _without_blanks(texts: pl.Series) -> pl.Series:
    return texts.filter(texts.str.strip_chars() != "")


def normalise_name(name: str) -> str:
    """Write a name in small letters without accents, its words joined by ``_``: birthDate → birth_date."""
    plain = unicodedata.normalize("NFKD", name.translate(_LETTERS)).encode("ascii", "ignore").decode()
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")


def plain_words(texts: pl.Series) -> pl.Series:
    """Small letters without accents and digits, words with one space between."""
    bare = texts.str.to_lowercase().str.replace_many(["ß", "ł"], ["ss", "l"]).str.normalize("NFKD")
    return bare.str.replace_all(r"\p{M}", "").str.replace_all(r"[^\p{L}\d]+", " ").str.strip_chars()


def _likely(stems: str, name: str) -> str:
    """The words that may be in the name, by how they begin: a pattern of all takes long to compile."""
    return " ".join([stem for beginning, stem in _beginnings(stems) if beginning in name])


#: The letters that a name must hold, if it holds a word; of a word with alternatives none.
_BEGINNING = re.compile(r"(?!\S*[|(\[])(?:\w(?![?{]))*|")


@cache
def _beginnings(stems: str) -> tuple[tuple[str, str], ...]:
    found = ((_BEGINNING.match(stem), stem) for stem in stems.split())
    return tuple((match[0], stem) for match, stem in found if match)  # it may be empty, and is there


@cache
def pattern(stems: str) -> re.Pattern[str]:
    """The pattern of a list of words, in which ``*`` stands for any letters or digits."""
    either = "|".join(stem.replace("*", "[a-z0-9]*") for stem in stems.split())
    return re.compile(rf"(?<![a-z])(?:{either})(?![a-z])")
