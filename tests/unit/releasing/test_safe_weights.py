"""Weights leave as the mean of their released class: they join nobody, tell no stratum, and keep their totals."""

import numpy as np
import polars as pl
import pytest

from sfumato.core.budget import PrivacyBudget, Spending
from sfumato.core.evidence import Evidence
from sfumato.core.release import Byproducts, Provenance, Release, reorder
from sfumato.core.run import Run
from sfumato.data.generalised.suppressing import to_missing
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import PlanError
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.record_swapping import TargetedSwapping
from sfumato.methods.rounding import Rounding
from sfumato.methods.sampling import Sampling
from sfumato.recipes.parts import Output
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.notes import notes_of
from sfumato.releasing.postprocess import postprocess
from sfumato.risk.individual import IndividualRisk
from sfumato.study.column_changes import losses
from sfumato.study.column_sentences import ColumnSentence

RUN = Run(seed=1)
KINDS = {
    "region": (Kind.NOMINAL, Role.KEY), "sex": (Kind.NOMINAL, Role.KEY), "age": (Kind.CONTINUOUS, Role.KEY),
    "vote": (Kind.NOMINAL, Role.SENSITIVE), "income": (Kind.CONTINUOUS, Role.OTHER),
    "home": (Kind.NOMINAL, Role.HOUSEHOLD), "person": (Kind.NOMINAL, Role.PERSON),
    "w": (Kind.CONTINUOUS, Role.WEIGHT),
}  # fmt: skip


def table_of(weight=None, **columns):
    schema = Schema(tuple(Column(name, *KINDS[name]) for name in columns))
    table = Table(pl.DataFrame(columns), schema)
    return table if weight is None else Table(table.frame, schema.replace(weight))


def left_of(table, released=None, *, output=None, **more):
    """What leaves, and what of it was changed, of a release that is the original or another table."""
    release = Release.record_by_record(table if released is None else released)
    return postprocess(Release(**{**vars(release), **more}), table, output or Output(), RUN)


def weights(release):
    return release.first.frame["w"].to_list()


# ------------------------------------------------------------------------------------------------ classes


def test_the_mean_of_the_released_class_stands_for_each_weight():
    """Ten of the north weigh 1 to 10 (5.5 on average), ten of the south 21 to 30 (25.5)."""
    table = table_of(region=["n"] * 10 + ["s"] * 10, w=[*range(1, 11), *range(21, 31)])
    release, changes = left_of(table)
    assert weights(release) == [5.5] * 10 + [25.5] * 10
    assert changes == {"`w` averaged within equivalence classes": 20}
    assert release.exact_weights.by == ("region",)
    assert sum(weights(release)) == 310


def test_nine_records_are_too_few_for_a_mean():
    table = table_of(region=["n"] * 9 + ["s"] * 11, w=[1.0] * 9 + [21.0] * 11)
    assert set(weights(left_of(table)[0])) == {12.0}


@pytest.mark.parametrize("unit", ["home", "person"])
def test_ten_records_of_four_units_are_too_few(unit):
    regions, ones = ["n"] * 10 + ["s"] * 10, [1.0] * 10 + [21.0] * 10
    four, five = [i % 4 for i in range(10)], [i % 5 for i in range(10)]
    others = [9 + i % 5 for i in range(10)]
    assert set(weights(left_of(table_of(region=regions, w=ones, **{unit: four + others}))[0])) == {11.0}
    kept, changes = left_of(table_of(region=regions, w=ones, **{unit: five + others}))
    assert weights(kept) == ones
    assert changes == {}


