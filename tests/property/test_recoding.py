"""Laws of recodings: the node found is that of a naive scan of all nodes, and what is asked holds."""

import itertools
from collections import Counter, defaultdict
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from naive_recoding import (
    MODELS,
    OBJECTIVES,
    RESOURCES,
    TREES,
    groups_of,
    label,
    meets,
    naive,
    people,
    run,
    table_of,
)
from sfumato.core.evidence import Evidence
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import RefusedError, UnreachableError
from sfumato.methods.global_recoding import GlobalRecoding
from sfumato.methods.recoding import Recoding


@examples(120)
@given(
    records=people(),
    k=st.integers(1, 4),
    model=st.sampled_from(MODELS),
    objective=st.sampled_from(OBJECTIVES),
    aggregate=st.sampled_from(["geometric", "arithmetic"]),
    suppression=st.sampled_from([0, 10, 30, 60, 100]),
)
def test_the_node_found_is_that_of_a_naive_scan(records, k, model, objective, aggregate, suppression):  # noqa: PLR0917
    table = table_of(records)
    method = GlobalRecoding(
        k=k, also=model or (), objective=objective, aggregate=aggregate, suppression=suppression
    )
    wanted = naive(
        records, ("a", "b", "c"), k=k, model=model, objective=objective, aggregate=aggregate,
        suppression=suppression,
    )  # fmt: skip
    if wanted is None:
        with pytest.raises(UnreachableError):
            method.apply(table, run())
        return
    release = method.apply(table, run())
    assert tuple(release.fitted.levels[key] for key in "abc") == wanted.levels
    kept = sorted(set(range(len(records))) - wanted.failing)
    assert release.source_rows.tolist() == (kept if wanted.fate == "dropped" else list(range(len(records))))
    stars = [all(cell == "*" for cell in row) for row in release.table.frame.select("a", "b", "c").rows()]
    if wanted.fate == "suppressed":
        assert all(stars[i] for i in wanted.failing)
    assert f"{objective} {wanted.value:.4g} with {len(wanted.failing)} record" in " ".join(release.notes)
    assert f"{release.figures[objective]:.6g}" == f"{wanted.value:.6g}"


@examples(120)
@given(
    records=people(),
    k=st.integers(1, 4),
    aggregate=st.sampled_from(["geometric", "arithmetic"]),
    suppression=st.sampled_from([0, 30, 60, 100]),
    importance=st.fixed_dictionaries(dict.fromkeys("abc", st.sampled_from([0.1, 1.0, 7.0]))),
    balance=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
)
def test_importances_and_balance_are_those_of_a_naive_scan(  # noqa: PLR0917
    records, k, aggregate, suppression, importance, balance
):
    given = {"aggregate": aggregate, "suppression": suppression, "importance": importance, "balance": balance}
    wanted = naive(records, ("a", "b", "c"), k=k, model="", objective="loss", **given)
    method = GlobalRecoding(k=k, **given)
    if wanted is None:
        with pytest.raises(UnreachableError):
            method.apply(table_of(records), run())
        return
    release = method.apply(table_of(records), run())
    assert tuple(release.fitted.levels[key] for key in "abc") == wanted.levels
    assert f"{release.figures['loss']:.6g}" == f"{wanted.value:.6g}"


@examples(60)
@given(
    records=people(),
    others=people(),
    k=st.integers(1, 3),
    suppression=st.sampled_from([0, 30, 100]),
    price=st.sampled_from([4.0, 40.0, 100.0]),
)
def test_the_payout_against_who_knows_a_population_is_that_of_a_naive_scan(
    records, others, k, suppression, price
):
    """The population has gaps, and may lack people of the table, or most of them."""
    population = [record[:3] for record in others]
    given = {"k": k, "objective": "payout", "suppression": suppression}
    wanted = naive(
        records, ("a", "b", "c"), model="", aggregate="", population=population, price=price, **given
    )
    method = GlobalRecoding(population="everybody", price=price, **given)
    here = Run(seed=1, resources={**RESOURCES, "everybody": table_of(others)})
    if wanted is None:
        with pytest.raises(UnreachableError):
            method.apply(table_of(records), here)
        return
    release = method.apply(table_of(records), here)
    assert tuple(release.fitted.levels[key] for key in "abc") == wanted.levels
    assert f"{release.figures['payout_lost']:.6g}" == f"{wanted.value:.6g}"


# What is asked holds --------------------------------------------------------------------------------------


def alike(first, second, policy):
    """Whether two rows of keys may be of people who are alike, a missing key counting as the policy says."""
    if policy == "any":
        return all(a is None or b is None or a == b for a, b in zip(first, second, strict=True))
    if policy == "worst" and (None in first or None in second):
        return first is second
    return first == second


