"""What can never hold is said before a search, with what can; and the column that empties a file is named."""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.scenario import Scenario
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.datasets import patients
from sfumato.errors import SfumatoError, UnreachableError
from sfumato.recipes.demand import Demand
from sfumato.recipes.profile import Profile
from sfumato.recipes.recipe import Recipe
from sfumato.study.evaluate import EvaluationCase, evaluate
from sfumato.tuning.derive_space import Scope, derive
from sfumato.tuning.fallbacks import WHAT_HELPS
from sfumato.tuning.feasibility import feasible_first, obstacles_text, obstacles_to

RUN = Run(seed=1)
METHODS = (
    "mondrian", "recoding", "pram", "record-suppression", "sampling", "data-swapping", "attribute-suppression"
)  # fmt: skip
KEYS = (Column("age", Kind.CONTINUOUS, Role.KEY), Column("sex", Kind.NOMINAL, Role.KEY))


def demands(*texts):
    return [Demand(Requirement.parse(text), Scenario()) for text in texts]


def survey(n=60, seed=2, **sensitive):
    """People with an age and a sex, and sensitive columns beside them."""
    rng = np.random.default_rng(seed)
    values = {"age": rng.integers(18, 80, n), "sex": rng.choice(["f", "m"], n), **sensitive}
    kinds = {
        name: Kind.NOMINAL if pl.Series(v).dtype == pl.String else Kind.CONTINUOUS
        for name, v in values.items()
    }
    learnt = (Column(name, kinds[name], Role.SENSITIVE) for name in sensitive)
    return Table(pl.DataFrame(values), Schema((*KEYS, *learnt)))


def mixed(words, n=60):
    return [words[place % len(words)] for place in range(n)]


def codes(n, many, seed=5):
    return [f"C{number:03d}" for number in np.random.default_rng(seed).integers(0, many, n)]


# What cannot be met -----------------------------------------------------------------------------------------


def test_two_values_are_never_three():
    table = survey(union=mixed(["yes", "no"]), illness=mixed(list("abcdef")))
    (found,) = obstacles_to(demands("k >= 3", "l >= 3"), table, RUN)
    assert (found.requirement, found.columns, found.values) == ("l-diversity >= 3", ("union",), (2,))
    assert (found.best, found.nearest, found.is_final) == (2.0, "l-diversity >= 2", True)
    assert found.sentence == (
        "l-diversity >= 3 cannot be met: with all 60 records in one class it is 2, because of `union` (2 values). "
        "The nearest that can be met: l-diversity >= 2"
    )
    assert found.ways_on[0] == "leave `union` out (--drop union)"
    assert "require l-diversity >= 2" in found.ways_on[1]
    assert found.to_dict()["nearest"] == "l-diversity >= 2"
    assert obstacles_to(demands("l >= 2"), table, RUN) == ()
    assert obstacles_to(demands("l >= 3"), table, RUN, left_out=["union"]) == ()


def test_what_can_never_hold_ends_before_the_search():
    entered = []
    table = survey(union=mixed(["yes", "no"]))
    with pytest.raises(UnreachableError) as caught, feasible_first(demands("l >= 3"), table, RUN):
        entered.append("searched")
    assert not entered
    assert "l-diversity >= 3 cannot be met" in caught.value.message
    assert "leave `union` out (--drop union)" in caught.value.hint
    assert "yes" not in str(caught.value)


def test_values_that_are_rare_may_be_made_more_frequent():
    """By the keys nothing helps; drawing other values of the column would, so the search goes on."""
    table = survey(union=mixed(["no"] * 9 + ["yes"]))
    (found,) = obstacles_to(demands("l(kind=entropy) >= 1.9"), table, RUN)
    entropy = math.exp(-0.9 * math.log(0.9) - 0.1 * math.log(0.1))
    assert found.best == pytest.approx(entropy)
    assert not found.is_final
    assert "cannot be met, however the keys are changed" in found.sentence
    assert found.nearest == "l-diversity(kind=entropy) >= 1.384"  # 1.38417…, rounded to what can be met
    assert obstacles_to(demands("l(kind=entropy) >= 1.384"), table, RUN) == ()
    with feasible_first(demands("l(kind=entropy) >= 1.9"), table, RUN):
        entered = True
    assert entered


