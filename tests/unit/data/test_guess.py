"""Proposals for kinds and roles, each with a reason that holds no value."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import polars as pl
import pytest

from sfumato import io
from sfumato.data.generalised.intervals import intervals
from sfumato.data.guess import words
from sfumato.data.guess.columns import UNDECIDED, guess, guess_schema, normalise_name
from sfumato.data.guess.facts import CONCEPTS, _likely, pattern
from sfumato.data.schema import Kind, Role

RNG = np.random.default_rng(3)
N = 200
SECRET = "Xanthippe"


def one(name, values):
    (proposal,) = guess(pl.DataFrame({name: values}))
    assert proposal.kind_reason
    assert proposal.role_reason
    assert 0 <= proposal.confidence <= 1
    return proposal


def kind(name, values):
    return one(name, values).column.kind


def role(name, values):
    return one(name, values).column.role


def drawn(*values):
    return RNG.choice(values, N).tolist()


IBANS = [
    "DE89370400440532013000",
    "GB82 WEST 1234 5698 7654 32",
    "FR1420041010050500013M02606",
    "ES9121000418450200051332",
]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("x", RNG.normal(size=N), Kind.CONTINUOUS),
        ("x", RNG.integers(0, 10_000, N), Kind.CONTINUOUS),
        ("x", drawn(1, 2), Kind.NOMINAL),
        ("x", drawn(1, 2, 3, 4), Kind.NOMINAL),
        ("x", drawn(10_000, 20_000, 30_000), Kind.CONTINUOUS),
        ("age", drawn(1, 2, 3, 4), Kind.CONTINUOUS),
        ("education_level", drawn(1, 2, 3, 4), Kind.ORDINAL),
        ("region", RNG.integers(0, 100, N), Kind.NOMINAL),
        ("x", drawn("a", "b"), Kind.NOMINAL),
        ("x", drawn(True, False), Kind.NOMINAL),
        ("x", [dt.date(2026, 1, 1)], Kind.DATE),
        ("x", ["2026-01-01", "1999-12-31"], Kind.DATE),
        ("x", ["2026-01-01T10:00:00", "1999-12-31 11:12:13.5"], Kind.DATE),
        ("x", ["2026-01-01", "late"], Kind.NOMINAL),
        ("x", ["01234", "99999"], Kind.NOMINAL),
        ("x", [["a"], ["b", "c"]], Kind.SET),
        ("x", pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "hi"])), Kind.ORDINAL),
        ("x", pl.Series(["lo", "hi"], dtype=pl.Categorical), Kind.NOMINAL),
        ("x", ["[20;29]", "30", "*"], Kind.CONTINUOUS),
        ("x", ["[2026-01-01;2026-12-31]", "*"], Kind.DATE),
        ("x", ["{a|b}", "c"], Kind.NOMINAL),
        ("x", intervals([1, 2], [3, 4]), Kind.CONTINUOUS),
        ("x", intervals([dt.date(2026, 1, 1)], [None]), Kind.DATE),
        ("x", pl.Series([None, None], dtype=pl.String), Kind.NOMINAL),
        ("x", pl.Series([None, None], dtype=pl.Float64), Kind.NOMINAL),
        ("x", pl.Series([1.0, None, 2.5]), Kind.CONTINUOUS),
    ],
)
def test_kinds(name, values, expected):
    assert kind(name, values) is expected


def test_whole_numbers_are_told():
    assert one("age", drawn(20, 30, 40)).column.integer
    assert one("x", pl.Series([1.0, 2.0, None] * 30 + [5000.0])).column.integer
    assert not one("x", [1.5, 2.0]).column.integer


def test_the_order_of_categories_is_kept():
    column = one("x", pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "mid", "hi"]))).column
    assert column.order == ("lo", "mid", "hi")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SEX", Role.KEY),
        ("birthDate", Role.KEY),
        ("marital-status", Role.KEY),
        ("Código postal", Role.KEY),
        ("Nationalität", Role.KEY),
        ("income", Role.SENSITIVE),
        ("Total_Charges", Role.SENSITIVE),
        ("diag1", Role.SENSITIVE),
        ("e-mail", Role.IDENTIFIER),
        ("first_name", Role.IDENTIFIER),
        ("SSN", Role.IDENTIFIER),
        ("Unnamed: 0", Role.IDENTIFIER),
        ("__index_level_0__", Role.IDENTIFIER),
        ("household_size", Role.KEY),
        ("body_weight", None),
        ("usage", None),
        ("paid", None),
        ("x", None),
    ],
)
def test_roles_by_name(name, expected):
    assert role(name, drawn("a", "b", "c")) is expected


def test_nothing_speaks():
    proposal = one("x", drawn("a", "b"))
    reason = f"{UNDECIDED}; values like `a`"
    assert (proposal.column.role, proposal.role_reason, proposal.confidence) == (None, reason, 0.0)


def test_weights_must_be_able_to_weigh():
    for name in ("sampling_weight", "FNLWGT", "wt", "weight", "Gewichtung"):
        column = one(name, drawn(100, 200, 250)).column
        assert (column.role, column.kind) == (Role.WEIGHT, Kind.CONTINUOUS)
    assert role("sampling_weight", [100] * N) is Role.WEIGHT
    assert role("weight", drawn("a", "b")) is None
    assert role("weight", drawn(0, 1, 2)) is None


def test_persons_with_several_records():
    assert role("patient_id", RNG.integers(0, 100, N)) is Role.PERSON
    assert role("patient_id", RNG.permutation(10 * N)[:N]) is Role.IDENTIFIER
    assert role("hid", RNG.integers(0, 100, N)) is Role.HOUSEHOLD
    assert role("hh", drawn(1, 2)) is None


def test_words_that_are_not_tried_are_not_in_the_name():
    """Patterns are made of likely words only: of all words they find the same."""
    lists = [each for name, each in vars(words).items() if name.isupper() and isinstance(each, str)]
    lists += [concept.stems for concept in CONCEPTS]
    names = {
        re.sub(r"\W", "", stem) + end for stems in lists for stem in stems.split() for end in ("", "_no")
    }
    for stems in filter(None, lists):
        whole = pattern(stems)
        for name in sorted(names)[:: 1 + len(names) // 300]:
            some = _likely(stems, name)
            assert bool(some and pattern(some).search(name)) == bool(whole.search(name)), (stems, name)


def test_the_number_of_something_is_no_quantity():
    numbers = [100_003 + 7 * place for place in range(N)]
    for name in ("tax_number", "employee_no", "healthNr", "Kundennummer"):
        assert role(name, numbers) is Role.IDENTIFIER
    assert role("tax_number", [place % 50 for place in numbers]) is Role.SENSITIVE
    assert role("number_of_taxes", numbers) is Role.SENSITIVE
    assert role("tax_no", [float("inf"), *numbers]) is Role.IDENTIFIER


def test_visits_are_counted_and_no_codes():
    for name in ("visits", "doctor_visits", "arztbesuche", "visitas", "wizyty"):
        assert (
            guess(pl.DataFrame({name: [place % 6 for place in range(N)]}))[0].column.kind is Kind.CONTINUOUS
        )


def test_only_one_column_is_the_weight():
    frame = pl.DataFrame({"weight": drawn(1.5, 2.5), "sampling_weight": drawn(1.5, 2.5)})
    schema = guess_schema(frame)
    assert schema.with_role(Role.WEIGHT) == ("sampling_weight",)
    assert guess(frame)[0].role_reason == "another column is more likely the weight: choose a role"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"p{i}@example.org" for i in range(5)], "its values are e-mail addresses"),
        (["call me", "write to jo@example.org please"], "its text contains e-mail addresses"),
        (["+49 30 1234567", "0171/2345678", "(030) 123-4567"], "its values are phone numbers"),
        (["555-123-4567", "555.987.6543"], "its values are phone numbers"),
        (IBANS, "its values are bank account numbers"),
        (["10.0.0.1", "192.168.2.1"], "its values are network addresses"),
        ([f"text {i}" for i in range(N)], "a different text in every record"),
        (list(range(7, 7 + N)), "consecutive whole numbers: record numbers"),
    ],
)
def test_identifiers_by_content(values, reason):
    proposal = one("x", values * 2 if "different" not in reason and "consecutive" not in reason else values)
    assert (proposal.column.role, proposal.role_reason) == (Role.IDENTIFIER, reason)


def test_what_only_resembles_an_identifier():
    wrong = [iban[:-1] + str((int(iban[-1]) + 1) % 10) for iban in IBANS]
    assert role("x", wrong * 2) is None
    assert role("x", RNG.permutation(10 * N)[:N]) is None  # distinct incomes are no numbers of records
    assert role("x", RNG.normal(size=N)) is None
    assert role("x", ["2026-01-01", "1999-12-31"]) is Role.KEY
    assert role("x", ["constant"] * N) is Role.OTHER


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*drawn(1, 2, 3), -9, -9, -8, -8], (-9, -8)),
        ([*drawn(20, 30, 40), 999, 999], (999,)),
        ([*drawn(1, 2, 3, 4), 97, 98, 98, 97, 99, 99], (97, 98, 99)),
        ([*drawn(0.5, 1.5, 2.25), -99.0, -99.0], (-99,)),
        ([*drawn(20, 30, 40), 999], ()),  # once is no code
        ([*drawn(60, 80, 98), 99, 99], ()),  # an age
        ([*drawn(-5, -2, 3), -9, -9], ()),  # others are negative too
        ([*drawn("1", "2.5"), ".", "."], (".",)),
        ([*drawn("1", "2.5"), "NA", " NA"], ("NA",)),
        ([*drawn("Private", "Public"), "?"], ("?",)),
        ([*drawn("Private", "Public"), "NA"], ("NA",)),
        ([*drawn("DE", "FR"), "NA"], ()),  # Namibia
        (["2026-01-01", "."], (".",)),
    ],
)
def test_missing_codes(values, codes):
    proposal = one("x", values)
    assert proposal.column.missing == codes
    assert bool(codes) == ("missing" in proposal.kind_reason) or proposal.column.kind is Kind.DATE


def test_digits_with_leading_zeros_stay_codes_beside_missing_words():
    column = one("x", ["01234", "NA", "99999"]).column
    assert (column.kind, column.missing) == (Kind.NOMINAL, ("NA",))


def test_no_reason_holds_a_value():
    frame = pl.DataFrame(
        {
            "name": [SECRET, "b", "c"],
            "x": [f"{SECRET}@example.org", "b", "c"],
            "n": [777_123_456, 1, 2],
            "t": [SECRET, "?", "2026-01-01"],
        }
    )
    for proposal in guess(frame):
        assert SECRET not in proposal.kind_reason + proposal.role_reason
        assert "777" not in proposal.kind_reason + proposal.role_reason


def test_a_proposed_schema_always_fits():
    frame = pl.DataFrame(
        {
            "a": ["1", ".", "2.5"],
            "b": ["2026-01-01", "?", "2026-01-01T10:00:00"],
            "c": ["[1;2]", "3", "*"],
            "d": ["{a|b}", "c", "*"],
            "e": [1, 2, None],
            "f": ["01", "2", "NA"],
            "g": ["*", "*", "*"],
            "h": [[1], [2], None],
            "i": pl.Series([None] * 3, dtype=pl.Null),
        }
    )
    table = io.conform(frame, guess_schema(frame))
    assert table.frame["a"].to_list() == [1.0, None, 2.5]
    assert len(io.conform(frame.clear(), guess_schema(frame.clear()))) == 0


def test_names_are_cut_into_words():
    assert normalise_name("birthDate") == "birth_date"
    assert normalise_name("  Código-Postal.2 ") == "codigo_postal_2"
    assert normalise_name("FNLWGT") == "fnlwgt"


def test_codes_that_many_share_are_no_phone_numbers():
    areas = pl.DataFrame({"PUMA": [f"01-013{i % 20:02d}" for i in range(2000)]})
    (found,) = guess(areas)
    assert "phone" not in found.role_reason
    own = pl.DataFrame({"reach": [f"0171-23{i:05d}" for i in range(2000)]})
    (found,) = guess(own)
    assert found.role_reason == "its values are phone numbers"
