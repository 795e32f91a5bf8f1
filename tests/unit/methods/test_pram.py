import json

import numpy as np
import polars as pl
import pytest

from sfumato.cli import _exit_code
from sfumato.core.release import Release
from sfumato.data.rules import Rule
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, RefusedError
from sfumato.front import protect
from sfumato.methods.pram import Pram, corrected_counts
from sfumato.methods.suppression import RecordSuppression
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

JOBS = pl.DataFrame({"job": ["cook"] * 6 + ["smith"] * 3 + [None] + ["king"]})


def _table(rows, names=("column", "from", "to", "probability")):
    return pl.DataFrame(rows, schema=list(names), orient="row")


def _matrix(release: Release, column: str) -> pl.DataFrame:
    return release.resources["transitions"].frame.filter(pl.col("column") == column)


def test_keeps_with_the_chance_asked_and_goes_to_others_alike():
    release = protect(JOBS, Pram(retain=0.4, invariant=False), columns=["job"], seed=1)
    rows = _matrix(release, "job")
    stays = rows.filter(pl.col("from") == pl.col("to"))["probability"].to_list()
    moves = rows.filter(pl.col("from") != pl.col("to"))["probability"].to_list()
    assert stays == pytest.approx([0.4] * 3)
    assert moves == pytest.approx([0.3] * 6)


def test_missing_stays_missing_and_nothing_else_becomes_so():
    release = protect(JOBS, Pram(retain=0.0), columns=["job"], seed=1)
    assert release.data["job"].is_null().to_list() == JOBS["job"].is_null().to_list()


def test_missing_parts_of_a_combination_stay_missing():
    frame = pl.DataFrame({"a": ["x", "y", None, None, "x"] * 8, "b": ["1", "2", "1", "2", None] * 8})
    release = protect(frame, Pram(retain=0.1, compound=True, invariant=False), columns=["a", "b"], seed=2)
    assert release.data.select(pl.all().is_null()).equals(frame.select(pl.all().is_null()))
    pairs = set(release.data.drop_nulls().iter_rows())
    assert pairs <= {("x", "1"), ("y", "2")}  # only combinations that occur


def test_a_matrix_is_used_as_it_is():
    rows = [("job", "cook", "smith", 1.0), ("job", "smith", "king", 1.0), ("job", "king", "king", 1.0)]
    release = protect(
        JOBS, Pram(matrix="own", invariant=False), columns=["job"], resources={"own": _table(rows)}, seed=1
    )
    assert release.data["job"].to_list() == ["smith"] * 6 + ["king"] * 3 + [None, "king"]


def test_what_a_matrix_gives_no_chance_does_not_happen_by_a_second_stage():
    rows = [("job", a, b, 0.5) for a, b in ("ck", "cs", "kc", "kk", "sc", "ss")]
    jobs = pl.DataFrame({"job": [*"cccckks"] * 30})
    release = protect(
        jobs, Pram(matrix="own", invariant=True), columns=["job"], resources={"own": _table(rows)}, seed=1
    )
    found = set(_matrix(release, "job").select("from", "to").iter_rows())
    assert {("k", "s"), ("s", "k")} & found == set()
    assert ("c", "k") in found
    assert Pram(matrix="own", invariant=None) == Pram(matrix="own")


def test_a_matrix_may_lead_to_a_category_that_nobody_has():
    rows = [("age", 1, 3, 1.0), ("age", 2, 2, 1.0), ("age", 3, 3, 1.0)]
    table = Table(pl.DataFrame({"age": [1, 2, 2]}), Schema((Column("age", Kind.NOMINAL, Role.KEY),)))
    release = protect(table, Pram(matrix="own", invariant=False), resources={"own": _table(rows)}, seed=1)
    assert release.table.frame["age"].to_list() == [3, 2, 2]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([("job", "cook", "cook", 1.0), ("job", "smith", "smith", 1.0)], "begin at every category"),
        ([("job", w, w, 0.9) for w in ("cook", "smith", "king")], "must sum to 1"),
        ([("job", w, "queen", 1.0) for w in ("cook", "smith", "king")], "lead elsewhere"),
        ([("job", w, w, 1.5) for w in ("cook", "smith", "king")], "from 0 to 1"),
        ([("job", w, w, 0.5) for w in ("cook", "smith", "king") for _ in "12"], "listed twice"),
        ([("town", "a", "a", 1.0)], "columns that pram changes"),
    ],
)
def test_a_matrix_that_cannot_be_used_is_refused_without_a_value(rows, says):
    with pytest.raises(DataError, match=says) as caught:
        protect(JOBS, Pram(matrix="own"), columns=["job"], resources={"own": _table(rows)})
    assert not any(word in str(caught.value) for word in ("cook", "smith", "king", "queen"))