def test_leaving_out_records_may_make_values_even():
    table = survey(10, union=mixed(["a", "b", "c"], 10))  # without one of the four a, entropy-l is 3
    (found,) = obstacles_to(demands("l(kind=entropy) >= 3"), table, RUN)
    assert not found.is_final
    (found,) = obstacles_to(demands("l(kind=entropy) >= 3.01"), table, RUN)
    assert found.is_final
    holes = survey(10, union=[*"aaaaabbbb", None])  # missing is a value of its own
    (found,) = obstacles_to(demands("l(kind=entropy) >= 2.9"), holes, RUN)
    assert not found.is_final
    (found,) = obstacles_to(demands("l >= 4"), holes, RUN)
    assert (found.best, found.is_final) == (3.0, True)


def test_amounts_may_get_new_values_by_noise():
    (found,) = obstacles_to(demands("l >= 3"), survey(pay=mixed([0.0, 1.0])), RUN)
    assert (found.best, found.is_final) == (2.0, False)


def test_too_few_people_for_k():
    (found,) = obstacles_to(demands("k >= 10"), survey(7, pay=[1.0] * 7), RUN)
    assert (found.columns, found.nearest, found.is_final) == ((), "k-anonymity >= 7", True)
    assert "with all 7 records in one class it is 7" in found.sentence
    (found,) = obstacles_to(demands("prosecutor-risk <= 0.1"), survey(7, pay=[1.0] * 7), RUN)
    assert (found.nearest, found.is_final) == ("prosecutor-risk <= 0.1429", True)  # 1/7, rounded up
    (alone,) = obstacles_to(demands("k >= 2"), survey(1, pay=[1.0]), RUN)
    assert alone.nearest == ""  # k >= 1 asks nothing
    assert obstacles_to(demands("k >= 2"), survey(0, pay=pl.Series([], dtype=pl.Float64)), RUN) == ()


def test_one_value_has_no_nearest():
    (found,) = obstacles_to(demands("l >= 2"), survey(union=mixed(["yes"])), RUN)
    assert (found.nearest, len(found.remedies)) == ("", 1)
    assert "Nearest" not in found.sentence


def test_what_the_doors_ask_in_vain_is_not_told():
    table = survey(union=mixed(["yes", "no"]))
    assert obstacles_to(demands("k >= 1", "l >= 1"), table, RUN) == ()  # met by every release
    assert obstacles_to(demands("dbrl <= 0"), table, RUN) == ()  # none of classes
    assert obstacles_to(demands("l(sensitive=nobody) >= 3"), table, RUN) == ()  # refused elsewhere
    bare = Table(table.frame.select("age", "sex"), Schema(KEYS))
    assert obstacles_to(demands("k >= 3", "l >= 3"), bare, RUN) == ()  # nothing to learn


def test_missing_values():
    half = [None if place % 2 else word for place, word in enumerate(mixed(["yes", "no", "no"]))]
    (found,) = obstacles_to(demands("l(missing=worst) >= 3"), survey(union=half), RUN)
    assert (found.best, found.values) == (2.0, (2,))
    gone = survey(union=pl.Series([None] * 60, dtype=pl.String))
    (found,) = obstacles_to(demands("l >= 2"), gone, RUN)
    assert (found.values, found.nearest) == ((0,), "")
    keys = survey(union=mixed(["yes", "no"]))
    empty = keys.with_values("sex", pl.Series([None] * 60, dtype=pl.String))
    assert obstacles_to(demands("l >= 3"), empty, RUN)[0].best == 2.0


def partitions(rows):
    """Every way to put records into classes."""
    if not rows:
        yield []
        return
    first, *rest = rows
    for parts in partitions(rest):
        yield [[first], *parts]
        for place, part in enumerate(parts):
            yield [*parts[:place], [first, *part], *parts[place + 1 :]]


def plain_value(measure, values, rows, n):
    counts = Counter(values[row] for row in rows)
    shares = [count / len(rows) for count in counts.values()]
    if measure == "l":
        return len(counts)
    if measure == "l(kind=entropy)":
        return math.exp(-sum(share * math.log(share) for share in shares))
    of_all = Counter(values)
    gaps = (abs(counts[value] / len(rows) - of_all[value] / n) for value in of_all)
    return sum(gaps) / 2


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.sampled_from(["l", "l(kind=entropy)", "t"])
)
@examples(40)
def test_what_is_called_impossible_no_partition_reaches(values, measure):
    """By hand, over every way to put the records into classes."""
    n, sign = len(values), "<=" if measure == "t" else ">="
    best_of, worst_of = (min, max) if measure == "t" else (max, min)
    best = best_of(
        worst_of(plain_value(measure, values, part, n) for part in parts) for parts in partitions(range(n))
    )
    for level in (0.05, 1.5, 2.0, 2.5, 3.0):
        text = f"{measure} {sign} {level}"
        found = [
            each for each in obstacles_to(demands(text), survey(n, s=values), RUN) if each.best is not None
        ]
        vacuous = not Requirement.parse(text).can_fail
        possible = best <= level if measure == "t" else best >= level - 1e-9
        assert bool(found) == (not possible and not vacuous)
        assert all(each.best == pytest.approx(best) for each in found)


