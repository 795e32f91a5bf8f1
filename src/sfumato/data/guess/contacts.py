"""Finds ways to reach or name somebody inside texts: e-mail, phone, account and identity numbers.

It is precise rather than broad, as a release that holds one does not leave: a phone number begins with +, has
a word such as *tel* before it, or is written as one and valid; an account or identity number has a shape of
its own and right check digits. Numbers without a shape of their own are told by the name of their column (see
`sfumato.data.guess.role`). Phone numbers are checked by the package `phonenumbers` (extra ``contacts``);
without it their length alone decides.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.data.column_store import distinct_values
from sfumato.data.generalised.text_forms import named_in, to_text, values_named
from sfumato.data.guess import words
from sfumato.data.guess.facts import MOST_SHARE
from sfumato.data.guess.identifiers import IBAN, NUMBERINGS
from sfumato.data.table import Table
from sfumato.kernels.arrays import Flags

EMAILS = "e-mail addresses"
PHONES = "phone numbers"
ACCOUNTS = "bank account numbers"

EMAIL = r"(?i)[\w.+%\-]+@(?:[a-z0-9\-]+\.)+[a-z]{2,}"

_FEWEST_DIGITS = 7
_MOST_CHECKED = 1_000  # different phone numbers that are checked; of more the first tell whether they are any
_DIGITS_ABROAD, _DIGITS_AT_HOME, _DIGITS_AFTER_A_WORD = (8, 15), (9, 12), (7, 15)
_REGIONS = ("DE", "AT", "CH", "FR", "BE", "ES", "IT", "PT", "NL", "PL", "SE", "GB", "IE", "US")

_DATE = (
    r"\d{1,2}[./\-]\d{1,2}[./\-]\d{4}|\d{4}[./\-]\d{1,2}[./\-]\d{1,2}"
    r"|^(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$"
)
_ABROAD = r"\+[1-9][\d\s().\-/]{6,18}\d|\b00[1-9]\d{0,4}[\s().\-/]+\d[\d\s().\-/]{3,14}\d"
_AFTER_A_WORD = (
    rf"(?i)\b(?:{'|'.join(words.PHONE_CUES)})\b[\s.:#]*(?:n[ro°º]\b[\s.:]*)?([(+]?\d[\d\s().\-/]{{5,16}}\d)"
)
#: Written as phone numbers are, whatever else stands in the cell; and only beside words.
_AT_HOME = r"\(0\d{1,5}\)[\s.\-/]{0,3}\d[\d\s.\-/]{4,10}\d|\b0\d{1,5}\s?/\s?\d[\d\s\-]{4,10}\d"
_IN_AMERICA = r"(?:\([2-9]\d{2}\)\s?|\b[2-9]\d{2}[.\-])[2-9]\d{2}[.\-]\d{4}\b"
_IN_A_SENTENCE = (
    r"\b0\d{1,5}(?:[\s.\-/]{1,3}\d{2,8}){1,5}\b"
    r"|\b[2-9]\d{2}(?: \d{3} \d{3}|-\d{3}-\d{3}|(?: \d{2}){3})\b"
)
_SENTENCE = r"\p{L}{2}"

_ACCOUNT = r"\b[A-Z]{2}\d{2}[A-Z0-9 ]{11,40}"
#: Identity numbers that have a shape of their own in a text, by what their numbering is called.
_SHAPED = {
    "Italian tax codes (codice fiscale)": r"\b[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]\b",
    "French social security numbers (NIR)": r"\b[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}\b",
    "Spanish identity numbers (DNI, NIE)": r"\b(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z]\b",
    "Finnish identity codes (HETU)": r"\b\d{6}[-+A]\d{3}[\dA-Y]\b",
    "Swedish identity numbers": r"\b(?:19|20)?\d{6}[-+]\d{4}\b",
    "Brazilian taxpayer numbers (CPF)": r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b",
    "numbers of payment cards": r"\b\d{4}[ \-]\d{4}[ \-]\d{4}[ \-]\d{4}\b",
    "social security numbers": r"\b\d{3}-\d{2}-\d{4}\b",
}
_AFTER_AN_IDENTITY_WORD = (
    rf"(?i)\b(?:{'|'.join(words.IDENTITY_CUES)})\b[\s.:#]*(?:n[ro°º]\b[\s.:]*)?"
    r"([XYZ]?\d[\d .\-/]{5,15}[\dA-Z])"
)


@dataclass(frozen=True)
class ContactCells:
    """Which cells of a column hold a way to reach or name somebody: by what it is, a flag for each cell."""

    cells: Mapping[str, Flags]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells hold each."""
        return {what: int(flags.sum()) for what, flags in self.cells.items()}

    def __bool__(self) -> bool:
        return bool(self.cells)


