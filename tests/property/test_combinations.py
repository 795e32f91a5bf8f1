"""Rare combinations of keys and of items, against plain enumeration."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato import kernels
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.combinations import LkcPrivacy, UnsafeCombinations
from sfumato.risk.itemsets import KmAnonymity

POLICIES = st.sampled_from(["category", "any", "worst"])
KEYS = ("a", "b", "c", "d")


@st.composite
def tables(draw):
    """Up to four keys of few values with holes, a sensitive column, and perhaps persons."""
    n, n_keys = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    key = st.one_of(st.integers(0, 2), st.none())
    frame = {name: draw(st.lists(key, min_size=n, max_size=n)) for name in KEYS[:n_keys]}
    frame["s"] = draw(st.lists(st.one_of(st.sampled_from("xy"), st.none()), min_size=n, max_size=n))
    if draw(st.booleans()):
        frame["who"] = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return frame


def table_from(frame):
    types = dict.fromkeys(frame, pl.Int64) | {"s": pl.String}
    roles = dict.fromkeys(frame, Role.KEY) | {"s": Role.SENSITIVE, "who": Role.PERSON}
    columns = tuple(Column(name, Kind.NOMINAL, roles[name]) for name in frame)
    return Table(pl.DataFrame(frame, schema={name: types[name] for name in frame}), Schema(columns))


def alike(frame, i, j, subset, policy):
    """Whether record j agrees with record i in these keys."""
    for name in subset:
        mine, theirs = frame[name][i], frame[name][j]
        if policy == "category" and mine != theirs:
            return False
        if policy == "any" and None not in {mine, theirs} and mine != theirs:
            return False
        if policy == "worst" and i != j and (None in {mine, theirs} or mine != theirs):
            return False
    return True


def persons_of(frame, rows):
    return {frame["who"][i] if "who" in frame else i for i in rows}


def groups_of(frame, subset, policy):
    n = len(frame["s"])
    return [[j for j in range(n) if alike(frame, i, j, subset, policy)] for i in range(n)]


def keys_of(frame):
    return [name for name in KEYS if name in frame]


@given(tables(), POLICIES, st.integers(2, 3), st.integers(1, 4))
@examples(150)
def test_unsafe_combinations_by_enumeration(frame, policy, k, dimension):
    measure = UnsafeCombinations(k=k, dimension=dimension, missing=policy)
    score = measure.score(Evidence(table_from(frame)), Run(seed=1))
    n, keys = len(frame["s"]), keys_of(frame)
    unsafe = {
        (i, subset)
        for size in range(1, min(dimension, len(keys)) + 1)
        for subset in combinations(keys, size)
        for i, group in enumerate(groups_of(frame, subset, policy))
        if len(persons_of(frame, group)) < k
    }
    smallest = {
        (i, subset)
        for i, subset in unsafe
        if not any(
            (i, part) in unsafe for size in range(1, len(subset)) for part in combinations(subset, size)
        )
    }
    np.testing.assert_array_equal(score.by_record, [sum(i == r for r, _ in smallest) for i in range(n)])
    for name in keys:
        assert score.by_column[name] == len({i for i, subset in smallest if name in subset})
    risky = persons_of(frame, {i for i, _ in unsafe})
    assert score.value == pytest.approx(len(risky) / len(persons_of(frame, range(n))))
    for size in range(1, min(dimension, len(keys)) + 1):
        assert score.details[f"unsafe_{size}"] == len({i for i, subset in unsafe if len(subset) <= size})
        assert score.details[f"smallest_{size}"] == len({i for i, subset in smallest if len(subset) == size})


@given(tables(), POLICIES, st.integers(1, 4), st.sampled_from([0.4, 0.5, 0.75, 1.0]))
@examples(150)
def test_lkc_by_enumeration(frame, policy, length, confidence):
    score = LkcPrivacy(l=length, c=confidence, missing=policy).score(Evidence(table_from(frame)), Run(seed=1))
    smallest, surest, by_record = np.inf, 0.0, [np.inf] * len(frame["s"])
    keys = keys_of(frame)
    most = min(length, len(keys))
    told = range(most if policy != "any" and "who" not in frame else 1, most + 1)
    for size in range(1, most + 1):
        for subset in combinations(keys, size):
            for i, group in enumerate(groups_of(frame, subset, policy)):
                size_of_group = len(persons_of(frame, group))
                sure = _surest(frame, group, policy)
                too_sure = size in told and sure > confidence + 1e-12
                by_record[i] = min(by_record[i], 0 if too_sure else size_of_group)
                smallest = min(smallest, size_of_group)
                surest = max(surest, sure)
    assert score.details["smallest_group"] == smallest
    assert score.details["highest_confidence"] == pytest.approx(surest, abs=1e-12)
    assert score.value == (smallest if surest <= confidence + 1e-12 else 0)
    np.testing.assert_array_equal(score.by_record, by_record)
    assert score.by_record.min() == score.value


def _surest(frame, group, policy):
    """The highest share of the group that is sure to have one value (at worst: that may have it)."""
    of = {
        value: persons_of(frame, [j for j in group if frame["s"][j] == value]) for value in ("x", "y", None)
    }
    everyone = len(persons_of(frame, group))
    if policy == "category":
        return max(len(persons) for persons in of.values()) / everyone
    more = len(of[None]) if policy == "worst" else 0
    return min(max(len(of["x"]), len(of["y"])) + more, everyone) / everyone


# -------------------------------------------------------------------------------------------------- sets


items = st.one_of(st.none(), st.lists(st.one_of(st.sampled_from("pqrst"), st.none()), max_size=4))


@st.composite
def baskets(draw):
    n = draw(st.integers(1, 8))
    frame = {"i": draw(st.lists(items, min_size=n, max_size=n))}
    if draw(st.booleans()):
        frame["j"] = draw(st.lists(items, min_size=n, max_size=n))
    if draw(st.booleans()):
        frame["who"] = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return frame


def sets_table(frame):
    roles = {"i": Role.KEY, "j": Role.KEY, "who": Role.PERSON}
    kinds = {"i": Kind.SET, "j": Kind.SET, "who": Kind.NOMINAL}
    types = {"i": pl.List(pl.String), "j": pl.List(pl.String), "who": pl.Int64}
    columns = tuple(Column(name, kinds[name], roles[name]) for name in frame)
    return Table(pl.DataFrame(frame, schema={name: types[name] for name in frame}), Schema(columns))


def known_items(frame, policy):
    """The items of each record as pairs of column and item, and the columns in which it is not known."""
    found = []
    for i in range(len(frame["i"])):
        known, unknown = set(), set()
        for name in ("i", "j"):
            if name not in frame:
                continue
            basket = frame[name][i]
            holed = basket is None or None in basket
            there = {(name, item) for item in basket or () if item is not None}
            if holed and policy == "any" and there:
                known |= there  # a hole does not hide the other items
            elif holed and policy != "category":
                unknown.add(name)
            else:
                known |= {(name, item) for item in ([None] if basket is None else basket)}
        found.append((known, unknown))
    return found


@given(baskets(), POLICIES, st.integers(1, 4))
@examples(200)
def test_km_by_enumeration(frame, policy, m):
    score = KmAnonymity(m=m, missing=policy).score(Evidence(sets_table(frame)), Run(seed=1))
    records = known_items(frame, policy)
    owner = frame.get("who", range(len(records)))
    everyone = len(set(owner))
    by_record = []
    for known, unknown in records:
        best = everyone
        seen = False
        for size in range(1, m + 1):
            for wanted in combinations(sorted(known, key=str), size):
                columns = {name for name, _ in wanted}
                having = {owner[j] for j, (has, _) in enumerate(records) if set(wanted) <= has}
                support = len(having)
                if policy == "any" and len(columns) == 1:
                    gone = {owner[j] for j, (_, unknown) in enumerate(records) if columns <= unknown}
                    there = {owner[j] for j, (_, unknown) in enumerate(records) if not columns <= unknown}
                    support += len(gone - there)
                best = support if not seen else min(best, support)
                seen = True
        if policy == "worst" and unknown:
            best = 1
        by_record.append(best)
    if not any(known or (policy == "worst" and unknown) for known, unknown in records):
        assert score.status is Status.NOT_ESTIMABLE
        return
    np.testing.assert_array_equal(score.by_record, by_record)
    assert score.value == min(by_record)


# ------------------------------------------------------------------------------------------------ kernels


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.integers(0, 5)), max_size=60),
    st.booleans(),
)
def test_numbers_and_counts_of_combinations(rows, sparse):
    rows = sorted(rows, key=lambda row: row[2])
    ids, codes, persons = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    n_codes = 10**6 if sparse else 61
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.kernels.combinations.FIRST_PLACES", 2)  # so that few combinations outgrow it
        numbers, n_found = kernels.combinations.refine(
            ids.astype(np.int32), 41, codes.astype(np.int32), n_codes
        )
    pairs = list(zip(ids.tolist(), codes.tolist(), strict=True))
    distinct = list(dict.fromkeys(pairs))
    assert n_found == len(distinct)
    assert numbers.tolist() == [distinct.index(pair) for pair in pairs]
    counts = kernels.combinations.count_persons(numbers, n_found, persons)
    expected = [len({p for pair, p in zip(pairs, persons, strict=True) if pair == one}) for one in distinct]
    assert counts.tolist() == expected
