"""Uniques that are repeated and values that are told: many draws, few records, several copies, nobody's records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sfumato.core.evidence import Evidence
from sfumato.core.origin import Origin
from sfumato.core.release import Release
from sfumato.core.requirement import parse_measure
from sfumato.core.run import Run
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.methods.sampling import Sampling
from sfumato.methods.synthesis import Synthesis
from sfumato.releasing.copies import score_copies
from sfumato.study.evaluate import EvaluationCase

ROLES = {"who": Role.PERSON, "illness": Role.SENSITIVE}


def tabled(frame):
    columns = (Column(name, Kind.NOMINAL, ROLES.get(name, Role.KEY)) for name in frame.columns)
    return Table(frame.cast(pl.String), Schema(tuple(columns)))


def rows_of(*rows, names=("age", "zip", "illness")):
    return tabled(pl.DataFrame(rows, schema=list(names), orient="row"))


def people(n=400):
    rng = np.random.default_rng(1)
    drawn = {"age": rng.integers(18, 30, n), "zip": rng.integers(100, 120, n), "size": rng.integers(1, 6, n)}
    return tabled(pl.DataFrame({**drawn, "illness": rng.choice(list("abcde"), n)}))


def scored(name, original, release):
    return parse_measure(name).score(Evidence(original, release), Run(seed=1))


def nobodys(table):
    return replace(Release.of(table), origin=Origin.synthetic())


def test_more_synthetic_records_repeat_more_uniques():
    original, values, published = people(), [], []
    known = Counter(row[:3] for row in original.frame.rows())
    for drawn in (400, 2000, 8000):
        chosen = original.aimed_at(original.names)
        release = Synthesis(leaf=2, records=drawn).apply(chosen, Run(seed=3))
        assert release.synthetic
        score, rows = scored("replicated-uniques", original, release), set(release.table.frame.rows())
        whole = sum(known[row[:3]] == 1 and row in rows for row in original.frame.rows()) / 400
        assert score.value >= whole > 0
        values.append(score.value)
        published.append(score.details["published"])
    assert values == sorted(values)
    assert values[-1] == sum(count == 1 for count in known.values()) / 400  # everybody who can be repeated is
    assert published[-1] == 0  # as each of them stands there several times


@pytest.mark.parametrize("is_mapped", [True, False])
@pytest.mark.parametrize("name", ["replicated-uniques", "disco"])
def test_a_sample_of_raw_records_tells_all_of_who_is_in_it(name, is_mapped):
    original = tabled(people().frame.with_columns(age=pl.int_range(pl.len())))  # everybody is unique
    sample = Sampling(share=2).apply(original, Run(seed=1))
    assert len(sample.table) == 8
    score = scored(name, original, sample if is_mapped else Release.of(sample.table))
    assert (score.value, score.details["published"]) == (1, 0.02)
    assert scored(name, original, nobodys(sample.table)).value == 0.02  # nobody is in it: of all
    assert score.by_record.sum() == 8


def test_who_is_in_the_release_by_hand():
    original = rows_of(("1", "x", "flu"), ("2", "x", "flu"), ("3", "x", "no"), ("4", "x", "no"))
    # the second and the third are released; the third changed into the first, and one is nobody's
    shown = rows_of(("2", "x", "flu"), ("1", "x", "flu"), ("4", "x", "no"))
    release = Release.of(shown, source_rows=np.array([1, 2, -1]))
    score = scored("replicated-uniques", original, release)
    assert score.by_record.tolist() == [1, 1, 0, 1]
    assert score.value == 3 / 4  # of all, since of the two in the release it is one
    assert scored("disco", original, release).by_record.tolist() == [1, 1, 0, 1]


def test_a_person_who_is_in_the_release_counts_once():
    names = ("who", "age", "zip", "illness")
    rows = [("p", "1", "x", "flu"), ("p", "1", "x", "flu"), ("q", "2", "x", "no"), ("q", "3", "x", "no")]
    original = rows_of(*rows, names=names)
    half = rows_of(*(row[1:] for row in rows[:2]))
    for name in ("replicated-uniques", "disco"):
        assert scored(name, original, Release.of(half, source_rows=np.arange(2))).value == 1
        assert scored(name, original, Release.of(half)).value == 1  # two records each: they are one person's
        assert scored(name, original, nobodys(half)).value == 1 / 2


def test_copies_are_seen_together():
    original = rows_of(("1", "x", "flu"), ("2", "x", "no"), ("3", "x", "flu"), ("4", "x", "no"))
    copies = [nobodys(rows_of((age, "x", "flu"), ("9", "x", "no"))) for age in "123"]
    measures = [parse_measure(name) for name in ("replicated-uniques", "disco")]
    scores = score_copies(copies, EvaluationCase(original), measures, Run(seed=1))
    assert scores["replicated-uniques"].value == 3 / 4
    assert scores["disco"].value == 2 / 4  # the first and the third; the second is told falsely


def test_nobody_unique_and_nobody_told():
    original = rows_of(("1", "x", "flu"), ("1", "x", "no"))
    score = scored("replicated-uniques", original, Release.unchanged(original))
    assert (score.value, score.details["uniques"], score.details["share_of_uniques"]) == (0, 0, 0)
    one = rows_of(("1", "x", None))
    assert scored("replicated-uniques", one, Release.unchanged(one)).value == 1
    assert scored("disco", one, Release.unchanged(one)).status == "not-estimable"
    none = Release.of(one.take(np.zeros(0, dtype=np.int64)))
    assert scored("replicated-uniques", one, none).status == "not-estimable"
