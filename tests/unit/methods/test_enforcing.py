"""The guarantee of enforcing methods: what is asked, who stands in its way, and that it is proved."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.release import Release
from sfumato.core.requirement import Requirement
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnknownNameError, UnreachableError
from sfumato.methods._enforcing import EnforcingMethod, Guarantee
from sfumato.methods.anatomy import Anatomy
from sfumato.methods.angelisation import Angelisation
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.itemset_generalisation import ItemsetGeneralisation
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.m_invariance import MInvariantBuckets
from sfumato.methods.microaggregation import Mdav
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.sorted_generalisation import SortedGeneralisation
from sfumato.methods.suppression import RecordSuppression
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

RUN = Run(seed=1)


class Nothing(EnforcingMethod):
    """Claim to enforce, and do nothing."""

    title = "Nothing"

    def enforce(self, table, guarantee, run):
        """Do nothing."""
        return Release.unchanged(table)


Nothing.name = "nothing"  # after the class was made: no other test must find it in the registry


def table_of(jobs, ills=None):
    ills = ills or ["flu"] * len(jobs)
    frame = pl.DataFrame({"job": pl.Series(jobs, dtype=pl.String), "ill": pl.Series(ills, dtype=pl.String)})
    columns = (Column("job", Kind.NOMINAL, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))
    return Table(frame, Schema(columns)).aimed_at(("job",))


def asked(*also, k=1, missing="category"):
    return Guarantee.of(("job",), k=k, also=also, missing=missing)


def test_k_of_one_asks_nothing():
    assert asked().requirements == ()
    assert [str(each.measure.name) for each in asked("l >= 2", k=3).requirements] == [
        "k-anonymity",
        "l-diversity",
    ]


def test_the_policy_is_passed_on_unless_a_requirement_has_its_own():
    policies = [
        each.measure.missing
        for each in asked("l >= 2", "t(missing=worst) <= 0.2", k=2, missing="any").requirements
    ]
    assert policies == ["any", "any", "worst"]


@pytest.mark.parametrize(
    ("also", "failing"),
    [
        (("k >= 2",), [False, False, True]),
        (("prosecutor-risk <= 0.5",), [False, False, True]),
        (("l >= 2",), [True, True, True]),
        (("unsafe-combinations(dimension=1, k=2) <= 0",), [False, False, True]),
        (("k >= 1",), [False, False, False]),
        (("lkc-privacy(l=1, c=0.9) >= 1",), [True, True, True]),
    ],
)
def test_who_stands_in_the_way(also, failing):
    assert asked(*also).failing(table_of(["cook", "cook", "king"]), RUN).tolist() == failing


def test_only_the_group_that_tells_too_much_fails():
    table = table_of(["cook", "cook", "smith", "smith"], ["flu", "flu", "flu", "gout"])
    assert asked("lkc-privacy(l=1, c=0.6) >= 1").failing(table, RUN).tolist() == [True, True, False, False]


def test_a_mean_cannot_be_enforced():
    with pytest.raises(RefusedError, match="worst record"):
        asked("marketer-risk <= 0.1").failing(table_of(["cook", "cook", "king"]), RUN)
    with pytest.raises(RefusedError, match="worst record"):
        asked("unsafe-combinations(dimension=1, k=2) <= 0.1").failing(table_of(["cook", "cook", "king"]), RUN)


def test_an_estimate_cannot_be_enforced():
    table = table_of(["cook", "cook"])
    frame = table.frame.with_columns(pl.Series("weight", [2.0, 3.0]))
    schema = Schema((*table.schema.columns, Column("weight", Kind.CONTINUOUS, Role.WEIGHT)))
    with pytest.raises(RefusedError, match="must be certain"):
        asked("journalist-risk <= 0.5").failing(Table(frame, schema), RUN)


def test_parts_are_asked_of_other_keys():
    table = table_of(["cook", "cook", "king"], ["flu", "gout", "gout"])
    part = Guarantee.of(("ill",), k=2, also=(), missing="category")
    whole = Guarantee((), ("job",), (part,))
    assert whole.failing(table, RUN).tolist() == [True, False, False]
    assert whole.class_measures is None
    assert whole.unmet(table, RUN) == ["not met: k-anonymity is 1, must be >= 2 in `ill`"]


def test_nothing_is_asked_of_no_records():
    table = table_of([])
    assert asked("l >= 2", k=2).failing(table, RUN).tolist() == []
    assert asked("l >= 2", k=2).unmet(table, RUN) == []


def test_a_release_that_does_not_hold_is_suppressed():
    with pytest.raises(UnreachableError, match="requirements: k-anonymity is 1, must be >= 2"):
        Nothing(k=2).apply(table_of(["cook", "cook", "king"]), RUN)


def test_a_release_that_holds_has_its_classes():
    release = Nothing(k=2).apply(table_of(["cook", "smith", "cook", "smith"]), RUN)
    first, second = release.classes[:2]
    assert np.array_equal(release.classes, [first, second, first, second])
    assert first != second


def test_what_does_not_read_is_refused_before_any_work():
    assert "no-such" in str(Nothing(also=["no-such >= 2"]).refuses(table_of(["cook"])))
    with pytest.raises(RefusedError, match="population"):
        Nothing(k=1, also=["k-map >= 2"]).apply(table_of(["cook"]), RUN)


@pytest.mark.parametrize("suppressed", [None, -8])
@given(ages=st.lists(st.sampled_from([30, 31, -9, -7, None]), min_size=1, max_size=12))
def test_codes_of_missing_values_tell_nobody_apart(suppressed, ages):
    """Counted in the file as anyone would: a code is not another code, nor an empty cell."""
    column = Column("age", Kind.CONTINUOUS, Role.KEY, missing=(-9, -7), suppressed=suppressed)
    table = Table(pl.DataFrame({"age": pl.Series(ages, dtype=pl.Int64)}), Schema((column,)))
    try:
        released = LocalSuppression(k=2).protect(table.aimed_at(("age",)), RUN).table
    except UnreachableError:
        assert len(ages) < 2
        return
    assert released.frame.group_by("age").len()["len"].min() >= 2
    if pl.Series(ages).value_counts()["count"].min() >= 2:  # then nothing has to change
        assert released.frame["age"].to_list() == ages


def test_a_whole_put_together_from_parts_is_measured_again():
    """All of one region have x, all of the other y: each is close to its own region, none to all."""
    frame = pl.DataFrame({"age": [1, 2, 11, 12] * 4, "ill": ["x", "x", "y", "y"] * 4})
    frame = frame.with_columns(region=pl.when(pl.col("age") < 10).then(pl.lit("a")).otherwise(pl.lit("b")))
    columns = (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("ill", Kind.NOMINAL, Role.SENSITIVE),
        Column("region", Kind.NOMINAL, Role.OTHER),
    )
    close = Mondrian(k=2, also=("t <= 0.1",))
    step = Step(close, ("age",), within=("region",))
    with pytest.raises(
        UnreachableError,
        match=r"mondrian meets it in each part, but not in the whole release: .*t-closeness is 0.5",
    ):
        Recipe((step,)).apply(Table(frame, Schema(columns)), RUN)
    plain = Recipe((Step(Mondrian(k=2), ("age",), within=("region",)),)).apply(
        Table(frame, Schema(columns)), RUN
    )
    assert len(plain.table) == 16


def test_prosecutor_risk_costs_what_k_costs():
    """One over the size of a class asks for a size: the same levels, groups and judge as k, with persons too."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"age": rng.integers(20, 60, 120), "town": rng.integers(0, 9, 120), "who": rng.integers(0, 90, 120)}
    )
    for role in (Role.OTHER, Role.PERSON):
        columns = (
            Column("age", Kind.CONTINUOUS, Role.KEY),
            Column("town", Kind.NOMINAL, Role.KEY),
            Column("who", Kind.NOMINAL, role),
        )
        table = Table(frame, Schema(columns)).aimed_at(("age", "town"))
        for cls in (GlobalRecoding, Mondrian, SortedGeneralisation, LocalSuppression, RecordSuppression):
            by_k = cls(k=5).protect(table, Run(seed=1)).table
            by_risk = cls(k=1, also=["prosecutor-risk <= 0.2"]).protect(table, Run(seed=1)).table
            assert by_risk.frame.equals(by_k.frame), cls.name


