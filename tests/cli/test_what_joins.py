"""What a release lets people put together again is judged by every verb: the reproductions, and their relatives."""

import datetime as dt
import random
from pathlib import Path

import pytest

VERBS = [("run", "plan.toml"), ("gate", "plan.toml"), ("release", "plan.toml", "--out", "folder")]


def write_patients(path, number=str):
    draw = random.Random(3)
    lines = ["patient,area,age,sex,illness"]
    for person in range(200):
        lines += [
            f"{number(person)},{draw.choice('abcd')},{draw.randint(20, 60)},{draw.choice('fm')},{draw.choice('xyz')}"
            for _ in range(3)
        ]
    path.write_text("\n".join(lines) + "\n")


def patients_plan(role):
    return f"""
requirements = ["k >= 3", "l-diversity >= 2"]
[data]
path = "in.csv"
[columns]
patient = {{ kind = "nominal", role = "{role}", pseudonym = "patient" }}
area = {{ kind = "nominal", role = "key" }}
age = {{ kind = "continuous", role = "key" }}
sex = {{ kind = "nominal", role = "key" }}
illness = {{ kind = "nominal", role = "sensitive" }}
[[steps]]
method = "mondrian"
columns = ["area", "age", "sex"]
parameters = {{ k = 5, also = ["l-diversity >= 2"] }}
[output]
path = "out.csv"
"""


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("role", ["person", "identifier", "group", "household", "other", "sensitive"])
def test_a_pseudonym_joins_under_every_role(run, tmp_path, role, verb):
    write_patients(tmp_path / "in.csv", number=lambda person: f"00{2**64 + person}")
    (tmp_path / "plan.toml").write_text(patients_plan(role))
    code, out, err = run(*verb)
    assert code == 1
    assert "k-anonymity is 1" in out + err
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "folder").exists()


def test_without_the_pseudonym_the_same_release_leaves(run, tmp_path):
    write_patients(tmp_path / "in.csv")
    (tmp_path / "plan.toml").write_text(patients_plan("person") + 'drop = ["patient"]\n')
    assert run("run", "plan.toml")[0] == 0


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(
    ("kind", "step", "derived"),
    [
        ("date", 'method = "date-shifting"\nparameters = { days = 365 }', "`came` − `born`"),
        (
            "continuous",
            'method = "lognormal-noise"\nparameters = { deviation = 1.0, per = "record" }',
            "`came` / `born`",
        ),
    ],
    ids=["dates", "amounts"],
)
def test_what_a_method_keeps_between_columns_is_compared(run, kind, step, derived, verb):
    folder = Path.cwd()
    draw = random.Random(5)
    lines = ["born,came,left,sex"]
    for _ in range(150):
        if kind == "date":
            born = dt.date(1940, 1, 1) + dt.timedelta(draw.randint(0, 20_000))
            came = dt.date(2024, 1, 1) + dt.timedelta(draw.randint(0, 365))
            values = born, came, came + dt.timedelta(draw.randint(1, 30))
        else:
            values = (round(draw.lognormvariate(at, 0.3), 2) for at in (6, 8, 10))
        lines.append(",".join(map(str, (*values, draw.choice("fm")))))
    (folder / "in.csv").write_text("\n".join(lines) + "\n")
    columns = "".join(f'{name} = {{ kind = "{kind}", role = "key" }}\n' for name in ("born", "came", "left"))
    (folder / "plan.toml").write_text(
        'requirements = ["dbrl <= 0.3", "exact-match <= 0.1"]\n[data]\npath = "in.csv"\n[columns]\n'
        f'{columns}sex = {{ kind = "nominal", role = "key" }}\n[[steps]]\n{step}\n'
        'columns = ["born", "came", "left"]\n[output]\npath = "out.csv"\n'
    )
    code, out, err = run(*verb)
    assert code == 1
    assert derived in out + err
    assert not (folder / "out.csv").exists()


def test_salaries_that_rise_alike_are_told_of_before_and_stop_a_release(run, tmp_path):
    draw = random.Random(7)
    lines = ["who,year,area,pay"]
    for person in range(150):
        area, pay = draw.choice("abc"), draw.lognormvariate(10, 0.4)
        lines += [f"{person},{2020 + year},{area},{pay * 1.03**year:.2f}" for year in range(3)]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    roles = ("who=person", "year=key", "area=key", "pay=sensitive")
    _, _, err = run("inspect", "in.csv", *(word for role in roles for word in ("--role", role)))
    assert "steadily changing values of `pay` would link the records of 150 of 150 units" in err
    (tmp_path / "plan.toml").write_text(
        'requirements = ["k >= 3", "regrouped <= 0.05"]\n[data]\npath = "in.csv"\n[columns]\n'
        'who = { kind = "nominal", role = "person" }\nyear = { kind = "ordinal", role = "key" }\n'
        'area = { kind = "nominal", role = "key" }\npay = { kind = "continuous", role = "sensitive" }\n'
        '[[steps]]\nmethod = "rounding"\ncolumns = ["pay"]\n[output]\npath = "out.csv"\ndrop = ["who"]\n'
    )
    code, out, err = run("run", "plan.toml")
    assert code == 1
    assert "must be <= 0.05 (by steadily changing values of" in out + err
