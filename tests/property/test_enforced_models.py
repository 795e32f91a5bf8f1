"""Every model, alone and in pairs, enforced by suppression: it holds by plain counting, or there is an error."""

import math
from collections import Counter
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.methods.local_suppression import LocalSuppression
from sfumato.methods.suppression import AttributeSuppression, RecordSuppression
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step

KEYS = ("a", "b", "c")
SLACK = 1e-9

# The models by plain counting: `rows` are dicts, `group` the rows alike to one of them. ---------------


def alike(one, other, keys, policy):
    """Whether an intruder who knows the keys cannot tell the two apart."""
    if one is other:
        return True
    for key in keys:
        mine, theirs = one[key], other[key]
        if policy == "worst" and (mine is None or theirs is None):
            return False
        if policy == "any" and (mine is None or theirs is None):
            continue
        if mine != theirs:
            return False
    return True


def groups(rows, policy, keys=KEYS):
    return [[other for other in rows if alike(one, other, keys, policy)] for one in rows]


def shares(group):
    counts = Counter(row["s"] for row in group)
    return {value: count / len(group) for value, count in counts.items()}


def moved(rows, group):
    """How far the shares of a group are from those of the table, each value a step from the next."""
    mine, whole = shares(group), shares(rows)
    values = sorted(whole)
    gaps = [mine.get(value, 0) - whole[value] for value in values]
    return sum(abs(sum(gaps[: i + 1])) for i in range(len(gaps))) / max(len(values) - 1, 1)


def diversity(group, kind):
    counts = sorted((math.ceil(share * len(group) - 0.5) for share in shares(group).values()), reverse=True)
    if kind == "distinct":
        return len(counts)
    if kind == "entropy":
        return math.exp(-sum(share * math.log(share) for share in shares(group).values()))
    return sum(counts[0] < 2 * sum(counts[place:]) for place in range(len(counts)))


def change(rows, group):
    mine, whole = shares(group), shares(rows)
    if len(mine) < len(whole):
        return math.inf
    return max(abs(math.log(mine[value] / whole[value])) for value in whole)


def gain(rows, group):
    mine, whole = shares(group), shares(rows)
    return max(mine[value] / whole[value] - 1 for value in mine)


def people_like(row, people, policy):
    """How many of the population a released record may be."""
    if policy == "worst" and None in {row[key] for key in KEYS}:
        return 1

    def fits(person):
        for key in KEYS:
            mine, theirs = row[key], person[key]
            if mine == "*" or (policy == "any" and None in {mine, theirs}):
                continue
            if mine != theirs or (policy == "worst" and theirs is None):
                return False
        return True

    return sum(fits(person) for person in people)


def lkc(rows, policy):
    """The smallest group in any one or two keys; 0 if a value is surer than 0.8 in one."""
    smallest = math.inf
    for size in (1, 2):
        for some in combinations(KEYS, size):
            for group in groups(rows, policy, some):
                if max(shares(group).values()) > 0.8 + SLACK:
                    return 0
                smallest = min(smallest, len(group))
    return smallest


MODELS = {
    "k >= 3": lambda rows, policy, _: min(map(len, groups(rows, policy))) >= 3,
    "l >= 2": lambda rows, policy, _: min(diversity(g, "distinct") for g in groups(rows, policy)) >= 2,
    "l(kind=entropy) >= 1.6": lambda rows, policy, _: all(
        diversity(g, "entropy") >= 1.6 - SLACK for g in groups(rows, policy)
    ),
    "l(kind=recursive, c=2) >= 2": lambda rows, policy, _: all(
        diversity(g, "recursive") >= 2 for g in groups(rows, policy)
    ),
    "t <= 0.3": lambda rows, policy, _: all(
        sum(abs(shares(g).get(v, 0) - q) for v, q in shares(rows).items()) / 2 <= 0.3 + SLACK
        for g in groups(rows, policy)
    ),
    "t(distance=ordered) <= 0.25": lambda rows, policy, _: all(
        moved(rows, g) <= 0.25 + SLACK for g in groups(rows, policy)
    ),
    "delta-disclosure <= 1": lambda rows, policy, _: all(
        change(rows, g) <= 1 + SLACK for g in groups(rows, policy)
    ),
    "beta-likeness <= 1": lambda rows, policy, _: all(
        gain(rows, g) <= 1 + SLACK for g in groups(rows, policy)
    ),
    "alpha-k-anonymity <= 0.7": lambda rows, policy, _: all(
        max(shares(g).values()) <= 0.7 + SLACK for g in groups(rows, policy)
    ),
    "p-sensitivity >= 2": lambda rows, policy, _: all(len(shares(g)) >= 2 for g in groups(rows, policy)),
    "xy-anonymity(x=a+b+c, y=s) >= 2": lambda rows, policy, _: all(
        len(shares(g)) >= 2 for g in groups(rows, policy)
    ),
    "k-map(population=people) >= 4": lambda rows, policy, people: all(
        people_like(row, people, policy) >= 4 for row in rows
    ),
    "delta-presence(population=people) <= 0.5": lambda rows, policy, people: all(
        len(g) <= 0.5 * people_like(row, people, policy) + SLACK
        for row, g in zip(rows, groups(rows, policy), strict=True)
    ),
    "lkc-privacy(l=2, c=0.8) >= 2": lambda rows, policy, _: lkc(rows, policy) >= 2,
    "prosecutor-risk <= 0.5": lambda rows, policy, _: min(map(len, groups(rows, policy))) >= 2,
    "unsafe-combinations(dimension=2, k=2) <= 0": lambda rows, policy, _: all(
        len(g) >= 2 for some in combinations(KEYS, 2) for g in groups(rows, policy, some)
    ),
}  # fmt: skip


