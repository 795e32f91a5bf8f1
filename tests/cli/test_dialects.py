"""A file as people have it goes in, its release comes out the same way, and its plan reads both."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.requirement import Requirement
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.io import read_contents, write
from sfumato.io.formats import Reading
from sfumato.methods.mondrian import Mondrian
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe, Step

N = 60
ROLES = {"birth_date": Role.KEY, "town": Role.KEY, "sex": Role.KEY, "income": Role.SENSITIVE}
DIALECTS = {
    "semicolon": (".csv", Reading(delimiter=";", decimal=",", encoding="cp1252")),
    "comma": (".csv", Reading(decimal=",")),
    "tab": (".tsv", Reading(delimiter="\t")),
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
    assert "say which sign is `decimal`" in out
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
