"""Ways to reach or name somebody are found in single cells, and codes that only look like numbers are none."""

from __future__ import annotations

import importlib
import random
import re

import numpy as np
import polars as pl
import pytest

from sfumato.data.generalised.nodes import Nodes
from sfumato.data.guess import contacts, words
from sfumato.data.guess.contacts import ACCOUNTS, EMAILS, PHONES, contacts_in, shown_texts
from sfumato.data.guess.identifiers import IBAN, NUMBERINGS
from sfumato.data.schema import Column, Kind, Schema
from sfumato.data.table import Table

WITH = {
    EMAILS: ["jo@example.org", "write to j.o+x@mail.example.co.uk today", "<Jo.Doe@EXAMPLE.ORG>"],
    PHONES: [
        "tel. 972 123 456", "tel 972123456", "Tfno: 93 123 45 67", "llamar al 612 345 678", "call 617-555-0123 soon",
        "(617) 555-0123", "ring +49 30 1234567", "+44 20 7946 0958", "0034 972 123 456", "0171/2345678", "(030) 123 4567",
        "06 12 34 56 78 le soir", "Handy 0171 2345678", "mobil: 070-123 45 67", "zadzwonic kom. 601 234 567",
        "cell. 347 123 4567", "call back: 0171 5550123", "late: 089-1234567", "bellen 06-12345678", "telemovel 912 345 678",
    ],
    ACCOUNTS: ["pay DE89 3704 0044 0532 0130 00 SOON", "iban es9121000418450200051332", "GB82WEST12345698765432"],
    "Spanish identity numbers (DNI, NIE)": ["su DNI es 12345678Z", "X1234567L"],
    "Italian tax codes (codice fiscale)": ["seen RSSMRA85T10A562S today"],
    "social security numbers": ["ssn 123-45-6789 noted"],
    "identity numbers": ["PESEL: 44051401359", "BSN 111222333", "Pnr: 8112189876"],
}  # fmt: skip
WITHOUT = [
    "02139-1234", "01-01301", "12.05.2021", "2021-05-12", "on call 2021-05-12", "on call 20210512", "18-24", "65+", "123456789",
    "ENG-01", "0012345678", "972 123 456", "12345678A", "192.168.1.1", "10001-1999", "3 of 4 @ home", "E11.9", "1,234,567",
    "0123-456-789", "08:30-17:00", "75001", "SW1A 1AA", "2024-11-17 12:30:45", "DE12345678", "ISBN 978-3-16-148410-0",
    "room 0123 45", "ward 12, bed 3", "G3", "00-04", "1234 AB", "12-345", "111-11 Stockholm", "44051401359", "111222333", "",
    "DE89370400440532013001", "2019-2023", "10 000 - 19 999", "{Kern|Fresno}", "[20;29]", "+", "+10 %", "00000000", "1.000.000,00",
]  # fmt: skip


@pytest.mark.parametrize(("what", "text"), [(what, text) for what, texts in WITH.items() for text in texts])
def test_found(what, text):
    found = contacts_in(pl.Series(["nothing", text, None, "12"]))
    assert found.cells[what].tolist() == [False, True, False, False]
    assert found.counts[what] == 1


@pytest.mark.parametrize("text", WITHOUT)
def test_not_found(text):
    assert not contacts_in(pl.Series([text]))


def test_cells_are_those_of_the_column():
    series = pl.Series(["b jo@example.org", None, "a", "b jo@example.org"], dtype=pl.Categorical)
    assert contacts_in(series).cells[EMAILS].tolist() == [True, False, False, True]
    for empty in (pl.Series([], dtype=pl.String), pl.Series([None], dtype=pl.String), pl.Series([1, 2])):
        assert not contacts_in(empty)


def test_postcodes_and_codes_of_all_sorts_are_none():
    rng = np.random.default_rng(1)
    digits = rng.integers(0, 10, (3000, 11)).astype(str)
    joined = ["".join(row) for row in digits]
    shapes = ["#####", "#####-####", "##-###", "##-#####", "###-####", "####.##", "########A", "###########", "###-##-###",
              "A##.#", "#### ##", "##:##", "AB########", "#.###.###", "### ## ##"]  # fmt: skip
    for shape in shapes:
        texts = [_filled(shape, row) for row in joined]
        assert not contacts_in(pl.Series(texts)), shape


def _filled(shape, digits):
    taken = iter(digits)
    return "".join(next(taken) if sign == "#" else sign for sign in shape)


