"""The built-in data sets and the loaders of the reference sets."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from sfumato import datasets
from sfumato.data.schema import Kind, Role
from sfumato.data.table import Table
from sfumato.datasets.patients import COUNTIES, ETHNICITIES, RACES, SEXES, _california, _cumulate, _draw
from sfumato.datasets.surveys import _LASTING, _read_statsmodels
from sfumato.errors import MissingDependencyError, ParameterError, ReadError, UnknownNameError

SHARED = Path(__file__).resolve().parents[4] / "shared"
SENTINEL = "S3NTINEL"

NINE = ("oshpd_id", "age_yrs", "sex", "ethncty", "race", "patzip", "patcnty", "los", "adm_qtr")


def shared(*parts: str) -> Path:
    path = SHARED.joinpath("data", *parts)
    if not path.exists():
        pytest.skip(f"the reference file {'/'.join(parts)} is not on this machine")
    return path


def share_of_uniques(frame: pl.DataFrame, keys: tuple[str, ...]) -> float:
    return int((frame.group_by(keys).len()["len"] == 1).sum()) / frame.height


def correlation(frame: pl.DataFrame, one: str, other: str) -> float:
    return float(np.corrcoef(frame[one].to_numpy(), frame[other].to_numpy())[0, 1])


def require_sound(table: Table) -> None:
    """Every column has a role and a label, and its values are what the schema says."""
    assert table.schema.columns_without_role() == ()
    for column in table.schema.columns:
        assert column.label
        if column.kind is Kind.CONTINUOUS:
            values = table.numbers(column.name)
            values = values[~np.isnan(values)]
            assert column.lower is None or values.min() >= column.lower
            assert column.upper is None or values.max() <= column.upper
            assert not column.integer or table.frame.schema[column.name].is_integer()
        else:
            assert (table.codes(column.name).codes >= 0).all()


@pytest.fixture(scope="module")
def discharges() -> Table:
    return datasets.patients(100_000)


class TestPatients:
    def test_has_the_columns_of_the_paper_and_a_sound_schema(self, discharges):
        assert discharges.frame.shape == (100_000, 11)
        assert discharges.names == (*NINE, "charge", "diag_p")
        assert discharges.schema.with_role(Role.KEY) == NINE
        assert discharges.schema.with_role(Role.SENSITIVE) == ("charge", "diag_p")
        assert discharges.schema.related == (("oshpd_id", "patcnty", "patzip"),)
        require_sound(discharges)

    def test_is_the_same_for_the_same_seed_and_another_for_another(self):
        first = datasets.patients(500, seed=1)
        assert first.frame.equals(datasets.patients(500, seed=1).frame)
        assert not first.frame.equals(datasets.patients(500, seed=2).frame)

    def test_two_seeds_are_two_samples_of_one_population(self):
        one, other = (set(datasets.patients(20_000, seed=seed).frame["oshpd_id"]) for seed in (1, 2))
        assert len(one & other) > 0.9 * len(one)

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_of_very_few_records_has_the_same_columns_and_types(self, n, discharges):
        few = datasets.patients(n)
        assert len(few) == n
        assert few.frame.schema == discharges.frame.schema

    @pytest.mark.parametrize(
        "options", [{"n": -1}, {"n": 2.5}, {"n": True}, {"n": 5, "seed": -1}, {"n": 5, "seed": "1"}]
    )
    def test_refuses_what_is_no_count(self, options):
        with pytest.raises(ParameterError, match="of `patients` must be a whole number from 0 up"):
            datasets.patients(**options)

    @pytest.mark.parametrize(("n", "stated"), [(10_000, 0.996), (100_000, 0.975)])
    def test_has_the_uniqueness_that_its_docstring_states(self, n, stated):
        assert f"{stated:.3f}" in (datasets.patients.__doc__ or "")
        assert share_of_uniques(datasets.patients(n).frame, NINE) == pytest.approx(stated, abs=0.002)

    def test_holds_only_the_codes_it_explains(self, discharges):
        frame = discharges.frame
        assert set(frame["sex"]) == set(SEXES)
        assert set(frame["ethncty"]) == set(ETHNICITIES)
        assert set(frame["race"]) == set(RACES)
        assert set(frame["patcnty"]) <= set(COUNTIES)
        assert set(frame["adm_qtr"]) == {1, 2, 3, 4}
        assert len(COUNTIES) == 59  # 58 counties, and outside
        assert (COUNTIES[1], COUNTIES[19], COUNTIES[58]) == ("Alameda", "Los Angeles", "Yuba")

    def test_nests_each_zip_code_in_one_county(self, discharges):
        counties = discharges.frame.group_by("patzip").agg(pl.col("patcnty").n_unique())
        assert counties["patcnty"].max() == 1

    def test_lays_out_a_state_of_the_stated_size(self):
        state = _california()
        assert 440 <= len(np.unique(state.hospital_ids)) == len(state.hospital_ids) <= 460
        assert 1_780 <= len(np.unique(state.zip_codes)) == len(state.zip_codes) <= 1_850
        counties = state.hospital_ids // 10_000
        assert set(counties) == set(range(1, 59)) - {2, 46}  # no hospital in Alpine and Sierra

    def test_has_hospitals_of_very_different_size(self, discharges):
        sizes = discharges.frame["oshpd_id"].value_counts(sort=True)["count"]
        assert sizes[0] > 8 * sizes[len(sizes) // 2]
        assert sizes[:45].sum() > 0.25 * len(discharges)  # a tenth of them, a quarter of the patients

    def test_is_skewed_where_hospitals_are(self, discharges):
        frame = discharges.frame
        ages = frame["age_yrs"].value_counts(sort=True)["age_yrs"]
        assert set(ages[:2]) == {0, 85}
        assert frame["age_yrs"].max() == 85
        assert frame["los"].is_between(1, 4).mean() > 0.6
        assert frame["los"].max() > 200
        assert 0.08 < (frame["charge"] > 100_000).mean() < 0.12
        commonest = frame["diag_p"].value_counts(sort=True)["count"]
        assert commonest[0] > 0.02 * frame.height
        assert len(commonest) > 1_000

    def test_correlates_with_the_signs_of_the_paper(self, discharges):
        frame = discharges.frame
        assert correlation(frame, "oshpd_id", "patcnty") == pytest.approx(0.81, abs=0.02)
        alike = "oshpd_id:patzip age_yrs:ethncty age_yrs:los ethncty:patzip patzip:patcnty"
        opposed = "oshpd_id:race age_yrs:race sex:ethncty sex:los ethncty:race race:patzip race:patcnty"
        for sign, pairs in ((1, alike), (-1, opposed)):
            for one, other in (pair.split(":") for pair in pairs.split()):
                # 0.01 is three standard errors of a correlation of 0 among 100,000 records
                assert sign * correlation(frame, one, other) > 0.01, (one, other)
        for one, other in [("oshpd_id", "age_yrs"), ("oshpd_id", "los"), ("patcnty", "adm_qtr")]:
            assert abs(correlation(frame, one, other)) < 0.01, (one, other)

    def test_makes_charge_diagnosis_and_sex_depend_on_the_stay_and_age(self, discharges):
        frame = discharges.frame
        assert correlation(frame, "los", "charge") > 0.5
        births = frame.filter(pl.col("diag_p").str.starts_with("V30"))
        assert set(births["age_yrs"]) == {0}
        mothers = frame.filter(pl.col("diag_p") == "664.01")
        assert (mothers["sex"] == 2).mean() > 0.98
        assert mothers["age_yrs"].is_between(1, 44).all()
        assert frame.filter(pl.col("age_yrs").is_between(20, 35))["sex"].mean() > 1.7

    def test_never_draws_a_category_without_a_share(self):
        shares = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
        groups = np.repeat([0, 1], 5_000)
        drawn = _draw(_cumulate(shares), groups, np.random.default_rng(0))
        assert set(drawn[:5_000]) == {1}
        assert set(drawn[5_000:]) == {0, 2}
        assert (drawn[5_000:] == 0).mean() == pytest.approx(0.5, abs=0.03)  # four standard errors


def test_the_last_lot_of_the_last_group_stays_in_its_group():
    n_groups = 160_000  # as many as zip codes times ages
    cumulated = _cumulate(np.tile([0.4, 0.6], (n_groups, 1)))
    next_to_one = SimpleNamespace(random=lambda size: np.full(size, np.nextafter(1.0, 0.0)))
    drawn = _draw(cumulated, np.array([0, n_groups - 1]), next_to_one)
    assert drawn.tolist() == [1, 1]


class TestRand:
    def test_has_20190_years_of_5912_persons(self):
        table = datasets.rand()
        assert table.frame.shape == (20_190, 33)
        assert table.schema.only_role(Role.PERSON) == "zper"
        assert table.frame["zper"].n_unique() == 5_912
        assert table.frame.select("zper", "year").n_unique() == 20_190

    def test_has_a_sound_schema_in_both_forms(self):
        for per in ("year", "person"):
            table = datasets.rand(per=per)
            assert table.schema.columns_without_role() == ()
            assert {"health", "disea", "physlm", "xage", "female"} <= set(table.schema.with_role(Role.KEY))
            assert {"mdvis", "meddol", "inpdol"} <= set(table.schema.with_role(Role.SENSITIVE))
            require_sound(table)

    def test_per_person_takes_first_values_and_sums(self):
        years, persons = datasets.rand().frame, datasets.rand(per="person").frame
        assert persons.shape == (5_912, 33)
        assert persons["zper"].is_unique().all()
        assert persons["years"].sum() == 20_190
        assert datasets.rand(per="person").schema.with_role(Role.PERSON, Role.IDENTIFIER) == ("zper",)
        someone = years["zper"][0]  # five years, of which the second has the visits
        own, told = years.filter(zper=someone).sort("year"), persons.filter(zper=someone)
        assert told["years"].item() == own.height == 5
        assert told["xage"].item() == own["xage"][0]
        assert told["mdvis"].item() == own["mdvis"].sum()
        assert told["meddol"].item() == pytest.approx(own["meddol"].sum())
        for name in ("mdvis", "totadm", "outpdol", "time"):
            assert persons[name].sum() == pytest.approx(years[name].sum())

    def test_what_is_told_once_never_changes(self):
        names = [column.name for column in _LASTING]
        varying = datasets.rand().frame.group_by("zper").agg(pl.col(names).n_unique()).select(names).max()
        assert varying.row(0) == (1,) * len(names)

    def test_counts_the_missing_values_its_docstring_states(self):
        nulls = datasets.rand().frame.null_count().row(0, named=True)
        stated = {"educdec": 4, "mdeoff": 5, "pioff": 5, "ghindx": 5_223}
        assert {name: count for name, count in nulls.items() if count} == stated

    def test_agrees_with_the_file_of_statsmodels(self):
        source = _read_statsmodels("rand", Path("randhie", "src", "randhie.csv"))
        table = datasets.rand().frame
        shared = [name for name in table.columns if name != "health"]
        assert table.select(shared).equals(source.select(shared))
        own = _read_statsmodels("rand", Path("randhie", "randhie.csv"))
        for name in ("mdvis", "idp", "physlm", "disea"):
            assert table[name].equals(own[name])
        assert ((table["health"] == "fair") == (own["hlthf"] == 1)).all()

    def test_refuses_another_form(self):
        with pytest.raises(ParameterError, match="must be `year` or `person`, got: `week`"):
            datasets.rand(per="week")


class TestFair:
    def test_has_6366_records_and_a_sound_schema(self):
        table = datasets.fair()
        assert table.frame.shape == (6_366, 9)
        assert table.frame.null_count().sum_horizontal().item() == 0
        assert table.schema.with_role(Role.SENSITIVE) == ("rate_marriage", "religious", "affairs")
        require_sound(table)
        assert share_of_uniques(table.frame, table.schema.with_role(Role.KEY)) < 0.25


def test_without_statsmodels_says_what_to_install(monkeypatch):
    name = "fair"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError) as caught:
        datasets.load(name)
    assert f"the data set `{name}` needs the package `statsmodels`" in str(caught.value)
    assert "sfumato[data]" in str(caught.value)


def test_a_statsmodels_without_the_file_is_said_so(tmp_path, monkeypatch):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: Spec())
    with pytest.raises(ReadError, match=r"lacks `datasets/fair/fair\.csv`"):
        datasets.fair()


class TestReferenceSets:
    @pytest.mark.parametrize(
        ("load", "file", "n"),
        [(datasets.census, "census.csv", 1_080), (datasets.tarragona, "tarragona.csv", 834)],
    )
    def test_census_and_tarragona_are_whole_continuous_keys(self, load, file, n):
        table = load(shared(file))
        assert table.frame.shape == (n, 13)
        assert table.schema.with_kind(Kind.CONTINUOUS) == table.schema.with_role(Role.KEY) == table.names
        assert all(column.integer for column in table.schema.columns)
        require_sound(table)

    def test_eia_has_the_eleven_measures_of_the_literature(self):
        table = datasets.eia(shared("eia.csv"))
        assert table.frame.shape == (4_092, 15)
        require_sound(table)
        schema = table.schema
        assert len(schema.with_kind(Kind.CONTINUOUS)) == 11
        assert schema.with_kind(Kind.CONTINUOUS)[0] == "UTILITYID"
        assert schema.with_role(Role.IDENTIFIER) == ("UTILNAME",)
        assert schema["STATE"].role is Role.KEY
        assert schema.with_role(Role.OTHER) == ("YEAR", "MONTH")

    def test_adult_of_arx(self):
        table = datasets.adult(shared("adult", "adult.csv"))
        assert table.frame.shape == (30_162, 9)
        assert table.schema.with_role(Role.SENSITIVE) == ("salary-class",)
        assert len(table.schema.with_role(Role.KEY)) == 8
        assert table.frame["salary-class"].n_unique() == 2  # no carriage return left at the line's end
        require_sound(table)
        assert len(datasets.adult(shared("adult", "adult_subset.csv"))) == 3_016

    def test_adult_of_uci_has_the_8688_combinations_of_the_literature(self):
        table = datasets.adult(shared("adult", "adult_uci.csv"))
        assert table.frame.shape == (32_561, 15)
        assert table.schema.only_role(Role.WEIGHT) == "fnlwgt"
        require_sound(table)
        columns = ("workclass", "education", "marital-status", "occupation")
        assert (
            table.frame.select(*columns, "relationship", "race", "sex", "native-country").n_unique() == 8_688
        )


TARRAGONA = (
    "FIXED.ASSETS,CURRENT.ASSETS,TREASURY,UNCOMMITTED.FUNDS,PAID.UP.CAPITAL,SHORT.TERM.DEBT,SALES,LABOR.COSTS,"
    "DEPRECIATION,OPERATING.PROFIT,FINANCIAL.OUTCOME,GROSS.PROFIT,NET.PROFIT"
)
TWELVE = "1,2,3,4,5,6,7,8,9,0,1,2"
ADULT = "sex;age;race;marital-status;education;native-country;workclass;occupation;salary-class"


class TestReferenceFiles:
    def test_quoted_headers_and_a_byte_order_mark_are_read(self, tmp_path):
        quoted = ",".join(f'"{name}"' for name in TARRAGONA.split(","))
        file = tmp_path / "quoted.csv"
        file.write_text(f"\ufeff{quoted}\r\n{','.join('1' * 13)}\r\n", encoding="utf-8")
        table = datasets.tarragona(file)
        assert table.names == tuple(TARRAGONA.split(","))
        assert table.frame.row(0) == (1,) * 13

    def test_a_missing_file_says_where_to_have_it(self, tmp_path):
        with pytest.raises(ReadError, match="cannot read ") as caught:
            datasets.census(tmp_path / "nowhere.csv")
        assert "sdcMicro" in str(caught.value)
        assert "CASC" in str(caught.value)
        with pytest.raises(ReadError) as caught:
            datasets.adult(tmp_path)  # a directory
        assert "arx" in str(caught.value)
        assert "UCI" in str(caught.value)

    @pytest.mark.parametrize("load", [datasets.census, datasets.eia, datasets.tarragona, datasets.adult])
    @pytest.mark.parametrize("text", ["", f"{SENTINEL}\n1\n", f"{SENTINEL},b\n1,2\n"])
    def test_another_file_is_refused_without_quoting_it(self, load, text, tmp_path):
        file = tmp_path / "other.csv"
        file.write_text(text)
        with pytest.raises(ReadError, match="the header of the data set") as caught:
            load(str(file))
        assert SENTINEL not in str(caught.value)

    @pytest.mark.parametrize("line", [f"{TWELVE},{SENTINEL}", TWELVE, f"{TWELVE},3,{SENTINEL}"])
    def test_a_line_that_does_not_fit_is_refused_without_quoting_it(self, line, tmp_path):
        file = tmp_path / "broken.csv"
        file.write_text(f"{TARRAGONA}\n{line}\n")
        with pytest.raises(ReadError) as caught:
            datasets.tarragona(file)
        assert SENTINEL not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_a_missing_text_is_refused(self, tmp_path):
        file = tmp_path / "adult.csv"
        file.write_text(f"{ADULT}\nMale;39;White;Never-married;Bachelors;;Private;Sales;<=50K\n")
        with pytest.raises(ReadError, match=r"`native-country` .* must hold texts, got: 1 values"):
            datasets.adult(file)


class TestByName:
    def test_names_are_those_that_load(self):
        assert datasets.names() == ("fair", "patients", "rand")
        assert len(datasets.load("fair")) == 6_366
        assert len(datasets.load("patients", n=7, seed=3)) == 7
        assert len(datasets.load("rand", per="person")) == 5_912

    def test_an_unknown_name_suggests_a_near_one(self):
        with pytest.raises(UnknownNameError, match="there is no data set `patient`") as caught:
            datasets.load("patient")
        assert "`patients`" in caught.value.hint
        with pytest.raises(UnknownNameError, match="there is no `patients` option `m`"):
            datasets.load("patients", m=3)

    def test_an_address_is_read(self):
        assert datasets.from_uri("builtin:fair?").frame.equals(datasets.fair().frame)
        assert len(datasets.from_uri("builtin:rand?per=person")) == 5_912
        told = datasets.from_uri("builtin:patients?n=50&seed=1")
        assert told.frame.equals(datasets.patients(50, seed=1).frame)

    @pytest.mark.parametrize(
        ("text", "error", "said"),
        [
            ("patients", ParameterError, "which begins with `builtin:`"),
            ("builtin:", UnknownNameError, "there is no data set ``"),
            ("builtin:patiens?n=3", UnknownNameError, "did you mean `patients`"),
            ("builtin:fair?n=3", UnknownNameError, "there are none"),
            ("builtin:patients?m=3", UnknownNameError, "there is no `patients` option `m`"),
            ("builtin:patients?n", ParameterError, "`OPTION=VALUE`"),
            ("builtin:patients?n=many", ParameterError, "must be a whole number, got: `many`"),
            ("builtin:patients?n=-1", ParameterError, "must be a whole number from 0 up"),
            ("builtin:patients?n=1&n=2", ParameterError, "is given twice"),
            ("builtin:rand?per=week", ParameterError, "must be `year` or `person`"),
        ],
    )
    def test_a_wrong_address_says_what_is_wrong(self, text, error, said):
        with pytest.raises(error) as caught:
            datasets.from_uri(text)
        assert said in str(caught.value)


def test_importing_and_reading_loads_nothing_heavy():
    code = (
        "import sys, sfumato.datasets as d; d.rand(); d.patients(10); "
        "print([m for m in ('statsmodels', 'pandas', 'numba') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(datasets.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"
