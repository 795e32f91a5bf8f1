"""Targeted record swapping on small tables whose partners can be worked out."""

from collections import Counter
from datetime import date
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, PlanError, RefusedError
from sfumato.kernels.swaps import pair_up
from sfumato.methods.record_swapping import TargetedSwapping
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

ROLES = {"hh": Role.HOUSEHOLD, "job": Role.KEY, "age": Role.KEY}


def table_of(**columns):
    frame = pl.DataFrame({name: [*values] for name, values in columns.items()})
    return Table(frame, Schema(tuple(Column(name, Kind.NOMINAL, ROLES.get(name)) for name in columns)))


def swapped(table, method, columns=("area",), seed=1, **more):
    return Recipe((Step(method, columns, **more),)).apply(table, Run(seed=seed)).table.frame


def areas(table, method, **more):
    return "".join(swapped(table, method, **more)["area"])


# -------------------------------------------------------------------------------------------------- kernel


def outcomes_of(profiles, areas, seekers, preferred):
    """Probability of each pairing, by walking all draws of the definition."""
    outcomes = Counter()

    def walk(turn, partners, probability):
        if turn == len(seekers):
            outcomes[tuple(partners)] += probability
            return
        i = seekers[turn]
        free = [
            j
            for j in range(len(areas))
            if partners[j] < 0 <= areas[j] and profiles[j] == profiles[i] and areas[j] != areas[i]
        ]
        if partners[i] >= 0 or areas[i] < 0 or not free:
            walk(turn + 1, partners, probability)
            return
        first = [j for j in free if preferred[j]] or free
        for j in first:
            chosen = list(partners)
            chosen[i], chosen[j] = j, i
            walk(turn + 1, chosen, probability / len(first))

    walk(0, [-1] * len(areas), Fraction(1))
    return outcomes


@pytest.mark.parametrize(
    ("profiles", "areas", "seekers", "preferred"),
    [
        ([0] * 7, [0, 0, 1, 1, 2, 2, 2], [4, 0, 2, 1], []),
        ([5, 5, 5, 5, 5, 2, 2, 2], [9, 3, 3, 7, 7, 3, 3, 9], [1, 3, 7, 0], [2, 6]),
        ([1, 0, 1, 0, 1, 0], [0, 0, 1, 1, -1, 2], [0, 1, 2, 3, 4, 5], [0, 1]),
    ],
)
def test_pairs_follow_the_definition_exactly(profiles, areas, seekers, preferred):
    """Chi-square on whole outcomes; with a fixed seed, a right sampler fails one seed in a thousand."""
    n, n_draws, rng = len(areas), 8000, np.random.default_rng(20240503)
    flags = np.isin(np.arange(n), preferred)
    expected = outcomes_of(profiles, areas, seekers, flags)
    seen = Counter(
        tuple(
            pair_up(
                np.array(profiles), np.array(areas), np.full(n, -1), seekers=np.array(seekers),
                preferred=flags, most=n, rng=rng,
            ).tolist()
        )
        for _ in range(n_draws)
    )  # fmt: skip
    assert set(seen) <= set(expected)
    observed = [seen[outcome] for outcome in expected]
    if len(expected) > 1:
        assert stats.chisquare(observed, [float(p) * n_draws for p in expected.values()]).pvalue > 0.001


def test_pairs_so_far_stay_and_the_number_is_kept():
    before = np.array([1, 0, -1, -1, -1, -1])
    after = pair_up(
        np.zeros(6, dtype=np.int64), np.array([0, 1, 0, 1, 0, 1]), before, seekers=np.arange(6),
        preferred=np.zeros(6, dtype=np.bool_), most=1, rng=np.random.default_rng(1),
    )  # fmt: skip
    assert before.tolist() == [1, 0, -1, -1, -1, -1]
    assert after[:2].tolist() == [1, 0]
    assert (after >= 0).sum() == 4


# -------------------------------------------------------------------------------------------------- method


def test_those_at_risk_exchange_their_areas():
    # a in N (the first) and a in S (the last) are alone with their job in their area, all others are two
    table = table_of(area="NNNSSS", job="abbbba")
    assert areas(table, TargetedSwapping(share=0, k=2)) == "SNNSSN"


def test_nobody_at_risk_and_no_share_changes_nothing():
    table = table_of(area="NNSS", job="aabb")
    assert areas(table, TargetedSwapping(share=0, k=2)) == "NNSS"
    assert areas(table, TargetedSwapping(share=0, k=1)) == "NNSS"