def contacts_in(texts: pl.Series) -> ContactCells:
    """Say which cells of a column of text hold e-mail addresses, phone, account or identity numbers.

    Each different text is looked at once; what is not text holds none.
    """
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return ContactCells({})
    cells = texts.cast(pl.String).to_frame("text")
    different = cells.drop_nulls().unique().sort("text")["text"]
    # Nearly all texts have neither a sign of an address nor as many digits as the shortest number.
    likely = different.filter(
        different.str.contains("@", literal=True) | (different.str.count_matches(r"\d") >= _FEWEST_DIGITS)
    )
    found = dict(_find_contacts(likely)) if len(likely) else {}
    return ContactCells(
        {what: _flag_texts(cells["text"], likely.filter(flags)) for what, flags in found.items()}
    )


def _flag_texts(texts: pl.Series, found: pl.Series) -> Flags:
    return texts.is_in(found.implode()).fill_null(value=False).to_numpy()


def shown_texts(table: Table, name: str) -> pl.Series:
    """The different texts that a column shows in whatever file it is written to.

    Cells, items of sets, members and labels of groups (which a codebook lists), value labels and the order.
    """
    column, series, nodes = table.schema[name], table.frame[name], table.nodes.get(name)
    texts = [str(text) for text in (column.label, *column.order, *(label for _, label in column.labels))]
    if nodes is not None:
        used = distinct_values(series).drop_nulls()
        texts += values_named(nodes, nodes.codes(used))
        labels = used.cast(pl.String)
        labels = labels.filter(labels != to_text(used, nodes))
        texts += [part for label in labels for part in (named_in(label) or [label])]
    elif isinstance(series.dtype, pl.List):
        texts += series.explode().unique().drop_nulls().cast(pl.String, strict=False).drop_nulls().to_list()
    elif series.dtype in (pl.String, pl.Categorical, pl.Enum):
        texts += distinct_values(series).drop_nulls().cast(pl.String).to_list()
    return pl.Series(name, texts, dtype=pl.String).unique()


def _find_contacts(texts: pl.Series) -> Iterator[tuple[str, Flags]]:
    looks: tuple[tuple[str, Callable[[pl.Series], Flags]], ...] = (
        (EMAILS, lambda each: each.str.contains(EMAIL).to_numpy()),
        (PHONES, _phones),
        (ACCOUNTS, _accounts),
        *(
            (what, functools.partial(_has_check_digits, what=what, shape=shape))
            for what, shape in _SHAPED.items()
        ),
        ("identity numbers", _after_identity_words),
    )
    for what, look in looks:
        flags = look(texts)
        if flags.any():
            yield what, flags


def _candidates(texts: pl.Series, shape: str, group: int = 0) -> pl.DataFrame:
    """The parts of texts that have a shape, each with the place of its text."""
    has = texts.str.contains(shape)
    rows = pl.DataFrame({"row": has.arg_true(), "text": texts.filter(has)})
    parts = pl.col("text").str.extract_all(shape)
    rows = rows.with_columns(part=parts).explode("part")
    return rows.with_columns(pl.col("part").str.extract(shape, group)) if group else rows


