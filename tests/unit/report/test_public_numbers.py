"""Nothing in the public files of a release gives back a value that the release withholds."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core.requirement import parse_measure, parse_method
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out
from sfumato.releasing.checksums import PRIVATE
from sfumato.report.alternatives import rejected_candidates
from sfumato.report.content import public_loss, twin
from sfumato.report.distributions import distributions
from sfumato.report.page import render
from sfumato.report.release_result import Released

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


def test_a_category_that_one_person_had_is_not_told_to_have_vanished():
    """The owner is told; no public text says that a category is gone, nor which."""
    table = people(60_123.77)
    jobs = pl.Series("job", ["Qxjob", *table.frame["job"][1:]])
    made = released(table.with_values("job", jobs), "mdav(k=20)", "job")
    assert "1 of its 6 categories is gone" in made.losses_by_column()[0]
    files = public_files(made)
    for name in ("change-note.md", "data-card.md", "report.json", "evidence.json", "evidence.html"):
        assert "Qxjob" not in files[name]
        assert " gone " not in files[name]


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


# ---------------------------------------------------------------------- numbers of what was not released


def compared(table: Table, *methods: str, rank_by: str = "il1s", **how):
    given = {"hold": "dbrl", "repeats": 2, "seed": 7, **how}
    return sfumato.compare(table, list(methods), columns=["income"], rank_by=rank_by, **given)


def test_a_public_comparison_does_not_give_the_value_that_top_coding_withholds():
    """The mean change times the records is what one person lost, in spreads that are nearly known."""
    largest, table = 60_123.77, people(60_123.77, 300)
    found = compared(table, "top-bottom-coding", "rank-swapping", points=3)
    public, own = (twin(found, public=each) for each in (True, False))
    (shown,) = [each for each in own["outcomes"] if each["method"] == "top-bottom-coding"]
    deviation = math.sqrt(2) * float(table.frame["income"].std())
    lost = shown["ranked"]["mean"] * deviation * len(table) * len(table.names)
    highest = float(found.outcomes[0].example.table.frame["income"].max())
    assert highest + lost == pytest.approx(largest, rel=0.1)  # as the owner may know
    coded = [each for each in public["outcomes"] if each["method"] == "top-bottom-coding"]
    assert [each["ranked"] for each in coded] == [None]
    assert "is not published: a few people account for most of it" in public["verdict"][0]
    assert not [each for each in public["map"] if each["key"] == coded[0]["key"]]
    assert f"{int(largest)}" not in render(found, public=True)
    assert not [each for each in numbers(json.dumps(public)) if abs(each - largest) < 0.1 * largest]


def test_a_public_comparison_keeps_means_that_hide_each():
    found = compared(people(9_000.0, 300), "uncorrelated-noise", "rank-swapping", level=0.1, points=3)
    public = twin(found, public=True)
    assert all(each["ranked"]["mean"] > 0 for each in public["outcomes"] if each["rank"])
    assert public["map"]


def test_bounded_losses_stay_and_shares_are_coarse():
    table = people(8_133_777.77, 300)
    for measure in ("hellinger", "cells-changed"):
        found = compared(table, "top-bottom-coding", rank_by=measure, require=["k >= 2"], hold=None)
        (spread,) = [each["ranked"] for each in twin(found, public=True)["outcomes"]]
        if spread is not None and measure == "cells-changed":
            assert round(spread["mean"] * 20) == pytest.approx(spread["mean"] * 20)


@pytest.mark.parametrize(("measure", "told"), [("column-emd", False), ("hellinger", True)])
def test_the_loss_of_what_was_rejected_is_told_only_if_no_value_makes_it_up(measure, told):
    made = sfumato.tune(
        people(60_123.77, 120), "dbrl <= 0.3", utility=measure, columns=["income"], seed=3, trials=4,
        methods=["rank-swapping", "uncorrelated-noise"], repeats=1, confirmations=1, minutes=None,
    )  # fmt: skip
    own = rejected_candidates(made, Recipe(()))
    public = rejected_candidates(made, Recipe(()), public=True, grain=1 / 120)
    assert any(each["loss"] is not None for each in own)
    assert any(each["loss"] is not None for each in public) is told


def test_losses_that_no_measure_knows_by_record_are_judged_by_the_columns():
    """The distance of two columns is a mean as well, though it does not say of whom."""
    for largest, told in ((8_133_777.77, False), (9_000.0, True)):
        case = CASES["top coding"] if not told else CASES["noise"]
        made = released(people(largest), *case).tell()
        entries = {each["measure"]: each for each in made.to_dict(public=True)["utility"]}
        endless = [
            each
            for name, each in entries.items()
            if parse_measure(name).bounds[1] == math.inf and each["status"] != "refused"
        ]
        assert endless
        values = [each["value"] for each in endless if each["value"] != 0]
        assert all((each is not None) is told for each in values), entries


def test_what_the_worst_group_scores_is_not_published():
    """A share of few tells how few they are."""
    measure = parse_measure("cells-changed in every region")
    assert public_loss(measure, 0.25, hides_each=True, grain=0.001) is None
    assert public_loss(measure.ungrouped, 0.25, hides_each=True, grain=0.001) == 0.25