def test_similar_is_given_up_from_the_end():
    # only the first is at risk; nobody elsewhere is equal in sex and age, but the fifth is in sex
    table = table_of(area="NNNSSS", job="abbccc", sex="fmmmfm", age="123456")
    method = TargetedSwapping(share=0, k=2, keys=("job",), similar=("sex", "age"))
    assert areas(table, method) == "SNNSNS"
    # the first named is never given up: nobody elsewhere has the age
    method = TargetedSwapping(share=0, k=2, keys=("job",), similar=("age", "sex"))
    assert areas(table, method) == "NNNSSS"


def test_partners_at_risk_come_first():
    # a in N is alone; in S four are not at risk and d is alone: whatever the seed, they are partners
    table = table_of(area="NNNSSSSS", job="abbccccd")
    for seed in range(10):
        assert areas(table, TargetedSwapping(share=0, k=2), seed=seed) == "SNNSSSSN"


def test_share_makes_up_the_number():
    table = table_of(area="NNNNNSSSSS", job="aaaaaaaaaa")
    for share, changed in [(0, 0), (1, 2), (20, 2), (21, 4), (60, 6), (100, 10)]:
        after = areas(table, TargetedSwapping(share=share, k=2))
        assert sum(a != b for a, b in zip("NNNNNSSSSS", after, strict=True)) == changed
        assert sorted(after) == sorted("NNNNNSSSSS")


def test_area_is_the_combination_of_all_columns():
    """Region and county go together, so that no county turns up in another region."""
    frame = pl.DataFrame(
        {"region": [1, 1, 1, 1, 2, 2, 2, 2], "county": [*"aabbccdd"], "x": [*"pqpqpqpq"], "n": range(8)}
    )
    schema = Schema(tuple(Column(name, Kind.NOMINAL) for name in frame.columns))
    method = TargetedSwapping(share=100, k=1)
    # In one seed of six the last two records are of one county, and stay as they were.
    after = swapped(Table(frame, schema), method, columns=("county", "region"), seed=2)
    assert Counter(after.select("region", "county").rows()) == Counter(
        frame.select("region", "county").rows()
    )
    assert after.select("x", "n").equals(frame.select("x", "n"))
    assert all(a != b for a, b in zip(after["county"], frame["county"], strict=True))


def test_swapped_columns_are_no_keys():
    """The area itself is a key; within one area it tells nobody apart."""
    table = table_of(area="NNNSSS", job="aaaaaa")
    schema = table.schema.replace(Column("area", Kind.NOMINAL, Role.KEY))
    assert areas(Table(table.frame, schema), TargetedSwapping(share=0, k=3)) == "NNNSSS"


def test_missing_areas_stay_and_missing_keys_are_a_value():
    table = table_of(area=["N", None, "N", "N", "S", "S", "?"], job=["a", "b", None, "a", None, None, "z"])
    schema = table.schema.replace(Column("area", Kind.NOMINAL, missing=("?",)))
    after = swapped(Table(table.frame, schema), TargetedSwapping(share=0, k=2))
    # at risk: the third, the only one in N without a job; partner: one of the two in S
    assert after["area"][1] is None
    assert after["area"][6] == "?"
    assert after["area"][2] == "S"
    assert [*after["area"][[0, 3]]] == ["N", "N"]
    assert sorted(after["area"][[4, 5]]) == ["N", "S"]


def test_no_partner_is_told():
    table = table_of(area="NNNN", job="abcd")
    step = Step(TargetedSwapping(share=50, k=2), ("area",))
    released = Recipe((step,)).apply(table, Run(seed=1))
    assert released.table.frame.equals(table.frame)
    (taken,) = released.provenance
    assert taken.notes == ("4 records at risk found no partner and kept their area",)
    assert taken.to_dict()["notes"] == list(taken.notes)


# ---------------------------------------------------------------------------------------------- households


def test_households_move_as_a_whole_to_one_of_their_size():
    # the job z of a member puts household 1, of two, at risk; 4 is the only other one of two in another area
    table = table_of(hh="1122234456", area="NNNNNSSSSS", job="azaaabbbbb")
    assert areas(table, TargetedSwapping(share=0, k=2)) == "SSNNNSNNSS"


def test_household_is_compared_by_its_first_listed_member():
    frame = pl.DataFrame(
        {
            "hh": [1, 1, 2, 2, 3, 3, 4, 4],
            "area": [*"NNNNSSSS"],
            "job": [*"zaaaaaaa"],
            "sex": [*"fmmffmmf"],  # first-listed: f, m, f, m
        }
    )
    schema = Schema(tuple(Column(name, Kind.NOMINAL, ROLES.get(name)) for name in frame.columns))
    for seed in range(5):
        method = TargetedSwapping(share=0, k=2, similar=("sex",))
        assert areas(Table(frame, schema), method, seed=seed) == "SSNNNNSS"


