"""The one pass: columns of every type coded, classes numbered, values counted, and what evidence remembers."""

import itertools
import pickle
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from sfumato.core import registry
from sfumato.core.evidence import Evidence
from sfumato.core.intruder_view import classes_of
from sfumato.core.measure import Measure
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.classes import packing
from sfumato.data.classes.classes import Classes, column_codes, compatible
from sfumato.data.classes.packing import Coding, distinct_of, number, pack
from sfumato.data.generalised.intervals import intervals
from sfumato.data.generalised.nodes import Nodes
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import DataError, UnknownNameError
from sfumato.risk._key_measures import by_original
from sfumato.risk.anonymity import KAnonymity


def table_of(columns, *, roles=None, kinds=None, missing=None, nodes=None):
    """A table whose columns are keys unless said otherwise."""
    roles, kinds, missing = roles or {}, kinds or {}, missing or {}
    frame = pl.DataFrame(columns, strict=False)
    schema = Schema(
        tuple(
            Column(
                name, kinds.get(name, Kind.NOMINAL), roles.get(name, Role.KEY), missing=missing.get(name, ())
            )
            for name in frame.columns
        )
    )
    return Table(frame, schema, nodes=nodes or {})


def partition(classes):
    """Which records are together, as sets."""
    found = {}
    for record, number_ in enumerate(classes.of_record):
        found.setdefault(int(number_), set()).add(record)
    return sorted(map(sorted, found.values()))


# ------------------------------------------------------------------------------------------- codes of a column

BOXES = intervals([1, 1, 1, None, None], [5, 5, None, 5, None], missing=[False, False, False, False, True])


@pytest.mark.parametrize(
    ("series", "equal"),
    [
        (pl.Series(["x", "y", "x", None]), [[0, 2], [1], [3]]),
        (pl.Series(["x", "y", "x", None], dtype=pl.Categorical), [[0, 2], [1], [3]]),
        (pl.Series(["x", "y", "x", None], dtype=pl.Enum(["unused", "y", "x"])), [[0, 2], [1], [3]]),
        (pl.Series([1, 2, 1, None]), [[0, 2], [1], [3]]),
        (pl.Series([-(2**63), 2**63 - 1, -(2**63), None], dtype=pl.Int64), [[0, 2], [1], [3]]),
        (pl.Series([2**64 - 1, 0, 2**64 - 1, None], dtype=pl.UInt64), [[0, 2], [1], [3]]),
        (pl.Series([0.0, -0.0, 0.1 + 0.2, 0.3, None, float("nan")]), [[0, 1], [2], [3], [4], [5]]),
        (pl.Series([-1.5, 1.5, -1.5, float("inf"), -float("inf")]), [[0, 2], [1], [3], [4]]),
        (pl.Series([0.1, 0.2, 0.1], dtype=pl.Float32), [[0, 2], [1]]),
        (pl.Series([True, False, None, True]), [[0, 3], [1], [2]]),
        (pl.Series([date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 1), None]), [[0, 2], [1], [3]]),
        (pl.Series([0, 3_600_000_000, 0]).cast(pl.Datetime("us")), [[0, 2], [1]]),
        (pl.Series([0, 60, 0]).cast(pl.Duration("ms")), [[0, 2], [1]]),
        (pl.Series([Decimal("1.10"), Decimal("1.1"), Decimal("1.2")]), [[0, 1], [2]]),
        (pl.Series([None, None], dtype=pl.Null), [[0, 1]]),
        (pl.Series([], dtype=pl.String), []),
        (pl.Series([], dtype=pl.Int64), []),
        (pl.Series([], dtype=pl.Float64), []),
        (pl.Series([None, None], dtype=pl.Int64), [[0, 1]]),
        (BOXES, [[0, 1], [2], [3], [4]]),
        (intervals([1.0, None, 1.0], [2.5, 2.5, 2.5]), [[0, 2], [1]]),
        (pl.Series(["*", "early", "*", None], dtype=pl.Enum(["*", "early"])), [[0, 2], [1], [3]]),
    ],
)
def test_equal_values_are_together(series, equal):
    """Missing ones too, apart from the wildcard, and an empty cell apart from one that is no number."""
    assert partition(Classes.of(table_of({"a": series}), ["a"])) == equal