@pytest.mark.parametrize(
    ("text", "alike"),
    [("k >= 5", 5), ("k > 5", 6), ("k >= 4.5", 5), ("prosecutor-risk <= 0.2", 5), ("prosecutor-risk < 0.2", 6),
     ("prosecutor-risk <= 0.3333333333333333", 3), ("prosecutor-risk <= 0.333", 4), ("prosecutor-risk <= 1", 0),
     ("prosecutor-risk <= 0", None), ("l >= 3", None), ("marketer-risk <= 0.2", None)],
)  # fmt: skip
def test_what_asks_for_persons_alike(text, alike):
    assert Requirement.parse(text).required_class_size == alike


# ---------------------------------------------------------------------------- what it says that it enforces

SETS = Schema((
    Column("a", Kind.NOMINAL, Role.KEY), Column("b", Kind.NOMINAL, Role.KEY), Column("c", Kind.NOMINAL, Role.KEY),
    Column("items", Kind.SET, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE),
))  # fmt: skip


def enforced(method, columns=("a", "b", "c")):
    return {
        (Requirement.parse(text).short, names) for text, names in method.enforced_requirements(SETS, columns)
    }


def test_k_and_what_else_is_enforced_is_of_all_that_is_known():
    assert enforced(Mondrian(k=4)) == {("k-anonymity >= 4", ())}
    assert enforced(Mondrian(k=4, also=("l >= 2",))) == {("k-anonymity >= 4", ()), ("l-diversity >= 2", ())}
    assert enforced(Mondrian(k=1)) == set()


