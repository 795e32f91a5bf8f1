"""Texts that have an order are found with it, sets of items with what parts them, and codes are neither."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato import io
from sfumato.data.guess import words
from sfumato.data.guess.columns import guess, guess_related, guess_schema
from sfumato.data.guess.overview import survey
from sfumato.data.schema import Kind, Role

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
RNG = np.random.default_rng(8)
N = 240


def one(name, values):
    (proposal,) = guess(pl.DataFrame({name: values}))
    return proposal


def shuffled(*values):
    return RNG.permutation([values[i % len(values)] for i in range(N)]).tolist()


def notes(name, values):
    frame = pl.DataFrame({name: values})
    (summary,) = survey(frame, guess(frame), ()).columns
    return summary.notes()


# Ranges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [
        ("<18", "18–24", "25–34", "35-44", "65+"),
        ("00-04", "05-09", "10-14", "100-104"),
        ("unter 18", "18 bis 24", "25 bis 64", "65 und älter"),
        ("moins de 20 ans", "20 à 39 ans", "40 ans et plus"),
        ("menos de 30 años", "30 a 44 años", "45 y más"),
        ("fino a 17", "18-64", "65 e oltre"),
        ("menos de 15", "15-64 anos", "65 e mais"),
        ("jonger dan 20", "20 tot 40 jaar", "40 en ouder"),
        ("poniżej 18", "18-64 lat", "65 i więcej"),
        ("under 20", "20-64 år", "65 och över"),
        ("0-9,999", "10,000-19,999", "20,000+"),
        ("€0 - €500", "€500 - €1000", "€1000+"),
    ],
)
def test_ranges_as_people_write_them(order):
    column = one("x", shuffled(*order)).column
    assert (column.kind, column.order) == (Kind.ORDINAL, order)


@pytest.mark.parametrize(
    "values",
    [
        ("01-01301", "01-01302", "13-04600", "36-03710"),  # areas
        ("10-20", "15-25", "18-30"),  # overlap
        ("02139-1234", "02140-9999", "10001-0001"),
        ("01-02", "02-013", "03-04"),
    ],
)
def test_codes_are_no_ranges(values):
    assert one("x", shuffled(*values)).column.kind is Kind.NOMINAL


# Words and grades -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [
        ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"),
        ("never", "sometimes", "always"),
        ("Very poor", "Poor", "Fair", "Good", "Very good"),
        ("stimme gar nicht zu", "teils/teils", "stimme voll zu"),
        ("nie", "manchmal", "oft", "immer"),
        ("Pas du tout d'accord", "Plutôt d'accord", "Tout à fait d'accord"),
        ("jamais", "parfois", "souvent", "toujours"),
        ("Muy en desacuerdo", "En desacuerdo", "De acuerdo", "Muy de acuerdo"),
        ("malo", "regular", "bueno", "muy bueno"),
        ("mai", "raramente", "a volte", "spesso", "sempre"),
        ("Discordo totalmente", "Discordo", "Concordo", "Concordo totalmente"),
        ("nooit", "zelden", "soms", "vaak", "altijd"),
        ("nigdy", "rzadko", "czasami", "często", "zawsze"),
        ("Instämmer inte alls", "Varken eller", "Instämmer helt"),
        ("XS", "S", "M", "L", "XL", "XXL"),
        ("low", "medium", "high"),
        ("klein", "mittel", "groß"),
    ],
)
def test_words_of_a_scale(order):
    proposal = one("x", shuffled(*order))
    assert (proposal.column.kind, proposal.column.order) == (Kind.ORDINAL, order)
    assert "words of a scale" in proposal.kind_reason
    assert notes("x", shuffled(*order))[0].startswith(f"order {order[0]} < {order[1]}")


@pytest.mark.parametrize(
    "values", [("red", "green", "blue"), ("low", "high", "blue"), ("good", "bad"), ("S", "M", "W", "D")]
)
def test_other_words_have_none(values):
    assert one("x", shuffled(*values)).column.kind is Kind.NOMINAL


def test_every_scale_reads_as_it_stands():
    """Words of two places in one scale, or a word for missing, would spoil it."""
    for scale in words.SCALES:
        first = {place: word for word, place in reversed(scale.items())}
        order = [first[place] for place in sorted(first)]
        assert not set(scale) & set(words.MISSING_WORDS)
        assert one("x", shuffled(*order)).column.order == tuple(order)


def test_grades_are_letters_with_a_number():
    grades = ("G3", "G4", "G5", "G10", "G15")
    column = one("grade", shuffled(*grades, "SES")).column
    assert (column.kind, column.order) == (Kind.ORDINAL, (*grades, "SES"))
    assert notes("grade", shuffled(*grades, "SES")) == ["order G3 < G4 < G5 < G10 < G15, and 1 other"]
    assert one("pay_level", shuffled("GS-9", "GS-11", "GS-7")).column.order == ("GS-7", "GS-9", "GS-11")
    assert one("niveau", shuffled("A1", "B2", "A2", "C1")).column.order == ("A1", "A2", "B2", "C1")
    for name, values in (
        ("ward", ("W1", "W2", "W3")),
        ("x", ("a1", "a2", "a3")),
        ("grade", ("ENG-01", "ENG-02", "OPS-11")),
    ):
        assert one(name, shuffled(*values)).column.kind is Kind.NOMINAL


def test_no_order_shows_what_is_not_ours():
    assert "zanzibar" not in repr(notes("grade", shuffled("G1", "G2", "zanzibar")))


# Sets -----------------------------------------------------------------------------------------------------

GOODS = ("bread", "milk", "eggs", "tea", "salt")


def sets(separator, seed=1):
    rng = np.random.default_rng(seed)
    return [separator.join(rng.permutation(GOODS)[: rng.integers(1, 5)]) for _ in range(N)]


@pytest.mark.parametrize("separator", ["|", ";", ",", "| ", "; ", ", "])
def test_items_with_a_separator_are_a_set(separator):
    values = [*sets(separator), "NA", "", None]
    column = one("x", values).column
    assert (column.kind, column.separator, column.missing) == (Kind.SET, separator.strip(), ("NA",))
    frame = pl.DataFrame({"x": values})
    table = io.conform(frame, guess_schema(frame))
    assert set(table.frame["x"].explode().drop_nulls()) == set(GOODS)
    assert table.missing("x").sum() == 3


@pytest.mark.parametrize(
    "values",
    [
        ("Paris, France", "Lyon, France", "Rome, Italy", "Turin, Italy"),  # parts that have their place
        ("Europe|Spain|Girona", "Europe|Spain", "Europe", "Asia|Japan", "Asia"),
        ("a|b", "c|d", "e|f"),
        ("1,5", "2,5", "1,25,3", "3"),
        ("a|a", "a|b", "b"),
        tuple(f"Smith{i};Jones{i};Kim{i}" if i % 2 else f"Smith{i};Kim{i}" for i in range(40)),
    ],
)
def test_other_texts_with_such_signs_are_no_sets(values):
    assert one("x", shuffled(*values)).column.kind is not Kind.SET


# Numbers beside a letter ------------------------------------------------------------------------------------


def test_numbers_with_n_for_not_applicable_are_what_they_would_be_without():
    for name, numbers in (
        ("PINCP", RNG.integers(0, 90_000, N)),
        ("NOC", RNG.integers(0, 6, N)),
        ("EDU", RNG.integers(1, 12, N)),
        ("MSP", RNG.integers(1, 6, N)),
        ("x", RNG.normal(size=N)),
    ):
        alone, beside = one(name, numbers), one(name, [*map(str, numbers), "N", "N"])
        assert (beside.column.kind, beside.column.role) == (alone.column.kind, alone.column.role)
    column = one("EDU", [*map(str, range(1, 13)), "N"] * 20).column
    assert column.order == tuple(map(str, range(1, 13)))
    assert column.missing == ("N",)


def test_codes_beside_a_letter_keep_it_as_a_category():
    column = one("MSP", shuffled("1", "2", "N")).column
    assert (column.kind, column.missing) == (Kind.NOMINAL, ())
    frame = pl.DataFrame({"MSP": shuffled("1", "2", "N", "NA")})
    assert guess_schema(frame)["MSP"].missing == ("NA",)


def test_two_sorts_of_codes_for_missing():
    values = [*map(str, RNG.integers(0, 9000, N)), "-9", "-9", "N", "NA"]
    frame = pl.DataFrame({"income": values})
    column = guess_schema(frame)["income"]
    assert (column.kind, set(column.missing)) == (Kind.CONTINUOUS, {"N", "NA", -9})
    assert io.conform(frame, guess_schema(frame)).missing("income").sum() == 4


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_a_census_with_n_for_not_applicable():
    frame = pl.read_csv(SHARED / "crc" / "national2019.csv", infer_schema_length=None)
    found = {each.column.name: each.column for each in guess(frame)}
    assert [name for name, column in found.items() if column.role is None] == ["WGTP"]  # zeros do not weigh
    assert found["PUMA"].kind is Kind.NOMINAL
    for name, column in found.items():
        if frame[name].dtype == pl.String and name != "PUMA":
            numbers = frame[name].cast(pl.Float64, strict=False).drop_nulls()
            (alone,) = guess(pl.DataFrame({name: numbers}))
            assert (column.kind, column.role) == (alone.column.kind, alone.column.role), name


# Shapes of what nobody knows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "shapes"),
    [
        (("2020-01", "2021-12", "2022-03"), "`9999-99`"),
        (("Kilo-Watt", "Volt", "Ohm", "Tesla"), "`Aaaa` or `Aaa`"),
        (("a1", "b2", "c3", "ZZZ"), "`a9` or `AAA`"),
        (("ü9", "ñ8"), "`a9`"),
        (("€5", "€6", "☃☃☃"), "`?9` or `?`"),
        ((11, 22, 333), "`99` or `999`"),
    ],
)
def test_an_unknown_column_tells_the_shape_of_its_values(values, shapes):
    proposal = one("thing", shuffled(*values))
    assert proposal.column.role is None
    assert proposal.role_reason == f"role unknown: choose one, or leave the column out; values like {shapes}"


def test_a_shape_holds_no_letter_or_digit_of_a_value():
    values = ["".join(RNG.choice(list("bcdefXYZ012345678éßł"), 12)) for _ in range(60)] * 4
    assert not set(one("thing", values).role_reason.split("like ")[1]) & set("bcdefXYZ012345678éßł")


def test_an_overview_asks_to_leave_unknown_columns_out():
    frame = pl.DataFrame({"thing": shuffled("p", "q")})
    found = survey(frame, guess(frame), guess_related(frame, guess(frame)))
    assert "`thing` has no role: choose one, or leave the column out" in found.warnings()
    assert found.schema["thing"].role is None
    assert Role.IDENTIFIER not in [each.column.role for each in found.columns]