def test_missing_codes_and_unused_categories():
    table = table_of(
        {
            "a": [1, -9, None, 2, 1],
            "b": pl.Series(["u", ".", "u", "u", "u"], dtype=pl.Enum([".", "u", "never"])),
        },
        missing={"a": (-9,), "b": (".",)},
    )
    seen = Classes.of(table, ["a"])  # whoever sees the file tells a code from an empty cell
    assert partition(seen) == [[0, 4], [1], [2], [3]]
    assert seen.incomplete == 2
    assert Classes.of(table, ["a"], missing="any").sizes.tolist() == [5, 4, 3]
    classes = Classes.of(table, ["a", "b"])
    assert partition(classes) == [[0, 4], [1], [2], [3]]
    assert classes.incomplete == 2
    assert classes.members.min() == 1  # nobody has the level that is never used


def test_codes_depend_on_the_column_alone():
    first = table_of({"a": ["p", "q", "p"]})
    pl.Series(["q", "z", "p"]).cast(pl.Categorical)  # other text read before
    assert column_codes(first, "a").codes.tolist() == [1, 2, 1]
    other = table_of({"a": pl.Series(["p", "q", "p"], dtype=pl.Enum(["z", "q", "p"]))})
    assert column_codes(other, "a").codes.tolist() == [1, 2, 1]


def test_sets_have_no_codes_and_no_cell_is_said():
    table = table_of({"a": [["Zanzibarquux"], []]}, kinds={"a": Kind.SET})
    with pytest.raises(DataError, match="plain or generalised values, got: List"):
        Classes.of(table, ["a"])


# ------------------------------------------------------------------------------------------- numbers from codes


