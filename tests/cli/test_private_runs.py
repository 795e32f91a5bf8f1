"""Private plans on the command line: what is said beside ε, what is refused, and that nobody repeats the noise."""

import json

import numpy as np
import polars as pl
import pytest

from sfumato.core.run import Progress, Run
from sfumato.errors import Cancelled
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out

PLAN = """
[data]
path = "people.csv"

[columns.age]
kind = "continuous"
role = "key"
integer = true
lower = 0
{upper}

[columns.income]
kind = "continuous"
role = "key"
lower = 0
upper = 100000

[[steps]]
method = "{method}"
columns = ["age", "income"]

[output]
path = "out.csv"
"""


@pytest.fixture
def planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"age": rng.integers(18, 90, 300), "income": rng.lognormal(9, 1, 300).round(2)})
    frame.write_csv("people.csv")

    def write(method, upper="upper = 110"):
        (tmp_path / "plan.toml").write_text(PLAN.format(method=method, upper=upper))
        return tmp_path

    return write


@pytest.mark.parametrize("method", ["private-laplace", "private-marginals"])
def test_a_private_run_says_what_it_spent_and_is_not_repeated(run, planned, method):
    folder = planned(method)
    code, _, err = run("run", "plan.toml", "--unjudged")
    assert code == 0
    assert "gains more than 0.462" in err
    assert "risks that were measured, as ε does not limit them: dbrl" in err
    assert "cm2" in err
    budget = json.loads((folder / "out.private.json").read_text())["budget"]
    assert budget["epsilon"] == pytest.approx(1)
    code, _, err = run("run", "plan.toml", "--unjudged", "--overwrite", "--replay", "out.private.json")
    assert code == 2
    assert f"a replay cannot repeat the noise of {method}" in err
    code, out, err = run("verify", "out.private.json")
    assert code == 0
    assert "unchanged" in out
    assert "draws new noise each time" in err


def test_an_undeclared_bound_ends_with_2_and_the_name_of_the_column(run, planned):
    folder = planned("private-marginals", upper="")
    code, _, err = run("run", "plan.toml", "--unjudged")
    assert code == 2
    assert "`age`" in err
    assert "`income`" not in err
    assert sorted(each.name for each in folder.iterdir()) == ["people.csv", "plan.toml"]


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("method", ["private-laplace", "private-microaggregation", "private-marginals"])
def test_who_stops_it_gets_nothing(planned, method, after):
    folder = planned(method)
    events = []
    stopped = Run(seed=1, progress=Progress(report=events.append, stopped=lambda: len(events) >= after))
    with pytest.raises(Cancelled):
        carry_out(Plan.read(folder / "plan.toml"), stopped)
    assert sorted(each.name for each in folder.iterdir()) == ["people.csv", "plan.toml"]


def test_a_guarantee_of_one_column_is_none_for_a_person(run, planned):
    folder = planned("private-laplace")
    plan = folder / "plan.toml"
    text = plan.read_text().replace('columns = ["age", "income"]', 'columns = ["age"]')
    text = f'requirements = ["exact-match <= 0.9"]\n{text}'
    plan.write_text(text)
    said = "ε covers only `age`; `income` is released without it: no guarantee for a person"
    code, _, err = run("release", "plan.toml", "--out", "rel")
    assert code == 1
    assert f"not-private: {said}" in " ".join(err.split())
    assert not (folder / "rel").exists()
    code, out, _ = run("release", "plan.toml", "--out", "rel", "--override", "a test")
    assert code == 0
    assert said in " ".join(out.split())
    for place in ("rel", "rel/private"):
        nist = json.loads((folder / place / "evidence.json").read_text())["views"]["nist"]
        assert (nist["claimed"], nist["says"], nist["unit"]) == (False, said, [])
        assert nist["meaning"] == {"membership_advantage_at_most": None}
        report = json.loads((folder / place / "report.json").read_text())
        assert "advantage_at_most" not in report["budget"]
        assert said in report["verdict"]
        assert "hiding each" not in (folder / place / "report.html").read_text()
    plan.write_text(text + 'drop = ["income"]\n')  # what is left is covered
    assert run("release", "plan.toml", "--out", "other")[0] == 0
    nist = json.loads((folder / "other" / "evidence.json").read_text())["views"]["nist"]
    assert (nist["claimed"], nist["unit"]) == (True, ["record"])
    assert nist["meaning"]["membership_advantage_at_most"] == pytest.approx(0.462, abs=1e-3)


def test_tables_that_leave_together_are_private_together(run, planned):
    folder = planned("private-laplace")
    single = (folder / "plan.toml").read_text()
    parts = single.replace("[columns", "[tables.a.columns").replace("[[steps]]", "[[tables.a.steps]]")
    parts = parts.replace("[data]", "[tables.a.data]").replace("[output]", "[tables.a.output]")
    other = """
[tables.b]
requirements = ["exact-match <= 0.9"]
data = { path = "towns.csv" }
columns = { town = { kind = "nominal", role = "key" } }
output = { path = "b.csv" }
"""
    pl.DataFrame({"town": ["x", "y"] * 50}).write_csv(folder / "towns.csv")
    (folder / "plan.toml").write_text('[tables.a]\nrequirements = ["exact-match <= 0.9"]\n' + parts + other)
    code, _, err = run("release", "plan.toml", "--out", "rel")
    assert code == 1
    assert "`b.town` is released without it" in " ".join(err.split())
    assert run("release", "plan.toml", "--out", "rel", "--override", "a test")[0] == 0
    assert json.loads((folder / "rel" / "evidence.json").read_text())["views"]["nist"]["claimed"] is False
