"""Numbers with check digits: made up here by the rule of each, one by one, and found again; others are not.

The makers are written digit by digit, apart from the code they test, which works on many numbers at once.
"""

from __future__ import annotations

import random
import string

import polars as pl
import pytest

from sfumato.data.guess.columns import guess
from sfumato.data.guess.contacts import ACCOUNTS, contacts_in
from sfumato.data.guess.identifiers import NUMBERINGS, recognise
from sfumato.data.schema import Kind, Role

RNG = random.Random(7)
N = 200


def digits(count, first="0123456789"):
    return RNG.choice(first) + "".join(RNG.choice("0123456789") for _ in range(count - 1))


def letters(count):
    return "".join(RNG.choice(string.ascii_uppercase) for _ in range(count))


def weighed(text, weights):
    return sum(int(digit) * weight for digit, weight in zip(text, weights, strict=True))


def birthday(form="ymd"):
    part = {"y": f"{RNG.randrange(100):02}", "m": f"{RNG.randint(1, 12):02}", "d": f"{RNG.randint(1, 28):02}"}
    return "".join(part[sign] for sign in form)


def until_right(make):
    """Draw again where a rule has no check digit for a number."""
    while (text := make()) is None:
        pass
    return text


def with_luhn(text):
    total = 0
    for place, digit in enumerate(reversed(text + "0")):
        value = int(digit) * (2 if place % 2 else 1)
        total += value // 10 + value % 10
    return text + str(-total % 10)


def dni():
    number = digits(8)
    return number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def nie():
    sign = RNG.choice("XYZ")
    number = digits(7)
    return sign + number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(str("XYZ".index(sign)) + number) % 23]


def bsn():
    number = digits(8, "123456789")
    rest = weighed(number, range(9, 1, -1)) % 11
    return None if rest == 10 else number + str(rest)


ODD = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True))
ODD |= dict(zip("ABCDEFGHIJ", ODD.values(), strict=True))
ODD |= dict(zip("KLMNOPQRSTUVWXYZ", (2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23), strict=True))


def codice_fiscale():
    text = (
        letters(6) + digits(2) + RNG.choice("ABCDEHLMPRST") + digits(2, "01234567") + letters(1) + digits(3)
    )
    total = 0
    for place, sign in enumerate(text, start=1):
        total += ODD[sign] if place % 2 else int(sign) if sign.isdigit() else ord(sign) - ord("A")
    return text + chr(ord("A") + total % 26)


def nir():
    department = RNG.choice(["14", "75", "2A", "2B", "99"])
    number = RNG.choice("12") + digits(2) + f"{RNG.randint(1, 12):02}" + department + digits(6)
    value = int(number.replace("2A", "19").replace("2B", "18"))
    return f"{number}{97 - value % 97:02}"


def mod_11_10(text):
    product = 10
    for digit in text:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return text + str((11 - product) % 10)


def steuer_id():
    ten = RNG.sample("0123456789", 9)  # one digit is left out, and one stands there twice
    ten.insert(RNG.randrange(10), RNG.choice(ten))
    text = "".join(ten)
    return None if text[0] == "0" else mod_11_10(text)


def oib():
    return mod_11_10(digits(10))


def pesel():
    text = birthday() + digits(4)
    return text + str(-weighed(text, (1, 3, 7, 9) * 2 + (1, 3)) % 10)


def personnummer():
    text = with_luhn(birthday() + digits(3))
    return RNG.choice(["", "19"]) + text[:6] + RNG.choice("-+") + text[6:]


def hetu():
    day, number = birthday("dmy"), digits(3)
    return f"{day}{RNG.choice('-A+')}{number}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(day + number) % 31]}"


def rijksregister():
    text = birthday() + digits(3)
    century = RNG.choice(["", "2"])
    check = f"{97 - int(century + text) % 97:02}"
    return f"{text[:2]}.{text[2:4]}.{text[4:6]}-{text[6:]}.{check}"


def nhs():
    text = digits(9, "123456789")
    check = 11 - weighed(text, range(10, 1, -1)) % 11
    return None if check == 10 else text + str(check % 11)


