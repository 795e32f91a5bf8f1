"""Numbers by which people, their accounts and their cards are known, and how to tell them from others.

A *numbering* has a shape and, nearly always, check digits. That a column holds such numbers is believed
where most of its values pass, and so many that mere chance would hardly bring them about. To teach it a new
one, add it to `NUMBERINGS`: its name, its shape once spaces and dashes are taken out, its check, and the
share of texts of that shape that would pass the check by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.kernels.arrays import Flags, Ints

#: Chance must bring about as many right numbers as were seen at most this often.
_ODDS = 1e-6
_MANY_DIGITS = r"(?:\d[^\d]*){7}"  # as the shortest numbers have, but for zeros in front
_FIRST, _HALF = 50, 0.5
_ZEROS_LOST = 2  # a number that was read as such may have lost this many zeros in front


@dataclass(frozen=True)
class Numbering:
    """A way of numbering people or what is theirs.

    ``shape`` is that of the whole text in capitals, without what ``gaps`` matches; ``check`` says which of
    the texts of that shape are right, and ``chance`` which share of them would be by chance. ``hints`` are
    words in the names of columns (see `sfumato.data.guess.words`), ``width`` is the number of digits of a
    plain number, which may have lost zeros in front.
    """

    what: str
    shape: str
    check: Callable[[pl.Series], Flags]
    chance: float
    hints: str = ""
    width: int = 0
    gaps: str = r"[\s.\-/]"

    @property
    def enough(self) -> int:
        """How many right numbers chance would hardly bring about."""
        return math.ceil(math.log(_ODDS) / math.log(self.chance))

    def right(self, texts: pl.Series) -> Flags:
        """Which texts are numbers of this sort."""
        compact = texts.str.to_uppercase().str.replace_all(self.gaps, "")
        shaped = compact.str.contains(f"^(?:{self.shape})$").fill_null(value=False)
        shaped &= compact.str.len_bytes() == compact.str.len_chars()  # digits of other scripts are digits too
        flags = shaped.to_numpy().copy()
        if flags.any():
            flags[flags] = self.check(compact.filter(shaped))
        return flags

    def pad_with_zeros(self, numbers: pl.Series) -> pl.Series:
        """Give whole numbers, as texts, the zeros back that they may have lost."""
        if not self.width:
            return numbers
        short = numbers.str.len_bytes().is_between(self.width - _ZEROS_LOST, self.width)
        return numbers.str.zfill(self.width).zip_with(short, numbers)


@dataclass(frozen=True)
class NumberingMatch:
    """A numbering that values have, the share that is right, and whether so many speak for themselves."""

    numbering: Numbering
    share: float
    enough: bool


def recognise(texts: pl.Series, *, numbers: bool = False) -> NumberingMatch | None:
    """Find the numbering that most of these distinct texts have, if any; the one that fits best.

    ``numbers`` tells that the texts were whole numbers, which have no zeros in front.
    """
    if not texts.str.contains(_MANY_DIGITS).any():  # as in most columns: one look instead of one for each
        return None
    best: NumberingMatch | None = None
    for numbering in NUMBERINGS:
        written = numbering.pad_with_zeros(texts) if numbers else texts
        if numbering.right(written.head(_FIRST)).mean() < _HALF:  # a few texts rule most numberings out
            continue
        right = numbering.right(written)
        if right.mean() > (best.share if best else 0.0):
            best = NumberingMatch(numbering, float(right.mean()), int(right.sum()) >= numbering.enough)
    return best


# The arithmetic of check digits ---------------------------------------------------------------------------
#
# Each function takes texts that have the shape of their number already (all of one length, capital letters,
# no spaces) and says which of them have the right check digits.

_LONGEST_CARD = 19
_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

#: Verhoeff's tables: the multiplication of the dihedral group of order 10, and the powers of a permutation.
_DIHEDRAL = np.array(
    [[(i + j) % 5 if j < 5 else 5 + (i + j) % 5 for j in range(10)] for i in range(5)]  # noqa: PLR2004
    + [[5 + (i - j) % 5 if j < 5 else (i - j) % 5 for j in range(10)] for i in range(5, 10)]  # noqa: PLR2004
)
_PERMUTATION = np.array([1, 5, 7, 6, 2, 8, 3, 0, 9, 4])


def digits_of(texts: pl.Series) -> Ints:
    """One row of digits for each text; a letter is 10 for A to 35 for Z, as base 36 writes them."""
    if not len(texts):
        return np.zeros((0, 1), dtype=np.int64)
    width = len(texts[0])
    codes = np.array(texts.to_list(), dtype=f"S{width}").view(np.uint8).reshape(len(texts), width)
    return np.where(codes >= ord("A"), codes - np.int64(ord("A") - 10), codes - np.int64(ord("0")))


def number_of(digits: Ints) -> Ints:
    """The number that a row of at most 18 digits writes."""
    return weighted_digit_sum(digits, [10**place for place in range(digits.shape[1] - 1, -1, -1)])


def weighted_digit_sum(digits: Ints, weights: Sequence[int]) -> Ints:
    """The sum of the first digits, each times its weight."""
    return np.asarray(digits[:, : len(weights)] @ np.array(weights, dtype=np.int64))


def is_day(day: Ints, month: Ints) -> Flags:
    """Whether a day and a month go together in some year."""
    known = (month >= 1) & (month <= 12)  # noqa: PLR2004
    return known & (day >= 1) & (day <= _DAYS[np.where(known, month, 0)])


def luhn(texts: pl.Series) -> Flags:
    """Every second digit from the right doubled, the sum of all digits is a multiple of 10.

    As zeros in front do not count, the texts may differ in length, up to that of the longest card number.
    """
    digits = digits_of(texts.str.zfill(_LONGEST_CARD))
    doubled = 2 * digits[:, -2::-2]
    total = digits[:, ::-2].sum(axis=1) + (doubled - 9 * (doubled > 9)).sum(axis=1)  # noqa: PLR2004
    return np.asarray(total % 10 == 0)


def verhoeff(texts: pl.Series) -> Flags:
    """The digits from the right, each permuted as often as its place says, multiply to the identity."""
    digits = digits_of(texts)
    product = np.zeros(len(digits), dtype=np.int64)
    power = np.arange(10)
    for place in range(digits.shape[1] - 1, -1, -1):
        product = _DIHEDRAL[product, power[digits[:, place]]]
        power = _PERMUTATION[power]
    return np.asarray(product == 0)


def mod_11_10(texts: pl.Series) -> Flags:
    """ISO 7064, mod 11,10: a product carried from digit to digit, here over all digits."""
    digits = digits_of(texts)
    product = np.full(len(digits), 10, dtype=np.int64)
    for place in range(digits.shape[1] - 1):
        total = (digits[:, place] + product) % 10
        product = np.where(total == 0, 10, total) * 2 % 11
    return np.asarray((product + digits[:, -1]) % 10 == 1)


def mod_97(texts: pl.Series) -> Flags:
    """ISO 7064, mod 97-10: the first four characters at the end, letters as two digits, remainder 1 (IBAN).

    The texts may differ in length.
    """
    letters = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
    turned = texts.str.slice(4) + texts.str.slice(0, 4)
    written = turned.str.replace_many(letters, [str(value) for value in range(10, 36)])
    digits = digits_of(written.str.zfill(int(written.str.len_bytes().max() or 1)))  # type: ignore[arg-type]
    rest = np.zeros(len(digits), dtype=np.int64)
    for place in range(digits.shape[1]):
        rest = (rest * 10 + digits[:, place]) % 97
    return np.asarray(rest == 1)


def sums_to(modulus: int, digits: Ints, weights: Sequence[int]) -> Flags:
    """Whether the weighted sum of the digits is a multiple of the modulus."""
    return np.asarray(weighted_digit_sum(digits, weights) % modulus == 0)


def letter_of(texts: pl.Series, numbers: Ints, alphabet: str) -> Flags:
    """Whether the last character is the one that stands at the remainder of the number in the alphabet."""
    expected = pl.Series(list(alphabet)).gather(numbers % len(alphabet))
    return (texts.str.slice(-1) == expected).to_numpy()


# Checks that one numbering alone has ----------------------------------------------------------------------


def _spanish(texts: pl.Series) -> Flags:
    plain = texts.str.replace_many(["X", "Y", "Z"], ["0", "1", "2"])
    # The last letter may be one of those replaced: the text as it stands has it.
    numbers = number_of(digits_of(plain.str.slice(0, 8)))
    return letter_of(texts, numbers, "TRWAGMYFPDXBNJZSQVHLCKE")


_TEN = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
#: What a digit, or a letter after the ten digits, counts in an odd place; the first ten letters count alike.
_ODD_PLACES = np.array([*_TEN, *_TEN, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23])


def _italian(texts: pl.Series) -> Flags:
    digits = digits_of(texts)[:, :15]
    even = digits[:, 1::2]
    total = _ODD_PLACES[digits[:, ::2]].sum(axis=1) + np.where(even > 9, even - 10, even).sum(axis=1)  # noqa: PLR2004
    return letter_of(texts, total, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _french(texts: pl.Series) -> Flags:
    digits = digits_of(texts.str.replace("2A", "19", literal=True).str.replace("2B", "18", literal=True))
    return np.asarray(number_of(digits[:, :13]) % 97 == 97 - number_of(digits[:, 13:]))


def _german(texts: pl.Series) -> Flags:
    digits = digits_of(texts)[:, :10]
    times = (digits[:, :, None] == np.arange(10)).sum(axis=1)
    # Of the first ten digits one stands there twice or three times, and all others at most once.
    often = (times > 1).sum(axis=1) == 1
    return np.asarray(mod_11_10(texts) & often & (times.max(axis=1) <= 3))  # noqa: PLR2004


def _polish(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    month, day = number_of(digits[:, 2:4]) % 20, number_of(digits[:, 4:6])  # the tens tell the century
    return sums_to(10, digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) & is_day(day, month)


def _swedish(texts: pl.Series) -> Flags:
    short = texts.str.slice(-10)
    digits = digits_of(short)
    day = number_of(digits[:, 4:6])
    day = np.where(day > 60, day - 60, day)  # a number for those who are not registered  # noqa: PLR2004
    return luhn(short) & is_day(day, number_of(digits[:, 2:4]))


def _finnish(texts: pl.Series) -> Flags:
    digits = digits_of(texts.str.slice(0, 6) + texts.str.slice(7, 3))
    right = letter_of(texts, number_of(digits), "0123456789ABCDEFHJKLMNPRSTUVWXY")
    return right & is_day(number_of(digits[:, :2]), number_of(digits[:, 2:4]))


def _belgian(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    number, check = number_of(digits[:, :9]), number_of(digits[:, 9:])
    # Since 2000 a 2 stands in front of the number when it is divided.
    right = (97 - number % 97 == check) | (97 - (number + 2_000_000_000) % 97 == check)
    return np.asarray(right & (number_of(digits[:, 2:4]) % 20 <= 12))  # noqa: PLR2004


def _british(texts: pl.Series) -> Flags:
    return sums_to(11, digits_of(texts), (10, 9, 8, 7, 6, 5, 4, 3, 2, 1))


def _american(texts: pl.Series) -> Flags:
    area, group, serial = (
        texts.str.slice(*part).cast(pl.Int64).to_numpy() for part in ((0, 3), (4, 2), (7, 4))
    )
    return np.asarray((area > 0) & (area != 666) & (area < 900) & (group > 0) & (serial > 0))  # noqa: PLR2004


def _brazilian(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    right = np.ones(len(digits), dtype=bool)
    for place in (9, 10):
        rest = weighted_digit_sum(digits, range(place + 1, 1, -1)) * 10 % 11 % 10
        right &= rest == digits[:, place]
    return np.asarray(right & (digits != digits[:, :1]).any(axis=1))


def _dutch(texts: pl.Series) -> Flags:
    return sums_to(11, digits_of(texts.str.zfill(9)), (9, 8, 7, 6, 5, 4, 3, 2, -1))


def _norwegian(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    first = sums_to(11, digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1))
    second = sums_to(11, digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1))
    day, month = number_of(digits[:, :2]) % 40, number_of(digits[:, 2:4]) % 40
    return first & second & is_day(day, month)


def _swiss(texts: pl.Series) -> Flags:
    return sums_to(10, digits_of(texts), (1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1))


def _turkish(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    tenth = (7 * digits[:, 0:9:2].sum(axis=1) - digits[:, 1:8:2].sum(axis=1)) % 10
    return np.asarray((tenth == digits[:, 9]) & (digits[:, :10].sum(axis=1) % 10 == digits[:, 10]))


def _chinese(texts: pl.Series) -> Flags:
    total = weighted_digit_sum(digits_of(texts), [2**place % 11 for place in range(17, 0, -1)])
    return letter_of(texts, total, "10X98765432")


def _portuguese(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    rest = 11 - weighted_digit_sum(digits, range(9, 1, -1)) % 11
    return np.asarray(np.where(rest > 9, 0, rest) == digits[:, 8])  # noqa: PLR2004


def _romanian(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    rest = weighted_digit_sum(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    day, month = number_of(digits[:, 5:7]), number_of(digits[:, 3:5])
    return np.asarray(np.where(rest == 10, 1, rest) == digits[:, 12]) & is_day(day, month)  # noqa: PLR2004


def _irish(texts: pl.Series) -> Flags:
    digits = digits_of(texts.str.slice(0, 7))
    second = texts.str.slice(8).replace_strict(
        ["", *"ABCDEFGHI", "W"], [0, *range(1, 10), 0], return_dtype=pl.Int64
    )
    total = weighted_digit_sum(digits, range(8, 1, -1)) + 9 * second.to_numpy()
    return letter_of(texts.str.slice(0, 8), total, "WABCDEFGHIJKLMNOPQRSTUV")


def _south_african(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    return luhn(texts) & is_day(number_of(digits[:, 4:6]), number_of(digits[:, 2:4]))


def _baltic(texts: pl.Series) -> Flags:
    digits = digits_of(texts)
    first = weighted_digit_sum(digits, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    second = weighted_digit_sum(digits, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    right = np.where(first == 10, second, first) == digits[:, 10]  # noqa: PLR2004
    return np.asarray(right & is_day(number_of(digits[:, 5:7]), number_of(digits[:, 3:5])))


# The numberings -------------------------------------------------------------------------------------------

IBAN = Numbering(
    "bank account numbers", r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", mod_97, 1 / 97, hints="iban", gaps=r"\s"
)

_CARD = (
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|6(?:011|4[4-9]\d|5\d{2})\d{12}"
)
_FISCAL = r"[A-Z]{6}[\dL-NP-V]{2}[ABCDEHLMPRST][\dL-NP-V]{2}[A-Z][\dL-NP-V]{3}[A-Z]"
_SECURITY = r"[12378]\d{2}(?:0[1-9]|[1-9]\d)(?:\d{2}|2[AB])\d{8}"
_RESIDENT = r"[1-9]\d{5}(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dX]"

#: Where two fit equally well the first is believed, so the narrower come first.
NUMBERINGS: tuple[Numbering, ...] = (
    IBAN,
    Numbering("numbers of payment cards", _CARD, luhn, 1 / 10, hints="card* kreditkarte* tarjeta*"),
    Numbering(
        "Spanish identity numbers (DNI, NIE)", r"[\dXYZ]\d{7}[A-HJ-NP-TV-Z]", _spanish, 1 / 23, "dni nie nif"
    ),
    Numbering("Italian tax codes (codice fiscale)", _FISCAL, _italian, 1 / 26, "codice_fiscale codfisc*"),
    Numbering("French social security numbers (NIR)", _SECURITY, _french, 1 / 97, "nir insee* num*_secu*"),
    Numbering(
        "Finnish identity codes (HETU)", r"\d{6}[-+A-FU-Y]\d{3}[\dA-Y]", _finnish, 1 / 31, "hetu", gaps=r"\s"
    ),
    Numbering("Irish personal numbers (PPSN)", r"\d{7}[A-W][A-IW]?", _irish, 1 / 23, "pps ppsn"),
    Numbering("Chinese resident numbers", _RESIDENT, _chinese, 1 / 11, "shenfenzheng*", width=18),
    Numbering("Brazilian taxpayer numbers (CPF)", r"\d{11}", _brazilian, 1 / 100, "cpf", width=11),
    Numbering("Norwegian identity numbers", r"\d{11}", _norwegian, 1 / 100, "fodselsn* fnr", width=11),
    Numbering("Turkish identity numbers", r"[1-9]\d{10}", _turkish, 1 / 100, "tc_kimlik* tckn", width=11),
    Numbering("Belgian register numbers", r"\d{11}", _belgian, 1 / 48, "rrn niss insz rijksreg*", width=11),
    Numbering("Polish identity numbers (PESEL)", r"\d{11}", _polish, 1 / 10, "pesel", width=11),
    Numbering(
        "Estonian or Lithuanian personal codes", r"[1-8]\d{10}", _baltic, 1 / 10, "isikukood", width=11
    ),
    Numbering("German tax numbers (IdNr)", r"[1-9]\d{10}", _german, 1 / 10, "steuer_id* idnr", width=11),
    Numbering("Croatian personal numbers (OIB)", r"\d{11}", mod_11_10, 1 / 10, "oib", width=11),
    Numbering("Indian Aadhaar numbers", r"[2-9]\d{11}", verhoeff, 1 / 10, "aadha*", width=12),
    Numbering(
        "Swedish identity numbers", r"(?:18|19|20)?\d{10}", _swedish, 1 / 10, "personn* pnr", 10, r"[\s\-+]"
    ),
    Numbering("Swiss insurance numbers (AHV)", r"756\d{10}", _swiss, 1 / 10, "ahv* avs*", width=13),
    Numbering("Romanian personal codes (CNP)", r"[1-9]\d{12}", _romanian, 1 / 10, "cnp", width=13),
    Numbering("South African identity numbers", r"\d{13}", _south_african, 1 / 10, "rsa_id*", width=13),
    Numbering("British health service numbers", r"[1-9]\d{9}", _british, 1 / 11, "nhs*", width=10),
    Numbering(
        "Dutch citizen numbers (BSN)", r"[1-9]\d{7,8}|0[1-9]\d{7}", _dutch, 1 / 11, "bsn sofi*", width=9
    ),
    Numbering("Portuguese taxpayer numbers", r"[1-35-9]\d{8}|45\d{7}", _portuguese, 1 / 11, "nif", width=9),
    Numbering("Canadian insurance numbers (SIN)", r"[0-79]\d{8}", luhn, 1 / 10, "sin nas", width=9),
    # No digit checks these: many must have the shape before it is believed.
    Numbering("social security numbers", r"\d{3}-\d{2}-\d{4}", _american, 1 / 2, "ssn", gaps=r"\s"),
)
