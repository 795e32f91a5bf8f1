"""Releases of several tables on their one way out: all files or none, and back again."""

import json

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato import Column, Kind, Recipe, Role, Schema, Step, assess
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.errors import ParameterError, PlanError, RequirementError, SfumatoError
from sfumato.methods import Anatomy, Angelisation, Bucketisation, Slicing
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out, load
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.read_release import read_release

N = 120
SCHEMA = Schema(
    (
        Column("name", Kind.NOMINAL, Role.IDENTIFIER),
        Column("age", Kind.CONTINUOUS, Role.KEY, integer=True),
        Column("area", Kind.NOMINAL, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT),
    )
)


@pytest.fixture
def plan(tmp_path):
    """A plan that takes illnesses apart from people."""
    rng = np.random.default_rng(1)
    pl.DataFrame(
        {
            "name": [f"Person {i}" for i in range(N)],
            "age": rng.integers(18, 90, N),
            "area": rng.choice(["N", "S", "W"], N),
            "ill": [f"ill{i}" for i in rng.permutation(np.arange(N) % 5)],
            "w": np.ones(N),
        }
    ).write_csv(tmp_path / "people.csv")

    def make(method, require="l >= 3", path="out.csv", **output):
        return Plan(
            data=Source("people.csv"),
            schema=SCHEMA,
            recipe=Recipe((Step(method),)),
            requirements=(Requirement.parse(require),),
            output=Output(path=path, **output),
            folder=tmp_path,
        )

    return make


def written(plan, **how):
    run = Run(seed=LARGE + 1)
    destination = Destination(plan, **how)
    destination.check()
    outcome = carry_out(plan, run)
    return outcome, write_release(decide(outcome, subject="it"), destination)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (Anatomy(l=3), ["out.qit.csv", "out.st.csv"]),
        (Anatomy(l=3, counts=True), ["out.qit.csv", "out.st.csv"]),
        (Angelisation(l=3, k=4), ["out.gt.csv", "out.bt.csv"]),
        (Bucketisation(l=3), ["out.csv"]),
        (Anatomy(l=3, permute=True), ["out.qit.csv", "out.st.csv"]),
        (Slicing(l=3, slices=3), ["out.slice1.csv", "out.slice2.csv", "out.slice3.csv"]),
        (Slicing(l=3, overlap=1), ["out.slice1.csv", "out.slice2.csv"]),
    ],
)
def test_each_table_is_a_file_and_all_of_them_are_read_back(plan, tmp_path, method, names):
    made = plan(method)
    outcome, files = written(made)
    assert [each.name for each in files if each.suffix == ".csv" and "labels" not in each.name] == names
    assert not any(
        "name" in pl.read_csv(tmp_path / name).columns for name in names
    )  # identifiers stay behind
    asked, original = ["k", "l", "t", "attribute-disclosure", "query-error", "dbrl"], load(made)
    scores = assess(original, outcome.release, asked, seed=1)
    for name in names:  # whichever of them is named, the private trail knows the others
        again = assess(original, read_release(original, str(tmp_path / name), aligned=False), asked, seed=1)
        for each in asked:
            assert again[each].value == pytest.approx(scores[each].value)
            if scores[each].by_record is not None:
                np.testing.assert_allclose(again[each].by_record, scores[each].by_record)


def test_files_are_written_together_or_not_at_all(plan, tmp_path):
    (tmp_path / "out.st.csv").write_text("mine")
    with pytest.raises(SfumatoError, match=r"out\.st\.csv"):
        written(plan(Anatomy(l=3)))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.st.csv", "people.csv"]
    assert (tmp_path / "out.st.csv").read_text() == "mine"
    (tmp_path / "out.st.csv").unlink()
    (tmp_path / "out.csv").write_text("an earlier release, which would be taken for this one")
    with pytest.raises(SfumatoError, match=r"out\.csv"):
        written(plan(Anatomy(l=3)))
    with pytest.raises(RequirementError, match="not met"):
        written(plan(Anatomy(l=3), require="k >= 3"), overwrite=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.csv", "people.csv"]
    with pytest.raises(PlanError, match="must be written to files"):
        written(plan(Anatomy(l=3), path="sqlite:all.db?table=t"))


def test_a_file_that_was_changed_or_is_gone_is_not_read_for_what_it_was(plan, tmp_path):
    made = plan(Anatomy(l=3))
    written(made)
    first, second = str(tmp_path / "out.qit.csv"), tmp_path / "out.st.csv"
    second.write_text(second.read_text().replace("ill1", "ill2"))
    with pytest.raises(ParameterError, match="unchanged since both were written, got: another"):
        read_release(load(made), first, aligned=False)
    second.unlink()
    with pytest.raises(ParameterError, match="got: none"):
        read_release(load(made), first, aligned=False)


def test_a_bucket_that_is_dropped_leaves_no_promise(plan):
    """Values in one table without their bucket are read as if each were its record's."""
    alone = carry_out(plan(Bucketisation(l=3), drop=("bucket",)), Run(seed=LARGE + 1))
    assert alone.judgements[0].score.value == 1
    assert not alone.is_met
    parts = carry_out(
        plan(Anatomy(l=3), drop=("bucket",)), Run(seed=LARGE + 1)
    )  # all values of all: one bucket
    assert parts.judgements[0].score.value == 5
    assert carry_out(
        plan(Anatomy(l=3), require="uniqueness <= 0.9", drop=("ill",)), Run(seed=LARGE + 1)
    ).is_met
    with pytest.raises(PlanError, match="cannot be repaired"):
        carry_out(plan(Anatomy(l=3), repair=True), Run(seed=LARGE + 1))


def test_the_trail_and_the_json_say_what_the_files_are(plan, tmp_path):
    outcome, _ = written(plan(Anatomy(l=3, counts=True)))
    said = outcome.to_dict()
    assert said["files"]["qit"] == {"records": N, "columns": ["age", "area", "w", "bucket"]}
    assert said["files"]["st"]["columns"] == ["bucket", "ill", "count"]
    kept = json.loads((tmp_path / "out.private.json").read_text())
    assert kept["joined"]["apart"] == [["ill"]]
    assert len(kept["rows"].split()) == N
    assert sorted(map(int, kept["joined"]["files"]["st"]["rows"].split())) == list(range(N))  # of each count
    lost = {each.column: each for each in next(iter(outcome.parts.values())).lost}
    assert lost["ill"].fate == "changed"
    assert lost["age"].fate == "untouched"
    assert set(outcome.release.data) == {"qit", "st"}
