"""The safe harbour of HIPAA: columns of each of its kinds are found, and what it allows is not."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.text_forms import parse_nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.profile import Profile
from sfumato.risk.safe_harbour import SafeHarbourViolations

RUN = Run(seed=1)
ZIPS = pl.DataFrame({"zip": ["021", "036", "036"], "population_count": [700_000, 20_000, 0]})


def kind_of(series):
    dtype = series.dtype
    if dtype.is_temporal() or (dtype.is_nested() and dtype.fields[0].dtype.is_temporal()):
        return Kind.DATE
    return Kind.CONTINUOUS if dtype.is_numeric() or dtype.is_nested() else Kind.NOMINAL


def table_of(columns, roles=None, nodes=None, **facts):
    frame = pl.DataFrame(columns)
    schema = Schema(
        tuple(
            Column(each.name, kind_of(each), (roles or {}).get(each.name, Role.KEY), **facts)
            for each in frame
        )
    )
    return Table(frame, schema, nodes=nodes or {})


def broken(table, rule, zips=ZIPS, **settings):
    resources = {"zip-codes": table_of(zips)} if zips is not None else {}
    score = SafeHarbourViolations(rule=rule, **settings).score(Evidence(table, resources=resources), RUN)
    assert score.value == len(score.by_column)
    return set(score.by_column)


# Names and numbers --------------------------------------------------------------------------------------------

KINDS = {
    "A": ("name", ["Ann Lee", "Bob Kay", "Cy Day"]),
    "D": ("contact", ["+1 617 555 0100", "+1 617 555 0199", "(617) 555-0101"]),
    "E": ("fax_home", ["1", "2", "3"]),
    "F": ("where", ["a@b.org", "c@d.org", "e@f.org"]),
    "G": ("ssn", ["078-05-1120", "219-09-9999", "457-55-5462"]),
    "H": ("mrn", ["7", "8", "9"]),
    "I": ("beneficiary", ["7", "8", "9"]),
    "J": ("account", ["7", "8", "9"]),
    "K": ("licence", ["7", "8", "9"]),
    "L": ("vin", ["7", "8", "9"]),
    "M": ("device_id", ["7", "8", "9"]),
    "N": ("url", ["x", "y", "z"]),
    "O": ("ip", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
    "P": ("fingerprint", ["7", "8", "9"]),
    "Q": ("photo", ["7", "8", "9"]),
    "R": ("note", ["call +1 617 555 0100", "none", "well"]),
}


@pytest.mark.parametrize("letter", KINDS)
def test_each_kind_of_identifier_is_found(letter):
    name, values = KINDS[letter]
    table = table_of({name: values, "sex": ["f", "m", "f"]})
    assert broken(table, "identifiers") == {name}
    hidden = table.with_values(name, pl.Series([None] * 3, dtype=pl.String))
    assert broken(hidden, "identifiers") == set()


REPEATED = {
    "identifiers": [
        "surname", "mother_name", "employer", "initials", "home_phone", "email", "ssn4", "patient_id",
        "medicare_no", "credit_card", "passport", "vehicle_serial", "implant_id", "homepage", "ip_address",
        "voice_print", "barcode",
    ],
    "places": ["street", "block_group", "lng", "township"],
    "dates": ["dow", "season", "discharge_day"],
}  # fmt: skip
ALLOWED = [
    "drug_name",
    "employer_size",
    "white_cell",
    "seasonal_asthma",
    "state",
    "age_group",
]


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule in REPEATED for name in REPEATED[rule]])
def test_an_identifier_is_one_however_often_it_occurs(rule, name):
    """The rule asks for kinds of columns, of relatives and employers too, and not for unique values."""
    assert broken(table_of({name: ["x", "y", "x", "y"], "sex": list("fmfm")}), rule) == {name}


@pytest.mark.parametrize("name", ALLOWED)
def test_names_that_only_look_like_one_are_allowed(name):
    table = table_of({name: ["x", "y", "x", "y"], "sex": list("fmfm")})
    assert [broken(table, rule) for rule in REPEATED] == [set()] * 3


def test_numbers_of_persons_and_their_pseudonyms_are_derived_from_somebody():
    table = table_of({"who": ["p", "p", "q"], "sex": ["f", "f", "m"]}, {"who": Role.PERSON})
    assert broken(table, "identifiers") == {"who"}
    column = Column("who", Kind.NOMINAL, Role.PERSON, pseudonym="who")
    assert broken(Table(table.frame, table.schema.replace(column)), "identifiers") == {"who"}
    assert broken(table, "identifiers", codes=("who",)) == set()


def test_what_was_left_out_of_the_release_breaks_nothing():
    table = table_of({"mrn": ["7", "8"], "sex": ["f", "m"]}, {"mrn": Role.IDENTIFIER})
    release = Release.of(table.select(["sex"]), source_rows=np.arange(2))
    score = SafeHarbourViolations().score(Evidence(table, release), RUN)
    assert (score.value, score.status) == (0, "ok")


def test_several_records_of_a_person_leave_no_doubt():
    table = table_of({"who": [1, 1, 2], "town": ["a", "b", "b"]}, {"who": Role.PERSON})
    score = SafeHarbourViolations(rule="places").score(Evidence(table), RUN)
    assert (score.value, score.status) == (1, "ok")


# Places -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "allowed"),
    [
        (["021", "000", None], True),
        (["021**", "000**", "021**"], True),
        (["021XX", "000", "000"], True),
        (["036", "000", "021"], False),  # of 20,000 people, and more are needed
        (["999", "000", "021"], False),  # nobody knows of it
        (["02139", "021", "000"], False),
        (["0213*", "021", "000"], False),
        (["02139-1", "021", "000"], False),
        (["Boston", "021", "000"], False),
        ([2139, 2140, 2141], False),
        ([21, 21, 21], False),  # 021, or 00021?
    ],
)
def test_zip_codes_of_three_digits_and_many_people(codes, allowed):
    table = table_of({"zip": codes, "sex": ["f", "m", "f"]})
    assert broken(table, "places") == (set() if allowed else {"zip"})


def test_without_a_table_only_000_leaves():
    assert broken(table_of({"zip": ["000", None]}), "places", zips=None) == set()
    assert broken(table_of({"zip": ["021", None]}), "places", zips=None) == {"zip"}
    other = pl.DataFrame({"zip": ["021"], "inhabitants": [700_000]})
    assert broken(table_of({"zip": ["021", None]}), "places", zips=other) == {"zip"}


def test_a_table_that_lost_its_zeros_is_read_all_the_same():
    zips = pl.DataFrame({"zip": [2139, 2140, 3601], "population_count": [15_000, 15_000, 900]})
    assert broken(table_of({"zip": ["021", "000"]}), "places", zips=zips) == set()
    assert broken(table_of({"zip": ["036", "000"]}), "places", zips=zips) == {"zip"}


def test_groups_of_zip_codes_name_their_members():
    groups, nodes = parse_nodes(
        pl.Series("zip", ["{02139|02140}", "02141", "*"]), ["02139", "02140", "02141"]
    )
    assert broken(table_of({"zip": groups}, nodes={"zip": nodes}), "places") == {"zip"}
    hidden, nodes = parse_nodes(pl.Series("zip", ["*", "*"]), ["02139"])
    assert broken(table_of({"zip": hidden}, nodes={"zip": nodes}), "places") == set()


def test_places_smaller_than_a_state():
    names = [
        "county",
        "city",
        "census_tract",
        "latitude",
        "gemeente",
        "region",
        "state",
        "country",
        "hospital",
    ]
    table = table_of({name: ["x", "y"] for name in names})
    assert broken(table, "places") == set(names[:6])
    assert broken(table, "places", larger=("region",)) == set(names[:5])


# Dates and ages -----------------------------------------------------------------------------------------------

DAY = dt.date(2020, 2, 29)


def years(first, last):
    lows = pl.Series([None if first is None else dt.date(first, 1, 1)], dtype=pl.Date)
    return intervals(lows, pl.Series([dt.date(last, 12, 31)]))


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("admitted", pl.Series([DAY, None]), False),
        ("admitted", pl.Series([None, None], dtype=pl.Date), True),
        ("admitted", years(2020, 2020), True),
        ("admitted", years(2020, 2024), True),
        ("admitted", intervals(pl.Series([dt.date(2020, 1, 1)]), pl.Series([dt.date(2020, 3, 31)])), False),
        ("admitted", pl.Series(["2020-02-29", "2020-03-01", "2021-01-01"]), False),
        ("admitted", pl.Series([20200229, 20200301, 20210101]), False),
        ("admission_month", pl.Series([1, 2]), False),
        ("quarter", pl.Series(["Q1", "Q2"]), False),
        ("visit_year", pl.Series([2020, 2021]), True),
        ("age", pl.Series([3, 89, None]), True),
        ("age", pl.Series([3, 90, 90]), True),
        ("age", pl.Series([3, 91]), False),
        ("age", pl.Series([3.5, 89.5]), False),
        ("age", pl.Series(["80-89", "90+", "90 and older"]), True),
        ("age", pl.Series(["80-94", "<80"]), False),
        ("age", pl.Series(["95+", "<80"]), False),
        ("age", intervals(pl.Series([80, 90]), pl.Series([89, None], dtype=pl.Int64)), True),
        ("age", intervals(pl.Series([85]), pl.Series([None], dtype=pl.Int64)), True),
        ("age", intervals(pl.Series([85]), pl.Series([94])), False),
        ("age", intervals(pl.Series([95]), pl.Series([None], dtype=pl.Int64)), False),
        ("stage", pl.Series([95, 96]), True),
    ],
)
def test_dates_to_the_year_and_ages_to_89(name, values, allowed):
    assert broken(table_of({name: values}), "dates") == (set() if allowed else {name})


def test_years_of_birth_tell_ages():
    born = table_of({"birth_year": [1936, 1940, 1999]})
    assert broken(born, "dates") == {"birth_year"}  # without a year nobody can tell
    assert broken(born, "dates", year=2025) == set()
    assert broken(born, "dates", year=2030) == {"birth_year"}
    assert broken(table_of({"born": years(1930, 1939)}), "dates", year=2025) == {"born"}
    assert broken(table_of({"born": years(None, 1939)}), "dates", year=2025) == set()
    assert broken(table_of({"born": years(None, 1930)}), "dates", year=2025) == {"born"}


def test_codes_of_missing_values_are_no_ages():
    column = Column("age", Kind.CONTINUOUS, Role.KEY, missing=(999,))
    assert broken(Table(pl.DataFrame({"age": [3, 999]}), Schema((column,))), "dates") == set()


@examples(200)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 110)), min_size=1, max_size=8),
    st.lists(
        st.one_of(st.none(), st.from_regex(r"(000|021|036|0[0-9]{4})", fullmatch=True)),
        min_size=1,
        max_size=8,
    ),
)
def test_by_brute_force(ages, zips):
    n = min(len(ages), len(zips))
    frame = pl.DataFrame(
        {"age": ages[:n], "zip": zips[:n], "who": ["a"] * n},
        schema={"age": pl.Int64, "zip": pl.String, "who": pl.String},
    )
    table = table_of(frame, {"who": Role.PERSON})
    old = any(age is not None and age > 90 for age in ages[:n])
    assert broken(table, "dates") == ({"age"} if old else set())
    told = any(code not in {None, "000", "021"} for code in zips[:n])
    assert broken(table, "places") == ({"zip"} if told else set())


def test_a_release_by_the_profile(tmp_path):
    """What the profile refuses as it stands leaves once it is coded, cut and dropped."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "mrn": [f"M{at * 37:06}" for at in range(60)],
            "age": rng.integers(40, 100, 60),
            "zip": rng.choice(["02139", "02140", "03601"], 60),
            "illness": rng.choice(["flu", "asthma"], 60),
        }
    )
    demands = Profile.load("hipaa-safe-harbour").thresholds
    measures = [each.requirement.measure for each in demands]
    raw = sfumato.assess(frame, None, measures)
    assert [score.value for score in raw.values()] == [1, 1, 1]
    coded = frame.select(
        pl.col("age").clip(upper_bound=90),
        pl.when(pl.col("zip").str.starts_with("021"))
        .then(pl.lit("021"))
        .otherwise(pl.lit("000"))
        .alias("zip"),
        "illness",
    )
    done = sfumato.assess(coded, None, measures, resources={"zip-codes": table_of(ZIPS)})
    assert [score.value for score in done.values()] == [0, 0, 0]