def test_units_count_where_their_number_is_dropped():
    table = table_of(
        region=["n"] * 10 + ["s"] * 10, home=[i // 3 for i in range(20)], w=[1.0] * 10 + [21.0] * 10
    )
    release, _ = left_of(table, output=Output(drop=("home",)))
    assert set(weights(release)) == {11.0}  # four homes in the north


def test_the_key_that_explains_most_comes_first_and_totals_by_all_that_are_used_stay():
    rng = np.random.default_rng(3)
    region, sex = rng.choice(list("nesw"), 400), rng.choice(list("fm"), 400)
    w = 10.0 * (region == "n") + 3.0 * (sex == "f") + rng.lognormal(0, 0.3, 400)
    table = table_of(
        sex=sex.tolist(), region=region.tolist(), age=rng.permutation(400).tolist(), w=w.tolist()
    )
    release, _ = left_of(table)
    assert release.exact_weights.by == ("region", "sex")  # each age is one record
    for by in (["region"], ["sex"], ["region", "sex"]):
        before, after = (
            each.frame.group_by(by).agg(pl.col("w").sum()).sort(by) for each in (table, release.first)
        )
        np.testing.assert_allclose(before["w"], after["w"], rtol=1e-12)
    assert release.first.frame.group_by("region", "sex").agg(pl.col("w").n_unique())["w"].to_list() == [1] * 8


def test_weights_that_differ_by_nothing_are_left():
    release, changes = left_of(table_of(region=["n", "s"] * 10, w=[0.1] * 20))
    assert weights(release) == [0.1] * 20  # to the last digit
    assert changes == {}


def test_the_weights_of_a_household_are_those_of_others():
    homes = [i // 3 for i in range(60)]
    table = table_of(home=homes, region=["n", "s"] * 30, w=[100.0 + home for home in homes])
    release, _ = left_of(table, output=Output(drop=("home",)))
    shared = pl.DataFrame({"home": homes, "w": weights(release)}).group_by("w").agg(pl.col("home").n_unique())
    assert shared["home"].min() >= 5


# --------------------------------------------------------------------------- what a class must not tell


def test_a_key_that_is_hidden_of_all_of_one_value_makes_no_class():
    """The islands are suppressed: a class of those without a region would have the weight of the islands."""
    table = table_of(region=["i"] * 12 + ["n"] * 40 + ["s"] * 40, w=[2.0] * 12 + [50.0] * 40 + [90.0] * 40)
    gone = to_missing(table, "region", np.arange(92) < 12)
    assert len(set(weights(left_of(table, gone)[0]))) == 1
    mixed = to_missing(table, "region", (np.arange(92) < 12) | (np.arange(92) >= 72))
    assert set(weights(left_of(table, mixed)[0])) == {57.0, 50.0, 90.0}  # (12 · 2 + 20 · 90) / 32


def test_a_dropped_key_is_not_told_by_another():
    table = table_of(region=["i"] * 12 + ["n"] * 40, sex=["f"] * 12 + ["m"] * 40, w=[2.0] * 12 + [50.0] * 40)
    assert set(weights(left_of(table)[0])) == {2.0, 50.0}
    assert len(set(weights(left_of(table, output=Output(drop=("region",)))[0]))) == 1


def five_regions():
    rng = np.random.default_rng(3)
    of = {"north": 212.5, "east": 148.25, "south": 97.75, "west": 331.0, "islands": 18.5}
    region = rng.choice(list(of), 1000, p=[0.3, 0.25, 0.25, 0.18, 0.02]).tolist()
    return table_of(
        region=region, sex=rng.choice(list("fm"), 1000).tolist(), age=rng.integers(18, 80, 1000).tolist(),
        vote=rng.choice(list("abcd"), 1000).tolist(), w=[of[each] for each in region],
    )  # fmt: skip


@pytest.mark.parametrize(
    "step",
    [Step(Mondrian(k=3), ("region", "sex", "age")), Step(TargetedSwapping(share=10, k=3), ("region",))],
)
def test_a_weight_does_not_give_back_the_region_that_was_hidden(step):
    """Records that agree in all released keys have one weight: whose region was which it cannot say."""
    original = five_regions()
    if step.method.name == "targeted-swapping":
        schema = original.schema.replace(Column("age", Kind.ORDINAL, Role.KEY))
        original = Table(original.frame, schema)
    release, _ = postprocess(Recipe.of(step).apply(original, RUN), original, Output(), RUN)
    keys = [pl.col(name).cast(pl.String, strict=False) for name in ("region", "sex")]
    by = list(release.exact_weights.by)
    frame = release.first.frame
    assert frame.group_by(by or [pl.lit(1)]).agg(pl.col("w").n_unique())["w"].max() == 1
    true = original.frame["region"].gather(pl.Series(release.source_rows))
    told = frame.select(*keys, "w").with_columns(true=true).group_by("w").agg(pl.col("true").n_unique())
    assert told["true"].min() > 1
    assert frame["w"].sum() == pytest.approx(original.frame["w"].sum())


# ------------------------------------------------------------------------------------- odd and ill values


def test_missing_weights_stay_and_are_in_no_mean():
    table = table_of(
        Column("w", Kind.CONTINUOUS, Role.WEIGHT, missing=(-9,)),
        region=["n"] * 12, w=[None, -9.0, *map(float, range(1, 11))],
    )  # fmt: skip
    assert weights(left_of(table)[0]) == [None, -9.0] + [5.5] * 10
    empty = table_of(region=["n"] * 2, w=pl.Series([None, None], dtype=pl.Float64))
    assert weights(left_of(empty)[0]) == [None, None]


def test_a_mean_that_would_read_as_missing_moves_for_all_alike():
    weight = Column("w", Kind.CONTINUOUS, Role.WEIGHT, missing=(5.5,))
    (one,) = set(weights(left_of(table_of(weight, region=["n"] * 10, w=list(map(float, range(1, 11)))))[0]))
    assert one != 5.5
    assert one == pytest.approx(5.5)


@pytest.mark.parametrize(("values", "whole"), [(list(range(1, 11)), False), (list(range(11)), True)])
def test_whole_weights_become_decimals_within_their_bounds(values, whole):
    weight = Column("w", Kind.CONTINUOUS, Role.WEIGHT, integer=True, lower=0, upper=10)
    release, _ = left_of(table_of(weight, region=["n"] * len(values), w=values))
    column = release.first.schema["w"]
    assert (column.integer, column.lower, column.upper) == (whole, 0, 10)
    assert sum(weights(release)) == pytest.approx(sum(values))


@pytest.mark.parametrize("values", [[0.0, -3.0, 5.0], [0.0] * 3, [1.0], []])
def test_zero_negative_one_or_no_weight(values):
    table = table_of(region=["n"] * len(values), w=pl.Series(values, dtype=pl.Float64))
    release, _ = left_of(table)
    assert weights(release) == [pytest.approx(sum(values) / max(len(values), 1))] * len(values)
    list(notes_of(table, release, losses(table, release)))


def test_weights_that_are_text():
    table = table_of(region=["n"] * 10, w=[str(i) for i in range(1, 11)])
    assert weights(left_of(table)[0]) == [5.5] * 10


# ---------------------------------------------------------------------------------- whose decision it is

TWENTY = table_of(region=["n"] * 10 + ["s"] * 10, w=[*range(1, 11), *range(21, 31)])


def test_exact_weights_leave_if_the_plan_says_so():
    release, changes = left_of(TWENTY, output=Output(weights="exact"))
    assert weights(release) == weights(left_of(TWENTY, output=Output(weights="exact"))[0])
    assert release.first.frame["w"].equals(TWENTY.frame["w"])
    assert changes == {}
    assert release.exact_weights is None
    (note,) = notes_of(TWENTY, release, losses(TWENTY, release))
    assert note.startswith("the weights in `w` are exact")


def test_the_plan_says_it_and_nothing_else():
    assert Plan.from_dict({"output": {"weights": "exact"}}).output.weights == "exact"
    with pytest.raises(PlanError, match="weights"):
        Plan.from_dict({"output": {"weights": "rough"}})


def test_weights_that_a_step_names_are_its_authors():
    made = Recipe.of(Step(Rounding(base=10), ("w",))).apply(TWENTY, RUN)
    release, _ = postprocess(made, TWENTY, Output(), RUN)
    assert release.first.frame["w"].equals(made.first.frame["w"])
    assert notes_of(TWENTY, release, losses(TWENTY, release)) == ()


def test_weights_that_a_step_only_scales_are_averaged():
    made = Recipe.of(Step(Sampling(share=50), ("sex",), within=("region",))).apply(five_regions(), RUN)
    release, _ = postprocess(made, five_regions(), Output(), RUN)
    assert release.exact_weights is not None
    np.testing.assert_array_equal(release.exact_weights.values, made.first.numbers("w"))
    assert sum(weights(release)) == pytest.approx(made.first.frame["w"].sum())


def test_where_privacy_was_paid_for_the_original_is_not_looked_at():
    """The households of the original would leave no class of enough of them; the release shows none."""
    homes = table_of(
        region=["n"] * 10 + ["s"] * 10, home=[i // 5 for i in range(20)], w=[1.0] * 10 + [21.0] * 10
    )
    spent = Byproducts(budget=PrivacyBudget((Spending("response", epsilon=1.0),)))
    steps = (Provenance("private-response", {}, ("region",), byproducts=spent),)
    assert len(set(weights(left_of(homes, output=Output(drop=("home",)))[0]))) == 1
    release, _ = left_of(homes, output=Output(drop=("home",)), steps=steps)
    assert weights(release) == [1.0] * 10 + [21.0] * 10


# --------------------------------------------------------------------------------------- what was lost


def test_the_note_tells_what_stays_and_what_changes():
    """All 310 weigh the same; of income the mean was (55 · 0 + 255 · 1) / 310, and is still: it is of regions."""
    incomes = [0.0] * 10 + [1.0] * 10
    table = table_of(region=["n"] * 10 + ["s"] * 10, income=incomes, w=[*range(1, 11), *range(21, 31)])
    release, _ = left_of(table)
    (note,) = notes_of(table, release, losses(table, release))
    assert "averaged by `region`, so that totals by these stay exact; 92% of their variance is left" in note
    assert note.endswith("change by up to 0.0% (`income`)")


def test_the_note_tells_the_largest_change():
    """By exact weights the mean of 1 … 10 weighed by 1 … 10 is 7, by their mean 5.5."""
    table = table_of(income=list(map(float, range(1, 11))), w=list(map(float, range(1, 11))))
    release, _ = left_of(table)
    (note,) = notes_of(table, release, losses(table, release))
    assert "over all: their sum stays exact; 0% of their variance is left" in note
    assert note.endswith("up to 21.4% (`income`)")  # 1.5 of 7


def test_a_few_missing_weights_are_told_of():
    table = table_of(region=["n"] * 12, w=[None, *map(float, range(1, 12))])
    release, _ = left_of(table)
    assert any(
        "1 record without a weight" in note for note in notes_of(table, release, losses(table, release))
    )


def test_losses_say_what_became_of_the_weights():
    release, _ = left_of(TWENTY)
    (loss,) = [each for each in losses(TWENTY, release) if each.column == "w"]
    assert str(ColumnSentence(loss)) == "100 % of w changed, by 2.5 on average (9 % of its spread)"


# ------------------------------------------------------------------------------------------------- risks


def test_risks_are_estimated_by_exact_weights():
    """Of the one who weighs 2 there are two in the population, whatever the mean of all."""
    keys = ["lone", *["many"] * 29]
    table = table_of(region=keys, w=[2.0, *[500.0] * 29])
    exact = IndividualRisk().score(Evidence(table, Release.record_by_record(table)), RUN)
    release, _ = left_of(table)
    assert weights(release)[0] > 400
    order = np.random.default_rng(1).permutation(30)
    for made in (release, reorder(release, order)):
        score = IndividualRisk().score(Evidence(table, made), RUN)
        assert score.value == pytest.approx(exact.value)
    read = Release.as_read(release.first.take(order), origin=release.origin.take(order))  # as from its file
    assert IndividualRisk().score(Evidence(table, read), RUN).value == pytest.approx(exact.value)