def test_k_of_combinations_is_of_their_columns():
    subsets = LocalSuppression(k=4, subsets="a+b, c:2", also=("l >= 2",))
    assert enforced(subsets) == {
        ("k-anonymity >= 4", ("a", "b")), ("k-anonymity >= 2", ("c",)), ("l-diversity >= 2", ()),
    }  # fmt: skip
    pairs = {("k-anonymity >= 3", names) for names in (("a", "b"), ("a", "c"), ("b", "c"))}
    assert enforced(LocalSuppression(k=3, combine=2)) == pairs
    assert enforced(LocalSuppression(k=3, combine=3)) == {("k-anonymity >= 3", ())}
    with pytest.raises(UnknownNameError):
        enforced(LocalSuppression(subsets="a+town"))


def test_of_sets_people_who_share_items_are_counted():
    assert enforced(RecordSuppression(k=3), ("items",)) == {("km-anonymity >= 3", ())}
    assert enforced(RecordSuppression(k=3)) == {("k-anonymity >= 3", ())}
    assert enforced(ItemsetGeneralisation(k=3, m=3), ("items",)) == {("km-anonymity(m=3) >= 3", ())}


def test_buckets_enforce_the_share_of_a_value():
    assert enforced(Anatomy(l=4)) == enforced(MInvariantBuckets(m=4)) == {("alpha-k-anonymity <= 0.25", ())}
    (third,) = Anatomy(l=3).enforced_requirements(SETS, ("a",))
    assert Requirement.parse(third.requirement).level == 1 / 3
    both = {("alpha-k-anonymity <= 0.5", ()), ("k-anonymity >= 3", ())}
    assert enforced(Angelisation(l=2, k=3)) == both


def test_others_enforce_nothing():
    assert enforced(Mdav()) == set()
