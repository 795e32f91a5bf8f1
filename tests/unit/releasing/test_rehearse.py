"""The next wave rehearsed: what will fail, for how many, since which column moved; nothing is written."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.run import Run
from sfumato.errors import DataError, SfumatoError
from sfumato.recipes.plan import Plan
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.decide import decide, decide_plan
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.rehearse import LastWave, rehearse

PLAN = """
requirements = [{requirements}]
[data]
path = "2024.csv"
[columns]
who = {{ kind = "nominal", role = "person" }}
age = {{ kind = "continuous", role = "key" }}
town = {{ kind = "nominal", role = "key" }}
pay = {{ kind = "continuous", role = "sensitive" }}
[[steps]]
{step}
{more}
[output]
path = "2024/release.csv"
drop = ["who"]
"""
BANDS = 'method = "rounding"\ncolumns = ["age"]\nparameters = { base = 20 }'


def wave(name, n=400, *, seed=1, towns=(0.5, 0.5), older=0, start=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": np.arange(start, start + n),
            "age": rng.integers(20, 60, n) + older,
            "town": rng.choice(["A", "B", "C", "D"][: len(towns)], n, p=towns),
            "pay": rng.lognormal(8, 0.4, n).round(),
        }
    ).write_csv(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2024").mkdir()
    wave("2024.csv")
    return tmp_path


def planned(folder, *requirements, step=BANDS, more=""):
    listed = ", ".join(f'"{each}"' for each in requirements or ["k >= 5"])
    (folder / "plan.toml").write_text(PLAN.format(requirements=listed, step=step, more=more))
    return "plan.toml"


def released(path):
    plan = Plan.read(Path(path))
    write_release(decide(carry_out(plan, Run(seed=LARGE)), subject="it"), Destination(plan))


def rehearsed(source, data="2025.csv", **more):
    return rehearse(LastWave.of(source), data, Run(seed=1), **more)


def test_a_wave_like_the_last_passes_and_nothing_is_written(folder):
    wave("2025.csv", seed=2)
    before = sorted(folder.rglob("*"))
    found = rehearsed(planned(folder))
    assert found.decision.may_leave
    assert found.failures == ()
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "plan.toml"])


def test_the_column_that_moved_explains_what_fails(folder):
    wave("2025.csv", seed=2, towns=(0.495, 0.495, 0.01))
    found = rehearsed(planned(folder))
    (failure,) = found.failures
    assert failure.since == ()  # two records in a hundred are no drift that a test sees
    assert "no single column explains it" in failure.sentence
    assert "in 1 new category" in found.lines[0]
    wave("2025.csv", seed=2, towns=(0.48, 0.47, 0.045, 0.005))
    (failure,) = rehearsed("plan.toml").failures
    assert failure.since == ("town",)
    assert failure.sentence.endswith("since `town` moved")


def test_it_counts_the_persons_as_an_independent_count_does(folder):
    wave("2025.csv", seed=2, towns=(0.48, 0.47, 0.04, 0.01))
    found = rehearsed(planned(folder))
    shown = found.decision.outcome.release.first.frame
    small = shown.filter(pl.len().over("age", "town") < 5).height
    assert small > 0
    assert found.failures[0].persons == small
    assert f"for {small} of 400 persons" in found.failures[0].sentence


def test_persons_of_several_records_count_once(folder):
    wave("2025.csv", seed=2, towns=(0.48, 0.47, 0.04, 0.01))
    twice = pl.concat([pl.read_csv("2025.csv")] * 2)
    twice.write_csv("2025.csv")
    (failure,) = rehearsed(planned(folder)).failures
    assert (failure.of, failure.persons) == (400, rehearsed("plan.toml").failures[0].persons)
    assert failure.persons < 400


def test_two_columns_that_only_together_explain_it_are_said_so(folder):
    wave("2025.csv", seed=2, towns=(0.45, 0.4, 0.1, 0.05), older=35)
    (failure,) = rehearsed(planned(folder, "k >= 20")).failures
    assert failure.since == ("age", "town")
    assert "no single column" in failure.why


def test_what_failed_before_is_not_put_down_to_drift(folder):
    wave("2025.csv", seed=2, towns=(0.45, 0.4, 0.1, 0.05))
    (failure,) = rehearsed(planned(folder, "k >= 300")).failures
    assert failure.why == "the last wave missed it, too"
    assert failure.since == ()


def test_without_the_last_data_it_is_judged_and_not_explained(folder):
    planned(folder)
    wave("2025.csv", seed=2, towns=(0.48, 0.47, 0.04, 0.01))
    (folder / "2024.csv").rename(folder / "old.csv")
    found = rehearsed("plan.toml")
    assert found.drifts == ()
    assert "name them with --original" in found.lines[-1]
    assert "no column can be compared" in found.failures[0].why
    assert rehearsed("plan.toml", original="old.csv").failures[0].since == ("town",)


def test_data_that_changed_since_the_release_are_not_compared(folder):
    released(planned(folder))
    wave("2025.csv", seed=2)
    wave("2024.csv", seed=3)
    assert "have changed since its release" in rehearsed("2024").lines[-1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.drop("age"), "there is no column `age`"),
        (lambda frame: frame.with_columns(shoe=1), "column `shoe` of the data is not declared"),
        (lambda frame: frame.with_columns(age=pl.lit("old")), "age"),
        (lambda frame: frame.head(0), "must have records, got: none"),
    ],
)
def test_a_wave_that_is_not_as_declared_is_the_fault_of_the_data(folder, change, said):
    planned(folder)
    change(pl.read_csv("2024.csv")).write_csv("2025.csv")
    with pytest.raises(DataError, match=said) as caught:
        rehearsed("plan.toml")
    assert caught.value.exit_code == 3


def test_a_hierarchy_that_lacks_new_categories_is_named(folder):
    pl.DataFrame({"0": ["A", "B"], "1": ["north", "south"]}).write_csv("towns.csv")
    step = 'method = "recoding"\ncolumns = ["town"]\nparameters = { levels = { town = 1 } }'
    text = (folder / planned(folder, step=step)).read_text()
    text = text.replace('role = "key" }\npay', 'role = "key", hierarchy = "towns" }\npay')
    (folder / "plan.toml").write_text(
        text + '[resources]\ntowns = { path = "towns.csv", holds = "hierarchy" }\n'
    )
    wave("2025.csv", seed=2, towns=(0.5, 0.4, 0.1))
    with pytest.raises(SfumatoError, match=r"`town` moved: .*outside of the hierarchy"):
        rehearsed("plan.toml")


SERIES = 'method = "uncorrelated-noise"\ncolumns = ["age"]\nparameters = { deviation = 60 }'


def test_the_next_release_of_a_series_is_judged_beside_the_earlier_ones(folder):
    planned(folder, "averaging-risk <= 0.5", step=SERIES, more="[series]")
    released("plan.toml")
    wave("2025.csv", seed=2, start=40)
    for source in ("plan.toml", "2024", "2024/release.private.json"):
        last = LastWave.of(source)
        found = rehearse(last, "2025.csv", Run(seed=1))
        member = found.decision.outcome.parts[""].member
        assert (member.earlier, member.persons_in_common) == (1, 360)
        assert (
            found.decision.judgements
            == decide_plan(last.followed_by("2025.csv"), Run(seed=1), subject="").judgements
        )


def test_what_other_chance_would_meet_is_near_its_limit(folder):
    step = 'method = "pram"\ncolumns = ["town"]\nparameters = { retain = 0.8 }'
    for level in (0.1, 0.3, 0.5):
        wave("2025.csv", seed=2)
        found = rehearsed(planned(folder, f"dbrl <= {level:.3f}", "k >= 1", step=step))
        assert all("since" not in each.why for each in found.failures)
