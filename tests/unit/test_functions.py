"""Methods and measures as functions: what the front door gives, with the parameters of the class."""

import inspect

import pandas as pd
import polars as pl
import pytest

import sfumato
from sfumato.core.release import Release
from sfumato.errors import ParameterError

PEOPLE = {
    "age": [30, 30, 31, 31, 40, 41] * 10,
    "sex": ["m", "m", "f", "f", "m", "m"] * 10,
    "income": [float(7 * i % 60) for i in range(60)],
}


def test_a_method_gives_what_protect_gives():
    frame = pl.DataFrame(PEOPLE)
    release = sfumato.methods.mdav(frame, ["income"], 4)
    assert isinstance(release, Release)
    assert release.data.equals(sfumato.protect(frame, "mdav(k=4)", columns=["income"]).data)
    assert release.data.equals(sfumato.methods.mdav(frame, "income", k=4).data)


def test_a_frame_comes_back_in_its_type():
    frame = pd.DataFrame(PEOPLE)
    release = sfumato.methods.rounding(frame, ["income"], seed=1)
    assert isinstance(release.data, pd.DataFrame)
    assert isinstance(release.to_polars(), pl.DataFrame)
    assert list(release.to_pandas().columns) == list(frame.columns)


def test_a_measure_of_one_table_gives_its_score():
    frame = pd.DataFrame(PEOPLE)
    assert sfumato.risk.k_anonymity(frame, ["age", "sex"]).value == 10
    assert sfumato.risk.k_anonymity(frame, keys="sex").value == 20


def test_a_measure_of_a_release_gives_its_score():
    frame = pl.DataFrame(PEOPLE)
    release = sfumato.methods.mdav(frame, ["income"], 3)
    score = sfumato.utility.sse_ratio(frame, release)
    assert score == sfumato.assess(frame, release, ["sse-ratio"])["sse-ratio"]
    there = sfumato.utility.sse_ratio(frame, release.data, aligned=True)
    assert there.value == score.value


def test_an_attack_takes_its_control_group():
    people = pl.DataFrame({"age": [i * 7 % 53 for i in range(400)], "zip": [i * 11 % 97 for i in range(400)]})
    first, control = people.head(200), people.tail(200)
    release = sfumato.methods.mondrian(first, ["age", "zip"], 3)
    score = sfumato.risk.singling_out(first, release, control, queries=50, seed=1)
    again = sfumato.assess(
        first, release, ["singling-out(queries=50)"], resources={"control": control}, seed=1
    )
    assert score.value == next(iter(again.values())).value


def test_a_function_says_what_it_takes():
    function = sfumato.methods.mdav
    assert list(inspect.signature(function).parameters)[:3] == ["data", "columns", "k"]
    assert function.__doc__.startswith(sfumato.methods.Mdav.summary())
    with pytest.raises(TypeError, match="unexpected keyword argument 'kk'"):
        function(PEOPLE, "income", kk=3)
    with pytest.raises(ParameterError, match="`k` of mdav"):
        function(PEOPLE, "income", k=0)


@pytest.mark.parametrize(
    "result",
    [
        sfumato.read,
        lambda frame: sfumato.methods.mdav(frame, "income"),
        lambda frame: sfumato.risk.k_anonymity(frame, "sex"),
        lambda frame: sfumato.assess(frame, measures=["k"]),
    ],
)
def test_results_go_out_as_frames(result):
    made = result(pl.DataFrame(PEOPLE))
    assert isinstance(made.to_polars(), pl.DataFrame)
    assert isinstance(made.to_pandas(), pd.DataFrame)
    assert made.to_pandas().shape == made.to_polars().shape


def test_ranges_go_to_pandas_as_text():
    release = sfumato.methods.mondrian(pl.DataFrame(PEOPLE), ["age"], 30)
    assert set(release.to_pandas()["age"]) == {"[30;41]"}


def test_a_study_says_why_a_method_is_not_ranked():
    frame = pl.DataFrame({"a": [float(i) for i in range(40)], "b": [float(i * i % 37) for i in range(40)]})
    study = sfumato.compare(
        frame,
        ["mdav", "sampling", "top-bottom-coding"],
        columns=["a", "b"],
        hold="dbrl",
        level=0.2,
        repeats=2,
        seed=1,
    )
    rows = study.to_pandas()
    unranked = rows[rows["rank"].isna()]
    assert len(unranked)
    assert all(unranked["remark"])
    assert all(remark.split("`")[0][:20] in study._repr_html_() for remark in unranked["remark"])
