"""A series of releases from files: plans, trails, what is refused, what the owner is told, and verifying."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato import front
from sfumato.core.run import Run
from sfumato.errors import DataError, PlanError, ReadError, SfumatoError, WriteError
from sfumato.recipes.plan import Plan
from sfumato.recipes.profile import Profile
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide, decide_plan
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.trail import randomness_of
from sfumato.releasing.verify import verify

PLAN = """
requirements = ["averaging-risk <= 0.99", "dbrl <= 0.99"]
[data]
path = "{data}"
[columns]
who = {{ kind = "nominal", role = "person", pseudonym = "person" }}
pay = {{ kind = "continuous", role = "key" }}
debt = {{ kind = "continuous", role = "key" }}
ill = {{ kind = "nominal", role = "sensitive" }}
[[steps]]
method = "uncorrelated-noise"
columns = ["pay", "debt"]
parameters = {{ deviation = 60 }}
[series]
{series}
[output]
path = "{out}/release.csv"
"""


def register(folder, name, who, *, seed=1, add=0.0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, 200))
    frame = pl.DataFrame(
        {
            "who": who,
            "pay": np.round(values[0][who] + add, 3),
            "debt": np.round(values[0][who] + values[1][who], 3),
            "ill": np.array(["flu", "gout", "cold"])[np.asarray(who) % 3],
        }
    )
    frame.write_csv(folder / name)


def planned(folder, number, *earlier, more="", text=PLAN):
    listed = ", ".join(f'"{each}"' for each in earlier)
    said = f"earlier = [{listed}]\n{more}" if earlier else more
    place = folder / f"plan{number}.toml"
    place.write_text(text.format(data=f"wave{number}.csv", series=said, out=f"out{number}"))
    (folder / f"out{number}").mkdir(exist_ok=True)
    return Plan.read(place)


def released(plan, seed):
    outcome = carry_out(plan, Run(seed=LARGE + seed))
    write_release(decide(outcome, subject="it"), Destination(plan))
    return outcome


@pytest.fixture
def waves(tmp_path):
    register(tmp_path, "wave1.csv", list(range(100)))
    register(tmp_path, "wave2.csv", list(range(119, 9, -1)))
    register(tmp_path, "wave3.csv", list(range(20, 130)))
    released(planned(tmp_path, 1), 1)
    return tmp_path


def values(folder, number, outcome):
    """The noise of everyone in a release, by person."""
    original = pl.read_csv(folder / f"wave{number}.csv")
    rows = outcome.release.source_rows
    noise = outcome.release.first.frame["pay"].to_numpy() - original["pay"].to_numpy()[rows]
    return dict(zip(original["who"].to_numpy()[rows].tolist(), noise, strict=True))


def test_people_keep_their_noise_over_three_releases(waves):
    chance = randomness_of(waves / "out1" / "release.private.json")
    first = carry_out(planned(waves, 1), Run(randomness=chance))
    second = released(planned(waves, 2, "out1"), 2)
    third = released(planned(waves, 3, "out1", "out2/release.private.json"), 3)
    noise = [values(waves, number, each) for number, each in enumerate((first, second, third), start=1)]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        common = noise[one].keys() & noise[other].keys()
        assert len(common) > 70
        for who in common:
            assert noise[one][who] == pytest.approx(noise[other][who], abs=2e-3)  # values were rounded
    assert third.parts[""].member.earlier == 2
    assert third.parts[""].member.persons_in_common == 100


def test_a_chain_of_trails_hands_the_secret_on(waves):
    released(planned(waves, 2, "out1"), 2)
    third = released(planned(waves, 3, "out2"), 3)
    chance = randomness_of(waves / "out1" / "release.private.json")
    first = carry_out(planned(waves, 1), Run(randomness=chance))
    before, after = values(waves, 1, first), values(waves, 3, third)
    for who in before.keys() & after.keys():
        assert before[who] == pytest.approx(after[who], abs=2e-3)


def test_the_owner_is_told_and_nothing_private_is_among_it(waves):
    outcome = released(planned(waves, 2, "out1"), 2)
    said = outcome.to_dict()["in_series"]
    assert said["earlier"] == 1
    assert said["persons_in_common"] == 90
    assert [each["measure"] for each in said["measures"]] == [
        "intersection-risk", "averaging-risk", "difference-risk", "m-invariance", "counterfeit-inference",
    ]  # fmt: skip
    averaging = said["measures"][1]
    assert averaging["value"] <= averaging["baseline"] + 0.02
    trail = json.loads((waves / "out2" / "release.private.json").read_text())
    secret = trail["series"]["secret"]
    assert secret not in json.dumps(said)
    assert secret not in repr(outcome)
    assert secret not in (waves / "out2" / "release.csv").read_text()


def test_every_release_of_a_series_verifies(waves):
    released(planned(waves, 2, "out1"), 2)
    for number in (1, 2):
        found = verify(waves / f"out{number}" / "release.private.json", Run(seed=9))
        assert found.files == {"release.csv": "identical"}
    (waves / "out1").rename(waves / "elsewhere")
    found = verify(waves / "out2" / "release.private.json", Run(seed=9))
    assert found.files == {"release.csv": "unchanged"}
    assert "earlier release" in found.notes[0]


def test_requirements_on_several_releases_judge_and_gate(waves):
    plan = planned(waves, 2, "out1", text=PLAN.replace("averaging-risk <= 0.99", "averaging-risk <= 0.001"))
    assert carry_out(plan, Run(seed=2)).unmet == 1
    verdict = decide_plan(plan, Run(seed=2), subject="plan")
    assert [each.rule for each in verdict.findings] == ["requirement-missed"]
    assert decide_plan(planned(waves, 2, "out1"), Run(seed=2), subject="plan").may_leave


def test_the_original_of_an_earlier_release_may_be_gone(waves):
    (waves / "wave1.csv").unlink()
    assert carry_out(planned(waves, 2, "out1"), Run(seed=2)).parts[""].member.persons_in_common == 90


def test_a_release_outside_of_a_series_may_begin_one(waves):
    alone = PLAN.replace("[series]\n{series}\n", "").replace("averaging-risk <= 0.99", "exact-match <= 0.9")
    released(planned(waves, 9, text=alone.replace("{data}", "wave1.csv")), 5)
    outcome = carry_out(planned(waves, 2, "out9"), Run(seed=2))
    assert outcome.parts[""].member.persons_in_common == 90
    assert any("made outside of the series" in note for note in outcome.parts[""].notes)
    register(waves, "wave1.csv", list(range(50)))
    with pytest.raises(ReadError, match="outside"):
        carry_out(planned(waves, 2, "out9"), Run(seed=2))


def test_what_changes_out_of_the_usual_is_told(waves):
    frame = pl.read_csv(waves / "wave2.csv")
    outlier = pl.when(pl.col("who") == 30).then(500.0).otherwise(pl.col("pay"))
    frame.with_columns(pay=outlier, debt=-outlier).write_csv(waves / "wave2.csv")
    notes = carry_out(planned(waves, 2, "out1"), Run(seed=2)).parts[""].member.notes
    assert any("1 record with an outlying change of `pay`" in note for note in notes)
    assert any("the correlation of `debt` and `pay` moved" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (('role = "person"', 'role = "key"'), PlanError, "no column numbers the persons"),
        (("[series]", "[series]\nearlier = [3]"), PlanError, "each item of `earlier` must be a text"),
        (("[series]", '[series]\nrecord = "visit"'), PlanError, "not declared: `visit`"),
        (("[series]", '[series]\nbefore = ["a"]'), PlanError, "setting `before`"),
        (("[series]", '[series]\nearlier = ["nowhere"]'), ReadError, "private trail"),
        (("uncorrelated-noise", "rank-swapping"), SfumatoError, "cannot keep the noise of each person"),
    ],
)
def test_bad_plans_are_one_sentence(waves, change, error, message):
    text = PLAN.replace(*change)
    if change[1] == "rank-swapping":
        text = text.replace("parameters = {{ deviation = 60 }}\n", "")
    with pytest.raises(error, match=message) as caught:
        carry_out(planned(waves, 2, text=text), Run(seed=1))
    assert "\n" not in caught.value.message or "fault" in caught.value.message


def test_wrong_folders_are_one_sentence(waves):
    released(planned(waves, 2, "out1"), 2)
    (waves / "out1" / "second.private.json").write_text((waves / "out2" / "release.private.json").read_text())
    with pytest.raises(PlanError, match="one release each, got: 2"):
        carry_out(planned(waves, 3, "out1"), Run(seed=1))
    (waves / "out1" / "second.private.json").unlink()
    with (waves / "out1" / "release.csv").open("a") as file:
        file.write("x,1,1,flu\n")
    with pytest.raises(ReadError, match="is changed"):
        carry_out(planned(waves, 3, "out1"), Run(seed=1))
    (waves / "out1" / "release.csv").unlink()
    with pytest.raises(ReadError, match="is missing"):
        carry_out(planned(waves, 3, "out1"), Run(seed=1))


def test_two_series_are_not_one(waves):
    released(planned(waves, 2), 2)
    with pytest.raises(PlanError, match="of one series"):
        carry_out(planned(waves, 3, "out1", "out2"), Run(seed=1))


def test_an_earlier_release_is_never_overwritten(waves):
    plan = planned(waves, 2, "out1")
    plan = replace(plan, output=replace(plan.output, path="out1/release.csv"))
    with pytest.raises(WriteError, match="original"):
        Destination(plan, overwrite=True).check()


def test_a_person_without_a_number_is_refused(waves):
    frame = pl.read_csv(waves / "wave2.csv").with_columns(pl.col("who").replace(30, None))
    frame.write_csv(waves / "wave2.csv")
    with pytest.raises(DataError, match="is missing in 1 record"):
        carry_out(planned(waves, 2, "out1"), Run(seed=2))


def test_a_plan_says_itself_again(tmp_path):
    register(tmp_path, "wave1.csv", list(range(9)))
    for plan in (planned(tmp_path, 1), planned(tmp_path, 1, "a", "b", more='name = "panel"\nrecord = "ill"')):
        assert Plan.from_dict(plan.to_dict(), folder=tmp_path) == plan
    assert "[series]" in planned(tmp_path, 1).to_toml()


def test_a_search_is_refused_and_a_release_takes_the_steps_of_the_plan(waves):
    plan = planned(waves, 2, "out1")
    with pytest.raises(PlanError, match=r"a plan with \[series\] cannot be searched"):
        front.tune(Path(waves / "wave2.csv"), "exact-match <= 0.9", schema=plan.schema, plan=plan)
    made = front.release(waves / "plan2.toml", seed=LARGE + 2)
    assert [step.method.name for step in made.outcome.parts[""].plan.recipe.steps] == ["uncorrelated-noise"]
    assert made.outcome.parts[""].member.earlier == 1


def test_persons_with_several_records_keep_their_order_or_have_a_column(tmp_path):
    frame = pl.DataFrame(
        {"who": [1, 1, 2], "pay": [1.0, 5.0, 9.0], "debt": [1.0, 2.0, 3.0], "ill": ["a", "b", "c"]}
    )
    frame.write_csv(tmp_path / "wave1.csv")
    text = PLAN.replace("averaging-risk <= 0.99", "exact-match <= 0.9")
    notes = carry_out(planned(tmp_path, 1, text=text), Run(seed=1)).parts[""].notes
    assert any("told apart by order" in note for note in notes)
    plan = planned(tmp_path, 1, more='record = "ill"', text=text)
    assert not any("told apart" in note for note in carry_out(plan, Run(seed=1)).parts[""].notes)


def test_people_who_come_back_under_other_numbers_are_counted(waves):
    """Of 0 to 9, who have left, four come back as 150 to 153; one more has the keys of two who are there."""
    plain = carry_out(planned(waves, 2, "out1"), Run(seed=2)).parts[""].notes
    assert not any("new persons" in note for note in plain)
    first, second = (pl.read_csv(waves / f"wave{number}.csv") for number in (1, 2))
    back = first.filter(pl.col("who") < 4).with_columns(pl.col("who") + 150)
    twice = pl.concat([first.filter(pl.col("who") == 5)] * 2).with_columns(who=pl.Series([170, 171]))
    pl.concat([second, back, twice]).write_csv(waves / "wave2.csv")
    notes = carry_out(planned(waves, 2, "out1"), Run(seed=2)).parts[""].notes
    assert any(note.startswith("4 records of new persons with exactly the keys") for note in notes)


APART = """
requirements = [{required}]
[data]
path = "{{data}}"
[columns]
who = {{{{ kind = "nominal", role = "person" }}}}
pay = {{{{ kind = "continuous", role = "key" }}}}
debt = {{{{ kind = "continuous", role = "key", suppressed = -9 }}}}
ill = {{{{ kind = "nominal", role = "sensitive" }}}}
[[steps]]
method = "m-invariance"
columns = ["pay", "debt"]
parameters = {{{{ m = 3 }}}}
{series}
[output]
path = "{{out}}/release.csv"
drop = ["who"]
"""


@pytest.mark.parametrize("begun", [True, False])
def test_signatures_are_kept_over_files(waves, begun):
    """Three releases in two tables each, from a first one in a series or outside of it."""
    judged = APART.format(
        required='"m-invariance >= 3", "intersection-risk <= 0"', series="[series]\n{series}"
    )
    alone = APART.format(required='"alpha-k-anonymity <= 0.334"', series="")
    (waves / "out1" / "release.csv").unlink()
    (waves / "out1" / "release.private.json").unlink()
    (waves / "out1" / "releases.private.jsonl").unlink(missing_ok=True)
    released(planned(waves, 1, text=judged if begun else alone), 1)
    second = released(planned(waves, 2, "out1", text=judged), 2)
    frame = pl.read_csv(waves / "wave3.csv").filter(pl.col("who") % 3 != 1)  # nobody has gout any more
    frame.write_csv(waves / "wave3.csv")
    third = released(planned(waves, 3, "out1", "out2", text=judged), 3)
    assert second.is_met
    assert third.is_met
    counted = third.release.provenance[0].figures["counterfeits"]
    assert counted > 0
    shown = pl.read_csv(waves / "out3" / "release.qit.csv")
    assert shown.filter(pl.col("pay").is_null()).height == counted
    assert not (shown["debt"] == -9).any()  # what is nobody's was not suppressed
    said = {each["measure"]: each["value"] for each in third.to_dict()["in_series"]["measures"]}
    assert said["m-invariance"] == 3
    for number in (2, 3):
        found = verify(waves / f"out{number}" / "release.private.json", Run(seed=9))
        assert set(found.files.values()) == {"identical"}


def test_anatomy_dealt_anew_is_refused_in_a_series(waves):
    text = APART.format(required='"exact-match <= 0.9"', series="[series]\n{series}")
    text = text.replace('"m-invariance"\n', '"anatomy"\n').replace("m = 3", "l = 3")
    with pytest.raises(SfumatoError, match="cannot keep the noise of each person"):
        carry_out(planned(waves, 2, text=text), Run(seed=1))


def test_tables_that_stay_linked_are_each_a_series(tmp_path):
    said = """
