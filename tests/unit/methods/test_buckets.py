"""Methods that take values apart: worked examples, who is refused, several columns, keys that are coarse."""

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sfumato import Column, Kind, Recipe, Role, Schema, Step, Table, assess, protect
from sfumato.core.evidence import Evidence
from sfumato.core.origin import Origin
from sfumato.core.run import Run
from sfumato.data.buckets import join_buckets
from sfumato.data.scenario import Scenario
from sfumato.errors import DataError, PlanError, RefusedError, UnreachableError
from sfumato.methods import (
    Anatomy,
    Angelisation,
    Bucketisation,
    Mondrian,
    RankSwapping,
    Slicing,
    TargetedSwapping,
)
from sfumato.methods.slicing import associations, contingency, medoids
from sfumato.risk.diversity import AlphaKAnonymity

N = 240
ROLES = {"age": Role.KEY, "job": Role.KEY, "area": Role.KEY, "ill": Role.SENSITIVE, "debt": Role.SENSITIVE}


def people(n=N, seed=1):
    """Job tells the area; the age and the illness know nothing of them."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 4, n)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "job": [f"job{code}" for code in job],
            "area": [f"area{code}" for code in job // 2],
            "ill": [f"ill{code}" for code in rng.permutation(np.arange(n) % 6)],
            "debt": rng.choice(["none", "some", "much"], n),
        }
    )
    kinds = {name: Kind.CONTINUOUS if name == "age" else Kind.NOMINAL for name in frame.columns}
    return Table(frame, Schema(tuple(Column(name, kinds[name], ROLES[name]) for name in frame.columns)))


def shares(release, name):
    """The largest share of a value in each bucket."""
    buckets = release.buckets
    inside = pl.DataFrame({"bucket": buckets.of_record, "value": buckets.values.frame[name]})
    counts = inside.group_by("bucket", "value").len().group_by("bucket").agg(pl.max("len") / pl.sum("len"))
    return counts["len"].to_numpy()


@pytest.mark.parametrize("cls", [Anatomy, Bucketisation, Angelisation, Slicing])
def test_several_sensitive_columns_are_each_parted_and_stay_together(cls):
    table = people()
    release = protect(table, cls(l=2), seed=1)
    for name in ("ill", "debt"):
        assert shares(release, name).max() <= 1 / 2
    last = list(release.tables.values())[-1].frame
    assert Counter(last.select("ill", "debt").iter_rows()) == Counter(
        table.frame.select("ill", "debt").iter_rows()
    )
    assert assess(table, release, ["l", "alpha"], seed=1)["l"].value >= 2


def test_one_column_may_be_named_and_the_other_stays():
    release = protect(people(), Anatomy(l=4, sensitive=("ill",)), seed=1)
    assert release.tables["st"].names == ("bucket", "ill")
    assert "debt" in release.tables["qit"].names
    scores = assess(people(), release, ["l(sensitive=ill)", "l(sensitive=debt)", "l"], seed=1)
    assert [each.value for each in scores.values()][:2] == [4.0, 1.0]
    assert "cannot judge both at once: 1 in buckets and 1 beside their records" in scores["l"].reason


def test_anatomy_makes_as_many_buckets_as_can_have_l_records():
    release = protect(people(), Anatomy(l=5, sensitive=("ill",)), seed=1)
    sizes = Counter(release.tables["qit"].frame["bucket"])
    assert len(sizes) == N // 5
    assert set(sizes) == set(range(1, N // 5 + 1))
    assert set(sizes.values()) == {5}
    assert shares(release, "ill").tolist() == [0.2] * (N // 5)


def test_the_order_of_the_second_table_tells_nothing():
    """The first record of a bucket has the first value of it no more often than any other would."""
    table = people(3000)
    release = protect(table, Anatomy(l=3, sensitive=("ill",)), seed=1)
    first = (
        release.tables["qit"].frame.with_columns(table.frame["ill"]).group_by("bucket").agg(pl.first("ill"))
    )
    listed = release.tables["st"].frame.group_by("bucket").agg(pl.first("ill").alias("listed"))
    both = first.join(listed, on="bucket")
    assert 0.28 < (both["ill"] == both["listed"]).mean() < 0.39
    assert release.tables["st"].frame["bucket"].is_sorted()
    positions = pl.DataFrame({"bucket": release.tables["qit"].frame["bucket"], "row": np.arange(3000)})
    means = positions.group_by("bucket").agg(pl.mean("row")).sort("bucket")["row"].to_numpy()
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.12  # nor do the numbers


def test_counts_say_the_same_in_fewer_rows():
    table = people().select(["age", "job", "area", "debt"])
    table = table.with_values("debt", pl.Series(["none", "some"] * (N // 2)))
    plain, counted = (protect(table, Bucket, seed=1) for Bucket in (Anatomy(l=2), Anatomy(l=2, counts=True)))
    assert counted.tables["st"].names == ("bucket", "debt", "count")
    assert counted.tables["st"].frame["count"].sum() == N
    asked = ["k", "l", "t", "alpha", "query-error"]
    assert assess(table, plain, asked, seed=1) == assess(table, counted, asked, seed=1)


def test_buckets_of_bucketisation_hold_near_records():
    """Each spans less of the age than buckets that are dealt out whatever the keys."""
    table = people().select(["age", "ill"])
    spans = []
    for method in (Bucketisation(l=3), Anatomy(l=3)):
        release = protect(table, method, seed=1)
        spans.append(release.first.frame.group_by("bucket").agg(pl.max("age") - pl.min("age"))["age"].mean())
    assert spans[0] < spans[1] / 4


def test_batches_meet_what_is_asked_and_keys_are_shared_by_k():
    table = people()
    release = protect(table, Angelisation(l=2, k=6, also=("t <= 0.3", "l(kind=entropy) >= 2.5")), seed=1)
    scores = assess(table, release, ["k", "t", "l(kind=entropy)"], seed=1)
    assert scores["k"].value >= 6
    assert scores["t"].value <= 0.3
    assert scores["l(kind=entropy)"].value >= 2.5
    with pytest.raises(RefusedError, match="models of sensitive values, got: `uniqueness`"):
        protect(table, Angelisation(also=("uniqueness <= 0",)), seed=1)
    with pytest.raises(UnreachableError, match="l-diversity"):
        protect(table, Angelisation(l=2, k=2, also=("l >= 4",)), seed=1)  # debt has three values


def test_contingency_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    joint = np.histogram2d(first, second, bins=(4, 3))[0] / 500
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    assert contingency(first, second) == pytest.approx(((joint - alone) ** 2 / alone).sum() / 2)
    assert contingency(first, first) == pytest.approx(1)
    assert contingency(first, np.zeros(500, dtype=np.int64)) == 0


def test_columns_that_hang_together_are_in_one_slice():
    table = people().select(["age", "job", "area", "ill"]).aimed_at(("age", "area", "job"))
    ties = associations(table, table.chosen, ("ill",))
    assert ties[2, 3] == pytest.approx(1)  # area and job
    release = protect(table, Slicing(l=2, slices=3), seed=1)
    together = [set(each.names) - {"bucket"} for each in release.tables.values()]
    assert {"job", "area"} in together
    assert medoids(np.array([[0.0, 1, 9], [1, 0, 9], [9, 9, 0]]), 2) in ([0, 2], [1, 2])


def test_a_key_that_gives_values_away_is_not_shown_beside_them():
    """The ward tells the illness: beside it every illness would be certain."""
    table = people().select(["age", "job", "ill"])
    table = table.with_values("job", table.frame["ill"])
    release = protect(table, Slicing(l=3), seed=1)
    assert release.tables["slice2"].names == ("bucket", "ill")


@pytest.mark.parametrize(
    ("swapping", "swapped"), [(RankSwapping(window=20), "age"), (TargetedSwapping(share=30), "area")]
)
def test_values_may_be_swapped_before_they_are_sliced(swapping, swapped):
    """Slices hold the swapped values, which are those of the original, and buckets what they promise."""
    table = people()
    recipe = Recipe((Step(swapping, (swapped,)), Step(Slicing(l=2), ("age", "job", "area"))))
    release = protect(table, recipe, seed=1)
    assert [each.method for each in release.provenance] == [swapping.name, "slicing"]
    shown = {name: each.frame[name] for each in release.tables.values() for name in each.names}
    for name in table.names:
        assert Counter(shown[name]) == Counter(table.frame[name])
    for name in ("ill", "debt"):
        assert shares(release, name).max() <= 1 / 2
    assert assess(table, release, ["l"], seed=1)["l"].value >= 2
    own = release.buckets.values.frame[swapped]
    assert not own.equals(table.frame[swapped].gather(release.source_rows))


def test_keys_made_coarser_before_are_taken_as_they_are():
    table = people()
    keys = ("age", "job", "area")
    for method in (Anatomy(l=2), Bucketisation(l=2), Slicing(l=2), Anatomy(l=2, permute=True)):
        recipe = Recipe(
            (Step(Mondrian(k=1 if getattr(method, "permute", False) else 6), keys), Step(method, keys))
        )
        release = recipe.apply(table, Run(seed=1))
        coarse = Recipe(recipe.steps[:1]).apply(table, Run(seed=1)).table
        shown = {name: each for each in release.tables.values() for name in each.names}
        for name in keys:
            before, after = (Counter(map(str, each.frame[name])) for each in (coarse, shown[name]))
            assert before == after
        scores = assess(table, release, ["k", "l"], seed=1)
        assert scores["l"].value >= 2
        assert scores["k"].value >= (1 if getattr(method, "permute", False) else 6)
    angels = Recipe((Step(Mondrian(k=6), keys), Step(Angelisation(l=2, k=6), keys))).apply(table, Run(seed=1))
    assert angels.first.frame.select(keys).equals(coarse_of(table, keys).frame.select(keys))


def coarse_of(table, keys):
    return Recipe((Step(Mondrian(k=6), keys),)).apply(table, Run(seed=1)).table


def test_keys_that_overlap_stand_in_both_slices_and_join_them():
    table = people()
    plain, shared = (protect(table, Slicing(l=2, overlap=count), seed=1) for count in (0, 1))
    assert all(each == ("bucket",) for each in plain.layout.keys.values())
    ((_, twice),) = set(shared.layout.keys.values())
    assert all(twice in each.names for each in shared.tables.values())
    assert twice not in shared.buckets.names
    inside = (
        shared.tables["slice2"]
        .frame.group_by("bucket", twice)
        .agg(pl.col("ill").value_counts(parallel=False))
    )
    for rows in inside["ill"]:
        assert max(row["count"] for row in rows) * 2 <= sum(row["count"] for row in rows)
    coarse = Recipe((Step(Mondrian(k=60), ("age",)), Step(Slicing(l=2, overlap=3), ("age", "job", "area"))))
    release = coarse.apply(table, Run(seed=1))
    assert 1 < len(release.layout.keys["slice1"]) < 4  # some of the keys, and the bucket
    assert assess(table, release, ["alpha"], seed=1)["alpha"].value <= 1 / 2
    with pytest.raises(RefusedError, match="must be 2 with an `overlap`, got: 3"):
        protect(table, Slicing(l=2, slices=3, overlap=1), seed=1)


def test_who_knows_all_keys_finds_them_in_whichever_table_they_stand():
    """Shuffled keys hide which of them belong together, not from somebody who knows them together."""
    table = people()
    control = {"control": people(seed=2)}
    plain, shuffled = (protect(table, Anatomy(l=2, permute=permute), seed=1) for permute in (False, True))
    asked = ["k", "uniqueness", "dbrl", "gdbrl", "exact-match", "suda", "membership", "singling-out"]
    first, second = (assess(table, each, asked, seed=1, resources=control) for each in (plain, shuffled))
    for name in asked:
        assert second[name].value == first[name].value
    assert second["gdbrl"].proof.verify(Evidence(table, shuffled), Run(seed=1)) is None
    strange = replace(
        shuffled, origin=Origin.unknown(), layout=replace(shuffled.layout, moved={}, sources={})
    )  # read by who is not the owner
    reason = assess(table, strange, ["membership"], seed=1, resources=control)["membership"].reason
    assert "`age` (in buckets)" in reason
    scores = assess(table, shuffled, ["linkability", "xy-anonymity"], seed=1, resources=control)
    assert "beside each other" in scores["linkability"].reason
    assert "the release links them to buckets only" in scores["xy-anonymity"].reason


def test_it_is_the_last_step_of_all_records_at_once():
    table = people()
    with pytest.raises(PlanError, match="must be the last step"):
        Recipe((Step(Anatomy(), ("age",)), Step(RankSwapping(), ("age",)))).apply(table, Run(seed=1))
    for how in ({"within": ("area",)}, {"together": "area"}):
        with pytest.raises(PlanError, match="neither `within` nor `together`"):
            Step(Anatomy(), ("age",), **how).apply(table, Run(seed=1))


def test_who_cannot_be_parted_is_refused_with_the_way_on():
    table = people()
    with pytest.raises(UnreachableError) as refused:
        protect(table, Anatomy(l=7, sensitive=("ill",)), seed=1)
    assert "a value with 40 of 240" in refused.value.message
    assert refused.value.hint == "use l = 6"
    holes = table.with_values("ill", table.frame["ill"].set(pl.Series(np.arange(N) < 20), None))
    with pytest.raises(DataError, match="got: 20 missing"):
        protect(holes, Anatomy(l=2), seed=1)
    parted = protect(holes, Anatomy(l=2, missing="category"), seed=1)
    assert parted.tables["st"].frame["ill"].null_count() == 20
    assert assess(holes, parted, ["alpha"], seed=1)["alpha"].value <= 0.5
    whose = Column("pid", Kind.NOMINAL, Role.PERSON)
    twice = Table(
        table.frame.with_columns(pl.Series("pid", np.arange(N) // 2)), Schema((*table.schema.columns, whose))
    )
    with pytest.raises(RefusedError, match="one record per person, got: 120 more"):
        protect(twice, Anatomy(l=2), seed=1)
    with pytest.raises(RefusedError, match="sensitive columns that are not keys, got: none"):
        protect(table.select(["age", "job"]), Anatomy(l=2), seed=1)
    with pytest.raises(RefusedError, match="`debt`, which are keys"):
        protect(table, Anatomy(l=2), columns=["age", "debt"], seed=1)


def test_households_that_can_be_put_together_are_not_said_to_be_safe():
    """Members of a household may share a value, and then their buckets have it in common."""
    table = people()
    house = Column("house", Kind.NOMINAL, Role.HOUSEHOLD)
    homes = Table(
        table.frame.with_columns(pl.Series("house", np.arange(N) // 2)),
        Schema((*table.schema.columns, house)),
    )
    release = protect(homes, Anatomy(l=2), seed=1)
    assert "`house` links the records of several of them" in assess(homes, release, ["l"], seed=1)["l"].reason


def test_a_bucket_column_gets_a_name_that_is_free():
    table = people().select(["age", "ill"])
    named = Table(
        table.frame.rename({"age": "bucket"}),
        Schema((Column("bucket", Kind.CONTINUOUS, Role.KEY), table.schema["ill"])),
    )
    assert protect(named, Anatomy(l=2), seed=1).tables["qit"].names == ("bucket", "bucket_2")


def test_tables_that_do_not_belong_together_are_not_joined():
    release = protect(people(), Anatomy(l=2), seed=1)
    other = protect(people(), Anatomy(l=2), seed=2)
    mixed = {"qit": release.tables["qit"], "st": other.tables["st"].take(np.arange(N - 1))}
    with pytest.raises(DataError, match="the same number of records in each bucket"):
        join_buckets(mixed, replace(release.layout, sources={}, moved={}), release.source_rows)


def test_sensitive_columns_in_tables_of_their_own_are_judged_together():
    """Who knows the illness and finds its row has the debt beside it, unless that is in another table."""
    table = people()
    worst = {}
    for tables in (1, 2, 5):
        release = protect(table, Angelisation(l=2, k=4, tables=tables), seed=1)
        assert all(shares(release, name).max() <= 0.5 for name in ("ill", "debt"))
        assert list(release.tables) == (["gt", "bt"] if tables == 1 else ["gt", "bt1", "bt2"])
        known = Scenario(columns=("age", "job", "area", "ill"))
        evidence = Evidence(table, release, known)
        worst[tables] = AlphaKAnonymity(sensitive=["debt"]).score(evidence, Run(seed=1)).value
        assert assess(table, release, ["k"], seed=1)["k"].value >= 4
    assert (worst[1], worst[2] <= 0.5, worst[5] <= 0.5) == (1.0, True, True)


def test_related_sensitive_columns_share_a_table():
    table = people()
    cost = pl.Series([f"cost{text[-1]}" for text in table.frame["ill"]])
    table = table.with_values("cost", cost, column=Column("cost", Kind.NOMINAL, Role.SENSITIVE))
    release = protect(table, Angelisation(l=2, k=4, tables=2), seed=1)
    assert [each.names for each in release.tables.values()][1:] == [
        ("bucket", "cost", "ill"),
        ("bucket", "debt"),
    ]
    counted = protect(table, Angelisation(l=2, k=4, tables=3, counts=True), seed=1)
    assert {each.names[-1] for each in list(counted.tables.values())[1:]} == {"count"}
    assert {*counted.reading().names} == {*release.reading().names}
