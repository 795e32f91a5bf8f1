"""Proposes what each column is, with the reason and how sure it is; a person decides.

A *sign* is a small function that looks at the facts of one column and speaks or stays silent. Signs of the
kind are asked in order and the first that speaks is believed; of the signs of the role the surest is. To
teach it something new, add a sign to `KIND_SIGNS` or `ROLE_SIGNS`, or a word to `sfumato.data.words`.
No reason ever holds a value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from sfumato.data import words
from sfumato.data.generalised import is_interval
from sfumato.data.schema import SINGLE_ROLES, Column, Kind, Role, Schema
from sfumato.data.text_forms import looks_generalised

#: What a file itself says of its columns: facts as `Column` takes them, by the column's name.
Told = Mapping[str, Mapping[str, Any]]

UNDECIDED = "no sign either way: decide"

_SAMPLE = 1_000
_CODES_AT_MOST = 15  # more distinct whole numbers than this are a quantity
_LARGEST_CODE = 999
_APART = 5  # a missing code among positive numbers is at least this many times the largest of the rest
_ENOUGH = 20  # records below which "all distinct" says nothing
_MOST = 0.8

_EMAIL = r"[\w.+\-]+@[\w\-]+\.[\w.\-]+"
_PHONE = r"^(\+|0|\()[\d\s().\-/]{6,19}$|^\(?\d{3}\)?[\s.\-]\d{3}[\s.\-]\d{4}$"
_IP = r"^\d{1,3}(\.\d{1,3}){3}$"
_IBAN = r"^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$"
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}:\d{2}(\.\d+)?)?$"


@dataclass(frozen=True)
class Guess:
    """A proposal for one column.

    ``confidence`` is that of the less certain of kind and role, and 0 where the role is left open.
    """

    column: Column
    kind_reason: str
    role_reason: str
    confidence: float


@dataclass(frozen=True)
class KindSign:
    """A sign of what sort of values a column holds, with further facts for its `Column`."""

    kind: Kind
    reason: str
    confidence: float
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RoleSign:
    """A sign of what a column means; without a role it silences the later names."""

    role: Role | None
    reason: str
    confidence: float


@dataclass(frozen=True)
class Facts:
    """What the signs look at: one column, what is there of it, and a sample for slow looks."""

    series: pl.Series

    @property
    def name(self) -> str:
        """The column's name in small letters, its words joined by ``_``."""
        return normalised(self.series.name)

    @cached_property
    def present(self) -> pl.Series:
        """The values that are there."""
        series = self.series
        if series.dtype.is_float():
            series = series.fill_nan(None)
        if series.dtype == pl.String:
            series = series.set(series.str.strip_chars() == "", None)
        return series.drop_nulls()

    @cached_property
    def distinct(self) -> int:
        """The number of distinct values; 0 for values that cannot be compared."""
        return 0 if self.series.dtype.is_nested() else self.present.n_unique()

    @cached_property
    def sample(self) -> pl.Series:
        """Some distinct values as text."""
        if self.series.dtype.is_nested() or self.series.dtype in {pl.Binary, pl.Object}:
            return pl.Series([], dtype=pl.String)
        return self.present.head(10 * _SAMPLE).unique(maintain_order=True).head(_SAMPLE).cast(pl.String)

    @cached_property
    def whole(self) -> bool:
        """Whether all are whole numbers."""
        if self.present.dtype.is_float():
            return bool((self.present == self.present.floor()).all())
        return self.present.dtype.is_integer()

    def named(self, stems: str) -> bool:
        """Whether the name holds one of these words."""
        return _pattern(stems).search(self.name) is not None

    def share(self, pattern: str) -> float:
        """The share of the sample that matches."""
        return float(self.sample.str.contains(pattern).mean() or 0.0) if len(self.sample) else 0.0  # type: ignore[arg-type]


def guess(frame: pl.DataFrame, told: Told | None = None) -> tuple[Guess, ...]:
    """Propose a kind and a role for each column, each with its reason; what the file told is taken over."""
    told = told or {}
    return _one_of_each(_as_told(_guess_one(Facts(series)), told.get(series.name, {})) for series in frame)