def test_a_matrix_without_its_columns_is_refused():
    with pytest.raises(RefusedError, match="column, from, to, probability"):
        protect(JOBS, Pram(matrix="own"), columns=["job"], resources={"own": JOBS})


def test_too_many_categories_are_refused():
    frame = pl.DataFrame({"id": [f"n{i}" for i in range(2_001)]})
    with pytest.raises(RefusedError, match="at most 2,000"):
        protect(frame, Pram(), columns=["id"])


def test_a_rule_between_protected_columns_makes_them_one():
    frame = pl.DataFrame({"sex": ["m", "f", "f", "m"] * 20, "pregnant": ["no", "yes", "no", "no"] * 20})
    schema = Schema(
        (Column("sex", Kind.NOMINAL, Role.KEY), Column("pregnant", Kind.NOMINAL, Role.KEY)),
        rules=(Rule("sex <> 'm' OR pregnant = 'no'"),),
    )
    release = protect(Table(frame, schema), Pram(retain=0.1), seed=1)
    assert set(release.resources["transitions"].frame["column"]) == {"pregnant+sex"}
    assert ("m", "yes") not in set(release.table.frame.iter_rows())
    assert not release.table.frame.equals(frame)


def test_counts_are_corrected_by_what_the_rules_allowed():
    rng = np.random.default_rng(1)
    age = rng.integers(5, 60, 4_000)
    marital = np.where(
        age < 16, "single", rng.choice(["single", "married", "widowed"], 4_000, p=[0.1, 0.7, 0.2])
    )
    schema = Schema(
        (Column("age", Kind.CONTINUOUS, Role.KEY), Column("marital", Kind.NOMINAL, Role.KEY)),
        rules=(Rule("age >= 16 OR marital = 'single'"),),
    )
    table = Table(pl.DataFrame({"age": age, "marital": marital}), schema)
    release = protect(table, Pram(retain=0.5, invariant=False), columns=["marital"], seed=4)
    assert release.table.schema.rules[0].violations(release.table.frame) == 0
    found = corrected_counts(release).sort("category")
    true = table.frame["marital"].value_counts().sort("marital")["count"].to_numpy()
    off = np.abs(found["corrected"].to_numpy() - true) / np.sqrt(found["variance"].to_numpy())
    assert (off < 4).all()
    assert (np.abs(found["released"].to_numpy() - true) > 100).any()


def test_a_matrix_that_loses_everything_is_not_inverted():
    frame = pl.DataFrame({"job": ["a", "b"] * 4})
    release = protect(frame, Pram(retain=0.5, invariant=False), columns=["job"], seed=1)
    with pytest.raises(DataError, match="a singular one"):
        corrected_counts(release)


def test_counts_after_another_step_on_the_column_are_not_corrected():
    frame = JOBS.with_columns(town=pl.Series([*"aabbaabbaab"]))
    steps = (
        Step(Pram(), ("job",)),
        Step(Pram(retain=0.9), ("town",)),
        Step(RecordSuppression(k=2), ("town",)),
    )
    assert set(corrected_counts(protect(frame, Recipe(steps[:2]), seed=1))["column"]) == {"job", "town"}
    with pytest.raises(DataError, match="a later step on `job`"):
        corrected_counts(protect(frame, Recipe((steps[0], steps[0])), seed=1))
    with pytest.raises(DataError, match="a later step on `town`"):
        corrected_counts(protect(frame, Recipe(steps), seed=1))


def test_without_a_matrix_nothing_is_corrected():
    with pytest.raises(DataError, match="with its private matrix"):
        corrected_counts(Release.unchanged(Table(JOBS, Schema((Column("job", Kind.NOMINAL),)))))


def test_weights_count():
    frame = pl.DataFrame({"job": [*"aab"] * 400, "w": [1.0, 2.0, 9.0] * 400})
    schema = Schema((Column("job", Kind.NOMINAL, Role.KEY), Column("w", Kind.CONTINUOUS, Role.WEIGHT)))
    release = protect(Table(frame, schema), Pram(retain=0.5), columns=["job"], seed=2)
    found = corrected_counts(release)
    off = (found["corrected"] - pl.Series([1200.0, 3600.0])).abs() / found["variance"].sqrt()
    assert (off < 4).all()


SKILLS = pl.DataFrame({"job": [*"aabbbc"] * 200, "land": [*"nnnsss"] * 200, "home": [*range(400)] * 3})