def cpf():
    text = digits(9)
    for _ in range(2):
        rest = weighed(text, range(len(text) + 1, 1, -1)) % 11
        text += str(0 if rest < 2 else 11 - rest)
    return f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"


def verhoeff_tables():
    def times(i, j):  # rotations are 0 to 4, reflections 5 to 9
        turned = (i + j) % 5 if i < 5 else (i - j) % 5
        return turned if (i < 5) == (j < 5) else 5 + turned

    return times, [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]


def aadhaar():
    times, permutation = verhoeff_tables()
    text = digits(11, "23456789")
    for check in "0123456789":  # the one that multiplies to the identity
        product = 0
        for place, digit in enumerate(reversed(text + check)):
            value = int(digit)
            for _ in range(place):
                value = permutation[value]
            product = times(product, value)
        if product == 0:
            return text + check
    raise AssertionError


def iban():
    text = digits(18)
    value = int(text + "131400")  # DE is 13 14
    return f"DE{98 - value % 97:02}{text}"


def card():
    start, length = RNG.choice([("4", 16), ("51", 16), ("37", 15), ("6011", 16), ("36", 14)])
    return with_luhn(start + digits(length - len(start) - 1))


def fodselsnummer():
    text = birthday("dmy") + digits(3)
    for weights in ((3, 7, 6, 1, 8, 9, 4, 5, 2), (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)):
        check = -weighed(text, weights) % 11
        if check == 10:
            return None
        text += str(check)
    return text


def kimlik():
    text = digits(9, "123456789")
    odd, even = sum(map(int, text[::2])), sum(map(int, text[1::2]))
    text += str((7 * odd - even) % 10)
    return text + str(sum(map(int, text)) % 10)


def ahv():
    text = "756" + digits(9)
    return text + str(-weighed(text, (1, 3) * 6) % 10)


def resident():
    text = digits(6, "123456789") + "19" + birthday() + digits(3)
    total = weighed(text, [2**place % 11 for place in range(17, 0, -1)])
    return text + "10X98765432"[total % 11]


def nif():
    text = digits(8, "123")
    check = 11 - weighed(text, range(9, 1, -1)) % 11
    return text + str(0 if check > 9 else check)


def cnp():
    text = RNG.choice("1256") + birthday() + digits(5)
    rest = weighed(text, map(int, "279146358279")) % 11
    return text + str(1 if rest == 10 else rest)


def ppsn():
    text = digits(7)
    return text + "WABCDEFGHIJKLMNOPQRSTUV"[weighed(text, range(8, 1, -1)) % 23]


def sin():
    return with_luhn(digits(8, "1234567"))


def south_african():
    return with_luhn(birthday() + digits(4) + "08")