def test_without_the_package_the_length_decides(monkeypatch):
    monkeypatch.setattr(contacts.importlib.util, "find_spec", lambda _: None)
    assert contacts_in(pl.Series(["ring +49 30 1234567"]))
    assert not contacts_in(pl.Series(["02139-1234"]))


def test_of_very_many_numbers_the_first_tell(monkeypatch):
    monkeypatch.setattr(contacts, "_MOST_CHECKED", 5)
    assert contacts_in(pl.Series([f"+49 30 12345{i:02}" for i in range(30)])).counts[PHONES] == 30


# Another package knows the check digits, and shares no code -------------------------------------------------

TRIES = {
    "Spanish identity numbers (DNI, NIE)": ("es.nif", 8, "TRWAGMYFPDXBNJZSQVHLCKE"),
    "Polish identity numbers (PESEL)": ("pl.pesel", 11, ""),
    "German tax numbers (IdNr)": ("de.idnr", 11, ""),
    "Dutch citizen numbers (BSN)": ("nl.bsn", 9, ""),
    "Portuguese taxpayer numbers": ("pt.nif", 9, ""),
    "British health service numbers": ("gb.nhs", 10, ""),
}


@pytest.mark.parametrize("what", TRIES)
def test_check_digits_are_those_of_another_package(what):
    """Of numbers that begin as ours may, both take the same, but for dates that cannot be."""
    pytest.importorskip("stdnum", reason="python-stdnum tells which numbers are right")
    name, width, letters = TRIES[what]
    theirs = importlib.import_module(f"stdnum.{name}")
    numbering = next(each for each in NUMBERINGS if each.what == what)
    rng = random.Random(3)
    texts = [
        "".join(rng.choice("0123456789") for _ in range(width)) + (rng.choice(letters) if letters else "")
        for _ in range(3000)
    ]
    texts = [text for text in texts if re.fullmatch(numbering.shape, text)]
    right = [theirs.is_valid(text) for text in texts]
    ours = numbering.right(pl.Series(texts))
    assert sum(right) > 0
    assert ours[right].all()
    assert ours.sum() <= 1.3 * sum(right)


def test_accounts_are_those_of_another_package():
    iban = pytest.importorskip("stdnum.iban", reason="python-stdnum tells which numbers are right")
    rng = random.Random(4)
    texts = []
    for country, length in words.ACCOUNT_LENGTHS.items():
        for _ in range(30):
            body = "".join(rng.choice("0123456789") for _ in range(length - 4))
            value = int(body + "".join(str(ord(sign) - 55) for sign in country) + "00")
            texts.append(f"{country}{98 - value % 97:02}{body}")
    found = contacts_in(pl.Series(texts)).cells[ACCOUNTS]
    assert found.all()
    assert IBAN.right(pl.Series(texts)).all()
    assert all(found[place] for place, text in enumerate(texts) if iban.is_valid(text, check_country=False))


# What a column shows ----------------------------------------------------------------------------------------


def table(series, nodes=None, **facts):
    column = Column("x", facts.pop("kind", Kind.NOMINAL), **facts)
    return Table(pl.DataFrame([series.alias("x")]), Schema((column,)), nodes=nodes or {})


def test_labels_of_groups_and_their_members_are_shown():
    nodes = Nodes.of(
        {"left": ["alta", "tel. 972 123 456"], "a": ["a"]}, leaves=["a", "alta", "tel. 972 123 456"]
    )
    shown = shown_texts(table(pl.Series(["left", "a"], dtype=nodes.dtype), {"x": nodes}), "x")
    assert {"alta", "tel. 972 123 456", "left"} <= set(shown)
    hidden = shown_texts(table(pl.Series(["a", "a"], dtype=nodes.dtype), {"x": nodes}), "x")
    assert "tel. 972 123 456" not in set(hidden)  # a group that nobody has is not written


def test_items_orders_and_labels_are_shown():
    items = table(pl.Series([["bread", "jo@example.org"], None, []]), kind=Kind.SET)
    assert contacts_in(shown_texts(items, "x"))
    labelled = table(pl.Series([1, 2]), labels=((1, "call 617-555-0123"), (2, "b")))
    assert contacts_in(shown_texts(labelled, "x"))
    ordered = table(pl.Series(["a", "b"]), kind=Kind.ORDINAL, order=("a", "b", "jo@example.org"))
    assert contacts_in(shown_texts(ordered, "x"))
    assert not contacts_in(shown_texts(table(pl.Series([1.5, None]), kind=Kind.CONTINUOUS), "x"))