def _rows(count: int, *found: pl.Series) -> Flags:
    flags = np.zeros(count, dtype=np.bool_)
    for rows in found:
        flags[rows.to_numpy()] = True
    return flags


# Phone numbers --------------------------------------------------------------------------------------------


def _phones(texts: pl.Series) -> Flags:
    called = _candidates(texts, _AFTER_A_WORD, group=1)
    called = called.filter(_has_digits(called["part"], _DIGITS_AFTER_A_WORD))
    abroad = _valid_among(_candidates(texts, _ABROAD), _DIGITS_ABROAD)
    at_home = _valid_among(_candidates(texts, f"{_AT_HOME}|{_IN_AMERICA}"), _DIGITS_AT_HOME)
    sentences = _candidates(texts, _IN_A_SENTENCE)
    sentences = _valid_among(sentences.filter(pl.col("text").str.contains(_SENTENCE)), _DIGITS_AT_HOME)
    return _rows(len(texts), called["row"], abroad["row"], at_home["row"], sentences["row"])


def _has_digits(parts: pl.Series, between: tuple[int, int]) -> pl.Series:
    return parts.str.count_matches(r"\d").is_between(*between) & ~parts.str.contains(_DATE)


def _valid_among(candidates: pl.DataFrame, digits: tuple[int, int]) -> pl.DataFrame:
    """The candidates that are phone numbers somewhere."""
    candidates = candidates.filter(_has_digits(candidates["part"], digits))
    different = candidates["part"].unique().sort()
    if not len(different) or importlib.util.find_spec("phonenumbers") is None:
        return candidates
    valid = [part for part in different.head(_MOST_CHECKED) if _is_valid(part)]
    unchecked = different.slice(_MOST_CHECKED) if valid else different.clear()
    return candidates.filter(pl.col("part").is_in([*valid, *unchecked]))


@functools.lru_cache(maxsize=10_000)
def _is_valid(text: str) -> bool:
    """Whether a text is a phone number, of any country if it begins so, else of one of ours."""
    import phonenumbers

    text = re.sub(r"^00", "+", text.strip())
    for region in (None,) if text.startswith("+") else _REGIONS:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(text, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False


# Numbers of accounts and people ---------------------------------------------------------------------------


def _accounts(texts: pl.Series) -> Flags:
    found = _candidates(texts.str.to_uppercase(), _ACCOUNT)
    compact = pl.col("part").str.replace_all(" ", "", literal=True)
    length = compact.str.slice(0, 2).replace_strict(
        words.ACCOUNT_LENGTHS, default=None, return_dtype=pl.UInt32
    )
    found = found.with_columns(number=compact.str.slice(0, length), length=length).drop_nulls("length")
    found = found.filter(pl.col("number").str.len_chars() == pl.col("length"))
    return _rows(len(texts), found["row"].filter(pl.Series(IBAN.right(found["number"]), dtype=pl.Boolean)))


def _has_check_digits(texts: pl.Series, *, what: str, shape: str) -> Flags:
    """Texts with a number of this sort, if most of those that have its shape have its check digits, too."""
    found = _candidates(texts, shape)
    numbering = next(each for each in NUMBERINGS if each.what == what)
    right = pl.Series(numbering.right(found["part"]), dtype=pl.Boolean)
    believed = len(right) and right.mean() >= MOST_SHARE  # type: ignore[operator]
    return _rows(len(texts), found["row"].filter(right) if believed else found["row"].clear())


def _after_identity_words(texts: pl.Series) -> Flags:
    found = _candidates(texts, _AFTER_AN_IDENTITY_WORD, group=1)
    right = np.zeros(len(found), dtype=np.bool_)
    for numbering in NUMBERINGS if len(found) else ():
        right |= numbering.right(found["part"].str.strip_chars())
    return _rows(len(texts), found["row"].filter(pl.Series(right, dtype=pl.Boolean)))
