"""All measures of classes against what their definitions say, record by record, on small tables of all sorts."""

import itertools
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from sfumato.core.evidence import Evidence
from sfumato.core.measure import Status
from sfumato.core.run import Run
from sfumato.data.classes.classes import Classes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.risk.anonymity import KAnonymity, KMap, XYAnonymity
from sfumato.risk.closeness import BetaLikeness, DeltaDisclosure, TCloseness
from sfumato.risk.diversity import AlphaKAnonymity, LDiversity, PSensitivity, RecursiveDiversity
from sfumato.risk.presence import DeltaPresence
from sfumato.risk.reidentification import (
    Distinction,
    JournalistRisk,
    MarketerRisk,
    ProsecutorRisk,
    Separation,
)

POLICIES = ("category", "any", "worst")

KEY_A = ["x", "y", "z", None]
KEY_B = [1, 2, -9, None]  # −9 is declared missing
SENSITIVE = ["f", "g", "h", None]
GRADE = [1.0, 2.0, 4.0, 7.0, None, math.nan]
PERSON = [1, 2, 3]


@st.composite
def tables(draw, *, min_size=1, max_size=7, units=None, holes=True):
    """Small tables with keys ``a`` and ``b``, sensitive ``s`` and ``o``, and perhaps whose record it is."""
    n = draw(st.integers(min_size, max_size))

    def column(values):
        chosen = [value for value in values if holes or known(value)]
        return draw(st.lists(st.sampled_from(chosen), min_size=n, max_size=n))

    columns = [
        (
            pl.Series("a", column(KEY_A), dtype=draw(st.sampled_from([pl.String, pl.Categorical]))),
            Kind.NOMINAL,
        ),
        (pl.Series("b", column(KEY_B), dtype=pl.Int64), Kind.ORDINAL),
        (
            pl.Series("s", column(SENSITIVE), dtype=pl.Enum(["unused", "h", "g", "f"])),
            Kind.NOMINAL,
        ),
        (pl.Series("o", column(GRADE), dtype=pl.Float64), Kind.CONTINUOUS),
    ]
    roles = [Role.KEY, Role.KEY, Role.SENSITIVE, Role.SENSITIVE]
    schema = [
        Column(series.name, kind, role, missing=(-9,) if series.name == "b" else ())
        for (series, kind), role in zip(columns, roles, strict=True)
    ]
    series = [each for each, _ in columns]
    if units if units is not None else draw(st.booleans()):
        series.append(pl.Series("who", column(PERSON), dtype=pl.Int64))
        schema.append(Column("who", Kind.NOMINAL, Role.PERSON))
    return Table(pl.DataFrame(series), Schema(tuple(schema)))


def known(value):
    return value is not None and value != -9 and not (isinstance(value, float) and math.isnan(value))


def plain(table, name):
    """The values of a column, None where missing."""
    return [value if known(value) else None for value in table.frame[name].to_list()]


def as_shown(table, name, policy):
    """The values of a column, None where missing; as a category each way to show that it is missing is one."""
    if policy != "category":
        return plain(table, name)
    return ["NaN" if isinstance(value, float) and math.isnan(value) else value for value in table.frame[name]]


def owners(table):
    return table.frame["who"].to_list() if "who" in table.schema else list(range(len(table)))


def alike(one, other, policy):
    if policy == "any":
        return all(x is None or y is None or x == y for x, y in zip(one, other, strict=True))
    return one == other and (policy == "category" or None not in one)


def groups(table, policy, keys=("a", "b")):
    """For each record those that are alike, itself among them."""
    rows = list(zip(*(as_shown(table, name, policy) for name in keys), strict=True))
    return [
        [j for j, other in enumerate(rows) if i == j or alike(one, other, policy)]
        for i, one in enumerate(rows)
    ]


def persons_in(table, group):
    who = owners(table)
    return len({who[j] for j in group})


def value_counts(table, group, name):
    """How many persons of a group have each value."""
    values, who = plain(table, name), owners(table)
    return Counter(value for _, value in {(who[j], values[j]) for j in group})


def table_counts(table, policy, name):
    """How many have each value in the table: a person once for each combination of keys and value."""
    rows = list(zip(*(as_shown(table, key, policy) for key in ("a", "b")), strict=True))
    where = [(row, i if policy == "worst" and None in row else -1) for i, row in enumerate(rows)]
    values, who = plain(table, name), owners(table)
    return Counter(value for _, _, value in set(zip(where, who, values, strict=True)))


def score(measure, table, **settings_):
    return measure(**settings_).score(Evidence(table), Run(seed=1))