@examples(30)
@given(
    records=people(),
    k=st.integers(1, 4),
    policy=st.sampled_from(["category", "any", "worst"]),
    suppression=st.sampled_from([0, 30, 100]),
    local=st.booleans(),
)
def test_everyone_is_alike_to_k_under_every_policy(records, k, policy, suppression, local):
    table = table_of(records)
    method = GlobalRecoding(k=k, missing=policy, suppression=suppression, local=local)
    try:
        released = method.apply(table, run()).table
    except (UnreachableError, RefusedError):
        assert k > 1  # asked for nothing, nothing can fail
        return
    rows = released.frame.select("a", "b", "c").rows()
    assert rows
    for row in rows:
        assert sum(alike(row, other, policy) for other in rows) >= k


@examples(30)
@given(
    records=people(holes=False),
    k=st.integers(1, 3),
    model=st.sampled_from(MODELS),
    suppression=st.sampled_from([20, 100]),
    objective=st.sampled_from(OBJECTIVES),
)
def test_local_recoding_keeps_the_models_and_never_suppresses_more(records, k, model, suppression, objective):
    table = table_of(records)
    settled = {"k": k, "also": model or (), "suppression": suppression, "objective": objective}
    try:
        plain = GlobalRecoding(**settled).apply(table, run())
    except UnreachableError:
        return
    release = GlobalRecoding(**settled, local=True).apply(table, run())
    rows = release.table.frame.select("a", "b", "c").rows()
    assert meets(rows, release.table.frame["s"].to_list(), k, model)

    def suppressed(found):
        stars = sum(
            all(cell == "*" for cell in row) for row in found.table.frame.select("a", "b", "c").rows()
        )
        return len(table) - len(found.table) + stars

    if suppression < 100:  # else each record is recoded for itself from the start
        assert suppressed(release) <= suppressed(plain)


@examples(25)
@given(records=people(), levels=st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)))
def test_every_label_covers_its_value(records, levels):
    table = table_of(records)
    method = Recoding(levels=dict(zip("abc", levels, strict=True)))
    released = method.apply(table, run()).table
    for name, level in zip("abc", levels, strict=True):
        top = min(level, len(TREES[name][0]) - 1)
        wanted = [label(name, record["abc".index(name)], top) for record in records]
        assert released.frame[name].cast(pl.String).to_list() == wanted
        if name in released.nodes:
            nodes = released.nodes[name]
            for shown, record in zip(released.frame[name], records, strict=True):
                if shown is not None and record["abc".index(name)] is not None:
                    code = nodes.labels.to_list().index(shown)
                    assert record["abc".index(name)] in nodes.members_of(code).to_list()


@examples(25)
@given(
    records=people(holes=False), k=st.integers(2, 3), suppression=st.sampled_from([0, 30]),
    owners=st.lists(st.integers(0, 5), min_size=14, max_size=14),
)  # fmt: skip
def test_persons_are_counted_where_the_table_says_who(records, k, suppression, owners):
    owners = owners[: len(records)]
    table = table_of(records, who=(owners, Column("who", Kind.NOMINAL, Role.PERSON)))
    try:
        release = GlobalRecoding(k=k, suppression=suppression).apply(table, run())
    except UnreachableError:
        # At the top, where everyone is alike, nobody need be suppressed if there are enough people.
        assert len(set(owners)) < k
        return
    people_of = defaultdict(set)
    for row in release.table.frame.select("a", "b", "c", "who").rows():
        people_of[row[:3]].add(row[3])
    assert min(len(each) for each in people_of.values()) >= k


def covers(name, shown, value):
    """Whether a label stands for a value of the population, which lacks none."""
    return shown == "*" or any(shown in row for row in TREES[name] if row[0] == value)


EVERYONE = [(a, b, c, s) for a in "pqrs" for b in "xyz" for c in "01" for s in ("ill", "well")]


