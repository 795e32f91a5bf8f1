"""Whose records are whose is found by what a number determines, and persons are counted."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import polars as pl
import pytest

from sfumato.data.guess import person_numbers
from sfumato.data.guess.columns import guess, guess_related
from sfumato.data.guess.overview import survey
from sfumato.data.schema import Role

PERSONS, EACH = 120, 3
DAY = dt.date(1950, 1, 1)


def roles(frame):
    return {each.column.name: each.column.role for each in guess(frame)}


def found(frame):
    return next(iter(name for name, role in roles(frame).items() if role is Role.PERSON), None)


def overview(frame):
    guesses = guess(frame)
    return survey(frame, guesses, guess_related(frame, guesses))


def persons(seed=1, each=EACH, count=PERSONS):
    """What stays with each person, repeated for each of their records, in random order."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(count), each))
    born = [DAY + dt.timedelta(days=int(days)) for days in rng.integers(0, 15_000, count)]
    return rng, of, {
        "born": [born[i] for i in of],
        "sex": rng.choice(["M", "F"], count)[of],
        "zip": rng.choice(["02139", "02140", "10001", "94110"], count)[of],
        "dept": rng.choice(["ENG", "OPS", "HR"], count)[of],
    }  # fmt: skip


def payroll(**changes):
    rng, of, traits = persons()
    own = {"emp": 7000 + of, "pay": rng.normal(50_000, 9_000, len(of)).round(2)}
    return pl.DataFrame({**own, **traits, **changes})


def test_a_payroll_of_several_years():
    frame = payroll()
    assert found(frame) == "emp"
    (emp,) = (each for each in guess(frame) if each.column.name == "emp")
    assert emp.role_reason.startswith("it repeats, and determines `born`, `sex`")
    assert emp.column.kind == "nominal"
    assert overview(frame).warnings()[-1] == (
        "120 persons with 3 records each by `emp`; 120 of 120 persons (100 %) are unique on the 4 likely quasi-identifiers (keys) "
        "`born`, `sex`, `zip` and `dept`"
    )


def test_a_hospital_file_in_spanish():
    rng, of, traits = persons(seed=2)
    frame = pl.DataFrame(
        {
            "Código": [f"H{1000 + i}" for i in of],
            "Fecha nac.": [day.strftime("%d/%m/%Y") for day in traits["born"]],
            "Sexo": np.where(traits["sex"] == "M", "H", "M"),
            "CP": traits["zip"],
            "Fecha ingreso": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(len(of))],
            "Coste": rng.lognormal(7, 1, len(of)).round(2),
            "Obs": rng.choice(["", "alta voluntaria", "tel. 972 123 456", "sin novedad"], len(of)),
        }
    )
    assert roles(frame) == {
        "Código": Role.PERSON,
        "Fecha nac.": Role.KEY,
        "Sexo": Role.KEY,
        "CP": Role.KEY,
        "Fecha ingreso": Role.KEY,
        "Coste": Role.SENSITIVE,
        "Obs": Role.IDENTIFIER,
    }


