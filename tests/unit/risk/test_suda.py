"""SUDA: the worked example of the Practice Guide, a file by hand, and all minimal uniques by enumeration."""

import csv
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Progress, Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.kernels import special_uniques
from sfumato.risk._subsets import KeyCodes
from sfumato.risk.suda import DisSuda, Suda
from toys import table_of

NOMINAL = Kind.NOMINAL
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"

#: Ten records of the Practice Guide: residence, sex, education, employment.
GUIDE = """
urban female secondary-incomplete employed
urban female secondary-incomplete employed
urban female primary-incomplete outside
urban male secondary employed
rural female secondary unemployed
urban male secondary employed
urban female primary outside
urban male post-secondary unemployed
urban female secondary-incomplete outside
urban female secondary-incomplete outside
"""
KEYS = ("residence", "sex", "education", "employment")


def guide(**more):
    columns = zip(*(line.split() for line in GUIDE.split("\n") if line), strict=True)
    values = dict(zip(KEYS, map(list, columns), strict=True))
    return table_of(values | {name: column for name, (column, _) in more.items()},
                    **dict.fromkeys(KEYS, NOMINAL), **{name: kind for name, (_, kind) in more.items()})  # fmt: skip


def score_of(table, measure, **evidence):
    return measure.score(Evidence(table, **evidence), Run(seed=1))


# ------------------------------------------------------------------------------------------ worked out


def test_practice_guide():
    score = score_of(guide(), Suda(dimension=3))
    assert score.by_record.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert score.value == 12
    # Record 5: rural; and of female, secondary, unemployed any two. Records 3, 7, 8: their education. Record
    # 8: unemployed with male, and with urban.
    assert [score.details[f"uniques_{size}"] for size in (1, 2, 3)] == [4, 5, 0]
    assert score.details["special"] == 4
    # Of 34 in all: education 3 × 6 + 2 × 2 of record 5; residence 6 + 2, sex 2 × 2 + 2, employment 2 × 2 + 4.
    shares = {"education": 22, "residence": 8, "sex": 6, "employment": 8}
    assert score.by_column == pytest.approx({name: share / 34 for name, share in shares.items()})


def test_practice_guide_on_the_other_scale():
    score = score_of(guide(), Suda(dimension=3, scale="ihsn"))
    assert score.by_record.tolist() == [0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0]


def test_practice_guide_dis():
    score = score_of(guide(), DisSuda(dimension=3, fraction=0.01))
    expected = [0.005120313, 0.010702061, 0.005120313, 0.008775093]
    np.testing.assert_allclose(score.by_record[[2, 4, 6, 7]], expected, atol=5e-10)
    assert score.by_record[[0, 1, 3, 5, 8, 9]].tolist() == [0] * 6
    assert score.value == score.by_record[4]
    assert score.status is Status.APPROXIMATE
    # Four uniques and three pairs.
    assert score.details["dis"] == pytest.approx(0.04 / (0.04 + 2 * 0.99 * 3))
    # People are shared out, not made: behind the four stand as many as DIS says.
    assert (1 / score.by_record[[2, 4, 6, 7]]).sum() == pytest.approx(4 / score.details["dis"])