def isikukood():
    text = RNG.choice("3456") + birthday() + digits(3)
    check = weighed(text, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = weighed(text, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return text + str(check)


def ssn():
    return f"{RNG.randint(1, 665):03}-{RNG.randint(1, 99):02}-{RNG.randint(1, 9999):04}"


MAKERS = {
    "bank account numbers": iban,
    "numbers of payment cards": card,
    "Spanish identity numbers (DNI, NIE)": dni,
    "Dutch citizen numbers (BSN)": bsn,
    "Italian tax codes (codice fiscale)": codice_fiscale,
    "French social security numbers (NIR)": nir,
    "German tax numbers (IdNr)": steuer_id,
    "Croatian personal numbers (OIB)": oib,
    "Polish identity numbers (PESEL)": pesel,
    "Swedish identity numbers": personnummer,
    "Finnish identity codes (HETU)": hetu,
    "Belgian register numbers": rijksregister,
    "British health service numbers": nhs,
    "Brazilian taxpayer numbers (CPF)": cpf,
    "Indian Aadhaar numbers": aadhaar,
    "Norwegian identity numbers": fodselsnummer,
    "Turkish identity numbers": kimlik,
    "Swiss insurance numbers (AHV)": ahv,
    "Chinese resident numbers": resident,
    "Portuguese taxpayer numbers": nif,
    "Romanian personal codes (CNP)": cnp,
    "Irish personal numbers (PPSN)": ppsn,
    "Canadian insurance numbers (SIN)": sin,
    "South African identity numbers": south_african,
    "Estonian or Lithuanian personal codes": isikukood,
    "social security numbers": ssn,
}

#: Numbers that the authorities, or those who describe the numbering, give as examples.
PUBLISHED = {
    "bank account numbers": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32"],
    "numbers of payment cards": ["4111 1111 1111 1111", "378282246310005", "30569309025904"],
    "Spanish identity numbers (DNI, NIE)": ["12345678Z", "X1234567L"],
    "Dutch citizen numbers (BSN)": ["111222333", "123456782"],
    "Italian tax codes (codice fiscale)": ["RSSMRA85T10A562S"],
    "French social security numbers (NIR)": ["2 55 08 14 168 025 38"],
    "German tax numbers (IdNr)": ["86095742719", "47036892816", "65929970489"],
    "Polish identity numbers (PESEL)": ["44051401359", "02070803628"],
    "Swedish identity numbers": ["811228-9874", "19811228-9874"],
    "Finnish identity codes (HETU)": ["131052-308T"],
    "Belgian register numbers": ["85.07.30-033.28"],
    "British health service numbers": ["943 476 5919"],
    "Brazilian taxpayer numbers (CPF)": ["390.533.447-05", "11144477735"],
    "Indian Aadhaar numbers": ["2341 2341 2346"],
    "Swiss insurance numbers (AHV)": ["756.9217.0769.85", "756.1234.5678.97"],
    "Turkish identity numbers": ["10000000146"],
    "Chinese resident numbers": ["11010519491231002X"],
    "Irish personal numbers (PPSN)": ["1234567T"],
    "Canadian insurance numbers (SIN)": ["046 454 286"],
    "South African identity numbers": ["8001015009087"],
}


def some(what, count=N):
    return list(dict.fromkeys(until_right(MAKERS[what]) for _ in range(count)))


def numbering(what):
    return next(each for each in NUMBERINGS if each.what == what)


def spoilt(text):
    """The number with its last digit or letter changed: no check may pass it, whatever it checks."""
    last = text[-1]
    if last.isdigit():
        return text[:-1] + str((int(last) + RNG.randint(1, 9)) % 10)
    return text[:-1] + RNG.choice(sorted(set(string.ascii_uppercase) - {last}))


def one(name, values):
    (proposal,) = guess(pl.DataFrame({name: values}))
    return proposal


def test_every_numbering_is_tested():
    assert set(MAKERS) == {each.what for each in NUMBERINGS}


@pytest.mark.parametrize("what", MAKERS)
def test_right_numbers_pass(what):
    assert numbering(what).right(pl.Series(some(what))).all()


@pytest.mark.parametrize("what", PUBLISHED)
def test_published_examples_pass(what):
    assert numbering(what).right(pl.Series(PUBLISHED[what])).all()


@pytest.mark.parametrize("what", [what for what in MAKERS if what != "social security numbers"])
def test_a_wrong_last_digit_is_noticed(what):
    wrong = [spoilt(text) for text in some(what)]
    passed = numbering(what).right(pl.Series(wrong)).mean()
    # Belgian numbers have two right endings, one for each century, and the others one.
    assert passed <= (0.05 if what.startswith("Belgian") else 0.0)


def test_a_wrong_first_digit_is_noticed_too():
    for what in ("Dutch citizen numbers (BSN)", "Indian Aadhaar numbers", "Polish identity numbers (PESEL)"):
        wrong = [str((int(text[0]) + 1) % 10) + text[1:] for text in some(what)]
        assert numbering(what).right(pl.Series(wrong)).mean() < 0.2


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("social security numbers", "666-12-3456"),
        ("social security numbers", "900-12-3456"),
        ("social security numbers", "123-00-3456"),
        ("social security numbers", "123-45-0000"),
        ("social security numbers", "123456789"),
        ("Brazilian taxpayer numbers (CPF)", "11111111111"),
        ("Spanish identity numbers (DNI, NIE)", "Z12345678"),
        ("Polish identity numbers (PESEL)", "44134501359"),  # no such month
        ("Dutch citizen numbers (BSN)", "000000000"),
        ("British health service numbers", ""),
        ("German tax numbers (IdNr)", "١٢٣٤٥٦٧٨٩٠١"),  # digits of another script are digits too
    ],
)
def test_what_is_none(what, text):
    assert not numbering(what).right(pl.Series([text])).any()