def assert_scored(found, per_record, worst):
    """The value is the worst of the records, and each record has its own."""
    if math.isinf(worst(per_record)):
        assert found.status is Status.NOT_ESTIMABLE
        assert found.reason
        return
    np.testing.assert_allclose(found.by_record, per_record, rtol=1e-12, atol=1e-12)
    assert found.status is Status.OK
    np.testing.assert_allclose(found.value, worst(per_record), rtol=1e-12, atol=1e-12)


quick = examples(60)


# ------------------------------------------------------------------------------------------ identity


@quick
@given(tables(), st.sampled_from(POLICIES))
def test_classes(table, policy):
    classes = Classes.of(table, ["b", "a"], missing=policy)
    found = groups(table, policy)
    assert classes.sizes[classes.of_record].tolist() == [len(group) for group in found]
    assert classes.persons[classes.of_record].tolist() == [persons_in(table, group) for group in found]
    assert classes.members.sum() == len(table)
    for name in ("s", "o"):
        counts = classes.counts(name)
        for i, group in enumerate(found):
            part = slice(*counts.starts[classes.of_record[i] : classes.of_record[i] + 2])
            expected = value_counts(table, group, name)
            assert sorted(counts.counts[part]) == sorted(expected.values())
            assert counts.missing_counts[classes.of_record[i]] == expected[None]
        assert sorted(counts.of_values[counts.of_values > 0]) == sorted(
            table_counts(table, policy, name).values()
        )


@quick
@given(tables(), st.sampled_from(POLICIES))
def test_identity(table, policy):
    found = groups(table, policy)
    sizes = [persons_in(table, group) for group in found]
    assert_scored(score(KAnonymity, table, missing=policy), sizes, min)
    risks = [1 / size for size in sizes]
    assert_scored(score(ProsecutorRisk, table, missing=policy), risks, max)
    by_person = [
        max(r for r, w in zip(risks, owners(table), strict=True) if w == who) for who in set(owners(table))
    ]
    marketer = score(MarketerRisk, table, missing=policy)
    assert marketer.value == pytest.approx(sum(by_person) / len(by_person), rel=1e-12)
    assert marketer.details["at_risk"] == sum(risk > 0.2 for risk in by_person)
    distinct = score(Distinction, table, missing=policy).value
    assert distinct == pytest.approx(sum(1 / len(group) for group in found) / len(found), rel=1e-12)
    pairs = [(i, j) for i in range(len(found)) for j in range(len(found)) if i != j]
    if pairs:
        apart = sum(j not in found[i] for i, j in pairs) / len(pairs)
        assert score(Separation, table, missing=policy).value == pytest.approx(apart, rel=1e-12)


@examples(60)
@given(tables(max_size=4, units=False))
def test_worst_is_the_least_over_all_fillings_of_the_keys(table):
    """A hole may hold a value that others have, or one that nobody has."""
    rows = list(zip(plain(table, "a"), plain(table, "b"), strict=True))
    holes = [(i, j) for i, row in enumerate(rows) for j, value in enumerate(row) if value is None][:6]
    least = [len(rows)] * len(rows)
    for filling in itertools.product(["x", "y", "z", 1, 2, "new", "newer"], repeat=min(len(holes), 4)):
        filled = [list(row) for row in rows]
        for number, (i, j) in enumerate(holes):
            filled[i][j] = filling[number] if number < len(filling) else f"own {number}"
        least = [min(k, filled.count(row)) for k, row in zip(least, filled, strict=True)]
    assert score(KAnonymity, table, missing="worst").by_record.tolist() == least


@quick
@given(tables())
def test_policies_are_in_order(table):
    worst, category, any_ = (
        score(KAnonymity, table, missing=p).by_record for p in ("worst", "category", "any")
    )
    assert (worst <= category).all()
    assert (category <= any_).all()


@quick
@given(tables(), st.data())
def test_order_duplicates_and_other_columns_change_nothing(table, data):
    """Filtered, sorted and repeated frames: positions are positions, not labels."""
    order = np.array(data.draw(st.permutations(range(len(table)))), dtype=np.int64)
    turned = table.take(order).select(["s", "b", *[n for n in table.names if n not in {"s", "b"}]])
    for name in (KAnonymity, LDiversity, TCloseness, BetaLikeness):
        first, second = score(name, table), score(name, turned)
        assert second.value == pytest.approx(first.value, rel=1e-12)
        np.testing.assert_allclose(second.by_record, first.by_record[order], rtol=1e-12)
    if "who" not in table.schema:
        twice = table.take(np.repeat(order, 2))
        assert score(KAnonymity, twice).value == 2 * score(KAnonymity, table).value
        assert score(TCloseness, twice).value == pytest.approx(score(TCloseness, table).value, abs=1e-12)
        assert score(LDiversity, twice).value == score(LDiversity, table).value