[tables.people]
requirements = ["exact-match <= 0.9"]
[tables.people.data]
path = "people.csv"
[tables.people.columns]
who = { kind = "nominal", role = "person", pseudonym = "person" }
pay = { kind = "continuous", role = "key" }
[[tables.people.steps]]
method = "lognormal-noise"
columns = ["pay"]
[tables.people.series]
EARLIER
[tables.people.output]
path = "people.out.csv"
[tables.stays]
requirements = ["exact-match <= 0.9"]
[tables.stays.data]
path = "stays.csv"
[tables.stays.columns]
patient = { kind = "nominal", role = "person", pseudonym = "person" }
days = { kind = "continuous", role = "key" }
[[tables.stays.steps]]
method = "uniform-noise"
columns = ["days"]
[tables.stays.output]
path = "stays.out.csv"
"""
    found = []
    for year, who in (("a", range(20)), ("b", range(29, 9, -1))):
        folder = tmp_path / year
        folder.mkdir()
        pl.DataFrame({"who": list(who), "pay": [100.0 + each for each in who]}).write_csv(
            folder / "people.csv"
        )
        pl.DataFrame({"patient": list(who), "days": [1.0 + each for each in who]}).write_csv(
            folder / "stays.csv"
        )
        earlier = 'earlier = ["../a"]' if year == "b" else ""
        (folder / "plan.toml").write_text(said.replace("EARLIER", earlier))
        plan = Plan.read(folder / "plan.toml")
        outcome = carry_out(plan, Run(seed=LARGE + ord(year)))
        write_release(decide(outcome, subject="it"), Destination(plan))
        part = outcome.parts["people"]
        pay = part.release.first.frame["pay"].to_numpy()
        rows = part.release.source_rows
        found.append({who[row]: value for row, value in zip(rows, pay, strict=True)})
        assert verify(folder / "tables.private.json", Run(seed=1)).holds
    common = found[0].keys() & found[1].keys()
    assert len(common) == 10
    assert all(found[0][who] == pytest.approx(found[1][who]) for who in common)
    assert outcome.parts["people"].member.earlier == 1
    assert outcome.parts["stays"].member is None


def test_the_course_is_that_of_the_first_release(waves):
    for more in ("course = { pay = 0.3 }", "releases = 4"):
        with pytest.raises(PlanError, match="differ from those of its earlier releases"):
            carry_out(planned(waves, 2, "out1", more=more), Run(seed=LARGE))
    for more, reason in (
        ("course = { lost = 0.3 }", "not declared: `lost`"),
        ("course = { pay = -1 }", "`course` of `pay`"),
        ("releases = 1", "`releases` must be"),
    ):
        with pytest.raises(PlanError, match=reason):
            planned(waves, 2, more=more)


def test_an_amount_that_changes_has_a_little_new_noise(waves):
    register(waves, "wave2.csv", list(range(100)), add=0.1)
    chance = randomness_of(waves / "out1" / "release.private.json")
    first = values(waves, 1, carry_out(planned(waves, 1), Run(randomness=chance)))
    second = values(waves, 2, released(planned(waves, 2, "out1"), 2))
    one, other = (np.array([each[who] for who in range(100)]) for each in (first, second))
    assert 0.8 < np.corrcoef(one, other)[0, 1] < 0.97


def test_more_releases_than_planned_are_said(waves):
    text = PLAN.replace("[series]", "[series]\nreleases = 2")
    text = text.replace("{out}", "few{out}")
    for number in (1, 2, 3):
        (waves / f"fewout{number}").mkdir()
    released(planned(waves, 1, text=text), 1)
    second = released(planned(waves, 2, "fewout1", text=text), 2)
    third = released(planned(waves, 3, "fewout1", "fewout2", text=text), 3)
    said = [each.parts[""].member.notes for each in (second, third)]
    assert not any("planned for" in note for note in said[0])
    assert any("release 3 of a series planned for 2" in note for note in said[1])


def test_profiles_ask_what_a_series_tells(waves):
    plan = planned(waves, 2, "out1")
    alone = replace(plan, series=None, requirements=())
    for name in ("scientific", "industry", "public"):
        for each, asked in ((plan, True), (alone, False)):
            required = Profile.load(name).apply_to(each).required_in
            found = {one.measure.name for many in required.values() for one in many}
            assert ({"averaging-risk", "difference-risk"} <= found) is asked
