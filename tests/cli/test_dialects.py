"""A file as people have it goes in, its release comes out the same way, and its plan reads both."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sfumato
from seeds import LARGE
from sfumato.core.requirement import Requirement
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError, UnknownNameError
from sfumato.io import read_contents, write
from sfumato.io.formats import FileDialect
from sfumato.methods.mondrian import Mondrian
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.prepare import prepare_release
from sfumato.releasing.request import Request

N = 60
ROLES = {"birth_date": Role.KEY, "town": Role.KEY, "sex": Role.KEY, "income": Role.SENSITIVE}
DIALECTS = {
    "semicolon": (".csv", FileDialect(delimiter=";", decimal=",", encoding="cp1252")),
    "comma": (".csv", FileDialect(decimal=",")),
    "tab": (".tsv", FileDialect(delimiter="\t")),
    "xlsx": (".xlsx", None),
    "parquet": (".parquet", None),
    "sav": (".sav", None),
}


@pytest.fixture(params=DIALECTS)
def original(request, tmp_path):
    """Sixty people: a birth date, a town with an accent, a code with labels, an income of which some lack."""
    suffix, like = DIALECTS[request.param]
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "birth_date": pl.Series(rng.integers(-9000, 12_000, N)).cast(pl.Int32).cast(pl.Date),
            "town": rng.choice(["Köln", "Bonn", "Ulm"], N),
            "sex": rng.integers(1, 3, N),
            "income": np.where(rng.random(N) < 0.1, -9.0, np.round(rng.lognormal(7, 1, N), 2)),
        }
    )
    schema = Schema(
        (
            Column("birth_date", Kind.DATE, form="dd.mm.yyyy"),
            Column("town", Kind.NOMINAL),
            Column("sex", Kind.NOMINAL, labels=((1, "male"), (2, "female"))),
            Column("income", Kind.CONTINUOUS, missing=(-9,)),
        )
    )
    path = tmp_path / f"people{suffix}"
    write(Table(frame, schema), path, like=like)
    return path


def test_a_release_in_the_dialect_of_its_original(run, original):
    assert run("inspect", original, "--write-plan", "plan.toml")[0] == 0
    plan = Plan.read(Path("plan.toml"))
    assert plan.schema["birth_date"].kind is Kind.DATE
    decided = [replace(each, role=ROLES[each.name]) for each in plan.schema.columns]
    plan = replace(
        plan,
        schema=plan.schema.replace(*decided),
        recipe=Recipe((Step(Mondrian(k=3)),)),
        scenarios=(),
        requirements=(Requirement.parse("k >= 3"),),
        required_in={},
        output=Output(path=f"release{original.suffix}"),
    )
    Path("plan.toml").write_text(plan.to_toml())
    code, _, err = run("run", "plan.toml", "--seed", LARGE)
    assert code == 0, err
    release = Path(f"release{original.suffix}")
    code, _, err = run("risk", original, release, "--plan", "plan.toml", "--require", "k >= 3")
    assert code == 0, err
    again = read_contents(release)
    assert again.reading.to_dict() == read_contents(original).reading.to_dict()
    incomes = read_contents(release, schema=None).frame["income"]
    assert incomes.is_in([-9.0]).sum() == read_contents(original).frame["income"].is_in([-9.0]).sum()
    if original.suffix in {".csv", ".tsv"}:
        written = release.read_bytes()
        assert b"-9.0" not in written
        assert re.search(rb"\[\d\d\.\d\d\.\d{4};\d\d\.\d\d\.\d{4}\]", written)
    if original.suffix == ".sav":
        assert dict(again.facts["sex"]["labels"]) == {1: "male", 2: "female"}


def test_a_plan_that_is_told_how_to_read(run, tmp_path):
    """Without `decimal` the commas might part thousands: the plan says which, and every verb heeds it."""
    (tmp_path / "pay.tsv").write_text(
        "sex\tpay\n" + "".join(f"{'mf'[i % 2]}\t{i + 1},{500 + i}\n" for i in range(40))
    )
    code, out, _ = run("inspect", "pay.tsv")
    assert code == 0
    assert "give `decimal`" in out
    assert run("inspect", "pay.tsv", "--decimal", ",", "--write-plan", "plan.toml")[0] == 0
    said = tomllib.loads(Path("plan.toml").read_text())
    assert said["data"] == {"path": "pay.tsv", "delimiter": "\t", "decimal": ","}
    assert said["columns"]["pay"]["kind"] == "continuous"
    code, _, err = run("risk", "pay.tsv", "--plan", "plan.toml", "-m", "k", "-c", "pay")
    assert code == 0, err


def test_a_plan_says_yes_or_no_of_a_header(run, tmp_path):
    (tmp_path / "plan.toml").write_text('[data]\npath = "a.csv"\nheader = "perhaps"\n')
    code, _, err = run("check", "plan.toml")
    assert code != 0
    assert "data: `header` must be one of yes, no" in err


def test_no_cell_is_the_name_of_a_column(run, tmp_path):
    (tmp_path / "bare.csv").write_text("Müller;34;1200,5\nMaier;35;1300,5\nSchulz;36;1400,5\n")
    code, out, err = run("inspect", "bare.csv")
    assert code == 0
    assert "Müller" not in out + err
    assert "the first line looks like a record" in err


# What cannot be found out is said to every verb ---------------------------------------------------------

SAID = ("--delimiter", "#", "--decimal", ",", "--encoding", "iso-8859-2")


@pytest.fixture
def twins(tmp_path):
    """One table twice: as everybody writes it, and so that nobody could find out how it is to be read."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "town": rng.choice(["Łódź", "Žilina", "Bonn"], 48),
            "sex": rng.choice(["f", "m"], 48),
            "age": rng.integers(20, 80, 48),
            "pay": rng.integers(1000, 9000, 48) / 1000,
        }
    )
    rows = [f"{town}#{sex}#{age}#{pay:.3f}".replace(".", ",") for town, sex, age, pay in frame.iter_rows()]
    (tmp_path / "odd").mkdir()
    frame.write_csv(tmp_path / "people.csv")
    text = "\n".join(["#".join(frame.columns), *rows, ""])
    (tmp_path / "odd" / "people.csv").write_bytes(text.encode("iso-8859-2"))
    return frame