def test_a_household_survey():
    """The household's number determines neither birth nor sex; the number within it is no person's."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, 150)
    of = np.repeat(np.arange(150), sizes)
    n = len(of)
    frame = pl.DataFrame(
        {
            "hhid": 500 + of,
            "pid": np.concatenate([np.arange(1, size + 1) for size in sizes]),
            "region": rng.choice(["N", "S", "W"], 150)[of],
            "postcode": rng.choice(["08001", "08002", "17001", "17002"], 150)[of],
            "birth_year": rng.integers(1930, 2020, n),
            "sex": rng.choice(["male", "female"], n),
            "household income": rng.lognormal(8, 1, 150).round(2)[of],
        }
    )
    assert roles(frame) == {
        "hhid": Role.HOUSEHOLD,
        "pid": Role.KEY,
        "region": Role.KEY,
        "postcode": Role.KEY,
        "birth_year": Role.KEY,
        "sex": Role.KEY,
        "household income": Role.SENSITIVE,
    }
    assert "within `hhid`" in next(each.role_reason for each in guess(frame) if each.column.name == "pid")
    renamed = frame.rename({"hhid": "code"})  # without its name nobody takes it for a person's
    assert roles(renamed)["code"] is None


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05])
def test_a_few_wrong_cells_hide_no_person(share):
    rng = np.random.default_rng(4)
    frame = payroll()
    wrong = rng.random(len(frame)) < share
    frame = frame.with_columns(sex=pl.Series(np.where(wrong, "X", frame["sex"].to_numpy())))
    assert found(frame) == "emp"


@pytest.mark.parametrize("kind", ["text", "float", "missing", "blank"])
def test_numbers_of_any_type(kind):
    numbers = payroll()["emp"]
    text = "E-" + numbers.cast(pl.String)
    gone = pl.Series(np.arange(len(numbers)) % 9 == 0)
    changed = {
        "text": text,
        "float": numbers.cast(pl.Float64),
        "missing": numbers.set(gone, None),
        "blank": text.set(gone, ""),
    }[kind]
    assert found(payroll(emp=changed)) == "emp"


def test_few_repeat():
    """Most patients come once; the others are persons all the same."""
    _, of, traits = persons(seed=5, each=[1] * 200 + [2] * 30, count=230)
    assert found(pl.DataFrame({"code": 900 + of, **traits})) == "code"


def test_of_many_records_all_of_some_persons_are_looked_at(monkeypatch):
    """In a sample of the records hardly any number would repeat."""
    monkeypatch.setattr(person_numbers, "_RECORDS", 60)
    _, of, traits = persons(seed=9, each=2, count=1500)
    assert found(pl.DataFrame({"code": 900 + of, **traits})) == "code"


def test_one_trait_and_two_things_that_others_know():
    frame = payroll().drop("born")
    assert found(frame) == "emp"
    assert (
        next(each for each in guess(frame) if each.column.name == "emp").confidence < 0.7
    )  # it is asked about
    assert found(frame.drop("zip", "dept")) is None


def test_an_identifier_that_repeats_counts_persons_where_nothing_else_does():
    frame = payroll().rename({"emp": "id"})
    assert found(frame) == "id"
    both = frame.with_columns(emp_no=frame["id"] * 3)
    assert (found(both), roles(both)["id"]) == ("emp_no", Role.IDENTIFIER)


@pytest.mark.parametrize("name", ["area", "product", "site", "x", "doctor"])
@pytest.mark.parametrize("count", [25, 60, 200])
def test_what_repeats_is_not_always_a_person(name, count):
    """Codes of areas, products, doctors determine other columns, but not who somebody is."""
    rng, of, traits = persons(seed=7, each=1, count=600)
    codes = rng.integers(0, count, len(of))
    frame = pl.DataFrame(
        {
            name: 100 + codes,
            "region": (codes % 7).astype(str),
            "county": (codes % 19).astype(str),
            "country": np.where(codes % 2, "DE", "FR"),
            "profession": (codes % 11).astype(str),
            "born": traits["born"],
            "sex": traits["sex"],
        }
    )
    assert found(frame) is None
    assert overview(frame).persons is None


@pytest.mark.parametrize("name", ["product_no", "Artikelnummer", "doctor_id", "SKU", "supplier"])
def test_things_may_have_a_sex(name):
    """Clothes are for men or women, of a department, from a country; doctors have a sex and a birth date."""
    _, of, traits = persons(seed=10)
    assert found(pl.DataFrame({name: 900 + of, **traits})) is None


def test_codes_for_a_missing_number_are_nobody():
    emp = payroll()["emp"]
    gone = pl.Series(np.arange(len(emp)) % 4 == 0)
    assert found(payroll(emp=emp.set(gone, -9))) == "emp"
    assert found(payroll(emp=("E" + emp.cast(pl.String)).set(gone, "k.A."))) == "emp"


def test_what_a_file_declares_is_kept():
    frame = payroll()
    (emp,) = (each for each in guess(frame, {"emp": {"role": "identifier"}}) if each.column.name == "emp")
    assert emp.column.role is Role.IDENTIFIER
    (emp,) = (each for each in guess(frame, {"emp": {"label": "number"}}) if each.column.name == "emp")
    assert (emp.column.role, emp.column.label) == (Role.PERSON, "number")


def test_too_little_to_tell():
    assert found(payroll().head(15)) is None
    assert found(payroll().head(0)) is None
    assert found(payroll().head(1)) is None
    assert found(payroll(sex=["F"] * PERSONS * EACH, born=[DAY] * PERSONS * EACH)) is None  # constants


def test_no_reason_holds_a_value():
    frame = payroll(emp=["zanzibar" + str(i) for i in persons()[1]])
    assert "zanzibar" not in repr(overview(frame).to_dict())


# Counting -------------------------------------------------------------------------------------------------


def alone(frame, number, keys):
    """Who has a set of records that nobody else has, counted one by one."""
    of = {}
    for row in frame.iter_rows(named=True):
        of.setdefault(row[number], Counter())[tuple(row[key] for key in keys)] += 1
    return sum(sum(mine == other for other in of.values()) == 1 for mine in of.values())


@pytest.mark.parametrize("seed", range(8))
def test_unique_persons_are_those_whom_nobody_is_alike(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 120))
    frame = pl.DataFrame(
        {
            "patient_id": rng.integers(0, 30, n),
            "sex": rng.choice(["f", "m", None], n).tolist(),
            "region": rng.choice(["a", "b"], n),
        }
    )
    counts = overview(frame).persons
    sizes = frame["patient_id"].value_counts()["count"]
    assert (counts.persons, counts.fewest, counts.most) == (len(sizes), sizes.min(), sizes.max())
    assert counts.unique == alone(frame, "patient_id", ["sex", "region"])
    assert overview(frame).to_dict()["persons"]["unique"] == counts.unique
