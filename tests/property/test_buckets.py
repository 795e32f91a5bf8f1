"""What stands apart from its record is told by its bucket, and by nothing else: laws, by brute force."""

import csv
import io
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from effort import examples
from sfumato import Column, Kind, Role, Scenario, Schema, Table, assess, expected_count, protect
from sfumato.core.origin import Origin
from sfumato.errors import DataError, UnreachableError

KEYS, LEARNT = ("age", "job", "sex"), "ill"


@st.composite
def tables(draw, *, holes=False, parts=0, most=40):
    """Mixed keys, some missing, and a sensitive column of few values, some perhaps missing.

    With ``parts`` they can be parted by so many: if they could not, all values are made different.
    """
    n = draw(st.integers(max(parts, 1), most))
    codes = {name: draw(arrays.arrays(np.int64, n, elements=st.integers(0, 3))) for name in (*KEYS, LEARNT)}
    frame = pl.DataFrame(
        {
            "age": pl.Series([None if c == 0 else 20 + 7 * int(c) for c in codes["age"]], dtype=pl.Int64),
            "job": pl.Series([None if c == 0 else f"job{c}" for c in codes["job"]], dtype=pl.String),
            "sex": ["f" if c % 2 else "m" for c in codes["sex"]],
            "ill": pl.Series([None if holes and c == 0 else f"ill{c}" for c in codes[LEARNT]], dtype=pl.String),
        }
    )  # fmt: skip
    if parts and Counter(frame[LEARNT]).most_common(1)[0][1] * parts > n:
        frame = frame.with_columns(pl.Series(LEARNT, [f"ill{i}" for i in range(n)]))
    kinds = {"age": Kind.CONTINUOUS, "job": Kind.NOMINAL, "sex": Kind.NOMINAL}
    keys = tuple(Column(name, kind, Role.KEY) for name, kind in kinds.items())
    return Table(frame, Schema((*keys, Column(LEARNT, Kind.NOMINAL, Role.SENSITIVE))))


def eligible(table, l):  # noqa: E741
    counts = Counter(table.frame[LEARNT].to_list())
    return None not in counts and max(counts.values()) * l <= len(table)


def in_buckets(table, names):
    """The rows of each bucket."""
    found = defaultdict(list)
    for row in table.frame.iter_rows(named=True):
        found[row["bucket"]].append(tuple(row[name] for name in names))
    return found


METHODS = ["anatomy", "anatomy(counts=true)", "bucketisation", "angelisation(k=1)", "slicing"]


def with_l(method, l):  # noqa: E741
    return f"{method[:-1]}, l={l})" if method.endswith(")") else f"{method}(l={l})"


@pytest.mark.parametrize("method", METHODS)
@given(table=tables(holes=True), l=st.integers(2, 4))
@examples(30)
def test_who_is_not_eligible_is_refused_and_nobody_else(method, table, l):  # noqa: E741
    if eligible(table, l):
        protect(table, with_l(method, l), seed=1)
        return
    with pytest.raises((DataError, UnreachableError)) as refused:
        protect(table, with_l(method, l), seed=1)
    assert "ill1" not in str(refused.value)  # which value it is, is nobody's business


def as_files(release):
    """The tables as files are read by who has nothing but the csv module."""
    for name, table in release.tables.items():
        yield name, list(csv.DictReader(io.StringIO(table.frame.write_csv())))


@given(table=tables(parts=4), l=st.integers(2, 4), counts=st.booleans(), seed=st.integers(0, 99))
@examples(60)
def test_an_intruder_with_two_files_guesses_no_better_than_one_in_l(table, l, counts, seed):  # noqa: E741
    release = protect(table, f"anatomy(l={l}, counts={str(counts).lower()})", seed=seed)
    files = dict(as_files(release))
    values = defaultdict(Counter)
    for row in files["st"]:
        values[row["bucket"]][row[LEARNT]] += int(row.get("count", 1))
    for row in files["qit"]:
        there = values[row["bucket"]]
        assert max(there.values()) * l <= sum(there.values())
    sizes = Counter(row["bucket"] for row in files["qit"])
    assert {bucket: sum(each.values()) for bucket, each in values.items()} == sizes
    assert sum(values.values(), Counter()) == Counter(table.frame[LEARNT].to_list())
    assert release.tables["qit"].frame.select(KEYS).equals(table.frame.select(KEYS))


