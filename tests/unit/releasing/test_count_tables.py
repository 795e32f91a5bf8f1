"""Tables of counts beside a release: of the protected file for nothing, of the original judged with it."""

from collections import Counter
from itertools import permutations

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.errors import PlanError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.verify import verify

AGE_ALONE = {"name": "by-age", "columns": ["age"], "counts": "original"}
AGE_AND_ILLNESS = {"name": "illness", "columns": ["age", "ill"], "counts": "original"}


def planned(folder, frame, *tables, requirements=("k >= 2",), method="mondrian", **more):
    frame.write_csv(folder / "people.csv")
    numeric = {"kind": "continuous", "role": "key"}
    spec = {
        "data": {"path": "people.csv"},
        "columns": {"age": numeric, "area": numeric, "ill": {"kind": "nominal", "role": "sensitive"}},
        "requirements": list(requirements),
        "steps": [{"method": method, "columns": ["age", "area"], "parameters": more}],
        "output": {"path": "out.csv"},
        "release": {"tables": list(tables)},
    }
    return Plan.from_dict(spec, folder=folder)


def decided(plan):
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    return decide(outcome, subject="it"), outcome.parts[""]


def of_rule(decision, rule="counts-disclose"):
    return [each.message for each in decision.findings if each.rule == rule]


def people(seed, n=6):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {"age": rng.integers(0, 3, n), "area": rng.integers(0, 3, n), "ill": rng.choice(["x", "y", "z"], n)}
    )


def chances(keys, classes, counted):
    """By record and person, how likely the record is the person's, over all originals that fit what left."""
    n, fits, chance = len(keys), 0, np.zeros((len(keys), len(keys)))
    ranges = {c: np.array([keys[i] for i in range(n) if classes[i] == c]) for c in set(classes)}
    published = Counter(counted(key, row) for row, key in enumerate(keys))
    for order in permutations(range(n)):
        world = [keys[i] for i in order]
        inside = all(
            (ranges[classes[row]].min(0) <= key).all() and (key <= ranges[classes[row]].max(0)).all()
            for row, key in enumerate(world)
        )
        if inside and Counter(counted(key, row) for row, key in enumerate(world)) == published:
            fits += 1
            for row, key in enumerate(world):
                owners = [i for i in range(n) if keys[i] == key]
                chance[row, owners] += 1 / len(owners)
    return chance / fits


@pytest.mark.parametrize("seed", [1, 4])
def test_counts_of_known_columns_leave_every_chance_of_finding_somebody_below_one_in_k(tmp_path, seed):
    frame = people(seed)
    decision, part = decided(planned(tmp_path, frame, AGE_ALONE, k=2))
    few = frame["age"].value_counts()["count"].min() < 2
    assert bool(of_rule(decision)) == few
    keys = list(frame.select("age", "area").iter_rows())
    shown = part.release.first.frame.select("age", "area").rows()
    classes = [str(shown[place]) for place in np.argsort(part.release.source_rows)]
    assert chances(keys, classes, lambda key, _: key[0]).max() <= 1 / 2 + 1e-12


def test_counts_with_an_illness_can_tell_it_and_are_then_refused(tmp_path):
    """Two of a class of four are of age 30 and the counts say that all of that age have x."""
    frame = pl.DataFrame(
        {"age": [30, 30, 31, 31] * 2, "area": [1] * 4 + [2] * 4, "ill": ["x", "x", "y", "y"] * 2}
    )
    asked = ("k >= 2", "l >= 2")
    decision, _ = decided(planned(tmp_path, frame, AGE_ALONE, requirements=asked, k=4, also=["l >= 2"]))
    assert decision.may_leave
    decision, part = decided(
        planned(tmp_path, frame, AGE_AND_ILLNESS, requirements=asked, k=4, also=["l >= 2"])
    )
    (missed,) = of_rule(decision, "requirement-missed")
    assert "with the tables of counts" in missed
    assert [each.score.value for each in part.beside.judgements] == [2.0, 1.0]
    coarse = pl.DataFrame({"age": [30, 31] * 6, "area": [1] * 6 + [2] * 6, "ill": ["x", "x", "y", "y"] * 3})
    decision, part = decided(
        planned(tmp_path, coarse, AGE_AND_ILLNESS, requirements=asked, k=6, also=["l >= 2"])
    )
    rows = zip(part.release.first.frame.select("age", "area").rows(), part.release.source_rows, strict=True)
    joined = Counter((str(shown), coarse["age"][int(row)]) for shown, row in rows)
    assert decision.may_leave
    assert part.beside.judgements[0].score.value == min(joined.values())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"requirements": ("dbrl <= 0.9",)}, "equivalence classes"),
        ({"requirements": ("k-anonymity(missing=any) >= 2",)}, "missing keys"),
        ({"method": "uncorrelated-noise"}, "draws at random"),
    ],
)
def test_what_cannot_be_judged_is_refused(tmp_path, change, why):
    decision, _ = decided(planned(tmp_path, people(1, 40), AGE_ALONE, **change))
    assert any(why in each for each in of_rule(decision))


def test_left_out_records_are_not_counted_by_difference(tmp_path):
    plan = planned(tmp_path, people(1, 40), AGE_ALONE)

    def all_but_one(table, _run):
        rows = np.arange(len(table) - 1)
        return Release.of(table.take(rows), source_rows=rows)

    part = carry_out(plan, Run(seed=LARGE + 1), protect=all_but_one).parts[""]
    assert "1 record that the release leaves out" in part.beside.faults[0]


def test_counts_are_written_beside_and_made_again(tmp_path):
    frame, own = people(3, 60), {"name": "protected", "columns": ["ill", "age"]}
    plan = planned(tmp_path, frame, own, AGE_ALONE, k=3)
    assert Plan.from_dict(plan.to_dict(), folder=tmp_path) == plan
    decision, part = decided(plan)
    written = {path.name for path in write_release(decision, Destination(plan))}
    assert {"out.csv", "out.protected.csv", "out.by-age.csv"} <= written
    table = pl.read_csv(tmp_path / "out.by-age.csv")
    assert table.equals(frame.group_by("age").len("records").sort("age").cast(table.schema))
    released = pl.read_csv(tmp_path / "out.csv").group_by("ill", "age").len("records").sort("ill", "age")
    assert pl.read_csv(tmp_path / "out.protected.csv").sort("ill", "age").rows() == released.rows()
    assert set(part.to_dict()["count_tables"]) == {"protected", "by-age"}
    assert verify(tmp_path / "out.private.json", Run()).files["out.by-age.csv"] == "identical"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"name": "../x", "columns": ["age"]}, "letters, digits"),
        ({"name": "x", "columns": []}, "one or more"),
        ({"name": "x", "columns": ["agee"]}, "not declared"),
    ],
)
def test_a_table_that_cannot_be_made_is_a_fault_of_the_plan(tmp_path, table, why):
    with pytest.raises(PlanError, match=why):
        planned(tmp_path, people(1), table)
