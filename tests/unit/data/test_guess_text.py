"""Names, addresses and free text are told from ordinary words; ranges and codes for missing values are read."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from sfumato import io
from sfumato.data.guess.columns import guess, guess_schema
from sfumato.data.guess.facts import Facts
from sfumato.data.schema import Kind, Role

RNG = np.random.default_rng(5)
N = 200


def one(name, values, told=None):
    (proposal,) = guess(pl.DataFrame({name: values}), {name: told} if told else None)
    return proposal


def drawn(*values, count=N):
    return RNG.choice(values, count).tolist()


def pairs(first, second, form="{} {}", count=N):
    return [
        form.format(*pair)
        for pair in zip(drawn(*first, count=count), drawn(*second, count=count), strict=True)
    ]


GIVEN = ("Maria", "John", "Anna", "Peter", "José", "Fatima", "Agnieszka", "Zdzisław", "Cuthbert")
FAMILY = ("Smith", "Müller", "García", "Rossi", "Nowak", "Okafor", "Papadopoulos", "O'Brien")
COUNTIES = ("Alameda", "Contra Costa", "El Dorado", "Kern", "Lake", "Los Angeles", "Orange", "San Diego",
            "San Luis Obispo", "Santa Barbara", "Sierra", "Solano", "Trinity", "Ventura")  # fmt: skip
SYLLABLES = ("Ka", "Ro", "Mi", "Te", "Lu", "Sha", "Vo", "Ni", "Ba", "Xe")


def invented(count=N):
    made = ["".join(RNG.choice(SYLLABLES, 3)).capitalize() for _ in range(2 * count)]
    return [f"{first} {last}" for first, last in zip(made[:count], made[count:], strict=True)]


# Names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "sure"),
    [
        (drawn(*GIVEN), 0.75),
        ([name.upper() for name in drawn(*GIVEN)], 0.75),
        (pairs(GIVEN, FAMILY), 0.85),
        (pairs(FAMILY, GIVEN, "{}, {}"), 0.85),
        (pairs(GIVEN, FAMILY, "Dr. {} {}"), 0.85),
    ],
)
def test_common_names(values, sure):
    proposal = one("x", values)
    assert proposal.column.role is Role.IDENTIFIER
    assert proposal.confidence == sure


def test_names_that_no_list_has():
    proposal = one("x", invented())
    assert proposal.column.role is Role.IDENTIFIER
    assert "perhaps names of persons" in proposal.role_reason


def test_family_names():
    tail = [name.split()[0] for name in invented(100)]
    values = [*drawn("Smith", "Johnson", "Garcia", "Nowak", "Rossi", "Weber", count=40), *dict.fromkeys(tail)]
    assert one("x", values).role_reason == "common family names are among its values"


@pytest.mark.parametrize(
    "values",
    [
        drawn(*COUNTIES, count=1000),
        drawn("Berlin", "Hamburg", "München", "Florence", "Paris", "San Jose"),
        drawn("Software Engineer", "Nurse", "Data Scientist", "Teacher", "Civil Engineer"),
        drawn("January", "February", "March", "April", "May", "June", "July", "August"),
        drawn("red", "green", "blue", "black", "white", "brown"),
        drawn("Married", "Single", "Widowed", "Divorced", "Never married", "Separated"),
        drawn("Smith", "Miller", "Baker", "Carpenter", "Mason", "Weaver"),  # trades
    ],
)
def test_ordinary_words_are_no_names(values):
    assert one("x", values).column.role is not Role.IDENTIFIER


def test_a_name_of_a_column_is_surer_than_a_word_in_it():
    """Places are called like people; where the column says it is a place, that is believed."""
    values = drawn("Charlotte", "Florence", "Carmen", "Rosario", "Helena", "Elizabeth", "Jackson")
    assert one("city", values).column.role is Role.KEY


# Addresses and the like -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"{i % 90} {name} Street" for i, name in enumerate(drawn("Main", "High", "Church"))], "addresses of streets"),
        ([f"{name} {i % 90}" for i, name in enumerate(drawn("Hauptstraße", "Bahnhofstr.", "Lindenweg"))], "addresses of streets"),
        ([f"{i % 90}, rue {name}" for i, name in enumerate(drawn("Victor Hugo", "du Bac"))], "addresses of streets"),
        ([f"Calle {name} {i % 90}" for i, name in enumerate(drawn("Mayor", "Real"))], "addresses of streets"),
        ([f"ul. {name} {i % 90}" for i, name in enumerate(drawn("Polna", "Leśna"))], "addresses of streets"),
        ([f"https://example.org/u/{i}" for i in range(N)], "web addresses"),
        ([f"www.example.org/{i}" for i in range(N)], "web addresses"),
        ([f"fe80::1ff:fe23:4567:{i:x}" for i in range(N)], "network addresses"),
        ([f"00:1b:44:11:3a:{i % 100:02}" for i in range(N)], "addresses of devices"),
        ([f"123e4567-e89b-12d3-a456-{i:012x}" for i in range(N)], "universal identifiers"),
        ([f"{i:064x}" for i in range(N)], "hashes, which identify what they were made from"),
    ],
)  # fmt: skip
def test_shapes(values, reason):
    for dtype in (pl.String, pl.Categorical):
        proposal = one("x", pl.Series(values, dtype=dtype))
        assert proposal.column.role is Role.IDENTIFIER
        assert proposal.role_reason == f"its values are {reason}"


def test_a_few_web_addresses_of_a_source_are_not_those_of_people():
    assert one("x", drawn("https://example.org/a", "https://example.org/b")).column.role is None


# Free text ------------------------------------------------------------------------------------------------

DULL = ("no complaints today", "nothing to add here", "to be seen again")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"came on day {i} with a pain in the left arm" for i in range(N)], "long texts, mostly distinct: free text may name people"),
        ([*drawn(*DULL), "seen by Dr. Meyer at noon"], "its text contains titles with names"),
        ([*drawn(*DULL), "Frau Schulz has called again"], "its text contains titles with names"),
        ([*drawn(*DULL), "call +49 30 1234567 after work"], "its text contains phone numbers"),
        ([*drawn(*DULL), "pay to DE89 3704 0044 0532 0130 00 soon"], "its text contains bank account numbers"),
        ([*drawn(*DULL, count=20_000), "write to jo@example.org please"], "its text contains e-mail addresses"),
    ],
)  # fmt: skip
def test_free_text(values, reason):
    proposal = one("x", values)
    assert (proposal.column.role, proposal.role_reason) == (Role.IDENTIFIER, reason)


def test_long_labels_that_repeat_are_no_free_text():
    labels = [
        "persons who work less than thirty hours a week",
        "persons who work more than thirty hours a week",
    ]
    assert one("x", drawn(*labels)).column.role is None
    assert one("x", drawn(*DULL)).column.role is None


def test_a_sensitive_text_may_name_people():
    proposal = one("diagnosis", [f"case {i}, a fracture of the upper arm on the left" for i in range(N)])
    assert proposal.column.role is Role.IDENTIFIER


# Ranges and codes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bands", "order"),
    [
        (("35-44", "18-24", "65+", "25-34", "<18"), ("<18", "18-24", "25-34", "35-44", "65+")),
        (("over 65", "40 to 65", "under 40"), ("under 40", "40 to 65", "over 65")),
        (("10–19", "0–9", "20–29", "100–109"), ("0–9", "10–19", "20–29", "100–109")),
        (("≥ 5.5", "1.5 - 2.5", "2.5 - 5.5"), ("1.5 - 2.5", "2.5 - 5.5", "≥ 5.5")),
        (("5 or more", "3-4", "1-2", "0"), ("0", "1-2", "3-4", "5 or more")),
    ],
)
def test_ranges_have_an_order(bands, order):
    column = one("x", [*bands, *drawn(*bands)]).column
    assert (column.kind, column.order) == (Kind.ORDINAL, order)


def test_ranges_beside_missing_values_read_as_proposed():
    frame = pl.DataFrame({"x": [*drawn("18-24", "25-34", "65+"), "", "NA", None, "18-24", "25-34", "65+"]})
    schema = guess_schema(frame)
    assert schema["x"].order == ("18-24", "25-34", "65+")
    table = io.conform(frame, schema)
    assert table.missing("x").sum() == 3
    assert table.codes("x").codes.max() == 2


@pytest.mark.parametrize(
    "values",
    [
        drawn("2020-01", "2020-02", "2021-01"),  # months, whose second number is the lower
        drawn("18-24", "25-34", "old"),
        drawn("1", "2", "3-4", "x"),
        [f"{i}-{i + 5}" for i in range(N)],  # a range of its own in every record
    ],
)
def test_what_only_resembles_ranges(values):
    assert one("x", values).column.kind is not Kind.ORDINAL


@pytest.mark.parametrize("end", ["9999-12-31", "1111-11-11", "0001-01-01"])
def test_dates_that_no_one_means(end):
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(50)]
    for far in ([dt.date.fromisoformat(end)] * 2, [end] * 2):
        written = [day.isoformat() for day in days] if isinstance(far[0], str) else days
        frame = pl.DataFrame({"x": [*written, *far]})
        column = guess_schema(frame)["x"]
        assert (column.kind, column.missing) == (Kind.DATE, (end,))
        assert io.conform(frame, guess_schema(frame)).missing("x").sum() == 2
    assert one("x", [*days, dt.date.fromisoformat(end)]).column.missing == ()  # once is no code


# What a file says -----------------------------------------------------------------------------------------


def test_labelled_numbers_are_codes():
    labels = [[10, "north"], [2000, "south"], [30_000, "west"]]
    proposal = one("x", drawn(10, 2000, 30_000), {"labels": labels})
    assert (proposal.column.kind, proposal.kind_reason) == (
        Kind.NOMINAL,
        "the file has a label for each value",
    )
    assert len(proposal.column.labels) == 3
    assert one("x", drawn(10, 2000, 30_000, 5), {"labels": labels}).column.kind is Kind.CONTINUOUS
    assert (
        one("x", drawn(10.0, 2000.0), {"labels": [[10.0, "north"], [2000.0, "south"]]}).column.kind
        is Kind.NOMINAL
    )


def test_a_weight_that_the_file_calls_otherwise_is_left_open():
    proposal = one("weight", drawn(1, 2, 3), {"kind": "nominal", "label": "class of weight"})
    assert (proposal.column.kind, proposal.column.role) == (Kind.NOMINAL, None)
    assert (proposal.confidence, proposal.column.label) == (0.0, "class of weight")


# Roles by words that are new ------------------------------------------------------------------------------


def test_numbers_of_places_are_keys_and_of_people_units():
    assert one("hospital_id", RNG.integers(0, 40, N)).column.role is Role.KEY
    assert one("respondent_id", RNG.integers(0, 100, N)).column.role is Role.PERSON
    assert one("respondent_id", RNG.permutation(10 * N)[:N]).column.role is Role.IDENTIFIER
    assert one("hhnr", RNG.integers(0, 100, N)).column.role is Role.HOUSEHOLD


# How it is looked at --------------------------------------------------------------------------------------


def test_blank_texts_are_not_there():
    facts = Facts(pl.Series("x", ["a", " ", "", None, "a"]))
    assert (facts.blanks, len(facts.present), facts.distinct) == (True, 2, 1)
    assert not Facts(pl.Series("x", ["a"])).blanks


def test_the_sample_is_from_all_parts_of_a_column():
    facts = Facts(pl.Series("x", [f"a{i}" for i in range(30_000)] + [f"b{i}" for i in range(70_000)]))
    assert len(facts.sample) == 1000
    assert facts.share("^b") == pytest.approx(0.7, abs=0.01)
    facts = Facts(pl.Series("x", ["a"] * 50_000 + ["b"] * 50_000))
    assert set(facts.sample) == {"a", "b"}


def test_a_year_of_two_digits_makes_no_date():
    frame = pl.DataFrame({"d": ["2020-01-01", "80-01-01"] * 5})
    assert guess(frame)[0].column.kind is Kind.NOMINAL


def test_free_text_by_its_name_or_because_there_is_much_of_it():
    answers = [f"went home {day}" for day in range(8)] * 20
    many = [f"saw {person} there" for person in range(60)] * 3
    for name, values, reason in (("note", answers, "free text"), ("x", many, "many texts")):
        (found,) = guess(pl.DataFrame({name: values}))
        assert found.column.role is Role.IDENTIFIER
        assert reason in found.role_reason
    (found,) = guess(pl.DataFrame({"x": answers}))
    assert found.column.role is None


def test_counts_with_a_code_for_missing_stay_open_and_have_the_code():
    values = [*list(range(13)) * 10, *[-9] * 5]
    (visits,) = guess(pl.DataFrame({"visits": values}))
    assert (visits.column.role, visits.column.missing) == (None, (-9,))
    (edu,) = guess(pl.DataFrame({"edu": [1, 2, 3, 4, 5] * 20 + [-9] * 4}))
    assert (edu.column.role, edu.column.missing) == (Role.KEY, (-9,))