@given(table=tables(parts=3), l=st.integers(2, 3), method=st.sampled_from(["anatomy", "bucketisation"]))
@examples(40)
def test_the_reading_is_a_naive_join_and_measures_count_the_bucket(table, l, method):  # noqa: E741
    release = protect(table, f"{method}(l={l})", seed=3)
    last = list(release.tables.values())[-1]
    values = {bucket: [v for (v,) in rows] for bucket, rows in in_buckets(last, [LEARNT]).items()}
    reading = release.reading()
    nodes = reading.nodes[LEARNT]
    cells = nodes.codes(reading.frame[LEARNT])
    for bucket, cell in zip(reading.frame["bucket"], cells, strict=True):
        assert set(nodes.members_of(int(cell))) == set(values[bucket])
    everybody, n = Counter(table.frame[LEARNT].to_list()), len(table)
    shares = {s: count / n for s, count in everybody.items()}
    own = [{s: c / len(each) for s, c in Counter(each).items()} for each in values.values()]
    scores = assess(table, release, ["k", "l", "alpha", "t", "beta-likeness", "attribute-disclosure"], seed=1)
    assert scores["k"].value == min(Counter(table.frame.select(KEYS).iter_rows()).values())
    assert scores["l"].value == min(map(len, own))
    assert scores["alpha"].value == max(max(each.values()) for each in own)
    far = [sum(abs(each.get(s, 0) - share) for s, share in shares.items()) / 2 for each in own]
    assert scores["t"].value == pytest.approx(max(far))
    gain = [(share - shares[s]) / shares[s] for each in own for s, share in each.items()]
    assert scores["beta-likeness"].value == pytest.approx(max(0.0, *gain), abs=1e-12)
    assert scores["attribute-disclosure"].value == 0.0


SLICES = st.sampled_from(["", ", slices=3", ", slices=4", ", overlap=1", ", overlap=3"])


@given(table=tables(parts=3), slices=SLICES, l=st.integers(2, 3))
@examples(80)
def test_slices_keep_their_rows_and_matching_buckets_tell_nothing(table, slices, l):  # noqa: E741
    release = protect(table, f"slicing(l={l}{slices})", seed=2)
    groups = {name: [c for c in each.names if c != "bucket"] for name, each in release.tables.items()}
    rows = {name: in_buckets(each, groups[name]) for name, each in release.tables.items()}
    for name, columns in groups.items():
        kept = Counter(row for each in rows[name].values() for row in each)
        assert kept == Counter(table.frame.select(columns).iter_rows())
    *others, last = groups
    beside = [name for name in groups[last] if name != LEARNT]
    for person in table.frame.iter_rows(named=True):
        known = {name: tuple(person[c] for c in groups[name]) for name in others}
        mine = tuple(person[c] for c in beside)
        guess, weight = Counter(), 0.0
        for bucket, there in rows[last].items():
            alike = [dict(zip(groups[last], row, strict=True)) for row in there]
            fits = [row[LEARNT] for row in alike if tuple(row[c] for c in beside) == mine]
            chance = len(fits) / len(there)
            for name in others:
                chance *= rows[name][bucket].count(known[name]) / len(rows[name][bucket])
            weight += chance
            for value in fits:
                guess[value] += chance / len(fits)
        assert max(guess.values()) / weight <= 1 / l + 1e-9


@given(
    table=tables(parts=2),
    method=st.sampled_from([*METHODS, "anatomy(permute=true)", "slicing(overlap=2)"]),
    data=st.data(),
)
@examples(60)
def test_expected_counts_are_those_of_the_naive_join(table, method, data):
    release = protect(table, with_l(method, 2), seed=5)
    query = (
        {"ill": ["ill1", "ill2"], "sex": "f"}
        if data.draw(st.booleans())
        else {"ill": "ill3", "age": (27, 34)}
    )
    if method.startswith("angel"):
        query.pop("age", None)
    found = expected_count(release, query)

    def meets(name, value):
        wanted = query[name]
        if isinstance(wanted, tuple):
            return value is not None and wanted[0] <= value <= wanted[1]
        return value in (wanted if isinstance(wanted, list) else [wanted])

    buckets, expected = release.buckets, 0.0
    for bucket in np.unique(buckets.of_record):
        inside = buckets.values.frame.filter(pl.Series(buckets.of_record == bucket))
        apart = [set(group) & set(query) for group in buckets.apart]
        own = set(query) - set().union(*apart)
        chance = 1.0
        for names in apart:
            rows = inside.iter_rows(named=True)
            chance *= np.mean([all(meets(name, row[name]) for name in names) for row in rows])
        rows = inside.iter_rows(named=True)
        expected += chance * sum(all(meets(name, row[name]) for name in own) for row in rows)
    assert found == pytest.approx(expected)