@examples(15)
@given(
    records=people(),
    k=st.integers(1, 3),
    model=st.sampled_from(
        ["l >= 2, t <= 0.6", "k-map(population=everyone) >= 3", "delta-presence(population=everyone) <= 0.9",
         "lkc-privacy(l=2, c=0.9) >= 2"]
    ),
    suppression=st.sampled_from([0, 50]),
)  # fmt: skip
def test_models_together_and_models_that_classes_do_not_tell(records, k, model, suppression):
    everyone = table_of(EVERYONE)
    method = GlobalRecoding(k=k, also=model, suppression=suppression)
    try:
        release = method.apply(table_of(records), Run(seed=1, resources={**RESOURCES, "everyone": everyone}))
    except (UnreachableError, RefusedError):
        return
    rows = release.table.frame.select("a", "b", "c").rows()
    sensitive = release.table.frame["s"].to_list()
    groups = groups_of(rows)
    assert all(len(members) >= k for members in groups.values())
    for row, members in groups.items():
        like = sum(
            all(covers(n, shown, v) for n, shown, v in zip("abc", row, p[:3], strict=True)) for p in EVERYONE
        )
        mine = Counter(sensitive[i] for i in members)
        if model.startswith("l >="):
            whole = Counter(sensitive)
            gap = sum(abs(mine[v] / len(members) - whole[v] / len(sensitive)) for v in whole) / 2
            assert len(mine) >= 2
            assert gap <= 0.6 + 1e-12
        elif model.startswith("k-map"):
            assert like >= 3
        elif model.startswith("delta"):
            assert len(members) <= 0.9 * like
    if model.startswith("lkc"):
        for two in itertools.combinations(range(3), 2):
            for members in groups_of([tuple(row[i] for i in two) for row in rows]).values():
                told = Counter(sensitive[i] for i in members)
                assert len(members) >= 2
                assert max(told.values()) <= 0.9 * len(members)


@pytest.mark.parametrize(
    "model", ["k-map(population=everyone) >= 3", "delta-presence(population=everyone) <= 0.9",
              "lkc-privacy(l=2, c=0.9) >= 2", "l >= 2, t <= 0.6"]
)  # fmt: skip
def test_there_are_releases_that_meet_each_of_these_models(model):
    resources = {**RESOURCES, "everyone": table_of(EVERYONE)}
    release = GlobalRecoding(k=2, also=model).apply(table_of(EVERYONE[::3]), Run(seed=1, resources=resources))
    assert len(release.table) == len(EVERYONE[::3])


@examples(20)
@given(
    values=st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=1, max_size=30),
    k=st.integers(1, 5), suppression=st.sampled_from([0, 20]),
)  # fmt: skip
def test_grown_hierarchies_of_numbers_and_dates(values, k, suppression):
    days = [None if v is None else date(2020, 1, 1) + timedelta(days=17 * v) for v in values]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64), "d": pl.Series(days, dtype=pl.Date)})
    schema = Schema((Column("x", Kind.CONTINUOUS, Role.KEY), Column("d", Kind.DATE, Role.KEY)))
    table = Table(frame, schema)
    try:
        release = GlobalRecoding(k=k, suppression=suppression).apply(table, Run(seed=1))
    except UnreachableError:
        assert len(values) < k
        return
    rows = release.table.frame.rows()
    counts = Counter(str(row) for row in rows)
    assert min(counts.values()) >= k
    for name in ("x", "d"):
        original = frame[name][pl.Series(release.source_rows, dtype=pl.UInt32)].to_list()
        for shown, value in zip(release.table.frame[name], original, strict=True):
            if isinstance(shown, dict) and value is not None:
                assert shown["lo"] is None or shown["lo"] <= value
                assert shown["hi"] is None or shown["hi"] >= value


# What fails however it is divided --------------------------------------------------------------------------

DIVIDED = [
    "l", "l(kind=entropy)", "p", "alpha", "t", "t(distance=ordered)", "t(distance=hierarchy)", "t(distance=kind)",
    "delta-disclosure", "beta", "beta(kind=enhanced)",
]  # fmt: skip


@examples(60)
@given(
    parts=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from("pqrs")), min_size=1, max_size=25
    ),
    asked=st.sampled_from(DIVIDED),
    level=st.sampled_from([0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0]),
)
def test_at_least_so_many_fail_however_a_class_is_divided(parts, asked, level):
    """The records of the finer classes that fail are no fewer than the coarser ones say."""
    names = ("class", "part", "s")
    columns = [Column(name, Kind.NOMINAL, Role.KEY) for name in names[:2]]
    schema = Schema((*columns, Column("s", Kind.ORDINAL, Role.SENSITIVE, hierarchy="a")))
    table = Table(pl.DataFrame(parts, schema=names, orient="row"), schema)
    evidence, measure = Evidence(table, resources=RESOURCES), parse_measure(asked)
    coarse, fine = Classes.of(table, ["class"]), Classes.of(table, ["class", "part"])
    values = measure.of_classes(evidence, fine)
    worse = values < level if measure.better == "high" else values > level
    failing = np.bincount(coarse.of_record, worse[fine.of_record], minlength=len(coarse))
    shares = measure.always_failing(evidence, coarse, level)
    assert (shares * coarse.members <= failing + 1e-9).all()
    if worse.all() and len(fine) == len(coarse) and asked in {"l", "p"}:
        assert (shares == 1).all()