def test_a_product_ends_before_zero():
    """Two keys, both needed: the product over no factor is 1, on the other scale there is no larger set."""
    table = table_of({"a": [1, 1, 2, 2, 1], "b": [1, 2, 1, 1, 1]}, a=NOMINAL, b=NOMINAL)
    assert score_of(table, Suda()).by_record.tolist() == [0, 1, 0, 0, 0]
    crossed = table_of({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]}, a=NOMINAL, b=NOMINAL)
    assert score_of(crossed, Suda()).by_record.tolist() == [1, 1, 1, 1]
    assert score_of(crossed, Suda(dimension=1)).value == 0
    assert score_of(crossed, Suda(scale="ihsn")).value == 0


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_francdat_by_hand():
    """Key1 is 3 and 6 once; Key2 is 3 with Key4 5, 4 and 1; who has Key1 4 has Key4 4 or 1, and 4 once."""
    with (SHARED / "francdat.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("Key1", "Key2", "Key3", "Key4")
    table = table_of({name: [row[name] for row in rows] for name in names}, **dict.fromkeys(names, NOMINAL))
    assert score_of(table, Suda()).by_record.tolist() == [0, 0, 0, 8, 6, 4, 8, 0]


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_published_scores_of_seven_keys():
    """The first record of testdata2 has 180 on one scale and 2.73 on the other in sdcMicro's own tests."""
    names = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
    frame = pl.read_csv(SHARED / "testdata2.csv").select(names)
    table = Table(frame, Schema(tuple(Column(name, NOMINAL, Role.KEY) for name in names)))
    assert score_of(table, Suda(dimension=6)).by_record[0] == 180
    assert score_of(table, Suda(dimension=6, scale="ihsn")).by_record[0] == pytest.approx(2.73, abs=0.005)


# -------------------------------------------------------------------------------------- what there may be


def test_decimals_are_values():
    """They are not cut to whole numbers: 1.2 and 1.7 differ."""
    table = table_of({"a": [1.2, 1.7, 1.2]}, a=Kind.CONTINUOUS)
    assert score_of(table, Suda()).by_record.tolist() == [0, 1, 0]


def test_persons_are_counted():
    table = table_of({"a": [1, 1, 2, 2], "who": [1, 1, 2, 3]}, a=NOMINAL, who=(NOMINAL, Role.PERSON))
    score = score_of(table, Suda())
    assert score.by_record.tolist() == [1, 1, 0, 0]  # both ones are of one person
    assert score.details["counted"] == "persons"


def test_too_many_subsets_are_refused():
    names = [f"k{i:02}" for i in range(70)]
    table = table_of({name: [1, 2] for name in names}, **dict.fromkeys(names, NOMINAL))
    assert "70 keys" in score_of(table, Suda(dimension=5)).reason
    assert score_of(table, Suda(dimension=2)).status is Status.OK


def test_how_many_subsets_are_gone_through():
    """Of 25 keys up to 6 at a time by the recursion; else a refusal says what to do."""
    few, many = (keys_of(25, n) for n in (10, 200_000))
    assert Suda(dimension=6).refuses(few) is None
    assert Suda(dimension=6).refuses(many) is None
    assert "a smaller dimension" in Suda(dimension=6).refuses(keys_of(62, 200_000))
    # Persons are counted level by level.
    assert Suda(dimension=6).refuses(keys_of(25, 10, persons=True)) is None
    assert "more than 20,000" in Suda(dimension=6).refuses(keys_of(25, 200_000, persons=True))
    assert "more than 1,000,000" in Suda(dimension=6).refuses(keys_of(40, 10, persons=True))


def test_sixty_keys():
    """Nearly six million subsets: by each of the keys both are told apart, so that no two are looked at."""
    names = [f"k{i:02}" for i in range(60)]
    table = table_of({name: [1, 2] for name in names}, **dict.fromkeys(names, NOMINAL))
    score = score_of(table, Suda(dimension=5))
    assert [score.details[f"uniques_{size}"] for size in range(1, 6)] == [120, 0, 0, 0, 0]


def test_some_at_a_time(monkeypatch):
    """Where the bits of all who are looked for would take too much, parts of them are: the same is found."""
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 400).astype(np.int32) for size in (9, 7, 5, 30, 4, 3)]
    worths, told = [0.0, 7.0, 3.0, 1.5, 0.1], []
    whole = special_uniques.minimal_uniques(codes, worths, lambda *_: None)
    monkeypatch.setattr(special_uniques, "_MAX_BYTES", 1)
    parts = special_uniques.minimal_uniques(codes, worths, lambda *done: told.append(done))
    assert int((whole.scores > 0).sum()) > 128  # three parts and more
    for mine, theirs in zip(vars(whole).values(), vars(parts).values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert told == sorted(told)


def test_more_combinations_than_whole_numbers():
    """Of ten keys with 200 values each, records of equal numbers are compared value by value."""
    rng = np.random.default_rng(1)
    codes = [np.append(each, each[:40]).astype(np.int32) for each in rng.integers(0, 200, (10, 200))]
    found = special_uniques.minimal_uniques(codes, [0.0, 1.0, 1.0], lambda *_: None)
    assert not found.special[:40].any()
    assert not found.special[200:].any()
    assert found.special[40:200].all()


def keys_of(n_keys, n, *, persons=False):
    names = [f"k{place}" for place in range(n_keys)]
    columns = [Column(name, Kind.NOMINAL, Role.KEY) for name in names]
    frame = pl.DataFrame({name: np.zeros(n, dtype=np.int8) for name in names})
    if persons:
        frame = frame.with_columns(who=pl.Series(np.arange(n)))
        columns.append(Column("who", Kind.NOMINAL, Role.PERSON))
    return Evidence(Table(frame, Schema(tuple(columns))))


def test_many_keys():
    """Among 20,853 subsets: the last key tells the first record, each of the others the last; two are alike."""
    names = [f"k{i:02}" for i in range(27)]
    values = {name: [1, 1, 1, 2] for name in names} | {"k26": [3, 4, 4, 4]}
    score = score_of(table_of(values, **dict.fromkeys(names, NOMINAL)), Suda(dimension=4))
    assert [score.details[f"uniques_{size}"] for size in (1, 2, 3, 4)] == [27, 0, 0, 0]
    assert score.by_record.tolist() == [26 * 25 * 24 * 23, 0, 0, 26 * (26 * 25 * 24 * 23)]


def test_dis_needs_to_know_what_was_drawn():
    assert score_of(guide(), DisSuda()).status is Status.REFUSED
    assert "both" in score_of(guide(), DisSuda(fraction=0.5, population_size=20)).reason
    few = score_of(guide(), DisSuda(population_size=9))
    assert few.status is Status.NOT_ESTIMABLE
    assert "got: 9 people" in few.reason
    drawn = guide(weight=([100.0] * 10, (Kind.CONTINUOUS, Role.WEIGHT)))
    told = [score_of(drawn, DisSuda()), score_of(guide(), DisSuda(population_size=1000))]
    for score in told:
        assert score.value == pytest.approx(score_of(guide(), DisSuda(fraction=0.01)).value)


def test_dis_of_a_whole_population_and_of_nobody_unique():
    assert score_of(guide(), DisSuda(fraction=1)).by_record[[2, 4, 6, 7]].tolist() == [1] * 4
    pairs = score_of(table_of({"a": [1, 1]}, a=NOMINAL), DisSuda(fraction=0.1))
    assert (pairs.value, pairs.status) == (0, Status.OK)
    assert (
        score_of(table_of({"a": [1]}, a=NOMINAL), DisSuda(fraction=0.1)).value == 1
    )  # no pair speaks against it


def test_dis_of_who_only_many_keys_single_out():
    """Nobody who is unique has the chance 0."""
    crossed = table_of({"a": [1, 1, 2, 2, 3, 3], "b": [1, 2, 1, 2, 1, 1]}, a=NOMINAL, b=NOMINAL)
    score = score_of(crossed, DisSuda(dimension=1, fraction=0.1))
    assert (score.by_record[:4] > 0).all()
    assert score.by_record[4:].tolist() == [0, 0]


def keys_from(file, *names):
    frame = pl.read_csv(SHARED / file).select(names)
    return Table(frame, Schema(tuple(Column(name, NOMINAL, Role.KEY) for name in names)))


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_published_chances_of_five_keys():
    """By IHSN's and sdcMicro's code: the largest .26654, and 196.171 in all."""
    score = score_of(
        keys_from("free1.csv", "REGION", "SEX", "AGE", "MARSTAT", "KINDPERS"), DisSuda(fraction=0.01)
    )
    assert score.value == pytest.approx(0.26654, abs=5e-6)
    assert score.by_record.sum() == pytest.approx(196.171, abs=5e-4)


@pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")
def test_published_chances_of_seven_keys():
    """By the same code .31154 and 3.7059, where one record that needs all keys to be unique has the chance 0.

    Here it has one, so that the others are somewhat likelier to be found; without its people they are as there.
    """
    table = keys_from("testdata.csv", "urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
    chances = score_of(table, DisSuda(fraction=0.01)).by_record
    assert (chances.max(), chances.sum()) == (
        pytest.approx(0.31452, abs=5e-6),
        pytest.approx(3.7603, abs=5e-5),
    )
    scores = score_of(table, Suda(dimension=6, scale="ihsn")).by_record
    behind = 1 / chances[chances > 0] - 1
    others = behind[scores[chances > 0] > 0]
    assert (len(behind), len(others)) == (157, 156)
    theirs = 1 / (1 + others * behind.sum() / others.sum())
    assert (theirs.max(), theirs.sum()) == (
        pytest.approx(0.31154, abs=5e-6),
        pytest.approx(3.7059, abs=5e-5),
    )


def test_one_huge_weight_hides_nobody():
    """Nine of ten still say that one of a hundred was drawn."""
    column = (Kind.CONTINUOUS, Role.WEIGHT)
    even, huge = (score_of(guide(weight=([100.0] * 9 + [last], column)), DisSuda()) for last in (100.0, 1e12))
    assert even.details["fraction"] == pytest.approx(0.01)
    assert huge.details["fraction"] == pytest.approx(0.009)
    assert huge.value == pytest.approx(score_of(guide(), DisSuda(fraction=0.009)).value)
    assert "check the largest weights" in huge.reason
    assert "weights" not in even.reason
    # Told otherwise, weights do not matter; and those below 1 hide nothing either.
    told = score_of(guide(weight=([100.0] * 9 + [1e12], column)), DisSuda(fraction=0.01))
    assert told.value == pytest.approx(even.value)
    assert score_of(guide(weight=([0.5, 1.5] * 5, column)), DisSuda()).value == 1


def test_a_person_counts_once_for_the_share_that_was_drawn():
    """The person of two records has the weight 2, the other 10."""
    who, weight = ([1, 1, 2], (NOMINAL, Role.PERSON)), ([2.0, 4.0, 10.0], (Kind.CONTINUOUS, Role.WEIGHT))
    table = table_of(
        {"a": [1, 1, 2], "who": who[0], "weight": weight[0]}, a=NOMINAL, who=who[1], weight=weight[1]
    )
    assert score_of(table, DisSuda()).details["fraction"] == pytest.approx((1 / 2 + 1 / 10) / 2)


def test_special_uniques_are_never_the_safer_ones():
    """With 40 keys the exponent would be −0.6: it ends at 0, where all chances are the same."""
    names = [f"k{i:02}" for i in range(40)]
    values = {name: [1, 1, 1, 2] for name in names} | {"k39": [3, 4, 4, 4]}
    score = score_of(
        table_of(values, **dict.fromkeys(names, NOMINAL)), DisSuda(dimension=1, fraction=0.1, scale="elliot")
    )
    assert score.by_record.tolist() == pytest.approx([score.details["dis"], 0, 0, score.details["dis"]])


# ------------------------------------------------------------------------------------------ by enumeration


@st.composite
def frames(draw):
    """Up to five keys with few values, some decimal and some missing."""
    n, n_keys = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    key = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.none())
    return {f"k{i}": draw(st.lists(key, min_size=n, max_size=n)) for i in range(n_keys)}


def agree(mine, theirs, policy):
    if policy == "any":
        return mine is None or theirs is None or mine == theirs
    return mine == theirs and (policy == "category" or mine is not None)


def minimal_uniques(frame, record, dimension, policy):
    """All sets of keys in which nobody agrees with a record, while somebody does in every part."""
    names, n = sorted(frame), len(frame["k0"])

    def unique(subset):
        return not any(
            all(agree(frame[name][record], frame[name][other], policy) for name in subset)
            for other in range(n)
            if other != record
        )

    found = []
    for size in range(1, min(dimension, len(names)) + 1):
        for subset in combinations(names, size):
            if unique(subset) and not any(set(part) <= set(subset) for part in found):
                found.append(subset)
    return found


@given(frames(), st.sampled_from(["category", "any", "worst"]), st.integers(1, 5))
@examples(150)
def test_scores_by_enumeration(frame, policy, dimension):
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame)
    table = Table(pl.DataFrame(frame, schema=dict.fromkeys(frame, pl.Float64)), Schema(columns))
    score = score_of(table, Suda(dimension=dimension, missing=policy))
    n_keys, last = len(frame), min(dimension, len(frame) - 1)
    uniques = [minimal_uniques(frame, i, dimension, policy) for i in range(len(table))]
    expected = [
        sum(math.prod(n_keys - i for i in range(len(each), last + 1)) for each in own) for own in uniques
    ]
    assert score.by_record.tolist() == expected
    assert score.value == max(expected)
    for size in range(1, min(dimension, n_keys) + 1):
        assert score.details[f"uniques_{size}"] == sum(len(each) == size for own in uniques for each in own)


