"""Weights on the way out: what an exact one tells, through the command line."""

import random
from collections import Counter, defaultdict

import polars as pl
import pytest

from seeds import LARGE

COLUMNS = """
[columns]
age = { kind = "AGE", role = "key" }
sex = { kind = "nominal", role = "key" }
region = { kind = "nominal", role = "key" }
tenure = { kind = "nominal", role = "key" }
vote = { kind = "nominal", role = "sensitive" }
weight = { kind = "continuous", role = "weight" }
"""
MONDRIAN = """
[[steps]]
method = "mondrian"
columns = ["age", "sex", "region", "tenure"]
parameters = { k = 3, also = ["l-diversity >= 2"] }
"""
SWAPPING = """
[[steps]]
method = "targeted-swapping"
columns = ["region"]
parameters = { share = 10, k = 3 }
"""
STRATA = {"north": 212.5, "east": 148.25, "south": 97.75, "west": 331.0, "islands": 18.5}


def write_households(path):
    draw = random.Random(11)
    lines = ["household,age,sex,region,tenure,vote,weight"]
    for home in range(300):
        weight = round(draw.lognormvariate(5, 0.4), 3)
        region, tenure = draw.choice("nesw"), draw.choice(["own", "rent"])
        lines += [
            f"{home},{draw.randint(0, 90)},{draw.choice('fm')},{region},{tenure},{draw.choice('abcd')},{weight}"
            for _ in range(draw.choice([1, 2, 2, 3, 4]))
        ]
    path.write_text("\n".join(lines) + "\n")


def write_strata(path):
    draw = random.Random(3)
    lines = ["age,sex,region,tenure,vote,weight"]
    for region in draw.choices(list(STRATA), [30, 25, 25, 18, 2], k=1000):
        age, sex, tenure, vote = (
            draw.randint(18, 80),
            draw.choice("fm"),
            draw.choice("or"),
            draw.choice("abcd"),
        )
        lines += [f"{age},{sex},{region},{tenure},{vote},{STRATA[region]}"]
    path.write_text("\n".join(lines) + "\n")


def whole_households(folder):
    """Of how many households a weight shows all records and no others."""
    original, out = (
        pl.read_csv(folder / name).with_columns(pl.col("weight").round(3)) for name in ("in.csv", "out.csv")
    )
    shown, sizes, homes = Counter(out["weight"]), Counter(original["household"]), defaultdict(set)
    for home, weight in original.select("household", "weight").iter_rows():
        homes[weight].add(home)
    return sum(len(own) == 1 and shown[weight] == sizes[min(own)] for weight, own in homes.items())


@pytest.mark.parametrize(("setting", "least", "most"), [("", 0, 0), ('weights = "exact"', 290, 300)])
def test_weights_put_no_household_together_again(run, tmp_path, setting, least, most):
    write_households(tmp_path / "in.csv")
    household = 'household = { kind = "nominal", role = "household" }\n'
    (tmp_path / "plan.toml").write_text(
        'requirements = ["k >= 3", "l-diversity >= 2"]\n[data]\npath = "in.csv"\n'
        + COLUMNS.replace("AGE", "continuous") + household + MONDRIAN
        + f'[output]\npath = "out.csv"\ndrop = ["household"]\n{setting}\n'
    )  # fmt: skip
    code, _, err = run("run", "plan.toml", *(["--override", "an experiment"] if setting else []))
    assert code == 0
    assert ("put together again by `region`, `weight`" in err) == bool(setting)
    assert least <= whole_households(tmp_path) <= most
    assert ("the weights in `weight` are exact" in err) == bool(setting)
    assert ("`weight` averaged within equivalence classes" in err) != bool(setting)
    assert run("verify", "out.csv")[0] == 0


@pytest.mark.parametrize(
    ("step", "need", "kind"),
    [(SWAPPING, "dbrl <= 0.1", "ordinal"), (MONDRIAN, "k >= 3", "continuous")],
    ids=["swapped", "coarse"],
)
def test_weights_do_not_give_the_region_back(run, tmp_path, step, need, kind):
    write_strata(tmp_path / "in.csv")
    (tmp_path / "plan.toml").write_text(
        f'requirements = ["{need}"]\n[data]\npath = "in.csv"\n'
        + COLUMNS.replace("AGE", kind) + step + '[output]\npath = "out.csv"\nshuffle = false\n'
    )  # fmt: skip
    code, _, err = run("run", "plan.toml", "--seed", LARGE)
    assert code == 0
    assert "note: the weights in `weight` are averaged" in err
    original, out = pl.read_csv(tmp_path / "in.csv"), pl.read_csv(tmp_path / "out.csv")
    hidden = out.with_columns(true=original["region"]).filter(pl.col("true") != pl.col("region"))
    assert not set(hidden["weight"]) & set(STRATA.values())
    assert hidden.group_by("weight").agg(pl.col("true").n_unique())["true"].min() > 1
    by_keys = out.group_by("age", "sex", "region", "tenure").agg(pl.col("weight").n_unique())
    assert by_keys["weight"].max() == 1  # who agrees in the keys agrees in the weight: k is what it was
    assert out["weight"].sum() == pytest.approx(original["weight"].sum())


def test_the_change_note_says_what_became_of_the_weights(run, tmp_path):
    write_strata(tmp_path / "in.csv")
    (tmp_path / "plan.toml").write_text(
        'requirements = ["dbrl <= 0.2"]\n[data]\npath = "in.csv"\n'
        + COLUMNS.replace("AGE", "ordinal") + SWAPPING + '[output]\npath = "out.csv"\n'
    )  # fmt: skip
    code, _, err = run("release", "plan.toml", "--out", "folder", "--seed", LARGE)
    assert code == 0, err
    note = (tmp_path / "folder" / "change-note.md").read_text()
    assert "Each record has the mean weight of its class" in note
    assert "Corrected" not in note


def test_a_step_may_add_noise_to_the_weights_instead(run, tmp_path):
    """As in μ-ARGUS: each weight is off by at most a fifth, and is not averaged besides."""
    write_strata(tmp_path / "in.csv")
    frame, draw = pl.read_csv(tmp_path / "in.csv"), random.Random(5)
    weights = [round(draw.lognormvariate(5, 0.4), 3) for _ in range(len(frame))]  # they tell no region
    frame.with_columns(weight=pl.Series(weights)).write_csv(tmp_path / "in.csv")
    noise = '[[steps]]\nmethod = "uniform-noise"\ncolumns = ["weight"]\nparameters = { spread = 0.2 }\n'
    (tmp_path / "plan.toml").write_text(
        'requirements = ["k >= 3"]\n[data]\npath = "in.csv"\n' + COLUMNS.replace("AGE", "continuous")
        + MONDRIAN + noise + '[output]\npath = "out.csv"\nshuffle = false\n'
    )  # fmt: skip
    code, _, err = run("run", "plan.toml", "--seed", LARGE)
    assert code == 0, err
    assert "averaged" not in err
    before, after = (pl.read_csv(tmp_path / name)["weight"] for name in ("in.csv", "out.csv"))
    factors = after / before
    assert factors.n_unique() == len(factors)
    assert factors.is_between(0.8, 1.2).all()
    assert factors.mean() == pytest.approx(1, abs=4 * 0.2 / 3**0.5 / len(factors) ** 0.5)
