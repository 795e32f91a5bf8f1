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
    assert "measured beside ε, which fixes none of it: dbrl" in err
    assert "cm2" in err
    budget = json.loads((folder / "out.private.json").read_text())["budget"]
    assert budget["epsilon"] == pytest.approx(1)
    code, _, err = run("run", "plan.toml", "--unjudged", "--overwrite", "--replay", "out.private.json")
    assert code == 2
    assert f"got: {method}" in err
    code, out, err = run("verify", "out.private.json")
    assert code == 0
    assert "unchanged" in out
    assert "never repeats itself" in err


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
