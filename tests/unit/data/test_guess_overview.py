"""A table at a glance: counts, reasons and warnings, and no value of it."""

from __future__ import annotations

import json

import polars as pl
import pytest

from sfumato.data.guess.columns import Guess, guess, guess_related
from sfumato.data.guess.overview import name_columns, percent, survey
from sfumato.data.relations.associations import RelatedColumns
from sfumato.data.schema import Column, Kind, Role


def of(frame, told=None):
    guesses = guess(frame, told)
    return survey(frame, guesses, guess_related(frame, guesses))


FRAME = pl.DataFrame(
    {
        "name": [f"Person {i}" for i in range(40)],
        "age": [30, 40, -9, 41] * 10,
        "sex": ["f", "m"] * 20,
        "x": ["u", None] * 20,
        "constant": [7] * 40,
        "nothing": pl.Series([None] * 40, dtype=pl.Int64),
    }
)


def test_counts():
    found = {summary.column.name: summary for summary in of(FRAME).columns}
    assert (found["age"].distinct, found["age"].missing) == (3, 10)  # a code is no value
    assert (found["x"].distinct, found["x"].missing) == (1, 20)
    assert (found["nothing"].distinct, found["nothing"].missing) == (0, 40)
    assert found["age"].codes == ("-9",)
    assert found["age"].notes() == ["missing code -9"]


def test_warnings_are_sentences():
    assert of(FRAME).warnings() == [
        "`name` is a direct identifier: leave it out",
        "`x` and `nothing` have no role: choose one for each, or leave the columns out",
        "`nothing` has no value at all",
        "`constant` has the same value throughout",
        "`age` has codes that may mean missing: check them",
        "0 of 40 records (0 %) are unique on the 2 likely quasi-identifiers (keys) `age` and `sex`",
    ]


def test_unique_and_repeated_records():
    found = of(pl.DataFrame({"age": [20, 20, 30, 40, 40], "sex": ["f", "f", "f", "m", "f"]}))
    assert (found.duplicates, found.unique) == (1, 3)
    said = found.to_dict()
    assert (said["keys"], said["unique_on_keys"], said["unique_share"]) == (["age", "sex"], 3, 0.6)
    assert "1 of 5 records repeats another one in full" in found.warnings()


def test_persons_are_counted():
    frame = pl.DataFrame({"patient_id": [i // 2 for i in range(40)], "age": list(range(20, 60))})
    assert of(frame).warnings()[-1] == "20 persons with 2 records each by `patient_id`"


def test_what_lists_values_is_only_counted():
    """The order, the labels and unknown codes of a column are values of it."""
    column = Column(
        "x", Kind.ORDINAL, Role.KEY, order=("Xan", "Thip"), missing=("Pe", "NA"), labels=(("Xan", "Zan"),),
        suppressed="Quux", label="a label",
    )  # fmt: skip
    frame = pl.DataFrame({"x": pl.Series(["Xan", "Thip", "Pe"], dtype=pl.Enum(["Xan", "Thip", "Pe"]))})
    found = survey(frame, [Guess(column, "k", "r", 0.5)], [])
    said = found.to_dict()
    assert said["columns"][0] == {
        "name": "x", "type": "Enum", "distinct": 2, "missing": 1, "alone": 2, "kind": "ordinal",
        "kind_reason": "k", "role": "key", "role_reason": "r", "confidence": 0.5, "label": "a label", "ordered_values": 2,
        "value_labels": 1, "missing_codes": 2, "known_missing_codes": ["NA"], "related": [],
    }  # fmt: skip
    heard = json.dumps(said) + " ".join(found.columns[0].notes())
    for value in ("Xan", "Thip", "Pe", "Zan", "Quux"):
        assert value not in heard
    assert found.columns[0].notes() == ["1 value label", "missing code NA", "2 other missing codes"]


def test_related_columns_are_named_beside_each_other():
    columns = [Guess(Column(name, Kind.NOMINAL, Role.OTHER), "k", "r", 1.0) for name in "abc"]
    frame = pl.DataFrame({name: ["u", "v"] for name in "abc"})
    found = survey(frame, columns, [RelatedColumns(("a", "b"), "`a` determines `b`", 0.9)])
    assert [summary.related for summary in found.columns] == [("b",), ("a",), ()]
    assert found.schema.related == (("a", "b"),)
    assert found.warnings()[-1] == "`a` and `b` are strongly related: `a` determines `b`"
    assert found.columns[0].notes() == ["strongly related to `b`"]


@pytest.mark.parametrize("frame", [pl.DataFrame({"age": pl.Series([], dtype=pl.Int64)}), pl.DataFrame()])
def test_nothing_at_all(frame):
    found = of(frame)
    assert (found.records, found.duplicates, found.unique) == (0, 0, 0)
    assert json.dumps(found.to_dict())


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.0001, "under 0.1 %"),
        (0.9999, "over 99.9 %"),
        (0.1234, "12.3 %"),
        (0.5, "50 %"),
    ],
)
def test_percent(share, words):
    assert percent(share) == words


def test_listed():
    assert name_columns([]) == ""
    assert name_columns(["a"]) == "`a`"
    assert name_columns(["a", "b", "c"]) == "`a`, `b` and `c`"
    assert name_columns([str(i) for i in range(12)]).endswith("`9` and 2 more")
