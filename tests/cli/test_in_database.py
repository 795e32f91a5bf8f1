"""`sfumato risk --in-database`: the same scores as those of the table that is read."""

from __future__ import annotations

import json

import polars as pl

from sfumato import io


def make(folder, **columns):
    frame = pl.DataFrame({"town": ["Ulm", "ulm", None, None] * 6, "flag": [True, False] * 12, **columns})
    io.write(frame, f"sqlite:{folder}/people.db?table=people")
    return f"sqlite:{folder}/people.db?table=people"


def test_the_scores_are_those_of_the_table(run, tmp_path):
    asking = ["risk", make(tmp_path), "-m", "k", "-m", "uniqueness", "--columns", "town,flag", "--json"]
    read, counted = run(*asking), run(*asking, "--in-database")
    assert counted[0] == 0
    assert json.loads(counted[1]) == json.loads(read[1])
    usual = json.loads(run(*asking[:2], *asking[-3:], "--in-database")[1])
    assert set(usual) == {"k-anonymity", "uniqueness"}


def test_a_plan_declares_the_columns(run, tmp_path):
    address = make(tmp_path, household=list(range(12)) * 2)
    plan = tmp_path / "plan.toml"
    kinds = {"town": "key", "flag": "key", "household": "other"}
    columns = "".join(
        f'[columns.{name}]\nkind = "nominal"\nrole = "{role}"\n' for name, role in kinds.items()
    )
    plan.write_text(f'[data]\npath = "{address}"\n{columns}')
    assert run("risk", plan, "--in-database", "--require", "k >= 6")[0] == 0
    assert run("risk", plan, "--in-database", "--require", "k >= 7")[0] == 1
    plan.write_text(plan.read_text().replace('"other"', '"household"'))
    code, _, told = run("risk", plan, "--in-database", "-m", "k")
    assert code == 2
    assert "`household` may link records" in told


def test_what_is_not_counted_is_said(run, tmp_path):
    address = make(tmp_path)
    for more in (["--per-record"], [address]):
        code, _, told = run("risk", address, *more, "--in-database", "-m", "k")
        assert code == 2
        assert "reads no single records" in told
    _, shown, _ = run("risk", address, "--in-database", "-m", "suda", "--columns", "town")
    assert "must look at single records" in " ".join(shown.split())
