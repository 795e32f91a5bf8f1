"""Several copies: files of their own, one trail, and risks of all of them together."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.recipes.demand import Demand
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out, load
from sfumato.releasing.copies import judge_copies, mean_of
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.read_release import read_release
from sfumato.releasing.verify import verify
from sfumato.study.evaluate import EvaluationCase

N = 200


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"age": rng.integers(18, 90, N), "income": rng.lognormal(8, 1, N).round(2)})
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path


def planned(folder, method="uncorrelated-noise", copies=3, requirements=("rank-linkage >= 0",), **more):
    said = {
        "data": {"path": "people.csv"},
        "columns": {
            "age": {"kind": "continuous", "role": "key"}, "income": {"kind": "continuous", "role": "key"},
        },
        "requirements": list(requirements),
        "steps": [{"method": method, "columns": ["age", "income"]}],
        "output": {"path": "out.csv", "copies": copies, **more},
    }  # fmt: skip
    return Plan.from_dict(said, folder=folder)


def test_each_copy_is_a_file_and_one_trail_tells_of_all(folder):
    plan = planned(folder)
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    written = write_release(decide(outcome, subject="it"), Destination(plan))
    names = sorted(path.name for path in written)
    assert names == ["out.1.csv", "out.2.csv", "out.3.csv", "out.private.json"]
    assert not (folder / "out.csv").exists()
    original, texts = load(plan), {(folder / name).read_text() for name in names[:3]}
    assert len(texts) == 3
    for copy, release in enumerate(outcome.parts[""].copies, start=1):
        read = read_release(original, folder / f"out.{copy}.csv", aligned=False)
        np.testing.assert_array_equal(read.source_rows, release.source_rows)
    assert json.loads((folder / "out.private.json").read_text())["copies"] == 3
    again = verify(folder / "out.private.json", Run())
    assert {again.files[name] for name in names[:3]} == {"identical"}


def test_the_first_copy_is_what_there_would_be_alone(folder):
    alone = carry_out(planned(folder, copies=1), Run(seed=LARGE + 1)).release.table.frame
    assert carry_out(planned(folder), Run(seed=LARGE + 1)).release.table.frame.equals(alone)


def test_a_synthetic_release_that_was_written_is_still_nobodys(folder):
    plan = planned(folder, "synthesis", copies=2)
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    write_release(decide(outcome, subject="it"), Destination(plan))
    assert read_release(load(plan), folder / "out.2.csv", aligned=False).synthetic
    assert not read_release(load(plan), folder / "people.csv", aligned=False).synthetic


def noisy(n=300, copies=4, scale=150.0):
    """Copies whose noise averages out, with a word that one of them has wrong."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"x": np.arange(n) * 10.0, "y": rng.permutation(n) * 10.0, "w": ["a", "b"] * (n // 2)}
    )
    schema = Schema(
        tuple(Column(name, Kind.NOMINAL if name == "w" else Kind.CONTINUOUS, Role.KEY) for name in "xyw")
    )
    original, made = Table(frame, schema), []
    for copy in range(copies):
        order = rng.permutation(n)
        moved = frame.with_columns(
            x=pl.col("x") + rng.normal(0, scale, n), y=pl.col("y") + rng.normal(0, scale, n),
            w=pl.lit("a") if copy == 0 else pl.col("w"),
        )  # fmt: skip
        made.append(Release.of(Table(moved, schema).take(order), source_rows=order))
    return original, made


def test_the_mean_of_copies_by_hand():
    original, made = noisy()
    mean = mean_of(made)
    np.testing.assert_array_equal(mean.source_rows, np.arange(300))
    aligned = [each.table.frame[np.argsort(each.source_rows)]["x"].to_numpy() for each in made]
    np.testing.assert_allclose(mean.table.frame["x"], np.mean(aligned, axis=0))
    assert mean.table.frame["w"].to_list() == original.frame["w"].to_list()  # most copies have it right
    assert mean_of([made[0], replace(made[1], origin=Origin.unknown())]) is None
    assert mean_of([made[0], Release.of(made[1].table.take(np.arange(9)), source_rows=np.arange(9))]) is None


def judged(made, original, text):
    demand = Demand(Requirement.parse(text), Scenario(columns=("x", "y")))
    return next(iter(judge_copies(made, EvaluationCase(original), [demand], Run(seed=LARGE + 1)).values()))


def test_who_has_all_copies_links_more_than_who_has_one():
    original, made = noisy()
    alone = [judged([each], original, "dbrl <= 0.9")[0].value for each in made]
    together, how = judged(made, original, "dbrl <= 0.9")
    assert together.value > 1.5 * max(alone)
    assert how == "the worst of 4 copies, and of all together"


def test_a_rehearsal_attacks_all_copies_together():
    """Each copy is of half the people as they are: whoever has three of them finds seven eighths."""

    def half(table, run):
        kept = np.flatnonzero(run.rng("half").random(len(table)) < 0.5)
        return Release.of(table.take(kept), source_rows=kept)

    original, _ = noisy()
    demand = Demand(Requirement.parse("membership <= 0.9 at 95%"), Scenario(columns=("x", "y")))
    case, run = EvaluationCase(original, control=0.4, make=half), Run(seed=LARGE + 1)
    copies = [half(original, run.at("copy", copy) if copy else run) for copy in range(3)]
    (one, _), (all_, how) = (
        next(iter(judge_copies(made, case, [demand], run).values())) for made in (copies[:1], copies)
    )
    assert one.value == pytest.approx(0.5, abs=0.12)
    assert all_.value == pytest.approx(1 - 0.5**3, abs=0.1)
    assert how == "the worst of 3 copies, and of all together"


def test_what_cannot_see_copies_together_says_so():
    original, made = noisy()
    score, how = judged(made, original, "k >= 2")
    assert score.value == 1
    assert how == "the worst of 4 copies, each measured alone"
    assert judged(made[:1], original, "k >= 2")[1] == ""


def test_a_copy_that_has_no_number_meets_nothing():
    original, made = noisy()
    score, _ = judged([made[0], replace(made[1], origin=Origin.synthetic())], original, "k >= 2")
    assert np.isnan(score.value)


@pytest.mark.parametrize("copies", [0, -1, 1001, 10**9, True, 2.5, "3"])
def test_copies_are_a_number(folder, copies):
    with pytest.raises(PlanError, match="copies"):
        planned(folder, copies=copies)


def test_copies_are_refused_where_they_cannot_go(folder):
    with pytest.raises(PlanError, match="files"):
        Destination(planned(folder, path="sqlite:///out.db?table=t")).check()
    part = planned(folder).to_dict()
    with pytest.raises(PlanError, match="linked"):
        Plan.from_dict({"tables": {"one": part}}, folder=folder)


def test_copies_of_a_private_release_spend_as_many_budgets(folder):
    plan = planned(folder, "private-laplace", copies=3, requirements=())
    bounded = [replace(each, lower=0.0, upper=1e5) for each in plan.schema.columns]
    plan = replace(plan, schema=plan.schema.replace(*bounded))
    part = next(iter(carry_out(plan, Run(seed=LARGE + 1)).parts.values()))
    assert part.to_dict()["budget"]["epsilon"] == pytest.approx(3)
    assert any("together spend ε = 3" in note for note in part.notes)