def guess_schema(frame: pl.DataFrame, told: Told | None = None) -> Schema:
    """Propose a schema; a column for whose role nothing speaks has none, which blocks a release."""
    return Schema(tuple(proposal.column for proposal in guess(frame, told)))


def _as_told(guessed: Guess, facts: Mapping[str, Any]) -> Guess:
    """Put what the file says of a column in the place of what was guessed."""
    if not facts:
        return guessed
    said = guessed.column.to_dict()
    if facts.get("kind", said["kind"]) != said["kind"]:  # facts of another kind go with it
        said = {key: said[key] for key in ("kind", "role", "label") if key in said}
    column = Column.from_dict(guessed.column.name, {**said, **facts})
    reason = "the file says so" if "kind" in facts else guessed.kind_reason
    return replace(guessed, column=column, kind_reason=reason)


def normalised(name: str) -> str:
    """Write a name in small letters without accents, its words joined by ``_``: birthDate → birth_date."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", apart.lower()).strip("_")


def generalised_form(texts: pl.Series) -> Literal["interval", "node"] | None:
    """Which text forms of generalised values a column holds; quick where there are none."""
    return looks_generalised(texts) if texts.str.contains(r"^[\[{*]").any() else None


@cache
def _pattern(stems: str) -> re.Pattern[str]:
    either = "|".join(stem.replace("*", "[a-z0-9]*") for stem in stems.split())
    return re.compile(rf"(?<![a-z])(?:{either})(?![a-z])")


def _guess_one(facts: Facts) -> Guess:
    kind = next(sign for look in KIND_SIGNS if (sign := look(facts)) is not None)
    looks = [look(facts, kind.kind) for look in ROLE_SIGNS]
    signs = [RoleSign(None, UNDECIDED, 0.0), *(sign for sign in looks if sign is not None)]
    role = max(signs, key=lambda sign: sign.confidence)
    if role.role is Role.WEIGHT and kind.kind is not Kind.CONTINUOUS:
        kind = KindSign(Kind.CONTINUOUS, "a weight is a quantity", role.confidence)
    column = Column(facts.series.name, kind.kind, role.role, **kind.facts)
    return Guess(column, kind.reason, role.reason, min(kind.confidence, role.confidence))


def _one_of_each(proposals: Iterable[Guess]) -> tuple[Guess, ...]:
    """Leave each of the roles that only one column may have to the surest."""
    found = list(proposals)
    for role in SINGLE_ROLES:
        holders = [place for place, one in enumerate(found) if one.column.role is role]
        for place in sorted(holders, key=lambda place: -found[place].confidence)[1:]:
            reason = f"another column is more likely the {role}: decide"
            column = replace(found[place].column, role=None)
            found[place] = replace(found[place], column=column, role_reason=reason, confidence=0.0)
    return tuple(found)


# Signs of the kind ----------------------------------------------------------------------------------------


def _by_type(facts: Facts) -> KindSign | None:
    dtype = facts.series.dtype
    if dtype.is_temporal():
        return KindSign(Kind.DATE, "its type is a date or time", 1.0)
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
    form = generalised_form(facts.present) if facts.series.dtype == pl.String else None
    if form == "interval":
        temporal = facts.share(r"\d{4}-\d{2}-\d{2}") > 0
        return KindSign(Kind.DATE if temporal else Kind.CONTINUOUS, "intervals written as text", 0.9)
    return KindSign(Kind.NOMINAL, "sets of values written as text", 0.9) if form == "node" else None


def _by_numbers(facts: Facts) -> KindSign | None:
    if not facts.present.dtype.is_numeric() or not len(facts.present):
        return None
    codes, told = _missing_numbers(facts)
    kind, reason, confidence = _number_kind(facts, facts.distinct - len(codes))
    more: dict[str, Any] = {"missing": codes}
    if kind is Kind.CONTINUOUS and facts.whole:
        more["integer"] = True
    return KindSign(kind, reason + told, confidence, more)


def _number_kind(facts: Facts, distinct: int) -> tuple[Kind, str, float]:
    if not facts.whole:
        return Kind.CONTINUOUS, "numbers with decimals", 0.95
    if facts.named(words.LABELS):
        return Kind.NOMINAL, "its name is that of a code", 0.8
    if facts.named(words.QUANTITIES):
        return Kind.CONTINUOUS, "whole numbers, and its name is that of a quantity", 0.9
    large = (facts.present.abs() > _LARGEST_CODE).any()
    if distinct > _CODES_AT_MOST or 3 * distinct > len(facts.present) or large:
        return Kind.CONTINUOUS, "whole numbers, many or large ones", 0.8
    if distinct > 2 and facts.named(words.GRADES):  # noqa: PLR2004
        return Kind.ORDINAL, "few whole numbers, and its name is that of a grade", 0.7
    return Kind.NOMINAL, "few distinct whole numbers: perhaps codes", 0.5


def _by_text(facts: Facts) -> KindSign | None:
    if facts.series.dtype != pl.String or not len(facts.sample):
        return None
    if facts.sample.cast(pl.Float64, strict=False).is_not_null().any():
        odd = _codes_beside(facts, lambda texts: texts.str.strip_chars().cast(pl.Float64, strict=False))
        if odd and not facts.present.str.contains(r"^\s*(-?0\d|\+)").any():
            reason = "numbers, beside texts that stand for a missing value"
            return KindSign(Kind.CONTINUOUS, reason, 0.9, {"missing": odd})
        if odd is not None:
            return KindSign(Kind.NOMINAL, "digits that a number would spoil", 0.9, {"missing": odd})
    if facts.sample.str.contains(_ISO_DATE).any():
        odd = _codes_beside(facts, _dates)
        if odd is not None:
            return KindSign(Kind.DATE, "dates written year, month, day", 0.95, {"missing": odd})
    return None


def _dates(texts: pl.Series) -> pl.Series:
    days = texts.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us"))
    times = texts.str.replace(" ", "T", literal=True).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False)
    return days.zip_with(days.is_not_null(), times)


def _otherwise(facts: Facts) -> KindSign:
    if not len(facts.present):
        return KindSign(Kind.NOMINAL, "no value at all", 0.1)
    codes = _missing_words(facts) if facts.present.dtype == pl.String else ()
    told = "; some texts stand for a missing value" if codes else ""
    return KindSign(Kind.NOMINAL, f"text{told}", 0.9, {"missing": codes})


KIND_SIGNS: tuple[Callable[[Facts], KindSign | None], ...] = (
    _by_type,
    _by_form,
    _by_numbers,
    _by_text,
    _otherwise,
)


def _codes_beside(facts: Facts, read: Callable[[pl.Series], pl.Series]) -> tuple[str, ...] | None:
    """The texts that do not read, if each stands for a missing value; None if one does not."""
    distinct = facts.present.unique()
    odd = distinct.filter(read(distinct).is_null())
    known = odd.str.strip_chars().is_in([*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS])
    return tuple(odd.str.strip_chars().unique().sort()) if known.all() else None


def _missing_words(facts: Facts) -> tuple[str, ...]:
    known = [*words.MISSING_WORDS, *words.SHORT_MISSING_WORDS]
    met = set(facts.present.filter(facts.present.is_in(known)).unique())
    # NA may be Namibia among countries of two letters, and − a grade among other signs.
    longest = int(facts.sample.str.len_chars().max() or 0)  # type: ignore[arg-type]
    allowed = known if longest > 3 else words.MISSING_WORDS  # noqa: PLR2004
    return tuple(word for word in allowed if word in met)


def _missing_numbers(facts: Facts) -> tuple[tuple[int, ...], str]:
    """Codes that stand apart: negative where nothing else is, or far above all else; met more than once."""
    codes = pl.Series(words.MISSING_NUMBERS).cast(facts.present.dtype, strict=False).drop_nulls().unique()
    candidate = facts.present.is_in(codes.implode())
    rest = facts.present.filter(~candidate)
    if rest.n_unique() < 3:  # noqa: PLR2004
        return (), ""
    low, high = float(rest.min()), float(rest.max())  # type: ignore[arg-type]
    counts = facts.present.filter(candidate).value_counts()
    often = [int(code) for code, count in counts.iter_rows() if count > 1]
    apart = sorted(code for code in often if (code < 0 <= low) or code >= _APART * max(high, 1))
    return tuple(apart), "; some values stand apart and may mean missing" if apart else ""


# Signs of the role ----------------------------------------------------------------------------------------


def _role_by_name(facts: Facts, kind: Kind) -> RoleSign | None:
    for role, confidence, stems in words.ROLES:
        if not facts.named(stems):
            continue
        repeats = facts.distinct < len(facts.present)
        if role is None:
            return None
        if role is Role.WEIGHT and not _can_weigh(facts):
            continue
        if role is Role.HOUSEHOLD and (not repeats or facts.distinct <= _CODES_AT_MOST):
            continue
        if role is Role.UNIT and not repeats:
            return RoleSign(Role.IDENTIFIER, "its name is that of a person's number", confidence)
        return RoleSign(role, f"its name is that of {_ROLE_WORDS[role]}", confidence)
    if kind is Kind.DATE:
        return RoleSign(Role.KEY, "a date may be known from elsewhere", 0.5)
    return None


_ROLE_WORDS = {
    Role.WEIGHT: "a sampling weight",
    Role.HOUSEHOLD: "a household's number",
    Role.UNIT: "a person's number, and persons have several records",
    Role.IDENTIFIER: "a direct identifier",
    Role.SENSITIVE: "something people keep to themselves",
    Role.KEY: "something others may know of a person",
}


def _can_weigh(facts: Facts) -> bool:
    if not facts.present.dtype.is_numeric() or not len(facts.present):
        return False
    return bool((facts.present > 0).all())


def _role_by_pattern(facts: Facts, kind: Kind) -> RoleSign | None:
    if facts.series.dtype != pl.String or kind in {Kind.DATE, Kind.CONTINUOUS}:
        return None
    for what, pattern in (
        ("e-mail addresses", f"^{_EMAIL}$"),
        ("phone numbers", _PHONE),
        ("network addresses", _IP),
    ):
        if facts.share(pattern) >= _MOST:
            return RoleSign(Role.IDENTIFIER, f"its values are {what}", 0.95)
    if facts.share(_EMAIL) > 0:
        return RoleSign(Role.IDENTIFIER, "e-mail addresses stand in its text", 0.85)
    if _iban_share(facts.sample) >= _MOST:
        return RoleSign(Role.IDENTIFIER, "its values are bank account numbers", 0.95)
    return None


def _iban_share(texts: pl.Series) -> float:
    """The share of texts that are account numbers with the right check digits (ISO 13616)."""
    compact = texts.str.replace_all(r"\s", "")
    formed = compact.filter(compact.str.contains(_IBAN))
    if not len(formed):
        return 0.0
    letters = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
    turned = formed.str.slice(4) + formed.str.slice(0, 4)
    digits = turned.str.replace_many(letters, [str(value) for value in range(10, 36)])
    rest = np.zeros(len(digits), dtype=np.int64)
    for place in range(int(digits.str.len_bytes().max())):  # type: ignore[arg-type]
        digit = digits.str.slice(place, 1).cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
        rest = np.where(digit < 0, rest, (rest * 10 + digit) % 97)
    return float((rest == 1).sum()) / len(texts)


def _role_by_distinctness(facts: Facts, kind: Kind) -> RoleSign | None:
    n = len(facts.present)
    if facts.distinct == 1 and n == len(facts.series) > 1 and kind is not Kind.SET:
        return RoleSign(Role.OTHER, "the same value in every record", 0.6)
    if n < _ENOUGH or facts.distinct < n or facts.series.dtype.is_nested():
        return None
    if facts.present.dtype.is_integer():
        span = int(facts.present.max()) - int(facts.present.min())  # type: ignore[arg-type]
        return (
            RoleSign(Role.IDENTIFIER, "whole numbers without a gap: numbers of the records", 0.95)
            if span == n - 1
            else None
        )
    if facts.present.dtype == pl.String and kind is Kind.NOMINAL:
        return RoleSign(Role.IDENTIFIER, "a text of its own in every record", 0.85)
    return None


ROLE_SIGNS: tuple[Callable[[Facts, Kind], RoleSign | None], ...] = (
    _role_by_name,
    _role_by_pattern,
    _role_by_distinctness,
)