@given(st.integers(0, 10**6))
@examples(20)
def test_what_is_called_impossible_is_missed_by_every_recipe(seed):
    """Whatever is done to the keys, or to the values by methods that make no new ones."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    table = survey(n, seed, union=["yes", "no", *rng.choice(["yes", "no"], n - 2)])
    table = table.with_values(
        "sex", pl.Series([None if rng.random() < 0.2 else "f" for _ in range(n)], dtype=pl.String)
    )
    asked = demands(str(rng.choice(["l >= 3", "l(kind=entropy) >= 2.01", "l(kind=recursive, c=1) >= 2"])))
    (found,) = obstacles_to(asked, table, RUN)
    assert found.is_final
    space = derive(table, Scope(methods=METHODS), requirements=[asked[0].requirement])
    recipes = [Recipe((step,)) for step in rng.choice(np.array(space.singles(), dtype=object), 5)]
    for recipe in recipes:
        try:
            scores = evaluate(recipe, EvaluationCase(table), asked, Run(seed=seed).silent()).scores
        except SfumatoError:
            continue
        assert not any(asked[0].requirement.met_by(score) for score in scores.values())


# What it takes --------------------------------------------------------------------------------------------


def test_the_column_that_empties_the_file_is_named():
    table = patients(n=800, seed=1)
    asked = Profile.load("public").requirements(table.schema)
    (found,) = obstacles_to(asked, table, RUN)
    assert found.columns == ("diag_p",)
    assert found.requirement == "t-closeness(distance=kind) <= 0.2"
    assert found.best is None
    assert not found.is_final
    leaving, *others = found.remedies
    assert "--drop diag_p" in leaving.what
    assert leaving.classes >= 20 * found.classes
    assert any("of its hierarchy" in each.what for each in others)
    assert all(found.classes < each.classes <= leaving.classes for each in others)
    assert len(obstacles_text([found]).splitlines()) <= 6
    assert obstacles_to(asked, table, RUN, left_out=["diag_p"]) == ()


def test_nothing_is_said_of_a_feasible_file():
    table = survey(300, union=mixed(["yes", "no"], 300), pay=mixed([1.0, 2.0, 3.0, 4.0, 5.0], 300))
    assert obstacles_to(demands("k >= 3", "l >= 2"), table, RUN) == ()
    assert obstacles_text(()) == ""


def test_columns_that_stand_in_the_way_only_together():
    n = 240
    table = survey(n, first=codes(n, 120), second=codes(n, 120, seed=6), third=mixed(list("abc"), n))
    (found,) = obstacles_to(demands("k >= 2", "t <= 0.3"), table, RUN)
    assert found.columns == ("first", "second")
    assert "--drop first,second" in found.ways_on[0]


def test_a_distance_along_a_hierarchy_is_proposed():
    n = 400
    near = [f"{letter}{number}" for letter, number in zip(mixed("AB", n), codes(n, 150), strict=True)]
    table = survey(n, illness=near)
    (found,) = obstacles_to(demands("k >= 2", "t <= 0.25"), table, RUN)
    ways = " ".join(found.ways_on)
    assert "distance=hierarchy" in ways
    assert "labels of level" in ways


def test_a_search_that_finds_nothing_says_what_stood_in_its_way():
    n = 240
    table, asked = survey(n, illness=codes(n, 120)), demands("k >= 2", "t <= 0.3")
    twice = (feasible_first(asked, table, RUN), feasible_first(asked, table, RUN))
    with pytest.raises(UnreachableError) as caught, twice[0], twice[1]:
        raise UnreachableError("none was found", hint=f"{WHAT_HELPS}; nearest: k is 1")
    assert caught.value.message == "none was found"
    assert caught.value.hint.startswith("what stands in the way:\nt-closeness <= 0.3 leaves only")
    assert caught.value.hint.endswith("nearest: k is 1")
    assert caught.value.hint.count("leaves only") == 1
    assert "more minutes" not in caught.value.hint
    with pytest.raises(UnreachableError) as caught, feasible_first(demands("k >= 2"), table, RUN):
        raise UnreachableError("none was found", hint=WHAT_HELPS)
    assert caught.value.hint == WHAT_HELPS