def test_share_counts_households():
    frame = pl.DataFrame(
        {"hh": np.repeat(np.arange(20), 3), "area": np.repeat([*"NS"], 30), "job": ["a"] * 60}
    )
    schema = Schema(tuple(Column(name, Kind.NOMINAL, ROLES.get(name)) for name in frame.columns))
    after = swapped(Table(frame, schema), TargetedSwapping(share=20, k=1))
    moved = frame["hh"].filter(after["area"] != frame["area"])
    assert moved.n_unique() == 4
    assert len(moved) == 12


def test_without_a_number_everyone_is_a_household():
    frame = pl.DataFrame({"hh": [None, None, 1, 1, None], "area": [*"NNSSS"], "job": [*"abccc"]})
    schema = Schema(tuple(Column(name, Kind.NOMINAL, ROLES.get(name)) for name in frame.columns))
    after = areas(Table(frame, schema), TargetedSwapping(share=0, k=2))
    assert after[2:4] == "SS"
    assert after[4] == "N"
    assert sorted(after[:2]) == ["N", "S"]


def test_a_household_in_two_areas_is_refused_without_naming_them():
    table = table_of(hh="1122", area=["Nord", "Ost", "West", "West"], job="aaaa")
    with pytest.raises(DataError, match="1 record different from the first") as caught:
        swapped(table, TargetedSwapping())
    assert not any(word in str(caught.value) for word in ("Nord", "Ost", "West"))


def test_household_itself_is_no_area():
    table = table_of(hh="1122", area="NNSS", job="aaaa")
    with pytest.raises(RefusedError, match="columns of the area"):
        swapped(table, TargetedSwapping(), columns=("hh",))


# ------------------------------------------------------------------------------------------- types, settings


def test_values_of_every_type_move_as_they_are():
    frame = pl.DataFrame(
        {
            "text": [*"aabb"],
            "category": pl.Series([*"xxyy"], dtype=pl.Categorical),
            "level": pl.Series(["lo", "lo", "hi", "hi"], dtype=pl.Enum(["lo", "hi"])),
            "number": [0.1, 0.1, 1e300, 1e300],
            "whole": pl.Series([1, 1, 2**40, 2**40], dtype=pl.Int64),
            "day": [date(2020, 1, 1)] * 2 + [date(2021, 1, 1)] * 2,
        }
    )
    kinds = [Kind.NOMINAL, Kind.NOMINAL, Kind.ORDINAL, Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.DATE]
    schema = Schema(tuple(Column(name, kind) for name, kind in zip(frame.columns, kinds, strict=True)))
    after = swapped(Table(frame, schema), TargetedSwapping(share=100, k=1), columns=tuple(frame.columns))
    assert after.schema == frame.schema
    assert after.equals(frame.reverse())


def test_partners_are_found_within_strata():
    table = table_of(area="NNSSNNSS", job="a" * 8, sex="ffffmmmm")
    after = swapped(table, TargetedSwapping(share=50, k=1), within=("sex",))
    for sex in "fm":
        assert sorted(after.filter(pl.col("sex") == sex)["area"]) == ["N", "N", "S", "S"]


@pytest.mark.parametrize("word", ["similar", "keys"])
def test_a_swapped_column_cannot_be_compared(word):
    table = table_of(area="NNSS", job="aabb")
    with pytest.raises(PlanError, match="protected themselves"):
        swapped(table, TargetedSwapping(**{word: ("area",)}))


# ------------------------------------------------------------------------------------------- what moves along


def test_what_is_carried_along_moves_with_the_area_and_has_no_say():
    """Every postcode is rare: as a key, or to be equal in, it would put everyone at risk or leave them alone."""
    table = table_of(area="NNNSSS", job="abbbba", post="123456")
    schema = table.schema.replace(Column("post", Kind.NOMINAL, Role.KEY))
    method = TargetedSwapping(share=0, k=2, carry_along=("post",), similar=("post",))
    after = swapped(Table(table.frame, schema), method)
    assert ("".join(after["area"]), "".join(after["post"])) == ("SNNSSN", "623451")
    assert after["job"].equals(table.frame["job"])


def test_what_is_carried_along_is_the_same_for_a_household():
    table = table_of(area="NNSS", job="aaaa", hh="1122", post="1233")
    schema = table.schema.replace(Column("hh", Kind.NOMINAL, Role.HOUSEHOLD))
    with pytest.raises(DataError, match="`post` must be the same for all records of a household"):
        swapped(Table(table.frame, schema), TargetedSwapping(carry_along=("post",)))
    with pytest.raises(RefusedError, match="the household"):
        swapped(Table(table.frame, schema), TargetedSwapping(carry_along=("hh",)))
    with pytest.raises(PlanError, match="both be protected and follow another: `area`"):
        swapped(table, TargetedSwapping(carry_along=("area",)))
