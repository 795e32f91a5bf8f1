"""`--only vetted`: what was checked by experiments alone is refused with a sentence, by every door."""

import polars as pl
import pytest

import sfumato
from sfumato.errors import RefusedError
from sfumato.recipes.plan import Plan

SAID = "is checked by worked examples and experiments only"
PLAN = """
only = "vetted"
requirements = ["{require}"]

[data]
path = "people.csv"

[columns]
age = {{ kind = "continuous", role = "key" }}
pay = {{ kind = "continuous", role = "key" }}

[[steps]]
method = "{method}"
columns = ["@key"]

[output]
path = "release.csv"
"""


@pytest.fixture
def people(tmp_path):
    frame = pl.DataFrame({"age": [20, 21, 30, 31, 40, 41] * 5, "pay": [1.0, 2, 3, 4, 5, 6] * 5})
    frame.write_csv(tmp_path / "people.csv")
    return frame


def planned(tmp_path, text=PLAN, **words):
    (tmp_path / "plan.toml").write_text(text.format(**{"method": "mdav", "require": "k >= 3", **words}))
    return "plan.toml"


@pytest.mark.parametrize("verb", ["check", "run", "gate", "release"])
@pytest.mark.parametrize("words", [{"method": "resampling"}, {"require": "power-mean >= 0.1"}])
def test_a_plan_that_says_so_is_refused(run, people, tmp_path, verb, words):
    code, _, err = run(verb, planned(tmp_path, **words))
    assert code == 2, err
    assert f"`{next(iter(words.values())).split()[0]}` {SAID}" in " ".join(err.split())
    assert not (tmp_path / "release.csv").exists()


@pytest.mark.parametrize("verb", ["run", "gate"])
def test_an_option_says_the_same_and_what_is_vetted_passes(run, people, tmp_path, verb):
    open_plan = PLAN.replace('only = "vetted"\n', "")
    code, _, err = run(verb, planned(tmp_path, open_plan, method="resampling"), "--only", "vetted")
    assert code == 2
    assert f"`resampling` {SAID}" in " ".join(err.split())
    code, _, err = run(verb, planned(tmp_path, open_plan), "--only", "vetted")
    assert code == 0, err


def test_what_is_required_of_a_file_is_looked_at(run, people):
    named = ("people.csv", "--role", "age=key", "--role", "pay=key", "--only", "vetted")
    code, _, err = run("gate", *named, "--require", "density-isolation <= 1")
    assert code == 2
    assert f"`density-isolation` {SAID}" in " ".join(err.split())
    assert run("gate", *named, "--require", "k >= 5")[0] == 0


def test_searches_and_comparisons(people):
    with pytest.raises(RefusedError, match=f"`power-mean` {SAID}"):
        sfumato.tune(people, "power-mean >= 0.1", only="vetted")
    with pytest.raises(RefusedError, match=f"`resampling` {SAID}"):
        sfumato.tune(people, "k >= 3", methods=["resampling"], only="vetted", trials=1)
    with pytest.raises(RefusedError, match=f"`resampling` {SAID}"):
        sfumato.compare(people, ["mdav", "resampling"], only="vetted")
    with pytest.raises(RefusedError, match=f"`analytical-loss` {SAID}"):
        sfumato.compare(people, ["mdav"], rank_by="analytical-loss", only="vetted")
    tuned = sfumato.tune(people, "k >= 3", methods=["mdav"], only="vetted", trials=1, repeats=1, seed=1)
    assert tuned.plan.only == "vetted"
    assert 'only = "vetted"' in tuned.plan.to_toml()


def test_a_plan_of_several_tables_hands_it_on():
    part = {"columns": {"x": {"kind": "continuous", "role": "key"}}, "data": {"path": "x.csv"}}
    spec = {"only": "vetted", "tables": {"a": {**part, "output": {"path": "a.csv"}}}}
    plan = Plan.from_dict(spec)
    assert plan.tables["a"].only == "vetted"
    assert Plan.from_dict(plan.to_dict()) == plan
    spec["tables"]["a"]["requirements"] = ["power-mean >= 0.1"]
    with pytest.raises(RefusedError, match=f"`power-mean` {SAID}"):
        Plan.from_dict(spec)
