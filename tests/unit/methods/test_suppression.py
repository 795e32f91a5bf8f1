"""Suppression of cells, records and columns on small tables whose answer is worked out."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, ParameterError, PlanError, RefusedError, UnreachableError
from sfumato.methods.coarsening import NaiveCoarsening
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.suppression import AttributeSuppression, RecordSuppression, TrivialRemoval
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step


def table_of(columns, roles=None, **facts):
    frame = pl.DataFrame(columns)
    kinds = {pl.String: Kind.NOMINAL, pl.Int64: Kind.CONTINUOUS, pl.Float64: Kind.CONTINUOUS}
    described = [
        Column(
            name,
            kinds.get(frame.schema[name].base_type(), Kind.SET),
            (roles or {}).get(name, Role.KEY),
            **facts.get(name, {}),
        )
        for name in frame.columns
    ]
    return Table(frame, Schema(tuple(described)))


def release_of(table, method, columns=None, **more):
    names = columns or tuple(name for name in table.names if table.schema[name].role is Role.KEY)
    return Recipe((Step(method, tuple(names), **more),)).apply(table, Run(seed=1))


def shown(release, name):
    return release.table.frame[name].to_list()


WARD = {
    "age": [30, 30, 30, 41, 41, 41, 50],
    "sex": ["m", "m", "m", "f", "f", "f", "f"],
}


# Cells -------------------------------------------------------------------------------------------------


def test_the_lone_record_and_its_helper_by_hand():
    """The woman of 50 differs from three of 41. As `any`, her age is enough. As a value of its own, a missing
    age needs another one: with k = 2 one of the three gives hers, and two of 41 are left."""
    table = table_of(WARD)
    release = release_of(table, LocalSuppression(k=2, missing="any"))
    assert shown(release, "age") == [30, 30, 30, 41, 41, 41, None]
    release = release_of(table, LocalSuppression(k=2))
    assert sum(age is None for age in shown(release, "age")) == 2
    assert shown(release, "sex") == WARD["sex"]
    assert release.provenance[0].notes == ("2 cells suppressed of 14: age 2, sex 0",)


def test_a_table_that_is_safe_stays_as_it_is():
    table = table_of({"job": ["cook"] * 3})
    release = release_of(table, LocalSuppression(k=3))
    assert release.table.frame.equals(table.frame)
    assert not release.provenance[0].notes


def test_after_suppression_missing_is_counted_as_asked():
    """FACTS 6: sdcMicro leaves records below k when a missing value counts as its own category."""
    rng = np.random.default_rng(8)
    table = table_of({name: rng.integers(0, 6, 80) for name in "abc"})
    for policy in ("category", "any"):
        release = release_of(table, LocalSuppression(k=4, missing=policy))
        rows = release.table.frame.rows()
        same = {
            "category": lambda a, b: a == b,
            "any": lambda a, b: all(x is None or y is None or x == y for x, y in zip(a, b, strict=True)),
        }[policy]
        assert min(sum(same(a, b) for b in rows) for a in rows) >= 4


def test_cells_that_were_missing_cost_nothing_and_stay():
    table = table_of({"age": [30, None, 30, None], "sex": ["m", "m", "m", "f"]})
    release = release_of(table, LocalSuppression(k=2))
    assert shown(release, "age") == [30, None, 30, None]
    assert shown(release, "sex") == ["m", None, "m", None]


def test_the_code_for_suppressed_values_is_written():
    table = table_of({"age": [30, 30, 41]}, age={"suppressed": -9})
    release = release_of(table, LocalSuppression(k=3))
    assert shown(release, "age") == [-9, -9, -9]


def test_importance_decides_which_cell_goes():
    """Either key of the odd record would do."""
    table = table_of({"a": [1, 1, 1, 2], "b": [1, 1, 1, 2]})
    both = {}
    for dear in ("a", "b"):
        release = release_of(table, LocalSuppression(k=2, missing="any", importance={dear: 5.0}))
        both[dear] = shown(release, "a")[3], shown(release, "b")[3]
    assert both == {"a": (None, None), "b": (None, None)}  # neither value is shared
    table = table_of({"a": [1, 1, 2, 2, 1], "b": [1, 1, 2, 2, 2]})
    for dear, lost in (("a", (1, None)), ("b", (None, 2))):
        release = release_of(table, LocalSuppression(k=2, missing="any", importance={dear: 5.0}))
        assert (shown(release, "a")[4], shown(release, "b")[4]) == lost


def test_persons_are_counted_not_records():
    table = table_of({"job": ["cook"] * 3 + ["smith"] * 3, "who": [1, 1, 1, 2, 3, 4]}, {"who": Role.PERSON})
    release = release_of(table, LocalSuppression(k=2, missing="any"))
    assert shown(release, "job") == [None] * 3 + ["smith"] * 3


def test_nobody_is_protected_by_the_empty_cells_of_others_alone():
    """Five different values: with one of them empty each would be like two, but four would still be unique."""
    own = LocalSuppression(k=2, missing="any").protect(table_of({"job": list("abcde")}), Run(seed=1))
    assert shown(own, "job") == [None] * 5
    assert own.notes[1] == "k is 5 if a missing key counts as a value of its own"
    assert own.figures == {
        "cells_suppressed": 5,
        "cells": 5,
        "k_strict": 5,
        "records_protected_by_empty_ones": 0,
    }
    assert LocalSuppression(k=1).protect(own.table, Run(seed=1)).figures["cells_suppressed"] == 0


def test_combinations_of_keys_have_their_own_k():
    table = table_of({"a": list("xxyy"), "b": list("uvuv"), "c": list("ppqq")})
    release = release_of(table, LocalSuppression(k=2, subsets="a+c"))
    assert release.table.frame.equals(table.frame)
    release = release_of(table, LocalSuppression(k=2, subsets="a+c, b: 3", missing="any"))
    assert shown(release, "b") == [None] * 4
    assert shown(release, "a") == list("xxyy")
    release = release_of(table, LocalSuppression(k=2, combine=1))
    assert release.table.frame.equals(table.frame)
    release = release_of(table, LocalSuppression(k=2, combine=2, missing="any"))
    assert sum(each is None for name in "abc" for each in shown(release, name)) == 4  # b of all


@pytest.mark.parametrize(
    ("settings", "must"),
    [
        ({"subsets": "a+nobody"}, "no key among the protected ones"),
        ({"subsets": "a:x"}, "whole number"),
        ({"subsets": "a:0"}, "whole number"),
        ({"also": ["no-such-model >= 2"]}, "no-such-model"),
        ({"also": ["l >= 2"]}, "sensitive column"),
        ({"also": ["marketer-risk <= 0.2"]}, "worst record"),
    ],
)
def test_what_cannot_be_asked_is_refused(settings, must):
    with pytest.raises((RefusedError, PlanError), match=must):
        release_of(table_of({"a": list("xxxxxyz")}), LocalSuppression(**settings))


def test_too_many_combinations_are_refused():
    table = table_of({f"k{j:02}": ["x"] for j in range(20)})
    with pytest.raises(RefusedError, match="at most 2000 combinations"):
        release_of(table, LocalSuppression(combine=5))


def test_what_cannot_hold_is_an_error():
    with pytest.raises(UnreachableError, match="at least 5 people"):
        release_of(table_of({"a": list("xyz")}), LocalSuppression(k=5))
    with pytest.raises(UnreachableError, match="protects no one"):
        release_of(table_of({"a": list("xyz")}), LocalSuppression(k=2, missing="worst"))
    table = table_of({"a": list("xyz"), "ill": ["flu"] * 3}, {"ill": Role.SENSITIVE})
    with pytest.raises(UnreachableError, match="even if no key is shown"):
        release_of(table, LocalSuppression(k=1, also=["l >= 2"]))


def test_models_besides_k_are_mended():
    """The two cooks both have flu; together with the smiths there are two illnesses."""
    table = table_of(
        {"job": ["cook", "cook", "smith", "smith"], "ill": ["flu", "flu", "flu", "gout"]},
        {"ill": Role.SENSITIVE},
    )
    release = release_of(table, LocalSuppression(k=2, also=["l >= 2"]))
    assert shown(release, "job") == [None] * 4


def test_generalised_keys():
    """Stars and ranges of an earlier step are values like others."""
    table = table_of({"age": [30, 30, 41, 52, 63], "job": ["cook", "cook", "smith", "king", "king"]})
    starred = release_of(table, RecordSuppression(k=2), columns=("age",)).table
    release = release_of(starred, LocalSuppression(k=2))
    anything = {"lo": None, "hi": None}
    assert shown(release, "age") == [{"lo": 30, "hi": 30}] * 2 + [anything] * 3
    assert shown(release, "job") == ["cook", "cook", None, None, None]


def test_strata_are_treated_apart():
    table = table_of({"a": list("xxyxyy"), "land": list("rrrsss")}, {"land": Role.OTHER})
    release = release_of(table, LocalSuppression(k=2, missing="any"), within=("land",))
    assert shown(release, "a") == ["x", "x", None, None, "y", "y"]


def test_households_are_treated_together():
    table = table_of({"town": list("ppqqrr"), "home": list("112233")}, {"home": Role.HOUSEHOLD})
    release = release_of(table, LocalSuppression(k=2), together="home")
    assert shown(release, "town") == [None] * 6


# Columns that follow a key -----------------------------------------------------------------------------

PLACES = {
    "region": ["N", "N", "S", None, "N"],
    "city": ["a", "b", "c", "d", None],
    "sex": ["m"] * 5,
}
LATER = {"city": Role.OTHER}


def test_a_ghost_follows_its_key_also_where_that_was_missing_before():
    release = release_of(table_of(PLACES, LATER), LocalSuppression(k=2, ghosts={"region": "city"}))
    assert shown(release, "region") == ["N", "N", None, None, "N"]
    assert shown(release, "city") == ["a", "b", None, None, None]
    assert release.provenance[0].columns == ("region", "sex", "city")
    nothing = release_of(table_of(PLACES, LATER), LocalSuppression(k=1, ghosts={"region": "city"}))
    assert shown(nothing, "city") == ["a", "b", "c", None, None]
    other = release_of(table_of(PLACES, LATER), LocalSuppression(k=2, ghosts={"sex": "city"}))
    assert shown(other, "city") == PLACES["city"]


def test_ghosts_of_every_kind_and_with_a_code_follow_all_keys():
    more = {"items": [["x"], ["y"], ["x", "y"], [], ["x"]], "pay": [1.5, 2, 3, 4, 5]}
    table = table_of(PLACES | more, LATER | dict.fromkeys(more, Role.SENSITIVE), city={"suppressed": "?"})
    release = release_of(table, LocalSuppression(k=2, ghosts="city + items+pay"))
    assert shown(release, "city") == ["a", "b", "?", "?", None]
    assert shown(release, "items") == [["x"], ["y"], None, None, ["x"]]
    assert shown(release, "pay") == [1.5, 2, None, None, 5]


@pytest.mark.parametrize(
    ("ghosts", "more", "must"),
    [
        ({"region": "town"}, {}, "no column"),
        ({"region": "sex"}, {}, "both be protected and follow another: `sex`"),
        ({"city": "sex"}, {}, "`ghosts` of local-suppression names columns it does not protect: `city`"),
        ({"region": "city"}, {"within": ("city",)}, "both be protected and group the records: `city`"),
    ],
)
def test_ghosts_that_cannot_follow_are_refused(ghosts, more, must):
    with pytest.raises(PlanError, match=must):
        release_of(table_of(PLACES, LATER), LocalSuppression(k=2, ghosts=ghosts), **more)


def test_ghosts_of_a_household_follow_together():
    columns = {"town": list("ppqqrr"), "home": list("112233"), "street": list("aabbcc")}
    table = table_of(columns, {"home": Role.HOUSEHOLD, "street": Role.OTHER})
    release = release_of(table, LocalSuppression(k=2, ghosts="street"), together="home")
    assert shown(release, "street") == [None] * 6
    unequal = table_of(columns | {"street": list("abbbcc")}, {"home": Role.HOUSEHOLD, "street": Role.OTHER})
    with pytest.raises(DataError, match="`street` must be equal"):
        release_of(unequal, LocalSuppression(k=2, ghosts="street"), together="home")


# Records -----------------------------------------------------------------------------------------------

JOBS = ["cook", "cook", "smith", "king", "cook"]


@pytest.mark.parametrize(
    ("show", "jobs"),
    [
        ("wildcard", ["cook", "cook", "*", "*", "cook"]),
        ("missing", ["cook", "cook", None, None, "cook"]),
        ("drop", ["cook"] * 3),
    ],
)
def test_what_is_left_of_a_record(show, jobs):
    release = release_of(table_of({"job": JOBS}), RecordSuppression(k=2, show=show))
    assert shown(release, "job") == jobs
    assert release.source_rows.tolist() == ([0, 1, 4] if show == "drop" else [0, 1, 2, 3, 4])


def test_too_few_stars_are_dropped():
    release = release_of(table_of({"job": ["cook"] * 3 + ["king"]}), RecordSuppression(k=2))
    assert shown(release, "job") == ["cook"] * 3
    assert release.provenance[0].notes == ("0 records suppressed and 1 dropped, of 4",)


def test_numbers_become_the_widest_interval():
    release = release_of(table_of({"age": [30, 30, 41, 52]}), RecordSuppression(k=2))
    assert shown(release, "age")[0] == {"lo": 30, "hi": 30}
    assert shown(release, "age")[2] == shown(release, "age")[3] == {"lo": None, "hi": None}


def test_dropping_goes_on_until_it_holds():
    """Without the three who are unique in town, too few are left of the values to be close to the table."""
    table = table_of({"town": list("ppppqqr"), "ill": list("aabbabb")}, {"ill": Role.SENSITIVE})
    release = release_of(table, RecordSuppression(k=2, also=["t <= 0.1"], show="drop"))
    assert shown(release, "town") == list("ppppqq")


def test_by_threshold_of_risk():
    table = table_of({"job": ["cook"] * 5 + ["smith"] * 4})
    release = release_of(table, RecordSuppression(k=1, also=["prosecutor-risk <= 0.2"], show="drop"))
    assert shown(release, "job") == ["cook"] * 5


def test_the_limit_is_kept():
    table = table_of({"job": ["cook"] * 8 + ["king", "smith"]})
    assert len(release_of(table, RecordSuppression(k=2, limit=20)).table) == 10
    with pytest.raises(UnreachableError, match="at most 10 per cent"):
        release_of(table, RecordSuppression(k=2, limit=10))


def test_nobody_left_is_an_error():
    table = table_of({"job": list("abc")})
    with pytest.raises(UnreachableError, match="would suppress all"):
        release_of(table, RecordSuppression(k=2, show="drop"))
    assert shown(release_of(table, RecordSuppression(k=2)), "job") == ["*"] * 3


def test_none_alone_but_all_together():
    """Stars for the two cooks alone would be as sure as the cooks are; stars for all are not."""
    table = table_of({"job": ["cook"] * 2 + ["smith"] * 2, "ill": list("aabb")}, {"ill": Role.SENSITIVE})
    release = release_of(table, RecordSuppression(k=2, also=["l >= 2"]))
    assert shown(release, "job") == ["*"] * 4


def test_items_of_sets():
    baskets = [["u", "v"], ["u", "v"], ["u"], ["w"]]
    table = table_of({"basket": baskets})
    release = release_of(table, RecordSuppression(k=2, show="drop"))
    assert shown(release, "basket") == baskets[:3]


def test_sets_beside_plain_keys_are_refused():
    table = table_of({"basket": [["u"]], "job": ["cook"]})
    with pytest.raises(RefusedError, match="set"):
        release_of(table, RecordSuppression(k=2))


def test_a_population_that_lacks_people_is_refused():
    people = table_of({"job": ["cook"]})
    run = Run(seed=1, resources={"people": people})
    step = Step(RecordSuppression(k=1, also=["delta-presence(population=people) <= 0.5"]), ("job",))
    with pytest.raises(RefusedError, match="must contain everybody in the release"):
        Recipe((step,)).apply(table_of({"job": JOBS}), run)


# Columns -----------------------------------------------------------------------------------------------


def test_the_least_important_columns_go():
    columns = {"a": list("xxyy"), "b": list("uvuv"), "c": list("ppqq")}
    release = release_of(table_of(columns), AttributeSuppression(k=2))
    assert [shown(release, name) for name in "abc"] == [list("xxyy"), ["*"] * 4, list("ppqq")]
    dear = AttributeSuppression(k=2, importance={"b": 3.0}, show="missing")
    release = release_of(table_of(columns), dear)
    assert [shown(release, name) for name in "abc"] == [[None] * 4, list("uvuv"), [None] * 4]
    assert release.provenance[0].notes == ("columns suppressed: a, c",)


@pytest.mark.parametrize("seed", range(4))
def test_columns_as_good_as_any_choice(seed):
    rng = np.random.default_rng(seed)
    frame = {name: rng.integers(0, 3, 30) for name in "abcde"}
    weights = dict(zip("abcde", rng.integers(1, 5, 5).astype(float).tolist(), strict=True))
    release = release_of(table_of(frame), AttributeSuppression(k=3, importance=weights, show="missing"))
    kept = sum(weights[name] for name in "abcde" if shown(release, name)[0] is not None)
    best = 0.0
    for pattern in range(32):
        names = [name for j, name in enumerate("abcde") if pattern >> j & 1]
        rows = list(zip(*(frame[name] for name in names), strict=True)) if names else [()] * 30
        if min(rows.count(row) for row in rows) >= 3:
            best = max(best, sum(weights[name] for name in names))
    assert kept == best


def test_many_columns_are_given_up_one_by_one():
    rng = np.random.default_rng(2)
    table = table_of({f"k{j:02}": rng.integers(0, 2, 40) for j in range(22)})
    release = release_of(table, AttributeSuppression(k=2, show="missing"))
    rows = release.table.frame.rows()
    assert min(rows.count(row) for row in rows) >= 2
    assert any(value is not None for value in rows[0])


def test_trivial_removal_leaves_nothing():
    table = table_of(
        {"age": [30, None, 41], "job": ["cook", None, "king"], "x": [1, 2, 3]}, {"x": Role.OTHER}
    )
    release = release_of(table, TrivialRemoval(), columns=("age", "job"))
    assert shown(release, "job") == ["*"] * 3
    assert shown(release, "age") == [{"lo": None, "hi": None}] * 3
    assert shown(release, "x") == [1, 2, 3]
    assert release.classes.tolist() == [0, 0, 0]


def test_values_outside_the_domain():
    for wrong in ({"importance": 0}, {"combine": 0}, {"k": 0}):
        with pytest.raises(ParameterError):
            LocalSuppression(**wrong)


@pytest.mark.parametrize("missing", ["category", "any"])
@pytest.mark.parametrize("method", [LocalSuppression, RecordSuppression, AttributeSuppression])
def test_what_was_made_coarser_before_is_suppressed_like_the_rest(method, missing):
    """First recode, then suppress what is still rare: the usual way to k-anonymity."""
    keys = ("age_yrs", "adm_qtr", "race", "sex")
    table = sfumato.read("builtin:patients?n=60&seed=2")
    recipe = Recipe((Step(NaiveCoarsening(share=25), keys), Step(method(k=4, missing=missing), keys)))
    shown = recipe.apply(table, Run(seed=1)).table
    classes = Counter(tuple(value and str(value) for value in row) for row in shown.frame.select(keys).rows())
    if missing == "any":

        def alike(first, second):
            return all(a is None or b is None or a == b for a, b in zip(first, second, strict=True))

        classes = {row: sum(n for other, n in classes.items() if alike(row, other)) for row in classes}
    assert min(classes.values()) >= 4
