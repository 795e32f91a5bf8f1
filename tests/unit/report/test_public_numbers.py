"""Nothing in the public files of a release gives back a value that the release withholds."""

import json
import re

import numpy as np
import polars as pl
import pytest

from sfumato.core.requirement import parse_method
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe, Step
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.sums import PRIVATE
from sfumato.report.distributions import distributions
from sfumato.report.released import Released

SEED = 918273645546372819


def people(largest: float, n: int = 1000) -> Table:
    """Incomes around 8,000, and one that is the ``largest``."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({
        "region": rng.choice(list("nesw"), n), "job": rng.choice(list("abcde"), n),
        "income": [largest, *rng.lognormal(9, 0.4, n - 1).round(2)],
    })  # fmt: skip
    kinds = {"region": (Kind.NOMINAL, Role.KEY), "job": (Kind.NOMINAL, Role.KEY)}
    kinds["income"] = (Kind.CONTINUOUS, Role.SENSITIVE)
    return Table(frame, Schema(tuple(Column(name, *kinds[name]) for name in frame.columns)))


def released(table: Table, method: str, column: str) -> Released:
    recipe = Recipe((Step(parse_method(method), (column,)),))
    plan = Plan(Source("in.csv"), schema=table.schema, recipe=recipe, output=Output(path="out.csv"))
    run = Run(seed=SEED)
    return Released(carry_out(plan, run, table=table), None, "as the plan says", run)


def public_files(made: Released) -> dict[str, str]:
    pages = made._pages(made.tell(), {})
    return {name: text for name, text in pages.items() if not name.startswith(PRIVATE)}


def numbers(text: str) -> set[float]:
    return {float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)}


CASES = {
    "top coding": ("top-bottom-coding", "income"),
    "noise": ("uncorrelated-noise", "income"),
    "swapping": ("rank-swapping", "income"),
    "microaggregation": ("individual-ranking", "income"),
    "stars": ("trivial-removal", "income"),
    "pram": ("pram(retain=0.7)", "job"),
}


@pytest.mark.parametrize("largest", [60_123.77, 8_133_777.77])
@pytest.mark.parametrize("case", CASES)
def test_no_public_number_is_the_largest_value(case, largest):
    """Neither its digits nor, in what is no library of charts, a number within 10 % of it."""
    files = public_files(released(people(largest), *CASES[case]))
    assert set(files) == {
        "change-note.md", "data-card.md", "report.html", "report.json", "evidence.json", "evidence.html",
    }  # fmt: skip
    for name, text in files.items():
        assert f"{int(largest)}" not in text
        assert f"{int(largest):,}" not in text
        if name != "report.html":
            assert not [each for each in numbers(text) if abs(each - largest) < 0.1 * largest]


@pytest.mark.parametrize("largest", [60_123.77, 300_123.77, 8_133_777.77])
def test_no_public_size_gives_the_value_that_top_coding_withholds(largest):
    """The sum of all changes is nearly that of one person: it must not follow from a mean and the counts."""
    made = released(people(largest), *CASES["top coding"])
    shown = made.release.first.frame["income"]
    low, high = float(shown.min()), float(shown.max())
    changed = int(((shown == low) | (shown == high)).sum())
    own = made.tell().to_dict(public=False)["lost"][2]["sentence"]
    (mean,) = re.findall(r"by ([\d,]+) on average", own)
    assert (
        abs(high + float(mean.replace(",", "")) * changed - largest) < 0.3 * largest
    )  # as the owner may know
    for text in public_files(made).values():
        assert not re.search(r"income changed, by [^;]* on average", text)
        for size in re.findall(r"income changed, typically by about ([\d,.]*\d)", text):
            guess = high + float(size.replace(",", "")) * changed
            assert abs(guess - largest) > 0.1 * largest


def test_losses_that_one_person_makes_up_are_suppressed():
    """IL1s of one changed value, in spreads that the release tells nearly, gives the value."""
    told = released(people(60_123.77), *CASES["top coding"]).tell()
    (il1s,) = [each for each in told.to_dict(public=True)["utility"] if each["measure"] == "il1s"]
    assert (il1s["status"], il1s["value"]) == ("suppressed", None)
    assert any("a few people" in each["reason"] for each in told.to_dict(public=True)["not_estimated"])
    (il1s,) = [each for each in told.to_dict(public=False)["utility"] if each["measure"] == "il1s"]
    assert il1s["value"] > 0


def test_what_pram_keeps_does_not_follow_from_what_changed():
    """Of five jobs alike 0.8 · (1 − retain) change; in public that is known to five percent only."""
    made = released(people(1.0), *CASES["pram"])
    public, own = (made.tell().to_dict(public=each) for each in (True, False))
    assert re.fullmatch(r"about \d?[05] % of job changed", public["lost"][1]["sentence"])
    values = [
        next(each["value"] for each in form["utility"] if each["measure"] == "cells-changed")
        for form in (public, own)
    ]
    assert values[0] == pytest.approx(round(values[1] * 20) / 20)
    assert values[0] != values[1]


def test_a_column_that_is_held_back_is_not_drawn():
    told = released(people(60_123.77), *CASES["stars"]).tell()
    public, own = told.to_dict(public=True), told.to_dict(public=False)
    assert [each["column"] for each in own["distributions"]] == ["income"]
    assert public["distributions"] == []
    assert "income" in public["not_drawn"]
    assert "income" not in json.dumps([public["correlations"], public["mosaics"]])


def test_a_quantile_is_no_mean_that_one_value_makes_up():
    """Of ten values around the 95th of 100 the last is far away, and so are the five above it."""
    values = np.concatenate([np.geomspace(10, 1000, 194), [8_133_777.0] * 6])
    table = Table(pl.DataFrame({"x": values}), Schema((Column("x", Kind.CONTINUOUS, Role.KEY),)))
    (found,) = distributions(table, {}, ["x"], public=True)
    assert max(found["quantiles"]["values"]["original"]) < 1000