def test_many_wide_columns_fit():
    """Codes of 12 columns of 2^40 values each would not fit into 64 bits: they are closed up on the way."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**40, (40, 12))
    values[20:] = values[rng.permutation(20)]
    table = table_of({f"c{i}": values[:, i] for i in range(12)})
    expected = {}
    for i, row in enumerate(map(tuple, values)):
        expected.setdefault(row, []).append(i)
    assert partition(Classes.of(table, table.names)) == sorted(expected.values())
    packed = pack([Coding(np.array([2, 0, 2], dtype=np.uint64), 2**61)] * 3, 3)
    assert packed.codes[0] == packed.codes[2] != packed.codes[1]
    assert packed.codes.max() < packed.space <= 2**62


@pytest.mark.parametrize("space", [50, 10**15])
def test_numbers_by_table_and_by_sorting(space):
    codes = np.array([40, 3, 40, 7, 3, 40], dtype=np.uint64)
    numbers, counts = number(Coding(codes, space))
    assert numbers.tolist() == [2, 0, 2, 1, 0, 2]
    assert counts.tolist() == [2, 1, 3]
    distinct, counts = distinct_of(codes, space)
    assert distinct.tolist() == [3, 7, 40]
    assert counts.tolist() == [2, 1, 3]
    empty = np.zeros(0, dtype=np.uint64)
    assert [len(each) for each in (*number(Coding(empty, space)), *distinct_of(empty, space))] == [0] * 4


def test_a_wide_sensitive_column():
    values = [10**17, -5, 10**17, None, 3]
    table = table_of({"a": [1, 1, 1, 2, 2], "s": values}, roles={"s": Role.SENSITIVE})
    counts = Classes.of(table, ["a"]).counts("s")
    assert counts.counts.tolist() == [1, 2, 1, 1]
    assert counts.values.tolist() == [1, 3, 0, 2]  # in the order of the numbers, missing first
    assert counts.of_values.tolist() == [1, 1, 1, 2]
    assert [values[i] for i in counts.examples] == [None, -5, 3, 10**17]


def test_weights_and_persons():
    table = table_of(
        {"a": ["x", "x", "x", "y"], "w": [1.5, 2.0, 0.5, 4.0], "who": [1, 1, 2, None]},
        roles={"w": Role.WEIGHT, "who": Role.PERSON},
        kinds={"w": Kind.CONTINUOUS},
    )
    classes = Classes.of(table, ["a"])
    assert classes.sizes.tolist() == [3, 1]
    assert classes.persons.tolist() == [2, 1]
    assert classes.weights.tolist() == [2.0, 4.0]  # of the first person the least weight, and once
    assert Classes.of(table.select(["a"]), ["a"]).weights.tolist() == [3.0, 1.0]


def test_weights_of_persons_whose_keys_may_be_anything():
    """The person of the first two records is alike to all, and counts once for each."""
    table = table_of(
        {"a": ["x", None, "y"], "w": [10.0, 10.0, 1.0], "who": [1, 1, 2]},
        roles={"w": Role.WEIGHT, "who": Role.PERSON},
        kinds={"w": Kind.CONTINUOUS},
    )
    classes = Classes.of(table, ["a"], missing="any")
    assert classes.weights[classes.of_record].tolist() == [10, 11, 11]


def test_nobody_and_no_key():
    table = table_of({"a": ["x", "y"]})
    assert Classes.of(table, []).sizes.tolist() == [2]
    empty = Classes.of(table.take(np.arange(0)), ["a"])
    assert len(empty) == 0
    assert empty.sizes.tolist() == []
    assert empty.counts("a").totals.tolist() == []


# ---------------------------------------------------------------------------------- a missing key is anything


def test_a_missing_key_matches_anything():
    """The classes of (x, 1), (x, –), (–, 2), (y, 2) by hand: the second meets the first and the third."""
    table = table_of(
        {"a": ["x", "x", None, "y"], "b": [1, None, 2, 2], "w": [1.0, 10.0, 100.0, 1000.0]},
        roles={"w": Role.WEIGHT},
        kinds={"w": Kind.CONTINUOUS},
    )
    classes = Classes.of(table, ["a", "b"], missing="any")
    assert classes.overlap
    assert classes.sizes[classes.of_record].tolist() == [2, 3, 3, 2]
    assert classes.weights[classes.of_record].tolist() == [11, 111, 1110, 1100]
    assert not Classes.of(table.take(np.array([0, 3])), ["a", "b"], missing="any").overlap


def test_gathering_in_batches_is_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    columns = {name: [None if v == 0 else int(v) for v in rng.integers(0, 4, 60)] for name in "abcs"}
    table = table_of(
        {**columns, "who": rng.integers(0, 20, 60)}, roles={"s": Role.SENSITIVE, "who": Role.PERSON}
    )
    whole = Classes.of(table, list("abc"), missing="any")
    persons, counts = whole.persons, whole.counts("s")
    monkeypatch.setattr(compatible, "_BATCH", 7)
    parts = Classes.of(table, list("abc"), missing="any")
    assert parts.persons.tolist() == persons.tolist()
    assert parts.counts("s").counts.tolist() == counts.counts.tolist()
    assert parts.counts("s").classes.tolist() == counts.classes.tolist()


# ------------------------------------------------------------------------------------ generalised keys, releases


def test_generalised_keys_are_alike_if_equal():
    nodes = Nodes.of({"early": ["a", "b"], "a": ["a"]}, leaves=["a", "b"])
    table = table_of(
        {
            "age": intervals([20, 20, 20, 30], [29, 29, 35, 39]),
            "job": pl.Series(["early", "early", "a", "*"], dtype=nodes.dtype),
        },
        kinds={"age": Kind.CONTINUOUS},
        nodes={"job": nodes},
    )
    assert partition(Classes.of(table, ["age", "job"])) == [[0, 1], [2], [3]]


def test_the_release_is_looked_at_and_spoken_of_by_original():
    original = table_of({"a": ["x", "x", "y", "z"]})
    release = Release.of(
        table_of({"a": ["x", "w", "w", "x", "x"]}), source_rows=np.array([2, 0, 0, 3, 0], dtype=np.int64)
    )
    found = KAnonymity().score(Evidence(original, release), Run(seed=1))
    assert found.value == 2
    np.testing.assert_array_equal(
        found.by_record, [2, np.nan, 3, 3]
    )  # the first stands in classes of 2 and 3
    raw = KAnonymity().score(Evidence(original), Run(seed=1))
    assert raw.value == 1
    assert raw.by_record.tolist() == [2, 2, 1, 1]
    synthetic = Evidence(original, Release.of(release.table))
    assert by_original(synthetic, np.zeros(5), worst="low") is None


def test_work_is_shared_and_does_not_travel():
    evidence = Evidence(table_of({"a": ["x", "y"], "b": [1, 2]}))
    classes = classes_of(evidence, ("b", "a"))
    assert classes_of(evidence, ("a", "b")) is classes
    assert classes_of(evidence, ("a", "b"), missing="any") is not classes
    assert evidence.remember("what", lambda: 1) == 1
    assert evidence.remember("what", lambda: 2) == 1
    assert replace(evidence, original=evidence.original).remember("what", lambda: 2) == 2
    travelled = pickle.loads(pickle.dumps(evidence))
    assert travelled.remember("what", lambda: 3) == 3
    assert evidence.remember("what", lambda: 4) == 1
    assert evidence == replace(evidence, scenario=evidence.scenario)
    assert "what" not in repr(evidence)


# -------------------------------------------------------------------------------------------------- other names


def test_models_answer_to_their_letters():
    letters = {
        "k": "k-anonymity", "l": "l-diversity", "t": "t-closeness", "p": "p-sensitivity", "beta": "beta-likeness",
        "alpha": "alpha-k-anonymity",
    }  # fmt: skip
    for letter, name in letters.items():
        assert registry.measure(letter) is registry.measures()[name]
        assert letter not in registry.measures()
        assert letter in registry.measures()[name].describe()["aliases"]
    with pytest.raises(UnknownNameError):
        registry.measure("kk")


def test_a_letter_is_given_once(monkeypatch):
    class Second(KAnonymity):
        """Another."""

        name = "second"
        aliases = ("k",)

    class Third(KAnonymity):
        """Its letters are not its own."""

        name = "third"

    room = type(registry)("room")
    for cls in (KAnonymity, Third):
        monkeypatch.setattr(cls, "__module__", "room")
        setattr(room, cls.__name__, cls)
    monkeypatch.setattr(registry, "_modules_of", lambda _: [room])
    monkeypatch.setattr(registry, "_plugins", lambda _: [])
    assert list(registry._load_classes(Measure, rooms=("risk",), group="")) == ["k-anonymity", "third"]
    Second.__module__ = "room"
    room.Second = Second
    with pytest.raises(TypeError, match="the name `k` is given twice"):
        registry._load_classes(Measure, rooms=("risk",), group="")


# Numbers of codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [3, 2**31, 2**40, 2**62])  # by a table, sorted with their places, sorted
@pytest.mark.parametrize("n", [0, 1, 50])
def test_codes_are_numbered_in_their_order_however_large(monkeypatch, space, n):
    monkeypatch.setattr(packing, "_BLOCK", 7)
    monkeypatch.setattr(packing, "_LARGEST", 2**50)
    codes = (
        np.random.default_rng(1).integers(0, min(space, 9), n).astype(np.uint64) * (space // 9 or 1) % space
    )
    numbers, counts = number(Coding(codes, space))
    _, places, wanted = np.unique(codes, return_inverse=True, return_counts=True)
    assert numbers.tolist() == places.tolist()
    assert counts.tolist() == wanted.tolist()
    assert [each.tolist() for each in distinct_of(codes, space)] == [
        np.unique(codes).tolist(), wanted.tolist()
    ]  # fmt: skip


def test_packing_leaves_the_codes_of_the_columns_as_they_are():
    first, second = (np.array(codes, dtype=np.uint8) for codes in ([0, 1, 2], [1, 0, 1]))
    packed = pack([Coding(first, 3), Coding(second, 2), Coding(first, 2**40)], 3)
    assert packed.codes.tolist() == [2**40, 2 * 2**40 + 1, 5 * 2**40 + 2]
    assert (first.tolist(), second.tolist()) == ([0, 1, 2], [1, 0, 1])


@pytest.mark.parametrize(
    "values",
    [[3.0, 0.0, -0.0, 3.0, None], [2.5, 0.0, -0.0, 2.5, None], [-1.0, 1.0, float("nan"), -1.0], [1e300, 1.0]],
)
def test_numbers_are_alike_if_equal_whole_or_not(values):
    table = Table(
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}), Schema((Column("x", Kind.CONTINUOUS),))
    )
    found = column_codes(table, "x", apart=True).codes
    shown = [str(value) if str(value) == "nan" else value for value in values]
    for i, j in itertools.product(range(len(values)), repeat=2):
        assert (found[i] == found[j]) == (shown[i] == shown[j])
    assert [code == 0 for code in found] == [value is None for value in values]