# Tables, and what suppression makes of them ------------------------------------------------------------


def table_from(rows):
    frame = pl.DataFrame(
        {key: pl.Series([row[key] for row in rows], dtype=pl.String) for key in KEYS}
        | {"s": pl.Series([row["s"] for row in rows], dtype=pl.Int64)}
    )
    columns = [Column(key, Kind.NOMINAL, Role.KEY) for key in KEYS]
    return Table(frame, Schema((*columns, Column("s", Kind.ORDINAL, Role.SENSITIVE))))


def rows_of(table):
    return table.frame.select([pl.col(key).cast(pl.String) for key in KEYS] + ["s"]).to_dicts()


def released(rows, people, method):
    """The rows of the release, or None where there is an error on purpose."""
    run = Run(seed=1, resources={"people": table_from(people)})
    try:
        release = Recipe((Step(method, KEYS),)).apply(table_from(rows), run)
    except (UnreachableError, RefusedError):
        return None
    for name in KEYS:  # what is shown is true
        before = [rows[i][name] for i in release.source_rows]
        after = [row[name] for row in rows_of(release.table)]
        assert all(new in {old, None, "*"} for old, new in zip(before, after, strict=True))
    return rows_of(release.table)


ROW = st.fixed_dictionaries(
    {key: st.sampled_from(["x", "x", "y", "y", "z", None]) for key in KEYS} | {"s": st.integers(0, 2)}
)
TABLES = st.lists(ROW, min_size=1, max_size=14)
POLICIES = st.sampled_from(["category", "any", "worst"])
ASKED = st.lists(st.sampled_from(sorted(MODELS)), min_size=1, max_size=2, unique=True)


def holds(rows, asked, policy, people):
    return {model: MODELS[model](rows, policy, people) for model in asked}


@given(
    TABLES,
    TABLES,
    ASKED,
    POLICIES,
    st.tuples(st.sampled_from(["wildcard", "missing", "drop"]), st.integers(1, 4)),
)
@examples(120)
def test_record_suppression(rows, others, asked, policy, how):
    people, (show, k) = rows + others, how
    method = RecordSuppression(k=k, also=asked, missing=policy, show=show)
    found = released(rows, people, method)
    if found is not None:
        assert all(holds(found, asked, policy, people).values())
        assert min(map(len, groups(found, policy))) >= k


@given(TABLES, TABLES, ASKED, POLICIES, st.integers(1, 4))
@examples(100)
def test_local_suppression(rows, others, asked, policy, k):
    people = rows + others
    found = released(rows, people, LocalSuppression(k=k, also=asked, missing=policy))
    if found is not None:
        assert len(found) == len(rows)
        assert all(holds(found, asked, policy, people).values())
        assert min(map(len, groups(found, policy))) >= k


@given(
    TABLES, TABLES, ASKED, POLICIES, st.tuples(st.sampled_from(["wildcard", "missing"]), st.integers(1, 4))
)
@examples(40)
def test_attribute_suppression(rows, others, asked, policy, how):
    people, (show, k) = rows + others, how
    found = released(rows, people, AttributeSuppression(k=k, also=asked, missing=policy, show=show))
    if found is not None:
        assert all(holds(found, asked, policy, people).values())
        assert min(map(len, groups(found, policy))) >= k


def usual_rows():
    """Thirty records of few values, of which some stand out."""
    return [
        {"a": "xyxz"[i % 4], "b": "xy"[i // 3 % 2], "c": "x" if i % 7 else "z", "s": i % 3} for i in range(30)
    ]


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("method", [RecordSuppression, LocalSuppression])
def test_an_ordinary_table_has_a_release(model, method):
    """An error is no way out where the model can hold; of k-map a missing key needs a policy that helps."""
    rows = usual_rows()
    policy = "any" if method is LocalSuppression and "population" in model else "category"
    # A record of stars may be anybody: then nobody can say how likely somebody is to be in.
    more = {"show": "drop"} if method is RecordSuppression and "delta-presence" in model else {}
    found = released(rows, 2 * rows, method(k=2, also=[model], missing=policy, **more))
    assert found is not None
    assert holds(found, [model], policy, 2 * rows)[model]


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_counting_above_tells_tables_apart(model):
    """None of the models holds of ten records that are all different in keys and sensitive values alike."""
    rows = [{"a": f"{i}", "b": f"{i}", "c": f"{i}", "s": 0 if i else 1} for i in range(10)]
    assert not MODELS[model](rows, "category", rows)


# Sets of items -----------------------------------------------------------------------------------------

SETS = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from("uvw"), unique=True, max_size=3)), min_size=1, max_size=10
)


@given(SETS, st.integers(2, 3), st.sampled_from(["drop", "missing"]))
@examples(60)
def test_sets_of_items(sets, k, show):
    table = Table(
        pl.DataFrame({"basket": pl.Series(sets, dtype=pl.List(pl.String))}),
        Schema((Column("basket", Kind.SET, Role.KEY),)),
    )
    try:
        release = Recipe((Step(RecordSuppression(k=k, show=show), ("basket",)),)).apply(table, Run(seed=1))
    except (UnreachableError, RefusedError):
        return
    found = [
        frozenset(["missing"]) if basket is None else frozenset(basket)
        for basket in release.table.frame["basket"].to_list()
    ]
    known = {frozenset(some) for basket in found for m in (1, 2) for some in combinations(sorted(basket), m)}
    assert all(sum(some <= basket for basket in found) >= k for some in known)
