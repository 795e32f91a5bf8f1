"""What is said of a release beside its scores, and who is who in a file that was shuffled."""

import json

import numpy as np
import polars as pl
import pytest

from seeds import LARGE
from sfumato.core.release import Release
from sfumato.core.run import Run
from sfumato.data.generalised.intervals import intervals
from sfumato.data.persons import is_out_of_order
from sfumato.data.schema import Column, Kind, Role, Schema
from sfumato.data.table import Table
from sfumato.errors import ParameterError
from sfumato.methods.swapping import RankSwapping
from sfumato.recipes.parts import Output, Source
from sfumato.recipes.plan import Plan
from sfumato.recipes.recipe import Recipe
from sfumato.recipes.step import Step
from sfumato.releasing.carry_out import carry_out, load
from sfumato.releasing.decide import decide
from sfumato.releasing.destination import Destination, write_release
from sfumato.releasing.notes import notes_of
from sfumato.releasing.read_release import read_release
from sfumato.releasing.trail import source_rows_of_file
from sfumato.study.column_changes import losses

N = 60
SCHEMA = Schema(
    (
        Column("age", Kind.CONTINUOUS, Role.KEY),
        Column("county", Kind.NOMINAL, Role.KEY),
        Column("hospital", Kind.NOMINAL, Role.OTHER),
        Column("house", Kind.NOMINAL, Role.HOUSEHOLD),
        Column("w", Kind.CONTINUOUS, Role.WEIGHT),
    ),
    related=(("county", "hospital"),),
)
FRAME = pl.DataFrame(
    {
        "age": np.arange(N) * 1.0,
        "county": [str(i % 3) for i in range(N)],
        "hospital": [f"h{i % 6}" for i in range(N)],
        "house": [str(i // 2) for i in range(N)],
        "w": 1 + np.arange(N) / 7,
    }
)
ORIGINAL = Table(FRAME, SCHEMA)


def told(released):
    release = Release.of(released, source_rows=np.arange(N))
    return notes_of(ORIGINAL, release, losses(ORIGINAL, release))


def with_other_counties(table):
    return table.with_values("county", pl.Series("county", [str(i % 2) for i in range(N)]))


def test_exact_weights_related_columns_and_households_that_stay_are_named():
    said = told(with_other_counties(ORIGINAL))
    assert len(said) == 3
    assert "`house` is released" in said[0]
    assert "weights in `w` are exact" in said[1]
    assert (
        said[2]
        == "risks are judged also for an intruder who reads the release with `county` as `hospital` tells it"
    )


def test_what_is_changed_or_dropped_or_has_not_to_be_hidden_is_not():
    rounded = with_other_counties(ORIGINAL).with_values("w", pl.Series("w", np.full(N, 4.0)))
    assert told(rounded.select(["age", "county", "w"])) == ()
    assert not any("back" in note for note in told(ORIGINAL))  # the county itself leaves as it was


# --------------------------------------------------------------------------------------------- who is who


@pytest.mark.parametrize("columns", [["age", "county", "hospital", "w"], ["age", "county"], ["hospital"]])
def test_a_shuffled_file_is_not_aligned(columns):
    order = np.random.default_rng(1).permutation(N)
    noisy = ORIGINAL.with_values("age", FRAME["age"] + np.random.default_rng(2).normal(0, 9, N)).select(
        columns
    )
    assert not is_out_of_order(ORIGINAL, noisy)
    assert is_out_of_order(ORIGINAL, noisy.take(order))
    with pytest.raises(ParameterError, match="order of the original"):
        read_release(ORIGINAL, noisy.take(order), aligned=True)


def test_where_nobody_can_tell_it_may_be_aligned():
    noise = Table(FRAME.with_columns(age=np.random.default_rng(1).normal(0, 9, N)), SCHEMA).select(["age"])
    assert not is_out_of_order(ORIGINAL, noise)  # another order, or much noise
    assert not is_out_of_order(ORIGINAL.take(np.arange(5)), ORIGINAL.take(np.arange(5)[::-1]))


def test_a_column_that_is_generalised_tells_the_order():
    ages = intervals(FRAME["age"] // 10 * 10, FRAME["age"] // 10 * 10 + 10, name="age")
    swapped = FRAME["county"].gather(pl.Series(np.random.default_rng(1).permutation(N)))
    coarse = ORIGINAL.with_values("age", ages).with_values("county", swapped).select(["age", "county"])
    assert not is_out_of_order(ORIGINAL, coarse)
    assert is_out_of_order(ORIGINAL, coarse.take(np.random.default_rng(3).permutation(N)))


def test_the_private_trail_tells_who_is_who(tmp_path):
    FRAME.write_csv(tmp_path / "people.csv")
    plan = Plan(
        data=Source("people.csv"), schema=SCHEMA, recipe=Recipe.of(Step(RankSwapping(window=20), ("age",))),
        output=Output("release.csv", weights="exact"), folder=tmp_path,  # by which each record is known
    )  # fmt: skip
    outcome = carry_out(plan, Run(seed=LARGE + 1))
    decision = decide(outcome, subject="it", unjudged=True, override="numbers of a test")
    write_release(decision, Destination(plan))
    original = load(plan)
    rows, synthetic = source_rows_of_file(tmp_path / "release.csv", original)
    assert not synthetic
    np.testing.assert_array_equal(rows, outcome.release.source_rows)
    read = read_release(original, tmp_path / "release.csv", aligned=False)
    assert read.table.frame["w"].to_list() == FRAME["w"].gather(pl.Series(rows)).to_list()
    assert "`house` is released" in json.loads((tmp_path / "release.private.json").read_text())["notes"][0]
    # Of other originals, or of a file that was changed since, it says nothing.
    assert source_rows_of_file(tmp_path / "release.csv", original.take(np.arange(N)[::-1])) == (None, False)
    (tmp_path / "release.csv").write_text("age\n1\n")
    assert source_rows_of_file(tmp_path / "release.csv", original) == (None, False)
    (tmp_path / "release.private.json").write_text("[]")
    assert source_rows_of_file(tmp_path / "release.csv", original) == (None, False)