@given(frames(), st.integers(1, 5), st.sampled_from(["elliot", "ihsn"]), st.sampled_from([0.01, 0.4]))
@examples(150)
def test_chances_are_not_below_their_definition(frame, dimension, scale, fraction):
    """Which leaves out who has no score; they are the same where everybody who is unique has one."""
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame)
    table = Table(pl.DataFrame(frame, schema=dict.fromkeys(frame, pl.Float64)), Schema(columns))
    found = score_of(table, DisSuda(dimension=dimension, scale=scale, fraction=fraction)).by_record
    m, last = len(frame), min(dimension, len(frame) - 1)
    worth = {
        k: math.prod(m - i for i in range(k, last + 1))
        if scale == "elliot"
        else (2 ** (m - k) - 1) / math.comb(m, k)
        for k in range(1, m + 1)
    }
    scores = [
        sum(worth[len(each)] for each in minimal_uniques(frame, i, dimension, "category"))
        for i in range(len(table))
    ]
    records = list(zip(*frame.values(), strict=True))
    unique = [records.count(record) == 1 for record in records]
    pairs = sum(records.count(record) == 2 for record in records) / 2
    q = 1 + (8 - m) / 20
    total = sum(score**-q for score in scores if score)
    people = 2 * pairs * (1 - fraction) / fraction
    defined = [1 / (1 + people * score**-q / total) if score else 0 for score in scores]
    assert (found >= np.array(defined) - 1e-12).all()
    assert ((found > 0) == unique).all()
    if all(score > 0 for score, alone in zip(scores, unique, strict=True) if alone):
        np.testing.assert_allclose(found, defined, rtol=1e-9)