@given(table=tables(parts=2, most=30))
@examples(30)
def test_keys_that_are_shuffled_too_are_those_of_their_bucket(table):
    release = protect(table, "anatomy(l=2, permute=true)", seed=4)
    plain = protect(table, "anatomy(l=2)", seed=4)
    for name in KEYS:
        first, second = (in_buckets(each.tables["qit"], [name]) for each in (release, plain))
        assert {b: Counter(rows) for b, rows in first.items()} == {b: Counter(r) for b, r in second.items()}
    whole = Counter(table.frame.select(KEYS).iter_rows())  # who knows all keys finds the bucket that has all
    assert assess(table, release, ["k"], seed=1)["k"].value == min(whole.values())


def possible(release, person, known):
    """At most how many records can be a person's: in a bucket as few as have any of the known values."""
    found = 0
    tables = [each.frame.to_dicts() for each in release.tables.values()]
    groups = [set(group) & set(known) for group in release.buckets.apart]
    first = set(known) & set(release.first.names) - set().union(*groups)
    for bucket in {row["bucket"] for row in tables[0]}:
        here = [[row for row in rows if row["bucket"] == bucket] for rows in tables]
        counts = []
        for names in [*groups, first]:
            rows = next((rows for rows in here if rows and names <= set(rows[0])), [])
            counts.append(sum(all(row[name] == person[name] for name in names) for row in rows))
        found += min(counts)
    return found


@given(
    table=tables(parts=2, most=14),
    method=st.sampled_from([*METHODS[:3], "anatomy(permute=true)", "slicing", "slicing(slices=3)", "slicing(slices=4)", "slicing(overlap=2)"]),
    known=st.sets(st.sampled_from([*KEYS, LEARNT]), min_size=1),
)  # fmt: skip
@examples(80)
def test_nobody_is_hidden_among_more_than_an_intruder_with_all_tables_finds(table, method, known):
    release = protect(table, with_l(method, 2), seed=6)
    scenario = Scenario(columns=tuple(known))
    scores = assess(table, release, ["k", "uniqueness", "exact-match"], scenario=scenario, seed=1)
    sizes = [possible(release, person, known) for person in table.frame.to_dicts()]
    assert scores["k"].value <= min(sizes)
    assert scores["uniqueness"].value >= np.mean([size == 1 for size in sizes]) - 1e-12
    assert scores["exact-match"].value >= np.mean([size == 1 for size in sizes]) - 1e-12
    alone = replace(
        release, origin=Origin.unknown(), layout=replace(release.layout, sources={}, moved={})
    )  # as somebody else reads the files
    assert assess(table, alone, ["k"], scenario=scenario, seed=1)["k"].value <= min(sizes)


def test_every_pair_of_small_tables_is_parted_or_refused():
    """All tables of up to four records and three values: nothing slips through."""
    for n in range(1, 5):
        for values in product("abc", repeat=n):
            frame = pl.DataFrame({"age": list(range(n)), "ill": list(values)})
            schema = Schema(
                (Column("age", Kind.CONTINUOUS, Role.KEY), Column("ill", Kind.NOMINAL, Role.SENSITIVE))
            )
            table = Table(frame, schema)
            if max(Counter(values).values()) * 2 > n:
                with pytest.raises(UnreachableError):
                    protect(table, "anatomy(l=2)", seed=1)
            else:
                buckets = in_buckets(protect(table, "anatomy(l=2)", seed=1).tables["st"], ["ill"])
                assert all(max(Counter(each).values()) * 2 <= len(each) for each in buckets.values())