@pytest.mark.parametrize("settings", [{"within": ("land",)}, {"together": "home", "within": ("land",)}])
def test_strata_and_households_are_corrected_as_if_each_were_alone(settings):
    """Estimates are near the truth by their own standard errors, which are those of what changed as one."""
    frame = SKILLS.sort("home", maintain_order=True).with_columns(pl.col("job", "land").first().over("home"))
    true = frame["job"].value_counts().sort("job")["count"].to_numpy()
    step = Step(Pram(retain=0.6, invariant=False), ("job",), **settings)
    drawn = [
        corrected_counts(protect(frame, Recipe((step,)), seed=seed)).sort("category") for seed in range(40)
    ]
    found = np.array([each["corrected"].to_numpy() for each in drawn])
    spread = np.sqrt(np.mean([each["variance"].to_numpy() for each in drawn], axis=0))
    assert (np.abs(found.mean(axis=0) - true) < 4 * spread / np.sqrt(40)).all()
    assert found.std(axis=0) == pytest.approx(spread, rel=0.5)


def test_a_household_changes_together_only_if_rules_allow_all_of_it_the_same():
    """Who speaks for a household may go where its children may not."""
    frame = pl.DataFrame(
        {
            "home": np.repeat(np.arange(60), 2),
            "age": [40, 9, 40, 9, 40, 40] * 20,
            "area": ["city", "city", "farm", "farm", "camp", "camp"] * 20,
        }
    )
    columns = (
        Column("home", Kind.NOMINAL, Role.HOUSEHOLD),
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("area", Kind.NOMINAL, Role.KEY),
    )
    rule = Rule("age >= 18 OR area <> 'camp'")
    table = Table(frame, Schema(columns, rules=(rule,)))
    alone = protect(table, Recipe((Step(Pram(retain=0.2), ("area",)),)), seed=1)
    assert rule.violations(alone.table.frame) == 0
    step = Step(Pram(retain=0.2), ("area",), together="home")
    with pytest.raises(DataError, match="`age` must be equal in all records of a `home`"):
        protect(table, Recipe((step,)), seed=1)
    grown = table.with_values("age", pl.Series("age", np.repeat([30, 9, 40], 2).tolist() * 20))
    release = protect(grown, Recipe((step,)), seed=1)  # a household of children, and two of adults
    assert rule.violations(release.table.frame) == 0
    assert release.table.frame["area"].to_list()[::2] == release.table.frame["area"].to_list()[1::2]


def test_a_stratum_that_a_later_step_changes_is_lost():
    steps = Step(Pram(), ("job",), within=("land",)), Step(Pram(), ("land",))
    with pytest.raises(DataError, match="a later step on `land`"):
        corrected_counts(protect(SKILLS, Recipe(steps), seed=1))


def test_each_step_confides_its_matrices_by_stratum_to_the_trail(tmp_path):
    source, plan, out = tmp_path / "skills.csv", tmp_path / "plan.toml", tmp_path / "out.csv"
    SKILLS.select("job", "land").write_csv(source)
    steps = Step(Pram(retain=0.9), ("job",), within=("land",)), Step(Pram(), ("land",))
    schema = Schema(tuple(Column(name, Kind.NOMINAL, Role.KEY) for name in ("job", "land")))
    plan.write_text(
        Plan(Source("skills.csv"), schema, recipe=Recipe(steps), output=Output(path="out.csv")).to_toml()
    )
    assert _exit_code(["run", str(plan), "--unjudged"]) == 0
    said = json.loads(out.with_suffix(".private.json").read_text())["fitted"]
    assert [(each["step"], each.get("stratum")) for each in said] == [
        (1, {"land": "n"}), (1, {"land": "s"}), (2, None),
    ]  # fmt: skip
    assert set(said[0]["transitions"]["from"]) == {"a", "b"}


def test_the_same_again_on_other_records():
    release = protect(JOBS, Pram(retain=0.3), columns=["job"], seed=1)
    again = protect(JOBS, release.fitted, columns=["job"], resources=release.resources, seed=9)
    assert _matrix(again, "job").equals(_matrix(release, "job"))


def test_the_matrix_is_in_the_private_trail_and_nowhere_else(tmp_path, capfd):
    source, out = tmp_path / "jobs.csv", tmp_path / "out.csv"
    JOBS.write_csv(source)
    words = ["protect", "pram", str(source), "--columns", "job", "--unjudged", "--out", str(out)]
    assert _exit_code(words) == 0
    trail = json.loads(out.with_suffix(".private.json").read_text())
    assert trail["fitted"][0]["step"] == 1
    assert set(trail["fitted"][0]["transitions"]) == {"column", "where", "from", "to", "probability"}
    assert "transitions" not in "".join(capfd.readouterr())