@given(frames(), st.sampled_from(["category", "worst"]), st.integers(1, 5))
@examples(150)
def test_the_recursion_finds_what_the_levels_do(frame, policy, dimension):
    columns = tuple(Column(name, Kind.CONTINUOUS, Role.KEY) for name in frame)
    table = Table(pl.DataFrame(frame, schema=dict.fromkeys(frame, pl.Float64)), Schema(columns))
    measure, keys = Suda(dimension=dimension, missing=policy), KeyCodes.of(table, tuple(sorted(frame)))
    told = []
    one, other = (
        measure.by_levels(keys, Run(seed=1)),
        measure.by_recursion(
            keys, Run(seed=1, progress=Progress(report=lambda event: told.append((event.done, event.total))))
        ),
    )
    assert (one.scores.tolist(), one.special.tolist()) == (other.scores.tolist(), other.special.tolist())
    assert one.numbers == other.numbers
    for mine, theirs in zip(one.by_code, other.by_code, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(math.comb(len(frame), k) for k in range(1, dimension + 1))


def test_shares_by_value_are_private():
    """Two sexes, two jobs: the smith alone is singled out, by the job and nothing else."""
    columns = {"sex": ["m", "m", "f", "f", "f"], "job": ["cook", "cook", "cook", "smith", "cook"]}
    score = Suda().score(Evidence(table_of(columns, sex=Kind.NOMINAL, job=Kind.NOMINAL)), Run(seed=1))
    assert score.by_value["job"] == {"smith": 1.0}
    assert score.by_value["sex"] == {}
    assert "by_value" not in score.to_dict()
    assert "smith" not in repr(score)
    assert score.to_dict(private=True)["by_value"]["job"] == {"smith": 1.0}
