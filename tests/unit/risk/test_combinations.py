"""Rare combinations of keys and items: tables worked out by hand, and what the measures refuse."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data import itemsets as coded
from sfumato.data.classes.classes import Classes
from sfumato.data.generalised.intervals import intervals
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.itemset_generalisation import ItemsetGeneralisation
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.risk import itemsets
from sfumato.risk.combinations import LkcPrivacy, UnsafeCombinations
from sfumato.risk.itemsets import KmAnonymity
from toys import table_of

NOMINAL = Kind.NOMINAL
SENSITIVE = (NOMINAL, Role.SENSITIVE)


def score_of(table, measure, **evidence):
    return measure.score(Evidence(table, **evidence), Run(seed=1))


# ------------------------------------------------------------------------------------- unsafe combinations

PEOPLE = {
    "sex": ["m", "m", "m", "f", "f", "f"],
    "job": ["cook", "cook", "smith", "cook", "cook", "smith"],
    "town": ["A", "B", "A", "A", "A", "A"],
}


def people(**more):
    return table_of(PEOPLE | more, sex=NOMINAL, job=NOMINAL, town=NOMINAL)


def test_by_hand():
    """One lives in B; both smiths differ in sex; the male cook of A needs all three keys to stand out."""
    score = score_of(people(), UnsafeCombinations())
    assert score.by_record.tolist() == [1, 1, 1, 0, 0, 1]
    assert score.value == pytest.approx(4 / 6)
    # Record 0 is a male cook in A: job, sex and town together; record 1 lives in B; 2 and 5 are smith and sex.
    assert dict(score.by_column) == {"job": 3.0, "sex": 3.0, "town": 2.0}
    assert [score.details[f"unsafe_{size}"] for size in (1, 2, 3)] == [1, 3, 4]
    assert [score.details[f"smallest_{size}"] for size in (1, 2, 3)] == [1, 2, 1]
    # B; then smith with either sex, B with sex and with job; of three: all combinations but the female cooks of A.
    assert [score.details[f"combinations_{size}"] for size in (1, 2, 3)] == [1, 4, 4]


def test_dimension_and_threshold():
    assert score_of(people(), UnsafeCombinations(dimension=1)).value == pytest.approx(1 / 6)
    assert score_of(people(), UnsafeCombinations(dimension=2)).value == pytest.approx(3 / 6)
    assert score_of(people(), UnsafeCombinations(dimension=1, k=3)).value == pytest.approx(3 / 6)
    # More keys than there are give no more combinations.
    assert score_of(people(), UnsafeCombinations(dimension=6)).value == pytest.approx(4 / 6)


@pytest.mark.parametrize("missing", ["category", "worst"])
@pytest.mark.parametrize("town", [["A", "B", "A", "A", "A", "A"], ["A", None, "A", None, "A", "A"]])
def test_who_is_like_enough_in_all_keys_is_so_in_any_few(monkeypatch, missing, town):
    cells = {key: 3 * values for key, values in (PEOPLE | {"town": town}).items()}
    everyone = table_of(cells, sex=NOMINAL, job=NOMINAL, town=NOMINAL)
    for k in (2, 3, 4):
        measure = UnsafeCombinations(k=k, missing=missing)
        quick = score_of(everyone, measure)
        with monkeypatch.context() as patch:  # look at all subsets, whatever is known of the whole
            patch.setattr(Classes, "persons", np.zeros(1))
            slow = score_of(everyone, measure)
        assert quick.by_record.tolist() == slow.by_record.tolist()
        assert (quick.value, dict(quick.details)) == (slow.value, dict(slow.details))
        assert dict(quick.by_column) == dict(slow.by_column)
        if missing == "category":
            assert (quick.value > 0) == (k > 3)


def test_only_known_keys_count():
    score = score_of(people(), UnsafeCombinations(), scenario=Scenario(columns=("sex", "job")))
    assert score.by_record.tolist() == [0, 0, 1, 0, 0, 1]
    assert set(score.by_column) == {"sex", "job"}


def test_records_of_a_release_are_traced_to_the_original():
    shuffled = people().take(np.array([5, 1, 0, 2, 4, 3]))
    score = score_of(
        people(), UnsafeCombinations(), release=Release.of(shuffled, source_rows=np.array([5, 1, 0, 2, 4, 3]))
    )
    assert score.by_record.tolist() == [1, 1, 1, 0, 0, 1]


def test_generalised_keys_are_values_like_others():
    table = Table(
        pl.DataFrame([intervals([1, 1, 1], [5, 5, 6], name="age")]),
        Schema((Column("age", Kind.CONTINUOUS, Role.KEY),)),
    )
    assert score_of(table, UnsafeCombinations()).by_record.tolist() == [0, 0, 1]


def test_unused_categories_and_filtered_frames():
    kind = pl.Enum(["never", "A", "B"])
    frame = people().frame.with_columns(pl.col("town").cast(kind)).filter(pl.col("sex") == "f")
    score = score_of(Table(frame, people().schema), UnsafeCombinations(dimension=1))
    assert score.value == pytest.approx(1 / 3)
    assert score.details["combinations_1"] == 1


@pytest.mark.parametrize(
    ("policy", "expected"), [("category", [1, 0, 0]), ("any", [0, 0, 0]), ("worst", [1, 0, 0])]
)
def test_missing_key(policy, expected):
    table = table_of({"job": [None, "cook", "cook"]}, job=NOMINAL)
    assert score_of(table, UnsafeCombinations(missing=policy)).by_record.tolist() == expected


def test_worst_missing_keys_do_not_hide_each_other():
    table = table_of({"job": [None, None, "cook", "cook"]}, job=NOMINAL)
    assert score_of(table, UnsafeCombinations()).value == 0
    assert score_of(table, UnsafeCombinations(missing="worst")).by_record.tolist() == [1, 1, 0, 0]


def test_persons_are_counted():
    records = {"job": ["cook", "cook", "smith", "smith"], "who": [1, 1, 1, 2]}
    table = table_of(records, job=NOMINAL, who=(NOMINAL, Role.PERSON))
    score = score_of(table, UnsafeCombinations())
    assert score.by_record.tolist() == [1, 1, 0, 0]  # both cooks are one person
    assert score.value == 0.5
    assert score.details["counted"] == "persons"


def test_too_many_subsets_are_refused():
    names = [f"k{i:02}" for i in range(60)]
    table = table_of({name: [1, 2] for name in names}, **dict.fromkeys(names, NOMINAL))
    score = score_of(table, UnsafeCombinations())
    assert score.status is Status.REFUSED
    assert "60 keys" in score.reason
    assert score_of(table, UnsafeCombinations(dimension=2)).value == 1
    sensitive = table_of(
        {name: [1, 2] for name in [*names, "s"]}, **dict.fromkeys(names, NOMINAL), s=SENSITIVE
    )
    assert score_of(sensitive, LkcPrivacy(l=3)).status is Status.REFUSED


def test_nobody_is_not_estimable():
    nobody = people().take(np.arange(0))
    assert score_of(nobody, UnsafeCombinations()).status is Status.NOT_ESTIMABLE


def test_more_combinations_than_fit_into_a_table():
    """Keys of many values are counted by hashing."""
    rng = np.random.default_rng(5)
    frame = {name: rng.integers(0, 60, 2000) ** 2 for name in "xyz"}
    score = score_of(table_of(frame, x=NOMINAL, y=NOMINAL, z=NOMINAL), UnsafeCombinations(k=2))
    rare = np.zeros((4, 2000), dtype=bool)
    for row, names in zip(rare, ("xy", "xz", "yz", "xyz"), strict=True):
        keys = np.column_stack([frame[name] for name in names])
        _, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        row[:] = (counts == 1)[which.ravel()]
    assert score.details["unsafe_2"] == rare[:3].any(axis=0).sum() < 2000
    assert score.details["unsafe_3"] == rare.any(axis=0).sum() == score.value * 2000


# ---------------------------------------------------------------------------------------------------- LKC

WARD = {
    "sex": ["m", "m", "m", "f", "f", "f"],
    "job": ["cook", "cook", "smith", "smith", "cook", "smith"],
    "ill": ["flu", "flu", "angina", "flu", "angina", "gout"],
}


def ward(**more):
    return table_of(WARD | more, sex=NOMINAL, job=NOMINAL, ill=SENSITIVE)


def test_lkc_by_hand():
    """One key known: groups of three, in which two of three have the flu at most."""
    one = score_of(ward(), LkcPrivacy(l=1, c=0.7))
    assert one.value == 3
    assert one.details["highest_confidence"] == pytest.approx(2 / 3)
    assert one.details["feasible"] == "yes"
    assert one.by_record.tolist() == [3] * 6
    # Half is too sure: the model does not hold for any K.
    assert score_of(ward(), LkcPrivacy(l=1, c=0.5)).value == 0
    # Two keys known: the male cooks have the flu, and the male smith is alone.
    two = score_of(ward(), LkcPrivacy(l=2, c=1.0))
    assert two.value == 1
    assert two.by_record.tolist() == [2, 2, 1, 2, 1, 2]
    assert dict(two.by_column) == {"ill": 1.0}


def test_lkc_equal_to_the_bound_holds():
    table = table_of({"sex": ["m"] * 3, "ill": ["flu", "gout", "angina"]}, sex=NOMINAL, ill=SENSITIVE)
    assert score_of(table, LkcPrivacy(l=1, c=1 / 3)).value == 3


def test_lkc_of_several_sensitive_columns_is_the_worst():
    table = table_of(
        {"sex": ["m", "m"], "ill": ["flu", "gout"], "pay": [5, 5]},
        sex=NOMINAL, ill=SENSITIVE, pay=(Kind.CONTINUOUS, Role.SENSITIVE),
    )  # fmt: skip
    score = score_of(table, LkcPrivacy(l=1))
    assert dict(score.by_column) == {"ill": 0.5, "pay": 1.0}
    assert score.value == 0
    assert score_of(table, LkcPrivacy(l=1, sensitive=("ill",))).value == 2


@pytest.mark.parametrize(("policy", "confidence"), [("category", 2 / 3), ("any", 1 / 3), ("worst", 1.0)])
def test_lkc_missing_sensitive_value(policy, confidence):
    table = table_of({"sex": ["m"] * 3, "ill": ["flu", None, None]}, sex=NOMINAL, ill=SENSITIVE)
    score = score_of(table, LkcPrivacy(l=1, missing=policy))
    assert score.details["highest_confidence"] == pytest.approx(confidence)


def test_lkc_of_persons_looks_at_fewer_keys_as_well():
    """Both of two persons have had the flu, though in no job more than one of two has it."""
    table = table_of(
        {"sex": ["m"] * 4, "job": ["cook", "cook", "smith", "smith"], "ill": ["flu", "gout", "gout", "flu"],
         "who": [1, 2, 1, 2]},
        sex=NOMINAL, job=NOMINAL, ill=SENSITIVE, who=(NOMINAL, Role.PERSON),
    )  # fmt: skip
    score = score_of(table, LkcPrivacy(l=2))
    assert score.details["highest_confidence"] == 1
    assert score.details["smallest_group"] == 2
    assert score.value == 0


def test_lkc_needs_something_to_learn():
    score = score_of(people(), LkcPrivacy())
    assert score.status is Status.REFUSED
    assert score.reason


# --------------------------------------------------------------------------------------------------- k^m


def baskets(*sets, name="items", items=pl.String, **more):
    frame = pl.DataFrame({name: pl.Series(sets, dtype=pl.List(items)), **more})
    columns = [Column(name, Kind.SET, Role.KEY)]
    columns += [Column(other, NOMINAL, Role.PERSON) for other in more]
    return Table(frame, Schema(tuple(columns)))


def test_km_by_hand():
    """Terrovitis, Mamoulis, Kalnis: knowing more items points out fewer."""
    table = baskets(["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"])
    assert [score_of(table, KmAnonymity(m=m)).value for m in (1, 2, 3)] == [3, 2, 1]
    three = score_of(table, KmAnonymity(m=3))
    assert three.by_record.tolist() == [1, 2, 2, 2]
    assert [three.details[f"combinations_{m}"] for m in (1, 2, 3)] == [3, 3, 1]
    assert [three.details[f"smallest_{m}"] for m in (1, 2, 3)] == [3, 2, 1]


def related(sets, **columns):
    """Sets beside columns of single values, all known."""
    frame = pl.DataFrame({"items": pl.Series(sets, dtype=pl.List(pl.String)), **columns})
    kinds = [Column("items", Kind.SET, Role.KEY), *(Column(name, NOMINAL, Role.KEY) for name in columns)]
    return Table(frame, Schema(tuple(kinds)))


def test_k_km_by_hand():
    """Two of four have a, but of each sex only one: who knows the sex besides points them out."""
    table = related([["a"], ["b"], ["a"], ["b"]], sex=list("ffmm"))
    assert score_of(table, KmAnonymity(m=1)).value == 2
    assert score_of(table, KmAnonymity(m=1, given=("sex",))).value == 1
    whole = related([["a"], [], ["a"]], sex=list("fff"))
    assert score_of(whole, KmAnonymity(given=("@key",))).by_record.tolist() == [2, 3, 2]
    alone = related([["a"], ["a"], []], sex=list("ffm"))
    assert score_of(alone, KmAnonymity(given=("sex",))).by_record.tolist() == [2, 2, 1]
    assert score_of(alone, KmAnonymity(given=("sex",), missing="any")).status is Status.REFUSED


@given(
    sets=st.lists(st.none() | st.lists(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=12),
    m=st.integers(1, 3),
    data=st.data(),
)
def test_k_km_counted_record_by_record(sets, m, data):
    """All that an intruder may know of each record: its keys, and up to m of its items."""
    keys = [
        data.draw(st.lists(st.sampled_from(["x", "y", None]), min_size=len(sets), max_size=len(sets)))
        for _ in "pq"
    ]
    known = [frozenset(items) if items is not None else frozenset({None}) for items in sets]
    alike = list(zip(*keys, strict=True))
    least = [
        min(
            sum(alike[j] == alike[i] and some <= known[j] for j in range(len(sets)))
            for size in range(min(m, len(known[i])) + 1)
            for some in map(frozenset, combinations(known[i], size))
        )
        for i in range(len(sets))
    ]
    found = score_of(related(sets, p=keys[0], q=keys[1]), KmAnonymity(m=m, given=("p", "q")))
    if any(known):
        assert found.by_record.tolist() == least
        assert found.value == min(least)
    else:
        assert found.status is Status.NOT_ESTIMABLE


def test_two_steps_give_k_km_anonymity():
    """Keys first, then items within the classes of the keys; without the classes it does not hold."""
    rng = np.random.default_rng(1)
    sets = [rng.choice(list("abcdefgh"), rng.integers(1, 5), replace=False).tolist() for _ in range(80)]
    table = related(sets, age=[str(age) for age in rng.integers(20, 30, 80)], sex=rng.choice(list("fm"), 80))
    asked = KmAnonymity(m=2, given=("age", "sex"))
    coarse = Step(GlobalRecoding(k=4), ("age", "sex"))
    items = ItemsetGeneralisation(k=4, m=2)
    for within, holds in ((("age", "sex"), True), ((), False)):
        release = Recipe((coarse, Step(items, ("items",), within=within))).apply(table, Run(seed=1))
        assert (asked.score(Evidence(table, release), Run(seed=1)).value >= 4) == holds


def test_an_item_counts_once_in_a_set_whatever_its_order():
    assert score_of(baskets(["b", "a", "a"], ["a", "b"]), KmAnonymity(m=3)).value == 2


def test_a_small_set_is_pointed_out_by_fewer_items():
    """Nobody has three items, yet who has only z is alone with one."""
    score = score_of(baskets(["a", "b"], ["b", "a"], ["z"]), KmAnonymity(m=3))
    assert score.by_record.tolist() == [2, 2, 1]
    assert score.details["combinations_3"] == 0
    assert score.details["smallest_3"] == 0


def test_of_an_empty_set_nothing_can_be_known():
    score = score_of(baskets(["a"], [], ["a"]), KmAnonymity())
    assert score.by_record.tolist() == [2, 3, 2]
    assert score_of(baskets([], []), KmAnonymity()).status is Status.NOT_ESTIMABLE
    assert score_of(baskets().take(np.arange(0)), KmAnonymity()).status is Status.NOT_ESTIMABLE


@pytest.mark.parametrize(("policy", "value"), [("category", 1), ("any", 3), ("worst", 1)])
def test_km_missing_set(policy, value):
    assert score_of(baskets(["a"], ["a"], None), KmAnonymity(missing=policy)).value == value


@pytest.mark.parametrize(("policy", "value"), [("category", 1), ("any", 1), ("worst", 1)])
def test_km_what_is_there_of_a_set_with_a_hole_is_known(policy, value):
    table = baskets(["a"], ["a"], ["rare", None])
    assert score_of(table, KmAnonymity(m=1, missing=policy)).value == value


def test_km_needs_lists():
    text = table_of({"s": ["a", "b"]}, s=(Kind.SET, Role.KEY))
    with pytest.raises(DataError, match="`s` does not hold lists"):
        score_of(text, KmAnonymity())


def test_km_two_missing_sets_are_alike_but_not_at_worst():
    table = baskets(["a"], ["a"], None, None)
    assert score_of(table, KmAnonymity()).value == 2
    assert score_of(table, KmAnonymity(missing="worst")).value == 1


def test_items_of_two_columns_are_known_together():
    table = Table(
        pl.DataFrame({"i": [["a"], ["a"], ["b"], ["b"]], "j": [["a"], ["c"], ["a"], ["c"]]}),
        Schema((Column("i", Kind.SET, Role.KEY), Column("j", Kind.SET, Role.KEY))),
    )
    assert score_of(table, KmAnonymity(m=1)).value == 2
    assert score_of(table, KmAnonymity(m=2)).value == 1


def test_km_numbers_are_items_too():
    assert score_of(baskets([1, 2], [2, 1], items=pl.Int64), KmAnonymity()).value == 2
    assert score_of(baskets([1.5, float("nan")], [1.5, None], items=pl.Float64), KmAnonymity()).value == 2


def test_km_persons_are_counted():
    table = baskets(["a", "b"], ["a", "b"], ["a", "b"], who=[7, 7, 8])
    score = score_of(table, KmAnonymity())
    assert score.value == 2
    # Of two records of one person each has one of the items: nobody has both in one.
    split = baskets(["a"], ["b"], ["a", "b"], who=[7, 7, 8])
    assert score_of(split, KmAnonymity()).by_record.tolist() == [2, 2, 1]


@pytest.mark.parametrize("limit", ["MAX_COMBINATIONS", "MAX_COMBINATIONS_OF_ONE"])
def test_too_many_combinations_are_not_estimable(monkeypatch, limit):
    monkeypatch.setattr(itemsets, limit, 5)
    score = score_of(baskets(list("abcdef")), KmAnonymity())
    assert score.status is Status.NOT_ESTIMABLE
    assert "combinations of up to 2 items" in score.reason


def test_blocks_do_not_change_the_answer(monkeypatch):
    rng = np.random.default_rng(2)
    table = baskets(*(rng.choice(list("abcdefgh"), size=rng.integers(0, 6)).tolist() for _ in range(60)))
    whole = score_of(table, KmAnonymity(m=3))
    monkeypatch.setattr(coded, "_BATCH", 20)
    cut = score_of(table, KmAnonymity(m=3))
    np.testing.assert_array_equal(whole.by_record, cut.by_record)
    assert whole.details == cut.details