@quick
@given(tables(), st.sampled_from(POLICIES))
def test_xy_anonymity(table, policy):
    pairs = list(zip(plain(table, "s"), plain(table, "o"), strict=True))
    expected = []
    for group in groups(table, policy, keys=("a",)):
        beside = {pairs[j] for j in group}
        if policy == "worst":
            beside = {pair for pair in beside if None not in pair}
        expected.append(max(len(beside), 1))
    assert_scored(score(XYAnonymity, table, x=["a"], y=["s", "o"], missing=policy), expected, min)


# ----------------------------------------------------------------------------------------- diversity


def worst_filled(counts, policy):
    """The counts of a class, in descending order; in the worst case holes are the most frequent value."""
    holes = counts.pop(None, 0) if policy == "worst" else 0
    amounts = sorted(counts.values(), reverse=True)
    return [amounts[0] + holes, *amounts[1:]] if amounts else [holes]


def entropy_l(amounts):
    return math.exp(-sum(a / sum(amounts) * math.log(a / sum(amounts)) for a in amounts))


def recursive_l(amounts, c):
    return max((n for n in range(1, len(amounts) + 1) if amounts[0] < c * sum(amounts[n - 1 :])), default=0)


def recursive_c(amounts, least):
    return amounts[0] / sum(amounts[least - 1 :]) if len(amounts) >= least else math.inf


@quick
@given(tables(), st.sampled_from(POLICIES), st.sampled_from([0.5, 1.0, 3.0]), st.integers(1, 3))
def test_diversity(table, policy, c, least):
    found = groups(table, policy)
    columns = [[worst_filled(value_counts(table, group, n), policy) for group in found] for n in ("s", "o")]

    def expected(function, choose):
        return [choose(map(function, pair)) for pair in zip(*columns, strict=True)]

    lowest = expected(len, min)
    assert_scored(score(LDiversity, table, missing=policy), lowest, min)
    assert_scored(score(PSensitivity, table, missing=policy), lowest, min)
    entropy = expected(entropy_l, min)
    assert_scored(score(LDiversity, table, missing=policy, kind="entropy"), entropy, min)
    recursive = expected(lambda amounts: recursive_l(amounts, c), min)
    assert_scored(score(LDiversity, table, missing=policy, kind="recursive", c=c), recursive, min)
    constants = expected(lambda amounts: recursive_c(amounts, least), max)
    assert_scored(score(RecursiveDiversity, table, missing=policy, l=least), constants, max)
    sizes = [persons_in(table, group) for group in found]
    shares = [max(min(column[i][0] / size, 1.0) for column in columns) for i, size in enumerate(sizes)]
    alpha = score(AlphaKAnonymity, table, missing=policy, k=2)
    assert_scored(alpha, shares, max)
    assert alpha.details["feasible"] == ("yes" if min(sizes) >= 2 else "no")


# ----------------------------------------------------------------------------------------- closeness


def shares_of(counts):
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()}


def total_variation(mine, others):
    return sum(abs(mine.get(v, 0) - others.get(v, 0)) for v in {*mine, *others}) / 2


def ordered(mine, others):
    """Holes apart: the difference of their shares, and the distance of the rest for what both know."""
    gaps = mine.pop(None, 0), others.pop(None, 0)
    values = sorted({*mine, *others})
    distance = 0.0
    if mine and others and len(values) > 1:
        below = [
            [
                sum(share for v, share in each.items() if v <= value) / sum(each.values())
                for value in values[:-1]
            ]
            for each in (mine, others)
        ]
        distance = sum(abs(x - y) for x, y in zip(*below, strict=True)) / (len(values) - 1)
    return abs(gaps[0] - gaps[1]) + (1 - max(gaps)) * distance


def beta_of(mine, others):
    return max(0.0, *(share / others[value] - 1 for value, share in mine.items()))


def delta_of(mine, others):
    if set(mine) != set(others):
        return math.inf
    return max(abs(math.log(share / others[value])) for value, share in mine.items())


def enhanced_of(mine, others):
    gains = {value: share / others[value] - 1 for value, share in mine.items()}
    if any(gain > -math.log(others[value]) * (1 + 1e-12) for value, gain in gains.items()):
        return math.inf
    return max(0.0, *gains.values())