COLUMNS = ("-c", "town,sex,age,pay")
AS_KEYS = tuple(each for name in ("town", "sex", "age", "pay") for each in ("-r", f"{name}=key"))
VERBS = {
    "risk": ("-m", "k", "-m", "dbrl", *COLUMNS, "--json"),
    "hierarchy": ("pay", "--json"),
    "compare": (
        "-m",
        "mdav",
        "-m",
        "rank-swapping",
        "-c",
        "age,pay",
        "--repeats",
        1,
        "--level",
        0.3,
        "--json",
    ),
    "gate": ("--require", "k >= 5", *AS_KEYS),
    "explain": ("--riskiest", 3, *COLUMNS),
    "simulate": ("--draws", 2, "-c", "sex,town", "--fraction", 0.5, "--json"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_told_how_to_read_says_the_same(run, twins, verb):
    seed = () if verb == "hierarchy" else ("--seed", 1)
    plain = run(verb, "people.csv", *VERBS[verb], *seed)
    Path("people.csv").unlink()
    Path("odd/people.csv").rename("people.csv")
    told = run(verb, "people.csv", *VERBS[verb], *seed, *SAID)
    assert plain[0] in {0, 1}, plain[2]
    assert told[:2] == plain[:2], told[2]
    assert run(verb, "people.csv", *VERBS[verb], *seed) != plain  # nobody finds it out


def test_a_release_of_it_is_written_and_read_so_too(run, twins):
    how = ("-c", "age,pay", "--seed", LARGE, "--unjudged", "--out", "out.csv")
    assert run("protect", "mdav", "people.csv", *how)[0] == 0
    plain = read_contents("out.csv").frame
    scores = [run(verb, "people.csv", "out.csv", "--seed", 1, "--json")[1] for verb in ("risk", "utility")]
    for path in Path().glob("out.*"):
        path.unlink()
    Path("people.csv").unlink()
    Path("odd/people.csv").rename("people.csv")
    code, _, err = run("protect", "mdav", "people.csv", *how, *SAID)
    assert code == 0, err
    reading = {"delimiter": "#", "decimal": ",", "encoding": "iso-8859-2"}
    assert read_contents("out.csv", **reading).frame.equals(plain)
    for verb, before in zip(("risk", "utility"), scores, strict=True):
        code, out, err = run(verb, "people.csv", "out.csv", "--seed", 1, "--json", *SAID)
        assert (code, out) == (0, before), err
    assessed = sfumato.assess("people.csv", "out.csv", ["dbrl", "il1"], seed=1, **reading)
    assert assessed["il1"].value > 0
    assert 0 < assessed["dbrl"].value <= 1


def test_plans_that_verbs_write_keep_how_to_read(run, twins):
    Path("odd/people.csv").replace("people.csv")
    arguments = ("--require", "k >= 2", "-c", "sex,age", "-m", "mondrian", "--minutes", 0.05, "--write-plan")
    code, _, err = run("tune", "people.csv", *arguments, "plan.toml", *SAID, "--seed", 1)
    assert code == 0, err
    said = {"path": "people.csv", "delimiter": "#", "decimal": ",", "encoding": "iso-8859-2"}
    assert tomllib.loads(Path("plan.toml").read_text())["data"] == said
    code, _, err = run(
        "release", "people.csv", "--minutes", 0.02, "-m", "mondrian", "--control", "0.2", *AS_KEYS, *SAID
    )
    assert code == 0, err
    plan = Plan.read(Path("people-release/private/plan.toml"))
    assert plan.data.reading_options == {name: value for name, value in said.items() if name != "path"}
    first = Path("people-release/release.csv").read_bytes().decode("iso-8859-2").splitlines()[0]
    assert sorted(first.split("#")) == ["age", "pay", "sex", "town"]
    code, _, err = run("risk", "people.csv", "people-release/release.csv", "-m", "k", *SAID)
    assert code == 0, err
    assert run("verify", "people-release")[0] == 0


def test_the_owners_protocol_reads_as_it_is_told(run, twins):
    Path("odd/people.csv").replace("people.csv")
    how = ("-m", "correlated-noise(ratio=9)", "-c", "age,pay", "--local", 0.9, "--everywhere", 0.9)
    code, _, err = run("protocol", "people.csv", "--out", "out.csv", *how, *SAID, "--seed", LARGE)
    assert code == 0, err
    assert read_contents("out.csv", delimiter="#", decimal=",").frame["pay"].dtype == pl.Float64


@pytest.mark.parametrize(
    "verb", ["risk", "hierarchy", "compare", "simulate", "release", "gate", "tune", "explain"]
)
def test_a_plan_says_itself_how_its_data_are_read(run, twins, verb):
    Path("plan.toml").write_text('[data]\npath = "people.csv"\n')
    more = {"hierarchy": ("pay",), "explain": ("--riskiest", 2)}.get(verb, ())
    code, _, err = run(verb, "plan.toml", *more, "--decimal", ",")
    assert code == 2
    assert "`decimal` can only be given for a data file, got: a plan" in err
    assert "hint: write it in [data] of the plan" in err


def test_no_header_is_said_of_the_original_alone(run, twins):
    """A release has a header, as its columns may be fewer; it is read back all the same."""
    rows = Path("people.csv").read_text().splitlines()[1:]
    Path("bare.csv").write_text("\n".join([*rows, ""]))
    twins.rename({name: f"column_{i}" for i, name in enumerate(twins.columns, start=1)}).write_csv(
        "named.csv"
    )
    how = ("-m", "k", "-c", "column_2,column_3", "--json")
    assert run("risk", "bare.csv", *how, "--no-header")[1] == run("risk", "named.csv", *how)[1]
    more = ("-c", "column_3", "--drop", "column_1", "--unjudged", "--out", "out.csv")
    code, _, err = run("protect", "mdav", "bare.csv", *more, "--no-header", "--seed", LARGE)
    assert code == 0, err
    assert Path("out.csv").read_text().startswith("column_2,column_3,column_4\n")
    code, out, err = run("risk", "bare.csv", "out.csv", *how, "--no-header")
    assert code == 0, err
    assert json.loads(out)


def test_a_workbook_whose_first_sheet_is_a_title(run, twins):
    import xlsxwriter

    with xlsxwriter.Workbook("people.xlsx") as book:
        book.add_worksheet("About").write_row(0, 0, ["A survey"])
        sheet = book.add_worksheet("Records")
        for i, row in enumerate([twins.columns, *twins.iter_rows()]):
            sheet.write_row(i, 0, row)
    how = ("-m", "k", *COLUMNS, "--json")
    plain = run("risk", "people.csv", *how)
    assert run("risk", "people.xlsx", *how)[:2] == plain[:2]
    assert run("risk", "people.xlsx", *how, "--sheet", "Records")[:2] == plain[:2]
    assert run("risk", "people.xlsx", *how, "--sheet", "About")[0] != 0
    assert "`sheet` applies to Excel workbooks" in run("risk", "people.csv", *how, "--sheet", "Records")[2]
    assert sfumato.read("people.xlsx", sheet="Records").frame.equals(twins)


def test_python_is_told_too(twins, tmp_path):
    reading = {"delimiter": "#", "decimal": ",", "encoding": "iso-8859-2"}
    odd = tmp_path / "odd" / "people.csv"
    assert sfumato.read(odd, **reading).frame.equals(twins)
    assert sfumato.assess(odd, measures=["k"], **reading)["k"].value == 1
    prepared = prepare_release(
        Request(source=odd, roles=dict.fromkeys(twins.columns, "key"), reading=reading)
    )
    assert prepared.table.frame.equals(twins)
    for source in (twins, "builtin:fair", sfumato.read(twins)):
        with pytest.raises(ParameterError, match="`decimal` can only be given for a data file, got: a "):
            sfumato.read(source, decimal=",")
        with pytest.raises(ParameterError, match="can only be given for a data file"):
            sfumato.release(source, decimal=",")
    with pytest.raises(UnknownNameError, match="decimals"):
        sfumato.read(odd, decimals=",")