@pytest.mark.parametrize("what", MAKERS)
def test_columns_of_such_numbers_are_identifiers(what):
    proposal = one("x", some(what))
    assert proposal.column.role is Role.IDENTIFIER
    assert proposal.role_reason == f"its values are {what}"
    assert proposal.column.kind is Kind.NOMINAL


@pytest.mark.parametrize(
    "what",
    [what for what in MAKERS if numbering(what).width and numbering(what).width < 18],
)
def test_as_whole_numbers_too(what):
    plain = ["".join(filter(str.isdigit, text)) for text in some(what)]
    proposal = one("x", [int(text) for text in plain])
    assert proposal.role_reason == f"its values are {what}"
    assert (proposal.column.role, proposal.column.kind) == (Role.IDENTIFIER, Kind.NOMINAL)
    gaps = one("x", [None, *(float(text) for text in plain)])  # as a frame of another package has them
    assert gaps.role_reason == proposal.role_reason


def test_some_that_are_wrong_do_not_hide_the_others():
    values = some("Spanish identity numbers (DNI, NIE)")
    assert one("x", [*values, "none", "12345678A"]).column.role is Role.IDENTIFIER
    assert one("x", [*values, *(nie() for _ in range(N))]).column.role is Role.IDENTIFIER


def test_few_numbers_need_a_hint_in_the_name():
    values = some("Dutch citizen numbers (BSN)", 4)
    assert one("x", values * 10).column.role is None  # chance could have brought them about
    assert "BSN" in one("bsn", values).role_reason
    assert "BSN" in one("national_id", values).role_reason


def test_numbers_that_many_records_share_need_a_hint_as_well():
    values = some("Dutch citizen numbers (BSN)", 20)
    assert one("x", values * 20).column.role is None
    assert one("citizen_number", values * 20).role_reason.endswith("; several records share one")


AMOUNTS = {
    "amounts": lambda: RNG.randint(1, 10**6) * 1000,
    "whole numbers of nine digits": lambda: RNG.randint(10**8, 10**9),
    "whole numbers of ten digits": lambda: RNG.randint(10**9, 10**10),
    "whole numbers of eleven digits": lambda: RNG.randint(10**10, 10**11),
    "whole numbers of twelve digits": lambda: RNG.randint(10**11, 10**12),
    "whole numbers of thirteen digits": lambda: RNG.randint(10**12, 10**13),
    "whole numbers of sixteen digits": lambda: RNG.randint(4 * 10**15, 5 * 10**15),
    "postcodes": lambda: f"{RNG.randrange(10**5):05}",
    "postcodes of seven digits": lambda: f"{RNG.randrange(10**3):03}-{RNG.randrange(10**4):04}",
    "days": lambda: int(f"19{birthday()}"),
    "codes with a day in them": lambda: f"{birthday()}-{digits(4)}",
    "codes with a letter": lambda: digits(8) + letters(1),
    "small numbers": lambda: RNG.randint(0, 500),
}


@pytest.mark.parametrize("what", AMOUNTS)
def test_ordinary_numbers_are_none(what):
    values = [AMOUNTS[what]() for _ in range(500)]
    found = recognise(pl.Series([str(value) for value in values]), numbers=isinstance(values[0], int))
    assert found is None or found.share < 0.5
    assert not one("x", values).role_reason.startswith("its values are")


def test_consecutive_numbers_are_numbers_of_records():
    assert one("x", list(range(10**9, 10**9 + N))).role_reason.startswith("consecutive whole numbers")


def test_account_numbers_in_a_text():
    text = iban()
    spaced = " ".join(text[start : start + 4] for start in range(0, len(text), 4))
    texts = [f"pay to {text} soon", f"pay to {spaced}, please", f"pay to {spoilt(text)} soon", "or not", None]
    assert contacts_in(pl.Series(texts)).cells[ACCOUNTS].tolist() == [True, True, False, False, False]
    assert not contacts_in(pl.Series([], dtype=pl.String))