@quick
@given(tables(), st.sampled_from(["category", "any"]))
def test_closeness(table, policy):
    found = groups(table, policy)

    def expected(function, names=("s", "o")):
        return [
            max(
                function(shares_of(value_counts(table, group, n)), shares_of(table_counts(table, policy, n)))
                for n in names
            )
            for group in found
        ]

    assert_scored(score(TCloseness, table, missing=policy), expected(total_variation), max)
    t = score(TCloseness, table, missing=policy, distance="ordered", sensitive=["o"])
    assert_scored(t, expected(ordered, ["o"]), max)
    assert_scored(score(BetaLikeness, table, missing=policy), expected(beta_of), max)
    assert_scored(score(DeltaDisclosure, table, missing=policy), expected(delta_of), max)
    enhanced = score(BetaLikeness, table, missing=policy, kind="enhanced")
    assert_scored(enhanced, expected(enhanced_of), max)
    assert (enhanced.details["feasible"] == "yes") == (enhanced.status is Status.OK)


@quick
@given(tables(holes=False, units=False))
def test_worst_without_holes_is_plain(table):
    for name in (TCloseness, BetaLikeness, LDiversity, AlphaKAnonymity, KAnonymity):
        assert score(name, table, missing="worst").value == pytest.approx(score(name, table).value, abs=1e-12)


@examples(60)
@given(st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from(["f", "g", None])), min_size=1, max_size=5))
def test_worst_is_the_worst_of_all_fillings_of_the_sensitive_column(rows):
    """A hole may hold a value that others have, or one that nobody has."""
    columns = (Column("a", Kind.NOMINAL, Role.KEY), Column("s", Kind.NOMINAL, Role.SENSITIVE))
    frame = pl.DataFrame(rows, schema={"a": pl.String, "s": pl.String}, orient="row")
    table = Table(frame, Schema(columns))
    holes = [i for i, (_, value) in enumerate(rows) if value is None]
    reached = []
    for filling in itertools.product(["f", "g", "new", "newer"], repeat=len(holes)):
        filled = dict(zip(holes, filling, strict=True))
        values = [filled.get(i, value) for i, (_, value) in enumerate(rows)]
        parts = [
            [v for v, (a, _) in zip(values, rows, strict=True) if a == key] for key in {a for a, _ in rows}
        ]
        amounts = [sorted(Counter(part).values(), reverse=True) for part in parts]
        everybody = shares_of(Counter(values))
        shares = [shares_of(Counter(part)) for part in parts]
        reached.append(
            (
                min(map(len, amounts)),
                min(map(entropy_l, amounts)),
                min(recursive_l(each, 1.5) for each in amounts),
                -max(each[0] / sum(each) for each in amounts),
                -max(beta_of(each, everybody) for each in shares),
                -max(total_variation(each, everybody) for each in shares),
            )
        )
    least = [min(column) for column in zip(*reached, strict=True)]
    found = [
        score(LDiversity, table, missing="worst").value,
        score(LDiversity, table, missing="worst", kind="entropy").value,
        score(LDiversity, table, missing="worst", kind="recursive", c=1.5).value,
        -score(AlphaKAnonymity, table, missing="worst").value,
        -score(BetaLikeness, table, missing="worst").value,
    ]
    assert found == pytest.approx(least[:-1], rel=1e-12, abs=1e-12)
    closeness = -score(TCloseness, table, missing="worst").value
    assert closeness <= least[-1] + 1e-12  # a bound
    assert holes or closeness == pytest.approx(least[-1], abs=1e-12)


# ------------------------------------------------------------------------------------------ population


@quick
@given(tables(units=False), tables(min_size=0, units=False), st.sampled_from(POLICIES))
def test_k_map(table, people, policy):
    evidence = Evidence(table, resources={"register": people})
    found = KMap(population="register", missing=policy).score(evidence, Run(seed=1))
    theirs = list(zip(plain(people, "a"), plain(people, "b"), strict=True))
    expected = [
        1 if policy == "worst" and None in row else sum(alike(row, other, policy) for other in theirs)
        for row in zip(plain(table, "a"), plain(table, "b"), strict=True)
    ]
    assert_scored(found, expected, min)
    if all(expected):
        journalist = JournalistRisk(population="register", missing=policy).score(evidence, Run(seed=1))
        assert_scored(journalist, [1 / size for size in expected], max)
    presence = DeltaPresence(population="register", missing=policy)
    found = presence.score(evidence, Run(seed=1))
    released = [len(group) for group in groups(table, policy)]
    if any(f > size for f, size in zip(released, expected, strict=True)):
        assert found.status is Status.NOT_ESTIMABLE
    else:
        assert_scored(found, [f / size for f, size in zip(released, expected, strict=True)], max)
